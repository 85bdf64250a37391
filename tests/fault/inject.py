"""inject.py: every system call of the supervisor's start, launch, task and stop paths is
made to fail once, with each errno that matters there.

    B=build/gcc python3 tests/fault/inject.py [SCENARIO...]

First each scenario runs undisturbed and its calls are recorded: those of the program,
and of each process it forks up to its execve. Then one run per (call site, errno): the
call at that site gives the errno, and the end is judged from outside: a documented exit
status, one line per task with a documented verdict (and never `ok` with anything but the
right output), or one clear line and 125; no signal, no hang; no process, zombie, control
group or file left; and another supervisor, alive all the time, keeps what is its own.

A site is a call with the return addresses above it, and is tried at its first and last
occurrence. KNIT_FAULT=all tries every occurrence; KNIT_FAULT_MAX bounds the pairs
(default 1200), chosen by hash, the same ones each time. KNIT_FAULT_ONLY=ERE takes only
pairs that match, as WHO:CALL:N:ERRNO. KNIT_FAULT_JOBS: so many at a time (2).
"""
import errno as E
import json
import multiprocessing
import os
import re
import signal
import stat
import sys
import time
import zlib

import faults as F

# ---- what can fail, and how ----

FD = [E.EMFILE, E.ENFILE, E.ENOMEM]
ERRNOS = {
    "openat": FD + [E.EACCES, E.EIO, E.EINTR], "openat2": FD + [E.EACCES, E.EIO, E.EAGAIN],
    "pipe2": FD, "socketpair": FD, "eventfd2": FD, "timerfd_create": FD, "signalfd4": FD,
    "epoll_create1": FD, "memfd_create": FD, "pidfd_open": FD, "open_tree": FD + [E.EPERM],
    "landlock_create_ruleset": FD, "dup2": [E.EMFILE, E.EBUSY, E.EINTR],
    "dup3": [E.EMFILE, E.EBUSY], "fcntl": [E.EMFILE, E.EBUSY, E.EPERM, E.ENOMEM],
    "clone3": [E.EAGAIN, E.ENOMEM, E.EPERM, E.ENOSYS],
    "mmap": [E.ENOMEM, E.EAGAIN], "munmap": [E.ENOMEM], "mremap": [E.ENOMEM], "brk": [E.ENOMEM],
    "madvise": [E.ENOMEM, E.EAGAIN], "mprotect": [E.ENOMEM],
    "read": [E.EIO, E.EINTR, E.ENOMEM], "pread64": [E.EIO, E.EINTR, E.ENOMEM],
    "write": [E.EIO, E.ENOSPC, E.EINTR, E.EPIPE, E.ENOMEM], "preadv2": [E.EIO, E.EINTR, E.EOPNOTSUPP],
    "pwritev2": [E.EIO, E.ENOSPC, E.EINTR, E.EPIPE, E.EOPNOTSUPP],
    "sendmsg": [E.EAGAIN, E.ENOBUFS, E.ENOMEM, E.EPIPE, E.ETOOMANYREFS, E.EINTR],
    "recvmsg": [E.EINTR, E.ENOMEM, E.ENOBUFS, E.EIO],
    "sendto": [E.EAGAIN, E.EPIPE, E.EINTR], "recvfrom": [E.EINTR, E.EIO],
    "epoll_ctl": [E.ENOMEM, E.ENOSPC], "epoll_wait": [E.EINTR], "epoll_pwait": [E.EINTR],
    "poll": [E.EINTR, E.ENOMEM], "ppoll": [E.EINTR, E.ENOMEM],
    "timerfd_settime": [E.ENOMEM, E.EPERM],
    "waitid": [E.EINTR, E.ECHILD], "wait4": [E.EINTR, E.ECHILD],
    "pidfd_send_signal": [E.EPERM, E.ESRCH], "kill": [E.EPERM],
    "setpgid": [E.EPERM, E.ESRCH],
    "mkdir": [E.ENOSPC, E.EIO, E.EACCES], "mkdirat": [E.ENOSPC, E.ENOMEM, E.EPERM, E.EIO],
    "unlinkat": [E.EBUSY, E.EPERM, E.EIO], "rmdir": [E.EBUSY, E.EIO], "unlink": [E.EIO],
    "renameat": [E.ENOSPC, E.EIO], "fchmod": [E.EIO, E.EPERM], "flock": [E.EINTR, E.ENOMEM],
    "ftruncate": [E.ENOSPC, E.EINTR, E.EIO], "fallocate": [E.ENOSPC, E.ENOMEM, E.EINTR],
    "newfstatat": [E.ENOMEM, E.EIO, E.EACCES], "fstat": [E.ENOMEM, E.EIO], "fstatfs": [E.EIO],
    "statx": [E.ENOMEM, E.EIO], "readlink": [E.ENOMEM, E.EIO, E.EACCES],
    "getdents64": [E.EIO, E.ENOMEM], "faccessat2": [E.EIO, E.ENOMEM], "faccessat": [E.EIO],
    "access": [E.EIO, E.EACCES], "getcwd": [E.ENOENT, E.ENOMEM], "lseek": [E.ESPIPE],
    "getrandom": [E.EINTR, E.ENOSYS, E.EAGAIN],
    "mount": [E.EPERM, E.ENOMEM, E.EBUSY], "mount_setattr": [E.EPERM, E.ENOMEM],
    "move_mount": [E.EPERM, E.ENOMEM], "unshare": [E.EPERM, E.ENOSPC, E.ENOMEM],
    "setgroups": [E.EPERM, E.ENOMEM], "setresgid": [E.EPERM, E.EAGAIN],
    "setresuid": [E.EPERM, E.EAGAIN], "capset": [E.EPERM], "capget": [E.EPERM],
    "prctl": [E.EPERM, E.EINVAL], "close_range": [E.ENOMEM, E.ENOSYS], "chdir": [E.EACCES, E.ENOMEM],
    "prlimit64": [E.EPERM], "execve": [E.ENOMEM, E.EACCES, E.EAGAIN, E.ENOENT, E.ETXTBSY],
    "ioctl": [E.EIO, E.ENOTTY], "close": [E.EIO, E.EINTR],
    "rt_sigaction": [E.EINVAL], "rt_sigprocmask": [E.EINVAL],
    "sysinfo": [E.EFAULT], "sched_getaffinity": [E.EINVAL],
}
# kill() giving ESRCH is left out: "there is no such process" is taken as true, and who
# lies about that has the next start remove a live supervisor's groups.
# Nor is unshare() for root: who goes on after it mounts over the machine's own folders.
ROOT_NEVER = {"unshare"}
# These cannot fail.
NEVER = set("""getpid getppid gettid getuid geteuid getgid getegid umask exit exit_group rt_sigreturn
restart_syscall alarm set_tid_address set_robust_list""".split())
OTHER = [E.ENOMEM, E.EPERM]

