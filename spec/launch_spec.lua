-- Launching, and the life of a run up to its end (cases 49 to 52).
local sandbox = require "execsandbox"
local inside = require "spec.support.inside"
local support = require "spec.support"

local quote = support.quote

local policy
local this = (support.read "/proc/self/stat"):match "^%d+"
local marks = 0

-- A number of seconds that no other process sleeps for.
local function new_mark()
  marks = marks + 1
  return ("3%s%03d"):format(this, marks)
end

local function none_left(mark)
  assert.same({}, (support.eventually(function()
    local found = support.processes(mark)
    return #found == 0 and found
  end, 1)) or support.processes(mark))
end

-- Collects what nobody holds: LuaJIT's compiled code holds the upvalues it takes for constants.
local function collect()
  local jit = rawget(_G, "jit")
  if type(jit) == "table" then jit.flush() end
  collectgarbage()
  collectgarbage()
end

local function start(script, options, on_finished)
  local given = { policy = policy, cwd = "/", merge_output = true, timeout = 60 }
  for name, value in pairs(options or {}) do given[name] = value end
  return assert(sandbox.start({ "/bin/sh", "-c", script }, given, on_finished))
end

-- Runs `script` in a Lua process of its own, with `environment` set by the shell. It has `sandbox`,
-- `policy` and `show(...)`, which prints the fields of an error or a result.
local function host(environment, script)
  local file = support.write(support.tempdir() .. "/host.lua", [[
    local sandbox = require "execsandbox"
    local policy = assert(sandbox.read_only { hide_home = false })
    local function show(result, err)
      if result then
        print(result.status, result.exit_code, result.output, result.error_output)
      else
        print(err.kind, err.stage, err.errno, err.result and err.result.status)
        print(tostring(err))
      end
    end
  ]] .. script)
  local output, status = support.shell(environment .. " " .. quote(support.lua) .. " " .. quote(file))
  assert.equal(0, status, output)
  return output
end

local run_true = [[ show(sandbox.run({ "/bin/echo", "ran" }, { policy = policy, cwd = "/", timeout = 20 })) ]]

setup(function() policy = inside.policy() end)

describe("a program that cannot be executed", function()
  local root

  before_each(function() root = support.tempdir() end)

  -- Both ways of starting tell the same.
  local function fails(argv, stage, errno, options)
    for _, used in ipairs { policy, assert(sandbox.unrestricted {}) } do
      local given = { policy = used, cwd = root }
      for name, value in pairs(options or {}) do given[name] = value end
      local finished = 0
      given.on_finished = function(result)
        finished = finished + 1
        assert.equal("launch-failed", result.status)
      end
      local result, err = sandbox.run(argv, given)
      assert.is_nil(result)
      assert.same({ "execution", stage, errno, argv[1] }, { err.kind, err.stage, err.errno, err.command })
      assert.equal("launch-failed", err.result.status)
      assert.is_nil(err.result.exit_code)
      assert.is_nil(err.result.signal)
      assert.equal("launch-failed", err.result.output_capture.status)
      assert.equal(0, err.result.output_capture.byte_count)
      assert.matches(argv[1], tostring(err), 1, true)
      assert.equal(1, finished)
      local run = assert(sandbox.start(argv, given))
      result = assert(run:wait(20))
      assert.equal("launch-failed", result.status)
      assert.equal(stage, result.error.stage)
      assert.equal(2, finished)
    end
  end

  it("because it is missing, by name or by path", function()
    fails({ "no-such-program" }, "find-program", 2, { env = { PATH = "/usr/bin:/bin" } })
    fails({ "/nonexistent/program" }, "find-program", 2)
    fails({ "./missing" }, "find-program", 2)
    fails({ "/etc/passwd/program" }, "find-program", 20)
    fails({ "" }, "find-program", 2)
    fails({ "sh" }, "find-program", 2, { env = { PATH = "/nonexistent:" .. root } })
  end)

  it("because it is not executable", function()
    support.write(root .. "/bin/plain", "#!/bin/sh\n", "644")
    fails({ root .. "/bin/plain" }, "exec", 13)
    fails({ "plain" }, "exec", 13, { env = { PATH = root .. "/bin:/usr/bin:/bin" } })
    fails({ root }, "exec", 13)
  end)

  it("because it is no program", function()
    support.write(root .. "/script", "echo this is not run by a shell\n", "755")
    support.write(root .. "/empty", "", "755")
    fails({ root .. "/script" }, "exec", 8)
    fails({ "script" }, "exec", 8, { env = { PATH = root } })
    fails({ root .. "/empty" }, "exec", 8)
  end)

  it("because its interpreter is missing", function()
    support.write(root .. "/script", "#!/nonexistent/interpreter\n", "755")
    fails({ root .. "/script" }, "exec", 2)
    fails({ "script" }, "exec", 2, { env = { PATH = root } })
  end)

  it("because it is for another machine", function()
    local program = support.read "/bin/true"
    -- e_machine of the ELF header (elf(5)): 0xfedc is nobody's.
    support.write(root .. "/foreign", program:sub(1, 18) .. "\220\254" .. program:sub(21), "755")
    fails({ root .. "/foreign" }, "exec", 8)
  end)

  it("because of its name", function()
    fails({ "/" .. ("x"):rep(300) }, "find-program", 36)
    support.symlink("loop", root .. "/loop")
    fails({ root .. "/loop" }, "exec", 40)
  end)

  it("because it is being written", function()
    support.must("cp", "/bin/true", root .. "/busy")
    local file = assert(io.open(root .. "/busy", "ab"))
    fails({ root .. "/busy" }, "exec", 26)
    file:close()
  end)

  it("because there is too much to hand over", function()
    -- No single word may have 128 KiB (execve(2)).
    fails({ "/bin/true", ("x"):rep(131072) }, "exec", 7)
    fails({ "/bin/true" }, "exec", 7, { env = { LONG = ("x"):rep(131072) } })
  end)

  it("because its limits cannot be set", function()
    local output = host("ulimit -n 64;", [[
      policy = assert(policy:extend { limits = { open_files = 1000 } })
      show(sandbox.run({ "/bin/echo", "ran" }, { policy = policy, cwd = "/", timeout = 20 })) ]])
    assert.matches("^execution\tlimits\t1\tlaunch%-failed\n", output)
  end)

  it("because the policy hides it", function()
    support.write(root .. "/denied/program", "#!/bin/sh\n", "755")
    local hiding = inside.policy(nil, { { path = root .. "/denied", access = "deny" } })
    local _, err = sandbox.run({ root .. "/denied/program" }, { policy = hiding, cwd = "/" })
    assert.equal("execution", err.kind)
    assert.is_true(err.errno == 2 or err.errno == 13)
  end)

  it("is looked for in the command's PATH, past what cannot be executed", function()
    support.write(root .. "/one/tool", "", "644")
    support.write(root .. "/two/tool", "#!/bin/sh\necho two\n", "755")
    local result = assert(sandbox.run({ "tool" },
      { policy = policy, cwd = "/", env = { PATH = ("%s/one:%s/two:/usr/bin:/bin"):format(root, root) } }))
    assert.equal("two\n", result.output)
    -- An empty element is the working directory, as everywhere.
    result = assert(sandbox.run({ "tool" }, { policy = policy, cwd = root .. "/two", env = { PATH = "/usr/bin:" } }))
    assert.equal("two\n", result.output)
  end)
end)

