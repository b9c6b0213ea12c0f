--- The errors that calls return as their second value.
-- A table with `kind` ("policy", "unavailable" or "execution"), `message`, and where
-- they apply `capability`, `stage`, `errno`, `command`, `result` and `remedy`.
-- `tostring(err)` is a full sentence.  Those that the core makes look the same.

local core = require "execsandbox.core"

local errors = {}

--- Makes an error of a table with the fields above.
function errors.new(fields)
  return core.error(fields)
end

--- `nil, err` for a policy that does not make sense.
function errors.policy(message)
  return nil, errors.new { kind = "policy", message = message }
end

--- `nil, err` for what this host or backend cannot enforce; STAGE and ERRNO where a part of
-- the launch is what is missing.
function errors.unavailable(capability, message, remedy, stage, errno)
  return nil, errors.new {
    kind = "unavailable", capability = capability, message = message, remedy = remedy,
    stage = stage, errno = errno,
  }
end

--- `nil, err` for what could not be launched.
function errors.execution(stage, errno, message)
  return nil, errors.new {
    kind = "execution", stage = stage, errno = errno, message = message,
  }
end

return errors
