--- The environment of a command: the host's, cleared or filtered, with changes on top.

local core = require "execsandbox.core"

local environment = {}

local baseline = {
  "PATH", "HOME", "LANG", "LC_*", "TERM", "TZ", "USER", "LOGNAME", "SHELL", "TMPDIR",
}

-- A name with "*" for any characters, as a Lua pattern.
local function pattern(name)
  return "^" .. name:gsub("[^%w*]", "%%%0"):gsub("%*", ".*") .. "$"
end

local function matcher(names)
  local patterns = {}
  for i, name in ipairs(names) do patterns[i] = pattern(name) end
  return function(name)
    for _, p in ipairs(patterns) do
      if name:find(p) then return true end
    end
    return false
  end
end

--- The host's environment, as a table from name to value.
function environment.host()
  local values = {}
  for _, entry in ipairs(core.environment()) do
    local name, value = entry:match("^([^=]+)=(.*)$")
    if name and values[name] == nil then values[name] = value end
  end
  return values
end

--- The environment for OPTIONS of `run`: a table from name to value.
function environment.build(options)
  local values = {}
  local wanted = function() return true end
  if options.pass_env then
    local names = {}
    for _, name in ipairs(baseline) do names[#names + 1] = name end
    for _, name in ipairs(options.pass_env) do names[#names + 1] = name end
    wanted = matcher(names)
  elseif options.clear_env then
    wanted = function() return false end
  end
  for name, value in pairs(environment.host()) do
    if wanted(name) then values[name] = value end
  end
  for name, value in pairs(options.env or {}) do
    values[name] = value or nil
  end
  return values
end

-- They lead to the host's directories, past HOME and TMPDIR.
local leading_home = { "TMP", "TEMP", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME" }

--- Makes HOME and TMPDIR in VALUES, built for OPTIONS, those of the private home at PLACE.
function environment.move_home(values, options, place)
  for _, name in ipairs(leading_home) do
    if not (options.env and options.env[name]) then values[name] = nil end
  end
  values.HOME, values.TMPDIR = place .. "/home", place .. "/tmp"
end

--- VALUES as a sorted list of "NAME=value".
function environment.list(values)
  local list = {}
  for name, value in pairs(values) do list[#list + 1] = name .. "=" .. value end
  table.sort(list)
  return list
end

--- For the options' schema: names without "=" and NUL; values strings or false.
function environment.check(value)
  local expected = "a table from names to strings, or false to unset,"
  if type(value) ~= "table" then return false, expected end
  for name, text in pairs(value) do
    if type(name) ~= "string" or name == "" or name:find("[=%z]") then return false, expected end
    if text ~= false and (type(text) ~= "string" or text:find("\0", 1, true)) then
      return false, expected
    end
  end
  return true
end

return environment
