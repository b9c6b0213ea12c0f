-- The environment of the command, and who else sees it (case 56).
local sandbox = require "execsandbox"
local inside = require "spec.support.inside"
local support = require "spec.support"

local quote = support.quote

local policy
local this = (support.read "/proc/self/stat"):match "^%d+"

setup(function() policy = inside.policy() end)

-- The environment that a command has with `options`, as a table. `env -0` ends each with NUL.
local function seen(options)
  local given = { policy = policy, cwd = "/", timeout = 60 }
  for name, value in pairs(options or {}) do given[name] = value end
  local result = assert(sandbox.run({ "/usr/bin/env", "-0" }, given))
  assert.equal(0, result.exit_code, result.error_output)
  local values = {}
  for entry in result.output_capture:read():gmatch "(%Z+)" do
    local name, value = entry:match "^([^=]*)=(.*)$"
    assert.is_nil(values[name], name)
    values[name] = value
  end
  return values
end

-- What a Lua host prints that the shell starts with `environment` (words like NAME=value).
local function host(environment, script, ...)
  local file = support.write(support.tempdir() .. "/host.lua", [[
    local sandbox = require "execsandbox"
    local policy = assert(sandbox.read_only { hide_home = false })
    local function show(options)
      options.policy, options.cwd = policy, "/"
      local result = assert(sandbox.run({ "/usr/bin/env" }, options))
      local lines = {}
      for line in result.output:gmatch "[^\n]+" do
        if not line:find "^LUA_" then lines[#lines + 1] = line end
      end
      table.sort(lines)
      print(table.concat(lines, " "))
    end
  ]] .. script:format(...))
  return support.must(("env -i LUA_PATH=%s LUA_CPATH=%s %s %s %s"):format(quote(os.getenv "LUA_PATH"),
    quote(os.getenv "LUA_CPATH"), environment, quote(support.must("command -v " .. quote(support.lua))), quote(file)))
end

describe("the environment", function()
  it("is the host's without options", function()
    assert.equal("A=1 B=two words EMPTY= PATH=/usr/bin:/bin",
      host("PATH=/usr/bin:/bin A=1 B='two words' EMPTY=", "show {}"))
  end)

  it("is empty when cleared, and then has what is given", function()
    assert.same({}, seen { clear_env = true })
    assert.same({ ONE = "1", TWO = "2" }, seen { clear_env = true, env = { ONE = "1", TWO = "2" } })
  end)

  it("has the baseline and what is passed on by name and by pattern", function()
    local environment = "PATH=/usr/bin:/bin HOME=/root LANG=C LC_ALL=C LC_TIME=C TERM=dumb TZ=UTC USER=me LOGNAME=me "
      .. "SHELL=/bin/sh TMPDIR=/tmp CI=1 CI_JOB=2 CI_=3 XCI_JOB=4 ci_job=5 SECRET=6 PATHS=7 LC=8 A.B=9 AxB=10"
    local baseline = "HOME=/root LANG=C LC_ALL=C LC_TIME=C LOGNAME=me PATH=/usr/bin:/bin SHELL=/bin/sh TERM=dumb "
      .. "TMPDIR=/tmp TZ=UTC USER=me"
    assert.equal(baseline, host(environment, "show { pass_env = {} }"))
    assert.equal(baseline, host(environment, "show { pass_env = {}, clear_env = true }"))
    assert.equal("CI_=3 CI_JOB=2 " .. baseline, host(environment, "show { pass_env = { 'CI_*' } }"))
    assert.equal("CI=1 " .. baseline, host(environment, "show { pass_env = { 'CI', 'NOT_SET' } }"))
    assert.equal("CI=1 CI_=3 CI_JOB=2 " .. baseline, host(environment, "show { pass_env = { 'CI*' } }"))
    assert.equal("A.B=9 " .. baseline, host(environment, "show { pass_env = { 'A.B' } }"))
    assert.equal("CI_JOB=2 " .. baseline:gsub("LOGNAME", "LOGNAME") .. " XCI_JOB=4",
      host(environment, "show { pass_env = { '*_JOB' } }"))
  end)

  it("has what is set, over what is inherited, and not what is unset", function()
    assert.equal("A=new NEW=1 PATH=/usr/bin:/bin",
      host("PATH=/usr/bin:/bin A=old B=gone", "show { env = { A = 'new', B = false, NEW = '1', NOT_SET = false } }"))
    assert.equal("HOME=/else PATH=/usr/bin:/bin",
      host("PATH=/usr/bin:/bin HOME=/root TERM=x", "show { pass_env = {}, env = { HOME = '/else', TERM = false } }"))
  end)

  it("takes values of any bytes, but NUL", function()
    local all = {}
    for byte = 1, 255 do all[byte] = string.char(byte) end
    local values = { EQUALS = "a=b=c", LEADING = "=", NEWLINE = "a\nb\n", EMPTY = "", SPACE = " ", QUOTES = [["'`$x\]],
      ALL = table.concat(all), LONG = ("x"):rep(100000), ["odd name!"] = "1", ["1"] = "digit" }
    local given = { clear_env = true, env = values }
    assert.same(values, seen(given))
  end)

  it("is the same for a direct run", function()
    local direct = assert(sandbox.unrestricted {})
    assert.same({ ONE = "a=b\n" }, seen { policy = direct, clear_env = true, env = { ONE = "a=b\n" } })
  end)

  it("decides where the program is looked for", function()
    local directory = support.tempdir()
    support.write(directory .. "/tool", "#!/bin/sh\necho mine\n", "755")
    local result = assert(sandbox.run({ "tool" }, { policy = policy, cwd = "/", env = { PATH = directory } }))
    assert.equal("mine\n", result.output)
    -- As execvp(3) where there is no PATH.
    result = assert(sandbox.run({ "env" }, { policy = policy, cwd = "/", clear_env = true }))
    assert.equal("", result.output)
  end)

  it("gives no exported function and no bookkeeping of ours", function()
    for name in pairs(seen()) do assert.is_true(os.getenv(name) ~= nil, name) end
  end)
end)

describe("LD_PRELOAD", function()
  local directory, log, library

  -- A library that writes the name of each program it is loaded into.
  setup(function()
    directory = support.tempdir()
    log, library = directory .. "/log/names", directory .. "/log/preload.so"
    support.write(directory .. "/preload.c", ([[
      #define _GNU_SOURCE
      #include <errno.h>
      #include <fcntl.h>
      #include <stdio.h>
      #include <string.h>
      #include <unistd.h>
      __attribute__((constructor)) static void loaded(void)
      {
        int fd = open(%q, O_WRONLY | O_CREAT | O_APPEND, 0600);
        dprintf(fd, "%%s\n", program_invocation_short_name);
        close(fd);
      }]]):format(log))
    support.mkdir(directory .. "/log")
    support.must(("%s -shared -fPIC -o %s %s"):format(os.getenv "CC" or "cc", quote(library), quote(directory .. "/preload.c")))
  end)

  before_each(function() os.remove(log) end)

  it("for the command acts in the sandbox and nowhere else", function()
    local result = assert(sandbox.run({ "/bin/sh", "-c", "/bin/cat /dev/null" }, {
      policy = inside.policy(directory .. "/log"), cwd = "/", env = { LD_PRELOAD = library } }))
    assert.equal(0, result.exit_code)
    assert.equal("", result.error_output)
    assert.equal("sh\ncat\n", support.read(log))
  end)

  it("of the host's own acts in no program that contains the command", function()
    -- The sanitizers' interpreter minds a library that comes before theirs.
    local environment = "ASAN_OPTIONS=verify_asan_link_order=0 PATH=/usr/bin:/bin LD_PRELOAD=" .. quote(library)
    local output = host(environment, [[
      policy = assert(sandbox.policy { rules = { { special = "root", access = "read" }, { path = %q, access = "write" } } })
      os.remove(%q)
      show { env = { LD_PRELOAD = false, ASAN_OPTIONS = false } }]], directory .. "/log", log)
    assert.equal("PATH=/usr/bin:/bin", output)
    assert.is_nil(support.read(log))
  end)

  it("that names nothing is complained of by the command alone", function()
    local result = assert(sandbox.run({ "/bin/cat" }, { policy = policy, cwd = "/", env = { LD_PRELOAD = "/nonexistent/x.so" } }))
    assert.equal("", result.output)
    assert.equal(1, select(2, result.error_output:gsub("/nonexistent/x.so", "")), result.error_output)
    assert.equal(0, result.exit_code)
  end)
end)

describe("BASH_ENV", function()
  it("acts in the sandbox and nowhere else", function()
    support.skip_unless(support.exists "/bin/bash", "there is no bash here")
    local directory, wrapper = support.tempdir(), support.tempdir() .. "/bwrap"
    support.write(directory .. "/env", "echo \"$1\" >>" .. quote(directory .. "/log") .. "\n")
    support.write(wrapper, "#!/bin/bash\nexec " .. quote(support.must "command -v bwrap") .. " \"$@\"\n", "755")
    local output = host(("PATH=/usr/bin:/bin ENV=%s BASH_ENV=%s EXECSANDBOX_BWRAP=%s"):format(quote(directory .. "/env"),
      quote(directory .. "/env"), quote(wrapper)), [[
      policy = assert(sandbox.policy { rules = { { special = "root", access = "read" }, { path = %q, access = "write" } } })
      local result = assert(sandbox.run({ "/bin/bash", "-c", "exit 7", "name", "inside" }, { policy = policy, cwd = "/" }))
      print(result.exit_code)]], directory)
    assert.equal("7", output)
    assert.equal("inside\n", support.read(directory .. "/log"))
  end)
end)

describe("what is private", function()
  -- Every process whose command line or environment holds `text`: "cmdline PID", "environ PID".
  local function places(text)
    local found = {}
    for _, pid in ipairs(support.list "/proc") do
      if pid:match "^%d+$" then
        for _, name in ipairs { "cmdline", "environ" } do
          local content = support.read(("/proc/%s/%s"):format(pid, name))
          if content and content:find(text, 1, true) then found[#found + 1] = name .. " " .. pid end
        end
      end
    end
    return found
  end

  it("in the environment or the input is on no command line, and in nobody's environment but the command's", function()
    for _, used in ipairs { policy, assert(sandbox.unrestricted {}) } do
      local root = support.tempdir()
      local secret, input = ("env-%s-%d"):format(this, math.random(1e9)), ("input-%s-%d"):format(this, math.random(1e9))
      local run = assert(sandbox.start({ "/bin/sh", "-c", "echo ready; until [ -e go ]; do sleep 0.02; done; cat" }, {
        policy = used, cwd = root, timeout = 60, stdin = input, env = { SECRET = secret, [secret] = "name" } }))
      -- From the first moment on.
      repeat
        for _, place in ipairs(places(secret)) do assert.matches("^environ ", place) end
        assert.same({}, places(input))
      until run:output() == "ready\n"
      local command = assert(support.eventually(function() return run:pid() end))
      for _, place in ipairs(places(secret)) do
        local pid = tonumber(place:match "^environ (%d+)$")
        assert.is_truthy(pid, place)
        -- The command, or its sleep.
        local parent = (support.read("/proc/" .. pid .. "/stat") or ""):match ".*%) %S (%d+)"
        assert.is_true(pid == command or parent == nil or tonumber(parent) == command, place)
      end
      assert.same({}, places(input))
      support.write(root .. "/go")
      assert.equal("ready\n" .. input, assert(run:wait(30)).output)
    end
  end)

  it("in the policy is on no command line", function()
    local root = support.tempdir()
    local name = ("hidden-%s-%d"):format(this, math.random(1e9))
    support.write(root .. "/" .. name)
    local run = assert(sandbox.start({ "/bin/sh", "-c", "echo ready; exec sleep 60" }, {
      policy = inside.policy(root, { { path = root .. "/" .. name, access = "deny" } }), cwd = "/" }))
    assert.is_true(support.eventually(function() return run:output() == "ready\n" end))
    assert.same({}, places(name))
    run:close()
  end)
end)
