-- A place that was granted before Valkey was emptied, or before its owner was given up by mistake.
-- ARGV: now, epoch, owner, ticket, model, lane, tier, user, organization, need, asked, granted, replica.
-- Returns 1, 0 when another owner has the ticket by now, or 'epoch'.
if is_stranger(ARGV[3], ARGV[2], tonumber(ARGV[1])) then return 'epoch' end
local old = read_ticket(ARGV[4])
if old and old.owner ~= ARGV[3] then return 0 end
if old then drop(old, nil, tonumber(ARGV[1])) end
local t = { id = ARGV[4], model = ARGV[5], class = ARGV[6] .. ':' .. ARGV[7], lane = ARGV[6], tier = ARGV[7],
  user = ARGV[8], organization = ARGV[9], owner = ARGV[3], need = tonumber(ARGV[10]), prefer = '', avoid = '',
  asked = tonumber(ARGV[11]), mark = '' }
write_ticket(t, 0)
grant(t, read_replica(t.model, ARGV[13]), tonumber(ARGV[12]))
return 1
