--- execsandbox in programs whose event loop is cqueues.
-- `require "execsandbox.cqueues"` returns execsandbox itself.  From then on `run`, `wait`,
-- `write` and `wait_any` yield in coroutines of a controller, instead of blocking the loop.

local cqueues = require "cqueues"
local waiting = require "execsandbox.waiting"

local unpack = table.unpack or unpack -- luacheck: compat

local loop = {}

function loop.inside()
  local controller, resumed = cqueues.running()
  return controller ~= nil and resumed
end

function loop.wait(runs, seconds)
  local what = {}
  for i, run in ipairs(runs) do
    what[i] = { pollfd = run._core:fd(), events = "r", timeout = run:timeout() }
  end
  what[#what + 1] = seconds
  cqueues.poll(unpack(what))
end

-- A controller goes by numbers: one that is closed unnoticed may come back as something else.
loop.forget = cqueues.cancel

waiting.register("cqueues", loop)

return require "execsandbox"
