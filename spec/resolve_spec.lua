-- From a policy to absolute rules: precedence, links, metadata, specials (cases 12 to 18, 22, 24, 25).
local sandbox = require "execsandbox"
local support = require "spec.support"

local root

before_each(function()
  root = support.tempdir()
end)

local function policy_of(spec)
  return assert(sandbox.policy(spec))
end

-- Rules only, no protected names.
local function plain(rules, more)
  local spec = { rules = rules, protected_metadata = {} }
  for name, value in pairs(more or {}) do spec[name] = value end
  return policy_of(spec)
end

local function resolve(policy, options)
  return assert(policy:resolve(options))
end

-- The sentence with which launching is refused, or nil.
local function refusal(policy, options)
  local err = resolve(policy, options):refusal()
  assert(err == nil or err.kind == "policy")
  return err and tostring(err)
end

local function assert_names(sentence, path)
  assert.is_string(sentence)
  assert.truthy(sentence:find(path, 1, true), sentence)
end

-- Asks for several paths below the root: { path = access }.
local function assert_access(policy, wanted, options)
  for path, access in pairs(wanted) do
    local full = path:sub(1, 1) == "/" and path or root .. "/" .. path
    assert.equal(access, (policy:access(full, options)), path)
  end
end

local function rule_at(policy, path, options)
  for _, rule in ipairs(assert(policy:rules(options))) do
    if rule.path == path then return rule end
  end
end

local function noted(policy, path, options)
  for _, note in ipairs(resolve(policy, options):notes()) do
    if note.path == path then return note.text end
  end
end

describe("precedence", function()
  it("is the deepest rule's, through any nesting", function()
    support.mkdir(root .. "/a/b/c/d")
    local policy = plain { { path = root, access = "write" }, { path = root .. "/a/b", access = "deny" },
      { path = root .. "/a/b/c", access = "write" }, { path = root .. "/a/b/c/d", access = "read" } }
    assert_access(policy, { [""] = "write", a = "write", ["a/b"] = "deny", ["a/b/x"] = "deny", ["a/b/c"] = "write",
      ["a/b/c/x/y"] = "write", ["a/b/c/d"] = "read", ["a/b/c/d/e"] = "read", ["a/bc"] = "write", ["/"] = "deny" })
  end)

  it("at one path is deny, then write, then read, in whatever order they were written", function()
    for _, order in ipairs { { "deny", "write", "read" }, { "read", "write", "deny" }, { "write", "deny", "read" } } do
      local rules = {}
      for i, access in ipairs(order) do rules[i] = { path = root, access = access } end
      assert_access(plain(rules), { [""] = "deny" })
    end
    assert_access(plain { { path = root, access = "read" }, { path = root .. "/.", access = "write" } },
      { [""] = "write" })
  end)

  it("lists rules broadest first, every path once, with what was written", function()
    support.mkdir(root .. "/a/b")
    local rules = plain({ { path = root .. "/a//b/", access = "read" }, { path = root, access = "write" },
      { path = "a/b", access = "write" } }):rules { cwd = root }
    local depth, seen = 0, {}
    for _, rule in ipairs(rules) do
      local _, slashes = rule.path:gsub("/.", "")
      assert.is_true(slashes >= depth)
      assert.is_nil(seen[rule.path])
      depth, seen[rule.path] = slashes, rule
    end
    assert.equal("write", seen[root .. "/a/b"].access)
    assert.equal(3, seen[root .. "/a/b"].index)
    assert.equal("a/b", seen[root .. "/a/b"].written)
  end)

  it("of a relative path is cwd's", function()
    support.mkdir(root .. "/sub")
    local policy = plain { { path = "sub", access = "write" }, { path = "../sub2", access = "deny" }, { path = ".",
      access = "read" } }
    assert_access(policy, { sub = "write", x = "read" }, { cwd = root })
    assert_access(policy, { sub2 = "deny" }, { cwd = root .. "/sub" })
  end)

  it("of thousands of rules is found", function()
    local rules = { { path = root, access = "write" } }
    for i = 1, 5000 do rules[#rules + 1] = { path = root .. "/d" .. i % 50 .. "/" .. i,
      access = i % 2 == 0 and "deny" or "read" } end
    local policy = plain(rules)
    local resolution = resolve(policy)
    for i = 1, 5000 do assert.equal(i % 2 == 0 and "deny" or "read",
      (resolution:access(root .. "/d" .. i % 50 .. "/" .. i))) end
  end)
end)

