--- Policies for common cases.  Each returns a Policy, or nil, err.

local core = require "execsandbox.core"
local options = require "execsandbox.options"

local presets = {}

local network = function(value)
  return type(value) == "string" or type(value) == "table", "the name of a network mode or a table"
end

local common = {
  network = network,
  limits = options.plain "table",
  extra_rules = options.plain "table",
}

local function schema(more)
  local result = {}
  for name, check in pairs(common) do result[name] = check end
  for name, check in pairs(more) do result[name] = check end
  return result
end

local function append(rules, more)
  for _, rule in ipairs(more or {}) do rules[#rules + 1] = rule end
end

-- The home directory is hidden, but not what a build needs in it.
local function hide_home(rules, given)
  if given.hide_home == false then return end
  append(rules, {
    { special = "home", access = "deny" },
    { special = "search_path", access = "read" },
    { special = "working_directory", access = "read" },
  })
end

local function require_roots(given, name)
  if given.workspace_roots == nil then
    error(("missing option 'workspace_roots' to '%s'"):format(name), 3)
  end
end

local read_only = schema {
  workspace_roots = options.plain "table", hide_home = options.plain "boolean",
}

--- Everything can be read but the home directory (and the host's sockets in /run), nothing written.
function presets.read_only(given)
  given = given or {}
  options.check(given, read_only, "read_only", 2)
  local rules = { { special = "root", access = "read" } }
  hide_home(rules, given)
  if given.workspace_roots then
    append(rules, { { special = "workspace_roots", access = "read" } })
  end
  append(rules, given.extra_rules)
  return core.policy {
    rules = rules,
    workspace_roots = given.workspace_roots,
    network = given.network,
    limits = given.limits,
    private_runtime = true,
  }
end

local workspace_write = schema {
  workspace_roots = options.plain "table",
  write_tmpdir = options.plain "boolean",
  write_slash_tmp = options.plain "boolean",
  hide_home = options.plain "boolean",
  protected_metadata = options.plain "table",
}

--- As read_only, with write access to the workspace roots, TMPDIR and /tmp.
function presets.workspace_write(given)
  options.check(given, workspace_write, "workspace_write", 2)
  require_roots(given, "workspace_write")
  local rules = { { special = "root", access = "read" } }
  hide_home(rules, given)
  append(rules, { { special = "workspace_roots", access = "write" } })
  if given.write_tmpdir ~= false then append(rules, { { special = "tmpdir", access = "write" } }) end
  if given.write_slash_tmp ~= false then
    append(rules, { { special = "slash_tmp", access = "write" } })
  end
  append(rules, given.extra_rules)
  return core.policy {
    rules = rules,
    workspace_roots = given.workspace_roots,
    protected_metadata = given.protected_metadata,
    network = given.network,
    limits = given.limits,
    private_runtime = true,
  }
end

local open = schema {}

local function open_policy(filesystem, name)
  return function(given)
    given = given or {}
    options.check(given, open, name, 2)
    return core.policy {
      filesystem = filesystem,
      rules = given.extra_rules,
      network = given.network or "enabled",
      limits = given.limits,
    }
  end
end

--- The whole filesystem can be written; what remains is supervision, limits and the network mode.
presets.unrestricted = open_policy("unrestricted", "unrestricted")

--- Somebody else contains the command; this library supervises it.
presets.external = open_policy("external", "external")

return presets
