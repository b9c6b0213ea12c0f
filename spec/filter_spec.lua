-- The filtering proxy by itself, driven as the supervisor drives it: spec/support/filter_cases.py has the cases.
local support = require "spec.support"

local program = support.build .. "/execsandbox/execsandbox-proxy"

local function run(name, before)
  support.skip_unless(support.exists(program), "the filtering proxy is not built here")
  local output, status = support.shell((before or "") .. "env FILTER_ERRORS=1 timeout 120 "
    .. support.quote(support.python) .. " -B " .. support.quote(support.root .. "/spec/support/filter.py") .. " "
    .. support.quote(program) .. " " .. name)
  assert.equal("fine\n", output)
  assert.equal(0, status)
end

local function case(name, says)
  it(says, function()
    run(name)
  end)
end

-- What a program runs in that is to have a network of its own, with public addresses.
local own_network = "unshare -rn sh -c 'ip link set lo up && "
  .. "for a in 9.9.9.10/32 9.9.9.11/32 2606:4700::1/128; do ip addr add $a dev lo || exit; done && exec \"$@\"' sh "

describe("the filtering proxy", function()
  describe("passes on", function()
    case("forwards_requests", "http:// requests, in origin form and without what is the proxy's own")
    case("forwards_bodies", "bodies, framed anew, and nothing behind them")
    case("continues", "100-continue, both ways")
    case("answers_early", "an answer that comes before the request's end")
    case("downloads", "a large response to a slow client")
    case("tunnels", "CONNECT, both ways, half-closed and early, counted while it goes on")
    case("socks", "SOCKS5 CONNECT for IPv4, IPv6 and names, and refuses the rest by its code")
  end)

  describe("decides", function()
    case("decides_by_name_and_port", "by exact name, subdomains and port, deny over allow, in canonical form")
    case("compares_addresses", "on addresses in every spelling as the same, never by a wildcard")
    case("checks_what_names_resolve_to", "against names of addresses that are not public, unless these are listed")
    it("against names of this machine's own addresses", function()
      local output, status = support.shell(own_network .. "true")
      support.skip_unless(status == 0, "no network namespace of one's own here: " .. output)
      run("knows_its_machine", own_network)
    end)
    case("dials_what_it_checked", "on the address it dials, where a name resolves differently the second time")
    case("resolves", "after CNAMEs, with several addresses, and tells what cannot be resolved")
    case("cannot_connect", "and tells where no one answers")
  end)

  describe("refuses", function()
    case("refuses_malformed_heads", "heads that two readers could read in two ways")
    case("refuses_large_heads", "heads that are too large")
    case("refuses_malformed_bodies", "malformed chunks, without completing them")
    case("slow_heads", "heads that do not come in time")
    case("reads_a_sound_config", "a configuration that is not sound")
  end)

  describe("stands", function()
    case("clients_disappear", "clients that disappear, and lets the servers know")
    case("servers_disappear", "servers that disappear, and lets the clients know")
    case("many_at_once", "200 connections at once, in one thread")
    case("more_than_it_takes", "more connections than it has descriptors for")
    case("silent_servers", "servers that never answer")
    case("several_listeners", "several listeners")
    case("fills_the_report", "more hosts than its report has room for")
    case("outlives_nothing", "for no longer than its supervisor")
    case("is_confined", "confined")
  end)
end)
