-- `make demo`: a command in a sandbox, on a git repository made for it. Status 1 where the sandbox
-- did not do what it is there for.
local sandbox = require "execsandbox"

local function quote(word)
  return "'" .. word:gsub("'", "'\\''") .. "'"
end

-- What a shell command prints, without its last newline; nil where that is nothing.
local function shell(command)
  local pipe = assert(io.popen(command))
  local text = pipe:read("*a"):gsub("\n$", "")
  pipe:close()
  return text ~= "" and text or nil
end

local function read(path)
  local file = io.open(path, "rb")
  local content = file and file:read "*a"
  if file then
    file:close()
  end
  return content
end

local terminal = shell "test -t 1 && echo yes" == "yes"

local function strong(text)
  return terminal and "\27[1m" .. text .. "\27[0m" or text
end

local failures = 0

local function verdict(good, text)
  failures = failures + (good and 0 or 1)
  print((good and "   => " or "   => WRONG: not ") .. text .. "\n")
end

local function demo(workspace)
  local policy = assert(sandbox.workspace_write { workspace_roots = { workspace } })

  local function run(title, command, options)
    local arguments = { policy = policy, cwd = workspace, timeout = 30, merge_output = true }
    for name, value in pairs(options or {}) do
      arguments[name] = value
    end
    print(strong(title))
    print("   $ " .. command)
    local result = assert(sandbox.run({ "/bin/sh", "-c", command }, arguments))
    for line in result.output:gmatch "[^\n]+" do
      print("   | " .. line)
    end
    return result
  end

  print("A sandbox for " .. workspace .. ", a git repository:")
  print("its files may be written, its .git only read, the home directory is hidden.\n")

  local result = run("A write in the workspace", "echo 'made inside' > notes.txt && git status --short")
  verdict(result.exit_code == 0 and read(workspace .. "/notes.txt") == "made inside\n"
    and result.output == "?? notes.txt\n", "allowed: the file is there, and git works on the repository")

  local config = read(workspace .. "/.git/config")
  result = run("A write to .git", "echo '[core] fsmonitor = evil' >> .git/config")
  verdict(result.exit_code ~= 0 and read(workspace .. "/.git/config") == config,
    "refused: .git/config is what it was")

  result = run("A write elsewhere", "touch /usr/planted")
  verdict(result.exit_code ~= 0 and not read "/usr/planted", "refused")

  local home = os.getenv "HOME"
  if home and home ~= "/" and shell("ls -A -- " .. quote(home) .. " 2>/dev/null") then
    result = run("A look into the home directory", 'ls -A -- "$HOME"')
    verdict(result.exit_code ~= 0, "hidden: a listing outside has something to show")
  end

  result = run("More output than was asked for", "seq 1 1000000", { output_limit = 20 })
  local count = result.output_capture.observed_byte_count
  print(string.format("   %d of %d bytes shown", #result.output, count))
  verdict(result.exit_code == 0 and result.output_truncated and count == 6888896,
    "cut at the limit; the rest was drained, and the command never waited")
end

local workspace = assert(shell "cd /var/tmp && mktemp -d \"$(pwd -P)/execsandbox-demo.XXXXXX\"")
local done, why = pcall(function()
  assert(shell("cd " .. quote(workspace) .. " && git init -q -b main . && echo text > readme && "
    .. "git add readme && git -c user.name=demo -c user.email=demo@localhost commit -q -m first && "
    .. "echo made"), "git could not make a repository")
  demo(workspace)
end)
os.execute("rm -rf -- " .. quote(workspace))
if not done then
  io.stderr:write("demo: ", tostring(why), "\n")
end
if not done or failures > 0 then
  os.exit(1)
end
print "Everything came out as it should."
