local sandbox = require "execsandbox"
local inside = require "spec.support.inside"
local support = require "spec.support"

local quote = support.quote

describe("a read-only policy", function()
  local root, policy

  before_each(function()
    root = support.tempdir()
    support.write(root .. "/file", "content\n")
    policy = assert(sandbox.read_only { workspace_roots = { root } })
  end)

  it("reads what is granted", function()
    assert.equal("content", inside.output(policy, "cat file", { cwd = root }))
    assert.is_true(inside.succeeds(policy, "cat /etc/passwd >/dev/null", { cwd = root }))
  end)

  it("writes nowhere and changes nothing", function()
    for _, path in ipairs { root .. "/new", "/tmp/spec-new", "/var/tmp/spec-new", "/etc/spec-new", "/spec-new",
      "/dev/spec-new", "/usr/spec-new" } do
      assert.is_false(inside.succeeds(policy, "echo x > " .. quote(path), { cwd = root }), path)
      assert.is_false(support.exists(path), path)
    end
    assert.is_false(inside.succeeds(policy, "echo x >> file", { cwd = root }))
    assert.is_false(inside.succeeds(policy, "rm file", { cwd = root }))
    assert.is_false(inside.succeeds(policy, "chmod 600 file", { cwd = root }))
    assert.is_false(inside.succeeds(policy, "mv file other", { cwd = root }))
    assert.equal("content\n", support.read(root .. "/file"))
  end)

  it("has a usable /dev/null, /dev/zero and /dev/urandom", function()
    assert.equal("4", inside.output(policy,
      "echo x > /dev/null && head -c 2 /dev/zero > /dev/null && head -c 4 /dev/urandom | wc -c", { cwd = root }))
  end)
end)

describe("a workspace-write policy", function()
  local root, tmp

  before_each(function()
    root, tmp = support.tempdir(), support.tempdir()
  end)

  it("writes below the root, in TMPDIR and in /tmp, and nowhere else", function()
    local policy = assert(sandbox.workspace_write { workspace_roots = { root } })
    local name = "/tmp/" .. root:match "[^/]+$"
    local options = { cwd = root, env = { TMPDIR = tmp } }
    assert.equal("done", inside.output(policy,
      "mkdir d && echo 1 > d/f && echo 2 > $TMPDIR/f && echo 3 > " .. name .. " && echo done", options))
    assert.equal("1\n", support.read(root .. "/d/f"))
    assert.equal("2\n", support.read(tmp .. "/f"))
    assert.equal("3\n", support.read(name))
    os.remove(name)
    assert.is_false(inside.succeeds(policy, "echo x > /etc/spec-new", options))
    assert.is_false(inside.succeeds(policy, "echo x > /var/tmp/spec-new", options))
  end)

  it("leaves TMPDIR and /tmp alone when told so", function()
    local policy = assert(sandbox.workspace_write {
      workspace_roots = { root }, write_tmpdir = false, write_slash_tmp = false,
    })
    local options = { cwd = root, env = { TMPDIR = tmp } }
    assert.is_false(inside.succeeds(policy, "echo 2 > $TMPDIR/f", options))
    assert.is_false(inside.succeeds(policy, "echo 3 > /tmp/spec-new", options))
    assert.is_true(inside.succeeds(policy, "echo 1 > f", options))
  end)

  it("has a private /tmp and /var/tmp that is gone afterwards, where asked for", function()
    local outside = support.tempdir "/tmp"
    local policy = assert(sandbox.policy {
      rules = { { special = "root", access = "read" }, { special = "slash_tmp", access = "write" },
        { path = root, access = "write" } },
      private_tmp = true,
    })
    assert.equal(".\n..\nok", inside.output(policy,
      "ls -a /tmp; echo x > /tmp/f && echo x > /var/tmp/g && echo y > " .. quote(root) .. "/kept && echo ok"))
    assert.is_false(support.exists "/tmp/f")
    assert.is_false(support.exists "/var/tmp/g")
    assert.equal("y\n", support.read(root .. "/kept"))
    assert.is_true(support.exists(outside))
  end)

  it("starts in a workspace that the user cannot write", function()
    support.skip_unless(not support.is_root, "root can write every directory")
    local policy = assert(sandbox.workspace_write { workspace_roots = { "/usr/share" } })
    assert.equal("ok", inside.output(policy, "echo ok", { cwd = "/usr/share" }))
  end)

  it("starts in a workspace of the kernel's own files", function()
    local policy = assert(sandbox.workspace_write { workspace_roots = { "/sys/kernel" } })
    assert.equal("ok", inside.output(policy, "echo ok", { cwd = "/sys/kernel" }))
  end)

  it("starts in a workspace on a read-only mount", function()
    local host = support.write(support.tempdir() .. "/host.lua", ([[
      local sandbox = require "execsandbox"
      local policy = assert(sandbox.workspace_write { workspace_roots = { %q } })
      local result = assert(sandbox.run({ "/bin/sh", "-c", "echo ok; mkdir .git" }, { policy = policy, cwd = %q }))
      io.write(result.output)
    ]]):format(root, root))
    local script = ("mount --bind %s %s && mount -o remount,bind,ro %s && exec %s %s")
      :format(root, root, root, support.lua, host)
    local output, status = support.shell("unshare -rm sh -c " .. quote(script))
    assert.equal("ok\n", output)
    assert.equal(0, status)
    assert.same({}, support.list(root))
  end)
end)

