"""kill_supervisor.py: the supervisor is SIGKILLed, or SIGTERMed, at every step of its life.

    B=build/gcc python3 tests/fault/kill_supervisor.py [SCENARIO...]

The scenarios of inject.py (start, launches, tasks, stop) are recorded, and then run once
per call site of the program: as it enters that call it is signalled. After SIGKILL:
all processes of it are gone within a second (three are allowed, the machine may be busy);
the next start removes its control groups and files; a second supervisor that is alive
all the time keeps its own and goes on working; no mount is left. After SIGTERM (in the
scenario `stop` a second one): it ends by itself, as a stop does or as it would have, each
task has one line at most, and nothing at all is left.

KNIT_FAULT=all does it at every call, not only at the first and a later one of a site;
KNIT_FAULT_MAX bounds the moments (default 400), the same ones each time.
"""
import multiprocessing
import os
import signal
import sys
import time

import faults as F
import inject


def attempt_term(s, place, argv, neighbour, at):
    r = F.inject(place, argv, at, signal.SIGTERM, **s.options(place))
    r.gone_ms = r.swept = 0
    lines = F.json_lines(r) if "--tasks" in argv else []
    if len({t["id"] for t in lines}) != len(lines):
        r.bad("answered twice: %s" % [t["id"] for t in lines])
    # Before anything is there, and when all is answered, it ends as anybody would.
    if r.signal and (r.signal != signal.SIGTERM or len(lines) not in (0, len(getattr(s, "tasks", ())))):
        r.bad("died of signal %d with %d lines" % (r.signal, len(lines)))
    if not r.signal and not r.hung and r.code not in (143,) + s.usual:
        r.bad("status %s, stderr %r" % (r.code, r.err[-300:]))
    F.look_for_left(place, r, r.pid, but=[neighbour.p.pid])
    return r


def attempt_kill(s, place, argv, neighbour, at):
    r = F.inject(place, argv, at, signal.SIGKILL, **s.options(place))
    r.gone_ms = r.swept = 0
    if r.hung:
        return r
    if r.hit and r.signal != signal.SIGKILL:
        r.bad("was not killed: status %s" % r.code)
    start = time.monotonic()
    alive = F.wait_gone(but=[neighbour.p.pid])
    r.gone_ms = int((time.monotonic() - start) * 1000)
    if alive:
        r.bad("left running after %d s: %s" % (F.GONE_S, F.names(alive)))
        F.kill_all(alive)
        F.wait_gone(but=[neighbour.p.pid])
    r.swept = len(F.groups(r.pid)) + len(place.litter())
    if r.swept:
        again = F.run(place, [F.KS] + argv, **s.options(place))
        r.problems += again.problems
        if F.groups(r.pid):
            r.bad("the next start left %s" % " ".join(F.groups(r.pid)))
        neighbour.check(r)
    F.look_for_left(place, r, r.pid, but=[neighbour.p.pid])
    return r


def attempt_all(s, sig, sites, done):
    """Signals to one scenario, with one neighbour beside them."""
    place, beside = F.Place(s.user), F.Place(s.user)
    argv, neighbour = s.prepare(place), F.Neighbour(beside)
    for at in sites:
        r = (attempt_kill if sig == signal.SIGKILL else attempt_term)(s, place, argv, neighbour, at)
        done.put((s.name, sig, at, r))
    end = F.Run()
    end.hit, end.gone_ms, end.swept, end.command = False, 0, 0, ""
    neighbour.check(end)
    if not neighbour.close():
        end.bad("the other supervisor does not end well")
    F.look_for_left(beside, end, neighbour.p.pid)
    done.put((s.name, sig, "the other supervisor", end))
    place.close()
    beside.close()


def work(todo, done):
    F.subreaper()
    by_name = {s.name: s for s in inject.scenarios()}
    while True:
        chunk = todo.get()
        if chunk is None:
            break
        attempt_all(by_name[chunk[0]], chunk[1], chunk[2], done)


def choose(s, everything):
    place = F.Place(s.user)
    calls = inject.record(s, place, s.prepare(place))
    place.close()
    n, found = inject.moments(calls, lambda kind: kind == "program", everything,
                              s.user or not F.ROOT)
    print("# %s: %d calls, %d sites, %d moments" % (s.name, len(calls), n, len(found)))
    return [at for _, _, at in found]


def main():
    F.subreaper()
    mounts, everything = F.mounts(), os.environ.get("KNIT_FAULT") == "all"
    chosen = {s.name: choose(s, everything) for s in inject.scenarios()
              if not sys.argv[1:] or s.name in sys.argv[1:]}
    if not everything:
        chosen = F.thin(chosen, int(os.environ.get("KNIT_FAULT_MAX", "400")) // 2)
    todo, done = multiprocessing.Queue(), multiprocessing.Queue()
    jobs, expected = int(os.environ.get("KNIT_FAULT_JOBS", "2")), 0
    for sig in (signal.SIGKILL, signal.SIGTERM):
        for name, sites in chosen.items():
            for k in range(jobs):
                part = sites[k::jobs]
                if part:
                    todo.put((name, sig, part))
                    expected += len(part) + 1
    for _ in range(jobs):
        todo.put(None)
    workers = [multiprocessing.Process(target=work, args=(todo, done)) for _ in range(jobs)]
    for w in workers:
        w.start()
    failed = kills = terms = swept = 0
    slowest = 0
    for n in range(1, expected + 1):
        name, sig, at, r = F.answer_of(done, workers)
        ok = not r.problems
        kills += sig == signal.SIGKILL and r.signal == sig
        terms += sig == signal.SIGTERM and bool(r.hit)
        swept += bool(r.swept)
        slowest = max(slowest, r.gone_ms)
        failed += not ok
        print("%s %d - %s %s %s" % ("ok" if ok else "not ok", n, name, sig.name, at.split("@")[0]))
        if not ok:
            print("#   at %s" % F.site_name(r.site))
            for x in r.problems:
                print("#   %s" % x[:600])
            print("#   again: %s" % r.command)
        sys.stdout.flush()
    for w in workers:
        w.join()
    left = [m for m in F.mounts() - mounts if "knit" in m]
    failed += bool(left)
    print("%s %d - no mount left %s" % ("not ok" if left else "ok", expected + 1, left[:5] or ""))
    print("1..%d" % (expected + 1))
    print("# SIGKILL at %d moments, SIGTERM at %d; slowest end of all its processes %d ms; %d next starts swept; %d passed, %d failed"
          % (kills, terms, slowest, swept, expected + 1 - failed, failed))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
