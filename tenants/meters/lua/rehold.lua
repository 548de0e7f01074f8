-- Put back holds that Redis lost, of requests that run on: they take what they took, whatever the limits say by now, so
-- that admission sees it again. One that is held, or has ended, stays as it is: repeating it changes nothing.
-- KEYS: index of holds. ARGV: lease ms, then of each: id, record JSON, meters JSON, cost at worst in nano-units ('' none),
--       step, progress JSON ('' = its upstream is not opened yet); as admit.lua and move.lua have them.
-- Answer: one word each: 'held' | 'reaped' | 'ended'.
local now = clock()
local expires = whole(now + tonumber(ARGV[1]))
local answer = {}
for at = 2, #ARGV, 6 do
  local id, record, meters, cost, step, progress = unpack(ARGV, at, at + 5)
  local hold, tombstone = 'hr:hold:' .. id, redis.call('GET', 'hr:done:' .. id)
  if tombstone then
    answer[#answer + 1] = tombstone == 'final' and 'ended' or 'reaped'
  else
    if redis.call('EXISTS', hold) == 0 then
      redis.call('HSET', hold, 'record', record, 'meters', meters, 'expires', expires, 'cost', cost, 'step', step)
      if progress ~= '' then redis.call('HSET', hold, 'progress', progress) end
      redis.call('ZADD', KEYS[1], expires, id)
      for _, meter in ipairs((meters_of(meters))) do isolated(kinds[meter[1]].take, meter[2], meter[3], meter[4], now) end
    end
    answer[#answer + 1] = 'held'
  end
end
return answer
