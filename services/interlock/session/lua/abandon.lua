-- abandon.lua: give the lease of a window back that was never sealed. Nothing is charged.
-- KEYS[1] session hash   KEYS[2] the budget of its caller, where a hold of the window is in it too
-- ARGV[1] window id   ARGV[2] ttl, s
-- reply   {'OK', 1} released · {'OK', 0} the window had none · {'SESSION_NOT_FOUND', 0, 0}
--          · {'SESSION_STATE_UNVERIFIED', 0, 0}

local s = redis.call('HMGET', KEYS[1], 'lease', 'unsettled', 'epoch', 'holds')
if not s[1] then
  return {'SESSION_NOT_FOUND', 0, 0}
end
if s[3] ~= EPOCH then
  return {'SESSION_STATE_UNVERIFIED', 0, 0}
end
local found = 0
local function without(text)
  local kept = {}
  for _, lease in ipairs(leases_of(text)) do
    if lease.id == ARGV[1] then
      found = 1
    else
      kept[#kept + 1] = lease
    end
  end
  return text_of(kept)
end
local held, waiting = without(s[1]), without(s[2])
local _, holds, own = held_without(s[4], ARGV[1])
if own then
  redis.call('HSET', KEYS[1], 'holds', holds)
end
if KEYS[2] then
  caller_frees(KEYS[2], ARGV[1])
end
if found == 1 then
  redis.call('HSET', KEYS[1], 'lease', held, 'unsettled', waiting)
  redis.call('EXPIRE', KEYS[1], ARGV[2])
end
return {'OK', found}