describe("nested rules", function()
  local root

  before_each(function()
    root = support.tempdir()
    support.write(root .. "/a/b/c/inner", "inner\n")
    support.write(root .. "/a/b/middle", "middle\n")
    support.write(root .. "/a/outer", "outer\n")
  end)

  it("write, deny, write: the middle is unreadable, unlistable and unwritable", function()
    local policy = inside.policy(root .. "/a", {
      { path = root .. "/a/b", access = "deny" }, { path = root .. "/a/b/c", access = "write" },
    })
    local options = { cwd = root .. "/a" }
    assert.equal("inner\nok", inside.output(policy, "cat b/c/inner; echo new > b/c/new; echo ok", options))
    assert.equal("new\n", support.read(root .. "/a/b/c/new"))
    assert.is_false(inside.succeeds(policy, "cat b/middle", options))
    assert.is_false(inside.succeeds(policy, "ls b", options))
    assert.is_false(inside.succeeds(policy, "echo x > b/new", options))
    assert.is_false(inside.succeeds(policy, "mkdir b/d", options))
    assert.is_false(inside.succeeds(policy, "chmod 777 b", options))
    assert.is_false(inside.succeeds(policy, "mv b b2", options))
    assert.is_false(support.exists(root .. "/a/b/new"))
    assert.equal("middle\n", support.read(root .. "/a/b/middle"))
  end)

  it("read below write: readable, not writable", function()
    local policy = inside.policy(root, { { path = root .. "/a/b", access = "read" } })
    local options = { cwd = root }
    assert.equal("middle", inside.output(policy, "cat a/b/middle", options))
    assert.is_false(inside.succeeds(policy, "echo x > a/b/middle", options))
    assert.is_false(inside.succeeds(policy, "echo x > a/b/c/inner", options))
    assert.is_true(inside.succeeds(policy, "echo x > a/outer", options))
  end)

  it("write of one file below read: that file alone can be written", function()
    local policy = inside.policy(nil, { { path = root .. "/a/outer", access = "write" } })
    assert.is_true(inside.succeeds(policy, "echo x > a/outer", { cwd = root }))
    assert.is_false(inside.succeeds(policy, "echo x > a/b/middle", { cwd = root }))
    assert.equal("x\n", support.read(root .. "/a/outer"))
  end)

  it("deny of a file, of a directory, and of something missing", function()
    local policy = inside.policy(root, {
      { path = root .. "/a/outer", access = "deny" }, { path = root .. "/a/b", access = "deny" },
      { path = root .. "/a/missing", access = "deny" },
    })
    local options = { cwd = root }
    for _, script in ipairs { "cat a/outer", "ls a/b", "cat a/b/middle", "mkdir a/missing", "echo x > a/missing",
      "ln -s /etc a/missing", "echo x > a/missing/y", "mkdir -p a/missing/y", "rmdir a/missing", "mv a/outer a/o" } do
      assert.is_false(inside.succeeds(policy, script, options), script)
    end
    assert.is_false(support.exists(root .. "/a/missing"))
    assert.equal("outer\n", support.read(root .. "/a/outer"))
  end)

  it("deny of something deep below a missing directory: nothing is left of it", function()
    local policy = inside.policy(root, { { path = root .. "/x/y/z", access = "deny" } })
    local options = { cwd = root }
    assert.is_false(inside.succeeds(policy, "mkdir -p x/y/z && echo x > x/y/z/f", options))
    assert.is_false(inside.succeeds(policy, "mv x x2", options))
    assert.is_false(support.exists(root .. "/x"))
    assert.is_true(inside.succeeds(policy, "echo kept > x/file", options))
    assert.equal("kept\n", support.read(root .. "/x/file"))
    assert.is_false(support.exists(root .. "/x/y"))
  end)

  it("deny of something below a file is refused, for the file could be replaced", function()
    local policy = inside.policy(root, { { path = root .. "/a/outer/below", access = "deny" } })
    local result, err = sandbox.run({ "/bin/true" }, { policy = policy, cwd = root })
    assert.is_nil(result)
    assert.equal("policy", err.kind)
    assert.matches(root .. "/a/outer/below", tostring(err), 1, true)
  end)
end)

