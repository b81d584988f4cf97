-- Giving places: to one ticket, to those who wait, and taking them back.

local function grant(t, r, now)
  occupy(t, r, 1)
  t.replica, t.granted = r.id, now
  remember_prefixes(t, r.id)
  call('HSET', 'adm:t:' .. t.id, 'replica', r.id, 'granted', now, 'charged', t.charged and '1' or '0')
  call('ZADD', 'adm:deadlines', now + (t.owner == GATE and P.gate_ms or P.reservation_ms), t.id)
end

local function tell(t)
  if t.owner == GATE then return end
  local feed = 'adm:feed:' .. t.owner
  call('RPUSH', feed, t.id .. '\n' .. t.replica .. '\n' .. t.mark)
  call('PEXPIRE', feed, P.owner_ttl_ms)
end

local function read_pledge(model)
  local f = call('HMGET', 'adm:m:' .. model, 'pledge', 'pledge_replica', 'pledge_need')
  return f[1] and { ticket = f[1], replica = f[2], need = tonumber(f[3]) } or nil
end

-- A ticket that does not fit lets only so many pass; then the least loaded replica that could hold it is kept from
-- filling up again. Of the others' room there only the ticket's own size is taken.
local function pledge_for(t)
  if tonumber(call('HGET', 'adm:t:' .. t.id, 'passed') or 0) < P.max_passes then return nil end
  local base = 'adm:m:' .. t.model
  for _, id in ipairs(call('ZRANGE', base .. (t.lane == 'long' and ':longroom' or ':room'), 0, CANDIDATES - 1)) do
    local r = read_replica(t.model, id)
    r.used, r.kv_used = 0, 0
    if fits(t, r, nil) then
      call('HSET', base, 'pledge', t.id, 'pledge_replica', id, 'pledge_need', t.need)
      return { ticket = t.id, replica = id, need = t.need }
    end
  end
end

local function head(model, class)
  local key = class_key(model, class)
  local user = call('ZRANGE', key .. ':users', 0, 0)[1]
  return read_ticket(call('ZRANGE', key .. ':q:' .. user, 0, 0)[1])
end

-- Batch pauses under pressure, but nobody for ever; it earns no credit meanwhile.
local function is_paused(t, start, now)
  if t.lane ~= 'batch' or now - t.asked > P.pause_most_ms or level(read_model(t.model, now)) < 1 then return false end
  local base = 'adm:m:' .. t.model
  local v = tonumber(call('HGET', base, 'v') or 0)
  if start < v then call('ZADD', base .. ':classes', v, t.class) end
  return true
end

local function grant_next(model, now)
  local pledge, first_passed = read_pledge(model), nil
  local classes = call('ZRANGE', 'adm:m:' .. model .. ':classes', 0, -1, 'WITHSCORES')
  for i = 1, #classes, 2 do
    local t = head(model, classes[i])
    if not is_paused(t, tonumber(classes[i + 1]), now) then
      local r = choose(t, pledge)
      if r then
        dequeue(t, true, now)
        t.charged = true
        grant(t, r, now)
        if first_passed then call('HINCRBY', 'adm:t:' .. first_passed.id, 'passed', 1) end
        return t
      end
      first_passed, pledge = first_passed or t, pledge or pledge_for(t)
    end
  end
end

-- Grant to those who wait while there is room, at most P.most_grants of them. Their owners are told, but not of the
-- ticket `own`, whose owner hears it in the reply.
local function pump(model, now, own)
  if now < tonumber(call('HGET', 'adm:epoch', 'settle') or 0) then return end
  for _ = 1, P.most_grants do
    if call('ZCARD', 'adm:m:' .. model .. ':room') == 0 then return end
    local t = grant_next(model, now)
    if not t then return end
    if t.id ~= own then tell(t) end
  end
end

-- Take the ticket out of everything. `used`: tokens that it really took, nil for all that it reserved.
local function drop(t, used, now)
  if t.replica then
    occupy(t, read_replica(t.model, t.replica), -1)
    if used and used < t.need then
      if t.charged then uncharge(t, t.need - used) end
      spend_both(t, used - t.need, now)
    end
  else
    dequeue(t, false, now)
    spend_both(t, -t.need, now)
  end
  erase_ticket(t)
end
