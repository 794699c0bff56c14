-- commit.lua: charge a sealed window and advance the session, once per window id, in one step.
-- The rule is commit_window in domain/session_rule.py; a property test holds the two together.
-- KEYS[1] session hash
-- ARGV[1] window id   ARGV[2] parent id, or '' for the root   ARGV[3] window number   ARGV[4] charge, micros (< 2^53)
-- ARGV[5] ceiling, micros   ARGV[6] continuation id to issue   ARGV[7] quality tier   ARGV[8] window hmac
-- ARGV[9] record, JSON that only the service reads   ARGV[10] policy text   ARGV[11] policy hash, '' keeps the policy
-- ARGV[12] ttl, s
-- reply   {'OK', 0 now | 1 before, terms, policy hash, outcome, {'<window id> <tier>', ...}} · {reason, a, b}
-- outcome '<index> <path budget> <session budget> <breaker before> <status after> <charge> <hmac> <continuation id or ->'

local OPEN_AT, HALF_OPEN_AT = 100000, 500000 -- SPEC-012 §5.1
local CLOSED, HALF_OPEN, OPEN = 1, 2, 3
local ACTIVE, HALTED, TERMINATED = '1', '2', '3'

local key = KEYS[1]
local window, parent, number = ARGV[1], ARGV[2], tonumber(ARGV[3])
local charge, ceiling, continuation, hmac = tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6], ARGV[8]

local function breaker(budget)
  if budget <= OPEN_AT then
    return OPEN
  end
  return budget <= HALF_OPEN_AT and HALF_OPEN or CLOSED
end

local function entries(count)
  local found = {}
  for first = 1, count, 1000 do -- unpack has a limit
    local fields = {}
    for i = first, math.min(first + 999, count) do
      fields[#fields + 1] = 'n:' .. string.format('%d', i)
    end
    for _, entry in ipairs(redis.call('HMGET', key, unpack(fields))) do
      found[#found + 1] = entry
    end
  end
  return found
end

local s = redis.call('HMGET', key, 'status', 'budget', 'tip', 'tip_number', 'tip_budget', 'nodes', 'max_windows',
  'max_nodes', 'lease', 'policy_hash', 'terms', 'r:' .. window, 'tip_hmac')
local status, tip, policy_hash, terms, settled = s[1], s[3], s[10], s[11], s[12]
local budget, tip_number, tip_budget, nodes = tonumber(s[2]), tonumber(s[4]), tonumber(s[5]), tonumber(s[6])
local max_windows, max_nodes = tonumber(s[7]), tonumber(s[8])

if not status then
  return {'SESSION_STATE_LOST', 0, 0}
end
if settled then
  local index, was_charge, was_hmac = string.match(settled, '^(%d+) %d+ %d+ %d %d (%d+) (%S+) %S+$')
  if tonumber(was_charge) ~= charge or was_hmac ~= hmac then
    return {'WINDOW_ID_REUSED', 0, 0}
  end
  return {'OK', 1, terms, policy_hash, settled, entries(tonumber(index))}
end
if parent ~= tip then
  -- A parent that is not there yet: the store lost the windows in between.
  return {number > tip_number + 1 and 'SESSION_STATE_LOST' or 'PARENT_NOT_TIP', 0, 0}
end
if number ~= tip_number + 1 then
  return {'WINDOW_NUMBER_MISMATCH', tip_number + 1, number}
end
if number > max_windows then
  return {'MAX_WINDOWS_EXCEEDED', max_windows, number}
end
if nodes + 1 > max_nodes then
  return {'MAX_DAG_NODES_EXCEEDED', max_nodes, nodes + 1}
end
if hmac == '' or hmac == s[13] then -- SPEC-004 §3.3: every window is chained; the other four hold by the checks above
  return {'DAG_INVARIANT_VIOLATED', 0, 0}
end

local path = math.max(0, math.min(tip_budget, ceiling) - charge)
local session = math.min(budget, path)
local after = status
if status ~= TERMINATED then
  if breaker(session) == OPEN then
    after = HALTED
  elseif number == max_windows or nodes + 1 == max_nodes then
    after = TERMINATED
  end
end
if after ~= ACTIVE then
  continuation = '' -- SPEC-004 §11.4: none after the last window
end

local index = string.format('%d', nodes + 1)
local spelled = string.format('%d', number)
local outcome = string.format('%s %d %d %d %s %d %s %s', index, path, session, breaker(budget), after, charge, hmac,
  continuation ~= '' and continuation or '-')
redis.call('HSET', key, 'status', after, 'budget', string.format('%d', session),
  'tip', window, 'tip_number', spelled, 'tip_hmac', hmac, 'tip_budget', string.format('%d', path), 'nodes', index,
  'unsettled', '', -- only one child of a tip can be sealed, and this is it
  'r:' .. window, outcome, 'w:' .. window, ARGV[9], 'n:' .. index, window .. ' ' .. ARGV[7])
if continuation ~= '' then
  redis.call('HSET', key, 'c:' .. continuation, window .. ' ' .. spelled .. ' ' .. hmac)
end
if s[9] == window then
  redis.call('HSET', key, 'lease', '', 'lease_until', '0')
end
if ARGV[11] ~= '' then
  redis.call('HSET', key, 'policy', ARGV[10], 'policy_hash', ARGV[11])
  policy_hash = ARGV[11]
end
redis.call('EXPIRE', key, ARGV[12])
return {'OK', 0, terms, policy_hash, outcome, entries(nodes + 1)}
