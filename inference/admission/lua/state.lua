-- What all admission scripts share: reading and changing tickets and replicas. `P`, the policy, is put before it.
--
-- Keys (M is a model, C a class such as interactive:free, times are milliseconds, sizes tokens):
--   adm:epoch            hash    id, at, settle: which life of this Valkey it is, and until when nothing is granted
--   adm:owners           zset    owner -> until when it is believed to be alive;  adm:dying  set  those being reaped
--   adm:runners          zset    the same, without those that only pool
--   adm:o:OWNER          set     its tickets
--   adm:feed:OWNER       list    what was granted to its waiting tickets: "ticket\nreplica\nmark"
--   adm:deadlines        zset    ticket -> when it is dropped, whatever its owner says
--   adm:t:TICKET         hash    model class user organization owner need asked mark prefer avoid
--                                prefixes; passed; replica granted charged ("1" when its tags paid for it)
--   adm:p:M:XXXX         string  "digest\nreplica": where a prompt that begins so was placed last; XXXX begins the digest
--   adm:flying           hash    "u:USER", "o:ORGANIZATION" -> its answers in progress
--   adm:budget:...       string  when the token budget of a user or an organization will be whole again
--   adm:m:M              hash    v running waiting queued (not batch); tokens held answers at; pledge...; largest
--   adm:m:M:replicas     set     ids;  adm:m:M:r:ID  hash  slots kv context used kv_used long_used long_kv
--   adm:m:M:room, longroom  zset  replica with room (for a long prompt) -> share of it in use
--   adm:m:M:classes      zset    class that waits -> start tag;  adm:m:M:idle  hash  any other class -> finish tag
--   adm:m:M:c:C          hash    v waiting tokens came came_at since;  ...:users  zset  user that waits -> start tag
--   adm:m:M:c:C:idle     zset    any other user whose finish tag still matters;  ...:q:USER  zset  ticket -> asked
local call = redis.call
local CANDIDATES = 8
-- Whoever accepts runs for others to execute. It has no heartbeat: what it is granted lapses after P.gate_ms, unless the
-- runner that got the run asks with the same ticket.
local GATE = 'gate'
-- How the names of owners begin that only pool: they take up no runs.
local POOLS = 'pool-'

-- Milliseconds; '' is the server's own clock.
local function time_of(said)
  if said ~= '' then return tonumber(said) end
  local t = call('TIME')
  return t[1] * 1000 + t[2] / 1000
end

local function split_class(class) return string.match(class, '^(%w+):(%w+)$') end

local function class_key(model, class) return 'adm:m:' .. model .. ':c:' .. class end

-- An owner that knows another life of Valkey, or that was given up for dead, must beat and tell what it holds first.
-- The gate is one while no runner lives. Returns also whether nothing is granted yet.
local function is_stranger(owner, epoch, now)
  local f = call('HMGET', 'adm:epoch', 'id', 'settle')
  if owner == GATE then return call('ZCOUNT', 'adm:runners', now, '+inf') == 0, now < tonumber(f[2] or 0) end
  return f[1] ~= epoch or not call('ZSCORE', 'adm:owners', owner), now < tonumber(f[2] or 0)
end

-- ------------------------------------------------------------------ tickets

local function read_ticket(id)
  local f = call('HMGET', 'adm:t:' .. id, 'model', 'class', 'user', 'organization', 'owner', 'need', 'asked', 'prefer',
    'avoid', 'replica', 'granted', 'charged', 'mark', 'prefixes')
  if not f[1] then return nil end
  local lane, tier = split_class(f[2])
  return {
    id = id, model = f[1], class = f[2], lane = lane, tier = tier, user = f[3], organization = f[4], owner = f[5],
    need = tonumber(f[6]), asked = tonumber(f[7]), prefer = f[8], avoid = f[9], replica = f[10] or nil,
    granted = tonumber(f[11] or 0), charged = f[12] == '1', mark = f[13] or '',
    prefixes = f[14] or '',
  }
end

-- Whether it is one of the answers in progress that budgets bound. What nobody waits for is not, nor what names no
-- organization: no budget is held to that.
local function in_progress(t) return t.lane ~= 'batch' and t.organization ~= '' end

local function write_ticket(t, deadline)
  call('HSET', 'adm:t:' .. t.id, 'model', t.model, 'class', t.class, 'user', t.user, 'organization', t.organization,
    'owner', t.owner, 'need', t.need, 'asked', t.asked, 'mark', t.mark, 'prefer', t.prefer, 'avoid', t.avoid,
    'prefixes', t.prefixes or '')
  call('SADD', 'adm:o:' .. t.owner, t.id)
  call('ZADD', 'adm:deadlines', deadline, t.id)
  if in_progress(t) then
    call('HINCRBY', 'adm:flying', 'u:' .. t.user, 1)
    call('HINCRBY', 'adm:flying', 'o:' .. t.organization, 1)
  end
end

local function land(who)
  if call('HINCRBY', 'adm:flying', who, -1) <= 0 then call('HDEL', 'adm:flying', who) end
end

local function erase_ticket(t)
  call('DEL', 'adm:t:' .. t.id)
  call('SREM', 'adm:o:' .. t.owner, t.id)
  call('ZREM', 'adm:deadlines', t.id)
  if in_progress(t) then
    land('u:' .. t.user)
    land('o:' .. t.organization)
  end
end

-- ------------------------------------------------------------------ budgets: tokens a second, with a burst

-- Milliseconds until `tokens` may be used; 0 when they may be now. A whole budget pays for anything once.
local function budget_wait(who, rate, tokens, now)
  if rate <= 0 then return 0 end
  local whole = math.max(now, tonumber(call('GET', 'adm:budget:' .. who)) or 0)
  if whole <= now then return 0 end
  return math.max(0, whole + tokens / rate * 1000 - now - P.burst_ms)
