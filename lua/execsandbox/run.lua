--- Runs: starting, waiting, ending, and what they leave as results.
-- The core never calls back and never blocks but in `block`; the loops are here, so that
-- Lua's own interrupt (Ctrl-C at the prompt) arrives where pure Lua code would get it.

local core = require "execsandbox.core"
local errors = require "execsandbox.errors"
local options = require "execsandbox.options"
local request = require "execsandbox.request"

local run = {}

local Run = {}
Run.__index = Run
Run.__name = "execsandbox.Run"

local signal_numbers = {
  HUP = 1, INT = 2, QUIT = 3, ILL = 4, TRAP = 5, ABRT = 6, BUS = 7, FPE = 8, KILL = 9, USR1 = 10,
  SEGV = 11, USR2 = 12, PIPE = 13, ALRM = 14, TERM = 15, CHLD = 17, CONT = 18, STOP = 19,
  TSTP = 20, TTIN = 21, TTOU = 22, WINCH = 28,
}

-- ---- results -----------------------------------------------------------------

-- The text of a capture for the result, and whether it is only a part of what came.
local function text_of(capture, limit)
  local text, cut = capture:text(limit)
  return text, cut or capture.truncated
end

local function default_limit(given, limit)
  if limit ~= nil then return limit end
  if given.retain_output or given.capture_directory then return 0 end
end

-- What a failed launch says, as an error for the caller.
local function launch_error(self, record)
  local message = record.text
  if not message or message == "" then
    message = "the command could not be launched"
  end
  local err = {
    kind = "execution", stage = record.stage, message = message, command = self._argv[1],
    errno = record.errno ~= 0 and record.errno or nil,
  }
  if record.stage == "backend" then
    err.message = "the sandbox could not be set up: " .. message
  elseif record.stage == "cgroup" then
    err.kind, err.capability = "unavailable", "resource_limits"
    err.remedy = "leave out limits.processes, or run where a pids cgroup can be written"
  end
  return errors.new(err)
end

local function make_result(self, record)
  local given = self._options
  local result = {
    status = record.status,
    exit_code = record.exit_code,
    signal = record.signal,
    timed_out = record.status == "timeout",
    cancelled = record.status == "cancelled",
    real_seconds = record.real_seconds,
    user_seconds = record.user_seconds,
    system_seconds = record.system_seconds,
    max_rss_bytes = record.max_rss_bytes,
    descendants_killed = record.descendants_killed,
    backend = self._backend,
    output_capture = self._captures[1],
    error_capture = self._captures[2],
  }
  result.output, result.output_truncated =
    text_of(self._captures[1], default_limit(given, given.output_limit))
  if self._captures[2] then
    result.error_output, result.error_output_truncated =
      text_of(self._captures[2], default_limit(given, given.error_output_limit))
  end
  if record.status == "launch-failed" then
    result.error = launch_error(self, record)
    result.error.result = result
  end
  return result
end

-- ---- the life of a run ---------------------------------------------------------

-- New bytes of both streams, for on_output.
local function deliver(self)
  local callback = self._options.on_output
  if not callback then return end
  for i, name in ipairs { "stdout", "stderr" } do
    local capture = self._captures[i]
    while capture do
      local bytes = capture:read(self._delivered[i], 65536)
      if bytes == "" then break end
      self._delivered[i] = self._delivered[i] + #bytes
      callback(name, bytes)
    end
  end
end

local function finish(self)
  if self._result then return end
  self._result = make_result(self, self._core:record())
  local callback = self._options.on_finished
  if callback then callback(self._result) end
end

-- Ends a run that the caller's own code has failed, then lets that error go on.
local function abandon(self, problem)
  if not self._result then
    self._core:cancel(true)
    self._core:close()
    local ok, second = pcall(finish, self)
    if not ok and problem == nil then problem = second end
  end
  error(problem, 0)
end

