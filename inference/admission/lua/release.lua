-- A ticket is over, or its asker gave up. ARGV: now, epoch, owner, ticket, used ("" for all that was reserved),
-- "1" when the answer came to its end: only then its time is measured. The gate's tickets anybody may release.
-- Returns 1, 0 when there was nothing to release or another owner has the ticket by now, or 'epoch'.
local now = time_of(ARGV[1])
if is_stranger(ARGV[3], ARGV[2], now) then return 'epoch' end
local t = read_ticket(ARGV[4])
if not t or t.owner ~= ARGV[3] and t.owner ~= GATE then return 0 end
if t.replica and ARGV[6] == '1' and ARGV[5] ~= '0' then measure(t, now) end
drop(t, tonumber(ARGV[5]), now)
pump(t.model, now, nil)
return 1
