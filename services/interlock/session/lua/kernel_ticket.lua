-- kernel_ticket.lua: who comes next where many evaluate on the same version and only one of them can commit on it. It stands behind
-- kernel_decision.lua and before kernel_step.lua. The rule is interlock/domain/kernel/tickets.py.

local TICKETS = 64

-- The tickets that stand, the one whose turn it is first, and when its turn is over.
local function standing()
  local line, upto = {}, tonumber(get('turn') or '0')
  for key, lifetime in string.gmatch(get('tickets') or '', '(%S+) (%d+)') do
    line[#line + 1] = {key, tonumber(lifetime)}
  end
  while #line > 0 and now > upto do
    table.remove(line, 1)
    upto = upto + (line[1] and line[1][2] or 0)
  end
  return line, upto
end

local function in_line(line)
  local words = {}
  for i, one in ipairs(line) do
    words[i] = one[1] .. ' ' .. int(one[2])
  end
  return table.concat(words, ' ')
end

-- Takes a place at the end of the line. It is not a change of the state, so that versions stay as they are.
local function take_ticket()
  local line, upto = standing()
  local lifetime = tonumber(ask.lifetime_ms)
  check('tickets', #line < TICKETS, 'TICKETS_TOO_MANY', int(#line), int(TICKETS))
  ask.granted = int(#line)
  upto = #line > 0 and upto or now + lifetime
  line[#line + 1] = {ask.key, lifetime}
  put('tickets', in_line(line))
  put('turn', int(upto))
  return commit('KERNEL_TICKET_TAKEN', '', {}, {}, '-')
end

-- Leaves the line, wherever one stands in it; the next one's turn begins now if it was one's own.
local function return_ticket()
  local line, upto = standing()
  for i, one in ipairs(line) do
    if one[1] == ask.ticket then
      table.remove(line, i)
      if i == 1 then
        upto = line[1] and now + line[1][2] or 0
      end
      put('tickets', in_line(line))
      put('turn', int(upto))
      return commit('KERNEL_TICKET_RETURNED', '', {}, {}, '-')
    end
  end
  return {'KERNEL_TICKET_UNKNOWN'}
end

-- Uses up the ticket that an action names; the reason of a refusal, and how many are ahead, where it is another's turn.
local function turned()
  local ticket, line, place = ask.ticket or '', standing(), nil
  for i, one in ipairs(line) do
    if one[1] == ticket then
      place = i
      break
    end
  end
  if ticket ~= '' and not place then
    return 'KERNEL_TICKET_UNKNOWN', ''
  elseif ticket == '' and (ask.version or '0') == '0' and not get('cel') then
    return nil -- not evaluated by anybody
  elseif #line > 0 and place ~= 1 then
    return 'KERNEL_TICKET_AHEAD', int(place and place - 1 or #line)
  elseif place then
    table.remove(line, 1)
    turn = {tickets = in_line(line), turn = int(line[1] and now + line[1][2] or 0)}
  end
end
