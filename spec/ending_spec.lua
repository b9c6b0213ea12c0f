-- Every way in which a run can end, and that nothing outlives it (cases 32, 49 and 51).
local sandbox = require "execsandbox"
local inside = require "spec.support.inside"
local support = require "spec.support"

local quote = support.quote
local this = (support.read "/proc/self/stat"):match "^%d+"
local marks = 0

-- A number of seconds that no other process sleeps for.
local function new_mark()
  marks = marks + 1
  return ("4%s%03d"):format(this, marks)
end

-- Collects what nobody holds: LuaJIT's compiled code holds the upvalues it takes for constants.
local function collect()
  local jit = rawget(_G, "jit")
  if type(jit) == "table" then jit.flush() end
  collectgarbage()
  collectgarbage()
end

-- A command whose descendants are hard to end: one in a session of its own, one that ignores
-- signals, one forked twice, one that is stopped; `last` is what it does then. All but the first
-- keep its streams. Each is a `sleep` of so many seconds as the mark says.
local function brood(mark, last)
  local script = [[
    echo before
    (setsid sleep MARK >/dev/null 2>&1 </dev/null &)
    (trap '' TERM HUP INT QUIT; exec sleep MARK) &
    sh -c '(sleep MARK &) &'
    (exec sleep MARK) &
    until grep -q sleep /proc/$!/comm; do :; done
    kill -STOP $!
    ]] .. (last or "exec sleep MARK")
  return (script:gsub("MARK", mark))
end

local function sleepers(mark) return #support.processes("sleep\0" .. mark .. "\0") end

-- Waits until the command and its four descendants are what they are to be. To look costs more
-- than to wait: it goes through all processes of the system.
local function hatched(mark)
  assert.is_true(support.eventually(function()
    support.sleep(0.02)
    return sleepers(mark) == 5
  end, 20), "the command did not get ready")
end

