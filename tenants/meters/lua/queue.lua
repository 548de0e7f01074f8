-- The fair queue: requests that hold their limits and budgets and wait for room in one of a pool's replicas.
--
-- First by class: a higher class goes first, but each lower one that waits is owed SHARE of the service that passes it by,
-- and goes first once it is owed what its next request costs. So no class starves.
-- Within a class by tenant: the one with the least service so far (virtual token counters; Sheng et al., "Fairness in
-- Serving Large Language Models", OSDI 2024). Service is counted in weighted tokens when a request is granted, at its
-- worst case, and set right by what it used when it is settled. A tenant that comes back is lifted to the least served of
-- those who wait, so that nobody saves up service by staying away.
-- Within a tenant in order of arrival. The head waits until it fits: a large request is not passed by smaller ones.
-- A class below interactive does not fill a replica to the brim (CEILING), which leaves interactive requests an open door;
-- what is owed to it is no courtesy, and may. While it does not fit, its best replica is kept for it: from those who wait
-- as well, and once it has waited until `a` from newcomers of higher classes too, who might never have to wait.
--
-- One queue's keys, all below hr:q:<pool>: `w` hash id -> waiter JSON; `l:<class>:<tenant>` list of ids;
-- `n` hash: how many wait, by class; `c:<class>` zset of the tenants that wait, by service; `s` hash: service by
-- <class>:<tenant>, and what classes are owed.
-- A waiter is {t tenant, c class, w the tenant's weight, v virtual tokens (its cost in service), ch channel where its
-- process listens, p the rooms of the replicas it may go to, best first, in the form in which holds keep meters, a when
-- it begins to keep newcomers out}.
local queue = {}
local CLASSES = {'interactive', 'standard', 'batch'}
local SHARE = 0.05
local CEILING = {interactive = 1, standard = 0.95, batch = 0.85}
local IDLE_SECONDS = 3600
local OUTPUT_WEIGHT = 2

local function base(pool) return 'hr:q:' .. pool .. ':' end

function queue.pool_of(key) return string.match(key, '^hr:m:room:([^/]+)') end

-- The first of `places` with room for a request that may fill `ceiling` of it, nil where there is none. An idle replica
-- takes whatever comes: it will never have more. The one whose key is `kept` is another's.
local function place(places, ceiling, kept)
  for index, one in ipairs(places) do
    local held = tonumber(redis.call('GET', one[2]) or '0')
    local fits = held <= 0 or held + tonumber(one[4]) <= tonumber(one[3]) * ceiling
    if fits and one[2] ~= kept then return index end
  end
end

-- The same for a newcomer of `class`.
function queue.place(places, class) return place(places, CEILING[class]) end

-- Whether somebody of this class or a higher one waits: a newcomer does not pass them.
function queue.is_ahead(pool, class)
  for _, other in ipairs(CLASSES) do
    if redis.call('EXISTS', base(pool) .. 'c:' .. other) == 1 then return true end
    if other == class then return false end
  end
end

-- How many wait of `class` and those above it, and how many of them are of `tenant`. Those below keep nobody out.
function queue.length(pool, tenant, class)
  local all, own = 0, 0
  for _, other in ipairs(CLASSES) do
    all = all + tonumber(redis.call('HGET', base(pool) .. 'n', other) or '0')
    own = own + redis.call('LLEN', base(pool) .. 'l:' .. other .. ':' .. tenant)
    if other == class then return all, own end
  end
end

function queue.join(pool, id, text)
  local at, waiter = base(pool), cjson.decode(text)
  local active, name = at .. 'c:' .. waiter.c, waiter.c .. ':' .. waiter.t
  redis.call('HSET', at .. 'w', id, text)
  redis.call('HINCRBY', at .. 'n', waiter.c, 1)
  redis.call('RPUSH', at .. 'l:' .. name, id)
  if not redis.call('ZSCORE', active, waiter.t) then
    local service = tonumber(redis.call('HGET', at .. 's', name) or '0')
    local least = redis.call('ZRANGE', active, 0, 0, 'WITHSCORES')[2]
    local floor = tonumber(least or redis.call('HGET', at .. 's', 'floor:' .. waiter.c) or '0')
    redis.call('ZADD', active, string.format('%.17g', math.max(service, floor)), waiter.t)
  end
end

-- Out of the queue, however it ends there. Answer: the waiter, nil if it was not in it.
function queue.leave(pool, id)
  local at = base(pool)
  local text = redis.call('HGET', at .. 'w', id)
  if not text then return nil end
  local waiter = cjson.decode(text)
  local list, active = at .. 'l:' .. waiter.c .. ':' .. waiter.t, at .. 'c:' .. waiter.c
  redis.call('HDEL', at .. 'w', id)
  if redis.call('HINCRBY', at .. 'n', waiter.c, -1) <= 0 then redis.call('HDEL', at .. 'n', waiter.c) end
  redis.call('LREM', list, 1, id)
  if redis.call('EXISTS', list) == 0 then
    local service = redis.call('ZSCORE', active, waiter.t)
    redis.call('ZREM', active, waiter.t)
    redis.call('HSET', at .. 's', waiter.c .. ':' .. waiter.t, service)
    if redis.call('EXISTS', active) == 0 then
      redis.call('HSET', at .. 's', 'floor:' .. waiter.c, service)
      redis.call('HDEL', at .. 's', 'owed:' .. waiter.c)
    end
    redis.call('EXPIRE', at .. 's', IDLE_SECONDS)
  end
  return waiter
end

-- The places of a waiter from now on: replicas come, go and are given up while it waits.
function queue.offer(pool, id, places)
  local text = redis.call('HGET', base(pool) .. 'w', id)
  if not text then return end
  local waiter = cjson.decode(text)
  waiter.p = cjson.decode(places)
  redis.call('HSET', base(pool) .. 'w', id, cjson.encode(waiter))
end

-- Add to a tenant's service; less than nothing when it used less than it was counted for.
function queue.serve(pool, class, tenant, tokens)
  local at = base(pool)
  if redis.call('ZSCORE', at .. 'c:' .. class, tenant) then
    redis.call('ZINCRBY', at .. 'c:' .. class, string.format('%.17g', tokens), tenant)
  else
    redis.call('HINCRBYFLOAT', at .. 's', class .. ':' .. tenant, string.format('%.17g', tokens))
    redis.call('EXPIRE', at .. 's', IDLE_SECONDS)
  end
end

-- The head of a class: the first in the list of its least served tenant. Those whose hold is gone or ran out are dropped:
-- their process is dead, and the reaper settles them.
local function head(pool, class, now)
  local at = base(pool)
  while true do
    local tenant = redis.call('ZRANGE', at .. 'c:' .. class, 0, 0)[1]
    if not tenant then return nil end
    local id = redis.call('LINDEX', at .. 'l:' .. class .. ':' .. tenant, 0)
    local expires = tonumber(redis.call('HGET', 'hr:hold:' .. id, 'expires') or '0')
    if expires > now then return id, cjson.decode(redis.call('HGET', at .. 'w', id)) end
    queue.leave(pool, id)
  end
end

local function is_owed(pool, class, waiter)
  return tonumber(redis.call('HGET', base(pool) .. 's', 'owed:' .. class) or '0') >= waiter.v
end

-- The replica (its room's key) that newcomers of `class` leave to a lower class, nil where there is none.
function queue.kept(pool, class, now)
  local is_below = false
  for _, other in ipairs(CLASSES) do
    local id, waiter
    if is_below then id, waiter = head(pool, other, now) end
    if id and waiter.a and now >= waiter.a and is_owed(pool, other, waiter) then return (waiter.p[1] or {})[2] end
    is_below = is_below or other == class
  end
end

-- Whose turn it is: the heads that may go now, in order, and how full each may make a replica. Classes that are owed
-- their next request come before the highest that waits; of that one the head alone, for what it waits for is not given
-- to those below it.
local function turns(pool, now)
  local found, top = {}, nil
  for _, class in ipairs(CLASSES) do
    local id, waiter = head(pool, class, now)
    if id and not top then
      top = {id, waiter, CEILING[class]}
    elseif id and is_owed(pool, class, waiter) then
      found[#found + 1] = {id, waiter, 1}
    end
  end
  found[#found + 1] = top
  return found
end

-- What `class` was served is taken from what it is owed, and a share of it is owed to each lower class that waits.
function queue.book(pool, class, tokens)
  local at, is_below = base(pool) .. 's', false
  local owed = tonumber(redis.call('HGET', at, 'owed:' .. class) or '0')
  if owed > 0 then redis.call('HSET', at, 'owed:' .. class, string.format('%.17g', math.max(0, owed - tokens))) end
  for _, other in ipairs(CLASSES) do
    if is_below and redis.call('EXISTS', base(pool) .. 'c:' .. other) == 1 then
      redis.call('HINCRBYFLOAT', at, 'owed:' .. other, string.format('%.17g', SHARE * tokens))
    end
    if other == class then is_below = true end
  end
end

-- Give free room to those whose turn it is, until nobody who is next fits. Each grant is written into the hold, whose
-- meters then have the room too, and published to the waiter's process.
function queue.grant(pool, now)
  local granted = true
  while granted do
    granted = false
    local kept
    for _, turn in ipairs(turns(pool, now)) do
      local id, waiter, ceiling = unpack(turn)
      local index = place(waiter.p, ceiling, kept)
      if index then
        local room, hold = waiter.p[index], 'hr:hold:' .. id
        queue.leave(pool, id)
        queue.take(hold, room)
        queue.serve(pool, waiter.c, waiter.t, waiter.v)
        queue.book(pool, waiter.c, waiter.v)
        redis.call('HSET', hold, 'granted', room[2], 'served', cjson.encode({pool, waiter.c, waiter.t, waiter.w, waiter.v}))
        redis.call('HDEL', hold, 'waiting')
        redis.call('PUBLISH', waiter.ch, cjson.encode({id, room[2]}))
        granted = true
        break
      end
      kept = kept or (waiter.p[1] or {})[2]
    end
  end
end

-- The room of a replica as one more meter of a hold.
function queue.take(hold, place)
  redis.call('INCRBY', place[2], place[4])
  local meters = redis.call('HGET', hold, 'meters')
  local more = cjson.encode(place) .. ']'
  redis.call('HSET', hold, 'meters', meters == '[]' and '[' .. more or string.sub(meters, 1, -2) .. ',' .. more)
end

-- The hold of a request ends, and what it gave back goes to those whose turn it is. It waits no more itself; and what it
-- used is its tenant's service, in place of what it was counted for.
-- waiting, served: as the hold had them. used: amounts by measure. meters: what it held.
function queue.finish(id, waiting, served, used, meters, now)
  local pools = {}
  if waiting then
    queue.leave(waiting, id)
    pools[waiting] = true
  end
  if served and used.input_tokens and used.output_tokens then
    local pool, class, tenant, weight, tokens = unpack(cjson.decode(served))
    local cost = (tonumber(used.input_tokens) + OUTPUT_WEIGHT * tonumber(used.output_tokens)) / weight
    queue.serve(pool, class, tenant, cost - tokens)
  end
  queue.freed(meters, pools, now)
end

-- Rooms among `meters` were given back.
function queue.freed(meters, pools, now)
  for _, meter in pairs(meters) do
    if meter[5] == 'room' then pools[queue.pool_of(meter[2])] = true end
  end
  for pool in pairs(pools) do queue.grant(pool, now) end
end
