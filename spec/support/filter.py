"""Drives execsandbox-proxy by itself, as the supervisor does: `filter.py PROGRAM CASE` runs one case.

Here are the proxy's ends of the wire (csrc/filter_wire.h), name servers and servers to play with;
the cases are in filter_cases.py.
"""
import ctypes
import fcntl
import os
import select
import socket
import struct
import sys
import threading
import time

MAGIC, VERSION, ENTRIES = 0x58424650, 1, 1024
ENTRY = struct.Struct("=IHHQQ256s")
REPORT_HEAD = struct.Struct("=IIQ")
REPORT_SIZE = REPORT_HEAD.size + ENTRIES * ENTRY.size


def check(condition, *what):
    if not condition:
        raise AssertionError(" ".join(repr(w) if isinstance(w, bytes) else str(w) for w in what))


def equal(expected, got, *what):
    check(expected == got, *what, "expected", repr(expected), "got", repr(got))


def eventually(test, seconds=5):
    deadline = time.monotonic() + seconds
    while not test():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def read_all(sock, timeout=10):
    """Everything up to the end of file; a reset is an end too."""
    sock.settimeout(timeout)
    pieces = []
    try:
        while piece := sock.recv(65536):
            pieces.append(piece)
    except ConnectionResetError:
        pass
    return b"".join(pieces)


def read_exact(sock, length, timeout=10):
    sock.settimeout(timeout)
    data = b""
    while len(data) < length:
        piece = sock.recv(length - len(data))
        if not piece:
            break
        data += piece
    return data


def read_head(sock, timeout=10):
    """Up to and with the empty line."""
    sock.settimeout(timeout)
    data = b""
    while not data.endswith(b"\r\n\r\n"):
        piece = sock.recv(1)
        if not piece:
            break
        data += piece
    return data


def lift(fd):
    """A number that dup2 to 3, 4 and 5 does not hit."""
    return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 20)


class Proxy:
    def __init__(self, allow=(), deny=(), nameservers="127.0.0.1:1", listeners=1, config=None, report_size=REPORT_SIZE,
                 limit_files=None):
        strings = b"".join(s.encode() + b"\0" for s in [nameservers, *allow, *deny])
        if config is None:
            size = 24 + len(strings)
            config = struct.pack("=6I", MAGIC, VERSION, len(allow), len(deny), size, 0) + strings
        self.config = os.memfd_create("config")
        os.write(self.config, config)
        self.report_fd = os.memfd_create("report")
        os.ftruncate(self.report_fd, report_size)
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        fds = [lift(fd) for fd in (theirs.fileno(), self.config, self.report_fd)]
        null = os.open("/dev/null", os.O_RDWR)
        errors = 2 if os.environ.get("FILTER_ERRORS") else null  # sanitizers have something to say
        actions = [(os.POSIX_SPAWN_DUP2, fd, n) for n, fd in enumerate([null, null, errors] + fds)]
        program = [Proxy.program, "serve"]
        if limit_files:
            program = ["/bin/sh", "-c", "ulimit -n %d; exec \"$@\"" % limit_files, "sh", *program]
        self.pid = os.posix_spawn(program[0], program, {}, file_actions=actions)
        for fd in fds + [null]:
            os.close(fd)
        theirs.close()
        self.status = None
        self.listeners = [socket.create_server(("127.0.0.1", 0), backlog=512) for _ in range(listeners)]
        self.address = self.listeners[0].getsockname()
        try:
            socket.send_fds(self.control, [b"l"], [s.fileno() for s in self.listeners])
        except OSError:
            pass  # it is gone already: what some cases are about

    def connect(self, listener=0):
        sock = socket.create_connection(self.listeners[listener].getsockname(), timeout=10)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return sock

    def send(self, data):
        sock = self.connect()
        sock.sendall(data)
        return sock

    def ask(self, data, timeout=10):
        """The whole answer to DATA."""
        with self.send(data) as sock:
            return read_all(sock, timeout)

    def tunnel(self, target):
        """A socket behind CONNECT, or the answer that refused it."""
        sock = self.send(b"CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n" % (target.encode(), target.encode()))
        head = read_head(sock)
        if head.startswith(b"HTTP/1.1 200 "):
            return sock
        answer = head + read_all(sock)
        sock.close()
        return answer

    def socks(self, kind, address, port, command=1, methods=b"\0"):
        """(code, socket) of a SOCKS5 request."""
        sock = self.connect()
        sock.sendall(b"\5%c%s" % (len(methods), methods))
        equal(b"\5\0", read_exact(sock, 2))
        sock.sendall(b"\5%c\0%c%s%s" % (command, kind, address, struct.pack(">H", port)))
        answer = read_exact(sock, 10)
        check(len(answer) == 10 and answer[0] == 5, "SOCKS answer", answer)
        return answer[1], sock

    def report(self):
        """{(host, port, 'allowed' | 'denied'): (count, bytes)}, and `dropped`."""
        data = os.pread(self.report_fd, REPORT_SIZE, 0)
        magic, count, self.dropped = REPORT_HEAD.unpack_from(data)
        equal(MAGIC, magic)
        entries = {}
        for i in range(count):
            verdict, port, _, times, length, host = ENTRY.unpack_from(data, REPORT_HEAD.size + i * ENTRY.size)
            key = host.split(b"\0")[0].decode(), port, {1: "allowed", 2: "denied"}[verdict]
            check(key not in entries, "twice", key)
            entries[key] = times, length
        return entries

    def wait(self, seconds=5):
        """The exit status, or None while it runs."""
        def ended():
            if self.status is None:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
                if pid:
                    self.status = os.waitstatus_to_exitcode(status)
            return self.status is not None
        eventually(ended, seconds)
        return self.status

    def fds(self):
        """How many descriptors it has, which only root may see; 0 else: no one debugs it."""
        try:
            return len(os.listdir("/proc/%d/fd" % self.pid))
        except PermissionError:
            return 0

    def close(self):
        """As the supervisor's end would end it. It must be alive, and not crash."""
        alive = self.wait(0) is None
        self.control.close()
        status = self.wait()
        check(alive and status == 0, "the proxy's end:", alive, status)
        for sock in self.listeners:
            sock.close()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is None:
            self.close()
        elif self.wait(0) is None:
            os.kill(self.pid, 9)
            self.wait()


