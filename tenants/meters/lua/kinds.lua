-- The kinds of meter. Each is a table of four functions over one Redis key:
--   look(key, limit, now)                -> free, reset_ms      what is left, and how long until all of it is
--   check(key, limit, amount, now)       -> nil | wait_ms | -1  nil: fits; -1: could never fit; else wait this long
--   take(key, limit, amount, now)
--   give(key, limit, amount, used, now)  the hold of `amount` ends and `used` of it was really used
--   charge(key, limit, amount, now)      use that no hold covered
-- A new kind is one more table here; admit and settle know none of them by name.
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
  local debt = bucket.debt(key, limit, now)
  return math.max(0, math.floor(limit - debt / MINUTE)), math.ceil(debt / limit)
end

function bucket.check(key, limit, amount, now)
  if amount > limit then return -1 end
  local over = bucket.debt(key, limit, now) + amount * MINUTE - limit * MINUTE
  if over > 0 then return math.ceil(over / limit) end
end

function bucket.take(key, limit, amount, now)
  bucket.store(key, limit, bucket.debt(key, limit, now) + amount * MINUTE, now)
end

function bucket.give(key, limit, amount, used, now)
  bucket.store(key, limit, bucket.debt(key, limit, now) + (used - amount) * MINUTE, now)
end

function bucket.charge(key, limit, amount, now)
  bucket.take(key, limit, amount, now)
end

-- A gauge: so many at once. What is held comes back whole, whatever was used.
local gauge = {}
kinds.gauge = gauge

function gauge.look(key, limit)
  return math.max(0, limit - tonumber(redis.call('GET', key) or '0')), 0
end

function gauge.check(key, limit, amount)
  if amount > limit then return -1 end
  if tonumber(redis.call('GET', key) or '0') + amount > limit then return 1000 end
end

function gauge.take(key, limit, amount)
  redis.call('INCRBY', key, whole(amount))
end

function gauge.give(key, limit, amount)
  if redis.call('DECRBY', key, whole(amount)) <= 0 then redis.call('DEL', key) end
end

function gauge.charge() end

local function clock()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end
