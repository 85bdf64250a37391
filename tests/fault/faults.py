"""faults.py: what the tests of faults share: run the program, judge it from outside.

Nothing here asks the program how it is: processes come from /proc (each runner is a
child subreaper, so that whatever a run leaves comes back to it), control groups, files
and mounts from the file system, results from its output.
"""
import ctypes
import errno
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zlib
from queue import Empty

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
B = os.path.abspath(os.environ.get("B", os.path.join(TOP, "build/gcc")))
KS = os.environ.get("KS", os.path.join(B, "knit-sandbox"))
FAILCALL = os.path.join(B, "fault", "failcall")
ROOT = os.geteuid() == 0
NOBODY = 65534
RUN_S = 20   # a run that takes longer hangs
GONE_S = 3   # how long what it started may take to go
LATE_MS = 300

VERDICTS = set("""ok exit signal timeout soft-timeout cpu-timeout memory output-limit denied
too-large queue-timeout cancelled skipped worker-lost launch-failed invalid not-found
not-executable protocol-violation internal""".split())


def thin(chosen, most):
    """The same share of each scenario, by hash."""
    total = sum(len(v) for v in chosen.values())
    if total <= most:
        return chosen
    out = {}
    for name, v in chosen.items():
        n = max(1, len(v) * most // total)
        keep = set(sorted(v, key=lambda x: zlib.crc32(repr((name, x)).encode()))[:n])
        out[name] = [x for x in v if x in keep]
    return out


def subreaper():
    if ctypes.CDLL(None, use_errno=True).prctl(36, 1, 0, 0, 0):
        sys.exit("cannot become a child subreaper")


# ---- what is told ----

tally = [0, 0]  # failed, passed


def result(name, problems, note=""):
    """One line of TAP."""
    tally[not problems] += 1
    print("%s %d - %s%s" % ("not ok" if problems else "ok", sum(tally), name, note and " (%s)" % note))
    for p in problems[:10]:
        print("#   %s" % str(p)[:900])
    sys.stdout.flush()
    if problems: # prove without -v shows this alone
        print("# failed: %s\n#   %s" % (name, "\n#   ".join(str(p)[:300] for p in problems[:10])), file=sys.stderr)
    return not problems


def end():
    """The last lines; the exit status."""
    print("1..%d\n# %d passed, %d failed" % (sum(tally), tally[1], tally[0]))
    return 1 if tally[0] else 0


def await_end(p, limit, problems):
    """The run p ends by itself, or is ended."""
    try:
        p.wait(limit)
        return True
    except subprocess.TimeoutExpired:
        problems.append("hangs: %s" % names(descendants(p.pid)))
        kill_all(list(descendants(p.pid)) + [p.pid])
        p.wait()
        return False


# ---- processes ----

def stat_of(pid):
    """(name, state, parent) or None."""
    try:
        with open("/proc/%d/stat" % pid, "rb") as f:
            head, tail = f.read().decode("utf-8", "replace").rsplit(")", 1)
    except OSError:
        return None
    fields = tail.split()
    return head.split("(", 1)[1], fields[0], int(fields[1])


def descendants(top):
    """pid -> (name, state) of all below top."""
    parent, seen = {}, {}
    for d in os.listdir("/proc"):
        if d.isdigit():
            st = stat_of(int(d))
            if st:
                parent[int(d)] = st[2]
                seen[int(d)] = st[:2]
    found, more = {}, True
    while more:
        more = False
        for pid, up in parent.items():
            if pid not in found and (up == top or up in found):
                found[pid] = seen[pid]
                more = True
    return found


def children(top):
    """Direct children by /proc/PID/task/PID/children, which costs one read."""
    try:
        with open("/proc/%d/task/%d/children" % (top, top)) as f:
            return [int(p) for p in f.read().split()]
    except OSError:
        return []


def send(pid, parent, sig):
    """Signal pid if it is a child of parent, whoever has that number a moment later."""
    try:
        fd = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        st = stat_of(pid)
        if not st or st[2] != parent:
            return False
        signal.pidfd_send_signal(fd, sig)
        return True
    except OSError:
        return False
    finally:
        os.close(fd)


def reap(but=()):
    """Collect all ended children of ours, except those that a Popen owns."""
    for pid in children(os.getpid()):
        if pid in but:
            continue
        try:
            os.waitpid(pid, os.WNOHANG)
        except OSError:
            pass


def wait_gone(seconds=GONE_S, but=()):
    """What is still below us after at most so long, other than `but` and theirs."""
    end = time.monotonic() + seconds
    while True:
        reap(but)
        alive = descendants(os.getpid())
        for pid in but:
            for p in [pid] + list(descendants(pid)):
                alive.pop(p, None)
        if not alive or time.monotonic() >= end:
            return alive
        time.sleep(0.01)


def kill_all(pids):
    for p in pids:
        try:
            os.kill(p, signal.SIGKILL)
        except OSError:
            pass


def names(alive):
    return " ".join("%d:%s:%s" % (p, s, n) for p, (n, s) in sorted(alive.items()))


# ---- control groups ----

def own_groups():
    """Where a supervisor of ours may have its group: our own directory in each mounted
    hierarchy, and those above it in v2."""
    dirs, mounts = [], []
    with open("/proc/self/mountinfo") as f:
        for line in f:
            left, right = line.rstrip("\n").split(" - ", 1)
            root, point = left.split()[3:5]
            kind, _, options = right.split(" ", 2)
            if kind in ("cgroup", "cgroup2"):
                mounts.append((root, point, kind, options.split(",")))
    with open("/proc/self/cgroup") as f:
        for line in f:
            number, controllers, path = line.rstrip("\n").split(":", 2)
            for root, point, kind, options in mounts:
                if kind == "cgroup2" if number == "0" else controllers.split(",")[0] in options:
                    rest = path[len(root):] if root != "/" and path.startswith(root) else path
                    if os.path.isdir(point + rest):
                        dirs.append((point + rest).rstrip("/"))
                    while kind == "cgroup2" and rest.strip("/"):
                        rest = os.path.dirname(rest)
                        dirs.append((point + rest).rstrip("/"))
    return sorted(set(dirs))


GROUP = re.compile(r"knit-[0-9a-f]{32}-(\d+)-(\d+)-(\d+)(-sup)?$")


def groups(pid=None):
    """Directories of pools; of one supervisor, if its pid is given."""
    found = []
    for d in own_groups():
        try:
            entries = os.listdir(d)
        except OSError:
            continue
        for name in entries:
            m = GROUP.match(name)
            if m and (pid is None or int(m.group(1)) == pid):
                found.append(os.path.join(d, name))
    return sorted(found)


def mounts():
    with open("/proc/self/mountinfo") as f:
        return {line.split(" ", 3)[3] for line in f}


# ---- a run ----

class Run:
    """What is known of one run after it."""

    def __init__(self):
        self.pid = self.hit = self.code = self.signal = None
        self.hung = False
        self.out = self.err = b""
        self.site = []
        self.problems = []

    def bad(self, text):
        self.problems.append(text)


class Place:
    """A private folder for runs; what the program may use is below it."""

    def __init__(self, user):
        self.user = user
        self.top = tempfile.mkdtemp(prefix="knit-fault-")
        for d in ("tmp", "home", "src", "out"):
            os.mkdir(os.path.join(self.top, d))
        with open(os.path.join(self.top, "src", "x"), "w") as f:
            f.write("from the host\n")
        if user:
            os.chmod(self.top, 0o755)
            for base, dirs, files in os.walk(self.top):
                for n in dirs + files:
                    os.chown(os.path.join(base, n), NOBODY, NOBODY)

    def path(self, *names):
        return os.path.join(self.top, *names)

    def write(self, name, data):
        with open(self.path(name), "wb") as f:
            f.write(data)
        os.chmod(self.path(name), 0o644)

    def module(self, name):
        """A copy of one that the tests' build has made."""
        shutil.copy(os.path.join(B, "tests/module", name), self.path(name))
        os.chmod(self.top, 0o755)
        os.chmod(self.path(name), 0o755)

    def env(self):
        e = {k: v for k, v in os.environ.items() if k != "KNIT_DEBUG"}
        e.update(TMPDIR=self.path("tmp"), HOME=self.path("home"),
                 XDG_RUNTIME_DIR=self.path("tmp"))
        return e

    def become(self):
        """In the child, before exec."""
        if self.user:
            os.setgroups([])
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)

    def litter(self):
        found = []
        for d in ("tmp", "home"):
            for base, dirs, files in os.walk(self.path(d)):
                found += [os.path.join(base, n) for n in dirs + files]
        return found

    def sweep(self):
        for d in ("tmp", "home", "out"):
            for n in os.listdir(self.path(d)):
                p = self.path(d, n)
                shutil.rmtree(p, ignore_errors=True) if os.path.isdir(p) else os.unlink(p)

    def close(self):
        shutil.rmtree(self.top, ignore_errors=True)