describe("a denied file", function()
  local root, policy

  before_each(function()
    root = support.tempdir()
    support.write(root .. "/secret", "secret\n")
    policy = inside.policy(root, { { path = root .. "/secret", access = "deny" } })
  end)

  it("cannot be read, copied, moved, linked, appended to, changed or opened for writing", function()
    for _, script in ipairs { "cat secret", "cp secret copy", "mv secret moved", "ln secret hard", "echo x >> secret",
      "chmod 600 secret", "echo x > secret", "rm -f secret", "dd if=secret of=copy", ": <> secret", "mv -f /dev/null secret" } do
      assert.is_false(inside.succeeds(policy, script .. " && ! [ -e copy -a ! -s copy ]", { cwd = root }), script)
    end
    assert.equal("secret\n", support.read(root .. "/secret"))
    assert.is_nil((support.read(root .. "/hard")))
  end)

  it("looks like a plain empty file, not like a device", function()
    assert.equal("regular empty file 0 0", inside.output(policy, "stat -c '%F %s %a' secret", { cwd = root }))
  end)

  it("hides sockets, FIFOs and files alike", function()
    support.must("mkfifo", root .. "/fifo")
    support.must(support.python, "-c", "import socket,sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])", root .. "/socket")
    local deny = inside.policy(root, {
      { path = root .. "/fifo", access = "deny" }, { path = root .. "/socket", access = "deny" },
    })
    assert.equal("regular empty file\nregular empty file",
      inside.output(deny, "stat -c %F fifo socket", { cwd = root }))
    assert.is_false(inside.succeeds(deny, "cat fifo", { cwd = root }))
  end)
end)

