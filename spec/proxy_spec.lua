-- Proxy-only networks with the host's own proxies (cases 40 to 42): real clients, real proxies.
local sandbox = require "execsandbox"
local inside = require "spec.support.inside"
local servers = require "spec.support.servers"
local support = require "spec.support"

local python = support.python

-- Of the environment that the specs run in nothing is to be seen.
local function environment(variables)
  local env = { PATH = os.getenv "PATH" }
  for name, value in pairs(variables or {}) do env[name] = value end
  return env
end

local function given(policy, variables, options)
  local all = {
    policy = policy, cwd = "/", clear_env = true, env = environment(variables), timeout = 120, merge_output = true,
    backend_options = inside.backend_options,
  }
  for name, value in pairs(options or {}) do all[name] = value end
  return all
end

local function run(policy, variables, script, options)
  return assert(sandbox.run({ "/bin/sh", "-c", script }, given(policy, variables, options)))
end

local function output(policy, variables, script, options)
  return (run(policy, variables, script, options).output:gsub("\n$", ""))
end

-- A Python script as a word of the shell.
local function code(text)
  return python .. " -c " .. support.quote(text)
end

local function proxy_url(server, user)
  return ("http://%s127.0.0.1:%d"):format(user and user .. "@" or "", server.port)
end

-- Reads the head of a request and answers it with its own name.
local function named_proxy(name, host)
  return servers.python(([[
def handle(connection):
    head = b""
    while b"\r\n\r\n" not in head:
        bytes = connection.recv(65536)
        if not bytes: return
        head += bytes
    note(head.split(b"\r\n")[0].decode())
    for line in head.split(b"\r\n"):
        if line.lower().startswith(b"proxy-authorization"): note(line.decode())
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s")
    connection.close()
serve(handle, "%s")]]):format(#name, name, host or "127.0.0.1"))
end

-- Takes what comes to its end, and then tells how much and what it was.
local digest_proxy = [[
def handle(connection):
    digest, count = hashlib.sha256(), 0
    while True:
        bytes = connection.recv(1 << 16)
        if not bytes: break
        digest.update(bytes)
        count += len(bytes)
    note("got", count)
    connection.sendall(("%d %s" % (count, digest.hexdigest())).encode())
    connection.close()
serve(handle)]]

-- For the scripts inside: a connection to the proxy itself.
local function connected(server, text)
  return code(([[
import hashlib, os, select, socket, sys, threading, time
def connect(): return socket.create_connection(("127.0.0.1", %d))
]]):format(server.port) .. text)
end

describe("a proxy-only network", function()
  local policy

  setup(function() policy = inside.policy(nil, nil, { network = "proxy_only" }) end)
  teardown(servers.stop_all)

  describe("for real clients", function()
    local nginx, http, socks, workspace, writable

    setup(function()
      nginx, http, socks = servers.nginx(), servers.tinyproxy(), servers.microsocks()
      support.write(nginx.directory .. "/www/file", "the file\n")
      workspace = support.tempdir()
      writable = inside.policy(workspace, nil, { network = "proxy_only" })
    end)
    teardown(servers.stop_all)

    it("takes curl to http servers by HTTP_PROXY in either case", function()
      for _, name in ipairs { "HTTP_PROXY", "http_proxy" } do
        assert.equal("the file", output(policy, { [name] = proxy_url(http) }, "curl -sS " .. nginx.url .. "/file"))
      end
      assert.matches("GET http://127.0.0.2:", http.log(), 1, true)
    end)

    it("takes curl to https servers by CONNECT", function()
      for _, name in ipairs { "HTTPS_PROXY", "https_proxy", "ALL_PROXY" } do
        assert.equal("the file", output(policy, { [name] = proxy_url(http) },
          ("curl -sS --cacert %s %s/file"):format(nginx.ca, nginx.tls_url)))
      end
      assert.matches("CONNECT 127.0.0.2:", http.log(), 1, true)
    end)

    it("takes curl anywhere by SOCKS, names resolved outside", function()
      local env = { ALL_PROXY = "socks5h://127.0.0.1:" .. socks.port }
      assert.equal("the file", output(policy, env, "curl -sS " .. nginx.url .. "/file"))
      assert.equal("the file", output(policy, env,
        ("curl -sS --noproxy '' --cacert %s https://localhost:%d/file"):format(nginx.ca, nginx.tls_port)))
      env.ALL_PROXY = "socks5://localhost:" .. socks.port
      assert.equal("the file", output(policy, env, "curl -sS " .. nginx.url .. "/file"))
    end)

    it("takes wget to both", function()
      local env = { http_proxy = proxy_url(http), https_proxy = proxy_url(http) }
      assert.equal("the file\nthe file", output(policy, env,
        ("wget -qO- %s/file; wget -qO- --ca-certificate=%s %s/file"):format(nginx.url, nginx.ca, nginx.tls_url)))
    end)

    it("takes git to clone and fetch over https", function()
      local source = support.repository()
      local bare = nginx.directory .. "/www/project.git"
      support.must(("git clone -q --bare %s %s && git -C %s update-server-info"):format(source, bare, bare))
      local env = { HTTPS_PROXY = proxy_url(http), GIT_SSL_CAINFO = nginx.ca, HOME = workspace }
      assert.equal("text", output(writable, env,
        ("git clone -q %s/project.git clone && cat clone/readme"):format(nginx.tls_url), { cwd = workspace }))
      support.write(source .. "/later", "later\n")
      support.must(("cd %s && git add later && git -c user.name=s -c user.email=s@localhost commit -qm later && "
        .. "git push -q %s main && git -C %s update-server-info"):format(source, bare, bare))
      -- The clone's .git is protected now: it was made before it was there.
      local granted = inside.policy(workspace, { { path = workspace .. "/clone/.git", access = "write" } },
        { network = "proxy_only" })
      assert.equal("later", output(granted, env, "git fetch -q && git show origin/main:later",
        { cwd = workspace .. "/clone" }))
    end)

    it("takes npm to install from a registry", function()
      local www = nginx.directory .. "/www"
      support.write(www .. "/pack/package/package.json", '{"name":"demo","version":"1.0.0"}')
      support.write(www .. "/pack/package/index.js", "module.exports = 'installed'\n")
      support.must(("cd %s/pack && tar czf ../demo-1.0.0.tgz package"):format(www))
      local sum = support.must(("openssl dgst -sha512 -binary %s/demo-1.0.0.tgz | openssl base64 -A"):format(www))
      support.write(www .. "/demo", ([[{"name":"demo","dist-tags":{"latest":"1.0.0"},"versions":{"1.0.0":{
        "name":"demo","version":"1.0.0","dist":{"tarball":"%s/demo-1.0.0.tgz","integrity":"sha512-%s"}}}}]])
        :format(nginx.tls_url, sum))
      for i, name in ipairs { "npm_config_https_proxy", "HTTPS_PROXY" } do
        local directory = support.mkdir(workspace .. "/npm" .. i)
        support.write(directory .. "/package.json", "{}")
        local result = run(writable, {
          [name] = proxy_url(http), HOME = directory, npm_config_registry = nginx.tls_url .. "/",
          npm_config_cafile = nginx.ca, npm_config_update_notifier = "false",
        }, "npm install --no-audit --no-fund demo >log 2>&1 || cat log; node -p 'require(\"demo\")'", { cwd = directory })
        assert.equal("installed\n", result.output)
      end
    end)

    it("takes Python's urllib to both", function()
      assert.equal("the file\nthe file", output(policy, {
        http_proxy = proxy_url(http), https_proxy = proxy_url(http), SSL_CERT_FILE = nginx.ca,
      }, code(([[
import urllib.request
for url in "%s", "%s":
    print(urllib.request.urlopen(url + "/file").read().decode(), end="")]]):format(nginx.url, nginx.tls_url))))
    end)

    it("takes node's fetch there", function()
      local env = { http_proxy = proxy_url(http), https_proxy = proxy_url(http), NODE_EXTRA_CA_CERTS = nginx.ca,
        NODE_PATH = "/usr/share/nodejs" }
      -- Before node 24 a program says itself that its fetch is to take the proxy.
      local told = support.must("node", "-p", "parseInt(process.versions.node) >= 24") == "true" and "" or [[
const undici = require("undici")
undici.setGlobalDispatcher(new undici.ProxyAgent(process.env.HTTPS_PROXY))
]]
      for _, url in ipairs { nginx.tls_url, nginx.url } do
        local script = told .. ("fetch('%s/file').then(r => r.text()).then(t => process.stdout.write(t))"):format(url)
        assert.equal("the file", output(policy, env, "node -e " .. support.quote(script)))
      end
      assert.equal("1", output(policy, env, "echo $NODE_USE_ENV_PROXY"))
    end)

    it("opens nothing else: no direct way, whatever NO_PROXY says", function()
      local direct = ("curl -sS --noproxy '*' -o /dev/null %s/file 2>/dev/null; echo $?"):format(nginx.url)
      assert.equal("7", output(policy, { http_proxy = proxy_url(http) }, direct))
      for _, name in ipairs { "NO_PROXY", "no_proxy", "npm_config_noproxy" } do
        local before = #http.log()
        assert.equal("the file", output(policy, { http_proxy = proxy_url(http), [name] = "*,127.0.0.0/8,127.0.0.2" },
          "curl -sS " .. nginx.url .. "/file"))
        assert.matches("GET http://127.0.0.2:", http.log():sub(before), 1, true)
      end
    end)
  end)

  it("hands on users and passwords, which are on no command line and in nobody's environment", function()
    local http, nginx = servers.tinyproxy "BasicAuth user p4ssw0rd", servers.nginx()
    support.write(nginx.directory .. "/www/file", "the file\n")
    local env = { http_proxy = proxy_url(http, "user:p4ssw0rd") }
    assert.equal("the file", output(policy, env, "curl -sS " .. nginx.url .. "/file"))
    assert.matches("^40[17]$", output(policy, { http_proxy = proxy_url(http, "user:other") },
      "curl -sS -o /dev/null -w '%{http_code}' " .. nginx.url .. "/file"))
    local started = assert(sandbox.start({ "/bin/sleep", "20" }, given(policy, env)))
    assert.is_true(support.eventually(function() return started:pid() ~= nil end))
    assert.same({}, support.processes "p4ssw0rd")
    for _, pid in ipairs(support.descendants()) do
      local text = pid ~= started:pid() and support.read("/proc/" .. pid .. "/environ") or ""
      assert.is_nil(text:find("p4ssw0rd", 1, true))
    end
    started:close()
    servers.stop_all()
  end)

  it("brings each of two runs to its own proxy, at once", function()
    local proxies, runs = { named_proxy "one", named_proxy "two" }, {}
    for i, server in ipairs(proxies) do
      runs[i] = assert(sandbox.start({ "/bin/sh", "-c", "for i in 1 2 3 4 5; do curl -sS http://name.invalid/; echo; done" },
        given(policy, { http_proxy = proxy_url(server) })))
    end
    assert.equal(("one\n"):rep(5), runs[1]:wait().output)
    assert.equal(("two\n"):rep(5), runs[2]:wait().output)
    -- The other's is nowhere to be found.
    assert.equal("7", output(policy, { http_proxy = proxy_url(proxies[1]) },
      ("curl -sS http://127.0.0.1:%d/ 2>/dev/null; echo $?"):format(proxies[2].port)))
    assert.equal(5, proxies[2].count "GET http://name.invalid/ HTTP/1.1")
    -- And one run can have both.
    assert.equal("onetwo", output(policy, { http_proxy = proxy_url(proxies[1]), ALL_PROXY = proxy_url(proxies[2]) },
      "curl -sS http://name.invalid/; curl -sS -p ftp://name.invalid/ --proxytunnel --http0.9 2>/dev/null || "
      .. "curl -sS --proxy $ALL_PROXY http://name.invalid/"))
    servers.stop_all()
  end)

  it("reaches servers inside without the proxy", function()
    local server = named_proxy "proxy"
    assert.equal("inside inside", output(policy, { http_proxy = proxy_url(server), NO_PROXY = "" }, code [[
import http.server, subprocess, threading, urllib.request
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"inside")
    def log_message(self, *words): pass
inner = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=inner.serve_forever, daemon=True).start()
url = "http://localhost:%d/" % inner.server_port
print(subprocess.check_output(["curl", "-sS", url]).decode(), urllib.request.urlopen(url).read().decode())]]))
    assert.equal(0, server.count "GET http://localhost/ HTTP/1.1")
    servers.stop_all()
  end)

  it("has sockets of TCP, and of no other kind but pairs", function()
    local server = named_proxy "proxy"
    local result = assert(sandbox.run({ support.attack "sockets" }, given(policy, { http_proxy = proxy_url(server) })))
    assert.equal(0, result.exit_code, result.output)
    local seen = 0
    for name, answer in result.output:gmatch "([^\n]+) (%d+)\n" do
      local allowed = name:find "^pair " or name == "socketpair stream" or name == "socketpair stream cloexec"
        or name == "socketpair seqpacket" or name:find "^AF_INET6? SOCK_STREAM 0$"
        or name:find "^AF_INET6? SOCK_STREAM IPPROTO_TCP$"
      if allowed then seen = seen + 1 end
      if not name:find "^  the same" and not name:find "^garbage" then
        assert.equal(allowed and "0" or "1", answer, name)
      end
    end
    assert.is_true(seen >= 4)
    servers.stop_all()
  end)

  it("reaches no unix socket of the host's, no UDP, no name, no address outside", function()
    local server = named_proxy "proxy"
    local sockets = servers.python [[
path = sys.argv[0] + ".socket"
named = socket.socket(socket.AF_UNIX)
named.bind(path)
os.chmod(path, 0o777)
os.chmod(os.path.dirname(path), 0o755)
named.listen()
serve(lambda connection: note("reached"))]]
    local answers = output(policy, { http_proxy = proxy_url(server) }, code(([[
import errno, socket
def attempt(family, kind, address):
    try:
        s = socket.socket(family, kind)
        s.settimeout(5)
        s.connect(address)
        return "open"
    except OSError as error:
        return errno.errorcode.get(error.errno, str(error.errno))
print(attempt(socket.AF_UNIX, socket.SOCK_STREAM, "%s"),
    attempt(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 53)),
    attempt(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", %d)),
    attempt(socket.AF_INET, socket.SOCK_STREAM, ("192.0.2.1", 80)),
    attempt(socket.AF_INET6, socket.SOCK_STREAM, ("2001:db8::1", 80)))
try:
    socket.getaddrinfo("name.invalid", 80)
except OSError as error:
    print("unresolved")]]):format(sockets.directory .. "/server.py.socket", sockets.port)))
    assert.equal("EPERM EPERM ECONNREFUSED ENETUNREACH ENETUNREACH\nunresolved", answers)
    assert.equal(0, sockets.count "reached")
    servers.stop_all()
  end)

  it("has the host's limits, and no descriptor more", function()
    local server = named_proxy "proxy"
    local script = "ulimit -Sn; ulimit -Hn; ls /proc/self/fd | wc -l"
    local isolated = inside.policy()
    assert.equal(output(isolated, {}, script), output(policy, { http_proxy = proxy_url(server) }, script))
    servers.stop_all()
  end)

  describe("finds proxies", function()
    local function plan(variables)
      return sandbox.plan({ "/bin/true" }, given(policy, variables, { timeout = nil, merge_output = nil }))
    end

    it("in every usual variable, in both cases", function()
      for _, name in ipairs {
        "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "FTP_PROXY", "WS_PROXY", "WSS_PROXY", "YARN_HTTP_PROXY",
        "YARN_HTTPS_PROXY", "NPM_CONFIG_PROXY", "NPM_CONFIG_HTTP_PROXY", "NPM_CONFIG_HTTPS_PROXY",
        "BUNDLE_HTTP_PROXY", "BUNDLE_HTTPS_PROXY", "PIP_PROXY", "DOCKER_HTTP_PROXY", "DOCKER_HTTPS_PROXY",
      } do
        for _, spelled in ipairs { name, name:lower() } do
          local url = "http://user:word@127.0.0.1:3999/path"
          local found = assert(plan { [spelled] = url })
          assert.equal(url, found.environment[spelled])
          local result, err = plan { [spelled] = "http://user:word@192.0.2.1:3999/path" }
          assert.is_nil(result)
          assert.equal("policy", err.kind)
          assert.is_truthy(err.message:find(spelled, 1, true))
          assert.is_nil(tostring(err):find("word", 1, true))
        end
      end
    end)

    it("of every scheme and every loopback address", function()
      for _, url in ipairs {
        "http://127.0.0.1:3999", "https://127.0.0.1:3999", "socks5://127.0.0.1:3999", "socks5h://127.0.0.1:3999",
        "socks4://127.0.0.1:3999", "socks4a://127.0.0.1:3999", "HTTP://127.0.0.1:3999/", "127.0.0.1:3999",
        "localhost:3999", "user:pa@ss@127.0.0.1:3999", "http://127.9.8.7:3999", "http://[::1]:3999",
        "http://LocalHost:3999/?a=b#c", "[::1]:3999", "http://127.0.0.1:65535",
      } do
        local found, err = plan { ALL_PROXY = url }
        assert.is_truthy(found, url .. ": " .. tostring(err))
        assert.equal(url, found.environment.ALL_PROXY)
      end
    end)

    it("and writes the port where it is another one inside, or was left out", function()
      for url, changed in pairs {
        ["http://u:p@127.0.0.1:80/path"] = "http://u:p@127.0.0.1:30080/path",
        ["http://127.0.0.1"] = "http://127.0.0.1:30080",
        ["http://127.0.0.1/"] = "http://127.0.0.1:30080/",
        ["https://[::1]"] = "https://[::1]:30443",
        ["socks5h://u:p@localhost"] = "socks5h://u:p@localhost:1080",
        ["127.0.0.1:8"] = "127.0.0.1:30008",
      } do
        assert.equal(changed, assert(plan { ALL_PROXY = url }).environment.ALL_PROXY)
      end
      local both = assert(plan { ALL_PROXY = "http://127.0.0.1:80", FTP_PROXY = "http://127.0.0.1:30080" }).environment
      assert.equal("http://127.0.0.1:30081", both.ALL_PROXY)
      assert.equal("http://127.0.0.1:30080", both.FTP_PROXY)
    end)

    it("and refuses what is none, naming the variable and never the password", function()
      for _, url in ipairs {
        "http://hunter2@example.org:80", "http://u:hunter2@192.0.2.1:80", "http://u:hunter2@127.0.0.1:0",
        "http://u:hunter2@127.0.0.1:65536", "http://u:hunter2@127.0.0.1:x", "http://u:hunter2", "ftp://u:hunter2@127.0.0.1:1",
        "http://u:hunter2@127.0.0.1.example.org:1", "http://u:hunter2@0.0.0.0:1", "http://u:hunter2@[::2]:1",
        "http://u:hunter2@[::1:1", "http://u:hunter2@127.1:1", "http://u:hunter2@0127.0.0.1:1", "http://u:hunter2@127.0.0.256:1",
        "http://u:hunter2@2130706433:1", "http://u:hunter2@127.0.0.1:1 ", "hunter2\n127.0.0.1:1", "http://hunter2/@127.0.0.1:1",
        "http://u:hunter2@:1", "http://", "://127.0.0.1:1", "hunter2", " ", "http://u:hunter2@localhost.example.org:1",
        "http://u:hunter2@127.0.0.1:-1", "http://u:hunter2@127.0.0.1:1:2", "http://127.0.0.1:1@hunter2",
      } do
        local result, err = sandbox.run({ "/bin/true" }, given(policy, { https_proxy = url, HTTP_PROXY = "http://127.0.0.1:9" }))
        assert.is_nil(result, url)
        assert.equal("policy", err.kind, url)
        assert.is_truthy(tostring(err):find("https_proxy", 1, true), url)
        assert.is_nil(tostring(err):find("hunter2", 1, true), url)
      end
    end)

    it("and where there is none, nothing is launched", function()
      for _, variables in ipairs { {}, { HTTP_PROXY = "", https_proxy = "" }, { npm_config_proxy = "null" } } do
        local called
        local result, err = sandbox.run({ "/bin/true" },
          given(policy, variables, { on_capture_created = function() called = true end }))
        assert.is_nil(result)
        assert.is_nil(called)
        assert.equal("unavailable", err.kind)
        assert.equal("network_proxy_only", err.capability)
        assert.is_truthy(err.remedy)
      end
    end)

    it("in what the command gets, not in what the host has", function()
      local server = named_proxy "proxy"
      local result, err = sandbox.run({ "/bin/true" }, given(policy, { HTTP_PROXY = false }))
      assert.is_nil(result)
      assert.equal("unavailable", err.kind)
      assert.equal("proxy", output(policy, { HTTP_PROXY = proxy_url(server) }, "curl -sS http://name.invalid/"))
      servers.stop_all()
    end)
  end)

  it("finds localhost in both families, inside and outside", function()
    local four, six = named_proxy "four", named_proxy("six", "::1")
    for url, name in pairs {
      ["http://localhost:" .. four.port] = "four", ["http://localhost:" .. six.port] = "six",
      ["http://[::1]:" .. six.port] = "six",
    } do
      assert.equal(name .. name, output(policy, { http_proxy = url },
        "curl -sS http://name.invalid/; curl -sS --proxy " .. url:gsub("localhost", "[::1]") .. " http://name.invalid/"))
      if url:find "localhost" then
        assert.equal(name, output(policy, { http_proxy = url },
          "curl -sS --proxy " .. url:gsub("localhost", "127.0.0.1") .. " http://name.invalid/"))
      end
    end
    servers.stop_all()
  end)

  it("serves ports that an ordinary process cannot have at another one", function()
    support.skip_unless(support.is_root, "only root can have a proxy at such a port")
    local server = servers.python [[
def handle(connection):
    connection.recv(65536)
    connection.sendall(b"HTTP/1.0 200 OK\r\n\r\nlow")
    connection.close()
for port in range(700, 900):
    try:
        serve(handle, port=port)
    except OSError:
        pass]]
    assert.is_true(server.port < 1024)
    assert.equal("low", output(policy, { http_proxy = proxy_url(server) }, "curl -sS http://name.invalid/"))
    servers.stop_all()
  end)

  it("is not launched where a listener cannot be had", function()
    local core, request = require "execsandbox.core", require "execsandbox.request"
    local options = given(policy, { HTTP_PROXY = "http://127.0.0.1:3999" })
    local wanted = assert(request.build({ "/bin/true" }, options))
    wanted.proxies[2] = wanted.proxies[1]
    local started = assert(core.prepare(policy, wanted))
    assert(started:launch())
    assert.is_true(support.eventually(function() return (started:poll()) end, 20))
    local record = started:record()
    assert.equal("launch-failed", record.status)
    assert.equal("proxy", record.stage)
    assert.equal(98, record.errno) -- EADDRINUSE
    assert.matches("127.0.0.1:3999", record.text, 1, true)
  end)

  it("passes much both ways, intact, with each way ended by itself", function()
    local server = servers.python [[
def handle(connection):
    digest = hashlib.sha256()
    def take():
        while True:
            bytes = connection.recv(1 << 16)
            if not bytes: break
            digest.update(bytes)
    taker = threading.Thread(target=take)
    taker.start()
    for number in range(100):
        connection.sendall(bytes([number]) * (1 << 20))
    taker.join()
    connection.sendall(digest.digest())
    connection.close()
serve(handle)]]
    assert.equal("104857632 True True", output(policy, { http_proxy = proxy_url(server) }, connected(server, [[
c = connect()
sent, got, count, last = hashlib.sha256(), hashlib.sha256(), 0, b""
def give():
    for number in range(100):
        bytes_ = os.urandom(1 << 20)
        sent.update(bytes_)
        c.sendall(bytes_)
    c.shutdown(socket.SHUT_WR)
giver = threading.Thread(target=give)
giver.start()
while True:
    bytes_ = c.recv(1 << 16)
    if not bytes_: break
    count += len(bytes_)
    last = (last + bytes_)[-(1 << 17):]
    keep = max(0, count - 100 * (1 << 20))
    got.update(bytes_[:len(bytes_) - min(keep, len(bytes_))])
giver.join()
wanted = hashlib.sha256()
for number in range(100): wanted.update(bytes([number]) * (1 << 20))
print(count, last[-32:] == sent.digest(), got.digest() == wanted.digest())]])))
    servers.stop_all()
  end)

  it("holds 250 connections at once", function()
    local server = servers.python(digest_proxy)
    assert.equal("250", output(policy, { http_proxy = proxy_url(server) }, connected(server, [[
connections = [connect() for _ in range(250)]
for number, c in enumerate(connections): c.sendall(bytes([number]) * 20000)
for c in connections: c.shutdown(socket.SHUT_WR)
good = 0
for number, c in enumerate(connections):
    text = b""
    while True:
        bytes_ = c.recv(4096)
        if not bytes_: break
        text += bytes_
    good += text.decode() == "20000 " + hashlib.sha256(bytes([number]) * 20000).hexdigest()
print(good)]])))
    servers.stop_all()
  end)

  it("delivers what a command sent before it ended", function()
    local server = servers.python(digest_proxy)
    for _ = 1, 5 do
      run(policy, { http_proxy = proxy_url(server) }, connected(server, [[
c = connect()
c.sendall(b"x" * 100000)]]))
    end
    assert.is_true(support.eventually(function() return server.count "got 100000" == 5 end))
    servers.stop_all()
  end)

  it("tells a proxy that died, or is not there", function()
    local server = servers.python [[
def handle(connection):
    connection.recv(10)
    connection.sendall(b"x" * 5000)
    os._exit(1)
serve(handle)]]
    local result = run(policy, { http_proxy = proxy_url(server) }, connected(server, [[
def attempt():
    count = 0
    try:
        c = connect()
        c.settimeout(20)
        c.sendall(b"hello")
        while True:
            bytes_ = c.recv(65536)
            if not bytes_: return "%d end" % count
            count += len(bytes_)
    except ConnectionError:
        return "%d reset" % count
print(attempt(), attempt())]]))
    assert.matches("^5000 %a+ 0 %a+\n$", result.output)
    assert.equal(0, result.exit_code)
    servers.stop_all()
  end)

  it("passes a reset on as a reset, either way", function()
    local server = servers.python [[
def handle(connection):
    connection.sendall(b"x")
    word = connection.recv(1)
    if word == b"r":
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()
        return
    try:
        note("end" if connection.recv(1) == b"" else "more")
    except ConnectionResetError:
        note("reset")
serve(handle)]]
    assert.equal("reset", output(policy, { http_proxy = proxy_url(server) }, connected(server, [[
import struct
c = connect()
c.recv(1)
c.sendall(b"r")
try:
    print("end" if c.recv(1) == b"" else "more")
except ConnectionResetError:
    print("reset")
c = connect()
c.recv(1)
c.sendall(b"k")
time.sleep(0.3)
c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
c.close()
time.sleep(0.3)]])))
    assert.is_true(support.eventually(function() return server.count "reset" == 1 end))
    servers.stop_all()
  end)

  -- Says when it has got something, and how it ended.
  local watching_proxy = [[
def handle(connection):
    connection.recv(1)
    note("first")
    try:
        while connection.recv(1 << 16): pass
        note("end")
    except OSError:
        note("reset")
serve(handle)]]

  local function endless(server)
    return connected(server, "c = connect()\nwhile True: c.sendall(b'x' * 65536)")
  end

  it("closes its connections at once when a run is cancelled or timed out, grace or not", function()
    local server = servers.python(watching_proxy)
    local env = { http_proxy = proxy_url(server) }
    for i, grace in ipairs { 0, 20 } do
      local started = assert(sandbox.start({ "/bin/sh", "-c", "trap '' TERM; " .. endless(server) .. "; sleep 30" },
        given(policy, env, { kill_grace = grace })))
      assert.is_true(support.eventually(function() return server.count "first" == i end, 20))
      assert.equal(i - 1, server.count "end")
      started:cancel()
      assert.is_true(support.eventually(function() return server.count "end" == i end, 2))
      started:close()
    end
    local result = run(policy, env, endless(server), { timeout = 2 })
    assert.equal("timeout", result.status)
    assert.is_true(support.eventually(function() return server.count "end" == 3 end, 2))
    servers.stop_all()
  end)

  it("closes its connections when the host is killed", function()
    local server = servers.python(watching_proxy)
    local directory = support.tempdir()
    local script = support.write(directory .. "/host.lua", ([[
      local sandbox = require "execsandbox"
      local policy = assert(sandbox.policy { rules = { { special = "root", access = "read" } }, network = "proxy_only" })
      sandbox.run({ "/bin/sh", "-c", %q }, { policy = policy, cwd = "/", env = { http_proxy = %q } })
    ]]):format(endless(server), proxy_url(server)))
    local host = servers.start(directory, { support.lua, script })
    assert.is_true(support.eventually(function() return server.count "first" == 1 end, 20), host.log())
    for _, pid in ipairs(support.processes(script)) do
      support.shell("kill", "-KILL", tostring(pid))
    end
    assert.is_true(support.eventually(function() return server.count "end" == 1 end, 2))
    host.stop()
    servers.stop_all()
  end)

  it("is not held by a proxy that accepts and never answers, nor by one that does not accept", function()
    for _, silent in ipairs {
      "def handle(connection): time.sleep(600)\nserve(handle)",
      [[
listener = socket.create_server(("127.0.0.1", 0), backlog=0)
print("port", listener.getsockname()[1], flush=True)
held = []
while True: # fills its backlog itself
    s = socket.socket()
    s.setblocking(False)
    s.connect_ex(listener.getsockname())
    held.append(s)
    time.sleep(0.05 if len(held) < 20 else 10)]],
    } do
      local server = servers.python(silent)
      support.sleep(0.5)
      local result = run(policy, { http_proxy = proxy_url(server) },
        "curl -sS --max-time 1 http://name.invalid/ 2>/dev/null; echo $?")
      assert.equal("28\n", result.output)
      assert.is_true(result.real_seconds < 20)
      -- Also in the middle of it.
      local started = assert(sandbox.start({ "/bin/sh", "-c", "curl -sS http://name.invalid/" },
        given(policy, { http_proxy = proxy_url(server) })))
      support.sleep(0.5)
      local begin = support.now()
      started:close()
      assert.is_true(support.now() - begin < 3)
      servers.stop_all()
    end
  end)

  it("costs no time where nothing moves, and leaves nothing behind", function()
    local server = servers.python "def handle(connection): time.sleep(600)\nserve(handle)"
    collectgarbage()
    collectgarbage()
    local before = support.fds()
    local started = assert(sandbox.start({ "/bin/sh", "-c", connected(server, [[
import struct
held = []
for number in range(20):
    c = connect()
    c.setblocking(False)
    try: # to the brim
        while True: c.send(b"x" * 65536)
    except BlockingIOError: pass
    if number % 4 == 1: c.shutdown(socket.SHUT_WR)
    held.append(c)
    c = connect()
    c.send(b"x")
    c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    if number % 2: c.close()
print("full", flush=True)
time.sleep(600)]]) }, given(policy, { http_proxy = proxy_url(server) })))
    assert.is_true(support.eventually(function() return started:output():find "full" ~= nil end, 30))
    support.sleep(1)
    local helper
    for _, pid in ipairs(support.descendants()) do
      if (support.read("/proc/" .. pid .. "/cmdline") or ""):find "supervise" then helper = pid end
    end
    -- utime and stime of proc_pid_stat(5), in hundredths of a second
    local function ticks()
      local fields = {}
      for field in support.read("/proc/" .. helper .. "/stat"):match(".*%) (.*)"):gmatch "%S+" do
        fields[#fields + 1] = field
      end
      return tonumber(fields[12]) + tonumber(fields[13])
    end
    local begin = ticks()
    support.sleep(2)
    assert.is_true(ticks() - begin <= 4) -- of 200
    started:close()
    started = nil -- luacheck: ignore 311
    collectgarbage()
    collectgarbage()
    assert.equal(before, support.fds())
    servers.stop_all()
  end)
end)
