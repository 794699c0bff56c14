-- commit.lua: charge a sealed window, advance the session and lower its ancestors, once per window id, in one step.
-- The rule is commit_window in domain/session/rule.py; a property test holds the two together.
-- KEYS[1] session hash   KEYS[2..] its ancestors, from the parent up to the root; last, with a caller, the caller's budget
-- ARGV[1] the settlement, JSON: CommitWindow of domain/session/state.py by its field names, what is None left out; of its seal
-- hmac, quality_tier and status; pattern and status are letters, amounts micros (< 2^53)
-- ARGV[2] record, JSON that only the service reads   ARGV[3] ttl, s
-- reply   {'OK', 0 now | 1 before, terms, policy hash, outcome, dag, what is told of the caller or {}, what the session has left,
--          {why, session, budget} of what bars it or {}} · {reason, a, b}
-- outcome '<index> <path budget> <session budget> <breaker before> <status after> <charge> <hmac> <continuation id or ->
--          <window number> <ancestors: before:after:status, comma-joined, or - when none changed>'

local FACTS_KEPT = 4096
local PERIODS_KEPT = 2
local UNTOLD_BYTES = 256 * 41 - 1 -- ids of the latest windows, comma-joined
local SLACK_S = 3600 -- how much sooner an ancestor may run out than the session below it, of a day that it outlives tokens

local key = KEYS[1]
local ask, record, ttl = cjson.decode(ARGV[1]), ARGV[2], ARGV[3]
local window, charge, parent_ids = ask.window_id, ask.charge, ask.parent_ids
local continuation, pattern, hmac = ask.continuation_id, ask.pattern, ask.hmac

local caller, present, before, counted = ask.caller_id ~= '' and table.remove(KEYS)
if caller then
  local c = redis.call('HMGET', caller, 'epoch', 'period', 'previous')
  present, before = tonumber(c[2]), tonumber(c[3])
  if not present or c[1] ~= EPOCH or ask.caller_period > present then
    return {'CALLER_BUDGET_UNVERIFIED', 0, 0}
  end
  counted = ask.caller_period == before and before or present -- a window of a period that is over is told of the present one
end

local fields = {'status', 'budget', 'cap', 'top', 'nodes', 'max_windows', 'max_nodes', 'max_fan_out', 'lease', 'unsettled',
  'policy_hash', 'terms', 'dag', 'ancestors', 'sum', 'open', 'epoch', 'untold', 'late', 'spent', 'r:' .. window, 'holds'}
