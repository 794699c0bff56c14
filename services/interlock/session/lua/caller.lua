-- caller.lua: write the budget of a caller as it was rebuilt from the audit log, merged with what is stored.
-- The rule is merge in domain/session/caller.py: the later periods, at the lower budget and the higher charges.
-- KEYS[1] the caller's budget
-- ARGV[1] JSON: periods, the latest last, each {number, cap, spent: {{session, micros}, …}}; ttl_s
-- reply   {'OK', fields and values of what is stored now}

local key, ask = KEYS[1], cjson.decode(ARGV[1])
local known, numbers = {}, {}

local function period_of(number, cap)
  if not known[number] then
    known[number] = {cap = cap, spent = {}}
    numbers[#numbers + 1] = number
  end
  known[number].cap = math.min(known[number].cap, cap)
  return known[number].spent
end

local flat = redis.call('HGETALL', key)
local stored = {}
for i = 1, #flat, 2 do
  stored[flat[i]] = flat[i + 1]
end
for _, name in ipairs({'period', 'previous'}) do
  local number = tonumber(stored[name] or '0')
  if number > 0 then
    period_of(number, tonumber(stored[int(number) .. ':cap']))
  end
end
for name, value in pairs(stored) do
  local number, session = string.match(name, '^(%d+):(crp_sess_%x+)$')
  if number and known[tonumber(number)] then
    known[tonumber(number)].spent[session] = tonumber(value)
  end
end
for _, period in ipairs(ask.periods) do
  local spent = period_of(period.number, period.cap)
  for _, entry in ipairs(period.spent) do
    spent[entry[1]] = math.max(spent[entry[1]] or 0, entry[2])
  end
end
table.sort(numbers)

local set = {'period', int(numbers[#numbers]), 'previous', int(numbers[#numbers - 1] or 0)}
for i = math.max(1, #numbers - 1), #numbers do
  local number, sum = int(numbers[i]), 0
  for session, amount in pairs(known[numbers[i]].spent) do
    set[#set + 1], set[#set + 2] = number .. ':' .. session, int(amount)
    sum = sum + amount
  end
  for _, value in ipairs({number .. ':cap', int(known[numbers[i]].cap), number .. ':spent', int(sum)}) do
    set[#set + 1] = value
  end
end
local held = {}
for name, value in pairs(stored) do
  local number = tonumber(string.match(name, '^(%d+):hold:') or '')
  if number and (number == numbers[#numbers] or number == numbers[#numbers - 1]) then
    set[#set + 1], set[#set + 2] = name, value
    held[number] = (held[number] or 0) + tonumber(value)
  end
end
for number, sum in pairs(held) do
  set[#set + 1], set[#set + 2] = int(number) .. ':held', int(sum)
end
redis.call('HSET', key, 'epoch', '') -- first, for a full store refuses a script's first write only if it may need room
redis.call('DEL', key)
for first = 1, #set, 1000 do
  redis.call('HSET', key, unpack(set, first, math.min(first + 999, #set)))
end
redis.call('HSET', key, 'epoch', EPOCH)
redis.call('EXPIRE', key, ask.ttl_s)
return {'OK', redis.call('HGETALL', key)}
