"""clients.py SOCKET WHAT...: clients of `knit-sandbox serve` that behave in some way;
one line each of what came of it.

    many N TASKS SEED   N at once with TASKS tasks each; every other one goes away
                        somewhere: "answered whole wrong" over those that stayed
    deaf TASKS BYTES    one that sends tasks which print BYTES and reads nothing for 2 s:
                        "sent" before the server took no more, then all: "answered"
    crowd HTTP PID      more than the server PID has descriptors for, which are taken from
                        it: "rests", or the ticks that it used in 2 s; the status of
                        /health; the verdicts of those that did not go away meanwhile
    half                ends within a line, then closes its side: its answers
    mute TASKS BYTES    sends tasks which print BYTES and one that sleeps, and never
                        reads: until it is "cut off"
    slow TASKS BYTES FILE
                        the same without a sleeper, and reads 32 KiB five times a second
                        until FILE is there: "whole", "cut", or "late" if it was
                        itself kept from reading for most of a second
    fair TASKS          while one with TASKS tasks waits, another comes with a single one:
                        its verdict, and whether the first still waited then
    cancel              cancels its own, one of another's, and one that nobody has
    numbers             while one only looks, others work, and a third asks, in two
                        pieces, what goes on: by how much the count of clients had grown,
                        each time, and whether each that works has a number of its own
    gift HTTP PID       sends descriptors with what it sends, to both sockets: the answers,
                        and whether they are closed on the other side, of which the
                        server PID has as many open as before
    hoard PID N BYTES   N at once send BYTES of a line each that does not end; when the
                        server PID takes no more: the MiB that it has become larger by,
                        what another client's task comes to, and, when half of the N have
                        gone, how many of the others have their answer
    hungry PID          as many as it takes until the server PID, which gets no more memory
                        meanwhile, turns one away: what that one reads; then a task's verdict
    crate PID TASKS DIR two at once with TASKS tasks that are given 60 files of DIR each,
                        while the server PID has descriptors for one of them only: how
                        many were answered, and the verdicts
    garbage             NULs, bytes at random, a line without end, and a task
    killed N TASKS SEED N processes, every other one killed at some moment, and one killed
                        while its task sleeps: how many of the others had all, right"""
import json
import os
import random
import re
import resource
import select
import signal
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


def task(name, *argv):
    return json.dumps({"id": name, "argv": argv}).encode() + b"\n"


def mute(path, tasks, size):
    s = connect(path)
    s.sendall(b"".join(task("t%d" % i, "head", "-c", str(size), "/dev/zero") for i in range(tasks)))
    s.sendall(task("sleeper", "sleep", "1000"))
    p = select.poll()
    p.register(s, 0)  # POLLHUP and POLLERR only
    print("cut off" if p.poll(120000) else "kept")


def slow(path, tasks, size, file):
    s = connect(path)
    s.sendall(b"".join(task("t%d" % i, "head", "-c", str(size), "/dev/zero") for i in range(tasks)))
    n, longest, last = 0, 0, time.monotonic()
    while n < tasks:
        got = s.recv(1 << 15)
        now = time.monotonic()
        longest, last = max(longest, now - last), now
        n += got.count(b"\n")
        if not got:
            break
        if not os.path.exists(file):
            time.sleep(0.2)
    print("whole" if n == tasks else "late" if longest > 0.8 else "cut")


def fair(path, tasks):
    s, n, first = connect(path), [0], threading.Event()

    def send():
        try:
            s.sendall(b"".join(task("t%d" % i, "head", "-c", "2000", "/dev/zero") for i in range(tasks)))
        except OSError:
            pass  # it goes away in the middle

    # Answers of so many bytes that its tasks wait when it does not read.
    def read():
        while True:
            got = s.recv(1 << 16)
            if not got:
                break
            n[0] += got.count(b"\n")
            first.set()

    for f in (send, read):
        threading.Thread(target=f, daemon=True).start()
    first.wait(120)
    t = connect(path)
    t.sendall(task("one", "true"))
    t.shutdown(socket.SHUT_WR)
    got = lines(t)
    print(got[0]["verdict"], 0 < n[0] < tasks)
    s.shutdown(socket.SHUT_RDWR)


