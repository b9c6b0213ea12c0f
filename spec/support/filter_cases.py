"""What execsandbox-proxy is put through, a function a case; see filter.py and filter_spec.lua."""
import os
import select
import socket
import struct
import time

from filter import (
    ENTRIES, Names, Proxy, Server, body_of, check, echo, equal, eventually, read_all, read_exact, read_head, silent, web,
)

LOCAL = socket.inet_aton("127.0.0.1")


def get(target, more=""):
    return ("GET %s HTTP/1.1\r\n%s\r\n" % (target, more)).encode()


def status(answer):
    return int(answer.split(b" ")[1]) if answer.startswith(b"HTTP/1.1 ") else answer


# ---- what goes through ------------------------------------------------------------------------------

def forwards_requests():
    server = Server(web)
    authority = "127.0.0.1:%d" % server.port
    with Proxy(allow=["127.0.0.1"]) as proxy:
        answer = proxy.ask(get("http://%s/a/b?c=d" % authority, (
            "Host: %s\r\nUser-Agent: test\r\nX-Empty:\r\nX-Space: \t a b \t\r\nConnection: X-Drop, close\r\nX-Drop: 1\r\n"
            "Proxy-Authorization: Basic eDp5\r\nProxy-Connection: keep-alive\r\nKeep-Alive: 5\r\nTE: trailers\r\n"
            "Upgrade: websocket\r\nCookie: a=b; c\r\n") % authority))
        equal(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello", answer)
        head, body, rest = server.requests.pop()
        equal("GET /a/b?c=d HTTP/1.1\r\nHost: %s\r\nUser-Agent: test\r\nX-Empty: \r\nX-Space: a b\r\nCookie: a=b; c\r\n"
              "Connection: close\r\n\r\n" % authority, head.decode())
        equal((b"", b""), (body, rest))
        for target, path in (("http://%s", "/"), ("HTTP://%s", "/"), ("http://%s?q", "/?q"), ("http://%s//x", "//x")):
            equal(200, status(proxy.ask(get(target % authority))), target)
            equal("GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n" % (path, authority),
                  server.requests.pop()[0].decode())
        equal(200, status(proxy.ask(("OPTIONS http://%s HTTP/1.0\r\n\r\n" % authority).encode())))
        check(server.requests.pop()[0].startswith(b"OPTIONS * HTTP/1.0\r\n"))
        # Only what came before its end is its own.
        equal(200, status(proxy.ask(get("http://%s/" % authority) + get("http://%s/smuggled" % authority))))
        equal(b"", server.requests.pop()[2])
        count, length = proxy.report()["127.0.0.1", server.port, "allowed"]
        equal(7, count)
        check(length > 7 * 100, length)


def forwards_bodies():
    server = Server(web)
    url = "http://127.0.0.1:%d/" % server.port
    with Proxy(allow=["127.0.0.1"]) as proxy:
        def post(more, body):
            equal(200, status(proxy.ask(("POST %s HTTP/1.1\r\n%s\r\n" % (url, more)).encode() + body)))
            head, got, rest = server.requests.pop()
            equal(b"", rest)
            return head, got
        head, got = post("Content-Length: 005\r\n", b"12345GET / HTTP/1.1\r\n\r\n")
        equal(b"12345", got)
        check(b"\r\nContent-Length: 5\r\n" in head, head)
        head, got = post("Content-Length: 0\r\n", b"")
        check(b"\r\nContent-Length: 0\r\n" in head, head)
        big = os.urandom(3_000_000)
        equal(big, post("Content-Length: %d\r\n" % len(big), big)[1])
        head, got = post("Transfer-Encoding: Chunked\r\nTrailer: X\r\n",
                         b"5;name=value\r\nhello\r\n1\r\n \r\n0005\r\nworld\r\n0\r\nX-Trailer: y\r\n\r\nGET /x HTTP/1.1\r\n\r\n")
        equal(b"5\r\nhello\r\n1\r\n \r\n5\r\nworld\r\n0\r\n\r\n", got)
        check(b"\r\nTransfer-Encoding: chunked\r\n" in head and b"Trailer" not in head, head)
        with proxy.send(("POST %s HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" % url).encode()) as sock:
            for byte in b"3\r\nabc\r\nA\r\n0123456789\r\n0\r\n\r\n":
                sock.sendall(b"%c" % byte)
                time.sleep(0.001)
            equal(200, status(read_all(sock)))
        check(server.requests.pop()[1].replace(b"\r\n", b"").endswith(b"0"), "trickle")


def continues():
    """Expect: 100-continue goes through, and so does the interim answer."""
    def behave(server, sock):
        head = read_head(sock)
        check(b"Expect: 100-continue\r\n" in head, head)
        sock.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        server.requests.append(body_of(sock, head))
        sock.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")
    server = Server(behave)
    with Proxy(allow=["127.0.0.1"]) as proxy:
        with proxy.send(b"PUT http://127.0.0.1:%d/ HTTP/1.1\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n"
                        % server.port) as sock:
            equal(b"HTTP/1.1 100 Continue\r\n\r\n", read_head(sock))
            sock.sendall(b"body")
            equal(b"HTTP/1.1 204 No Content\r\n\r\n", read_all(sock))
        equal([b"body"], server.requests)


def answers_early():
    """A server that refuses an upload before it has read it: the answer is not lost."""
    def behave(server, sock):
        read_head(sock)
        sock.sendall(b"HTTP/1.1 413 Too Large\r\nConnection: close\r\n\r\nno")
        sock.shutdown(socket.SHUT_WR)
        read_all(sock)
    server = Server(behave)
    with Proxy(allow=["127.0.0.1"]) as proxy:
        with proxy.send(b"PUT http://127.0.0.1:%d/ HTTP/1.1\r\nContent-Length: 100000000\r\n\r\n" % server.port) as sock:
            sock.sendall(b"x" * 100000)
            check(read_all(sock).endswith(b"no"))


def downloads():
    """A large response, and a client that reads it late."""
    data = os.urandom(1 << 20) * 24

    def behave(server, sock):
        read_head(sock)
        sock.sendall(b"HTTP/1.0 200 OK\r\n\r\n" + data)
    server = Server(behave)
    with Proxy(allow=["127.0.0.1"]) as proxy:
        with proxy.send(get("http://127.0.0.1:%d/" % server.port)) as sock:
            time.sleep(0.3)
            equal(data, read_all(sock).split(b"\r\n\r\n", 1)[1])
        length = proxy.report()["127.0.0.1", server.port, "allowed"][1]
        check(len(data) < length < len(data) + 1000, length)


def tunnels():
    server = Server(echo)
    with Proxy(allow=["127.0.0.1:%d" % server.port, "[::1]"]) as proxy:
        data = os.urandom(1 << 20)
        with proxy.tunnel("127.0.0.1:%d" % server.port) as sock:
            sock.sendall(data)
            equal(data, read_exact(sock, len(data)))
            # Live, while it goes on.
            check(eventually(lambda: proxy.report()["127.0.0.1", server.port, "allowed"] == (1, 2 * len(data))),
                  proxy.report())
            sock.sendall(b"last")
            sock.shutdown(socket.SHUT_WR)
            equal(b"last", read_all(sock))
        # What comes with the request is passed on too.
        with proxy.send(b"CONNECT 127.0.0.1:%d HTTP/1.1\r\n\r\nearly" % server.port) as sock:
            equal(b"HTTP/1.1 200 Connection established\r\n\r\n", read_head(sock))
            equal(b"early", read_exact(sock, 5))
        six = Server(echo, "::1")
        with proxy.tunnel("[::1]:%d" % six.port) as sock:
            sock.sendall(b"six")
            equal(b"six", read_exact(sock, 3))
        check(("::1", six.port, "allowed") in proxy.report())
        check(eventually(lambda: proxy.report()["127.0.0.1", server.port, "allowed"] == (2, 2 * len(data) + 18)),
              proxy.report())


def socks():
    server = Server(echo)
    names = Names({"good.example": ["127.0.0.1"], "bad.example": ["10.0.0.1"], "none.example": None})
    port = server.port
    with Proxy(allow=["*.example", "127.0.0.1", "::1"], deny=["no.example"], nameservers=names.address) as proxy:
        for kind, address in ((1, LOCAL), (3, b"\x0cgood.example"), (3, b"\x0cGOOD.example"), (3, b"\x05127.1"),
                              (4, socket.inet_pton(socket.AF_INET6, "::ffff:127.0.0.1"))):
            code, sock = proxy.socks(kind, address, port)
            equal(0, code, address)
            sock.sendall(b"through")
            equal(b"through", read_exact(sock, 7))
            sock.close()
        closed = socket.socket()
        closed.bind(("127.0.0.1", 0))
        for code, kind, address, to, command in (
            (2, 1, socket.inet_aton("127.0.0.2"), port, 1), (2, 3, b"\x0aother.test", port, 1),
            (2, 3, b"\x0ano.example", port, 1), (2, 3, b"\x0bbad.example", port, 1),
            (4, 3, b"\x0cnone.example", port, 1), (5, 1, LOCAL, closed.getsockname()[1], 1),
            (7, 1, LOCAL, port, 2), (7, 1, LOCAL, port, 3), (8, 2, LOCAL, port, 1), (1, 1, LOCAL, 0, 1),
            (1, 3, b"\x03a b", port, 1), (1, 3, b"\x00", port, 1), (1, 3, b"\x03a\0b", port, 1),
        ):
            got, sock = proxy.socks(kind, address, to, command)
            equal(code, got, address, command)
            equal(b"", read_all(sock))
            sock.close()
        # Byte by byte, with several methods, and data right behind.
        with proxy.connect() as sock:
            for byte in b"\5\2\2\0" + b"\5\1\0\1" + LOCAL + struct.pack(">H", port):
                sock.sendall(b"%c" % byte)
                time.sleep(0.002)
            equal(b"\5\0\5\0", read_exact(sock, 12)[:4])
        with proxy.send(b"\5\1\0\5\1\0\1" + LOCAL + struct.pack(">H", port) + b"early") as sock:
            equal(b"early", read_exact(sock, 17)[12:])
        equal(b"\5\xff", proxy.ask(b"\5\1\2"))
        equal(b"\5\xff", proxy.ask(b"\5\0"))
        equal(b"", proxy.ask(b"\5\1\0\4\1\0\1" + LOCAL + b"\0\1")[12:])
        check(("no.example", port, "denied") in proxy.report() and ("good.example", port, "allowed") in proxy.report())


# ---- what is decided --------------------------------------------------------------------------------

def verdict(proxy, target):
    """The status of a CONNECT, and the body of a refusal."""
    got = proxy.tunnel(target)
    if isinstance(got, bytes):
        return status(got), got.split(b"\r\n\r\n", 1)[1].decode()
    got.close()
    return 200, ""


def decides_by_name_and_port():
    server, other = Server(echo), Server(echo)
    port = server.port
    answers = {name: ["127.0.0.1"] for name in (
        "exact.test", "sub.exact.test", "wild.test", "a.wild.test", "a.b.wild.test", "no.wild.test", "x.no.wild.test",
        "ported.test", "notwild.test", "any.example")}
    names = Names(answers)
    allow = ["127.0.0.1", "exact.test", "*.wild.test", "ported.test:%d" % port]
    with Proxy(allow=allow, deny=["no.wild.test", "*.no.wild.test"], nameservers=names.address) as proxy:
        for host in ("exact.test", "EXACT.Test", "exact.test.", "a.wild.test", "A.B.wild.TEST."):
            equal((200, ""), verdict(proxy, "%s:%d" % (host, port)), host)
        equal((200, ""), verdict(proxy, "ported.test:%d" % port))
        for host, to, why in (
            ("sub.exact.test", port, "not in the allow list"), ("wild.test", port, "not in the allow list"),
            ("notwild.test", port, "not in the allow list"), ("ported.test", other.port, "not in the allow list"),
            ("no.wild.test", port, "denied by 'no.wild.test'"), ("NO.wild.test.", port, "denied by 'no.wild.test'"),
            ("x.no.wild.test", port, "denied by '*.no.wild.test'"), ("127.0.0.2", port, "not in the allow list"),
        ):
            name = host.lower().rstrip(".")
            equal((403, "execsandbox: %s:%d is refused: %s\n" % (name, to, why)), verdict(proxy, "%s:%d" % (host, to)))
            check((name, to, "denied") in proxy.report(), name)
        equal(5, sum(count for (host, _, word), (count, _) in proxy.report().items()
                     if word == "allowed" and host != "ported.test"))
        equal(2, proxy.report()["no.wild.test", port, "denied"][0])
    equal({name for name, _ in names.log}, {"exact.test", "a.wild.test", "a.b.wild.test", "ported.test"})
    # Deny wins over allow, whichever is narrower.
    with Proxy(allow=["*", "exact.test", "127.0.0.1"], deny=["*.test:%d" % port], nameservers=names.address) as proxy:
        equal(403, verdict(proxy, "exact.test:%d" % port)[0])
        equal(200, verdict(proxy, "exact.test:%d" % other.port)[0])
        equal(200, verdict(proxy, "any.example:%d" % port)[0])
        equal(403, verdict(proxy, "127.0.0.2:%d" % port)[0], "a wildcard is no address's")
    with Proxy() as proxy:
        equal(403, verdict(proxy, "127.0.0.1:%d" % port)[0])


def compares_addresses():
    server = Server(echo)
    port = server.port
    spellings = ("127.0.0.1", "127.1", "2130706433", "0x7f000001", "0177.0.0.1", "0x7f.0.0.1", "[::ffff:127.0.0.1]",
                 "[::ffff:7f00:1]", "[::127.0.0.1]", "127.0.0.1.", "[0:0:0:0:0:ffff:127.0.0.1]", "017700000001")
    with Proxy(allow=["2130706433:%d" % port]) as proxy:
        for host in spellings:
            equal(200, verdict(proxy, "%s:%d" % (host, port))[0], host)
        equal({("127.0.0.1", port, "allowed")}, set(proxy.report()))
    with Proxy(allow=["*", "127.0.0.1", "::1"], deny=["[::ffff:7f00:1]"]) as proxy:
        for host in spellings:
            equal((403, "execsandbox: 127.0.0.1:%d is refused: denied by '127.0.0.1'\n" % port),
                  verdict(proxy, "%s:%d" % (host, port)), host)
    with Proxy(allow=["*", "*:%d" % port]) as proxy:
        for host in spellings + ("0", "[::]", "[::1]", "169.254.169.254", "8.8.8.8"):
            equal(403, verdict(proxy, "%s:%d" % (host, port))[0], host)


def checks_what_names_resolve_to():
    server = Server(echo)
    port = server.port
    private = {
        "private": ["10.1.2.3", "172.16.0.1", "172.31.255.255", "192.168.1.1", "fc00::1", "fd00:ec2::254", "64:ff9b:1::1"],
        "loopback": ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1", "::127.0.0.1", "64:ff9b::127.0.0.1",
                     "2002:7f00:1::", "2001:0:0808:0808::80ff:fffe"],
        "unspecified": ["0.0.0.0", "0.1.2.3", "::"], "link-local": ["169.254.169.254", "fe80::1", "64:ff9b::a9fe:a9fe"],
        "shared": ["100.64.0.1", "100.127.255.255", "100.100.100.200"], "multicast": ["224.0.0.1", "239.1.1.1", "ff02::1"],
        "reserved": ["192.0.0.192", "240.0.0.1", "192.88.99.1", "4000::1", "::2:0:0:1", "2001:10::1"],
        "documentation": ["192.0.2.1", "198.51.100.1", "203.0.113.1", "2001:db8::1", "3fff::1"],
        "benchmark": ["198.18.0.1", "198.19.255.255", "2001:2::1"], "broadcast": ["255.255.255.255"],
        "metadata": ["168.63.129.16"], "site-local": ["fec0::1"],
    }
    table, expected = {}, {}
    for word, addresses in private.items():
        for address in addresses:
            name = "n%d.example" % len(table)
            table[name] = [address]
            expected[name] = word, address
    table["mixed.example"] = ["8.8.8.8", "10.0.0.1"]
    table["dual.example"] = ["8.8.8.8", "fd00::1"]
    table["chain.example"] = [("CNAME", "next.example"), ("next.example", "10.0.0.7")]
    table["denied.example"] = ["8.8.4.4"]
    names = Names(table)
    with Proxy(allow=["*"], deny=["8.8.4.4"], nameservers=names.address) as proxy:
        for name, (word, address) in expected.items():
            code, text = verdict(proxy, "%s:%d" % (name, port))
            equal(403, code, name, address)
            check("%s:%d is refused: resolves to the %s address " % (name, port, word) in text, address, text)
            check((name, port, "denied") in proxy.report(), name)
        for name in ("mixed.example", "dual.example", "chain.example"):
            code, text = verdict(proxy, "%s:%d" % (name, port))
            check(code == 403 and "resolves to the private address" in text, name, text)
        equal((403, "execsandbox: denied.example:%d is refused: resolves to 8.8.4.4, denied by '8.8.4.4'\n" % port),
              verdict(proxy, "denied.example:%d" % port))
        # By every way in.
        equal(403, status(proxy.ask(get("http://n0.example:%d/" % port))))
        equal(2, proxy.socks(3, b"\x0an0.example", port)[0])
        equal(3, proxy.report()["n0.example", port, "denied"][0])
        equal(403, verdict(proxy, "localhost:%d" % port)[0])
    # The literal address in the list lets it, at its port.
    names = Names({"a.example": ["127.0.0.1"], "two.example": ["127.0.0.1", "127.0.0.2"]})
    with Proxy(allow=["*", "127.1:%d" % port], nameservers=names.address) as proxy:
        equal(200, verdict(proxy, "a.example:%d" % port)[0])
        equal(403, verdict(proxy, "a.example:%d" % (port ^ 1))[0])
        equal(403, verdict(proxy, "two.example:%d" % port)[0])


