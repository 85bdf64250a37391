"""lies.py: a worker's stub that lies, in the real program with all its walls.

    B=build/gcc python3 tests/fault/lies.py [LIE...]

The program is linked around the stub of tests/evil; the copy that is started names one
lie. Worker 0 tells it, in its first incarnation ('1') or in each ('*'); the others are
honest. In a pool of modules the stub lies in the same ways about its one job, the resident, and
in some more. Whatever the lie: each accepted task has one line; those of honest workers are
right in every byte, and these workers are neither killed nor started again; what is not
`ok` was the liar's and says so; the breach is named in the log, where one can be seen;
the batch ends in bounded time; no process, control group, mount or file is left. As root
each lie is told twice, the second time to an ordinary user's supervisor.
"""
import base64
import json
import multiprocessing
import os
import re
import shutil
import sys
import time
import zlib

import faults as F

EVIL = os.path.join(F.B, "fault", "knit-sandbox-evil")
MARK = b"knit-evil-mode:"
NAME_N = 40
TASKS, CALLS = 60, 90
ALL = os.environ.get("KNIT_FAULT") == "all"
LIAR_MAX = 12  # tasks that one incarnation can have had

LOST = ("protocol-violation", "worker-lost")
# What the log says of worker 0; '' where nothing can be noticed.
HARD, KILLED = "kill why=hard", "kill why="
FILES, SOCKET = r"field=files\.", r"field=socket\."

