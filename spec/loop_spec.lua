-- Runs in event loops: the descriptor by itself, and the adapters for cqueues and luv.
local cqueues = require "cqueues"
local uv = require "luv"
local sandbox = require "execsandbox"
local protect = require "execsandbox.protect"
local inside = require "spec.support.inside"
local support = require "spec.support"

local unpack = table.unpack or unpack -- luacheck: compat
local policy = inside.policy()

local function options(more)
  local given = { policy = policy, cwd = "/", merge_output = true, timeout = 60 }
  for name, value in pairs(more or {}) do given[name] = value end
  return given
end

local function start(script, more)
  return assert(sandbox.start({ "/bin/sh", "-c", script }, options(more)))
end

describe("the descriptor of a run", function()
  it("follows the event-loop protocol until the handle is closed", function()
    local run = start "exit 3"
    local fd = run:fd()
    assert.is_number(fd)
    assert.equal(fd, run:pollfd())
    assert.equal("r", run:events())
    assert.is_nil(run:timeout())
    assert.equal(3, run:wait().exit_code)
    assert.equal(0, run:timeout())
    assert.equal(fd, run:fd())
    assert.is_true(support.exists("/proc/self/fd/" .. fd))
    run:close()
    assert.is_nil(run:fd())
    assert.is_false(support.exists("/proc/self/fd/" .. fd))
    assert.equal(0, run:timeout())
    assert.equal(3, run:wait().exit_code)
  end)

  it("that nobody asked for is closed with the run", function()
    for _ = 1, 3 do collectgarbage() end
    local before = support.fds()
    local run = start("exit 3", { cancel = function() end, stdin = "pipe" })
    assert.equal(3, run:wait().exit_code)
    assert.equal(before + 1, support.fds()) -- the capture
  end)

  it("is enough for a loop that knows nothing else, with output, timers and the end", function()
    local heard, asked, finished = {}, 0, nil
    local run = start("echo one; sleep 0.1; echo two", {
      cancel_interval = 0.02, cancel = function() asked = asked + 1 end,
      on_output = function(_, bytes) heard[#heard + 1] = bytes end,
      on_finished = function(result) finished = result end,
    })
    local watcher = uv.new_poll(run:fd())
    watcher:start("r", function()
      if run:poll() then
        watcher:stop()
        watcher:close()
      end
    end)
    uv.run()
    assert.equal("exited", finished.status)
    assert.equal("one\ntwo\n", table.concat(heard))
    assert.is_true(asked >= 3)
    run:close()
  end)

  it("is taken by cqueues.poll as it is", function()
    local loop = cqueues.new()
    local result
    loop:wrap(function()
      local run = start "sleep 0.05; echo done"
      while not run:poll() do cqueues.poll(run) end
      result = run:result()
      cqueues.cancel(run:fd())
      run:close()
    end)
    assert(loop:loop())
    assert.equal("done\n", result.output)
  end)
end)

-- What both adapters promise. `with.coroutines(...)` runs functions as coroutines of the loop until
-- all have ended, `with.sleep` waits in one.
local function common(with)
  it("returns execsandbox itself", function()
    assert.is_true(require(with.name) == sandbox)
  end)

  it("lets other coroutines go on while one waits", function()
    local ticks, result = 0, nil
    with.coroutines(function()
      result = start("sleep 0.2; echo done"):wait()
    end, function()
      while not result do
        ticks = ticks + 1
        with.sleep(0.01)
      end
    end)
    assert.equal("done\n", result.output)
    assert.is_true(ticks >= 5, ticks)
  end)

  it("runs several at once by `run`", function()
    local outputs = {}
    local begin, fns = support.now(), {}
    for i = 1, 10 do
      fns[i] = function()
        outputs[i] = assert(sandbox.run({ "/bin/sh", "-c", "sleep 0.5; echo " .. i }, options())).output
      end
    end
    with.coroutines(unpack(fns))
    for i = 1, 10 do assert.equal(i .. "\n", outputs[i]) end
    assert.is_true(support.now() - begin < 4.5, "one after the other")
  end)

  it("gives up after the time to wait, and waits again", function()
    local first, second
    with.coroutines(function()
      local run = start "sleep 0.2; echo done"
      first = run:wait(0.01)
      second = run:wait()
    end)
    assert.is_nil(first)
    assert.equal("done\n", second.output)
  end)

  it("keeps callbacks and predicates going, which may yield", function()
    local asked, heard, result = 0, {}, nil
    with.coroutines(function()
      result = assert(sandbox.run({ "/bin/sh", "-c", "echo one; sleep 60" }, options {
        cancel_interval = 0.01,
        cancel = function()
          asked = asked + 1
          if protect.yields then with.sleep(0.001) end
          return asked >= 5 and #heard > 0
        end,
        on_output = function(_, bytes)
          if protect.yields then with.sleep(0.01) end
          heard[#heard + 1] = bytes
        end,
      }))
    end)
    assert.equal("cancelled", result.status)
    assert.same({ "one\n" }, heard)
    assert.is_true(asked >= 5)
  end)

  it("waits for any of several", function()
    local order = {}
    with.coroutines(function()
      local runs = { start "sleep 0.3; echo slow", start "echo fast", start "sleep 0.1; echo middle" }
      assert.is_nil(sandbox.wait_any({ runs[1] }, 0.01))
      while #runs > 0 do
        local run = sandbox.wait_any(runs)
        for i, item in ipairs(runs) do
          if item == run then table.remove(runs, i) end
        end
        order[#order + 1] = run:result().output
      end
    end)
    assert.same({ "fast\n", "middle\n", "slow\n" }, order)
  end)

  it("lets two coroutines wait for one run", function()
    local run = start "sleep 0.1; echo done"
    local first, second
    with.coroutines(function() first = run:wait() end, function() second = run:wait() end)
    assert.equal("done\n", first.output)
    assert.is_true(first == second)
  end)

  it("lets one write and another wait", function()
    local run = start("sleep 0.1; wc -c", { stdin = "pipe" })
    local text, result, ticks, written = ("x"):rep(2 ^ 20), nil, 0, nil
    with.coroutines(function()
      written = run:write(text)
      run:close_stdin()
    end, function()
      result = run:wait()
    end, function()
      while not result do
        ticks = ticks + 1
        with.sleep(0.01)
      end
    end)
    assert.equal(#text, written)
    assert.equal("1048576\n", result.output)
    assert.is_true(ticks >= 3)
  end)

  it("is cancelled and closed by another coroutine", function()
    for way, status in pairs { cancel = "cancelled", close = "interrupted" } do
      local run = start "sleep 60"
      local result
      with.coroutines(function() result = run:wait() end, function()
        with.sleep(0.05)
        run[way](run)
      end)
      assert.equal(status, result.status)
    end
  end)

  it("raises errors where they belong", function()
    support.skip_unless(protect.yields, "the pcall of this Lua lets nothing yield")
    local ok, problem
    with.coroutines(function()
      ok, problem = pcall(sandbox.run, { "/bin/sh", "-c", "echo x; sleep 60" },
        options { on_output = function() error("mine", 0) end })
    end)
    assert.same({ false, "mine" }, { ok, problem })
  end)

  it("blocks as ever outside of coroutines", function()
    assert.equal("done\n", start("sleep 0.05; echo done"):wait().output)
  end)

  it("blocks where a coroutine cannot yield", function()
    if not coroutine.isyieldable then return end -- luacheck: compat
    local output
    with.coroutines(function()
      table.sort({ 1, 2 }, function(a, b)
        output = start("echo done"):wait().output
        return a < b
      end)
    end)
    assert.equal("done\n", output)
  end)

  it("survives the helper being killed", function()
    local result
    with.coroutines(function()
      local run = start "echo ready; sleep 60"
      while run:output() ~= "ready\n" do with.sleep(0.01) end
      for _, pid in ipairs(support.descendants()) do
        local line = support.read("/proc/" .. pid .. "/cmdline")
        if line and line:find "supervise" then support.must("kill -KILL " .. pid) end
      end
      result = run:wait()
    end)
    assert.equal("interrupted", result.status)
  end)

  it("leaves no descriptor, and numbers that come back are no trouble", function()
    local function some()
      with.coroutines(function()
        for i = 1, 20 do
          local run = start("exit " .. i, { cancel = i % 2 == 0 and function() end or nil })
          assert(run:wait().exit_code == i)
        end
      end)
      for _ = 1, 3 do collectgarbage() end -- 5.1 finalises what finalisers kept one cycle later
    end
    some()
    local fds = support.fds()
    some()
    assert.equal(fds, support.fds())
  end)
end

describe("execsandbox.cqueues", function()
  setup(function() require "execsandbox.cqueues" end)

  common {
    name = "execsandbox.cqueues",
    sleep = cqueues.sleep,
    coroutines = function(...)
      local loop = cqueues.new()
      for _, fn in ipairs { ... } do loop:wrap(fn) end
      assert(loop:loop())
    end,
  }
end)

describe("execsandbox.luv", function()
  setup(function() require "execsandbox.luv" end)

  common {
    name = "execsandbox.luv",
    sleep = function(seconds)
      local co, timer = coroutine.running(), uv.new_timer()
      timer:start(math.ceil(seconds * 1000), 0, function()
        timer:close()
        assert(coroutine.resume(co))
      end)
      coroutine.yield()
    end,
    coroutines = function(...)
      for _, fn in ipairs { ... } do
        local co = coroutine.create(fn)
        local ok, problem = coroutine.resume(co)
        if not ok then error(problem, 0) end
      end
      uv.run()
    end,
  }
end)
