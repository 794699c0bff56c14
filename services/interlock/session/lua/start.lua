-- start.lua: create a session, once: a root, or a child under its parent, using up its grant.
-- The rule of a child is start_child in domain/session/session_tree.py; a property test holds the two together.
-- KEYS[1] session hash, il:{root}:s:<session>: the only key of a session, so it is there as a whole or not at all
-- KEYS[2..] its ancestors, from the parent up to the root
-- ARGV[1] terms, JSON that only the service reads   ARGV[2] max windows   ARGV[3] max dag nodes   ARGV[4] max fan-out
-- ARGV[5] budget, micros (< 2^53)   ARGV[6] policy text   ARGV[7] policy hash   ARGV[8] ttl, s   ARGV[9] ancestors
-- ARGV[10] 1 where costs add up   of a child: ARGV[11] its id   ARGV[12] grant id   ARGV[13] approval id, or ''
-- ARGV[14] policy hash that the child's policy was resolved against   ARGV[15] its depth
-- ARGV[16] deepest level allowed   ARGV[17] most delegations of the parent
-- reply   {'OK', budget} · {reason, a, b} with the two values of the reason

if redis.call('EXISTS', KEYS[1]) == 1 then
  return {'SESSION_EXISTS', 0, 0}
end
local budget = tonumber(ARGV[5])

if #KEYS > 1 then
  local lowest
  for i = 2, #KEYS do
    local a = redis.call('HMGET', KEYS[i], 'budget', 'epoch')
    if not a[1] then
      return {'SESSION_STATE_LOST', 0, 0}
    end
    if a[2] ~= EPOCH then
      return {'SESSION_STATE_UNVERIFIED', 0, 0}
    end
    lowest = math.min(lowest or tonumber(a[1]), tonumber(a[1]))
  end
  local parent, approval = KEYS[2], ARGV[13]
  local p = redis.call('HMGET', parent, 'status', 'budget', 'policy_hash', 'kids', 'g:' .. ARGV[12], 'a:' .. approval)
  local left = tonumber(p[2])
  local _, made = string.gsub(p[4], '[^,]+', '')
  if lowest <= OPEN_AT then
    return {'BUDGET_DEPLETED', lowest, 0}
  end
  if p[5] then
    return {'GRANT_ALREADY_USED', 0, 0}
  end
  if p[1] ~= ACTIVE then
    return {'PARENT_ENDED', 0, 0}
  end
  if breaker(left) == HALF_OPEN and approval == '' then
    return {'DELEGATION_NEEDS_APPROVAL', 0, 0}
  end
  if p[6] then
    return {'APPROVAL_ALREADY_USED', 0, 0}
  end
  if made + 1 > tonumber(ARGV[17]) then
    return {'MAX_DELEGATIONS_EXCEEDED', tonumber(ARGV[17]), made + 1}
  end
  if tonumber(ARGV[15]) > tonumber(ARGV[16]) then
    return {'MAX_LOOP_DEPTH_EXCEEDED', tonumber(ARGV[16]), tonumber(ARGV[15])}
  end
  if ARGV[14] ~= p[3] then
    return {'PARENT_POLICY_CHANGED', 0, 0}
  end
  budget = math.min(budget, left)
  if budget <= OPEN_AT then
    return {'BUDGET_DEPLETED', budget, 0}
  end
  redis.call('HSET', parent, 'kids', made == 0 and ARGV[11] or p[4] .. ',' .. ARGV[11], 'g:' .. ARGV[12], ARGV[11])
  if approval ~= '' then
    redis.call('HSET', parent, 'a:' .. approval, ARGV[12])
  end
  for i = 2, #KEYS do
    redis.call('EXPIRE', KEYS[i], ARGV[8])
  end
end

redis.call('HSET', KEYS[1],
  'terms', ARGV[1], 'ancestors', ARGV[9], 'max_windows', ARGV[2], 'max_nodes', ARGV[3], 'max_fan_out', ARGV[4],
  'sum', ARGV[10], 'policy', ARGV[6], 'policy_hash', ARGV[7], 'status', ACTIVE, 'budget', int(budget), 'cap', '1000000',
  'tip', '', 'top', '0', 'nodes', '0', 'open', '0', 'dag', '', 'lease', '', 'unsettled', '', 'facts', '', 'kids', '',
  'untold', '', 'late', '', 'epoch', EPOCH)
redis.call('EXPIRE', KEYS[1], ARGV[8])
return {'OK', budget}
