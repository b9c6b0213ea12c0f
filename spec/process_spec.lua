-- Processes and the kernel's surface (cases 26 to 35).
local sandbox = require "execsandbox"
local inside = require "spec.support.inside"
local support = require "spec.support"

describe("namespaces", function()
  local policy

  setup(function() policy = inside.policy() end)

  it("of processes, IPC, host name and users are the sandbox's own", function()
    for _, name in ipairs { "pid", "ipc", "uts", "user", "mnt", "net" } do
      local link = "/proc/self/ns/" .. name
      assert.not_equal(support.must("readlink", link), inside.output(policy, "readlink " .. link), name)
    end
  end)

  it("show only the sandbox's processes", function()
    local pids = inside.output(policy, "ls /proc | grep -c '^[0-9]'")
    assert.is_true(tonumber(pids) <= 5, pids)
  end)

  it("keep the host's processes out of reach", function()
    local host = (support.read "/proc/self/stat"):match "^%d+"
    assert.is_false(inside.succeeds(policy, "kill -0 " .. host .. " 2>/dev/null && [ -d /proc/" .. host .. " ]"))
    for _, script in ipairs { "ls /proc/1/root/", "cat /proc/1/environ", "readlink /proc/1/fd/*", "cat /proc/1/mem",
      "cat /proc/1/maps", "readlink /proc/1/exe", "kill -KILL 1; sleep 0.1; false", "echo x > /proc/sysrq-trigger",
      "cat /proc/kcore", "echo x > /proc/sys/kernel/hostname" } do
      assert.is_false(inside.succeeds(policy, script), script)
    end
  end)

  it("keep the kernel's files read-only, which belong to root even without a capability", function()
    for _, isolate in ipairs { true, false } do
      local spec = inside.policy(nil, nil, { isolate_processes = isolate })
      for _, name in ipairs { "core_pattern", "hostname", "modprobe", "panic" } do
        local path = "/proc/sys/kernel/" .. name
        assert.is_false(inside.succeeds(spec, ("value=$(cat %s) && echo \"$value\" > %s"):format(path, path)), path)
      end
      -- ns_last_pid has a mode for everybody, and takes a capability to write.
      assert.equal("", inside.output(spec, [[
        find /proc/sys /proc/irq /proc/bus /proc/fs /proc/tty /proc/driver /proc/acpi /proc/sysrq-trigger \
          -type f -writable ! -name ns_last_pid 2>/dev/null | head -n 3]]))
    end
  end)

  it("of processes can be left out, and then the host's are seen", function()
    local shared = inside.policy(nil, nil, { isolate_processes = false })
    local host = (support.read "/proc/self/stat"):match "^%d+"
    assert.is_true(inside.succeeds(shared, "[ -d /proc/" .. host .. " ]"))
    assert.equal(support.must("readlink", "/proc/self/ns/pid"), inside.output(shared, "readlink /proc/self/ns/pid"))
  end)

  it("work without any /proc", function()
    local bare = inside.policy(nil, nil, { mount_proc = false })
    assert.is_false(inside.succeeds(bare, "ls /proc/self"))
    assert.is_false(inside.succeeds(bare, "ls /proc"))
    assert.equal("ok", inside.output(bare, "echo ok"))
  end)
end)

describe("privileges", function()
  it("are none: no capability of any kind, no_new_privs set", function()
    local status = inside.output(inside.policy(), "grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status")
    for _, name in ipairs { "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb" } do
      assert.equal("0000000000000000", status:match(name .. ":%s*(%x+)"), name)
    end
    assert.equal("1", status:match "NoNewPrivs:%s*(%d)")
    assert.equal("2", status:match "Seccomp:%s*(%d)")
  end)

  it("do not suffice to mount, unmount, make nodes, change root or make namespaces", function()
    local root = support.tempdir()
    local policy = inside.policy(root, { { path = root .. "/denied", access = "deny" } })
    support.mkdir(root .. "/denied")
    for _, script in ipairs { "umount " .. root .. "/denied", "mount -t tmpfs none " .. root, "mount --bind / " .. root,
      "mknod node c 1 3", "chroot / true", "unshare -U true", "unshare -m true", "unshare -r true", "unshare -n true" } do
      assert.is_false(inside.succeeds(policy, "PATH=$PATH:/usr/sbin:/sbin; " .. script, { cwd = root }), script)
    end
  end)
end)

