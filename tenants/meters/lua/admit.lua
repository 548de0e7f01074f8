-- Take from every meter or from none, and write the hold. Repeating it for one id changes nothing and says the same.
-- KEYS: hold, index of holds, tombstone, then one a meter.
-- ARGV: id, lease ms, record JSON, meters JSON (as the hold keeps them), then kind, limit, amount of each meter.
-- Answer: {'held', free, reset_ms, free, reset_ms, ...} | {'refused', meter number, wait ms} | {'too_large', meter number}
--         | {'ended'} when the id has already been settled.
local now = clock()
local meters = {}
for index = 4, #KEYS do
  local at = 5 + (index - 4) * 3
  meters[#meters + 1] = {
    kind = kinds[ARGV[at]], key = KEYS[index], limit = tonumber(ARGV[at + 1]), amount = tonumber(ARGV[at + 2])
  }
end

if redis.call('EXISTS', KEYS[3]) == 1 then return {'ended'} end

if redis.call('EXISTS', KEYS[1]) == 0 then
  local longest, at = 0, 0
  for index, meter in ipairs(meters) do
    local wait = meter.kind.check(meter.key, meter.limit, meter.amount, now)
    if wait == -1 then return {'too_large', index} end
    if wait and wait > longest then longest, at = wait, index end
  end
  if at > 0 then return {'refused', at, longest} end
  for _, meter in ipairs(meters) do meter.kind.take(meter.key, meter.limit, meter.amount, now) end
  local expires = whole(now + tonumber(ARGV[2]))
  redis.call('HSET', KEYS[1], 'record', ARGV[3], 'meters', ARGV[4], 'expires', expires)
  redis.call('ZADD', KEYS[2], expires, ARGV[1])
end

local answer = {'held'}
for _, meter in ipairs(meters) do
  local free, reset = meter.kind.look(meter.key, meter.limit, now)
  answer[#answer + 1] = free
  answer[#answer + 1] = reset
end
return answer