describe("ancestors of a denied or protected path", function()
  local root

  before_each(function()
    root = support.tempdir()
    support.write(root .. "/a/b/secret", "secret\n")
    support.write(root .. "/a/b/other", "other\n")
    support.write(root .. "/a/third/file", "file\n")
  end)

  it("cannot be renamed or removed, and the host sees the original", function()
    local policy = inside.policy(root, { { path = root .. "/a/b/secret", access = "deny" } })
    assert.equal("busy\nbusy\nbusy", inside.output(policy, [[
      mv a a2 2>&1 | grep -q 'busy' && echo busy
      mv a/b a/b2 2>&1 | grep -q 'busy' && echo busy
      rmdir a 2>&1 | grep -q busy && echo busy
      mkdir other && mv -T other a/b 2>/dev/null && echo replaced
      true]], { cwd = root }))
    assert.equal("secret\n", support.read(root .. "/a/b/secret"))
  end)

  it("do not keep other files from being renamed and hard-linked across directories", function()
    local policy = inside.policy(root, { { path = root .. "/a/b/secret", access = "deny" } })
    assert.equal("ok", inside.output(policy,
      "mv a/b/other a/third/moved && ln a/third/moved linked && ln linked a/b/again && mv a/third elsewhere && echo ok",
      { cwd = root }))
    assert.equal("other\n", support.read(root .. "/elsewhere/moved"))
    assert.equal("other\n", support.read(root .. "/a/b/again"))
  end)

  it("are on top where nested sandboxes are allowed, for those could let go what lies beneath", function()
    local policy = inside.policy(root, { { path = root .. "/a/b/secret", access = "deny" } },
      { allow_user_namespaces = true })
    assert.is_false(inside.succeeds(policy, "mv a a2", { cwd = root }))
    assert.is_false(inside.succeeds(policy, "mv a/b a/b2", { cwd = root }))
    assert.is_false(inside.succeeds(policy, "cat a/b/secret", { cwd = root }))
    local points = inside.output(policy, "awk '{print $5}' /proc/self/mountinfo", { cwd = root })
    assert.matches(root .. "/a\n", points, 1, true)
    assert.matches(root .. "/a/b\n", points, 1, true)
  end)

  it("hold too where the whole filesystem can be written", function()
    local policy = assert(sandbox.policy {
      rules = { { special = "root", access = "write" }, { path = root .. "/a/b/secret", access = "deny" } },
    })
    assert.is_false(inside.succeeds(policy, "cat a/b/secret", { cwd = root }))
    assert.is_false(inside.succeeds(policy, "mv a a2", { cwd = root }))
    assert.is_false(inside.succeeds(policy, "mv " .. quote(root) .. " " .. quote(root) .. "2", { cwd = root }))
    assert.equal("ok", inside.output(policy,
      "mv a/b/other moved && echo x > /dev/null && head -c 1 /dev/urandom >/dev/null && "
      .. "cat /proc/self/stat >/dev/null && echo ok",
      { cwd = root }))
    assert.equal("secret\n", support.read(root .. "/a/b/secret"))
  end)
end)

describe("the working directory", function()
  local root

  before_each(function() root = support.tempdir() end)

  it("is where the command runs", function()
    assert.equal(root, inside.output(inside.policy(root), "pwd", { cwd = root }))
  end)

  it("is an error before launch when missing, a file, denied or relative", function()
    support.write(root .. "/file", "")
    support.mkdir(root .. "/denied/below")
    local policy = inside.policy(root, { { path = root .. "/denied", access = "deny" } })
    for _, cwd in ipairs { root .. "/missing", root .. "/file", root .. "/denied", root .. "/denied/below", "relative" } do
      local result, err = sandbox.run({ "/bin/sh", "-c", "touch " .. root .. "/ran" }, { policy = policy, cwd = cwd })
      assert.is_nil(result, cwd)
      assert.equal("execution", err.kind, cwd)
      assert.equal("cwd", err.stage, cwd)
      assert.equal("launch-failed", err.result.status)
    end
    assert.is_false(support.exists(root .. "/ran"))
  end)

  it("may be removed while the command runs", function()
    support.mkdir(root .. "/gone")
    local policy = inside.policy(root)
    assert.equal("ok", inside.output(policy, "rmdir ../gone && echo ok", { cwd = root .. "/gone" }))
  end)
end)

