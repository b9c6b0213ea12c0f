--- Plans: what a run would be, without running it.

local core = require "execsandbox.core"
local request = require "execsandbox.request"

local plan = {}

local Plan = {}
Plan.__index = Plan
Plan.__name = "execsandbox.Plan"
Plan.__metatable = "execsandbox.Plan"

local function mount_line(mount)
  local line = ("  %-14s %s"):format(mount.kind, mount.path)
  if mount.source and mount.source ~= mount.path then line = line .. " <- " .. mount.source end
  if mount.placeholder then line = line .. " (placeholder on the host during the run)" end
  return line
end

--- The plan for people: the program, where it runs, what it sees.
function Plan:__tostring()
  local lines = {
    ("Plan: %s through %s"):format(table.concat(self.command_line, " "), self.backend),
    "working directory: " .. self.working_directory,
  }
  if #self.mounts > 0 then
    lines[#lines + 1] = "mounts, in order:"
    for _, mount in ipairs(self.mounts) do lines[#lines + 1] = mount_line(mount) end
  end
  for _, note in ipairs(self.notes) do
    lines[#lines + 1] = ("note: %s: %s"):format(note.path, note.text)
  end
  return table.concat(lines, "\n")
end

--- Plans ARGV with the options of `run`. Returns a Plan, or nil, err as `run` would.
function plan.new(argv, given)
  request.check(argv, given, "plan", 2)
  local wanted, err = request.build(argv, given)
  if not wanted then return nil, err end
  local self, problem = core.plan(given.policy, wanted)
  if not self then return nil, problem end
  self.environment = {}
  for _, entry in ipairs(wanted.environment) do
    local name, value = entry:match("^([^=]+)=(.*)$")
    self.environment[name] = value
  end
  self.command_line = wanted.argv
  return setmetatable(self, Plan)
end

return plan
