#!/bin/sh
# 52-direct.t: launcher direct: what holds without namespaces, what is said not to, what is
# refused; the end of everything when the supervisor, the stub or a cell's init dies.
. "$(dirname "$0")/../lib/tap.sh"
left_before
D="--launcher direct"
# Landlock keeps signals within a worker since its sixth version; before that only a uid of
# its own does, which an ordinary user's workers do not have. Truncation: since its third.
abi=$("$PY" -S -c 'import ctypes; print(ctypes.CDLL(None).syscall(444, 0, 0, 1))')
signals=EPERM parent=EPERM truncate=EACCES
[ "$abi" -ge 6 ] || parent=done
[ "$abi" -ge 6 ] || [ -n "$root" ] || signals=done
[ "$abi" -ge 3 ] || truncate=done
if [ "$signals $truncate" != "EPERM EACCES" ]; then
	ks run $D -- true
	is $rc 125 "what this kernel's Landlock leaves open: it is refused"
	[ $signals = EPERM ] || like "$(err)" 'landlock: required for /launcher/type.*has no scopes' "signals: by name"
	[ $truncate = EACCES ] || like "$(err)" 'landlock: required for /launcher/type.* empty .*files? that' "truncation: by name"
	like "$(err)" "allow_degraded=..landlock" "and how to accept it"
	D="$D --set /allow_degraded=[\"landlock\"]"
fi
mkdir "$T/w" "$T/r" "$T/outside"
# As root a task has another uid, and what it is shown must let that in.
chmod 755 "$T"
chmod 777 "$T/w" "$T/outside"
echo shown >"$T/r/f"
echo secret >"$T/outside/secret"
chmod 666 "$T/outside/secret"
cat >"$T/look.py" <<'X'
import ctypes, errno, os, resource, socket, sys
outside, caller = sys.argv[1:3]
def t(name, f):
    try:
        f()
        print(name, "done")
    except OSError as e:
        print(name, errno.errorcode[e.errno])
secret = outside + "/secret"
t("write", lambda: open(outside + "/new", "w"))
t("read", lambda: open(secret).read())
t("list", lambda: os.listdir(outside))
t("truncate", lambda: os.truncate(secret, 0))
t("rename", lambda: os.rename(secret, "mine"))
t("link", lambda: os.link(secret, "mine"))
t("chmod", lambda: os.chmod(secret, 0o600))
t("utime", lambda: os.utime(secret, (0, 0)))
t("xattr", lambda: os.setxattr(secret, "user.x", b"x"))
t("signal", lambda: os.kill(int(caller), 0))
t("parent", lambda: os.kill(os.getppid(), 0))
t("limits", lambda: resource.prlimit(int(caller), resource.RLIMIT_CPU, (1, 1)))
t("nice", lambda: os.setpriority(os.PRIO_PROCESS, int(caller), 19))
t("environ", lambda: open("/proc/%s/environ" % caller).read())
t("cwd", lambda: os.listdir("/proc/%s/cwd" % caller))
t("memory", lambda: open("/proc/%d/mem" % os.getppid(), "r+"))
t("unix", lambda: socket.socket(socket.AF_UNIX))
t("inet", lambda: socket.socket(socket.AF_INET))
t("dgram", lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM))
t("shm", lambda: open("/dev/shm/x", "w"))
t("tmp", lambda: open("/tmp/knit-no-%d" % os.getpid(), "w"))
t("pair", lambda: socket.socketpair())
t("own", lambda: open(os.environ["TMPDIR"] + "/x", "w"))
t("home", lambda: open(os.environ["HOME"] + "/x", "w"))
t("null", lambda: open("/dev/null", "r+b"))
print("cwd" if os.getcwd() == os.environ["HOME"] else os.getcwd())
X
chmod 644 "$T/look.py"
sleep 300 &
caller=$!
# shellcheck disable=SC2086
ks run $D --report "$T/report" --ro-bind "$T/look.py" -- python3 "$T/look.py" "$T/outside" $caller
kill $caller
wait $caller 2>/dev/null
is "$rc" 0 "a task runs without namespaces"
got=" $(out | tr '\n' ' ')"
for what in "write EACCES" "read EACCES" "list EACCES" "truncate $truncate" "chmod EPERM" "signal $signals" \
	"parent $parent" "limits EPERM" "nice EPERM" "xattr E(OPNOTSUPP|NOTSUP)" "unix EAFNOSUPPORT" "inet EAFNOSUPPORT" \
	"dgram EPROTONOSUPPORT" "tmp EACCES" "environ E[A-Z]+" "cwd E[A-Z]+" "memory E[A-Z]+" "shm E[A-Z]+" \
	"rename E[A-Z]+" "link E[A-Z]+" "pair done" "own done" "home done" "null done" "cwd $"; do
	like "$got" " $what" "$what"