local function check_cancel(self)
  local cancel = self._options.cancel
  if cancel and not self._cancelled and cancel() then
    self._cancelled = true
    self._core:cancel()
  end
end

-- One step without blocking; true when the run is over.
local function step(self)
  if self._result then return true end
  local over = self._core:poll()
  deliver(self)
  if not over then
    check_cancel(self)
    return false
  end
  finish(self)
  return true
end

local function guarded_step(self)
  local ok, over = pcall(step, self)
  if not ok then abandon(self, over) end
  return over
end

-- Seconds until DEADLINE (nil: none), at most INTERVAL (nil: no bound).
local function slice(deadline, interval)
  local left = deadline and math.max(0, deadline - core.now())
  if interval and (not left or interval < left) then return interval end
  return left
end

local function wait_loop(self, timeout)
  local deadline = timeout and core.now() + timeout
  local interval = self._options.cancel and (self._options.cancel_interval or 0.01)
  while not step(self) do
    if deadline and core.now() >= deadline then return nil end
    core.block({ self._core }, slice(deadline, interval))
  end
  return self._result
end

--- Waits until the run is over and returns its Result; nil where TIMEOUT seconds pass before.
function Run:wait(timeout)
  if timeout ~= nil and not options.seconds(timeout) then
    error("bad argument #1 to 'wait' (a number of seconds expected)", 2)
  end
  local ok, result = pcall(wait_loop, self, timeout)
  if not ok then abandon(self, result) end
  return result
end

--- Takes what has happened; true when the run is over. Never blocks.
function Run:poll()
  return guarded_step(self)
end

--- The Result of a run that is over, or nil.
function Run:result()
  return self._result
end

--- "running", or the status of the Result.
function Run:status()
  return self._result and self._result.status or "running"
end

--- The process id of the command as this process sees it; nil where it is not (or no more) known.
function Run:pid()
  if self._result then return nil end
  self._core:poll()
  return self._core:pid()
end

--- Sends a signal (a number, or a name such as "TERM" or "SIGTERM"; "TERM" without one) to the
-- command and its process group.
function Run:kill(signal)
  local number = signal or 15
  if type(number) == "string" then number = signal_numbers[number:gsub("^SIG", "")] end
  if type(number) ~= "number" or number ~= math.floor(number) or number < 1 or number > 64 then
    error(("bad argument #1 to 'kill' (no signal '%s')"):format(tostring(signal)), 2)
  end
  if not self._result then self._core:signal(number) end
end

--- Ends the run: TERM, kill_grace, KILL. It is over when `poll` or `wait` say so.
function Run:cancel()
  if not self._result then
    self._cancelled = true
    self._core:cancel()
  end
end

local function stored(self, stream, from)
  local capture = self._captures[stream]
  return capture and capture:read(from or 0)
end

--- The bytes of stdout stored so far, from the offset FROM on.
function Run:output(from)
  return stored(self, 1, from)
end

--- The bytes of stderr stored so far, from the offset FROM on; nil when merged.
function Run:error_output(from)
  return stored(self, 2, from)
end

--- A descriptor that is readable when `poll` has something to do; nil when the run is over.
function Run:fd()
  return self._core:fd()
end

Run.pollfd = Run.fd

--- What to wait for on `pollfd`: always to read.
function Run:events() -- luacheck: no self
  return "r"
end

--- Seconds after which `poll` should be called even if nothing is readable, or nil.
function Run:timeout()
  if self._result then return 0 end
  if self._options.cancel then return self._options.cancel_interval or 0.01 end
end

--- Ends the run and everything in it, and waits for that. CALLBACK is called afterwards.
function Run:close(callback)
  if not self._result then
    self._core:cancel(true)
    self._core:close()
    finish(self)
  end
  self._closed = true
  if callback then callback() end
end

--- Whether `close` was called.
function Run:is_closing()
  return self._closed == true
end

function Run:__tostring()
  local pid = self:pid()
  return ("Run: %s%s"):format(self:status(), pid and (", pid " .. pid) or "")
