-- common.lua: shared by the scripts; it is put in front of each of them.
-- A session is one hash. terms JSON · ancestors, comma-joined · policy, policy_hash · o:<hash> policy that was replaced ·
-- status · budget, cap · tip latest sealed window · top highest number · nodes count · open ends that can be continued ·
-- dag one entry per window · lease, unsettled entries of leases · max_windows, max_nodes, max_fan_out · sum 1 where costs
-- add up · r:<window> outcome · w:<window> record, JSON · k:<window> one letter per child · c:<continuation> window ·
-- facts digests · kids child sessions · g:<grant> child session · a:<approval> grant · untold windows whose moves were
-- not acknowledged yet · late '<window> <parents joined by +, or ->' of lines that a restore settled · epoch server that it was last
-- verified under: a script that finds another one does nothing (docs/adr/0012)
-- Entry of dag: 32 hex digits of the window, tier, status, pattern, places of its parents unless that is just the one before.

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