done
[ $truncate = EACCES ] || echo secret >"$T/outside/secret"
is "$(cat "$T/outside/secret") $(ls "$T/outside")" "secret secret" "files outside are as they were"
is "$(js "$T/report" 'L[0]["layers"]["namespaces"], "machine itself" in L[0]["lacks"]["namespaces"]')" \
	"('degraded', True)" "the report says what is missing"
like "$(err)" 'without namespaces a task is on the machine itself' "and so does the start"
rm -f "$T/report"

# ---- binds, files, environment ----
# shellcheck disable=SC2086
ks run $D --bind "$T/w" --ro-bind "$T/r" -- sh -c "cat $T/r/f; echo x >$T/w/x; echo y >$T/r/y"
is "$(out) $(cat "$T/w/x")" "shown x" "binds are files where they are"
ok "read-only ones are" test ! -e "$T/r/y"
printf '%s\n' '{"id":"a","argv":["/task/go"],"files":{"go":{"content":"#!/bin/sh\necho $X >kept; echo $X","mode":"755"}},"env":{"X":"/task/sub"},"keep":["kept"]}' \
	'{"id":"b","after":["a"],"argv":["sh","-c","cat in; ls"],"files":{"in":{"from":"a/kept"}}}' >"$T/tasks"
# shellcheck disable=SC2086
ks run $D --tasks "$T/tasks" --workers 1
like "$(js "$T/out" 'by["a"]["stdout"]')" '^/.*/w0/task/sub' "a path that is /task/... is told by its name here"
is "$(js "$T/out" 'by["a"]["verdict"], by["b"]["verdict"], by["b"]["stdout"].split()[1:]')" "('ok', 'ok', ['in'])" \
	"files in and out, and nothing of the last task"

printf '%s\n' '{"id":"deep","argv":["python3","-c","import os\nfor i in range(1500): os.mkdir(\"d\"); os.chdir(\"d\")"]}' \
	'{"id":"look","after":["deep"],"argv":["ls","-a"]}' >"$T/tasks"
# shellcheck disable=SC2086
ks run $D --tasks "$T/tasks" --workers 1
is "$(js "$T/out" 'by["look"]["stdout"].split(), by["look"]["worker"]')" "(['.', '..'], 'w0')" "however deep it was"
if command -v script >/dev/null; then
	script -qec "stty rows 33 cols 77; $KS run $(echo "$D" | sed 's/"/\\"/g') --quiet -- stty size" /dev/null >"$T/tty" 2>&1 </dev/null
	like "$(cat "$T/tty")" '33 77' "a terminal of its own"
else
	skip "no script(1) here" "a terminal of its own"
fi

for policy in 1 2 6 0x40000001; do
	ks policy explain --set /launcher/type=direct --call sched_setscheduler 0 $policy
	like "$(out)" '^sched_setscheduler: refused' "a task does not make itself a real-time one ($policy)"
done

