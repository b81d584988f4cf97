-- A ticket asks for a place.
-- ARGV: now, epoch, owner, ticket, model, lane, tier, user, organization, need, prefer, avoid (one a line), asked, mark
-- (comes back with the news of its grant), smaller ("1" when there is a smaller model to offer), again: "reminded" (it
-- waited before Valkey was emptied) or "accepted" (it was in line or at work before); either is not refused now, unless
-- it can never fit; digests of the prompt's beginnings (one a line). Whoever had the ticket before, the gate or an owner that died, has it no longer: what was granted
-- stays granted, and who waits keeps the age of its place in the line.
-- Returns {'epoch'}, {'none'} (no replica), {'granted', replica}, {'queued', position, seconds}, or
-- {'refused', code, seconds until it is worth asking again, the number that the code is about}. '' for unknown seconds.
local now, again = time_of(ARGV[1]), ARGV[16] ~= ''
local stranger, settling = is_stranger(ARGV[3], ARGV[2], now)
if stranger then return { 'epoch' } end
local old = read_ticket(ARGV[4])
if old then drop(old, 0, now) end
local t = { id = ARGV[4], model = ARGV[5], class = ARGV[6] .. ':' .. ARGV[7], lane = ARGV[6], tier = ARGV[7],
  user = ARGV[8], organization = ARGV[9], owner = ARGV[3], need = tonumber(ARGV[10]), prefer = ARGV[11],
  avoid = ARGV[12], asked = math.min(tonumber(ARGV[13]) or now, old and old.asked or math.huge), mark = ARGV[14],
  prefixes = ARGV[17] }
if t.prefer == '' then t.prefer = warm_replica(t) end
local base, model = 'adm:m:' .. t.model, read_model(t.model, now)

local function seconds(s) return s and string.format('%.3f', s) or '' end

local function refuse(code, wait_s, detail) return { 'refused', code, seconds(wait_s), detail or '' } end

-- By then half of the line before it has been served.
local function half_of_line(tokens) return math.max(1, seconds_for(model, t.class, tokens / 2, now) or model.hold) end

local function over_limit(who, whose, limit)
  local most = in_progress(t) and limit.concurrency or 0
  if most > 0 and tonumber(call('HGET', 'adm:flying', who) or 0) >= most then
    return refuse(whose .. '_limit', math.max(1, model.hold / most), most)
  end
  local wait = budget_wait(who, limit.rate, t.need, now)
  if wait > 0 then return refuse(whose .. '_tokens', wait / 1000, string.format('%.10g', limit.rate)) end
end

-- Why the ticket may not wait in its class, given the wait that it would have and the tickets of its user there: no
-- user may have more of them than places are left (dynamic thresholds, Choudhury and Hahne 1998), or one fills the line.
local function no_place(c, mine, wait)
  local rung = level(model)
  if rung >= 4 or (rung == 3 and t.tier == P.first_refused and ARGV[15] == '1') then
    return refuse('pressure', half_of_line(c.tokens))
  end
  local left = P.max_waiting - c.waiting
  if left <= 0 or mine >= left then return refuse('queue_full', half_of_line(c.tokens), c.waiting) end
  local most = P.max_wait_ms[t.lane] * P.accepted_part * (rung >= 2 and P.shortened or 1) / 1000
  if wait and wait > most then return refuse('wait_too_long', math.max(1, wait - most), seconds(wait)) end
end

local largest = tonumber(call('HGET', base, 'largest') or 0)
if largest == 0 and ARGV[16] ~= 'reminded' then return { 'none' } end
if largest > 0 and t.need > largest then return refuse('too_large', nil, largest) end
if not again and t.organization ~= '' then
  local refusal = over_limit('u:' .. t.user, 'user', P.users[t.tier])
    or over_limit('o:' .. t.organization, 'organization', P.organizations[t.tier])
  if refusal then return refusal end
end

-- What it held it goes on holding though others wait, and what is charged for it: the preferred replica, or the same.
local function keep()
  for _, id in ipairs({ t.prefer, old.replica }) do
    local r = read_replica(t.model, id)
    if fits(t, r, nil) and not string.find('\n' .. t.avoid .. '\n', '\n' .. id .. '\n', 1, true) then
      uncharge(t, -t.need)
      t.charged = true
      return r
    end
  end
end

if not settling then
  local r
  if call('EXISTS', base .. ':classes') == 0 then
    r = choose(t, nil)
  elseif old and old.replica and old.model == t.model then
    r = keep()
  end
  if r then
    write_ticket(t, now + P.reservation_ms)
    spend_both(t, t.need, now)
    grant(t, r, now)
    return { 'granted', r.id }
  end
end
local room = not settling and call('EXISTS', base .. ':room') == 1
local c = read_class(class_key(t.model, t.class), now)
local mine = call('ZCARD', c.key .. ':q:' .. t.user)
local position, wait = forecast_for(t, model, c, mine, now)
local refusal = not again and no_place(c, mine, wait)
if refusal and not room then return refusal end
write_ticket(t, now + P.max_wait_ms[t.lane] + P.owner_ttl_ms)
spend_both(t, t.need, now)
enqueue(t, now)
if room then
  pump(t.model, now, t.id)
  local replica = call('HGET', 'adm:t:' .. t.id, 'replica')
  if replica then return { 'granted', replica } end
end
if refusal then
  drop(t, nil, now)
  return refusal
end
return { 'queued', position, seconds(wait) }
