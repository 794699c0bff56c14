-- spend.lua: reserve what the model calls of a window can cost at most, or charge what they cost where it will not be sealed.
-- The rule is spend_window in domain/session/spending_rule.py; a property test holds the two together.
-- KEYS[1] session hash   KEYS[2..] its ancestors, from the parent up to the root
-- ARGV[1] SpendWindow of domain/session/spending.py by its field names, JSON; amounts up to 10^14   ARGV[2] ttl, s
-- reply   {'OK', tokens left, micros left}, -1 without a limit · {'SPENDING_LIMIT', '<tokens or usd> <limit> <left>', session}
--          · {reason, a, b} with the two values of the reason

local ask, ttl = cjson.decode(ARGV[1]), ARGV[2]
local window, wanted = ask.window_id, ask.amount
local s = redis.call('HMGET', KEYS[1], 'epoch', 'ancestors', 'asked', 'limits', 'r:' .. window)
if not s[1] then
  return {'SESSION_STATE_LOST', 0, 0}
end
if s[1] ~= EPOCH then
  return {'SESSION_STATE_UNVERIFIED', 0, 0}
end
if table.concat(ask.ancestors, ',') ~= s[2] then
  return {'ANCESTORS_MISMATCH', 0, 0}
end
local lost = above_of(2, #KEYS)
if lost then
  return lost
end

-- What is left under every limit, with what is set aside for the window itself.
local function left_now()
  local least = {-1, -1}
  local function lower(at, limit, gone)
    local left = limit and math.max(0, limit - gone)
    if left and (least[at] < 0 or left < least[at]) then
      least[at] = left
    end
  end
  for _, key in ipairs(KEYS) do
    local v = redis.call('HMGET', key, 'limits', 'paid', 'asked')
    local most_tokens, most_usd = pair_of(v[1])
    local paid_tokens, paid_usd = pair_of(v[2])
    local tokens, usd = asked_without(v[3], '')
    lower(1, most_tokens, (paid_tokens or 0) + tokens)
    lower(2, most_usd, (paid_usd or 0) + usd)
  end
  return {'OK', least[1], least[2]}
end

if ask.final then
  local _, _, _, known = asked_without(s[3], window)
  if known then
    spend_charge(window, wanted.tokens, wanted.usd)
  end
  return left_now()
end
if s[5] then
  return {'LEASE_LOST', 0, 0}
end

local sets, own_tokens, own_usd = {}, pair_of(s[4])
for i, key in ipairs(KEYS) do
  local v = redis.call('HMGET', key, 'limits', 'paid', 'asked')
  local most_tokens, most_usd = pair_of(v[1])
  if i == 1 then
    local told = ask.limits
    most_tokens = math.min(most_tokens or told.tokens or math.huge, told.tokens or math.huge)
    most_usd = math.min(most_usd or told.usd or math.huge, told.usd or math.huge)
    own_tokens, own_usd = most_tokens, most_usd
  end
  local paid_tokens, paid_usd = pair_of(v[2])
  local tokens, usd, kept = asked_without(v[3], window)
  for _, one in ipairs({
    {'tokens', most_tokens, (paid_tokens or 0) + tokens, wanted.tokens},
    {'usd', most_usd, (paid_usd or 0) + usd, wanted.usd},
  }) do
    local left = one[2] and one[2] < math.huge and math.max(0, one[2] - one[3])
    if left and one[4] > left then
      return {'SPENDING_LIMIT', one[1] .. ' ' .. int(one[2]) .. ' ' .. int(left), string.match(key, '[^:]+$')}
    end
  end
  local mine = window .. ' ' .. int(wanted.tokens) .. ' ' .. int(wanted.usd)
  sets[i] = kept == '' and mine or kept .. ',' .. mine
end
local function limit(value)
  return value < math.huge and int(value) or '-'
end
for i, key in ipairs(KEYS) do
  redis.call('HSET', key, 'asked', sets[i])
  redis.call('EXPIRE', key, ttl)
end
redis.call('HSET', KEYS[1], 'limits', limit(own_tokens) .. ' ' .. limit(own_usd))
return left_now()