def cancel(path):
    a, b = connect(path), connect(path)
    a.sendall(task("mine", "sleep", "1000") + task("a", "true"))
    f = a.makefile()
    got = [json.loads(f.readline())]
    b.sendall(b'{"cancel":"mine"}\n' + task("b", "true"))
    b.shutdown(socket.SHUT_WR)
    others = lines(b)
    a.sendall(b'{"cancel":"mine"}\n{"cancel":"nobody"}\n' + task("c", "true"))
    a.shutdown(socket.SHUT_WR)
    got += [json.loads(x) for x in f]
    print(*(",".join(sorted(r["id"] + ":" + r["verdict"] for r in v)) for v in (got, others)))


def garbage(path):
    s = connect(path)
    noise = bytes(random.Random(1).randrange(256) for i in range(5000)).replace(b"\n", b"x")
    text = [b"\0\0\0", noise, b'{"id":"nul","argv":["echo","a\\u0000b"]}', b'{"id":"long","argv":["' + b"x" * (17 << 20) + b'"]}']
    s.sendall(b"\n".join(text) + b"\n" + task("good", "echo", "good"))
    s.shutdown(socket.SHUT_WR)
    got = lines(s)
    print(*sorted(r["id"] + ":" + r["verdict"] + ("" if r["verdict"] == "ok" or r.get("error") else "?") for r in got))


def killed(path, n, tasks, seed):
    rnd, kids = random.Random(seed), []

    def one(i):
        s = connect(path)
        todo = ["c%dt%d" % (i, k) for k in range(tasks)]
        s.sendall(b"".join(task(t, "echo", t) for t in todo))
        s.shutdown(socket.SHUT_WR)
        got = lines(s)
        right = {r["id"] for r in got if r["verdict"] == "ok" and r["stdout"] == r["id"] + "\n"}
        return right == set(todo) and len(got) == tasks

    def sleeper():
        s = connect(path)
        s.sendall(task("a", "true") + task("b", "sleep", "1000"))
        s.recv(1)
        os.kill(os.getpid(), signal.SIGKILL)

    for i in range(n + 1):
        pid = os.fork()
        if pid == 0:
            os._exit(0 if (one(i) if i < n else sleeper()) else 1)
        kids.append(pid)
    doomed = kids[1:n:2]
    for pid in sorted(doomed, key=lambda p: rnd.random()):
        time.sleep(rnd.random() / 50)
        os.kill(pid, signal.SIGKILL)
    ends = {pid: os.waitpid(pid, 0)[1] for pid in kids}
    print(sum(ends[p] == 0 for p in kids[:n:2]))


def numbers(path):
    def total():
        return int(re.search(r"^knit_clients_total (\d+)$", ask(path, "/metrics"), re.M)[1])

    def works():
        s = connect(path)
        s.sendall(task("a", "true"))
        f = s.makefile()
        f.readline()
        return s, f

    before, asks = total(), connect(path)
    time.sleep(0.3)
    kept = [works()]
    grown = [total() - before]
    asks.sendall(b"G")
    time.sleep(0.3)
    asks.sendall(b"ET /health HTTP/1.0\r\n\r\n")
    status = asks.makefile().read().split()[1]
    kept.append(works())
    grown.append(total() - before)
    seen = json.loads(ask(path, "/workers").split("\n\n", 1)[1])["clients"]
    working = [c["client"] for c in seen if c["accepted"]]
    print(status, *grown, len(working), len(set(working)))


def gift(path, http, pid):
    def count():
        return len(os.listdir("/proc/%s/fd" % pid))

    before, (r, w) = count(), os.pipe()
    s, h, unread = connect(path), connect(http), connect(path)
    socket.send_fds(s, [task("a", "true")], [w] * 200)
    socket.send_fds(h, [b"GET /health HTTP/1.0\r\n"], [w] * 200)
    socket.send_fds(unread, [b"G"], [w])
    os.close(w)
    got = json.loads(s.makefile().readline())["verdict"]
    h.sendall(b"\r\n")
    got += h.makefile().read().split()[1]
    for c in (s, h, unread):
        c.shutdown(socket.SHUT_RDWR)
        c.close()
    closed = os.read(r, 1) == b""
    for i in range(200):
        if count() <= before:
            break
        time.sleep(0.05)
    print(got, closed, count() - before)


