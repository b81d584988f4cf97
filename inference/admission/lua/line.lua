-- The waiting line of a model: start-time fair queueing (Goyal, Vin, Cheng 1996) over classes by weight, and over the
-- users of a class in equal parts. A flow that waits has a start tag and the least is served; serving L tokens moves
-- it on by L over its weight. The virtual time of a class also moves on by L over the users that wait, as work is
-- done, so that an endless row of new users cannot keep an old one waiting: that is the ageing, by construction.

-- A sum that fades: what is left of it after some milliseconds.
local function faded(sum, ms) return sum * math.exp(-math.max(0, ms) / P.window_ms) end

-- `now` stands for times that were never set.
local function read_class(key, now)
  local f = call('HMGET', key, 'v', 'waiting', 'tokens', 'came', 'came_at', 'since')
  local function n(i, default) return tonumber(f[i] or default) end
  return { v = n(1, 0), waiting = n(2, 0), tokens = n(3, 0), came = n(4, 0), came_at = n(5, now),
    since = n(6, now), key = key }
end

-- Tokens a second that come to a class: the sum over the part of the window that has passed, at least a sixth.
local function arrival_rate(c, now)
  local window_s = P.window_ms / 1000 * (1 - math.exp(-math.max(P.window_ms / 6, now - c.since) / P.window_ms))
  return faded(c.came, now - c.came_at) / window_s
end

-- What waits of a model, batch left out.
local function count_waiting(t, sign)
  if t.lane == 'batch' then return end
  local base = 'adm:m:' .. t.model
  call('HINCRBY', base, 'waiting', sign)
  call('HINCRBY', base, 'queued', sign * t.need)
end

local function enqueue(t, now)
  local base, key = 'adm:m:' .. t.model, class_key(t.model, t.class)
  local c = read_class(key, now)
  -- Each arrival moves time on a little, so that equal users are served in the order in which they came.
  local v = c.v + 0.01
  call('HSET', key, 'v', v, 'waiting', c.waiting + 1, 'tokens', c.tokens + t.need,
    'came', faded(c.came, now - c.came_at) + t.need, 'came_at', now, 'since', c.since)
  count_waiting(t, 1)
  call('ZADD', key .. ':q:' .. t.user, t.asked, t.id)
  -- Who is put back after Valkey was emptied keeps the place that its age gives it.
  if not call('ZSCORE', key .. ':users', t.user) then
    local start = math.max(v, tonumber(call('ZSCORE', key .. ':idle', t.user) or 0)) - (now - t.asked) / 1000
    call('ZREM', key .. ':idle', t.user)
    call('ZADD', key .. ':users', start, t.user)
  end
  if c.waiting == 0 then
    local f = call('HGET', base .. ':idle', t.class)
    call('ZADD', base .. ':classes', math.max(tonumber(call('HGET', base, 'v') or 0), tonumber(f or 0)), t.class)
    call('HDEL', base .. ':idle', t.class)
  end
end

-- Out of the line. When it is `served`, the tags of its user and its class move on by what it takes, and time does. A
-- flow with nothing left keeps its tag until time has passed it.
local function dequeue(t, served, now)
  local base, key = 'adm:m:' .. t.model, class_key(t.model, t.class)
  local c = read_class(key, now)
  local start = tonumber(call('ZSCORE', key .. ':users', t.user))
  local class_start = tonumber(call('ZSCORE', base .. ':classes', t.class))
  local model = call('HMGET', base, 'v', 'pledge')
  if served then
    c.v = math.max(c.v + t.need / call('ZCARD', key .. ':users'), start)
    call('HSET', base, 'v', math.max(tonumber(model[1] or 0), class_start))
    start, class_start = start + t.need, class_start + t.need / P.weights[t.class]
  end
  call('HSET', key, 'v', c.v, 'waiting', c.waiting - 1, 'tokens', c.tokens - t.need)
  count_waiting(t, -1)
  if model[2] == t.id then call('HDEL', base, 'pledge', 'pledge_replica', 'pledge_need') end
  call('ZREM', key .. ':q:' .. t.user, t.id)
  if call('EXISTS', key .. ':q:' .. t.user) == 1 then
    call('ZADD', key .. ':users', start, t.user)
  else
    call('ZREM', key .. ':users', t.user)
    if start > c.v then call('ZADD', key .. ':idle', start, t.user) end
    call('ZREMRANGEBYSCORE', key .. ':idle', '-inf', c.v)
  end
  if c.waiting > 1 then
    call('ZADD', base .. ':classes', class_start, t.class)
  else
    call('HSET', base .. ':idle', t.class, class_start)
    call('ZREM', base .. ':classes', t.class)
  end
end

-- Take `tokens` that were charged and not used from the tags again, and from the time that passed for them. A flow that
-- waits keeps what it saved; one that went idle does not, since it starts at the present when it comes back.
local function uncharge(t, tokens)
  local base, key = 'adm:m:' .. t.model, class_key(t.model, t.class)
  local users = math.max(1, call('ZCARD', key .. ':users'))
  call('HINCRBYFLOAT', key, 'v', -tokens / users)
  for _, flows in ipairs({ key .. ':users', key .. ':idle' }) do
    if call('ZSCORE', flows, t.user) then call('ZINCRBY', flows, -tokens, t.user) end
  end
  local part = -tokens / P.weights[t.class]
  if call('ZSCORE', base .. ':classes', t.class) then call('ZINCRBY', base .. ':classes', part, t.class) end
  if call('HEXISTS', base .. ':idle', t.class) == 1 then call('HINCRBYFLOAT', base .. ':idle', t.class, part) end
