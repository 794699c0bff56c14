-- standing.lua: read what a session is before a call is bound to it. It changes nothing, and the opening looks again.
-- KEYS[1] session hash
-- ARGV[1..] windows whose outcomes are wanted beside the latest one's
-- reply   {'OK'} for a session that is not there · {'OK', terms, policy hash, status, budget, nodes, highest number, open, dag,
-- latest window, its outcome or false, outcome of each window or false}

local s = redis.call('HMGET', KEYS[1], 'terms', 'policy_hash', 'status', 'budget', 'nodes', 'top', 'open', 'dag', 'tip')
if not s[3] then
  return {'OK'}
end
local fields = {'r:' .. s[9]}
for _, window in ipairs(ARGV) do
  fields[#fields + 1] = 'r:' .. window
end
return {'OK', s[1], s[2], s[3], s[4], s[5], s[6], s[7], s[8], s[9], unpack(redis.call('HMGET', KEYS[1], unpack(fields)))}
