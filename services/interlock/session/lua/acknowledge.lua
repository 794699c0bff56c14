-- acknowledge.lua: note that what windows moved is on record in the audit log.
-- The rule is acknowledge in domain/session/rule.py.
-- KEYS[1] session hash
-- ARGV[1..] window ids
-- reply   {'OK', how many were waiting for it} · {'SESSION_NOT_FOUND' | 'SESSION_STATE_UNVERIFIED', 0, 0}

local s = redis.call('HMGET', KEYS[1], 'untold', 'epoch')
if s[2] and s[2] ~= EPOCH or not s[1] and redis.call('EXISTS', KEYS[1]) == 1 then
  return {'SESSION_STATE_UNVERIFIED', 0, 0}
end
if not s[1] then
  return {'SESSION_NOT_FOUND', 0, 0}
end
local told, left, count = {}, {}, 0
for _, window in ipairs(ARGV) do
  told[window] = true
end
for window in string.gmatch(s[1], '[^,]+') do
  if told[window] then
    count = count + 1
  else
    left[#left + 1] = window
  end
end
if count > 0 then
  redis.call('HSET', KEYS[1], 'untold', table.concat(left, ','))
end
return {'OK', count}
