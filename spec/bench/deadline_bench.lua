-- How well a deadline is kept: the time that a command has lived beyond its timeout.
local bench = require "spec.bench.bench"
local sandbox = require "execsandbox"

local COUNT, TIMEOUT, LIMIT = 50, 0.2, 20 -- LIMIT in milliseconds

local options = { policy = assert(sandbox.read_only {}), cwd = "/", timeout = TIMEOUT }

local beyond, heard = {}, {}
for i = 1, COUNT do
  local result
  local took = bench.time(function() result = assert(sandbox.run({ "sleep", "60" }, options)) end)
  assert(result.status == "timeout")
  beyond[i] = result.real_seconds - TIMEOUT
  heard[i] = took - TIMEOUT
end
beyond, heard = bench.summary(beyond), bench.summary(heard)
print(("sleep 60 with a timeout of %g s, medians of %d"):format(TIMEOUT, COUNT))
bench.print_value("end of the command beyond its timeout", beyond.median * 1000, "ms", LIMIT)
bench.print_value("  the ninetieth percentile", beyond.p90 * 1000, "ms")
-- With what it takes to start, to clean up, and to tell the host.
bench.print_value("return of run() beyond the timeout", heard.median * 1000, "ms", LIMIT)
bench.finish()
