#!/bin/sh
# 30-cases.t: failures that similar systems had (cases.txt), those that no other script
# shows; and that the list names a test for each, which is there.
. "$(dirname "$0")/../lib/tap.sh"
left_before
mkdir "$T/t"
chmod 755 "$T" "$T/t"

# ---- the list ----
rotten=$(cd "$t_top" && grep -v '^#' tests/hostile/cases.txt | while IFS='	' read -r id where what; do
	[ "$where" = - ] && continue
	grep -Eq -- "$what" "$where" 2>/dev/null || echo "$id: $where has no $what"
done)
is "$rotten" "" "each case is shown where cases.txt says"
is "$(grep -v '^#' "$t_top/tests/hostile/cases.txt" | cut -f1 | sort | uniq -d)" "" "each case stands there once"
echo "# $(grep -v '^#' "$t_top/tests/hostile/cases.txt" | grep -vc '	-	') cases shown; not possible yet:" >&2
grep '	-	' "$t_top/tests/hostile/cases.txt" | sed 's/	-	/: /; s/^/#   /' >&2

# ---- files ----
if [ -z "$root" ]; then
	# C006: what the caller may not enter cannot be entered through him either.
	ks run --ro-bind /root:/r -- ls -A /r
	ok "a folder that the caller may not read: refused (C006)" test $rc -ne 0
	is "$(out)" "" "and empty (C006)"
else
	not_here "C006: root shows what root may enter"
fi
ks run --ro-bind "$T/nowhere:/n" -- true
is $rc 125 "a bind that is not there: refused, not left out (C144)"
like "$(err)" 'nowhere' "and named (C144)"
printf '{"version":1,"pool":{"kind":"stream"}}' >"$T/later.json"
ks run --policy "$T/later.json" -- true
is $rc 125 "a rule that this version does not know is refused, not dropped"
like "$(err)" 'pool/kind' "and named"
if command -v git >/dev/null; then
	mkdir "$T/tree"
	(cd "$T/tree" && git init -q . && echo x >f && git add f && git -c user.name=n -c user.email=e commit -qm one) >/dev/null 2>&1
	[ -n "$root" ] && chmod -R a+rX "$T/tree"
	ks run --bind "$T/tree:/w" --workdir /w -- sh -c 'test -f f'
	is "$rc $(cd "$T/tree" && git status --porcelain)" "0 " "a work tree is as it was (C008)"
	rm -rf "$T/tree"
else
	skip "no git here" "a work tree is as it was (C008)"
fi
# C011: a destination that is, or leads through, a link of the base.
mkdir "$T/src"
echo inside >"$T/src/f"
chmod -R a+rX "$T/src"
for at in /bin/x /usr/share/knit-c011; do
	ks run --ro-bind "$T/src:$at" -- sh -c "cat $at/f"
	case $rc in
	0) is "$(out)" inside "a bind at $at: there (C011)" ;;
	125) one_clear_line "$at|${at%/*}" "a bind at $at (C011)" ;;
	*) fail "a bind at $at (C011): status $rc" ;;
	esac
	ok "a bind at $at: nothing is made on the host (C011)" test ! -e /bin/x -a ! -e /usr/share/knit-c011
done
# C012: flags of a mount of the host are not lost on the way.
cat >"$T/flags.sh" <<'X'
set -e
mkdir -p "$1/m"
mount -t tmpfs -o noexec,nosuid,nodev none "$1/m"
cp /bin/true "$1/m/true"
chmod 755 "$1/m" "$1/m/true"
"$2" run --ro-bind "$1/m:/m" -- sh -c 'grep " /m " /proc/self/mountinfo | cut -d" " -f6; /m/true && echo ran; true'
X
# shellcheck disable=SC2086
[ -z "$own_mounts" ] || watched $own_mounts sh "$T/flags.sh" "$T" "$KS"
if [ -z "$own_mounts" ]; then
	not_here "mounts that only we see"
elif grep -q 'userns.py\|mount: ' "$T/err"; then
	skip "no mounts of one's own here: $(head -n 1 "$T/err")" "mount flags are kept (C012)"
else
	like "$(out)" '^ro.*noexec' "a read-only bind of a noexec mount stays noexec (C012)"
	like "$(out)" 'nosuid' "and nosuid (C012)"
	like "$(out)" 'nodev' "and nodev (C012)"
	unlike "$(out)" '^ran' "nothing is executed there (C012)"
