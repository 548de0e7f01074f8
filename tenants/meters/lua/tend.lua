-- See to one queue: write the lists of rooms to which this process's waiters may go, tell which lists are whose, where that
-- has changed, and give what room there is to those whose turn it is, as when a replica came, or grew, or its news was
-- lost. May be repeated.
-- KEYS: none. ARGV: pool, how many lists, of each its name and its rooms (JSON, rooms.lua), then of each waiter its id and
--       the names of its lists from now on, as JSON ('' as before).
-- Answer: of each waiter the room it was granted, '' while it waits, 'evicted' where it made room for another, 'gone' where
--         nothing is known of it.
local pool, lists, answer = ARGV[1], tonumber(ARGV[2]), {}
for at = 3, 2 + 2 * lists, 2 do rooms.list(ARGV[at], ARGV[at + 1]) end
local first = 3 + 2 * lists
for at = first, #ARGV, 2 do
  if ARGV[at + 1] ~= '' then queue.offer(pool, ARGV[at], ARGV[at + 1]) end
end
queue.grant(pool, clock())
for at = first, #ARGV, 2 do
  local hold = redis.call('HMGET', 'hr:hold:' .. ARGV[at], 'meters', 'granted', 'evicted')
  answer[#answer + 1] = not hold[1] and 'gone' or hold[2] or (hold[3] and 'evicted') or ''
end
return answer
