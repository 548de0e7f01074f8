-- Whether holds may be reaped now. Not for one lease after a time in which nobody asked: Redis was frozen or cut off, or
-- its clock leapt, and whoever lives has to be given the time to renew. That may come again while they have it; but a
-- reaper that always comes late still gets its turn, each third time.
-- KEYS: the reaper's mark. ARGV: lease ms. Answer: 1 | 0.
local MOST = 2 -- graces in a row
local now, lease = clock(), tonumber(ARGV[1])
local mark = redis.call('HMGET', KEYS[1], 'asked', 'grace', 'times')
local asked, grace, times = tonumber(mark[1] or 0), tonumber(mark[2] or 0), tonumber(mark[3] or 0)
if now - asked <= lease or times == MOST then
  times = 0
else
  times, grace = times + 1, now + lease
end
redis.call('HSET', KEYS[1], 'asked', whole(now), 'grace', whole(grace), 'times', times)
return now >= grace and 1 or 0
