-- Budgets: money as nano-units in a hash, `spent` by what has ended and `held` by what runs, both changed by HINCRBY
-- only. A counter is made by rebuild.lua and by nothing else: what is given back or charged where there is none is in
-- the usage stream and in the holds, from which the rebuild takes it.
local WANTED, EPOCH = 'hr:budgets:wanted', 'hr:epoch'
local MOST = '9000000000000000000'

-- A restart from an older file, a failover or a FLUSHALL brings counters that nobody vouches for: they count only in the
-- life of the server (its run_id) for which a rebuild has noted that they were made anew.
local trusted
local function is_trusted()
  if trusted == nil then
    trusted = redis.call('GET', EPOCH) == string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')
  end
  return trusted
end

local function counter(key)
  local found = redis.pcall('HMGET', key, 'spent', 'held')
  if not found.err and is_whole(found[1]) and is_whole(found[2]) then return found[1], found[2] end
end

-- What a counter cannot hold any more stays at the most it can: nothing may fail in the middle of a settlement.
local function add(key, field, amount)
  if type(redis.pcall('HINCRBY', key, field, amount)) == 'table' then redis.call('HSET', key, field, MOST) end
end

local soft_budget = {}
kinds.soft_budget = soft_budget

function soft_budget.look(key, limit)
  local spent, held = counter(key)
  return spent and left_of(limit, spent, held) or '0', 0
end

function soft_budget.check() end

function soft_budget.take(key, limit, amount)
  if counter(key) then
    add(key, 'held', amount)
  else
    redis.call('SADD', WANTED, key)
  end
end

function soft_budget.give(key, limit, amount, used)
  if not counter(key) then return end
  if amount ~= '0' then add(key, 'held', '-' .. amount) end
  add(key, 'spent', used)
end

function soft_budget.charge(key, limit, amount)
  if counter(key) then add(key, 'spent', amount) end
end

local budget = {look = soft_budget.look, take = soft_budget.take, give = soft_budget.give, charge = soft_budget.charge}
kinds.budget = budget

function budget.check(key, limit, amount)
  local spent, held = counter(key)
  if not spent or not is_trusted() then
    redis.call('SADD', WANTED, key)
    return 'rebuilding', 1000
  end
  local left = left_of(limit, spent)
  if (remaining(limit, spent, amount)) < 0 then return 'exhausted', 0, left end
  if (remaining(limit, spent, held, amount)) < 0 then return 'occupied', 2000, left end
end