# ---- scenarios ----

OURS = ("worker-lost", "launch-failed", "internal", "cancelled")


class Batch:
    """Six tasks over two workers: files, keep, after, stdin, a timeout, a cap."""
    name, user = "batch", False
    usual = (1,)
    tasks = [
        {"id": "a", "argv": ["/bin/sh", "-c", "cat in.txt; echo data >made.txt"],
         "files": {"in.txt": {"content": "hello\n"}}, "keep": ["made.txt"]},
        {"id": "b", "after": ["a"], "argv": ["/bin/cat", "f", "/data/x"],
         "files": {"f": {"from": "a/made.txt"}}, "collect": ["f"]},
        {"id": "c", "argv": ["/bin/cat"], "stdin": "3 4\n"},
        {"id": "d", "argv": ["/bin/sleep", "9"], "timeouts": {"hard_ms": 60}},
        {"id": "e", "argv": ["/bin/sh", "-c", "echo oops >&2; exit 3"]},
        {"id": "f", "argv": ["/bin/sh", "-c", "head -c 3000 /dev/zero | tr '\\0' x"],
         "limits": {"task": {"stdout": "1K"}}},
    ]

    def prepare(self, p):
        p.write("tasks", "".join(json.dumps(t) + "\n" for t in self.tasks).encode())
        return ["run", "--workers", "2", "--quiet", "--ro-bind", p.path("src") + ":/data",
                "--tasks", p.path("tasks"), "--report", p.path("out", "report"),
                "--trace", p.path("out", "trace")]

    def options(self, p):
        return {}

    def right(self, t):
        """Is this the line that an undisturbed run gives?"""
        want = {
            "a": ("ok", "hello\n", "", 0), "b": ("ok", "data\nfrom the host\n", "", 0),
            "c": ("ok", "3 4\n", "", 0), "d": ("timeout", "", "", None), "e": ("exit", "", "oops\n", 3),
            "f": ("ok", "x" * 1024, "", 0)}[t["id"]]
        f = t.get("files", {}).get("f", {})
        if t["id"] == "b" and f.get("content_b64") != "ZGF0YQo=" and not f.get("error"):
            return False
        return (t["verdict"], t.get("stdout"), t.get("stderr"), t.get("exit_code")) == want

    def judge(self, p, r, no=0):
        seen = set()
        for t in F.json_lines(r):
            i, v = t.get("id"), t.get("verdict")
            if i in seen or i not in {x["id"] for x in self.tasks}:
                r.bad("line of %r that nobody asked for" % i)
            seen.add(i)
            if v not in F.VERDICTS:
                r.bad("verdict %r" % v)
            elif v in OURS or (v == "skipped" and i == "b"):
                if not t.get("error"):
                    r.bad("%s is %s without a reason" % (i, v))
            elif i == "c" and v == "ok" and not t["stdout"] and no == E.EPIPE:
                pass  # as if it had not wanted its input
            elif not self.right(t):
                r.bad("%s is %s with stdout %r stderr %r files %r error %r" % (
                    i, v, t.get("stdout"), t.get("stderr"), t.get("files"), t.get("error")))
        told = F.our_lines(r.err)
        if r.code == 125 and len(told) != 1:
            r.bad("%d lines of ours for 125: %r" % (len(told), r.err[-400:]))
        # Results that cannot be written are said to be so; they have no other place.
        unwritten = any("write results to stdout" in x for x in told)
        if r.code in self.usual and len(seen) != len(self.tasks) and not unwritten:
            r.bad("%d of %d lines, status %s" % (len(seen), len(self.tasks), r.code))
        if r.code == 125 and len(seen) not in (0, len(self.tasks)):
            r.note = "%d of %d lines" % (len(seen), len(self.tasks))
        if r.code not in self.usual + (125,) + ((141,) if no == E.EPIPE else ()):
            r.bad("status %s" % r.code)


