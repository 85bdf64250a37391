#!/bin/sh
# 41-calls.t: what `policy explain --call` says of system calls is what the kernel does,
# for every number of every ABI, asked from inside by tests/probes/calls.c; and foreign
# profiles are in force as they stand.
. "$(dirname "$0")/../lib/tap.sh"
if [ ! -x "$B/probes/calls" ]; then
	echo "Bail out! no $B/probes/calls; build it with: make tests"
	exit 1
fi
mkdir "$T/p"
cp "$B/probes/calls" "$t_top/tests/profiles/docker-20.10.json" "$T/p/"
chmod 755 "$T/p" "$T/p/calls"
left_before
case $(uname -m) in
x86_64) x86=1 ;;
*) x86= ;;
esac

# What the kernel says to all numbers in $T/kernel, what we say of them in $T/said; a
# number that either has no answer to is a difference. The way back of a probe is never
# asked about (uretprobe, uprobe), and the end of a process is its end.
cat >"$T/compare.py" <<'X'
import re, subprocess, sys
ks, policy, kernel = sys.argv[1:4]
rows = [l.split() for l in open(kernel)]
args, asked, want, bad = [], [], [], 0
absent = set(sys.argv[4].split())
for r in rows:
    if r[0] == "with":
        args = r[2:]
        continue
    if r[0] == "native" and r[1] in ("335", "336"):
        continue
    asked.append(" ".join([("" if r[0] == "native" else r[0] + ":") + r[1]] + args))
    want.append(r)
said = subprocess.run([ks, "policy", "explain", policy, "--call", "-"], text=True,
                      input="\n".join(asked) + "\n", stdout=subprocess.PIPE).stdout.splitlines()
if len(said) != len(asked) or len(asked) < 500:
    print("asked", len(asked), "told", len(said))
    sys.exit(1)
for line, q, r in zip(said, asked, want):
    action, number = re.match(r"(?:\S*number \d+|\S+) (allow|log|errno|trap|kill|kill-thread) (\d+) ", line).groups()
    made = r[-1] == "made"
    if sys.argv[5] and action == "allow" and q.startswith("i386:90 "): # mmap: flags no filter sees
        fits = r[2:4] == ["errno", "1"]
    elif action in ("kill", "trap", "kill-thread"):
        fits = r[2:4] == ["signal", "31"]
    elif action == "errno":
        fits = r[2:4] == ["errno", number]
    elif made: # made in earnest: anything but what a filter says, or a kernel without it
        fits = r[2:4] != ["errno", "38"] or r[1] in absent
    else: # allowed, and then kept by the probe from being made
        fits = r[2:4] == ["errno", "38"]
    if not fits:
        bad += 1
        if bad <= 5:
            print("#", q, "kernel:", *r[2:], "said:", line)
print("differ", bad, "of", len(asked))
X

# Calls that are made in earnest are interrupted often, and a call that somebody is asked
# about is one that can be: not where refusals are told.
told=false
earnest='echo with args; /p/calls real | sed "s/\$/ made/"'
real=$earnest
cgroup_granted && watched= || watched=1
# agree NAME POLICY "ABI ARGS"...
agree() {
	name=$1 policy=$2
	shift 2
	if [ -n "$around" ]; then
		not_here "$name: what our filter alone does"
		return
	fi
	script='for a; do set -- $a; abi=$1; shift; echo with args $*; /p/calls $abi $*; done
		'"$real"
	watch_opts="--limit 300"
	ks run --policy "$policy" --timeout 280s --set /limits/task/cpu_ms=0 \
		--set '/allow_degraded=["cgroup.memory"]' --set /seccomp/explain=$told --ro-bind "$T/p:/p" -- sh -c "$script" sh "$@"
	cp "$T/out" "$T/kernel"
	is $rc 0 "$name: the probe ran"
	"$PY" "$T/compare.py" "$KS" "$policy" "$T/kernel" "$absent" "$watched" >"$T/differ" 2>&1
	like "$(cat "$T/differ")" '^differ 0 of [0-9]+$' "$name: the kernel does what is explained"
}
# Which of them this kernel does not have: what it says where all is allowed. (Two are
# always said to be absent.)
printf '{"version":1,"seccomp":{"profile":{"defaultAction":"SCMP_ACT_ALLOW"}}}' >"$T/all.json"
ks run --policy "$T/all.json" --set /seccomp/explain=false --ro-bind "$T/p:/p" -- /p/calls real
absent=$(awk '$3 == "errno" && $4 == 38 && $2 != 435 && $2 != 437 { print $2 }' "$T/out")
zero="0 0 0 0 0 0"
odd="0x10000000 0x5412 0x440 0xe00 1 1" # new namespaces, TIOCSTI, files with set-user-id
agree default default "native $zero" "native $odd" ${x86:+"x32 $zero" "i386 $zero"}
for p in strict judge python; do
	agree $p $p "native $zero" "native $odd"
