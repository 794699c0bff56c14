-- restore.lua: write a session as it was rebuilt, or mark it as verified, unless it changed since it was read.
-- What is written is merged in domain/session/restore.py: never a higher budget than what is stored.
-- KEYS[1] session hash   KEYS[2] the budget of its caller, where one stands above it
-- ARGV[1] SHA-1 of what was read of the fields below, '' when there was nothing   ARGV[2] ttl, s
-- ARGV[3] what it has spent of its caller's budget, behind ; its holds, and behind ; its settled windows
-- ARGV[4..] fields and values of the whole session; none: what is stored is all there
-- reply   {'OK', 1 written | 0 it changed meanwhile}

local SEEN = {'status', 'budget', 'cap', 'top', 'nodes', 'dag', 'lease', 'unsettled', 'policy_hash', 'kids', 'facts', 'untold',
  'late', 'epoch', 'holds', 'limits', 'paid', 'asked'}
local AT_A_TIME = 500

local key, digest = KEYS[1], ''
if redis.call('EXISTS', key) == 1 then
  local s = redis.call('HMGET', key, unpack(SEEN))
  for i = 1, #SEEN do
    s[i] = s[i] or ''
  end
  digest = redis.sha1hex(table.concat(s, '\n'))
end
if digest ~= ARGV[1] then
  return {'OK', 0}
end
if #ARGV > 3 then
  redis.call('HSET', key, 'epoch', '') -- first, for a full store refuses a script's first write only if it may need room
  redis.call('DEL', key)
  for first = 4, #ARGV, 2 * AT_A_TIME do
    redis.call('HSET', key, unpack(ARGV, first, math.min(first + 2 * AT_A_TIME - 1, #ARGV)))
  end
  redis.call('EXPIRE', key, ARGV[2])
end
redis.call('HSET', key, 'epoch', EPOCH)
if KEYS[2] then
  local spent, holds, settled = string.match(ARGV[3], '^([^;]*);([^;]*);(.*)$')
  caller_counts(KEYS[2], string.match(key, '[^:]+$'), spent) -- of periods that it does not know it takes nothing
  for window, amount, period in string.gmatch(holds, '([^ ,]+) (%d+) (%d+)') do
    caller_holds(KEYS[2], window, tonumber(amount), tonumber(period))
  end
  if caller_has_holds(KEYS[2]) then -- one that was set back may hold something for a window that was settled meanwhile
    for window in string.gmatch(settled, '[^,]+') do
      caller_frees(KEYS[2], window)
    end
  end
end
return {'OK', 1}
