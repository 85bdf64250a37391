"""calls.py: calls into modules while workers are killed, stopped, or scribble.

    B=build/gcc python3 tests/fault/calls.py [TEST...]

Every payload carries a checksum, which the task checks, and comes back turned round with
one of its own. Lines go in and come out through pipes and are judged on their way, so
that a run may be as long as one likes:

    KNIT_CALLS=1000000     calls of the storm, and of the scribbler (20000)
    KNIT_SCRIBBLE_S=180    batches with a scribbler follow each other for so long (0: one)

As root each test runs twice, the second time under an ordinary user's supervisor.
"""
import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
import zlib

import faults as F

CALLS = int(os.environ.get("KNIT_CALLS", "20000"))
SCRIBBLE_S = float(os.environ.get("KNIT_SCRIBBLE_S", "0"))
PER_SECOND = 50
WORKERS = 4
POOL = bytes(random.Random(1).choice(b"abcdefghijklmnopqrstuvwxyz0123456789") for _ in range(1 << 18)).decode()


def body(i):
    """What the payload of call i is: mostly within a slot, some in an area, few large."""
    n = 150000 if i % 997 == 0 else 600 + i % 3000 if i % 8 == 0 else 10 + i % 200
    at = i * 7919 % (len(POOL) - n)
    text = POOL[at:at + n]
    rest = "%d %d %s" % (i, 1000 if i % 50 == 0 else 0, text)
    return "%08x %s" % (zlib.crc32(rest.encode()), rest)


def answer(i):
    head, rest = body(i)[9:].rsplit(" ", 1)
    rest = head + " " + rest[::-1]
    return "%08x %s" % (zlib.crc32(rest.encode()), rest)


class Batch:
    """n calls through one supervisor."""

    def __init__(self, place, n, options):
        self.n, self.problems, self.counts, self.bad_by = n, [], {}, {}
        self.seen = bytearray(n)
        place.module("checked.so")
        self.err = open(place.path("stderr"), "wb")
        self.p = subprocess.Popen(
            [F.KS, "run", "--quiet", "--module", place.path("checked.so"), "--tasks", "-"] + options,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.err, cwd=place.top,
            env=place.env(), preexec_fn=place.become)
        self.place, self.fed = place, 0
        self.threads = [threading.Thread(target=f) for f in (self.feed, self.read)]
        for t in self.threads:
            t.start()

    def feed(self):
        try:
            for at in range(0, self.n, 200):
                self.p.stdin.write("".join('{"id":"%d","call":"checked","value":"%s"}\n' % (i, body(i))
                                           for i in range(at, min(at + 200, self.n))).encode())
                self.fed = at
            self.p.stdin.close()
        except OSError as e:
            self.problems.append("it takes no more: %s" % e)

    def read(self):
        for line in self.p.stdout:
            try:
                r = json.loads(line)
                i = int(r["id"])
            except (ValueError, KeyError):
                self.problems.append("not an answer: %r" % line[:200])
                continue
            v = r["verdict"]
            if self.seen[i]:
                self.problems.append("%d is answered twice" % i)
            self.seen[i] = 1
            self.counts[v] = self.counts.get(v, 0) + 1
            if v == "ok" and r["value"] == answer(i):
                continue
            # wrong, or not ok: whose?
            self.bad_by.setdefault(r.get("worker"), []).append(
                "%d of %s: %s: %s" % (i, r.get("worker"), v, r.get("error") or "a wrong value"))
            self.counts["wrong"] = self.counts.get("wrong", 0) + (v == "ok")

    def end(self, limit=120):
        F.await_end(self.p, limit, self.problems)
        for t in self.threads:
            t.join()
        self.err.close()
        with open(self.place.path("stderr"), "rb") as f:
            self.told = f.read().decode("utf-8", "replace")
        lost = self.n - sum(self.seen)
        if lost:
            self.problems.append("%d of %d have no answer: %s" % (
                lost, self.n, [i for i in range(self.n) if not self.seen[i]][:10]))
        if "Sanitizer" in self.told or "runtime error" in self.told:
            self.problems.append(self.told[-3000:])
        r = F.Run()
        F.look_for_left(self.place, r, self.p.pid)
        self.problems += r.problems
        self.note = " ".join("%s=%d" % x for x in sorted(self.counts.items()))

    def processes(self):
        """[launchers, stubs, inits of cells, residents] with the parent of each."""
        levels, above = [], [self.p.pid]
        while len(levels) < 4:
            below = [(c, p) for p in above for c in F.children(p)]
            if not levels:
                below = [x for x in below if (F.stat_of(x[0]) or ("",))[0] == "bwrap"]
            levels.append(below)
            above = [c for c, _ in below]
        return levels


# ---- the storm ----

def test_storm(place):
    storm(place, "brokered")


def test_storm_shared(place):
    storm(place, "shared")


