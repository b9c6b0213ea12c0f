-- What a run's life hangs on: its handle, in the process that started it, and its helper.
local sandbox = require "execsandbox"
local inside = require "spec.support.inside"
local support = require "spec.support"

local quote = support.quote
local this = (support.read "/proc/self/stat"):match "^%d+"
local marks = 0

-- A number of seconds that no other process sleeps for.
local function new_mark()
  marks = marks + 1
  return ("3%s%03d"):format(this, marks)
end

-- Runs `script` in a host that can fork; it has `sandbox` and `start(script, options)`.
local function forking(script, ...)
  local file = support.write(support.tempdir() .. "/host.lua", [[
    local sandbox = require "execsandbox"
    local policy = assert(sandbox.read_only { hide_home = false })
    local function start(command, options)
      local given = { policy = policy, cwd = "/", merge_output = true }
      for name, value in pairs(options or {}) do given[name] = value end
      return assert(sandbox.start({ "/bin/sh", "-c", command }, given))
    end
  ]] .. script:format(...))
  return support.must(quote(support.host "forking") .. " " .. quote(file))
end

describe("a process that the host forks", function()
  it("ends nothing of the host's when it collects its handles or closes its state", function()
    local output = forking([[
      local finished, root = 0, %q
      local run = start("echo ready; while ! [ -e " .. root .. "/go ]; do sleep 0.01; done; echo done",
        { on_finished = function() finished = finished + 1 end })
      while run:output() ~= "ready\n" do run:wait(0.01) end
      local child = fork()
      if child == 0 then
        run = nil
        collectgarbage()
        collectgarbage()
        assert(finished == 0)
        return
      end
      assert(wait(child) == 0)
      assert(not run:poll())
      io.open(root .. "/go", "w"):close()
      local result = run:wait()
      print(result.status, finished, (result.output:gsub("\n", " ")))]], support.tempdir())
    assert.equal("exited\t1\tready done ", output)
  end)

  it("may go on with a run in the host's place, which ends when neither is left", function()
    local mark, root = new_mark(), support.tempdir()
    forking([[
      local run = start("echo ready; sleep %s")
      while run:output() ~= "ready\n" do run:wait(0.01) end
      if fork() ~= 0 then os.exit(0) end
      assert(not run:poll())
      local file = assert(io.open(%q .. "/said", "w"))
      file:write(tostring(run:wait(0.05)), " ", run:status())
      file:close()
      os.exit(0)]], mark, root)
    assert.equal("nil running", support.eventually(function()
      local said = support.read(root .. "/said")
      return said ~= "" and said
    end))
    assert.is_true(support.eventually(function() return #support.processes(mark) == 0 end, 2))
  end)

  it("may end it in so many words", function()
    local output = forking [[
      local run = start("echo ready; sleep 60")
      while run:output() ~= "ready\n" do run:wait(0.01) end
      local child = fork()
      if child == 0 then
        run:cancel()
        return
      end
      assert(wait(child) == 0)
      print(run:wait().status)]]
    assert.equal("cancelled", output)
  end)
end)

describe("a run whose descendants stay", function()
  it("leaves the host no child to reap, whenever they end", function()
    local root = support.tempdir()
    local output = forking([[
      local root = %q
      local options = { policy = assert(sandbox.unrestricted {}), cwd = root, descendants = "leave" }
      local command = "(setsid sh -c 'while ! [ -e go ]; do sleep 0.01; done; : >gone' >/dev/null 2>&1 &)"
      local result = assert(sandbox.run({ "/bin/sh", "-c", command }, options))
      assert(result.status == "exited" and not result.descendants_killed)
      collectgarbage()
      collectgarbage()
      assert(zombies() == 0)
      io.open(root .. "/go", "w"):close()
      while not io.open(root .. "/gone") do end
      -- Whoever ends next has ended after what stayed; nobody is left to be waited for.
      start("exit 0"):wait()
      local deadline = os.time() + 2
      repeat assert(zombies() == 0) until os.time() >= deadline
      print "none"]], root)
    assert.equal("none", output)
  end)

  it("ends its helper with the last of them", function()
    local mark = new_mark()
    inside.sh(assert(sandbox.unrestricted {}), ("(setsid sleep %s >/dev/null 2>&1 &)"):format(mark),
      { cwd = "/", descendants = "leave" })
    local pids = support.eventually(function()
      local found = support.processes(mark)
      return #found == 1 and found
    end)
    -- sleep's parent is the inner stage, and its parent the helper
    local function parent(pid)
      return tonumber((support.read("/proc/" .. pid .. "/stat") or ""):match ".*%) %S (%d+)")
    end
    local stage = parent(pids[1])
    local helper = parent(stage)
    assert.matches("supervise", support.read("/proc/" .. helper .. "/cmdline"))
    support.must("kill", "-KILL", tostring(pids[1]))
    assert.is_true(support.eventually(function()
      return not support.exists("/proc/" .. helper) and not support.exists("/proc/" .. stage)
    end))
  end)
end)

describe("a helper that is killed", function()
  it("does not make poll wait for what it had started", function()
    local mark = new_mark()
    -- Without a namespace its end takes the inner stage, which is held up here.
    local run = assert(sandbox.start({ "/bin/sh", "-c", "echo ready; exec sleep " .. mark },
      { policy = assert(sandbox.unrestricted {}), cwd = "/", merge_output = true }))
    assert.is_true(support.eventually(function() return run:output() == "ready\n" and run:pid() end) ~= nil)
    local pid = run:pid()
    local function parent(of)
      return (support.read("/proc/" .. of .. "/stat")):match ".*%) %S (%d+)"
    end
    local stage = parent(pid)
    local helper = parent(stage)
    support.must("kill", "-STOP", stage)
    support.must("kill", "-KILL", helper)
    local longest, polls = 0, 0
    local over
    repeat
      local begin = support.now()
      over = run:poll()
      longest = math.max(longest, support.now() - begin)
      polls = polls + 1
    until over or polls == 50
    assert.is_false(over)
    assert.is_true(longest < 0.5, longest)
    support.must("kill", "-CONT", stage)
    assert.equal("interrupted", assert(run:wait(5)).status)
    assert.is_true(support.eventually(function() return #support.processes(mark) == 0 end, 2))
  end)
end)

describe("closing a run", function()
  it("still counts what the command wrote past the limit, exactly", function()
    local root = support.tempdir()
    local run = assert(sandbox.start({ "/bin/sh", "-c", "head -c 1000000 /dev/zero; touch written; sleep 60" },
      { policy = inside.policy(root), cwd = root, merge_output = true, capture_byte_limit = 1000 }))
    assert.is_true(support.eventually(function() return support.exists(root .. "/written") end, 20))
    run:close()
    local capture = run:result().output_capture
    assert.equal("interrupted", run:status())
    assert.same({ 1000, 1000000, "limit" }, { capture.byte_count, capture.observed_byte_count, capture.status })
    assert.is_number(run:result().max_rss_bytes)
  end)

  it("that was cancelled before, or is in its grace, does not wait for that", function()
    local run = assert(sandbox.start({ "/bin/sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.1; done" },
      { policy = inside.policy(), cwd = "/", merge_output = true, kill_grace = 60 }))
    assert.is_true(support.eventually(function() return run:output() == "ready\n" end, 20))
    run:cancel()
    assert.is_nil(run:wait(0.05))
    local before = support.now()
    run:close()
    assert.is_true(support.now() - before < 10)
    assert.equal("cancelled", run:status())
  end)
end)