fi
# C016: links of the base are links inside.
for l in /bin /lib64 /lib; do
	[ -L "$l" ] || continue
	ks run -- readlink "$l"
	is "$(out)" "$(readlink "$l")" "$l is the link that it is outside (C016)"
done
ks run -- /bin/sh -c true
is $rc 0 "/bin/sh (C016)"
# C020: binds without number.
long=$(printf '%0200d' 0)
mkdir -p "$T/many/$long"
"$PY" - "$T" "$long" <<'X'
import json, os, sys
t, long = sys.argv[1:]
mounts = []
for i in range(3000):
    p = "%s/many/%s/%d" % (t, long, i)
    open(p, "w").close()
    mounts.append({"bind": p, "at": "/b/%d" % i, "mode": "ro"})
for n in (200, 3000):
    with open("%s/many%d.json" % (t, n), "w") as f:
        json.dump({"version": 1, "extends": "default", "filesystem": {"mounts": mounts[:n]}}, f)
X
chmod -R a+rX "$T/many"
ks run --policy "$T/many200.json" -- test -f /b/199
is $rc 0 "200 binds with long names (C020)"
ks run --policy "$T/many3000.json" -- test -f /b/2999
case $rc in
0) pass "3000 binds with long names (C020)" ;;
*)
	is $rc 125 "3000 binds with long names: refused (C020)"
	one_clear_line '[0-9]+' "3000 binds: the limit is named (C020)"
	;;
esac
rm -rf "$T/many"

# ---- system calls ----
if command -v tar >/dev/null; then
	ks run -- sh -c 'mkdir a && echo x >a/f && chmod 640 a/f && chmod 711 a && tar cf t a && rm -r a && tar xpf t && stat -c %a a a/f'
	is "$rc $(out | tr '\n' ' ')" "0 711 640 " "tar sets modes (C042)"
fi
# A static program of another ABI, made by hand: exit(0) by int 0x80.
"$PY" - "$T/t/i386" <<'X'
import struct, sys
code = bytes([0x31, 0xdb, 0xb8, 1, 0, 0, 0, 0xcd, 0x80])
base = 0x08048000
head = b"\x7fELF\1\1\1" + bytes(9) + struct.pack("<HHIIIIIHHHHHH", 2, 3, 1, base + 84, 52, 0, 0, 52, 32, 1, 0, 0, 0)
prog = struct.pack("<IIIIIIII", 1, 0, base, base, 84 + len(code), 84 + len(code), 5, 4096)
open(sys.argv[1], "wb").write(head + prog + code)
X
chmod 755 "$T/t/i386"
if [ "$(uname -m)" = x86_64 ]; then
	ks run --report "$T/report" --ro-bind "$T/t:/t" -- /t/i386
	is_any "$(verdict)" "denied signal ok not-executable" "a 32-bit program: a clean end (C043)"
	diag "it is: $(verdict), status $rc"
	rm -f "$T/report"
fi
pol() { # NAME RULES: policy $T/NAME.json
	printf '{"version":1,"extends":"default","seccomp":{%s}}' "$2" >"$T/$1.json"
}
pol same '"rules":[{"names":["ptrace"],"action":"SCMP_ACT_ERRNO","errnoRet":1},{"names":["ptrace"],"action":"SCMP_ACT_ERRNO","errnoRet":1}]'
ks run --policy "$T/same.json" -- true
is $rc 0 "a rule that says nothing new is no error (C051)"
# C054: one of several processes does what is answered by a kill; its parent waits for it.
pol kill '"rules":[{"names":["mlockall"],"action":"SCMP_ACT_KILL_PROCESS"}]'
cat >"$T/t/kill.py" <<'X'
import ctypes, os
r, w = os.pipe()
if os.fork() == 0:
    os.close(r)
    ctypes.CDLL(None).mlockall(1)
    os.write(w, b"x")
    os._exit(0)
