--- What the benchmarks share: `local bench = require "spec.bench.bench"`.
--
--   local base = bench.spawn(100, { "bwrap", ... })         -- bare, by posix_spawn
--   local run = bench.measure(100, function() ... end)
--   bench.print("run of /bin/true", run, "bare bwrap", base, 1.25)   -- print_rate, print_value
--   bench.finish()
--
-- Only ratios of one run on one machine say something; absolute times are printed beside them.
local system = require "system"

local bench = {}

local build = os.getenv "SPEC_BUILD" or "build/5.4"

--- The path of a program of spec/bench, or of spec/hosts.
function bench.program(name)
  return build .. "/spec/" .. name
end

function bench.quote(word)
  return "'" .. word:gsub("'", "'\\''") .. "'"
end

local directories = {}

--- A new directory outside of /tmp and home, removed by `finish`.
function bench.tempdir()
  local pipe = assert(io.popen "mktemp -d /var/tmp/benchXXXXXX")
  local path = pipe:read "*l"
  pipe:close()
  directories[#directories + 1] = path
  return path
end

--- Writes a file and returns its path.
function bench.write(path, content)
  local file = assert(io.open(path, "wb"))
  assert(file:write(content))
  assert(file:close())
  return path
end

--- Sorted times as a result: median and the tenth and ninetieth percentile, in seconds.
function bench.summary(times)
  assert(#times > 0, "nothing was measured")
  table.sort(times)
  local function at(fraction)
    return times[math.max(1, math.ceil(#times * fraction))]
  end
  return { median = at(0.5), p10 = at(0.1), p90 = at(0.9), count = #times, times = times }
end

--- One result of several, of all their times.
function bench.pool(results)
  local times = {}
  for _, result in ipairs(results) do
    for _, time in ipairs(result.times) do
      times[#times + 1] = time
    end
  end
  return bench.summary(times)
end

--- Times `count` calls of fn, after a tenth as many that are not counted.
function bench.measure(count, fn)
  for _ = 1, math.max(1, math.floor(count / 10)) do
    fn()
  end
  local times = {}
  for i = 1, count do
    local begin = system.monotime()
    fn()
    times[i] = system.monotime() - begin
  end
  return bench.summary(times)
end

--- Several things in turns, so that what else the machine does meets all alike: named functions to
-- named results.
function bench.interleave(count, fns)
  local names, times = {}, {}
  for name, fn in pairs(fns) do
    names[#names + 1] = name
    times[name] = {}
    fn()
  end
  table.sort(names)
  for i = 1, count do
    for _, name in ipairs(names) do
      local begin = system.monotime()
      fns[name]()
      times[name][i] = system.monotime() - begin
    end
  end
  local results = {}
  for _, name in ipairs(names) do
    results[name] = bench.summary(times[name])
  end
  return results
end

--- Calls each of a list of functions `count` times, in turns that begin with another one each, and
-- returns for each a result of the times that the calls return.
function bench.rotate(count, fns)
  local times = {}
  for number = 1, #fns do times[number] = {} end
  for turn = 1, count do
    for i = 0, #fns - 1 do
      local number = (turn + i) % #fns + 1
      times[number][turn] = fns[number]()
    end
  end
  local results = {}
  for number = 1, #fns do results[number] = bench.summary(times[number]) end
  return (table.unpack or unpack)(results) -- luacheck: compat
end

--- The seconds that fn takes.
function bench.time(fn)
  local begin = system.monotime()
  fn()
  return system.monotime() - begin
end

local function lines(command)
  local pipe = assert(io.popen(command))
  local times = {}
  for line in pipe:lines() do
    times[#times + 1] = assert(tonumber(line), line)
  end
  pipe:close()
  return times
end

--- Times `count` starts of a command by posix_spawn and wait, from a small program.
function bench.spawn(count, argv)
  local words = { bench.quote(bench.program "bench/spawn"), tostring(count) }
  for _, word in ipairs(argv) do
    words[#words + 1] = bench.quote(word)
  end
  local times = lines(table.concat(words, " "))
  assert(#times == count, "the command failed: " .. table.concat(argv, " "))
  return bench.summary(times)
end

--- The time from the first of `count` starts of a command by posix_spawn, all at once, to the end
-- of the last: from a small program as well.
function bench.spawn_at_once(count, argv)
  local words = { bench.quote(bench.program "bench/spawn"), "-a", tostring(count) }
  for _, word in ipairs(argv) do
    words[#words + 1] = bench.quote(word)
  end
  return assert(lines(table.concat(words, " "))[1], "the command failed: " .. table.concat(argv, " "))
end

--- Times measured by a script in a host with `mib` MiB resident: the script prints one time a line.
function bench.hosted(mib, script, ...)
  local words = { bench.quote(bench.program "hosts/interpreter"), "-m", tostring(mib), bench.quote(script) }
  for _, word in ipairs { ... } do
    words[#words + 1] = bench.quote(tostring(word))
  end
  return bench.summary(lines(table.concat(words, " ")))
end

local function milliseconds(seconds)
  return string.format("%.3f ms", seconds * 1000)
end

local exceeded = 0

-- What is printed about a limit; one that is not kept is remembered for `finish`.
local function verdict(kept, limit)
  exceeded = exceeded + (kept and 0 or 1)
  return (kept and "  within " or "  NOT within ") .. limit
end

--- Prints one row: `result` against `base`, and where `limit` is given whether the ratio keeps to it.
function bench.print(name, result, base_name, base, limit)
  if not base then
    print(string.format("%-44s %12s   (p10 %s, p90 %s, n %d)", name, milliseconds(result.median),
      milliseconds(result.p10), milliseconds(result.p90), result.count))
    return
  end
  local ratio = result.median / base.median
  print(string.format("%-44s %12s   %6.2f x %s (%s)%s", name, milliseconds(result.median), ratio,
    base_name, milliseconds(base.median), limit and verdict(ratio <= limit, ("%.2f"):format(limit)) or ""))
end

--- The same for times in which `bytes` were moved, as rates: `least` is what the ratio has to reach.
function bench.print_rate(name, bytes, result, base_name, base, least)
  local function rate(of)
    return ("%.0f MiB/s"):format(bytes / of.median / 2 ^ 20)
  end
  local ratio = base.median / result.median
  print(string.format("%-44s %12s   %6.2f x %s (%s)%s", name, rate(result), ratio, base_name, rate(base),
    least and verdict(ratio >= least, ("at least %.2f"):format(least)) or ""))
end

--- One number that has a limit of its own.
function bench.print_value(name, value, unit, limit)
  print(string.format("%-44s %9.3f %-4s%s", name, value, unit,
    limit and verdict(value <= limit, ("%g %s"):format(limit, unit)) or ""))
end

--- Ends the benchmark: status 1 where a limit was exceeded.
function bench.finish()
  for _, path in ipairs(directories) do
    os.execute("rm -rf -- " .. bench.quote(path))
  end
  if exceeded > 0 then
    print(exceeded .. " not within the limit")
    os.exit(1)
  end
end

return bench