# ---- what it cannot keep is refused by name ----
no() { # ERE ARGS...
	want=$1
	shift
	ks run "$@" -- true
	is $rc 125 "refused: $want"
	like "$(err)" "$want" "by name: $want"
}
# shellcheck disable=SC2086
{
	no 'has no mounts: files are seen where they are' $D --bind "$T/w:/elsewhere"
	no '/network/allow: launcher direct' $D --allow example.com:443
	no '/identity/hostname: launcher direct' $D --set /identity/hostname=here
	no 'layer namespaces: required' $D --set '/require=["namespaces"]'
	no 'layer landlock: switched off|landlock: required' --launcher direct --set /landlock=off
}
printf '{"version":1,"launcher":{"type":"direct"},"filesystem":{"mounts":[{"bind":"%s","mode":"rw"},{"bind":"%s","mode":"ro"}]}}' \
	"$T" "$T/r" >"$T/p.json"
no 'cannot be read-only' --policy "$T/p.json"
ks run --dry-run -- true
like "$(out)" bwrap "direct is never chosen by itself"

# ---- the end ----
if [ $signals = done ]; then
	not_here "who ends whom, hostile programs: a task may end all processes of this user, this test too"
	done_testing
fi
cp "$B/hostile/daemonize_escape" "$B/hostile/fork_bomb" "$T/r/"
chmod -R a+rX "$T/r"
gone() { # WHAT
	pause 1500
	is "$("$B/hostile/daemonize_escape" --check "$T/w/m" | cut -d: -f1)" BLOCKED "no descendant outlives $1"
	rm -f "$T/w/m"
}
daemon="$T/r/daemonize_escape --marker $T/w/m --delay $(scaled 1)"
opts="$D --quiet --bind $T/w --ro-bind $T/r"
# shellcheck disable=SC2086
ks run $opts -- $daemon
is "$rc $left" "0 0" "a daemon: the result, and nothing left"
gone "its task"
watch_opts="--at 500:KILL"
# shellcheck disable=SC2086
ks run $opts -- $daemon --hold-parent
is "$left" 0 "the supervisor is killed: nothing left"
gone "the supervisor"
for who in stub init; do
	# shellcheck disable=SC2086
	"$KS_REAL" run $opts -- $daemon --hold-parent >"$T/said" 2>&1 &
	sup=$!
	try=0
	pid=
	while [ -z "$pid" ] && [ $try -lt 100 ]; do
		pause 50
		try=$((try + 1))
		for stub in $(cat /proc/$sup/task/$sup/children); do
			tr '\0' ' ' <"/proc/$stub/cmdline" | grep -q 'knit-direct-' || continue
			pid=$(cat "/proc/$stub/task/$stub/children")
			[ -z "$pid" ] || [ $who = init ] || pid=$stub
		done
	done
	pause 200
	# shellcheck disable=SC2086
	ok "there is a $who" kill -KILL $pid
	wait $sup 2>/dev/null
	gone "the $who"
done
# shellcheck disable=SC2086
ks run $D --quiet --set '/allow_degraded=["landlock","cgroup.pids","cgroup.memory","cgroup.cpu"]' --set /limits/task/pids=64 \
	--timeout "$(scaled 5000)ms" --ro-bind "$T/r" -- "$T/r/fork_bomb" --limit 256
like "$(out)" '^BLOCKED' "a fork bomb meets its limit"
is "$left" 0 "and leaves nothing"

