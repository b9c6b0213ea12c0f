--- Facts about this host that plans depend on, found once for a state.

local core = require "execsandbox.core"

local host = {}

-- Whether something is mounted below /proc that a new /proc would show again: the kernel
-- refuses a new one then ("mount too revealing"), as in most containers; nil where it cannot be
-- told.  binfmt_misc's
-- mount point is an empty directory, which does not count.
local function proc_is_masked()
  local file = io.open "/proc/self/mountinfo"
  if not file then return nil end
  for line in file:lines() do
    local point = line:match("^%S+ %S+ %S+ %S+ (%S+)")
    if point and point:find("^/proc/") and not point:find("^/proc/sys/fs/binfmt_misc") then
      file:close()
      return true
    end
  end
  file:close()
  return false
end

local mountable

--- Whether a sandbox here can have a /proc of its own. PROBE() tries it for real, and is
-- only called where there is a doubt.
function host.proc_mountable(probe)
  if mountable == nil then
    local masked = proc_is_masked()
    if masked == nil then return true end -- not known now: bubblewrap will say so if not
    mountable = true -- what the probe itself assumes
    if masked then
      local ok, answer = pcall(probe)
      mountable = nil
      if not ok then error(answer, 0) end
      mountable = answer
    end
  end
  return mountable
end

local ENOENT = 2 -- errno(3), the same on every Linux

-- AppArmor may take the capabilities from what bubblewrap starts (profile "unpriv_bwrap").
-- nil where it cannot be told.
local function apparmor_is_on()
  local file, _, errno = io.open "/sys/module/apparmor/parameters/enabled"
  if not file then
    if errno == ENOENT then return false end
    return nil
  end
  local text = file:read "*l"
  file:close()
  return text == "Y"
end

local own_view

--- Whether the inner stage can build the view itself, by object; bubblewrap does it otherwise.
-- PROBE() tries it for real, and is only called where there is a doubt.
function host.own_view(probe)
  if own_view == nil then
    local on = apparmor_is_on()
    if on == nil then return core.mount_calls() end -- not known now: the launch will say so if not
    local can = core.mount_calls()
    if can and on then can = probe() end
    own_view = can
  end
  return own_view
end

return host
