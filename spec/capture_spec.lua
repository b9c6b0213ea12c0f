-- What is kept of a command's output (cases 45 to 48).
local sandbox = require "execsandbox"
local inside = require "spec.support.inside"
local support = require "spec.support"

local quote = support.quote
local FFFD = "\239\191\189"

-- "E1 80" as the bytes.
local function hex(text)
  return (text:gsub("%s+", ""):gsub("%x%x", function(pair) return string.char(tonumber(pair, 16)) end))
end

local policy

-- What a command that copies `bytes` to stdout leaves, with `options` of `run`.
local function printed(bytes, options)
  local given = { policy = policy, stdin = bytes, timeout = 60, cwd = "/" }
  for name, value in pairs(options or {}) do given[name] = value end
  return assert(sandbox.run({ "/bin/cat" }, given))
end

-- The fields of a capture that come in numbers and names.
local function facts(capture)
  return {
    byte_count = capture.byte_count, observed_byte_count = capture.observed_byte_count,
    complete = capture.complete, truncated = capture.truncated, status = capture.status,
  }
end

local function whole(count)
  return { byte_count = count, observed_byte_count = count, complete = true, truncated = false, status = "complete" }
end

local function limited(count, observed)
  return { byte_count = count, observed_byte_count = observed, complete = false, truncated = true, status = "limit" }
end

-- Runs `script` in a Lua process of its own; `prefix` is what the shell does before.
local function host(script, prefix)
  local file = support.write(support.tempdir() .. "/host.lua", "local sandbox = require 'execsandbox'\n" .. script)
  return support.shell((prefix or "") .. " " .. quote(support.lua) .. " " .. quote(file))
end

setup(function() policy = inside.policy() end)

describe("the text of a result", function()
  it("has as many characters as the limit allows, and says whether there were more", function()
    for _, case in ipairs { { 0, "", true }, { 1, "a", true }, { 4, "abcd", true }, { 5, "abcde", false },
      { 6, "abcde", false } } do
      local result = printed("abcde", { output_limit = case[1] })
      assert.equal(case[2], result.output)
      assert.equal(case[3], result.output_truncated, case[1])
      assert.same(whole(5), facts(result.output_capture))
    end
  end)

  it("is empty and not truncated where nothing came, whatever the limit", function()
    for _, limit in ipairs { 0, 1, 2 ^ 53 } do
      local result = printed("", { output_limit = limit, error_output_limit = limit })
      assert.equal("", result.output)
      assert.is_false(result.output_truncated)
      assert.equal("", result.error_output)
      assert.is_false(result.error_output_truncated)
    end
  end)

  it("counts characters, not bytes", function()
    local text = "a\195\164\226\130\172\240\159\152\128z" -- 1, 2, 3 and 4 bytes, and 1
    for limit, expected in ipairs { "a", "a\195\164", "a\195\164\226\130\172", "a\195\164\226\130\172\240\159\152\128",
      text, text } do
      local result = printed(text, { output_limit = limit })
      assert.equal(expected, result.output)
      assert.equal(limit < 5, result.output_truncated, limit)
    end
  end)

  it("counts one character for each malformed part, and is valid UTF-8", function()
    local bytes = "a" .. hex "FF E2 82" .. "b" .. hex "F0 9F 98"
    local full = "a" .. FFFD .. FFFD .. "b" .. FFFD
    assert.equal(full, printed(bytes).output)
    for _, case in ipairs { { 1, "a", true }, { 2, "a" .. FFFD, true }, { 3, "a" .. FFFD .. FFFD, true },
      { 4, "a" .. FFFD .. FFFD .. "b", true }, { 5, full, false }, { 6, full, false } } do
      local result = printed(bytes, { output_limit = case[1] })
      assert.equal(case[2], result.output)
      assert.equal(case[3], result.output_truncated, case[1])
    end
  end)

  it("keeps NUL bytes", function()
    local result = printed("a\0b\0\0c\n", { output_limit = 6 })
    assert.equal("a\0b\0\0c", result.output)
    assert.is_true(result.output_truncated)
    assert.equal("\0", printed("\0").output)
  end)

  it("is whole where characters lie across the pieces it is read in", function()
    for shift = 0, 3 do
      local text = ("x"):rep(shift) .. ("\240\159\152\128"):rep(20000)
      local result = printed(text)
      assert.is_true(text == result.output)
      assert.is_false(result.output_truncated)
      local part = printed(text, { output_limit = shift + 9000 })
      assert.is_true(text:sub(1, shift + 36000) == part.output)
      assert.is_true(part.output_truncated)
    end
  end)

  it("is limited for each stream by itself", function()
    local result = inside.sh(policy, "printf abcdef; printf 123456 >&2", {
      merge_output = false, output_limit = 2, error_output_limit = 6,
    })
    assert.equal("ab", result.output)
    assert.is_true(result.output_truncated)
    assert.equal("123456", result.error_output)
    assert.is_false(result.error_output_truncated)
    result = inside.sh(policy, "printf abcdef; printf 123456 >&2", { merge_output = false, error_output_limit = 0 })
    assert.equal("abcdef", result.output)
    assert.equal("", result.error_output)
    assert.is_true(result.error_output_truncated)
  end)
end)

