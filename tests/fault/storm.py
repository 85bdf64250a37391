"""storm.py: workers, launchers and supervisors are killed, stopped and signalled while
they work; judged from outside.

    B=build/gcc python3 tests/fault/storm.py [TEST...]

Without names all tests run, as root also those of an ordinary user.
"""
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time

import faults as F

STUBBORN = os.path.join(F.B, "fault", "stubborn")
IDLE_S = 3


class Pool:
    """A batch under way."""

    def __init__(self, place, options, tasks=None, env=None):
        self.place, self.r = place, F.Run()
        place.write("tasks", "".join(json.dumps(t) + "\n" for t in tasks or []).encode())
        self.out, self.err = open(place.path("stdout"), "wb"), open(place.path("stderr"), "wb")
        e = place.env()
        e.update(env or {})
        where = place.path("tasks") if tasks is not None else "-"
        self.p = subprocess.Popen([F.KS, "run", "--quiet", "--tasks", where] + options,
                                  stdin=subprocess.PIPE, stdout=self.out, stderr=self.err,
                                  cwd=place.top, env=e, preexec_fn=place.become)

    def end(self, limit=120):
        self.r.hung = not F.await_end(self.p, limit, self.r.problems)
        try:
            self.p.stdin.close()
        except OSError:
            pass
        self.out.close()
        self.err.close()
        with open(self.place.path("stdout"), "rb") as f:
            self.r.out = f.read()
        with open(self.place.path("stderr"), "rb") as f:
            self.r.err = f.read()
        self.lines = F.json_lines(self.r)
        F.look_for_left(self.place, self.r, self.p.pid)
        if self.r.err and self.r.problems:
            self.r.bad("stderr: %s" % self.r.err[-400:].decode("utf-8", "replace"))
        return self

    def workers(self):
        """(launcher, stub) of each; the stub is 0 while there is none."""
        found = []
        for pid in F.children(self.p.pid):
            st = F.stat_of(pid)
            if st and st[0] == "bwrap":
                found.append((pid, (F.children(pid) + [0])[0]))
        return found

    def wait_for(self, what, seconds=20):
        end = time.monotonic() + seconds
        while not what() and time.monotonic() < end and self.p.poll() is None:
            time.sleep(0.01)
        return what()

    def ready(self, n):
        """So many workers with a stub that has exec'd."""
        return self.wait_for(lambda: sum(is_ready(w) for w in self.workers()) >= n)


def is_ready(worker):
    """Has its stub been exec'd?"""
    return bool(worker[1]) and (F.stat_of(worker[1]) or ("bwrap",))[0] != "bwrap"


def each_once(pool, ids, allowed):
    seen, counts = set(), {}
    for t in pool.lines:
        if t["id"] in seen or t["id"] not in ids:
            pool.r.bad("line of %r that nobody asked for" % t["id"])
        seen.add(t["id"])
        v = t["verdict"]
        counts[v] = counts.get(v, 0) + 1
        if v not in allowed:
            pool.r.bad("%s: %s: %s" % (t["id"], v, t.get("error")))
    if len(seen) != len(ids):
        pool.r.bad("%d ids of %d" % (len(seen), len(ids)))
    return " ".join("%s=%d" % x for x in sorted(counts.items()))


# ---- deaths ----

