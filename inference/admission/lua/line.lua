-- The waiting line of a model: start-time fair queueing (Goyal, Vin, Cheng 1996) over classes by weight, and over the
-- users of a class in equal parts. A flow that waits has a start tag and the least is served; serving L tokens moves
-- it on by L over its weight. The virtual time of a class also moves on by L over the users that wait, as work is
-- done, so that an endless row of new users cannot keep an old one waiting: that is the ageing, by construction.

-- A sum that fades: what is left of it after some milliseconds.
local function faded(sum, ms) return sum * math.exp(-math.max(0, ms) / P.window_ms) end

-- Tokens that came to a class, for its rate.
local function note_arrival(t, now)
  local key = class_key(t.model, t.class)
  local f = call('HMGET', key, 'came', 'came_at', 'since')
  local came = faded(tonumber(f[1] or 0), now - tonumber(f[2] or now))
  call('HSET', key, 'came', came + t.need, 'came_at', now, 'since', f[3] or now)
end

-- Tokens a second that come to a class: the sum over the part of the window that has passed, at least a sixth.
local function arrival_rate(key, now)
  local f = call('HMGET', key, 'came', 'came_at', 'since')
  if not f[1] then return 0 end
  local window_s = P.window_ms / 1000 * (1 - math.exp(-math.max(P.window_ms / 6, now - tonumber(f[3])) / P.window_ms))
  return faded(tonumber(f[1]), now - tonumber(f[2])) / window_s
end

local function enqueue(t, now)
  local base, key = 'adm:m:' .. t.model, class_key(t.model, t.class)
  note_arrival(t, now)
  call('ZADD', key .. ':q:' .. t.user, t.asked, t.id)
  call('HINCRBY', key, 'waiting', 1)
  call('HINCRBY', key, 'tokens', t.need)
  if t.lane ~= 'batch' then
    call('HINCRBY', base, 'waiting', 1)
    call('HINCRBY', base, 'queued', t.need)
  end
  -- Each arrival moves the time on a little, so that equal users are served in the order in which they came; who is
  -- put back after Valkey was emptied keeps the place that its age gives it.
  if not call('ZSCORE', key .. ':users', t.user) then
    local v = tonumber(call('HINCRBYFLOAT', key, 'v', 0.01))
    local start = math.max(v, tonumber(call('ZSCORE', key .. ':idle', t.user) or 0)) - (now - t.asked) / 1000
    call('ZREM', key .. ':idle', t.user)
    call('ZADD', key .. ':users', start, t.user)
  end
  if not call('ZSCORE', base .. ':classes', t.class) then
    local v = tonumber(call('HGET', base, 'v') or 0)
    call('ZADD', base .. ':classes', math.max(v, tonumber(call('HGET', base .. ':idle', t.class) or 0)), t.class)
    call('HDEL', base .. ':idle', t.class)
  end
end

-- Out of the line, served or not; a flow with nothing left keeps its tag until time has passed it.
local function dequeue(t)
  local base, key = 'adm:m:' .. t.model, class_key(t.model, t.class)
  call('ZREM', key .. ':q:' .. t.user, t.id)
  call('HINCRBY', key, 'tokens', -t.need)
  if t.lane ~= 'batch' then
    call('HINCRBY', base, 'waiting', -1)
    call('HINCRBY', base, 'queued', -t.need)
  end
  if call('HGET', base, 'pledge') == t.id then call('HDEL', base, 'pledge', 'pledge_replica', 'pledge_need') end
  if call('EXISTS', key .. ':q:' .. t.user) == 0 then
    call('ZADD', key .. ':idle', call('ZSCORE', key .. ':users', t.user), t.user)
    call('ZREM', key .. ':users', t.user)
    call('ZREMRANGEBYSCORE', key .. ':idle', '-inf', call('HGET', key, 'v'))
  end
  if call('HINCRBY', key, 'waiting', -1) == 0 then
    call('HSET', base .. ':idle', t.class, call('ZSCORE', base .. ':classes', t.class))
    call('ZREM', base .. ':classes', t.class)
  end
end

-- The tags of the ticket's user and class move on by what it takes.
local function charge(t)
  local base, key = 'adm:m:' .. t.model, class_key(t.model, t.class)
  local users = call('ZCARD', key .. ':users')
  local start = tonumber(call('ZSCORE', key .. ':users', t.user))
  local v = tonumber(call('HGET', key, 'v'))
  call('HSET', key, 'v', math.max(v + t.need / users, start))
  call('ZADD', key .. ':users', start + t.need, t.user)
  local class_start = tonumber(call('ZSCORE', base .. ':classes', t.class))
  call('HSET', base, 'v', math.max(tonumber(call('HGET', base, 'v') or 0), class_start))
  call('ZADD', base .. ':classes', class_start + t.need / P.weights[t.class], t.class)
  call('HSET', 'adm:t:' .. t.id, 'charged', '1')
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

