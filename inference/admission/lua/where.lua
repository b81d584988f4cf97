-- Where waiting tickets are. ARGV: now, tickets. Returns, per ticket, {'queued', position, seconds or ''},
-- {'granted', replica} (its owner missed the news) or {'gone'}.
local out, now = {}, time_of(ARGV[1])
for i = 1, #ARGV - 1 do
  local id = ARGV[i + 1]
  local t = read_ticket(id)
  if not t then
    out[i] = { 'gone' }
  elseif t.replica then
    out[i] = { 'granted', t.replica }
  else
    local position, wait = forecast_of(t, now)
    out[i] = { 'queued', position, wait and string.format('%.3f', wait) or '' }
  end
end
return out