describe("the command's own exit", function()
  it("is never taken for a failure of the launch", function()
    for _, used in ipairs { policy, assert(sandbox.unrestricted {}) } do
      for _, code in ipairs { 1, 125, 126, 127 } do
        local result = assert(sandbox.run({ "/bin/sh", "-c", "echo 'bwrap: execvp: No such file' >&2; exit " .. code },
          { policy = used, cwd = "/" }))
        assert.equal("exited", result.status)
        assert.equal(code, result.exit_code)
        assert.equal("bwrap: execvp: No such file\n", result.error_output)
      end
      local result = assert(sandbox.run({ "/bin/sh", "-c", "no-such-program" }, { policy = used, cwd = "/" }))
      assert.equal(127, result.exit_code)
    end
  end)
end)

describe("bubblewrap", function()
  local function wrapper(script)
    return support.write(support.tempdir() .. "/bwrap", "#!/bin/sh\n" .. script, "755")
  end

  local function with(path, script)
    return host("EXECSANDBOX_BWRAP=" .. quote(path), script or run_true)
  end

  it("is taken from where EXECSANDBOX_BWRAP says", function()
    local log = support.tempdir() .. "/log"
    local path = wrapper("echo used >>" .. quote(log) .. "\nexec bwrap \"$@\"\n")
    support.write(path, "#!/bin/sh\necho used >>" .. quote(log) .. "\nexec " .. quote(support.must "command -v bwrap")
      .. " \"$@\"\n", "755")
    assert.matches("^exited\t0\tran\n", with(path))
    assert.equal("used\n", support.read(log))
  end)

  it("that is missing is unavailable, and the sentence says how to get it", function()
    local output = with "/nonexistent/bwrap"
    assert.matches("^unavailable\tbackend\t2\tlaunch%-failed\n", output)
    assert.matches("/nonexistent/bwrap", output, 1, true)
    assert.matches("install bubblewrap", output, 1, true)
    assert.matches("^unavailable\t", with(support.write(support.tempdir() .. "/bwrap", "", "644")))
  end)

  it("that is missing is not needed where nothing is to be enforced", function()
    assert.matches("^exited\t0\tran\n", with("/nonexistent/bwrap", "policy = assert(sandbox.unrestricted {})" .. run_true))
  end)

  it("that fails gives its own words, and no status of the command's", function()
    for _, code in ipairs { 0, 1, 127 } do
      local output = with(wrapper("echo 'bwrap: No permissions to create new namespace' >&2; exit " .. code .. "\n"))
      assert.matches("^execution\tbackend\tnil\tlaunch%-failed\n", output)
      assert.matches("bwrap: No permissions to create new namespace", output, 1, true)
    end
  end)

  it("that fails without a word, or by a signal, still gives a sentence", function()
    assert.matches("^execution\tbackend\tnil\tlaunch%-failed\n%w", with(wrapper "exit 1\n"))
    assert.matches("^execution\tbackend\tnil\tlaunch%-failed\n%w", with(wrapper "kill -SEGV $$\n"))
  end)

  it("that is too old for what is asked of it gives its own words", function()
    local output = with(wrapper "echo 'bwrap: Unknown option --args' >&2; exit 1\n")
    assert.matches("^execution\tbackend\tnil\tlaunch%-failed\n", output)
    assert.matches("Unknown option --args", output, 1, true)
  end)

  it("that is no program gives its errno", function()
    local path = support.write(support.tempdir() .. "/bwrap", "no program", "755")
    assert.matches("^execution\tbackend\t8\tlaunch%-failed\n", with(path))
  end)

  it("that makes no sandbox is found out before the command runs", function()
    local root = support.tempdir()
    local nothing = wrapper 'while [ "$1" != -- ]; do shift; done; shift; program=${1#/host}; shift; exec "$program" "$@"\n'
    for mounts, stage in pairs { bwrap = "verify", inner = "mount" } do
      local output = with(nothing, ([[
        show(sandbox.run({ "/bin/touch", %q .. "/ran" },
          { policy = policy, cwd = "/", timeout = 20, backend_options = { mounts = %q } })) ]]):format(root, mounts))
      assert.matches("^execution\t" .. stage .. "\t[^\n]*\tlaunch%-failed\n", output)
      assert.same({}, support.list(root))
    end
  end)

  it("that hangs ends with the timeout, and so does what it started", function()
    local mark = new_mark()
    local output = with(wrapper("sleep " .. mark .. " & sleep " .. mark .. "\n"),
      [[ show(sandbox.run({ "/bin/true" }, { policy = policy, cwd = "/", timeout = 0.3 })) ]])
    assert.matches("^timeout\tnil\t", output)
    none_left(mark)
  end)

  it("that leaves something behind and fails has it ended", function()
    local mark = new_mark()
    local output = with(wrapper("sleep " .. mark .. " & exit 1\n"))
    assert.matches("^execution\tbackend\t", output)
    none_left(mark)
  end)

  it("that the policy lets the command write is refused", function()
    local root = support.tempdir()
    support.write(root .. "/bwrap", "#!/bin/sh\ntouch " .. quote(root .. "/started") .. "\n", "755")
    local output = with(root .. "/bwrap", ([[
      policy = assert(sandbox.workspace_write { workspace_roots = { %q } })
      show(sandbox.run({ "/bin/true" }, { policy = policy, cwd = "/" })) ]]):format(root))
    assert.matches("^policy\t", output)
    assert.matches("EXECSANDBOX_BWRAP", output, 1, true)
    assert.matches(root .. "/bwrap", output, 1, true)
    assert.same({ "bwrap" }, support.list(root))
  end)

  it("that is named through a link is refused for what the link leads to", function()
    local root, links = support.tempdir(), support.tempdir()
    support.write(root .. "/bwrap", "#!/bin/sh\n", "755")
    support.symlink(root .. "/bwrap", links .. "/bwrap")
    local output = with(links .. "/bwrap", ([[
      policy = assert(sandbox.workspace_write { workspace_roots = { %q } })
      show(sandbox.run({ "/bin/true" }, { policy = policy, cwd = "/" })) ]]):format(root))
    assert.matches("^policy\t", output)
  end)

  it("is not looked for through a relative EXECSANDBOX_BWRAP", function()
    assert.matches("^exited\t0\tran\n", with("no/such/bwrap"))
  end)

  it("that fails is what the capabilities and the doctor say", function()
    local output = with(wrapper "echo 'bwrap: not today' >&2; exit 1\n", [[
      local found = sandbox.capabilities()
      print(found.available, found.network_isolated, found.process_namespaces)
      print(found.reasons.available)
      print(tostring(sandbox.doctor()))]])
    assert.matches("^false\tfalse\tfalse\n[^\n]*bwrap: not today\n", output)
  end)
end)

