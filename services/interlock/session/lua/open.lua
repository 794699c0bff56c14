-- open.lua: take the lease of the next window for the holder of a verified token.
-- The rule is open_window in domain/session/opening.py; a property test holds the two together.
-- KEYS[1] session hash   KEYS[2..] its ancestors, from the parent up to the root; last, with a caller, the caller's budget
-- ARGV[1] window id   ARGV[2] now, ms   ARGV[3] lease, ms   ARGV[4] token: win   ARGV[5] token: ct
-- ARGV[6] token: cid   ARGV[7] pattern, its letter   ARGV[8] token: sb, micros   ARGV[9] token: pol   ARGV[10] ttl, s
-- ARGV[11] 1 for a partial fan-in   ARGV[12] most that the path starts with, micros   ARGV[13], ARGV[14] number and cap of the
-- caller's present period, 0 without a caller   ARGV[15..] continuation ids presented: none or one, several for a fan-in
-- reply   {'OK', terms, policy, policy hash, nodes, dag, facts, path budget, session budget, lease that ran out or '',
--          {parent id, outcome, …}, {window left out, …}, untold, what is told of the caller or {},
--          what the window of that lease holds, 1 where a spending limit stands} · {reason, a, b} with the two values of the reason

local UNSETTLED_KEPT = 16
local PATTERN_NAMES = {L = 'LINEAR', O = 'FAN_OUT', I = 'FAN_IN', B = 'BRANCH', V = 'VOID'}

local POINTERS = 15 -- place of the first one

local number_now, cap_now = tonumber(ARGV[13]), tonumber(ARGV[14])
local caller_key = number_now > 0 and table.remove(KEYS)
local key, window, now = KEYS[1], ARGV[1], tonumber(ARGV[2])
local win, ct, token_cid, pattern, sb = tonumber(ARGV[4]), ARGV[5], ARGV[6], ARGV[7], tonumber(ARGV[8])
local presented = #ARGV - POINTERS + 1

local s = redis.call('HMGET', key, 'status', 'budget', 'cap', 'tip', 'top', 'nodes', 'max_windows', 'max_nodes',
  'max_fan_out', 'lease', 'unsettled', 'policy_hash', 'terms', 'policy', 'dag', 'facts', 'epoch', 'untold', 'late', 'ancestors',
  'sum', 'holds', 'limits')
local status, tip, dag = s[1], s[4], s[15]
local budget, cap, top, nodes = tonumber(s[2]), tonumber(s[3]), tonumber(s[5]), tonumber(s[6])
local max_windows, max_nodes, max_fan_out = tonumber(s[7]), tonumber(s[8]), tonumber(s[9])

if status and s[17] ~= EPOCH then
  return {'SESSION_STATE_UNVERIFIED', 0, 0}
end
-- A signed token is newer than what is stored: the store lost writes.
if not status or win > top then
  return {'SESSION_STATE_LOST', 0, 0}
