-- The request goes on elsewhere: its hold gives back the meters it no longer needs, takes those it lacks, all of them
-- or none, and keeps the new record and progress. What it holds in both stays as it is held, and so does what it holds of
-- budgets: they are the caller's, wherever it goes. The lease does not change.
-- Steps of one request are counted from 1; repeating a step changes nothing and says the same, an earlier step that
-- comes late is refused.
-- KEYS: hold, tombstone, then one a meter of the new set.
-- ARGV: step, record JSON, progress JSON, the new set of meters as JSON (in the form in which the hold keeps them), its
--       class. In a pool where it has no room yet it does not pass those who wait there.
-- Answer: {'moved'} | {word of a kind's check, meter number, wait ms, left} | {'late'}
--         | {'gone'} (reaped or settled) | {'lost'} (Redis knows nothing of it).
local hold = redis.call('HMGET', KEYS[1], 'meters', 'step')
if not hold[1] then
  if redis.call('EXISTS', KEYS[2]) == 1 then return {'gone'} end
  return {'lost'}
end
local step, done = tonumber(ARGV[1]), tonumber(hold[2] or 0)
if done > step then return {'late'} end
if done == step then return {'moved'} end

local now = clock()
-- What another version added to the hold, and this one does not know, stays in it as it is.
local held, unknown, pools = {}, {}, {}
for _, meter in ipairs(cjson.decode(hold[1])) do
  if is_known(meter) then held[meter[2]] = meter else unknown[#unknown + 1] = meter end
  if meter[5] == 'room' then pools[queue.pool_of(meter[2])] = true end
end
local function is_passing(meter)
  local pool = meter[5] == 'room' and queue.pool_of(meter[2])
  return pool and not pools[pool] and queue.is_ahead(pool, ARGV[5])
end
local kept, taken = {}, {}
for index, meter in ipairs(cjson.decode(ARGV[4])) do
  local kind, key, limit, amount = unpack(meter)
  if held[key] then
    kept[index] = held[key]
    held[key] = nil
  else
    if is_passing(meter) then return {'limited', index, 1000, '0'} end
    local word, wait, left = kinds[kind].check(key, limit, amount, now)
    if word then return {word, index, wait or 0, left or '0'} end
    kept[index] = meter
    taken[#taken + 1] = meter
  end
end

for _, meter in pairs(held) do
  if meter[5] == 'cost' then
    kept[#kept + 1] = meter
  else
    kinds[meter[1]].give(meter[2], meter[3], meter[4], '0', now)
  end
end
for _, meter in ipairs(unknown) do kept[#kept + 1] = meter end
for _, meter in ipairs(taken) do kinds[meter[1]].take(meter[2], meter[3], meter[4], now) end
local meters = #kept > 0 and cjson.encode(kept) or '[]'
redis.call('HSET', KEYS[1], 'step', step, 'record', ARGV[2], 'progress', ARGV[3], 'meters', meters)
queue.freed(held, {}, now)
return {'moved'}