def run(place, argv, stdin=None, stdout=None, during=None, limit=RUN_S, but=()):
    """Run argv to its end; `during(popen, run)` may act meanwhile. Output goes to files."""
    r = Run()
    with open(stdout or place.path("stdout"), "wb") as o, open(place.path("stderr"), "wb") as e, \
            open(stdin or "/dev/null", "rb") as i:
        p = subprocess.Popen(argv, stdin=i, stdout=o, stderr=e, cwd=place.top,
                             env=place.env(), preexec_fn=place.become)
        end = time.monotonic() + limit
        try:
            if during:
                try:
                    during(p, r)
                except (FileNotFoundError, ProcessLookupError):
                    pass  # it has ended by itself
            p.wait(max(0.1, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            r.hung = True
            r.bad("hangs: %s" % names(descendants(p.pid)))
            kill_all(list(descendants(p.pid)) + [p.pid])
            p.wait()
    r.code, r.child = p.returncode, p.pid
    if not stdout:
        with open(place.path("stdout"), "rb") as f:
            r.out = f.read()
    with open(place.path("stderr"), "rb") as f:
        r.err = f.read()
    return r


def look_for_left(place, r, pid, but=(), files=True, sweep=False):
    """Processes, zombies, control groups, files. A group is only empty once all in it are
    gone, so it gets the same time."""
    alive = wait_gone(but=but)
    if alive:
        r.bad("left running: %s" % names(alive))
        kill_all(alive)
        wait_gone(but=but)
    if pid and not sweep:
        left = groups(pid)
        if left:
            r.bad("left: %s" % " ".join(left))
            for d in left:
                remove_group(d)
    if files and place.litter():
        r.bad("left: %s" % " ".join(place.litter()))
    place.sweep()


def remove_group(d):
    for base, dirs, _ in os.walk(d, topdown=False):
        try:
            os.rmdir(base)
        except OSError:
            pass


def inject(place, argv, at, fault, **kw):
    """One run under failcall. fault: an errno, a signal, "late", or None to record into
    `at`."""
    status = place.path("out", "status")
    cmd = [FAILCALL, "--status", status]
    if fault is None:
        cmd += ["--log", at]
    elif isinstance(fault, signal.Signals):
        cmd += ["--at", at, "--signal", str(int(fault))]
    elif fault == "late":
        cmd += ["--at", at, "--late", str(LATE_MS)]
    else:
        cmd += ["--at", at, "--fail", str(fault)]
    r = run(place, cmd + ["--", KS] + argv, **kw)
    r.command = " ".join(cmd[:1] + cmd[3:] + ["--", KS] + argv)
    try:
        with open(status) as f:
            told = dict(line.split() for line in f)
        r.pid, r.hit = int(told["pid"]), told["hit"] == "1"
        r.site = [told[k] for k in sorted(told) if k.startswith("site")]
        if "signal" in told:
            r.signal = int(told["signal"])
    except (OSError, ValueError, KeyError):
        if not r.hung:
            r.bad("no status of failcall: %s" % r.err[-300:].decode("utf-8", "replace"))
    return r


def nearer(at):
    """The same place by its two nearest return addresses: what looks like one further up
    may be a word of an old frame, another in each run. None: there are no more."""
    head, _, sites = at.partition("@")
    near = sites.split(",")
    return "%s@%s+" % (head, ",".join(near[:2])) if len(near) > 2 else None


class Neighbour:
    """A second supervisor with a ready worker, reading tasks from a pipe."""

    def __init__(self, place):
        self.place, self.n = place, 0
        self.p = subprocess.Popen([KS, "run", "--quiet", "--workers", "2", "--tasks", "-"],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=place.top,
                                  env=place.env(), preexec_fn=place.become)
        self.ask()
        self.groups = groups(self.p.pid)

    def ask(self):
        """A task has to come back `ok`."""
        self.n += 1
        line = json.dumps({"id": "n%d" % self.n, "argv": ["/bin/echo", "alive"]}) + "\n"
        try:
            self.p.stdin.write(line.encode())
            self.p.stdin.flush()
            got = json.loads(self.p.stdout.readline() or b"{}")
        except (OSError, ValueError):
            got = {}
        return got.get("id") == "n%d" % self.n and got.get("verdict") == "ok"

    def check(self, r):
        if groups(self.p.pid) != self.groups:
            r.bad("the other supervisor has %s, had %s" % (groups(self.p.pid), self.groups))
        if self.p.poll() is not None or not self.ask():
            r.bad("the other supervisor does not go on")

    def close(self):
        self.p.stdin.close()
        try:
            return self.p.wait(RUN_S) == 0
        except subprocess.TimeoutExpired:
            return False


def our_lines(err):
    """Lines by which the program speaks for itself."""
    return [x for x in err.decode("utf-8", "replace").split("\n")
            if x.startswith("knit-sandbox: ") and "something weaker stands in" not in x]


def json_lines(r):
    lines = []
    for text in r.out.split(b"\n"):
        if text:
            try:
                lines.append(json.loads(text))
            except ValueError:
                r.bad("not a result line: %r" % text[:120])
    if r.out and not r.out.endswith(b"\n"):
        r.bad("the last line is cut")
    return lines


def site_name(addresses):
    """The place in the source of the return addresses that failcall logged."""
    try:
        text = subprocess.run(["addr2line", "-e", KS] + ["0x%x" % (int(a, 16) - 1) for a in addresses],
                              capture_output=True, text=True).stdout
    except OSError:
        return ""
    places = [x.split(" ")[0].replace(TOP + "/", "") for x in text.split("\n") if x]
    return " < ".join(x for x in places if not x.startswith("??"))


def answer_of(queue, workers):
    """The next answer of a pool of multiprocessing workers; ends us if they are gone."""
    while True:
        try:
            return queue.get(timeout=5)
        except Empty:
            if not any(w.is_alive() for w in workers):
                print("not ok - the workers of this test have died", flush=True)
                os._exit(1)  # what is still queued for them must not hold us


def errno_name(n):
    return errno.errorcode.get(n, str(n))
