-- See to one queue: give what room there is to those whose turn it is, as when a replica came, or grew, or its news was
-- lost. May be repeated.
-- KEYS: none. ARGV: pool, then ids of waiters. Answer: of each id the room it was granted, '' while it waits.
local answer = {}
queue.grant(ARGV[1], clock())
for at = 2, #ARGV do
  answer[#answer + 1] = redis.call('HGET', 'hr:hold:' .. ARGV[at], 'granted') or ''
end
return answer
