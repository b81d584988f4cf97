-- How a model stands. ARGV: model. Returns {slots, running, tokens a second or '', pressure level,
-- class, waiting, tokens, ...}.
local model = ARGV[1]
local f = call('HMGET', 'adm:m:' .. model, 'slots', 'running')
local rate = rates(model)
local out = { tonumber(f[1] or 0), tonumber(f[2] or 0), rate and string.format('%.3f', rate) or '', level(model) }
for _, class in ipairs(call('ZRANGE', 'adm:m:' .. model .. ':classes', 0, -1)) do
  local c = call('HMGET', class_key(model, class), 'waiting', 'tokens')
  out[#out + 1], out[#out + 2], out[#out + 3] = class, tonumber(c[1]), tonumber(c[2])
end
return out