# lie -> (log, verdicts beside `ok` that its tasks may have)
LIES = {
    # before it is ready
    "never-ready": ("kill why=not-ready", ()),
    "leaves-at-start": ("gone .* ready=0", ()),
    "crashes-at-start": ("gone .* ready=0", ()),
    "pong-wrong": (r"field=ping\.payload\b", ()),
    "pong-short": (r"field=ping\.payload_len", ()),
    "pong-other-incarnation": (r"field=ping\.task", ()),
    "pong-twice": (r"field=ping\.task", LOST),
    "pong-unclaimed": (r"field=ping\.claimed", ()),
    "result-before-ready": (r"field=result\.kind", ()),
    "boot-fail-noise": ("launch failed", ()),
    "boot-fail-goes-on": (SOCKET + "type|launch failed|ready", LOST),
    "files-before-ready": (SOCKET + "type|" + FILES, LOST),
    "listener-again": ("field=listener|" + SOCKET + "type", LOST), # before ready, or after
    "listener-late": (SOCKET + "type", LOST),
    "closes-at-start": (KILLED, ()),
    # claims
    "claims-nothing": ("kill why=not-claimed", ()),
    "claims-everything": ("field=submit_claimed", LOST),
    "claim-flickers": ("field=(submit_claimed|bell)|" + KILLED, LOST),
    "never-answers": (HARD, ("timeout",)),
    "began-in-the-future": (HARD, ("timeout",)),
    "began-long-ago": (HARD, ("timeout",)),
    "begins-another": ("", ()),
    # the over word: it buys teardown_ms once; the last one is no liar, and is not killed
    "over-and-runs-on": (HARD, ("timeout",)),
    "over-of-others": (HARD, ("timeout",)),
    "long-in-the-end": ("is over, its cell is being taken down", ()),
    "dies-after-claim": ("gone", ("worker-lost",)),
    "crashes-with-a-task": ("gone", ("worker-lost",)),
    # answers to what was not asked
    "answers-twice": (r"field=result\.task", LOST),
    "answers-unclaimed": (r"field=result\.claimed", LOST),
    "answers-for-others": (r"field=result\.(task|claimed)", LOST),
    "answers-an-old-one": (r"field=result\.task", LOST),
    "answers-out-of-range": (r"field=result\.task", LOST),
    "floods-the-lane": (r"field=result\.task", LOST),
    "empty-slots": (r"field=result\.kind", LOST),
    # the bell and the stop
    "rings-for-ever": ("field=bell|kill why=not-claimed", LOST),
    "never-rings": ("", ()),
    "disarms": ("", ()),
    "acks-unasked": ("", ()),
    "stop-acked-goes-on": ("kill why=no-end", ()),
    "stop-ignored": ("kill why=no-stop-ack", ()),
    "stop-ack-garbage": ("kill why=no-(end|stop-ack)", ()),
    "stop-ack-then-answers": (r"field=result\.task|kill why=no-end", ()),
    # results
    "head-kind": (r"field=result\.kind", LOST),
    "head-ping": (r"field=ping\.task", LOST),
    "head-flags": (r"field=result\.flags", LOST),
    "head-type": (r"field=result\.type", LOST),
    "head-fd_n": (r"field=result\.fd_n", LOST),
    "head-area": (r"field=result\.area", LOST),
    "head-area-high": (r"field=result\.area", LOST),
    "head-off": (r"field=result\.payload_off", LOST),
    "head-len-none": (r"field=result\.payload_len", LOST),
    "head-len-much": (r"field=result\.payload_len", LOST),
    "head-len-more": (r"field=result\.payload_len", LOST),
    "head-len-less": ("field=length", LOST),
    "head-gen": (r"field=result\.task", LOST),
    "head-task": ("field=result", LOST),
    "head-noise": ("field=", LOST),
    "result-cause": ("field=cause", LOST),
    "result-step": ("field=step", LOST),
    "result-status": ("field=wait_status", LOST),
    "result-status-wild": ("field=wait_status", LOST),
    "result-times": ("field=ended_ns", LOST),
    "result-detail": ("field=detail", LOST),
    "result-detail-endless": ("", LOST),
    "result-files": (r"field=result\.file_n", LOST),
    "result-files-many": (r"field=result\.file_n", LOST),
    "result-huge": ("field=", LOST),
    "result-outside": ("field=oom_outside", LOST),
    "result-errno": ("field=sys", LOST),
    "result-other-cause": ("", ("timeout",)),
    "result-cancelled": (r"field=(result|stub)\.cause", LOST),
    "result-stopped": (r"field=(result|stub)\.cause", LOST),
    # the socket
    "boot-fail-late": (SOCKET + "type", LOST),
    "orders-the-supervisor": (SOCKET + "type", LOST),
    "unknown-type": (SOCKET + "type", LOST),
    "empty-message": (SOCKET + "empty", LOST),
    "half-a-head": (SOCKET + "type", LOST),
    "wrong-bytes": (SOCKET + "type", LOST),
    "too-long": (SOCKET + "descriptors", LOST),
    "noise-for-ever": (SOCKET, LOST),
    "empty-for-ever": (SOCKET + "empty", LOST),
    "closes-and-goes-on": ("gone signal 9", ("worker-lost",)),
    "closes-and-answers": ("field=|" + KILLED, LOST),
    "shuts-its-ear": ("field=|" + KILLED, LOST),
    "shuts-its-mouth": ("field=|gone|" + KILLED, LOST),
    "reads-nothing": ("field=|" + HARD, LOST + ("timeout",)),
    # files
    "file-up": (FILES + "name", LOST),
    "file-absolute": (FILES + "name", LOST),
    "file-dots": (FILES + "name", LOST),
    "file-nameless": (FILES + "name", LOST),
    "file-unasked-kept": (FILES + "name", LOST),
    "file-unasked-out": (FILES + "what", LOST),
    "file-what": (FILES + "what", LOST),
    "file-refusal": (FILES + "refusal", LOST),
    "file-missing-fd": (FILES + "descriptors", LOST),
    "file-writable": (FILES + "mode", LOST),
    "file-path-only": (FILES + "mode", LOST),
    "file-folder": (FILES + "(type|mode)", LOST),
    "file-host": (FILES + "(filesystem|descriptors)", LOST),
    "file-proc": (FILES + "(filesystem|descriptors)", LOST),
    "file-device": (FILES + "type", LOST),
    "file-pipe": (FILES + "type", LOST),
    "file-socket": (FILES + "(mode|type)", LOST),
    "file-hole": ("", ()),
    "files-of-holes": ("", ()),
    "file-terminal": ("", ()),
    "file-twice": (FILES + "name", LOST),
    "file-fds-beyond": (FILES + "descriptors|" + SOCKET, LOST),
    "file-changes": ("", ()),
    "files-without-end": (FILES + "count", LOST),
    "files-of-another": (FILES + "task", LOST),
    "files-noise": (FILES, LOST),
    "pty-unasked": (r"field=pty\.task", LOST),
    # streams
    "output-after-the-answer": ("", LOST),
    "output-without-end": (HARD, ("timeout",)),
    # memory
    "scribbles-over-all": ("field=|" + KILLED, LOST + ("timeout",)),
    "scribbles-over-lanes": ("field=|" + KILLED, LOST + ("timeout",)),
    "scribbles-over-answers": ("field=", LOST),
    # jobs that overlap are all its own, and what it makes of them too
    "frees-all-areas": ("", tuple(F.VERDICTS)),
    "frees-no-area": ("", LOST),
    "eats-memory": ("kill why=not-claimed|gone", ()),
    "forks": ("kill why=not-claimed|gone", ()),
}
# Of a module's process: told in pools of modules only.
RESIDENT = {
    "resident-ended-early": ("launch failed|violation|incarnation=[2-9]", ()),
    "resident-end-untold": (KILLED, ()),
    "resident-killed": ("gone|kill", ()),
}
# Of files, streams and jobs there is nothing to say where the one job is a resident.
OF_COMMANDS = ("file", "pty", "output", "result-detail-endless")
# Told in each incarnation, also to a pool that has no other worker.
AGAIN = ["leaves-at-start", "pong-wrong", "dies-after-claim", "answers-twice", "head-noise",
         "scribbles-over-all", "scribbles-over-lanes", "scribbles-over-answers"]