describe("paths", function()
  it("are bytes: spaces, quotes, newlines, backslashes, glob characters, dashes, no UTF-8 (case 18)", function()
    for _, name in ipairs { "a b", "a'b\"c", "a\nb", "a\\b", "*?[x]{y}", "-rf", "\255\254\1", "$(x)`y`", "%s%n", " ",
      "\t" } do
      support.must("mkdir", "--", root .. "/" .. name)
      local policy = plain { { path = root, access = "read" }, { path = root .. "/" .. name, access = "write" } }
      assert_access(policy, { [name] = "write", [name .. "/x"] = "write", [name .. "x"] = "read" })
      assert.equal(root .. "/" .. name, rule_at(policy, root .. "/" .. name).written)
      assert.truthy(policy:explain(root .. "/" .. name):find(name, 1, true))
    end
  end)

  it("may be 4,000 bytes long, and not longer than the system's limit (case 18)", function()
    local long = root .. ("/" .. ("x"):rep(99)):rep(39)
    support.mkdir(long)
    local policy = plain { { path = root, access = "read" }, { path = long, access = "write" }, { path = long .. "/n",
      access = "deny" } }
    assert.equal("write", (policy:access(long .. "/m")))
    assert.equal("deny", (policy:access(long .. "/n/o")))
    assert.is_nil(refusal(policy))
    local access, err = policy:access(long .. "/" .. ("y"):rep(200))
    assert.is_nil(access)
    assert.equal("policy", err.kind)
  end)

  it("go through `..` as the kernel does, behind a link too", function()
    support.mkdir(root .. "/real/inner")
    support.symlink("real/inner", root .. "/link")
    local policy = plain { { path = root, access = "read" }, { path = root .. "/link/../x", access = "deny" } }
    assert_access(policy, { ["real/x"] = "deny", ["link/../x"] = "deny", x = "read" })
  end)

  it("below what is missing are lexical", function()
    local policy = plain { { path = root, access = "write" }, { path = root .. "/no/such/../thing", access = "deny" } }
    assert_access(policy, { ["no/thing"] = "deny", ["no/such"] = "write" })
  end)
end)