end

-- `tokens` below 0 gives back.
local function spend(who, rate, tokens, now)
  if rate <= 0 or tokens == 0 then return end
  local key = 'adm:budget:' .. who
  local whole = math.max(now, tonumber(call('GET', key)) or 0) + tokens / rate * 1000
  if whole > now then call('SET', key, whole, 'PX', math.ceil(whole - now) + 1000) else call('DEL', key) end
end

local function spend_both(t, tokens, now)
  if t.organization == '' then return end
  spend('u:' .. t.user, P.users[t.tier].rate, tokens, now)
  spend('o:' .. t.organization, P.organizations[t.tier].rate, tokens, now)
end

-- ------------------------------------------------------------------ replicas

local function replica_key(model, id) return 'adm:m:' .. model .. ':r:' .. id end

local function read_replica(model, id)
  local f = call('HMGET', replica_key(model, id), 'slots', 'kv', 'context', 'used', 'kv_used', 'long_used', 'long_kv')
  local function n(i) return tonumber(f[i] or 0) end
  return { id = id, slots = n(1), kv = n(2), context = n(3), used = n(4), kv_used = n(5), long_used = n(6),
    long_kv = n(7) }
end

-- What the long lane may hold of a replica: its share, but always room for one prompt of the replica's context.
local function long_limits(r)
  local kv = math.min(r.kv, math.max(r.kv * P.long_share, r.context))
  return math.max(1, math.floor(r.slots * P.long_share)), kv
end

local function pressure(r) return math.max(r.used / r.slots, r.kv_used / r.kv) end

-- Put the replica where its load belongs among those with room; one that is being emptied has none.
local function rank_replica(model, r)
  local base = 'adm:m:' .. model
  if r.used >= r.slots or r.kv_used >= r.kv then
    call('ZREM', base .. ':room', r.id)
    call('ZREM', base .. ':longroom', r.id)
    return
  end
  call('ZADD', base .. ':room', pressure(r), r.id)
  local slots, kv = long_limits(r)
  if r.long_used >= slots or r.long_kv >= kv then
    call('ZREM', base .. ':longroom', r.id)
  else
    call('ZADD', base .. ':longroom', math.max(pressure(r), r.long_used / slots, r.long_kv / kv), r.id)
  end
end

-- Count the ticket in (`sign` 1) or out (-1). A replica that went away is forgotten with its last ticket.
local function occupy(t, r, sign)
  r.used, r.kv_used = r.used + sign, r.kv_used + sign * t.need
  if t.lane == 'long' then r.long_used, r.long_kv = r.long_used + sign, r.long_kv + sign * t.need end
  local key = replica_key(t.model, r.id)
  call('HSET', key, 'used', r.used, 'kv_used', r.kv_used, 'long_used', r.long_used, 'long_kv', r.long_kv)
  call('HINCRBY', 'adm:m:' .. t.model, 'running', sign)
  if r.slots == 0 and r.used == 0 then call('DEL', key) end
  rank_replica(t.model, r)
end

-- `pledge`: room that is kept on one replica for a ticket that was passed over too often.
local function fits(t, r, pledge)
  local slots, kv = r.slots - r.used, r.kv - r.kv_used
  if pledge and pledge.replica == r.id and pledge.ticket ~= t.id then
    slots, kv = slots - 1, kv - pledge.need
  end
  if slots < 1 or kv < t.need or r.context < t.need then return false end
  if t.lane ~= 'long' then return true end
  local long_slots, long_kv = long_limits(r)
  return r.long_used < long_slots and r.long_kv + t.need <= long_kv
end

-- ------------------------------------------------------------------ prompts that begin alike

-- One key for all digests that begin with the same four digits, so that there are at most 65,536 a model.
local function prefix_key(model, prefix) return 'adm:p:' .. model .. ':' .. string.sub(prefix, 1, 4) end

-- Where the longest of the ticket's beginnings was placed last, or ''.
local function warm_replica(t)
  for prefix in string.gmatch(t.prefixes, '[^\n]+') do
    local said = call('GET', prefix_key(t.model, prefix))
    if said and string.sub(said, 1, #prefix + 1) == prefix .. '\n' then return string.sub(said, #prefix + 2) end
  end
  return ''
end

local function remember_prefixes(t, replica)
  for prefix in string.gmatch(t.prefixes or '', '[^\n]+') do
    call('SET', prefix_key(t.model, prefix), prefix .. '\n' .. replica, 'PX', P.prefix_ms)
  end
end

-- The least loaded replica on which the ticket fits, of the CANDIDATES least loaded; the preferred one when it is not
-- much busier than that; one to be avoided only when there is no other.
local function choose(t, pledge)
  local avoid, avoided = {}, 0
  for id in string.gmatch(t.avoid, '[^\n]+') do avoid[id], avoided = true, avoided + 1 end
  local room = 'adm:m:' .. t.model .. (t.lane == 'long' and ':longroom' or ':room')
  local best, last
  for _, id in ipairs(call('ZRANGE', room, 0, CANDIDATES + avoided - 1)) do
    local r = read_replica(t.model, id)
    if fits(t, r, pledge) then
      if not avoid[id] then best = r; break end
      last = last or r
    end
  end
  best = best or last
  if best and t.prefer ~= '' and t.prefer ~= best.id and not avoid[t.prefer] then
    local warm = read_replica(t.model, t.prefer)
    if fits(t, warm, pledge) and pressure(warm) <= pressure(best) + P.affinity_slack then return warm end
  end
  return best
end
