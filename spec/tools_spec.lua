-- The scripts that set up and run everything else: what they promise a person at a terminal.
local support = require "spec.support"

local quote = support.quote

describe("set-up", function()
  local bin, log

  -- A PATH of a few real tools and pretended ones: `apt-get install` makes the missing program.
  before_each(function()
    bin = support.tempdir()
    log = bin .. "/log"
    for name in ("sh dirname mktemp rm uname tr cat env chmod touch"):gmatch "%a+" do
      support.must("ln -s \"$(command -v " .. name .. ")\" " .. quote(bin .. "/" .. name))
    end
    for _, name in ipairs { "cc", "pkg-config", "musl-gcc", "bwrap", "git" } do
      support.write(bin .. "/" .. name, "#!/bin/sh\nexit 0\n", "755")
    end
  end)

  local function pretend(name, script)
    support.write(bin .. "/" .. name, "#!/bin/sh\n" .. script, "755")
  end

  local function pretend_apt(installs)
    pretend("apt-get", "echo \"apt-get $*\" >>" .. quote(log) .. "\n"
      .. (installs and "case $1 in install) touch " .. quote(bin .. "/somelua") .. "; chmod +x "
      .. quote(bin .. "/somelua") .. ";; esac\n" or "exit 1\n"))
  end

  local function set_up(uid)
    pretend("id", "echo " .. uid .. "\n")
    return support.shell("cd " .. quote(support.root) .. " && env -i PATH=" .. quote(bin)
      .. " LUA_NAME=5.4 LUA_BIN=somelua sh spec/setup.sh build")
  end

  it("is silent and needs no apt where nothing is missing", function()
    pretend("somelua", "exit 0\n")
    assert.same({ "", 0 }, { set_up(1000) })
  end)

  it("names the packages and what they are for where there is no apt", function()
    local output, status = set_up(0)
    assert.equal(1, status)
    assert.truthy(output:find("there is no apt-get here", 1, true))
    assert.truthy(output:find("lua5.4 +the Lua 5.4 interpreter"))
    assert.truthy(output:find("apt-get install lua5.4\n", 1, true))
    assert.is_nil(output:find("bubblewrap", 1, true))
  end)

  it("names them where an ordinary user has no sudo, or one that would ask", function()
    pretend_apt(true)
    local output, status = set_up(1000)
    assert.equal(1, status)
    assert.truthy(output:find("takes root or sudo", 1, true))
    pretend("sudo", "exit 1\n")
    output, status = set_up(1000)
    assert.equal(1, status)
    assert.truthy(output:find("would ask for a password", 1, true))
    assert.truthy(output:find("apt-get install lua5.4\n", 1, true))
    assert.is_false(support.exists(log))
  end)

  it("says what it installs, and installs it, as root and by sudo", function()
    pretend("sudo", "[ \"$1\" = -n ] && exit 0\nexec \"$@\"\n")
    for _, uid in ipairs { 0, 1000 } do
      pretend_apt(true)
      support.remove(bin .. "/somelua")
      support.remove(log)
      local output, status = set_up(uid)
      assert.equal(0, status, output)
      assert.truthy(output:find("lua5.4 +the Lua 5.4 interpreter"))
      assert.equal("apt-get update -q\napt-get install -q -y --no-install-recommends lua5.4\n",
        support.read(log))
    end
  end)

  it("fails, naming the packages, where apt fails or does not bring what is needed", function()
    pretend_apt(false)
    local output, status = set_up(0)
    assert.equal(1, status)
    assert.truthy(output:find("could not install", 1, true))
    pretend("apt-get", "exit 0\n")
    output, status = set_up(0)
    assert.equal(1, status)
    assert.truthy(output:find("still do not work", 1, true))
    assert.truthy(output:find("apt-get install lua5.4\n", 1, true))
  end)
end)

describe("the spec runner", function()
  -- Runs files with these contents; the last line, and the exit status.
  local function run(contents)
    local directory, words = support.tempdir(), {}
    for i, content in ipairs(contents) do
      words[i] = quote(support.write(directory .. "/case" .. i .. "_spec.lua", content))
    end
    local output, status = support.shell("sh " .. quote(support.root .. "/spec/run") .. " "
      .. table.concat(words, " "))
    return output:match "([^\n]*)\n$", status, output
  end

  local passing = 'it("passes", function() end)\nit("passes too", function() end)'

  it("adds up files and fails for a failure", function()
    local line, status = run { passing }
    assert.same({ "2 passed, 0 failed, 0 skipped", 0 }, { line, status })
    line, status = run { passing, 'it("fails", function() error "no" end)', 'pending "later"' }
    assert.same({ "2 passed, 1 failed, 1 skipped", 1 }, { line, status })
  end)

  it("counts a file that dies, does not load or exits as a failure, and names the test", function()
    local line, status, output = run { passing,
      'it("dies", function() os.execute "kill -9 $PPID" end)',
      "this is not Lua",
      'it("leaves", function() os.exit(0) end)' }
    assert.same({ "2 passed, 3 failed, 0 skipped", 1 }, { line, status })
    assert.truthy(output:find('exit status 137, in "dies"', 1, true))
    assert.truthy(output:find("(no summary)", 1, true))
  end)

  it("fails when no test ran", function()
    local line, status = run { "-- nothing" }
    assert.same({ "0 passed, 0 failed, 0 skipped", 1 }, { line, status })
  end)

  it("leaves no temporary files, whatever a file does", function()
    local directory = support.tempdir()
    local output = support.must("TMPDIR=" .. quote(directory) .. " sh " .. quote(support.root .. "/spec/run")
      .. " " .. quote(support.write(directory .. "/case_spec.lua", [[
        local support = require "spec.support"
        it("makes a directory", function()
          local path = support.tempdir()
          support.must("mkdir -m 000 " .. path .. "/closed")
          print("made " .. path)
          os.exit(0)
        end)]])) .. "; true")
    assert.is_false(support.exists(output:match "made (/%S+)"))
    assert.same({ "case_spec.lua" }, support.list(directory))
  end)
end)