describe("missing roots", function()
  it("are named when they were to be written", function()
    local policy = inside.policy("/var/tmp/spec-missing-root")
    local result, err = sandbox.run({ "/bin/true" }, { policy = policy, cwd = "/" })
    assert.is_nil(result)
    assert.equal("policy", err.kind)
    assert.matches("/var/tmp/spec-missing-root", tostring(err), 1, true)
  end)

  it("are skipped when they were to be read, and the plan says so", function()
    local policy = inside.policy(nil, { { path = "/var/tmp/spec-missing-root", access = "read" } })
    local plan = assert(sandbox.plan({ "/bin/true" }, { policy = policy, cwd = "/" }))
    assert.matches("/var/tmp/spec-missing-root", tostring(plan), 1, true)
    assert.is_true(inside.succeeds(policy, "true", { cwd = "/" }))
  end)
end)

describe("remapping", function()
  it("shows a directory and a file at another path, readable or writable", function()
    local root, other = support.tempdir(), support.tempdir()
    support.write(other .. "/dir/file", "remapped\n")
    support.write(other .. "/single", "single\n")
    support.mkdir(root .. "/at")
    support.write(root .. "/one", "original\n")
    local policy = inside.policy(nil, {
      { path = root .. "/at", source = other .. "/dir", access = "write" },
      { path = root .. "/one", source = other .. "/single", access = "read" },
    })
    assert.equal("remapped\nsingle", inside.output(policy, "cat at/file one; echo x > at/new", { cwd = root }))
    assert.equal("x\n", support.read(other .. "/dir/new"))
    assert.is_false(inside.succeeds(policy, "echo x > one", { cwd = root }))
    assert.equal("original\n", support.read(root .. "/one"))
    assert.equal("single\n", support.read(other .. "/single"))
  end)

  it("works in a view where only the granted exists", function()
    local other = support.tempdir()
    support.write(other .. "/file", "remapped\n")
    local policy = assert(sandbox.policy {
      rules = { { special = "minimal", access = "read" }, { path = "/data/in/here", source = other, access = "read" } },
    })
    assert.equal("remapped", inside.output(policy, "cat /data/in/here/file", { cwd = "/data/in/here" }))
  end)
end)