end

-- ------------------------------------------------------------------ rates, pressure, forecasts

-- Sums that fade over the window: tokens released, seconds that they were held, answers.
local function measure(t, now)
  local base = 'adm:m:' .. t.model
  local f = call('HMGET', base, 'tokens', 'held', 'answers', 'at')
  local function left(i) return faded(tonumber(f[i] or 0), now - tonumber(f[4] or now)) end
  call('HSET', base, 'tokens', left(1) + t.need, 'held', left(2) + math.max(1, now - t.granted) / 1000,
    'answers', left(3) + 1, 'at', now)
end

-- A model's line and rates: `rate`, tokens a second with what runs now (by Little's law that is what is released), nil
-- until something was measured; `hold`, seconds that an answer is held; `settles`, seconds until anything is granted
-- again. Who waits only for that is not in anybody's way: then `free` places will be had by as many at once.
-- Without `now` there is nothing to wait for.
local function read_model(name, now)
  local f = call('HMGET', 'adm:m:' .. name, 'tokens', 'held', 'answers', 'running', 'queued', 'waiting', 'slots')
  local function n(i) return tonumber(f[i] or 0) end
  local running, slots = n(4), n(7)
  local settles = now and math.max(0, tonumber(call('HGET', 'adm:epoch', 'settle') or 0) - now) / 1000 or 0
  local parallel = settles > 0 and math.max(running, slots) or running
  return { name = name, rate = f[1] and n(1) / n(2) * math.max(1, parallel) or nil, running = running, queued = n(5),
    hold = f[1] and n(2) / n(3) or P.unmeasured_hold_s, waiting = n(6), slots = slots,
    settles = settles, free = settles > 0 and math.max(0, slots - running) or 0 }
end

-- The pressure ladder: 0 none, 1 batch pauses, 2 queues are shortened, 3 the cheapest tier is offered a smaller
-- model instead of a place, 4 nobody who would have to wait is taken. The strain is the seconds of work that waits,
-- batch left out, as a share of the longest wait allowed.
local function level(model)
  if model.waiting <= model.free then return 0 end
  local seconds = model.rate and model.queued / model.rate or model.waiting * model.hold / math.max(1, model.slots)
  local strain, found = seconds / (P.max_wait_ms.interactive / 1000), 0
  for i, from in ipairs(P.ladder) do if strain >= from then found = i end end
  return found
end

-- Seconds until `ahead` tokens of the class will have been served: meanwhile every other class is served what it has
-- and what comes to it, but no more than its part by weight. The time decides what comes, so it is found in ROUNDS
-- steps from below. Nil until rates were measured.
local ROUNDS = 3

local function seconds_for(model, class, ahead, now)
  if not model.rate then return nil end
  local others = {}
  for _, other in ipairs(call('ZRANGE', 'adm:m:' .. model.name .. ':classes', 0, -1)) do
    if other ~= class then
      local c = read_class(class_key(model.name, other), now)
      others[#others + 1] = { queued = c.tokens, comes = arrival_rate(c, now),
        most = ahead * P.weights[other] / P.weights[class] }
    end
  end
  local seconds = ahead / model.rate
  for _ = 1, #others > 0 and ROUNDS or 0 do
    local work = ahead
    for _, o in ipairs(others) do work = work + math.min(o.queued + o.comes * seconds, o.most) end
    seconds = work / model.rate
  end
  return seconds
end

-- Place in the line of its class and seconds to wait (nil until rates were measured) of a ticket whose user has the
-- start tag `start` and `mine` tickets before it. `c`: the class with this ticket in it, of `users` that wait.
-- Before it come the users with lesser tags, and those who will come while its user's tag lies in the future; and for
-- each of the user's own tickets a round of all users; but no more than waits now and comes meanwhile.
local function forecast(t, model, c, users, start, mine, now)
  local mean = c.tokens / c.waiting
  local lesser = call('ZCOUNT', c.key .. ':users', '-inf', '(' .. string.format('%.17g', start))
  local ahead = math.max(lesser * mean, users * (start - c.v)) + users * mine * mean
  local here = math.min(ahead, c.tokens - mean)
  local seconds = seconds_for(model, t.class, here + mean, now)
  if seconds and here < ahead then
    local later = math.min(ahead, here + arrival_rate(c, now) * seconds)
    seconds = seconds_for(model, t.class, later + mean, now)
  end
  if model.waiting < model.free then seconds = model.settles end
  return 1 + math.floor(here / mean + 0.5), seconds
end

local function forecast_of(t, now)
  local c = read_class(class_key(t.model, t.class), now)
  local start = tonumber(call('ZSCORE', c.key .. ':users', t.user))
  local mine = call('ZRANK', c.key .. ':q:' .. t.user, t.id)
  return forecast(t, read_model(t.model, now), c, call('ZCARD', c.key .. ':users'), start, mine, now)
end

-- What a newcomer would get. `c`: its class without it; `mine`: the tickets of its user that wait there.
local function forecast_for(t, model, c, mine, now)
  local key, with = c.key, { v = c.v, waiting = c.waiting + 1, tokens = c.tokens + t.need, came = c.came,
    came_at = c.came_at, since = c.since, key = c.key }
  local users = call('ZCARD', key .. ':users')
  if mine > 0 then
    local start = tonumber(call('ZSCORE', key .. ':users', t.user))
    return forecast(t, model, with, users, start, mine, now)
  end
  local start = math.max(c.v + 0.01, tonumber(call('ZSCORE', key .. ':idle', t.user) or 0))
  return forecast(t, model, with, users + 1, start, 0, now)
end
