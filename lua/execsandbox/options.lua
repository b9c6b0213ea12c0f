--- Checking what callers pass: names, types and ranges of options.
-- A wrong type or an unknown name is a programming error and is raised at the caller's
-- place, naming the option, what was expected and what was given.

local options = {}

-- How many edits lead from one word to the other (Levenshtein).
local function distance(a, b)
  local row = {}
  for j = 0, #b do row[j] = j end
  for i = 1, #a do
    local diagonal = row[0]
    row[0] = i
    for j = 1, #b do
      local cost = a:byte(i) == b:byte(j) and 0 or 1
      local best = math.min(row[j] + 1, row[j - 1] + 1, diagonal + cost)
      diagonal, row[j] = row[j], best
    end
  end
  return row[#b]
end

local function nearest(word, schema)
  local best, best_distance
  for name in pairs(schema) do
    local d = distance(word, name)
    if not best or d < best_distance or (d == best_distance and name < best) then
      best, best_distance = name, d
    end
  end
  if best and best_distance <= math.max(1, math.floor(#word / 3)) then return best end
end

local function whole(value)
  return type(value) == "number" and value == math.floor(value)
    and value >= 0 and value <= 2 ^ 53
end

local function count(value)
  return whole(value), "a whole number of at least 0"
end

local function seconds(value)
  return type(value) == "number" and value >= 0 and value < math.huge, "a number of seconds of at least 0"
end

local function text(value)
  return type(value) == "string" and not value:find("\0", 1, true), "a string without NUL"
end

local function plain(kind)
  local article = kind == "userdata" and "a Policy" or (kind:match("^[aeiou]") and "an " or "a ") .. kind
  return function(value) return type(value) == kind, article end
end

local function one_of(...)
  local values, names = {}, {}
  for i, value in ipairs { ... } do
    values[value] = true
    names[i] = ('"%s"'):format(value)
  end
  local expected = table.concat(names, " or ")
  return function(value) return values[value] == true, expected end
end

--- A list of strings without NUL.
local function strings(value)
  if type(value) ~= "table" then return false, "a list of strings" end
  local seen = 0
  for key, item in pairs(value) do
    if not whole(key) or key < 1 or key > #value or not text(item) then
      return false, "a list of strings without NUL"
    end
    seen = seen + 1
  end
  return seen == #value, "a list of strings without holes"
end

options.count, options.seconds, options.text = count, seconds, text
options.plain, options.one_of, options.strings = plain, one_of, strings

--- Checks the table GIVEN against SCHEMA (name → function(value) → ok, expected) for the
-- function called NAME; LEVEL is the caller's as for `error`.
function options.check(given, schema, name, level)
  level = (level or 1) + 1
  if type(given) ~= "table" then
    error(("bad options to '%s' (table expected, got %s)"):format(name, type(given)), level)
  end
  for key, value in pairs(given) do
    local check = schema[key]
    if not check then
      local hint = type(key) == "string" and nearest(key, schema)
      error(("bad option '%s' to '%s'%s"):format(tostring(key), name,
        hint and (" (did you mean '%s'?)"):format(hint) or " (no such option)"), level)
    end
    local ok, expected = check(value)
    if not ok then
      local got = type(value)
      if got == "string" then got = ('"%s"'):format(value) end
      if got == "number" then got = tostring(value) end
      error(("bad option '%s' to '%s' (%s expected, got %s)"):format(key, name, expected, got), level)
    end
  end
end

--- Checks that ARGV is a list of at least one string without NUL.
function options.check_argv(argv, name, level)
  level = (level or 1) + 1
  if type(argv) ~= "table" then
    error(("bad argument #1 to '%s' (list of strings expected, got %s)"):format(name, type(argv)), level)
  end
  local ok, expected = strings(argv)
  if not ok or #argv == 0 then
    error(("bad argument #1 to '%s' (%s expected%s)"):format(name, expected or "a list of strings",
      #argv == 0 and ", got an empty one" or ""), level)
  end
end

return options
