-- Vouch for the budgets' counters for as long as this server lives, if it is still the one they were made on.
-- KEYS: the epoch. ARGV: the run_id of the server on which they were made. Answer: 1 | 0.
if string.match(redis.call('INFO', 'server'), 'run_id:(%x+)') ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1])
return 1
