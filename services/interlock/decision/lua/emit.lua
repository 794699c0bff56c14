-- emit.lua: put signals on the bus of an experiment; a full one lets the oldest go of whoever holds the most.
-- KEYS[1] stream   KEYS[2] hash: epoch, last, dropped   KEYS[3] hash: id → number   KEYS[4] sorted set: share → held
-- KEYS[5] sorted set: share:number:id, in the order of its text   (one hash tag, one slot)
-- ARGV[1] epoch of a new bus   ARGV[2] most that it holds   ARGV[3] life without signals, ms
-- ARGV[4], … five of each signal: id, share, type, cycle, JSON
-- reply   epoch, number let go, then number and 1 (was there before) or 0 of each signal
local epoch = redis.call('HGET', KEYS[2], 'epoch')
if not epoch then
  epoch = ARGV[1]
  redis.call('DEL', KEYS[1], KEYS[3], KEYS[4], KEYS[5])
  redis.call('HSET', KEYS[2], 'epoch', epoch, 'last', '0', 'dropped', '0')
end
local most, dropped, reply = tonumber(ARGV[2]), 0, {epoch, 0}
for at = 4, #ARGV, 5 do
  local id, share = ARGV[at], ARGV[at + 1]
  local there = redis.call('HGET', KEYS[3], id)
  if there then
    reply[#reply + 1] = tonumber(there)
    reply[#reply + 1] = 1
  else
    local number = redis.call('HINCRBY', KEYS[2], 'last', 1)
    redis.call('XADD', KEYS[1], string.format('%d-0', number), 'k', ARGV[at + 2], 'c', ARGV[at + 3], 'b', ARGV[at + 4])
    redis.call('HSET', KEYS[3], id, string.format('%d', number))
    redis.call('ZINCRBY', KEYS[4], 1, share)
    redis.call('ZADD', KEYS[5], 0, string.format('%s:%016d:%s', share, number, id))
    while redis.call('XLEN', KEYS[1]) > most do
      local largest = redis.call('ZREVRANGE', KEYS[4], 0, 0)[1]
      local place = redis.call('ZRANGEBYLEX', KEYS[5], '[' .. largest .. ':', '[' .. largest .. ':~', 'LIMIT', 0, 1)[1]
      local rest = string.sub(place, #largest + 2)
      redis.call('XDEL', KEYS[1], string.format('%d-0', tonumber(string.sub(rest, 1, 16))))
      redis.call('HDEL', KEYS[3], string.sub(rest, 18))
      redis.call('ZREM', KEYS[5], place)
      redis.call('ZINCRBY', KEYS[4], -1, largest)
      dropped = dropped + 1
    end
    reply[#reply + 1] = number
    reply[#reply + 1] = 0
  end
end
reply[2] = dropped
if dropped > 0 then
  redis.call('HINCRBY', KEYS[2], 'dropped', dropped)
end
for _, key in ipairs(KEYS) do
  redis.call('PEXPIRE', key, ARGV[3])
end
return reply
