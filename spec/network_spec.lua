-- Networks and sockets (cases 36 to 39 and 44).
local sandbox = require "execsandbox"
local inside = require "spec.support.inside"
local support = require "spec.support"

local python = support.python

local function attack(policy, ...)
  local result = assert(sandbox.run({ support.attack "sockets", ... },
    { policy = policy, merge_output = true, timeout = 60, cwd = "/" }))
  assert.equal(0, result.exit_code, result.output)
  return result.output
end

-- A server of the host's: a Python program that prints a line when it is ready, and writes the
-- bytes that it gets to a file. Ends when its standard input does.
local function serve(code)
  local directory = support.tempdir()
  local script = support.write(directory .. "/server.py", code)
  local ready = directory .. "/ready"
  local pipe = assert(io.popen(("exec %s %s %s > %s"):format(python, script, directory, ready), "w"))
  assert.is_true(support.eventually(function() return (support.read(ready) or ""):find "\n" ~= nil end, 20))
  return {
    directory = directory,
    line = (support.read(ready):gsub("\n", "")),
    received = function() return support.read(directory .. "/received") end,
    stop = function() pipe:close() end,
  }
end

local tcp_server = [[
import socket, sys, threading
listener = socket.create_server(("127.0.0.1", 0))
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
udp.bind(("127.0.0.1", listener.getsockname()[1]))
def note(text):
    with open(sys.argv[1] + "/received", "a") as f:
        f.write(text)
def accept():
    while True:
        connection, _ = listener.accept()
        note("tcp")
def receive():
    while True:
        udp.recvfrom(100)
        note("udp")
threading.Thread(target=accept, daemon=True).start()
threading.Thread(target=receive, daemon=True).start()
print(listener.getsockname()[1], flush=True)
sys.stdin.read()
]]

local unix_server = [[
import os, socket, sys, threading
directory = sys.argv[1]
def note(text):
    with open(directory + "/received", "a") as f:
        f.write(text)
stream = socket.socket(socket.AF_UNIX)
stream.bind(directory + "/stream")
stream.listen(50)
dgram = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
dgram.bind(directory + "/dgram")
abstract = socket.socket(socket.AF_UNIX)
abstract.bind("\0execsandbox-" + str(os.getpid()))
abstract.listen(50)
for name in "stream", "dgram":
    os.chmod(directory + "/" + name, 0o777)
os.chmod(directory, 0o755)
def accept(s, name):
    while True:
        connection, _ = s.accept()
        note(name)
def receive():
    while True:
        dgram.recvfrom(100)
        note("dgram")
threading.Thread(target=accept, args=(stream, "stream"), daemon=True).start()
threading.Thread(target=accept, args=(abstract, "abstract"), daemon=True).start()
threading.Thread(target=receive, daemon=True).start()
print("execsandbox-" + str(os.getpid()), flush=True)
sys.stdin.read()
]]

-- Every line "NAME ERRNO" of an attack is a refusal.
local function assert_refused(output)
  assert.matches("%S", output)
  for name, answer in output:gmatch "([^\n]+) (%d+)\n" do
    -- Where sockets may be made and bound at all, that is no success yet.
    if name:find "connect" or name:find "send" then assert.not_equal("0", answer, name) end
  end
end

