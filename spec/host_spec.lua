-- Hosts in unusual states, and parts of a run that are killed (cases 34, 35 and 53).
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

-- Writes a script for a host of its own, which has `sandbox`, `policy` and `check(run or result)`.
local function host_script(script, ...)
  local file = support.tempdir() .. "/host.lua"
  return support.write(file, [[
    local sandbox = require "execsandbox"
    local policy = assert(sandbox.read_only { hide_home = false })
    -- One run with input, output on both streams and a status, and what came of it.
    local function check(more)
      local options = { policy = policy, cwd = "/", stdin = "in put", timeout = 30 }
      for name, value in pairs(more or {}) do options[name] = value end
      local result, err = sandbox.run({ "/bin/sh", "-c", "cat; echo error >&2; exit 5" }, options)
      if not result then return tostring(err) end
      return ("%s %s %s %s"):format(result.status, tostring(result.exit_code), result.output, result.error_output)
    end
  ]] .. script:format(...))
end

local checked = "exited 5 in put error\n"

local function lua_host(script, ...)
  return quote(support.lua) .. " " .. quote(host_script(script, ...))
end

describe("a host", function()
  it("with any of descriptors 0, 1 and 2 closed runs commands as any other", function()
    for number = 1, 7 do
      local out = support.tempdir() .. "/out"
      local closed = ""
      if number % 2 == 1 then closed = closed .. " 0<&-" end
      if number % 4 >= 2 then closed = closed .. " 1>&-" end
      if number >= 4 then closed = closed .. " 2>&-" end
      local output, status = support.shell(lua_host([[
        local first = check()
        local second = check { capture_directory = %q, output_limit = 100, error_output_limit = 100 }
        local third = check { merge_output = true, on_output = function() end }
        local file = assert(io.open(%q, "w"))
        file:write(first, second, third)
        file:close()]], support.tempdir(), out) .. closed)
      assert.equal(0, status, output)
      local content = support.read(out)
      assert.equal(checked .. checked .. "exited 5 in puterror\n nil", content, closed)
    end
  end)

  it("with 0, 1 and 2 closed runs them without a sandbox as well, and ends them", function()
    local out = support.tempdir() .. "/out"
    local output, status = support.shell(lua_host([[
      policy = assert(sandbox.unrestricted {})
      local first = check()
      local result = assert(sandbox.run({ "/bin/sh", "-c", "echo before; exec sleep 60" },
        { policy = policy, cwd = "/", cancel = function() return true end }))
      local failed, err = sandbox.run({ "/nonexistent" }, { policy = policy, cwd = "/" })
      local file = assert(io.open(%q, "w"))
      file:write(first, result.status, " ", tostring(failed), " ", err.stage)
      file:close()]], out) .. " 0<&- 1>&- 2>&-")
    assert.equal(0, status, output)
    assert.equal(checked .. "cancelled nil find-program", support.read(out))
  end)

  it("with 1 and 2 closed can write to them during a run without harm", function()
    local out = support.tempdir() .. "/out"
    local output, status = support.shell(lua_host([[
      local function write()
        for _ = 1, 300 do
          io.stdout:write("12345678")
          io.stdout:flush()
          io.stderr:write("12345678")
        end
      end
      local given = { policy = policy, cwd = "/", timeout = 30, stdin = "in", on_capture_created = write }
      local run = assert(sandbox.start({ "/bin/sh", "-c", "cat; echo error >&2; sleep 0.1; exit 6" }, given))
      repeat write() until run:wait(0.02)
      local result = run:result()
      assert(not io.stdin:read(1), "something to read")
      local file = assert(io.open(%q, "w"))
      file:write(result.status, " ", tostring(result.exit_code), " ", result.output, " ", result.error_output)
      file:close()]], out) .. " 0<&- 1>&- 2>&-")
    assert.equal(0, status, output)
    assert.equal("exited 6 in error\n", support.read(out))
  end)

  it("with 0 closed cannot let a command inherit it", function()
    local output = support.must(lua_host([[
      local result, err = sandbox.run({ "/bin/cat" }, { policy = policy, cwd = "/", stdin = "inherit" })
      assert(result == nil)
      io.write(err.kind, " ", err.stage, " ", err.errno)]]) .. " 0<&-")
    assert.equal("execution stdin 9", output)
  end)

  it("whose standard output is a closed pipe runs commands as any other", function()
    for _, prefix in ipairs { "", "trap '' PIPE; " } do
      local directory = support.tempdir()
      support.must(("{ %s%s; echo $? >%s/status; } | { exec 0<&-; : >%s/closed; }"):format(prefix, lua_host([[
        while not io.open(%q) do end -- the pipe has no reader any more
        local file = assert(io.open(%q, "w"))
        file:write(check())
        file:close()]], directory .. "/closed", directory .. "/out"), directory, directory))
      assert.equal("0\n", support.read(directory .. "/status"))
      assert.equal(checked, support.read(directory .. "/out"))
    end
  end)

  it("that ignores and blocks signals hands none of that on", function()
    local output = support.must("trap '' PIPE INT QUIT HUP TERM USR1; " .. lua_host([[
      local result = assert(sandbox.run({ "/bin/grep", "-E", "^Sig(Ign|Blk)", "/proc/self/status" },
        { policy = policy, cwd = "/" }))
      io.write(result.output)]]))
    assert.matches("SigBlk:%s*0000000000000000\nSigIgn:%s*0000000000000000", output)
  end)

  it("that ignores SIGCHLD gets exact statuses", function()
    local output = support.must(quote(support.host "sigchld") .. " ignore " .. quote(host_script [[
      io.write(check())
      local result = assert(sandbox.run({ "/bin/sh", "-c", "kill -USR1 $$" }, { policy = policy, cwd = "/" }))
      io.write(result.status, " ", result.signal, "\n")
      local run = assert(sandbox.start({ "/bin/sleep", "60" }, { policy = policy, cwd = "/" }))
      run:close()
      io.write(run:status(), "\n")
      local result, err = sandbox.run({ "/nonexistent" }, { policy = policy, cwd = "/" })
      io.write(err.stage)]]))
    assert.equal(checked .. "exited 10\ninterrupted\nfind-program", output)
  end)

  it("that reaps every child itself gets exact statuses", function()
    local output = support.must(quote(support.host "sigchld") .. " reap " .. quote(host_script [[
      for _ = 1, 20 do assert(check() == "exited 5 in put error\n") end
      local run = assert(sandbox.start({ "/bin/sleep", "60" }, { policy = policy, cwd = "/" }))
      run:close()
      io.write(check(), run:status(), " ", tostring(reaped() > 0))]]))
    assert.equal(checked .. "interrupted true", output)
  end)

  it("may end the thread that started a run", function()
    local root = support.tempdir()
    local output = support.must(quote(support.host "thread") .. " " .. quote(host_script([[
      local run
      function start()
        run = assert(sandbox.start({ "/bin/sh", "-c", "echo begun; until [ -e go ]; do sleep 0.02; done; echo done; exit 3" },
          { policy = policy, cwd = %q, timeout = 30 }))
        while run:output() ~= "begun\n" do run:wait(0.01) end
      end
      function finish()
        assert(not run:wait(0.3), "it ended with the thread")
        assert(io.open(%q, "w")):close()
        local result = run:wait()
        io.write(result.status, " ", result.exit_code, " ", result.output)
      end]], root, root .. "/go")))
    assert.equal("exited 3 begun\ndone", output)
  end)

  it("with 1,000 open descriptors near its limit runs commands, which see none of them", function()
    local output = support.must("ulimit -S -n 1040 && " .. lua_host [[
      local files = {}
      for i = 1, 1000 do files[i] = assert(io.open "/dev/null") end
      io.write(check())
      local result = assert(sandbox.run({ "/bin/sh", "-c", "echo /proc/self/fd/*; ulimit -n" }, { policy = policy, cwd = "/" }))
      io.write(result.output)]])
    assert.matches("^" .. checked:gsub("%p", "%%%0") .. "/proc/self/fd/0 /proc/self/fd/1 /proc/self/fd/2 /proc/self/fd/3\n1040$",
      output)
  end)

  it("without free descriptors gets an error with the errno, and loses none", function()
    local output = support.must("ulimit -n 64 && " .. lua_host [[
      assert(check() == "exited 5 in put error\n") -- what is loaded once is loaded
      local function fill()
        local files = {}
        while true do
          local file = io.open "/dev/null"
          if not file then return files end
          files[#files + 1] = file
        end
      end
      collectgarbage()
      collectgarbage()
      local seen = {}
      local files = fill()
      for free = 0, 24 do
        for _ = 1, free do table.remove(files):close() end
        local created, finished = 0, 0
        local result, err = sandbox.run({ "/bin/true" }, { policy = policy, cwd = "/", stdin = "x",
          on_capture_created = function() created = created + 1 end,
          on_finished = function() finished = finished + 1 end })
        assert(created == finished, "who has heard of the captures hears of the end")
        if result then
          assert(result.exit_code == 0)
          seen[#seen + 1] = "ok"
        else
          assert(err.errno == 24, ("%%d free: %%s %%s %%s"):format(free, tostring(err.errno), tostring(err.stage), tostring(err)))
          seen[#seen + 1] = "no"
        end
        result, err = nil, nil
        collectgarbage()
        collectgarbage()
        local again = fill()
        assert(#again == free, ("%%d were free, then %%d"):format(free, #again))
        for _, file in ipairs(again) do files[#files + 1] = file end
      end
      io.write(table.concat(seen, " "))]])
    assert.matches("^no no .*ok ok$", output)
    assert.not_matches("ok no", output)
  end)

  it("may have fewer descriptors by default than a policy has masks", function()
    local root = support.tempdir()
    support.must("cd " .. quote(root) .. " && touch $(seq 1 300)")
    local script = [[
      local rules = { { special = "root", access = "read" } }
      for i = 1, 300 do rules[i + 1] = { path = %q .. "/" .. i, access = "deny" } end
      policy = assert(sandbox.policy { rules = rules })
      io.write(check())
      local result = assert(sandbox.run({ "/bin/sh", "-c", "ulimit -n; cat " .. %q .. "/300" }, { policy = policy, cwd = "/" }))
      io.write(result.output, result.exit_code)]]
    assert.equal(checked .. "128\n1", support.must("ulimit -S -n 128 && " .. lua_host(script, root, root)))
  end)

  it("that is interrupted at a terminal ends the run, and calls on_finished once", function()
    support.skip_unless(not support.lua:find "interpreter", "this interpreter has no handler for SIGINT")
    local mark, root = new_mark(), support.tempdir()
    -- A shell without job control starts what is in its background with SIGINT ignored.
    local command = lua_host([[
      sandbox.run({ "/bin/sh", "-c", "echo before; : >ready; sleep %s" }, {
        policy = assert(sandbox.workspace_write { workspace_roots = { %q } }), cwd = %q,
        on_finished = function(result) print("finished", result.status, result.output) end })]], mark, root, root)
    support.must(("cd %s; set -m; %s >out 2>&1 & until [ -e ready ]; do sleep 0.01; done; kill -INT $!; wait $!; [ $? = 1 ]")
      :format(root, command))
    local output = support.read(root .. "/out")
    assert.matches("finished\tinterrupted\tbefore\n", output)
    assert.matches("interrupted!", output)
    assert.equal(1, select(2, output:gsub("finished", "")))
    assert.same({}, support.processes(mark))
    assert.same({ "out", "ready" }, support.list(root))
  end)

  it("has as many descriptors and children after 50 runs as before", function()
    local policy = inside.policy()
    local function some()
      for i = 1, 10 do
        inside.sh(policy, "exit " .. i, { stdin = "text" })
        inside.sh(policy, "(sleep 60 &) ; exit 0", { drain_grace = 0 })
        inside.sh(policy, "sleep 60", { timeout = 0.05 })
        assert(not sandbox.run({ "/nonexistent" }, { policy = policy, cwd = "/" }))
        assert(sandbox.start({ "/bin/sleep", "60" }, { policy = policy, cwd = "/" })):close()
      end
      collectgarbage()
      collectgarbage()
    end
    some()
    local fds = support.fds()
    some()
    assert.equal(fds, support.fds())
    assert.same({}, support.descendants())
  end)
end)

describe("SIGKILL to the host", function()
  -- Kills a host so long after its BYTES-th word; everything must be gone within a second.
  local function killed(bytes, microseconds, options)
    local root, tmp, mark = support.tempdir(), support.tempdir(), new_mark()
    local script = host_script([=[
      local root, mark = %q, %q
      local function say()
        io.stdout:write(".")
        io.stdout:flush()
      end
      local options = { policy = assert(sandbox.workspace_write { workspace_roots = { root } }), cwd = root, stdin = "secret",
        %s }
      say() -- 1: about to start
      local run = assert(sandbox.start({ "/bin/sh", "-c", ([[
        trap '' TERM HUP INT
        (setsid sh -c 'sleep %%s; sleep %%s' &); head -c 100000 /dev/zero; : >ran
        exec sleep %%s]]):format(mark, mark, mark) }, options))
      say() -- 2: started
      while not io.open(root .. "/.git") do run:wait(0.0005) end
      say() -- 3: the placeholders are there
      while not io.open(root .. "/ran") do run:wait(0.0005) end
      say() -- 4: the command is at work
      run:wait()]=], root, mark, options or "")
    local output, status = support.shell(("TMPDIR=%s %s %d %d %s %s"):format(quote(tmp), quote(support.host "keeper"),
      bytes, microseconds, quote(support.lua), quote(script)))
    local moment = ("%d bytes, %d microseconds: %s"):format(bytes, microseconds, output)
    assert.equal(0, status, moment)
    assert.is_true(tonumber(output) < 1000, moment)
    assert.same({}, support.processes(mark), moment)
    assert.same({}, support.list(tmp), moment)
    for _, name in ipairs(support.list(root)) do assert.equal("ran", name, moment) end
    assert.same({}, support.mounts(root))
  end

  it("while a run starts leaves nothing", function()
    for step = 0, 19 do killed(1, step * 600) end
    for step = 0, 9 do killed(2, step * 900) end
  end)

  it("while placeholders stand leaves nothing", function()
    for step = 0, 4 do killed(3, step * 1500) end
  end)

  it("while the command works leaves nothing, whatever was asked for its end", function()
    killed(4, 0)
    killed(4, 20000)
    killed(4, 5000, "kill_grace = 60, drain_grace = 60")
    killed(4, 400000, "timeout = 0.3, kill_grace = 60") -- between TERM and KILL
  end)

  it("leaves a retained capture to its owner, with what was written", function()
    local root, directory, mark = support.tempdir(), support.tempdir(), new_mark()
    local script = host_script([[
      local run = assert(sandbox.start({ "/bin/sh", "-c", "echo before; sleep %s" },
        { policy = policy, cwd = "/", merge_output = true, capture_directory = %q }))
      while run:output() ~= "before\n" do run:wait(0.001) end
      io.stdout:write(".")
      io.stdout:flush()
      run:wait()]], mark, directory)
    support.must(support.host "keeper", "1", "0", support.lua, script)
    assert.same({}, support.processes(mark))
    assert.equal("before\n", support.read(directory .. "/" .. support.list(directory)[1]))
    assert.same({}, support.list(root))
  end)
end)

describe("SIGKILL to", function()
  local root, mark, run

  -- The processes of the run, from the helper to the command.
  local function chain()
    local by_parent = {}
    for _, pid in ipairs(support.descendants()) do
      local stat = support.read("/proc/" .. pid .. "/stat")
      if stat then by_parent[stat:match ".*%) %S (%d+)"] = pid end
    end
    local found, pid = {}, this
    while by_parent[pid] do
      found[#found + 1] = by_parent[pid]
      pid = tostring(by_parent[pid])
    end
    return found
  end

  local function start(options)
    root, mark = support.tempdir(), new_mark()
    local given = { policy = assert(sandbox.workspace_write { workspace_roots = { root } }), cwd = root, merge_output = true }
    for name, value in pairs(options or {}) do given[name] = value end
    run = assert(sandbox.start({ "/bin/sh", "-c", "echo before; exec sleep " .. mark }, given))
  end

  local function started(options)
    start(options)
    assert.is_true(support.eventually(function() return run:output() == "before\n" and run:pid() end) ~= nil)
  end

  local function kill(pid, signal)
    support.shell("kill -" .. (signal or "KILL") .. " " .. pid)
  end

  local function nothing_left()
    assert.is_true(support.eventually(function()
      return #support.processes(mark) == 0 and #support.descendants() == 0 and #support.list(root) == 0
    end, 1), table.concat(support.list(root), " "))
  end

  it("the helper ends the run, and nothing is left", function()
    started()
    assert.same({ ".agents", ".codex", ".git" }, support.list(root))
    kill(chain()[1])
    local result = assert(run:wait(5))
    assert.equal("interrupted", result.status)
    assert.is_nil(result.exit_code)
    assert.equal("before\n", result.output)
    assert.equal("interrupted", result.output_capture.status)
    nothing_left()
  end)

  it("bubblewrap ends the run, and nothing is left", function()
    started()
    kill(chain()[2])
    local result = assert(run:wait(5))
    assert.equal("before\n", result.output)
    assert.is_nil(result.exit_code)
    assert.equal(9, result.signal)
    nothing_left()
  end)

  it("the inner stage ends the run, and nothing is left", function()
    started()
    kill(chain()[3])
    local result = assert(run:wait(5))
    assert.equal("before\n", result.output)
    assert.is_nil(result.exit_code)
    assert.equal(9, result.signal)
    nothing_left()
  end)

  it("the command from outside is its own signal", function()
    started()
    kill(run:pid())
    local result = assert(run:wait(5))
    assert.equal("exited", result.status)
    assert.equal(9, result.signal)
    assert.equal("complete", result.output_capture.status)
    nothing_left()
  end)

  it("any of them at any moment of the start ends the run, and nothing is left", function()
    for number = 1, 3 do
      for step = 0, 9 do
        start()
        local deadline = support.now() + step * 0.001
        repeat run:poll() until support.now() >= deadline
        local victim = support.eventually(function() return chain()[number] end)
        kill(victim)
        local result = assert(run:wait(10))
        assert.is_nil(result.exit_code)
        if result.status == "launch-failed" then
          assert.is_string(result.error.stage)
        else
          assert.is_true(result.status == "interrupted" or result.signal == 9, result.status)
        end
        nothing_left()
      end
    end
  end)

  it("the helper of a direct run ends the run, and nothing is left", function()
    started { policy = assert(sandbox.unrestricted {}) }
    kill(chain()[1])
    assert.equal("interrupted", assert(run:wait(5)).status)
    nothing_left()
  end)

  it("is what a helper gets that does not answer", function()
    started()
    kill(chain()[1], "STOP")
    local before = support.now()
    run:close()
    assert.is_true(support.now() - before < 10)
    assert.equal("interrupted", run:status())
    nothing_left()
  end)
end)
