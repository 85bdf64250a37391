"""keys.py: what each key of a policy does, asked from inside of a sandbox.

    keys.py               all tests, as TAP
    keys.py KEY...        those that claim one of these
    keys.py --drop        for each row of the policy table: the tests that claim it, under
                          a program that ignores this row. One of them must fail.
                          EVERY=n takes each nth row, FROM=k from the kth, JOBS=j at a time.

B is the folder of the build, KS the program, T a folder for files.
"""
import concurrent.futures
import glob
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

B = os.path.abspath(os.environ.get("B", "build/gcc"))
ROOT = os.geteuid() == 0
SLOW = int(os.environ.get("KNIT_SLOW", "1"))
LIMIT = 60 * SLOW
local = threading.local()
tests = []

# Rows that nothing can show, each with the reason.
EXEMPT = {
    "": "the document itself",
    "/$schema": "for editors, not interpreted",
    "/description": "for readers, not interpreted",
    "/filesystem/mounts/*/why": "for readers",
    "/seccomp/rules/*/why": "for readers",
    "/timeouts/teardown_ms": "tests/integ/19-teardown.t shows it (KS=...-drop): alone on its machine, or load does",
}


class Failed(Exception):
    pass


class NotHere(Exception):
    pass


def key(*keys):
    def add(f):
        tests.append((keys, f))
        return f
    return add


def ks():
    return getattr(local, "ks", None) or os.environ.get("KS") or B + "/knit-sandbox"


def env(more=None):
    e = dict(os.environ)
    e.pop("KNIT_DROP", None)
    if getattr(local, "drop", None) is not None:
        e["KNIT_DROP"] = local.drop
    e.update(more or {})
    return e


def doc(**members):
    """A policy file."""
    d = {"version": 1}
    d.update(members)
    fd, path = tempfile.mkstemp(suffix=".json", dir=os.environ.get("T"))
    with os.fdopen(fd, "w") as f:
        json.dump(d, f)
    os.chmod(path, 0o644)
    return path


class Result:
    def __init__(self, rc, out, err):
        self.rc, self.out, self.err = rc, out, err

    def __repr__(self):
        return "status %s\nout: %s\nerr: %s" % (self.rc, self.out[:400], self.err[:600])


def call(args, stdin="", more=None, prefix=()):
    p = subprocess.run([*prefix, ks(), *args], input=stdin, capture_output=True, text=True, env=env(more),
                       timeout=LIMIT, errors="replace")
    return Result(p.returncode, p.stdout, p.stderr)


def run(policy, *command, opts=(), **how):
    return call(["run", "--policy", policy, *opts, "--", *command], **how)


def sh(policy, script, **how):
    return run(policy, "sh", "-c", script, **how)


def py(policy, code, **how):
    return run(policy, "/usr/bin/python3", "-S", "-c", code, **how)


def batch(policy, lines, *opts, **how):
    r = call(["run", "--policy", policy, "--tasks", "-", *opts], stdin="".join(json.dumps(x) + "\n" for x in lines), **how)
    r.by = {}
    for line in r.out.splitlines():
        try:
            x = json.loads(line)
            r.by[x.get("id")] = x
        except ValueError:
            pass
    return r


def task(id, *argv, **more):
    return dict({"id": id, "argv": list(argv)}, **more)


def script(id, text, **more):
    return task(id, "sh", "-c", text, **more)


def want(what, r):
    if not what:
        raise Failed(repr(r))


def check(policy):
    return call(["policy", "check", policy])


def verdict(policy, id, r):
    return r.by.get(id, {}).get("verdict")


cgroups = None


def cgroup():
    """Only where a run gets a cgroup."""
    global cgroups
    if cgroups is None:
        r = subprocess.run([os.environ.get("KS") or B + "/knit-sandbox", "run", "--memory", "64M", "--", "true"],
                           capture_output=True, env={k: v for k, v in os.environ.items() if k != "KNIT_DROP"})
        cgroups = r.returncode == 0
    if not cgroups:
        raise NotHere("no cgroup")


LESS = ["cgroup.memory"]  # what is watched will do


def children(pid):
    try:
        with open("/proc/%d/task/%d/children" % (pid, pid)) as f:
            return [int(x) for x in f.read().split()]
    except OSError:
        return []


def stubs(pid):
    return [s for b in children(pid) for s in children(b)]