def knows_its_machine():
    """In a network namespace of its own, whose loopback also has these addresses."""
    server = Server(echo, "0.0.0.0")
    names = Names({"a.example": ["9.9.9.10"], "b.example": ["2606:4700::1"], "c.example": ["9.9.9.11"]})
    with Proxy(allow=["*", "9.9.9.11"], nameservers=names.address) as proxy:
        for host, address in (("a", "9.9.9.10"), ("b", "2606:4700::1")):
            equal((403, "execsandbox: %s.example:%d is refused: resolves to this machine's own address %s\n"
                   % (host, server.port, address)), verdict(proxy, "%s.example:%d" % (host, server.port)))
        equal((200, ""), verdict(proxy, "c.example:%d" % server.port))


def dials_what_it_checked():
    """A name that resolves differently the second time: it is resolved once for each request."""
    server = Server(echo)
    names = Names({"turn.example": lambda times: ["127.0.0.1"] if times % 2 == 1 else ["10.0.0.1"]})
    with Proxy(allow=["turn.example", "127.0.0.1"], nameservers=names.address) as proxy:
        for turn in range(4):
            code, text = verdict(proxy, "turn.example:%d" % server.port)
            equal(200 if turn % 2 == 0 else 403, code, text)
        equal(4, sum(kind == 1 for _, kind in names.log))
        for _ in range(500):  # its thread takes them in its own time
            if server.accepted >= 2:
                break
            time.sleep(0.01)
        equal(2, server.accepted)
        report = proxy.report()
        equal((2, 2), (report["turn.example", server.port, "allowed"][0],
                       report["turn.example", server.port, "denied"][0]))