local function none_left(mark)
  support.eventually(function() return #support.processes(mark) == 0 end, 1)
  assert.same({}, support.processes(mark))
end

-- With and without a namespace for processes, and without any.
local kinds = { "bwrap", "shared processes", "direct" }
local policies

setup(function()
  policies = {
    bwrap = inside.policy(),
    ["shared processes"] = inside.policy(nil, nil, { isolate_processes = false }),
    direct = assert(sandbox.unrestricted {}),
  }
end)

describe("a run ends with everything in it, and keeps what was written,", function()
  -- Starts the brood; `act(run)` brings the end about. Exactly one result must come, with `status`.
  -- `last` is the command's last act, `only` one of the kinds.
  local function ends(status, options, act, last, only)
    for _, kind in ipairs(only and { only } or kinds) do
      local mark, results = new_mark(), {}
      local given = { policy = policies[kind], cwd = "/", merge_output = true, drain_grace = 0.05 }
      for name, value in pairs(options or {}) do given[name] = value end
      local on_finished = given.on_finished
      given.on_finished = function(result)
        results[#results + 1] = result
        if on_finished then on_finished(result) end
      end
      local run = assert(sandbox.start({ "/bin/sh", "-c", brood(mark, last) }, given))
      act(run, mark)
      assert.same({}, support.processes(mark), kind)
      assert.same({}, support.descendants(), kind)
      run:poll()
      run:wait()
      run:close()
      assert.equal(1, #results, kind)
      local result = results[1]
      assert.is_true(result == run:result())
      assert.equal(status, result.status, kind)
      assert.equal("before\n", result.output, kind)
      assert.equal(7, result.output_capture.byte_count)
      assert.equal(7, result.output_capture.observed_byte_count)
      assert.is_true(result.descendants_killed, kind)
    end
  end

  it("when it exits", function()
    ends("exited", nil, function(run)
      assert.equal(5, run:wait().exit_code)
    end, "exit 5")
  end)

  it("when it is killed by a signal", function()
    ends("exited", nil, function(run)
      assert.equal(11, run:wait().signal)
    end, "kill -SEGV $$")
  end)

  it("at the timeout, without and with a grace", function()
    for _, grace in ipairs { 0, 0.1 } do
      -- The time starts before the command does: where that took long, there is more the next time.
      for _, kind in ipairs(kinds) do
        local seconds, mark = 0.1, new_mark()
        local output
        repeat
          seconds = seconds * 2
          local finished = 0
          local result = inside.sh(policies[kind], brood(mark), { timeout = seconds, kill_grace = grace,
            on_finished = function() finished = finished + 1 end })
          output = result.output
          assert.equal("timeout", result.status)
          assert.equal("timeout", result.output_capture.status)
          assert.equal(1, finished)
          assert.same({}, support.processes(mark))
          assert.same({}, support.descendants())
        until output == "before\n" and result.descendants_killed or seconds > 5
        assert.is_true(seconds < 5)
        assert.equal("before\n", output)
      end
    end
  end)

  it("when a predicate says so", function()
    local go
    ends("cancelled", { cancel = function() return go end }, function(run, mark)
      go = false
      assert.is_nil(run:wait(0.01))
      hatched(mark)
      go = true
      run:wait()
    end)
  end)

  it("when it is cancelled by its handle", function()
    ends("cancelled", nil, function(run, mark)
      hatched(mark)
      run:cancel()
      run:wait()
    end)
  end)

  it("when it is cancelled by another coroutine than the one that waits", function()
    ends("cancelled", nil, function(run, mark)
      hatched(mark)
      local waiter = coroutine.wrap(function()
        while not run:poll() do coroutine.yield() end
        return "over"
      end)
      assert.is_nil(waiter())
      coroutine.wrap(function() run:cancel() end)()
      assert.equal("over", support.eventually(waiter, 20))
    end)
  end)

  it("when its predicate throws", function()
    local go
    ends("interrupted", { cancel = function() if go then error("mine", 0) end end }, function(run, mark)
      go = false
      hatched(mark)
      go = true
      assert.error_matches(function() run:wait() end, "^mine$")
    end)
  end)

  it("when its predicate throws nothing but nil", function()
    local go
    ends("interrupted", { cancel = function() if go then error() end end }, function(run, mark)
      go = false
      hatched(mark)
      go = true
      assert.is_false((pcall(run.poll, run)))
    end)
  end)

  it("when on_output throws, from `wait`, from `poll` and from `wait_any`", function()
    for i, call in ipairs { function(run) run:wait() end, function(run) while not run:poll() do end end,
      function(run) sandbox.wait_any { run } end } do
      ends("interrupted", { on_output = function() error("mine", 0) end }, function(run, mark)
        hatched(mark)
        assert.error_matches(function() call(run) end, "^mine$")
      end, nil, kinds[i])
    end
  end)

  it("when on_finished throws, which is then raised once", function()
    ends("exited", { on_finished = function() error("mine", 0) end }, function(run)
      assert.error_matches(function() run:wait() end, "^mine$")
      assert.equal("exited", run:wait().status)
    end, "exit 0")
  end)

  it("when it is closed", function()
    ends("interrupted", nil, function(run, mark)
      hatched(mark)
      run:close()
    end)
  end)

  it("when it is closed while it is being cancelled", function()
    ends("cancelled", { kill_grace = 60, drain_grace = 60 }, function(run, mark)
      hatched(mark)
      run:cancel()
      assert.is_nil(run:wait(0.02))
      run:cancel()
      run:close()
    end)
  end)

  it("at the end of a block that has it as a variable to close", function()
    support.skip_unless(support.lua_name == "5.4", "only 5.4 has variables that are closed")
    local block = assert(load [[
      local given, wait = ...
      local run <close> = given
      wait()
    ]])
    ends("interrupted", nil, function(run, mark)
      block(run, function() hatched(mark) end)
    end)
    ends("interrupted", nil, function(run, mark)
      assert.error_matches(function()
        block(run, function()
          hatched(mark)
          error "mine"
        end)
      end, "mine")
    end, nil, "bwrap")
  end)

  it("when nobody holds it any more", function()
    for _, kind in ipairs(kinds) do
      local mark, results, directory = new_mark(), {}, support.tempdir()
      local function give_up()
        local run = assert(sandbox.start({ "/bin/sh", "-c", brood(mark) }, { policy = policies[kind], cwd = "/",
          merge_output = true, capture_directory = directory }, function(result) results[#results + 1] = result.status end))
        hatched(mark)
        assert.equal("running", run:status())
      end
      give_up()
      support.eventually(function()
        collect()
        return #results > 0
      end)
      collect()
      assert.same({ "interrupted" }, results)
      none_left(mark)
      assert.same({}, support.descendants())
      assert.equal("before\n", support.read(directory .. "/" .. support.list(directory)[1]))
    end
  end)

  it("before there is anything, when on_capture_created throws", function()
    for _, kind in ipairs(kinds) do
      local directory, finished = support.tempdir(), 0
      assert.error_matches(function()
        sandbox.start({ "/bin/touch", directory .. "/ran" }, { policy = policies[kind], cwd = "/",
          capture_directory = directory, on_finished = function() finished = finished + 1 end,
          on_capture_created = function() error("mine", 0) end })
      end, "^mine$")
      assert.same({}, support.list(directory))
      assert.same({}, support.descendants())
      assert.equal(0, finished)
    end
  end)
end)

describe("a host that ends", function()
  -- The host runs `script` with `start(more)`, which starts the brood, and `acting()`, which is true
  -- once all is ready; on_finished prints. Gives what it prints and its status.
  local function host(kind, script, runner)
    local root, directory = support.tempdir(), support.tempdir()
    local mark = new_mark()
    support.write(root .. "/brood", brood(mark))
    local file = support.write(root .. "/host.lua", ([[
      sandbox = require "execsandbox"
      io.stdout:setvbuf "line"
      policy = assert(%s)
      function acting()
        local file = io.open(%q)
        return file and file:close() and true
      end
      function start(more)
        local options = { policy = policy, cwd = "/", merge_output = true, capture_directory = %q,
          on_finished = function(result) print("finished", result.status) end }
        for name, value in pairs(more or {}) do options[name] = value end
        local how = options.how or "start"
        options.how = nil
        return sandbox[how]({ "/bin/sh", %q }, options)
      end
    ]]):format(kind == "direct" and "sandbox.unrestricted {}" or kind == "bwrap" and "sandbox.read_only { hide_home = false }"
      or "sandbox.policy { rules = { { special = 'root', access = 'read' } }, isolate_processes = false }",
      root .. "/act", directory, root .. "/brood") .. script)
    -- Its streams are the pipe's, which ends when nobody has them any more.
    local pipe = assert(io.popen(("{ %s %s; echo \"status $?\"; } 2>&1 </dev/null"):format(runner or quote(support.lua),
      quote(file))))
    local ready = support.eventually(function()
      support.sleep(0.02)
      return sleepers(mark) >= 5
    end, 20)
    support.write(root .. "/act")
    local output = pipe:read "*a"
    pipe:close()
    assert.is_true(ready, output)
    none_left(mark)
    local names = support.list(directory)
    for _, name in ipairs(names) do assert.equal("before\n", support.read(directory .. "/" .. name), output) end
    assert.is_true(#names > 0, output)
    return output
  end

  local function ends(expected, script)
    for _, kind in ipairs { "bwrap", "direct" } do assert.equal(expected, host(kind, script), kind) end
  end

  local until_acting = [[
    run = start()
    repeat run:wait(0.01) until acting()
  ]]

  it("by closing its state ends its runs, and says so once", function()
    ends("finished\tinterrupted\nstatus 0\n", until_acting)
  end)

  it("by an error ends its runs", function()
    local output = host("bwrap", until_acting .. "error 'mine'")
    assert.matches("mine", output)
    assert.matches("finished\tinterrupted\nstatus 1\n$", output)
    assert.equal(1, select(2, output:gsub("finished", "")))
  end)

  it("by os.exit without closing the state ends its runs, and no code of theirs is called", function()
    ends("status 7\n", until_acting .. "os.exit(7)")
    assert.equal("status 0\n", host("bwrap", until_acting .. "os.exit()"))
  end)

  it("by os.exit with closing the state ends its runs, and says so once", function()
    support.skip_unless(support.lua_name ~= "5.1", "5.1 cannot close its state on exit")
    ends("finished\tinterrupted\nstatus 3\n", until_acting .. "os.exit(3, true)")
  end)

  it("from within a callback ends its runs", function()
    local closes = support.lua_name ~= "5.1"
    local cancel = "start { how = 'run', cancel = function() if acting() then %s end end }"
    local on_output = "start { how = 'run', on_output = function() while not acting() do end; %s end }"
    assert.equal("status 4\n", host("bwrap", cancel:format "os.exit(4)"))
    assert.equal("status 4\n", host("direct", on_output:format "os.exit(4)"))
    if closes then
      assert.equal("finished\tinterrupted\nstatus 5\n", host("direct", cancel:format "os.exit(5, true)"))
      assert.equal("finished\tinterrupted\nstatus 5\n", host("bwrap", on_output:format "os.exit(5, true)"))
    end
  end)

  it("from within another run's callback ends its runs", function()
    local script = [[
      local other = start()
      repeat other:wait(0.01) until acting()
      sandbox.run({ "/bin/echo" }, { policy = policy, cwd = "/", %s = function() EXIT end })]]
    for _, callback in ipairs { "on_finished", "on_output", "on_capture_created" } do
      if support.lua_name == "5.1" then
        assert.equal("status 6\n", host("bwrap", (script:format(callback):gsub("EXIT", "os.exit(6)"))))
      else
        assert.equal("finished\tinterrupted\nstatus 6\n",
          host("bwrap", (script:format(callback):gsub("EXIT", "os.exit(6, true)"))))
      end
    end
  end)

  it("with several runs in flight ends all of them", function()
    local expected = ("finished\tinterrupted\n"):rep(3)
    local script = "a, b = start(), start()" .. until_acting
    assert.equal(expected .. "status 0\n", host("bwrap", script))
    assert.equal("status 2\n", host("bwrap", script .. "os.exit(2)"))
  end)

  it("by a signal that it does not handle ends its runs", function()
    for kind, signal in pairs { bwrap = "TERM", ["shared processes"] = "SEGV", direct = "KILL" } do
      local output = host(kind, until_acting .. ("os.execute 'kill -%s $PPID'; while true do end"):format(signal))
      assert.matches("status %d+\n$", output)
      assert.not_matches("finished", output)
    end
  end)

  -- At a terminal: the keyboard's interrupt goes to the foreground processes of the session.
  local terminal = [[
import os, pty, select, sys, time
act, words = sys.argv[1], sys.argv[2:]
pid, fd = pty.fork()
if pid == 0:
    os.environ["TERM"] = "dumb"
    os.execvp(words[0], words)
seen, deadline = b"", time.monotonic() + 40

def read():
    global seen
    if time.monotonic() > deadline:
        print("late:", seen)
        os.kill(pid, 9)
        sys.exit(99)
    if select.select([fd], [], [], 0.02)[0]:
        try:
            data = os.read(fd, 4096)
        except OSError:
            data = b""
        seen += data
        return len(data) > 0
    return True

def until(text):
    while text not in seen:
        if not read():
            print("ended before", text, seen)
            sys.exit(98)

def interrupt():
    while not os.path.exists(act):
        read()
    os.write(fd, b"\x03")

def say(line):
    os.write(fd, line.encode() + b"\n")

def end():
    while read():
        pass
    status = os.waitpid(pid, 0)[1]
    sys.stdout.write(seen.decode().replace("\r", ""))
    print("ended", os.WEXITSTATUS(status) if os.WIFEXITED(status) else -os.WTERMSIG(status))

]]

  local function at_terminal(kind, script, words, dialogue)
    local directory = support.tempdir()
    local driver = support.write(directory .. "/driver.py", terminal .. dialogue)
    -- The runner is followed by the script's path, which also tells where `act` will be.
    local runner = ("at() { exec %s %s \"${1%%/*}/act\" %s %s \"$1\"; }; at"):format(quote(support.python), quote(driver),
      quote(support.lua), words)
    return host(kind, script, runner)
  end

  local no_handler = "this interpreter has no handler for SIGINT"

  it("by an interrupt of its script ends its runs, and says so once", function()
    support.skip_unless(not support.lua:find "interpreter", no_handler)
    for _, kind in ipairs { "bwrap", "direct" } do
      local output = at_terminal(kind, "start { how = 'run' }", "", "interrupt()\nend()\n")
      assert.matches("interrupted!", output)
      assert.equal(1, select(2, output:gsub("finished\tinterrupted\n", "")), output)
      assert.matches("ended 1\n", output)
    end
  end)

  it("is not what an interrupt at the prompt makes: the run ends, and the prompt is there again", function()
    support.skip_unless(not support.lua:find "interpreter", no_handler)
    for _, how in ipairs { "start():wait()", "start { how = 'run', cancel = function() end }" } do
      local output = at_terminal("bwrap", ([[
        function go() %s end
        function again()
          local result = assert(sandbox.run({ "/bin/true" }, { policy = policy, cwd = "/" }))
          print("again " .. result.status)
        end]]):format(how), "-i", [[
say("go()")
interrupt()
until(b"interrupted!")
until(b"finished")
say("print('still ' .. 'there')")
until(b"still there")
say("again()")
until(b"again exited")
say("os.exit(0)")
end()
]])
      assert.equal(1, select(2, output:gsub("finished\tinterrupted\n", "")), output)
      assert.matches("ended 0\n", output)
    end
  end)

  it("is not what an interrupt of `wait_any` at the prompt makes, which ends all runs that were waited for", function()
    support.skip_unless(not support.lua:find "interpreter", no_handler)
    local output = at_terminal("bwrap", [[
      function go()
        a, b = start(), start()
        sandbox.wait_any { a, b }
      end
      function states() print("states " .. a:status() .. " " .. b:status()) end]], "-i", [=[
say("go()")
interrupt()
until(b"interrupted!")
say("states()")
until(b"states ")
say("os.exit(0)")
end()
]=])
    assert.matches("states interrupted interrupted\n", output)
    assert.equal(2, select(2, output:gsub("finished\tinterrupted\n", "")), output)
  end)
end)

describe("a descendant that keeps the streams open", function()
  it("holds the run up for the grace, and no longer", function()
    for _, kind in ipairs(kinds) do
      for _, grace in ipairs { 0, 0.3 } do
        local mark = new_mark()
        local result = inside.sh(policies[kind], ("sleep %s & echo done; exit 3"):format(mark),
          { merge_output = false, drain_grace = grace })
        assert.equal("exited", result.status)
        assert.equal(3, result.exit_code)
        assert.is_true(result.descendants_killed)
        assert.equal("done\n", result.output)
        for _, capture in ipairs { result.output_capture, result.error_capture } do
          assert.equal("interrupted", capture.status)
          assert.is_false(capture.complete)
          assert.is_false(capture.truncated)
        end
        assert.same({}, support.processes(mark))
      end
    end
  end)

  it("has what it writes within the grace captured", function()
    local root = support.tempdir()
    local run = assert(sandbox.start({ "/bin/sh", "-c",
      "(until [ -e go ]; do sleep 0.02; done; echo later) & echo first; exit 4" },
      { policy = policies.bwrap, cwd = root, merge_output = true, drain_grace = 60 }))
    assert.is_true(support.eventually(function() return run:output() == "first\n" end))
    assert.is_true(support.eventually(function() return run:pid() and not support.exists("/proc/" .. run:pid()) end))
    assert.is_false(run:poll())
    support.write(root .. "/go")
    local result = assert(run:wait(20))
    assert.equal(4, result.exit_code)
    assert.equal("first\nlater\n", result.output)
    assert.equal("complete", result.output_capture.status)
    assert.is_false(result.descendants_killed)
  end)

  it("does not hold it up past a cancellation or a close, which change nothing of how it ended", function()
    for _, act in ipairs { "cancel", "close" } do
      local mark = new_mark()
      local run = assert(sandbox.start({ "/bin/sh", "-c", ("sleep %s & echo first; exit 4"):format(mark) },
        { policy = policies.bwrap, cwd = "/", merge_output = true, drain_grace = 60 }))
      local pid = support.eventually(function() return run:pid() end)
      assert.is_true(support.eventually(function() return not support.exists("/proc/" .. pid) end))
      run[act](run)
      local result = assert(run:wait(20))
      assert.equal("exited", result.status)
      assert.equal(4, result.exit_code)
      assert.equal("first\n", result.output)
      assert.equal("interrupted", result.output_capture.status)
      assert.same({}, support.processes(mark))
    end
  end)

  it("that lets go of them does not outlive the run either", function()
    for _, kind in ipairs(kinds) do
      local mark = new_mark()
      local result = inside.sh(policies[kind], ("sleep %s >/dev/null 2>&1 & echo done"):format(mark), { drain_grace = 60 })
      assert.equal("complete", result.output_capture.status)
      assert.is_true(result.descendants_killed)
      assert.is_true(result.real_seconds < 30)
      assert.same({}, support.processes(mark))
    end
  end)
end)

describe("descendants = \"leave\"", function()
  -- A command that exits with 3 and leaves a descendant, which ends when the file `go` is there.
  local script = "(until [ -e go ]; do sleep 0.02; done; echo late; echo done >left) %s& echo first; exit 3 # %s"

  local function leaves(kind, redirection, grace)
    local root, mark = support.tempdir(), new_mark()
    local policy = kind == "direct" and policies.direct
      or inside.policy(root, nil, { isolate_processes = kind == "bwrap" or false })
    local run = assert(sandbox.start({ "/bin/sh", "-c", script:format(redirection, mark) }, { policy = policy,
      cwd = root, merge_output = true, descendants = "leave", drain_grace = grace }))
    return run, root, mark
  end

  it("lets them go on after the run is over, which they do not hold up", function()
    for _, kind in ipairs { "bwrap", "direct" } do
      for redirection, status in pairs { [""] = "interrupted", [">/dev/null 2>&1 "] = "complete" } do
        local run, root, mark = leaves(kind, redirection, redirection == "" and 0.1 or 60)
        local result = assert(run:wait(20))
        assert.equal("exited", result.status)
        assert.equal(3, result.exit_code)
        assert.equal("first\n", result.output)
        assert.equal(status, result.output_capture.status, kind)
        assert.is_false(result.descendants_killed)
        run:close()
        run = nil -- luacheck: ignore 311
        collect()
        assert.is_true(#support.processes(mark) > 0)
        assert.same({}, support.list(root))
        assert.same({}, support.descendants()) -- nobody here would wait for them
        support.write(root .. "/go")
        if redirection ~= "" then
          assert.is_true(support.eventually(function() return support.exists(root .. "/left") end, 20))
        end
        none_left(mark)
      end
    end
  end)

  it("is over with them where they end first", function()
    for _, kind in ipairs { "bwrap", "direct" } do
      local run, root = leaves(kind, "", 60)
      assert.is_true(support.eventually(function() return run:output() == "first\n" end))
      support.write(root .. "/go")
      local result = assert(run:wait(20))
      assert.equal("first\nlate\n", result.output)
      assert.equal("complete", result.output_capture.status)
      assert.equal("done\n", support.read(root .. "/left"))
      assert.same({}, support.descendants())
    end
  end)

  it("is not for what a timeout or the host ends", function()
    for _, kind in ipairs { "bwrap", "direct" } do
      for status, act in pairs {
        timeout = function(run) run:wait() end,
        cancelled = function(run, mark)
          hatched(mark)
          run:cancel()
          run:wait()
        end,
        interrupted = function(run, mark)
          hatched(mark)
          run:close()
        end,
      } do
        local mark = new_mark()
        local run = assert(sandbox.start({ "/bin/sh", "-c", brood(mark) }, { policy = policies[kind], cwd = "/",
          descendants = "leave", timeout = status == "timeout" and 0.3 or nil }))
        act(run, mark)
        assert.equal(status, run:status(), kind)
        none_left(mark)
        assert.same({}, support.descendants())
      end
    end
  end)

  it("leaves them when the host ends after the run", function()
    local root, mark = support.tempdir(), new_mark()
    local file = support.write(root .. "/host.lua", ([[
      local sandbox = require "execsandbox"
      local result = assert(sandbox.run({ "/bin/sh", "-c", %q }, { cwd = %q, descendants = "leave", drain_grace = 0,
        policy = assert(sandbox.policy { rules = { { special = "root", access = "read" }, { path = %q, access = "write" } } }) }))
      io.write(result.status, " ", result.exit_code)]]):format(script:format(">/dev/null 2>&1 ", mark), root, root))
    assert.equal("exited 3", support.must(support.lua, file))
    assert.is_true(#support.processes(mark) > 0)
    support.write(root .. "/go")
    assert.is_true(support.eventually(function() return support.exists(root .. "/left") end, 20))
    none_left(mark)
  end)
end)