class Stop(Batch):
    """A stop by SIGTERM while tasks run and others wait."""
    name = "stop"
    usual = (143,)
    tasks = [{"id": "q", "argv": ["/bin/echo", "now"]}] + [
        {"id": "s%d" % i, "argv": ["/bin/sleep", "30"]} for i in range(5)]

    def prepare(self, p):
        p.write("tasks", "".join(json.dumps(t) + "\n" for t in self.tasks).encode())
        return ["run", "--workers", "2", "--quiet", "--tasks", p.path("tasks")]

    def options(self, p):
        return {"during": self.stop, "limit": 2 * F.RUN_S}

    @staticmethod
    def stop(popen, r):
        """TERM to the program once its first line is out, and later again at worst."""
        out = "/proc/%d/fd/1" % popen.pid
        for wait in (15, 5):
            end = time.monotonic() + wait
            while popen.poll() is None and time.monotonic() < end:
                if wait == 15 and os.stat(out).st_size:
                    break
                time.sleep(0.01)
            if popen.poll() is not None:
                return
            traced = (F.stat_of(popen.pid) or ("",))[0] == "failcall"
            for pid in F.children(popen.pid)[:1] if traced else [popen.pid]:
                os.kill(pid, signal.SIGTERM)

    def right(self, t):
        return t["id"] == "q" and t["verdict"] == "ok" and t.get("stdout") == "now\n"