def resolves():
    """CNAMEs, several addresses in turn, no such name, a server that is silent; no search domain."""
    server = Server(echo)
    port = server.port
    names = Names({
        "alias.example": [("CNAME", "real.example"), ("real.example", "127.0.0.1")],
        "several.example": ["127.0.0.3", "127.0.0.1"], "none.example": None, "empty.example": [],
        "silent.example": "silence", "single": None,
        "six.example": ["::1"], "both.example": ["127.0.0.1", "::1"],
        "many.example": ["127.0.1.%d" % i for i in range(40)],
        "long.example": ["::1"] * 15 + ["127.0.0.1"] + ["127.0.0.3"] * 16,
    })
    allow = ["*", "127.0.0.1", "127.0.0.3", "::1"]
    with Proxy(allow=allow, nameservers=names.address) as proxy:
        for name in ("alias", "several", "both", "long"):
            sock = proxy.tunnel("%s.example:%d" % (name, port))
            check(not isinstance(sock, bytes), name, sock)
            sock.sendall(b"x")
            equal(b"x", read_exact(sock, 1))
            sock.close()
        for name, why in (("none.example", "no such name"), ("empty.example", "no address"), ("single", "no such name"),
                          ("many.example", "too many")):
            code, text = verdict(proxy, "%s:%d" % (name, port))
            check(code == 502 and why in text and name in text, name, code, text)
        equal(502, verdict(proxy, "six.example:%d" % port)[0])
        equal({"alias.example", "several.example", "both.example", "none.example", "empty.example", "single",
               "many.example", "six.example", "long.example"}, {name for name, _ in names.log})
        # Others do not wait for it.
        slow = proxy.send(b"CONNECT silent.example:1 HTTP/1.1\r\n\r\n")
        equal(200, verdict(proxy, "both.example:%d" % port)[0])
        gone = proxy.send(b"CONNECT silent.example:2 HTTP/1.1\r\n\r\n")
        time.sleep(0.2)
        gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        gone.close()
        answer = read_all(slow, 60)
        equal(502, status(answer))
        check(b"did not answer" in answer, answer)


