-- kernel_saga.lua: steps that are undone together, those in the world by their compensations. It stands behind kernel_decision.lua and
-- before kernel_step.lua. The rule is interlock/domain/kernel/saga.py.

local SAGAS, SAGA_STEPS, ATTEMPTS, BACKOFF_MS = 64, 16, 5, 1000

local function words_in(text)
  local found = {}
  for word in string.gmatch(text or '', '%S+') do
    found[#found + 1] = word
  end
  return found
end

local function without(field, word)
  local kept = {}
  for _, one in ipairs(words_in(get(field))) do
    kept[#kept + 1] = one ~= word and one or nil
  end
  put(field, table.concat(kept, ' '))
end

local function with(field, word)
  local all = words_in(get(field))
  all[#all + 1] = word
  put(field, table.concat(all, ' '))
end

local function job_of(key)
  local saga, action, of, attempts, due, fence, state =
    string.match(get('j:' .. key), '^(%S+) (%S+) (%S+) (%d+) (%d+) (%d+) (%a+)$')
  return {saga = saga, action = action, of = of, attempts = tonumber(attempts), due = tonumber(due), fence = fence, state = state}
end

local function put_job(key, job)
  put('j:' .. key, job.saga .. ' ' .. job.action .. ' ' .. job.of .. ' ' .. int(job.attempts) .. ' ' .. int(job.due) .. ' '
    .. job.fence .. ' ' .. job.state)
end

local function begin_saga()
  local live = words_in(get('sagas'))
  if get('g:' .. ask.key) then
    return {'KERNEL_KEY_REUSED'}
  end
  check('running', head[9] == '0', 'KERNEL_STOPPED')
  check('sagas', #live < SAGAS, 'SAGAS_TOO_MANY', int(#live), int(SAGAS))
  ask.until_ms = int(now + tonumber(ask.lifetime_ms))
  with('sagas', ask.key)
  put('g:' .. ask.key, ask.until_ms)
  return commit('KERNEL_SAGA_BEGUN', '', {}, {}, '-')
end

-- Counts an action as a step of its saga; the reason of a refusal where that is not open.
local function joined()
  if (ask.saga or '') == '' then
    return nil
  end
  local text = get('g:' .. ask.saga)
  if not text then
    return 'KERNEL_SAGA_UNKNOWN'
  end
  local words = words_in(text)
  if now > tonumber(words[1]) then
    return 'KERNEL_SAGA_EXPIRED'
  end
  check('saga', #words <= SAGA_STEPS, 'SAGA_TOO_LONG', int(#words), int(SAGA_STEPS))
  put('g:' .. ask.saga, text .. ' ' .. ask.key)
end

local function close(saga)
  drop('g:' .. saga)
  without('sagas', saga)
end

local function end_saga()
  if not get('g:' .. ask.saga) then
    return {'KERNEL_SAGA_UNKNOWN'}
  end
  close(ask.saga)
  return commit('KERNEL_SAGA_ENDED', '', {}, {}, '-')
end

local function copied(from)
  local to = {}
  for name, value in pairs(from) do
    to[name] = value
  end
  return to
end

-- Undoes the effects of one step, all of them or none.
local function inverted(undo, all)
  local before, written = copied(changed), {}
  for j = #undo, 1, -1 do
    local one = undo[j]
    local old, new = get('v:' .. one[1]), undone(one)
    if not new then
      changed = before
      return false
    end
    put('v:' .. one[1], new)
    written[#written + 1] = {one[1], 'set', new, old, new}
  end
  for _, one in ipairs(written) do
    all[#all + 1] = one
  end
  return true
end

-- Undoes steps, the last first; what is to be compensated, in order, and what was written. A permit that nobody settled may have been
-- used: one that cannot be undone stays charged, and is a person's.
local function undone_steps(saga, words, inverses)
  local jobs, all = {}, {}
  for i = #words, 2, -1 do
    local key = words[i]
    local text = get('x:' .. key)
    local entry = text and cjson.decode(text) or {state = 'E', irreversible = '1', answer = {action = ''}}
    if string.find('ECP', entry.state, 1, true) then
      local of, job = entry.answer.action ~= '' and entry.answer.action or '-', nil
      if entry.compensation then
        job = {action = entry.compensation, state = 'due'}
      elseif entry.irreversible == '1' or not inverses or not inverted(entry.undo or {}, all) then
        job = {action = '-', state = 'stuck', fence = int(seq + 1)}
      else
        refund(entry.costs, entry.child)
      end
      if job then
        job.key, job.saga, job.of, job.attempts, job.due, job.fence = key, saga, of, 0, now, job.fence or '0'
        jobs[#jobs + 1] = job
      end
      if text then
        entry.state, entry.undo, entry.costs = job and 'S' or 'R', {}, {}
        put('x:' .. key, cjson.encode(entry))
      end
    end
  end
  return jobs, all
end

local function rolled_back(saga)
  local words, before = words_in(get('g:' .. saga)), copied(changed)
  local jobs, all = undone_steps(saga, words, true)
  if not unbroken() then
    changed = before
    jobs, all = undone_steps(saga, words, false)
  end
  close(saga)
  local stuck = {}
  for _, job in ipairs(jobs) do
    put_job(job.key, job)
    if job.state == 'stuck' then
      stuck[#stuck + 1] = job.key
    else
      with('due', job.key)
    end
  end
  put('due', get('due') or '')
  for _, key in ipairs(stuck) do
    check('compensated:' .. key, false, 'COMPENSATION_STUCK', '', '', true)
  end
  return commit(#stuck > 0 and 'KERNEL_COMPENSATION_STUCK' or 'KERNEL_SAGA_ROLLED_BACK', '', {}, all, '-')
end

local function rollback_saga()
  if not get('g:' .. ask.saga) then
    return {'KERNEL_SAGA_UNKNOWN'}
  end
  return rolled_back(ask.saga)
end

local function give_up(key, job)
  job.fence, job.state = int(seq + 1), 'stuck'
  put_job(key, job)
  without('due', key)
  check('compensated:' .. key, false, 'COMPENSATION_STUCK', '', '', true)
  return commit('KERNEL_COMPENSATION_STUCK', job.action, {}, {}, '-')
end

-- Hands out the next compensation; before that, rolls back a saga whose time is over, or gives up one that failed too often.
local function claim()
  for _, saga in ipairs(words_in(get('sagas'))) do
    if now > tonumber(string.match(get('g:' .. saga), '^%d+')) then
      return rolled_back(saga)
    end
  end
  local begun = {}
  for _, key in ipairs(words_in(get('due'))) do
    local job = job_of(key)
    local first = not begun[job.saga]
    begun[job.saga] = true
    if first and now >= job.due then
      if job.attempts >= ATTEMPTS then
        return give_up(key, job)
      end
      job.attempts, job.due, job.fence = job.attempts + 1, now + tonumber(ask.lifetime_ms), int(seq + 1)
      put_job(key, job)
      ask.claim = {key, job.saga, job.action, job.of, int(job.attempts), job.fence, int(job.due)}
      return commit('KERNEL_COMPENSATION_CLAIMED', job.action, {}, {}, '-')
    end
  end
  return answered('OK')
end

local function compensated(key, job)
  local undo, action = {}, job.action ~= '-' and job.action or ''
  if action ~= '' then
    local effects = agreed(get('a:' .. action)).effects
    moment(agreed(get('win')), 'a:' .. action, 1)
    undo = change(effects)
    if #undo == #effects then
      invariants()
    end
  end
  drop('j:' .. key)
  without('due', key)
  return commit('KERNEL_COMPENSATED', action, {}, undo, '-')
end

local function again(key, job)
  if job.action == '-' then
    return {'KERNEL_COMPENSATION_FENCED'}
  end
  without('due', key)
  job.attempts, job.due, job.fence, job.state = 0, now, '0', 'due'
  put_job(key, job)
  with('due', key)
  return commit('KERNEL_COMPENSATION_RETRIED', job.action, {}, {}, '-')
end

-- Notes what a person decided about a compensation that is stuck: made up for, to be tried again, or left as it is.
local function decide()
  local key = ask.execution
  if not get('j:' .. key) then
    return {'KERNEL_COMPENSATION_UNKNOWN'}
  end
  local job = job_of(key)
  if job.state ~= 'stuck' then
    return {'KERNEL_COMPENSATION_NOT_STUCK'}
  elseif job.fence ~= ask.fence then
    return {'KERNEL_COMPENSATION_MOVED_ON'}
  elseif ask.outcome == 'done' then
    return compensated(key, job)
  elseif ask.outcome == 'retry' then
    return again(key, job)
  end
  job.fence = int(seq + 1)
  put_job(key, job)
  return commit('KERNEL_COMPENSATION_LEFT', job.action, {}, {}, '-')
end

-- Notes how a compensation ended.
local function settle()
  local key = ask.execution
  if not get('j:' .. key) then
    return {'KERNEL_COMPENSATION_UNKNOWN'}
  end
  local job = job_of(key)
  if job.state == 'stuck' and ask.of_reviewers then
    return {'KERNEL_REVIEWER_NEEDED'}
  elseif job.state ~= 'stuck' and job.attempts == 0 and ask.outcome == 'done' then -- nobody was given it to do
    return {'KERNEL_COMPENSATION_FENCED'}
  elseif ask.outcome == 'done' then
    return compensated(key, job)
  elseif ask.outcome == 'retry' then
    return again(key, job)
  elseif job.fence ~= ask.fence or job.state == 'stuck' then
    return {'KERNEL_COMPENSATION_FENCED'}
  elseif job.attempts >= ATTEMPTS then
    return give_up(key, job)
  end
  job.due, job.fence = now + BACKOFF_MS * 2 ^ (job.attempts - 1), '0'
  put_job(key, job)
  return commit('KERNEL_COMPENSATION_FAILED', job.action, {}, {}, '-')
end

