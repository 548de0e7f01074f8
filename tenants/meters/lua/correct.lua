-- The late word of a request that a reaper settled first: append the difference, charge it, close the tombstone.
-- KEYS: tombstone, usage stream.
-- ARGV: the tombstone as it was read, event JSON ('' when there is no difference), tombstone seconds, meters JSON,
--       difference JSON {measure: amount}, each may be negative.
-- Answer: 'corrected' | 'ended' (somebody was first).
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 'ended' end
local now = clock()
local more, meters = cjson.decode(ARGV[5]), meters_of(ARGV[4])
redis.call('SET', KEYS[1], 'final', 'EX', ARGV[3])
if ARGV[2] ~= '' then
  redis.call('XADD', KEYS[2], '*', 'e', ARGV[2])
  for _, meter in ipairs(meters) do
    local kind, key, limit, _, measure = unpack(meter)
    local amount = more[measure] or '0'
    if amount ~= '0' then isolated(kinds[kind].charge, key, limit, amount, now) end
  end
end
return 'corrected'
