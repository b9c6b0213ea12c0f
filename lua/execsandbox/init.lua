--- Runs commands that are not fully trusted, under a policy, and leaves nothing behind.
-- See the README for a guide and for what each function takes and returns.

local core = require "execsandbox.core"
local capabilities = require "execsandbox.capabilities"
local defaults = require "execsandbox.defaults"
local plan = require "execsandbox.plan"
local presets = require "execsandbox.presets"
local run = require "execsandbox.run"

local sandbox = { _VERSION = "0.1.0" }

sandbox.policy = core.policy
sandbox.decode = core.decode
sandbox.read_only = presets.read_only
sandbox.workspace_write = presets.workspace_write
sandbox.unrestricted = presets.unrestricted
sandbox.external = presets.external
sandbox.run = run.run
sandbox.start = run.start
sandbox.wait_any = run.wait_any
sandbox.plan = plan.new
sandbox.capabilities = capabilities.get
sandbox.supported = capabilities.supported
sandbox.doctor = capabilities.doctor

--- `capture:sample(options)` as a function.
function sandbox.sample(capture, options)
  return capture:sample(options)
end

-- `sandbox.backend = name` sets the default for everything that follows.
return setmetatable(sandbox, {
  __index = defaults,
  __newindex = function(self, key, value)
    if key ~= "backend" then return rawset(self, key, value) end
    if type(value) ~= "string" then
      error(("bad value for 'backend' (the name of a backend expected, got %s)"):format(type(value)), 2)
    end
    defaults.backend = value
  end,
})