describe("symbolic links", function()
  it("are followed in rules and questions alike, and remembered", function()
    support.mkdir(root .. "/real")
    support.symlink("real", root .. "/one")
    support.symlink(root .. "/one", root .. "/two")
    local policy = plain { { path = root, access = "read" }, { path = root .. "/two/x", access = "deny" } }
    assert_access(policy, { ["real/x"] = "deny", ["one/x/y"] = "deny", ["two/x"] = "deny", ["two/y"] = "read" })
    assert.is_nil(refusal(policy))
    assert.same({ { path = root .. "/one", target = "real" }, { path = root .. "/two", target = root .. "/one" } },
      resolve(policy):links())
  end)

  it("in a directory that the policy makes writable are refused by name (cases 12 and 14)", function()
    support.mkdir(root .. "/dir")
    support.write(root .. "/file")
    for link, target in pairs { todir = "dir", tofile = "file", dangling = "nowhere", loop = "loop", up = "../..",
      etc = "/etc",
      root = "/" } do
      support.symlink(target, root .. "/" .. link)
      for _, access in ipairs { "deny", "read", "write" } do
        for _, below in ipairs { "", "/below" } do
          local policy = plain { { path = root, access = "write" }, { path = root .. "/" .. link .. below,
            access = access } }
          assert_names(refusal(policy), root .. "/" .. link)
        end
      end
    end
  end)

  it("in a directory that the policy leaves read-only are fine", function()
    support.mkdir(root .. "/dir")
    support.mkdir(root .. "/ro")
    support.symlink("../dir", root .. "/ro/link")
    local policy = plain { { path = root, access = "write" }, { path = root .. "/ro", access = "read" },
      { path = root .. "/ro/link", access = "deny" } }
    assert.is_nil(refusal(policy))
    assert_access(policy, { dir = "deny" })
  end)

  it("in a directory that the caller cannot write are fine", function()
    local policy = plain { { special = "root", access = "write" }, { path = "/etc/mtab/x", access = "deny" } }
    support.skip_unless(not support.is_root, "root can write everywhere")
    local _, err = policy:resolve()
    assert(err == nil or err.kind == "policy")
    policy = plain { { path = "/usr", access = "write" }, { path = "/bin/sh", access = "read" } }
    assert.is_nil(refusal(policy))
  end)

  it("of 40 steps are followed, of 41 not", function()
    support.mkdir(root .. "/l0")
    for i = 1, 41 do support.symlink("l" .. i - 1, root .. "/l" .. i) end
    assert_access(plain { { path = root, access = "read" }, { path = root .. "/l40", access = "deny" } },
      { l0 = "deny" })
    assert_names(refusal(plain { { path = root, access = "read" }, { path = root .. "/l41", access = "deny" } }),
      root .. "/l41")
    local access, rule = plain({ { path = root, access = "read" } }):access(root .. "/l41")
    assert.equal("deny", access)
    assert.truthy(rule.reason:find "symbolic links")
  end)

  it("that the command cannot see lead nowhere", function()
    local hidden = support.tempdir()
    support.symlink(root, hidden .. "/way")
    assert_access(plain { { path = root, access = "read" } }, { [hidden .. "/way/x"] = "deny", x = "read" })
    assert_access(plain { { path = hidden .. "/way", access = "read" } }, { [hidden .. "/way/x"] = "read", x = "read" })
  end)

  it("to a workspace, TMPDIR and so on are fine outside of writable directories (case 13)", function()
    support.mkdir(root .. "/ws")
    local links = support.tempdir()
    support.symlink(root .. "/ws", links .. "/w")
    local policy = policy_of { workspace_roots = { links .. "/w" }, rules = { { special = "workspace_roots",
      access = "write" } } }
    assert.is_nil(refusal(policy))
    assert_access(policy, { ["ws/x"] = "write", ["ws/.git"] = "read", [links .. "/w/x"] = "write",
      [links .. "/x"] = "deny" })
    local env = { TMPDIR = links .. "/w" }
    policy = plain { { special = "tmpdir", access = "write" } }
    assert.is_nil(refusal(policy, { env = env }))
    assert.equal("write", (policy:access(root .. "/ws/x", { env = env })))
    policy = policy_of { workspace_roots = { links .. "/w" }, rules = { { path = links, access = "write" },
      { special = "workspace_roots", access = "write" } } }
    assert_names(refusal(policy), links .. "/w")
  end)
end)

describe("what is missing", function()
  it("cannot be granted for writing: the error names it (case 24)", function()
    assert_names(refusal(plain { { path = root .. "/none", access = "write" } }), root .. "/none")
    assert_names(refusal(policy_of { workspace_roots = { root .. "/none" } }), root .. "/none")
    assert_names(refusal(policy_of { workspace_roots = { root .. "/none" }, rules = { { special = "root",
      access = "read" } } }), root .. "/none")
    support.write(root .. "/file")
    assert_names(refusal(policy_of { workspace_roots = { root .. "/file" } }), root .. "/file")
    assert_names(refusal(plain { { path = "/view", source = root .. "/none", access = "read" } }), root .. "/none")
    assert_names(refusal(plain({}, { devices = { "/dev/no-such-node" } })), "/dev/no-such-node")
    assert_names(refusal(policy_of { workspace_roots = { root }, rules = { { special = "workspace_roots",
      subpath = "out", access = "write" } } }),
      root .. "/out")
  end)

  it("is skipped for reading, with a note (case 24)", function()
    local policy = plain { { path = root, access = "read" }, { path = root .. "/none", access = "read" } }
    assert.is_nil(refusal(policy))
    assert.is_nil(rule_at(policy, root .. "/none"))
    assert.truthy(noted(policy, root .. "/none"):find "does not exist")
  end)

  it("stays where it narrows: read below write, and deny", function()
    local policy = plain { { path = root, access = "write" }, { path = root .. "/r", access = "read" },
      { path = root .. "/d", access = "deny" } }
    assert.is_true(rule_at(policy, root .. "/r").missing)
    assert.is_true(rule_at(policy, root .. "/d").missing)
    assert_access(policy, { r = "read", ["r/x"] = "read", d = "deny" })
  end)

  it("includes an empty placeholder of another run, but not a directory with something in it", function()
    support.mkdir(root .. "/p")
    support.must("chmod", "1755", root .. "/p")
    local policy = plain { { path = root, access = "write" }, { path = root .. "/p", access = "read" } }
    assert.is_true(rule_at(policy, root .. "/p").missing)
    support.write(root .. "/p/x")
    assert.is_false(rule_at(policy, root .. "/p").missing)
  end)

  it("cannot be feigned by a directory that the command may open again", function()
    support.skip_unless(not support.is_root, "root searches every directory")
    support.mkdir(root .. "/a/secret")
    support.must("chmod", "600", root .. "/a")
    local policy = plain { { path = root, access = "write" }, { path = root .. "/a/secret", access = "deny" } }
    local sentence = refusal(policy)
    support.must("chmod", "600", root)
    local metadata = refusal(policy_of { workspace_roots = { root }, rules = { { special = "workspace_roots",
      access = "write" } } })
    support.must("chmod", "755", root, root .. "/a")
    assert_names(sentence, root .. "/a")
    assert_names(metadata, root .. "/.git")
  end)
end)