describe("an isolated network", function()
  local policy

  setup(function() policy = inside.policy() end)

  it("has no sockets but pairs: TCP, UDP, ICMP, raw, netlink, packet, vsock are refused", function()
    local output = attack(policy)
    for name, answer in output:gmatch "([^\n]+) (%d+)\n" do
      local pair = name:find "^pair " or name == "socketpair stream" or name == "socketpair stream cloexec"
        or name == "socketpair seqpacket"
      assert.equal(pair and "0" or "1", answer, name)
    end
  end)

  it("does not reach the host's loopback", function()
    local server = serve(tcp_server)
    assert_refused(attack(policy, "tcp", "127.0.0.1", server.line))
    assert_refused(attack(policy, "udp", "127.0.0.1", server.line))
    server.stop()
    assert.is_nil((server.received()))
  end)

  it("fails to resolve names at once", function()
    local result = inside.sh(policy, python .. " -c 'import socket; socket.getaddrinfo(\"name.invalid\", 80)'", { cwd = "/" })
    assert.equal(1, result.exit_code)
    assert.is_true(result.real_seconds < 5)
  end)

  it("does not reach the host's unix sockets, wherever they are in the view", function()
    local server = serve(unix_server)
    assert_refused(attack(policy, "stream", server.directory .. "/stream"))
    assert_refused(attack(policy, "dgram", server.directory .. "/dgram"))
    assert_refused(attack(policy, "abstract", server.line))
    -- Also where they lie in a writable workspace.
    local writable = inside.policy(server.directory)
    assert_refused(attack(writable, "stream", server.directory .. "/stream"))
    assert_refused(attack(writable, "dgram", server.directory .. "/dgram"))
    server.stop()
    assert.is_nil((server.received()))
  end)

  it("leaves socket pairs whole: subprocesses of asyncio, descriptors passed", function()
    assert.equal("child 42", inside.output(policy, python .. [[ -c '
import asyncio, array, socket, os
a, b = socket.socketpair()
r, w = os.pipe()
a.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [w]))])
_, data, _, _ = b.recvmsg(1, socket.CMSG_SPACE(4))
fd = array.array("i", data[0][2][:4])[0]
os.write(fd, b"42")
assert a.getsockopt(socket.SOL_SOCKET, socket.SO_TYPE) == socket.SOCK_STREAM
a.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 65536)
a.shutdown(socket.SHUT_WR)
async def main():
    p = await asyncio.create_subprocess_exec("/bin/echo", "child", stdout=asyncio.subprocess.PIPE)
    out, _ = await p.communicate()
    print(out.decode().strip(), os.read(r, 2).decode())
asyncio.run(main())']], { cwd = "/" }))
  end)

  it("leaves socket pairs whole: children of node with IPC", function()
    local found = inside.output(policy, "command -v node || true", { cwd = "/" })
    support.skip_unless(found ~= "", "there is no node here")
    local directory = support.tempdir()
    support.write(directory .. "/ipc.js", [[
const { fork } = require("child_process");
if (process.argv[2] === "child") {
  process.on("message", (m) => { process.send(m + 1); process.disconnect(); });
} else {
  const child = fork(__filename, ["child"]);
  child.on("message", (m) => console.log("answer", m));
  child.send(41);
}
]])
    assert.equal("answer 42", inside.output(policy, "node ipc.js", { cwd = directory }))
  end)
end)