end
-- Leases of others that are held, and those that ran out: their windows may have been sealed.
local held, waited = leases_of(s[10]), leases_of(s[11])
local live, waiting, leased, amounts = {}, {}, {[window] = true}, held_by_window(s[22])
for _, lease in ipairs(held) do
  if lease.id ~= window then
    leased[lease.id], lease.holds = true, amounts[lease.id]
    if lease.ends > now then
      live[#live + 1] = lease
    elseif lease.pattern ~= VOID or lease.holds then
      waiting[#waiting + 1] = lease
    end
  end
end
for _, lease in ipairs(waited) do
  if lease.id ~= window then
    leased[lease.id], lease.holds = true, amounts[lease.id]
    waiting[#waiting + 1] = lease
  end
end
for id, amount in string.gmatch(s[22] or '', '([^ ,]+) (%d+) %d+') do
  if not leased[id] then -- older code dropped the lease where its place was taken
    waiting[#waiting + 1] = {id = id, ends = 0, pattern = VOID, parents = '-', holds = tonumber(amount)}
  end
end
local report, lapsed_hold = '', 0
if #waiting > 0 then
  local place = 1
  for i = #waiting, 1, -1 do
    place = waiting[i].holds and i or place
  end
  -- Each opening names another one, so all of them are looked at in turn; one that holds budget comes first, whether or not its
  -- place was taken meanwhile: nothing else closes its hold.
  local first = table.remove(waiting, place)
  report = text_of({first})
  waiting[#waiting + 1] = first
  lapsed_hold = first.holds or 0
  local lines, kept = 0, {}
  for _, lease in ipairs(waiting) do
    lines = lines + (lease.pattern == LINEAR and 1 or 0)
  end
  for _, lease in ipairs(waiting) do
    if lease.pattern == LINEAR and lines > UNSETTLED_KEPT and not lease.holds then
      lines = lines - 1
    else
      kept[#kept + 1] = lease
    end
  end
  waiting = kept
end

-- Nothing opens a window of a session that is full, or whose budget is spent or held: whoever is refused is told what ran out there, and
-- has it settled.
local left_open, holding = {}, {}
for _, lease in ipairs(waiting) do
  local entry = lease.id .. ' ' .. PATTERN_NAMES[lease.pattern] .. ' ' .. lease.parents
  left_open[#left_open + 1] = entry
  holding[#holding + 1] = lease.holds and entry
end
left_open, holding = table.concat(left_open, ','), table.concat(holding, ',')

if math.min(budget, sb) <= OPEN_AT then
  return {'BUDGET_DEPLETED', math.min(budget, sb), holding}
end
local elsewhere = held_without(s[22], window)
if math.min(budget, sb) - elsewhere <= OPEN_AT then
  return {'BUDGET_HELD', 0, holding}
end
local ancestors = {}
for i = 2, #KEYS do
  ancestors[i - 1] = string.match(KEYS[i], '[^:]+$')
end
if table.concat(ancestors, ',') ~= s[20] then
  return {'ANCESTORS_MISMATCH', 0, 0}
end
local lost, above, lowest = above_of(2, #KEYS)
if lost then
  return lost
end
local barrier = barrier_in(above)
if barrier then
  return barrier
end

local limited = string.find(s[23] or '', '%d') and 1 or 0
for _, a in ipairs(above) do
  limited = string.find(a.limits or '', '%d') and 1 or limited
end

-- {id, outcome, children, index, path, hmac, continuation, number}
local function windows_of(ids)
  local fields, found = {}, {}
  for _, id in ipairs(ids) do
    fields[#fields + 1] = 'r:' .. id
    fields[#fields + 1] = 'k:' .. id
  end
  local values = redis.call('HMGET', key, unpack(fields))
  for i, id in ipairs(ids) do
    local one = {id = id, outcome = values[2 * i - 1], children = values[2 * i] or ''}
    one.index, one.path, one.hmac, one.continuation, one.number = outcome_of(one.outcome)
    found[i] = one
  end
  return found
end

local function unknown(cid)
  return {cid == token_cid and 'SESSION_STATE_LOST' or 'CONTINUATION_NOT_FOUND', 0, 0}
end

-- The windows that a fan-in merges and those that it leaves out, or a refusal (SPEC-004 §7, §16.3).
local function fan_in()
  if presented > max_fan_out then
    return nil, {'MAX_FAN_OUT_EXCEEDED', max_fan_out, presented}
  end
  if presented < (ARGV[11] == '1' and 1 or 2) then
    return nil, {'FAN_IN_TOO_FEW', presented, 0}
  end
  local fields, seen, twice = {}, {}, false
  for i = POINTERS, #ARGV do
    fields[#fields + 1] = 'c:' .. ARGV[i]
    twice = twice or seen[ARGV[i]]
    seen[ARGV[i]] = true
  end
  local ids = redis.call('HMGET', key, unpack(fields))
  for i = 1, presented do
    if not ids[i] then
      return nil, unknown(ARGV[POINTERS - 1 + i])
    end
  end
  if twice then
    return nil, {'FAN_IN_DUPLICATE', 0, 0}
  end
  local given, own = windows_of(ids), nil
  for _, one in ipairs(given) do
    if one.continuation == token_cid then
      own = one
    end
  end
  if not own or own.number ~= win or own.hmac ~= ct then
    return nil, {'CONTINUATION_MISMATCH', win, own and own.number or 0}
  end

  local steps = {}
  for id, state, how, from in string.gmatch(dag, '(%x+) %S(%u)(%u)([%d.]*);') do
    local at, parents, number = #steps + 1, {}, 0
    for place in string.gmatch(from, '%d+') do
      parents[#parents + 1] = tonumber(place)
    end
    if #parents == 0 and at > 1 then
      parents[1] = at - 1
    end
    for _, place in ipairs(parents) do
      number = math.max(number, steps[place].number)
    end
    steps[at] = {id = 'crp_win_' .. id, state = state, how = how, parents = parents, number = number + 1}
  end
  local function mark(places_left, marked)
    while #places_left > 0 do
      local at = table.remove(places_left)
      if not marked[at] then
        marked[at] = true
        for _, place in ipairs(steps[at].parents) do
          places_left[#places_left + 1] = place
        end
      end
    end
    return marked
  end
  local above, kept, missing = {}, {}, {}
  for i, one in ipairs(given) do
    above[i] = mark({unpack(steps[one.index].parents)}, {})
  end
  for _, one in ipairs(given) do
    for _, marked in ipairs(above) do
      if marked[one.index] then
        return nil, {'FAN_IN_RELATED', 0, 0}
      end
    end
  end
  for _, one in ipairs(given) do
    if string.find(one.children, SEALED) then
      return nil, {'TOKEN_REPLAYED', win, top}
    end
    if steps[one.index].state == 'C' then
      kept[#kept + 1] = one
    else
      missing[one.id] = true
    end
  end
  local nearest
  for at in pairs(above[1]) do
    local common = true
    for _, marked in ipairs(above) do
      common = common and marked[at]
    end
    if common and (not nearest or steps[at].number > steps[nearest].number
        or (steps[at].number == steps[nearest].number and at > nearest)) then
      nearest = at
    end
  end
  if nearest then
    local from = {}
    for i, one in ipairs(kept) do
      from[i] = one.index
    end
    local covered = mark(from, {})
    for at, step in ipairs(steps) do
      if step.how == FAN_OUT and step.parents[1] == nearest and not covered[at] then
        missing[step.id] = true
      end
    end
    for _, leases in ipairs({held, waited}) do
      for _, lease in ipairs(leases) do
        if lease.id ~= window and lease.pattern == FAN_OUT and lease.parents == steps[nearest].id then
          missing[lease.id] = true
        end
      end
    end
  end
  local left_out = {}
  for id in pairs(missing) do
    left_out[#left_out + 1] = id
  end
  table.sort(left_out)
  if #kept == 0 or (#left_out > 0 and ARGV[11] ~= '1') then
    return nil, {'FAN_IN_INCOMPLETE', table.concat(left_out, ','), 0}
  end
  return kept, left_out
end

-- The place was taken by a line that a restore settled: the caller that asks for it again never got its answer.
local function replayed(target)
  if pattern == LINEAR then
    for id, parents in string.gmatch(s[19], '([^ ,]+) ([^ ,]+)') do
      if parents == target then
        return {'WINDOW_SETTLED_LATE', id, 0}
      end
    end
  end
  return {'TOKEN_REPLAYED', win, top}
end

-- The one window that is continued, none for the root, or a refusal.
local function parent()
  local cid, target, number, hmac, found = ARGV[POINTERS] or token_cid, '', 0, '', {}
  if cid ~= '' then
    target = redis.call('HGET', key, 'c:' .. cid)
    if not target then
      return nil, unknown(cid)
    end
  elseif win > 0 then
    target = tip -- the token of a window that was the last one
  end
  if target ~= '' then
    found = windows_of({target})
    number, hmac = found[1].number, found[1].hmac
  end
  if number ~= win or hmac ~= ct then
    return nil, {'CONTINUATION_MISMATCH', win, number}
  end
  if target == '' then
    if nodes > 0 then
      return nil, replayed('-')
    end
    if pattern ~= LINEAR then
      return nil, {'PATTERN_NEEDS_PARENT', 0, 0}
    end
    return {}, {}
  end
  local children = found[1].children
  if pattern == BRANCH then
    if not string.find(children, SEALED) then
      return nil, {'NOTHING_TO_BRANCH_FROM', 0, 0}
    end
  elseif string.find(children, pattern == FAN_OUT and '[LIB]' or SEALED) then
    return nil, replayed(target)
  end
  return found, {}
end

local parents, left_out
if pattern == FAN_IN then
  parents, left_out = fan_in()
else
  parents, left_out = parent()
end
if not parents then
  return left_out
end
if ARGV[9] ~= s[12] then
  return {'POLICY_HASH_MISMATCH', 0, 0}
end

table.sort(parents, function(a, b) return a.id < b.id end)
local ids, told, number, path = {}, {}, 1, cap
for i, one in ipairs(parents) do
  ids[i] = one.id
  told[2 * i - 1], told[2 * i] = one.id, one.outcome
  number, path = math.max(number, one.number + 1), math.min(path, one.path)
end
if #parents == 0 then
  path = math.min(path, budget)
end
local mine = {id = window, ends = now + tonumber(ARGV[3]), pattern = pattern,
  parents = #ids > 0 and table.concat(ids, '+') or '-'}

local function full(reason, most, attempted)
  return {reason, most, int(attempted) .. (left_open ~= '' and ' ' .. left_open or '')}
end

if number > max_windows then
  return full('MAX_WINDOWS_EXCEEDED', max_windows, number)
end
local total = nodes + places({live, waiting, {mine}})
if total > max_nodes then
  return full('MAX_DAG_NODES_EXCEEDED', max_nodes, total)
end
if status ~= ACTIVE then
  return {'SESSION_TERMINATED', 0, 0}
end
if pattern == FAN_OUT or pattern == BRANCH then
  local wide = width(pattern, ids[1], parents[1].children, {live, waiting})
  if wide > max_fan_out then
    return full('MAX_FAN_OUT_EXCEEDED', max_fan_out, wide)
  end
end
if pattern ~= BRANCH then
  local wait = 0
  for _, lease in ipairs(live) do
    if lease.pattern ~= VOID and not (pattern == FAN_OUT and lease.pattern == FAN_OUT) then
      local sibling = lease.parents == mine.parents
      for _, id in ipairs(ids) do
        sibling = sibling or on(lease, id)
      end
      if sibling then
        wait = math.max(wait, lease.ends - now)
      end
    end
  end
  if wait > 0 then
    return {'WINDOW_IN_FLIGHT', wait, 0}
  end
end

local caller = {}
if caller_key then
  caller = caller_entered(caller_key, number_now, cap_now)
  if not caller then
    return {'CALLER_BUDGET_UNVERIFIED', 0, 0}
  end
  if caller[2] - caller[3] <= OPEN_AT then
    return {'CALLER_BUDGET_DEPLETED', math.max(0, caller[2] - caller[3]), caller[1]}
  end
  if caller[2] - caller[3] - caller[6] <= OPEN_AT then
    return {'BUDGET_HELD', 0, holding}
  end
  if caller[5] == 1 then
    caller_begins(caller_key, caller[1], caller[4], caller[2], ARGV[10])
  end
end

live[#live + 1] = mine
redis.call('HSET', key, 'lease', text_of(live), 'unsettled', text_of(waiting))
redis.call('EXPIRE', key, ARGV[10])
path = math.min(path, tonumber(ARGV[12]))
if sb < budget then
  path = math.min(path, sb) -- the token vouches for a charge that the store lost
end
if s[21] == '1' then
  path = math.min(path, lowest)
end
return {'OK', s[13], s[14], s[12], nodes, dag, s[16], path, math.min(budget - elsewhere, sb, path), report, told, left_out,
  s[18], caller, lapsed_hold, limited}