os.close(w)
print("got", os.read(r, 1), os.wait()[1])
X
chmod 644 "$T/t/kill.py"
ks run --policy "$T/kill.json" --timeout 20s --report "$T/report" --ro-bind "$T/t:/t" -- python3 /t/kill.py
at_most "$elapsed_ms" 15000 "a child is killed by a rule: its parent does not wait for ever (C054)"
is_any "$(verdict)" "denied ok signal" "and the task has an end of its own (C054)"
like "$(out)$(verdict)" "got b'' 31|denied|signal" "nothing of the call was done (C054)"
rm -f "$T/report"
# C056: more than a filter holds.
"$PY" - "$T/huge.json" <<'X'
import json, sys
names = ["read", "write", "ioctl", "fcntl", "lseek", "prctl", "socket", "mmap", "mprotect", "futex"]
rules = [{"names": [n], "action": "SCMP_ACT_ERRNO", "errnoRet": 1,
          "args": [{"index": k, "value": 7000000 + i * 64 + k, "op": "SCMP_CMP_EQ"} for k in range(6)]}
         for n in names for i in range(60)]
json.dump({"version": 1, "extends": "default", "seccomp": {"rules": rules}}, open(sys.argv[1], "w"))
X
ks run --policy "$T/huge.json" -- grep Seccomp: /proc/self/status
case $rc in
0) like "$(out)" '2$' "600 rules with six arguments: all of the filter is there (C056)" ;;
*)
	is $rc 125 "600 rules with six arguments: refused (C056)"
	one_clear_line 'filter|instruction|rules' "and says what is too much (C056)"
	;;
esac

# ---- terminals ----
if command -v script >/dev/null; then
	script -qec "stty rows 33 cols 77; $KS run -- stty size" /dev/null >"$T/tty" 2>&1 </dev/null
	wait_lines "$T/tty" 1 # script(1) may end before what it copies is there
	like "$(tr -d "\000" <"$T/tty")" '33 77' "a terminal inside has the size of the one outside (C058)"
else
	skip "no script(1) here" "a terminal inside has the size of the one outside (C058)"
fi
esc=$(printf '\033]0;evil\007')
ks run -- "/no/$esc"
is "$(LC_ALL=C tr -d '\n\t -~' <"$T/err" | wc -c)" 0 "control bytes in a name do not get to the terminal (C108)"
printf '{"id":"a\\u001b]0;evil\\u0007","argv":["/no/\\u001b[2J"]}\n' >"$T/tasks"
ks run --tasks "$T/tasks"
is "$(cat "$T/out" "$T/err" | LC_ALL=C tr -d '\n\t -~' | wc -c)" 0 "nor those of an id (C108)"

# ---- network ----
"$PY" - "$T" <<'X' &
import os, socket, sys, time
b = socket.socket(socket.AF_UNIX); b.bind("\0knit-c064-" + os.path.basename(sys.argv[1])); b.listen()
time.sleep(10)
X
listener=$!
sleep 0.5
ks run --network host -- python3 -c "
import socket
try:
    s = socket.socket(socket.AF_UNIX); s.connect('\0knit-c064-$(basename "$T")'); print('connected')
except OSError as e:
    print('refused')"
kill $listener
wait $listener 2>/dev/null
if [ "$(out)" = connected ]; then
	ok "the network of the machine has its abstract sockets, and the manual says so (C064)" \
		grep -q 'abstract sockets of its programs included' "$t_top/man/knit-sandbox.1"
else
	is "$(out)" refused "abstract sockets of the machine are refused (C064)"
fi
if command -v strace >/dev/null && strace -f -o /dev/null -e trace=getppid true 2>/dev/null; then
	watched strace -f -o "$T/strace" -e trace=sendto -e inject=sendto:error=EPERM "$KS" run -- echo fine
	if grep -q INJECTED "$T/strace"; then
		case $rc in
		0) is "$(out)" fine "no address for lo: a task that needs none runs (C067)" ;;
		*)
			is $rc 125 "no address for lo: 125 (C067)"
			one_clear_line 'loopback' "no address for lo (C067)"
			;;
		esac
	else
		diag "nobody sets an address of lo here (C067)"
	fi
else
	skip "no strace here" "no address for lo (C067)"
fi

# ---- processes and time ----
ks run -- python3 -c '
import os
got = []
for what, f in (("fifo", lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))),
                ("rr", lambda: os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))),
                ("nice", lambda: os.setpriority(os.PRIO_PROCESS, 0, -5))):
    try:
        f()
        got.append(what)
    except OSError:
        pass
print(got or "BLOCKED")'
is "$(out)" BLOCKED "no realtime class, no priority above its own (C065)"
# C081: tasks that end just as they are killed, beside processes of the same user.
canaries=
for _ in 1 2 3 4 5 6 7 8; do
	sleep 120 &
	canaries="$canaries $!"
