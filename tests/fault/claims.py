"""claims.py: workers of a module take calls from one place, and are killed and stopped
while they do; judged from outside.

    B=build/gcc python3 tests/fault/claims.py [TEST...]     N= calls a storm (37-claims.t: few)

Each call notes outside that it begins, and answers with a sum of what it was given: none
is lost, none answered twice, none wrong, none run twice.
"""
import base64
import json
import os
import random
import signal
import struct
import sys
import time

import faults as F
import storm as S

N = int(os.environ.get("N", 0)) or (100000 if os.environ.get("KNIT_FAULT") == "all" else 4000)
SLOW = int(os.environ.get("KNIT_SLOW", "1"))  # this machine is so many times slower
EVERY = 0.02 if N >= 4000 else 0.01
MODULE = os.path.join(F.B, "tests/module/storm.so")


def fnv(data):
    h = 2166136261
    for c in data:
        h = (h ^ c) * 16777619 & 0xffffffff
    return h


def payload(rnd, i):
    pause = rnd.choice((0, 0, 0, 0, 200, 3000, 20000 if i % 50 == 0 else 0))
    n = rnd.choice((0, 10, 300, 500, 600, 5000, 40000 if i % 20 == 0 else 1000))
    return struct.pack("<II", i, pause) + rnd.randbytes(n)


def residents(top):
    """(process, its parent) where the module is, those that are not one yet left out."""
    found = [(p, F.stat_of(p)) for p, (name, _) in F.descendants(top).items() if name == "knit-module"]
    return [(p, st[2]) for p, st in found if st and st[1] not in "ZX"]


def storm(place, name, workers, how, act, n, every):
    rnd = random.Random(20261130)
    data = [payload(rnd, i) for i in range(n)]
    tasks = [{"id": "t%d" % i, "call": "marked", "bytes_b64": base64.b64encode(d).decode()} for i, d in enumerate(data)]
    mark = place.path("mark")
    os.mkdir(mark)
    open(os.path.join(mark, "begun"), "wb").close()
    os.chmod(mark, 0o777)
    os.chmod(os.path.join(mark, "begun"), 0o666)
    options = ["--module", MODULE, "--workers", str(workers), "--steal", "shared", "--bind", mark + ":/m",
               "--set", "/pool/claim=" + how, "--set", "/timeouts/hard_ms=%d" % (3000 * SLOW)]
    if SLOW > 1:
        for what, ms in ("start", 10000), ("claim", 1000), ("stop_ack", 50), ("hard_slack", 40), ("teardown", 10000):
            options += ["--set", "/timeouts/%s_ms=%d" % (what, ms * SLOW)]
    pool = S.Pool(place, options, tasks)
    hits, held, end = 0, [], time.monotonic() + 300
    while pool.p.poll() is None and time.monotonic() < end:
        time.sleep(every)
        found = residents(pool.p.pid)
        if not found:
            continue
        now = time.monotonic()
        for who in [who for t, who in held if t < now]:
            F.send(*who, signal.SIGCONT)
        held = [x for x in held if x[0] >= now]
        who = rnd.choice(found)
        if act == "kill" or (act == "both" and rnd.random() < 0.5):
            hits += F.send(*who, signal.SIGKILL)
        elif len(held) + 1 < workers and who not in [w for _, w in held]:
            hits += F.send(*who, signal.SIGSTOP)
            held.append((now + rnd.choice((0.05, 0.3, 1.5)), who))
    pool.end(60)
    note = S.each_once(pool, {t["id"] for t in tasks}, ("ok", "signal", "worker-lost", "timeout"))
    with open(os.path.join(mark, "begun"), "rb") as f:
        marks = f.read()
    begun = {}
    for (i,) in struct.iter_unpack("<I", marks):
        begun[i] = begun.get(i, 0) + 1
    for t in pool.lines:
        i = int(t["id"][1:])
        if begun.get(i, 0) > 1 or (t["verdict"] == "ok" and not begun.get(i)):
            pool.r.bad("%s is %s and began %d times" % (t["id"], t["verdict"], begun.get(i, 0)))
        if t["verdict"] == "ok":
            got = base64.b64decode(t["value_b64"])
            if got != struct.pack("<II", i, fnv(data[i])) + data[i]:
                pool.r.bad("%s: %d bytes that are not the answer" % (t["id"], len(got)))
    bad = sum(t["verdict"] != "ok" for t in pool.lines)
    # Whoever is hit was at one call at most.
    if bad > hits:
        pool.r.bad("%d calls are not ok, and %d times somebody was hit" % (bad, hits))
    if hits < 5:
        pool.r.bad("only %d hits: too few to say anything" % hits)
    F.result("%d calls, %d workers, %s, %s" % (n, workers, how, name), pool.r.problems, "%d hits; %s" % (hits, note))


def test_kills(place):
    for how in ("dekker", "cas-mask"):
        p = F.Place(place.user)
        storm(p, "one killed every %d ms" % (EVERY * 1000), 4, how, "kill", N, EVERY)
        p.close()


def test_stops(place):
    for how in ("dekker", "cas-mask"):
        p = F.Place(place.user)
        storm(p, "one stopped every %d ms" % (EVERY * 1000), 4, how, "stop", N, EVERY)
        p.close()


def test_both_in_two_banks(place):
    storm(place, "one killed or stopped every %d ms" % (EVERY * 1000) + ", two banks", 33, "dekker", "both", N // 2, EVERY)


def main():
    tests = {k[5:]: v for k, v in sorted(globals().items()) if k.startswith("test_")}
    F.subreaper()
    for name in sys.argv[1:] or tests:
        place = F.Place(False)
        try:
            tests[name](place)
        finally:
            place.close()
    return F.end()


if __name__ == "__main__":
    sys.exit(main())
