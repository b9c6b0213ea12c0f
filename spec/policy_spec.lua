-- What sandbox.policy accepts, what it says of the rest, and what a Policy can tell of itself.
local sandbox = require "execsandbox"
local support = require "spec.support"

-- The message of what is raised.
local function raised(fn, ...)
  local ok, message = pcall(fn, ...)
  assert.is_false(ok, "nothing was raised")
  return tostring(message)
end

-- The error that comes second, of kind policy and with a whole sentence.
local function refused(spec)
  local policy, err = sandbox.policy(spec)
  assert.is_nil(policy)
  assert.equal("policy", err.kind)
  assert.equal(err.message, tostring(err):sub(1, #err.message))
  assert.truthy(err.message:find "%.$")
  return err.message
end

describe("a policy's fields", function()
  it("may all be left out", function()
    local spec = assert(sandbox.policy {}):spec()
    assert.equal("restricted", spec.filesystem)
    assert.equal("isolated", spec.network)
    assert.same({}, spec.rules)
    assert.same({ ".git", ".agents", ".codex" }, spec.protected_metadata)
    assert.same({ core_bytes = 0 }, spec.limits)
    assert.is_nil(spec.isolate_processes)
    assert.is_nil(spec.unix_sockets)
  end)

  it("are raised by name when unknown, with the likely one", function()
    assert.truthy(raised(sandbox.policy, { rulez = {} })
      :find("bad option 'rulez' to 'policy' (did you mean 'rules'?)", 1, true))
    assert.truthy(raised(sandbox.policy, { netwrok = "enabled" }):find("'network'", 1, true))
    assert.truthy(raised(sandbox.policy, { rules = { { path = "/", acess = "read" } } })
      :find("'rules[1].acess' to 'policy' (did you mean 'access'?)", 1, true))
    assert.truthy(raised(sandbox.policy, { limits = { memory = 1 } }):find("limits.memory", 1, true))
    assert.truthy(raised(sandbox.policy, { network = { mode = "isolated", loopbak = true } })
      :find("did you mean 'loopback'?", 1, true))
    assert.truthy(raised(sandbox.policy, { colour = "red" }):find("no such option", 1, true))
    raised(sandbox.policy, { "restricted" })
    raised(sandbox.policy, { ["rules\0"] = {} })
  end)

  it("are raised with what was expected and what came when the type is wrong", function()
    assert.truthy(raised(sandbox.policy):find("table expected", 1, true))
    assert.truthy(raised(sandbox.policy, { filesystem = 1 })
      :find("bad option 'filesystem' to 'policy' (string expected, got number)", 1, true))
    assert.truthy(raised(sandbox.policy, { rules = { { path = {}, access = "read" } } })
      :find("'rules[1].path' to 'policy' (string expected, got table)", 1, true))
    for _, spec in ipairs {
      { rules = "x" }, { rules = { "x" } }, { rules = { [2] = { path = "/", access = "read" } } },
      { rules = { x = 1 } }, { workspace_roots = "/x" }, { workspace_roots = { 1 } },
      { protected_metadata = { true } }, { network = true }, { network = {} },
      { network = { mode = "isolated", loopback = 1 } }, { private_tmp = "yes" }, { isolate_processes = 1 },
      { unix_sockets = 1 }, { devices = "/dev/dri" }, { limits = 5 }, { limits = { processes = "5" } },
      { glob_scan_max_depth = "1" }, { allow_user_namespaces = 1 }, { rules = { { path = "/" } } },
    } do
      raised(sandbox.policy, spec)
    end
  end)

  it("are policy errors when the value has no meaning", function()
    assert.truthy(refused { filesystem = "foo" }:find("'restricted', 'unrestricted', 'external'", 1, true))
    assert.truthy(refused { workspace_roots = { "/a", "b" } }:find("workspace_roots[2] is 'b'", 1, true))
    assert.truthy(refused { rules = { { glob = "*.key", access = "read" } } }:find("rules[1].glob", 1, true))
    for _, spec in ipairs {
      { network = "foo" }, { network = { mode = "foo" } }, { unix_sockets = "some" }, { unix_sockets = { "x" } },
      { network = { mode = "enabled", loopback = true } }, { network = { mode = "isolated", allow = {} } },
      { protected_metadata = { "a/b" } }, { protected_metadata = { ".." } }, { protected_metadata = { "" } },
      { devices = { "/etc/passwd" } }, { devices = { "/dev/../etc" } }, { devices = { "dri" } },
        { devices = { "/dev" } },
      { rules = { { access = "read" } } }, { rules = { { path = "/", glob = "*", access = "deny" } } },
      { rules = { { path = "/", special = "root", access = "deny" } } }, { rules = { { path = "/", access = "rw" } } },
      { rules = { { special = "moon", access = "read" } } }, { rules = { { path = "", access = "read" } } },
      { rules = { { special = "minimal", access = "write" } } }, { rules = { { special = "minimal",
        access = "deny" } } },
      { rules = { { special = "workspace_roots", subpath = "../x", access = "read" } } },
      { rules = { { special = "workspace_roots", subpath = "/x", access = "read" } } },
      { rules = { { special = "workspace_roots", subpath = "", access = "read" } } },
      { rules = { { special = "home", subpath = "x", access = "read" } } },
      { rules = { { path = "/x", subpath = "x", access = "read" } } },
      { rules = { { glob = "*", source = "/x", access = "deny" } } },
      { rules = { { special = "root", source = "/x", access = "read" } } },
      { rules = { { path = "/x", source = "x", access = "read" } } },
      { rules = { { path = "/x", source = "/y", access = "deny" } } },
      { rules = { { path = "/dev", access = "read" } } }, { rules = { { path = "/proc/", access = "deny" } } },
      { rules = { { path = "//dev/.", access = "read" } } },
      { rules = { { path = "/proc/1/environ", access = "deny" } } }, { rules = { { path = "/proc/self",
        access = "deny" } } },
      { rules = { { path = "/a\0b", access = "read" } } }, { workspace_roots = { "/a\0b" } },
      { rules = { { path = "/" .. ("x"):rep(4096), access = "read" } } },
    } do
      refused(spec)
    end
  end)

  it("may be read from a table whose metamethods raise, or that contains itself", function()
    local hostile = setmetatable({}, {
      __index = function() error "index" end, __pairs = function() error "pairs" end,
      __len = function() error "len" end,
    })
    assert(sandbox.policy(hostile))
    local cyclic = { rules = {} }
    cyclic.rules[1] = cyclic.rules
    raised(sandbox.policy, cyclic)
    cyclic.rules = cyclic
    raised(sandbox.policy, cyclic)
  end)

  it("take whole numbers only, alike on every Lua", function()
    for _, number in ipairs { -1, 0.5, 0 / 0, 1 / 0, -1 / 0, 2 ^ 54 } do
      refused { glob_scan_max_depth = number }
      refused { limits = { memory_bytes = number } }
    end
    refused { limits = { processes = 0 } }
    assert(sandbox.policy { glob_scan_max_depth = 0, limits = { memory_bytes = 2 ^ 53, file_size_bytes = 0 } })
  end)

  it("describe a filtering proxy by hosts and ports", function()
    assert(sandbox.policy { network = { mode = "proxy_only",
      allow = { "*.example.org:443", "registry.example", "127.0.0.1:80", "[::1]:8080", "*", "*:443" }, deny = {} } })
    for _, entry in ipairs { "", "http://x", "x:0", "x:65536", "x:", "a b", "**.x", "*x", "[::1", "..", "*.",
      "x:1:2" } do
      refused { network = { mode = "proxy_only", allow = { entry } } }
      refused { network = { mode = "proxy_only", deny = { entry } } }
    end
  end)

  it("name a malformed glob", function()
    for _, glob in ipairs { "[a", "a\\", "{a", "a}", "[z-a]", "", "!x", "/", "a//b", "./a", "../a", "{a,{b,c}}" } do
      refused { rules = { { glob = glob, access = "deny" } } }
    end
  end)
end)

describe("a Policy", function()
  local full = {
    filesystem = "restricted",
    rules = {
      { path = "/srv", access = "read" }, { path = "rel/x", access = "deny" }, { glob = "*.key", access = "deny" },
      { special = "workspace_roots", subpath = "a/b", access = "write" },
      { path = "/view", source = "/srv/data", access = "read" },
    },
    workspace_roots = { "/srv/a", "/srv/b" }, network = { mode = "proxy_only", allow = { "x:1" } },
    protected_metadata = {}, isolate_processes = true, mount_proc = false, private_tmp = true, private_runtime = true,
    unix_sockets = { "/run/x" }, glob_scan_max_depth = 3, allow_user_namespaces = true, devices = { "/dev/dri" },
    limits = { cpu_seconds = 1, memory_bytes = 2, processes = 3, open_files = 4, file_size_bytes = 5, core_bytes = 6 },
  }

  it("says what it is", function()
    assert.equal("Policy: restricted, network isolated, 0 rules", tostring(sandbox.policy {}))
    assert.equal("Policy: external, network enabled, 1 rule",
      tostring(sandbox.policy { filesystem = "external", network = "enabled", rules = { { special = "root",
        access = "read" } } }))
  end)

  it("hides its metatable and has no fields to set", function()
    local policy = sandbox.policy {}
    assert.equal("execsandbox.Policy", getmetatable(policy))
    assert.is_false(pcall(setmetatable, policy, {}))
    assert.is_false(pcall(function() policy.rules = nil end))
    raised(policy.access, {}, "/")
    raised(policy.access, io.stdout, "/")
    raised(policy.access, policy)
    raised(policy.access, policy, 5)
  end)

  it("gives a spec that makes an equal policy", function()
    for _, spec in ipairs { {}, full, { network = { mode = "isolated", loopback = true } }, { network = "enabled" },
      { unix_sockets = "internal" }, { filesystem = "unrestricted" } } do
      local policy = assert(sandbox.policy(spec))
      assert.is_true(policy == assert(sandbox.policy(policy:spec())))
      assert.is_true(policy == assert(sandbox.policy(sandbox.policy(policy:spec()):spec())))
    end
    assert.same(full.rules, sandbox.policy(full):spec().rules)
    assert.same(full.limits, sandbox.policy(full):spec().limits)
  end)

  it("does not change with the tables it was made of", function()
    local rules = { { path = "/srv", access = "read" } }
    local policy = sandbox.policy { rules = rules }
    rules[1].access = "write"
    policy:spec().rules[1].access = "write"
    assert.equal("read", policy:spec().rules[1].access)
  end)

  it("is equal by meaning: order, repetition and spelling do not count", function()
    local a = sandbox.policy { rules = { { path = "/a", access = "read" }, { path = "/b/", access = "deny" } },
      unix_sockets = "none" }
    local b = sandbox.policy { rules = { { path = "//b", access = "deny" }, { path = "/a/.", access = "read" },
      { path = "/a", access = "read" } } }
    assert.is_true(a == b)
    assert.is_false(a == sandbox.policy { rules = { { path = "/a", access = "read" }, { path = "/b",
      access = "read" } } })
    assert.is_false(a == sandbox.policy {})
    assert.is_false(sandbox.policy {} == sandbox.policy { network = "enabled" })
    assert.is_false(sandbox.policy {} == sandbox.policy { isolate_processes = false })
    assert.is_false(sandbox.policy {} == 5)
  end)

  it("differs in every single field", function()
    local base = sandbox.policy {}
    for name, value in pairs(full) do
      if name ~= "filesystem" then
        assert.is_false(base == assert(sandbox.policy { [name] = value }), name)
      end
    end
  end)

  it("can be extended: lists grow, limits replace by name, the rest replaces", function()
    local policy = sandbox.policy {
      rules = { { path = "/a", access = "read" } }, workspace_roots = { "/w" }, limits = { processes = 5,
        open_files = 9 },
      network = { mode = "isolated", loopback = true },
    }
    local more = assert(policy:extend {
      rules = { { path = "/b", access = "deny" } }, workspace_roots = { "/v" }, limits = { processes = 6 },
      network = "enabled", private_tmp = true, protected_metadata = { ".hg" },
    })
    local spec = more:spec()
    assert.same({ { path = "/a", access = "read" }, { path = "/b", access = "deny" } }, spec.rules)
    assert.same({ "/w", "/v" }, spec.workspace_roots)
    assert.same({ processes = 6, open_files = 9, core_bytes = 0 }, spec.limits)
    assert.equal("enabled", spec.network)
    assert.is_true(spec.private_tmp)
    assert.same({ ".hg" }, spec.protected_metadata)
    assert.equal(1, #policy:spec().rules)
    assert.is_true(policy == policy:extend {})
    local nothing, err = policy:extend { filesystem = "foo" }
    assert.is_nil(nothing)
    assert.equal("policy", err.kind)
    assert.truthy(raised(policy.extend, policy, { rulez = 1 }):find("to 'extend'", 1, true))
  end)

  it("outlives what it was extended from", function()
    local policy = sandbox.policy(full):extend { rules = { { path = "/z", access = "read" } } }
    collectgarbage()
    collectgarbage()
    assert.equal("/z", policy:spec().rules[6].path)
    assert.equal("*.key", policy:spec().rules[3].glob)
  end)

  it("takes cwd and env for its answers, and nothing else", function()
    local policy = sandbox.policy { rules = { { special = "home", access = "read" }, { special = "working_directory",
      access = "read" } } }
    local home, cwd = support.tempdir(), support.tempdir()
    local options = { cwd = cwd, env = { HOME = home } }
    assert.equal("read", (policy:access(home .. "/x", options)))
    assert.equal("read", (policy:access("x", options)))
    assert.equal("deny", (policy:access("/etc", options)))
    assert.truthy(raised(policy.access, policy, "/", { cwdd = "/" }):find("did you mean 'cwd'?", 1, true))
    raised(policy.access, policy, "/", { cwd = 5 })
    raised(policy.access, policy, "/", { env = { HOME = 5 } })
    for _, cwd_of in ipairs { "relative", "", "/a\0b" } do
      local access, err = policy:access("/", { cwd = cwd_of })
      assert.is_nil(access)
      assert.equal("policy", err.kind)
    end
  end)

  it("answers no question about a path that is none", function()
    local policy = sandbox.policy {}
    for _, path in ipairs { "", "/a\0b", "/" .. ("x"):rep(300), ("/x"):rep(3000) } do
      local access, err = policy:access(path)
      assert.is_nil(access)
      assert.equal("policy", err.kind)
    end
  end)

  it("explains with a sentence that names the path and the rule", function()
    local root = support.tempdir()
    local policy = sandbox.policy { rules = { { path = root, access = "write" }, { path = root .. "/a",
      access = "deny" } },
      workspace_roots = { root } }
    assert.equal(root .. "/a/b is denied: rule 2 (" .. root .. "/a) decides.", policy:explain(root .. "/a/b"))
    assert.equal(root .. "/b can be read and written: rule 1 (" .. root .. ") decides.", policy:explain(root .. "/b"))
    assert.truthy(policy:explain(root .. "/.git"):find("can be read: .* is protected metadata%."))
    assert.truthy(policy:explain("/nowhere"):find("is denied: no rule grants it.", 1, true))
  end)
end)

describe("numbers of limits", function()
  it("come back as they were given", function()
    local spec = sandbox.policy { limits = { memory_bytes = 2 ^ 53, core_bytes = 0 } }:spec()
    assert.equal(2 ^ 53, spec.limits.memory_bytes)
  end)
end)
