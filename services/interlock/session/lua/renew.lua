-- renew.lua: prolong the lease of a window whose answer is still coming in.
-- The rule is renew_lease in domain/session/renewing.py; a property test holds the two together.
-- KEYS[1] session hash
-- ARGV[1] window id   ARGV[2] until, ms   ARGV[3] ttl, s
-- reply   {'OK', until} · {reason, 0, 0}

local key, window, ends = KEYS[1], ARGV[1], tonumber(ARGV[2])
local s = redis.call('HMGET', key, 'lease', 'epoch', 'r:' .. window)
if not s[1] then
  return {'SESSION_STATE_LOST', 0, 0}
end
if s[2] ~= EPOCH then
  return {'SESSION_STATE_UNVERIFIED', 0, 0}
end
local leases, own = leases_of(s[1]), nil
for _, lease in ipairs(leases) do
  if lease.id == window then
    own = lease
  end
end
if not own or s[3] then
  return {'LEASE_LOST', 0, 0}
end
own.ends = math.max(own.ends, ends)
redis.call('HSET', key, 'lease', text_of(leases))
redis.call('EXPIRE', key, ARGV[3])
return {'OK', own.ends}
