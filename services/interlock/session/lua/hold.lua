-- hold.lua: set aside the most that a window may cost, before a part of its answer is released.
-- The rule is hold_window in domain/session/holding.py; a property test holds the two together.
-- KEYS[1] session hash   KEYS[2] the budget of its caller, where one stands above it
-- ARGV[1] window id   ARGV[2] amount, micros   ARGV[3] what the window started with, micros   ARGV[4] ttl, s
-- ARGV[5] period of the caller in which it was opened, 0 without one
-- reply   {'OK', amount} · {reason, a, b} with the two values of the reason

local key, caller, window, amount = KEYS[1], KEYS[2], ARGV[1], tonumber(ARGV[2])
local s = redis.call('HMGET', key, 'budget', 'lease', 'ancestors', 'sum', 'holds', 'epoch', 'r:' .. window)
if not s[1] then
  return {'SESSION_STATE_LOST', 0, 0}
end
if s[6] ~= EPOCH then
  return {'SESSION_STATE_UNVERIFIED', 0, 0}
end
local period, told = tonumber(ARGV[5])
if caller then
  local now = caller_entered(caller, 0, 0)
  if not now then
    return {'CALLER_BUDGET_UNVERIFIED', 0, 0}
  end
  told = period == now[4] and caller_told(caller, period, 0, 0) or now
end
local sum, others, own = held_without(s[5], window)
if own and own.amount == amount and own.period == period then
  return {'OK', amount}
end
local pattern
for _, lease in ipairs(leases_of(s[2])) do
  if lease.id == window then
    pattern = lease.pattern
  end
end
if not pattern or pattern == VOID or s[7] then
  return {'LEASE_LOST', 0, 0}
end
if own or pattern ~= LINEAR or s[3] ~= '' or s[4] == '1' then
  return {'HOLD_NOT_POSSIBLE', 0, 0}
end
if math.min(tonumber(s[1]), tonumber(ARGV[3])) - sum - amount <= OPEN_AT then
  return {'HOLD_NOT_COVERED', 0, 0}
end
if caller then
  if math.max(0, told[2] - told[3]) - told[6] - amount <= OPEN_AT then
    return {'HOLD_NOT_COVERED', 0, 0}
  end
  caller_holds(caller, window, amount, period)
end
local mine = window .. ' ' .. int(amount) .. ' ' .. int(period)
redis.call('HSET', key, 'holds', others == '' and mine or others .. ',' .. mine)
redis.call('EXPIRE', key, ARGV[4])
return {'OK', amount}
