-- Who may join a fair queue that is full: fairness before length. The newest request of the tenant that has most waiting,
-- for its weight, makes room for one of a tenant that has less; and where a tenant has its part of the queue, the newest of
-- its project that has most makes room for one of a project that has less. Who makes room is told so at once.
--
-- A class is full by what waits of it and above, as those below keep nobody out; but it may have SHARE of the length in any
-- case, or what is owed to it would never be asked for. One makes room for its own class only.
local crowding = {}
local queue = {} -- queue.lua
local SHARE = 0.05
local PART = 4 -- of the length, one tenant's at most
local COUNT_SECONDS = 7200
local MOST_STALE = 100
local EVICTED = 'evicted'

local function note(counts, name, number, weight)
  if number == 0 then
    redis.call('ZREM', counts, name)
  else
    redis.call('ZADD', counts, string.format('%.17g', number / weight), name)
    redis.call('EXPIRE', counts, COUNT_SECONDS)
  end
end

-- Note how many of the waiter's tenant and project wait. `at`: the queue's keys.
function crowding.count(at, waiter)
  local name = waiter.c .. ':' .. waiter.t
  note(at .. 'm:' .. waiter.c, waiter.t, redis.call('LLEN', at .. 'l:' .. name), waiter.w)
  if waiter.r then
    note(at .. 'k:' .. name, waiter.r, redis.call('LLEN', at .. 'i:' .. name .. ':' .. waiter.r), waiter.rw or 1)
  end
end

-- The one of `counts` that has most waiting for its weight, and how many for its weight it would have with one less.
-- lists: the keys of the lists of those that wait, without the name.
local function fullest(counts, lists)
  for _ = 1, MOST_STALE do
    local found = redis.call('ZREVRANGE', counts, 0, 0, 'WITHSCORES')
    if not found[1] then return nil end
    local number = redis.call('LLEN', lists .. found[1])
    if number > 0 then return found[1], tonumber(found[2]) * (number - 1) / number end
    redis.call('ZREM', counts, found[1])
  end
end

-- Have the newest of a project wait no more; whether there was one.
local function evict(pool, at, name, project)
  local list = at .. 'i:' .. name .. ':' .. project
  for _ = 1, MOST_STALE do
    local id = redis.call('LINDEX', list, -1)
    if not id then return false end
    local waiter = queue.leave(pool, id)
    if waiter then
      local hold = 'hr:hold:' .. id
      redis.call('HDEL', hold, 'waiting')
      if redis.call('EXISTS', hold) == 1 then redis.call('HSET', hold, EVICTED, '1') end
      redis.call('PUBLISH', waiter.ch, cjson.encode({id, EVICTED}))
      return true
    end
    redis.call('RPOP', list)
  end
  return false
end

-- Make room for one of `project`, which would then have `number` waiting for its weight, among its tenant's.
local function evict_of(pool, at, name, number)
  local project, left = fullest(at .. 'k:' .. name, at .. 'i:' .. name .. ':')
  return project ~= nil and left >= number - 1e-9 and evict(pool, at, name, project)
end

-- See that the queue has room for `waiter`; where it has, or somebody made some, the answer is nil, else 'no_room' or
-- 'no_turn' (of its tenant as many wait as may). is_back: it had room before and lost it; its tenant's part does not count.
function crowding.enter(pool, waiter, is_back)
  if waiter.most <= 0 then return 'no_room' end
  local at, class, name = 'hr:q:' .. pool .. ':', waiter.c, waiter.c .. ':' .. waiter.t
  local all, own = queue.length(pool, waiter.t, class)
  local part = math.max(1, math.floor(waiter.most / PART))
  local of_class = tonumber(redis.call('HGET', at .. 'n', class) or '0')
  local own_of_class = redis.call('LLEN', at .. 'l:' .. name)
  local is_full = all >= waiter.most and of_class >= math.max(1, math.floor(SHARE * waiter.most))
  if not is_back and own >= part and own_of_class >= math.max(1, math.floor(SHARE * part)) then
    local waiting = redis.call('LLEN', at .. 'i:' .. name .. ':' .. (waiter.r or ''))
    if evict_of(pool, at, name, (waiting + 1) / (waiter.rw or 1)) then return nil end
    return is_full and 'no_room' or 'no_turn'
  end
  if not is_full then return nil end
  local tenant, left = fullest(at .. 'm:' .. class, at .. 'l:' .. class .. ':')
  local is_fair = tenant and left >= (own_of_class + 1) / waiter.w - 1e-9
  if is_fair and evict_of(pool, at, class .. ':' .. tenant, 0) then return nil end
  return 'no_room'
end
