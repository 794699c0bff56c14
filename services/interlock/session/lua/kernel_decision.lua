-- kernel_decision.lua: what a step of a kernel reads, changes and checks, and the record that it becomes; put in front of kernel_saga.lua
-- and kernel_step.lua, which say what can be asked. The rule is interlock/domain/kernel/decision.py; all numbers are integers of
-- millionths below 2^53.
-- KEYS[1] kernel hash: epoch · seq, sealed, link last record, last sealed one, link of the last one · version, steps, maxsteps ·
-- stopped · mode · last ms of the last record · res names of resources · inv, pred, win, cel JSON · r:<resource> limit min gross refunded leased ·
-- v:<variable> value · a:<action> JSON · x:<key> what was answered · k:<seq> its key, and the one that it voids · l:<lease> resource amount fence until_ms ·
-- live leases · w:a:<action>, w:r:<resource> moments of a sliding window · o:<seq> record that is not known to be sealed
-- e:<spool> number of the last emergency action of a sidecar's spool, and of its record ·
-- kids count of children · p:<child> its parent, - the kernel · q:<child>:<resource> its share, as r: · z:<child> 1 stopped ·
-- sagas open ones · g:<saga> until_ms and its steps · due steps to compensate · j:<step> saga action of attempts due_ms fence state ·
-- tickets keys and lifetimes of those that wait · turn ms at which the first one's turn is over
-- ARGV[1] now, ms · ARGV[2] number of the last record that the caller has in hand, 0 for none · ARGV[3] its link ·
-- ARGV[4] number of the last record that the caller knows to be sealed, 0 for none · ARGV[5] its link: noted before all else ·
-- ARGV[6..] what is asked, JSON: each is decided by itself, in this order
-- reply   {status, answer JSON or subject, for each that is asked, then records not known to be sealed...}
-- LOOK asks back: what a step would make of the state has to be looked at by conditions in CEL, and nothing is written. It is asked
-- again with told, the verdicts by the hash of the view that is the subject (domain/kernel/cel/names.py).

local K, NOW = KEYS[1], tonumber(ARGV[1])
local MOST, LARGEST, SKEW_MS = 1000000000000000, 8000000000000000, 5000
local KEYS_KEPT, OUTBOX, LEASES, MOMENTS, RECORD = 10000, 64, 256, 1000, 60000

local ask, head, now, seq, sealed, version, steps -- of the step that is decided
local changed, dropped, logged, checks, failed
local charged -- what this step costs, by resource
local look -- the view that has to be looked at before this step can be decided
local turn -- what becomes of the line of tickets, whether the action is rejected or not

-- Begins a step; the reason of a refusal where the kernel cannot be asked.
local function begin(text)
  head = redis.call('HMGET', K, 'epoch', 'seq', 'sealed', 'version', 'steps', 'maxsteps', 'last', 'link', 'stopped', 'res')
  if not head[2] then
    return 'KERNEL_NOT_FOUND'
  elseif head[1] ~= EPOCH then
    return 'KERNEL_STATE_UNVERIFIED'
  end
  ask, now = cjson.decode(text), math.max(NOW, tonumber(head[7]))
  seq, sealed, version, steps = tonumber(head[2]), tonumber(head[3]), tonumber(head[4]), tonumber(head[5])
  changed, dropped, logged, checks, failed, turn, charged, look = {}, {}, {}, {}, false, {}, {}, nil
end

-- What a text of the definition says. It is read once for all that is asked, and never changed.
local parsed = {}
local function agreed(text)
  parsed[text] = parsed[text] or cjson.decode(text)
  return parsed[text]
end

local function get(field)
  if changed[field] or dropped[field] then
    return changed[field]
  end
  return redis.call('HGET', K, field) or nil
end

local function put(field, value)
  changed[field], dropped[field] = value, nil
end

local function drop(field)
  changed[field], dropped[field] = nil, true
end

local function answered(status, answer)
  return {status, answer and cjson.encode(answer) or ''}
end