class Single:
    """One command with input, output, a bind, a report and a file to collect."""
    name, user = "single", False
    usual = (7,)

    def prepare(self, p):
        p.write("in", b"input\n" * 3000)
        return ["run", "--quiet", "--ro-bind", p.path("src") + ":/data", "--report", p.path("out", "report"),
                "--collect", "*.txt", "--out-dir", p.path("out"), "--", "/bin/sh", "-c",
                "cat; cat /data/x; echo made >made.txt; echo err >&2; exit 7"]

    def options(self, p):
        return {"stdin": p.path("in")}

    def judge(self, p, r, no=0):
        try:
            with open(p.path("out", "report")) as f:
                text = f.read()
            v = json.loads(text)["verdict"] if text else None
        except OSError:
            v = None
        except (ValueError, KeyError):
            v = "unreadable"
        told = F.our_lines(r.err)
        if r.code == 7:
            # EPIPE: as if it had not wanted its input
            if r.out != b"input\n" * 3000 + b"from the host\n" and no != E.EPIPE:
                r.bad("output is not all there: %d bytes" % len(r.out))
            # a stderr that takes nothing cannot be told so
            if b"err\n" not in r.err and ":write" not in r.command and ":pwritev2" not in r.command:
                r.bad("stderr is not all there: %r" % r.err)
            if v != "exit":
                r.bad("verdict in the report: %s" % v)
            try:
                with open(p.path("out", "made.txt")) as f:
                    made = f.read()
            except OSError as e:
                made = str(e)
            if made != "made\n" and not any("--collect: made.txt" in x for x in told):
                r.bad("collected: %r" % made)
        elif r.code == 125:
            if not told:
                r.bad("125 without a word: %r" % r.err)
            if v in ("ok", "unreadable"):
                r.bad("verdict in the report: %s" % v)
        elif r.code != 141 or no != E.EPIPE:
            r.bad("status %s" % r.code)


class AsUser:
    user = True


class UserBatch(AsUser, Batch):
    name = "user-batch"


class UserStop(AsUser, Stop):
    name = "user-stop"


class UserSingle(AsUser, Single):
    name = "user-single"


def scenarios():
    plain = [Batch(), Stop(), Single()]
    return plain + [UserBatch(), UserStop(), UserSingle()] if F.ROOT else plain


# ---- pairs ----

def roles(calls):
    """WHO -> what kind of process it is, by what it does."""
    did = {}
    for who, call, *_ in calls:
        did.setdefault(who, set()).add(call)
    kinds = {}
    for who, c in did.items():
        kinds[who] = ("program" if who == 0 else "launcher" if "umask" in c else
                      "guard" if "setpgid" in c else "holder")
    return kinds


def record(s, p, argv):
    log = p.path("out", "log")
    r = F.inject(p, argv, log, None, **s.options(p))
    s.judge(p, r)
    calls = []
    with open(log) as f:
        for line in f:
            who, call, nth, _, *site = line.split()
            calls.append((int(who), call, int(nth), tuple(site) or ("0",)))
    F.look_for_left(p, r, r.pid)
    if r.problems:
        sys.exit("scenario %s fails undisturbed: %s" % (s.name, "; ".join(r.problems)))
    return calls


