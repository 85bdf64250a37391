"""watch.py [OPTIONS] -- COMMAND...: run a command and see what it leaves behind.

    --info FILE       shell assignments: elapsed_ms, maxrss_kb, hung, left, left_ms,
                      left_names
    --at MS:SIGNAL    send it to the command (not its children); repeatable
    --from FILE       the times of --at count from when FILE has something in it
    --limit SECONDS   a command that takes longer is killed: hung=1, status 99 (120)
    --grace MS        how long descendants may take to go after its end (1000)
    --slow N          a machine N times slower: all times above are so much longer
    --samples FILE    every 50 ms a JSON line: ms, rss_kb, fds, zombies (of the command)

It is a child subreaper: whatever the command or its descendants leave running comes
back here. Ends with the command's status, 128 + n for a signal.
"""
import _ctypes  # started hundreds of times: ctypes, signal and json take twice as long
import _signal as signal
import os
import select
import sys
import time

PR_SET_CHILD_SUBREAPER = 36


def prctl(*args):
    return _ctypes.call_function(_ctypes.dlsym(_ctypes.dlopen(None, 0), "prctl"), args)


def descendants(top):
    """pid -> (state, name) of all below top, from /proc."""
    parent, seen = {}, {}
    for d in os.listdir("/proc"):
        if d.isdigit():
            try:
                with open("/proc/%s/stat" % d, "rb") as f:
                    head, tail = f.read().decode("utf-8", "replace").rsplit(")", 1)
            except OSError:
                continue
            fields = tail.split()
            parent[int(d)] = int(fields[1])
            seen[int(d)] = (fields[0], head.split("(", 1)[1])
    found, more = {}, True
    while more:
        more = False
        for pid, up in parent.items():
            if pid not in found and (up == top or up in found):
                found[pid] = seen[pid]
                more = True
    return found


def sample(pid, start):
    try:
        with open("/proc/%d/status" % pid) as f:
            rss = [int(x.split()[1]) for x in f if x.startswith("VmRSS:")]
        fds = len(os.listdir("/proc/%d/fd" % pid))
    except (OSError, ValueError):
        return None
    zombies = sum(s == "Z" for s, _ in descendants(pid).values())
    return {"ms": int((time.monotonic() - start) * 1000), "rss_kb": rss[0] if rss else 0,
            "fds": fds, "zombies": zombies}


def parse(argv):
    o = {"info": None, "at": [], "limit": 120.0, "grace": 1000, "samples": None, "slow": 1,
         "from": None}
    i = 0
    while argv[i] != "--":
        name, value = argv[i][2:], argv[i + 1]
        if name == "at":
            ms, sig = value.split(":")
            o["at"].append((int(ms) / 1000, getattr(signal, "SIG" + sig)))
        else:
            o[name] = type(o[name])(value) if o[name] is not None else value
        i += 2
    o["at"] = sorted((at * o["slow"], sig) for at, sig in o["at"])
    o["limit"] *= o["slow"]
    o["grace"] *= o["slow"]
    return o, argv[i + 1:]


def main():
    o, cmd = parse(sys.argv[1:])
    if prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        sys.exit("watch.py: cannot become a subreaper")
    for s in (signal.SIGPIPE, signal.SIGXFSZ):  # as a shell would start it
        signal.signal(s, signal.SIG_DFL)
    start = time.monotonic()
    pid = os.fork()
    if pid == 0:
        try:
            os.execvp(cmd[0], cmd)
        except OSError as e:
            os.write(2, ("watch.py: %s: %s\n" % (cmd[0], e.strerror)).encode())
        os._exit(127)
    end = select.poll()
    end.register(os.pidfd_open(pid), select.POLLIN)
    samples = open(o["samples"], "w") if o["samples"] else None
    next_sample, hung, begun = 0.0, 0, None if o["from"] else 0.0
    while True:
        got, status, usage = os.wait4(pid, os.WNOHANG)
        now = time.monotonic() - start
        if got:
            break
        if begun is None and os.path.exists(o["from"]) and os.path.getsize(o["from"]):
            begun = now
        while begun is not None and o["at"] and now >= begun + o["at"][0][0]:
            os.kill(pid, o["at"].pop(0)[1])
        if samples and now >= next_sample:
            next_sample = now + 0.05
            s = sample(pid, start)
            if s:
                samples.write("{%s}\n" % ", ".join('"%s": %d' % kv for kv in s.items()))
        if now > o["limit"]:
            hung = 1
            for p in [pid] + list(descendants(pid)):
                try:
                    os.kill(p, signal.SIGKILL)
                except OSError:
                    pass
            got, status, usage = os.wait4(pid, 0)
            break
        due = [o["limit"]] + [now + 0.02 if begun is None else begun + at for at, _ in o["at"][:1]] + ([next_sample] if samples else [])
        end.poll(max(0, min(due) - now) * 1000)
        # Where we get no time, as on a machine that pauses, neither does the command.
        late = time.monotonic() - start - max(now, min(due))
        if late > 1:
            o["limit"] += late
    elapsed = time.monotonic() - start
    if samples:
        samples.close()

    # Where we get no time, neither do they: from one look to the next counts as 10 ms at
    # most, whatever passed.
    ended, alive, given, looked = time.monotonic(), {}, 0.0, time.monotonic()
    while True:
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            pass
        alive = descendants(os.getpid())
        now = time.monotonic()
        given, looked = given + min(now - looked, 0.01), now
        gone_ms = int((now - ended) * 1000)
        if not alive or given * 1000 >= o["grace"]:
            break
        time.sleep(0.005)
    for p in alive:
        try:
            os.kill(p, signal.SIGKILL)
        except OSError:
            pass
    if o["info"]:
        names = " ".join("%d:%s:%s" % (p, s, n) for p, (s, n) in sorted(alive.items()))
        names = "".join(c if c.isalnum() or c in " :-_." else "?" for c in names)
        with open(o["info"], "w") as f:
            f.write("elapsed_ms=%d\nmaxrss_kb=%d\nhung=%d\nleft=%d\nleft_ms=%d\nleft_names='%s'\n"
                    % (elapsed * 1000, usage.ru_maxrss, hung, len(alive), gone_ms, names))
    if hung:
        sys.stderr.write("watch.py: did not end in %g s: killed\n" % o["limit"])
        return 99
    return os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)


sys.exit(main())
