"""examples.py: one list of examples, which every launcher has to answer alike.

    examples.py lines SHOWN WRITABLE HIDDEN   the task lines of the batch
    examples.py judge LAUNCHER WHO OURS THEIRS
                                              a line for each: "ok NAME" or "not ok NAME: why"

OURS are the results of bwrap, THEIRS those of LAUNCHER; WHO is root or user. Of a result
all is compared but what is about the run and not about the task (usage, worker, layers,
lacks, policy) and those parts of a message that are times. Each example names the verdict
that it has, so that launchers which fail alike do not pass. Where a launcher cannot give the
same, the example says so with the reason, and then the results have to differ: `direct` for
everybody, `direct_user` where the caller is no root; `loose_...`: they may differ, by chance.
"""
import base64
import json
import re
import sys

NO_DIRS = "/task and /tmp are directories of the machine with names of their own"
NO_IDS = "a task has the machine's users, names and ids"
NO_PIDS = "there is no PID namespace: numbers and processes are the machine's"
NO_SHM = "there is no /dev/shm and no System V IPC"
SEEN = "what is not shown is there, and refused"
NO_GROUP = "docker's workers are in no group of ours, as those of bwrap are in a session that has one"
NO_MODES = "with the caller's uid nothing that changes modes or times is allowed"

SYS = "import ctypes,errno\nc=ctypes.CDLL(None,use_errno=True)\n" \
      "def sc(*a):\n r=c.syscall(*a)\n return 'done' if r>=0 else errno.errorcode[ctypes.get_errno()]\n"
TRY = "import os,errno\ndef t(f,*a):\n try: f(*a); print('done')\n except OSError as e: print(errno.errorcode[e.errno])\n"
X86 = dict(mount=165, unshare=272, ptrace=101, bpf=321, keyctl=250, setns=308, io_uring_setup=425, shmget=29)
ARM = dict(mount=40, unshare=97, ptrace=117, bpf=280, keyctl=219, setns=268, io_uring_setup=425, shmget=194)
NR = X86 if __import__("os").uname().machine == "x86_64" else ARM

LIST = []


def add(verdict, name, line, **differs):
    LIST.append((name, verdict, line, differs))


def argv(verdict, name, args, **more):
    differs = {k: more.pop(k) for k in list(more) if k.startswith(("direct", "oci", "loose"))}
    add(verdict, name, dict(more, argv=args), **differs)


def sh(verdict, name, text, *args, **more):
    argv(verdict, name, ["sh", "-c", text, "sh"] + list(args), **more)


def py(verdict, name, text, **more):
    argv(verdict, name, ["python3", "-S", "-c", text], **more)


def limit(**task):
    return {"task": task}


