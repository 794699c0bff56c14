-- open.lua: take the lease of the next window for the holder of a verified token.
-- The rule is open_window in domain/session_rule.py; a property test holds the two together.
-- KEYS[1] session hash
-- ARGV[1] window id   ARGV[2] now, ms   ARGV[3] lease, ms   ARGV[4] token: win   ARGV[5] token: ct
-- ARGV[6] token: cid   ARGV[7] continuation id presented, or ''   ARGV[8] token: sb, micros
-- ARGV[9] token: pol   ARGV[10] ttl, s
-- reply   {'OK', terms, policy, policy hash, parent id, parent number, parent hmac, path budget, session budget,
--          unsettled window id, {'<window id> <tier>', ...}} · {reason, a, b} with the two figures of the reason

local OPEN_AT = 100000 -- SPEC-012 §5.1: the breaker is open at 0.10 and below
local UNSETTLED_KEPT = 16

local key = KEYS[1]
local window, now, lease_ms = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local win, ct, token_cid, cid, sb = tonumber(ARGV[4]), ARGV[5], ARGV[6], ARGV[7], tonumber(ARGV[8])

local s = redis.call('HMGET', key, 'status', 'budget', 'tip', 'tip_number', 'tip_hmac', 'tip_budget', 'nodes',
  'max_windows', 'max_nodes', 'lease', 'lease_until', 'unsettled', 'policy_hash', 'terms', 'policy')
local status, tip, tip_hmac, lease, unsettled = s[1], s[3], s[5], s[10], s[12]
local budget, tip_number, tip_budget, nodes = tonumber(s[2]), tonumber(s[4]), tonumber(s[6]), tonumber(s[7])
local max_windows, max_nodes, lease_until = tonumber(s[8]), tonumber(s[9]), tonumber(s[11])

-- A signed token is newer than what is stored: the store lost writes.
if not status or win > tip_number then
  return {'SESSION_STATE_LOST', 0, 0}
end
if math.min(budget, sb) <= OPEN_AT then
  return {'BUDGET_DEPLETED', math.min(budget, sb), 0}
end

-- The window that the continuation points to. A token without one is of a new session or of a last window.
local target, number, hmac = '', 0, ''
if win > 0 then
  target, number, hmac = tip, tip_number, tip_hmac
end
if cid == '' then
  cid = token_cid
end
if cid ~= '' then
  local found = redis.call('HGET', key, 'c:' .. cid)
  if not found then
    return {cid == token_cid and 'SESSION_STATE_LOST' or 'CONTINUATION_NOT_FOUND', 0, 0}
  end
  target, number, hmac = string.match(found, '^(%S+) (%d+) (%S+)$')
  number = tonumber(number)
end
if number ~= win or hmac ~= ct then
  return {'CONTINUATION_MISMATCH', win, number}
end
if target ~= tip then
  return {'TOKEN_REPLAYED', win, tip_number}
end
if ARGV[9] ~= s[13] then
  return {'POLICY_HASH_MISMATCH', 0, 0}
end
if tip_number + 1 > max_windows then
  return {'MAX_WINDOWS_EXCEEDED', max_windows, tip_number + 1}
end
if nodes + 1 > max_nodes then
  return {'MAX_DAG_NODES_EXCEEDED', max_nodes, nodes + 1}
end
if status ~= '1' then
  return {'SESSION_TERMINATED', 0, 0}
end

local report = ''
if lease ~= '' and lease ~= window then
  if lease_until > now then
    return {'WINDOW_IN_FLIGHT', lease_until - now, 0}
  end
  -- The holder may have sealed its window before it went away; it stays listed until the tip moves.
  report = lease
end

local waiting = {}
for id in string.gmatch(unsettled, '[^,]+') do
  waiting[#waiting + 1] = id
end
if report == '' and #waiting > 0 then
  report = table.remove(waiting, 1) -- each opening names another one, so all of them are looked at in turn
end
if report ~= '' then
  waiting[#waiting + 1] = report
end
while #waiting > UNSETTLED_KEPT do
  table.remove(waiting, 1)
end

redis.call('HSET', key, 'lease', window, 'lease_until', string.format('%d', now + lease_ms),
  'unsettled', table.concat(waiting, ','))
redis.call('EXPIRE', key, ARGV[10])

local entries = {}
for first = 1, nodes, 1000 do -- unpack has a limit
  local fields = {}
  for i = first, math.min(first + 999, nodes) do
    fields[#fields + 1] = 'n:' .. string.format('%d', i)
  end
  for _, entry in ipairs(redis.call('HMGET', key, unpack(fields))) do
    entries[#entries + 1] = entry
  end
end
local path = math.min(tip_budget, sb)
return {'OK', s[14], s[15], s[13], tip, tip_number, tip_hmac, path, math.min(budget, path), report, entries}
