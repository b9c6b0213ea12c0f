-- What a launch costs: against bubblewrap alone with the same mounts and namespaces, against
-- posix_spawn, and from a host with 4 GiB resident.
local bench = require "spec.bench.bench"
local sandbox = require "execsandbox"

local COUNT, TURNS = 240, 24

local root = bench.tempdir()
assert(os.execute("cd " .. bench.quote(root) .. " && git init -q . && mkdir .agents .codex"))
local policy = assert(sandbox.workspace_write { workspace_roots = { root } })
local options = { policy = policy, cwd = root }

local function launch()
  assert(sandbox.run({ "/bin/true" }, options))
end

-- The same mounts as bubblewrap's own words, on a command line: nothing of ours takes part.
local plan = assert(sandbox.plan({ "/bin/true" },
  { policy = policy, cwd = root, backend_options = { mounts = "bwrap" } }))
local bare = { plan.program }
for _, word in ipairs(plan.arguments) do
  bare[#bare + 1] = word
end
bare[#bare + 1] = "/bin/true"

print("launch of /bin/true under workspace_write, medians of " .. COUNT)
-- In short turns, so that what else the machine does meets all alike.
local ours, theirs, spawned = {}, {}, {}
for turn = 1, TURNS do
  theirs[turn] = bench.spawn(COUNT / TURNS, bare)
  ours[turn] = bench.measure(COUNT / TURNS, launch)
  spawned[turn] = bench.spawn(COUNT / TURNS, { "/bin/true" })
end
ours, theirs, spawned = bench.pool(ours), bench.pool(theirs), bench.pool(spawned)
bench.print("run", ours, "bare bwrap", theirs, 1.25)
bench.print("run", ours, "posix_spawn", spawned)

local script = bench.write(root .. "/host.lua", ([[
  local sandbox, system = require "execsandbox", require "system"
  local options = { policy = assert(sandbox.workspace_write { workspace_roots = { %q } }), cwd = %q }
  for i = -5, 25 do
    local begin = system.monotime()
    assert(sandbox.run({ "/bin/true" }, options))
    if i > 0 then print(system.monotime() - begin) end
  end
]]):format(root, root))
local small, large = {}, {}
for turn = 1, 5 do
  small[turn] = bench.hosted(16, script)
  large[turn] = bench.hosted(4096, script)
end
bench.print("run from a host of 4 GiB", bench.pool(large), "one of 16 MiB", bench.pool(small), 1.1)

-- A waiting host sleeps in the kernel.
local run = assert(sandbox.start({ "/bin/sleep", "2" }, options))
local before = os.clock()
run:wait()
print(("%-44s %9.3f ms of CPU in 2 s"):format("waiting", (os.clock() - before) * 1000))
bench.finish()
