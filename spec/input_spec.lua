-- What a command reads: text, files, the host's own input, and a pipe that the host writes to.
local sandbox = require "execsandbox"
local inside = require "spec.support.inside"
local support = require "spec.support"

local policy = inside.policy()

local function start(argv, options)
  local given = { policy = policy, cwd = "/", timeout = 60, stdin = "pipe" }
  for name, value in pairs(options or {}) do given[name] = value end
  return assert(sandbox.start(argv, given))
end

local function sh(script, options)
  return start({ "/bin/sh", "-c", script }, options)
end

-- Waits until the run has written `text`.
local function await(run, text)
  assert.is_true(support.eventually(function() return run:output() == text end, 20), run:output())
end

describe("standard input", function()
  it("is empty where none is given", function()
    for _, stdin in ipairs { false, "" } do
      local result = assert(sandbox.run({ "/bin/sh", "-c", "wc -c; readlink /proc/self/fd/0 | cut -c 1-9" },
        { policy = policy, cwd = "/", stdin = stdin or nil }))
      assert.equal(stdin and "0\n/memfd:ex\n" or "0\n/dev/null\n", result.output)
    end
  end)

  it("is a string, byte for byte, and read from its beginning", function()
    local text = ("all\0 bytes\255 "):rep(1000)
    local result = assert(sandbox.run({ "/bin/cat" }, { policy = policy, cwd = "/", stdin = text }))
    assert.equal(text, result.output_capture:read())
  end)

  it("may be 1 MiB to a command that does not read it", function()
    local text = ("x"):rep(2 ^ 20)
    local result = assert(sandbox.run({ "/bin/echo", "done" }, { policy = policy, cwd = "/", stdin = text }))
    assert.equal("done\n", result.output)
    result = assert(sandbox.run({ "/usr/bin/wc", "-c" }, { policy = policy, cwd = "/", stdin = text }))
    assert.equal("1048576\n", result.output)
  end)

  it("is a file, which the command need not be allowed to read by its name", function()
    local root = support.tempdir()
    local path = support.write(root .. "/secret", "from the file")
    local denied = inside.policy(nil, { { path = root, access = "deny" } })
    local result = assert(sandbox.run({ "/bin/sh", "-c", "cat; cat " .. path .. " || echo denied" },
      { policy = denied, cwd = "/", stdin = { file = path }, timeout = 20 }))
    assert.equal("from the filedenied\n", result.output)
  end)

  it("may be a FIFO, for whose writer the host does not wait", function()
    local fifo = support.tempdir() .. "/fifo"
    support.must("mkfifo", fifo)
    local result = assert(sandbox.run({ "/bin/cat" }, { policy = policy, cwd = "/", stdin = { file = fifo }, timeout = 20 }))
    assert.same({ "exited", "" }, { result.status, result.output })
  end)

  it("that cannot be opened is an error before the launch", function()
    local result, err = sandbox.run({ "/bin/cat" }, { policy = policy, cwd = "/", stdin = { file = "/nonexistent" } })
    assert.is_nil(result)
    assert.same({ "execution", "stdin", 2 }, { err.kind, err.stage, err.errno })
  end)

  it("is inherited where that is said", function()
    local script = support.write(support.tempdir() .. "/host.lua", [[
      local sandbox = require "execsandbox"
      local policy = assert(sandbox.read_only { hide_home = false })
      print(assert(sandbox.run({ "/bin/cat" }, { policy = policy, cwd = "/", stdin = "inherit" })).output)]])
    assert.equal("of the host", support.must("printf 'of the host' | " .. support.lua .. " " .. support.quote(script)))
  end)

  it("as a pipe needs a handle", function()
    assert.error_matches(function()
      sandbox.run({ "/bin/cat" }, { policy = policy, cwd = "/", stdin = "pipe" })
    end, "bad option 'stdin' to 'run'")
    local run = start({ "/bin/true" }, { stdin = "text" })
    assert.error_matches(function() run:write "x" end, "'write' needs a run that was started with stdin = \"pipe\"")
    assert.error_matches(function() run:close_stdin() end, "'close_stdin' needs")
    assert.equal("exited", run:wait().status)
  end)
end)

