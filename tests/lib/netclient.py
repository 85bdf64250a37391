#!/usr/bin/env python3
"""netclient.py WHAT ARGS...: run inside of a sandbox by tests of the egress broker.

  ways PORT ABSTRACT     every way around the proxy, one line each: "WAY: outcome"
  ask HOST:PORT...       by CONNECT and by SOCKS5, one line each: "HOST:PORT CODE CODE"
  many N HOST:PORT       N connections at once, each used; how many worked
  hold N HOST:PORT SEC   N connections held until none was made for SEC seconds; how many were
  half HOST:PORT N       N bytes, an end, and the answer to them
  flood HOST:PORT N R    a flood of N bytes of which R are read before the end
  echo HOST:PORT N       N bytes there and back, while both directions are full
  raw TEXT               what the proxy answers to it (first line; \\x escapes)
  leave HOST:PORT        connections half made, a listener and a child that lives on
  look                   what of that is still there
"""
import errno, os, socket, struct, sys, threading, time

PROXY = ("127.0.0.1", 3128)


def dial():
    s = socket.create_connection(PROXY, 20)
    s.settimeout(60)
    return s


def line(s):
    got = b""
    while not got.endswith(b"\n"):
        c = s.recv(1)
        if not c:
            break
        got += c
    return got.decode("latin-1").rstrip("\r\n")


def connect(target):
    """A tunnel by CONNECT, or the status."""
    s = dial()
    s.sendall(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode())
    status = line(s).split(" ")[1:2]
    if status != ["200"]:
        s.close()
        return None, status[0] if status else "closed"
    while line(s):
        pass
    return s, "200"


def socks(target):
    host, _, port = target.rpartition(":")
    s = dial()
    s.sendall(b"\5\1\0")
    if s.recv(2) != b"\5\0":
        return None, "hello"
    try:
        a = b"\1" + socket.inet_pton(socket.AF_INET, host)
    except OSError:
        try:
            a = b"\4" + socket.inet_pton(socket.AF_INET6, host.strip("[]"))
        except OSError:
            a = b"\3" + bytes([len(host)]) + host.encode()
    s.sendall(b"\5\1\0" + a + struct.pack(">H", int(port)))
    got = s.recv(10)
    return s, str(got[1]) if len(got) > 1 else "closed"


def outcome(what):
    try:
        return what() or "THROUGH"
    except OSError as e:
        return errno.errorcode.get(e.errno, str(e))


def tcp(family, address):
    s = socket.socket(family, socket.SOCK_STREAM)
    s.settimeout(3)
    s.connect(address)


def ways(port, abstract):
    port = int(port)
    v4, v6 = socket.AF_INET, socket.AF_INET6
    for name, what in {
        "loopback": lambda: tcp(v4, ("127.0.0.1", port)),
        "loopback of IPv6": lambda: tcp(v6, ("::1", port)),
        "mapped": lambda: tcp(v6, ("::ffff:127.0.0.1", port)),
        "any": lambda: tcp(v4, ("0.0.0.0", port)),
        "an address": lambda: tcp(v4, ("192.0.2.1", 80)),
        "an address of IPv6": lambda: tcp(v6, ("2001:db8::1", 80)),
        "metadata": lambda: tcp(v4, ("169.254.169.254", 80)),
        "UDP": lambda: socket.socket(v4, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.53", 53)),
        "UDP of IPv6": lambda: socket.socket(v6, socket.SOCK_DGRAM).sendto(b"x", ("::1", 53)),
        "raw": lambda: socket.socket(v4, socket.SOCK_RAW, 255) and None,
        "raw ICMP": lambda: socket.socket(v4, socket.SOCK_RAW, 1) and None,
        "ping": lambda: socket.socket(v4, socket.SOCK_DGRAM, 1) and None,
        "packet": lambda: socket.socket(17, socket.SOCK_RAW, 3) and None,
        "netlink": lambda: socket.socket(16, socket.SOCK_RAW, 0) and None,
        "vsock": lambda: socket.socket(40, socket.SOCK_STREAM, 0) and None,
        "MPTCP": lambda: socket.socket(v4, socket.SOCK_STREAM, 262) and None,
        "SMC": lambda: socket.socket(v4, socket.SOCK_STREAM, 256) and None,
        "SCTP": lambda: socket.socket(v4, socket.SOCK_STREAM, 132) and None,
        "abstract": lambda: socket.socket(socket.AF_UNIX).connect("\0" + abstract),
        "name": lambda: socket.getaddrinfo("example.com", 80) and None,
    }.items():
        print(f"{name}: {outcome(what)}")


def ask(*targets):
    for t in targets:
        print(t, connect(t)[1], socks(t)[1])


def many(n, target):
    conns = [connect(target)[0] for _ in range(int(n))]
    good = 0
    for i, s in enumerate(conns):
        s.sendall(b"ECHO\nhello %d\n" % i)
    for i, s in enumerate(conns):
        good += line(s) == f"hello {i}"
        s.close()
    print(good)


def hold(n, target, seconds):
    ask = f"CONNECT {target} HTTP/1.1\r\n\r\n".encode()
    conns = []
    for _ in range(int(n)):
        c = socket.socket()
        c.setblocking(False)
        c.connect_ex(PROXY)
        conns.append(c)
    made, asked, most = set(), set(), time.time() + 200
    end = time.time() + float(seconds)
    while time.time() < min(end, most):
        before = len(made)
        for c in conns:
            try:
                if c not in asked:
                    c.send(ask)
                    asked.add(c)
                elif c not in made and c.recv(100):
                    made.add(c)
            except OSError:
                pass
        if len(made) > before:
            end = time.time() + float(seconds)
        time.sleep(0.05)
    print(len(made), flush=True)
    os._exit(0)


def half(target, n):
    s, _ = connect(target)
    s.sendall(b"HALF\n" + bytes(int(n)))
    s.shutdown(socket.SHUT_WR)
    print(line(s), repr(s.recv(1)))


def flood(target, n, read):
    s, _ = connect(target)
    s.sendall(f"FLOOD {n}\n".encode())
    left = int(read)
    while left > 0:
        left -= len(s.recv(min(left, 65536)))
    time.sleep(0.5)
    print("read", read)


def echo(target, n):
    s, _ = connect(target)
    n = int(n)
    block = b"x" * 1023 + b"\n"
    s.sendall(b"ECHO\n")

    def write():
        for _ in range(n // 1024):
            s.sendall(block)
        s.shutdown(socket.SHUT_WR)

    threading.Thread(target=write, daemon=True).start()
    got = 0
    while (data := s.recv(65536)):
        got += len(data)
    print("back", got)


def raw(text):
    s = dial()
    s.sendall(text.encode().decode("unicode_escape").encode("latin-1"))
    s.shutdown(socket.SHUT_WR)
    print(repr(line(s)))


def leave(target):
    s, _ = connect(target)
    s.sendall(b"ECHO\n")
    for _ in range(20):
        c = socket.socket()
        c.setblocking(False)
        c.connect_ex(PROXY)
        os.dup(c.detach())
    quiet = socket.socket()
    quiet.bind(("127.0.0.1", 9999))
    quiet.listen(5)
    if os.fork() == 0:
        os.setsid()
        time.sleep(60)
    print("left", flush=True)
    os._exit(0)


def look():
    print(outcome(lambda: tcp(socket.AF_INET, ("127.0.0.1", 9999))))


globals()[sys.argv[1]](*sys.argv[2:])