describe("the helper", function()
  it("that is missing is unavailable", function()
    local output = host("EXECSANDBOX_HELPER=/nonexistent/helper", run_true)
    assert.matches("^unavailable\thelper\t2\tlaunch%-failed\n", output)
    assert.matches("/nonexistent/helper", output, 1, true)
  end)

  it("that is another program is a failed launch", function()
    for _, program in ipairs { "/bin/true", "/bin/false", "/bin/cat" } do
      assert.matches("^execution\thelper\t[^\n]*\tlaunch%-failed\n", host("EXECSANDBOX_HELPER=" .. program, run_true))
    end
    local text = support.write(support.tempdir() .. "/helper", "no program", "755")
    assert.matches("^execution\thelper\t8\tlaunch%-failed\n", host("EXECSANDBOX_HELPER=" .. quote(text), run_true))
  end)

  it("that the policy lets the command write is refused", function()
    local root = support.tempdir()
    support.must("cp", "/bin/true", root .. "/helper")
    local output = host("EXECSANDBOX_HELPER=" .. quote(root .. "/helper"), ([[
      policy = assert(sandbox.workspace_write { workspace_roots = { %q } })
      show(sandbox.run({ "/bin/true" }, { policy = policy, cwd = "/" })) ]]):format(root))
    assert.matches("^policy\t", output)
    assert.matches("EXECSANDBOX_HELPER", output, 1, true)
  end)
end)