# ---- hostile programs ----
for h in ptrace_parent "proc1_peek --secret KNIT_TEST_SECRET" exit_forge self_exe fd_leak_arena syscall_probe \
	"syscall_probe --compat" abi_bypass mount_attempt setuid_attempt raw_socket tiocsti "lease --file $T/r/f" \
	init_limits kill_all "thread_bomb --limit 600" "fd_hog --n 100000" keepers_first \
	"shm_leave --mib 8" "ipc_round --leave" "tmpfs_filler --mib 80 --files 100"; do
	cp "$B/hostile/${h%% *}" "$T/r/"
	# shellcheck disable=SC2086
	KNIT_TEST_SECRET=canary ks run $D --quiet --ro-bind "$T/r" -- "$T/r/"$h
	said=$(out | grep -Eo '^(ESCAPE|BLOCKED|PENDING|INCONCLUSIVE)' | tail -n 1)
	if grep -q "^${h%% *}	" "$t_top/tests/hostile/direct.txt"; then
		is_any "$said" "BLOCKED ESCAPE INCONCLUSIVE" "$h: listed in direct.txt"
	else
		is "$said" BLOCKED "$h"
	fi
	is "$left" 0 "$h: nothing left"
done

# ---- a map so small that workers have the uid of others ----
if [ -n "$root" ]; then
	cat >"$T/map.py" <<'X'
import ctypes, os, sys
asked, ask = os.pipe()
go, begin = os.pipe()
pid = os.fork()
if pid == 0:
    if ctypes.CDLL(None).unshare(0x10000000):
        os._exit(99)
    os.write(ask, b"x")
    os.read(go, 1)
    os.setgroups([])
    os.setresgid(0, 0, 0)
    os.setresuid(0, 0, 0)
    os.execvp(sys.argv[1], sys.argv[1:])
os.close(ask)
os.read(asked, 1)
try:
    for f in "uid_map", "gid_map":
        with open("/proc/%d/%s" % (pid, f), "w") as m:
            m.write("0 100000 40\n")
except OSError:
    pass
os.write(begin, b"x")
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
X
	cat >"$T/two.sh" <<'X'
ks=$1
shift
for id in 1 2; do
	setpriv --reuid $id --regid $id --clear-groups sleep 60 >/dev/null 2>&1 &
	service="$service $!"
done
mkfifo "$TMPDIR/begun"
chmod 666 "$TMPDIR/begun"
"$ks" run "$@" --quiet --bind "$TMPDIR/begun" -- sh -c "echo >$TMPDIR/begun; exec sleep 2" &
other=$!
read -r _ <"$TMPDIR/begun"
"$ks" run "$@" --quiet -- true || echo failed
wait $other || echo lost
for p in $service; do kill $p || echo killed; done
echo end
X
	mkdir "$T/small"
	chmod 644 "$T/map.py" "$T/two.sh"
	chown 100000:100000 "$T/small"
	chmod 755 "$T/small"
	if "$PY" -S "$T/map.py" true 2>/dev/null; then
		# shellcheck disable=SC2086
		TMPDIR=$T/small watched "$PY" -S "$T/map.py" sh "$T/two.sh" "$KS_REAL" $D
		is "$(out)" end "neither a service nor another supervisor's worker of the same uid is ended"
	else
		skip "no user namespace with a map" "uids that others have too"
	fi
else
	not_here "maps of other users' ids"
fi

# ---- in a container with the default options of docker ----
if [ -n "$root" ] && command -v runc >/dev/null; then
	mkdir "$T/runc"
	KNIT_RUNC=$T/runc KNIT_PROGRAM=$KS_REAL
	export KNIT_RUNC KNIT_PROGRAM
	watched "$PY" "$t_lib/runc_docker.py" run --rm knit-sandbox run -- true
	is $rc 125 "docker's defaults: no namespaces can be had"
	for user in "" "--user 1000"; do
		# shellcheck disable=SC2086,SC2016
		watched "$PY" "$t_lib/runc_docker.py" run --rm $user knit-sandbox run $D -- \
			sh -c 'echo fine >x && cat x; kill -9 $PPID 1'
		like "$(out)" '^fine' "docker's defaults: direct runs a task ${user:-as root}"
		like "$(err)" 'not permitted' "which reaches nobody else ${user:-as root}"
	done
	watched "$PY" "$t_lib/runc_docker.py" run --rm --user 1000 knit-sandbox doctor
	like "$(out)" '^last resort run --launcher direct works here' "doctor names it there"