describe("merged output", function()
  it("keeps the order of the writes", function()
    local expected = {}
    for i = 1, 200 do expected[i] = ("o%d\ne%d\n"):format(i, i) end
    local result = inside.sh(policy, "i=1; while [ $i -le 200 ]; do echo o$i; echo e$i >&2; i=$((i+1)); done")
    assert.equal(table.concat(expected), result.output)
    assert.is_nil(result.error_output)
    assert.is_nil(result.error_output_truncated)
    assert.is_nil(result.error_capture)
  end)

  it("has one limit", function()
    local result = inside.sh(policy, "printf abc; printf 123 >&2; printf def", { output_limit = 5, capture_byte_limit = 7 })
    assert.equal("abc12", result.output)
    assert.same(limited(7, 9), facts(result.output_capture))
  end)
end)

describe("a capture", function()
  it("stores as many bytes as its limit allows, and counts the rest", function()
    for _, limit in ipairs { 0, 1, 4, 5, 6 } do
      local result = printed("abcde", { capture_byte_limit = limit })
      assert.same(limit < 5 and limited(limit, 5) or whole(5), facts(result.output_capture))
      assert.equal(("abcde"):sub(1, limit), result.output_capture:read())
      assert.equal(("abcde"):sub(1, limit), result.output)
      assert.equal(limit < 5, result.output_truncated, limit)
      assert.equal("exited", result.status)
      assert.equal(0, result.exit_code)
    end
  end)

  it("is limited for each stream by itself", function()
    local result = inside.sh(policy, "printf abcdef; printf 123 >&2", { merge_output = false, capture_byte_limit = 3 })
    assert.same(limited(3, 6), facts(result.output_capture))
    assert.same(whole(3), facts(result.error_capture))
    assert.is_true(result.output_truncated)
    assert.is_false(result.error_output_truncated)
  end)

  it("that ends within a character is rendered as valid text", function()
    local text = "ab\240\159\152\128"
    for limit = 3, 5 do
      local result = printed(text, { capture_byte_limit = limit })
      assert.equal(text:sub(1, limit), result.output_capture:read())
      assert.equal("ab" .. FFFD, result.output)
      assert.is_true(result.output_truncated)
    end
    assert.equal(text, printed(text, { capture_byte_limit = 6 }).output)
  end)

  it("has exact sizes around the sizes of pipes and buffers", function()
    for _, size in ipairs { 4095, 4096, 65535, 65536, 65537, 262145, 1048577 } do
      for _, limit in ipairs { size - 1, size, size + 1 } do
        local result = assert(sandbox.run({ "/usr/bin/head", "-c", tostring(size), "/dev/zero" },
          { policy = policy, capture_byte_limit = limit, output_limit = 0, cwd = "/" }))
        assert.same(limit < size and limited(limit, size) or whole(size), facts(result.output_capture))
      end
    end
  end)

  it("does not hold the command up once it is full", function()
    local size = 400 * 1000 * 1000
    local result = inside.sh(policy, "head -c " .. size .. " /dev/zero && echo done >&2",
      { merge_output = false, capture_byte_limit = 1000 })
    assert.same(limited(1000, size), facts(result.output_capture))
    assert.equal("done\n", result.error_output)
  end)

  it("is complete where the command failed", function()
    for _, script in ipairs { "echo out; echo err >&2; exit 3", "echo out; echo err >&2; kill -KILL $$" } do
      local result = inside.sh(policy, script, { merge_output = false })
      assert.equal("exited", result.status)
      assert.is_true(result.exit_code == 3 or result.signal == 9)
      assert.same(whole(4), facts(result.output_capture))
      assert.same(whole(4), facts(result.error_capture))
    end
  end)

  it("keeps what was written before a timeout, and says why it ends there", function()
    local result = inside.timed(policy, "echo before; exec sleep 60", 0.4, "before", { merge_output = false })
    assert.equal("timeout", result.status)
    assert.equal("before\n", result.output)
    assert.same({ byte_count = 7, observed_byte_count = 7, complete = false, truncated = false, status = "timeout" },
      facts(result.output_capture))
    assert.equal("timeout", result.error_capture.status)
  end)

  it("keeps what was written before a cancellation", function()
    local run = assert(sandbox.start({ "/bin/sh", "-c", "echo before; exec sleep 60" }, { policy = policy, cwd = "/" }))
    assert.is_true(support.eventually(function() return run:output() == "before\n" end))
    run:cancel()
    local result = assert(run:wait(10))
    assert.equal("cancelled", result.status)
    assert.equal("before\n", result.output)
    assert.equal("cancelled", result.output_capture.status)
    assert.is_false(result.output_capture.complete)
  end)

  it("whose pipe a descendant keeps open is interrupted after the grace", function()
    local result = inside.sh(policy, "sleep 60 & echo done", { drain_grace = 0.1 })
    assert.equal("exited", result.status)
    assert.equal("done\n", result.output)
    assert.is_true(result.descendants_killed)
    assert.equal(5, result.output_capture.byte_count)
  end)
end)