describe("system calls", function()
  local function attack(name)
    local result = assert(sandbox.run({ support.attack(name) },
      { policy = inside.policy(), merge_output = true, timeout = 60, cwd = "/" }))
    assert.equal(0, result.exit_code, name .. ": " .. result.output)
    return result.output
  end

  -- The lines "NAME ANSWER": each must be a refusal, but for the names in `allowed`.
  local function all_refused(output, allowed)
    local count = 0
    for name, answer in output:gmatch "([^\n]+) (%w+)\n" do
      count = count + 1
      local passes = name:find(allowed or "^$") ~= nil
      assert.equal(not passes, answer ~= "0" and answer ~= "allow", name .. " " .. answer)
    end
    return count
  end

  it("of the refused list fail by their own numbers and by those of x32", function()
    support.skip_unless(support.has_attack "syscalls", "the attack programs are not for this machine")
    local output = attack "syscalls"
    assert.is_true(all_refused(output) > 60)
    assert.matches("native ptrace 1\n", output, 1, true)
    assert.matches("native clone3 38\n", output, 1, true)
  end)

  it("of the refused list fail through i386 numbering", function()
    support.skip_unless(support.has_attack "i386", "the attack programs are not for this machine")
    local _, status = support.shell(support.attack "i386")
    support.skip_unless(status == 0, "this kernel runs no i386 calls; the filter itself is asked in another spec")
    assert.is_true(all_refused(attack "i386", "^getpid$") > 20)
  end)

  it("of the refused list are refused by the filter for i386 and x32 numbers", function()
    support.skip_unless(support.has_attack "filter_i386", "the attack programs are not for this machine")
    local output = support.must(support.attack "filter_i386")
    assert.is_true(all_refused(output .. "\n", "^ok_") > 60)
  end)

  it("that put words into a terminal fail, with anything in the upper half of the request", function()
    local output = attack "tiocsti"
    assert.matches("^control 0\n", output)
    assert.equal(6, select(2, output:gsub("\n", "")), output)
    all_refused(output, "^control$")
  end)
end)

describe("descriptors", function()
  it("are 0, 1 and 2, none of them a socket, whatever the host had open", function()
    local open = {}
    for i = 1, 20 do open[i] = assert(io.open("/etc/passwd")) end
    local output = inside.output(inside.policy(), "ls /proc/self/fd; for f in 0 1 2; do readlink /proc/self/fd/$f; done")
    for _, file in ipairs(open) do file:close() end
    -- ls itself has one more, for the directory.
    assert.matches("^0\n1\n2\n3\n[^\n]+\n[^\n]+\n[^\n]+$", output)
    assert.not_matches("socket", output)
  end)
end)

describe("the command", function()
  local policy

  setup(function() policy = inside.policy() end)

  it("is not PID 1, so that a signal it sends itself ends it, and the result says so", function()
    assert.equal("no", inside.output(policy, "[ $$ = 1 ] || echo no"))
    for _, case in ipairs { { "TERM", 15 }, { "KILL", 9 }, { "HUP", 1 }, { "SEGV", 11 } } do
      local result = inside.sh(policy, "kill -" .. case[1] .. " $$")
      assert.equal("exited", result.status)
      assert.equal(case[2], result.signal)
      assert.is_nil(result.exit_code)
    end
  end)

  it("has exit codes that are never taken for signals or failures of ours", function()
    for _, code in ipairs { 0, 1, 2, 125, 126, 127, 128, 137, 143, 255 } do
      local result = inside.sh(policy, "exit " .. code)
      assert.equal("exited", result.status)
      assert.equal(code, result.exit_code)
      assert.is_nil(result.signal)
    end
  end)

  it("has its orphans reaped while it runs", function()
    assert.equal("0", inside.output(policy,
      "for i in 1 2 3; do (true &) ; done; sleep 0.2; grep -l '^State:.Z' /proc/[0-9]*/status | wc -l"))
  end)

  it("takes everything with it: daemons, other sessions, stopped ones, ones that ignore TERM", function()
    local mark = "31" .. tostring(math.random(100000, 999999))
    local result = inside.sh(policy, ([[
      (setsid sh -c 'trap "" TERM HUP; sleep %s' >/dev/null 2>&1 </dev/null &)
      (sleep %s >/dev/null 2>&1 & kill -STOP $!)
      sh -c '(sleep %s >/dev/null 2>&1 &) &'
      echo started]]):format(mark, mark, mark))
    assert.equal("started\n", result.output)
    assert.is_true(result.descendants_killed)
    assert.same({}, support.processes(mark))
  end)
end)

