rockspec_format = "3.0"
package = "execsandbox"
version = "scm-1"
-- Built in place, from a checkout: luarocks make rockspec/execsandbox-scm-1.rockspec
source = {
  url = "git+file://.",
}
description = {
  summary = "Run commands that you do not fully trust, on a policy's terms",
  detailed = [[
A Lua program runs a command in a sandbox: files it may read, write or not see, network or none,
bounded output, and nothing that outlives it. Linux, by bubblewrap.]],
  license = "MIT",
  labels = { "sandbox", "process", "security", "linux" },
}
supported_platforms = { "linux" }
dependencies = {
  "lua >= 5.1, < 5.5",
}
external_dependencies = {
  SECCOMP = { header = "seccomp.h", library = "seccomp" },
}

-- The same for building and installing, so that the second finds what the first has made. The
-- helper goes to a folder of LIBDIR, where it stays beside the core once the rock is deployed.
local variables = {
  CC = "$(CC)",
  CFLAGS = "$(CFLAGS)",
  LUA = "$(LUA)",
  LUA_INCDIR = "$(LUA_INCDIR)",
  SECCOMP_INCDIR = "$(SECCOMP_INCDIR)",
  SECCOMP_LIBDIR = "$(SECCOMP_LIBDIR)",
  PREFIX = "$(PREFIX)",
  LUADIR = "$(LUADIR)",
  LIBDIR = "$(LIBDIR)",
  WERROR = "",
}
build = {
  type = "make",
  build_variables = variables,
  install_variables = variables,
}
