--- execsandbox in programs whose event loop is libuv: luv, or Neovim's own.
-- `require "execsandbox.luv"` returns execsandbox itself.  From then on `run`, `wait`, `write`
-- and `wait_any` yield in coroutines, and the loop resumes these; in the main program they block.

local protect = require "execsandbox.protect"
local waiting = require "execsandbox.waiting"

local vim = rawget(_G, "vim")
local uv = vim and (vim.uv or vim.loop) or require "luv"

-- libuv takes one watcher for each descriptor: here by its number, with who waits for it.
local watchers = {}

local function wake_all(watcher)
  local woken = {}
  for wake in pairs(watcher.wakes) do woken[#woken + 1] = wake end
  for _, wake in ipairs(woken) do wake() end
end

local function close(fd)
  local watcher = watchers[fd]
  watchers[fd] = nil
  watcher.poll:stop()
  watcher.poll:close()
end

local function watch(fd, wake)
  local watcher = watchers[fd]
  if not watcher then
    watcher = { poll = assert(uv.new_poll(fd)), wakes = {} }
    watchers[fd] = watcher
    watcher.poll:start("r", function() wake_all(watcher) end)
  end
  watcher.wakes[wake] = true
end

local function unwatch(fd, wake)
  local watcher = watchers[fd]
  if not watcher then return end
  watcher.wakes[wake] = nil
  if not next(watcher.wakes) then close(fd) end
end

-- Calls `fn` after SECONDS, from the loop; returns what stops that.
local function after(seconds, fn)
  local timer = uv.new_timer()
  local function stop()
    if timer:is_closing() then return end
    timer:stop()
    timer:close()
  end
  timer:start(math.ceil(math.min(seconds, 1e9) * 1000), 0, function()
    stop()
    fn()
  end)
  return stop
end

local loop = {}

function loop.inside()
  return protect.running() ~= nil
end

function loop.wait(runs, seconds)
  local co, waits = protect.running(), true
  local function wake()
    if not waits or coroutine.status(co) ~= "suspended" then return end
    waits = false
    local ok, problem = coroutine.resume(co)
    if not ok then error(problem, 0) end
  end
  local fds = {}
  for _, run in ipairs(runs) do
    local fd = run._core:fd()
    if not fd or run:timeout() == 0 then return end
    fds[#fds + 1] = fd
  end
  for _, fd in ipairs(fds) do watch(fd, wake) end
  local stop = seconds and after(seconds, wake)
  coroutine.yield()
  waits = false -- also where somebody else resumed us
  for _, fd in ipairs(fds) do unwatch(fd, wake) end
  if stop then stop() end
end

-- Who waits there finds the run over; not from within whoever closes it.
function loop.forget(fd)
  local watcher = watchers[fd]
  if not watcher then return end
  close(fd)
  after(0, function() wake_all(watcher) end)
end

waiting.register("luv", loop)

return require "execsandbox"
