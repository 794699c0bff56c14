-- start.lua: create a session, once: a root, or a child under its parent, using up its grant.
-- The rule of a child is start_child in domain/session/session_tree.py; a property test holds the two together.
-- KEYS[1] session hash, il:{root}:s:<session>: the only key of a session, so it is there as a whole or not at all
-- KEYS[2..] its ancestors, from the parent up to the root; of a root with a caller the caller's budget
-- ARGV[1] the start, JSON by name: session_id, loop_depth, budget in micros (< 2^53), policy {text, hash}, ttl_s; of a child also
-- grant: Delegated of domain/session/state.py by its field names   ARGV[2..] fields and values that its terms fill
-- of a root with a caller also caller: CallerAsk of domain/session/caller.py
-- reply   {'OK', budget, of a root with a caller what is told of it} · {reason, a, b} with the two values of the reason

if redis.call('EXISTS', KEYS[1]) == 1 then
  return {'SESSION_EXISTS', 0, 0}
end
local ask = cjson.decode(ARGV[1])
local budget = ask.budget

local told = {}
if type(ask.caller) == 'table' then
  told = caller_entered(KEYS[2], ask.caller.number, ask.caller.cap)
  if not told then
    return {'CALLER_BUDGET_UNVERIFIED', 0, 0}
  end
  local left = math.max(0, told[2] - told[3])
  if left <= OPEN_AT then
    return {'CALLER_BUDGET_DEPLETED', left, told[1]}
  end
  if left - told[6] <= OPEN_AT then
    return {'BUDGET_HELD', 0, 0}
  end
  budget = math.min(budget, left)
  if told[5] == 1 then
    caller_begins(KEYS[2], told[1], told[4], told[2], ask.ttl_s)
  end
elseif #KEYS > 1 then
  local lost, above, lowest = above_of(2, #KEYS)
  if lost then
    return lost
  end
  local parent, grant = KEYS[2], ask.grant
  local approval, limits = grant.approval_id, grant.parent
  local p = redis.call('HMGET', parent, 'status', 'budget', 'policy_hash', 'kids', 'g:' .. grant.grant_id, 'a:' .. approval, 'sum', 'holds')
  local left = p[7] == '1' and lowest or tonumber(p[2])
  local _, made = string.gsub(p[4], '[^,]+', '')
  if lowest <= OPEN_AT then
    return {'BUDGET_DEPLETED', lowest, 0}
  end
  table.remove(above, 1)
  local barrier = barrier_in(above)
  if barrier then
    return barrier
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
  if made + 1 > limits.max_delegations then
    return {'MAX_DELEGATIONS_EXCEEDED', limits.max_delegations, made + 1}
  end
  if ask.loop_depth > limits.deepest then
    return {'MAX_LOOP_DEPTH_EXCEEDED', limits.deepest, ask.loop_depth}
  end
  if grant.parent_policy_hash ~= p[3] then
    return {'PARENT_POLICY_CHANGED', 0, 0}
  end
  budget = math.min(budget, left)
  if budget <= OPEN_AT then
    return {'BUDGET_DEPLETED', budget, 0}
  end
  if left - held_without(p[8], '') <= OPEN_AT then
    return {'BUDGET_HELD', 0, 0}
  end
  redis.call('HSET', parent, 'kids', made == 0 and ask.session_id or p[4] .. ',' .. ask.session_id,
    'g:' .. grant.grant_id, ask.session_id)
  if approval ~= '' then
    redis.call('HSET', parent, 'a:' .. approval, grant.grant_id)
  end
  for i = 2, #KEYS do
    redis.call('EXPIRE', KEYS[i], ask.ttl_s)
  end
end

redis.call('HSET', KEYS[1],
  'policy', ask.policy.text, 'policy_hash', ask.policy.hash, 'status', ACTIVE, 'budget', int(budget), 'cap', '1000000',
  'tip', '', 'top', '0', 'nodes', '0', 'open', '0', 'dag', '', 'lease', '', 'unsettled', '', 'facts', '', 'kids', '',
  'untold', '', 'late', '', 'spent', '', 'holds', '', 'paid', '0 0', 'asked', '', 'epoch', EPOCH, unpack(ARGV, 2))
redis.call('EXPIRE', KEYS[1], ask.ttl_s)
return {'OK', budget, unpack(told)}