def storm(place, steal):
    """Each signal costs the call that was being run, at most, and none a value."""
    start = time.monotonic()
    b = Batch(place, CALLS, ["--workers", str(WORKERS), "--steal", steal, "--set", "/timeouts/hard_ms=2000"] +
              (["--debug", "lifecycle"] if CALLS <= 100000 else []))
    rnd, kills, stops, goes_on = random.Random(CALLS), [0] * 4, [0] * 4, []
    due = time.monotonic()
    while b.p.poll() is None and time.monotonic() - start < 60 + CALLS / 500:
        due = max(due + 1 / PER_SECOND, time.monotonic() - 0.2)
        time.sleep(max(0, due - time.monotonic()))
        while goes_on and goes_on[0][0] < time.monotonic():
            _, pid, parent = goes_on.pop(0)
            F.send(pid, parent, signal.SIGCONT)
        levels = b.processes()
        # Mostly residents: launching anew takes longer than to the next signal.
        level = rnd.choices(range(4), (2, 3, 3, 92))[0]
        # A worker that has none just then is missed: who hits the only one that is left,
        # again and again while it loads, makes a crash loop of it, rightly the pool's end.
        at = rnd.randrange(WORKERS)
        if at >= len(levels[level]):
            continue
        pid, parent = levels[level][at]
        if rnd.random() < 0.8:
            kills[level] += F.send(pid, parent, signal.SIGKILL)
        elif F.send(pid, parent, signal.SIGSTOP):
            stops[level] += 1
            if rnd.random() < 0.7:
                goes_on.append((time.monotonic() + rnd.random() * 0.2, pid, parent))
    took = time.monotonic() - start
    b.end()
    signals = sum(kills) + sum(stops)
    for v in set(b.counts) - {"ok", "signal", "worker-lost", "timeout", "wrong"}:
        b.problems.append("%d are %s: %s" % (b.counts[v], v, [x for w in b.bad_by.values() for x in w if v in x][:3]))
    if b.counts.get("wrong"):
        b.problems.append("wrong: %s" % [x for w in b.bad_by.values() for x in w if ": ok" in x][:3])
    if CALLS - b.counts.get("ok", 0) > signals:
        b.problems.append("%d signals cost %d calls" % (signals, CALLS - b.counts.get("ok", 0)))
    if "violation" in b.told:
        b.problems.append("honest workers are judged: %s" % re.findall(".*violation.*", b.told)[:3])
    if signals < 20:
        b.problems.append("only %d signals: too few to say anything" % signals)
    F.result("%d calls, %s, %d signals a second: each answered once, each value right" % (CALLS, steal, PER_SECOND),
           b.problems, "%d SIGKILL and %d SIGSTOP to launchers, stubs, inits, residents: %s %s; %s; %.0f s" % (
               sum(kills), sum(stops), kills, stops, b.note, took))


# ---- the scribbler ----

def test_scribbler(place):
    scribbler(place, "brokered")


def test_scribbler_shared(place):
    scribbler(place, "shared")


def scribbler(place, steal):
    """Worker 0 writes over all it shares, from its first call on, in every life."""
    start, seed, calls, lives, problems = time.monotonic(), 0, 0, 0, []
    fields, kills, verdicts, others = {}, {}, {}, 0
    while not problems and (seed == 0 or time.monotonic() - start < SCRIBBLE_S):
        seed += 1
        b = Batch(place, CALLS, ["--workers", "3", "--steal", steal, "--init", "scribble %d" % seed, "--debug", "lifecycle",
                                 "--set", "/timeouts/hard_ms=4000", "--set", "/timeouts/claim_ms=10000",
                                 "--set", "/timeouts/stop_ack_ms=1000"])
        b.end(120 + CALLS / 500)
        problems, calls = b.problems, calls + CALLS
        for w in set(b.bad_by) - {"w0"}:
            problems.append("not the scribbler's: %s" % b.bad_by[w][:3])
        for v, n in b.counts.items():
            verdicts[v] = verdicts.get(v, 0) + n
        told = [x for x in b.told.split("\n") if x.startswith("[w")]
        for x in told:
            m = re.match(r"\[(w\d+) [^]]*\] (?:.*violation field=(\S+)|kill why=(\S+))", x)
            if not m or m.group(3) == "stop-now":
                continue
            if m.group(1) != "w0":
                problems.append("a sibling: %s" % x)
            where = fields if m.group(2) else kills
            name = m.group(2) or m.group(3)
            where[name] = where.get(name, 0) + 1
        mine = [x for x in told if x.startswith("[w0 ")]
        lives += sum(" ready" in x for x in mine)
        # Each time it is caught it is named, and that is its end.
        for at, x in enumerate(mine):
            if "violation field=" in x and not any("gone" in y for y in mine[at:]):
                problems.append("caught and not ended: %s" % mine[at:at + 4])
    if not fields:
        problems.append("it was never caught")
    F.result("a worker that scribbles over all it shares, beside %d calls, %s" % (calls, steal), problems,
           "%d batches, %d lives, %.0f s; %s; caught by %s; %s" % (
               seed, lives, time.monotonic() - start,
               " ".join("%s=%d" % x for x in sorted(verdicts.items())),
               " ".join("%s=%d" % x for x in sorted(fields.items())),
               " ".join("%s=%d" % x for x in sorted(kills.items()))))


def main():
    F.subreaper()
    mounts = F.mounts()
    tests = [(n[5:], f) for n, f in globals().items() if n.startswith("test_")]
    for user in ([False, True] if F.ROOT else [False]):
        for name, f in tests:
            full = ("user-" if user else "") + name
            if sys.argv[1:] and full not in sys.argv[1:]:
                continue
            place = F.Place(user)
            f(place)
            place.close()
    left = [m for m in F.mounts() - mounts if "knit" in m]
    F.result("no mount left", left)
    sys.exit(F.end())


if __name__ == "__main__":
    main()
