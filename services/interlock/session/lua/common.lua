-- common.lua: shared by the scripts; it is put in front of each of them.
-- A session is one hash. terms JSON · ancestors, comma-joined · policy, policy_hash · o:<hash> policy that was replaced ·
-- status · budget, cap · tip latest sealed window · top highest number · nodes count · open ends that can be continued ·
-- dag one entry per window · lease, unsettled entries of leases · max_windows, max_nodes, max_fan_out · sum 1 where costs
-- add up · r:<window> outcome · w:<window> record, JSON · k:<window> one letter per child · c:<continuation> window ·
-- facts digests · kids child sessions · g:<grant> child session · a:<approval> grant · untold windows whose moves were
-- not acknowledged yet · late '<window> <parents joined by +, or ->' of lines that a restore settled · epoch server that it was last
-- verified under: a script that finds another one does nothing (docs/adr/0012) · spent what its windows cost its caller, as
-- <period>:<micros>, of two periods · holds '<window> <micros> <period>' of windows whose answers are released in parts,
-- comma-joined; none: the same as ''
-- Entry of dag: 32 hex digits of the window, tier, status, pattern, places of its parents unless that is just the one before.

-- Spending on model calls (domain/session/spending_rule.py): limits '<tokens> <usd, micros>', - for none · paid '<tokens> <usd>' of the
-- session and all below it · p:<session> what each of them was charged · asked '<window> <tokens> <usd>' of windows not settled

-- The budget of a caller is one hash too: epoch · period, previous the numbers of the two periods that are kept, 0 for none ·
-- <period>:cap · <period>:spent · <period>:<session> what each session counted in it · <period>:hold:<window> ·
-- <period>:held all of those. The rule is domain/session/caller.py.

local EPOCH = table.remove(ARGV, 1) -- the server that we are on; the numbers in the headers count from the one after it

local OPEN_AT, HALF_OPEN_AT = 100000, 500000 -- SPEC-012 §5.1
local CLOSED, HALF_OPEN, OPEN = 1, 2, 3
local ACTIVE, HALTED, TERMINATED = '1', '2', '3'
local LINEAR, FAN_OUT, FAN_IN, BRANCH, VOID = 'L', 'O', 'I', 'B', 'V'
local SEALED = '[LOIB]' -- letters of children that were sealed; failed ones are f after a fan-out, else x

local function breaker(budget)
  if budget <= OPEN_AT then
    return OPEN
  end
  return budget <= HALF_OPEN_AT and HALF_OPEN or CLOSED
end

local function int(value)
  return string.format('%d', value)
end

