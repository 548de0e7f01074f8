-- The fair queue: requests that hold their limits and budgets and wait for room in one of a pool's replicas.
--
-- First by class: a higher class goes first, but each lower one that waits is owed SHARE of the service that passes it by,
-- and goes first once it is owed what its next request costs. So no class starves.
-- Within a class by tenant, and within a tenant by project: the one with the least service so far (virtual token counters;
-- Sheng et al., "Fairness in Serving Large Language Models", OSDI 2024). Service is counted in weighted tokens when a
-- request is granted, at its worst case, and set right by what it used when it is settled. A tenant or project that comes
-- back is lifted to the least served of those who wait, so that nobody saves up service by staying away.
-- Within a project in order of arrival. The head waits until it fits: a large request is not passed by smaller ones.
-- A class below interactive leaves a part of its pool free (CEILING in rooms.lua), an open door for interactive requests;
-- what is owed to it is no courtesy, and may fill it. While it does not fit, its best replica is kept for it: from those
-- who wait as well, and once it has waited until `a` from newcomers of higher classes too, who might never have to wait.
--
-- One queue's keys, all below hr:q:<pool>: `w` hash id -> waiter JSON; `n` hash: how many wait, by class; `c:<class>` zset
-- of the tenants that wait, by service; `l:<class>:<tenant>` list of ids; `s` hash: service by <class>:<tenant>, and what
-- classes are owed; `<others>:s` set of the queues whose waiters may go to this pool as well. Of one tenant's projects:
-- `j:<class>:<tenant>` zset of those that wait, by service, `i:<class>:<tenant>:<project>` list of ids,
-- `<class>:<tenant>:s` hash of service. `m:<class>` and `k:<class>:<tenant>` zsets: tenants and projects by how many wait
-- for their weight (crowding.lua).
-- A waiter is {t tenant, c class, w the tenant's weight, r project, rw its weight, v virtual tokens (its cost in service),
-- ch channel where its process listens, a when it begins to keep newcomers out, p, g, d, x where it may go (rooms.lua)}.
-- One without `r` was written by the version before, which knew no projects and no `g`.

local CLASSES = {'interactive', 'standard', 'batch'}
local SHARE = 0.05
local IDLE_SECONDS = 3600
local OUTPUT_WEIGHT = 2
-- So many grants, and so many dead waiters dropped, in one call of a script: Redis has others to serve.
local MOST_GRANTS, MOST_DROPS = 16, 25

local function base(pool) return 'hr:q:' .. pool .. ':' end

local function exact(number) return string.format('%.17g', number) end

queue.pool_of = rooms.pool_of

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

-- Enter `name` among those that wait in the zset `active`, with no less service than the least served of them; where none
-- waits, than the last one had.
local function enter(active, name, service, floor)
  if redis.call('ZSCORE', active, name) then return end
  local least = redis.call('ZRANGE', active, 0, 0, 'WITHSCORES')[2]
  redis.call('ZADD', active, exact(math.max(tonumber(service or '0'), tonumber(least or floor or '0'))), name)
end

function queue.join(pool, id, text, waiter)
  local at = base(pool)
  waiter = waiter or cjson.decode(text)
  local class, tenant, project = waiter.c, waiter.t, waiter.r or ''
  local name, of_tenant = class .. ':' .. tenant, at .. class .. ':' .. tenant .. ':s'
  redis.call('HSET', at .. 'w', id, text)
  redis.call('HINCRBY', at .. 'n', class, 1)
  redis.call('RPUSH', at .. 'l:' .. name, id)
  enter(at .. 'c:' .. class, tenant, redis.call('HGET', at .. 's', name), redis.call('HGET', at .. 's', 'floor:' .. class))
  if waiter.r then
    local known = redis.call('HMGET', of_tenant, 'p:' .. project, 'floor')
    redis.call('RPUSH', at .. 'i:' .. name .. ':' .. project, id)
    enter(at .. 'j:' .. name, project, known[1], known[2])
  end
  crowding.count(at, waiter)
end

