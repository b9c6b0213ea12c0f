-- How the filtering proxy's program is started, served and ended: with one that only looks like it.
local support = require "spec.support"

local python = support.python

-- A helper with PROGRAM beside it as its filtering proxy; nil: with none.
local function install(program)
  local directory = support.tempdir()
  support.must("cp", support.build .. "/execsandbox/execsandbox-helper", directory)
  if program then support.write(directory .. "/execsandbox-proxy", program, "755") end
  support.must("chmod", "-R", "a+rX", directory)
  return directory
end

-- Runs Lua code with that helper in a host of its own; its output.
local function host(directory, code)
  local script = support.write(directory .. "/host.lua", [[
local sandbox = require "execsandbox"
local policy = assert(sandbox.policy {
  rules = { { special = "root", access = "read" } },
  network = { mode = "proxy_only", allow = { "one.example:1", "two.example" }, deny = { "three.example" } },
})
local function run(script, options)
  local given = { policy = policy, cwd = "/", merge_output = true, timeout = 60 }
  for name, value in pairs(options or {}) do given[name] = value end
  return sandbox.run({ "/bin/sh", "-c", script }, given)
end
]] .. code)
  return (support.must("env", "EXECSANDBOX_HELPER=" .. directory .. "/execsandbox-helper", support.lua, script))
end

-- Notes what it is given, accepts at its listeners, writes a report; BODY is what else it does.
local function program(body)
  return "#!" .. (python:find "/" and python or "/usr/bin/env " .. python) .. [[

import array, mmap, os, socket, struct, sys, threading, time
note = open(os.path.dirname(os.path.realpath(sys.argv[0])) + "/note", "w")
control = socket.socket(fileno=3)
message, rights, _, _ = control.recvmsg(1, socket.CMSG_SPACE(8 * 4))
listeners = array.array("i")
listeners.frombytes(rights[0][2])
listeners = [socket.socket(fileno=fd) for fd in listeners]
config = os.read(4, 100000)
report = mmap.mmap(5, 0)
def entry(number, verdict, port, count, size, host):
    struct.pack_into("=IHHQQ256s", report, 16 + number * 280, verdict, port, 0, count, size, host)
def publish(count): struct.pack_into("=II", report, 0, 0x58424650, count)
def accept(listener):
    while True:
        connection, _ = listener.accept()
        connection.sendall(b"served")
        connection.close()
def serve():
    for listener in listeners:
        listener.setblocking(True)
        threading.Thread(target=accept, args=(listener,), daemon=True).start()
def await_end():
    while control.recv(1): pass
]] .. body
end

local client = ([[
local ask = %q
]]):format(python .. [[ -c '
import socket, sys
for host in "127.0.0.1", "::1":
    try:
        print(socket.create_connection((host, 3128), 10).recv(100).decode())
    except OSError as error:
        print(type(error).__name__)']])

describe("the filtering proxy's program", function()
  it("is not there: unavailable, with a remedy, nothing launched", function()
    for _, content in ipairs { false, "no program" } do
      local directory = install(content or nil)
      if content then support.must("chmod", "644", directory .. "/execsandbox-proxy") end
      local answer = host(directory, [[
local result, err = run "true"
print(result, err.kind, err.capability, err.remedy ~= nil)
print(sandbox.capabilities().network_proxy_only, sandbox.capabilities().network_filtering)]])
      assert.equal("nil\tunavailable\tnetwork_filtering\ttrue\ntrue\tfalse", answer)
    end
  end)

  it("cannot be started: the launch fails, and says where", function()
    assert.equal("nil\texecution\tproxy\t8", host(install "\127ELF of another kind", [[
local result, err = run "true"
print(result, err.kind, err.stage, err.errno)]]))
  end)

  it("gets the listeners, the configuration and nothing else, and is listened to", function()
    local directory = install(program [[
print(sys.argv[1:], set(os.environ) - {"LC_CTYPE"}, [os.readlink("/proc/self/fd/%d" % fd) for fd in (0, 1, 2)],
    file=note, flush=True)
print(config[24:], struct.unpack("=6I", config[:24])[1:5], file=note, flush=True)
print([l.getsockname()[:2] for l in listeners], file=note, flush=True)
entry(0, 1, 443, 2, 1000, b"one.example")
entry(1, 2, 80, 1, 0, b"x" * 256)
entry(2, 7, 1, 1, 1, b"neither")
entry(3, 1, 1, 1, 1, b"unpublished")
publish(3)
serve()
await_end()]])
    local answer = host(directory, client .. [[
local result = assert(run(ask))
io.write(result.output)
for _, list in ipairs { "allowed", "denied" } do
  for _, item in ipairs(result.network[list]) do
    print(list, #item.host < 20 and item.host or #item.host, item.port, item.count, item.bytes)
  end
end
print(result.real_seconds < 20, result.exit_code)]])
    assert.equal("served\nserved\nallowed\tone.example\t443\t2\t1000\ndenied\t256\t80\t1\t0\ntrue\t0", answer)
    local noted = support.read(directory .. "/note")
    assert.matches("['serve'] set() ['/dev/null', '/dev/null', '/dev/null']", noted, 1, true)
    assert.matches([[b'\x00one.example:1\x00two.example\x00three.example\x00' (1, 2, 1, ]], noted, 1, true)
    assert.matches("[('127.0.0.1', 3128), ('::1', 3128)]", noted, 1, true)
  end)

  it("gets the name servers that the backend's options give", function()
    local directory = install(program [[
note.write(config[24:].split(b"\0")[0].decode())
note.flush()
await_end()]])
    host(directory, [[assert(run("sleep 0.5", { backend_options = { nameservers = "127.0.0.1:5353,[::1]:53" } }))]])
    assert.equal("127.0.0.1:5353,[::1]:53", support.read(directory .. "/note"))
  end)

  it("dies in the middle: connections fail, and the run goes on", function()
    local answer = host(install(program "os._exit(1)"), client .. [[
local result = assert(run("sleep 0.5; " .. ask .. "; echo on"))
io.write(result.output)
print(result.status, result.exit_code, #result.network.allowed)]])
    assert.equal("ConnectionRefusedError\nConnectionRefusedError\non\nexited\t0\t0", answer)
  end)

  it("is ended with the run, however it takes that", function()
    local directory = install(program [[
serve()
import signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
time.sleep(600)]])
    local answer = host(directory, client .. [[
local result = assert(run(ask))
io.write(result.output)
print(result.status)
print(assert(run("sleep 60", { timeout = 0.5 })).status)
local started = assert(sandbox.start({ "/bin/sleep", "60" }, { policy = policy, cwd = "/" }))
started:wait(0.5)
started:close()
print(started:result().status)]])
    assert.equal("served\nserved\nexited\ntimeout\ninterrupted", answer)
    assert.same({}, support.processes(directory .. "/execsandbox-proxy"))
    -- And with the host.
    local _, status = support.shell("env", "EXECSANDBOX_HELPER=" .. directory .. "/execsandbox-helper", support.lua, "-e", [[
local sandbox = require "execsandbox"
local policy = assert(sandbox.policy {
  rules = { { special = "root", access = "read" } }, network = { mode = "proxy_only", allow = { "one.example" } },
})
local started = assert(sandbox.start({ "/bin/sleep", "60" }, { policy = policy, cwd = "/" }))
started:wait(0.5)
os.execute("kill -KILL " .. io.open("/proc/self/stat"):read "*n")]])
    assert.not_equal(0, status)
    assert.is_true(support.eventually(function()
      return #support.processes(directory .. "/execsandbox-proxy") == 0
    end, 2))
  end)
end)