def moments(calls, who_matters, everything, user):
    """(kind, WHO:CALL:N@SITES) of each site: its first call, and a later one."""
    kinds, sites = roles(calls), {}
    never = NEVER if user else NEVER | ROOT_NEVER
    for who, call, nth, site in calls:
        if call in never or not who_matters(kinds[who]):
            continue
        at = sites.setdefault((kinds[who], call, site), {})
        at[who] = at.get(who, 0) + 1  # the second launcher does as the first
    found = []
    for (kind, call, site), at in sites.items():
        who = min(at)
        n = at[who]
        for k in range(1, n + 1) if everything else sorted({1, n if n <= 4 else 3 * n // 4}):
            found.append((kind, call, "%d:%s:%d@%s" % (who, call, k, ",".join(site))))
    return len(sites), found


def pairs_of(s, calls, everything):
    n, found = moments(calls, lambda kind: True, everything, s.user or not F.ROOT)
    return n, [(s.name, kind, at, no) for kind, call, at in found for no in ERRNOS.get(call, OTHER)]


def choose(pairs):
    only = os.environ.get("KNIT_FAULT_ONLY")
    if only:
        return [p for p in pairs if re.search(only, "%s:%s:%s" % (p[0], p[2], F.errno_name(p[3])))]
    if os.environ.get("KNIT_FAULT") == "all":
        return pairs
    most = int(os.environ.get("KNIT_FAULT_MAX", "1200"))
    keep = sorted(pairs, key=lambda p: (p[3] != ERRNOS.get(p[2].split(":")[1], OTHER)[0],
                                        zlib.crc32(repr(p).encode())))[:most]
    return [p for p in pairs if p in set(keep)]


# ---- the work ----

def attempt(s, p, argv, at, no, neighbour):
    for where in filter(None, (at, F.nearer(at))):
        r = F.inject(p, argv, where, no, **s.options(p))
        # The stop's own signal may meet one that has answered all and is about to exit.
        if r.signal and not (r.signal == signal.SIGTERM and "during" in s.options(p)):
            r.bad("died of signal %d" % r.signal)
        if not r.hung:
            s.judge(p, r, no)
        F.look_for_left(p, r, r.pid, but=[neighbour.p.pid])
        if r.hit or r.problems:
            break
    neighbour.check(r)
    return r


def work(todo, done):
    F.subreaper()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    ready = {}
    by_name = {s.name: s for s in scenarios()}
    beside = F.Place(False)
    neighbour = F.Neighbour(beside)
    while True:
        pair = todo.get()
        if pair is None:
            break
        name, kind, at, no = pair
        if name not in ready:
            place = F.Place(by_name[name].user)
            ready[name] = (by_name[name], place, by_name[name].prepare(place))
        s, place, argv = ready[name]
        r = attempt(s, place, argv, at, no, neighbour)
        if neighbour.p.poll() is not None or "other supervisor" in " ".join(r.problems):
            neighbour.close()
            neighbour = F.Neighbour(beside)
        done.put((pair, r.hit, r.code, r.problems, getattr(r, "note", ""), r.site, r.command,
                  r.err[-300:].decode("utf-8", "replace")))
    neighbour.close()
    for place in [beside] + [v[1] for v in ready.values()]:
        place.close()


def tell(n, ok, pair, code, problems, site, command, err):
    name, kind, at, no = pair
    print("%s %d - %s %s %s %s -> %s" % ("ok" if ok else "not ok", n, name, kind, at.split("@")[0], F.errno_name(no), code))
    if ok:
        return
    print("#   at %s" % F.site_name(site))
    for x in problems:
        print("#   %s" % x[:600])
    print("#   stderr: %s" % err.replace("\n", " | "))
    print("#   again: %s" % command)
    sys.stdout.flush()


def main():
    if not os.path.exists(F.FAILCALL):
        sys.exit("no %s: make check-fault" % F.FAILCALL)
    F.subreaper()
    mounts = F.mounts()
    wanted, everything = sys.argv[1:], os.environ.get("KNIT_FAULT") == "all"
    pairs, site_n = [], 0
    for s in scenarios():
        if wanted and s.name not in wanted:
            continue
        place = F.Place(s.user)
        calls = record(s, place, s.prepare(place))
        place.close()
        n, more = pairs_of(s, calls, everything)
        print("# %s: %d calls, %d sites, %d (site, errno) pairs" % (s.name, len(calls), n, len(more)))
        site_n += n
        pairs += more
    chosen = choose(pairs)
    print("# %d of %d pairs of %d sites; KNIT_FAULT=all runs every occurrence" % (len(chosen), len(pairs), site_n))
    sys.stdout.flush()

    todo, done = multiprocessing.Queue(), multiprocessing.Queue()
    jobs = int(os.environ.get("KNIT_FAULT_JOBS", "2"))
    for x in chosen + [None] * jobs:
        todo.put(x)
    workers = [multiprocessing.Process(target=work, args=(todo, done)) for _ in range(jobs)]
    for w in workers:
        w.start()
    passed = failed = missed = 0
    for n in range(1, len(chosen) + 1):
        pair, hit, code, problems, note, site, command, err = F.answer_of(done, workers)
        missed += not hit
        passed += not problems
        failed += bool(problems)
        tell(n, not problems, pair, "%s%s" % (code, " " + note if note else ""), problems, site, command, err)
    for w in workers:
        w.join()
    left = [m for m in F.mounts() - mounts if "knit" in m]
    if left:
        failed += 1
        print("not ok %d - no mount left\n#   %s" % (len(chosen) + 1, left[:5]))
    else:
        passed += 1
        print("ok %d - no mount left" % (len(chosen) + 1))
    if missed * 10 > len(chosen):  # then this says nothing
        failed += 1
        print("not ok - %d of %d sites were not reached" % (missed, len(chosen)))
    print("1..%d" % (len(chosen) + 1))
    print("# %d (site, errno) pairs, %d not reached; %d passed, %d failed" % (len(chosen), missed, passed, failed))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
