-- What stays bounded however much is asked for: memory and disk while 10 GiB pass (case 47), and
-- descriptors and processes of 200 runs at once (case 55).
local lfs = require "lfs"
local sandbox = require "execsandbox"
local inside = require "spec.support.inside"
local resident = require "spec.support.resident"
local support = require "spec.support"

local quote = support.quote
local MIB = 1024 * 1024

describe("10 GiB into a capture of 64 MiB", function()
  it("are counted to the byte, and neither the command nor memory nor disk has to bear them", function()
    local directory = support.tempdir()
    local host, size, limit = resident.self(), 10240 * MIB, 64 * MIB
    local before = resident.bytes(host, "VmRSS")
    local run = assert(sandbox.start({ "head", "-c", ("%.0f"):format(size), "/dev/zero" }, {
      policy = inside.policy(), cwd = "/", merge_output = true, capture_byte_limit = limit,
      capture_directory = directory, output_limit = 0, timeout = 500,
    }))
    local helper = assert(resident.children(host)[1])
    assert.equal(1, #resident.children(host))
    local path, blocks = directory .. "/" .. support.list(directory)[1], 0
    -- The host looks away until the helper has ended: nobody waits for it. Then there is no memory.
    local most = resident.watch({ host, helper }, function()
      blocks = math.max(blocks, lfs.attributes(path, "blocks"))
      return not resident.bytes(helper, "VmRSS")
    end, 400)
    assert.is_nil(resident.bytes(helper, "VmRSS"))
    local growth = most[host] - before + most[helper]
    assert.is_true(growth < 16 * MIB, ("grown by %.1f MiB"):format(growth / MIB))
    assert.is_true(most[helper] > 0)
    local result = assert(run:wait(30))
    local capture = result.output_capture
    assert.same({ "exited", 0 }, { result.status, result.exit_code })
    assert.same({ limit, size, "limit", false, true }, { capture.byte_count, capture.observed_byte_count,
      capture.status, capture.complete, capture.truncated })
    assert.same({ limit, 1 }, { lfs.attributes(path, "size"), #support.list(directory) })
    -- Some blocks more, of the filesystem's own.
    blocks = math.max(blocks, lfs.attributes(path, "blocks"))
    assert.is_true(blocks * 512 < limit + MIB, blocks)
  end)
end)

-- Starts 200 runs, waits for whichever ends, and prints what is wrong with them. LIMITED: how many
-- can be started is up to the descriptors that there are.
local crowd = [[
  local lfs = require "lfs"
  local sandbox = require "execsandbox"
  local resident = require "spec.support.resident"
  local policy = assert(sandbox.workspace_write { workspace_roots = { ROOT } })
  local finished, kinds = {}, {
    function(i) -- ends by itself, long before its time
      return "exit " .. i % 50, 300 + i, "exited", i % 50
    end,
    function() -- does not
      return "exec sleep " .. MARK, 0.2 + math.random() / 2, "timeout"
    end,
    function(i) -- ends by itself when others have come and gone
      return "sleep " .. (0.2 + i % 5 / 10) .. "; exit 3", 300 + i, "exited", 3
    end,
    function() -- does not hear TERM, and leaves a process behind
      return "trap '' TERM; sleep " .. MARK .. " & wait; wait", 0.3 + math.random() / 2, "timeout"
    end,
  }

  local function start(i)
    local script, timeout, status, code = kinds[i % #kinds + 1](i)
    local run, err = sandbox.start({ "/bin/sh", "-c", script }, {
      policy = policy, cwd = ROOT, timeout = timeout, kill_grace = 0.1, merge_output = i % 3 == 0,
    }, function() finished[i] = (finished[i] or 0) + 1 end)
    if not run and LIMITED and err.errno == 24 then return nil end -- EMFILE
    assert(run, tostring(err))
    return { number = i, run = run, status = status, code = code }
  end

  local function descriptors()
    local count = 0
    for _ in lfs.dir "/proc/self/fd" do count = count + 1 end
    return count
  end

  local function all()
    local runs, expected, started = {}, {}, 0
    for i = 1, 200 do
      local this = start(i)
      if this then
        runs[#runs + 1], expected[this.run], started = this.run, this, started + 1
      end
    end
    while #runs > 0 do
      local over = assert(sandbox.wait_any(runs, 240), "nothing ends")
      local this, result = expected[over], over:result()
      if result.status ~= this.status or result.exit_code ~= this.code then
        print("run", this.number, result.status, result.exit_code, result.signal, tostring(result.error))
      end
      if finished[this.number] ~= 1 then print("run", this.number, "finished", finished[this.number]) end
      finished[this.number] = nil
      for i, run in ipairs(runs) do
        if run == over then
          table.remove(runs, i)
          break
        end
      end
    end
    if next(finished) then print("one that was not started finished") end
    return started
  end

  assert(sandbox.run({ "/bin/true" }, { policy = policy, cwd = ROOT })) -- what is opened once
  collectgarbage() collectgarbage()
  local before = descriptors()
  local started = all()
  local jit = rawget(_G, "jit")
  if type(jit) == "table" then jit.flush() end
  collectgarbage() collectgarbage()
  if descriptors() ~= before then print("descriptors", before, descriptors()) end
  local children = resident.children(resident.self())
  if #children > 0 then print("processes", #children) end
  print("started", started)
]]

describe("200 runs at once from one thread, each with its own timeout", function()
  -- What the crowd says in a host that begins with the shell's words `prefix`.
  local function gather(prefix, limited)
    local root, mark = support.tempdir(), ("7%s0%d"):format(resident.self(), math.random(99))
    local file = support.write(support.tempdir() .. "/host.lua",
      ("local ROOT, MARK, LIMITED = %q, %q, %s\n"):format(root, mark, tostring(limited)) .. crowd)
    local output, status = support.shell(prefix .. " " .. quote(support.lua) .. " " .. quote(file))
    assert.equal(0, status, output)
    assert.same({}, (support.eventually(function()
      local found = support.processes(mark)
      return #found == 0 and found
    end)) or support.processes(mark))
    -- All of them protected names that are missing: the placeholders were theirs together.
    assert.same({}, support.list(root))
    return output
  end

  it("end as they should, and all descriptors and processes are gone", function()
    assert.equal("started\t200\n", gather("", false))
  end)

  it("do so with the descriptors that a login session has", function()
    assert.equal("started\t200\n", gather("ulimit -S -n 1024 &&", false))
  end)

  it("are as many as there are descriptors for, and each of the others is an error", function()
    local started = tonumber(gather("ulimit -S -n 100 &&", true):match "^started\t(%d+)\n$")
    assert.is_true(started and started > 10 and started < 200, started)
  end)
end)