def hoard(path, pid, n, size):
    def resident():
        return int(re.search(r"VmRSS:\s*(\d+)", open("/proc/%s/status" % pid).read())[1]) >> 10

    before = resident()
    text = memoryview(b'{"argv":["true"],"stdin":"' + b"x" * size)
    todo = [[connect(path), 0] for i in range(n)]
    last = time.monotonic()
    for one in todo:
        one[0].setblocking(False)
    while time.monotonic() < last + 1.5 and any(at < len(text) for s, at in todo):
        for one in todo:
            if one[1] == len(text):
                continue
            try:
                one[1] += one[0].send(text[one[1]:])
                last = time.monotonic()
            except BlockingIOError:
                pass
        time.sleep(0.005)
    grown = resident() - before
    s = connect(path)
    s.sendall(task("a", "true"))
    other = json.loads(s.makefile().readline())["verdict"]
    for s, at in todo[::2]:
        s.close()
    answers = []

    def end(s, at):
        s.setblocking(True)
        s.sendall(text[at:])
        s.sendall(b'"}\n')
        s.shutdown(socket.SHUT_WR)
        answers.extend(r["verdict"] for r in lines(s))

    threads = [threading.Thread(target=end, args=one) for one in todo[1::2]]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    print("bounded" if grown < 200 else grown, other, len(answers), *sorted(set(answers)))


def hungry(path, pid):
    before = resource.prlimit(int(pid), resource.RLIMIT_AS, (1 << 20, resource.RLIM_INFINITY))
    kept, got = [], b""
    while not got and len(kept) < 60:
        kept.append(connect(path))
        kept[-1].settimeout(1)
        try:
            while True:
                more = kept[-1].recv(4096)
                got += more
                if not more:
                    break
        except TimeoutError:
            pass
    resource.prlimit(int(pid), resource.RLIMIT_AS, before)
    for s in kept:
        s.close()
    s = connect(path)
    s.sendall(task("a", "true"))
    s.shutdown(socket.SHUT_WR)
    print(got.decode().replace("\n", "|"), lines(s)[0]["verdict"])


def crate(path, pid, tasks, folder):
    before = resource.prlimit(int(pid), resource.RLIMIT_NOFILE)
    few = len(os.listdir("/proc/%s/fd" % pid)) + 32 + 70
    resource.prlimit(int(pid), resource.RLIMIT_NOFILE, (few, before[1]))
    files = {"f%d" % i: {"path": "%s/%d" % (folder, i)} for i in range(60)}
    text = "".join(json.dumps({"id": "t%d" % i, "argv": ["sleep", "0.1"], "files": files}) + "\n" for i in range(tasks))
    both = [connect(path) for i in range(2)]
    for s in both:
        s.sendall(text.encode())
        s.shutdown(socket.SHUT_WR)
    got = [r for s in both for r in lines(s)]
    resource.prlimit(int(pid), resource.RLIMIT_NOFILE, before)
    print(len(got), *sorted({r["verdict"] + ("" if r["verdict"] == "ok" else " " + str(r["error"])) for r in got}))


def half(path):
    s = connect(path)
    s.sendall(b'{"id":"a","argv":["true"]}\n{"id":"b","argv":["tr')
    s.shutdown(socket.SHUT_WR)
    print(*sorted(r["id"] + ":" + r["verdict"] for r in lines(s)))


def main():
    path, what = sys.argv[1:3]
    args = [int(a) if a.isdigit() else a for a in sys.argv[3:]]
    whats = many, deaf, crowd, half, mute, slow, fair, cancel, garbage, killed, numbers, gift, hoard, hungry, crate
    {f.__name__: f for f in whats}[what](path, *args)


main()
