-- Make running holds name counters of budgets that are newer than they are. A counter that there is holds them from now
-- on. One that is named already, or whose hold has ended, stays as it is: repeating it changes nothing.
-- KEYS: none. ARGV: of each: id, the counter's key, amount.
for at = 1, #ARGV, 3 do
  local hold, key, amount = 'hr:hold:' .. ARGV[at], ARGV[at + 1], ARGV[at + 2]
  local is_json, meters = pcall(cjson.decode, redis.call('HGET', hold, 'meters') or '')
  is_json = is_json and type(meters) == 'table'
  local is_named = false
  for _, meter in ipairs(is_json and meters or {}) do is_named = is_named or meter[2] == key end
  if is_json and not is_named then
    meters[#meters + 1] = {'soft_budget', key, '0', amount, 'cost'}
    redis.call('HSET', hold, 'meters', cjson.encode(meters))
    if counter(key) then add(key, 'held', amount) end
  end
end
return 'adopted'
