-- start.lua: create a session with a full budget, once.
-- KEYS[1] session hash, il:{root}:s:<session>: the only key of a session, so it is there as a whole or not at all
-- ARGV[1] terms, JSON that only the service reads   ARGV[2] max windows   ARGV[3] max dag nodes
-- ARGV[4] budget, micros (< 2^53)   ARGV[5] policy text   ARGV[6] policy hash   ARGV[7] ttl, s
-- reply   {'OK'} · {'SESSION_EXISTS', 0, 0}

if redis.call('EXISTS', KEYS[1]) == 1 then
  return {'SESSION_EXISTS', 0, 0}
end
local budget = string.format('%d', tonumber(ARGV[4]))
redis.call('HSET', KEYS[1],
  'terms', ARGV[1], 'max_windows', ARGV[2], 'max_nodes', ARGV[3], 'policy', ARGV[5], 'policy_hash', ARGV[6],
  'status', '1', 'budget', budget,
  'tip', '', 'tip_number', '0', 'tip_hmac', '', 'tip_budget', budget, 'nodes', '0',
  'lease', '', 'lease_until', '0', 'unsettled', '')
redis.call('EXPIRE', KEYS[1], ARGV[7])
return {'OK'}
