-- Deny globs (case 19): what matches, what is masked, and the same set as ripgrep lists.
local sandbox = require "execsandbox"
local support = require "spec.support"

local quote = support.quote

local function policy_of(root, globs, more)
  local spec = { rules = { { special = "workspace_roots", access = "write" } }, workspace_roots = { root },
    protected_metadata = {} }
  for _, glob in ipairs(globs) do
    spec.rules[#spec.rules + 1] = { glob = glob, access = "deny" }
  end
  for name, value in pairs(more or {}) do
    spec[name] = value
  end
  return assert(sandbox.policy(spec))
end

-- The paths, relative to ROOT and sorted, at which a glob denies.
local function masked(root, globs, more)
  local paths = {}
  for _, rule in ipairs(assert(policy_of(root, globs, more):rules { cwd = root })) do
    if rule.origin == "glob" then
      paths[#paths + 1] = rule.path:sub(1, #root + 1) == root .. "/" and rule.path:sub(#root + 2) or rule.path
    end
  end
  table.sort(paths)
  return paths
end

local function make(root, paths)
  for _, path in ipairs(paths) do
    if path:sub(-1) == "/" then
      support.mkdir(root .. "/" .. path)
    else
      support.write(root .. "/" .. path, "")
    end
  end
end

describe("a deny glob", function()
  local root

  before_each(function()
    root = support.tempdir()
  end)

  local tree = { "a.key", "b.txt", ".hidden.key", "sub/a.key", "sub/deep/.x/b.key", "top/a.pem", "sub/top/b.pem",
    "secrets/one", "secrets/dir/two", "sub/secrets/three", "xay", "xby", "x[y", "key", "a.key.txt", "sp ace.key" }

  for _, case in ipairs {
    { "*.key", { ".hidden.key", "a.key", "sp ace.key", "sub/a.key", "sub/deep/.x/b.key" } },
    { "/*.key", { ".hidden.key", "a.key", "sp ace.key" } },
    { "sub/*.key", { "sub/a.key" } },
    { "/top/*.pem", { "top/a.pem" } },
    { "top/*.pem", { "top/a.pem" } },
    { "**/top/*.pem", { "sub/top/b.pem", "top/a.pem" } },
    { "**/secrets/*", { "secrets/dir", "secrets/one", "sub/secrets/three" } },
    { "secrets/**", { "secrets/dir", "secrets/one" } },
    { "secrets", { "secrets", "sub/secrets" } },
    { "secrets/", { "secrets", "sub/secrets" } },
    { "/secrets", { "secrets" } },
    { "key/", {} },
    { "x[ab]y", { "xay", "xby" } },
    { "x[!a]y", { "x[y", "xby" } },
    { "x[^a]y", { "x[y", "xby" } },
    { "x[a-b]y", { "xay", "xby" } },
    { "x\\[y", { "x[y" } },
    { "x[[]y", { "x[y" } },
    { "x?y", { "x[y", "xay", "xby" } },
    { "{xay,*.pem}", { "sub/top/b.pem", "top/a.pem", "xay" } },
    { "sub/**/b.*", { "sub/deep/.x/b.key", "sub/top/b.pem" } },
    { "su**b.pem", {} },
    { "SUB", {} },
    { "nothing", {} },
    { "*.key   ", { ".hidden.key", "a.key", "sp ace.key", "sub/a.key", "sub/deep/.x/b.key" } },
  } do
    it(("%q masks what it should"):format(case[1]), function()
      make(root, tree)
      assert.same(case[2], masked(root, { case[1] }))
    end)
  end

  it("masks a directory whole, and does not look into it", function()
    make(root, { "m/x", "m/sub/m" })
    assert.same({ "m" }, masked(root, { "m" }))
    local policy = policy_of(root, { "m" })
    assert.equal("deny", (policy:access(root .. "/m/sub/m")))
    assert.equal("deny", (policy:access(root .. "/m/later")))
    assert.equal("write", (policy:access(root .. "/mm")))
  end)

  it("masks a file named like the pattern", function()
    make(root, { "*.key", "[ab]", "a" })
    assert.same({ "[ab]", "a" }, masked(root, { "\\[ab\\]", "[ab]" }))
    assert.same({ "*.key" }, masked(root, { "\\*.key" }))
  end)

  it("takes # for a character, since a deny must not become a comment", function()
    make(root, { "#x#", "x" })
    assert.same({ "#x#" }, masked(root, { "#*#" }))
  end)

  it("matches bytes that are not UTF-8, newlines, quotes and backslashes", function()
    make(root, { "\255\254.key", "a\nb.key", "'\".key", "a\\b.key", "-rf.key" })
    assert.same({ "'\".key", "-rf.key", "a\nb.key", "a\\b.key", "\255\254.key" }, masked(root, { "*.key" }))
    assert.same({ "\255\254.key" }, masked(root, { "[\250-\255]?.key" }))
  end)

  it("beats a grant at the match and above it, and yields to one below", function()
    make(root, { "s/inner/file", "s/inner/x.key", "s/other" })
    local policy = policy_of(root, { "s", "*.key" }, {
      rules = { { path = root, access = "write" }, { path = root .. "/s", access = "write" },
        { path = root .. "/s/inner", access = "read" }, { glob = "s", access = "deny" }, { glob = "*.key",
          access = "deny" } },
    })
    assert.equal("deny", (policy:access(root .. "/s")))
    assert.equal("deny", (policy:access(root .. "/s/other")))
    assert.equal("read", (policy:access(root .. "/s/inner/file")))
    local access, rule = policy:access(root .. "/s/inner/x.key")
    assert.equal("deny", access)
    assert.equal("glob", rule.origin)
    assert.equal(5, rule.index)
  end)

  it("masks the target of a link that matches, wherever it is granted", function()
    local outside = support.tempdir()
    make(outside, { "real", "unrelated" })
    make(root, { "inner" })
    support.symlink(outside .. "/real", root .. "/x.key")
    support.symlink("inner", root .. "/y.key")
    support.symlink("dangling", root .. "/z.key")
    support.symlink("l.key", root .. "/l.key")
    local policy = policy_of(root, { "*.key" }, { rules = {
      { special = "workspace_roots", access = "write" }, { path = outside, access = "read" }, { glob = "*.key",
        access = "deny" } } })
    assert.equal("deny", (policy:access(outside .. "/real")))
    assert.equal("read", (policy:access(outside .. "/unrelated")))
    assert.equal("deny", (policy:access(root .. "/inner")))
    assert.equal("deny", (policy:access(root .. "/x.key")))
    assert.is_nil(policy:resolve():refusal())
  end)

  it("does not follow a link to a directory while it looks", function()
    local outside = support.tempdir()
    make(outside, { "a.key" })
    support.symlink(outside, root .. "/link")
    support.symlink(".", root .. "/self")
    make(root, { "b.key" })
    assert.same({ "b.key" }, masked(root, { "*.key" }))
  end)

  it("refuses a matching link whose target would deny the whole search", function()
    support.symlink("/", root .. "/x.key")
    local policy = policy_of(root, { "*.key" }, { rules = { { special = "root", access = "write" }, { glob = "*.key",
      access = "deny" } } })
    assert.truthy(tostring(policy:resolve():refusal()):find(root .. "/x.key", 1, true))
  end)

  it("stops at glob_scan_max_depth", function()
    make(root, { "a.key", "d/b.key", "d/e/c.key" })
    assert.same({}, masked(root, { "*.key" }, { glob_scan_max_depth = 0 }))
    assert.same({ "a.key" }, masked(root, { "*.key" }, { glob_scan_max_depth = 1 }))
    assert.same({ "a.key", "d/b.key" }, masked(root, { "*.key" }, { glob_scan_max_depth = 2 }))
    assert.same({ "a.key", "d/b.key", "d/e/c.key" }, masked(root, { "*.key" }, { glob_scan_max_depth = 2 ^ 40 }))
  end)

  it("is searched below every workspace root, or cwd without one", function()
    local other = support.tempdir()
    make(root, { "a.key" })
    make(other, { "b.key" })
    local policy = assert(sandbox.policy { rules = { { special = "root", access = "read" }, { glob = "/*.key",
      access = "deny" } },
      workspace_roots = { root, other } })
    assert.equal("deny", (policy:access(root .. "/a.key", { cwd = "/" })))
    assert.equal("deny", (policy:access(other .. "/b.key", { cwd = "/" })))
    policy = assert(sandbox.policy { rules = { { path = root, access = "read" }, { glob = "*.key",
      access = "deny" } } })
    assert.equal("deny", (policy:access("a.key", { cwd = root })))
    assert.equal("read", (policy:access(root .. "/a.key", { cwd = other })))
  end)

  it("covers what is remapped into the workspace", function()
    local source = support.tempdir()
    make(source, { "k.key", "sub/l.key", "m" })
    make(root, { "view/", "x.key" })
    local policy = policy_of(root, {}, { rules = {
      { special = "workspace_roots", access = "write" }, { glob = "*.key", access = "deny" }, { glob = "/view/m",
        access = "deny" },
      { path = root .. "/view", source = source, access = "read" }, { path = root .. "/x.key",
        source = source .. "/m", access = "read" } } })
    assert.equal("deny", (policy:access(root .. "/view/k.key")))
    assert.equal("deny", (policy:access(root .. "/view/sub/l.key")))
    assert.equal("deny", (policy:access(root .. "/view/m")))
    assert.equal("deny", (policy:access(root .. "/x.key")))
    assert.equal("read", (policy:access(root .. "/view/sub/other")))
  end)

  it("masks 10,000 matches", function()
    support.must("cd " .. quote(root) .. " && mkdir d && cd d && seq -f f%g.key 1 10000 | xargs touch && touch g")
    assert.equal(10000, #masked(root, { "*.key" }))
  end)

  it("is an error where a directory cannot be read, which it names", function()
    support.skip_unless(not support.is_root, "root reads every directory")
    make(root, { "closed/a.key" })
    support.must("chmod", "000", root .. "/closed")
    local rules, err = policy_of(root, { "*.key" }):rules()
    support.must("chmod", "755", root .. "/closed")
    assert.is_nil(rules)
    assert.equal("policy", err.kind)
    assert.truthy(tostring(err):find(root .. "/closed", 1, true))
  end)

  it("does not read directories that are denied, or in which nothing can match", function()
    support.skip_unless(not support.is_root, "root reads every directory")
    make(root, { "closed/", "denied/", "top/a.pem" })
    support.must("chmod", "000", root .. "/closed", root .. "/denied")
    assert.same({ "top/a.pem" }, masked(root, { "/top/*.pem" }))
    support.must("chmod", "755", root .. "/closed")
    local rules = policy_of(root, {}, { rules = { { special = "workspace_roots", access = "write" },
      { path = root .. "/denied", access = "deny" }, { glob = "*.pem", access = "deny" } } }):rules()
    support.must("chmod", "755", root .. "/denied")
    assert.is_table(rules)
  end)

  it("works in a tree deeper than the process may have descriptors", function()
    support.must("cd " .. quote(root) .. " && p=$(printf 'd/%.0s' $(seq 1500)) && mkdir -p $p && touch ${p}x.key")
    local path = root .. "/" .. ("d/"):rep(1500) .. "x.key"
    assert.equal("deny", (policy_of(root, { "*.key" }):access(path)))
  end)
end)

-- The same trees and patterns for both. What ripgrep does not list but we mask is below a matching directory.
describe("deny globs and ripgrep", function()
  local names = { "a", "b", "c", "ab", "abc", ".h", "x.key", "y.pem", "a-b", "a]b", "[a]", "foo bar", "a,b", "{a}", "A",
    "*", "?", "a\\b", "\195\169" }
  local atoms = { "a", "b", "c", "*", "**", "?", "[ab]", "[!a]", "[a-c]", "{a,b}", "{ab,c*}", "/", "/", "**/", "/**",
    "/**/", ".h", "*.key", "\\*", "x.", "[]a]", "[^.]", "{*.key,*.pem}", "{**/a,b/c}", ",", "-", "{a,}", "{a/b,c}",
      "[a-]",
    "\195\169", "{a/**/b,c}", "[*]" }

  -- The same numbers on every Lua.
  local seed = 20240229
  local function random(limit)
    seed = seed * 16807 % 2147483647
    return math.floor(seed / 65536) % limit + 1
  end

  local function grow(directory, depth, files)
    local used = {}
    for _ = 1, random(6) do
      local name = names[random(#names)]
      local path = directory == "" and name or directory .. "/" .. name
      if not used[name] and depth < 4 and random(2) == 1 then
        grow(path, depth + 1, files)
      elseif not used[name] then
        files[#files + 1] = path
      end
      used[name] = true
    end
  end

  local function listed(root, glob, depth)
    local output = support.shell("cd " .. quote(root) .. " && rg --files --hidden --no-ignore --no-config "
      .. (depth and "--max-depth " .. depth or "") .. " --glob " .. quote(glob))
    local found = {}
    for line in output:gmatch "[^\n]+" do
      found[line] = true
    end
    return not output:find "error parsing glob" and found or nil
  end

  local function is_below(path, set)
    local parent = path:match "^(.*)/[^/]*$"
    return parent ~= nil and (set[parent] or is_below(parent, set))
  end

  local function compare(root, files, glob, depth)
    local wanted = listed(root, glob, depth)
    local policy = sandbox.policy { rules = { { special = "workspace_roots", access = "read" }, { glob = glob,
      access = "deny" } },
      workspace_roots = { root }, glob_scan_max_depth = depth }
    -- A pattern that cannot match anything is an error here, and lists nothing there.
    if not policy then
      return not wanted or next(wanted) == nil
    end
    local ours = {}
    for _, rule in ipairs(policy:rules()) do
      ours[rule.path:sub(#root + 2)] = rule.origin == "glob" or nil
    end
    for _, path in ipairs(files) do
      if not wanted or (wanted[path] and not (ours[path] or is_below(path,
        ours))) or (ours[path] and not wanted[path]) then
        return false
      end
    end
    return true
  end

  it("agree on random trees", function()
    support.skip_unless(select(2, support.shell "command -v rg") == 0, "ripgrep is not installed")
    for _ = 1, 4 do
      local root, files = support.tempdir(), {}
      grow("", 0, files)
      make(root, files)
      for _ = 1, 40 do
        local glob = ""
        for _ = 1, random(5) do
          glob = glob .. atoms[random(#atoms)]
        end
        local depth = random(5) == 1 and random(5) - 1 or nil
        assert.is_true(compare(root, files, glob, depth), ("%q, depth %s"):format(glob, tostring(depth)))
      end
    end
  end)
end)