-- Out of the queue, however it ends there. waiter: where it is known already. Answer: the waiter, nil if it was not in it.
function queue.leave(pool, id, waiter)
  local at = base(pool)
  if not waiter then
    local text = redis.call('HGET', at .. 'w', id)
    if not text then return nil end
    waiter = cjson.decode(text)
  end
  local class, tenant, project = waiter.c, waiter.t, waiter.r or ''
  local name = class .. ':' .. tenant
  local list, active = at .. 'l:' .. name, at .. 'c:' .. class
  redis.call('HDEL', at .. 'w', id)
  if redis.call('HINCRBY', at .. 'n', class, -1) <= 0 then redis.call('HDEL', at .. 'n', class) end
  redis.call('LREM', list, 1, id)
  redis.call('LREM', at .. 'i:' .. name .. ':' .. project, 1, id)
  if redis.call('EXISTS', at .. 'i:' .. name .. ':' .. project) == 0 then queue.forget_project(at, name, project) end
  if redis.call('EXISTS', list) == 0 then
    local service = redis.call('ZSCORE', active, tenant) or '0'
    redis.call('ZREM', active, tenant)
    redis.call('HSET', at .. 's', name, service)
    if redis.call('EXISTS', active) == 0 then
      redis.call('HSET', at .. 's', 'floor:' .. class, service)
      redis.call('HDEL', at .. 's', 'owed:' .. class)
    end
    redis.call('EXPIRE', at .. 's', IDLE_SECONDS)
  end
  crowding.count(at, waiter)
  return waiter
end

-- None of the project's requests waits any more: note where it stood.
function queue.forget_project(at, name, project)
  local active, kept = at .. 'j:' .. name, at .. name .. ':s'
  local service = redis.call('ZSCORE', active, project)
  if not service then return end
  redis.call('ZREM', active, project)
  redis.call('HSET', kept, 'p:' .. project, service)
  if redis.call('EXISTS', active) == 0 then redis.call('HSET', kept, 'floor', service) end
  redis.call('EXPIRE', kept, IDLE_SECONDS)
end

-- Where a waiter may go from now on, as the names of lists of rooms (rooms.lua).
function queue.offer(pool, id, lists)
  local text = redis.call('HGET', base(pool) .. 'w', id)
  if not text then return end
  local waiter = cjson.decode(text)
  waiter.g = cjson.decode(lists)
  redis.call('HSET', base(pool) .. 'w', id, cjson.encode(waiter))
end

-- Add to the service of one who waits in `active`, or to what is kept of it in the hash `kept`.
local function count_service(active, name, kept, field, tokens)
  if redis.call('ZSCORE', active, name) then
    redis.call('ZINCRBY', active, exact(tokens), name)
  else
    redis.call('HINCRBYFLOAT', kept, field, exact(tokens))
    redis.call('EXPIRE', kept, IDLE_SECONDS)
  end
end

-- Add to a tenant's service, and to its project's; less than nothing when it used less than it was counted for.
function queue.serve(pool, class, tenant, tokens, project, project_weight)
  local at, name = base(pool), class .. ':' .. tenant
  count_service(at .. 'c:' .. class, tenant, at .. 's', name, tokens)
  if project then
    local kept = at .. name .. ':s'
    count_service(at .. 'j:' .. name, project, kept, 'p:' .. project, tokens / (project_weight or 1))
  end
end

-- The id of a tenant's next request: the first of its least served project; nil where that list is empty, then drop it.
-- Requests of the version before come first, in order of arrival: it knew no projects.
local function next_of(at, name)
  local oldest = redis.call('LINDEX', at .. 'l:' .. name, 0)
  local text = oldest and redis.call('HGET', at .. 'w', oldest)
  if text and not string.find(text, '"r":', 1, true) then return oldest end
  local project = redis.call('ZRANGE', at .. 'j:' .. name, 0, 0)[1]
  while project do
    local list = at .. 'i:' .. name .. ':' .. project
    local id = redis.call('LINDEX', list, 0)
    if id and redis.call('HEXISTS', at .. 'w', id) == 1 then return id end
    -- Its request left by the version before.
    redis.call('LPOP', list)
    if redis.call('EXISTS', list) == 0 then queue.forget_project(at, name, project) end
    project = redis.call('ZRANGE', at .. 'j:' .. name, 0, 0)[1]
  end
  return oldest
end

-- The head of a class: the next of its least served tenant. Those whose hold is gone or ran out are dropped: their process
-- is dead, and the reaper settles them.
local function head(pool, class, now)
  local at = base(pool)
  for _ = 1, MOST_DROPS do
    local tenant = redis.call('ZRANGE', at .. 'c:' .. class, 0, 0)[1]
    if not tenant then return nil end
    local id = next_of(at, class .. ':' .. tenant)
    local expires = id and tonumber(redis.call('HGET', 'hr:hold:' .. id, 'expires') or '0')
    if id and expires > now then return id, cjson.decode(redis.call('HGET', at .. 'w', id)) end
    if not id or not queue.leave(pool, id) then redis.call('ZREM', at .. 'c:' .. class, tenant) end
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
    if id and waiter.a and now >= waiter.a and is_owed(pool, other, waiter) then return rooms.best(waiter, rooms.look()) end
    is_below = is_below or other == class
  end