def build(shown, writable, hidden):
    # ---- how it ends ----
    argv("ok", "true", ["true"])
    for n in 1, 3, 124, 125, 126, 127, 137, 255:
        sh("exit", "exit %d" % n, "exit %d" % n)
    for s in "HUP", "KILL", "SEGV", "ABRT", "PIPE", "TERM", "XCPU":
        sh("signal", "ended by SIG" + s, "kill -%s $$; sleep 9" % s)
    sh("denied", "ended by SIGSYS", "kill -SYS $$; sleep 9")
    sh("exit", "an orphan's status is not the task's", "(sleep 0.1; exit 9) & exit 7")
    sh("ok", "a child that is left behind", "setsid sleep 60 & echo done")
    sh("ok", "SIGCHLD ignored", "trap '' CHLD; true; echo done")
    # ---- what cannot be started ----
    argv("not-found", "no such command", ["nosuch"])
    argv("not-found", "no such file", ["/nosuch/at/all"])
    argv("not-executable", "a folder", ["/usr/share"])
    argv("not-executable", "no x bit", [shown + "/plain"])
    argv("not-executable", "a damaged ELF", [shown + "/elf"])
    argv("not-executable", "no such interpreter", [shown + "/interpreter"])
    argv("ok", "a script that is shown", [shown + "/script", "a b"])
    argv("not-executable", "an argument longer than the kernel takes", ["true", "x" * 140000])
    # ---- lines ----
    add("invalid", "an unknown key", {"argv": ["true"], "argz": 1})
    add("invalid", "no argv", {})
    add("invalid", "a looser limit", {"argv": ["true"], "limits": limit(memory="64G")})
    add("invalid", "a looser time", {"argv": ["true"], "timeouts": {"hard_ms": 99999999}})
    add("invalid", "after what never was", {"argv": ["true"], "after": ["nobody"]})
    add("skipped", "after what failed", {"argv": ["true"], "after": ["exit 3"]})
    add("invalid", "a name that climbs", {"argv": ["true"], "files": {"../x": {"content": ""}}})
    # ---- streams ----
    sh("ok", "both streams", "echo out; echo err >&2; echo more")
    sh("ok", "no end of line", "printf x")
    sh("ok", "bytes", r"printf '\377\000\303('; printf '\001' >&2")
    sh("ok", "a MiB of output, cut", "seq 1 200000", limits=limit(stdout="64K"))
    sh("ok", "a MiB of errors, cut", "seq 1 200000 >&2", limits=limit(stderr="1K"))
    sh("ok", "no output wanted", "echo x; echo y >&2", limits=limit(stdout=0, stderr=0))
    sh("ok", "streams closed", "exec >&- 2>&- <&-; exit 0")
    sh("ok", "no terminal", "tty; [ -t 0 ] || [ -t 1 ] || [ -t 2 ] || echo none")
    argv("ok", "no standard input", ["cat"])
    argv("ok", "text as standard input", ["cat"], stdin="A\u00e4\n")
    argv("ok", "bytes as standard input", ["od", "-An", "-tx1"], stdin_b64="/wAB")
    argv("ok", "a MB as standard input", ["sha256sum"], stdin="0123456789\n" * 100000)
    argv("ok", "a MB as standard input that nobody reads", ["true"], stdin="0123456789\n" * 100000)
    # ---- arguments and environment ----
    argv("ok", "arguments pass exactly", ["printf", "%s|", "", "a b", "tab\tnl\n", "$HOME", "*", "\\", "-n", "\u00e4"])
    sh("ok", "an argument of 100,000 bytes", "echo ${#1}", "x" * 100000)
    sh("ok", "1000 arguments", "echo $#", *["a"] * 1000)
    sh("ok", "variables of the line", 'echo "$A-$B-$PATH"', env={"A": "1", "B": "2 \u00e4", "PATH": "/usr/bin:/bin"})
    sh("ok", "which variables there are", "env | cut -d= -f1 | sort | tr '\\n' ' '")
    sh("ok", "what they say", 'echo "$PATH $LANG $USER $SHELL"; umask; pwd -P | grep -qx "$HOME" && echo home')
    # ---- files ----
    argv("ok", "files in", ["cat", "a.txt", "d/e/b.txt"],
         files={"a.txt": {"content": "A\u00e4\n"}, "d/e/b.txt": {"content": "B\n"}})
    sh("ok", "modes of files in", "stat -c %a x r; ./x",
       files={"x": {"content": "#!/bin/sh\necho ran\n", "mode": "755"}, "r": {"content_b64": "/wAB", "mode": "400"}})
    argv("not-executable", "a file in without an x bit", ["./x"], files={"x": {"content": "#!/bin/sh\n"}})
    sh("ok", "odd names", "ls -A", files={n: {"content": ""} for n in ("a b", "-rf", ".h", "\u00e4")})
    sh("ok", "kept", "echo kept >f; mkdir d; echo deep >d/g", keep=["f", "d/g"])
    argv("ok", "taken from it", ["cat", "x", "y"], after=["kept"],
         files={"x": {"from": "kept/f"}, "y": {"from": "kept/d/g"}})
    argv("skipped", "taken, and never kept", ["true"], after=["kept"], files={"x": {"from": "kept/never"}})
    argv("ok", "kept, and not there", ["true"], keep=["nothing"])
    sh("exit", "collected", "mkdir out; echo 1 >out/a.txt; printf '\\377' >out/b.txt; echo 2 >out/c.log; exit 3",
       collect=["out/*.txt"])
    sh("ok", "collected, and no file", "ln -s /etc/passwd a; mkfifo b; mkdir c", collect=["[abc]"])
    sh("ok", "collected, and nothing there", "true", collect=["*.txt"])
    sh("ok", "an empty folder to begin in", "ls -A; echo x >x; echo y >$TMPDIR/y; cat x $TMPDIR/y")
    py("ok", "modes and times are the task's own", TRY +
       "open('x','w')\nt(os.chmod,'x',0o700)\nt(os.utime,'x',(0,0))\nt(os.link,'x','y')\nt(os.symlink,'x','z')\n",
       direct_user=NO_MODES)
    py("ok", "a hole of 100 MiB", "f=open('x','w')\nf.truncate(100<<20)\nprint(f.seek(0,2))")
    # ---- limits ----
    argv("timeout", "wall clock", ["sleep", "30"], timeouts={"hard_ms": 400})
    argv("soft-timeout", "soft wall clock", ["sleep", "30"], timeouts={"task_ms": 300})
    sh("soft-timeout", "who ignores TERM", "trap '' TERM; sleep 30; sleep 30", timeouts={"task_ms": 300, "grace_ms": 100})
    sh("soft-timeout", "who answers TERM", "trap 'echo bye; exit 0' TERM; sleep 30 & wait", timeouts={"task_ms": 400, "grace_ms": 5000})
    sh("cpu-timeout", "processor time", "while :; do :; done", limits=limit(cpu_ms=200))
    sh("cpu-timeout", "processor time of children", "while :; do /bin/true; (i=0; while [ $i -lt 9999 ]; do i=$((i+1)); done); done",
       limits=limit(cpu_ms=300))
    py("memory", "memory", "import time\nx=bytearray(400<<20)\ntime.sleep(20)", limits=limit(memory="64M"))
    py("ok", "memory within its limit", "x=bytearray(20<<20)\nprint(len(x))", limits=limit(memory="64M"))
    py("ok", "processes", "import os,time\nn=0\ntry:\n while n<99:\n  if not os.fork(): time.sleep(60)\n  n+=1\n"
       "except OSError: print(n,flush=True)\nos._exit(0)", limits=limit(pids=7),
       loose_direct_user="they are counted with all others that the caller has, as of a second ago")
    py("ok", "open files", "import os\nn=0\ntry:\n while n<999: os.dup(0); n+=1\nexcept OSError: print(n)", limits=limit(nofile=20))
    sh("signal", "the size of a file", "exec head -c 300000 /dev/zero >f", limits=limit(fsize="100K"))
    sh("ok", "limits as they are told", "cut -c1-60 /proc/self/limits | grep -v -e processes -e pending",
       limits=limit(stack="1M", nofile=100, fsize="1M", core=0), loose_oci_docker_user=NO_GROUP)
    # ---- walls ----
    py("ok", "no network", TRY + "import socket\nfor f in 2,10,16,17,40: t(socket.socket,f,1)\nt(socket.socketpair)")
    py("ok", "no socket with a path", TRY + "import socket\nt(socket.socket,1,1)",
       direct="no rule allows it there")
    py("ok", "refused calls", SYS + "for n in %s: print(sc(n,0,0,0,0,0))" % [NR[n] for n in sorted(NR) if n != "shmget"])
    py("ok", "no power", "for l in open('/proc/self/status'):\n if l[:3] in ('Cap','NoN') or l[:8]=='Seccomp:': print(l.strip())",
       direct_user="only who has privileges can take them from CapBnd, which no_new_privs makes useless")
    other = "t(os.setuid,0)\nt(os.setgid,5)\nt(os.setgroups,[0])\nt(os.chroot,'/')\nt(os.nice,-5)"
    py("ok", "no other user", TRY.replace("errno.errorcode[e.errno]", "'refused'") + other)
    py("ok", "how that is told to it", TRY + other, direct="to a namespace there is no such user, here it is not allowed")
    py("ok", "signals as they begin", "for l in open('/proc/self/status'):\n if l[:3]=='Sig' and l[:4]!='SigQ': print(l.strip())")
    sh("ok", "open files as they begin", "ls /proc/self/fd | tr '\\n' ' '; readlink /proc/self/fd/0 | cut -c1-5")
    sh("ok", "what is shown is read", "cat %s/canary; ls %s" % (shown, shown))
    sh("exit", "what is shown is not written to", "echo x 2>/dev/null >%s/new || exit 4" % shown)
    sh("ok", "what may be written to is", "echo x >%s/new-$$; cat %s/new-$$; rm %s/new-$$" % ((writable,) * 3),
       oci_docker_root="docker shows root's folders as they are, and the worker is another user")
    sh("exit", "what is not shown is not read", "cat %s/canary 2>/dev/null || exit 4" % hidden)
    sh("exit", "what is not shown is not changed", "echo x 2>/dev/null >%s/canary || exit 4" % hidden)
    py("ok", "how that is told", TRY + "t(open,'%s/canary')\nt(open,'%s/new','w')" % (hidden, shown), direct=SEEN)
    sh("ok", "no system file is written to",
       "for d in / /usr /etc /usr/bin /etc/passwd /dev /proc/sys/kernel/hostname; do "
       "{ echo x >>$d/x || echo x >>$d; } 2>/dev/null && echo wrote $d; done; true")
    sh("ok", "devices", "head -c 3 /dev/zero | od -An -tx1; echo x >/dev/null; head -c 2 /dev/urandom | wc -c; [ -e /dev/sda ] || [ -r /dev/mem ] || echo no")
    sh("ok", "no process outside", "kill -0 1 2>/dev/null || kill -0 $PPID 2>/dev/null || echo no")
    py("ok", "its own name and pid", "import os\nprint(os.uname().nodename,os.getpid(),os.getuid(),os.getgid())", direct=NO_IDS)
    sh("ok", "where it is", "pwd; echo $HOME $TMPDIR", direct=NO_DIRS)
    sh("ok", "/tmp by its name", "echo x >/tmp/x && cat /tmp/x", direct=NO_DIRS)
    sh("ok", "processes in /proc", "ls /proc | grep -c '^[0-9]' | awk '{print $1<6}'", direct=NO_PIDS)
    sh("ok", "/dev/shm", "echo x >/dev/shm/x && cat /dev/shm/x", direct=NO_SHM)
    py("ok", "System V memory", SYS + "print(sc(%d,1,100,0o1600))" % NR["shmget"], direct=NO_SHM,
       loose_oci_docker_user=NO_GROUP)
    more = len(open("/proc/net/dev").readlines()) > 3 # than a heading and lo
    sh("ok", "devices of the network", "tail -n +3 /proc/net/dev | cut -d: -f1", direct="the machine's are seen" if more else None)