def kill_storm(place, name, options, once, n=10000):
    # Each tells that it begins, in a file of its own: once at most, whatever dies while
    # it is taken from one worker and given to another (C125).
    tasks = [{"id": "t%d" % i, "argv": ["/bin/sh", "-c", "echo x >>/m/$0" + ("" if i % 10 else "; sleep 0.03"), str(i)]}
             for i in range(n)]
    mark = place.path("mark")
    os.mkdir(mark)
    if place.user:
        os.chown(mark, F.NOBODY, F.NOBODY)
    pool = Pool(place, ["--workers", "4", "--bind", mark + ":/m"] + options, tasks)
    kills, turn = [0, 0], 0
    end = time.monotonic() + 240
    while pool.p.poll() is None and time.monotonic() < end:
        time.sleep(0.05)
        found = pool.workers()
        if not found:
            continue
        turn += 1
        # Mostly such as have got ready: who kills all others too, on a machine that is
        # busy, makes a crash loop of it, which rightly is the end of a pool.
        found = [w for w in found if turn % 8 == 0 or is_ready(w)]
        if not found:
            continue
        launcher, stub = found[turn % len(found)]
        if turn % 2 and stub:
            kills[1] += F.send(stub, launcher, signal.SIGKILL)
        else:
            kills[0] += F.send(launcher, pool.p.pid, signal.SIGKILL)
    pool.end(60)
    note = each_once(pool, {t["id"] for t in tasks}, ("ok", "worker-lost"))
    if pool.p.returncode != (1 if any(t["verdict"] != "ok" for t in pool.lines) else 0):
        pool.r.bad("status %s" % pool.p.returncode)
    begun = {int(f): os.path.getsize(os.path.join(mark, f)) // 2 for f in os.listdir(mark)}
    for t in pool.lines:
        times = begun.get(int(t["id"][1:]), 0)
        if times > (1 if once else t.get("attempt") or 1) or t["verdict"] == "ok" and not times:
            pool.r.bad("%s is %s and began %d times, attempt %s" % (t["id"], t["verdict"], times, t.get("attempt")))
    if sum(kills) < 10:
        pool.r.bad("only %s kills: too few to say anything" % kills)
    F.result("%d tasks, 4 workers, one killed every 50 ms%s" % (n, name), pool.r.problems,
           "%d launchers and %d stubs killed; %s; %d began; attempts up to %d" % (
               kills[0], kills[1], note, len(begun), max([t.get("attempt") or 0 for t in pool.lines] + [0])))


def test_kills(place):
    kill_storm(place, "", [], True)


def test_kills_retried(place):
    kill_storm(place, ", --retries 3", ["--retries", "3"], False)


# ---- stops ----

def test_stopped_supervisor(place):
    """Nothing is `ok` that ran longer than it may, however late we learn of it."""
    tasks = [{"id": "long%d" % i, "argv": ["/bin/sleep", "3"]} for i in range(4)]
    tasks += [{"id": "short%d" % i, "argv": ["/bin/sleep", "0.2"]} for i in range(8)]
    pool = Pool(place, ["--workers", "4", "--timeout", "1000ms"], tasks)
    pool.ready(4)
    time.sleep(0.3)
    os.kill(pool.p.pid, signal.SIGSTOP)
    time.sleep(5)
    os.kill(pool.p.pid, signal.SIGCONT)
    pool.end(60)
    note = each_once(pool, {t["id"] for t in tasks}, ("ok", "timeout"))
    for t in pool.lines:
        wall = t["usage"]["wall_ms"]
        if t["verdict"] == "ok" and (wall > 1000 or t["id"].startswith("long")):
            pool.r.bad("%s is ok with a wall of %s ms" % (t["id"], wall))
        if t["id"].startswith("long") and wall > 3000:
            pool.r.bad("%s ran for %s ms" % (t["id"], wall))
    F.result("supervisor SIGSTOPped for 5 s with a limit of 1 s: none is ok beyond it", pool.r.problems, note)


def test_stopped_worker(place):
    """A stub that is stopped: while it runs a task, and while it has nothing to do."""
    tasks = [{"id": "t%d" % i, "argv": ["/bin/sleep", "0.3"], "timeouts": {"hard_ms": 1500}} for i in range(12)]
    pool = Pool(place, ["--workers", "2"], tasks)
    pool.ready(2)
    time.sleep(0.1)
    stopped = sum(F.send(s, l, signal.SIGSTOP) for l, s in pool.workers()[:1] if s)
    pool.end(60)
    note = each_once(pool, {t["id"] for t in tasks}, ("ok", "timeout", "worker-lost"))
    if stopped != 1:
        pool.r.bad("stopped %d workers" % stopped)
    if sum(t["verdict"] == "ok" for t in pool.lines) < 8:
        pool.r.bad("one stopped worker cost %s" % note)
    F.result("a worker SIGSTOPped while it runs a task", pool.r.problems, note)

    pool = Pool(place, ["--workers", "2"])
    line = json.dumps({"id": "first", "argv": ["/bin/true"]}) + "\n"
    pool.p.stdin.write(line.encode())
    pool.p.stdin.flush()
    pool.wait_for(lambda: os.path.getsize(place.path("stdout")) > 0)
    stopped = sum(F.send(s, l, signal.SIGSTOP) for l, s in pool.workers() if s)
    for i in range(4):
        pool.p.stdin.write((json.dumps({"id": "t%d" % i, "argv": ["/bin/true"]}) + "\n").encode())
    pool.p.stdin.close()
    pool.end(60)
    note = each_once(pool, {"first"} | {"t%d" % i for i in range(4)}, ("ok",))
    if not stopped:
        pool.r.bad("stopped none")
    F.result("idle workers SIGSTOPped: their tasks go to others", pool.r.problems, "%d stopped; %s" % (stopped, note))


def test_slow_reader(place):
    """A stub that is stopped while it has jobs in its payload area, and goes on: nobody
    has written other jobs over them meanwhile (C115)."""
    def content(i):
        return ("%d:" % i) * (20000 + 977 * (i % 7))

    tasks = [{"id": "t%d" % i, "argv": ["sha256sum", "f"], "files": {"f": {"content": content(i)}}} for i in range(300)]
    pool = Pool(place, ["--workers", "3", "--set", "/timeouts/claim_ms=20000"], tasks)
    pool.ready(3)
    stopped = []
    for _ in range(4):
        stopped = [(l, s) for l, s in pool.workers()[:2] if s and F.send(s, l, signal.SIGSTOP)] or stopped
        time.sleep(0.5)
        for l, s in stopped:
            F.send(s, l, signal.SIGCONT)
        time.sleep(0.1)
    pool.end(60)
    note = each_once(pool, {t["id"] for t in tasks}, ("ok",))
    for t in pool.lines:
        if t["verdict"] == "ok" and t["stdout"].split()[0] != hashlib.sha256(content(int(t["id"][1:])).encode()).hexdigest():
            pool.r.bad("%s read another's bytes" % t["id"])
    if not stopped:
        pool.r.bad("stopped none")
    F.result("jobs of stopped workers are still their own afterwards", pool.r.problems, note)


def test_never_ready(place):
    """A launcher that sleeps: the pool fails in bounded time, in words."""
    fake = place.path("bwrap")
    place.write("bwrap", b"#!/bin/sh\nexec sleep 100\n")
    os.chmod(fake, 0o755)
    os.chmod(place.top, 0o755)
    tasks = [{"id": "t%d" % i, "argv": ["/bin/true"]} for i in range(5)]
    pool = Pool(place, ["--workers", "2", "--set", "/timeouts/start_ms=300"], tasks, {"KNIT_BWRAP": fake})
    pool.end(60)
    note = each_once(pool, {t["id"] for t in tasks}, ("launch-failed",))
    if pool.p.returncode != 125 or not F.our_lines(pool.r.err):
        pool.r.bad("status %s, stderr %r" % (pool.p.returncode, pool.r.err))
    F.result("launchers that never become ready: launch-failed, 125 and a line", pool.r.problems, note)


def test_acknowledges_and_goes_on(place):
    """A stub that says it stops, and does not; one that does not even say so."""
    for how in ("acknowledge", "ignore"):
        fake = place.path("bwrap")
        with open(STUBBORN, "rb") as f:
            place.write("bwrap", f.read().replace(b"stubborn-mode:acknowledge", b"stubborn-mode:" + how.encode().ljust(11)))
        os.chmod(fake, 0o755)
        os.chmod(place.top, 0o755)
        for task in (False, True):
            # (it has no filter, so none that tells what it refused)
            pool = Pool(place, ["--workers", "1", "--debug", "lifecycle", "--set", "/seccomp/explain=false"], None, {"KNIT_BWRAP": fake})
            if task:  # claimed, and never ended
                pool.p.stdin.write(b'{"id":"t","argv":["/bin/true"]}\n')
                pool.p.stdin.flush()
            said = pool.wait_for(lambda: (b"task t" if task else b"ready") in open(place.path("stderr"), "rb").read())
            time.sleep(0.2)
            if task:
                pool.p.send_signal(signal.SIGTERM)
            else:
                pool.p.stdin.close()
            start = time.monotonic()
            pool.end(30)
            took = time.monotonic() - start
            note = each_once(pool, {"t"} if task else set(), ("cancelled", "worker-lost"))
            if pool.p.returncode != (143 if task else 0) or not said:
                pool.r.bad("status %s, ready %s" % (pool.p.returncode, said))
            if b"kill why=" not in pool.r.err:
                pool.r.bad("nobody was killed")
            F.result("a stub that %ss the stop and goes on%s is killed" % (how, ", with a task" if task else ""),
                   pool.r.problems, "%.1f s%s" % (took, note and "; " + note))


# ---- signals ----

def test_signals(place, times=200):
    """TERM, HUP, TERM, INT in any order, at any moment of the start."""
    rnd, problems, codes, slowest = random.Random(20261129), [], {}, 0
    for n in range(times):
        order = [signal.SIGTERM, signal.SIGHUP, signal.SIGTERM, signal.SIGINT]
        rnd.shuffle(order)
        moments = sorted(rnd.uniform(0, 0.05) for _ in order)
        batch = rnd.random() < 0.5
        if batch:
            tasks = [{"id": "t%d" % i, "argv": ["/bin/sleep", "30"]} for i in range(6)]
            place.write("tasks", "".join(json.dumps(t) + "\n" for t in tasks).encode())
        argv = [F.KS, "run", "--quiet"] + (["--workers", "2", "--tasks", place.path("tasks")] if batch
                                           else ["--", "/bin/sleep", "30"])

        def during(p, r):
            start = time.monotonic()
            for at, sig in zip(moments, order):
                time.sleep(max(0, at - (time.monotonic() - start)))
                if p.poll() is None:
                    p.send_signal(sig)

        start = time.monotonic()
        r = F.run(place, argv, during=during, limit=15)
        took = time.monotonic() - start
        slowest = max(slowest, took)
        r.pid = None
        F.look_for_left(place, r, None)
        # Before main() has blocked them a signal does what it does to anybody.
        if r.code not in (143, 130, 129, -15, -2, -1, 125):
            r.bad("status %s" % r.code)
        codes[r.code] = codes.get(r.code, 0) + 1
        ids = [t["id"] for t in F.json_lines(r)] if batch else []
        if len(ids) != len(set(ids)):
            r.bad("answered twice: %s" % ids)
        if r.problems:
            problems.append("%d: %s at %s: %s; stderr %r" % (
                n, [s.name for s in order], ["%.1f" % (m * 1000) for m in moments], "; ".join(r.problems), r.err[-200:]))
    F.result("%d times TERM, HUP, TERM, INT in any order within 50 ms of the start" % times, problems,
           "slowest %.1f s; statuses %s" % (slowest, " ".join("%s:%d" % x for x in sorted(codes.items()))))


# ---- side by side, idle ----

def test_side_by_side(place):
    tasks = [{"id": "t%d" % i, "argv": ["/bin/sh", "-c", "echo $PPID >x; cat x >/dev/null; echo %d" % i]} for i in range(200)]
    other = F.Place(place.user)
    pools = [Pool(p, ["--workers", "2"], tasks) for p in (place, other)]
    problems, notes = [], []
    ends = [threading.Thread(target=p.p.wait) for p in pools]
    for t in ends:
        t.start()
    for t in ends:
        t.join(120)
    for pool in pools:
        pool.end(1)
        notes.append(each_once(pool, {t["id"] for t in tasks}, ("ok",)))
        for t in pool.lines:
            if t["stdout"] != t["id"][1:] + "\n":
                pool.r.bad("%s printed %r" % (t["id"], t["stdout"]))
        problems += pool.r.problems
    other.close()
    F.result("two supervisors side by side", problems, "; ".join(notes))


def switches(pid):
    """(context switches, CPU ns): what a process that sleeps does not add to."""
    with open("/proc/%d/status" % pid) as f:
        n = sum(int(x.split()[1]) for x in f if "ctxt_switches" in x)
    with open("/proc/%d/schedstat" % pid) as f:
        return n, int(f.read().split()[0])


def test_idle(place):
    pool = Pool(place, ["--workers", "2"])
    for i in range(4):
        pool.p.stdin.write((json.dumps({"id": "t%d" % i, "argv": ["/bin/sleep", "0.1"]}) + "\n").encode())
    pool.p.stdin.flush()
    pool.wait_for(lambda: len(open(place.path("stdout"), "rb").read().split(b"\n")) > 4)
    time.sleep(1.5)  # the watchdog of outstanding tasks has had its turn
    pids = [pool.p.pid] + list(F.descendants(pool.p.pid))
    before = {p: switches(p) for p in pids}
    time.sleep(IDLE_S)
    for p in pids:
        after = switches(p)
        if after != before[p]:
            pool.r.bad("%s woke: switches and CPU %s -> %s" % (F.stat_of(p)[0], before[p], after))
    note = "%d processes, no switch in %d s" % (len(pids), IDLE_S)
    if subprocess.run(["sh", "-c", "command -v strace"], stdout=subprocess.DEVNULL).returncode == 0:
        log = place.path("out", "strace")
        subprocess.run(["timeout", "-s", "INT", "10", "strace", "-f", "-qq", "-o", log] +
                       [x for p in pids for x in ("-p", str(p))], stderr=subprocess.DEVNULL)
        with open(log) as f:
            # To be traced interrupts the call that a process sleeps in, once.
            calls = [x for x in f.read().split("\n") if x and "resumed" not in x and "restart_syscall" not in x]
        first = {}
        for x in calls:
            first.setdefault(x.split()[0], []).append(x)
        for x in first.values():
            if len(x) > 1:
                pool.r.bad("calls while idle: %s" % x[:4])
        note += "; strace of 10 s: %d calls" % sum(len(x) - 1 for x in first.values())
    pool.p.stdin.close()
    pool.end(30)
    if pool.p.returncode != 0:
        pool.r.bad("status %s" % pool.p.returncode)
    F.result("an idle pool makes no system call", pool.r.problems, note)


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
