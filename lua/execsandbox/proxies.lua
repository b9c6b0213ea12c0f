--- The proxies that a command's environment names, and how it finds them inside.
--
-- With network = "proxy_only" a command reaches nothing but loopback addresses of its own, where
-- the way to the real proxies begins.  They are the same as outside, so that what configuration
-- files say stays true; where a port cannot be had inside, the variables name another one.

local errors = require "execsandbox.errors"

local proxies = {}

-- Also looked for, and set, in lower case.
local general = { "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "FTP_PROXY", "WS_PROXY", "WSS_PROXY" }
local of_tools = {
  "YARN_HTTP_PROXY", "YARN_HTTPS_PROXY",
  "NPM_CONFIG_PROXY", "NPM_CONFIG_HTTP_PROXY", "NPM_CONFIG_HTTPS_PROXY",
  "BUNDLE_HTTP_PROXY", "BUNDLE_HTTPS_PROXY",
  "PIP_PROXY",
  "DOCKER_HTTP_PROXY", "DOCKER_HTTPS_PROXY",
}
local exceptions = {
  "NO_PROXY", "NPM_CONFIG_NOPROXY", "NPM_CONFIG_NO_PROXY", "YARN_NO_PROXY", "BUNDLE_NO_PROXY",
  "PIP_NO_PROXY", "DOCKER_NO_PROXY",
}

-- What is served inside is reached directly: a proxy would look for it outside. Anything else has
-- no direct way, so that other exceptions would only break what the proxy allows. Some clients
-- compare an address of IPv6 with its brackets.
local DIRECT = "localhost,127.0.0.1,::1,[::1]"

-- URLs without a port. (curl alone would take 1080 for all of them: inside, the port is written.)
local default_ports = {
  http = 80, https = 443, socks = 1080, socks4 = 1080, socks4a = 1080, socks5 = 1080, socks5h = 1080,
}

local FIRST_UNPRIVILEGED = 1024 -- ip(7): ip_unprivileged_port_start, of a new network namespace
local FIRST_SUBSTITUTE = 30000

local function spellings(names)
  local result = {}
  for _, name in ipairs(names) do
    result[#result + 1] = name
    result[#result + 1] = name:lower()
  end
  return result
end

local all_names, exception_names = spellings(general), spellings(exceptions)
for _, name in ipairs(spellings(of_tools)) do all_names[#all_names + 1] = name end

-- ---- URLs ---------------------------------------------------------------------------

local function is_ipv4_loopback(host)
  local parts = { host:match "^(%d+)%.(%d+)%.(%d+)%.(%d+)$" }
  if parts[1] ~= "127" then return false end
  for _, part in ipairs(parts) do
    -- Leading zeros are octal to some.
    if #part > 3 or tonumber(part) > 255 or (#part > 1 and part:sub(1, 1) == "0") then return false end
  end
  return true
end

local ipv6_loopbacks = { ["::1"] = true, ["0:0:0:0:0:0:0:1"] = true,
  ["0000:0000:0000:0000:0000:0000:0000:0001"] = true }

-- The addresses that a client may take HOST for, best first; none where it is not loopback.
local function addresses(host, bracketed)
  if bracketed then return ipv6_loopbacks[host] and { "::1" } or {} end
  if host:lower() == "localhost" then return { "127.0.0.1", "::1" } end
  return is_ipv4_loopback(host) and { host } or {}
end

local function split_host(authority)
  local host, port = authority:match "^%[([%x:.]+)%](.*)$"
  if host then return host, port, true end
  host, port = authority:match "^([^:%[%]]+)(.*)$"
  return host, port, false
end

-- What the URL says: { head, addresses, port, written, tail }; or nil and what is wrong, which
-- never shows a part of it: wherever the parts are taken to end, there may be a password.
local function parse(url)
  if url:find "[%c ]" then return nil, "is no URL of a proxy" end
  local scheme, rest = url:match "^(%a[%w+.-]*)://(.*)$"
  rest = rest or url
  local default = default_ports[(scheme or "http"):lower()]
  if not default then
    return nil, "has a scheme that is not one of http, https, socks4, socks4a, socks5, socks5h"
  end
  local authority, tail = rest:match "^([^/?#]*)(.*)$"
  local user, server = authority:match "^(.*@)([^@]*)$"
  local host, port, bracketed = split_host(server or authority)
  if not host then return nil, "is no URL of a proxy" end
  local number = tonumber(port:match "^:(%d%d?%d?%d?%d?)$")
  if not number and port ~= "" and port ~= ":" then return nil, "is no URL of a proxy" end
  if number == 0 or (number or 0) > 65535 then return nil, "names a port that no proxy can have" end
  local found = addresses(host, bracketed)
  if #found == 0 then
    return nil, "names a proxy that is not at a loopback address (127.0.0.0/8, [::1] or localhost)"
  end
  return {
    head = (scheme and scheme .. "://" or "") .. (user or "") .. (bracketed and "[" .. host .. "]" or host),
    addresses = found, port = number or default, written = number ~= nil, tail = tail,
  }
end

-- npm reads "null" and "false" as none.
local function is_set(name, value)
  if value == nil or value == "" then return false end
  return not (name:lower():find "^npm_config_" and (value == "null" or value == "false"))
end

-- ---- existing proxies -------------------------------------------------------------------

-- name → parsed URL, for those that are set; or nil, err.
local function find(values)
  local found = {}
  for _, name in ipairs(all_names) do
    if is_set(name, values[name]) then
      local url, wrong = parse(values[name])
      if not url then
        return errors.policy(("the command's environment variable %s %s; network = \"proxy_only\" "
          .. "relays to proxies on this host"):format(name, wrong))
      end
      found[name] = url
    end
  end
  if not next(found) then
    return errors.unavailable("network_proxy_only",
      "the command's environment names no proxy, and network = \"proxy_only\" opens nothing else",
      "set HTTP_PROXY, HTTPS_PROXY or ALL_PROXY to a proxy at a loopback address, or give the network "
        .. "policy a list `allow` for the built-in one")
  end
  return found
end

-- From ports outside to those inside: the same where an ordinary process may listen there.
local function choose_ports(found)
  local ports, taken, low = {}, {}, {}
  for _, url in pairs(found) do
    if url.port >= FIRST_UNPRIVILEGED then
      ports[url.port], taken[url.port] = url.port, true
    else
      low[#low + 1] = url.port
    end
  end
  table.sort(low)
  for _, port in ipairs(low) do
    local substitute = ports[port] or FIRST_SUBSTITUTE + port
    while not ports[port] and taken[substitute] do substitute = substitute + 1 end
    ports[port], taken[substitute] = substitute, true
  end
  return ports
end

local function add_address(list, address)
  for _, known in ipairs(list) do
    if known == address then return end
  end
  list[#list + 1] = address
end

-- The list for the core: one listener for each address, which leads to the same address outside,
-- and for a localhost to its other one where nobody is at the first.
local function listeners(found, ports)
  local list, by_key = {}, {}
  for _, name in ipairs(all_names) do
    local url = found[name]
    for _, address in ipairs(url and url.addresses or {}) do
      local key = address .. " " .. url.port
      local item = by_key[key]
      if not item then
        item = { inside = address, inside_port = ports[url.port], outside = { address },
          outside_port = url.port, optional = true }
        by_key[key] = item
        list[#list + 1] = item
      end
      -- Of a localhost, IPv6 may be missing.
      if address == url.addresses[1] then item.optional = false end
      for _, other in ipairs(url.addresses) do add_address(item.outside, other) end
    end
  end
  return list
end

local function set_exceptions(values)
  for _, name in ipairs(exception_names) do
    if values[name] ~= nil then values[name] = DIRECT end
  end
  values.NO_PROXY, values.no_proxy = DIRECT, DIRECT
  values.NODE_USE_ENV_PROXY = "1" -- node's own fetch and http look at the variables then
end

-- Some look at one case only. Without its proxy a program would reach nothing.
local function complete_cases(values)
  for _, name in ipairs(general) do
    local lower = name:lower()
    if is_set(name, values[name]) and not is_set(lower, values[lower]) then
      values[lower] = values[name]
    elseif is_set(lower, values[lower]) and not is_set(name, values[name]) then
      values[name] = values[lower]
    end
  end
end

--- The proxies that VALUES, the command's environment, names, as the core's list of them;
-- VALUES is changed to what is true inside.  Or nil, err.
function proxies.existing(values)
  local found, err = find(values)
  if not found then return nil, err end
  local ports = choose_ports(found)
  for name, url in pairs(found) do
    local inside = ports[url.port]
    if not url.written or inside ~= url.port then
      values[name] = ("%s:%d%s"):format(url.head, inside, url.tail)
    end
  end
  complete_cases(values)
  set_exceptions(values)
  return listeners(found, ports)
end

-- ---- the filtering proxy -------------------------------------------------------------------

--- Where the filtering proxy listens inside.
proxies.FILTER_PORT = 3128

--- Sets in VALUES what leads clients to the filtering proxy at PORT, in place of whatever other
-- proxies are named there. Returns the core's list of its listeners.
function proxies.filtered(values, port)
  local http, socks = "http://127.0.0.1:" .. port, "socks5h://127.0.0.1:" .. port
  for _, name in ipairs(all_names) do values[name] = nil end
  for _, name in ipairs {
    "HTTP_PROXY", "HTTPS_PROXY", "WS_PROXY", "WSS_PROXY", "YARN_HTTP_PROXY", "YARN_HTTPS_PROXY",
    "npm_config_proxy", "npm_config_https_proxy", "BUNDLE_HTTP_PROXY", "BUNDLE_HTTPS_PROXY",
    "PIP_PROXY", "DOCKER_HTTP_PROXY", "DOCKER_HTTPS_PROXY",
  } do
    values[name] = http
  end
  values.ALL_PROXY = socks
  complete_cases(values)
  set_exceptions(values)
  return {
    { inside = "127.0.0.1", inside_port = port },
    { inside = "::1", inside_port = port, optional = true },
  }
end

return proxies
