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
    if masked then mountable = probe() end
  end
  return mountable
end

-- AppArmor may take the capabilities from what bubblewrap starts (profile "unpriv_bwrap").
local function apparmor_is_on()
  local file = io.open "/sys/module/apparmor/parameters/enabled"
  local text = file and file:read "*l"
  if file then file:close() end
  return text == "Y"
end

local own_view

--- Whether the inner stage can build the view itself, by object; bubblewrap does it otherwise.
-- PROBE() tries it for real, and is only called where there is a doubt.
function host.own_view(probe)
  if own_view == nil then
    own_view = core.mount_calls()
    if own_view and apparmor_is_on() then own_view = probe() end
  end
  return own_view
end

return host