end

Run.__close = function(self) self:close() end

-- A handle that nobody holds any more, or the end of the state: on_finished is still called.
-- Whoever triggered the collection has nothing to do with an error in it.
Run.__gc = function(self)
  if self._launched and not self._result then pcall(self.close, self) end
end

-- In 5.1 only userdata is finalised, and newproxy makes one.
local newproxy = rawget(_G, "newproxy")

local function guard(self)
  if not newproxy then return end
  self._guard = newproxy(true)
  getmetatable(self._guard).__gc = function() Run.__gc(self) end
end

Run.__metatable = "execsandbox.Run"

-- ---- starting --------------------------------------------------------------------

-- What on_capture_created sees: the files, empty, before anything has happened.
local function announce(self)
  local callback = self._options.on_capture_created
  if not callback then return end
  local ok, problem = pcall(callback, {
    output_capture = self._captures[1], error_capture = self._captures[2], backend = self._backend,
  })
  if not ok then
    self._core:discard()
    error(problem, 0)
  end
end

-- The error for a launch that did not come to be, whether or not a helper was started.
local function unlaunched(err, argv)
  err.command = argv[1]
  if err.stage and not err.result then
    err.result = { status = "launch-failed", timed_out = false, cancelled = false }
  end
  return nil, err
end

local function begin(argv, given)
  local wanted, err = request.build(argv, given)
  if not wanted then return unlaunched(err, argv) end
  local started, output, error_output = core.prepare(given.policy, wanted)
  if not started then return unlaunched(output, argv) end
  local self = setmetatable({
    _core = started, _captures = { output, error_output }, _options = given, _argv = argv,
    _delivered = { 0, 0 }, _backend = started:backend(),
  }, Run)
  announce(self)
  local ok, problem = started:launch()
  if not ok then
    started:discard()
    return unlaunched(problem, argv)
  end
  self._launched = true
  guard(self)
  return self
end

-- Options are the caller's table: a copy stays as it was when it is changed later.
local function copy(given, on_finished)
  local result = {}
  for name, value in pairs(given) do result[name] = value end
  if on_finished ~= nil then result.on_finished = on_finished end
  return result
end

local function copy_list(list)
  local result = {}
  for i, item in ipairs(list) do result[i] = item end
  return result
end

--- Starts a command and returns its Run, or nil, err. ON_FINISHED is the option of that name.
function run.start(argv, given, on_finished)
  if on_finished ~= nil and type(on_finished) ~= "function" then
    error(("bad argument #3 to 'start' (function expected, got %s)"):format(type(on_finished)), 2)
  end
  request.check(argv, given, "start", 2)
  return begin(copy_list(argv), copy(given, on_finished))
end

--- Runs a command to its end and returns its Result, or nil, err.
function run.run(argv, given)
  request.check(argv, given, "run", 2)
  local started, err = begin(copy_list(argv), copy(given))
  if not started then return nil, err end
  local result = started:wait()
  if result.status == "launch-failed" then return nil, result.error end
  return result
end

--- Waits until one of RUNS is over and returns it; nil where TIMEOUT seconds pass before.
function run.wait_any(runs, timeout)
  if type(runs) ~= "table" or #runs == 0 then
    error("bad argument #1 to 'wait_any' (a list of runs expected)", 2)
  end
  if timeout ~= nil and not options.seconds(timeout) then
    error("bad argument #2 to 'wait_any' (a number of seconds expected)", 2)
  end
  local deadline = timeout and core.now() + timeout
  while true do
    local cores, interval = {}, nil
    for i, item in ipairs(runs) do
      if item:poll() then return item end
      cores[i] = item._core
      local own = item:timeout()
      if own and (not interval or own < interval) then interval = own end
    end
    if deadline and core.now() >= deadline then return nil end
    core.block(cores, slice(deadline, interval))
  end
end

return run
