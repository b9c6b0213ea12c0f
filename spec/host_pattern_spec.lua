-- Hosts as network.allow and network.deny name them: what is accepted, and what it is the same as.
local sandbox = require "execsandbox"

local function policy(allow, deny)
  return sandbox.policy { network = { mode = "proxy_only", allow = allow, deny = deny } }
end

--- The spelling that a policy keeps of one entry.
local function canonical(text)
  return assert(policy { text }):spec().network.allow[1]
end

describe("a host in a network list", function()
  it("is kept in lower case and without a trailing dot", function()
    for text, expected in pairs {
      ["Example.ORG"] = "example.org", ["example.org."] = "example.org", ["a"] = "a", ["A.:443"] = "a:443",
      ["*.Example.org.:443"] = "*.example.org:443", ["*"] = "*", ["*:00443"] = "*:443",
      ["_srv.x-y.example"] = "_srv.x-y.example", ["xn--bcher-kva.example"] = "xn--bcher-kva.example",
      ["1and1.example:65535"] = "1and1.example:65535",
    } do
      assert.equal(expected, canonical(text))
    end
  end)

  it("is one IPv4 address in all its spellings", function()
    for _, text in ipairs {
      "127.0.0.1", "127.1", "127.0.1", "2130706433", "0x7f000001", "0X7F.1", "0177.0.0.01", "017700000001",
      "127.0.0.1.", "[::ffff:127.0.0.1]", "[::FFFF:7f00:1]", "::ffff:127.0.0.1", "[::127.0.0.1]",
      "[0:0:0:0:0:ffff:7f00:0001]",
    } do
      assert.equal("127.0.0.1", canonical(text))
    end
    assert.equal("127.0.0.1:80", canonical "0x7f.1:80")
    assert.equal("127.0.0.1:80", canonical "[::ffff:127.0.0.1]:80")
    assert.equal("0.0.0.0", canonical "0")
    assert.equal("255.255.255.255", canonical "4294967295")
  end)

  it("is one IPv6 address in all its spellings", function()
    for _, text in ipairs { "::1", "[::1]", "[0:0:0:0:0:0:0:1]", "[::0001]", "0::0.0.0.1" } do
      assert.equal("[::1]", canonical(text))
    end
    assert.equal("[2001:db8::a]:443", canonical "[2001:DB8:0:0::A]:443")
    assert.equal("[1:2:3:4:5:6:7:8]", canonical "1:2:3:4:5:6:7:8")
    assert.equal("[fe80::1]", canonical "fe80::1")
  end)

  it("is the same for == whatever its spelling, order and repetition", function()
    assert.is_true(policy({ "127.1", "Example.org." }, { "*.X" })
      == policy({ "example.org", "[::ffff:127.0.0.1]", "2130706433" }, { "*.x." }))
    assert.is_false(policy { "127.0.0.1" } == policy { "127.0.0.2" })
    assert.is_false(policy { "x:80" } == policy { "x" })
    assert.is_false(policy({ "x" }, {}) == policy({}, { "x" }))
    local made = policy({ "0x7f.1", "*.A.example:1" }, { "::1" })
    assert.is_true(made == sandbox.policy(made:spec()))
  end)

  it("is refused, with a reason, where it is no host", function()
    for text, reason in pairs {
      [""] = "empty", ["."] = "empty", ["*."] = "empty", ["a..b"] = "label", [".a"] = "label", ["a.."] = "label",
      [("a"):rep(64) .. ".example"] = "63", [("a."):rep(126) .. "ab"] = "253", ["a b"] = "letters",
      ["a@b"] = "letters", ["user:x@b"] = "port", ["http://a"] = "port", ["a/b"] = "letters", ["a\1"] = "letters",
      ["a%2eb"] = "letters", ["b\195\188cher.example"] = "xn--", ["*x"] = "'*'", ["**.x"] = "'*'",
      ["a.*.b"] = "letters", ["*.*.b"] = "letters", ["*.127.0.0.1"] = "address", ["*.[::1]"] = "port",
      ["256.1.1.1"] = "IPv4", ["1.2.3.4.5"] = "IPv4", ["a.1"] = "IPv4", ["a.0x1f"] = "IPv4", ["08.1.1.1"] = "IPv4",
      ["0x"] = "IPv4", ["4294967296"] = "IPv4", ["1.2.3.256"] = "IPv4", ["1.2.65536"] = "IPv4",
      ["[::1"] = "bracket", ["[::1]x"] = "port", ["[]"] = "IPv6", ["[1.2.3.4]"] = "IPv6", ["[::g]"] = "IPv6",
      [":80"] = "empty", ["[fe80::1%eth0]"] = "zone", ["fe80::1%1"] = "zone", ["x:1:2"] = "IPv6",
      ["2001:db8::1:443"] = "brackets", ["x:"] = "port", ["x:0"] = "port", ["x:65536"] = "port", ["x:+1"] = "port",
      ["x: 1"] = "port", ["x:1a"] = "port", ["x:000001"] = "port",
    } do
      for _, lists in ipairs { { { text } }, { {}, { text } } } do
        local made, err = policy(lists[1], lists[2])
        assert.is_nil(made, text)
        assert.equal("policy", err.kind)
        assert.truthy(err.message:find(reason, 1, true), text .. ": " .. err.message)
      end
    end
    local made, err = policy { "a\0b" }
    assert.is_nil(made)
    assert.equal("policy", err.kind)
  end)
end)