describe("a retained capture", function()
  it("is a file of the caller's own in the directory given", function()
    local directory = support.tempdir()
    local result = inside.sh(policy, "printf out; printf error >&2", { merge_output = false, capture_directory = directory })
    local output, errors = result.output_capture, result.error_capture
    assert.is_true(output.retained)
    assert.equal(directory, output.path:match "^(.*)/")
    assert.not_equal(output.path, errors.path)
    assert.equal(2, #support.list(directory))
    assert.equal("out", support.read(output.path))
    assert.equal("error", support.read(errors.path))
    assert.equal("600 " .. support.uid, support.must("stat", "-c", "%a %u", output.path))
    assert.equal("600 " .. support.uid, support.must("stat", "-c", "%a %u", errors.path))
  end)

  it("has no text in the result unless asked for", function()
    local directory = support.tempdir()
    local result = printed("abc", { capture_directory = directory })
    assert.equal("", result.output)
    assert.is_true(result.output_truncated)
    result = printed("abc", { capture_directory = directory, output_limit = 2 })
    assert.equal("ab", result.output)
    assert.is_true(result.output_truncated)
    result = printed("", { capture_directory = directory })
    assert.is_false(result.output_truncated)
  end)

  it("outlives the handle and is never removed", function()
    local directory = support.tempdir()
    do printed("abc", { capture_directory = directory }) end
    collectgarbage()
    collectgarbage()
    local names = support.list(directory)
    assert.equal(2, #names)
    local sizes = #support.read(directory .. "/" .. names[1]) + #support.read(directory .. "/" .. names[2])
    assert.equal(3, sizes)
  end)

  it("goes to TMPDIR where no directory is given", function()
    local directory = support.tempdir()
    local output, status = host([[
      local result = assert(sandbox.run({ "/bin/echo", "text" }, {
        policy = assert(sandbox.read_only {}), cwd = "/", retain_output = true, merge_output = true }))
      io.write(result.output_capture.path, " ", #result.output)]], "TMPDIR=" .. quote(directory))
    assert.equal(0, status, output)
    local names = support.list(directory)
    assert.equal(1, #names)
    assert.equal(directory .. "/" .. names[1] .. " 0", output)
    assert.equal("text\n", support.read(directory .. "/" .. names[1]))
  end)

  it("in a directory that does not exist, or is none, or cannot be written, is an error before the launch", function()
    local directory = support.tempdir()
    local file = support.write(directory .. "/file")
    support.must("mkdir", "-m", "500", directory .. "/closed")
    for _, path in ipairs { directory .. "/missing", file, directory .. "/closed" } do
      if path ~= directory .. "/closed" or not support.is_root then
        local launched = false
        local result, err = sandbox.run({ "/bin/true" }, {
          policy = policy, cwd = "/", capture_directory = path, on_capture_created = function() launched = true end,
        })
        assert.is_nil(result, path)
        assert.equal("execution", err.kind)
        assert.equal("capture", err.stage)
        assert.equal("launch-failed", err.result.status)
        assert.matches(path, err.message, 1, true)
        assert.is_false(launched)
      end
    end
  end)

  it("whose file is removed, moved or replaced during the run is a write error, and the command goes on", function()
    for _, action in ipairs { "rm -- %s", "mv -- %s %s.moved", "rm -- %s && echo other > %s" } do
      local root, directory = support.tempdir(), support.tempdir()
      local run = assert(sandbox.start({ "/bin/sh", "-c", "echo one; until [ -e go ]; do sleep 0.02; done; echo two; exit 4" },
        { policy = policy, cwd = root, merge_output = true, timeout = 30, capture_directory = directory, output_limit = 100 }))
      assert.is_true(support.eventually(function() return run:output() == "one\n" end))
      support.must((action:gsub("%%s", quote(directory .. "/" .. support.list(directory)[1]))))
      support.write(root .. "/go")
      local result = assert(run:wait(30))
      assert.equal("exited", result.status)
      assert.equal(4, result.exit_code)
      assert.equal("write-error", result.output_capture.status, action)
      assert.is_false(result.output_capture.complete)
      assert.equal(8, result.output_capture.observed_byte_count)
      assert.equal(8, result.output_capture.byte_count)
    end
  end)
end)

describe("a capture that cannot be stored", function()
  -- A host that may write only 64 KiB into one file: the kernel's answer is that of a full disk.
  local script = [[
    local result = assert(sandbox.run({ "/bin/sh", "-c", "head -c 300000 /dev/zero; echo more; exit 7" }, {
      policy = assert(sandbox.read_only { hide_home = false }), cwd = "/", output_limit = 0, merge_output = true,
      capture_directory = %s }))
    local capture = result.output_capture
    io.write(("%%s %%s %%s %%s %%d %%d"):format(result.status, result.exit_code, capture.status,
      tostring(capture.complete), capture.byte_count, capture.observed_byte_count))]]

  it("for want of room is a write error, its prefix is counted, and the command goes on", function()
    local directory = support.tempdir()
    local output, status = host(script:format(("%q"):format(directory)), "unshare -rm sh -c 'mount -t tmpfs -o size=128k none "
      .. directory .. " && exec \"$@\"' sh")
    assert.equal(0, status, output)
    local stored, observed = output:match "^exited 7 write%-error false (%d+) (%d+)$"
    assert.equal("300005", observed, output)
    assert.is_true(tonumber(stored) > 0 and tonumber(stored) <= 131072, stored)
  end)

  it("because of a limit of the host's is a write error as well", function()
    local directory = support.tempdir()
    local output, status = host(script:format(("%q"):format(directory)), "ulimit -S -f 64 &&")
    assert.equal(0, status, output)
    local stored, observed = output:match "^exited 7 write%-error false (%d+) (%d+)$"
    assert.equal("300005", observed, output)
    assert.is_true(tonumber(stored) > 0 and tonumber(stored) <= 65536, stored)
    assert.equal(tonumber(stored), #support.read(directory .. "/" .. support.list(directory)[1]))
  end)
end)

describe("a transient capture", function()
  it("leaves nothing in TMPDIR, during the run and after it", function()
    local directory = support.tempdir()
    local output, status = host(([[
      local run = assert(sandbox.start({ "/bin/sh", "-c", "echo text; echo text >&2" }, {
        policy = assert(sandbox.read_only {}), cwd = "/" }))
      local during = io.popen("ls -A " .. %q):read "*a"
      local result = run:wait()
      assert(result.output == "text\n" and result.error_output == "text\n")
      assert(result.output_capture.path == nil and result.output_capture.retained == false)
      io.write(during)]]):format(directory), "TMPDIR=" .. quote(directory))
    assert.equal(0, status, output)
    assert.equal("", output)
    assert.same({}, support.list(directory))
  end)

  it("needs no usable TMPDIR", function()
    for _, directory in ipairs { "/nonexistent", "relative", "", "/proc" } do
      local output, status = host([[
        io.write(assert(sandbox.run({ "/bin/echo", "text" }, { policy = assert(sandbox.read_only {}), cwd = "/" })).output)]],
        "TMPDIR=" .. quote(directory))
      assert.equal("text\n", output)
      assert.equal(0, status)
    end
  end)
end)

describe("sampling", function()
  it("gives head and tail that never overlap, and what lies between as a count", function()
    local bytes = "0123456789"
    local capture = printed(bytes).output_capture
    for head = 0, 12 do
      for tail = 0, 12 do
        local first, last, omitted = capture:sample { head_bytes = head, tail_bytes = tail }
        assert.equal(bytes:sub(1, head), first)
        local left = #bytes - #first
        assert.equal(math.min(tail, left), #last)
        assert.equal(bytes:sub(#bytes - #last + 1), last)
        assert.equal(left - #last, omitted)
      end
    end
    assert.same({ capture:sample { head_bytes = 3, tail_bytes = 2 } },
      { sandbox.sample(capture, { head_bytes = 3, tail_bytes = 2 }) })
  end)

  it("takes 2048 bytes of each end without options", function()
    local bytes = ("h"):rep(3000) .. ("t"):rep(3000)
    local capture = printed(bytes).output_capture
    local head, tail, omitted = capture:sample()
    assert.equal(("h"):rep(2048), head)
    assert.equal(("t"):rep(2048), tail)
    assert.equal(6000 - 4096, omitted)
    assert.same({ "", "", 0 }, { printed("").output_capture:sample {} })
  end)

  it("raises for unknown and wrong options", function()
    local capture = printed("x").output_capture
    for _, options in ipairs { { head = 1 }, { head_bytes = -1 }, { tail_bytes = 1.5 }, { head_bytes = "many" } } do
      assert.has_error(function() capture:sample(options) end)
    end
    assert.error_matches(function() capture:sample { head_byte = 1 } end, "head_byte")
  end)
end)

describe("reading a capture", function()
  it("gives bytes from an offset, fewer at the end, none behind it", function()
    local capture = printed("abc\0def").output_capture
    assert.equal("abc\0def", capture:read())
    assert.equal("c\0d", capture:read(2, 3))
    assert.equal("ef", capture:read(5, 100))
    assert.equal("", capture:read(7, 1))
    assert.equal("", capture:read(1000))
    assert.equal("", capture:read(0, 0))
    for _, arguments in ipairs { { -1 }, { 0, -1 }, { 0.5 }, { "x" }, { 0, 1.5 } } do
      assert.has_error(function() capture:read(arguments[1], arguments[2]) end)
    end
  end)

  it("by lines gives each without its newline, long ones and an unfinished one as well", function()
    local long = ("x"):rep(100000)
    local function lines(bytes)
      local found = {}
      for line in printed(bytes).output_capture:lines() do found[#found + 1] = line end
      return found
    end
    assert.same({}, lines "")
    assert.same({ "" }, lines "\n")
    assert.same({ "a", "", "b" }, lines "a\n\nb\n")
    assert.same({ "a", "b" }, lines "a\nb")
    assert.same({ "a\0b", "c\r" }, lines "a\0b\nc\r\n")
    assert.same({ long, long }, lines(long .. "\n" .. long))
  end)

  it("as text has a limit of its own, and says whether there was more", function()
    local capture = printed("a\195\164" .. "b\255").output_capture
    assert.same({ "a\195\164b" .. FFFD, false }, { capture:text() })
    assert.same({ "a\195\164b" .. FFFD, false }, { capture:text(4) })
    assert.same({ "a\195\164b", true }, { capture:text(3) })
    assert.same({ "a\195\164", true }, { capture:text(2) })
    assert.same({ "", true }, { capture:text(0) })
  end)

  it("takes memory for what is asked for, not for what is stored", function()
    local given = assert(sandbox.run({ "/usr/bin/head", "-c", "33554432", "/dev/zero" },
      { policy = policy, cwd = "/", output_limit = 10, timeout = 60 }))
    local capture = given.output_capture
    assert.equal(33554432, capture.byte_count)
    local function growth(fn)
      collectgarbage()
      collectgarbage()
      collectgarbage "stop"
      local before = collectgarbage "count"
      fn()
      local after = collectgarbage "count"
      collectgarbage "restart"
      return (after - before) * 1024
    end
    assert.is_true(growth(function() capture:read(33000000, 1000) end) < 100000)
    assert.is_true(growth(function() capture:sample() end) < 100000)
    assert.is_true(growth(function() capture:text(1000) end) < 100000)
    assert.is_true(growth(function() capture:lines() end) < 100000)
    if support.lua_name ~= "luajit" and support.lua_name ~= "5.1" then
      assert.is_true(growth(function() capture:read(0, 8388608) end) < 2.1 * 8388608)
    end
  end)

  it("works while the command goes on, of what there is by then", function()
    local root = support.tempdir()
    local run = assert(sandbox.start(
      { "/bin/sh", "-c", [[printf 'one\ntwo\303'; until [ -e go ]; do sleep 0.02; done; printf '\244\nthree\n']] },
      { policy = policy, cwd = root, merge_output = true, timeout = 30, on_capture_created = function(created)
        rawset(_G, "spec_capture", created.output_capture)
      end }))
    local capture = rawget(_G, "spec_capture")
    rawset(_G, "spec_capture", nil)
    assert.is_true(support.eventually(function() return #run:output() == 8 end))
    assert.equal("running", capture.status)
    assert.is_false(capture.complete)
    assert.is_false(capture.truncated)
    assert.equal(8, capture.byte_count)
    assert.equal("two\195", run:output(4))
    assert.equal("one\ntwo", (capture:text())) -- the half character may yet become whole
    assert.same({ "on", "\195", 5 }, { capture:sample { head_bytes = 2, tail_bytes = 1 } })
    assert.equal("one", capture:lines()())
    assert.is_nil(run:error_output())
    support.write(root .. "/go")
    local result = assert(run:wait(30))
    assert.equal("one\ntwo\195\164\nthree\n", result.output)
    assert.equal(result.output, run:output())
    assert.equal(result.output, (capture:text()))
    assert.equal("complete", capture.status)
  end)

  it("works after the run and its handle are gone", function()
    local capture = printed("kept").output_capture
    collectgarbage()
    collectgarbage()
    assert.equal("kept", capture:read())
  end)
end)

describe("chunks of output", function()
  it("come in order, each byte once, for both streams", function()
    local seen = { stdout = {}, stderr = {} }
    local result = inside.sh(policy, "i=1; while [ $i -le 300 ]; do echo o$i; echo e$i >&2; i=$((i+1)); done",
      { merge_output = false, on_output = function(stream, bytes) table.insert(seen[stream], bytes) end })
    assert.equal(result.output, table.concat(seen.stdout))
    assert.equal(result.error_output, table.concat(seen.stderr))
    assert.matches("\no300\n$", result.output)
  end)

  it("end at the limit of the capture", function()
    local seen = {}
    local result = printed(("x"):rep(5000), { capture_byte_limit = 100, on_output = function(_, bytes)
      seen[#seen + 1] = bytes
    end })
    assert.equal(("x"):rep(100), table.concat(seen))
    assert.same(limited(100, 5000), facts(result.output_capture))
  end)
end)

describe("decoding", function()
  it("gives one replacement character for each maximal ill-formed part", function()
    -- The first four are the Unicode standard's tables 3-8 to 3-11 (chapter 3.9, D93b).
    for _, case in ipairs {
      { "C0 AF E0 80 BF F0 81 82 41", FFFD:rep(8) .. "A" },
      { "ED A0 80 ED BF BF ED AF 41", FFFD:rep(8) .. "A" },
      { "F4 91 92 93 FF 41 80 BF 42", FFFD:rep(5) .. "A" .. FFFD:rep(2) .. "B" },
      { "E1 80 E2 F0 91 92 F1 BF 41", FFFD:rep(4) .. "A" },
      { "", "" },
      { "00", "\0" },
      { "80", FFFD },
      { "C2", FFFD },
      { "C2 80", hex "C2 80" },
      { "C1 BF", FFFD:rep(2) },
      { "DF BF", hex "DF BF" },
      { "E0 A0", FFFD },
      { "E0 9F BF", FFFD:rep(3) },
      { "E0 A0 80", hex "E0 A0 80" },
      { "ED 9F BF", hex "ED 9F BF" },
      { "EF BF BD", FFFD },
      { "EF BF BF", hex "EF BF BF" },
      { "F0 8F BF BF", FFFD:rep(4) },
      { "F0 90 80 80", hex "F0 90 80 80" },
      { "F0 90 80", FFFD },
      { "F4 8F BF BF", hex "F4 8F BF BF" },
      { "F4 90 80 80", FFFD:rep(4) },
      { "F5 80 80 80", FFFD:rep(4) },
      { "F8 88 80 80 80", FFFD:rep(5) },
      { "FE FF", FFFD:rep(2) },
      { "E2 82 E2 82 AC", FFFD .. hex "E2 82 AC" },
      { "F0 9F 98 F0 9F 98 80", FFFD .. hex "F0 9F 98 80" },
    } do
      assert.equal(case[2], sandbox.decode(hex(case[1])), case[1])
    end
    assert.has_error(function() sandbox.decode() end)
  end)

  it("agrees with another decoder on bytes of every kind", function()
    local directory = support.tempdir()
    local interesting = hex "41 7F 80 8F 90 9F A0 BF C0 C1 C2 DF E0 E1 EC ED EE EF F0 F1 F3 F4 F5 FF"
    local bytes = {}
    for i = 1, 20000 do
      local at = math.random(#interesting)
      bytes[i] = interesting:sub(at, at)
    end
    local text = table.concat(bytes)
    support.write(directory .. "/in", text)
    support.must(support.python .. " -c " .. quote(("data = open('%s/in', 'rb').read(); open('%s/out', 'wb').write("
      .. "data.decode('utf-8', 'replace').encode('utf-8'))"):format(directory, directory)))
    assert.is_true(support.read(directory .. "/out") == sandbox.decode(text))
    assert.is_true(support.read(directory .. "/out") == printed(text).output)
  end)
end)
