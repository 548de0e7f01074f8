-- Take from every meter or from none, and write the hold. Repeating it for one id changes nothing and says the same.
-- KEYS: hold, index of holds, tombstone, then one a meter.
-- ARGV: id, lease ms, record JSON, meters JSON (as the hold keeps them), cost at worst in nano-units ('' unpriced), then
--       kind, limit, amount of each meter; last of all, JSON of further meters in the hold's form of which it takes one as
--       well: the first that has room.
-- Answer: {'held', number of the one it took (0: none was given), free, reset_ms, free, reset_ms, ...} | {'no_room'}
--         | {word of a kind's check, meter number, wait ms, left, free, reset_ms, free, reset_ms, ...}
--         | {'ended'} when the id has already been settled.
local now = clock()
local meters = {}
for index = 4, #KEYS do
  local at = 6 + (index - 4) * 3
  meters[#meters + 1] = {kind = kinds[ARGV[at]], key = KEYS[index], limit = ARGV[at + 1], amount = ARGV[at + 2]}
end

local function look(answer)
  for _, meter in ipairs(meters) do
    local free, reset = meter.kind.look(meter.key, meter.limit, now)
    answer[#answer + 1] = free
    answer[#answer + 1] = reset
  end
  return answer
end

-- The most final answer is the one to give: first what waiting does not cure, then the longest wait.
local FINAL = {too_large = 2, exhausted = 1}
local function is_more_final(one, other)
  local rank, than = FINAL[one[1]] or 0, FINAL[other[1]] or 0
  if rank ~= than or rank == 2 then return rank > than end
  if rank == 1 then return is_less(one[4], other[4]) end
  return one[3] > other[3]
end

if redis.call('EXISTS', KEYS[3]) == 1 then return {'ended'} end

if redis.call('EXISTS', KEYS[1]) == 0 then
  local refusal
  for index, meter in ipairs(meters) do
    local word, wait, left = meter.kind.check(meter.key, meter.limit, meter.amount, now)
    local said = word and {word, index, wait or 0, left or '0'}
    if said and (not refusal or is_more_final(said, refusal)) then refusal = said end
  end
  if refusal then return look(refusal) end
  local held, rooms, number = ARGV[4], cjson.decode(ARGV[#ARGV]), 0
  for index, room in ipairs(rooms) do
    local kind, key, limit, amount = unpack(room)
    if not kinds[kind].check(key, limit, amount, now) then
      number = index
      kinds[kind].take(key, limit, amount, now)
      held = held:sub(1, -2) .. (held == '[]' and '' or ',') .. cjson.encode(room) .. ']'
      break
    end
  end
  if #rooms > 0 and number == 0 then return {'no_room'} end
  for _, meter in ipairs(meters) do meter.kind.take(meter.key, meter.limit, meter.amount, now) end
  local expires = whole(now + tonumber(ARGV[2]))
  redis.call('HSET', KEYS[1], 'record', ARGV[3], 'meters', held, 'expires', expires, 'cost', ARGV[5])
  redis.call('HSET', KEYS[1], 'room', number)
  redis.call('ZADD', KEYS[2], expires, ARGV[1])
end

return look({'held', tonumber(redis.call('HGET', KEYS[1], 'room'))})