describe("a private loopback", function()
  local policy

  setup(function()
    policy = assert(sandbox.policy {
      rules = { { special = "root", access = "read" } }, network = { mode = "isolated", loopback = true },
    })
  end)

  it("serves 127.0.0.1 and ::1 inside", function()
    assert.equal("hello hello", inside.output(policy, python .. [[ -c '
import socket, threading
def once(family, address):
    listener = socket.socket(family)
    listener.bind((address, 0))
    listener.listen()
    def serve():
        connection, _ = listener.accept()
        connection.sendall(b"hello")
        connection.close()
    threading.Thread(target=serve).start()
    return socket.create_connection(listener.getsockname()[:2]).recv(5).decode()
print(once(socket.AF_INET, "127.0.0.1"), once(socket.AF_INET6, "::1"))']], { cwd = "/" }))
  end)

  it("is not the host's, in either direction", function()
    local server = serve(tcp_server)
    local output = attack(policy, "tcp", "127.0.0.1", server.line)
    assert_refused(output)
    server.stop()
    assert.is_nil((server.received()))
    local run = assert(sandbox.start({ python, "-c", [[
import socket
s = socket.create_server(("127.0.0.1", 0))
print(s.getsockname()[1], flush=True)
s.accept()]] }, { policy = policy, cwd = "/", timeout = 30 }))
    local port = support.eventually(function() return run:output():match "%d+" end, 20)
    local _, status = support.shell(python, "-c",
      "import socket,sys; socket.create_connection(('127.0.0.1', int(sys.argv[1])), 2)", port)
    assert.equal(1, status)
    run:close()
  end)
end)

describe("internal unix sockets", function()
  it("can be bound and connected inside, and the host's cannot be reached", function()
    local server, root = serve(unix_server), support.tempdir()
    local policy = inside.policy(root, nil, { unix_sockets = "internal" })
    assert.equal("hi", inside.output(policy, python .. [[ -c '
import socket
a = socket.socket(socket.AF_UNIX); a.bind("mine"); a.listen()
b = socket.socket(socket.AF_UNIX); b.connect("mine")
c, _ = a.accept(); c.sendall(b"hi"); print(b.recv(2).decode())']], { cwd = root }))
    assert_refused(attack(policy, "stream", server.directory .. "/stream"))
    assert_refused(attack(policy, "dgram", server.directory .. "/dgram"))
    assert_refused(attack(policy, "abstract", server.line))
    server.stop()
    assert.is_nil((server.received()))
  end)

  it("leave exactly the listed ones of the host's within reach", function()
    local server = serve(unix_server)
    local policy = inside.policy(nil, nil, { unix_sockets = { server.directory .. "/stream" } })
    attack(policy, "stream", server.directory .. "/stream")
    assert_refused(attack(policy, "dgram", server.directory .. "/dgram"))
    assert.is_true(support.eventually(function() return server.received() == "stream" end))
    server.stop()
  end)

  it("show a listed one where its directory is denied", function()
    local server = serve(unix_server)
    local policy = inside.policy(nil, { { path = server.directory, access = "deny" } },
      { unix_sockets = { server.directory .. "/stream" } })
    attack(policy, "stream", server.directory .. "/stream")
    assert.is_true(support.eventually(function() return server.received() == "stream" end))
    server.stop()
  end)
end)

describe("an enabled network with a restricted filesystem", function()
  it("reaches the host's loopback, and resolves names as the host is set up", function()
    local server = serve(tcp_server)
    local policy = assert(sandbox.read_only { network = "enabled" })
    attack(policy, "tcp", "127.0.0.1", server.line)
    assert.is_true(support.eventually(function() return (server.received() or ""):find "tcp" ~= nil end))
    server.stop()
    assert.is_true(inside.succeeds(policy,
      "cat /etc/hosts >/dev/null && if [ -e /etc/resolv.conf ]; then cat /etc/resolv.conf >/dev/null; fi", { cwd = "/" }))
    assert.equal("127.0.0.1", inside.output(policy,
      python .. " -c 'import socket; print(socket.gethostbyname(\"localhost\"))'", { cwd = "/" }))
  end)

  it("does not reach the host's unix sockets, named or abstract", function()
    local server = serve(unix_server)
    local policy = assert(sandbox.read_only { network = "enabled" })
    assert_refused(attack(policy, "stream", server.directory .. "/stream"))
    assert_refused(attack(policy, "dgram", server.directory .. "/dgram"))
    assert_refused(attack(policy, "abstract", server.line))
    server.stop()
    assert.is_nil((server.received()))
  end)

  it("still has no raw, packet or vsock sockets", function()
    local output = attack(assert(sandbox.read_only { network = "enabled" }))
    for name, answer in output:gmatch "([^\n]+) (%d+)\n" do
      local raw = name:find "SOCK_RAW" and not name:find "AF_NETLINK SOCK_RAW 0" and not name:find "AF_UNIX"
      if raw or name:find "AF_PACKET" or name:find "AF_VSOCK" then assert.not_equal("0", answer, name) end
    end
  end)
end)
