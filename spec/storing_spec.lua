-- What is stored and shown of a command's output: at every limit, in every trouble, on every ending
-- (cases 45, 46 and 48).
local sandbox = require "execsandbox"
local inside = require "spec.support.inside"
local support = require "spec.support"

local quote = support.quote

local policy, direct

-- Each is written to both streams. The last two end within a character, malformed in different ways.
local contents = { "abcdef", "a\0b\0\0", "a\195\164\226\130\172\240\159\152\128", "a\255b\192\226\130", "\240\159\152\128\240\159" }

-- The first COUNT characters of TEXT, and how many it has.
local function characters(text, count)
  local total, kept = 0, {}
  for character in text:gmatch "[%z\1-\127\194-\244][\128-\191]*" do
    total = total + 1
    if total <= count then kept[total] = character end
  end
  return table.concat(kept), total
end

local function facts(capture)
  return {
    byte_count = capture.byte_count, observed_byte_count = capture.observed_byte_count,
    complete = capture.complete, truncated = capture.truncated, status = capture.status,
  }
end

local function stored(count, observed, status)
  return { byte_count = count, observed_byte_count = observed, complete = status == "complete",
    truncated = count < observed, status = status }
end

setup(function()
  policy = inside.policy()
  direct = assert(sandbox.unrestricted {}) -- captures as any other, in less time
end)

-- What a command that writes the file `bytes` to stdout and then to stderr leaves.
local function twice(root, options)
  local given = { policy = direct, cwd = root, timeout = 60 }
  for name, value in pairs(options) do given[name] = value end
  return assert(sandbox.run({ "/bin/sh", "-c", "cat bytes; cat bytes >&2" }, given))
end