describe("rules below a remapped directory", function()
  local root, other

  before_each(function()
    root, other = support.tempdir(), support.tempdir()
    support.write(other .. "/a/b/secret", "secret\n")
    support.write(other .. "/a/b/open", "open\n")
    support.write(other .. "/a/kept/file", "kept\n")
    support.write(other .. "/top", "top\n")
    support.mkdir(root .. "/at/a")
    support.write(root .. "/at/original", "original\n")
  end)

  it("narrow and widen it by what is shown there", function()
    local policy = inside.policy(nil, {
      { path = root .. "/at", source = other, access = "write" },
      { path = root .. "/at/a", access = "read" },
      { path = root .. "/at/a/b/secret", access = "deny" },
      { path = root .. "/at/a/kept", access = "write" },
      { path = root .. "/at/top", access = "read" },
    })
    local options = { cwd = root }
    assert.equal("open\nkept\ntop", inside.output(policy,
      "cat at/a/b/open at/a/kept/file at/top; echo x > at/new; echo y > at/a/kept/new", options))
    for _, script in ipairs { "cat at/a/b/secret", "echo x > at/a/b/open", "echo x > at/top", "cat at/original",
      "echo x > at/a/new" } do
      assert.is_false(inside.succeeds(policy, script, options), script)
    end
    assert.equal("x\n", support.read(other .. "/new"))
    assert.equal("y\n", support.read(other .. "/a/kept/new"))
    assert.equal("secret\n", support.read(other .. "/a/b/secret"))
    assert.same({ "a", "original" }, support.list(root .. "/at"))
  end)

  it("hold where a mask, a read grant or nothing lies beneath", function()
    for _, base in ipairs { "deny", "read", "write" } do
      local policy = inside.policy(nil, {
        { path = root, access = base },
        { path = root .. "/at", source = other, access = "read" },
        { path = root .. "/at/a", access = "write" },
        { path = root .. "/at/a/b", access = "deny" },
      })
      local options = { cwd = "/" }
      local at = root .. "/at"
      assert.equal("top\nkept", inside.output(policy, ("cat %s/top %s/a/kept/file"):format(at, at), options))
      assert.is_true(inside.succeeds(policy, ("echo x > %s/a/new"):format(at), options), base)
      assert.is_false(inside.succeeds(policy, ("cat %s/a/b/open"):format(at), options))
      assert.is_false(inside.succeeds(policy, ("echo x > %s/new"):format(at), options))
      assert.is_false(inside.succeeds(policy, ("mv %s/a/b %s/a/c"):format(at, at), options))
      os.remove(other .. "/a/new")
    end
  end)

  it("keep their ancestors from being renamed, and let other files move", function()
    for _, access in ipairs { "deny", "read" } do
      local policy = inside.policy(nil, {
        { path = root .. "/at", source = other, access = "write" },
        { path = root .. "/at/a/b/secret", access = access },
      })
      local options = { cwd = root .. "/at" }
      for _, script in ipairs { "mv a a2", "mv a/b a/b2", "mv a/b/secret a/b/s", "mkdir n && mv -T n a/b" } do
        assert.is_false(inside.succeeds(policy, script, options), script)
      end
      assert.is_true(inside.succeeds(policy, "mv a/kept/file moved && ln moved a/b/linked && rm a/b/linked && mv moved a/kept/file",
        options))
      assert.equal("secret\n", support.read(other .. "/a/b/secret"))
    end
  end)

  it("hold where the whole filesystem can be written", function()
    local policy = assert(sandbox.policy {
      rules = {
        { special = "root", access = "write" },
        { path = root .. "/at", source = other, access = "write" },
        { path = root .. "/at/a/b/secret", access = "deny" },
      },
    })
    local options = { cwd = root }
    assert.is_false(inside.succeeds(policy, "cat at/a/b/secret", options))
    assert.is_false(inside.succeeds(policy, "mv at/a at/a2", options))
    assert.is_true(inside.succeeds(policy, "echo x > at/new", options))
    assert.equal("x\n", support.read(other .. "/new"))
  end)

  it("are refused about something missing, unless nothing could make it", function()
    for _, access in ipairs { "read", "write" } do
      local policy = inside.policy(nil, {
        { path = root .. "/at", source = other, access = access },
        { path = root .. "/at/a/missing", access = "deny" },
      })
      local result, err = sandbox.run({ "/bin/true" }, { policy = policy, cwd = "/" })
      if access == "read" then
        assert.is_truthy(result, tostring(err))
      else
        assert.equal("policy", err.kind)
        assert.matches(root .. "/at/a/missing", tostring(err), 1, true)
      end
      assert.same({ "b", "kept" }, support.list(other .. "/a"))
    end
  end)

  it("do not show the host's sockets elsewhere", function()
    local server = assert(io.popen(support.python .. [[ -c '
import socket, sys
s = socket.socket(socket.AF_UNIX)
s.bind(sys.argv[1])
s.listen()
sys.stdin.read()' ]] .. other .. "/socket", "w"))
    assert.is_true(support.eventually(function() return support.exists(other .. "/socket") end))
    local policy = inside.policy(nil, { { path = root .. "/at", source = other, access = "read" } },
      { unix_sockets = "internal" })
    local found = inside.output(policy, "stat -c %F at/socket " .. other .. "/socket", { cwd = root })
    server:close()
    assert.equal("regular empty file\nregular empty file", found)
  end)
end)

describe("a name that nobody can make now", function()
  local root, sub

  before_each(function()
    root = support.tempdir()
    sub = root .. "/sub"
    support.write(sub .. "/file", "file\n")
    support.write(sub .. "/below/file", "file\n")
  end)

  local function mode(path, ...)
    return support.must("chmod", ..., "--", path)
  end

  it("cannot be made by changing its directory's mode", function()
    support.skip_unless(not support.is_root, "root can write every directory")
    for _, access in ipairs { "deny", "read" } do
      for _, given in ipairs { root, sub } do
        mode(sub, "555")
        local policy = inside.policy(given, { { path = sub .. "/missing", access = access } })
        local options = { cwd = sub }
        for _, script in ipairs { "chmod u+w .; mkdir missing", "chmod u+w .; ln -s /etc missing", "mv ../sub ../other",
          "chmod u+w .; mv below missing", "mkdir missing" } do
          assert.is_false(inside.succeeds(policy, script, options), script)
        end
        assert.equal("ok", inside.output(policy,
          "cat file >/dev/null && echo x > file && echo y > below/file && echo z > below/new && rm below/new && echo ok",
          options))
        assert.same({ "below", "file" }, support.list(sub))
        assert.equal("x\n", support.read(sub .. "/file"))
        assert.equal("555", support.must("stat", "-c", "%a", sub))
        mode(sub, "755")
      end
    end
  end)

  it("leaves narrower rules in its directory as they are", function()
    support.skip_unless(not support.is_root, "root can write every directory")
    mode(sub, "555")
    local policy = inside.policy(root, {
      { path = sub .. "/missing", access = "deny" }, { path = sub .. "/file", access = "deny" },
      { path = sub .. "/below/file", access = "read" },
    })
    for _, script in ipairs { "cat file", "echo x > below/file", "mv below b", "chmod u+w .", "mkdir -p missing" } do
      assert.is_false(inside.succeeds(policy, script, { cwd = sub }), script)
    end
    assert.is_true(inside.succeeds(policy, "echo x > below/new && cat below/file", { cwd = sub }))
    mode(sub, "755")
  end)

  it("is refused where what is in its directory cannot be told", function()
    support.skip_unless(not support.is_root, "root can write every directory")
    mode(sub, "111")
    local policy = inside.policy(root, { { path = sub .. "/missing", access = "deny" } })
    local result, err = sandbox.run({ "/bin/true" }, { policy = policy, cwd = "/" })
    mode(sub, "755")
    assert.is_nil(result)
    assert.equal("policy", err.kind)
    assert.matches(sub, tostring(err), 1, true)
  end)

  it("is refused below a file, whatever the file's mode", function()
    support.skip_unless(not support.is_root, "root can write every file")
    mode(sub .. "/file", "444")
    local policy = inside.policy(root, { { path = sub .. "/file/missing", access = "deny" } })
    local result, err = sandbox.run({ "/bin/true" }, { policy = policy, cwd = root })
    assert.is_nil(result)
    assert.equal("policy", err.kind)
  end)
end)

describe("a minimal root", function()
  local root, policy

  before_each(function()
    root = support.tempdir()
    support.write(root .. "/file", "content\n")
    policy = assert(sandbox.policy {
      rules = { { special = "minimal", access = "read" }, { path = root, access = "write" } },
    })
  end)

  it("has only what is granted", function()
    assert.equal("content", inside.output(policy, "cat file", { cwd = root }))
    for _, path in ipairs { "/root", "/home", "/boot", "/srv", "/sys", "/etc/shadow", "/etc/hostname", "/opt" } do
      assert.is_false(inside.succeeds(policy, "ls " .. path, { cwd = root }), path)
    end
    assert.is_false(inside.succeeds(policy, "ls /var/tmp", { cwd = root }))
  end)

  it("does not let a write to an undeclared path vanish", function()
    for _, path in ipairs { "/new", "/var/new", "/var/tmp/new", "/etc/new", "/usr/new", "/dev/new", "/home/new", "/tmp/new" } do
      assert.is_false(inside.succeeds(policy, "echo x > " .. path, { cwd = root }), path)
      assert.is_false(inside.succeeds(policy, "mkdir -p " .. path, { cwd = root }), path)
    end
    assert.is_true(inside.succeeds(policy, "echo x > new", { cwd = root }))
    assert.equal("x\n", support.read(root .. "/new"))
  end)
end)

describe("denies below the system's own directories", function()
  it("hide parts of /proc, /sys, /dev and /run", function()
    local policy = inside.policy(nil, {
      { path = "/proc/cpuinfo", access = "deny" }, { path = "/sys/kernel", access = "deny" },
      { path = "/dev/shm", access = "deny" }, { path = "/dev/zero", access = "deny" }, { path = "/run", access = "deny" },
    })
    for _, script in ipairs { "cat /proc/cpuinfo", "ls /sys/kernel", "ls /dev/shm", "echo x > /dev/shm/x",
      "head -c 1 /dev/zero | grep -q .", "ls /run" } do
      assert.is_false(inside.succeeds(policy, script, { cwd = "/" }), script)
    end
    assert.is_true(inside.succeeds(policy, "cat /proc/self/stat >/dev/null && ls /sys >/dev/null", { cwd = "/" }))
  end)
end)

describe("mounts of the host below a granted root", function()
  it("keep their content, and a read grant is read-only on each of them", function()
    local policy = inside.policy()
    assert.is_true(inside.succeeds(policy, "test -d /sys/kernel && test -d /proc/self"))
    assert.equal("0", inside.output(policy,
      [[awk '$5 !~ "^/(dev|proc)(/|$)" && $6 !~ /(^|,)ro(,|$)/' /proc/self/mountinfo | wc -l]]))
  end)
end)

describe("what the host mounts during a run", function()
  it("does not appear below a read grant", function()
    local root = support.tempdir()
    support.mkdir(root .. "/shared/point")
    support.mkdir(root .. "/signal")
    local host = support.write(support.tempdir() .. "/host.lua", ([[
      local sandbox = require "execsandbox"
      local root = %q
      local policy = assert(sandbox.policy { rules = { { special = "root", access = "read" },
        { path = root .. "/signal", access = "write" } } })
      local run = assert(sandbox.start({ "/bin/sh", "-c",
        "touch signal/ready; while ! [ -e signal/go ]; do sleep 0.02; done; ls shared/point; echo x > shared/point/new" },
        { policy = policy, cwd = root, timeout = 30, backend_options = { mounts = "inner" } }))
      while not io.open(root .. "/signal/ready") do assert(not run:poll()) end
      os.execute("mount -t tmpfs none " .. root .. "/shared/point && touch " .. root .. "/shared/point/seen "
        .. root .. "/signal/go")
      local result = run:wait()
      io.write(result.output, result.exit_code)
    ]]):format(root))
    local script = ("mount --bind %s %s && mount --make-rshared %s && exec %s %s"):format(root, root, root, support.lua, host)
    assert.equal("2", (support.shell("unshare -rm sh -c " .. quote(script))))
  end)
end)

describe("paths of every kind", function()
  it("are granted and denied: spaces, quotes, newlines, backslashes, globs, dashes, bytes, long names", function()
    local root = support.tempdir()
    local names = { "with space", "quote'\"quote", "new\nline", "back\\slash", "glob*[a]?", "-dash", "--bind",
      "b\255\254tes", ("n"):rep(200) .. "/" .. ("m"):rep(200) }
    for _, name in ipairs(names) do
      local directory = root .. "/" .. name
      support.write(directory .. "/secret", "secret\n")
      support.write(directory .. "/open", "open\n")
      local policy = inside.policy(directory, { { path = directory .. "/secret", access = "deny" } })
      local result = inside.sh(policy, "cat open; echo new > created; cat secret", { cwd = directory })
      assert.matches("^open\n", result.output, nil, name)
      assert.is_true(result.exit_code ~= 0, name)
      assert.equal("new\n", support.read(directory .. "/created"), name)
    end
  end)

  it("may be 4,000 bytes long", function()
    local root = support.tempdir()
    local part = ("d"):rep(240)
    local path = root
    while #path + #part + 1 < 3990 do path = path .. "/" .. part end
    path = path .. "/" .. ("e"):rep(3999 - #path - 1)
    support.must("mkdir", "-p", path)
    local policy = inside.policy(path)
    local result = inside.sh(policy, "echo x > f && cat f", { cwd = path })
    assert.equal("x\n", result.output)
  end)
end)