describe("a programming error", function()
  -- The message of the error that CALL raises; nothing may come to be.
  local function raised(argv, options)
    local messages = {}
    for _, name in ipairs { "run", "start", "plan" } do
      if type(options) == "table" then
        options.on_capture_created = function() error "launched" end
      end
      local ok, message = pcall(function()
        local result = sandbox[name](argv, options)
        return result
      end)
      assert.is_false(ok)
      assert.matches(("'%s'"):format(name), message, 1, true)
      assert.matches("launch_spec.lua:%d+:", message)
      messages[#messages + 1] = message
    end
    return messages[1]
  end

  it("in an option's name is raised with the name that was meant", function()
    assert.matches("bad option 'timeuot' to 'run' (did you mean 'timeout'?)",
      raised({ "/bin/true" }, { policy = policy, timeuot = 1 }), 1, true)
    assert.matches("bad option 'outputlimit' to 'run' (did you mean 'output_limit'?)",
      raised({ "/bin/true" }, { policy = policy, outputlimit = 1 }), 1, true)
    assert.matches("bad option 'something_else_altogether' to 'run'",
      raised({ "/bin/true" }, { policy = policy, something_else_altogether = 1 }), 1, true)
    assert.matches("bad option '1' to 'run'", raised({ "/bin/true" }, { "x", policy = policy }), 1, true)
  end)

  it("in an option's type is raised with what was expected and what was given", function()
    for name, values in pairs {
      policy = { "read", 1, {}, true }, cwd = { 1, {}, "a\0b" }, timeout = { "1", -1, 0 / 0, math.huge },
      kill_grace = { -1, {} }, drain_grace = { "x" }, env = { "x", { "x" }, { A = 1 }, { ["A=B"] = "x" },
        { A = "x\0y" }, { [""] = "x" } }, clear_env = { 1, "yes" }, pass_env = { "CI_*", { 1 }, { a = "b" } },
      stdin = { 1, {}, { file = 1 }, { path = "x" } }, merge_output = { 1 }, output_limit = { -1, 1.5, "1" },
      error_output_limit = { -1, {} }, capture_byte_limit = { -1, 0.5, math.huge }, capture_directory = { 1, true },
      retain_output = { "yes" }, cancel = { 1, {} }, cancel_interval = { "x" },
      on_output = { 1 }, on_finished = { "x" }, descendants = { "ignore", true }, backend = { 1 },
    } do
      for _, value in ipairs(values) do
        local options = { policy = policy }
        options[name] = value
        local message = raised({ "/bin/true" }, options)
        assert.matches(("bad option '%s' to 'run' ("):format(name), message, 1, true)
        assert.matches("expected, got", message, 1, true)
      end
    end
  end)

  it("in the arguments is raised", function()
    assert.matches("missing option 'policy' to 'run'", raised({ "/bin/true" }, {}), 1, true)
    for _, argv in ipairs { {}, { 1 }, { "/bin/true", 1 }, { "/bin/true", "a\0b" }, { "/bin/true", nil, "x" },
      { "/bin/true", name = "x" } } do
      assert.matches("bad argument #1", raised(argv, { policy = policy }), 1, true)
    end
    for _, argv in ipairs { "true", 1, true } do
      assert.matches("bad argument #1", raised(argv, { policy = policy }), 1, true)
    end
    raised({ "/bin/true" }, nil)
    raised({ "/bin/true" }, "options")
    assert.error_matches(function() sandbox.start({ "/bin/true" }, { policy = policy }, "callback") end, "bad argument #3")
  end)

  it("in the arguments of methods is raised, and the run goes on", function()
    local run = start "exec cat"
    for _, call in ipairs { function() run:wait "x" end, function() run:wait(-1) end, function() run:kill "NOSUCH" end,
      function() run:kill(0) end, function() run:kill(1.5) end, function() run:kill {} end,
      function() sandbox.wait_any {} end, function() sandbox.wait_any({ run }, "x") end } do
      assert.has_error(call)
    end
    assert.equal("exited", run:wait().status)
  end)
end)

describe("a started run", function()
  it("is running, has a process id, and then a result", function()
    local root = support.tempdir()
    local run = start("echo $$ >&2; until [ -e go ]; do sleep 0.02; done; exit 3", { cwd = root })
    assert.equal("running", run:status())
    assert.is_nil(run:result())
    assert.is_false(run:poll())
    assert.is_nil(run:wait(0))
    assert.is_nil(run:wait(0.05))
    local pid = support.eventually(function() return run:pid() end)
    assert.is_true(support.exists("/proc/" .. pid))
    -- Its new arguments are there a moment after its exec cannot fail any more.
    assert.is_truthy(support.eventually(function() return (support.read("/proc/" .. pid .. "/cmdline")):find "until" end))
    assert.matches("running", tostring(run))
    support.write(root .. "/go")
    local result = assert(run:wait())
    assert.equal(3, result.exit_code)
    assert.equal("exited", run:status())
    assert.is_true(run:poll())
    assert.is_true(result == run:result())
    assert.is_true(result == run:wait(0))
    assert.is_nil(run:pid())
    assert.is_nil(run:fd())
    assert.is_false(support.exists("/proc/" .. pid))
  end)

  it("tells the time and what was used", function()
    local result = start("i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done"):wait()
    assert.is_true(result.real_seconds > 0 and result.real_seconds < 60)
    assert.is_true(result.user_seconds > 0 and result.user_seconds <= result.real_seconds + 0.1)
    assert.is_true(result.system_seconds >= 0)
    assert.is_true(result.max_rss_bytes > 100000 and result.max_rss_bytes < 1e9)
    assert.equal("bwrap", result.backend)
    assert.is_false(result.timed_out)
    assert.is_false(result.cancelled)
    assert.is_false(result.descendants_killed)
  end)

  it("is waited for without its handle being polled", function()
    local root = support.tempdir()
    local run = assert(sandbox.start({ "/bin/sh", "-c", "exec cat /dev/zero | head -c 5000000; touch done" },
      { policy = inside.policy(root), cwd = root }))
    assert.is_true(support.eventually(function() return support.exists(root .. "/done") end))
    assert.equal(5000000, #run:wait().output)
  end)

  it("keeps the options and arguments it was given", function()
    local argv, options = { "/bin/echo", "kept" }, { policy = policy, cwd = "/", output_limit = 3 }
    local run = assert(sandbox.start(argv, options))
    argv[2], options.output_limit, options.policy = "changed", 0, nil
    assert.equal("kep", run:wait().output)
  end)

  it("has a descriptor that turns readable when there is something to poll", function()
    local run = start "exit 0"
    assert.is_number(run:fd())
    assert.equal(run:fd(), run:pollfd())
    assert.equal("r", run:events())
    assert.is_nil(run:timeout())
    assert.equal("exited", run:wait().status)
    assert.equal(0, run:timeout())
  end)

  it("gets signals by number and by name", function()
    for _, case in ipairs { { nil, 15 }, { "TERM", 15 }, { "SIGKILL", 9 }, { "USR1", 10 }, { 12, 12 }, { 34, 34 } } do
      local run = start "echo ready; while :; do sleep 0.02; done"
      assert.is_true(support.eventually(function() return run:output() == "ready\n" end))
      run:kill(case[1])
      local result = assert(run:wait(20))
      assert.equal("exited", result.status)
      assert.equal(case[2], result.signal)
      assert.is_nil(result.exit_code)
    end
  end)

  it("takes a signal after its end for nothing", function()
    local run = start "exit 0"
    run:wait()
    run:kill "KILL"
    run:cancel()
    run:close()
    assert.equal("exited", run:status())
  end)

  it("keeps its own exit code however many signals are sent at its end", function()
    for _, used in ipairs { policy, assert(sandbox.unrestricted {}) } do
      for _ = 1, 6 do
        local run = start("trap '' WINCH; exit 5", { policy = used })
        while not run:poll() do run:kill "WINCH" end
        local result = run:result()
        assert.same({ "exited", 5 }, { result.status, result.exit_code })
        assert.equal("complete", result.output_capture.status)
      end
    end
  end)

  it("gives the signals to the command's whole group", function()
    local run = start [[
      trap 'echo parent; exit' USR1
      sh -c 'trap "echo child; exit" USR1; echo ready; while :; do sleep 0.02; done' &
      while :; do wait; done]]
    assert.is_true(support.eventually(function() return run:output() == "ready\n" end))
    run:kill "USR1"
    local result = assert(run:wait(20))
    assert.matches("child\n", result.output)
    assert.matches("parent\n", result.output)
  end)
end)

describe("a command", function()
  it("starts in the host's working directory unless told otherwise", function()
    local root = support.tempdir()
    local output = host("cd " .. quote(root) .. ";", [[
      show(sandbox.run({ "/bin/pwd" }, { policy = policy })) ]])
    assert.equal("exited\t0\t" .. root .. "\n\t\n", output)
  end)

  it("gets no TERM without a grace", function()
    for _, used in ipairs { policy, assert(sandbox.unrestricted {}) } do
      local run = start("trap 'echo term' TERM; echo ready; while :; do sleep 0.02; done", { policy = used })
      assert.is_true(support.eventually(function() return run:output() == "ready\n" end))
      run:cancel()
      local result = assert(run:wait(20))
      assert.equal("ready\n", result.output)
      assert.equal(9, result.signal)
    end
  end)
end)

describe("a timeout", function()
  it("ends the run and everything in it", function()
    local mark = new_mark()
    local result = inside.timed(policy, ("(setsid sleep %s &); echo before; sleep %s"):format(mark, mark), 0.3, "before")
    assert.equal("timeout", result.status)
    assert.is_true(result.timed_out)
    assert.is_false(result.cancelled)
    assert.is_nil(result.exit_code)
    assert.equal("before\n", result.output)
    assert.is_true(result.real_seconds >= 0.3 and result.real_seconds < 30)
    none_left(mark)
  end)

  it("of no time ends it at once", function()
    local result = inside.sh(policy, "sleep 60", { timeout = 0 })
    assert.equal("timeout", result.status)
    result = inside.sh(policy, "sleep 60", { timeout = 1e-9 })
    assert.equal("timeout", result.status)
  end)

  it("that is not reached changes nothing", function()
    local result = inside.sh(policy, "exit 5", { timeout = 1e300 })
    assert.equal("exited", result.status)
    assert.equal(5, result.exit_code)
  end)

  it("gives TERM first where a grace is set", function()
    local result = inside.timed(policy, "trap 'echo term; exit 6' TERM; echo ready; while :; do sleep 0.02; done", 0.4, "ready",
      { kill_grace = 30 })
    assert.equal("timeout", result.status)
    assert.matches("^ready\n.*term\n$", result.output)
    assert.is_true(result.real_seconds < 50)
  end)

  it("gives KILL after the grace", function()
    local result = inside.timed(policy, "trap 'echo term' TERM; echo ready; while :; do sleep 0.02; done", 0.3, "ready",
      { kill_grace = 0.3 })
    assert.equal("timeout", result.status)
    assert.matches("term\n", result.output)
    assert.is_true(result.real_seconds >= 0.6)
  end)

  it("holds while the host does something else", function()
    local root = support.tempdir()
    local mark = new_mark()
    local run = assert(sandbox.start({ "/bin/sh", "-c", "touch started; sleep " .. mark },
      { policy = inside.policy(root), cwd = root, timeout = 2 }))
    assert.is_true(support.eventually(function() return support.exists(root .. "/started") end))
    local ended = support.eventually(function() return #support.processes(mark) == 0 end)
    assert.is_true(ended)
    assert.equal("timeout", run:wait(10).status)
  end)
end)

describe("cancelling", function()
  it("through the handle ends everything", function()
    local mark = new_mark()
    local run = start(("echo ready; sleep %s & sleep %s"):format(mark, mark))
    assert.is_true(support.eventually(function() return run:output() == "ready\n" end))
    run:cancel()
    run:cancel()
    local result = assert(run:wait(20))
    assert.equal("cancelled", result.status)
    assert.is_true(result.cancelled)
    assert.is_false(result.timed_out)
    assert.equal("ready\n", result.output)
    none_left(mark)
  end)

  it("before the command has begun means that it does not begin", function()
    local root = support.tempdir()
    local run = assert(sandbox.start({ "/bin/touch", "ran" }, { policy = inside.policy(root), cwd = root }))
    run:cancel()
    local result = assert(run:wait(20))
    assert.is_true(result.status == "cancelled" or (result.status == "exited" and support.exists(root .. "/ran")))
    assert.is_nil(result.error)
  end)

  it("gives TERM first where a grace is set", function()
    local run = start("trap 'echo term; exit 6' TERM; echo ready; while :; do sleep 0.02; done", { kill_grace = 30 })
    assert.is_true(support.eventually(function() return run:output() == "ready\n" end))
    run:cancel()
    local result = assert(run:wait(20))
    assert.equal("cancelled", result.status)
    assert.matches("^ready\n.*term\n$", result.output)
  end)

  it("by a predicate works in `run` and in `wait`", function()
    local mark = new_mark()
    local calls = 0
    local result = inside.sh(policy, "sleep " .. mark, { cancel_interval = 0.005, cancel = function()
      calls = calls + 1
      return calls == 5
    end })
    assert.equal("cancelled", result.status)
    assert.is_true(result.cancelled)
    assert.equal(5, calls)
    none_left(mark)
    local run = start("sleep " .. mark, { cancel = function() return true end, cancel_interval = 0.25 })
    assert.equal("cancelled", run:wait(20).status)
  end)

  it("by another coroutine works", function()
    local run = start "echo ready; sleep 60"
    local result
    local waiter = coroutine.create(function()
      while not run:poll() do coroutine.yield() end
      result = run:result()
    end)
    local canceller = coroutine.create(function()
      while run:output() ~= "ready\n" do coroutine.yield() end
      run:cancel()
    end)
    assert.is_true(support.eventually(function()
      assert(coroutine.resume(waiter))
      if coroutine.status(canceller) ~= "dead" then assert(coroutine.resume(canceller)) end
      return coroutine.status(waiter) == "dead"
    end, 20))
    assert.equal("cancelled", result.status)
  end)
end)

describe("on_capture_created", function()
  it("sees the files, empty, before anything has happened", function()
    local root, directory = support.tempdir(), support.tempdir()
    local seen
    local run = assert(sandbox.start({ "/bin/sh", "-c", "echo text" }, {
      policy = assert(sandbox.workspace_write { workspace_roots = { root } }), cwd = root, capture_directory = directory,
      on_capture_created = function(created)
        seen = {
          created.output_capture.path, created.error_capture.path, created.output_capture.byte_count,
          created.error_capture.byte_count, created.output_capture.retained, #support.list(directory),
          #support.list(root), #support.descendants(), #support.read(created.output_capture.path),
        }
      end,
    }))
    local result = run:wait()
    assert.same({ result.output_capture.path, result.error_capture.path, 0, 0, true, 2, 0, 0, 0 }, seen)
    assert.equal("text\n", support.read(result.output_capture.path))
  end)

  it("has no error capture where the streams are merged", function()
    local merged
    start("exit 0", { on_capture_created = function(created) merged = created.error_capture == nil end }):wait()
    assert.is_true(merged)
  end)

  it("prevents the launch by an error, which is raised as it is, and its files are removed", function()
    local root, directory = support.tempdir(), support.tempdir()
    local problem, finished = { "any value" }, 0
    collect()
    local fds = support.fds()
    for _, name in ipairs { "run", "start" } do
      local ok, raised = pcall(sandbox[name], { "/bin/touch", root .. "/ran" }, {
        policy = inside.policy(root), cwd = root, capture_directory = directory,
        on_capture_created = function() error(problem) end, on_finished = function() finished = finished + 1 end,
      })
      assert.is_false(ok)
      assert.is_true(raised == problem)
    end
    collect()
    assert.same({}, support.list(directory))
    assert.same({}, support.list(root))
    assert.same({}, support.descendants())
    assert.equal(0, finished)
    assert.equal(fds, support.fds())
  end)
end)

describe("on_finished", function()
  -- How often it is called, and with which statuses, when `act` has dealt with the run.
  local function statuses(script, options, act)
    local seen = {}
    local run = start(script, options, function(result) seen[#seen + 1] = result.status end)
    pcall(act or run.wait, run)
    run:poll()
    run:wait(20)
    run:close()
    run = nil -- luacheck: ignore 311
    collect()
    return seen
  end

  it("is called exactly once on every ending", function()
    assert.same({ "exited" }, statuses("exit 1"))
    assert.same({ "exited" }, statuses("kill -KILL $$"))
    assert.same({ "exited" }, statuses("exit 1", nil, function(run)
      support.eventually(function() return run:poll() end)
    end))
    assert.same({ "timeout" }, statuses("sleep 60", { timeout = 0.1 }))
    assert.same({ "cancelled" }, statuses("sleep 60", { cancel = function() return true end }))
    assert.same({ "cancelled" }, statuses("sleep 60", nil, function(run) run:cancel() end))
    assert.same({ "interrupted" }, statuses("sleep 60", nil, function(run) run:close() end))
    assert.same({ "interrupted" }, statuses("echo x; sleep 60", { on_output = function() error "mine" end }))
    assert.same({ "interrupted" }, statuses("sleep 60", { cancel = function() error "mine" end }))
  end)

  it("is called once for a run that is given up without a word", function()
    local seen, mark = {}, new_mark()
    local function give_up()
      local run = start("echo ready; sleep " .. mark, nil, function(result)
        seen[#seen + 1] = result.status .. " " .. result.output
      end)
      assert.is_true(support.eventually(function() return run:output() == "ready\n" end))
    end
    give_up()
    support.eventually(function()
      collect()
      return #seen > 0
    end)
    collect()
    assert.same({ "interrupted ready\n" }, seen)
    none_left(mark)
  end)

  it("is called once when the state is closed", function()
    local output = host("", [[
      run = assert(sandbox.start({ "/bin/sleep", "60" }, { policy = policy, cwd = "/",
        on_finished = function(result) print(result.status) end }))]])
    assert.equal("interrupted\n", output)
  end)

  it("raises its error in the caller after the run is over", function()
    local problem = { "mine" }
    local given = { policy = policy, cwd = "/", on_finished = function() error(problem) end }
    local ok, raised = pcall(sandbox.run, { "/bin/true" }, given)
    assert.is_false(ok)
    assert.is_true(raised == problem)
    local run = assert(sandbox.start({ "/bin/true" }, given))
    ok, raised = pcall(run.wait, run)
    assert.is_false(ok)
    assert.is_true(raised == problem)
    assert.equal("exited", run:wait().status)
  end)

  it("given as the argument of `start` takes the place of the option", function()
    local called = {}
    local run = assert(sandbox.start({ "/bin/true" }, { policy = policy, cwd = "/",
      on_finished = function() called[#called + 1] = "option" end }, function() called[#called + 1] = "argument" end))
    run:wait()
    assert.same({ "argument" }, called)
  end)
end)

describe("an error in a callback", function()
  it("ends the run, is raised as it is, and what was written is kept", function()
    local problem = setmetatable({}, { __tostring = function() return "mine" end })
    for name, callback in pairs {
      on_output = function() error(problem) end,
      cancel = function() error(problem) end,
    } do
      local mark = new_mark()
      local finished
      local options = { policy = policy, cwd = "/", merge_output = true, on_finished = function(result) finished = result end }
      local root = support.tempdir()
      options[name] = name == "on_output" and callback or function()
        if support.exists(root .. "/ready") then callback() end
      end
      options.policy, options.cwd = inside.policy(root), root
      local ok, raised = pcall(sandbox.run, { "/bin/sh", "-c", "echo before; touch ready; sleep " .. mark }, options)
      assert.is_false(ok)
      assert.is_true(raised == problem, name)
      assert.same({}, support.processes(mark))
      assert.same({}, support.descendants())
      assert.equal("interrupted", finished.status)
      assert.equal("before\n", finished.output)
      assert.equal("interrupted", finished.output_capture.status)
    end
  end)

  it("of one run does not disturb another", function()
    local good = start "echo good"
    local bad = start("echo x; sleep 60", { on_output = function() error("mine", 0) end })
    assert.error_matches(function() bad:wait() end, "^mine$")
    assert.equal("good\n", good:wait(20).output)
  end)
end)

describe("closing a run", function()
  it("ends it and waits for that", function()
    local mark = new_mark()
    local run = start("echo ready; (setsid sleep " .. mark .. " &); sleep " .. mark)
    assert.is_true(support.eventually(function() return run:output() == "ready\n" end))
    assert.is_false(run:is_closing())
    local called = 0
    run:close(function() called = called + 1 end)
    assert.equal(1, called)
    assert.is_true(run:is_closing())
    assert.same({}, support.processes(mark))
    assert.same({}, support.descendants())
    local result = run:result()
    assert.equal("interrupted", result.status)
    assert.equal("ready\n", result.output)
    assert.is_false(result.timed_out)
    assert.is_true(result.real_seconds > 0)
    run:close()
  end)

  it("at once, before the command has begun, is an interruption too", function()
    for _ = 1, 10 do
      local run = start "sleep 60"
      run:close()
      assert.equal("interrupted", run:result().status)
      assert.is_nil(run:result().error)
    end
    assert.same({}, support.descendants())
  end)

  it("does not wait for the grace", function()
    local run = start("trap '' TERM; echo ready; while :; do sleep 0.02; done", { kill_grace = 60 })
    assert.is_true(support.eventually(function() return run:output() == "ready\n" end))
    local before = support.now()
    run:close()
    assert.is_true(support.now() - before < 10)
    assert.equal("interrupted", run:status())
  end)

  it("happens at the end of a block", function()
    support.skip_unless(support.lua_name == "5.4", "only 5.4 has variables that are closed")
    local mark = new_mark()
    local block = assert(load [[
      local start, script = ...
      local run <close> = start(script)
      return run
    ]])
    local run = block(start, "sleep " .. mark)
    assert.equal("interrupted", run:status())
    assert.same({}, support.processes(mark))
    block = assert(load [[
      local start, script = ...
      local run <close> = start(script)
      error "mine"
    ]])
    assert.error_matches(function() block(start, "sleep " .. mark) end, "mine")
    assert.same({}, support.processes(mark))
    assert.same({}, support.descendants())
  end)
end)

describe("a run that is collected", function()
  it("ends, with its descendants, its descriptors and its placeholders", function()
    local mark, root = new_mark(), support.tempdir()
    collect()
    local fds = support.fds()
    local function give_up()
      local run = assert(sandbox.start({ "/bin/sh", "-c", ("echo ready; (setsid sleep %s &); sleep %s"):format(mark, mark) },
        { policy = assert(sandbox.workspace_write { workspace_roots = { root } }), cwd = root }))
      assert.is_true(support.eventually(function() return run:output() == "ready\n" end))
      assert.same({ ".agents", ".codex", ".git" }, support.list(root))
    end
    give_up()
    support.eventually(function()
      collect()
      return support.fds() <= fds
    end)
    assert.equal(fds, support.fds())
    assert.same({}, support.processes(mark))
    assert.same({}, support.descendants())
    assert.same({}, support.list(root))
  end)
end)

describe("waiting for any of several", function()
  it("gives one that is over, or nil when time is up", function()
    local root = support.tempdir()
    local runs = {}
    for i = 1, 3 do runs[i] = start("until [ -e go" .. i .. " ]; do sleep 0.02; done; exit " .. i, { cwd = root }) end
    assert.is_nil(sandbox.wait_any(runs, 0))
    assert.is_nil(sandbox.wait_any(runs, 0.05))
    for _, i in ipairs { 2, 3, 1 } do
      support.write(root .. "/go" .. i)
      local left = {}
      for _, run in ipairs(runs) do
        if run:status() == "running" then left[#left + 1] = run end
      end
      local run = assert(sandbox.wait_any(left, 20))
      assert.is_true(run == runs[i])
      assert.equal(i, run:result().exit_code)
    end
    assert.is_true(sandbox.wait_any(runs) == runs[1])
  end)

  it("asks the predicates of all", function()
    local cancelled = start("sleep 60", { cancel = function() return true end })
    local other = start "exec sleep 60"
    assert.is_true(sandbox.wait_any({ other, cancelled }, 20) == cancelled)
    other:close()
  end)
end)