ABOUT_THE_RUN = {"usage", "worker", "layers", "lacks", "policy"}


def of_task(r):
    r = {k: v for k, v in r.items() if k not in ABOUT_THE_RUN}
    if isinstance(r.get("error"), str):
        r["error"] = re.sub(r"[\d.,]+ (ms|s|MiB|KiB|bytes)\b", r"N \1", r["error"])
    return r


def load(path):
    with open(path, encoding="utf-8") as f:
        return {r["id"]: r for r in map(json.loads, f)}


def short(x):
    s = repr(x)
    return s if len(s) < 160 else s[:100] + "..." + s[-50:]


def differences(a, b):
    return "; ".join("%s: %s, %s" % (k, short(a.get(k)), short(b.get(k)))
                     for k in sorted(set(a) | set(b)) if a.get(k) != b.get(k))


def judge(launcher, who, ours, theirs):
    ours, theirs = load(ours), load(theirs)
    kinds = [launcher.replace(":", "_"), launcher.replace(":", "_") + "_" + who]
    for name, verdict, _, differs in LIST:
        a, b = ours.get(name), theirs.get(name)
        why = differs.get(kinds[0]) or differs.get(kinds[1])
        loose = differs.get("loose_" + kinds[0]) or differs.get("loose_" + kinds[1])
        if a is None or b is None:
            bad = "no result"
        elif a["verdict"] != verdict:
            bad = "bwrap: %s, not %s: %s" % (a["verdict"], verdict, short(a))
        else:
            d = None if loose and a["verdict"] == b["verdict"] else differences(of_task(a), of_task(b))
            bad = d if not why else None if d else "the same, and listed as different: " + why
        if bad:
            print("not ok %s: %s" % (name, bad))
        else:
            print("ok %s%s" % (name, ": differs: " + why if why else ": may differ: " + loose if loose else ""))
    for name in set(ours) ^ set(theirs):
        print("not ok %s: only of one" % name)


def main():
    if sys.argv[1] == "lines":
        build(*sys.argv[2:5])
        for name, _, line, _ in LIST:
            print(json.dumps(dict(line, id=name)))
    else:
        build("", "", "")
        judge(*sys.argv[2:6])


main()
