-- Set budgets' counters: what the ledger has of their windows, and what it has not yet. Repeating it says the same. Nobody
-- wants for them after it.
-- The caller holds the ledger's drain lock, so that an entry is either in the stream or in the ledger.
-- KEYS: index of holds, usage stream, then the counters.
-- ARGV: of each counter: the ledger's sum in nano-units, tenant, project, key, model ('' any), first and last instant of
--       its window (ISO 8601 as events have them; the last belongs to the next window), epoch ms to expire at ('' never).
-- A live hold that matches and does not name the counter yet (the budget is new) is made to name it.
-- Answer: spent, held of each counter.
local now = clock()
local by_tenant = {}
for index = 3, #KEYS do
  local at = 1 + (index - 3) * 8
  local found = {
    at = index, key = KEYS[index], project = ARGV[at + 2], api_key = ARGV[at + 3], model = ARGV[at + 4],
    first = ARGV[at + 5], last = ARGV[at + 6]
  }
  local tenant = ARGV[at + 1]
  by_tenant[tenant] = by_tenant[tenant] or {}
  table.insert(by_tenant[tenant], found)
  redis.call('DEL', found.key)
  redis.call('SREM', WANTED, found.key)
  redis.call('HSET', found.key, 'spent', ARGV[at], 'held', '0', 'made', whole(now))
  if ARGV[at + 7] ~= '' then redis.call('PEXPIREAT', found.key, ARGV[at + 7]) end
end

local function matching(event)
  local found = {}
  for _, one in ipairs(by_tenant[event.tenant] or {}) do
    if (one.project == '' or one.project == event.project) and (one.api_key == '' or one.api_key == event.key)
        and (one.model == '' or one.model == event.model)
        and one.first <= event.admitted_at and event.admitted_at < one.last then
      found[#found + 1] = one
    end
  end
  return found
end

local function decoded(text)
  local is_json, value = pcall(cjson.decode, text)
  if is_json and type(value) == 'table' and type(value.admitted_at) == 'string' then return value end
  return {}
end

local seen = {}
for _, entry in ipairs(redis.call('XRANGE', KEYS[2], '-', '+')) do
  local text = entry[2][2] or ''
  local event = decoded(text)
  -- From the text: cjson's numbers end at 2^53. Inside a label the quotes would be escaped.
  local cost = string.match(text, '"cost_nano":%s*(%-?%d+)')
  local name = tostring(event.request_id) .. '/' .. tostring(event.part)
  if cost and not seen[name] then
    seen[name] = true
    for _, one in ipairs(matching(event)) do add(one.key, 'spent', cost) end
  end
end

for _, id in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
  local hold = redis.call('HMGET', 'hr:hold:' .. id, 'record', 'meters', 'cost')
  if hold[1] and hold[2] then
    local meters, named = cjson.decode(hold[2]), {}
    for _, meter in ipairs(meters) do named[meter[2]] = meter[4] end
    local adopted = false
    for _, one in ipairs(matching(decoded(hold[1]))) do
      if not named[one.key] and is_whole(hold[3]) then
        meters[#meters + 1] = {'soft_budget', one.key, '0', hold[3], 'cost'}
        named[one.key], adopted = hold[3], true
      end
    end
    if adopted then redis.call('HSET', 'hr:hold:' .. id, 'meters', cjson.encode(meters)) end
    for index = 3, #KEYS do
      if named[KEYS[index]] then add(KEYS[index], 'held', named[KEYS[index]]) end
    end
  end
end

local answer = {}
for index = 3, #KEYS do
  local found = redis.call('HMGET', KEYS[index], 'spent', 'held')
  answer[#answer + 1] = found[1]
  answer[#answer + 1] = found[2]
end
return answer
