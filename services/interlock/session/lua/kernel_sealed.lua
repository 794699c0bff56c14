-- kernel_sealed.lua: note that records are sealed, up to the one of this number and link. One of another link is of another history.
-- KEYS[1] kernel hash (kernel_step.lua has its fields)
-- ARGV[1] number · ARGV[2] link
-- reply   {1} noted · {0} this store does not have that record

local h = redis.call('HMGET', KEYS[1], 'sealed', 'o:' .. ARGV[1], 'epoch')
if not h[1] or h[3] ~= EPOCH then
  return {0}
end
local upto = tonumber(ARGV[1])
if upto <= tonumber(h[1]) then
  return {1}
end
if not h[2] or cjson.decode(h[2])[3] ~= ARGV[2] then
  return {0}
end
for n = tonumber(h[1]) + 1, upto do
  redis.call('HDEL', KEYS[1], 'o:' .. int(n))
end
redis.call('HSET', KEYS[1], 'sealed', ARGV[1])
return {1}
