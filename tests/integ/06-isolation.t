#!/bin/sh
# 06-isolation.t: what one task leaves, the next one on the same worker does not find.
. "$(dirname "$0")/../lib/tap.sh"
left_before

# The first task leaves something of every kind; the second looks for all of it.
cat >"$T/leave.py" <<'X'
import ctypes, mmap, os, signal, subprocess, sys, time
done = []
def leave(name, fn):
    try:
        fn(); done.append(name)
    except (OSError, AttributeError) as e:
        print("cannot leave %s: %s" % (name, e))
libc = ctypes.CDLL(None, use_errno=True)
def check(r):
    if r < 0: raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return r
def put(path):
    def fn():
        with open(path, "w") as f: f.write("canary")
        os.chmod(path, 0o777)
    return fn
for d in ("/tmp", "/dev/shm", "/task", "/var/tmp", "/run", "/home", os.getcwd(), "/dev", "/"):
    leave("file in " + d, put(d + "/knit-canary"))
leave("hidden", put("/tmp/.knit-canary"))
leave("SysV shm", lambda: check(libc.shmget(0x4b4e4954, 4096, 0o1666)))
leave("SysV sem", lambda: check(libc.semget(0x4b4e4954, 1, 0o1666)))
leave("SysV msg", lambda: check(libc.msgget(0x4b4e4954, 0o1666)))
leave("POSIX mq", lambda: check(libc.mq_open(b"/knit-canary", os.O_CREAT | os.O_RDWR, 0o666, None)))
leave("key", lambda: check(libc.syscall(248, b"user", b"knit-canary", b"x", 1, -5)))
leave("hostname", lambda: check(libc.sethostname(b"knit-canary", 11)))
def daemon():
    if os.fork() == 0:
        os.setsid()
        for s in range(1, 32):
            try: signal.signal(s, signal.SIG_IGN)
            except (OSError, ValueError): pass
        if os.fork() == 0:
            time.sleep(120)
        os._exit(0)
leave("daemon", daemon)
leave("nice", lambda: os.nice(5))
leave("cwd file", lambda: os.mkdir("knit-canary-dir"))
signal.setitimer(signal.ITIMER_REAL, 100)
print("left:", ", ".join(done))
X
cat >"$T/look.py" <<'X'
import ctypes, os
found = []
libc = ctypes.CDLL(None, use_errno=True)
for d in ("/tmp", "/dev/shm", "/task", "/var/tmp", "/run", "/home", os.getcwd(), "/dev", "/"):
    try:
        found += [d + "/" + n for n in os.listdir(d) if "knit-canary" in n]
    except OSError:
        pass
for top in ("/tmp", "/dev/shm", "/task"):
    found += [top + "/" + n for n in os.listdir(top) if n not in ("look.py",)]
for name, call in (("shm", lambda: libc.shmget(0x4b4e4954, 0, 0)), ("sem", lambda: libc.semget(0x4b4e4954, 0, 0)),
                   ("msg", lambda: libc.msgget(0x4b4e4954, 0)), ("mq", lambda: libc.mq_open(b"/knit-canary", os.O_RDWR)),
                   ("key", lambda: libc.syscall(250, 10, -5, b"user", b"knit-canary", 0))):
    try:
        if call() >= 0: found.append(name)
    except AttributeError:
        pass
for f in ("shm", "sem", "msg"):
    try:
        found += open("/proc/sysvipc/" + f).read().splitlines()[1:]
    except OSError:
        pass
me = os.getpid()
for p in os.listdir("/proc"):
    if p.isdigit() and int(p) not in (1, me, os.getppid()):
        found.append("process " + p + open("/proc/%s/comm" % p).read().strip())
if os.uname().nodename == "knit-canary": found.append("hostname")
if os.nice(0) != NICE: found.append("nice")
try:
    found += ["key: " + l for l in open("/proc/keys").read().splitlines() if "knit-canary" in l]
except OSError:
    pass
print("pid", me, "found:", found)
raise SystemExit(9 if found else 0)
X
"$PY" - "$T" >"$T/tasks" <<'X'
import json, os, sys
leave, look = (open(sys.argv[1] + "/" + n).read() for n in ("leave.py", "look.py"))
look = look.replace("NICE", str(os.nice(0))) # ours, which all have
def task(i, name, text): print(json.dumps({"id": i, "argv": ["python3", name], "files": {name: {"content": text}}}))
task("clean", "look.py", look)
for n in range(5):
    task("leave%d" % n, "leave.py", leave)
    task("look%d" % n, "look.py", look)
X
ks run --tasks "$T/tasks" --workers 1
is "$(js "$T/out" 'by["clean"]["verdict"]')" ok "the looker finds nothing where nothing was left"
for n in 0 1 2 3 4; do
	like "$(js "$T/out" "by['leave$n']['stdout']")" 'left: .*file in /tmp.*daemon' "task $n leaves files, objects, a daemon"
	is "$(js "$T/out" "by['look$n']['verdict'] + ' ' + by['look$n']['stdout'].split('found:')[-1].strip() + by['look$n']['stderr'][-300:]")" "ok []" \
	    "the task after it finds none of it (C150)"
done
is "$(js "$T/out" 'sorted({r["worker"] for r in L})')" "['w0']" "all of them ran on one worker"
is "$(js "$T/out" 'len({r["stdout"].split()[1] for r in L if r["id"].startswith("look")})')" 1 "process ids start anew: no trace of the tasks before"

# C073: a background child does not outlive its task, nor delay its result.
cat >"$T/tasks" <<'X'
{"id":"bg","argv":["sh","-c","(trap '' TERM HUP; sleep 60; sleep 60) & echo done"]}
{"id":"bgstd","argv":["sh","-c","setsid sleep 60 & echo done"]}
{"id":"next","argv":["sh","-c","ls -d /proc/[0-9]* | wc -l"]}
X
ks run --tasks "$T/tasks" --workers 1
is "$rc $(js "$T/out" 'by["bg"]["stdout"] + by["bgstd"]["stdout"]')" "0 done
done" "tasks that leave children are ok"
at_most "$elapsed_ms" 10000 "and their results are not delayed (C073)"
at_most "$(js "$T/out" 'by["next"]["stdout"].strip()')" 5 "and their children are gone (C073)"

# Two workers at one time: no files, no processes of the other.
cat >"$T/tasks" <<'X'
{"id":"a","argv":["sh","-c","echo canary >/tmp/knit-a; sleep 1"]}
{"id":"b","argv":["sh","-c","sleep 0.5; ls /tmp; ls -d /proc/[0-9]* | wc -l"]}
X
ks run --tasks "$T/tasks" --workers 2
unlike "$(js "$T/out" 'by["b"]["stdout"]')" 'knit-a' "a neighbour's files are not seen"

# Limits that a task sets for itself do not stay either.
cat >"$T/tasks" <<'X'
{"id":"set","argv":["sh","-c","ulimit -n 20; ulimit -f 1; umask 077; cd /tmp; exit 0"]}
{"id":"see","argv":["sh","-c","ulimit -n; ulimit -f; umask; pwd"]}
{"id":"ref","argv":["sh","-c","ulimit -n; ulimit -f; umask; pwd"]}
X
ks run --tasks "$T/tasks" --workers 1
is "$(js "$T/out" 'by["see"]["stdout"] == by["ref"]["stdout"] and "\n20\n" not in "\n" + by["see"]["stdout"]')" yes "limits a task set for itself are gone"

left_after "isolation"
done_testing
