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

-- Each counter is read once in a script: {spent, held, taken}, `taken` since; false where there is none.
local counters = {}

local function counter(key)
  local known = counters[key]
  if known == nil then
    local found = redis.pcall('HMGET', key, 'spent', 'held')
    known = not found.err and is_whole(found[1]) and is_whole(found[2]) and {found[1], found[2], '0'} or false
    counters[key] = known
  end
  return known
end

-- No sum overflows: what is spent stays at the most that a counter can hold, and of what is held no more is admitted
-- (`check`). How much was spent beyond that is not known, so that nothing is taken off it: the ledger has it all, and the
-- counter is asked to be made anew. Where it was put there by other means, less than nothing is never held. Nothing may
-- fail in the middle of a settlement.
local function add(key, field, amount)
  counters[key] = nil
  if field == 'spent' and string.sub(amount, 1, 1) == '-' then
    local spent = redis.pcall('HGET', key, field)
    if is_whole(spent) and (remaining(spent, MOST)) >= 0 then
      redis.call('SADD', WANTED, key)
      return
    end
  end
  local sum = redis.pcall('HINCRBY', key, field, amount)
  if type(sum) == 'table' then
    redis.call('HSET', key, field, string.sub(amount, 1, 1) == '-' and '-' .. MOST or MOST)
  elseif sum < 0 and field == 'held' then
    redis.call('HSET', key, field, '0')
  end
end

local soft_budget = {}
kinds.soft_budget = soft_budget

function soft_budget.look(key, limit)
  local known = counter(key)
  return known and left_of(limit, unpack(known)) or '0', 0
end

function soft_budget.check(key, limit, amount)
  local known = counter(key)
  if known and (remaining(MOST, known[2], amount)) < 0 then return 'occupied', 2000, left_of(limit, known[1]) end
end

function soft_budget.take(key, limit, amount)
  local known = counter(key)
  if known then
    add(key, 'held', amount)
    if known[3] == '0' then
      known[3] = amount
      counters[key] = known
    end
  else
    redis.call('SADD', WANTED, key)
  end
end

function soft_budget.give(key, limit, amount, used)
  if not counter(key) then return end
  if amount ~= '0' then add(key, 'held', '-' .. amount) end
  if used ~= '0' then add(key, 'spent', used) end
end

function soft_budget.charge(key, limit, amount)
  if counter(key) then add(key, 'spent', amount) end
end

local budget = {look = soft_budget.look, take = soft_budget.take, give = soft_budget.give, charge = soft_budget.charge}
kinds.budget = budget

function budget.check(key, limit, amount)
  local known = counter(key)
  if not known or not is_trusted() then
    redis.call('SADD', WANTED, key)
    return 'rebuilding', 1000
  end
  local spent, held = known[1], known[2]
  -- What fits is the usual answer, and one sum tells.
  local is_held = (remaining(MOST, held, amount)) < 0
  if not is_held and (remaining(limit, spent, held, amount)) >= 0 then return end
  local left = left_of(limit, spent)
  if (remaining(limit, spent, amount)) < 0 then return 'exhausted', 0, left end
  return 'occupied', 2000, left
end
