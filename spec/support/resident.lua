--- What processes occupy, read from /proc alone: for specs and benchmarks alike.
local lfs = require "lfs"
local system = require "system"

local resident = {}

local function read(path)
  local file = io.open(path, "rb")
  if not file then return nil end
  local content = file:read "*a"
  file:close()
  return content
end

--- This process.
function resident.self()
  return tonumber(read "/proc/self/stat":match "^%d+")
end

--- The children of `pid`, in no order.
function resident.children(pid)
  local found = {}
  for name in lfs.dir "/proc" do
    local stat = name:match "^%d+$" and read("/proc/" .. name .. "/stat")
    if stat and tonumber(stat:match ".*%) %S (%d+)") == pid then found[#found + 1] = tonumber(name) end
  end
  return found
end

--- What /proc/PID/status says under `name` (VmRSS, VmHWM), in bytes; nil where the process is gone
-- or has no memory any more.
function resident.bytes(pid, name)
  local status = read(("/proc/%d/status"):format(pid))
  local kib = status and status:match("\n" .. name .. ":%s*(%d+) kB")
  return kib and tonumber(kib) * 1024
end

--- Looks at the processes in `pids` every 0.1 s until `over()`, at most `seconds`: a table from pid
-- to the most that it had resident when looked at.
function resident.watch(pids, over, seconds)
  local most, deadline = {}, system.monotime() + seconds
  repeat
    for _, pid in ipairs(pids) do
      most[pid] = math.max(most[pid] or 0, resident.bytes(pid, "VmRSS") or 0)
    end
    system.sleep(0.1)
  until over() or system.monotime() > deadline
  return most
end

return resident
