-- End a hold: give back, charge, append the usage event, leave a tombstone. Repeating it changes nothing.
-- KEYS: hold, index of holds, tombstone, usage stream.
-- ARGV: id, used JSON {measure: amount} (a measure left out was used as held), event JSON, tombstone seconds,
--       'final' | 'reaped', what the tombstone of a reaped one remembers, meters JSON (charged where the hold is lost).
-- A hold with meters that this code does not know is no reaper's, who would settle a part of it: another version will.
-- Its own process settles it all the same, without them.
-- Answer: 'settled' | 'ended' (had been settled) | 'lost' (no hold: its use is charged) | 'alive' (its lease still runs:
--         only a reaper hears this) | 'unknown' (only a reaper: nothing has changed) | 'reaped:...' (a reaper was first:
--         see correct.lua).
local now = clock()
local reaping = ARGV[5] == 'reaped'
local tombstone = redis.call('GET', KEYS[3])
if tombstone == 'final' or (tombstone and reaping) then return 'ended' end
if tombstone then return tombstone end

local hold = redis.call('HMGET', KEYS[1], 'meters', 'expires', 'waiting', 'served')
if reaping then
  if not hold[1] then
    redis.call('ZREM', KEYS[2], ARGV[1])
    return 'ended'
  end
  if (tonumber(hold[2] or '') or 0) > now then return 'alive' end
end

local used = cjson.decode(ARGV[2])
local meters, is_all = meters_of(hold[1] or ARGV[7])
if reaping and not is_all then return 'unknown' end

redis.call('XADD', KEYS[4], '*', 'e', ARGV[3])
redis.call('SET', KEYS[3], reaping and ('reaped:' .. ARGV[6]) or 'final', 'EX', ARGV[4])
if hold[1] then
  redis.call('DEL', KEYS[1])
  redis.call('ZREM', KEYS[2], ARGV[1])
end
for _, meter in ipairs(meters) do
  local kind, key, limit, amount, measure = unpack(meter)
  if hold[1] then
    isolated(kinds[kind].give, key, limit, amount, used[measure] or amount, now)
  else
    isolated(kinds[kind].charge, key, limit, used[measure] or amount, now)
  end
end
if hold[1] then isolated(queue.finish, ARGV[1], hold[3], hold[4], used, meters, now) end
if hold[1] then return 'settled' end
return 'lost'
