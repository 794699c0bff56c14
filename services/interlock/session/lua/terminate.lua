-- terminate.lua: end a session for good.
-- KEYS[1] session hash
-- ARGV[1] ttl, s
-- reply   {'OK', 1} ended now · {'OK', 0} had ended before · {'SESSION_STATE_LOST' | 'SESSION_STATE_UNVERIFIED', 0, 0}

local s = redis.call('HMGET', KEYS[1], 'status', 'epoch')
if not s[1] then
  return {'SESSION_STATE_LOST', 0, 0}
end
if s[2] ~= EPOCH then
  return {'SESSION_STATE_UNVERIFIED', 0, 0}
end
if s[1] == TERMINATED then
  return {'OK', 0}
end
redis.call('HSET', KEYS[1], 'status', TERMINATED)
redis.call('EXPIRE', KEYS[1], ARGV[1])
return {'OK', 1}
