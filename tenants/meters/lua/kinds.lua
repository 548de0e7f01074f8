-- The kinds of meter. Each is a table of five functions over one Redis key:
--   look(key, limit, now)                -> free, reset_ms  what is left, and how long until all of it is
--   check(key, limit, amount, now)       -> nil | word, wait_ms, left
--       nil: it fits. 'too_large': it never could. 'exhausted': not before somebody raises the limit, of which `left` is
--       left. 'limited', 'occupied' (only by what runs, and may give back), 'rebuilding': it may after wait_ms.
--   take(key, limit, amount, now)
--   give(key, limit, amount, used, now)  the hold of `amount` ends and `used` of it was really used
--   charge(key, limit, amount, now)      use that no hold covered; a negative amount gives back what was charged
-- Limits and amounts are decimal strings. A new kind is one more table; admit and settle know none of them by name.
local kinds = {}

local function whole(number) return string.format('%.0f', number) end

-- A token bucket as a debt that drains by `limit` a minute. The debt is counted in 1/60000 of a token, so that a
-- millisecond drains exactly `limit` of them: no rounding, and all figures stay far below 2^53 (limit <= 10^11).
local MINUTE = 60000
local bucket = {}
kinds.bucket = bucket

function bucket.debt(key, limit, now)
  local stored = redis.call('HMGET', key, 'debt', 'at')
  if not stored[1] then return 0 end
  return math.max(0, tonumber(stored[1]) - math.max(0, now - tonumber(stored[2])) * limit)
end

function bucket.store(key, limit, debt, now)
  if debt <= 0 then
    redis.call('DEL', key)
  else
    redis.call('HSET', key, 'debt', whole(debt), 'at', whole(now))
    redis.call('PEXPIRE', key, whole(math.ceil(debt / limit) + 1000))
  end
end

function bucket.look(key, limit, now)
  limit = tonumber(limit)
  local debt = bucket.debt(key, limit, now)
  return math.max(0, math.floor(limit - debt / MINUTE)), math.ceil(debt / limit)
end

function bucket.check(key, limit, amount, now)
  limit, amount = tonumber(limit), tonumber(amount)
  if amount > limit then return 'too_large' end
  local over = bucket.debt(key, limit, now) + amount * MINUTE - limit * MINUTE
  if over > 0 then return 'limited', math.ceil(over / limit) end
end

function bucket.take(key, limit, amount, now)
  bucket.give(key, limit, 0, amount, now)
end

function bucket.give(key, limit, amount, used, now)
  limit = tonumber(limit)
  bucket.store(key, limit, bucket.debt(key, limit, now) + (tonumber(used) - tonumber(amount)) * MINUTE, now)
end

function bucket.charge(key, limit, amount, now)
  bucket.take(key, limit, amount, now)
end

-- A gauge: so many at once. What is held comes back whole, whatever was used.
local gauge = {}
kinds.gauge = gauge

function gauge.look(key, limit)
  return math.max(0, tonumber(limit) - tonumber(redis.call('GET', key) or '0')), 0
end

function gauge.check(key, limit, amount)
  limit, amount = tonumber(limit), tonumber(amount)
  if amount > limit then return 'too_large' end
  if tonumber(redis.call('GET', key) or '0') + amount > limit then return 'limited', 1000 end
end

function gauge.take(key, limit, amount)
  redis.call('INCRBY', key, amount)
end

function gauge.give(key, limit, amount)
  if redis.call('DECRBY', key, amount) <= 0 then redis.call('DEL', key) end
end

function gauge.charge() end

-- A replica's room: the tokens it holds. An idle one takes a request of any size; none is ever too large.
local room = {look = gauge.look, take = gauge.take, give = gauge.give, charge = gauge.charge}
kinds.room = room

function room.check(key, limit, amount)
  local held = tonumber(redis.call('GET', key) or '0')
  if held > 0 and held + tonumber(amount) > tonumber(limit) then return 'limited', 1000 end
end

-- Holds outlive the version that wrote them. What a script reads of one is checked before its first write: a kind that
-- this code does not know, or meters that are none, must not leave it half done.
local function is_known(meter)
  return type(meter) == 'table' and kinds[meter[1]] ~= nil and type(meter[2]) == 'string'
    and is_whole(meter[3]) and is_whole(meter[4])
end

-- The meters of a hold, as it keeps them. Answer: those that this code knows, and whether they are all.
local function meters_of(text)
  local is_json, meters = pcall(cjson.decode, text)
  if not is_json or type(meters) ~= 'table' then return {}, false end
  local known, is_all = {}, true
  for _, meter in pairs(meters) do
    if is_known(meter) then known[#known + 1] = meter else is_all = false end
  end
  return known, is_all
end

-- Do one thing of a settlement, whatever becomes of it: the rest must not be left undone, nor done again.
local function isolated(verb, ...)
  local is_done, failure = pcall(verb, ...)
  if is_done then return end
  local why = type(failure) == 'table' and failure.err or failure
  redis.log(redis.LOG_WARNING, 'headrace: a part of a settlement failed: ' .. tostring(why))
end

local function clock()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end
