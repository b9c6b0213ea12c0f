-- What a command may not plant for the tools of the host: .git and its like (cases 7 to 15).
local sandbox = require "execsandbox"
local inside = require "spec.support.inside"
local support = require "spec.support"

local quote = support.quote

local function workspace(root, more)
  local given = { workspace_roots = { root }, write_slash_tmp = false, write_tmpdir = false }
  for name, value in pairs(more or {}) do given[name] = value end
  return assert(sandbox.workspace_write(given))
end

local function git(directory, command)
  return support.must("cd " .. quote(directory) .. " && git -c user.name=s -c user.email=s@localhost " .. command)
end

describe("an existing .git directory", function()
  local root, policy

  before_each(function()
    root = support.repository()
    policy = workspace(root)
  end)

  it("cannot be written: config, hooks, index, new files", function()
    for _, script in ipairs { "echo x >> .git/config", "echo x > .git/hooks/pre-commit", "echo x > .git/index",
      "mv .git other", "rm -rf .git", "git config core.pager evil", "git add new", "mkdir .git/new",
      "chmod 777 .git", "mv .git/hooks .git/hooks2" } do
      assert.is_false(inside.succeeds(policy, "echo x > new; " .. script, { cwd = root }), script)
    end
    assert.is_true(support.exists(root .. "/.git/config"))
    assert.is_false(support.exists(root .. "/.git/hooks/pre-commit"))
  end)

  it("can be read by git: status, log, diff, stash list", function()
    local result = inside.sh(policy,
      "echo changed >> readme && git status --short && git log --oneline | wc -l && git diff | wc -l && git stash list",
      { cwd = root })
    assert.equal(0, result.exit_code, result.output)
    assert.matches(" M readme", result.output, 1, true)
  end)

  it("is left to a rule of the user's for it", function()
    local open = workspace(root, { extra_rules = { { path = root .. "/.git", access = "write" } } })
    assert.is_true(inside.succeeds(open, "git config spec.key value && git add readme", { cwd = root }))
    assert.equal("value", git(root, "config spec.key"))
  end)

  it("is left in part to a rule of the user's for a part of it", function()
    local open = workspace(root, { extra_rules = { { path = root .. "/.git/objects", access = "write" } } })
    assert.is_true(inside.succeeds(open, "echo x | git hash-object -w --stdin", { cwd = root }))
    assert.is_false(inside.succeeds(open, "git config spec.key value", { cwd = root }))
    assert.is_false(inside.succeeds(open, "mv .git/objects .git/o2", { cwd = root }))
  end)
end)

describe("a .git file", function()
  it("of a worktree is protected with the directories that it points to", function()
    local root = support.tempdir()
    support.repository(root .. "/main")
    git(root .. "/main", "worktree add -q ../tree")
    local policy = workspace(root .. "/tree", { extra_rules = { { path = root .. "/main/sub", access = "read" } } })
    assert.is_true(inside.succeeds(policy, "git status && git log", { cwd = root .. "/tree" }))
    assert.is_false(inside.succeeds(policy, "echo x > .git", { cwd = root .. "/tree" }))
    -- The repository beside it is a second workspace root here, so its .git would be writable.
    local both = workspace(root .. "/tree", { workspace_roots = { root } })
    for _, script in ipairs { "echo x > main/.git/config", "echo x > main/.git/worktrees/tree/HEAD",
      "mv main/.git main/g", "mv main m2" } do
      local wide = assert(sandbox.policy {
        rules = { { special = "root", access = "read" }, { special = "workspace_roots", access = "write" },
          { special = "slash_tmp", access = "read" } },
        workspace_roots = { root .. "/tree", root },
      })
      assert.is_false(inside.succeeds(wide, script, { cwd = root }), script)
    end
    assert.is_true(inside.succeeds(both, "true", { cwd = root }))
  end)

  it("that points nowhere is protected, and nothing can be put where it points", function()
    local root = support.tempdir()
    support.write(root .. "/.git", "gitdir: hidden/place\n")
    local policy = workspace(root)
    assert.is_false(inside.succeeds(policy, "echo x > .git", { cwd = root }))
    assert.is_false(inside.succeeds(policy, "rm .git", { cwd = root }))
    assert.is_false(inside.succeeds(policy, "mkdir -p hidden/place && echo x > hidden/place/config", { cwd = root }))
    assert.is_false(support.exists(root .. "/hidden"))
  end)

  it("leaves the repository's root to a rule of the user's", function()
    local root = support.tempdir()
    support.repository(root .. "/main")
    git(root .. "/main", "worktree add -q ../tree")
    local policy = workspace(root .. "/tree", { extra_rules = { { path = root .. "/main", access = "write" } } })
    assert.is_true(inside.succeeds(policy, "echo x > new && git add new", { cwd = root .. "/tree" }))
  end)
end)

