"""clients.py SOCKET WHAT...: clients of `knit-sandbox serve` that behave in some way;
one line each of what came of it.

    many N TASKS SEED   N at once with TASKS tasks each; every other one goes away
                        somewhere: "answered whole wrong" over those that stayed
    deaf TASKS BYTES    one that sends tasks which print BYTES and reads nothing for 2 s:
                        "sent" before the server took no more, then all: "answered"
    crowd HTTP PID      more than the server PID has descriptors for, which are taken from
                        it: "rests", or the ticks that it used in 2 s; the status of
                        /health; the verdicts of those that did not go away meanwhile
    half                ends within a line, then closes its side: its answers"""
import json
import os
import random
import re
import resource
import socket
import sys
import threading
import time


def connect(path):
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(120)
    s.connect(path)
    return s


def lines(s):
    data = b""
    while True:
        got = s.recv(1 << 16)
        if not got:
            break
        data += got
    return [json.loads(x) for x in data.splitlines()]


def many(path, n, tasks, seed):
    rnd = random.Random(seed)
    seen, lock = [0, 0, 0], threading.Lock()

    def one(i, leave_at):
        s = connect(path)
        todo = ["c%dt%d" % (i, k) for k in range(tasks)]
        text = "".join(json.dumps({"id": t, "argv": ["echo", t]}) + "\n" for t in todo).encode()
        if leave_at is not None:
            s.sendall(text[:int(len(text) * leave_at)])
            time.sleep(leave_at / 10)
            s.close()
            return
        s.sendall(text)
        s.shutdown(socket.SHUT_WR)
        got = lines(s)
        right = {r["id"]: r for r in got if r["verdict"] == "ok" and r["stdout"] == r["id"] + "\n"}
        with lock:
            seen[0] += len(got)
            seen[1] += set(right) == set(todo) and len(got) == tasks
            seen[2] += len(got) - len(right)

    threads = [threading.Thread(target=one, args=(i, rnd.random() if i % 2 else None)) for i in range(n)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    print(*seen)


def deaf(path, tasks, size):
    s = connect(path)
    s.setblocking(False)
    line = json.dumps({"id": "%07d", "env": {"PAD": "x" * 1000}, "argv": ["head", "-c", str(size), "/dev/zero"]}) + "\n"
    todo = "".join(line % i for i in range(tasks)).encode()
    at, end = 0, time.monotonic() + 2
    while at < len(todo) and time.monotonic() < end:
        try:
            at += s.send(todo[at:])
        except BlockingIOError:
            time.sleep(0.01)
    sent = at
    s.setblocking(True)
    threading.Thread(target=lambda: (s.sendall(todo[at:]), s.shutdown(socket.SHUT_WR))).start()
    got = lines(s)
    print(sent < len(todo), len({r["id"] for r in got}), len(got))


def ask(http, what):
    s = connect(http)
    s.sendall(b"GET %s HTTP/1.0\r\n\r\n" % what.encode())
    return s.makefile().read()


def crowd(path, http, pid):
    pid = int(pid)

    def ticks():
        words = open("/proc/%d/stat" % pid).read().rsplit(")", 1)[1].split()
        return int(words[11]) + int(words[12])

    def number(name):
        return int(re.search(r"^%s (\d+)$" % name, ask(http, "/metrics"), re.M)[1])

    before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    few = number("knit_descriptors_kept") + 3
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (few, before[1]))
    # More than there are descriptors, were none kept; a probe comes through all the same.
    came = [connect(path) for i in range(few - number("process_open_fds") + 20)]
    time.sleep(1)
    used = ticks()
    time.sleep(2)
    used = ticks() - used
    health = ask(http, "/health").split()[1]
    for s in came:
        s.sendall(b'{"id":"a","argv":["true"]}\n')
        s.shutdown(socket.SHUT_WR)
    for s in came[::2]:
        s.close()
    answers = {r["verdict"] for s in came[1::2] for r in lines(s) or [{"verdict": "none"}]}
    resource.prlimit(pid, resource.RLIMIT_NOFILE, before)
    print("rests" if used < 20 else used, health, *sorted(answers))


def half(path):
    s = connect(path)
    s.sendall(b'{"id":"a","argv":["true"]}\n{"id":"b","argv":["tr')
    s.shutdown(socket.SHUT_WR)
    print(*sorted(r["id"] + ":" + r["verdict"] for r in lines(s)))


def main():
    path, what = sys.argv[1:3]
    args = [int(a) if a.isdigit() else a for a in sys.argv[3:]]
    {"many": many, "deaf": deaf, "crowd": crowd, "half": half}[what](path, *args)


main()
