-- Plans, capabilities, and runs that nothing contains.
local sandbox = require "execsandbox"
local inside = require "spec.support.inside"
local support = require "spec.support"

local quote = support.quote

local this = (support.read "/proc/self/stat"):match "^%d+"
local marks = 0

local function new_mark()
  marks = marks + 1
  return ("3%s%03d"):format(this, marks)
end

-- The mount of a plan at `path`, and its place in the order.
local function mount_at(plan, path)
  local found, place
  for i, mount in ipairs(plan.mounts) do
    if mount.path == path then found, place = mount, i end
  end
  return found, place
end

describe("a plan", function()
  local root, policy, options

  before_each(function()
    root = support.tempdir()
    support.write(root .. "/secret", "x")
    support.mkdir(root .. "/.agents")
    policy = assert(sandbox.workspace_write { workspace_roots = { root },
      extra_rules = { { path = root .. "/secret", access = "deny" }, { path = root .. "/missing/read", access = "read" },
        { path = "/nonexistent/read", access = "read" } } })
    options = { policy = policy, cwd = root, clear_env = true, env = { ONE = "a=b", TWO = "" }, stdin = "text" }
  end)

  it("has the launcher, its arguments, the environment, the directory and the mounts in order", function()
    local plan = assert(sandbox.plan({ "/bin/echo", "word" }, options))
    assert.equal("bwrap", plan.backend)
    assert.matches("^/.*bwrap$", plan.program)
    assert.is_true(#plan.arguments > 10)
    for _, word in ipairs(plan.arguments) do assert.is_string(word) end
    assert.same({ ONE = "a=b", TWO = "" }, plan.environment)
    assert.equal(root, plan.working_directory)
    local base = assert(mount_at(plan, "/"))
    assert.equal("bind-read", base.kind)
    assert.equal("/", base.source)
    local write, first = mount_at(plan, root)
    assert.equal("bind-write", write.kind)
    local mask, second = mount_at(plan, root .. "/secret")
    assert.equal("mask-file", mask.kind)
    local protected, third = mount_at(plan, root .. "/.agents")
    assert.equal("bind-read", protected.kind)
    assert.is_nil(protected.placeholder)
    assert.is_true(first < second and first < third)
    assert.is_true(mount_at(plan, root .. "/.git").placeholder)
  end)

  it("names the placeholders that are to be removed afterwards", function()
    local paths = {}
    for i, path in ipairs(assert(sandbox.plan({ "/bin/true" }, options)).cleanup_paths) do paths[i] = path end
    table.sort(paths)
    local expected = { root .. "/.codex", root .. "/.git" }
    for _, path in ipairs(paths) do
      assert.equal(root, path:sub(1, #root))
    end
    for _, path in ipairs(expected) do
      local found = false
      for _, item in ipairs(paths) do found = found or item == path end
      assert.is_true(found, path)
    end
  end)

  it("notes what of the policy has nothing to apply to", function()
    local plan = assert(sandbox.plan({ "/bin/true" }, options))
    local found = false
    for _, note in ipairs(plan.notes) do
      assert.is_string(note.path)
      assert.is_string(note.text)
      found = found or note.path == "/nonexistent/read"
    end
    assert.is_true(found)
  end)

  it("reads well", function()
    local text = tostring(assert(sandbox.plan({ "/bin/echo", "word" }, options)))
    for _, part in ipairs { "/bin/echo word", "bwrap", "working directory: " .. root, "mask-file", root .. "/secret",
      root .. "/.git", "placeholder", "/nonexistent/read" } do
      assert.matches(part, text, 1, true)
    end
    -- What is private stays so.
    assert.not_matches("a=b", text, 1, true)
  end)

  it("creates nothing, starts nothing and changes nothing", function()
    local fds = support.fds()
    local before = support.must("find", root, "-printf", "%p %m %T@ %C@\n")
    local called = 0
    options.on_capture_created = function() called = called + 1 end
    options.on_finished = options.on_capture_created
    options.capture_directory = root
    assert(sandbox.plan({ "/bin/touch", root .. "/ran" }, options))
    collectgarbage()
    collectgarbage()
    assert.equal(before, support.must("find", root, "-printf", "%p %m %T@ %C@\n"))
    assert.same({}, support.descendants())
    assert.equal(fds, support.fds())
    assert.equal(0, called)
  end)

  it("is an error where the run would be", function()
    local function problem(more)
      local given = {}
      for name, value in pairs(options) do given[name] = value end
      for name, value in pairs(more) do given[name] = value end
      local plan, err = sandbox.plan({ "/bin/true" }, given)
      assert.is_nil(plan)
      local result, run_err = sandbox.run({ "/bin/true" }, given)
      assert.is_nil(result)
      assert.same({ run_err.kind, run_err.stage, run_err.errno, run_err.message }, { err.kind, err.stage, err.errno, err.message })
      return err
    end
    assert.equal("cwd", problem { cwd = root .. "/missing" }.stage)
    assert.equal("cwd", problem { cwd = root .. "/secret" }.stage)
    assert.equal("cwd", problem { cwd = "relative" }.stage)
    assert.equal("unavailable", problem { backend = "appcontainer" }.kind)
    support.symlink("/etc", root .. "/.codex")
    local err = problem {}
    assert.equal("policy", err.kind)
    assert.matches(root .. "/.codex", err.message, 1, true)
  end)

  it("of a direct run has no launcher and no mounts", function()
    local plan = assert(sandbox.plan({ "/bin/true" }, { policy = assert(sandbox.unrestricted {}), cwd = root }))
    assert.equal("direct", plan.backend)
    assert.is_nil(plan.program)
    assert.same({}, plan.mounts)
    assert.same({}, plan.arguments)
    assert.same({}, plan.cleanup_paths)
    assert.equal(root, plan.working_directory)
    assert.matches("/bin/true", tostring(plan), 1, true)
  end)
end)

describe("who mounts", function()
  it("is in the plan, and can be chosen", function()
    for _, who in ipairs { "inner", "bwrap" } do
      local plan = assert(sandbox.plan({ "/bin/true" },
        { policy = inside.policy(), cwd = "/", backend_options = { mounts = who } }))
      assert.equal(who, plan.mounted_by)
    end
  end)
end)

describe("a policy with too many mounts for bubblewrap", function()
  local mounts = { mounts = "bwrap" }

  it("is unavailable, with the count and what to merge", function()
    local root = support.tempdir()
    support.mkdir(root .. "/many")
    support.must("cd " .. quote(root .. "/many") .. " && touch $(seq 1 4000)")
    local rules = { { special = "root", access = "read" }, { path = root, access = "write" } }
    for i = 1, 4000 do rules[i + 2] = { path = root .. "/many/" .. i, access = "deny" } end
    local policy = assert(sandbox.policy { rules = rules })
    for _, name in ipairs { "run", "plan", "start" } do
      local result, err = sandbox[name]({ "/bin/true" }, { policy = policy, cwd = "/", backend_options = mounts })
      assert.is_nil(result)
      assert.equal("unavailable", err.kind)
      assert.is_string(err.capability)
      assert.is_string(err.remedy)
      local count = tonumber(err.message:match "(%d+) mounts")
      assert.is_true(count >= 4000 and count < 4100, err.message)
      assert.matches(root .. "/many", err.message, 1, true)
      assert.matches("4000", err.message, 1, true)
    end
    assert.same({ "many" }, support.list(root))
  end)

  it("by what a glob matches is unavailable as well", function()
    local root = support.tempdir()
    support.must("cd " .. quote(root) .. " && touch $(seq -f %g.key 1 4000)")
    local policy = assert(sandbox.policy { rules = { { special = "root", access = "read" }, { glob = "*.key", access = "deny" } },
      workspace_roots = { root } })
    local result, err = sandbox.run({ "/bin/true" }, { policy = policy, cwd = root, backend_options = mounts })
    assert.is_nil(result)
    assert.equal("unavailable", err.kind)
    assert.matches("%d+ mounts", err.message)
  end)

  it("is enforced where the inner stage mounts: ten thousand matches of a glob", function()
    local root = support.tempdir()
    support.must("cd " .. quote(root) .. " && seq -f %g.key 1 10000 | xargs touch && echo open > readme")
    local policy = assert(sandbox.policy { rules = { { special = "root", access = "read" }, { glob = "*.key", access = "deny" } },
      workspace_roots = { root } })
    local given = { cwd = root, backend_options = { mounts = "inner" } }
    assert.equal("open", inside.output(policy, "cat readme", given))
    assert.equal("0", inside.output(policy, "find . -name '*.key' -readable | wc -l", given))
    assert.is_false(inside.succeeds(policy, "cat 10000.key", given))
  end)

  it("works close to the limit", function()
    local root = support.tempdir()
    support.must("cd " .. quote(root) .. " && mkdir $(seq 1 1200) && touch 1200/file")
    local rules = { { special = "root", access = "read" } }
    for i = 1, 1200 do rules[i + 1] = { path = root .. "/" .. i, access = "deny" } end
    local policy = assert(sandbox.policy { rules = rules })
    local given = { cwd = root, backend_options = mounts }
    assert.is_false(inside.succeeds(policy, "cat 1200/file", given))
    assert.equal("1200", inside.output(policy, "ls | wc -l", given))
  end)
end)

describe("capabilities", function()
  local names = { "available", "filesystem_read_write_deny", "filesystem_read_only_host", "explicit_filesystem_scopes",
    "filesystem_deny_globs", "nested_overrides", "path_remapping", "protected_metadata", "process_namespaces",
    "network_enabled", "network_isolated", "network_proxy_only", "network_filtering", "seccomp", "resource_limits",
    "existence_hidden" }

  local function check(found)
    for _, name in ipairs(names) do
      assert.is_boolean(found[name], name)
      if found[name] then
        assert.is_nil(found.reasons[name], name)
      else
        assert.is_string(found.reasons[name], name)
        assert.is_true(#found.reasons[name] > 0, name)
      end
    end
  end

  it("are booleans, each false one with a reason", function()
    local found = sandbox.capabilities()
    check(found)
    assert.equal("linux", found.platform)
    assert.equal("bwrap", found.backend)
    assert.is_true(found.available)
    assert.same(found, sandbox.capabilities "auto")
    assert.same(found, sandbox.capabilities "bwrap")
  end)

  it("are the caller's own table", function()
    sandbox.capabilities().available = "changed"
    sandbox.capabilities().reasons.available = "changed"
    check(sandbox.capabilities())
  end)

  it("of a backend that is not here are all false", function()
    for _, backend in ipairs { "appcontainer", "seatbelt", "nonsense" } do
      local found = sandbox.capabilities(backend)
      check(found)
      assert.equal(backend, found.backend)
      assert.is_false(found.available)
    end
  end)

  it("are answered one by one, with the reason", function()
    local found = sandbox.capabilities()
    for _, name in ipairs(names) do
      local answer, reason = sandbox.supported(name)
      assert.equal(found[name], answer)
      assert.equal(found.reasons[name], reason)
    end
    assert.is_false((sandbox.supported("available", "nonsense")))
    assert.error_matches(function() sandbox.supported "flying" end, "flying")
    assert.has_error(function() sandbox.supported() end)
    assert.has_error(function() sandbox.capabilities(1) end)
  end)

  it("are what the doctor reports, for people and programs", function()
    local report = sandbox.doctor()
    check(report)
    local text = tostring(report)
    for _, name in ipairs(names) do assert.matches(name, text, 1, true) end
    for _, reason in pairs(report.reasons) do assert.matches(reason, text, 1, true) end
    assert.matches("execsandbox%-helper", text)
  end)

  it("leave nothing behind", function()
    local fds = support.fds()
    local output = support.must(quote(support.lua) .. " -e " .. quote [[
      local sandbox = require "execsandbox"
      sandbox.capabilities()
      io.write(tostring(sandbox.supported "available"))]])
    assert.equal("true", output)
    assert.same({}, support.descendants())
    assert.equal(fds, support.fds())
  end)
end)

for _, preset in ipairs { "unrestricted", "external" } do
  describe("a direct run (" .. preset .. ")", function()
    local policy

    setup(function() policy = assert(sandbox[preset] {}) end)

    it("has status, signal and both streams like any other", function()
      local result = inside.sh(policy, "cat; echo error >&2; exit 3", { merge_output = false, stdin = "input", cwd = "/" })
      assert.equal("direct", result.backend)
      assert.equal("exited", result.status)
      assert.equal(3, result.exit_code)
      assert.equal("input", result.output)
      assert.equal("error\n", result.error_output)
      assert.equal("complete", result.output_capture.status)
      result = inside.sh(policy, "kill -USR2 $$")
      assert.equal(12, result.signal)
      assert.is_nil(result.exit_code)
    end)

    it("can do what its host can", function()
      local root = support.tempdir()
      assert.is_true(inside.succeeds(policy, "echo x > file && mkdir .git && kill -0 " .. this, { cwd = root }))
      assert.same({ ".git", "file" }, support.list(root))
      assert.equal(support.must("readlink", "/proc/self/ns/pid"), inside.output(policy, "readlink /proc/self/ns/pid"))
      assert.equal(support.must("grep", "-E", "^(NoNewPrivs|Seccomp|CapEff)", "/proc/self/status"),
        inside.output(policy, "grep -E '^(NoNewPrivs|Seccomp|CapEff)' /proc/self/status"))
    end)

    it("has limits, and no descriptor but its own", function()
      local limited = assert(sandbox[preset] { limits = { open_files = 19 } })
      assert.equal("19 0", inside.output(limited, "echo $(ulimit -n) $(ulimit -c)"))
      local file = assert(io.open "/etc/passwd")
      assert.matches("^0\n1\n2\n3$", inside.output(policy, "ls /proc/self/fd"))
      file:close()
    end)

    it("takes everything with it: daemons, other sessions, stopped ones, ones that ignore TERM", function()
      local mark = new_mark()
      local result = inside.sh(policy, ([[
        (setsid sh -c 'trap "" TERM HUP; sleep %s' >/dev/null 2>&1 </dev/null &)
        (sh -c 'kill -STOP $$; sleep %s' >/dev/null 2>&1 &)
        sh -c '(sleep %s >/dev/null 2>&1 &) &'
        until [ $(grep -lz -e '^%s$' /proc/[0-9]*/cmdline 2>/dev/null | wc -l) -ge 2 ]; do sleep 0.02; done
        echo started]]):format(mark, mark, mark, mark))
      assert.equal("started\n", result.output)
      assert.is_true(result.descendants_killed)
      assert.same({}, support.processes(mark))
      assert.same({}, support.descendants())
    end)

    it("ends at its timeout, and when it is cancelled or closed", function()
      local mark = new_mark()
      local result = inside.timed(policy, ("echo before; (setsid sleep %s &); sleep %s"):format(mark, mark), 0.4, "before")
      assert.equal("timeout", result.status)
      assert.equal("before\n", result.output)
      assert.same({}, support.processes(mark))
      result = inside.timed(policy, "trap 'echo term; exit' TERM; echo ready; while :; do sleep 0.02; done", 0.4, "ready",
        { kill_grace = 30 })
      assert.equal("timeout", result.status)
      assert.matches("^ready\n.*term\n$", result.output)
      for _, name in ipairs { "cancel", "close" } do
        local run = assert(sandbox.start({ "/bin/sh", "-c", ("echo before; (setsid sleep %s &); sleep %s"):format(mark, mark) },
          { policy = policy, cwd = "/" }))
        assert.is_true(support.eventually(function() return run:output() == "before\n" end))
        run[name](run)
        assert.equal(name == "cancel" and "cancelled" or "interrupted", assert(run:wait(20)).status)
        assert.same({}, support.processes(mark))
      end
    end)

    it("can leave what outlives the command", function()
      local root, mark = support.tempdir(), new_mark()
      local result = inside.sh(policy, ("(setsid sleep %s >/dev/null 2>&1 </dev/null &); echo done"):format(mark),
        { descendants = "leave", cwd = root })
      assert.equal("done\n", result.output)
      assert.is_false(result.descendants_killed)
      local left = support.eventually(function()
        local found = support.processes(mark)
        return #found == 1 and found
      end)
      assert.is_truthy(left)
      support.must("kill", "-KILL", tostring(left[1]))
      assert.is_true(support.eventually(function() return #support.descendants() == 0 end))
    end)
  end)
end