# Must be noticed although nothing that is running has a deadline.
ENDLESS = ("closes-and-goes-on", "shuts-its-mouth", "closes-and-answers")
# Seen by a deadline only: the batch must last until then.
WAITS = ("never-ready", "closes-at-start")
ALONE = ["leaves-at-start", "dies-after-claim", "answers-twice", "scribbles-over-lanes"]


# Limits as short as these an honest worker can miss as well, on a machine that stands still
# for a second. Then the lie is told once more with longer ones: whom a lie harms it harms
# again.
LATE = re.compile("a sibling noticed: .* kill why=(not-ready|not-claimed|no-stop-ack|no-end|hard)")


def content(i):
    """Every other job is larger than a slot and travels in the payload area."""
    return "%d " % i * (400 if i % 2 else 4)


def payload(i):
    rest = "%d 20000 %s" % (i, content(i))
    return "%08x %s" % (zlib.crc32(rest.encode()), rest)


def calls(name, n, longer):
    for i in range(n):
        if i in (20, 40):
            yield {"id": "crash%d" % i, "call": "crash_first"}
        yield {"id": "t%d" % i, "call": "checked", "value": payload(i)}


def tasks(name, n, longer):
    more = [{"id": "t%d" % n, "argv": ["/bin/sleep", str(2.9 * longer)]}] if name in WAITS else []
    return more + [{"id": "t%d" % i, "argv": ["/bin/sh", "-c", "cat f; sleep 0.02; echo end"],
             "files": {"f": {"content": content(i)}}, "collect": ["f"]} for i in range(n)]


def cases():
    for user in ([False, True] if F.ROOT else [False]):
        for name in LIES:
            yield user, name, "1", 3, TASKS
        for name in AGAIN:
            yield user, name, "*", 3, TASKS
        for name in ALONE:
            yield user, name, "*", 1, 10
    for user in ([False, True] if F.ROOT else [False]):
        for name in list(LIES) + list(RESIDENT):
            # What is told to a user's supervisor in no other way than to root's: all of it
            # only when asked for.
            if not name.startswith(OF_COMMANDS) and (not user or name in RESIDENT or ALL):
                yield user, name, "1", 3, CALLS
        for name in AGAIN + list(RESIDENT):
            yield user, name, "*", 3, CALLS


