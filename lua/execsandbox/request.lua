--- From what the caller of `run`, `start` and `plan` gave to what the core takes.

local core = require "execsandbox.core"
local defaults = require "execsandbox.defaults"
local environment = require "execsandbox.environment"
local errors = require "execsandbox.errors"
local host = require "execsandbox.host"
local options = require "execsandbox.options"
local programs = require "execsandbox.programs"
local proxies = require "execsandbox.proxies"

local request = {}

local ENOENT, EACCES = 2, 13 -- errno(3), the same on every Linux

local boolean, callback = options.plain "boolean", options.plain "function"

local function check_policy(value)
  return type(value) == "userdata" and getmetatable(value) == "execsandbox.Policy",
    "a Policy (from execsandbox.policy or a preset)"
end

local function check_stdin(value)
  local expected = 'a string, "pipe", "inherit" or { file = path }'
  if type(value) == "string" then return true end
  if type(value) ~= "table" then return false, expected end
  for key in pairs(value) do
    if key ~= "file" then return false, expected end
  end
  return options.text(value.file), expected
end

local function check_backend(value)
  return type(value) == "string", "the name of a backend"
end

local backend_option_checks = {
  mounts = function(value) return value == "inner" or value == "bwrap" end,
  nameservers = options.text,
}

local function check_backend_options(value)
  local expected = 'a table with mounts = "inner" or "bwrap", nameservers = a string'
  if type(value) ~= "table" then return false, expected end
  for key, item in pairs(value) do
    local check = backend_option_checks[key]
    if not check or not check(item) then return false, expected end
  end
  return true
end

local schema = {
  policy = check_policy,
  cwd = options.text,
  env = environment.check,
  clear_env = boolean,
  pass_env = options.strings,
  private_home = boolean,
  stdin = check_stdin,
  timeout = options.seconds,
  kill_grace = options.seconds,
  merge_output = boolean,
  output_limit = options.count,
  error_output_limit = options.count,
  capture_byte_limit = options.count,
  capture_directory = options.text,
  retain_output = boolean,
  cancel = callback,
  cancel_interval = options.seconds,
  on_capture_created = callback,
  on_output = callback,
  on_finished = callback,
  descendants = options.one_of("kill", "leave"),
  drain_grace = options.seconds,
  backend = check_backend,
  backend_options = check_backend_options,
}

local backends = { auto = true, bwrap = true }

--- Raises for what is wrong in ARGV and GIVEN, options of the function called NAME.
function request.check(argv, given, name, level)
  level = (level or 1) + 1
  options.check_argv(argv, name, level)
  options.check(given, schema, name, level)
  if given.policy == nil then
    error(("missing option 'policy' to '%s'"):format(name), level)
  end
end

local function set_input(result, stdin)
  if stdin == "inherit" then
    result.input_inherit = true
  elseif stdin == "pipe" then
    result.input_pipe = true
  elseif type(stdin) == "table" then
    result.input_file = stdin.file
  else
    result.input = stdin
  end
end

local function set_programs(result)
  local helper, named = programs.helper()
  if not helper or not core.executable(helper) then
    return errors.unavailable("available",
      ("the helper program was not found%s"):format(helper and (" at '" .. helper .. "'") or ""),
      "install execsandbox whole: execsandbox-helper belongs beside its shared object",
      "helper", helper and core.canonical(helper) and EACCES or ENOENT)
  end
  result.helper, result.helper_named = core.canonical(helper), named
  result.launchers, result.launcher_named = programs.launchers()
  return true
end

local function set_captures(result, given)
  result.retain = given.retain_output or given.capture_directory ~= nil
  local directory = given.capture_directory or os.getenv "TMPDIR" or "/tmp"
  directory = core.canonical(directory) or (not given.capture_directory and "/tmp")
  if not directory then
    return errors.execution("capture", nil,
      ("the capture directory '%s' does not exist"):format(given.capture_directory))
  end
  result.capture_directory = directory
  return true
end

-- Only asked where there is a doubt, and then found by trying it (which comes back here).
local function probe_proc()
  return require "execsandbox.capabilities".proc_mountable()
end

local function probe_view()
  return require "execsandbox.capabilities".own_view()
end

-- Who mounts: "inner" stage, by object, or "bwrap", by path.
local function own_view(given)
  local mounts = given.backend_options and given.backend_options.mounts
  if mounts then return mounts == "inner" end
  return host.own_view(probe_view)
end

-- A new place for HOME and TMPDIR, which those who make it also remove; nil, err for none.
local function set_home(result, values, given)
  if not given.private_home then return true end
  local place, err = core.private_home(given.policy, os.getenv "TMPDIR")
  if not place then return nil, err end
  result.private_home = place
  environment.move_home(values, given, place)
  return true
end

local function set_filter(result, values, given)
  local program = programs.filter(result.helper)
  if not core.executable(program) then
    return errors.unavailable("network_filtering",
      ("the filtering proxy was not found at '%s'"):format(program),
      "install execsandbox whole: execsandbox-proxy belongs beside execsandbox-helper")
  end
  result.filter_program = program
  result.nameservers = given.backend_options and given.backend_options.nameservers
  result.proxies = proxies.filtered(values, proxies.FILTER_PORT)
  return true
end

-- The ways out of a network that has no others; VALUES, the environment, is changed for them.
local function set_proxies(result, values, given)
  local mode, filtering = core.network(given.policy)
  if mode ~= "proxy_only" then return true end
  if filtering then return set_filter(result, values, given) end
  local err
  result.proxies, err = proxies.existing(values)
  if not result.proxies then return nil, err end
  return true
end

--- The core's request for ARGV and the checked options GIVEN, or nil, err.
function request.build(argv, given)
  local backend = given.backend or defaults.backend
  if not backends[backend] then
    return errors.unavailable("available", ("there is no backend '%s' here"):format(backend),
      'use backend = "auto" or "bwrap"')
  end
  local values = environment.build(given)
  local cwd = given.cwd or core.current_directory()
  if not cwd or cwd:sub(1, 1) ~= "/" then
    return errors.execution("cwd", nil, cwd and ("the working directory '%s' is not absolute"):format(cwd)
      or "this process has no working directory")
  end
  local result = {
    argv = argv,
    cwd = cwd,
    home = os.getenv "HOME",
    tmpdir = values.TMPDIR,
    search_path = values.PATH,
    timeout = given.timeout,
    kill_grace = given.kill_grace,
    drain_grace = given.drain_grace or 0.5,
    capture_byte_limit = given.capture_byte_limit or 64 * 1024 * 1024,
    merge = given.merge_output or false,
    leave = given.descendants == "leave",
    progress = given.on_output ~= nil,
    interval = given.cancel and math.max(given.cancel_interval or 0.01, 0.001),
    proc_mountable = host.proc_mountable(probe_proc),
    own_view = own_view(given),
  }
  set_input(result, given.stdin)
  local ok, err = set_home(result, values, given)
  if ok then ok, err = set_programs(result) end
  if ok then ok, err = set_captures(result, given) end
  if ok then ok, err = set_proxies(result, values, given) end
  if not ok then return nil, err end
  result.environment = environment.list(values)
  return result
end

return request