elif [ -n "$root" ]; then
	lacking "no runc here" "docker's default conditions"
else
	not_here "docker's default conditions, which root makes"
fi
# What the killed supervisor left goes with the next start, and what one left that was killed
# before its folder had its name; not what somebody has locked.
mkdir "$TMPDIR/knit-new-1-abcdefabcdef" "$TMPDIR/knit-new-2-abcdefabcdef"
echo x >"$TMPDIR/knit-new-1-abcdefabcdef/f"
exec 8<"$TMPDIR/knit-new-2-abcdefabcdef"
"$PY" -S -c 'import fcntl; fcntl.flock(8, fcntl.LOCK_EX)'
# shellcheck disable=SC2086
ks run $D --quiet -- true
is "$rc $(ls "$TMPDIR")" "0 knit-new-2-abcdefabcdef" "the next start removes folders that nobody has locked"
exec 8<&-
if ! strace -o /dev/null true 2>/dev/null; then
	skip "no strace here that may trace" "a supervisor that is killed before its folder has its name"
	# shellcheck disable=SC2086
	ks run $D --quiet -- true # (removes what nobody has locked any more)
else
	# shellcheck disable=SC2086
	watched strace -o "$T/trace" -e trace=flock -e inject=flock:signal=KILL "$KS" run $D --quiet -- true
	is "$(ls "$TMPDIR" | grep -c '^knit-new-')" 2 "a supervisor is killed before its folder has its name"
	# shellcheck disable=SC2086
	ks run $D --quiet -- true
	is "$rc $(ls "$TMPDIR")" "0 " "the next start removes it"

	# ---- a worker that dies and leaves much ----
	printf '{"id":"much","argv":["python3","-S","-c","%s"]}\n{"id":"other","argv":["cat","%s/r/go"]}\n' \
		"import os,time\\nfor i in range(3000): os.mkdir(str(i))\\nopen('%s/w/done'%os.sys.argv[1],'w'); time.sleep(99)" "$T" |
		sed "s|\(time.sleep(99)\"\)|\1,\"$T\"|" >"$T/tasks"
	mkfifo "$T/r/go"
	chmod a+r "$T/r/go"
	rm -f "$T/w/done"
	# shellcheck disable=SC2086
	strace -o "$T/trace" -e trace=unlinkat,unlink,rmdir "$KS_REAL" run $D --quiet --workers 2 --bind "$T/w" --ro-bind "$T/r" \
		--tasks "$T/tasks" >"$T/out" 2>"$T/err" &
	tracer=$!
	try=0
	while [ ! -e "$T/w/done" ] && [ $try -lt 600 ]; do
		pause 50
		try=$((try + 1))
	done
	sup=$(cat /proc/$tracer/task/$tracer/children)
	sup=${sup% }
	for stub in $(cat "/proc/$sup/task/$sup/children"); do
		[ -d "$(tr '\0' '\n' <"/proc/$stub/cmdline" | grep knit-direct-)/task/2999" ] && kill -KILL "$stub"
	done
	# One after the other: it has the second name as soon as it has lost the first.
	for pat in "w*/task/2999" "gone-*"; do
		try=0
		while [ -n "$(ls -d "$TMPDIR"/knit-direct-*/$pat 2>/dev/null)" ] && [ $try -lt 600 ]; do
			pause 50
			try=$((try + 1))
		done
	done
	ok "what a dead worker left goes while the supervisor runs" kill -0 "$sup"
	echo go >"$T/r/go"
	wait $tracer
	is "$(js "$T/out" 'by["much"]["verdict"], by["other"]["stdout"]')" "('worker-lost', 'go\n')" "and tasks go on"
	at_most "$(grep -c unlink "$T/trace")" 300 "the supervisor does not remove it itself"
fi
left_after "direct"
done_testing
