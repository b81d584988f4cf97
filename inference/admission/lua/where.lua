-- Where waiting tickets are. ARGV: tickets. Returns, per ticket, {'queued', position, seconds or ''},
-- {'granted', replica} (its owner missed the news) or {'gone'}.
local out = {}
for i, id in ipairs(ARGV) do
  local t = read_ticket(id)
  if not t then
    out[i] = { 'gone' }
  elseif t.replica then
    out[i] = { 'granted', t.replica }
  else
    local position, wait = forecast_of(t)
    out[i] = { 'queued', position, wait and string.format('%.3f', wait) or '' }
  end
end
return out
