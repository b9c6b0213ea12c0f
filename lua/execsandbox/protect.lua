--- What `pcall` and coroutines mean to each other, on every Lua.

local protect = {}

local function yields_through_pcall()
  local co = coroutine.create(function() return pcall(coroutine.yield) end)
  local ok, yielded, problem = coroutine.resume(co)
  if coroutine.status(co) == "suspended" then return true end
  -- It must be the yield that failed, and not for want of memory: the answer is kept.
  if not ok then error(yielded, 0) end
  if problem == "not enough memory" then error(problem, 0) end
  return false
end

--- Whether a function called by `pcall` can yield: not in Lua 5.1.
protect.yields = yields_through_pcall()

--- The coroutine that runs; nil in the main program.
function protect.running()
  local co, main = coroutine.running()
  if not main then return co end
end

--- As `pcall`, for a FN that may yield.  Where `pcall` would not let it, in a coroutine of Lua 5.1,
-- errors pass; an interrupt of the interpreter reaches no coroutine there.
function protect.call(fn, ...)
  if protect.yields or not protect.running() then return pcall(fn, ...) end
  return true, fn(...)
end

return protect
