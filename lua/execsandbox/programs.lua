--- Where the helper and bubblewrap are.

local core = require "execsandbox.core"

local programs = {}

local system_directories = { "/usr/bin", "/bin", "/usr/local/bin" }

-- An alternate that the environment names, which is not to be trusted in a set-id process.
local function named(variable)
  if core.secure() then return nil end
  local path = os.getenv(variable)
  if path and path:sub(1, 1) == "/" then return path end
end

-- The library may have been loaded through a relative path: looked at once, before any chdir.
local library = core.library() and core.canonical(core.library())
local beside = library and library:match("^(.*)/[^/]*$") .. "/execsandbox-helper"

--- Absolute path of the helper (nil: nowhere), whether the environment named it.
function programs.helper()
  local path = named "EXECSANDBOX_HELPER"
  if path then return path, true end
  return beside, false
end

--- Absolute path of the filtering proxy, which is installed beside the helper at PATH.
function programs.filter(path)
  return path:match "^(.*)/[^/]*$" .. "/execsandbox-proxy"
end

--- Absolute paths where bubblewrap may be, best first; whether the environment named it.
function programs.launchers()
  local path = named "EXECSANDBOX_BWRAP"
  if path then return { path }, true end
  local list, seen = {}, {}
  local function add(directory)
    if directory:sub(1, 1) == "/" and not seen[directory] then
      seen[directory] = true
      list[#list + 1] = directory .. "/bwrap"
    end
  end
  if not core.secure() then
    for directory in (os.getenv "PATH" or ""):gmatch("[^:]+") do add(directory) end
  end
  for _, directory in ipairs(system_directories) do add(directory) end
  return list, false
end

return programs
