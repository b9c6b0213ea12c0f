-- Both ways of installing, from a copy of the checkout, so that its build directory is left alone.
local support = require "spec.support"

local quote = support.quote

-- What an installed package is asked to do, with nothing but the module paths set.
local program = [[
local sandbox = require "execsandbox"
local policy = assert(sandbox.read_only {})
local result = assert(sandbox.run({ "/bin/sh", "-c", "echo installed" }, { policy = policy, timeout = 30 }))
io.write(result.status, " ", result.exit_code, " ", result.output)
]]

local function try(interpreter, luadir, libdir)
  return support.must("cd / && env -i PATH=/usr/bin:/bin HOME=/nonexistent LUA_PATH="
    .. quote(luadir .. "/?.lua;" .. luadir .. "/?/init.lua") .. " LUA_CPATH=" .. quote(libdir .. "/?.so")
    .. " " .. quote(interpreter) .. " -e " .. quote(program))
end

local function mode(path)
  return support.must("stat", "-c", "%a", path)
end

describe("installation", function()
  local tree, clean

  setup(function()
    tree = support.mkdir(support.tempdir() .. "/the checkout")
    -- A make that runs the specs hands its variables down.
    clean = "env -i MAKEFLAGS=-j2 PATH=/usr/local/bin:/usr/bin:/bin HOME=" .. quote(support.tempdir()) .. " "
    support.must("cd " .. quote(support.root)
      .. " && cp -R Makefile csrc helpers lua rockspec spec " .. quote(tree))
  end)

  local function make(words)
    return support.must("cd " .. quote(tree)
      .. " && " .. clean .. "make -s LUA=" .. support.lua_name .. " " .. words)
  end

  it("by make install puts the helper beside the core, where it is found", function()
    local prefix = support.tempdir() .. "/it's here"
    local version = support.lua_name == "luajit" and "5.1" or support.lua_name
    make("install PREFIX=" .. quote(prefix))
    local luadir, libdir = prefix .. "/share/lua/" .. version, prefix .. "/lib/lua/" .. version
    assert.equal("755", mode(libdir .. "/execsandbox/execsandbox-helper"))
    if support.exists(support.build .. "/execsandbox/execsandbox-proxy") then
      assert.equal("755", mode(libdir .. "/execsandbox/execsandbox-proxy"))
    end
    assert.equal("exited 0 installed", try(support.lua, luadir, libdir))

    make("uninstall PREFIX=" .. quote(prefix))
    assert.equal("", support.must("find", prefix, "-type", "f"))
    assert.is_false(support.exists(libdir .. "/execsandbox"))
    assert.is_false(support.exists(luadir .. "/execsandbox"))
  end)

  it("by make install goes below DESTDIR, and to LUADIR and LIBDIR where they are given", function()
    local destination = support.tempdir()
    make("install DESTDIR=" .. quote(destination) .. " LUADIR=/l LIBDIR=/s")
    assert.same({ "l", "s" }, support.list(destination))
    assert.equal("exited 0 installed", try(support.lua, destination .. "/l", destination .. "/s"))
  end)

  it("leaves a checkout usable by what make env prints", function()
    local printed = make "env"
    assert.equal("exited 0 installed", support.must("cd / && eval " .. quote(printed) .. " && "
      .. quote(support.lua) .. " -e " .. quote(program)))
    assert.truthy(printed:find("export EXECSANDBOX_HELPER=", 1, true))
  end)

  it("leaves the filtering proxy out where there is nothing to build it of, and says so", function()
    local directory = support.tempdir()
    local output = support.must("cd " .. quote(tree) .. " && " .. clean .. "make -s LUA=" .. support.lua_name
      .. " BUILD=" .. quote(directory) .. " LLHTTP_DIR=/nonexistent -j1 no-proxy")
    assert.truthy(output:find("node-llhttp", 1, true))
  end)

  -- One Lua after the other from the same checkout: the second must not take what the first built.
  for _, version in ipairs(support.lua_name == "5.4" and { "5.4", "5.1" } or {}) do
    it("by luarocks works for Lua " .. version, function()
      local rocks = support.tempdir()
      support.must("cd " .. quote(tree) .. " && " .. clean .. "luarocks --lua-version=" .. version
        .. " make rockspec/execsandbox-scm-1.rockspec --tree " .. quote(rocks))
      local libdir = rocks .. "/lib/lua/" .. version
      assert.equal("755", mode(libdir .. "/execsandbox/execsandbox-helper"))
      assert.equal("exited 0 installed", try("lua" .. version, rocks .. "/share/lua/" .. version, libdir))
    end)
  end
end)
