-- kernel_open.lua: keep a new kernel, or tell of the one that is there.
-- KEYS[1] kernel hash (kernel_step.lua has its fields)
-- ARGV[1] its first record · ARGV[2..] fields and values
-- reply   {'CREATED'} · {'EXISTS'} · {'KERNEL_STATE_UNVERIFIED'}

local known = redis.call('HMGET', KEYS[1], 'seq', 'epoch')
if known[1] then
  return {known[2] == EPOCH and 'EXISTS' or 'KERNEL_STATE_UNVERIFIED'}
end
for i = 2, #ARGV, 2 do
  redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1])
end
redis.call('HSET', KEYS[1], 'epoch', EPOCH, 'seq', '1', 'sealed', '0', 'o:1', ARGV[1])
redis.call('EXPIRE', KEYS[1], 2592000)
return {'CREATED'}
