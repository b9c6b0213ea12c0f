--- What the specs share: `local support = require "spec.support"`.
-- Temporary directories end with the test file, whatever happens in it. Lua 5.1 grammar, as all.
local busted = require "busted"
local lfs = require "lfs"
local system = require "system"

local support = {}

local unpack = table.unpack or unpack -- luacheck: compat

--- The checkout: this file was found by one of the path's templates.
for template in package.path:gmatch "[^;]+" do
  local name = template:gsub("%?", "spec/support")
  if not support.root and lfs.attributes(name) then
    support.root = name:gsub("/?spec/support/init%.lua$", "")
  end
end
if support.root == "" or support.root == "." then
  support.root = lfs.currentdir()
end

local lua_name = os.getenv "SPEC_LUA_NAME"
  or (type(rawget(_G, "jit")) == "table" and "luajit" or _VERSION:match "%d%.%d")

--- The interpreter that runs this, as a command for the shell or an argument list's first word.
support.lua = os.getenv "SPEC_LUA" or (lua_name == "luajit" and "luajit" or "lua" .. lua_name)
--- "5.1", "5.2", "5.3", "5.4" or "luajit".
support.lua_name = lua_name
--- Where make put what belongs to this Lua.
support.build = os.getenv "SPEC_BUILD" or support.root .. "/build/" .. lua_name

--- One word of a shell command.
function support.quote(word)
  return "'" .. word:gsub("'", "'\\''") .. "'"
end

--- Runs a shell command, or the words of a command, outside any sandbox: output (both streams) and
-- exit status as the shell sees it.
function support.shell(command, ...)
  if select("#", ...) > 0 then
    local words = { command, ... }
    for i, word in ipairs(words) do
      words[i] = support.quote(word)
    end
    command = table.concat(words, " ")
  end
  -- The status comes as the last line: 5.1's close does not return it.
  local pipe = assert(io.popen("{ " .. command .. "\n} 2>&1 </dev/null; printf '\\n%d' $?"))
  local text = pipe:read "*a"
  pipe:close()
  local output, status = text:match "^(.*)\n(%d+)$"
  return output, tonumber(status)
end

--- As shell, but a status other than 0 is an error; the output without its last newline.
function support.must(command, ...)
  local output, status = support.shell(command, ...)
  if status ~= 0 then
    error(string.format("%s: status %d: %s", command, status, output), 2)
  end
  return (output:gsub("\n$", ""))
end

support.uid = tonumber((support.must "id -u"))
support.is_root = support.uid == 0
--- A Python that no version manager in a home directory stands in for.
support.python = lfs.attributes "/usr/bin/python3" and "/usr/bin/python3" or "python3"

-- Files ----------------------------------------------------------------------------------------------

function support.exists(path)
  return lfs.symlinkattributes(path, "mode") ~= nil
end

function support.mkdir(path)
  support.must("mkdir", "-p", "--", path)
  return path
end

--- Writes a file, its directories included; `mode` as for chmod.
function support.write(path, content, mode)
  local parent = path:match "^(.*)/[^/]*$"
  if parent and parent ~= "" and not lfs.attributes(parent) then
    support.mkdir(parent)
  end
  local file = assert(io.open(path, "wb"))
  assert(file:write(content or ""))
  assert(file:close())
  if mode then
    support.must("chmod", mode, "--", path)
  end
  return path
end

--- The content of a file, or nil and why not.
function support.read(path)
  local file, why = io.open(path, "rb")
  if not file then
    return nil, why
  end
  local content = file:read "*a"
  file:close()
  return content
end

function support.symlink(target, path)
  assert(lfs.link(target, path, true))
  return path
end

