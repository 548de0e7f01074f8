-- Which room a request takes, of those of a pool's replicas.
--
-- A request that comes names all the rooms it may take, best first, with what it takes of each. One that waits keeps of
-- them: `p` the best few, which it prefers and where it may take less than elsewhere (parts of its prompt are cached
-- there); `g` the names of lists of rooms, target by target, any of which it may take; `d` what it takes of those; `x` the
-- keys of rooms that it may not take, as its request failed there. A list is a key of its own, JSON [[key, limit], ...],
-- one for all that wait in one process for one target of a model: the process writes it as the fleet is now, so that a
-- replica that comes, goes or changes reaches all who wait.
local rooms = {}
-- How much of a pool a class may fill: what is above is left to those before it.
rooms.CEILING = {interactive = 1, standard = 0.95, batch = 0.85}
local PREFERRED = 4
local LIST_SECONDS = 5 -- written each half second
local AT_ONCE = 1000 -- keys of one MGET

function rooms.pool_of(key) return string.match(key, '^hr:m:room:([^/]+)') end

-- What one call of a script has read: tokens held by room, lists by name.
function rooms.look() return {held = {}, lists = {}} end

local function read(all, known)
  local missing = {}
  for _, room in ipairs(all) do
    if not known.held[room[1]] then missing[#missing + 1] = room[1] end
  end
  for from = 1, #missing, AT_ONCE do
    local to = math.min(from + AT_ONCE - 1, #missing)
    local values = redis.call('MGET', unpack(missing, from, to))
    for index = from, to do known.held[missing[index]] = tonumber(values[index - from + 1] or '0') end
  end
end

-- Whether a room that is filled no further than `ceiling` has some for `amount`. An idle replica takes whatever comes: it
-- will never have more.
local function fits(held, limit, amount, ceiling) return held <= 0 or held + amount <= limit * ceiling end

-- How much `all` rooms together hold, and how much they may.
local function sums(all, known)
  local held, limit = 0, 0
  for _, room in ipairs(all) do held, limit = held + known.held[room[1]], limit + tonumber(room[2]) end
  return held, limit
end

-- The first of `offered` (in the form in which holds keep meters) with room for a newcomer of `class`, nil where none has.
-- It leaves a part of its replica free, or of its pool: the open door may be another replica's.
-- is_closed(key): whether it is left to others.
function rooms.first(offered, class, is_closed)
  local ceiling, known, pools = rooms.CEILING[class] or 1, rooms.look(), nil
  local function of_pool(pool)
    if not pools then
      pools = {}
      for _, room in ipairs(offered) do
        local name = rooms.pool_of(room[2])
        pools[name] = pools[name] or {}
        table.insert(pools[name], {room[2], room[3]})
      end
    end
    read(pools[pool], known)
    return pools[pool]
  end
  for index, room in ipairs(offered) do
    local key, limit, amount = room[2], tonumber(room[3]), tonumber(room[4])
    if not is_closed(key) then
      -- The best mostly has room: then no other is read.
      if index == 1 then read({{key}}, known) else of_pool(rooms.pool_of(key)) end
      if fits(known.held[key], limit, amount, ceiling) then return room end
      if fits(known.held[key], limit, amount, 1) then
        local held, all = sums(of_pool(rooms.pool_of(key)), known)
        if held + amount <= all * ceiling then return room end
      end
    end
  end
end

-- Write a list of rooms, JSON.
function rooms.list(name, text) redis.call('SET', name, text, 'EX', LIST_SECONDS) end

-- Have `waiter` keep where it may go. Its `g` comes as {{pool, name of its list}, ...}. Its process writes the lists while
-- somebody of its waits; those that are missing, or may be old as nobody waits (is_first), are written as `offered` shows
-- the fleet, which leaves out what it may not take.
function rooms.offer(waiter, offered, is_first)
  waiter.p = {}
  for index = 1, math.min(PREFERRED, #offered) do waiter.p[index] = offered[index] end
  local names = {}
  for _, pair in ipairs(waiter.g or {}) do
    local pool, name = pair[1], pair[2]
    names[#names + 1] = name
    if (is_first and #(waiter.x or {}) == 0) or redis.call('EXISTS', name) == 0 then
      local list = {}
      for _, room in ipairs(offered) do
        if rooms.pool_of(room[2]) == pool then list[#list + 1] = {room[2], room[3]} end
      end
      if #list > 0 then rooms.list(name, cjson.encode(list)) end
    end
  end
  waiter.g = names
end

-- A list as it is looked through: `all` its rooms, by `limits` of each; all together hold `held` and may hold `limit`.
local function listed(all, known)
  read(all, known)
  local list = {all = all, limits = {}, held = 0, limit = 0}
  for _, room in ipairs(all) do
    local limit = tonumber(room[2])
    list.limits[room[1]] = limit
    list.held, list.limit = list.held + known.held[room[1]], list.limit + limit
  end
  return list
end

-- The lists of a waiter; where there are none (any more), what it prefers.
local function lists_of(waiter, known)
  local found = {}
  for _, name in ipairs(waiter.g or {}) do
    if known.lists[name] == nil then
      local text = redis.call('GET', name)
      known.lists[name] = text and listed(cjson.decode(text), known) or false
    end
    found[#found + 1] = known.lists[name] or nil
  end
  if #found > 0 then return found end
  local own = {}
  for index, room in ipairs(waiter.p) do own[index] = {room[2], room[3]} end
  return {listed(own, known)}
end

-- A room was taken.
function rooms.took(room, known)
  local key, amount = room[2], tonumber(room[4])
  known.held[key] = known.held[key] + amount
  for _, list in pairs(known.lists) do
    if list and list.limits[key] then list.held = list.held + amount end
  end
end

local function barred_of(waiter, kept)
  local barred = {}
  for _, key in ipairs(waiter.x or {}) do barred[key] = true end
  if kept then barred[kept] = true end
  return barred
end

-- The room that one who waits takes now, nil where none has any for it: of the first of its targets that has, the one it
-- prefers, else the one with most left. ceiling: how much of it and its pool may be filled. kept: the key of one that is
-- another's.
function rooms.choose(waiter, ceiling, kept, known)
  local barred, own, need = barred_of(waiter, kept), {}, waiter.d and tonumber(waiter.d) or math.huge
  for _, room in ipairs(waiter.p) do own[room[2]] = true end
  for _, list in ipairs(lists_of(waiter, known)) do
    local limits, held = list.limits, known.held
    local function has_room(key, amount)
      local limit, holds = limits[key], held[key]
      if not fits(holds, limit, amount, 1) then return false end
      return fits(holds, limit, amount, ceiling) or list.held + amount <= list.limit * ceiling
    end
    for _, room in ipairs(waiter.p) do
      local key = room[2]
      if limits[key] and not barred[key] and has_room(key, tonumber(room[4])) then
        return {'room', key, whole(limits[key]), room[4], 'room'}
      end
    end
    local best, most
    for _, room in ipairs(list.all) do
      local key = room[1]
      local left = limits[key] - held[key]
      -- Mostly none has: the comparison comes first.
      if (left >= need or held[key] <= 0) and (not best or left > most) then
        if not own[key] and not barred[key] and has_room(key, need) then best, most = key, left end
      end
    end
    if best then return {'room', best, whole(limits[best]), waiter.d, 'room'} end
  end
end

-- The key of the room that one who waits would rather have, nil where there is none.
function rooms.best(waiter, known)
  local barred, first = barred_of(waiter), nil
  for _, list in ipairs(lists_of(waiter, known)) do
    for _, room in ipairs(waiter.p) do
      if list.limits[room[2]] and not barred[room[2]] then return room[2] end
    end
    for _, room in ipairs(list.all) do
      if not first and not barred[room[1]] then first = room[1] end
    end
  end
  return first
end
