"""late.py: the supervisor does not run for a while, after each of its system calls in turn.

    B=build/gcc python3 tests/fault/late.py [SCENARIO...]

A machine that is busy, or stopped for a moment, is no fault: whatever the supervisor finds
when it runs again, and in whatever order, the end is the one of an undisturbed run, to the
byte. What a worker says comes by several ways (its lane, its socket, its pipes, its end),
and who comes late finds all of them full.

The calls of each scenario are recorded, and then one run per call site of the program (its
first and a later call; KNIT_FAULT=all: each) stands still for 300 ms after that call.
KNIT_FAULT_MAX bounds the moments, the same ones each time; KNIT_FAULT_JOBS: so many at a
time (4: they mostly sleep).
"""
import json
import multiprocessing
import os
import pty
import sys

import faults as F
import inject


class Right:
    """Of a batch: all lines, each the right one."""

    def judge(self, p, r, no=0):
        seen = {t["id"]: t for t in F.json_lines(r)}
        if r.code not in self.usual or set(seen) != {t["id"] for t in self.tasks}:
            r.bad("status %s, %d of %d lines: %r" % (r.code, len(seen), len(self.tasks), r.err[-300:]))
        for t in seen.values():
            if not self.right(t):
                r.bad("%s is %s with stdout %r stderr %r value %r error %r" % (
                    t["id"], t["verdict"], t.get("stdout"), t.get("stderr"), t.get("value"), t.get("error")))


class Batch(Right, inject.Batch):
    pass


class Stop(Right, inject.Stop):
    def right(self, t):
        """Those that wait are cancelled, those that run too, or have ended."""
        return super().right(t) or (t["id"] != "q" and t["verdict"] == "cancelled")


class Calls(Right):
    """Of a module: values, an error, a crash beside others, time that is up."""
    name, user = "calls", False
    usual = (1,)
    tasks = [{"id": "%d" % i, "call": "echo", "value": i} for i in range(12)] + [
        {"id": "crash", "call": "segv"}, {"id": "no", "call": "nowhere"},
        {"id": "spin", "call": "sleep_ms", "value": 9000, "timeouts": {"hard_ms": 60}}]

    def prepare(self, p):
        p.write("tasks", "".join(json.dumps(t) + "\n" for t in self.tasks).encode())
        p.module("basic.so")
        return ["run", "--workers", "2", "--quiet", "--module", p.path("basic.so"), "--tasks", p.path("tasks")]

    def options(self, p):
        return {}

    def right(self, t):
        want = {"crash": ("signal", None), "no": ("not-found", None), "spin": ("timeout", None)}
        want = want.get(t["id"]) or ("ok", int(t["id"]))
        return (t["verdict"], t.get("value")) == want


class Single(inject.Single):
    def judge(self, p, r, no=0):
        super().judge(p, r)
        if r.code != 7:
            r.bad("status %s: %r" % (r.code, r.err[-300:]))


class Terminal:
    """A command on a terminal, which says its word and is gone."""
    name, user = "terminal", False

    def prepare(self, p):
        self.master, slave = pty.openpty()
        self.slave = os.ttyname(slave)
        os.fchmod(slave, 0o666)
        os.set_blocking(self.master, False)
        self.held = slave
        return ["run", "--quiet", "--", "/bin/sh", "-c", "test -t 1; echo $? whole; exit 3"]

    def options(self, p):
        return {"stdin": self.slave, "stdout": self.slave}

    def judge(self, p, r, no=0):
        try:
            r.out = os.read(self.master, 4096).replace(b"\r", b"")
        except BlockingIOError:
            pass
        if (r.code, r.out) != (3, b"0 whole\n"):
            r.bad("status %s, output %r, %r" % (r.code, r.out, r.err[-300:]))


class UserBatch(inject.AsUser, Batch):
    name = "user-batch"


class UserCalls(inject.AsUser, Calls):
    name = "user-calls"


class UserTerminal(inject.AsUser, Terminal):
    name = "user-terminal"


def scenarios():
    plain = [Batch(), Calls(), Terminal(), Stop(), Single()]
    return plain + [UserBatch(), UserCalls(), UserTerminal()] if F.ROOT else plain


def work(todo, done):
    F.subreaper()
    ready = {}
    by_name = {s.name: s for s in scenarios()}
    while True:
        moment = todo.get()
        if moment is None:
            break
        name, at = moment
        if name not in ready:
            place = F.Place(by_name[name].user)
            ready[name] = (by_name[name], place, by_name[name].prepare(place))
        s, place, argv = ready[name]
        for where in filter(None, (at, F.nearer(at))):
            r = F.inject(place, argv, where, "late", **s.options(place))
            if r.signal:
                r.bad("died of signal %d" % r.signal)
            if not r.hung:
                s.judge(place, r)
            F.look_for_left(place, r, r.pid)
            if r.hit or r.problems:
                break
        done.put((name, at, r))
    for _, place, _ in ready.values():
        place.close()


def choose():
    """Moments of each scenario."""
    chosen = {}
    for s in scenarios():
        if sys.argv[1:] and s.name not in sys.argv[1:]:
            continue
        place = F.Place(s.user)
        calls = inject.record(s, place, s.prepare(place))
        place.close()
        n, found = inject.moments(calls, lambda kind: kind == "program", os.environ.get("KNIT_FAULT") == "all",
                                  True)
        print("# %s: %d calls, %d sites, %d moments" % (s.name, len(calls), n, len(found)))
        chosen[s.name] = [at for _, _, at in found]
    if os.environ.get("KNIT_FAULT") != "all":
        chosen = F.thin(chosen, int(os.environ.get("KNIT_FAULT_MAX", "1000")))
    return [(name, at) for name, v in chosen.items() for at in v]


def main():
    F.subreaper()
    mounts = F.mounts()
    todo, done = multiprocessing.Queue(), multiprocessing.Queue()
    chosen = choose()
    jobs = int(os.environ.get("KNIT_FAULT_JOBS", "4"))
    for x in chosen + [None] * jobs:
        todo.put(x)
    workers = [multiprocessing.Process(target=work, args=(todo, done)) for _ in range(jobs)]
    for w in workers:
        w.start()
    hit = 0
    for _ in chosen:
        name, at, r = F.answer_of(done, workers)
        hit += bool(r.hit)
        if r.problems:
            r.problems += ["at %s" % F.site_name(r.site), "again: %s" % r.command]
        F.result("%s %s" % (name, at.split("@")[0]), r.problems)
    for w in workers:
        w.join()
    left = [m for m in F.mounts() - mounts if "knit" in m]
    F.result("no mount left", ["left: %s" % left[:5]] if left else [])
    few = hit * 4 < len(chosen) * 3  # how often it looks is up to the others
    F.result("it stood still at %d of %d moments" % (hit, len(chosen)), ["this says nothing"] if few else [])
    sys.exit(F.end())


if __name__ == "__main__":
    main()