--- Names in a directory, sorted, without `.` and `..`.
function support.list(path)
  local names = {}
  for name in lfs.dir(path) do
    if name ~= "." and name ~= ".." then
      names[#names + 1] = name
    end
  end
  table.sort(names)
  return names
end

--- Removes a tree, directories without any permission included. Nothing may be mounted in it.
function support.remove(path)
  support.shell("find " .. support.quote(path)
    .. " -xdev -type d ! -perm -700 -exec chmod u+rwx {} + 2>/dev/null; rm -rf --one-file-system -- "
    .. support.quote(path))
end

local directories = {}

--- A new directory with a canonical path, removed after the file. In /var/tmp unless `parent` says
-- otherwise: policies treat /tmp, TMPDIR and home specially.
function support.tempdir(parent)
  parent = parent or os.getenv "SPEC_TMP" or "/var/tmp"
  local path = support.must("cd " .. support.quote(parent) .. " && mktemp -d \"$(pwd -P)/specXXXXXX\"")
  directories[#directories + 1] = path
  return path
end

--- A git repository with one commit, in a new directory (or in `path`).
function support.repository(path)
  path = path or support.tempdir()
  support.mkdir(path)
  support.write(path .. "/readme", "text\n")
  support.must("cd " .. support.quote(path) .. " && git init -q -b main . && git add -A && "
    .. "git -c user.name=spec -c user.email=spec@localhost commit -q -m first")
  return path
end

-- Programs -------------------------------------------------------------------------------------------

local function program(kind, name)
  local path = support.build .. "/spec/" .. kind .. "/" .. name
  return lfs.attributes(path) and path
    or error(path .. " is not built (make programs)", 3)
end

--- A program of spec/attack, copied where a sandbox that hides home still sees it.
local copies
function support.attack(name)
  local path = program("attack", name)
  copies = copies or support.tempdir()
  local copy = copies .. "/" .. name
  if not support.exists(copy) then
    support.must("cp", "--", path, copy)
    support.must("chmod", "755", copies, copy)
  end
  return copy
end

--- Whether spec/attack has the program for this machine.
function support.has_attack(name)
  return lfs.attributes(support.build .. "/spec/attack/" .. name) ~= nil
end

--- A program of spec/hosts.
function support.host(name)
  return program("hosts", name)
end

-- Waiting and counting -------------------------------------------------------------------------------

support.now = system.monotime
support.sleep = system.sleep

--- Calls fn until it returns something true, which is returned; after `seconds` (5) the last answer.
function support.eventually(fn, seconds)
  local deadline = support.now() + (seconds or 5)
  while true do
    local answer = { fn() }
    if answer[1] or support.now() > deadline then
      return unpack(answer)
    end
    support.sleep(0.01)
  end
end

--- How many descriptors this process has open, the one that counts left out.
function support.fds()
  return #support.list "/proc/self/fd" - 1
end

-- The parent of every process.
local function parents()
  local parent = {}
  for name in lfs.dir "/proc" do
    local stat = name:match "^%d+$" and support.read("/proc/" .. name .. "/stat")
    if stat then
      parent[tonumber(name)] = tonumber(stat:match ".*%) %S (%d+)")
    end
  end
  return parent
end

--- The process ids below `pid`, itself left out (default: below this process).
function support.descendants(pid)
  pid = pid or tonumber((support.read "/proc/self/stat"):match "^%d+")
  local parent, found = parents(), {}
  for candidate in pairs(parent) do
    local above = parent[candidate]
    while above and above ~= pid and above ~= 0 do
      above = parent[above]
    end
    if above == pid then
      found[#found + 1] = candidate
    end
  end
  table.sort(found)
  return found
end

--- The process ids whose command line holds `text`, in any session and namespace.
function support.processes(text)
  local found = {}
  for name in lfs.dir "/proc" do
    local line = name:match "^%d+$" and support.read("/proc/" .. name .. "/cmdline")
    if line and line:find(text, 1, true) then
      found[#found + 1] = tonumber(name)
    end
  end
  table.sort(found)
  return found
end

--- The mount points of this process at or below `path`.
function support.mounts(path)
  local found = {}
  for line in (support.read "/proc/self/mountinfo"):gmatch "[^\n]+" do
    local point = line:match "^%S+ %S+ %S+ %S+ (%S+)"
    if point == path or point:sub(1, #path + 1) == path .. "/" then
      found[#found + 1] = point
    end
  end
  return found
end

-- The `pending` that ends a running test is a global of that test alone.
local skip
--- Skips the running test unless `condition`. Only for what this machine cannot do.
function support.skip_unless(condition, reason)
  if not condition then
    skip(reason)
  end
end

local subscriptions = {}
local function subscribe(channel, action)
  local subscription = busted.subscribe(channel, function(element)
    action(element)
    return nil, true
  end)
  subscriptions[#subscriptions + 1] = { subscription.id, channel }
end

subscribe({ "test", "start" }, function(element)
  skip = element.env.pending
end)

-- Comes after the file, its teardowns included, also where a block of it failed.
subscribe({ "file", "end" }, function()
  for _, subscription in ipairs(subscriptions) do
    busted.unsubscribe(unpack(subscription))
  end
  for _, path in ipairs(directories) do
    support.remove(path)
  end
  directories = {}
end)

return support
