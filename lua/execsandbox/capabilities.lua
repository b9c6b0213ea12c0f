--- What this host can enforce, found by trying it: one small sandbox, started once for
-- a state, with a deadline.

local core = require "execsandbox.core"
local defaults = require "execsandbox.defaults"
local programs = require "execsandbox.programs"
local run = require "execsandbox.run"

local capabilities = {}

local DEADLINE = 10

local names = {
  "available", "filesystem_read_write_deny", "filesystem_read_only_host",
  "explicit_filesystem_scopes", "filesystem_deny_globs", "nested_overrides", "path_remapping",
  "protected_metadata", "process_namespaces", "network_enabled", "network_isolated",
  "network_proxy_only", "network_filtering", "seccomp", "resource_limits", "existence_hidden",
}

-- Runs `true` in a sandbox of SPEC; true, or nil and the reason.
local function try(spec, backend_options, env)
  local policy, err = core.policy(spec)
  if not policy then return nil, tostring(err) end
  local result
  result, err = run.run({ "/bin/sh", "-c", ":" }, {
    policy = policy, cwd = "/", timeout = DEADLINE, clear_env = true, env = env, output_limit = 0,
    backend_options = backend_options,
  })
  if not result then return nil, tostring(err) end
  if result.status == "timeout" then
    return nil, ("the probe did not end within %d seconds"):format(DEADLINE)
  end
  if result.exit_code ~= 0 then return nil, "the probe failed inside the sandbox" end
  return true
end

--- Whether a sandbox with process namespace and a /proc of its own starts here.
function capabilities.proc_mountable()
  return try {
    rules = { { special = "root", access = "read" } }, isolate_processes = true, mount_proc = true,
  } == true
end

--- Whether the inner stage can build the view itself here.
function capabilities.own_view()
  return try({ rules = { { special = "root", access = "read" } } }, { mounts = "inner" }) == true
end

local function probe()
  local root = { { special = "root", access = "read" } }
  local found, reasons = { platform = "linux", backend = "bwrap" }, {}
  local function set(list, value, reason)
    for _, name in ipairs(list) do
      found[name] = value and true or false
      if not value then reasons[name] = reason end
    end
  end
  local isolated, reason = try { rules = root, network = "isolated", isolate_processes = true }
  set({ "network_isolated" }, isolated, reason)
  local enabled, why = isolated, reason
  if not isolated then
    enabled, why = try { rules = root, network = "enabled", unix_sockets = "none" }
  end
  set({
    "available", "filesystem_read_write_deny", "filesystem_read_only_host",
    "explicit_filesystem_scopes", "filesystem_deny_globs", "nested_overrides", "path_remapping",
    "protected_metadata", "network_enabled", "seccomp", "existence_hidden",
  }, enabled, why)
  local processes, no_processes = isolated, reason
  if not isolated and enabled then
    processes, no_processes = try {
      rules = root, network = "enabled", unix_sockets = "none", isolate_processes = true,
    }
  end
  set({ "process_namespaces" }, processes, no_processes)
  local limits, no_limits
  if enabled then
    limits, no_limits = try { rules = root, network = isolated and "isolated" or "enabled",
      unix_sockets = "none", limits = { processes = 16 } }
  end
  set({ "resource_limits" }, limits, no_limits or why)
  local proxied, not_proxied, filtered, not_filtered
  if isolated then
    -- A way out is made, and not taken: it leads to the port that discards.
    proxied, not_proxied = try({ rules = root, network = "proxy_only" }, nil,
      { HTTP_PROXY = "http://127.0.0.1:9" })
    filtered, not_filtered = try {
      rules = root, network = { mode = "proxy_only", allow = { "execsandbox.invalid" } },
    }
  end
  set({ "network_proxy_only" }, proxied, not_proxied or reason)
  set({ "network_filtering" }, filtered, not_filtered or reason)
  found.reasons = reasons
  return found
end

local known

local function copy(value)
  if type(value) ~= "table" then return value end
  local result = {}
  for key, item in pairs(value) do result[key] = copy(item) end
  return result
end

local function absent(backend)
  local found, reasons = { platform = "linux", backend = backend }, {}
  for _, name in ipairs(names) do
    found[name] = false
    reasons[name] = ("there is no backend '%s' here"):format(backend)
  end
  found.reasons = reasons
  return found
end

--- The capabilities of BACKEND (`sandbox.backend` without one): a table of booleans, with `platform`,
-- `backend` and `reasons` (capability → why not).
function capabilities.get(backend)
  backend = backend or defaults.backend
  if type(backend) ~= "string" then
    error(("bad argument #1 to 'capabilities' (string expected, got %s)"):format(type(backend)), 2)
  end
  if backend ~= "auto" and backend ~= "bwrap" then return absent(backend) end
  known = known or probe()
  return copy(known)
end

--- Whether BACKEND has the CAPABILITY; if not, why.
function capabilities.supported(capability, backend)
  local found = capabilities.get(backend)
  for _, name in ipairs(names) do
    if name == capability then return found[name], found.reasons[name] end
  end
  error(("bad argument #1 to 'supported' (no capability '%s')"):format(tostring(capability)), 2)
end

local Report = {}

function Report:__tostring()
  local lines = { ("execsandbox on %s, backend %s"):format(self.platform, self.backend) }
  for _, name in ipairs(names) do
    local line = ("  %-28s %s"):format(name, self[name] and "yes" or "no")
    if not self[name] then line = line .. ": " .. (self.reasons[name] or "unknown") end
    lines[#lines + 1] = line
  end
  lines[#lines + 1] = "  helper: " .. (programs.helper() or "not found")
  return table.concat(lines, "\n")
end

--- A report on what works here, what does not, and why: for people by `tostring`, and with the
-- fields of `capabilities` for programs.
function capabilities.doctor()
  return setmetatable(capabilities.get(), Report)
end

return capabilities
