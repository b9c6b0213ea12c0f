-- private_home: a HOME and TMPDIR of the run's own, gone after it.
local sandbox = require "execsandbox"
local inside = require "spec.support.inside"
local support = require "spec.support"

local quote = support.quote
local this = (support.read "/proc/self/stat"):match "^%d+"
local marks = 0

-- A number of seconds that no other process sleeps for.
local function new_mark()
  marks = marks + 1
  return ("3%s%03d"):format(this, marks)
end

-- Comes first in every script that changes anything: some of them run as root with nothing around
-- them, where a HOME that is not the run's own would be the host's.
local check = [[
case "$HOME $TMPDIR" in
*/execsandbox-home-*/home\ */execsandbox-home-*/tmp) ;;
*) echo "no private home: $HOME $TMPDIR"; exit 99 ;;
esac
]]

local function merge(options, more)
  local given = {}
  for name, value in pairs(options) do given[name] = value end
  for name, value in pairs(more or {}) do given[name] = value end
  return given
end

-- Every way of running there is: a name, the policy for a workspace, and options.
local ways = {}

-- Who mounts makes a difference to the kinds of places there are: most policies have one of them.
local function way(name, make, both)
  for _, mounts in ipairs(both and { "inner", "bwrap" } or { "inner" }) do
    ways[#ways + 1] = { name = name .. ", mounted by " .. mounts, make = make,
      options = { backend_options = { mounts = mounts } } }
  end
end

