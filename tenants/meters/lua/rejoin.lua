-- A request whose replica failed, and which found no room elsewhere, waits for it: its hold gives its room back and joins
-- the queue. All else that it holds stays held. Steps are counted as in move.lua, together with the moves.
-- KEYS: hold, tombstone. ARGV: id, step, record JSON, progress JSON, rooms JSON, waiter JSON (both as in admit.lua).
-- Answer: {'waits'} | {'no_room'} (nor may more wait: nothing has changed) | {'late'} | {'gone'} | {'lost'}.
local hold = redis.call('HMGET', KEYS[1], 'meters', 'step', 'served')
if not hold[1] then
  if redis.call('EXISTS', KEYS[2]) == 1 then return {'gone'} end
  return {'lost'}
end
local step, done = tonumber(ARGV[2]), tonumber(hold[2] or 0)
if done > step then return {'late'} end
if done == step then return {'waits'} end

local now = clock()
local offered, waiter = cjson.decode(ARGV[5]), cjson.decode(ARGV[6])
local pool = queue.pool_of(offered[1][2])
if crowding.enter(pool, waiter, true) then return {'no_room'} end

local kept, freed = {}, {}
for _, meter in ipairs(cjson.decode(hold[1])) do
  if meter[5] == 'room' and is_known(meter) then
    kinds[meter[1]].give(meter[2], meter[3], meter[4], '0', now)
    freed[#freed + 1] = meter
  else
    kept[#kept + 1] = meter
  end
end
if hold[3] then
  local served_by, class, tenant, _, tokens, project, project_weight = unpack(cjson.decode(hold[3]))
  queue.serve(served_by, class, tenant, -tokens, project, project_weight)
end
redis.call('HDEL', KEYS[1], 'granted', 'served')
redis.call('HSET', KEYS[1], 'step', step, 'record', ARGV[3], 'progress', ARGV[4], 'waiting', pool,
  'meters', #kept > 0 and cjson.encode(kept) or '[]')
queue.wait(pool, ARGV[1], waiter, offered, now)
queue.freed(freed, {[pool] = true}, now)
return {'waits'}
