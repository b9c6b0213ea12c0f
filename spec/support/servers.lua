--- Servers and proxies on this machine's loopback, of the test's own: real programs, and small
-- ones in Python. Each ends with `stop()`, and with the test whatever happens to it.
local support = require "spec.support"

local servers = {}

local unpack = table.unpack or unpack -- luacheck: compat

-- Runs a command until its own standard input ends, which it does with the test.
local keeper = [[
import ctypes, signal, subprocess, sys
def die(): ctypes.CDLL(None).prctl(1, signal.SIGKILL)
child = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL, preexec_fn=die)
sys.stdin.read()
child.terminate()
try:
    child.wait(5)
except subprocess.TimeoutExpired:
    child.kill()
    child.wait()
]]

local running = {}

--- Starts the words of a command; its output goes to `log` in `directory`.
function servers.start(directory, argv)
  local log = directory .. "/log"
  local words = { "exec", support.quote(support.python), "-c", support.quote(keeper) }
  for _, word in ipairs(argv) do words[#words + 1] = support.quote(word) end
  local pipe = assert(io.popen(table.concat(words, " ") .. " >" .. support.quote(log) .. " 2>&1", "w"))
  local server = { directory = directory }
  function server.log() return support.read(log) or "" end
  function server.stop()
    if pipe then pipe:close() end
    pipe, running[server] = nil, nil
  end
  running[server] = true
  return server
end

--- Stops all that still run.
function servers.stop_all()
  local list = {}
  for server in pairs(running) do list[#list + 1] = server end
  for _, server in ipairs(list) do server.stop() end
end

--- Ports where nobody listens now.
function servers.free_ports(count)
  local output = support.must(support.python, "-c", ([[
import socket
sockets = [socket.socket() for _ in range(%d)]
for s in sockets: s.bind(("127.0.0.1", 0))
print(*(s.getsockname()[1] for s in sockets))]]):format(count))
  local ports = {}
  for port in output:gmatch "%d+" do ports[#ports + 1] = tonumber(port) end
  return unpack(ports)
end

-- Whether somebody listens at HOST:PORT.
local function answers(host, port)
  local _, status = support.shell(support.python, "-c",
    ("import socket; socket.create_connection((%q, %d), 5)"):format(host, port))
  return status == 0
end

-- Starts a server that listens where it is told, at a port that was free a moment ago.
local function at_a_port(host, start)
  for _ = 1, 5 do
    local port = servers.free_ports(1)
    local server = start(port)
    if support.eventually(function() return answers(host, port) end, 10) then
      server.port = port
      return server
    end
    server.stop()
  end
  error("no server at any port", 2)
end

--- tinyproxy, with `more` lines of configuration.
function servers.tinyproxy(more)
  return at_a_port("127.0.0.1", function(port)
    local directory = support.tempdir()
    local config = support.write(directory .. "/tinyproxy.conf", ([[
Port %d
Listen 127.0.0.1
Timeout 600
MaxClients 500
LogLevel Connect
DisableViaHeader Yes
%s
]]):format(port, more or ""))
    return servers.start(directory, { "tinyproxy", "-d", "-c", config })
  end)
end

function servers.microsocks(...)
  local more = { ... }
  return at_a_port("127.0.0.1", function(port)
    local argv = { "microsocks", "-i", "127.0.0.1", "-p", tostring(port) }
    for _, word in ipairs(more) do argv[#argv + 1] = word end
    return servers.start(support.tempdir(), argv)
  end)
end

-- An authority of the test's own and a certificate of it for 127.0.0.1, 127.0.0.2 and localhost.
local function certificate(directory)
  support.must(([[cd %s && exec 2>/dev/null
openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj "/CN=Spec CA" -keyout ca.key -out ca.pem
openssl req -newkey rsa:2048 -nodes -subj "/CN=localhost" -keyout key.pem -out request.pem
printf 'subjectAltName=DNS:localhost,IP:127.0.0.1,IP:127.0.0.2\n' >names
openssl x509 -req -in request.pem -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile names -out cert.pem
chmod 644 ca.pem]]):format(support.quote(directory)))
end

--- nginx with the files of `directory`/www: plain at `port`, with TLS at `tls_port`, both at 127.0.0.1 and
-- 127.0.0.2; `ca` is its authority's certificate.
function servers.nginx()
  local directory = support.tempdir()
  support.must("chmod", "755", directory)
  support.mkdir(directory .. "/www")
  certificate(directory)
  local tls
  local server = at_a_port("127.0.0.2", function(port)
    tls = servers.free_ports(1)
    local config = support.write(directory .. "/nginx.conf", ([[
daemon off;
master_process off;
pid pid;
error_log stderr;
events { worker_connections 1024; }
http {
  access_log access;
  client_body_temp_path body;
  proxy_temp_path proxy;
  fastcgi_temp_path fastcgi;
  uwsgi_temp_path uwsgi;
  scgi_temp_path scgi;
  types { application/json json; }
  server {
    listen 127.0.0.1:%d;
    listen 127.0.0.2:%d;
    listen 127.0.0.1:%d ssl;
    listen 127.0.0.2:%d ssl;
    ssl_certificate cert.pem;
    ssl_certificate_key key.pem;
    root www;
  }
}
]]):format(port, port, tls, tls))
    local program = support.exists "/usr/sbin/nginx" and "/usr/sbin/nginx" or "nginx"
    return servers.start(directory, { program, "-p", directory, "-c", config })
  end)
  server.tls_port = tls
  server.ca = directory .. "/ca.pem"
  function server.accesses() return support.read(directory .. "/access") or "" end
  server.url = "http://127.0.0.2:" .. server.port
  server.tls_url = "https://127.0.0.2:" .. tls
  return server
end

-- What the Python ones share: they listen at a port of the system's choice and print it.
local preamble = [[
import hashlib, os, socket, struct, sys, threading, time
def note(*words):
    os.write(2, (" ".join(str(word) for word in words) + "\n").encode())
def serve(handle, host="127.0.0.1", port=0, backlog=1000):
    listener = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET,
        backlog=backlog)
    print("port", listener.getsockname()[1], flush=True)
    def run(connection):
        try:
            handle(connection)
        except OSError as error:
            note("error", error.errno)
    while True:
        threading.Thread(target=run, args=(listener.accept()[0],), daemon=True).start()
]]

--- A server of the Python code, which calls serve(function(connection)).
function servers.python(code)
  local directory = support.tempdir()
  local script = support.write(directory .. "/server.py", preamble .. code)
  local server = servers.start(directory, { support.python, script })
  local function port() return tonumber(server.log():match "port (%d+)\n") end
  server.port = support.eventually(port, 20) or error("no server: " .. server.log())
  --- How many lines of the log are `line`.
  function server.count(line)
    local count = 0
    for found in server.log():gmatch "[^\n]+" do
      if found == line then count = count + 1 end
    end
    return count
  end
  return server
end

return servers