def title(case):
    user, name, times, workers, n = case
    return "%s%s%s%s%s" % ("user: " if user else "", "module: " if n == CALLS else "", name,
                           " each time" if times == "*" else "", " alone" if workers == 1 else "")


def is_right(t):
    i = int(t["id"][1:])
    if i == TASKS:
        return True
    f = t.get("files", {}).get("f", {})
    return t["stdout"] == content(i) + "end\n" and base64.b64decode(f.get("content_b64", "")).decode() == content(i)


def is_right_call(t):
    if t["id"].startswith("crash"):
        return t["value"] == "not here"
    rest = payload(int(t["id"][1:]))[9:]
    i, us, text = rest.split(" ", 2)
    rest = "%s %s %s" % (i, us, text[::-1])
    return t["value"] == "%08x %s" % (zlib.crc32(rest.encode()), rest)


def judge_calls(case, r):
    """Of the liar's own calls anything may come; of the others', what is right."""
    _, name, times, workers, n = case
    seen, counts = set(), {}
    for t in F.json_lines(r):
        v = t["verdict"]
        counts[v] = counts.get(v, 0) + 1
        if t["id"] in seen:
            r.bad("%s is answered twice" % t["id"])
        seen.add(t["id"])
        if t.get("worker") != "w0" and (v != "ok" or not is_right_call(t)):
            r.bad("%s of %s is %s: %s" % (t["id"], t.get("worker"), v, json.dumps(t)[:300]))
        elif v == "ok" and not is_right_call(t):
            r.bad("%s is ok and not right, and its lane is not the stub's" % t["id"])
        elif v not in ("ok", "signal", "exit", "timeout") + LOST:
            r.bad("%s is %s: %s" % (t["id"], v, t.get("error")))
    if len(seen) != n + 2:
        r.bad("%d ids of %d" % (len(seen), n + 2))
    r.note = " ".join("%s=%d" % x for x in sorted(counts.items()))
    look_at_log(case, r, RESIDENT.get(name, ("", ()))[0])


def judge(case, r):
    _, name, times, workers, n = case
    log, verdicts = LIES[name]
    seen, counts = set(), {}
    for t in F.json_lines(r):
        v = t["verdict"]
        counts[v] = counts.get(v, 0) + 1
        if t["id"] in seen:
            r.bad("%s is answered twice" % t["id"])
        seen.add(t["id"])
        liars = t.get("worker") == "w0"
        if v == "ok" and not liars and not is_right(t):
            r.bad("%s of %s is ok and not right: %s" % (t["id"], t.get("worker"), json.dumps(t)[:300]))
        if v == "ok" or workers == 1 and v in LOST + ("launch-failed", "cancelled", "timeout"):
            continue
        if not liars or v not in verdicts:
            r.bad("%s of %s is %s: %s" % (t["id"], t.get("worker"), v, t.get("error")))
        elif not t.get("error") and v in LOST:
            r.bad("%s is %s without a reason" % (t["id"], v))
    n += name in WAITS
    if seen != {"t%d" % i for i in range(n)}:
        r.bad("%d ids of %d" % (len(seen), n))
    r.note = " ".join("%s=%d" % x for x in sorted(counts.items()))
    if times == "1" and name != "result-other-cause" and n - counts.get("ok", 0) > LIAR_MAX:
        r.bad("one liar cost %s" % r.note)
    want = (0 if counts.get("ok", 0) == n else 1,) if workers > 1 else (0, 1, 125)
    if r.code not in want:
        r.bad("status %s, stderr %r" % (r.code, r.err[-300:]))
    look_at_log(case, r, log)


def look_at_log(case, r, log):
    text = r.err.decode("utf-8", "replace")
    told = [x for x in text.split("\n") if x.startswith("[w0 ")]
    if log and not any(re.search(log, x) for x in told):
        r.bad("the log does not say %s: %s" % (log, told[-6:]))
    if "AddressSanitizer" in text or "runtime error" in text:
        r.bad(text[-2000:])
    for x in text.split("\n"):
        # one that is not ready when all is answered is stopped, and that is all
        if re.match(r"\[w[12] ", x) and re.search(
                "kill (?!why=stop-now)|violation|spawn failed|incarnation=[2-9]", x):
            r.bad("a sibling noticed: %s" % x)
    names = sorted({m.group(1) for x in told for m in [re.search(r"violation (field=\S+)", x) or re.search("(kill why=\\S+)", x)] if m})
    r.note += "; " + (" ".join(names) or "not noticed")


