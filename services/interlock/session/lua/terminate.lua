-- terminate.lua: end a session for good.
-- KEYS[1] session hash
-- ARGV[1] ttl, s
-- reply   {'OK', 1} ended now · {'OK', 0} had ended before · {'SESSION_STATE_LOST', 0, 0}

local status = redis.call('HGET', KEYS[1], 'status')
if not status then
  return {'SESSION_STATE_LOST', 0, 0}
end
if status == '3' then
  return {'OK', 0}
end
redis.call('HSET', KEYS[1], 'status', '3')
redis.call('EXPIRE', KEYS[1], ARGV[1])
return {'OK', 1}
