--- How runs wait: by blocking the thread, or by yielding to an event loop.
-- An adapter (execsandbox.cqueues, execsandbox.luv) registers its loop here.

local core = require "execsandbox.core"

local waiting = {}

local loops = {}

--- Registers a LOOP, under a NAME that a later one of the same name takes over:
--   inside()            whether the caller is a coroutine that the loop can resume
--   wait(runs, seconds) yields until one of the runs has something to poll, or the time is over
--   forget(fd)          the descriptor is about to be closed
function waiting.register(name, loop)
  loops[name] = loop
end

-- Not from within a metamethod or a C function that knows nothing of yields.  Lua 5.1 cannot tell.
local isyieldable = coroutine.isyieldable or function() return true end -- luacheck: compat

--- Returns when one of RUNS has something to poll, after SECONDS (nil: no bound), or earlier.
function waiting.wait(runs, seconds)
  for _, loop in pairs(loops) do
    if isyieldable() and loop.inside() then return loop.wait(runs, seconds) end
  end
  local cores = {}
  for i, run in ipairs(runs) do cores[i] = run._core end
  core.block(cores, seconds)
end

--- Tells the loops that a descriptor is about to be closed.
function waiting.forget(fd)
  for _, loop in pairs(loops) do loop.forget(fd) end
end

return waiting
