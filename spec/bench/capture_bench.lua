-- What capturing costs: bytes per second against `cat > file` of the same bytes, and the memory that
-- host and helper take while far more is written than is kept.
local bench = require "spec.bench.bench"
local resident = require "spec.support.resident"
local sandbox = require "execsandbox"

local MIB = 2 ^ 20
local BYTES, TURNS = 512 * MIB, 15
local FLOOD, LIMIT = 10240 * MIB, 64 * MIB

local directory = bench.tempdir()
local policy = assert(sandbox.read_only {})

local function produce(bytes)
  return { "head", "-c", ("%.0f"):format(bytes), "/dev/zero" }
end

-- ---- bytes per second -------------------------------------------------------

local free = io.popen("df -Pk " .. bench.quote(directory)):read "*a":match "\n%S+%s+%d+%s+%d+%s+(%d+)"
assert(tonumber(free) * 1024 > 4 * BYTES, "no room for the files of this benchmark")

-- Each begins with nothing to write back, so that nobody waits for what another has left.
local function cleanly(fn)
  return function()
    local seconds = bench.time(fn)
    os.execute(("rm -f %s/* && sync -f %s"):format(directory, directory))
    return seconds
  end
end

local function shell(command)
  return cleanly(function()
    local status = os.execute(command)
    assert(status == true or status == 0, command)
  end)
end

local function capture()
  local result = assert(sandbox.run(produce(BYTES), {
    policy = policy, cwd = "/", merge_output = true, capture_directory = directory, capture_byte_limit = 2 * BYTES,
  }))
  assert(result.output_capture.byte_count == BYTES)
end

local producer = table.concat(produce(BYTES), " ")
print(("%d MiB from head(1), medians of %d"):format(BYTES / MIB, TURNS))
local ours, cat, head = bench.rotate(TURNS, {
  cleanly(capture),
  shell(("%s | cat >%s/cat"):format(producer, directory)),
  shell(("%s >%s/head"):format(producer, directory)),
})
bench.print_rate("captured", BYTES, ours, "cat > file", cat, 0.9)
bench.print_rate("captured", BYTES, ours, "head > file", head)

-- ---- memory -----------------------------------------------------------------

local host = resident.self()
local before = resident.bytes(host, "VmRSS")
local run = assert(sandbox.start(produce(FLOOD), {
  policy = policy, cwd = "/", merge_output = true, capture_byte_limit = LIMIT, output_limit = 0,
}))
local helper = assert(resident.children(host)[1], "the helper was not found")
local most = resident.watch({ host, helper }, function() return run:poll() end, 600)
local written = run:wait().output_capture
assert(written.observed_byte_count == FLOOD and written.byte_count == LIMIT)
bench.print_value("host and helper while 10 GiB pass, growth", (most[host] - before + most[helper]) / MIB, "MiB", 16)
bench.print_value("  of this the helper, whole", most[helper] / MIB, "MiB")
bench.finish()