describe("missing protected names", function()
  local root, policy

  before_each(function()
    root = support.tempdir()
    policy = workspace(root)
  end)

  it("cannot be made as a directory, file, link or repository, and are gone afterwards", function()
    for _, script in ipairs { "mkdir .git/x", "git init -q .", "ln -s /etc .git", "ln -sT /etc .git", "echo x > .git",
      "echo x > .agents/x", "mkdir .codex/x", "rmdir .git", "mv .agents a", "touch .git/HEAD", "mkdir d && mv -T d .codex" } do
      assert.is_false(inside.succeeds(policy, script .. " && test ! -L .git/etc", { cwd = root }), script)
    end
    for _, name in ipairs { ".git", ".agents", ".codex" } do
      assert.is_false(support.exists(root .. "/" .. name), name)
    end
  end)

  it("do not hide the parent repository during the run, inside and outside", function()
    local parent = support.repository()
    support.mkdir(parent .. "/sub")
    local sub = workspace(parent .. "/sub")
    local run = assert(sandbox.start(
      { "/bin/sh", "-c", "git rev-parse --show-toplevel > seen; exec sleep 30" },
      { policy = sub, cwd = parent .. "/sub", timeout = 30 }))
    support.eventually(function() return (support.read(parent .. "/sub/seen") or "") ~= "" end)
    assert.is_true(support.exists(parent .. "/sub/.git"))
    assert.equal(parent, git(parent .. "/sub", "rev-parse --show-toplevel"))
    run:cancel()
    run:wait()
    assert.equal(parent .. "\n", support.read(parent .. "/sub/seen"))
    assert.is_false(support.exists(parent .. "/sub/.git"))
  end)

  it("are an empty directory on the host while the run lasts", function()
    local run = assert(sandbox.start({ "/bin/sleep", "30" }, { policy = policy, cwd = root }))
    assert.is_true(support.eventually(function() return support.exists(root .. "/.git") end))
    assert.same({}, support.list(root .. "/.git"))
    run:close()
    assert.is_false(support.exists(root .. "/.git"))
  end)

  it("stay what the host makes of them during the run", function()
    local run = assert(sandbox.start({ "/bin/sleep", "30" }, { policy = policy, cwd = root }))
    assert.is_true(support.eventually(function() return support.exists(root .. "/.codex") end))
    support.must("cd " .. quote(root) .. " && git init -q .")
    run:close()
    assert.is_true(support.exists(root .. "/.git/HEAD"))
    assert.is_false(support.exists(root .. "/.agents"))
  end)

  it("are protected for both of two runs, whichever ends first", function()
    for _, first in ipairs { 1, 2 } do
      local runs = {}
      for i = 1, 2 do
        runs[i] = assert(sandbox.start(
          { "/bin/sh", "-c", ("touch ready%d; while ! [ -e go%d ]; do sleep 0.02; done; mkdir .git/x || echo held"):format(i, i) },
          { policy = policy, cwd = root, timeout = 30 }))
        assert.is_true(support.eventually(function() return support.exists(root .. "/ready" .. i) end))
      end
      local second = 3 - first
      support.write(root .. "/go" .. first, "")
      assert.matches("held", runs[first]:wait(20).output)
      assert.is_true(support.exists(root .. "/.git"))
      support.write(root .. "/go" .. second, "")
      assert.matches("held", runs[second]:wait(20).output)
      assert.is_false(support.exists(root .. "/.git"))
      for i = 1, 2 do os.remove(root .. "/ready" .. i); os.remove(root .. "/go" .. i) end
    end
  end)

  it("are protected for a run whose neighbour is killed", function()
    local script = "touch ready%d; while ! [ -e go ]; do sleep 0.02; done; mkdir .git/x || echo held"
    local one = assert(sandbox.start({ "/bin/sh", "-c", script:format(1) }, { policy = policy, cwd = root, timeout = 30 }))
    local two = assert(sandbox.start({ "/bin/sh", "-c", script:format(2) }, { policy = policy, cwd = root, timeout = 30 }))
    for i = 1, 2 do
      assert.is_true(support.eventually(function() return support.exists(root .. "/ready" .. i) end))
    end
    one:close()
    support.write(root .. "/go", "")
    assert.matches("held", two:wait(20).output)
    assert.is_false(support.exists(root .. "/.git"))
  end)

  it("leave an empty directory that was there before", function()
    support.mkdir(root .. "/.git")
    assert.is_true(inside.succeeds(policy, "true", { cwd = root }))
    assert.is_false(inside.succeeds(policy, "mkdir .git/x", { cwd = root }))
    assert.is_true(support.exists(root .. "/.git"))
  end)

  it("that a killed run has left behind are removed by the next", function()
    support.mkdir(root .. "/.git")
    support.must("chmod", "1755", root .. "/.git")
    assert.is_true(inside.succeeds(policy, "true", { cwd = root }))
    assert.is_false(support.exists(root .. "/.git"))
  end)
end)