def cannot_connect():
    closed = socket.socket()
    closed.bind(("127.0.0.1", 0))
    port = closed.getsockname()[1]
    with Proxy(allow=["127.0.0.1"]) as proxy:
        code, text = verdict(proxy, "127.0.0.1:%d" % port)
        check(code == 502 and "127.0.0.1:%d cannot be reached: Connection refused" % port in text, code, text)
        equal(502, status(proxy.ask(get("http://127.0.0.1:%d/" % port))))
        answer = proxy.ask(b"HEAD http://127.0.0.1:%d/ HTTP/1.1\r\n\r\n" % port)
        equal(b"", answer.split(b"\r\n\r\n", 1)[1])
        equal((3, 0), proxy.report()["127.0.0.1", port, "allowed"])

    def hang_up(server, sock):
        read_head(sock)
    server = Server(hang_up)
    with Proxy(allow=["127.0.0.1"]) as proxy:
        answer = proxy.ask(get("http://127.0.0.1:%d/" % server.port))
        check(status(answer) == 502 and b"without an answer" in answer, answer)


# ---- what is refused --------------------------------------------------------------------------------

def refuses_malformed_heads():
    server = Server(web)
    at = b"http://127.0.0.1:%d/" % server.port
    host = b"127.0.0.1:%d" % server.port
    line = b"GET " + at + b" HTTP/1.1\r\n"
    post = b"POST " + at + b" HTTP/1.1\r\n"
    heads = [
        # lines
        b"GET / HTTP/1.1\r\n\r\n", b"* * *\r\n\r\n", b"\r\n" + line + b"\r\n", line.replace(b"\r\n", b"\n") + b"\n",
        line + b"A: b\n\r\n", line + b"A: b\r\r\n\r\n", line + b"A: b\rX: y\r\n\r\n", line + b"A: b\r\n c\r\n\r\n",
        line + b"A: b\r\n\tc\r\n\r\n", line + b" A: b\r\n\r\n", line + b"A : b\r\n\r\n", line + b"A\t: b\r\n\r\n",
        line + b"A\r\n\r\n", line + b": b\r\n\r\n", line + b"A: b\0c\r\n\r\n", line + b"A: b\x01c\r\n\r\n",
        line + b"A(b): c\r\n\r\n", line + b"\xff: c\r\n\r\n", line + b"A: b\x7f\r\n\r\n",
        b"GET  " + at + b" HTTP/1.1\r\n\r\n", b"GET " + at + b"  HTTP/1.1\r\n\r\n", b"GET " + at + b" HTTP/1.1 \r\n\r\n",
        b"GET " + at + b"\r\n\r\n", b"GET " + at + b" HTTP/2.0\r\n\r\n", b"GET " + at + b" HTTP/0.9\r\n\r\n",
        b"GET " + at + b" HTTP/1.2\r\n\r\n", b"GET " + at + b" ICY/1.0\r\n\r\n", b"get " + at + b" HTTP/1.1\r\n\r\n",
        b"WHATEVER " + at + b" HTTP/1.1\r\n\r\n", b"GET\t" + at + b" HTTP/1.1\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET " + at + b"\x80 HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x02\0\1\0\1\xfc\3\3", b"\4\1\0\x50\x7f\0\0\1\0",
        b"DESCRIBE " + at + b" RTSP/1.0\r\n\r\n", b"SOURCE " + at + b" ICE/1.0\r\n\r\n",
        # targets
        b"GET https://127.0.0.1/ HTTP/1.1\r\n\r\n", b"GET ftp://127.0.0.1/ HTTP/1.1\r\n\r\n",
        b"GET ws://127.0.0.1/ HTTP/1.1\r\n\r\n", b"GET //127.0.0.1/ HTTP/1.1\r\n\r\n", b"GET http:/127.0.0.1/ HTTP/1.1\r\n\r\n",
        b"GET http://u:p@" + host + b"/ HTTP/1.1\r\n\r\n", b"GET http://u@" + host + b"/ HTTP/1.1\r\n\r\n",
        b"GET http:// HTTP/1.1\r\n\r\n", b"GET http:///x HTTP/1.1\r\n\r\n", b"GET " + at + b"#f HTTP/1.1\r\n\r\n",
        b"GET http://127.0.0.1:0/ HTTP/1.1\r\n\r\n", b"GET http://127.0.0.1:/ HTTP/1.1\r\n\r\n",
        b"GET http://127.0.0.1:99999/ HTTP/1.1\r\n\r\n", b"GET http://127.0.0.1:80x/ HTTP/1.1\r\n\r\n",
        b"GET http://127.0.0.1\\@other/ HTTP/1.1\r\n\r\n", b"GET http://127.0.0.1%2f/ HTTP/1.1\r\n\r\n",
        b"GET http://[::1/ HTTP/1.1\r\n\r\n", b"GET http://[::1%25lo]/ HTTP/1.1\r\n\r\n",
        b"CONNECT 127.0.0.1 HTTP/1.1\r\n\r\n", b"CONNECT 127.0.0.1: HTTP/1.1\r\n\r\n", b"CONNECT " + host + b"/ HTTP/1.1\r\n\r\n",
        b"CONNECT " + at + b" HTTP/1.1\r\n\r\n", b"CONNECT u@" + host + b" HTTP/1.1\r\n\r\n", b"CONNECT :80 HTTP/1.1\r\n\r\n",
        b"CONNECT 256.0.0.1:80 HTTP/1.1\r\n\r\n", b"CONNECT a..b:80 HTTP/1.1\r\n\r\n", b"CONNECT ::1:80 HTTP/1.1\r\n\r\n",
        b"CONNECT " + host + b"?x HTTP/1.1\r\n\r\n", b"CONNECT b\xc3\xbccher.example:80 HTTP/1.1\r\n\r\n",
        b"CONNECT " + host + b" HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello",
        b"CONNECT " + host + b" HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"CONNECT " + host + b" HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        # another host
        line + b"Host: other.example\r\n\r\n", line + b"Host: 127.0.0.1\r\n\r\n", line + b"Host:\r\n\r\n",
        line + b"Host: " + host + b"\r\nHost: " + host + b"\r\n\r\n", line + b"Host: " + host + b", x\r\n\r\n",
        line + b"Host: x@" + host + b"\r\n\r\n",
        # two lengths
        post + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        post + b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
        post + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n123456", post + b"Content-Length: 5\r\nContent-Length: 5\r\n\r\n12345",
        post + b"Content-Length: 5, 5\r\n\r\n12345", post + b"Content-Length: +5\r\n\r\n12345",
        post + b"Content-Length: -1\r\n\r\n", post + b"Content-Length: 0x5\r\n\r\n12345", post + b"Content-Length: 5 5\r\n\r\n12345",
        post + b"Content-Length:\r\n\r\n", post + b"Content-Length: 99999999999999999999999\r\n\r\n",
        post + b"Transfer-Encoding: gzip\r\n\r\n", post + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        post + b"Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n", post + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
        post + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        post + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
        post + b"Transfer-Encoding: identity\r\n\r\n", post + b"Transfer-Encoding:\r\n\r\n",
        post + b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n", post + b"Transfer-Encoding:\x0bchunked\r\n\r\n0\r\n\r\n",
        post.replace(b"1.1", b"1.0") + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ]
    with Proxy(allow=["127.0.0.1", "::1", "*"]) as proxy:
        for head in heads:
            with proxy.send(head) as sock:
                # Some are not whole, and never will be.
                if b"\r\n\r\n" not in head and b"\n\n" not in head and head[0] < 32:
                    sock.sendall(b"\0" * 8)
                equal(400, status(read_all(sock)), head)
        equal(0, server.accepted)
        equal({}, proxy.report())
        equal(200, status(proxy.ask(line + b"HOST: 0X7F.1:%05d\r\n\r\n" % server.port)))