-- '<window> <until, ms> <pattern> <parents joined by +, or ->', joined by commas
local function leases_of(text)
  local found = {}
  for entry in string.gmatch(text, '[^,]+') do
    local id, ends, pattern, parents = string.match(entry, '^(%S+) (%d+) (%u) (%S+)$')
    found[#found + 1] = {id = id, ends = tonumber(ends), pattern = pattern, parents = parents}
    if not id then
      error('a lease cannot be read')
    end
  end
  return found
end

local function text_of(leases)
  local entries = {}
  for i, lease in ipairs(leases) do
    entries[i] = lease.id .. ' ' .. int(lease.ends) .. ' ' .. lease.pattern .. ' ' .. lease.parents
  end
  return table.concat(entries, ',')
end

-- Holds of a session without the one of a window: what they come to, their text, and that one (domain/session/holding.py).
local function held_without(text, window)
  local sum, kept, own = 0, {}, nil
  for id, amount, period in string.gmatch(text or '', '([^ ,]+) (%d+) (%d+)') do
    if id == window then
      own = {amount = tonumber(amount), period = tonumber(period)}
    else
      sum = sum + tonumber(amount)
      kept[#kept + 1] = id .. ' ' .. amount .. ' ' .. period
    end
  end
  return sum, table.concat(kept, ','), own
end

local function held_by_window(text)
  local found = {}
  for id, amount in string.gmatch(text or '', '([^ ,]+) (%d+) %d+') do
    found[id] = tonumber(amount)
  end
  return found
end

local function on(lease, parent)
  return string.find('+' .. lease.parents .. '+', '+' .. parent .. '+', 1, true) ~= nil
end

-- How many windows these leases can still become: of lines from one window only one is ever sealed.
local function places(lists)
  local count, lines = 0, {}
  for _, leases in ipairs(lists) do
    for _, lease in ipairs(leases) do
      if lease.pattern == LINEAR then
        if not lines[lease.parents] then
          lines[lease.parents] = true
          count = count + 1
        end
      elseif lease.pattern ~= VOID then
        count = count + 1
      end
    end
  end
  return count
end

-- Children of a window that count for its width, this one included (SPEC-004 §11.2).
local function width(pattern, parent, children, lists)
  local count = 1
  if pattern == BRANCH then
    count = count + #children
  else
    local _, siblings = string.gsub(children, '[Of]', '')
    count = count + siblings
  end
  for _, leases in ipairs(lists) do
    for _, lease in ipairs(leases) do
      if lease.pattern ~= VOID and (pattern == BRANCH or lease.pattern == FAN_OUT) and on(lease, parent) then
        count = count + 1
      end
    end
  end
  return count
end

-- Splits an outcome: index, path budget, hmac, continuation, number.
local function outcome_of(text)
  local index, path, hmac, continuation, number =
    string.match(text, '^(%d+) (%d+) %d+ %d %d %d+ (%S+) (%S+) (%d+) %S+$')
  if not index then
    error('an outcome cannot be read')
  end
  return tonumber(index), tonumber(path), hmac, continuation, tonumber(number)
end

-- What stands above a session (domain/session/above.py): a refusal or nothing, the sessions at KEYS[first..last] with their status,
-- budget and cap, and the lowest of their budgets.
local function above_of(first, last)
  local found, lowest = {}, 1000000
  for i = first, last do
    local a = redis.call('HMGET', KEYS[i], 'status', 'budget', 'cap', 'epoch', 'limits')
    if not a[1] then
      return {'SESSION_STATE_LOST', 0, 0}
    end
    if a[4] ~= EPOCH then
      return {'SESSION_STATE_UNVERIFIED', 0, 0}
    end
    found[#found + 1] = {key = KEYS[i], status = a[1], budget = tonumber(a[2]), cap = tonumber(a[3]), limits = a[5]}
    lowest = math.min(lowest, tonumber(a[2]))
  end
  return nil, found, lowest
end

-- Two numbers of a text, nothing for each that is none.
local function pair_of(text)
  local first, second = string.match(text or '', '^(%S+) (%S+)$')
  return tonumber(first), tonumber(second)
end

-- Reservations without the one of a window: tokens and micros that they come to, their text, and whether it was there.
local function asked_without(text, window)
  local tokens, usd, kept, own = 0, 0, {}, false
  for id, some, money in string.gmatch(text or '', '([^ ,]+) (%d+) (%d+)') do
    if id == window then
      own = true
    else
      tokens, usd = tokens + tonumber(some), usd + tonumber(money)
      kept[#kept + 1] = id .. ' ' .. some .. ' ' .. money
    end
  end
  return tokens, usd, table.concat(kept, ','), own
end

-- Charges what a window cost to its session, the first of KEYS, and to every one above it, in place of its reservation.
local function spend_charge(window, tokens, usd)
  local session, found, due = string.match(KEYS[1], '[^:]+$'), {}, tokens > 0 or usd > 0
  for i, key in ipairs(KEYS) do
    local s = redis.call('HMGET', key, 'paid', 'asked', 'p:' .. session)
    local _, _, kept, own = asked_without(s[2], window)
    found[i] = {paid = s[1], told = s[3], asked = kept}
    due = due or own
  end
  if not due then
    return
  end
  local own_tokens, own_usd = pair_of(found[1].told)
  own_tokens, own_usd = (own_tokens or 0) + tokens, (own_usd or 0) + usd
  for i, key in ipairs(KEYS) do
    local was_tokens, was_usd = pair_of(found[i].told)
    local paid_tokens, paid_usd = pair_of(found[i].paid)
    local set = {'asked', found[i].asked}
    if own_tokens > 0 or own_usd > 0 then
      local now_tokens, now_usd = math.max(was_tokens or 0, own_tokens), math.max(was_usd or 0, own_usd)
      set[3], set[4] = 'p:' .. session, int(now_tokens) .. ' ' .. int(now_usd)
      set[5], set[6] = 'paid', int((paid_tokens or 0) + now_tokens - (was_tokens or 0)) .. ' '
        .. int((paid_usd or 0) + now_usd - (was_usd or 0))
    end
    redis.call('HSET', key, unpack(set))
  end
end

-- {why, session, budget} of the nearest session that lets nothing below it go on, or nothing.
local function barrier_in(above)
  for _, a in ipairs(above) do
    local why
    if a.budget <= 0 then
      why = 'ANCESTOR_EXHAUSTED'
    elseif a.budget <= OPEN_AT or a.status == HALTED then
      why = 'ANCESTOR_HALTED'
    elseif a.status == TERMINATED then
      why = 'ANCESTOR_ENDED'
    end
    if why then
      return {why, string.match(a.key, '[^:]+$'), a.budget}
    end
  end
end

-- What is told of a caller's budget: period, cap, spent, previous period, 1 where the period begins now, all holds.
local function caller_told(key, period, previous, renewed)
  local c = redis.call('HMGET', key, int(period) .. ':cap', int(period) .. ':spent', int(period) .. ':held')
  return {period, tonumber(c[1]), tonumber(c[2]), previous, renewed, tonumber(c[3] or '0')}
end

-- Of a period that is forgotten nothing is held: a hold that nobody settles lapses with it.
local function caller_holds(key, window, amount, period)
  if redis.call('HEXISTS', key, int(period) .. ':cap') == 1
      and redis.call('HSETNX', key, int(period) .. ':hold:' .. window, int(amount)) == 1 then
    redis.call('HINCRBY', key, int(period) .. ':held', int(amount))
  end
end

local function caller_has_holds(key)
  for _, period in ipairs(redis.call('HMGET', key, 'period', 'previous')) do
    if tonumber(redis.call('HGET', key, (period or '0') .. ':held') or '0') > 0 then
      return true
    end
  end
  return false
end

local function caller_frees(key, window)
  for _, period in ipairs(redis.call('HMGET', key, 'period', 'previous')) do
    local name = (period or '0') .. ':hold:' .. window
    local amount = redis.call('HGET', key, name)
    if amount then
      redis.call('HDEL', key, name)
      redis.call('HINCRBY', key, period .. ':held', '-' .. amount)
    end
  end
end

-- The present period of a caller that is there, else nothing; with a later number one that begins now, which is written later.
local function caller_entered(key, number, cap)
  local c = redis.call('HMGET', key, 'epoch', 'period', 'previous')
  if not c[2] or c[1] ~= EPOCH then
    return nil
  end
  local period = tonumber(c[2])
  if number > period then
    return {number, cap, 0, period, 1, 0}
  end
  return caller_told(key, period, tonumber(c[3]), 0)
end

-- Keeps the two periods and forgets what is older.
local function caller_begins(key, period, previous, cap, ttl)
  local old = {}
  for _, name in ipairs(redis.call('HKEYS', key)) do
    local number = string.match(name, '^(%d+):')
    if number and tonumber(number) ~= period and tonumber(number) ~= previous then
      old[#old + 1] = name
    end
  end
  redis.call('HSET', key, 'period', int(period), 'previous', int(previous), int(period) .. ':cap', int(cap),
    int(period) .. ':spent', '0')
  for first = 1, #old, 500 do
    redis.call('HDEL', key, unpack(old, first, math.min(first + 499, #old)))
  end
  redis.call('EXPIRE', key, ttl)
end

-- Counts all that a session has spent, <period>:<micros> joined by commas; less than is known changes nothing.
local function caller_counts(key, session, spent)
  for period, amount in string.gmatch(spent, '(%d+):(%d+)') do
    local known = redis.call('HMGET', key, period .. ':cap', period .. ':' .. session)
    local more = tonumber(amount) - (tonumber(known[2]) or 0)
    if known[1] and more > 0 then
      redis.call('HSET', key, period .. ':' .. session, amount)
      redis.call('HINCRBY', key, period .. ':spent', int(more))
    end
  end
end