describe("protected metadata", function()
  local function workspace(rules, more)
    local spec = { workspace_roots = { root }, rules = { { special = "workspace_roots", access = "write" } } }
    for _, rule in ipairs(rules or {}) do spec.rules[#spec.rules + 1] = rule end
    for name, value in pairs(more or {}) do spec[name] = value end
    return policy_of(spec)
  end

  it("is read-only at the top of every workspace root, there or not", function()
    support.mkdir(root .. "/.git/hooks")
    local policy = workspace()
    assert_access(policy, { [".git"] = "read", [".git/hooks/x"] = "read", [".agents"] = "read", [".codex/x"] = "read",
      x = "write",
      ["sub/.git"] = "write" })
    assert.equal("protected", select(2, policy:access(root .. "/.git")).origin)
    assert.is_false(rule_at(policy, root .. "/.git").missing)
    assert.is_true(rule_at(policy, root .. "/.codex").missing)
    assert_access(workspace({}, { protected_metadata = { ".hg" } }), { [".git"] = "write", [".hg"] = "read" })
    assert_access(workspace({}, { protected_metadata = {} }), { [".git"] = "write" })
  end)

  it("of nested workspace roots is protected in each", function()
    support.mkdir(root .. "/sub")
    local policy = workspace({}, { workspace_roots = { root, root .. "/sub" } })
    assert_access(policy, { ["sub/.git"] = "read", [".git"] = "read", ["sub/x"] = "write" })
  end)

  it("is not loosened where the root is read-only or denied", function()
    local policy = policy_of { workspace_roots = { root }, rules = { { path = root, access = "deny" } } }
    assert_access(policy, { [".git"] = "deny" })
    policy = policy_of { workspace_roots = { root }, rules = { { path = root, access = "read" } } }
    assert.is_nil(rule_at(policy, root .. "/.git"))
  end)

  it("yields to a rule that names it, or something in it (case 15)", function()
    support.mkdir(root .. "/.git/objects")
    assert_access(workspace { { path = root .. "/.git", access = "write" } }, { [".git"] = "write",
      [".git/objects"] = "write", [".agents"] = "read" })
    assert_access(workspace { { path = root .. "/.git/objects", access = "write" } }, { [".git"] = "read",
      [".git/objects/x"] = "write" })
    assert_access(workspace { { path = root .. "/.git", access = "deny" } }, { [".git"] = "deny" })
    assert_access(workspace { { special = "workspace_roots", subpath = ".git", access = "write" } },
      { [".git"] = "write" })
    assert_access(workspace { { path = root, access = "write" } }, { [".git"] = "read" })
  end)

  it("that is a symbolic link is refused by name (case 12)", function()
    for _, target in ipairs { "/etc", "dir", "file", "nowhere", ".git", "/" } do
      root = support.tempdir()
      support.mkdir(root .. "/dir")
      support.write(root .. "/file")
      support.symlink(target, root .. "/.git")
      assert_names(refusal(workspace()), root .. "/.git")
      support.symlink(target, root .. "/.agents")
      assert_names(refusal(workspace({}, { protected_metadata = { ".agents" } })), root .. "/.agents")
      -- Nothing to protect in a root that cannot be written.
      assert.is_nil(target ~= ".git" and refusal(policy_of { workspace_roots = { root }, rules = { { path = root,
        access = "read" } } }) or nil)
    end
  end)

  describe("behind a .git file", function()
    local main

    before_each(function()
      main = support.tempdir()
      support.mkdir(main .. "/.git/worktrees/w")
      support.write(main .. "/.git/worktrees/w/commondir", "../..\n")
      support.write(root .. "/.git", "gitdir: " .. main .. "/.git/worktrees/w\n")
    end)

    it("is protected with the repository it points to, and that one's common directory (case 7)", function()
      local policy = workspace { { special = "root", access = "write" } }
      assert_access(policy, { [".git"] = "read", [main .. "/.git/worktrees/w/HEAD"] = "read",
        [main .. "/.git/config"] = "read",
        [main .. "/.git/hooks/x"] = "read", [main .. "/file"] = "write" })
    end)

    it("is not granted where it was not", function()
      local policy = workspace()
      assert_access(policy, { [main .. "/.git/config"] = "deny", [".git"] = "read" })
    end)

    it("yields to a rule for the repository, or for its root (case 15)", function()
      assert_access(workspace { { path = main, access = "write" } }, { [main .. "/.git/config"] = "write",
        [".git"] = "read" })
      assert_access(workspace { { special = "root", access = "write" }, { path = main .. "/.git", access = "write" } },
        { [main .. "/.git/config"] = "write" })
      -- A rule for everything does not speak for it.
      assert_access(workspace { { path = "/", access = "write" } }, { [main .. "/.git/config"] = "read" })
      -- A workspace root is no such rule, even where the repository is in it.
      assert_access(workspace({ { path = main, access = "write" } }, { workspace_roots = { root, main } }),
        { [main .. "/.git/config"] = "read", [main .. "/x"] = "write" })
    end)

    it("may be relative, like a submodule's, and inside the workspace", function()
      support.mkdir(root .. "/store/modules/sub")
      support.write(root .. "/.git", "gitdir: store/modules/sub\n")
      assert_access(workspace(), { ["store/modules/sub/config"] = "read", ["store/modules/x"] = "write" })
      support.mkdir(root .. "/deep")
      support.write(root .. "/deep/.git", "gitdir: ../store/modules/sub")
      assert_access(workspace({}, { workspace_roots = { root .. "/deep", root } }),
        { ["store/modules/sub/config"] = "read" })
    end)

    it("that is broken is protected itself, and what it points to cannot appear (case 7)", function()
      support.write(root .. "/.git", "gitdir: missing/place\n")
      local policy = workspace()
      assert.is_nil(refusal(policy))
      assert_access(policy, { [".git"] = "read", ["missing/place"] = "read", ["missing/x"] = "write" })
      for _, content in ipairs { "", "gitdir:", "gitdir: \n", "nonsense", "gitdir: a\0b",
        "gitdir: " .. ("x/"):rep(3000), ("y"):rep(70000) } do
        support.write(root .. "/.git", content)
        assert_access(workspace(), { [".git"] = "read", x = "write" })
        assert.is_nil(refusal(workspace()), #content)
      end
    end)

    it("that points above its own workspace is refused", function()
      for _, pointer in ipairs { ".", "..", "/", root } do
        support.write(root .. "/.git", "gitdir: " .. pointer)
        assert_names(refusal(workspace { { special = "root", access = "write" } }), root .. "/.git")
      end
    end)

    it("that points through a link which the command could replace is refused", function()
      support.symlink(main, root .. "/way")
      support.write(root .. "/.git", "gitdir: way/.git/worktrees/w")
      assert_names(refusal(workspace { { special = "root", access = "write" } }), root .. "/way")
    end)

    it("that is a FIFO or a device is protected without being read", function()
      os.remove(root .. "/.git")
      support.must("mkfifo", root .. "/.git")
      assert_access(workspace(), { [".git"] = "read" })
    end)
  end)

  it("follows the commondir of a .git directory", function()
    local common = support.tempdir()
    support.mkdir(root .. "/.git")
    support.write(root .. "/.git/commondir", common .. "\n")
    assert_access(workspace { { special = "root", access = "write" } }, { [common .. "/config"] = "read" })
  end)
end)

describe("specials", function()
  local nobody = { HOME = "/nonexistent", PATH = "", TMPDIR = false }

  local function options(more, cwd)
    local env = {}
    for name, value in pairs(nobody) do env[name] = value end
    for name, value in pairs(more or {}) do env[name] = value end
    return { env = env, cwd = cwd or "/" }
  end

  it("root is everything, but for the sandbox's own places", function()
    assert_access(plain { { special = "root", access = "read" } }, { ["/etc/passwd"] = "read", ["/dev"] = "read",
      ["/dev/null"] = "write",
      ["/dev/sda"] = "read", ["/proc/self"] = "write" })
  end)

  it("minimal is a system without anybody's data", function()
    assert_access(plain { { special = "minimal", access = "read" } }, { ["/usr/bin/x"] = "read", ["/bin/sh"] = "read",
      ["/etc/passwd"] = "read",
      ["/etc/shadow"] = "deny", ["/home"] = "deny", ["/root"] = "deny", ["/var"] = "deny", ["/etc"] = "deny",
        ["/"] = "deny" })
  end)

  it("home, denied, covers both HOME and the user database's (case 16)", function()
    local policy = plain { { special = "root", access = "read" }, { special = "home", access = "deny" } }
    local real = support.must "getent passwd $(id -u) | cut -d: -f6"
    for _, home in ipairs { false, "", "relative", "/nonexistent", "/", root } do
      assert.equal("read", (policy:access("/etc", options { HOME = home })))
      if support.exists(real) and real ~= "/" then
        assert.equal("deny", (policy:access(real .. "/.ssh", options { HOME = home })), tostring(home))
      end
    end
    assert.equal("deny", (policy:access(root .. "/.aws", options { HOME = root })))
  end)

  it("home, granted, is HOME", function()
    assert_access(plain { { special = "home", access = "write" } }, { x = "write" }, options { HOME = root })
  end)

  it("home hidden leaves workspace roots, search path and cwd in it (case 16)", function()
    for _, name in ipairs { "bin", "ws", "cwd", ".ssh" } do support.mkdir(root .. "/" .. name) end
    local rules = { { special = "root", access = "read" }, { special = "home", access = "deny" },
      { special = "search_path", access = "read" },
      { special = "working_directory", access = "read" }, { special = "workspace_roots", access = "write" } }
    local policy = policy_of { rules = rules, workspace_roots = { root .. "/ws" } }
    assert_access(policy, { [".ssh"] = "deny", [""] = "deny", ["bin/tool"] = "read", ["cwd/x"] = "read",
      ["ws/x"] = "write", ["ws/.git"] = "read" },
      options({ HOME = root, PATH = "/usr/bin:" .. root .. "/bin" }, root .. "/cwd"))
    -- Home is the cwd, or the workspace: what is granted by name is not taken away.
    assert_access(policy, { [".ssh"] = "read" }, options({ HOME = root }, root))
    policy = policy_of { rules = rules, workspace_roots = { root } }
    assert_access(policy, { x = "write" }, options({ HOME = root }, "/"))
  end)

  it("search_path and working_directory never narrow what rules grant", function()
    support.mkdir(root .. "/node_modules/.bin")
    support.mkdir(root .. "/src")
    local policy = plain({ { special = "workspace_roots", access = "write" }, { special = "search_path",
      access = "read" },
      { special = "working_directory", access = "read" } }, { workspace_roots = { root } })
    assert_access(policy, { ["src/x"] = "write", ["node_modules/.bin/x"] = "write" },
      options({ PATH = root .. "/node_modules/.bin" }, root .. "/src"))
  end)

  it("search_path is what exists, absolute, and not the root", function()
    local policy = plain { { special = "search_path", access = "read" } }
    support.mkdir(root .. "/bin")
    support.write(root .. "/file")
    local given = options({ PATH = "relative::/:.:" .. root .. "/bin:" .. root .. "/none:" .. root .. "/file" }, root)
    assert_access(policy, { ["bin/x"] = "read", file = "deny", x = "deny", ["/etc"] = "deny" }, given)
    assert.is_nil(refusal(policy, given))
    assert.is_string(noted(policy, root .. "/none", given))
  end)

  it("search_path drops a link that the command could replace, with a note", function()
    local outside = support.tempdir()
    support.symlink(outside, root .. "/bin")
    local policy = plain({ { special = "workspace_roots", access = "write" }, { special = "search_path",
      access = "read" } }, { workspace_roots = { root } })
    local given = options { PATH = root .. "/bin" }
    assert.is_nil(refusal(policy, given))
    assert_access(policy, { [outside .. "/x"] = "deny" }, given)
    assert.truthy(noted(policy, root .. "/bin", given):find(root .. "/bin", 1, true))
  end)

  it("tmpdir is TMPDIR, or /tmp where that is none (case 13)", function()
    local policy = plain { { special = "tmpdir", access = "write" } }
    assert_access(policy, { x = "write", ["/tmp/x"] = "deny" }, options { TMPDIR = root })
    for _, value in ipairs { false, "", "relative", root .. "/none", "/etc/passwd" } do
      assert_access(policy, { x = "deny", ["/tmp/x"] = "write" }, options { TMPDIR = value })
    end
  end)

  it("workspace_roots takes a subpath", function()
    support.mkdir(root .. "/out")
    local policy = plain({ { special = "workspace_roots", access = "read" }, { special = "workspace_roots",
      subpath = "./out/", access = "write" },
      { special = "workspace_roots", subpath = "hidden", access = "deny" } }, { workspace_roots = { root } })
    assert_access(policy, { out = "write", x = "read", hidden = "deny" })
  end)
end)

describe("the sandbox's own places", function()
  it("may be masked below, and not named themselves (case 22)", function()
    local policy = plain { { special = "root", access = "write" }, { path = "/dev/shm", access = "deny" },
      { path = "/proc/sys", access = "deny" },
      { path = "/sys", access = "deny" }, { path = "/run", access = "deny" } }
    assert_access(policy, { ["/dev/shm/x"] = "deny", ["/proc/sys/kernel"] = "deny", ["/sys/x"] = "deny",
      ["/run/x"] = "deny", ["/dev/null"] = "write" })
    support.symlink("/proc/self", root .. "/me")
    local rules, err = plain({ { path = root .. "/me", access = "read" } }):rules()
    assert.is_nil(rules)
    assert.equal("policy", err.kind)
  end)

  it("leave /proc out when asked", function()
    assert_access(plain({ { special = "root", access = "read" } }, { mount_proc = false }), { ["/proc/self"] = "deny" })
  end)

  it("include a private /tmp that a rule may still open", function()
    local shared = support.tempdir "/tmp"
    local policy = plain({ { special = "root", access = "read" }, { special = "slash_tmp", access = "write" },
      { special = "tmpdir", access = "write" },
      { path = shared, access = "read" } }, { private_tmp = true })
    local given = { env = { TMPDIR = "/tmp" } }
    assert.equal("private_tmp", select(2, policy:access("/tmp/x", given)).origin)
    assert.equal("private_tmp", select(2, policy:access("/var/tmp/x", given)).origin)
    assert.equal("read", (policy:access(shared .. "/x", given)))
    assert.equal("rule", select(2, plain({ { path = "/tmp", access = "read" } },
      { private_tmp = true }):access "/tmp/x").origin)
  end)

  it("hide /run, but for what name resolution needs", function()
    local policy = plain({ { special = "root", access = "read" } }, { private_runtime = true })
    local target = support.must "realpath /etc/resolv.conf"
    assert_access(policy, { ["/run/docker.sock"] = "deny", [target] = "read" })
    assert_access(plain({ { special = "root", access = "read" }, { path = "/run", access = "read" } },
      { private_runtime = true }),
      { ["/run/x"] = "read" })
    assert.is_nil(rule_at(plain({ { path = root, access = "read" } }, { private_runtime = true }), "/run"))
  end)

  it("are not there when someone else contains the command", function()
    local rules = policy_of({ filesystem = "external", rules = { { path = root, access = "deny" } } }):rules()
    assert.equal(1, #rules)
    assert.equal("filesystem", rules[1].origin)
    assert_access(policy_of { filesystem = "external" }, { [""] = "write", ["/proc/self"] = "write" })
  end)

  it("are there when the filesystem is unrestricted, and rules narrow it", function()
    assert_access(policy_of { filesystem = "unrestricted", rules = { { path = root, access = "deny" }, { path = "/",
      access = "read" } } },
      { [""] = "deny", ["/etc"] = "read", ["/dev/null"] = "write" })
    assert_access(policy_of { filesystem = "unrestricted" }, { [""] = "write", ["/etc"] = "write" })
  end)
end)

describe("remapping", function()
  it("shows the source at the path, nested rules included (case 25)", function()
    local source = support.tempdir()
    support.mkdir(source .. "/sub/deep")
    support.symlink("sub", source .. "/link")
    support.mkdir(root .. "/view")
    local policy = plain { { path = root, access = "write" }, { path = root .. "/view", source = source,
      access = "read" },
      { path = root .. "/view/sub", access = "write" }, { path = root .. "/view/link/deep", access = "deny" } }
    assert.is_nil(refusal(policy))
    assert_access(policy, { ["view/x"] = "read", ["view/sub/x"] = "write", ["view/link/x"] = "write",
      ["view/sub/deep"] = "deny", x = "write",
      [source .. "/x"] = "deny" })
    assert.equal(source, rule_at(policy, root .. "/view").source)
    assert.equal(source .. "/sub", rule_at(policy, root .. "/view/sub").source)
    assert.is_nil(rule_at(policy, root).source)
  end)

  it("may show a directory where the host has nothing", function()
    local policy = plain { { path = root, access = "read" }, { path = "/no/such/view", source = root, access = "read" },
      { path = "/no/such/view/x", access = "deny" } }
    assert_access(policy, { ["/no/such/view/y"] = "read", ["/no/such/view/x"] = "deny", ["/no/such"] = "deny" })
  end)

  it("of nested paths takes each from its own source", function()
    local a, b = support.tempdir(), support.tempdir()
    support.mkdir(a .. "/inner")
    support.mkdir(b .. "/only")
    local policy = plain { { path = "/view/inner", source = b, access = "write" }, { path = "/view", source = a,
      access = "read" },
      { path = "/view/inner/only", access = "deny" }, { path = "/view/inner/none", access = "deny" } }
    assert_access(policy, { ["/view/x"] = "read", ["/view/inner/x"] = "write", ["/view/inner/only"] = "deny" })
    assert.is_false(rule_at(policy, "/view/inner/only").missing)
    assert.is_true(rule_at(policy, "/view/inner/none").missing)
  end)

  it("of a workspace root shows the source, protected like any workspace", function()
    local source = support.tempdir()
    support.mkdir(source .. "/.git")
    local policy = policy_of { workspace_roots = { root }, rules = { { path = root, source = source, access = "read" },
      { special = "workspace_roots", access = "write" } } }
    assert.is_nil(refusal(policy))
    assert_access(policy, { x = "write", [".git"] = "read" })
    assert.equal(source, rule_at(policy, root).source)
    assert.is_false(rule_at(policy, root .. "/.git").missing)
  end)

  it("of one path to two sources is refused", function()
    local a, b = support.tempdir(), support.tempdir()
    assert_names(refusal(plain { { path = root, source = a, access = "read" }, { path = root, source = b,
      access = "read" } }), root)
    assert.is_nil(refusal(plain { { path = root, source = a, access = "read" }, { path = root, source = a,
      access = "write" } }))
  end)

  it("through a link that the command could replace is refused", function()
    support.mkdir(root .. "/real")
    support.symlink("real", root .. "/link")
    assert_names(refusal(plain { { path = root, access = "write" }, { path = "/view", source = root .. "/link",
      access = "read" } }), root .. "/link")
    assert.is_nil(refusal(plain { { path = root, access = "read" }, { path = "/view", source = root .. "/link",
      access = "read" } }))
    -- The same link, which another remapping makes writable.
    assert_names(refusal(plain { { path = "/other", source = root, access = "write" }, { path = "/view",
      source = root .. "/link", access = "read" } }),
      root .. "/link")
  end)
end)

describe("objects of every kind", function()
  it("may be denied (case 22)", function()
    support.must("mkfifo", root .. "/fifo")
    support.write(root .. "/file")
    support.mkdir(root .. "/dir")
    local rules = { { path = root, access = "read" } }
    for _, name in ipairs { "fifo", "file", "dir", "none" } do rules[#rules + 1] = { path = root .. "/" .. name,
      access = "deny" } end
    local policy = plain(rules)
    assert_access(policy, { fifo = "deny", file = "deny", dir = "deny", none = "deny", ["file/x"] = "deny" })
    assert.is_nil(refusal(policy))
  end)
end)
