-- Hosts that run out of memory: spec/hosts/allocations.c fails every allocation in turn.
local support = require "spec.support"

local quote = support.quote

-- What scripts begin with.
local prelude = [=[
local root, captures, elsewhere = ...
if jit then jit.off() end -- LuaJIT's compiler crashes without memory

-- Only memory makes something fail here, and is what its error says.
local function must(...)
  if not ... then error((select(2, ...)), 0) end
  return ...
end

-- The text of what must be refused. Where there was no memory, that is what it says.
local function refused(fn, ...)
  local ok, value, err = pcall(fn, ...)
  if ok and value then error "accepted" end
  if not ok then err = value end
  if tostring(err):find "memory" then error(err, 0) end
  return (tostring(err):gsub("^.-:%d+: ", ""))
end

-- A table as text.
local function text(value)
  if type(value) ~= "table" then return tostring(value) end
  local parts = {}
  for key, item in pairs(value) do parts[#parts + 1] = tostring(key) .. "=" .. text(item) end
  table.sort(parts)
  return "{" .. table.concat(parts, ",") .. "}"
end
]=]

-- A workspace with something of everything, a directory for captures, and one beside them.
local function arrange()
  local root, captures, elsewhere = support.tempdir(), support.tempdir(), support.tempdir()
  support.write(root .. "/sub/deep/a.pem")
  support.write(root .. "/b.pem")
  support.mkdir(root .. "/secrets")
  support.symlink("sub", root .. "/link")
  support.symlink("../secrets", root .. "/sub/linked.pem")
  support.write(root .. "/.git", "gitdir: " .. elsewhere .. "/git/worktree\n")
  support.write(elsewhere .. "/git/worktree/commondir", "..\n")
  support.mkdir(elsewhere .. "/shown")
  support.mkdir(elsewhere .. "/home")
  return root, captures, elsewhere
end

-- From Lua 5.2 on Lua tries a second time, after a collection; before, that is `once`.
local second = (support.lua_name == "5.1" or support.lua_name == "luajit") and "once" or "twice"

-- All of it takes minutes: the sanitizers' build does it, which also sees what is lost.
local whole = support.build:find("/sanitize/", 1, true) ~= nil

-- Fails every allocation of SCRIPT in turn; KIND is `fresh` or `kept`.
local function sweep(kind, modes, script, more)
  if not whole then modes = { modes[1] } end
  for _, mode in ipairs(modes) do
    local root, captures, elsewhere = arrange()
    local file = support.write(support.tempdir() .. "/script.lua", prelude .. script)
    local command = ("cd %s && HOME=/root TMPDIR=%s ASAN_OPTIONS=detect_leaks=1 %s %s %s %s %s %s %s %s"):format(
      quote(root), quote(elsewhere .. "/home"), quote(support.host "allocations"), mode, kind, quote(file), quote(root),
      quote(captures), quote(elsewhere), more or "")
    local output, status = support.shell(command)
    assert.equal(0, status, mode .. ": " .. output)
  end
end

describe("a host without memory", function()
  it("gets an error and no half of a library, and can load it later", function()
    support.skip_unless(support.lua_name ~= "luajit", "LuaJIT leaves a file open that it cannot load for want of memory")
    sweep("fresh", { second, "onwards" }, [=[
      -- Lua says of a file that it cannot open for want of memory that there is none.
      local function load()
        local ok, problem = pcall(require, "execsandbox")
        if ok then return problem end
        for name in pairs(package.loaded) do
          if name:find "^execsandbox" then package.loaded[name] = nil end
        end
        if tostring(problem):find "memory" or tostring(problem):find "not found" then
          error("not enough memory", 0)
        end
        error(problem, 0)
      end
      local ok, sandbox = pcall(load)
      if not ok then sandbox = load() end
      local policy = must(sandbox.policy { rules = { { special = "root", access = "read" } } })
      local yields = require "execsandbox.protect".yields
      return tostring(yields) .. tostring(policy) .. must(policy:access(root))]=])
  end)

  local policies = [=[
    local sandbox = require "execsandbox"
    local case = select(4, ...)
    local options = { cwd = root, env = { HOME = elsewhere .. "/home", PATH = "/usr/bin:/bin", TMPDIR = "/tmp" } }
    listen(root .. "/socket")

    local function make()
      return must(sandbox.policy {
        workspace_roots = { root },
        rules = {
          { special = "minimal", access = "read" }, { special = "home", access = "deny" },
          { special = "workspace_roots", access = "write" }, { glob = "**/*.pem", access = "deny" },
          { special = "search_path", access = "read" }, { special = "tmpdir", access = "write" },
          { path = root .. "/secrets", access = "deny" }, { path = root .. "/missing/name", access = "deny" },
          { path = elsewhere, access = "write" }, { path = elsewhere .. "/shown", source = root .. "/sub", access = "read" },
          { special = "working_directory", access = "read" },
        },
        private_runtime = true, private_tmp = true, limits = { processes = 10, open_files = 100 },
        devices = { "/dev/null" }, unix_sockets = "internal", network = { mode = "isolated", loopback = true },
      })
    end

    local function widen(policy)
      return must(policy:extend { rules = { { path = elsewhere .. "/git", access = "deny" } }, private_tmp = false })
    end

    local wider = widen(make())
    local cases = {}

    function cases.made()
      local policy = make()
      local other = widen(policy)
      return table.concat({ tostring(policy), tostring(other), text(policy:spec()), tostring(policy == other),
        tostring(policy == must(sandbox.policy(policy:spec()))), tostring(other == wider),
        refused(sandbox.policy, { rules = { { glob = "!x", access = "deny" } } }),
        refused(sandbox.policy, { rules = { { path = "/dev", access = "deny" } } }),
        refused(sandbox.policy, { rulez = {} }),
        refused(sandbox.policy, { rules = { { glob = "x", access = "read" } } }), sandbox.decode "a\255b\226\130" }, "\n")
    end

    function cases.asked()
      local parts, seen = { text(must(wider:rules(options))) }, must(wider:resolve(options))
      for _, path in ipairs { "/", root, root .. "/link/deep/a.pem", elsewhere .. "/git", "sub", elsewhere .. "/shown/deep" } do
        local access, why = must(seen:access(path))
        parts[#parts + 1] = path .. access .. text(why)
        parts[#parts + 1] = text { must(seen:explain(path)) }
      end
      parts[#parts + 1] = text { must(wider:access("sub", options)) }
      parts[#parts + 1] = text { must(wider:explain("sub", options)) }
      parts[#parts + 1] = refused(wider.access, wider, "", options)
      return table.concat(parts, "\n")
    end

    function cases.planned()
      local plan = must(sandbox.plan({ "/bin/true" }, { policy = wider, cwd = root, env = options.env, clear_env = true }))
      local masked = false
      for i = #plan.mounts, 1, -1 do -- other sockets come and go on the host
        local path = plan.mounts[i].path
        masked = masked or path == root .. "/socket"
        if path ~= root .. "/socket" and plan.mounts[i].kind == "mask-file" and not path:find "pem$" then
          table.remove(plan.mounts, i)
        end
      end
      return table.concat({ tostring(masked), tostring(plan), refused(sandbox.plan, { "/bin/true" }, { policy = wider, cmd = "x" }),
        refused(sandbox.plan, { "/bin/true" }, { policy = wider, cwd = "/nonexistent" }) }, "\n")
    end

    return cases[case], function() end]=]

  for _, case in ipairs { "made", "asked", "planned" } do
    it("has whole policies and right answers, or none: " .. case, function()
      sweep("kept", { second, "onwards" }, policies, case)
    end)
  end

  -- Runs, by the case. No file may be left but one that the caller was told of, or one of a command that
  -- was started; and no placeholder.
  local runs = [=[
    local sandbox = require "execsandbox"
    local case = select(4, ...)
    local external = must(sandbox.external())
    local workspace = must(sandbox.policy { workspace_roots = { root }, rules = {
      { special = "root", access = "read" }, { special = "workspace_roots", access = "write" } } })
    local homes = os.getenv "TMPDIR" -- where private ones are made
    local told, before, launched = {}, text(list(root)), 0

    local function tell(result)
      told[result.output_capture.path] = true
      if result.error_capture then told[result.error_capture.path] = true end
    end

    local function summary(result)
      return text { result.status, tostring(result.exit_code), tostring(result.signal), result.output,
        tostring(result.error_output), tostring(result.output_truncated), result.output_capture.status,
        result.output_capture.byte_count, result.output_capture.observed_byte_count }
    end

    local cases = {}

    function cases.run()
      local seen, ended = {}, 0
      local result = must(sandbox.run({ "/bin/sh", "-c", "cat; echo \"$NAME\" >&2; exit 3" }, {
        policy = external, cwd = root, stdin = "some input\nand more\n", env = { NAME = "value", PATH = false },
        clear_env = true, output_limit = 8, error_output_limit = 100, capture_directory = captures, timeout = 60,
        kill_grace = 0.1, cancel_interval = 0.001, private_home = true,
        cancel = function() end,
        on_capture_created = tell,
        on_output = function(stream, bytes) seen[stream] = (seen[stream] or "") .. bytes end,
        on_finished = function() ended = ended + 1 end,
      }))
      return summary(result) .. text(seen) .. ended .. tostring(told[result.output_capture.path])
    end

    function cases.start()
      local run = must(sandbox.start({ "/bin/cat" }, {
        policy = external, cwd = root, merge_output = true, stdin = "pipe", clear_env = true, capture_byte_limit = 20,
      }))
      local count = must(run:write "one\ntwo\255\nthree\nfour\nfive\n")
      run:close_stdin()
      local result = must(run:wait())
      local capture, parts = result.output_capture, { tostring(count), summary(result), summary(run:result()) }
      parts[#parts + 1] = capture:read()
      parts[#parts + 1] = capture:read(2, 3)
      for line in capture:lines() do parts[#parts + 1] = line end
      parts[#parts + 1] = text { capture:sample { head_bytes = 2, tail_bytes = 2 } }
      parts[#parts + 1] = text { capture:text(10) }
      parts[#parts + 1] = tostring(capture) .. tostring(run)
      run:close()
      return table.concat(parts, "\n")
    end

    function cases.sandbox()
      return summary(must(sandbox.run({ "/bin/sh", "-c", "test -d .agents && ! : >.codex && echo done" }, {
        policy = workspace, cwd = root, clear_env = true, merge_output = true, timeout = 60, capture_directory = captures,
        output_limit = 1000 })))
    end

    function cases.missing()
      return refused(sandbox.run, { "/nonexistent" }, {
        policy = external, cwd = root, clear_env = true, capture_directory = captures, retain_output = true })
    end

    function cases.refusal()
      return refused(sandbox.run, { "/bin/true" }, {
        policy = external, cwd = root, clear_env = true, capture_directory = captures, stdin = { file = root .. "/none" } })
    end

    -- Ended by the caller, by a callback and by nobody.
    local function start(more)
      local given = { policy = external, cwd = root, clear_env = true, stdin = "pipe" }
      for name, value in pairs(more or {}) do given[name] = value end
      return must(sandbox.start({ "/bin/cat" }, given))
    end

    function cases.cancelled()
      local run = start()
      run:cancel()
      return must(run:wait()).status
    end

    function cases.closed()
      local run = start()
      run:close()
      return run:status()
    end

    function cases.predicate()
      return must(start { cancel = function() return true end }:wait()).status
    end

    function cases.callback()
      return refused(start, { capture_directory = captures, on_capture_created = function() error("no", 0) end })
    end

    function cases.dropped()
      start()
      return "dropped"
    end

    return cases[case], function()
      local started = launches() > launched
      launched = launches()
      for _, name in ipairs(list(captures)) do
        local path = captures .. "/" .. name
        if not told[path] and not started then error(path .. " is left of no run", 0) end
        os.remove(path)
      end
      told = {}
      if #list(homes) > 0 then error("a private home is left", 0) end
      if text(list(root)) ~= before then error("the workspace has changed: " .. text(list(root)), 0) end
    end]=]

  local names = { "run", "start", "sandbox", "missing", "refusal", "cancelled", "closed", "predicate", "callback", "dropped" }
  for _, case in ipairs(whole and names or { "refusal", "dropped" }) do
    it("has right results and nothing left: " .. case, function()
      sweep("kept", { second, "onwards" }, runs, case)
      -- Where the second try succeeds, all of it goes on: one case of a whole run is enough.
      if case == "start" and second ~= "once" then sweep("kept", { "once" }, runs, case) end
    end)
  end
end)
