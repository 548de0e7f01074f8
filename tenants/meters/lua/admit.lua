-- Take from every meter or from none, and write the hold. Repeating it for one id changes nothing and says the same.
-- KEYS: hold, index of holds, tombstone, then one a meter.
-- ARGV: id, lease ms, record JSON, meters JSON (as the hold keeps them), cost at worst in nano-units ('' unpriced), then
--       kind, limit, amount of each meter; last of all, JSON of rooms in the hold's form, of which it takes one as well:
--       the first that has some; and how it waits if none has (queue.lua's waiter without its `p`, and `most` who may
--       wait: 0, it may not), '' if nothing is known of that.
-- Answer: {'held', number of the room it took (0: it waits, or none was given), free, reset_ms, free, reset_ms, ...}
--         | {'no_room'} (nor may more wait) | {'no_turn'} (nor may more of its tenant)
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

local offered, waiter = cjson.decode(ARGV[#ARGV - 1]), ARGV[#ARGV] ~= '' and cjson.decode(ARGV[#ARGV])

-- Those who wait already are not passed, but by a higher class; by one that is not known nobody is.
local function first_room()
  local class, closed, kept = waiter and waiter.c or 'unknown', {}, {}
  return rooms.first(offered, class, function(key)
    local pool = queue.pool_of(key)
    if closed[pool] == nil then
      closed[pool] = queue.is_ahead(pool, class) or false
      kept[pool] = not closed[pool] and queue.kept(pool, class, now)
    end
    return closed[pool] or kept[pool] == key
  end)
end

local function number_of(key)
  for index, room in ipairs(offered) do
    if room[2] == key then return index end
  end
  return 0
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
  local room = first_room()
  local pool = offered[1] and not room and queue.pool_of(offered[1][2])
  local word = pool and (not waiter and 'no_room' or crowding.enter(pool, waiter))
  if word then return {word} end
  for _, meter in ipairs(meters) do meter.kind.take(meter.key, meter.limit, meter.amount, now) end
  local expires = whole(now + tonumber(ARGV[2]))
  redis.call('HSET', KEYS[1], 'record', ARGV[3], 'meters', ARGV[4], 'expires', expires, 'cost', ARGV[5])
  redis.call('ZADD', KEYS[2], expires, ARGV[1])
  if room then
    queue.take(KEYS[1], room)
    if waiter then queue.book(queue.pool_of(room[2]), waiter.c, waiter.v) end
    redis.call('HSET', KEYS[1], 'granted', room[2])
  elseif pool then
    redis.call('HSET', KEYS[1], 'waiting', pool)
    queue.wait(pool, ARGV[1], waiter, offered, now)
    queue.grant(pool, now)
  end
end

return look({'held', number_of(redis.call('HGET', KEYS[1], 'granted'))})