describe("text", function()
  it("is exact at every limit, for each stream by itself", function()
    local root = support.tempdir()
    for _, bytes in ipairs(contents) do
      support.write(root .. "/bytes", bytes)
      local whole = sandbox.decode(bytes)
      local _, count = characters(whole, 0)
      local limits = { 0, count - 1, count, count + 1 }
      for i, limit in ipairs(limits) do
        local other = limits[5 - i]
        local result = twice(root, { output_limit = limit, error_output_limit = other })
        assert.same({ (characters(whole, limit)), limit < count, (characters(whole, other)), other < count },
          { result.output, result.output_truncated, result.error_output, result.error_output_truncated })
        assert.same(stored(#bytes, #bytes, "complete"), facts(result.output_capture))
        assert.same(stored(#bytes, #bytes, "complete"), facts(result.error_capture))
      end
    end
  end)

  it("is exact at every limit where the streams are merged", function()
    local root = support.tempdir()
    for i = 3, 5, 2 do
      local bytes = contents[i]
      support.write(root .. "/bytes", bytes)
      local whole = sandbox.decode(bytes .. bytes)
      local _, count = characters(whole, 0)
      for _, limit in ipairs { 0, math.floor(count / 2), count - 1, count, count + 1 } do
        local result = twice(root, { output_limit = limit, error_output_limit = 1, merge_output = true })
        assert.same({ (characters(whole, limit)), limit < count }, { result.output, result.output_truncated })
        assert.is_nil(result.error_output)
      end
    end
  end)
end)

describe("stored bytes", function()
  it("are exact at every limit, of both streams, and their text is valid", function()
    local root = support.tempdir()
    for _, bytes in ipairs(contents) do
      support.write(root .. "/bytes", bytes)
      for _, limit in ipairs { 0, 1, #bytes - 1, #bytes, #bytes + 1 } do
        local result = twice(root, { capture_byte_limit = limit })
        for name, capture in pairs { output = result.output_capture, error_output = result.error_capture } do
          local prefix = bytes:sub(1, limit)
          assert.same(stored(#prefix, #bytes, limit < #bytes and "limit" or "complete"), facts(capture))
          assert.equal(prefix, capture:read())
          assert.equal(sandbox.decode(prefix), result[name])
          assert.equal(limit < #bytes, result[name .. "_truncated"])
        end
      end
    end
  end)

  it("are exact at every limit where the streams are merged", function()
    local root = support.tempdir()
    for i = 2, 3 do
      local bytes = contents[i]
      support.write(root .. "/bytes", bytes)
      local all = bytes .. bytes
      for _, limit in ipairs { 0, #bytes, #all - 1, #all, #all + 1 } do
        local result = twice(root, { capture_byte_limit = limit, merge_output = true })
        local prefix = all:sub(1, limit)
        assert.same(stored(#prefix, #all, limit < #all and "limit" or "complete"), facts(result.output_capture))
        assert.equal(prefix, result.output_capture:read())
        assert.equal(sandbox.decode(prefix), result.output)
        assert.equal(limit < #all, result.output_truncated)
      end
    end
  end)

  it("are 64 MiB a stream unless said otherwise", function()
    local result = assert(sandbox.run({ "/usr/bin/head", "-c", "67108865", "/dev/zero" },
      { policy = policy, cwd = "/", output_limit = 0, timeout = 60 }))
    assert.same(stored(67108864, 67108865, "limit"), facts(result.output_capture))
    assert.equal(0, result.exit_code)
  end)
end)

describe("a capture", function()
  -- A run with a retained capture of each stream that writes "out\n" and "error\n".
  local function fields(script, options, act)
    local directory = support.tempdir()
    local given = { policy = policy, cwd = "/", capture_directory = directory, output_limit = 9 }
    for name, value in pairs(options or {}) do given[name] = value end
    local run = assert(sandbox.start({ "/bin/sh", "-c", "echo out; echo error >&2; " .. script }, given))
    assert.is_true(support.eventually(function() return #run:error_output() >= 5 or run:poll() end, 20))
    if act then act(run, directory) end
    return assert(run:wait(20)), directory
  end

  local function kept(result, status)
    for count, capture in pairs { [4] = result.output_capture, [6] = result.error_capture } do
      assert.same(stored(count, count, status), facts(capture))
      assert.is_true(capture.retained)
      assert.equal(count, #support.read(capture.path))
    end
    assert.same({ "out\n", false, "", true },
      { result.output, result.output_truncated, result.error_output, result.error_output_truncated })
  end

  -- What every result has, whatever its status.
  local function has(result, wanted)
    for _, name in ipairs { "real_seconds", "user_seconds", "system_seconds", "max_rss_bytes" } do
      assert.is_number(result[name])
      assert.is_true(result[name] >= 0 and result[name] < 1e12, name)
    end
    assert.is_boolean(result.descendants_killed)
    assert.equal("bwrap", result.backend)
    assert.same(wanted, { result.status, result.timed_out, result.cancelled, result.exit_code or "none", result.signal or "none" })
  end

  it("says after each ending what there is and why", function()
    local result = fields("exit 3")
    kept(result, "complete")
    has(result, { "exited", false, false, 3, "none" })
    result = fields("kill -KILL $$")
    kept(result, "complete")
    has(result, { "exited", false, false, "none", 9 })
    result = fields("exec sleep 60", nil, function(run) run:cancel() end)
    kept(result, "cancelled")
    has(result, { "cancelled", false, true, "none", 9 })
    assert.is_true(result.real_seconds > 0 and result.max_rss_bytes > 100000)
    result = fields("exec sleep 60", nil, function(run) run:close() end)
    kept(result, "interrupted")
    has(result, { "interrupted", false, false, "none", 9 })
    assert.is_true(result.real_seconds > 0 and result.max_rss_bytes > 100000)
    local seconds = 0.2
    repeat
      seconds = seconds * 2
      result = fields("exec sleep 60", { timeout = seconds })
    until result.error_capture.byte_count == 6 or seconds > 5
    kept(result, "timeout")
    has(result, { "timeout", true, false, "none", 9 })
    assert.is_true(result.real_seconds >= seconds)
  end)

  it("that is full stays so however the run ends", function()
    local result = fields("exec sleep 60", { capture_byte_limit = 5 }, function(run) run:cancel() end)
    assert.equal("cancelled", result.status)
    assert.same(stored(4, 4, "cancelled"), facts(result.output_capture))
    assert.same(stored(5, 6, "limit"), facts(result.error_capture))
  end)

  it("of a launch that failed is empty, and says so", function()
    local directory = support.tempdir()
    local run = assert(sandbox.start({ "/nonexistent" }, { policy = policy, cwd = "/", capture_directory = directory }))
    local result = assert(run:wait(20))
    has(result, { "launch-failed", false, false, "none", "none" })
    for _, capture in ipairs { result.output_capture, result.error_capture } do
      assert.same(stored(0, 0, "launch-failed"), facts(capture))
      assert.equal("", support.read(capture.path))
      assert.equal("", capture:read())
    end
    assert.same({ "", false, "", false },
      { result.output, result.output_truncated, result.error_output, result.error_output_truncated })
  end)

  it("has no other fields, and cannot be changed", function()
    local result = fields("exit 0")
    local capture = result.output_capture
    assert.is_nil(capture.anything)
    assert.has_error(function() capture.status = "other" end)
    assert.matches("complete", tostring(capture), 1, true)
    assert.equal("userdata", type(capture))
    assert.is_not_table(getmetatable(capture))
  end)

  it("that is not retained has no path", function()
    local result = twice(support.tempdir(), { clear_env = true }) -- there is no file: both say so on stderr
    assert.is_nil(result.output_capture.path)
    assert.is_false(result.output_capture.retained)
    assert.is_true(result.error_capture.byte_count > 0)
    assert.equal(1, result.exit_code)
    assert.equal("complete", result.error_capture.status)
  end)

  it("refuses numbers that count nothing", function()
    local capture = fields("exit 0").output_capture
    for _, number in ipairs { -1, 0.5, 0 / 0, 1 / 0, -1 / 0, 2 ^ 53 + 2, 1e300, -2 ^ 63, "1", true, {} } do
      local name = tostring(number)
      assert.has_error(function() capture:read(number) end, nil, name)
      assert.has_error(function() capture:read(0, number) end, nil, name)
      assert.has_error(function() capture:text(number) end, nil, name)
      assert.has_error(function() capture:sample { head_bytes = number } end, nil, name)
      assert.has_error(function() capture:sample { tail_bytes = number } end, nil, name)
      assert.has_error(function() sandbox.sample(capture, { tail_bytes = number }) end, nil, name)
    end
    assert.equal("", capture:read(2 ^ 53))
    assert.equal("out\n", capture:read(0, 2 ^ 53))
    assert.equal("out\n", (capture:text(2 ^ 53)))
    assert.same({ "out\n", "", 0 }, { capture:sample { head_bytes = 2 ^ 53, tail_bytes = 2 ^ 53 } })
    assert.same({ "", "out\n", 0 }, { capture:sample { head_bytes = 0, tail_bytes = 2 ^ 53 } })
    assert.same({ "", "", 4 }, { capture:sample { head_bytes = 0, tail_bytes = 0 } })
    for _, call in ipairs { "read", "text", "sample", "lines" } do
      assert.has_error(function() capture[call]() end)
      assert.has_error(function() capture[call] {} end)
    end
  end)
end)

describe("the bytes of a run", function()
  it("come from an offset on, of each stream, during and after it", function()
    local root = support.tempdir()
    local run = assert(sandbox.start({ "/bin/sh", "-c", "printf abc; printf 12345 >&2; until [ -e go ]; do sleep 0.02; done" },
      { policy = policy, cwd = root }))
    assert.is_true(support.eventually(function() return run:error_output() == "12345" end))
    local function check()
      assert.same({ "abc", "abc", "c", "", "" }, { run:output(), run:output(0), run:output(2), run:output(3), run:output(99) })
      assert.same({ "12345", "345", "" }, { run:error_output(), run:error_output(2), run:error_output(5) })
      for _, number in ipairs { -1, 0.5, 0 / 0, 1 / 0, "x" } do
        assert.has_error(function() run:output(number) end)
        assert.has_error(function() run:error_output(number) end)
      end
    end
    check()
    support.write(root .. "/go")
    assert.equal("exited", assert(run:wait(20)).status)
    check()
    run:close()
    check()
  end)
end)

describe("a retained capture that is tampered with during the run", function()
  -- The command writes "one\n", waits for what `tamper(directory, path)` does, and writes more.
  local function tampered(tamper)
    local root, above = support.tempdir(), support.tempdir()
    local directory = support.mkdir(above .. "/captures")
    local seen
    local run = assert(sandbox.start({ "/bin/sh", "-c",
      "echo one; echo problem >&2; until [ -e go ]; do sleep 0.02; done; echo two; echo again >&2; exit 4" },
      { policy = policy, cwd = root, timeout = 60, capture_directory = directory, output_limit = 100,
        on_capture_created = function(created) seen = created.output_capture.path end }))
    assert.is_true(support.eventually(function() return run:error_output() == "problem\n" and run:output() == "one\n" end))
    tamper(directory, seen)
    support.write(root .. "/go")
    local result = assert(run:wait(30))
    assert.equal("exited", result.status)
    assert.equal(4, result.exit_code)
    -- What is counted is what the file holds, whether or not it still has a name.
    assert.equal(#result.output_capture:read(), result.output_capture.byte_count)
    assert.equal(("one\ntwo\n"):sub(1, result.output_capture.byte_count), result.output_capture:read())
    assert.equal("one\n", result.output:sub(1, 4))
    assert.equal(8, result.output_capture.observed_byte_count)
    assert.equal("write-error", result.output_capture.status)
    assert.is_false(result.output_capture.complete)
    return result, directory
  end

  it("by removing one file is a write error of that stream alone", function()
    local result = tampered(function(_, path) assert(os.remove(path)) end)
    assert.same(stored(14, 14, "complete"), facts(result.error_capture))
    assert.equal("problem\nagain\n", support.read(result.error_capture.path))
  end)

  it("by removing or moving the directory is a write error of both", function()
    for _, command in ipairs { "rm -r", "sh -c 'mv \"$1\" \"$1.moved\"' sh", "sh -c 'rm -r \"$1\"; : >\"$1\"' sh" } do
      local result = tampered(function(directory) support.must(command .. " " .. quote(directory)) end)
      assert.equal("write-error", result.error_capture.status)
      assert.equal(14, result.error_capture.observed_byte_count)
    end
  end)

  it("by making the directory unwritable is a write error of both", function()
    support.skip_unless(not support.is_root, "root can write whatever the mode says; another spec is for root")
    for _, mode in ipairs { "500", "000" } do
      local result, directory = tampered(function(directory) support.must("chmod", mode, directory) end)
      support.must("chmod", "700", directory)
      assert.equal("write-error", result.error_capture.status)
      assert.equal("one\ntwo\n", support.read(result.output_capture.path))
    end
  end)
end)

describe("a host's file system", function()
  -- Runs `script` in a Lua process whose `directory` is a file system of 128 KiB of its own.
  local function host(script)
    local directory = support.tempdir()
    local file = support.write(support.tempdir() .. "/host.lua", ([[
      local sandbox = require "execsandbox"
      local directory, policy = %q, assert(sandbox.read_only { hide_home = false })
      local function size(path)
        local file = assert(io.open(path, "rb"))
        local bytes = file:seek "end"
        file:close()
        return bytes
      end
    ]]):format(directory) .. script)
    local output, status = support.shell(("unshare -rm sh -c "
      .. "'mount -t tmpfs -o size=128k none %s && TMPDIR=%s exec \"$@\"' sh %s %s"):format(directory, directory,
      quote(support.lua), quote(file)))
    assert.equal(0, status, output)
    return output
  end

  it("that is full is a write error of every stream, whose sizes are those of the files", function()
    assert.equal("ok", host [[
      local result = assert(sandbox.run({ "/bin/sh", "-c", "head -c 200000 /dev/zero; head -c 90000 /dev/zero >&2; exit 7" },
        { policy = policy, cwd = "/", capture_directory = directory }))
      assert(result.status == "exited" and result.exit_code == 7)
      local sum = 0
      for observed, capture in pairs { [200000] = result.output_capture, [90000] = result.error_capture } do
        assert(capture.status == "write-error", capture.status)
        assert(capture.observed_byte_count == observed, capture.observed_byte_count)
        assert(capture.byte_count == size(capture.path), capture.byte_count)
        assert(capture:read() == ("\0"):rep(capture.byte_count))
        assert(capture.truncated and not capture.complete)
        sum = sum + capture.byte_count
      end
      assert(sum > 0 and sum <= 131072, sum)
      io.write "ok"]])
  end)

  it("that is full is one of anonymous captures as well", function()
    assert.equal("ok", host [[
      local result = assert(sandbox.run({ "/bin/sh", "-c", "head -c 200000 /dev/zero; echo more; exit 7" },
        { policy = policy, cwd = "/" }))
      local capture = result.output_capture
      assert(result.exit_code == 7 and capture.status == "write-error" and capture.observed_byte_count == 200005)
      assert(capture.byte_count > 0 and capture.byte_count <= 131072)
      assert(result.output == ("\0"):rep(capture.byte_count) and result.output_truncated)
      assert(result.error_capture.status == "complete")
      io.write "ok"]])
  end)

  it("that was full, and has room again, does not get what comes after a gap", function()
    local root = support.tempdir()
    assert.equal("ok", host(([[
      local root, ballast = %q, assert(io.open(directory .. "/ballast", "wb"))
      ballast:write(("b"):rep(65536))
      ballast:close()
      policy = assert(sandbox.policy { rules = { { special = "root", access = "read" }, { path = root, access = "write" } } })
      local run = assert(sandbox.start({ "/bin/sh", "-c", "head -c 300000 /dev/zero; : >done; read -r word; echo after" },
        { policy = policy, cwd = root, stdin = "pipe", capture_directory = directory, merge_output = true }))
      while not io.open(root .. "/done") do run:wait(0.01) end -- a pipe holds 64 KiB: the rest has met its end
      os.remove(directory .. "/ballast")
      assert(run:write "go\n")
      local capture = run:wait().output_capture
      assert(capture.status == "write-error" and capture.observed_byte_count == 300006)
      assert(capture.byte_count == size(capture.path) and capture.byte_count <= 65536)
      assert(capture:read() == ("\0"):rep(capture.byte_count))
      io.write "ok"]]):format(root)))
  end)

  it("whose directory becomes read-only is a write error", function()
    assert.equal("write-error 8 8", (host [[
      local bound
      local run = assert(sandbox.start({ "/bin/sh", "-c", "echo one; read -r word; echo two" },
        { policy = policy, cwd = "/", stdin = "pipe", capture_directory = directory, merge_output = true }))
      while run:output() ~= "one\n" do run:wait(0.01) end
      assert(os.execute("mount --bind " .. directory .. " " .. directory .. " && mount -o remount,bind,ro " .. directory))
      assert(run:write "go\n")
      local capture = run:wait().output_capture
      io.write(capture.status, " ", capture.byte_count, " ", capture.observed_byte_count)]]))
  end)
end)
