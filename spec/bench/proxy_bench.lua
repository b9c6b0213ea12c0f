-- What the relay to a proxy costs: bytes through it against one hop of socat, many connections at
-- once, and launches against those without a network.
local bench = require "spec.bench.bench"
local sandbox = require "execsandbox"

local BYTES, TURNS, MANY, LAUNCHES = 512 * 1024 * 1024, 15, 200, 200

local directory = bench.tempdir()
os.execute("chmod 755 " .. directory .. " && cp " .. bench.program "bench/stream" .. " " .. directory)
local stream = directory .. "/stream"

local function read(path)
  local file = io.open(path)
  local text = file and file:read "*a"
  if file then file:close() end
  return text or ""
end

local function await(what, fn)
  for _ = 1, 1000 do
    local answer = fn()
    if answer then return answer end
    os.execute "sleep 0.01"
  end
  error(what .. " did not start")
end

local server = assert(io.popen(stream .. " serve >" .. directory .. "/port", "w"))
local port = tonumber(await("the server", function() return read(directory .. "/port"):match "^(%d+)\n" end))

-- socat says where it listens; it ends with its parent, a shell that waits for the end of its input.
local hop = assert(io.popen(("socat -d -d TCP-LISTEN:0,bind=127.0.0.1,fork,reuseaddr TCP:127.0.0.1:%d 2>%s/hop & "
  .. "read end; kill $!"):format(port, directory), "w"))
local hop_port = tonumber(await("socat", function() return read(directory .. "/hop"):match "listening on .-:(%d+)\n" end))

local function policy(network)
  return assert(sandbox.policy { rules = { { special = "root", access = "read" } }, network = network })
end
local proxied, isolated = policy "proxy_only", policy "isolated"
local env = { HTTP_PROXY = "http://127.0.0.1:" .. port }

local function inside(what, count)
  local result = assert(sandbox.run({ stream, what, tostring(port), tostring(count) },
    { policy = proxied, cwd = "/", env = env }))
  return assert(tonumber(result.output), result.error_output)
end

local function outside(what, at, count)
  local pipe = assert(io.popen(("%s %s %d %d"):format(stream, what, at, count)))
  local seconds = pipe:read "*n"
  pipe:close()
  return assert(seconds, "the transfer failed")
end

-- Each measures itself, from its connect to its end.
for _, what in ipairs { "up", "down" } do
  local relay, socat, direct = {}, {}, {}
  for turn = 0, TURNS do -- the first is not counted
    relay[turn], socat[turn] = inside(what, BYTES), outside(what, hop_port, BYTES)
    direct[turn] = outside(what, port, BYTES)
  end
  relay, socat, direct = bench.summary(relay), bench.summary(socat), bench.summary(direct)
  print(("%s: %.2f GB/s through the relay, %.2f through socat, %.2f without a hop"):format(what,
    BYTES / relay.median / 1e9, BYTES / socat.median / 1e9, BYTES / direct.median / 1e9))
  bench.print("512 MiB " .. what .. " through the relay", relay, "one hop of socat", socat, 1 / 0.8)
end

local failed = 0
for _ = 1, TURNS do failed = failed + inside("many", MANY) end
print(("%d connections at once, %d times: %d errors"):format(MANY, TURNS, failed))

local launches = bench.interleave(LAUNCHES, {
  proxied = function() assert(sandbox.run({ "/bin/true" }, { policy = proxied, cwd = "/", env = env })) end,
  isolated = function() assert(sandbox.run({ "/bin/true" }, { policy = isolated, cwd = "/", env = env })) end,
})
bench.print("launch with a proxy", launches.proxied, "isolated", launches.isolated, 1.15)

hop:close()
server:close()
assert(failed == 0, "connections failed")
bench.finish()
