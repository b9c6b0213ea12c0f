-- What a command can read, write and list is what policy:access says, on every path of random
-- trees under random policies. SPEC_SEED repeats one; SPEC_POLICIES says how many.
local sandbox = require "execsandbox"
local inside = require "spec.support.inside"
local support = require "spec.support"

local seed = tonumber(os.getenv "SPEC_SEED") or os.time() % 100000
local count = tonumber(os.getenv "SPEC_POLICIES") or 40

-- The same numbers on every Lua: a small linear congruential generator.
local state
local function random(n)
  state = (state * 16807) % 2147483647
  return state % n + 1
end

local function pick(list) return list[random(#list)] end

-- A tree of files and directories: the paths of it that exist, and the directories among them.
local function plant(root)
  local paths, directories = { root }, { root }
  for _ = 1, 14 do
    local path = pick(directories) .. "/" .. pick { "a", "b", "c", "d" } .. random(3)
    if not support.exists(path) then
      if random(3) > 1 then
        support.mkdir(path)
        directories[#directories + 1] = path
      else
        support.write(path, "content")
      end
      paths[#paths + 1] = path
    end
  end
  return paths, directories
end

local function random_rules(root, paths, directories)
  local rules = {}
  local base = random(4)
  if base == 1 then
    rules[1] = { special = "root", access = "read" }
  elseif base == 2 then
    rules[1] = { special = "root", access = "read" }
    rules[2] = { path = root, access = "write" }
  elseif base == 3 then
    rules[1] = { special = "minimal", access = "read" }
    rules[2] = { path = root, access = pick { "read", "write" } }
  else
    rules[1] = { special = "root", access = "write" }
  end
  for _ = 1, random(7) do
    rules[#rules + 1] = { path = pick(paths), access = pick { "read", "write", "deny" } }
  end
  if random(3) == 1 then
    rules[#rules + 1] = { path = pick(directories) .. "/missing", access = pick { "read", "deny" } }
  end
  if random(3) == 1 then
    rules[#rules + 1] = { glob = pick { "a*", "b1", "/c*", "**/d?" }, access = "deny" }
  end
  return rules
end

-- Shows a second tree at a directory of the first, and adds rules below it. Of what the first tree
-- has there, the paths are taken out; those that the second has there are put in.
local function remap(rules, paths, directories)
  local source = support.tempdir()
  local there = plant(source)
  local place = pick(directories)
  -- Nothing can be kept missing there: what is protected has to exist.
  if place == directories[1] and not support.exists(source .. "/a1") then
    there[#there + 1] = support.mkdir(source .. "/a1")
  end
  local shown = {}
  for i, path in ipairs(there) do
    shown[i] = place .. path:sub(#source + 1)
  end
  for i = #paths, 1, -1 do
    if paths[i] == place or paths[i]:sub(1, #place + 1) == place .. "/" then
      table.remove(paths, i)
    end
  end
  for i = #rules, 1, -1 do -- what is hidden now might be missing there
    local path = rules[i].path
    if path and path:sub(1, #place + 1) == place .. "/" then
      table.remove(rules, i)
    end
  end
  rules[#rules + 1] = { path = place, source = source, access = pick { "read", "write" } }
  for _ = 1, random(4) do
    rules[#rules + 1] = { path = pick(shown), access = pick { "read", "write", "deny" } }
  end
  for _, path in ipairs(shown) do
    paths[#paths + 1] = path
  end
  return source
end

-- Reports for each path on its input: what it is, whether it could be read, whether written.
local probe = [[
import os, sys
for path in sys.stdin.read().split("\0"):
    if not path:
        continue
    read = write = False
    directory = os.path.isdir(path)
    try:
        if directory:
            os.listdir(path)
        else:
            with open(path, "rb") as f:
                f.read()
        read = True
    except OSError:
        pass
    try:
        if directory:
            name = path + "/.probe"
            os.close(os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
            os.unlink(name)
        else:
            os.close(os.open(path, os.O_WRONLY | os.O_APPEND))
        write = True
    except OSError:
        pass
    print("write" if read and write else "read" if read else "blind" if write else "deny")
]]

local function describe_rules(rules)
  local lines = {}
  for _, rule in ipairs(rules) do
    lines[#lines + 1] = ("%s %s%s"):format(rule.access, rule.path or rule.glob or rule.special,
      rule.source and " <- " .. rule.source or "")
  end
  return table.concat(lines, "; ")
end

describe("policies and what commands meet", function()
  for number = 1, count do
    it(("agree on every path (seed %d, policy %d)"):format(seed, number), function()
      state = (seed * 7919 + number * 104729) % 2147483646 + 1
      local root = support.tempdir()
      local paths, directories = plant(root)
      local rules = random_rules(root, paths, directories)
      local source = number % 2 == 0 and remap(rules, paths, directories)
      local policy = assert(sandbox.policy { rules = rules, workspace_roots = { root }, protected_metadata = { "a1" } })
      local script = support.write(support.tempdir() .. "/probe.py", probe)
      policy = assert(policy:extend { rules = { { path = script, access = "read" } } })
      local result, err = sandbox.run({ support.python, script }, {
        policy = policy, cwd = "/usr", stdin = table.concat(paths, "\0"), timeout = 60,
        backend_options = inside.backend_options,
      })
      if not result then
        -- Only for a link or a missing root may a policy be refused; there is none here.
        error(describe_rules(rules) .. ": " .. tostring(err))
      end
      assert.equal(0, result.exit_code, result.error_output)
      local i = 0
      for seen in result.output:gmatch "[^\n]+" do
        i = i + 1
        local said = policy:access(paths[i], { cwd = "/usr" })
        assert.equal(said, seen, ("%s under %s"):format(paths[i], describe_rules(rules)))
      end
      assert.equal(#paths, i)
      support.remove(root)
      if source then support.remove(source) end
    end)
  end
end)