class Names:
    """A name server. `names` has for each name a list of addresses and ("CNAME", name) pairs, None for
    NXDOMAIN, "silence", or a function of how often it was asked that returns one of these."""

    def __init__(self, names):
        self.names, self.asked, self.log = names, {}, []
        self.sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.sock.bind(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.sock.getsockname()[1]
        self.tcp = socket.create_server(self.sock.getsockname())
        threading.Thread(target=self.serve, daemon=True).start()
        threading.Thread(target=self.serve_tcp, daemon=True).start()

    @staticmethod
    def encode(name):
        return b"".join(b"%c%s" % (len(label), label.encode()) for label in name.split(".")) + b"\0"

    def serve(self):
        while True:
            query, peer = self.sock.recvfrom(4096)
            answer = self.look_up(query)
            if len(answer) > 512:  # truncated: to be asked for by TCP
                answer = answer[:2] + b"\x83\x80" + answer[4:6] + bytes(6) + query[12:]
            if answer:
                self.sock.sendto(answer, peer)

    def serve_tcp(self):
        while True:
            sock, _ = self.tcp.accept()
            while length := read_exact(sock, 2):
                answer = self.look_up(read_exact(sock, struct.unpack(">H", length)[0]))
                sock.sendall(struct.pack(">H", len(answer)) + answer)

    def look_up(self, query):
        labels, at = [], 12
        while query[at]:
            labels.append(query[at + 1:at + 1 + query[at]].decode())
            at += 1 + query[at]
        kind = struct.unpack_from(">H", query, at + 1)[0]
        name = ".".join(labels).lower()
        self.log.append((name, kind))
        answer = self.names.get(name)
        if callable(answer):
            times = self.asked[name, kind] = self.asked.get((name, kind), 0) + 1
            answer = answer(times)
        return b"" if answer == "silence" else self.answer(query, at + 5, kind, answer)

    def answer(self, query, end, kind, records):
        head, body, count = query[:2], b"", 0
        for record in records or []:
            owner = b"\xc0\x0c"
            if isinstance(record, tuple) and record[0] == "CNAME":
                data, type_ = self.encode(record[1]), 5
            else:
                if isinstance(record, tuple):
                    owner, record = self.encode(record[0]), record[1]
                family = socket.AF_INET6 if ":" in record else socket.AF_INET
                data, type_ = socket.inet_pton(family, record), 28 if ":" in record else 1
            if type_ in (kind, 5):
                body += owner + struct.pack(">HHIH", type_, 1, 0, len(data)) + data
                count += 1
        code = 3 if records is None else 0
        return head + struct.pack(">HHHHH", 0x8180 | code, 1, count, 0, 0) + query[12:end] + body


class Server:
    """A server on 127.0.0.1: `behave(sock)` has each connection, which is closed after it."""

    def __init__(self, behave, host="127.0.0.1"):
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.sock = socket.create_server((host, 0), family=family, backlog=512)
        self.port = self.sock.getsockname()[1]
        self.behave, self.accepted, self.requests, self.ended = behave, 0, [], 0
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            sock, _ = self.sock.accept()
            self.accepted += 1
            threading.Thread(target=self.one, args=(sock,), daemon=True).start()

    def one(self, sock):
        try:
            self.behave(self, sock)
        except OSError:
            pass
        self.ended += 1
        sock.close()


def body_of(sock, head):
    """What follows HEAD, as it is framed, raw."""
    lower = head.lower()
    if b"\r\ntransfer-encoding: chunked\r\n" in lower:
        body = b""
        while not body.endswith(b"0\r\n\r\n"):
            piece = sock.recv(1)
            if not piece:
                break
            body += piece
        return body
    if b"\r\ncontent-length: " in lower:
        length = int(lower.split(b"\r\ncontent-length: ")[1].split(b"\r\n")[0])
        return read_exact(sock, length)
    return b""


def web(server, sock):
    """Answers one request with "hello", and keeps what it got in `requests`."""
    head = read_head(sock)
    body = body_of(sock, head)
    sock.settimeout(0.1)
    try:
        rest = sock.recv(65536)
    except TimeoutError:
        rest = b""
    server.requests.append((head, body, rest))
    sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello")


def echo(server, sock):
    """Sends everything back, and ends when the client does."""
    sock.settimeout(30)
    while piece := sock.recv(65536):
        sock.sendall(piece)
    sock.shutdown(socket.SHUT_WR)


def silent(server, sock):
    """Never answers; takes note of the end."""
    server.requests.append(sock.recv(65536))
    sock.settimeout(60)
    while sock.recv(65536):
        pass


def main():
    import filter_cases
    Proxy.program = sys.argv[1]
    getattr(filter_cases, sys.argv[2])()
    print("fine")


if __name__ == "__main__":
    sys.modules["filter"] = sys.modules["__main__"]
    main()