done
told=true real=
agree "default, with refusals told" default "native $zero" ${x86:+"x32 $zero"}
told=false real=$earnest
printf '{"version":1,"seccomp":{"profile":"p/docker-20.10.json"}}' >"$T/docker.json"
agree "Docker's profile" "$T/docker.json" "native $odd" ${x86:+"x32 $odd" "i386 $zero" "i386 $odd"}

# ---- profiles in force ----
ks run --policy "$T/docker.json" -- "$PY" -c '
import ctypes, os, threading
t = threading.Thread(target=print, args=("thread",)); t.start(); t.join()
libc = ctypes.CDLL(None, use_errno=True)
for nr in (237, 462, 101, 425): # mbind, mseal, ptrace, io_uring_setup
    print(nr, libc.syscall(nr, 0, 0, 0, 0, 0, 0), ctypes.get_errno())'
[ -z "$x86" ] || [ -n "$around" ] || is "$(out | tr '\n' ' ')" "thread 237 -1 1 462 -1 38 101 -1 1 425 -1 1 " \
	"Docker's profile: threads start, its default is EPERM, what is newer ENOSYS, some stays refused"
ks policy explain "$T/docker.json"
like "$(out | tr -s ' \n' ' ')" "profile says which .*docker-20.10.json" "explain names the profile"
ks policy explain judge
at_most "$(out | wc -l)" 30 "explain judge: one screen"
for w in "512 MiB" "10 seconds of the processor" "ended after 15 seconds" "Network *None" "At most 64" \
	"33 end who tries: ptrace" "/task (32 MiB" "4 MiB are kept; a task that writes more is ended; of a single command all is passed on"; do
	like "$(out | tr -s ' \n' ' ')" "$(printf %s "$w" | sed 's/(/[(]/')" "explain judge: $w"
done
ks policy explain --set /network/mode=host --set '/limits/task/memory=3M' --set '/filesystem/mounts=[{"bind":"/srv","mode":"rw"}]'
like "$(out | tr -s ' \n' ' ')" "changes, outside too: /srv.*whatever it reaches.*Memory 3 MiB" "explain: what options change"
# A reason has no greatest length.
why=$(printf '%03000d' 7)
ks policy explain --set '/seccomp/rules=[{"names":["mount"],"action":"SCMP_ACT_ERRNO","why":"'$why'"}]' --call mount
is "$(out | grep -c "^ *$why\$") $(out | wc -c | awk '{ print $1 < 3500 }')" "1 1" "explain --call: a long reason is told whole, and nothing after it"
printf '{"version":1,"seccomp":{"profile":{"defaultAction":"SCMP_ACT_ALLOW","syscalls":[
 {"names":["frobnicate"],"action":"SCMP_ACT_ALLOW"}]}}}' >"$T/odd.json"
ks policy check "$T/odd.json"
is $rc 0 "an unknown name that is allowed: accepted (C049)"
like "$(err)" 'passed over .*odd.json.*frobnicate' "and listed (C049)"
printf '{"version":1,"seccomp":{"profile":{"defaultAction":"SCMP_ACT_ALLOW","syscalls":[
 {"names":["frobnicate"],"action":"SCMP_ACT_ERRNO"}]}}}' >"$T/odd.json"
ks policy check "$T/odd.json"
is $rc 1 "an unknown name that is refused: an error (C049)"
like "$(out)" '/names/0: .*frobnicate' "with its place (C049)"
printf '{"version":1,"seccomp":{"profile":{"defaultAction":"SCMP_ACT_ERRNO"}}}' >"$T/odd.json"
ks policy check "$T/odd.json"
is $rc 1 "a policy under which nothing could start: an error"
like "$(out)" '^/seccomp: .*execve' "and says why"
pol() { # NAME SECCOMP-MEMBERS: policy $T/NAME.json
	printf '{"version":1,"extends":"default","seccomp":{%s}}' "$2" >"$T/$1.json"
}
# C052: the numbers of errors are those that were asked for.
pol errno '"profile":{"defaultAction":"SCMP_ACT_ALLOW","syscalls":[{"names":["getppid"],"action":"SCMP_ACT_ERRNO","errnoRet":38},{"names":["getpgid"],"action":"SCMP_ACT_ERRNO","errnoRet":4095}]}'
ks run --policy "$T/errno.json" -- "$PY" -c '
import os
for f, *a in ((os.getpgid, 0),):
    try: f(*a)
    except OSError as e: print(e.errno)
