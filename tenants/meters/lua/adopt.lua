-- Make a running hold name counters of budgets that are newer than it is. A counter that there is holds it from now on.
-- One that is named already stays as it is, and so does a hold that has ended: repeating it changes nothing.
-- KEYS: none. ARGV: id, amount, then the counters' keys.
local hold, amount, named = 'hr:hold:' .. ARGV[1], ARGV[2], {}
local is_json, meters = pcall(cjson.decode, redis.call('HGET', hold, 'meters') or '')
if not is_json or type(meters) ~= 'table' then return 'gone' end
for _, meter in ipairs(meters) do named[meter[2]] = true end
for at = 3, #ARGV do
  local key = ARGV[at]
  if not named[key] then
    named[key] = true
    meters[#meters + 1] = {'soft_budget', key, '0', amount, 'cost'}
    if counter(key) then add(key, 'held', amount) end
  end
end
redis.call('HSET', hold, 'meters', #meters > 0 and cjson.encode(meters) or '[]')
return 'adopted'
