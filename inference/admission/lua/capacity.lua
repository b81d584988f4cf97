-- How a model stands. ARGV: model. Returns {slots, running, tokens a second or '', pressure level,
-- class, waiting, tokens, ...}.
local model = read_model(ARGV[1])
local out = { model.slots, model.running, model.rate and string.format('%.3f', model.rate) or '', level(model) }
for _, class in ipairs(call('ZRANGE', 'adm:m:' .. model.name .. ':classes', 0, -1)) do
  local c = call('HMGET', class_key(model.name, class), 'waiting', 'tokens')
  out[#out + 1], out[#out + 2], out[#out + 3] = class, tonumber(c[1]), tonumber(c[2])
end
return out
