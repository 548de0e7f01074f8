-- The holds whose lease has run out by Redis's own clock. KEYS: index of holds. ARGV: at most so many.
-- Answer: id, record, meters, progress of each (progress '' = its upstream was never opened; '' all of what is no hold).
local answer = {}
for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', whole(clock()), 'LIMIT', 0, ARGV[1])) do
  local hold = redis.pcall('HMGET', 'hr:hold:' .. id, 'record', 'meters', 'progress')
  if hold.err or hold[1] then
    for _, value in ipairs({id, hold[1] or '', hold[2] or '', hold[3] or ''}) do answer[#answer + 1] = value end
  else
    redis.call('ZREM', KEYS[1], id)
  end
end
return answer