done
"$PY" - >"$T/tasks" <<'X'
import json
for i in range(200):
    print(json.dumps({"id": "t%d" % i, "argv": ["sleep", "0.04"], "timeouts": {"hard_ms": 41 + i % 5}}))
X
ks run --tasks "$T/tasks" --workers 4
is "$(js "$T/out" 'len(by), set(r["verdict"] for r in L) <= {"ok", "timeout"}')" "(200, True)" "200 deadlines that race an end"
# shellcheck disable=SC2086
ok "and no stranger was killed (C081)" kill -0 $canaries
# shellcheck disable=SC2086
kill $canaries
# C118: tasks one by one, so that each meets a pool that goes to sleep.
# (Where a task may take a second by itself only the supervisor's own count tells.)
n=$((${KNIT_SCALE:-1500} < 1500 ? ${KNIT_SCALE:-1500} : 1500))
"$PY" - "$KS" $n "$T/bells" "${KNIT_SLOW:-1}" >"$T/late" <<'X'
import json, subprocess, sys, time
p = subprocess.Popen([sys.argv[1], "run", "--quiet", "--workers", "2", "--report", sys.argv[3], "--tasks", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
worst, slow, n = 0, 0, int(sys.argv[2])
for i in range(n):
    start = time.monotonic()
    p.stdin.write((json.dumps({"id": "t%d" % i, "argv": ["/bin/true"]}) + "\n").encode())
    p.stdin.flush()
    got = json.loads(p.stdout.readline())
    assert got["id"] == "t%d" % i and got["verdict"] == "ok", got
    took = time.monotonic() - start
    worst = max(worst, took)
    slow += took > 0.9  # the watchdog looks after a second
    time.sleep(i % 3 * 0.0005)
p.stdin.close()
print(p.wait(), slow < 4 or sys.argv[4] != "1", "%.0f ms" % (worst * 1000))
X
like "$(cat "$T/late")" '^0 True' "$n tasks one by one: none waits for the watchdog (C118)"
is "$(js "$T/bells" 'L[0]["doorbell_missed"]')" 0 "and the supervisor was woken for each"
rm -f "$T/bells"
diag "the slowest took $(cut -d' ' -f3- "$T/late")"
# C135: no clock that somebody may set.
is "$(cd "$t_top" && grep -nE 'CLOCK_REALTIME|gettimeofday\(|[^_a-z]time\(NULL\)' ipc/*.c sandbox/*.c sandbox/stub/*.c supervisor/*.c supervisor/core/*.c)" "" \
    "limits run by a clock that nobody can set (C135)"

# ---- hosts ----
# C146: the program is there, its loader is not.
printf '#!/nix/store/none/sh\n' >"$T/t/nix"
cp /bin/true "$T/t/dynamic"
sed -i 's|/lib64/ld-linux-x86-64.so.2|/nix64/ld-linux-x86-64.so.2|' "$T/t/dynamic"
chmod 755 "$T/t/nix" "$T/t/dynamic"
for f in nix dynamic; do
	ks run --report "$T/report" --ro-bind "$T/t:/t" -- "/t/$f"
	if [ $f = dynamic ] && [ $rc = 0 ]; then
		diag "this machine's loader has another name"
		continue
	fi
	is_any "$(verdict)" "not-executable not-found" "a missing loader is no end of the task's own: $f (C146)"
	like "$(err)" "$f" "and says which program: $f (C146)"
	rm -f "$T/report"
done
# C147: a machine without /bin/true, and with an empty PATH.
cat >"$T/bare.sh" <<'X'
set -e
for f in /bin/true /usr/bin/true /bin/echo; do mount --bind /dev/null "$f" 2>/dev/null || true; done
PATH=$2 exec "$1" run -- /bin/sh -c 'echo fine'
X
# shellcheck disable=SC2086
[ -z "$own_mounts" ] || watched $own_mounts sh "$T/bare.sh" "$KS" "$(dirname "$(command -v bwrap)")"
if [ -z "$own_mounts" ]; then
	not_here "mounts that only we see"
elif grep -q 'userns.py' "$T/err"; then
	skip "no mounts of one's own here" "a machine without /bin/true (C147)"
else
	is "$rc $(out)" "0 fine" "a machine without /bin/true (C147)"
fi

left=0
left_after "cases"
done_testing
