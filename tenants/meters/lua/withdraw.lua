-- Undo admissions whose answers never arrived, as if they had not been asked for; one that arrives later is refused.
-- KEYS: index of holds. ARGV: tombstone seconds, then ids.
-- Answer: one word each: 'withdrawn' | 'unknown' (there was no hold yet) | 'ended' (had been settled).
local now = clock()
local answer = {}
for at = 2, #ARGV do
  local id = ARGV[at]
  local hold, tombstone = 'hr:hold:' .. id, 'hr:done:' .. id
  if redis.call('EXISTS', tombstone) == 1 then
    answer[#answer + 1] = 'ended'
  else
    local kept = redis.call('HMGET', hold, 'meters', 'waiting', 'served')
    local meters = kept[1] and meters_of(kept[1])
    redis.call('SET', tombstone, 'final', 'EX', ARGV[1])
    redis.call('DEL', hold)
    redis.call('ZREM', KEYS[1], id)
    for _, meter in ipairs(meters or {}) do
      local kind, key, limit, amount = unpack(meter)
      isolated(kinds[kind].give, key, limit, amount, '0', now)
    end
    if meters then
      isolated(queue.finish, id, kept[2], kept[3], {input_tokens = 0, output_tokens = 0}, meters, now)
    end
    answer[#answer + 1] = meters and 'withdrawn' or 'unknown'
  end
end
return answer
