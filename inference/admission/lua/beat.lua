-- An owner is alive; the dead are reaped; what waits is looked after.
-- ARGV: now, owner, epoch that it knows ("" at its start), a new epoch's id, then per model it serves: name, digest of
-- its replicas. Returns {epoch, 1 when the owner was known before, reservations and waiting tickets reaped,
-- models whose replicas must be told again...}.
local now, owner = tonumber(ARGV[1]), ARGV[2]
local f = call('HMGET', 'adm:epoch', 'id', 'at')
local epoch, at = f[1], tonumber(f[2] or 0)
if not epoch then
  epoch, at = ARGV[4], now
  call('HSET', 'adm:epoch', 'id', epoch, 'at', at, 'settle', 0)
end
-- Others who lived before hold places that are not counted yet.
if ARGV[3] ~= '' and ARGV[3] ~= epoch then call('HSET', 'adm:epoch', 'settle', at + P.settle_ms) end
local known = ARGV[3] == epoch and call('ZSCORE', 'adm:owners', owner) and 1 or 0
call('ZADD', 'adm:owners', now + P.owner_ttl_ms, owner)
if string.sub(owner, 1, #POOLS) ~= POOLS then call('ZADD', 'adm:runners', now + P.owner_ttl_ms, owner) end
call('ZREMRANGEBYSCORE', 'adm:runners', '-inf', now)
call('SREM', 'adm:dying', owner)

local reaped, touched = 0, {}
local function reap(id)
  local t = read_ticket(id)
  if t then
    drop(t, nil, now)
    touched[t.model] = true
    reaped = reaped + 1
  end
end
for _, id in ipairs(call('ZRANGEBYSCORE', 'adm:deadlines', '-inf', now, 'LIMIT', 0, P.most_reaped)) do reap(id) end
for _, dead in ipairs(call('ZRANGEBYSCORE', 'adm:owners', '-inf', now, 'LIMIT', 0, 8)) do
  call('ZREM', 'adm:owners', dead)
  call('SADD', 'adm:dying', dead)
end
for _, dead in ipairs(call('SRANDMEMBER', 'adm:dying', 8)) do
  for _, id in ipairs(call('SRANDMEMBER', 'adm:o:' .. dead, P.most_reaped)) do reap(id) end
  if call('EXISTS', 'adm:o:' .. dead) == 0 then
    call('SREM', 'adm:dying', dead)
    call('DEL', 'adm:feed:' .. dead)
  end
end

local reply = { epoch, known, reaped }
for i = 5, #ARGV, 2 do
  touched[ARGV[i]] = true
  if call('HGET', 'adm:m:' .. ARGV[i], 'digest') ~= ARGV[i + 1] then reply[#reply + 1] = ARGV[i] end
end
for model in pairs(touched) do pump(model, now, nil) end
return reply