-- Records that are not known to be sealed, without those that the caller has in hand, if they are of this history.
local function unsealed()
  local last = redis.call('HMGET', K, 'seq', 'sealed')
  local names, first, have = {}, tonumber(last[2]) + 1, tonumber(ARGV[2])
  if have >= first then
    local held = redis.call('HGET', K, 'o:' .. int(have))
    if held and string.match(held, '^%["%d+", ?"%x*", ?"(%x+)"') == ARGV[3] then
      first = have + 1
    end
  end
  for n = first, tonumber(last[1]) do
    names[#names + 1] = 'o:' .. int(n)
  end
  return #names > 0 and redis.call('HMGET', K, unpack(names)) or {}
end

local function check(name, ok, code, have, need, monitoring)
  checks[#checks + 1] = {name, ok and '1' or '0', ok and '' or code, have or '', need or '', monitoring and '1' or '0'}
  failed = failed or not ok and not monitoring
end

local function amounts(field)
  local limit, min, gross, refunded, leased = string.match(get(field), '^(%d+) (%d+) (%d+) (%d+) (%d+)$')
  return {limit = tonumber(limit), min = tonumber(min), gross = tonumber(gross), refunded = tonumber(refunded),
    leased = tonumber(leased), left = tonumber(limit) - tonumber(gross) + tonumber(refunded)}
end

local function resource(name)
  return amounts('r:' .. name)
end

-- The children from one up to the kernel itself, which is not among them.
local function path_of(child)
  local found = {}
  while child and child ~= '' and child ~= '-' do
    found[#found + 1] = child
    child = get('p:' .. child)
  end
  return found
end

-- Adds to the figures of a resource, and of every child's share of it up the tree.
local function add(name, child, gross, refunded, leased)
  local fields = {'r:' .. name}
  for _, one in ipairs(path_of(child)) do
    fields[#fields + 1] = get('q:' .. one .. ':' .. name) and 'q:' .. one .. ':' .. name or nil
  end
  for _, field in ipairs(fields) do
    local r = amounts(field)
    put(field, int(r.limit) .. ' ' .. int(r.min) .. ' ' .. int(r.gross + gross) .. ' ' .. int(r.refunded + refunded) .. ' '
      .. int(r.leased + leased))
  end
end

-- Checks that nothing above the child of this step was stopped; the reason of a refusal where there is no such child.
local function entered()
  if (ask.child or '') ~= '' and not get('p:' .. ask.child) then
    return 'KERNEL_CHILD_UNKNOWN'
  end
  for _, one in ipairs(path_of(ask.child)) do
    check('running:' .. one, not get('z:' .. one), 'KERNEL_STOPPED')
  end
end

-- Values: a letter of the type, then ! for nothing or : and the value. Items of lists and sets are joined by the unit separator.
local function absent(value)
  return string.sub(value, 2, 2) == '!'
end

local function items_of(value)
  local items = {}
  for item in string.gmatch(string.sub(value, 3), '[^\31]+') do
    items[#items + 1] = item
  end
  return items
end

local function before(a, b)
  for i = 1, math.min(#a, #b) do
    local x, y = string.byte(a, i), string.byte(b, i)
    if x ~= y then
      return x < y
    end
  end
  return #a < #b
end

-- a * b / 10^6, cut off towards zero; nothing where it is too large.
local function product(a, b)
  local sign = (a < 0) ~= (b < 0) and -1 or 1
  a, b = math.abs(a), math.abs(b)
  local a1, b1 = math.floor(a / 1000000), math.floor(b / 1000000)
  if a1 * b1 > 2000000000 then
    return nil
  end
  local a0, b0 = a - a1 * 1000000, b - b1 * 1000000
  return sign * (a1 * b1 * 1000000 + a1 * b0 + a0 * b1 + math.floor(a0 * b0 / 1000000))
end

local function number_after(value, mode, operand)
  local a, b, result = absent(value) and 0 or tonumber(string.sub(value, 3)), tonumber(string.sub(operand, 3)), nil
  if mode == 'increment' then
    result = a + b
  elseif mode == 'decrement' then
    result = a - b
  else
    result = product(a, b)
  end
  if not result or math.abs(result) > MOST then
    return nil, 'NUMBER_TOO_LARGE'
  end
  return 'n:' .. int(result)
end

-- The value after an effect, or nothing and why.
local function after(value, mode, operand)
  local kind = string.sub(value, 1, 1)
  if mode == 'delete' then
    return kind .. '!'
  elseif mode == 'set' then
    return operand
  elseif kind == 'n' then
    return number_after(value, mode, operand)
  end
  local items, at = items_of(value), nil
  for i, item in ipairs(items) do
    if item == operand then
      at = i
      break
    end
  end
  if mode == 'append' and (kind == 'l' or not at) then
    items[#items + 1] = operand
    if kind == 'u' then
      table.sort(items, before)
    end
  elseif mode == 'remove' and at then
    table.remove(items, at)
  end
  local text = kind .. ':' .. table.concat(items, '\31')
  if #items > 1000 or #text > 16384 then
    return nil, 'VALUE_TOO_LARGE'
  end
  return text
end

-- What happened in the last seconds: how often, or how much.
local function window(field, seconds)
  local total = 0
  for at, amount in string.gmatch(get(field) or '', '(%d+) (%d+)') do
    if tonumber(at) > now - tonumber(seconds) * 1000 then
      total = total + tonumber(amount)
    end
  end
  return total
end

-- Notes a moment where an expression looks back at it. Moments that no window reaches any more are forgotten.
local function moment(windows, name, amount)
  if not windows[name] then
    return
  end
  local kept = {}
  for at, value in string.gmatch(get('w:' .. name) or '', '(%d+) (%d+)') do
    if tonumber(at) > now - tonumber(windows[name]) * 1000 then
      kept[#kept + 1] = at .. ' ' .. value
    end
  end
  kept[#kept + 1] = int(now) .. ' ' .. int(amount)
  check('window:' .. name, #kept <= MOMENTS, 'WINDOW_FULL', int(#kept), int(MOMENTS))
  put('w:' .. name, table.concat(kept, ','))
  logged[#logged + 1] = {'w:' .. name, int(now) .. ' ' .. int(amount)}
end

local function scalar(value)
  if type(value) == 'number' then
    return 'n:' .. int(value)
  elseif type(value) == 'boolean' then
    return value and 'b:1' or 'b:0'
  end
  return value
end

local function loaded(value)
  local kind, payload = string.sub(value, 1, 1), absent(value) and '' or string.sub(value, 3)
  if kind == 'n' then
    return payload == '' and 0 or tonumber(payload)
  elseif kind == 'b' then
    return payload == '1'
  end
  return 's:' .. payload
end

local function contains(items, value)
  for _, item in ipairs(items) do
    if item == value then
      return true
    end
  end
  return false
end

local function summed(value)
  local total = 0
  for _, item in ipairs(items_of(value)) do
    if string.sub(item, 1, 1) ~= 'n' then
      return nil
    end
    total = total + tonumber(string.sub(item, 3))
    if math.abs(total) > LARGEST then
      return nil
    end
  end
  return total
end

local READ = {
  n = function(a) return tonumber(a) end,
  s = function(a) return 's:' .. a end,
  b = function(a) return a == '1' end,
  v = function(a) return loaded(get('v:' .. a)) end,
  before = function(a) return loaded(redis.call('HGET', K, 'v:' .. a)) end,
  has = function(a) return not absent(get('v:' .. a)) end,
  had = function(a) return not absent(redis.call('HGET', K, 'v:' .. a)) end,
  size = function(a) return #items_of(get('v:' .. a)) * 1000000 end,
  sum = function(a) return summed(get('v:' .. a)) end,
  uses = function(a, b) return window('w:a:' .. a, b) * 1000000 end,
  spent = function(a, b) return window('w:r:' .. a, b) end,
  left = function(a)
    local r = resource(a)
    return r.limit - r.gross + r.refunded
  end,
}
local TEST = {
  ['in'] = function(x, step) return contains(items_of(get('v:' .. step[2])), scalar(x)) end,
  one = function(x, step) return contains(step, scalar(x)) end,
  ['not'] = function(x) return not x end,
}
local JOIN = {
  ['+'] = function(x, y) return x + y end,
  ['-'] = function(x, y) return x - y end,
  ['<'] = function(x, y) return x < y end,
  ['<='] = function(x, y) return x <= y end,
  ['>'] = function(x, y) return x > y end,
  ['>='] = function(x, y) return x >= y end,
  ['=='] = function(x, y) return x == y end,
  ['!='] = function(x, y) return x ~= y end,
  ['and'] = function(x, y) return x and y end,
  ['or'] = function(x, y) return x or y end,
}

-- Whether a compiled expression holds (domain/kernel/expression.py). What cannot be calculated does not hold.
local function holds(program)
  local stack = {}
  for _, step in ipairs(program) do
    local value
    if READ[step[1]] then
      value = READ[step[1]](step[2], step[3])
    elseif TEST[step[1]] then
      value = TEST[step[1]](table.remove(stack), step)
    else
      local y = table.remove(stack)
      value = JOIN[step[1]](table.remove(stack), y)
    end
    if value == nil or type(value) == 'number' and math.abs(value) > LARGEST then
      return false
    end
    stack[#stack + 1] = value
  end
  return stack[1] == true
end

local CEL = {['0'] = 'INVARIANT_BROKEN', e = 'INVARIANT_FAILED', b = 'INVARIANT_TOO_COSTLY'}
local SHOWN = {
  v = function(name) return get('v:' .. name) end,
  b = function(name) return redis.call('HGET', K, 'v:' .. name) end,
  l = function(name) return 'n:' .. int(resource(name).left) end,
  c = function(name) return 'n:' .. int(charged[name] or 0) end,
  a = function() return 's:' .. (ask.action or '') end,
}

-- The conditions in CEL, and what they say of what is changed so far, one letter each. A verdict about anything else is none: then there
-- are no conditions to return, and the step becomes the view that is to be looked at.
local function conditions()
  local text = get('cel')
  if not text then
    return {}, ''
  end
  local known, shown = agreed(text), {redis.sha1hex(text)}
  for i, one in ipairs(known.names) do
    shown[i + 1] = SHOWN[one[1]](one[2])
  end
  local view = table.concat(shown, '\30')
  local said = (ask.told or {})[redis.sha1hex(view)]
  if not said then
    look = look or view
    return {}, ''
  end
  return known.programs, said
end

local function invariants()
  for _, one in ipairs(agreed(get('inv'))) do
    check('invariant:' .. one[1], holds(one[3]), 'INVARIANT_BROKEN', '', '', one[2] == 'monitoring')
  end
  local programs, said = conditions()
  for i, one in ipairs(programs) do
    local letter = string.sub(said, i, i)
    check('invariant:' .. one[1], letter == '1', CEL[letter], '', '', one[2] == 'monitoring')
  end
end

-- Whether every blocking invariant holds on what is changed so far.
local function unbroken()
  for _, one in ipairs(agreed(get('inv'))) do
    if one[2] ~= 'monitoring' and not holds(one[3]) then
      return false
    end
  end
  local programs, said = conditions()
  for i, one in ipairs(programs) do
    if one[2] ~= 'monitoring' and string.sub(said, i, i) ~= '1' then
      return false
    end
  end
  return true
end

local function charge(costs, grants)
  local named = {}
  for _, cost in ipairs(costs) do
    named[cost[1]] = tonumber(cost[2])
  end
  charged = named
  for name in string.gmatch(head[10], '%S+') do
    local r, cost = resource(name), named[name]
    if r.min > 0 and not grants then
      check('min_cost:' .. name, (cost or 0) >= r.min, 'COST_BELOW_MINIMUM', int(cost or 0), int(r.min))
    end
    if cost then
      local left = r.limit - r.gross + r.refunded
      check('budget:' .. name, cost <= left and r.gross + cost <= LARGEST, 'BUDGET_EXCEEDED', int(cost), int(left))
    end
  end
  for _, child in ipairs(path_of(ask.child)) do
    for _, cost in ipairs(costs) do
      local field = 'q:' .. child .. ':' .. cost[1]
      if get(field) then
        local left = amounts(field).left
        check('budget:' .. child .. '/' .. cost[1], tonumber(cost[2]) <= left, 'BUDGET_EXCEEDED', cost[2], int(left))
      end
    end
  end
  for _, cost in ipairs(costs) do
    add(cost[1], ask.child, tonumber(cost[2]), 0, grants and tonumber(cost[2]) or 0)
  end
end

local function take_steps(count)
  if head[6] ~= '' then
    check('steps', steps + count <= tonumber(head[6]), 'STEPS_EXHAUSTED', int(steps + count), head[6])
  end
  steps = steps + count
end

-- Applies effects and returns how to undo each: variable, mode, operand, value before, value after.
local function change(effects)
  local undo = {}
  for _, effect in ipairs(effects) do
    local field = 'v:' .. effect[1]
    local old = get(field)
    local new, why = after(old, effect[2], effect[3])
    if not new then
      check('effect:' .. effect[1], false, why)
      return undo
    end
    put(field, new)
    undo[#undo + 1] = {effect[1], effect[2], effect[3], old, new}
  end
  return undo
end

local function predicates()
  local held = {}
  for _, one in ipairs(ask.held or {}) do
    held[one[1]] = one
  end
  for _, one in ipairs(agreed(get('pred'))) do
    local told = held[one[1]]
    local known = told ~= nil and told[2] == one[3]
    check('predicate:' .. one[1], known and told[3] == '1', known and 'PREDICATE_BROKEN' or 'PREDICATE_MISSING', '', '',
      one[2] == 'monitoring' and known)
  end
end

local function values_of(undo)
  local seen, values = {}, {}
  for _, one in ipairs(undo) do
    if not seen[one[1]] then
      seen[one[1]] = true
      values[#values + 1] = {one[1], get('v:' .. one[1])}
    end
  end
  return values
end

-- Writes what is changed in as few commands as Lua's stack allows: each is one more in the store's file.
local written = false
local function write(gone)
  written = true
  local given = {}
  for field, value in pairs(changed) do
    given[#given + 1], given[#given + 2] = field, value
    if #given == 1000 then
      redis.call('HSET', K, unpack(given))
      given = {}
    end
  end
  if #given > 0 then
    redis.call('HSET', K, unpack(given))
  end
  for _, field in ipairs(gone) do
    redis.call('HDEL', K, field)
  end
end

-- Writes what was decided as the next record. A rejection changes nothing but what is remembered of it.
local commit
function commit(kind, action, costs, undo, state)
  if look and not failed then
    return {'LOOK', look}
  end
  version, seq = tonumber(head[4]), tonumber(head[2])
  if failed then
    changed, dropped, logged, undo, costs = {}, {}, {}, {}, {}
    steps, kind, state = tonumber(head[5]), 'KERNEL_REJECTED', 'J'
  elseif kind ~= 'KERNEL_TICKET_TAKEN' and kind ~= 'KERNEL_TICKET_RETURNED' then
    version = version + 1
  end
  seq = seq + 1
  local answer = {approved = failed and '0' or '1', checks = checks, version = int(version), sequence = int(seq), action = action,
    costs = costs, changed = values_of(undo), granted = ask.granted or '', until_ms = ask.until_ms or '', claim = ask.claim}
  put('version', int(version))
  put('steps', int(steps))
  put('last', int(now))
  put('x:' .. ask.key, cjson.encode({digest = ask.digest, state = state, answer = answer, undo = undo, costs = costs,
    irreversible = ask.irreversible or '0', compensation = ask.compensation, child = ask.child ~= '' and ask.child or nil}))
  put('k:' .. int(seq), ask.voids and ask.key .. '\n' .. ask.voids or ask.key)
  for field, value in pairs(turn) do
    put(field, value)
  end
  local old = get('k:' .. int(seq - KEYS_KEPT))
  if old then
    for key in string.gmatch(old, '[^\n]+') do
      drop('x:' .. key)
    end
    drop('k:' .. int(seq - KEYS_KEPT))
  end
  local fields, names = {}, {}
  for field, value in pairs(changed) do
    fields[field] = string.sub(field, 1, 2) ~= 'w:' and value or nil
  end
  for field in pairs(dropped) do
    names[#names + 1] = field
  end
  local data = cjson.encode({sequence = int(seq), previous = head[8], at_ms = int(now), action = action, key = ask.key,
    approved = answer.approved, checks = checks, costs = costs, version = int(version), changes = fields, dropped = names,
    moments = logged, decided = ask.decided, recorded = ask.recorded})
  if #data > RECORD and not failed then
    check('record', false, 'RECORD_TOO_LARGE', int(#data), int(RECORD))
    return commit(kind, action, costs, undo, state)
  end
  local link = redis.sha1hex(head[8] .. data)
  changed.seq, changed.link = int(seq), link
  changed['o:' .. int(seq)] = cjson.encode({int(seq), head[8], link, kind,
    (failed or kind == 'KERNEL_EMERGENCY' or kind == 'KERNEL_COMPENSATION_STUCK') and '3' or '2', data})
  write(names)
  return answered('OK', answer)
end

local function refund(costs, child)
  for _, cost in ipairs(costs) do
    add(cost[1], child, 0, tonumber(cost[2]), 0)
  end
end

-- The value that undoes one effect: what was before where nothing came after, else its inverse, else nothing.
local function undone(one)
  local now_held, kind = get('v:' .. one[1]), string.sub(one[4], 1, 1)
  if now_held == one[5] then
    return one[4]
  elseif one[2] == 'increment' then
    return after(now_held, 'decrement', one[3])
  elseif one[2] == 'decrement' then
    return after(now_held, 'increment', one[3])
  elseif kind == 'u' and one[4] ~= one[5] and one[2] == 'append' then
    return after(now_held, 'remove', one[3])
  elseif kind == 'u' and one[4] ~= one[5] and one[2] == 'remove' then
    return after(now_held, 'append', one[3])
  elseif one[4] == one[5] and (one[2] == 'append' or one[2] == 'remove') then
    return now_held
  end
  return nil
end