class Live:
    """A batch that is fed line by line."""

    def __init__(self, policy, *opts):
        self.p = subprocess.Popen([ks(), "run", "--policy", policy, "--tasks", "-", "--debug", "lifecycle", *opts],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                  env=env())
        self.lines = []
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        for line in self.p.stdout:
            self.lines.append(json.loads(line))

    def put(self, *lines):
        for x in lines:
            self.p.stdin.write(json.dumps(x) + "\n")
        self.p.stdin.flush()

    def answer(self, n=1, seconds=20):
        end = time.time() + seconds * SLOW
        while len(self.lines) < n and time.time() < end and self.p.poll() is None:
            time.sleep(0.01)
        time.sleep(0.02)

    def stub(self):
        for _ in range(500 * SLOW):
            s = stubs(self.p.pid)
            if s:
                return s[0]
            time.sleep(0.01)
        raise Failed("no stub")

    def end(self):
        self.p.stdin.close()
        err = self.p.stderr.read()
        self.reader.join(LIMIT)
        rc = self.p.wait(LIMIT)
        r = Result(rc, json.dumps(self.lines), err)
        r.by = {x.get("id"): x for x in self.lines}
        return r


def load_areas():
    here = os.path.dirname(os.path.abspath(__file__))
    for path in sorted(glob.glob(here + "/of_*.py")):
        with open(path) as f:
            exec(compile(f.read(), path, "exec"), globals())


# ---- running them ----

def claims(keys, row):
    """Of a row that holds others: the tests of these."""
    return any(k == row or k.startswith(row + "/") for k in keys)


def one(f):
    try:
        f()
        return "ok", ""
    except NotHere as e:
        return "not here", str(e)
    except Failed as e:
        return "failed", str(e)
    except subprocess.TimeoutExpired as e:
        return "failed", "hangs: %s" % e
    except Exception as e:  # what was answered is not even of the right form
        return "failed", "%s: %s" % (type(e).__name__, e)


def tap(only):
    n = bad = 0
    jobs = int(os.environ.get("JOBS", "2"))
    picked = [(k, f) for k, f in tests if not only or any(claims(k, o) for o in only)]
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for (keys, f), (how, why) in zip(picked, pool.map(lambda t: one(t[1]), picked)):
            name = "%s: %s" % (keys[0], f.__name__.replace("_", " "))
            if how == "not here":
                print("# not for this caller: %s: %s" % (name, why))
                continue
            n += 1
            print("%sok %d - %s" % ("" if how == "ok" else "not ", n, name))
            if how != "ok":
                bad += 1
                print("# failed: %s\n#   %s" % (name, why.replace("\n", "\n#   ")), file=sys.stderr)
            sys.stdout.flush()
    print("1..%d" % n)
    return 1 if bad else 0


def drop_one(row):
    local.ks, local.drop = B + "/fault/knit-sandbox-drop", row
    mine = [f for k, f in tests if claims(k, row)]
    exact = [f for k, f in tests if row in k]
    if not mine:
        return row, "no test claims it"
    said = set()
    for f in exact or mine:
        how, why = one(f)
        if how == "failed":
            return row, None
        said.add(how)
    return row, "not here" if said == {"not here"} else "ignored, and no test fails"


def drop_rows():
    rows = subprocess.run([B + "/fault/knit-sandbox-drop"], env=dict(os.environ, KNIT_DROP="list"), capture_output=True,
                          text=True).stdout.splitlines()
    if "" not in rows:
        rows.insert(0, "")
    for k, _ in tests:
        for x in k:
            if x not in rows:
                print("%s: claimed by a test, and no row of the table" % x)
                return 1
    every, first = int(os.environ.get("EVERY", "1")), int(os.environ.get("FROM", "0"))
    picked = [r for r in rows if r not in EXEMPT][first::every]
    caught, left, away = 0, [], []
    with concurrent.futures.ThreadPoolExecutor(int(os.environ.get("JOBS", "2"))) as pool:
        for row, why in pool.map(drop_one, picked):
            if why is None:
                caught += 1
            elif why == "not here":
                away.append(row)
            else:
                left.append(row)
                print("%s: %s" % (row, why))
    if away:
        print("not for this caller: %s" % " ".join(away))
    print("%d caught / %d keys dropped, %d of the table exempt" % (caught, caught + len(left), len(EXEMPT)))
    return 1 if left else 0


if __name__ == "__main__":
    os.environ.setdefault("T", tempfile.mkdtemp(prefix="knit-keys."))
    os.chmod(os.environ["T"], 0o755)
    made = os.environ["T"]
    load_areas()
    try:
        if sys.argv[1:2] == ["--drop"]:
            sys.exit(drop_rows())
        sys.exit(tap(sys.argv[1:]))
    finally:
        if os.path.basename(made).startswith(("knit-keys.", "knit-t.")):
            shutil.rmtree(made, ignore_errors=True)
