--- Running shell scripts in a sandbox, for the specs of what a command can and cannot do.
local sandbox = require "execsandbox"

local inside = {}

--- SPEC_MOUNTS=bwrap has bubblewrap mount by path, as on hosts where the inner stage cannot.
inside.backend_options = os.getenv "SPEC_MOUNTS" and { mounts = os.getenv "SPEC_MOUNTS" } or nil

--- Runs `script` with /bin/sh under `policy`; `options` are those of `run`. Both streams come
-- merged. Returns the result, and fails where the command could not be launched.
function inside.sh(policy, script, options)
  local given = {
    policy = policy, merge_output = true, timeout = 60, backend_options = inside.backend_options,
  }
  for name, value in pairs(options or {}) do given[name] = value end
  local result, err = sandbox.run({ "/bin/sh", "-c", script }, given)
  if not result then error("launch failed: " .. tostring(err), 2) end
  return result
end

--- As `sh`, with a timeout of so many seconds. The time starts before the script does: where it
-- was too short for the script to write what `pattern` says, there is more the next time.
function inside.timed(policy, script, seconds, pattern, options)
  local result
  local given = {}
  for name, value in pairs(options or {}) do given[name] = value end
  repeat
    given.timeout = seconds
    result = inside.sh(policy, script, given)
    seconds = seconds * 3
  until result.output:find(pattern) or seconds > 30
  return result
end

--- The output of `script`, without its last newline.
function inside.output(policy, script, options)
  return (inside.sh(policy, script, options).output:gsub("\n$", ""))
end

--- Whether `script` ends with status 0.
function inside.succeeds(policy, script, options)
  return inside.sh(policy, script, options).exit_code == 0
end

--- A policy that reads everything, writes `root`, and has the rules of `more` on top. Unlike the
-- presets it leaves /tmp and home alone.
function inside.policy(root, more, spec)
  local rules = { { special = "root", access = "read" } }
  if root then rules[#rules + 1] = { path = root, access = "write" } end
  for _, rule in ipairs(more or {}) do rules[#rules + 1] = rule end
  local given = { rules = rules }
  for name, value in pairs(spec or {}) do given[name] = value end
  return assert(sandbox.policy(given))
end

return inside