def refuses_large_heads():
    server = Server(web)
    line = b"GET http://127.0.0.1:%d/ HTTP/1.1\r\n" % server.port
    with Proxy(allow=["127.0.0.1"]) as proxy:
        equal(200, status(proxy.ask(line + b"A: " + b"x" * 60000 + b"\r\n\r\n")))
        equal(200, status(proxy.ask(line + b"A: x\r\n" * 250 + b"\r\n")))
        equal(431, status(proxy.ask(line + b"A: x\r\n" * 300 + b"\r\n")))
        for head in (line + b"A: " + b"x" * 80000, b"GET http://127.0.0.1/" + b"a" * 80000, b"a" * 70000):
            equal(431, status(proxy.ask(head)), len(head))
        equal(2, server.accepted)


def refuses_malformed_bodies():
    bodies = [b"x\r\n", b"5\nhello\r\n", b"5\r\nhelloX\r\n", b"5\r\nhello\n0\r\n\r\n", b"-1\r\n", b"0x5\r\nhello\r\n", b" 5\r\nhello\r\n",
              b"fffffffffffffffff\r\n", b"5 \r\nhello\r\n", b"\r\n", b"5\r\rhello"]

    def behave(server, sock):
        read_head(sock)
        server.requests.append(read_all(sock))
    server = Server(behave)
    with Proxy(allow=["127.0.0.1"]) as proxy:
        for wait in (0, 0.05):
            for body in bodies:
                with proxy.send(b"POST http://127.0.0.1:%d/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" % server.port) as sock:
                    time.sleep(wait)
                    sock.sendall(body)
                    equal(400, status(read_all(sock)), body)
        check(eventually(lambda: server.ended == server.accepted))
        check(not any(request.endswith(b"0\r\n\r\n") for request in server.requests), server.requests)