-- Tokens a second with what runs now (by Little's law that is what is released), and seconds that an answer is held.
-- Nil until something was measured.
local function rates(model)
  local f = call('HMGET', 'adm:m:' .. model, 'tokens', 'held', 'answers', 'running')
  if not f[1] then return nil, P.unmeasured_hold_s end
  local running = math.max(1, tonumber(f[4] or 0))
  return tonumber(f[1]) / tonumber(f[2]) * running, tonumber(f[2]) / tonumber(f[3])
end

-- Seconds of work that waits, batch left out, as a share of the longest wait allowed.
local function strain(model)
  local f = call('HMGET', 'adm:m:' .. model, 'queued', 'waiting', 'slots')
  local rate, hold = rates(model)
  local seconds = rate and tonumber(f[1] or 0) / rate or tonumber(f[2] or 0) * hold / math.max(1, tonumber(f[3] or 0))
  return seconds / (P.max_wait_ms.interactive / 1000)
end

-- The pressure ladder: 0 none, 1 batch pauses, 2 queues are shortened, 3 the cheapest tier is offered a smaller
-- model instead of a place, 4 nobody who would have to wait is taken.
local function level(model)
  local now, found = strain(model), 0
  for i, from in ipairs(P.ladder) do if now >= from then found = i end end
  return found
end

-- Seconds until `ahead` tokens of the class will have been served: meanwhile every other class is served what it has
-- and what comes to it, but no more than its part by weight. The time decides what comes, so it is found in ROUNDS
-- steps from below. Nil until rates were measured.
local ROUNDS = 3

local function seconds_for(model, class, ahead, now)
  local rate = rates(model)
  if not rate then return nil end
  local others = {}
  for _, other in ipairs(call('ZRANGE', 'adm:m:' .. model .. ':classes', 0, -1)) do
    if other ~= class then
      local key = class_key(model, other)
      others[#others + 1] = { queued = tonumber(call('HGET', key, 'tokens')), comes = arrival_rate(key, now),
        most = ahead * P.weights[other] / P.weights[class] }
    end
  end
  local seconds = ahead / rate
  for _ = 1, #others > 0 and ROUNDS or 0 do
    local work = ahead
    for _, o in ipairs(others) do work = work + math.min(o.queued + o.comes * seconds, o.most) end
    seconds = work / rate
  end
  return seconds
end

-- Place in the line of its class and seconds to wait (nil until rates were measured) of a ticket whose user has the
-- start tag `start` and `mine` tickets before it. `c`: the class with this ticket in it: v, waiting, tokens, users.
-- Before it come the users with lesser tags, and those who will come while its user's tag lies in the future; and for
-- each of the user's own tickets a round of all users; but no more than waits now and comes meanwhile.
local function forecast(t, c, start, mine, now)
  local key, mean = class_key(t.model, t.class), c.tokens / c.waiting
  local lesser = call('ZCOUNT', key .. ':users', '-inf', '(' .. string.format('%.17g', start))
  local ahead = math.max(lesser * mean, c.users * (start - c.v)) + c.users * mine * mean
  local here = math.min(ahead, c.tokens - mean)
  local seconds = seconds_for(t.model, t.class, here + mean, now)
  if seconds and here < ahead then
    local later = math.min(ahead, here + arrival_rate(key, now) * seconds)
    seconds = seconds_for(t.model, t.class, later + mean, now)
  end
  return 1 + math.floor(here / mean + 0.5), seconds
end

local function read_class(key)
  local f = call('HMGET', key, 'v', 'waiting', 'tokens')
  local function n(i) return tonumber(f[i] or 0) end
  return { v = n(1), waiting = n(2), tokens = n(3), users = call('ZCARD', key .. ':users') }
end

local function forecast_of(t, now)
  local key = class_key(t.model, t.class)
  local start = tonumber(call('ZSCORE', key .. ':users', t.user))
  return forecast(t, read_class(key), start, call('ZRANK', key .. ':q:' .. t.user, t.id), now)
end

-- What a newcomer would get.
local function forecast_for(t, now)
  local key = class_key(t.model, t.class)
  local c, start = read_class(key), call('ZSCORE', key .. ':users', t.user)
  c.waiting, c.tokens = c.waiting + 1, c.tokens + t.need
  if start then return forecast(t, c, tonumber(start), call('ZCARD', key .. ':q:' .. t.user), now) end
  c.users = c.users + 1
  return forecast(t, c, math.max(c.v + 0.01, tonumber(call('ZSCORE', key .. ':idle', t.user) or 0)), 0, now)
end
