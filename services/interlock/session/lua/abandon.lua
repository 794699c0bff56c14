-- abandon.lua: give the lease of a window back that was never sealed. Nothing is charged.
-- KEYS[1] session hash
-- ARGV[1] window id   ARGV[2] ttl, s
-- reply   {'OK', 1} released · {'OK', 0} the lease was not this window's · {'SESSION_NOT_FOUND', 0, 0}

local lease = redis.call('HGET', KEYS[1], 'lease')
if not lease then
  return {'SESSION_NOT_FOUND', 0, 0}
end
if lease ~= ARGV[1] or lease == '' then
  return {'OK', 0}
end
redis.call('HSET', KEYS[1], 'lease', '', 'lease_until', '0')
redis.call('EXPIRE', KEYS[1], ARGV[2])
return {'OK', 1}
