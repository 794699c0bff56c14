-- put.lua: keep the state of an experiment and the lines of its cycles, unless a later state is there.
-- KEYS[1] experiment hash
-- ARGV[1] sequence of the state (< 2^53)   ARGV[2] the state   ARGV[3] 1: whatever is there
-- ARGV[4], ARGV[5], … name of a cycle's field and its line
-- reply   1 kept · 0 a later one is there
local held = redis.call('HGET', KEYS[1], 'sequence')
if held and ARGV[3] ~= '1' and tonumber(held) > tonumber(ARGV[1]) then
  return 0
end
if ARGV[3] == '1' then
  redis.call('DEL', KEYS[1])
end
redis.call('HSET', KEYS[1], 'sequence', ARGV[1], 'state', ARGV[2])
for at = 4, #ARGV, 2 do
  redis.call('HSET', KEYS[1], ARGV[at], ARGV[at + 1])
end
return 1
