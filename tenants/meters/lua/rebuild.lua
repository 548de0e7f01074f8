-- Set budgets' counters, in the last step of a rebuild: what the ledger has of their windows, what the stream has and the
-- ledger has not, and what runs. Nearly all of it was read before, a piece at a time (rebuilding.py); what has happened
-- since is counted here: holds that began or ended, and new entries of the stream. Nobody wants for them after it.
-- The caller holds the ledger's drain lock, so that an entry is either in the stream or in the ledger.
-- KEYS: index of holds, usage stream, ids of the holds that were read, what each of these holds of the counters (hash:
--       'number:amount,...'), entries of the stream that were read (set), then the counters.
-- ARGV: id of the last entry that was read, how many holds may have begun since, then of each counter: spent and held so
--       far in nano-units, tenant, project, key, model ('' any), first and last instant of its window (ISO 8601 as
--       events have them; the last belongs to the next window), epoch ms to expire at ('' never).
-- A live hold that matches and does not name the counter yet (the budget is new) is made to name it.
-- Answer: 'set' | 'again' (too many holds are new: read on, and ask again) | 'lost' (Redis lost what was read: begin anew).
local FIRST, EACH = 6, 9
if redis.call('EXISTS', KEYS[4]) == 0 then return 'lost' end
local born = redis.call('ZDIFF', 2, KEYS[1], KEYS[3])
if #born > tonumber(ARGV[2]) then return 'again' end

local now = clock()
local by_tenant, is_ours = {}, {}
for index = FIRST, #KEYS do
  local at = 3 + (index - FIRST) * EACH
  local found = {
    key = KEYS[index], project = ARGV[at + 3], api_key = ARGV[at + 4], model = ARGV[at + 5],
    first = ARGV[at + 6], last = ARGV[at + 7]
  }
  local tenant = ARGV[at + 2]
  by_tenant[tenant] = by_tenant[tenant] or {}
  table.insert(by_tenant[tenant], found)
  is_ours[found.key] = true
  redis.call('DEL', found.key)
  redis.call('HSET', found.key, 'spent', ARGV[at], 'held', ARGV[at + 1], 'made', whole(now))
  if ARGV[at + 8] ~= '' then redis.call('PEXPIREAT', found.key, ARGV[at + 8]) end
end
for index = FIRST, #KEYS, 500 do redis.call('SREM', WANTED, unpack(KEYS, index, math.min(index + 499, #KEYS))) end

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
for _, entry in ipairs(redis.call('XRANGE', KEYS[2], '(' .. ARGV[1], '+')) do
  local text = entry[2][2] or ''
  local event = decoded(text)
  -- From the text: cjson's numbers end at 2^53. Inside a label the quotes would be escaped.
  local cost = string.match(text, '"cost_nano":%s*(%-?%d+)')
  local name = tostring(event.request_id) .. '/' .. tostring(event.part)
  if cost and not seen[name] and redis.call('SISMEMBER', KEYS[5], name) == 0 then
    seen[name] = true
    for _, one in ipairs(matching(event)) do add(one.key, 'spent', cost) end
  end
end

for _, id in ipairs(redis.call('ZDIFF', 2, KEYS[3], KEYS[1])) do
  for number, amount in string.gmatch(redis.call('HGET', KEYS[4], id) or '', '(%d+):(%d+)') do
    add(KEYS[FIRST + tonumber(number)], 'held', '-' .. amount)
  end
end

for _, id in ipairs(born) do
  local hold = redis.pcall('HMGET', 'hr:hold:' .. id, 'record', 'meters', 'cost')
  local is_json, meters = pcall(cjson.decode, not hold.err and hold[1] and hold[2] or '')
  if is_json and type(meters) == 'table' then
    local named = {}
    for _, meter in ipairs(meters) do
      if is_known(meter) then named[meter[2]] = meter[4] end
    end
    local adopted = false
    for _, one in ipairs(matching(decoded(hold[1]))) do
      if not named[one.key] and is_whole(hold[3]) then
        meters[#meters + 1] = {'soft_budget', one.key, '0', hold[3], 'cost'}
        named[one.key], adopted = hold[3], true
      end
    end
    if adopted then redis.call('HSET', 'hr:hold:' .. id, 'meters', cjson.encode(meters)) end
    for key, amount in pairs(named) do
      if is_ours[key] then add(key, 'held', amount) end
    end
  end
end

redis.call('DEL', KEYS[3], KEYS[4], KEYS[5])
return 'set'
