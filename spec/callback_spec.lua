-- What callbacks may do: yield, start and wait for other runs, wait for their own, end it, forget it.
local sandbox = require "execsandbox"
local inside = require "spec.support.inside"
local protect = require "execsandbox.protect"
local support = require "spec.support"

local policy = inside.policy()

local function options(more)
  local given = { policy = policy, cwd = "/", merge_output = true, timeout = 60 }
  for name, value in pairs(more or {}) do given[name] = value end
  return given
end

local function start(script, more)
  return assert(sandbox.start({ "/bin/sh", "-c", script }, options(more)))
end

-- LuaJIT's compiled code holds the upvalues it takes for constants.
local function collect()
  local jit = rawget(_G, "jit")
  if type(jit) == "table" then jit.flush() end
  collectgarbage()
  collectgarbage()
end

-- Lets a coroutine go on until it is dead; its results.
local function drive(co)
  local results
  assert.is_true(support.eventually(function()
    results = { coroutine.resume(co) }
    return coroutine.status(co) == "dead"
  end, 20))
  return results[1], results[2]
end

describe("a callback that yields", function()
  it("suspends who waits, and goes on where it was", function()
    support.skip_unless(protect.yields, "the pcall of this Lua lets nothing yield")
    for _, name in ipairs { "on_capture_created", "on_output", "cancel", "on_finished" } do
      local yields, calls, heard = 0, 0, {}
      local given = options { on_output = function(_, bytes) heard[#heard + 1] = bytes end }
      local original = given[name]
      given[name] = function(...)
        calls = calls + 1
        for _ = 1, 3 do
          yields = yields + 1
          coroutine.yield "from the callback"
        end
        if original then original(...) end
      end
      local finished = 0
      local on_finished = given.on_finished
      given.on_finished = function(...)
        finished = finished + 1
        if on_finished then on_finished(...) end
      end
      local co = coroutine.create(function()
        return assert(sandbox.run({ "/bin/sh", "-c", "echo one; sleep 0.05; echo two" }, given))
      end)
      local ok, first = coroutine.resume(co)
      assert.is_true(ok, first)
      assert.equal("from the callback", first)
      local _, result = drive(co)
      assert.equal("one\ntwo\n", result.output, name)
      assert.equal("one\ntwo\n", table.concat(heard), name)
      assert.equal(1, finished, name)
      assert.is_true(calls >= 1)
      assert.equal(3 * calls, yields)
    end
  end)

  it("outside of any coroutine is an error like another", function()
    local finished = 0
    local ok, problem = pcall(sandbox.run, { "/bin/sh", "-c", "echo one; sleep 60" }, options {
      on_output = function() coroutine.yield() end,
      on_finished = function() finished = finished + 1 end,
    })
    assert.is_false(ok)
    assert.matches("yield", tostring(problem))
    assert.equal(1, finished)
  end)

  it("is not called again by another coroutine, which sees the run and its end", function()
    support.skip_unless(protect.yields, "the pcall of this Lua lets nothing yield")
    local calls, finished = 0, 0
    local run = start("echo one; sleep 0.05; echo two", {
      on_output = function()
        calls = calls + 1
        if calls == 1 then coroutine.yield() end
      end,
      on_finished = function() finished = finished + 1 end,
    })
    local co = coroutine.create(function() return run:wait() end)
    repeat assert(coroutine.resume(co)) until calls == 1 -- now in the callback
    assert.equal(1, calls)
    local result = assert(run:wait(20))
    assert.equal("exited", result.status)
    assert.is_true(run:poll())
    assert.is_true(sandbox.wait_any { run } == run)
    assert.equal(1, calls)
    assert.equal(0, finished)
    local _, same = drive(co)
    assert.is_true(same == result)
    assert.equal(2, calls)
    assert.equal(1, finished)
  end)

  it("and never goes on does not keep on_finished from being called", function()
    support.skip_unless(protect.yields, "the pcall of this Lua lets nothing yield")
    local heard, finished = {}, {}
    local run = start("echo one; sleep 0.05; echo two", {
      on_output = function(_, bytes)
        heard[#heard + 1] = bytes
        coroutine.yield()
      end,
      on_finished = function(result) finished[#finished + 1] = result.status end,
    })
    local co = coroutine.create(function() return run:wait() end)
    repeat assert(coroutine.resume(co)) until #heard == 1
    assert.equal("exited", run:wait(20).status)
    run:close()
    assert.same({ "exited" }, finished)
    drive(co)
    assert.same({ "one\n" }, heard)
    assert.same({ "exited" }, finished)
  end)
end)

describe("a callback", function()
  it("may start another run and wait for it", function()
    local inner = {}
    local function other(tag)
      return function()
        if not inner[tag] then
          inner[tag] = "begun"
          inner[tag] = assert(sandbox.run({ "/bin/echo", tag }, options())).output
        end
      end
    end
    local result = assert(sandbox.run({ "/bin/sh", "-c", "echo x; sleep 0.05" }, options {
      on_capture_created = other "created", on_output = other "output", on_finished = other "finished",
      cancel = other "cancel", cancel_interval = 0.005,
    }))
    assert.equal("x\n", result.output)
    assert.same({ created = "created\n", output = "output\n", finished = "finished\n", cancel = "cancel\n" }, inner)
  end)

  it("may wait for its own run, and is not called within itself", function()
    local depth, deepest, heard, run, seen = 0, 0, {}, nil, nil
    local finished = 0
    run = start("echo one; sleep 0.05; echo two; sleep 0.05; echo three", {
      on_output = function(_, bytes)
        depth = depth + 1
        deepest = math.max(depth, deepest)
        heard[#heard + 1] = bytes
        seen = run:wait()
        run:poll()
        depth = depth - 1
      end,
      on_finished = function(result)
        finished = finished + 1
        assert(run:wait() == result and run:poll() and run:result() == result)
      end,
    })
    local result = run:wait()
    assert.is_true(seen == result)
    assert.equal(1, deepest)
    assert.equal(1, finished)
    assert.equal("one\ntwo\nthree\n", table.concat(heard))
  end)

  it("may end its own run by any way, and on_finished is called once", function()
    for way, status in pairs { cancel = "cancelled", close = "interrupted", kill = "exited" } do
      local finished, run = {}, nil
      run = start("echo one; sleep 60", {
        on_output = function() run[way](run, way == "kill" and "KILL" or nil) end,
        on_finished = function(result) finished[#finished + 1] = result.status end,
      })
      local result = run:wait()
      assert.equal(status, result.status)
      assert.same({ status }, finished)
      assert.equal("one\n", result.output)
    end
  end)

  it("may close the run from its predicate and from on_finished", function()
    local run, finished = nil, 0
    run = start("sleep 60", {
      cancel = function() run:close() end, on_finished = function()
        finished = finished + 1
        run:close()
      end,
    })
    assert.equal("interrupted", run:wait().status)
    assert.equal(1, finished)
  end)

  it("may collect garbage and drop the handle", function()
    local finished, handles = 0, {}
    handles.run = start("echo one; sleep 0.05; echo two", {
      on_output = function()
        handles.run = nil
        collect()
      end,
      on_finished = function()
        collect()
        finished = finished + 1
      end,
    })
    assert.equal("one\ntwo\n", handles.run:wait().output)
    collect()
    assert.equal(1, finished)
  end)

  it("may poll and close other runs, whose callbacks are theirs", function()
    local order = {}
    local second = start("echo second; sleep 60", {
      on_output = function() order[#order + 1] = "second output" end,
      on_finished = function(result) order[#order + 1] = "second " .. result.status end,
    })
    local first = start("echo first", {
      on_output = function()
        support.eventually(function()
          second:poll()
          return #order > 0
        end)
        second:close()
        order[#order + 1] = "first output"
      end,
    })
    first:wait()
    assert.same({ "second output", "second interrupted", "first output" }, order)
  end)

  it("that fails after another has failed gives the first error, and on_finished still comes once", function()
    local finished = 0
    local ok, problem = pcall(sandbox.run, { "/bin/sh", "-c", "echo x; sleep 60" }, options {
      on_output = function() error("first", 0) end,
      on_finished = function()
        finished = finished + 1
        error("second", 0)
      end,
    })
    assert.same({ false, "first" }, { ok, problem })
    assert.equal(1, finished)
  end)

  it("may raise nil", function()
    local finished = 0
    local ok, problem = pcall(sandbox.run, { "/bin/sh", "-c", "echo x; sleep 60" }, options {
      on_output = function() error() end, on_finished = function() finished = finished + 1 end,
    })
    assert.is_false(ok)
    assert.is_nil(problem)
    assert.equal(1, finished)
  end)
end)

describe("the cancel predicate", function()
  it("is asked at once, and then once an interval, however much the command writes", function()
    local asked = 0
    local result = assert(sandbox.run({ "/bin/sh", "-c", "i=0; while [ $i -lt 2000 ]; do echo $i; i=$((i+1)); done" },
      options { cancel_interval = 30, cancel = function() asked = asked + 1 end, on_output = function() end }))
    assert.equal("exited", result.status)
    assert.equal(1, asked)
  end)

  it("makes the descriptor readable at every interval", function()
    local core = require "execsandbox.core"
    local asked, begin = 0, support.now()
    local run = start("echo ready; sleep 60", { cancel_interval = 0.05, cancel = function()
      asked = asked + 1
      return asked == 4
    end })
    while not run:poll() do core.block({ run._core }) end
    assert.equal("cancelled", run:result().status)
    assert.equal(4, asked)
    assert.is_true(support.now() - begin >= 0.149)
  end)

  it("may ask for no interval at all", function()
    local asked = 0
    local run = start("sleep 60", { cancel_interval = 0, cancel = function()
      asked = asked + 1
      return asked == 20
    end })
    assert.equal("cancelled", run:wait(20).status)
  end)
end)