print(os.getppid())'
is "$(out | tr '\n' ' ')" "4095 -38 " "errnoRet of a profile (C052)"
# C051: an entry that only repeats the default.
pol same '"profile":{"defaultAction":"SCMP_ACT_ERRNO","defaultErrnoRet":1,"syscalls":[{"names":["ptrace"],"action":"SCMP_ACT_ERRNO","errnoRet":1},{"names":["execve","exit_group","write"],"action":"SCMP_ACT_ALLOW"}]}'
ks policy check "$T/same.json"
is $rc 0 "an entry of a profile that repeats its default (C051)"
# C047: an int is compared as the kernel reads it, a mask as it is written.
pol int '"rules":[{"names":["kill"],"action":"SCMP_ACT_ERRNO","errnoRet":61,"args":[{"index":1,"value":10,"op":"SCMP_CMP_EQ"}]}]'
ks run --policy "$T/int.json" -- "$PY" -c '
import ctypes, platform
if platform.machine() == "x86_64":
    libc = ctypes.CDLL(None, use_errno=True)
    for sig in (10, 10 + (1 << 32)):
        print(libc.syscall(ctypes.c_long(62), ctypes.c_long(0), ctypes.c_long(sig)), ctypes.get_errno())'
[ -z "$x86" ] || is "$(out | tr '\n' ' ')" "-1 61 -1 61 " "a rule for an int holds with upper bits set (C047)"
# What an action does.
act() { # ACTION
	pol act '"rules":[{"names":["sched_get_priority_max"],"action":"'"$1"'"}]'
	ks run --policy "$T/act.json" --timeout 20s --report "$T/report" -- "$PY" -c "$2"
}
call='import os; print(os.sched_get_priority_max(0))'
act SCMP_ACT_KILL "$call"
is "$(verdict)" denied "SCMP_ACT_KILL ends the process"
act SCMP_ACT_TRAP "$call"
is "$(verdict)" denied "SCMP_ACT_TRAP ends who does not catch it"
act SCMP_ACT_TRAP "import signal, os
def f(*a): print('caught', flush=True); os._exit(0)
signal.signal(31, f)
import ctypes
try: os.sched_get_priority_max(0)
except OSError: pass
print('on')"
like "$(out)" 'caught|on' "SCMP_ACT_TRAP can be caught"
act SCMP_ACT_KILL_THREAD "import ctypes, threading, os, time
f = ctypes.CDLL(None).sched_get_priority_max # a call that lets other threads run
t = threading.Thread(target=f, args=(0,), daemon=True); t.start()
time.sleep(0.3); print('alive', len(os.listdir('/proc/self/task')), flush=True); os._exit(0)"
is "$(out)" "alive 1" "SCMP_ACT_KILL_THREAD ends the thread alone"
act SCMP_ACT_LOG "$call"
is "$(verdict)" ok "SCMP_ACT_LOG allows"
rm -f "$T/report"

# ---- 32-bit programs (C043) ----
if [ -n "$x86" ] && [ -n "$(command -v as)" ]; then
	cat >"$T/hello.s" <<'X'
.globl _start
_start:	mov $4, %eax
	mov $1, %ebx
	mov $text, %ecx
	mov $6, %edx
	int $0x80
	mov $21, %eax
	xor %ebx, %ebx
	int $0x80
	neg %eax
	mov %eax, %ebx
	mov $1, %eax
	int $0x80
text:	.ascii "hello\n"
X
	as --32 -o "$T/hello.o" "$T/hello.s" && ld -m elf_i386 -o "$T/p/hello" "$T/hello.o"
	chmod 755 "$T/p/hello"
	ks run --report "$T/report" --ro-bind "$T/p:/p" -- /p/hello
	is "$(verdict) $(out)" "denied " "a 32-bit program: refused where the policy does not name its numbers (C043)"
	rm -f "$T/report"
	pol i386 '"architectures":["SCMP_ARCH_X86"]'
	ks run --policy "$T/i386.json" --ro-bind "$T/p:/p" -- /p/hello
	is "$rc $(out)" "1 hello" "and runs where it does, its mount() refused with EPERM (C043)"
fi

left_after "calls"
done_testing
