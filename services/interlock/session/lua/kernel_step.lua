-- kernel_step.lua: decide what is asked of a kernel and commit it: check, charge, change, record, each in one step. It stands behind
-- kernel_decision.lua, which has keys, arguments and reply, kernel_saga.lua and kernel_ticket.lua. The rule is interlock/domain/kernel/rule.py.

local CHILDREN, DEEPEST = 256, 16

-- Answers a dry run with the whole state after it.
local function shown(action, undo, whole)
  local values = {}
  local all = redis.call('HGETALL', K)
  for i = 1, #all, 2 do
    if string.sub(all[i], 1, 2) == 'v:' then
      values[#values + 1] = {string.sub(all[i], 3), whole and get(all[i]) or all[i + 1]}
    end
  end
  return answered('OK', {approved = failed and '0' or '1', checks = checks, version = int(version), sequence = '0',
    action = ask.action, costs = action.costs, changed = values_of(undo), granted = '', until_ms = '', values = values})
end

local function execute(permit)
  local text = get('a:' .. ask.action)
  if not text then
    return {'KERNEL_ACTION_UNKNOWN'}
  end
  local action, windows = agreed(text), agreed(get('win'))
  if get('pred') ~= '[]' and not ask.dry and ask.version == '0' then
    return {'KERNEL_VERSION_NEEDED'}
  end
  local wait, ahead
  if not ask.dry then
    wait, ahead = turned()
  end
  if wait then
    return {wait, ahead}
  end
  if (ask.version or '0') ~= '0' and ask.version ~= int(version) then
    return {'KERNEL_VERSION_CHANGED', int(version)}
  end
  local refused = entered() or joined()
  if refused then
    return {refused}
  end
  if not ask.dry and get('j:' .. ask.key) then
    return {'KERNEL_KEY_REUSED'}
  end
  if ask.dry and action.emergency == '1' then -- always allowed (T8)
    checks, failed = {}, false
    return shown(action, {}, true)
  end
  check('running', head[9] == '0', 'KERNEL_STOPPED')
  for i, program in ipairs(action.preconditions) do
    check('precondition:' .. int(i), holds(program), 'PRECONDITION_BROKEN')
  end
  charge(action.costs, false)
  take_steps(1)
  moment(windows, 'a:' .. ask.action, 1)
  for _, cost in ipairs(action.costs) do
    moment(windows, 'r:' .. cost[1], tonumber(cost[2]))
  end
  local undo = change(action.effects)
  if #undo == #action.effects then
    invariants()
  end
  if ask.dry and look then
    return {'LOOK', look}
  elseif ask.dry then
    return shown(action, undo, #undo == #action.effects)
  end
  predicates()
  ask.irreversible, ask.compensation = action.irreversible, action.compensation
  return commit(permit and 'KERNEL_PERMITTED' or 'KERNEL_EXECUTED', ask.action, action.costs, undo, permit and 'P' or 'E')
end

local function rollback(kind, wanted)
  local all = {}
  for i = #ask.executions, 1, -1 do
    local key = ask.executions[i]
    local text = get('x:' .. key)
    local entry = text and cjson.decode(text) or {state = ''}
    if not string.find(wanted, entry.state, 1, true) or entry.state == '' then
      return {'KERNEL_EXECUTION_UNKNOWN', key}
    end
    check('reversible:' .. key, entry.irreversible ~= '1' or entry.state == 'P', 'ACTION_IRREVERSIBLE')
    check('alone:' .. key, not entry.compensation or entry.state == 'P', 'ACTION_NEEDS_SAGA')
    for j = #entry.undo, 1, -1 do
      local one = entry.undo[j]
      local old, new = get('v:' .. one[1]), undone(one)
      check('undo:' .. one[1], new ~= nil, 'STATE_MOVED_ON')
      if new then
        put('v:' .. one[1], new)
        all[#all + 1] = {one[1], 'set', new, old, new}
      end
    end
    refund(entry.costs, entry.child)
    entry.state = 'R'
    put('x:' .. key, cjson.encode(entry))
  end
  invariants()
  return commit(kind, '', {}, all, '-')
end

-- Takes a permit back; one that is not there is refused when it comes, where that is asked for.
local function abort()
  local key = ask.executions[1]
  if ask.unseen ~= '1' or get('x:' .. key) then
    return rollback('KERNEL_ABORTED', 'P')
  end
  check('unseen:' .. key, true, '')
  put('x:' .. key, '{"state": "U"}')
  ask.voids = key
  return commit('KERNEL_ABORTED', '', {}, {}, '-')
end

local function confirm()
  local text = get('x:' .. ask.permit)
  local entry = text and cjson.decode(text) or {state = ''}
  if entry.state ~= 'P' then
    return {'KERNEL_PERMIT_UNKNOWN', ask.permit}
  end
  local actual, back, left = {}, {}, {}
  for _, cost in ipairs(ask.actual) do
    actual[cost[1]] = cost[2]
  end
  for _, cost in ipairs(entry.costs) do
    local spent = tonumber(actual[cost[1]] or cost[2])
    check('reserved:' .. cost[1], spent <= tonumber(cost[2]), 'COST_ABOVE_RESERVED', int(spent), cost[2])
    back[#back + 1] = {cost[1], int(math.max(0, tonumber(cost[2]) - spent))}
    left[#left + 1] = {cost[1], int(spent)}
    actual[cost[1]] = nil
  end
  for _, cost in ipairs(ask.actual) do
    check('named:' .. cost[1], actual[cost[1]] == nil or cost[2] == '0', 'COST_ABOVE_RESERVED', cost[2], '0')
  end
  refund(back, entry.child)
  entry.state, entry.costs = 'C', left
  put('x:' .. ask.permit, cjson.encode(entry))
  return commit('KERNEL_CONFIRMED', '', left, {}, '-')
end

-- Ends leases whose time is over, the largest clock error included. What did not come back counts as spent.
local function end_leases()
  local live = {}
  for key in string.gmatch(get('live'), '%S+') do
    local name, amount, _, ends, child = string.match(get('l:' .. key), '^(%S+) (%d+) (%d+) (%d+) ?(%S*)$')
    if now > tonumber(ends) + SKEW_MS then
      add(name, child, 0, 0, -tonumber(amount))
      drop('l:' .. key)
    else
      live[#live + 1] = key
    end
  end
  put('live', table.concat(live, ' '))
  return live
end

local function lease()
  if not get('r:' .. ask.resource) then
    return {'KERNEL_RESOURCE_UNKNOWN'}
  end
  local refused = entered()
  if refused then
    return {refused}
  end
  local live, r = end_leases(), resource(ask.resource)
  local left, unit, count = r.left, math.max(r.min, 1), 0
  for _, child in ipairs(path_of(ask.child)) do
    local field = 'q:' .. child .. ':' .. ask.resource
    left = get(field) and math.min(left, amounts(field).left) or left
  end
  for _, key in ipairs(live) do
    if key == ask.key then -- remembered no longer, and out still
      return {'KERNEL_KEY_REUSED'}
    end
    count = count + (string.match(get('l:' .. key), '^%S+') == ask.resource and 1 or 0)
  end
  local share, wanted = math.floor(left / (count + 2)), tonumber(ask.wanted)
  if wanted > 0 then
    share = math.min(share, wanted)
  end
  share = math.max(unit, share - share % unit)
  check('running', head[9] == '0', 'KERNEL_STOPPED')
  check('leases', #live < LEASES, 'LEASES_TOO_MANY', int(#live), int(LEASES))
  local costs = {{ask.resource, int(share)}}
  charge(costs, true)
  take_steps(r.min > 0 and math.floor(share / r.min) or 1)
  moment(agreed(get('win')), 'r:' .. ask.resource, share)
  invariants()
  check('predicates', get('pred') == '[]', 'LEASE_UNDER_PREDICATES')
  ask.granted, ask.until_ms = failed and '0' or int(share), int(now + tonumber(ask.lifetime_ms))
  live[#live + 1] = ask.key
  put('live', table.concat(live, ' '))
  put('l:' .. ask.key, ask.resource .. ' ' .. int(share) .. ' ' .. int(seq + 1) .. ' ' .. ask.until_ms
    .. ((ask.child or '') ~= '' and ' ' .. ask.child or ''))
  return commit('KERNEL_LEASED', '', costs, {}, '-')
end

local function give_back()
  local text = get('l:' .. ask.lease)
  if not text then
    return {'KERNEL_LEASE_UNKNOWN'}
  end
  local name, amount, fence, ends, child = string.match(text, '^(%S+) (%d+) (%d+) (%d+) ?(%S*)$')
  if fence ~= ask.fence then
    return {'KERNEL_LEASE_FENCED'}
  end
  if now > tonumber(ends) + SKEW_MS then
    return {'KERNEL_LEASE_EXPIRED'}
  end
  local unspent, r, live = tonumber(ask.unspent), resource(name), {}
  check('unspent:' .. name, unspent <= tonumber(amount), 'UNSPENT_ABOVE_GRANT', ask.unspent, amount)
  add(name, child, 0, math.min(unspent, tonumber(amount)), -tonumber(amount))
  steps = steps - (r.min > 0 and math.floor(unspent / r.min) or 0)
  for key in string.gmatch(get('live'), '%S+') do
    live[#live + 1] = key ~= ask.lease and key or nil
  end
  put('live', table.concat(live, ' '))
  drop('l:' .. ask.lease)
  return commit('KERNEL_RETURNED', '', {}, {}, '-')
end

-- Takes the next number of a sidecar's spool. One that was taken is answered, though its key may be remembered no longer; none comes after
-- a later one.
local function known_of(recorded)
  local field = 'e:' .. recorded.spool
  local last, sequence = string.match(get(field) or '0 0', '^(%d+) (%d+)$')
  if tonumber(recorded.number) < tonumber(last) then
    return {'KERNEL_EMERGENCY_PASSED'}
  elseif recorded.number == last then
    return answered('OK', {approved = '1', checks = checks, version = int(version), sequence = sequence, action = ask.action,
      costs = {}, changed = {}, granted = '', until_ms = '', replayed = '1'})
  end
  put(field, recorded.number .. ' ' .. int(seq + 1))
end

local function emergency()
  local text = get('a:' .. ask.action)
  if not text or agreed(text).emergency ~= '1' then
    return {'KERNEL_EMERGENCY_UNKNOWN'}
  end
  if (ask.child or '') ~= '' and not get('p:' .. ask.child) then
    return {'KERNEL_CHILD_UNKNOWN'}
  end
  if ask.recorded then
    local known = known_of(ask.recorded)
    if known then
      return known
    end
  end
  if ask.stop == '1' then
    put((ask.child or '') ~= '' and 'z:' .. ask.child or 'stopped', '1')
  end
  return commit('KERNEL_EMERGENCY', ask.action, {}, {}, '-')
end

-- Adds a child, which has a part of the resources of what is above it; one that is there must be the same.
local function open_child()
  local child, parent = ask.child, ask.parent ~= '' and ask.parent or '-'
  ask.child = ''
  if parent ~= '-' and not get('p:' .. parent) then
    return {'KERNEL_CHILD_UNKNOWN', parent}
  end
  local known, same, shares = get('p:' .. child), true, 0
  for _, one in ipairs(ask.limits) do
    local text = get('q:' .. child .. ':' .. one[1])
    same = same and text and string.match(text, '^%d+') == one[2]
  end
  for name in string.gmatch(head[10], '%S+') do
    shares = shares + (get('q:' .. child .. ':' .. name) and 1 or 0)
  end
  if known and (known ~= parent or not same or shares ~= #ask.limits) then
    return {'KERNEL_CHILD_DIFFERS', child}
  end
  local kids, above = tonumber(get('kids') or '0') + (known and 0 or 1), 1 + #path_of(parent)
  check('children', kids <= CHILDREN, 'CHILDREN_TOO_MANY', int(kids), int(CHILDREN))
  check('depth', above <= DEEPEST, 'CHILDREN_TOO_DEEP', int(above), int(DEEPEST))
  put('kids', int(kids))
  put('p:' .. child, parent)
  for _, one in ipairs(ask.limits) do
    if not get('r:' .. one[1]) then
      return {'KERNEL_RESOURCE_UNKNOWN'}
    end
    if not known then
      put('q:' .. child .. ':' .. one[1], one[2] .. ' 0 0 0 0')
    end
  end
  return commit('KERNEL_CHILD_OPENED', '', {}, {}, '-')
end

-- Adds variables and actions that are new; what is there already must be the same.
local function register()
  local count, new = tonumber(get('named')), {}
  for _, one in ipairs(ask.fields) do
    local field, value = one[1], one[2]
    local known = get(field)
    local variable = string.sub(field, 1, 2) == 'v:'
    if known and variable and string.sub(known, 1, 1) ~= string.sub(value, 1, 1) then
      return {'KERNEL_VARIABLE_RETYPED', string.sub(field, 3)}
    elseif known and not variable and known ~= value then
      return {'KERNEL_ACTION_DIFFERS', string.sub(field, 3)}
    elseif not known then
      put(field, value)
      new[#new + 1] = field
    end
  end
  if #new == 0 then
    return answered('OK')
  end
  if get('mode') ~= 'open' then
    return {'KERNEL_REGISTRY_CLOSED', string.sub(new[1], 3)}
  end
  if count + #new > 2048 then
    return {'KERNEL_TOO_LARGE'}
  end
  put('named', int(count + #new))
  return commit('KERNEL_REGISTERED', '', {}, {}, '-')
end

-- Decides one thing that is asked.
local function decided(text)
  local refused = begin(text)
  if refused then
    return {refused}
  end
  if ask.dry then
    return execute(false)
  end
  local known = ask.op ~= 'register' and get('x:' .. ask.key)
  if known then
    local entry = cjson.decode(known)
    if entry.state == 'U' then
      return {'KERNEL_PERMIT_ABORTED'}
    elseif entry.digest ~= ask.digest then
      return {'KERNEL_KEY_REUSED'}
    elseif ask.op == 'permit' and (entry.state == 'R' or entry.state == 'S') then -- whoever is told of it now must not act
      return {'KERNEL_PERMIT_ABORTED'}
    end
    entry.answer.replayed = '1'
    return answered('OK', entry.answer)
  end
  if seq - sealed >= OUTBOX then
    return answered('FULL')
  end
  if ask.op == 'execute' or ask.op == 'permit' then
    return execute(ask.op == 'permit')
  elseif ask.op == 'child' then
    return open_child()
  elseif ask.op == 'begin_saga' then
    return begin_saga()
  elseif ask.op == 'end_saga' then
    return end_saga()
  elseif ask.op == 'claim' then
    return claim()
  elseif ask.op == 'settle' then
    return settle()
  elseif ask.op == 'decide' then
    return decide()
  elseif ask.op == 'rollback' and ask.saga ~= '' then
    return rollback_saga()
  elseif ask.op == 'rollback' then
    return rollback('KERNEL_ROLLED_BACK', 'EC')
  elseif ask.op == 'abort' then
    return abort()
  elseif ask.op == 'confirm' then
    return confirm()
  elseif ask.op == 'ticket' then
    return take_ticket()
  elseif ask.op == 'return_ticket' then
    return return_ticket()
  elseif ask.op == 'lease' then
    return lease()
  elseif ask.op == 'give_back' then
    return give_back()
  elseif ask.op == 'emergency' then
    return emergency()
  end
  return register()
end

if ARGV[4] ~= '0' then
  noted(K, ARGV[4], ARGV[5])
end
local reply, told = {}, false
for i = 6, #ARGV do
  local found = decided(ARGV[i])
  reply[#reply + 1] = found[1]
  reply[#reply + 1] = found[2] or ''
  told = told or found[1] == 'OK' or found[1] == 'FULL'
end
if told then -- what is answered rests on them
  for _, record in ipairs(unsealed()) do
    reply[#reply + 1] = record
  end
end
if written then
  redis.call('EXPIRE', K, 2592000)
end
return reply
