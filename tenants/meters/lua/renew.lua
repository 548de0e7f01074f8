-- Prolong the leases of one process's requests and note how far each is.
-- KEYS: index of holds. ARGV: lease ms, then id, step, progress JSON of each ('' = upstream not opened yet). What is said
-- of a step before the hold's own is old: the request has moved on since (move.lua).
-- Answer: one word each: 'held' | 'reaped' | 'ended' | 'lost' (Redis knows nothing of it).
local expires = whole(clock() + tonumber(ARGV[1]))
local answer = {}
for at = 2, #ARGV, 3 do
  local id, step, progress = ARGV[at], tonumber(ARGV[at + 1]), ARGV[at + 2]
  local hold = 'hr:hold:' .. id
  if redis.call('EXISTS', hold) == 1 then
    redis.call('HSET', hold, 'expires', expires)
    local is_old = step < (tonumber(redis.call('HGET', hold, 'step') or '') or 0)
    if progress ~= '' and not is_old then redis.call('HSET', hold, 'progress', progress) end
    redis.call('ZADD', KEYS[1], expires, id)
    answer[#answer + 1] = 'held'
  else
    local tombstone = redis.call('GET', 'hr:done:' .. id)
    if not tombstone then answer[#answer + 1] = 'lost'
    elseif tombstone == 'final' then answer[#answer + 1] = 'ended'
    else answer[#answer + 1] = 'reaped' end
  end
end
return answer
