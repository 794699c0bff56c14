-- fail.lua: end the lease of a window that will never be sealed, and leave a FAILED node behind.
-- The rule is fail_window in domain/session_rule.py.
-- KEYS[1] session hash
-- ARGV[1] window id   ARGV[2] reason, which goes into the record   ARGV[3] ttl, s
-- reply   {'OK', 1 now | 0 not or before} · {'SESSION_NOT_FOUND', 0, 0} · {'WINDOW_SETTLED', 0, 0}

local key, window = KEYS[1], ARGV[1]
local s = redis.call('HMGET', key, 'status', 'budget', 'cap', 'top', 'nodes', 'max_nodes', 'lease', 'unsettled', 'dag',
  'r:' .. window)
if not s[1] then
  return {'SESSION_NOT_FOUND', 0, 0}
end
if s[10] then
  local _, _, hmac = outcome_of(s[10])
  if hmac == '-' then
    return {'OK', 0}
  end
  return {'WINDOW_SETTLED', 0, 0}
end

local own
local function without(text)
  local kept = {}
  for _, lease in ipairs(leases_of(text)) do
    if lease.id == window then
      own = lease
    else
      kept[#kept + 1] = lease
    end
  end
  return text_of(kept)
end
local held, waiting = without(s[7]), without(s[8])
if not own then
  return {'OK', 0}
end
redis.call('EXPIRE', key, ARGV[3])
redis.call('HSET', key, 'lease', held, 'unsettled', waiting)
if own.pattern == VOID or own.parents == '-' then
  return {'OK', 0}
end

local path, number, from, ids = tonumber(s[3]), 1, {}, {}
local letter = own.pattern == FAN_OUT and 'f' or 'x'
local set = {}
for id in string.gmatch(own.parents, '[^+]+') do
  local p = redis.call('HMGET', key, 'r:' .. id, 'k:' .. id)
  local index, left, _, _, at = outcome_of(p[1])
  path, number = math.min(path, left), math.max(number, at + 1)
  from[#from + 1] = int(index)
  ids[#ids + 1] = '"' .. id .. '"'
  set[#set + 1] = 'k:' .. id
  set[#set + 1] = (p[2] or '') .. letter
end
local status, nodes = s[1], tonumber(s[5])
if status == ACTIVE and nodes + 1 == tonumber(s[6]) then
  status = TERMINATED
end
local index = int(nodes + 1)
from = table.concat(from, '.')
if from == s[5] then
  from = ''
end
local outcome = string.format('%s %d %s %d %s 0 - - %d -', index, path, s[2], breaker(tonumber(s[2])), status, number)
local record = '{"number":' .. int(number) .. ',"parents":[' .. table.concat(ids, ',') .. '],"failure":"' .. ARGV[2] .. '"}'
redis.call('HSET', key, 'status', status, 'top', int(math.max(tonumber(s[4]), number)), 'nodes', index,
  'dag', s[9] .. string.sub(window, 9) .. ' -F' .. own.pattern .. from .. ';', 'r:' .. window, outcome,
  'w:' .. window, record, unpack(set))
return {'OK', 1}
