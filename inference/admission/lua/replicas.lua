-- The ready replicas of a model, in place of those told before. ARGV: now, model, digest, then per replica: id, slots,
-- KV tokens, context. One that is not named gets no more tickets and is forgotten with its last. Returns their number.
local now, model = tonumber(ARGV[1]), ARGV[2]
local base, named, largest, slots = 'adm:m:' .. model, {}, 0, 0
for i = 4, #ARGV, 4 do
  local id = ARGV[i]
  named[id] = true
  call('SADD', base .. ':replicas', id)
  call('HSET', replica_key(model, id), 'slots', ARGV[i + 1], 'kv', ARGV[i + 2], 'context', ARGV[i + 3])
  local r = read_replica(model, id)
  rank_replica(model, r)
  largest, slots = math.max(largest, math.min(r.kv, r.context)), slots + r.slots
end
for _, id in ipairs(call('SMEMBERS', base .. ':replicas')) do
  if not named[id] then
    call('SREM', base .. ':replicas', id)
    local r = read_replica(model, id)
    call('HSET', replica_key(model, id), 'slots', 0)
    call('ZREM', base .. ':room', id)
    call('ZREM', base .. ':longroom', id)
    if r.used == 0 then call('DEL', replica_key(model, id)) end
    if call('HGET', base, 'pledge_replica') == id then call('HDEL', base, 'pledge', 'pledge_replica', 'pledge_need') end
  end
end
call('HSET', base, 'largest', largest, 'slots', slots, 'digest', ARGV[3])
pump(model, now, nil)
return slots
