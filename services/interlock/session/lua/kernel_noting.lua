-- kernel_noting.lua: that records of a kernel are sealed, up to the one of a number and link; put in front of kernel_sealed.lua and
-- kernel_decision.lua. One of another link is of another history. Returns 1 noted · 0 this store does not have that record.

local function noted(kernel, number, link)
  local h, upto = redis.call('HMGET', kernel, 'sealed', 'o:' .. number, 'epoch'), tonumber(number)
  if not h[1] or h[3] ~= EPOCH then
    return 0
  end
  if upto <= tonumber(h[1]) then
    return 1
  end
  if not h[2] or string.match(h[2], '^%["%d+", ?"%x*", ?"(%x+)"') ~= link then
    return 0
  end
  local names = {}
  for n = tonumber(h[1]) + 1, upto do
    names[#names + 1] = 'o:' .. int(n)
  end
  redis.call('HDEL', kernel, unpack(names))
  redis.call('HSET', kernel, 'sealed', number)
  return 1
end

