--- Runs: starting, waiting, ending, and what they leave as results.
-- The core never calls back and never blocks but in `block`; the loops are here, so that
-- Lua's own interrupt (Ctrl-C at the prompt) arrives where pure Lua code would get it.

local core = require "execsandbox.core"
local errors = require "execsandbox.errors"
local options = require "execsandbox.options"
local protect = require "execsandbox.protect"
local request = require "execsandbox.request"
local waiting = require "execsandbox.waiting"

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

-- The Result but for its texts, which may be more than memory holds.
local function make_result(self, record)
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
    network = record.network,
  }
  if record.status == "launch-failed" then
    result.error = launch_error(self, record)
    result.error.result = result
  end
  return result
end

local function add_texts(self, result)
  local given = self._options
  result.output, result.output_truncated =
    text_of(self._captures[1], default_limit(given, given.output_limit))
  if self._captures[2] then
    result.error_output, result.error_output_truncated =
      text_of(self._captures[2], default_limit(given, given.error_output_limit))
  end
end

-- ---- callbacks -----------------------------------------------------------------

-- The callbacks of one run are never nested.  While one is running, or is suspended because it
-- yielded, a `poll` or `wait` (its own, or another coroutine's) only sees whether the run is
-- over; what is left to deliver comes when the callback has returned.
local function call(self, callback, ...)
  self._calling = true
  local ok, answer = pcall(callback, ...)
  self._calling = false
  if not ok then
    self._fault = { answer }
    error(answer, 0)
  end
  return answer
end

-- New bytes of both streams, for on_output.
local function deliver(self)
  local callback = self._options.on_output
  if not callback then return end
  for i, name in ipairs { "stdout", "stderr" } do
    local capture = self._captures[i]
    while capture and not self._finished do
      local bytes = capture:read(self._delivered[i], 65536)
      if bytes == "" then break end
      self._delivered[i] = self._delivered[i] + #bytes
      call(self, callback, name, bytes)
    end
  end
end

-- The predicate is asked at once, and then at each tick.
local function check_cancel(self)
  local cancel = self._options.cancel
  if not cancel or self._cancelled or not self._ticked then return end
  self._ticked = false
  if call(self, cancel) then self:cancel() end
end

-- ---- the life of a run ---------------------------------------------------------

-- The Result of a run that is over, made once.
local function conclude(self)
  if self._result then return end
  local result = make_result(self, self._core:record())
  local ok, problem = pcall(add_texts, self, result)
  self._result = result
  self._core:close_input()
  if not ok then self._problem = problem end
end

-- What watches the descriptor is told before it is closed.
local function release(self)
  local fd = self._core:fd()
  if fd then waiting.forget(fd) end
  self._core:release()
end

-- Once: on_finished, and what went wrong with the texts.
local function finish(self)
  conclude(self)
  if self._finished then return end
  self._finished = true
  if not self._handed_out then release(self) end
  local callback = self._options.on_finished
  if callback then call(self, callback, self._result) end
  if self._problem then error(self._problem, 0) end
end

-- Ends the run at once, and waits for that; on_finished is called.
local function cut(self)
  self._core:close(not self._cancelled)
  finish(self)
end

-- Ends a run that the caller's own code has failed, then lets that error go on.
local function abandon(self, problem)
  if not self._finished then
    local ok, second = pcall(cut, self)
    if not ok and problem == nil then problem = second end
  end
  error(problem, 0)
end

-- Takes what has happened; true when the command and all of its kind are gone.
local function advance(self)
  local over, ticked = self._core:poll()
  self._ticked = self._ticked or ticked
  return over
end

-- One step without blocking; true when the run is over.
local function step(self)
  if self._finished then return true end
  local over = advance(self)
  if self._calling then
    if over then conclude(self) end
    return over
  end
  deliver(self)
  if self._finished then return true end -- a callback, or who ran while it was suspended, closed it
  if over then finish(self) else check_cancel(self) end
  return over
end

local function guarded_step(self)
  local ok, over = pcall(step, self)
  if not ok then abandon(self, over) end
  return over
end

-- Seconds until DEADLINE; nil where there is none.
local function left(deadline)
  return deadline and math.max(0, deadline - core.now())
end

local function wait_loop(self, deadline)
  while not guarded_step(self) do
    if deadline and core.now() >= deadline then return nil end
    waiting.wait({ self }, left(deadline))
  end
  return self._result
end

local function check_seconds(value, position, name)
  if value ~= nil and not options.seconds(value) then
    error(("bad argument #%d to '%s' (a number of seconds expected)"):format(position, name), 3)
  end
  return value and core.now() + value
end

--- Waits until the run is over and returns its Result; nil where TIMEOUT seconds pass before.
-- In a coroutine of an event loop whose adapter is loaded it yields meanwhile.
function Run:wait(timeout)
  local ok, result = protect.call(wait_loop, self, check_seconds(timeout, 1, "wait"))
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
  advance(self)
  return self._core:pid()
end

-- ---- standard input --------------------------------------------------------------

local function check_pipe(self, name)
  if self._options.stdin ~= "pipe" then
    error(("'%s' needs a run that was started with stdin = \"pipe\""):format(name), 3)
  end
end

-- nil, err
local function closed_error(self)
  return errors.execution("stdin", 32, -- EPIPE, errno(3)
    self._input_closed and "the standard input was closed" or "the command has closed its standard input")
end

local function await_room(self, deadline)
  self._writers = (self._writers or 0) + 1
  self._core:await_room(true)
  waiting.wait({ self }, left(deadline))
  self._writers = self._writers - 1
  self._core:await_room(self._writers > 0)
  guarded_step(self)
end

local function write_loop(self, bytes, deadline)
  local done = 0
  while true do
    local count = self._core:write(bytes, done)
    if not count then return closed_error(self) end
    done = done + count
    if done == #bytes or (deadline and core.now() >= deadline) then return done end
    await_room(self, deadline)
  end
end

--- Writes to the standard input of a run started with stdin = "pipe", and returns how many bytes
-- were taken: all, unless TIMEOUT seconds passed before there was room for them (0: only what
-- fits now; `fd` tells when there is more room).  nil, err where the command does not read
-- any more.  While it waits, the run goes on as in `wait`.
function Run:write(bytes, timeout)
  check_pipe(self, "write")
  if type(bytes) ~= "string" then
    error(("bad argument #1 to 'write' (string expected, got %s)"):format(type(bytes)), 2)
  end
  local ok, count, err = protect.call(write_loop, self, bytes, check_seconds(timeout, 2, "write"))
  if not ok then abandon(self, count) end
  return count, err
end

--- Ends the standard input of a run started with stdin = "pipe": the command reads its end.
function Run:close_stdin()
  check_pipe(self, "close_stdin")
  self._input_closed = true
  self._core:close_input()
end

-- ---- signals, output, events -----------------------------------------------------

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

--- A descriptor that is readable whenever `poll` has something to do, timers included.  It stays
-- open, and readable, after the end of the run: until the handle is closed.
function Run:fd()
  self._handed_out = true
  return self._core:fd()
end

Run.pollfd = Run.fd

--- What to wait for on `pollfd`: always to read.
function Run:events() -- luacheck: no self
  return "r"
end

--- Seconds after which `poll` has something to do even where nothing is readable: 0 for a run that
-- is over, or else nil, as the descriptor tells everything.
function Run:timeout()
  if self._result then return 0 end
end

--- Ends the run and everything in it, and waits for that. CALLBACK is called afterwards.
function Run:close(callback)
  self._closed = true
  if not self._finished then cut(self) end
  release(self)
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
-- Whoever triggered the collection has nothing to do with an error in it.  In a process that the
-- host forked nothing has ended.
Run.__gc = function(self)
  if not self._launched then return end
  if self._core:owned() and not self._finished then pcall(cut, self) end
  pcall(release, self)
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
    _delivered = { 0, 0 }, _ticked = true, _backend = started:backend(), _launched = false,
  }, Run)
  guard(self) -- all that takes memory comes before the launch
  announce(self)
  local ok, problem = started:launch()
  if not ok then
    started:discard()
    local _, failed = unlaunched(problem, argv)
    -- Who has heard of the captures hears of the end.
    if given.on_capture_created and given.on_finished then call(self, given.on_finished, failed.result) end
    return nil, failed
  end
  self._launched = true
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
  if given.stdin == "pipe" then
    error("bad option 'stdin' to 'run' (\"pipe\" needs the handle that 'start' returns)", 2)
  end
  local started, err = begin(copy_list(argv), copy(given))
  if not started then return nil, err end
  local result = started:wait()
  if result.status == "launch-failed" then return nil, result.error end
  return result
end

local function any_loop(runs, deadline)
  while true do
    for _, item in ipairs(runs) do
      if item:poll() then return item end
    end
    if deadline and core.now() >= deadline then return nil end
    waiting.wait(runs, left(deadline))
  end
end

-- A callback's error is about its own run, which it has ended; an interrupt is about all.
local function abandon_all(runs, problem)
  local alone = false
  for _, item in ipairs(runs) do
    alone = alone or (item._fault ~= nil and rawequal(item._fault[1], problem))
  end
  for _, item in ipairs(alone and {} or runs) do
    if not item._finished then pcall(cut, item) end
  end
  error(problem, 0)
end

--- Waits until one of RUNS is over and returns it; nil where TIMEOUT seconds pass before.
function run.wait_any(runs, timeout)
  if type(runs) ~= "table" or #runs == 0 then
    error("bad argument #1 to 'wait_any' (a list of runs expected)", 2)
  end
  local ok, item = protect.call(any_loop, runs, check_seconds(timeout, 2, "wait_any"))
  if not ok then abandon_all(runs, item) end
  return item
end

return run
