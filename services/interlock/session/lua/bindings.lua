-- bindings.lua: find and keep what names and turns of one caller stand for.
-- The rule is Index in domain/binding/index.py; a property test holds the two together.
-- KEYS[1] the current generation, a hash of digest, 16 bytes → records   KEYS[2] the previous one   (one hash tag, one slot)
-- A record: a byte, 1 with a root, 2 with a window, 3 with both · session, 16 bytes · root, 16 bytes · window, 16 bytes
-- ARGV[1] entries of a generation   ARGV[2] how long one is the current one, ms   ARGV[3] how many digests are looked up
-- ARGV[4..] the digests, then of each note: N of a name or T of a turn, digest, record, session that a name may be taken from
-- reply   {'OK', entries forgotten, value of each digest or false, value that stands for each note}

local CANDIDATES = 4

local most, lifetime, wanted = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local current, previous = KEYS[1], KEYS[2]
local forgotten = 0

local function turn_over()
  forgotten = forgotten + redis.call('HLEN', previous)
  redis.call('UNLINK', previous)
  if redis.call('EXISTS', current) == 1 then
    redis.call('RENAME', current, previous)
  end
end

-- The server's own clock decides how old a generation is: it is what is left of twice the lifetime.
local left = redis.call('PTTL', current)
if left ~= -2 and left < lifetime then
  turn_over()
end

local function put(digest, value)
  local held = redis.call('HLEN', current)
  if held >= most and redis.call('HEXISTS', current, digest) == 0 then
    turn_over()
    held = 0
  end
  redis.call('HSET', current, digest, value)
  if held == 0 then
    redis.call('PEXPIRE', current, int(2 * lifetime))
  end
end

-- The records of a value; none of a value that we never write.
local function records_of(value)
  local found, at = {}, 1
  while value and at <= #value do
    local kind = string.byte(value, at)
    local ends = at + 16 + (kind % 2 == 1 and 16 or 0) + (kind >= 2 and 16 or 0)
    if kind > 3 or ends > #value then
      return {}
    end
    found[#found + 1] = string.sub(value, at, ends)
    at = ends + 1
  end
  return found
end

local reply = {'OK', 0}

if wanted > 0 then
  local digests = {unpack(ARGV, 4, 3 + wanted)}
  local found = redis.call('HMGET', current, unpack(digests))
  local missing, at = {}, {}
  for i = 1, wanted do
    if not found[i] then
      missing[#missing + 1], at[#at + 1] = digests[i], i
    end
  end
  if #missing > 0 then
    local older = redis.call('HMGET', previous, unpack(missing))
    for i, value in ipairs(older) do
      if value then
        found[at[i]] = value
        put(missing[i], value)
      end
    end
  end
  for i = 1, wanted do
    reply[2 + i] = found[i]
  end
end

for i = 4 + wanted, #ARGV, 4 do
  local kind, digest, record, over = ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3]
  local present = records_of(redis.call('HGET', current, digest) or redis.call('HGET', previous, digest))
  local value
  if kind == 'T' then
    value = record
    local kept = 1
    for _, one in ipairs(present) do
      if one ~= record and kept < CANDIDATES then
        value, kept = value .. one, kept + 1
      end
    end
  else
    local holder = present[1] and string.sub(present[1], 2, 17)
    if not holder or holder == string.sub(record, 2, 17) or holder == over then
      value = record
    end
  end
  if value then
    put(digest, value)
  end
  reply[#reply + 1] = value or present[1]
end

reply[2] = forgotten
return reply