describe("a workspace at which nobody can add anything", function()
  it("of the user's own starts, keeps what is in it usable, and cannot be opened for .git", function()
    support.skip_unless(not support.is_root, "root can write every directory")
    local root = support.tempdir()
    support.write(root .. "/file", "file\n")
    support.write(root .. "/src/file", "file\n")
    support.must("chmod", "555", root)
    local policy = workspace(root)
    assert.equal("file\nok", inside.output(policy, "cat file && echo x > src/file && echo x > file && echo ok", { cwd = root }))
    for _, script in ipairs { "chmod u+w . && mkdir .git", "mkdir .git", "chmod 755 " .. quote(root),
      "chmod u+w ..; chmod u+w .; git init -q ." } do
      assert.is_false(inside.succeeds(policy, script, { cwd = root }), script)
    end
    assert.equal("555", support.must("stat", "-c", "%a", root))
    assert.same({ "file", "src" }, support.list(root))
    support.must("chmod", "755", root)
  end)

  it("starts empty, too", function()
    support.skip_unless(not support.is_root, "root can write every directory")
    local root = support.tempdir()
    support.must("chmod", "555", root)
    assert.is_true(inside.succeeds(workspace(root), "true", { cwd = root }))
    assert.is_false(inside.succeeds(workspace(root), "chmod u+w .", { cwd = root }))
  end)
end)

describe("a protected or denied name that is a link", function()
  it("is refused with a sentence that names it: to a directory, a file, nothing, itself", function()
    for _, name in ipairs { ".git", ".agents", "denied" } do
      for _, target in ipairs { "directory", "file", "nothing", name } do
        local root = support.tempdir()
        support.mkdir(root .. "/directory")
        support.write(root .. "/file", "")
        support.symlink(target, root .. "/" .. name)
        local policy = workspace(root, { extra_rules = { { path = root .. "/denied", access = "deny" } } })
        local result, err = sandbox.run({ "/bin/touch", root .. "/ran" }, { policy = policy, cwd = root })
        assert.is_nil(result, name .. " -> " .. target)
        assert.equal("policy", err.kind)
        assert.matches(root .. "/" .. name, tostring(err), 1, true)
        assert.is_false(support.exists(root .. "/ran"))
      end
    end
  end)
end)

describe("a workspace given through a link", function()
  it("is the directory that the link leads to", function()
    local root, links = support.tempdir(), support.tempdir()
    support.symlink(root, links .. "/link")
    local policy = workspace(links .. "/link")
    assert.is_true(inside.succeeds(policy, "echo x > file", { cwd = links .. "/link" }))
    assert.equal("x\n", support.read(root .. "/file"))
    assert.is_false(inside.succeeds(policy, "mkdir .git/x", { cwd = links .. "/link" }))
  end)

  it("is one with TMPDIR a link, unset, relative or missing", function()
    local root, links = support.tempdir(), support.tempdir()
    support.mkdir(links .. "/tmp")
    support.symlink("tmp", links .. "/link")
    for _, tmpdir in ipairs { links .. "/link", false, "relative", links .. "/missing" } do
      local policy = assert(sandbox.workspace_write { workspace_roots = { root } })
      assert.is_true(inside.succeeds(policy, "echo x > file", { cwd = root, env = { TMPDIR = tmpdir } }))
    end
    local policy = assert(sandbox.workspace_write { workspace_roots = { root } })
    assert.is_true(inside.succeeds(policy, "echo x > $TMPDIR/file",
      { cwd = root, env = { TMPDIR = links .. "/link" } }))
    assert.equal("x\n", support.read(links .. "/tmp/file"))
  end)
end)

