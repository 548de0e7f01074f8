-- One waiter will wait no longer; its hold stays. May be repeated.
-- KEYS: none. ARGV: pool, id. Answer: the room it had been granted before it could leave, else ''.
queue.leave(ARGV[1], ARGV[2])
redis.call('HDEL', 'hr:hold:' .. ARGV[2], 'waiting')
queue.grant(ARGV[1], clock())
return redis.call('HGET', 'hr:hold:' .. ARGV[2], 'granted') or ''