def attempt(place, case, longer=1):
    """longer: so many times the limits, where this machine was late itself."""
    user, name, times, workers, n = case
    with open(EVIL, "rb") as f:
        image = f.read()
    at = image.index(MARK) + len(MARK)
    told = (times + ":" + name).encode().ljust(NAME_N, b".")
    place.write("knit-sandbox", image[:at] + told + image[at + len(told):])
    os.chmod(place.path("knit-sandbox"), 0o755)
    os.chmod(place.top, 0o755)
    made = calls if n == CALLS else tasks
    place.write("tasks", "".join(json.dumps(t) + "\n" for t in made(name, n, longer)).encode())
    argv = [place.path("knit-sandbox"), "run", "--workers", str(workers), "--tasks", place.path("tasks"),
            "--debug", "lifecycle"]
    for key, ms in (("start", 2000), ("hard", 0 if name in ENDLESS else 4000), ("claim", 1500), ("teardown", 1500), ("stop_ack", 1000)):
        argv += ["--set", "/timeouts/%s_ms=%d" % (key, ms * longer)]
    if n == CALLS:
        shutil.copy(os.path.join(F.B, "tests/module/checked.so"), place.path("checked.so"))
        os.chmod(place.path("checked.so"), 0o755)
        argv += ["--module", place.path("checked.so")]
    start = time.monotonic()
    r = F.run(place, argv, limit=60 * longer)
    r.took = time.monotonic() - start
    r.note = ""
    if not r.hung:
        (judge_calls if n == CALLS else judge)(case, r)
    F.look_for_left(place, r, r.child)
    os.unlink(place.path("knit-sandbox"))
    return r


def work(todo, done):
    F.subreaper()
    places = {}
    while True:
        case = todo.get()
        if case is None:
            break
        if case[0] not in places:
            places[case[0]] = F.Place(case[0])
        r = attempt(places[case[0]], case)
        if r.problems and any(LATE.match(p) for p in r.problems):
            r = attempt(places[case[0]], case, 4)
            r.note += "; again with 4 times the limits: a sibling was late"
        done.put((case, r))
    for p in places.values():
        p.close()


def main():
    F.subreaper()
    mounts = F.mounts()
    chosen = [c for c in cases() if not sys.argv[1:] or c[1] in sys.argv[1:]]
    todo, done = multiprocessing.Queue(), multiprocessing.Queue()
    jobs = int(os.environ.get("KNIT_FAULT_JOBS", "3"))  # many wait for a deadline
    for c in chosen + [None] * jobs:
        todo.put(c)
    workers = [multiprocessing.Process(target=work, args=(todo, done)) for _ in range(jobs)]
    for w in workers:
        w.start()
    failed = 0
    for n in range(1, len(chosen) + 1):
        case, r = F.answer_of(done, workers)
        failed += bool(r.problems)
        print("%s %d - %s (%.1f s; %s)" % ("not ok" if r.problems else "ok", n, title(case), r.took, r.note))
        for p in r.problems[:8] + (["stderr: %r" % r.err[-900:]] if r.problems else []):
            print("#   %s" % p[:900])
        sys.stdout.flush()
    for w in workers:
        w.join()
    left = [m for m in F.mounts() - mounts if "knit" in m]
    failed += bool(left)
    print("%s %d - no mount left %s" % ("not ok" if left else "ok", len(chosen) + 1, left[:5] or ""))
    print("1..%d\n# %d lies of %d kinds told; %d passed, %d failed" % (
        len(chosen) + 1, len(chosen), len({c[1] for c in chosen}), len(chosen) + 1 - failed, failed))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