end

-- Whose turn it is: the heads that may go now, in order, and how full each may make its pool. Classes that are owed
-- their next request come before the highest that waits; of that one the head alone, for what it waits for is not given
-- to those below it.
local function turns(pool, now)
  local found, top = {}, nil
  for _, class in ipairs(CLASSES) do
    local id, waiter = head(pool, class, now)
    if id and not top then
      top = {id, waiter, rooms.CEILING[class]}
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
  if owed > 0 then redis.call('HSET', at, 'owed:' .. class, exact(math.max(0, owed - tokens))) end
  for _, other in ipairs(CLASSES) do
    if is_below and redis.call('EXISTS', base(pool) .. 'c:' .. other) == 1 then
      redis.call('HINCRBYFLOAT', at, 'owed:' .. other, exact(SHARE * tokens))
    end
    if other == class then is_below = true end
  end
end

-- Give free room to those whose turn it is, until nobody who is next fits. Each grant is written into the hold, whose
-- meters then have the room too, and published to the waiter's process. After so many as one call may give, the next
-- one's process is told to go on: a message without an id.
local function grant(pool, now)
  local known = rooms.look()
  for number = 1, MOST_GRANTS + 1 do
    local kept, chosen
    for _, turn in ipairs(turns(pool, now)) do
      local id, waiter, ceiling = unpack(turn)
      local room = rooms.choose(waiter, ceiling, kept, known)
      if room then
        chosen = {id, waiter, room}
        break
      end
      kept = kept or rooms.best(waiter, known)
    end
    if not chosen then return end
    local id, waiter, room = unpack(chosen)
    if number > MOST_GRANTS then
      redis.call('PUBLISH', waiter.ch, cjson.encode({'', pool}))
      return
    end
    local hold = 'hr:hold:' .. id
    queue.leave(pool, id, waiter)
    queue.take(hold, room)
    rooms.took(room, known)
    queue.serve(pool, waiter.c, waiter.t, waiter.v, waiter.r, waiter.rw)
    queue.book(pool, waiter.c, waiter.v)
    local served = cjson.encode({pool, waiter.c, waiter.t, waiter.w, waiter.v, waiter.r, waiter.rw})
    redis.call('HSET', hold, 'granted', room[2], 'served', served)
    redis.call('HDEL', hold, 'waiting')
    redis.call('PUBLISH', waiter.ch, cjson.encode({id, room[2]}))
  end
end

-- The same for the pool's own queue, and then for those others whose requests may go to the pool as well.
function queue.grant(pool, now)
  grant(pool, now)
  local others = base(pool) .. 'others:s'
  for _, other in ipairs(redis.call('SMEMBERS', others)) do
    if redis.call('EXISTS', base(other) .. 'w') == 1 then
      grant(other, now)
    else
      redis.call('SREM', others, other)
    end
  end
end

-- Requests in the queue of `pool` may go to the rooms of these other pools: what comes free there concerns them.
function queue.spill(pool, offered)
  local seen = {[pool] = true}
  for _, room in ipairs(offered) do
    local other = queue.pool_of(room[2])
    if not seen[other] then
      seen[other] = true
      redis.call('SADD', base(other) .. 'others:s', pool)
      redis.call('EXPIRE', base(other) .. 'others:s', IDLE_SECONDS)
    end
  end
end

-- A request begins to wait. `offered`: the rooms of which it may take one, best first, in the form in which holds keep
-- meters. Its hold says so already.
function queue.wait(pool, id, waiter, offered, now)
  waiter.a = waiter.a and now + waiter.a
  rooms.offer(waiter, offered, redis.call('EXISTS', base(pool) .. 'w') == 0)
  queue.spill(pool, offered)
  queue.join(pool, id, cjson.encode(waiter), waiter)
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
    local pool, class, tenant, weight, tokens, project, project_weight = unpack(cjson.decode(served))
    local cost = (tonumber(used.input_tokens) + OUTPUT_WEIGHT * tonumber(used.output_tokens)) / weight
    queue.serve(pool, class, tenant, cost - tokens, project, project_weight)
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
