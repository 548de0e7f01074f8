-- Whether holds may be reaped now. Not for one lease after a time in which nobody asked: Redis was frozen or cut off, or
-- its clock leapt, and whoever lives has to be given the time to renew. A reaper that always comes late still gets its
-- turn: a grace that was running when it last asked is not begun again.
-- KEYS: the reaper's mark. ARGV: lease ms. Answer: 1 | 0.
local now, lease = clock(), tonumber(ARGV[1])
local mark = redis.call('HMGET', KEYS[1], 'asked', 'grace')
local asked, grace = tonumber(mark[1] or 0), tonumber(mark[2] or 0)
if now - asked > lease and grace <= asked then grace = now + lease end
redis.call('HSET', KEYS[1], 'asked', whole(now), 'grace', whole(grace))
return now >= grace and 1 or 0