way("read_only", function(root) return sandbox.read_only { workspace_roots = { root } } end)
way("read_only without hide_home", function() return sandbox.read_only { hide_home = false } end)
way("workspace_write", function(root) return sandbox.workspace_write { workspace_roots = { root } } end, true)
way("workspace_write without temporary directories", function(root)
  return sandbox.workspace_write { workspace_roots = { root }, write_tmpdir = false, write_slash_tmp = false }
end)
way("minimal", function(root)
  return sandbox.policy { rules = { { special = "minimal", access = "read" }, { path = root, access = "write" } } }
end)
way("private_tmp", function(root)
  return sandbox.policy { private_tmp = true, rules = { { special = "root", access = "read" },
    { path = root, access = "write" }, { special = "tmpdir", access = "write" } } }
end)
way("everything above denied", function(root)
  return sandbox.policy { rules = { { special = "root", access = "read" }, { special = "slash_tmp", access = "deny" },
    { special = "tmpdir", access = "deny" }, { path = root, access = "write" } } }
end)
way("unrestricted, isolated", function() return sandbox.unrestricted { network = "isolated" } end)
way("external, isolated", function() return sandbox.external { network = "isolated" } end, true)
way("the host's /dev/shm", function(root)
  return sandbox.policy { rules = { { special = "root", access = "read" }, { path = root, access = "write" },
    { path = "/dev/shm", access = "write", source = support.mkdir(root .. "/shm") } } }
end, true)
way("nested sandboxes allowed", function(root)
  return sandbox.policy { allow_user_namespaces = true,
    rules = { { special = "root", access = "read" }, { special = "slash_tmp", access = "write" },
      { path = root, access = "write" } } }
end)
for _, preset in ipairs { "unrestricted", "external" } do
  ways[#ways + 1] = { name = preset, direct = true, options = {}, make = function() return sandbox[preset] {} end }
end

local function options_for(item, root, more)
  return merge(item.options,
    merge({ policy = assert(item.make(root)), cwd = root, private_home = true, merge_output = true, timeout = 60 }, more))
end

-- Starts `script`, which has said "ready" in the end, and returns the run and its place.
local function started(script, options)
  local run = assert(sandbox.start({ "/bin/sh", "-c", check .. 'dirname "$HOME"; ' .. script }, options))
  assert.is_true(support.eventually(function() return run:output():find "ready\n" ~= nil end, 20), run:output())
  return run, run:output():match "^[^\n]+"
end

local function gone(place)
  assert.matches("/execsandbox%-home%-" .. ("%x"):rep(16) .. "$", place)
  assert.is_false(support.exists(place), place)
end

for _, item in ipairs(ways) do
  describe("a private home (" .. item.name .. ")", function()
    local root

    before_each(function() root = support.tempdir() end)

    local function output(script, more)
      local result, err = sandbox.run({ "/bin/sh", "-c", check .. script }, options_for(item, root, more))
      if not result then error(tostring(err), 2) end
      return (result.output:gsub("\n$", "")), result
    end

    it("is empty, private, writable, and gone afterwards", function()
      local text = output [[
        dirname "$HOME"
        [ "$(dirname "$HOME")" = "$(dirname "$TMPDIR")" ] && [ "$HOME" != "$TMPDIR" ] || echo not together
        for d in "$HOME" "$TMPDIR"; do
          stat -c '%a %u %F' "$d"; ls -A "$d"; ls -A "$d/.."
          echo text > "$d/file" && mkdir "$d/a" && mv "$d/file" "$d/a/b" && ln "$d/a/b" "$d/c" && cat "$d/c"
          printf '#!/bin/sh\necho executed\n' > "$d/x" && chmod +x "$d/x" && "$d/x"
        done
        stat -c %a "$HOME/.."]]
      local each = ("700 %d directory\nhome\ntmp\ntext\nexecuted\n"):format(support.uid)
      local place, rest = text:match "^([^\n]+)\n(.*)$"
      assert.equal(each .. each .. "700", rest)
      gone(place)
    end)

    it("is where programs put what they keep: ~, cd, mktemp, git", function()
      local text = output [[
        cd && [ "$PWD" = "$HOME" ] && echo ~/x | sed "s|^$HOME|home|"
        mktemp | sed "s|^$TMPDIR/.*|tmp|"
        git config --global spec.key value && cat ~/.gitconfig]]
      assert.equal("home/x\ntmp\n[spec]\n\tkey = value", text)
    end)

    it("is another one for each run, which others do not see", function()
      local waiting = 'echo secret > "$HOME/secret"; echo ready; '
        .. 'until [ -e go ]; do sleep 0.02; done; cat "$HOME/secret"; ls "$HOME"'
      local first, one = started(waiting, options_for(item, root))
      local second, other = started(waiting, options_for(item, root))
      assert.is_true(one ~= other)
      if not item.direct then
        assert.equal("", output(("cat %s/home/secret %s/home/secret 2>/dev/null"):format(one, other)))
        for _, place in ipairs { one, other } do
          if support.exists(place) then assert.same({}, support.list(place)) end
        end
      end
      support.write(root .. "/go")
      for _, run in ipairs { first, second } do
        assert.matches("ready\nsecret\nsecret\n$", assert(run:wait(20)).output)
      end
      gone(one)
      gone(other)
    end)

    it("is gone after every ending", function()
      local run, place
      if item.direct or item.name:find "^read_only," then
        run, place = started("echo ready; exec sleep 60", options_for(item, root, { timeout = 2 }))
        assert.equal("timeout", assert(run:wait(20)).status)
        gone(place)
      end
      for _, how in ipairs { "cancel", "close", "collect", "signal" } do
        run, place = started("touch ~/file; echo ready; exec sleep 60", options_for(item, root))
        if how == "cancel" then
          run:cancel()
          run:wait()
        elseif how == "close" then
          run:close()
        elseif how == "signal" then
          run:kill "KILL"
          assert.equal(9, assert(run:wait(20)).signal)
        else
          run = nil -- luacheck: ignore
          collectgarbage()
          collectgarbage()
        end
        gone(place)
      end
    end)

    it("is gone when the helper is killed", function()
      local run, place = started("mkdir -p ~/a/b; touch ~/a/b/c; echo ready; exec sleep 60", options_for(item, root))
      local helper
      for _, pid in ipairs(support.descendants()) do
        local stat = support.read("/proc/" .. pid .. "/stat")
        if stat and stat:match ".*%) %S (%d+)" == this then helper = pid end
      end
      support.must("kill", "-KILL", tostring(helper))
      assert.equal("interrupted", assert(run:wait(20)).status)
      gone(place)
      assert.same({}, support.descendants())
    end)

    it("is in the plan, which makes nothing", function()
      local plan = assert(sandbox.plan({ "/bin/true" }, options_for(item, root)))
      local place = plan.environment.HOME:match "^(.*)/home$"
      assert.equal(place .. "/tmp", plan.environment.TMPDIR)
      local kinds = {}
      for _, mount in ipairs(plan.mounts) do
        if mount.path:sub(1, #place) == place then kinds[#kinds + 1] = mount.kind .. mount.path:sub(#place + 1) end
      end
      assert.same(item.direct and {} or { "private", "directory/home", "directory/tmp" }, kinds)
      local claimed = false
      for _, path in ipairs(plan.cleanup_paths) do claimed = claimed or path == place end
      -- Only where the host's files are around it.
      assert.equal(item.direct or item.name:find "external" ~= nil, claimed)
      gone(place)
    end)

    if not item.direct then
      it("stays where it is", function()
        local text = output [[
          place=$(dirname "$HOME")
          mv "$place" "$place-2" 2>/dev/null && echo moved
          rm -rf "$place" 2>/dev/null
          rmdir "$place" 2>/dev/null && echo removed
          mkdir "$HOME" 2>/dev/null
          echo text > "$HOME/file" && cat "$HOME/file"]]
        assert.equal("text", text)
      end)
    end
  end)
end

describe("the environment of a private home", function()
  local policy = assert(sandbox.read_only {})

  local function environment(more)
    return assert(sandbox.plan({ "/bin/true" }, merge({ policy = policy, cwd = "/", private_home = true }, more))).environment
  end

  it("has HOME and TMPDIR, whatever else says about them", function()
    for _, more in ipairs { {}, { clear_env = true }, { pass_env = { "HOME", "TMPDIR" } },
      { env = { HOME = "/other", TMPDIR = "/other" } }, { env = { HOME = false, TMPDIR = false } } } do
      local values = environment(more)
      assert.matches("/execsandbox%-home%-%x+/home$", values.HOME)
      assert.matches("/execsandbox%-home%-%x+/tmp$", values.TMPDIR)
    end
    assert.equal(os.getenv "HOME", assert(sandbox.plan({ "/bin/true" }, { policy = policy, cwd = "/" })).environment.HOME)
    local off = assert(sandbox.plan({ "/bin/true" }, { policy = policy, cwd = "/", private_home = false }))
    assert.equal(os.getenv "HOME", off.environment.HOME)
  end)

  it("has nothing that leads past them, unless it is asked for", function()
    local script = support.write(support.tempdir() .. "/host.lua", [[
      local sandbox = require "execsandbox"
      local plan = assert(sandbox.plan({ "/bin/true" }, { policy = assert(sandbox.read_only {}), cwd = "/", private_home = true,
        env = { XDG_DATA_HOME = "/asked/for" } }))
      for _, name in ipairs { "TMP", "TEMP", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "OTHER" } do
        io.write(name, "=", tostring(plan.environment[name]), "\n")
      end]])
    assert.equal("TMP=nil\nTEMP=nil\nXDG_CONFIG_HOME=nil\nXDG_CACHE_HOME=nil\n"
      .. "XDG_DATA_HOME=/asked/for\nXDG_STATE_HOME=nil\nOTHER=1",
      support.must("TMP=/t TEMP=/t XDG_CONFIG_HOME=/c XDG_CACHE_HOME=/c XDG_DATA_HOME=/d XDG_STATE_HOME=/s OTHER=1 "
        .. quote(support.lua) .. " " .. quote(script)))
  end)

  it("is wanted by a boolean", function()
    local ok, err = pcall(sandbox.run, { "/bin/true" }, { policy = policy, cwd = "/", private_home = "yes" })
    assert.is_false(ok)
    assert.matches("private_home", err, 1, true)
  end)
end)

describe("rules beside a private home", function()
  it("deny the host's home as before", function()
    local home = os.getenv "HOME"
    local policy = assert(sandbox.read_only {})
    assert.is_false(inside.succeeds(policy, "ls " .. quote(home), { cwd = "/", private_home = true }))
    assert.is_true(inside.succeeds(policy, 'ls "$HOME"', { cwd = "/", private_home = true }))
  end)

  it("deny a home that it lies in", function()
    local home = support.tempdir()
    support.mkdir(home .. "/tmp/sub")
    support.write(home .. "/.secret", "secret")
    local script = support.write(support.tempdir() .. "/host.lua", [[
      local sandbox = require "execsandbox"
      for _, mounts in ipairs { "inner", "bwrap" } do
        local script = "cat " .. os.getenv "HOME" .. "/.secret; echo x > $HOME/x && cat $HOME/x"
        local result, err = sandbox.run({ "/bin/sh", "-c", script },
          { policy = assert(sandbox.read_only {}), cwd = "/", private_home = true, backend_options = { mounts = mounts } })
        io.write(result and result.output or tostring(err) .. "\n")
      end]])
    assert.equal("x\nx", support.must(("HOME=%s TMPDIR=%s %s %s"):format(quote(home), quote(home .. "/tmp/sub"),
      quote(support.lua), quote(script))))
    assert.same({}, support.list(home .. "/tmp/sub"))
  end)

  it("that show another directory around it have its place there", function()
    for _, access in ipairs { "read", "write" } do
      for _, mounts in ipairs { "inner", "bwrap" } do
        local other = support.tempdir()
        local policy = inside.policy(nil, { { path = "/dev/shm", source = other, access = access } })
        local given = { cwd = "/", private_home = true, backend_options = { mounts = mounts } }
        local plan = assert(sandbox.plan({ "/bin/true" }, merge(given, { policy = policy })))
        assert.equal(other .. plan.environment.HOME:match "(/[^/]*)/home$", plan.cleanup_paths[1])
        assert.equal("x", inside.output(policy, 'echo x > "$HOME/x" && cat "$HOME/x"', given))
        assert.same({}, support.list(other))
      end
    end
  end)

  it("about globs do not reach it", function()
    local root = support.tempdir()
    support.write(root .. "/a.key", "x")
    local policy = inside.policy("/tmp", { { glob = "*", access = "deny" } }, { workspace_roots = { root } })
    local given = { cwd = "/", private_home = true }
    assert.equal("text", inside.output(policy, 'echo text > "$HOME/a.key" && cat "$HOME/a.key"', given))
    assert.is_false(inside.succeeds(policy, "cat " .. root .. "/a.key", given))
  end)
end)

describe("TMPDIR", function()
  -- Runs a host with TMPDIR set as VALUE says for the shell; where the private home is, for both who
  -- mount, and in runs without a /dev of their own: external, and direct.
  local function places(value)
    local script = support.write(support.tempdir() .. "/host.lua", [[
      local sandbox = require "execsandbox"
      local policy = assert(sandbox.policy {
        rules = { { special = "root", access = "read" }, { special = "tmpdir", access = "write" } } })
      local function try(policy, mounts)
        local result, err = sandbox.run({ "/bin/sh", "-c", [=[]] .. check .. [[
          echo x > "$TMPDIR/x" && cat "$TMPDIR/x" >/dev/null && dirname "$(dirname "$HOME")"]=] },
          { policy = policy, cwd = "/", private_home = true, backend_options = { mounts = mounts }, merge_output = true })
        io.write(result and result.output or tostring(err) .. "\n")
      end
      try(policy, "inner")
      try(policy, "bwrap")
      try(assert(sandbox.external { network = "isolated" }))
      try(assert(sandbox.unrestricted {}))]])
    local output = support.must(value .. " " .. quote(support.lua) .. " " .. quote(script))
    local found = {}
    for line in output:gmatch "[^\n]+" do found[#found + 1] = line end
    return found
  end

  local function all(place) return { "/dev/shm", "/dev/shm", place, place } end

  it("is where it is made, where the sandbox has no /dev of its own", function()
    local tmp = support.tempdir()
    assert.same(all(tmp .. "/a b"), places("TMPDIR=" .. quote(support.mkdir(tmp .. "/a b"))))
    assert.same({ "a b" }, support.list(tmp))
    assert.same({}, support.list(tmp .. "/a b"))
  end)

  it("may be a link", function()
    local tmp = support.tempdir()
    support.mkdir(tmp .. "/real")
    support.symlink("real", tmp .. "/link")
    assert.same(all(tmp .. "/real"), places("TMPDIR=" .. quote(tmp .. "/link")))
    assert.same({}, support.list(tmp .. "/real"))
  end)

  it("may be in the sandbox's own /dev/shm", function()
    support.skip_unless(support.shell "[ -d /dev/shm ] && [ -w /dev/shm ]" == "" and support.exists "/dev/shm", "no /dev/shm")
    assert.same(all "/dev/shm", places "TMPDIR=/dev/shm")
  end)

  it("is not needed: unset, empty, relative, missing, a file, or the kernel's own", function()
    local tmp = support.must "cd /tmp && pwd -P"
    local file = support.write(support.tempdir() .. "/file")
    for _, value in ipairs { "env -u TMPDIR", "TMPDIR=", "TMPDIR=spec", "TMPDIR=/nonexistent/x", "TMPDIR=" .. quote(file),
      "TMPDIR=/proc/self", "TMPDIR=/sys" } do
      assert.same(all(tmp), places(value))
    end
  end)

  it("is not used where it may not be written", function()
    local directory = support.tempdir()
    support.must("chmod", "555", directory)
    local tmp = support.must "cd /tmp && pwd -P"
    assert.same(all(support.is_root and directory or tmp), places("TMPDIR=" .. quote(directory)))
  end)

  it("holds nothing after a launch that fails, or is given up", function()
    local tmp = support.tempdir()
    local script = support.write(support.tempdir() .. "/host.lua", [[
      local sandbox = require "execsandbox"
      local function try(policy, mounts, argv, announce)
        local ok, result, err = pcall(sandbox.run, argv, { policy = policy, cwd = "/", private_home = true,
          backend_options = { mounts = mounts }, on_capture_created = announce })
        io.write(ok and err.stage or "raised", "\n")
      end
      local function refuse() error "no" end
      for _, mounts in ipairs { "inner", "bwrap" } do
        try(assert(sandbox.read_only {}), mounts, { "/nonexistent/program" })
        try(assert(sandbox.read_only {}), mounts, { "/bin/true" }, refuse)
      end
      try(assert(sandbox.unrestricted {}), nil, { "/nonexistent/program" })
      try(assert(sandbox.unrestricted {}), nil, { "/bin/true" }, refuse)]])
    local stages = support.must("TMPDIR=" .. quote(tmp) .. " " .. quote(support.lua) .. " " .. quote(script))
    assert.equal(("find-program\nraised\n"):rep(3), stages .. "\n")
    assert.same({}, support.list(tmp))
  end)

  it("that cannot be used, nor /tmp, is an error before anything is launched", function()
    local script = support.write(support.tempdir() .. "/host.lua", [[
      local sandbox = require "execsandbox"
      for _, name in ipairs { "plan", "run", "start" } do
        local result, err = sandbox[name]({ "/bin/true" }, { policy = assert(sandbox.unrestricted {}),
          cwd = "/", private_home = true })
        assert(result == nil)
        io.write(err.kind, " ", err.stage, " ", tostring(err.errno), "\n", tostring(err), "\n")
      end]])
    local directory = support.tempdir()
    -- Where this is a sanitizer's interpreter, its search for leaks takes ptrace.
    local shown = { ASAN_OPTIONS = "detect_leaks=0" }
    -- The checkout may be in a place that a sandbox does not show: all is readable here, nothing writable.
    for _, name in ipairs { "LUA_PATH", "LUA_CPATH" } do shown[name] = os.getenv(name) end
    local text = inside.output(assert(sandbox.policy { rules = { { special = "root", access = "read" } } }),
      quote(support.lua) .. " " .. quote(script), { cwd = "/", env = merge(shown, { TMPDIR = directory }) })
    local lines = {}
    for line in text:gmatch "[^\n]+" do lines[#lines + 1] = line end
    assert.equal(6, #lines, text)
    for i = 1, 5, 2 do
      assert.equal("execution home 30", lines[i])
      assert.matches(directory, lines[i + 1], 1, true)
      assert.matches("/tmp", lines[i + 1], 1, true)
    end
  end)
end)

describe("SIGKILL to the host", function()
  local function killed(policy, bytes, microseconds)
    local tmp, mark = support.tempdir(), new_mark()
    local script = support.write(support.tempdir() .. "/host.lua", ([==[
      local sandbox = require "execsandbox"
      local function say()
        io.stdout:write "."
        io.stdout:flush()
      end
      local policy = assert(%s)
      say()
      local run = assert(sandbox.start({ "/bin/sh", "-c", [[
        %s
        trap '' TERM HUP INT
        (setsid sleep %s &)
        mkdir -p ~/a/b; ln -s / ~/a/b/c; chmod 0 ~/a; : > $TMPDIR/file; echo ready; exec sleep %s]] },
        { policy = policy, cwd = "/", private_home = true, merge_output = true }))
      while run:output() ~= "ready\n" do run:wait(0.0005) end
      say()
      run:wait()]==]):format(policy, check, mark, mark))
    local output, status = support.shell(("TMPDIR=%s %s %d %d %s %s"):format(quote(tmp), quote(support.host "keeper"),
      bytes, microseconds, quote(support.lua), quote(script)))
    assert.equal(0, status, output)
    assert.same({}, support.processes(mark))
    assert.same({}, support.list(tmp))
  end

  for name, policy in pairs { sandboxed = "sandbox.read_only {}", direct = "sandbox.unrestricted {}" } do
    it("leaves no private home of a run that is " .. name, function()
      for step = 0, 9 do killed(policy, 1, step * 900) end
      killed(policy, 2, 0)
      killed(policy, 2, 20000)
    end)
  end

  it("and to the helper leaves none of a direct run", function()
    local tmp, mark = support.tempdir(), new_mark()
    local script = support.write(support.tempdir() .. "/host.lua", ([==[
      local sandbox = require "execsandbox"
      local run = assert(sandbox.start({ "/bin/sh", "-c", [[%s mkdir -p ~/a/b; echo ready; exec sleep %s]] },
        { policy = assert(sandbox.unrestricted {}), cwd = "/", private_home = true, merge_output = true }))
      while run:output() ~= "ready\n" do run:wait(0.0005) end
      local this = io.open "/proc/self/stat":read "*a":match "^%%d+"
      -- The helper is the only child; both get the signal at once, or nearly.
      os.execute("kill -KILL $(ps -o pid= --ppid " .. this .. " | head -n 1) " .. this)]==]):format(check, mark))
    support.shell("TMPDIR=" .. quote(tmp) .. " " .. quote(support.lua) .. " " .. quote(script))
    assert.is_true(support.eventually(function() return #support.processes(mark) == 0 and #support.list(tmp) == 0 end))
  end)
end)

describe("what a direct run leaves in its private home", function()
  local outside, policy

  before_each(function()
    outside = support.tempdir()
    support.write(outside .. "/keep/file", "kept")
    policy = assert(sandbox.unrestricted {})
  end)

  local function run(script, more)
    local result = inside.sh(policy, check .. 'dirname "$HOME"; ' .. script, merge({ cwd = outside, private_home = true }, more))
    return result.output:match "^[^\n]+", result
  end

  local function removed(script, more)
    local place, result = run(script, more)
    gone(place)
    assert.equal("kept", support.read(outside .. "/keep/file"))
    return result
  end

  it("is removed, and what links in it lead to is not", function()
    local result = removed [[
      cd && ln -s "$OLDPWD/keep" link && ln -s "$OLDPWD" .. && ln "$OLDPWD/keep/file" hard && chmod 400 hard
      ln -s / root && ln -s ../.. "$TMPDIR/up" && mkdir d && ln -s "$OLDPWD/keep" d/link && ln -s loop loop
      echo done]]
    assert.matches("done\n$", result.output)
    assert.equal("400", support.must("stat", "-c", "%a", outside .. "/keep/file"))
  end)

  it("is removed whatever its permissions", function()
    removed [[
      mkdir -p ~/a/b/c ~/d ~/e/f && touch ~/a/b/c/file ~/d/file ~/e/f/file
      chmod 000 ~/a/b/c ~/a/b ~/a ~/d ~/e/f && chmod 500 ~/e && chmod 000 ~ && chmod 000 "$TMPDIR" && chmod 000 ~/..]]
  end)

  it("is removed whatever its kind and name", function()
    local result = removed(([[
      cd && mkfifo fifo && %s -c 'import socket; socket.socket(socket.AF_UNIX).bind("socket")'
      touch -- '-rf' ' ' '
' "$(printf '\377\001')" '*' .hidden ..2 && mkdir -- '-d' '...' && touch -- '-d/x' .../x && echo done]]):format(support.python))
    assert.matches("done\n$", result.output)
  end)

  it("is removed however deep: 5,000 directories, and wide", function()
    local result = removed(([[
      %s -c '
import os
os.chdir(os.environ["HOME"])
for i in range(5000):
    os.mkdir("d" * 100); os.chdir("d" * 100); open("f", "w").close()
os.chdir(os.environ["TMPDIR"])
for i in range(300):
    os.makedirs("%%d/a/b" %% i); open("%%d/a/b/c" %% i, "w").close()
print("done")']]):format(support.python))
    assert.matches("done\n$", result.output)
  end)

  it("is removed however deep, under a low limit on descriptors, and without permissions", function()
    removed(([[
      %s -c '
import os
os.chdir(os.environ["HOME"])
for i in range(1000):
    os.mkdir("d"); os.chdir("d")
for i in range(1000):
    os.chdir(".."); os.chmod("d", 0)']]):format(support.python), {
      policy = assert(sandbox.unrestricted { limits = { open_files = 16 } }),
    })
  end)

  it("is left where the command has moved it, and what it has put in its place", function()
    local moved = outside .. "/moved"
    local place = run('touch ~/file; place=$(dirname "$HOME"); mv "$place" ' .. quote(moved)
      .. ' && mkdir "$place" && touch "$place/other"')
    assert.is_true(support.exists(moved .. "/home/file"))
    assert.is_true(support.exists(place .. "/other"))
    support.remove(place)
  end)

  it("is removed when the helper is killed, hostile as it may be", function()
    local handle, place = started([[mkdir -p ~/a/b && ln -s "$PWD/keep" ~/a/b/link && chmod 000 ~/a/b ~/a ~ && chmod 000 ~/..
      echo ready; exec sleep 60]],
      { policy = policy, cwd = outside, private_home = true, merge_output = true })
    for _, pid in ipairs(support.descendants()) do
      local stat = support.read("/proc/" .. pid .. "/stat")
      if stat and stat:match ".*%) %S (%d+)" == this then support.must("kill", "-KILL", tostring(pid)) end
    end
    assert.equal("interrupted", assert(handle:wait(20)).status)
    gone(place)
    assert.equal("kept", support.read(outside .. "/keep/file"))
  end)

  it("stays while descendants do that were to be left", function()
    local mark = new_mark()
    local place, result = run(("touch ~/file; (setsid sleep %s >/dev/null 2>&1 </dev/null &); echo done"):format(mark),
      { descendants = "leave" })
    assert.matches("done\n$", result.output)
    local left = support.eventually(function()
      local found = support.processes(mark)
      return #found == 1 and found
    end)
    assert.is_true(support.exists(place .. "/home/file"))
    support.must("kill", "-KILL", tostring(left[1]))
    assert.is_true(support.eventually(function() return not support.exists(place) end))
    assert.is_true(support.eventually(function() return #support.descendants() == 0 end))
  end)

  it("stays where something is mounted, which is not entered", function()
    support.skip_unless(support.is_root and select(2, support.shell "unshare -m true") == 0, "takes root")
    local directory = support.tempdir()
    -- In a mount namespace of its own, as the mount would be everybody's.
    local script = support.write(support.tempdir() .. "/host.lua", ([==[
      local sandbox = require "execsandbox"
      local result = assert(sandbox.run({ "/bin/sh", "-c", [[%s
        mkdir -p ~/a/mount ~/b && touch ~/b/file && mount --bind %s ~/a/mount && echo mounted; dirname "$HOME"]] },
        { policy = assert(sandbox.unrestricted {}), cwd = "/", private_home = true, merge_output = true }))
      io.write(result.output)]==]):format(check, outside .. "/keep"))
    local output = support.must("TMPDIR=" .. quote(directory) .. " unshare -m " .. quote(support.lua) .. " " .. quote(script))
    support.skip_unless(output:find "mounted", "nothing can be mounted here")
    assert.equal("kept", support.read(outside .. "/keep/file"))
    -- Everything else is removed.
    assert.equal("", support.must("find", directory, "!", "-type", "d"))
  end)
end)