describe("a pipe to standard input", function()
  it("is a pipe for the command, takes what is written, and ends when it is closed", function()
    local run = sh "readlink /proc/self/fd/0 | cut -c 1-5; cat; echo end"
    assert.equal(6, run:write "first ")
    await(run, "pipe:\nfirst ")
    assert.equal(0, run:write "")
    assert.equal(7, run:write "second\n")
    await(run, "pipe:\nfirst second\n")
    assert.is_false(run:poll())
    run:close_stdin()
    run:close_stdin()
    assert.equal("pipe:\nfirst second\nend\n", run:wait().output)
  end)

  it("checks what is written", function()
    local run = start { "/bin/cat" }
    for _, call in ipairs { function() run:write() end, function() run:write(1) end, function() run:write("x", -1) end,
      function() run:write("x", "y") end } do
      assert.is_false(pcall(call))
    end
    run:close_stdin()
    assert.equal("", run:wait().output)
  end)

  it("takes more than a pipe holds, as the command reads it", function()
    local text = ("0123456789abcdef"):rep(2 ^ 18) -- 4 MiB
    local run = sh "sleep 0.05; cat"
    assert.equal(#text, run:write(text))
    run:close_stdin()
    local result = run:wait()
    assert.equal(#text, result.output_capture.byte_count)
    assert.is_true(text == result.output_capture:read())
  end)

  it("holds back who writes more than the command reads", function()
    local root = support.tempdir()
    local run = sh("while ! [ -e go ]; do sleep 0.01; done; wc -c", { cwd = root })
    local text = ("x"):rep(2 ^ 20)
    local first = run:write(text, 0)
    assert.is_true(first > 0 and first < #text)
    assert.equal(0, run:write(text, 0))
    assert.equal(0, run:write(text, 0.05))
    support.write(root .. "/go")
    assert.equal(#text, run:write(text))
    run:close_stdin()
    assert.equal(first + #text .. "\n", run:wait().output)
  end)

  it("tells by the run's descriptor when there is room again", function()
    local root = support.tempdir()
    local run = sh("echo ready; while ! [ -e go ]; do sleep 0.01; done; wc -c", { cwd = root })
    local core = require "execsandbox.core"
    local text = ("x"):rep(2 ^ 20)
    local count = run:write(text, 0)
    await(run, "ready\n")
    run:poll()
    local begin = support.now()
    core.block({ run._core }, 0.2)
    assert.is_true(support.now() - begin > 0.15, "readable without room")
    support.write(root .. "/go")
    core.block({ run._core }, 20)
    assert.is_true(support.now() - begin < 15, "not readable with room")
    run:poll()
    count = count + run:write(text, 0)
    run:close_stdin()
    assert.equal("ready\n" .. count .. "\n", run:wait().output)
  end)

  it("that the command has closed is an error for who writes, and no signal", function()
    local run = sh "exec <&-; echo closed; sleep 60"
    await(run, "closed\n")
    local count, err
    assert.is_true(support.eventually(function()
      count, err = run:write "x"
      return not count
    end))
    assert.same({ "execution", "stdin", 32 }, { err.kind, err.stage, err.errno })
    assert.matches("has closed its standard input", tostring(err), 1, true)
    assert.is_nil((run:write "again"))
    assert.is_false(run:poll())
    run:close_stdin()
    run:close()
  end)

  it("that the command closes ends a write that waits for room", function()
    local run = sh "sleep 0.1; exec <&-; echo closed; sleep 60"
    local count, err = run:write(("x"):rep(2 ^ 20))
    assert.is_nil(count)
    assert.equal(32, err.errno)
    run:close()
  end)

  it("ends with the command: a write that waits is told", function()
    local run = sh "sleep 0.1; exit 3"
    local count, err = run:write(("x"):rep(2 ^ 20))
    assert.is_nil(count)
    assert.equal("execution", err.kind)
    assert.equal(3, run:wait().exit_code)
    count, err = run:write "x"
    assert.is_nil(count)
    assert.equal("stdin", err.stage)
  end)

  it("ends with the run where that is timed out, cancelled or closed", function()
    for status, act in pairs {
      timeout = function() end,
      cancelled = function(run) run:cancel() end,
      interrupted = function(run) run:close() end,
    } do
      local run = sh("sleep 60", { timeout = status == "timeout" and 0.2 or nil })
      act(run)
      local count = run:write(("x"):rep(2 ^ 20))
      assert.is_nil(count)
      assert.equal(status, run:wait().status)
    end
  end)

  it("after close_stdin says that it was closed", function()
    local run = start { "/bin/cat" }
    run:close_stdin()
    local count, err = run:write "x"
    assert.is_nil(count)
    assert.matches("was closed", tostring(err), 1, true)
    assert.equal("exited", run:wait().status)
  end)

  it("answers a command from on_output", function()
    local run
    local heard = {}
    run = sh([[for i in 1 2 3; do echo "question $i"; read -r answer; echo "got $answer"; done]], {
      on_output = function(_, bytes)
        heard[#heard + 1] = bytes
        for number in bytes:gmatch "question (%d)" do run:write("answer " .. number .. "\n") end
      end,
    })
    local result = run:wait()
    assert.equal("question 1\ngot answer 1\nquestion 2\ngot answer 2\nquestion 3\ngot answer 3\n", result.output)
    assert.equal(result.output, table.concat(heard))
  end)

  it("keeps the deadline, the predicate and the callbacks going while a write waits", function()
    local asked, heard = 0, ""
    local run = sh("echo said; sleep 60", {
      cancel_interval = 0.005, on_output = function(_, bytes) heard = heard .. bytes end,
      cancel = function()
        if heard ~= "" then asked = asked + 1 end
        return asked > 3
      end,
    })
    assert.is_nil((run:write(("x"):rep(2 ^ 20))))
    assert.equal("cancelled", run:wait().status)
    assert.equal("said\n", heard)
  end)

  it("raises the error of a callback in who writes", function()
    local run = sh("echo said; sleep 60", { on_output = function() error("mine", 0) end })
    assert.error_matches(function() run:write(("x"):rep(2 ^ 20)) end, "^mine$")
    assert.equal("interrupted", run:status())
  end)

  it("is the host's alone: no command holds an end of another's", function()
    local first, second = start { "/bin/cat" }, start { "/bin/cat" }
    first:write "1"
    second:write "2"
    first:close_stdin()
    assert.equal("1", first:wait(20).output)
    second:close_stdin()
    assert.equal("2", second:wait(20).output)
  end)

  it("leaves SIGPIPE to the host as it was", function()
    -- Where it kills, a write into a pipe that nobody reads must not; a pending one must stay so.
    local script = support.write(support.tempdir() .. "/host.lua", [[
      local sandbox = require "execsandbox"
      local policy = assert(sandbox.read_only { hide_home = false })
      local run = assert(sandbox.start({ "/bin/true" }, { policy = policy, cwd = "/", stdin = "pipe" }))
      run:wait()
      local second = assert(sandbox.start({ "/bin/sh", "-c", "exec <&-; echo x; sleep 60" },
        { policy = policy, cwd = "/", stdin = "pipe" }))
      while second:output() == "" do second:wait(0.01) end
      print(run:write "x", second:write(("x"):rep(1e6)))
      second:close()
      for line in io.lines "/proc/self/status" do
        if line:find "^S[ih][gd]Pnd" or line:find "^SigBlk" then print(line) end
      end]])
    local output = support.must(support.lua, script)
    assert.matches("^nil\t", output)
    assert.equal(3, select(2, output:gsub("[SB][%a]+:\t0000000000000000", "")))
  end)

  it("is part of the bargain: 50 runs leave no descriptor", function()
    local function some()
      for _ = 1, 10 do
        local run = start { "/bin/cat" }
        run:write "x"
        run:close_stdin()
        run:wait()
        start({ "/bin/cat" }, { cancel = function() return true end }):wait()
        start { "/bin/cat" }:close()
      end
      collectgarbage()
      collectgarbage()
    end
    some()
    local fds = support.fds()
    some()
    assert.equal(fds, support.fds())
  end)
end)