for _, id in ipairs(parent_ids) do
  fields[#fields + 1] = 'r:' .. id
  fields[#fields + 1] = 'k:' .. id
end
local s = redis.call('HMGET', key, unpack(fields))
local status, policy_hash, terms, dag = s[1], s[11], s[12], s[13]
local budget, cap, top, nodes = tonumber(s[2]), tonumber(s[3]), tonumber(s[4]), tonumber(s[5])
local max_windows, max_nodes, open = tonumber(s[6]), tonumber(s[7]), tonumber(s[16])

if not status then
  return {'SESSION_STATE_LOST', 0, 0}
end
if s[17] ~= EPOCH then
  return {'SESSION_STATE_UNVERIFIED', 0, 0}
end
if table.concat(ask.ancestors, ',') ~= s[14] then
  return {'ANCESTORS_MISMATCH', 0, 0}
end
local lost, above, lowest = above_of(2, #KEYS)
if lost then
  return lost
end
local sum = s[15] == '1'
-- Where costs add up, what the sessions above have left is all that there is.
local function held_by(amount, most)
  return sum and math.min(amount, most) or amount
end
if s[21] then
  local was_charge, was_hmac = string.match(s[21], '^%d+ %d+ %d+ %d %d (%d+) (%S+) ')
  if tonumber(was_charge) ~= charge or was_hmac ~= hmac then
    return {'WINDOW_ID_REUSED', 0, 0}
  end
  return {'OK', 1, terms, policy_hash, s[21], dag, caller and caller_told(caller, counted, before, 0) or {},
    held_by(budget, lowest), barrier_in(above) or {}}
end

local function others(text)
  local kept, own = {}, false
  for _, lease in ipairs(leases_of(text)) do
    if lease.id == window then
      own = true
    else
      kept[#kept + 1] = lease
    end
  end
  return kept, own
end
local held, mine_held = others(s[9])
local waiting, mine_waited = others(s[10])
local _, failed = string.gsub(dag, ' %SF', '')
if budget > ask.chain.budget or nodes - failed + #held + #waiting < ask.chain.sealed then
  return {'SESSION_STATE_LOST', 0, 0} -- it was set back: the chain knows of more
end

for i, chain in ipairs(ask.above) do
  local a = redis.call('HMGET', above[i].key, 'nodes', 'dag', 'lease', 'unsettled')
  local _, gone = string.gsub(a[2], ' %SF', '')
  local done = tonumber(a[1]) - gone + #leases_of(a[3]) + #leases_of(a[4])
  if above[i].budget > chain.budget or done < chain.sealed or (chain.ended and above[i].status ~= TERMINATED) then
    return {'SESSION_STATE_LOST', 0, 0}
  end
end

-- The place of the window.
local parents, start, follows, chained = {}, cap, 1, hmac ~= '' and hmac ~= '-'
for i, id in ipairs(parent_ids) do
  local outcome, children = s[2 * i + 21], s[2 * i + 22] or ''
  if not outcome then
    return {'SESSION_STATE_LOST', 0, 0} -- the store lost the windows in between
  end
  local index, path, sealed, pointer, at = outcome_of(outcome)
  if sealed == '-' then
    return {'SESSION_STATE_LOST', 0, 0} -- a failed window was never sealed, so nothing was chained to it
  end
  parents[#parents + 1] = {id = id, index = index, children = children, pointer = pointer}
  start, follows, chained = math.min(start, path), math.max(follows, at + 1), chained and sealed ~= hmac
end
if #parents == 0 and nodes > 0 then
  return {'PARENT_NOT_TIP', 0, 0}
end
if (#parents == 0 and pattern ~= LINEAR) or (#parents > 1 and pattern ~= FAN_IN) then
  return {'DAG_INVARIANT_VIOLATED', 0, 0}
end
local mine = {id = window, ends = 0, pattern = pattern, parents = table.concat(parent_ids, '+')}
if #parents == 0 then
  mine.parents, start = '-', math.min(start, budget)
end
if pattern == LINEAR and #parents == 1 then
  local children = parents[1].children
  if string.find(children, LINEAR) or (string.find(children, SEALED) and not (mine_held or mine_waited)) then
    return {'PARENT_NOT_TIP', 0, 0}
  end
end
local number = ask.window_number
if number ~= follows then
  return {'WINDOW_NUMBER_MISMATCH', follows, number}
end
-- Sealed beside the window that took its place: a part of it has left, so a full session takes it too.
local amounts = held_by_window(s[22])
local beside = pattern == BRANCH and amounts[window]
if number > max_windows and not beside then
  return {'MAX_WINDOWS_EXCEEDED', max_windows, number}
end
local total = nodes + places({held, waiting, {mine}})
if total > max_nodes and not beside then
  return {'MAX_DAG_NODES_EXCEEDED', max_nodes, total}
end
if (pattern == FAN_OUT or pattern == BRANCH) and not (mine_held or mine_waited) then
  local wide = width(pattern, parents[1].id, parents[1].children, {held, waiting})
  if wide > tonumber(s[8]) then
    return {'MAX_FAN_OUT_EXCEEDED', tonumber(s[8]), wide}
  end
end
if not chained then -- SPEC-004 §3.3: every window is chained; the other four hold by the checks above
  return {'DAG_INVARIANT_VIOLATED', 0, 0}
end
local policy, base = ask.policy, ask.policy_base
local moved = policy and policy.hash ~= policy_hash
if moved and base and base ~= policy_hash then
  return {'POLICY_MOVED', 0, 0}
end

-- The charge.
local summing = sum or ask.accumulate
start = math.min(start, ask.ceiling)
if summing then
  start = math.min(start, budget)
end
local path = math.max(0, held_by(start, lowest) - charge)
local session = math.min(budget, path)

-- Leases that still stand: a line takes the place of every other line from its window.
local function standing(leases, mark)
  local kept = {}
  for _, lease in ipairs(leases) do
    if pattern == LINEAR and lease.pattern == LINEAR and lease.parents == mine.parents then
      lease.pattern = VOID
      if mark or amounts[lease.id] then -- one that holds budget still has a window to look at
        kept[#kept + 1] = lease
      end
    else
      kept[#kept + 1] = lease
    end
  end
  return kept
end
held, waiting = standing(held, true), standing(waiting, false)
for _, one in ipairs(parents) do
  if one.pointer ~= '-' and not string.find(one.children, SEALED) then
    open = open - 1
  end
end

local after, last = status, number >= max_windows
if status ~= TERMINATED then
  if breaker(session) == OPEN then
    after = HALTED
  elseif nodes + 1 >= max_nodes or (last and open == 0 and places({held, waiting}) == 0) then
    after = TERMINATED
  end
end
if after ~= ACTIVE or last then
  continuation = '' -- SPEC-004 §11.4: none after the last window
else
  open = open + 1
end

-- The ancestors, from the parent up: none keeps more than the session below it has left (SPEC-012 §5.3).
local below, effects, changed = session, {}, false
for i, a in ipairs(above) do
  local own = sum and charge or (i == 1 and ask.parent_charge or 0)
  local left = math.min(math.max(0, a.budget - own), below)
  local limit = math.min(a.cap, own > 0 and left or below)
  local then_ = a.status
  if a.status ~= TERMINATED and breaker(left) == OPEN then
    then_ = HALTED
  end
  effects[#effects + 1] = int(a.budget) .. ':' .. int(left) .. ':' .. then_
  changed = changed or left ~= a.budget or then_ ~= a.status
  if then_ ~= a.status then
    redis.call('HSET', a.key, 'status', then_, 'budget', int(left), 'cap', int(limit))
  elseif left ~= a.budget then
    redis.call('HSET', a.key, 'budget', int(left), 'cap', int(limit))
  elseif limit ~= a.cap then
    redis.call('HSET', a.key, 'cap', int(limit))
  end
  if redis.call('TTL', a.key) < ttl - SLACK_S then
    redis.call('EXPIRE', a.key, ttl) -- an ancestor outlives the sessions below it
  end
  a.budget, a.status, below = left, then_, left
  lowest = math.min(lowest, left)
end

local index = int(nodes + 1)
local outcome = string.format('%s %d %d %d %s %d %s %s %d %s', index, path, session, breaker(budget), after, charge, hmac,
  continuation ~= '' and continuation or '-', number, changed and table.concat(effects, ',') or '-')
local from = {}
for i, one in ipairs(parents) do
  from[i] = int(one.index)
end
from = table.concat(from, '.')
if from == int(nodes) then
  from = ''
end
dag = dag .. string.sub(window, 9) .. ' ' .. ask.quality_tier .. ask.status .. pattern .. from .. ';'

local set = {'status', after, 'budget', int(session), 'tip', window, 'top', int(math.max(top, number)), 'nodes', index,
  'open', int(open), 'dag', dag, 'lease', text_of(held), 'unsettled', text_of(waiting),
  'r:' .. window, outcome, 'w:' .. window, record}
local function put(field, value)
  set[#set + 1] = field
  set[#set + 1] = value
end
for _, one in ipairs(parents) do
  put('k:' .. one.id, one.children .. pattern)
end
if continuation ~= '' then
  put('c:' .. continuation, window)
end
if changed or after ~= ACTIVE or breaker(budget) ~= breaker(session) or (caller and charge > 0) then
  put('untold', string.sub(s[18] == '' and window or s[18] .. ',' .. window, -UNTOLD_BYTES))
end
local _, holds, mine_hold = held_without(s[22], window)
if mine_hold then
  put('holds', holds)
end
if caller then
  caller_frees(caller, window)
end
if s[19] ~= '' then
  local late = {}
  for id, from_ in string.gmatch(s[19], '([^ ,]+) ([^ ,]+)') do
    if not on(mine, id) then
      late[#late + 1] = id .. ' ' .. from_
    end
  end
  put('late', table.concat(late, ','))
end
if summing then
  put('cap', int(math.min(cap, session)))
end
if moved then
  local old = redis.call('HGET', key, 'policy')
  put('o:' .. policy_hash, old)
  put('policy', policy.text)
  put('policy_hash', policy.hash)
  policy_hash = policy.hash
end
if #ask.facts > 0 then
  local known, all = {}, {}
  local function add(digest)
    if not known[digest] then
      known[digest] = true
      all[#all + 1] = digest
    end
  end
  for digest in string.gmatch(redis.call('HGET', key, 'facts'), '[^,]+') do
    add(digest)
  end
  for _, digest in ipairs(ask.facts) do
    add(digest)
  end
  put('facts', table.concat(all, ',', math.max(1, #all - FACTS_KEPT + 1)))
end
local told = {}
if caller then
  local spent, periods = {[ask.caller_period] = charge}, {ask.caller_period}
  for period, amount in string.gmatch(s[20] or '', '(%d+):(%d+)') do
    period = tonumber(period)
    if not spent[period] then
      periods[#periods + 1] = period
    end
    spent[period] = (spent[period] or 0) + tonumber(amount)
  end
  table.sort(periods)
  local entries = {}
  for i = math.max(1, #periods - PERIODS_KEPT + 1), #periods do
    entries[#entries + 1] = int(periods[i]) .. ':' .. int(spent[periods[i]])
  end
  local text = table.concat(entries, ',')
  put('spent', text)
  caller_counts(caller, string.match(key, '[^:]+$'), text)
  told = caller_told(caller, counted, before, 0)
end
redis.call('HSET', key, unpack(set))
spend_charge(window, ask.spent.tokens, ask.spent.usd)
redis.call('EXPIRE', key, ttl)
return {'OK', 0, terms, policy_hash, outcome, dag, told, held_by(session, lowest), barrier_in(above) or {}}
