-- fail.lua: end the lease of a window that will never be sealed, and leave a FAILED node behind.
-- The rule is fail_window in domain/session/rule.py.
-- KEYS[1] session hash
-- ARGV[1] window id   ARGV[2] reason, which goes into the record   ARGV[3] ttl, s   of one whose lease is gone: ARGV[4] its
-- pattern, its letter   ARGV[5..] parent ids, sorted
-- reply   {'OK', 1 now | 0 not or before} · {'SESSION_NOT_FOUND', 0, 0} · {'WINDOW_SETTLED', 0, 0}
--          · {'SESSION_STATE_LOST' | 'SESSION_STATE_UNVERIFIED', 0, 0}

local key, window = KEYS[1], ARGV[1]
local s = redis.call('HMGET', key, 'status', 'budget', 'cap', 'top', 'nodes', 'max_nodes', 'lease', 'unsettled', 'dag',
  'r:' .. window, 'epoch')
if not s[1] then
  return {'SESSION_NOT_FOUND', 0, 0}
end
if s[11] ~= EPOCH then
  return {'SESSION_STATE_UNVERIFIED', 0, 0}
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
local leased = own ~= nil
if not leased then
  if #ARGV < 5 then
    return {'OK', 0}
  end
  own = {pattern = ARGV[4], parents = table.concat(ARGV, '+', 5)}
end
local stands = own.pattern ~= VOID and own.parents ~= '-'
local places_of, nodes = {}, tonumber(s[5])
for id in string.gmatch(stands and own.parents or '', '[^+]+') do
  local p = redis.call('HMGET', key, 'r:' .. id, 'k:' .. id)
  if not p[1] then
    return {'SESSION_STATE_LOST', 0, 0}
  end
  local index, left, hmac, _, at = outcome_of(p[1])
  if hmac == '-' then
    return {'SESSION_STATE_LOST', 0, 0}
  end
  places_of[#places_of + 1] = {id = id, children = p[2] or '', index = index, left = left, at = at}
end
if not leased and nodes + places({leases_of(s[7]), leases_of(s[8])}) >= tonumber(s[6]) then
  return {'OK', 0}
end
redis.call('EXPIRE', key, ARGV[3])
redis.call('HSET', key, 'lease', held, 'unsettled', waiting)
if not stands then
  return {'OK', 0}
end

local path, number, from, ids = tonumber(s[3]), 1, {}, {}
local letter = own.pattern == FAN_OUT and 'f' or 'x'
local set = {}
for _, one in ipairs(places_of) do
  path, number = math.min(path, one.left), math.max(number, one.at + 1)
  from[#from + 1] = int(one.index)
  ids[#ids + 1] = '"' .. one.id .. '"'
  set[#set + 1] = 'k:' .. one.id
  set[#set + 1] = one.children .. letter
end
local status = s[1]
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