# ---- how it ends ------------------------------------------------------------------------------------

def clients_disappear():
    server = Server(silent)
    with Proxy(allow=["127.0.0.1"]) as proxy:
        check(eventually(lambda: proxy.fds() > 0))
        base = None
        for times in range(3):
            socks = [proxy.tunnel("127.0.0.1:%d" % server.port),
                     proxy.send(get("http://127.0.0.1:%d/" % server.port)),
                     proxy.send(b"POST http://127.0.0.1:%d/ HTTP/1.1\r\nContent-Length: 10\r\n\r\n12345" % server.port),
                     proxy.send(b"GET http://127.0"), proxy.send(b"\5"), proxy.connect()]
            check(eventually(lambda: server.accepted == 3 * (times + 1)), server.accepted)
            time.sleep(0.1)
            for number, sock in enumerate(socks):
                if number % 2 == times % 2:
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                sock.close()
            check(eventually(lambda: server.ended == server.accepted), server.ended, server.accepted)
        base = base or proxy.fds()
        check(eventually(lambda: proxy.fds() <= 24), proxy.fds())
        # What was cut off is not taken for whole.
        check(all(b"GET" in r or b"POST" in r for r in server.requests if r))


def servers_disappear():
    def cut(server, sock):
        read_head(sock)
        sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
        time.sleep(0.1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    server = Server(cut)
    with Proxy(allow=["127.0.0.1"]) as proxy:
        with proxy.send(get("http://127.0.0.1:%d/" % server.port)) as sock:
            sock.settimeout(5)
            data = b""
            try:
                while piece := sock.recv(100):
                    data += piece
                raise AssertionError("a clean end")
            except ConnectionResetError:
                pass
            check(data.endswith(b"half"), data)


def many_at_once():
    server = Server(echo)
    with Proxy(allow=["127.0.0.1"]) as proxy:
        socks = [proxy.send(b"CONNECT 127.0.0.1:%d HTTP/1.1\r\n\r\n" % server.port) for _ in range(200)]
        for number, sock in enumerate(socks):
            equal(200, status(read_head(sock)))
            sock.sendall(b"%d\n" % number * 1000)
        for number, sock in enumerate(socks):
            expected = b"%d\n" % number * 1000
            equal(expected, read_exact(sock, len(expected)))
        for sock in socks:
            sock.close()
        check(eventually(lambda: server.ended == 200), server.ended)
        equal(200, proxy.report()["127.0.0.1", server.port, "allowed"][0])
        equal(1, len(os.listdir("/proc/%d/task" % proxy.pid)))


def more_than_it_takes():
    """With few descriptors the rest waits in the backlog, and gets its turn."""
    server = Server(echo)
    with Proxy(allow=["127.0.0.1"], limit_files=112) as proxy:
        socks = [proxy.send(b"CONNECT 127.0.0.1:%d HTTP/1.1\r\n\r\n" % server.port) for _ in range(60)]
        waiting = set(socks)
        deadline = time.monotonic() + 60
        most = 0
        while waiting and time.monotonic() < deadline:
            ready = select.select(list(waiting), [], [], 1)[0]
            most = max(most, len(ready))
            for sock in ready:
                equal(200, status(read_head(sock)))
                sock.close()
                waiting.discard(sock)
        check(not waiting, len(waiting))
        check(most <= 20, most)


def silent_servers():
    """Connections that never come to anything hold up nobody, nor the end."""
    server = Server(silent)
    backlog = socket.create_server(("127.0.0.1", 0), backlog=0)
    proxy = Proxy(allow=["127.0.0.1"])
    socks = [proxy.send(get("http://127.0.0.1:%d/" % server.port)) for _ in range(50)]
    for _ in range(5):  # the first fill the queue; the others stay dialling
        socks.append(proxy.send(b"CONNECT 127.0.0.1:%d HTTP/1.1\r\n\r\n" % backlog.getsockname()[1]))
    check(eventually(lambda: server.accepted == 50))
    live = Server(web)
    equal(200, status(proxy.ask(get("http://127.0.0.1:%d/" % live.port))))
    started = time.monotonic()
    proxy.close()
    check(time.monotonic() - started < 1)
    check(eventually(lambda: server.ended == 50), server.ended)
    equal((50, 50 * len(server.requests[0])), proxy.report()["127.0.0.1", server.port, "allowed"])


def slow_heads():
    """30 seconds for a head, however busily its bytes trickle."""
    with Proxy(allow=["127.0.0.1"]) as proxy:
        empty, slow, half = proxy.connect(), proxy.send(b"GET http://127.0.0.1/ HTTP/1.1\r\n"), proxy.send(b"\5\1")
        started = time.monotonic()
        while not select.select([slow], [], [], 0.5)[0]:
            slow.sendall(b"A: b\r\n")
            check(time.monotonic() - started < 40)
        check(25 < time.monotonic() - started, time.monotonic() - started)
        equal(408, status(read_all(slow)))
        equal(b"", read_all(empty))
        equal(b"", read_all(half))


def several_listeners():
    server = Server(web)
    with Proxy(allow=["127.0.0.1"], listeners=8) as proxy:
        for number in range(8):
            with proxy.connect(number) as sock:
                sock.sendall(get("http://127.0.0.1:%d/" % server.port))
                equal(200, status(read_all(sock)))


def fills_the_report():
    with Proxy() as proxy:
        proxy.ask(b"CONNECT first.example:1 HTTP/1.1\r\n\r\n")
        for number in range(ENTRIES + 10):
            with proxy.send(b"CONNECT n%d.example:1 HTTP/1.1\r\n\r\n" % number) as sock:
                equal(403, status(read_head(sock)))
        proxy.ask(b"CONNECT first.example:1 HTTP/1.1\r\n\r\n")
        report = proxy.report()
        equal((ENTRIES, 11), (len(report), proxy.dropped))
        equal((2, 0), report["first.example", 1, "denied"])


def outlives_nothing():
    """End of file on the control socket ends it at once, with all of its connections."""
    server = Server(echo)
    proxy = Proxy(allow=["127.0.0.1"])
    with proxy.tunnel("127.0.0.1:%d" % server.port) as sock:
        sock.sendall(b"x")
        equal(b"x", read_exact(sock, 1))
        proxy.close()
        equal(b"", read_all(sock))
    check(eventually(lambda: server.ended == 1))
    equal((1, 2), proxy.report()["127.0.0.1", server.port, "allowed"])


def reads_a_sound_config():
    def head(magic=0x58424650, version=1, allow=0, deny=0, size=25):
        return struct.pack("=6I", magic, version, allow, deny, size, 0)
    for config in (b"", head()[:20], head(magic=1) + b"\0", head(version=2) + b"\0", head() + b"x", head(size=24),
                   head(size=26) + b"\0", head(allow=1) + b"\0", head(allow=1, size=28) + b"\0a \0",
                   head(allow=0, size=27) + b"\0a\0", head(deny=4000000000) + b"\0", head(size=33) + b"no such\0\0"):
        proxy = Proxy(config=config)
        equal(1, proxy.wait(), config)
    proxy = Proxy(report_size=100)
    equal(1, proxy.wait())
    Proxy(config=head() + b"\0").close()


def is_confined():
    with Proxy() as proxy:
        proxy.ask(get("http://x.example/"))
        with open("/proc/%d/status" % proxy.pid) as file:
            text = dict(line.split(":\t", 1) for line in file if ":\t" in line)
        equal("1\n", text["NoNewPrivs"])
        equal("2\n", text["Seccomp"])
        with open("/proc/%d/limits" % proxy.pid) as file:
            check("Max core file size        0                    0" in file.read())
