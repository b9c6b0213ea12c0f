-- 200 runs at once from one thread, against as many of bubblewrap alone with the same mounts and
-- namespaces, all started by one small program.
local bench = require "spec.bench.bench"
local sandbox = require "execsandbox"

local RUNS, TURNS = 200, 9

local root = bench.tempdir()
local status = os.execute("cd " .. bench.quote(root) .. " && git init -q . && mkdir .agents .codex")
assert(status == true or status == 0)
local policy = assert(sandbox.workspace_write { workspace_roots = { root } })
local options = { policy = policy, cwd = root }

local plan = assert(sandbox.plan({ "/bin/true" },
  { policy = policy, cwd = root, backend_options = { mounts = "bwrap" } }))
local bare = { plan.program }
for _, word in ipairs(plan.arguments) do
  bare[#bare + 1] = word
end
bare[#bare + 1] = "/bin/true"

local function start_all()
  local runs = {}
  for i = 1, RUNS do
    runs[i] = assert(sandbox.start({ "/bin/true" }, options))
  end
  return runs
end

local function check(result)
  assert(result.status == "exited" and result.exit_code == 0)
end

local function wait_for_each()
  for _, run in ipairs(start_all()) do
    check(run:wait())
  end
end

local function wait_for_any()
  local runs = start_all()
  while #runs > 0 do
    local over = sandbox.wait_any(runs)
    for i, run in ipairs(runs) do
      if run == over then
        table.remove(runs, i)
        break
      end
    end
    check(over:result())
  end
end

print(("%d runs of /bin/true at once, medians of %d"):format(RUNS, TURNS))
local each, any, theirs = bench.rotate(TURNS, {
  function() return bench.time(wait_for_each) end,
  function() return bench.time(wait_for_any) end,
  function() return bench.spawn_at_once(RUNS, bare) end,
})
bench.print("200 runs, then wait for each", each, "bare bwrap", theirs, 1.1)
bench.print("200 runs, then wait_any", any, "bare bwrap", theirs, 1.1)
bench.finish()
