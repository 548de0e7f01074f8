-- Set a hold aside that cannot be settled here: it is looked at again later, and stops none of those behind it.
-- KEYS: index of holds, those aside. ARGV: id, why, ms until it is looked at again.
-- Answer: 1 if it is new among them.
local now = clock()
local since = redis.call('HGET', KEYS[2], ARGV[1])
redis.call('ZADD', KEYS[1], 'XX', whole(now + tonumber(ARGV[3])), ARGV[1])
if since then return 0 end
redis.call('HSET', KEYS[2], ARGV[1], cjson.encode({since = whole(now), why = ARGV[2]}))
return 1