describe("a link planted in the workspace", function()
  it("below which a rule names a path leads to a refusal, and nothing outside is made or changed", function()
    for _, access in ipairs { "deny", "read", "write" } do
      local root, outside = support.tempdir(), support.tempdir()
      for _, target in ipairs { "/oldroot" .. outside, outside, "../" .. outside:match "[^/]+$" } do
        os.remove(root .. "/x")
        support.symlink(target, root .. "/x")
        local policy = workspace(root, { extra_rules = { { path = root .. "/x/below", access = access } } })
        local result, err = sandbox.run({ "/bin/true" }, { policy = policy, cwd = root })
        assert.is_nil(result, access .. " " .. target)
        assert.equal("policy", err.kind)
        assert.same({}, support.list(outside))
        assert.is_false(support.exists("/oldroot"))
      end
    end
  end)
end)

describe("a hidden home", function()
  local home, root

  before_each(function()
    home = support.tempdir()
    root = home .. "/project"
    support.write(home .. "/.ssh/id", "key\n")
    support.write(home .. "/.aws/credentials", "key\n")
    support.write(home .. "/.bash_history", "secret\n")
    support.write(home .. "/bin/tool", "#!/bin/sh\necho tool\n", "755")
    support.write(root .. "/file", "file\n")
  end)

  -- HOME belongs to the host: a process of its own has it.
  local function run(spec, script, cwd, environment)
    local program = ([[
      local sandbox = require "execsandbox"
      local policy = assert(sandbox.%s)
      local result, err = sandbox.run({ "/bin/sh", "-c", %q }, { policy = policy, cwd = %q, merge_output = true })
      io.write(result and result.output or "error: " .. tostring(err))
    ]]):format(spec, script, cwd)
    local file = support.write(support.tempdir() .. "/host.lua", program)
    return support.shell(("%s %s %s"):format(environment or "HOME=" .. quote(home), support.lua, quote(file)))
  end

  it("shows neither keys nor history, but tools on PATH and the working directory", function()
    local output = run(("workspace_write { workspace_roots = { %q } }"):format(root),
      "cat ~/.ssh/id; cat ~/.aws/credentials; cat ~/.bash_history; ls ~; tool; cat file; echo x > new", root,
      ("HOME=%s PATH=%s/bin:$PATH"):format(quote(home), quote(home)))
    assert.not_matches("key", output)
    assert.not_matches("secret", output)
    assert.matches("tool\nfile\n$", output)
    assert.equal("x\n", support.read(root .. "/new"))
  end)

  it("lets git work without a complaint: what it looks for there is missing", function()
    local repository = support.repository()
    local output = run(("workspace_write { workspace_roots = { %q } }"):format(repository), "git status --short && ls ~",
      repository, "HOME=" .. quote(home))
    assert.not_matches("warning", output)
    assert.matches("cannot open directory", output, 1, true)
  end)

  it("shows a working directory below it", function()
    assert.equal("file\n", (run("read_only {}", "cat file", root)))
  end)

  it("that is the workspace root itself stays writable, and as working directory readable", function()
    assert.equal("key\n", (run(("workspace_write { workspace_roots = { %q } }"):format(home), "cat .ssh/id; echo x > new", home)))
    assert.equal("x\n", support.read(home .. "/new"))
    assert.equal("key\n", (run("read_only {}", "cat .ssh/id", home)))
  end)

  it("is the user's own too when HOME is unset, wrong or another's", function()
    local own = support.must("getent passwd $(id -u) | cut -d: -f6")
    for _, environment in ipairs { "env -u HOME", "HOME=/nonexistent", "HOME=relative", "HOME=/usr/share", "HOME=/" } do
      local output = run("read_only {}", "ls " .. quote(own) .. " && echo listed", "/", environment)
      assert.not_matches("listed", output, nil, environment)
      assert.not_matches("error: ", output, nil, environment)
    end
  end)
end)