describe("limits", function()
  it("stop a fork bomb at `processes`", function()
    support.skip_unless(sandbox.supported "resource_limits", "no pids cgroup can be written here")
    local policy = inside.policy(nil, nil, { limits = { processes = 12 } })
    local result = inside.sh(policy, "i=0; while [ $i -lt 40 ]; do sleep 5 & i=$((i+1)); done; wait", { timeout = 20 })
    assert.matches("[Cc]annot fork", result.output)
    assert.equal("10", inside.output(policy, [[
      python=$(command -v /usr/bin/python3) && exec "$python" -c '
import os
n = 0
try:
    while n < 40:
        if os.fork() == 0:
            os.execv("/bin/sleep", ["sleep", "5"])
        n += 1
except OSError:
    pass
print(n - 1)']]))
  end)

  it("stop an allocator at `memory_bytes`", function()
    local policy = inside.policy(nil, nil, { limits = { memory_bytes = 128 * 1024 * 1024 } })
    assert.is_false(inside.succeeds(policy, support.python .. " -c 'x = bytearray(512 << 20)'"))
    assert.is_true(inside.succeeds(policy, support.python .. " -c 'x = bytearray(8 << 20)'"))
  end)

  it("stop a writer at `file_size_bytes`", function()
    local root = support.tempdir()
    local policy = inside.policy(root, nil, { limits = { file_size_bytes = 4096 } })
    local result = inside.sh(policy, "head -c 100000 /dev/zero > file", { cwd = root })
    assert.is_true(result.exit_code ~= 0 or result.signal ~= nil)
    assert.equal(4096, #support.read(root .. "/file"))
  end)

  it("stop a loop at `cpu_seconds`", function()
    local policy = inside.policy(nil, nil, { limits = { cpu_seconds = 1 } })
    local result = inside.sh(policy, "while :; do :; done", { timeout = 30 })
    assert.is_truthy(result.signal == 24 or result.signal == 9)
  end)

  it("stop descriptors at `open_files`", function()
    local policy = inside.policy(nil, nil, { limits = { open_files = 17 } })
    assert.equal("17", inside.output(policy, "ulimit -n"))
  end)

  it("let no core file be written", function()
    assert.equal("0 0", inside.output(inside.policy(), "echo $(ulimit -c) $(ulimit -H -c)"))
    local root = support.tempdir()
    for _, policy in ipairs { inside.policy(root), assert(sandbox.policy { filesystem = "unrestricted", network = "enabled" }) } do
      local result = inside.sh(policy, "kill -SEGV $$", { cwd = root })
      assert.equal(11, result.signal)
      assert.same({}, support.list(root))
    end
    assert.equal("8", inside.output(inside.policy(nil, nil, { limits = { core_bytes = 4096 } }), "ulimit -c"))
  end)

  it("stop one fork bomb, in one run, of which nothing is left", function()
    support.skip_unless(sandbox.supported "resource_limits", "no pids cgroup can be written here")
    local bomb = assert(sandbox.start({ "/bin/sh", "-c", "b() { b | b & }; b; exec sleep 60" },
      { policy = inside.policy(nil, nil, { limits = { processes = 20 } }), cwd = "/", merge_output = true, timeout = 60 }))
    assert.is_true(support.eventually(function() return bomb:output():find "[Cc]annot fork" end, 20) ~= nil)
    -- The limit is the run's own: another has all of its processes, under the same number.
    local other = inside.policy(nil, nil, { limits = { processes = 20 } })
    assert.equal("1 2 3", inside.output(other, "for i in 1 2 3; do sleep 0.01 & done; wait; echo 1 2 3"))
    bomb:close()
    assert.same({}, support.descendants())
  end)

  it("kill a loop that ignores the signal of `cpu_seconds`", function()
    local policy = inside.policy(nil, nil, { limits = { cpu_seconds = 1 } })
    local result = inside.sh(policy, "trap '' XCPU; while :; do :; done", { timeout = 60 })
    assert.equal(9, result.signal)
    assert.equal("exited", result.status)
  end)

  it("fail the command that meets them, and nothing that stays below", function()
    local root = support.tempdir()
    local policy = inside.policy(root, nil, { limits = { file_size_bytes = 4096, open_files = 17, memory_bytes = 2 ^ 28,
      cpu_seconds = 60 } })
    assert.equal("4096 17 262144 60",
      inside.output(policy, "head -c 4096 /dev/zero >file && echo $(wc -c <file) $(ulimit -n) $(ulimit -v) $(ulimit -t)",
        { cwd = root }))
    -- What is captured is not the command's file: no limit of its own is on it.
    assert.equal(100000, #inside.output(policy, "head -c 100000 /dev/zero"))
  end)

  it("hold without a sandbox as well", function()
    local root = support.tempdir()
    local policy = assert(sandbox.unrestricted { limits = { file_size_bytes = 4096, open_files = 17, cpu_seconds = 60,
      memory_bytes = 2 ^ 28 } })
    assert.equal("17 262144 60", inside.output(policy, "echo $(ulimit -n) $(ulimit -v) $(ulimit -t)", { cwd = root }))
    local result = inside.sh(policy, "head -c 100000 /dev/zero > file", { cwd = root })
    assert.is_true(result.exit_code ~= 0 or result.signal ~= nil)
    assert.equal(4096, #support.read(root .. "/file"))
  end)
end)
