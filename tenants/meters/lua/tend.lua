-- See to one queue: offer waiters other places, where theirs have changed, and give what room there is to those whose
-- turn it is, as when a replica came, or grew, or its news was lost. May be repeated.
-- KEYS: none. ARGV: pool, then of each waiter its id and its places from now on ('' as before), as JSON in the form in
--       which holds keep meters.
-- Answer: of each the room it was granted, '' while it waits, 'gone' where nothing is known of it.
local pool, answer = ARGV[1], {}
for at = 2, #ARGV, 2 do
  if ARGV[at + 1] ~= '' then queue.offer(pool, ARGV[at], ARGV[at + 1]) end
end
queue.grant(pool, clock())
for at = 2, #ARGV, 2 do
  local hold = redis.call('HMGET', 'hr:hold:' .. ARGV[at], 'meters', 'granted')
  answer[#answer + 1] = not hold[1] and 'gone' or hold[2] or ''
end
return answer
