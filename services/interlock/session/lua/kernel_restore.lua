-- kernel_restore.lua: make a kernel what its sealed records say (docs/adr/0031). It replaces and never merges: what is not sealed was
-- never answered.
-- KEYS[1] kernel hash (kernel_step.lua has its fields)
-- ARGV[1] number of the last sealed record · ARGV[2..] fields and values
-- reply   {1} written · {0} the store knows as much

local known = redis.call('HMGET', KEYS[1], 'epoch', 'sealed')
if known[1] == EPOCH and tonumber(known[2]) >= tonumber(ARGV[1]) then
  return {0}
end
redis.call('DEL', KEYS[1])
for i = 2, #ARGV, 2 do
  redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1])
end
redis.call('HSET', KEYS[1], 'epoch', EPOCH, 'seq', ARGV[1], 'sealed', ARGV[1])
redis.call('EXPIRE', KEYS[1], 2592000)
return {1}
