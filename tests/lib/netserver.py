#!/usr/bin/env python3
"""netserver.py DIR: servers on loopback for tests of the egress broker.

Two TCP ports, `open` and `secret`, on 127.0.0.1 (and `secret` on ::1 too), and an
abstract socket. DIR/ports gets "OPEN SECRET ABSTRACT" when all listen; DIR/seen a line
"NAME FIRSTLINE" for each connection that says something, or "NAME -" for one that only
connects; DIR/now the connections that are open. What a client says in its first line:

  GET ...    HTTP/1: an answer with what it was asked, and with its Host
  HALF       all until its end is read, then counted back to it
  FLOOD N    N bytes come back
  ECHO       whatever it says comes back
"""
import os, socket, sys, threading

where = sys.argv[1]
lock = threading.Lock()
now = 0


def note(name, line):
    with lock, open(where + "/seen", "a") as f:
        f.write(f"{name} {line}\n")


def count(by):
    global now
    with lock:
        now += by
        with open(where + "/now", "w") as f:
            f.write(f"{now}\n")


def http(c, f, first):
    head = [first]
    while (line := f.readline().decode("latin-1").rstrip("\r\n")):
        head.append(line)
    hosts = [h for h in head if h.lower().startswith("host:")]
    odd = [h for h in head if "proxy" in h.lower()]
    body = f"served {first} {';'.join(hosts)} odd={len(odd)}\n".encode()
    c.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body)


def serve(c, name):
    count(1)
    try:
        f = c.makefile("rb")
        first = f.readline().decode("latin-1").strip()
        note(name, first or "-")
        word = first.split(" ")
        if word[0] in ("GET", "POST"):
            http(c, f, first)
        elif word[0] == "HALF":
            c.sendall(f"got {len(f.read())}\n".encode())
        elif word[0] == "FLOOD":
            block, left = bytes(65536), int(word[1])
            while left > 0:
                left -= c.send(block[:left])
        elif word[0] == "ECHO":
            while (data := f.readline()):
                c.sendall(data)
    except OSError:
        pass
    finally:
        f.close()
        c.close()
        count(-1)


def listen(family, address, name):
    s = socket.socket(family, socket.SOCK_STREAM)
    s.bind(address)
    s.listen(400)

    def loop():
        while True:
            c, _ = s.accept()
            threading.Thread(target=serve, args=(c, name), daemon=True).start()

    threading.Thread(target=loop, daemon=True).start()
    return s.getsockname()


ports = [listen(socket.AF_INET, ("127.0.0.1", 0), n)[1] for n in ("open", "secret")]
try:
    listen(socket.AF_INET6, ("::1", ports[1]), "secret")
except OSError:
    pass  # a machine without IPv6
abstract = f"knit-egress-{os.getpid()}"
listen(socket.AF_UNIX, "\0" + abstract, "abstract")
open(where + "/seen", "a").close()
with open(where + "/ports.new", "w") as f:
    f.write(f"{ports[0]} {ports[1]} {abstract}\n")
os.rename(where + "/ports.new", where + "/ports")
threading.Event().wait()
