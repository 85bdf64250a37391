#!/bin/sh
# hostile.t: every program of this folder, each ending as its header says.
#
# One row a run: what it was expected to end as, what it said, how it was judged from
# outside. ESCAPE anywhere is a failure, and so is INCONCLUSIVE unless
# inconclusive.txt lists it with a reason.
. "$(dirname "$0")/../lib/tap.sh"
H=$B/hostile
if [ ! -x "$H/fork_bomb" ]; then
	echo "Bail out! no programs in $H; build them with: make tests"
	exit 1
fi
mkdir "$T/h" "$T/mark"
cp "$H"/* "$t_top/tests/hostile/"*.py "$T/h/" 2>/dev/null
chmod 755 "$T/h" "$T/h/"*
chmod 777 "$T/mark"
KNIT_TEST_SECRET=canary-of-the-supervisor
export KNIT_TEST_SECRET
sum_before=$(sha256sum "$KS_REAL" "$(command -v bwrap)")
free_before=$(df -Pk "$T" | awk 'END {print $4}')
left_before

# Limits that an ordinary user gets without a cgroup too, from the watching supervisor.
cat >"$T/small.json" <<'X'
{"version": 1, "extends": "default",
 "allow_degraded": ["cgroup.memory", "cgroup.pids", "cgroup.cpu"],
 "limits": {"task": {"memory": "64M", "pids": 64, "fsize": "64M"}}}
X

sed 's/default/judge/' "$T/small.json" >"$T/judge.json"
: >"$T/matrix"
judge_row() { # WANT NAME ARGS..., from rc, $T/out, $T/report, left
	want=$1 name=$2
	shift 2
	said=$(out | grep -Eo '^(ESCAPE|BLOCKED|PENDING|INCONCLUSIVE|WORKS|BROKEN)' | tail -n 1)
	verdict=$(verdict 2>/dev/null | tail -n 1)
	got=$verdict
	[ "$verdict" = ok ] && got=${said:-nothing}
	[ "$verdict" = exit ] && got=${said:-exit}
	if [ "$got" = INCONCLUSIVE ] && grep -q "^$name	" "$t_top/tests/hostile/inconclusive.txt"; then
		want="$want INCONCLUSIVE"
	fi
	row=$(printf '%-18s %-34s %-13s %-14s left %s  %s ms' "$name" "$*" "${said:--}" "$verdict" "$left" "$elapsed_ms")
	case " $want " in
	*" $got "*) word=yes ;;
	*) word=NO ;;
	esac
	[ "$left" = 0 ] && [ "$hung" = 0 ] || word=NO
	echo "$row  $word" >>"$T/matrix"
	if [ $word = yes ]; then
		pass "$name $*: $got"
	else
		fail_because "want: $want, got: $got, left: $left ($left_names), hung: $hung
$(out | cut -c1-300 | tail -n 3)$(t_stderr)" "$name $*: $want"
	fi
	rm -f "$T/report"
}
# h "WANT..." "OPTIONS OF run" NAME ARGS...
h() {
	want=$1 opts=$2 name=$3
	shift 3
	watch_opts="--limit 60"
	case $name in
	*.py) set -- "$want" "$name" python3 "/h/$name" "$@" ;;
	*) set -- "$want" "$name" "/h/$name" "$@" ;;
	esac
	h_want=$1 h_name=$2
	shift 2
	set -f # the options hold patterns of their own
	# shellcheck disable=SC2086
	ks run --report "$T/report" --env "KNIT_SLOW=${KNIT_SLOW:-1}" --ro-bind "$T/h:/h" $opts -- "$@"
	set +f
	[ "$1" = python3 ] && shift
	shift
	judge_row "$h_want" "$h_name" "$@"
}
small="--policy $T/small.json"

# ---- processes and time ----
h BLOCKED "$small" fork_bomb --limit 256
h BLOCKED "$small" fork_bomb --full
h BLOCKED "" fork_bomb --full
h BLOCKED "$small" thread_bomb --limit 256
h BLOCKED "$small" thread_bomb --full
h timeout "--timeout $(scaled 500)ms" ignore_signals --grace "$(scaled 2)"
h timeout "--timeout $(scaled 500)ms" ignore_signals --full
h timeout "--timeout $(scaled 500)ms" sigstop_self --full
h soft-timeout "--set /timeouts/task_ms=$(scaled 300) --timeout $(scaled 20)s" ignore_signals --full
h cpu-timeout "--cpu-time $(scaled 500)ms --timeout $(scaled 30)s" cpu_spin --cpu "$(scaled 5)"
h cpu-timeout "--cpu-time $(scaled 500)ms --timeout $(scaled 30)s" cpu_spin --full
h cpu-timeout "--cpu-time $(scaled 500)ms --timeout $(scaled 30)s" cpu_spin --cpu "$(scaled 5)" --mode fork
h cpu-timeout "--cpu-time $(scaled 200)ms --timeout $(scaled 30)s" cpu_spin --cpu "$(scaled 20)" --mode orphan
# The kernel keeps no account of these.
h cpu-timeout "--cpu-time $(scaled 500)ms --timeout $(scaled 60)s" cpu_spin --cpu "$(scaled 5)" --mode forget
h cpu-timeout "--cpu-time $(scaled 500)ms --timeout $(scaled 60)s" cpu_spin --cpu "$(scaled 5)" --mode forget --each 1
h BLOCKED "" kill_all
h PENDING "" kill_all --full

survivor() { # NAME: nobody wrote the marker
	pause 1500
	is "$("$H/daemonize_escape" --check "$T/mark/m" | cut -d: -f1)" BLOCKED "daemonize_escape $1: no descendant outlived the task"
	rm -f "$T/mark/m"
}
h PENDING "--bind $T/mark:/mark" daemonize_escape --marker /mark/m --delay "$(scaled 1)"
survivor "after a normal end"
h PENDING "--bind $T/mark:/mark" daemonize_escape --marker /mark/m --keep-stdio --delay "$(scaled 1)"
survivor "--keep-stdio"
for o in "" --keep-stdio; do # of one that would go on for half a minute
	# shellcheck disable=SC2086
	ks run --bind "$T/mark:/mark" --ro-bind "$T/h:/h" -- /h/daemonize_escape --marker /mark/m $o --delay "$(scaled 30)"
	at_most "$elapsed_ms" 20000 "daemonize_escape $o: the result does not wait for the daemon"
done
h timeout "--bind $T/mark:/mark --timeout $(scaled 400)ms" daemonize_escape --marker /mark/m --hold-parent --delay "$(scaled 1)"
survivor "after its deadline"
watch_opts="--at 500:KILL"
ks run --bind "$T/mark:/mark" --ro-bind "$T/h:/h" -- /h/daemonize_escape --marker /mark/m --hold-parent --delay "$(scaled 1)"
is "$left" 0 "daemonize_escape: the supervisor is SIGKILLed: nothing left"
survivor "after SIGKILL of the supervisor"

# kill_all beside neighbours: theirs are ok.
"$PY" - >"$T/tasks" <<'X'
import json
for i in range(6):
    print(json.dumps({"id": "k%d" % i, "argv": ["/h/kill_all", "--full"]}))
    print(json.dumps({"id": "n%d" % i, "argv": ["sh", "-c", "sleep 0.3; echo fine"]}))
print(json.dumps({"id": "bomb", "argv": ["/h/fork_bomb", "--full"]}))
for i in range(6):
    print(json.dumps({"id": "l%d" % i, "argv": ["python3", "/h/legit_task.py"]}))
X
ks run --tasks "$T/tasks" --ro-bind "$T/h:/h" --workers 4
is "$(js "$T/out" 'sorted({by["n%d" % i]["verdict"] for i in range(6)})')" "['ok']" "kill_all: neighbours alive"
is "$(js "$T/out" 'sorted({by["k%d" % i]["verdict"] for i in range(6)})')" "['ok']" "kill_all: a verdict of its own"
# (an image has no entry for the task's user, which it asks for)
works=WORKS
[ -z "${KNIT_IMAGE:-}" ] || works='BROKEN: identity (KeyError'
is "$(js "$T/out" "[by['l%d' % i]['stdout'].startswith('$works') for i in range(6)] == [True] * 6")" yes "fork_bomb: neighbours work (C088)"

# ---- amounts ----
h "BLOCKED memory" "$small" mem_hog --mib 256
h "BLOCKED memory" "$small" mem_hog --full
h "BLOCKED memory" "$small" mem_hog --mib 256 --split 8
h "BLOCKED memory" "$small" memfd_hog --mib 512
h "BLOCKED memory" "$small" memfd_hog --full
for how in anon part zero; do
	h "BLOCKED memory" "$small" shared_hog --mib 512 --mode $how
done
h "BLOCKED memory" "$small" shared_hog --full
h BLOCKED "--timeout $(scaled 60)s" tmpfs_filler --mib 512 --files 100000
h "BLOCKED memory" "--timeout $(scaled 60)s" tmpfs_filler --full
h "BLOCKED memory" "$small --set /filesystem/mounts=[{\"tmpfs\":\"/tmp\",\"size\":\"32M\"},{\"tmpfs\":\"/dev/shm\",\"size\":\"32M\"},{\"tmpfs\":\"/task\",\"size\":\"32M\"}]" tmpfs_filler --mib 64 --files 0
h BLOCKED "" fd_hog --n 100000
h BLOCKED "" fd_hog --full
h BLOCKED "$small" sparse_file
h BLOCKED "$small" sparse_file --full
h BLOCKED "$small --collect sparse.out --out-dir $T/tmp/out" sparse_file --full --keep
rm -rf "$T/tmp/out"
free_after=$(df -Pk "$T" | awk 'END {print $4}')
at_most $((free_before - free_after)) 262144 "the host's file system lost no space"

# output_flood: a cap of its own in a batch; killed or cut, and always valid JSON.
cat >"$T/kill.json" <<'X'
{"version": 1, "extends": "default", "on_output_limit": "kill"}
X
printf '{"id":"f","argv":["/h/output_flood","--kib","4096"],"limits":{"task":{"stdout":"64K","stderr":"64K"}}}\n{"id":"full","argv":["/h/output_flood","--full","--kib","1000000000"],"limits":{"task":{"stdout":"64K","stderr":"64K"}},"timeouts":{"hard_ms":%d}}\n{"id":"one","argv":["/h/output_flood","--kib","1"]}\n' "$(scaled 1000)" >"$T/tasks"
ks run --tasks "$T/tasks" --ro-bind "$T/h:/h" --workers 2
is "$(js "$T/out" 'by["f"]["stdout_truncated"] and len(raw(by["f"])) <= 65 * 1024')" yes "output_flood: captured bytes stop at the limit"
is "$(js "$T/out" 'by["full"]["verdict"]')" timeout "output_flood --full: meets its deadline, not its end"
is "$(js "$T/out" 'raw(by["one"])[:6] == b"\0\xff\xfe\xc3(\xe2"')" yes "output_flood: raw bytes arrive (C104)"
at_most "$maxrss_kb" 65536 "output_flood: the supervisor's memory is bounded (C106)"
echo "output_flood       --kib 4096, --full (cut)           JSON valid    $(js "$T/out" 'by["full"]["verdict"]')        left $left  $elapsed_ms ms" >>"$T/matrix"
ks run --policy "$T/kill.json" --tasks "$T/tasks" --ro-bind "$T/h:/h" --workers 2
is "$(js "$T/out" 'by["f"]["verdict"], by["full"]["verdict"]')" "('output-limit', 'output-limit')" "output_flood: killed where the policy says kill"

# ---- other processes and descriptors ----
h BLOCKED "" ptrace_parent
h BLOCKED "" proc1_peek --secret KNIT_TEST_SECRET
h BLOCKED "" exit_forge
h BLOCKED "" exit_forge --full
h BLOCKED "" self_exe
h BLOCKED "" self_exe --full
h BLOCKED "" fd_leak_arena
h BLOCKED "" fd_leak_arena --full
h ESCAPE "" fd_leak_arena --selftest
diag "(the last one leaks to itself, to prove that its scan finds something)"
exec 9<"$T/matrix"
h BLOCKED "" fd_leak_arena --full --slice 0
exec 9<&-
printf '#!/proc/self/exe\n' >"$T/h/self.sh"
chmod 755 "$T/h/self.sh"
ks run --report "$T/report" --ro-bind "$T/h:/h" -- /h/self.sh run -- true
is_any "$(verdict)" "not-executable not-found exit signal denied" "#!/proc/self/exe does not run the launcher again"
rm -f "$T/report"
is "$(sha256sum "$KS_REAL" "$(command -v bwrap)")" "$sum_before" "program and bwrap are unchanged"

# ---- kernel doors ----
h BLOCKED "" syscall_probe
h BLOCKED "" syscall_probe --compat
h BLOCKED "" syscall_probe --only io_uring_setup
h BLOCKED "" abi_bypass
h BLOCKED "" mount_attempt
h BLOCKED "" setuid_attempt
h BLOCKED "" raw_socket
h "BLOCKED denied" "--policy $T/judge.json" raw_socket
h BLOCKED "" tiocsti
if command -v script >/dev/null; then
	# On a terminal: its own pty, nothing typed into the caller's.
	script -qec "$KS run --ro-bind $T/h:/h -- /h/tiocsti" /dev/null >"$T/tty" 2>&1
	like "$(cat "$T/tty")" 'BLOCKED' "tiocsti on a terminal (C057, C047)"
	echo "tiocsti            on a terminal                      $(grep -Eo 'BLOCKED|ESCAPE|INCONCLUSIVE' "$T/tty" | head -n 1)" >>"$T/matrix"
else
	skip "no script(1) here" "tiocsti on a terminal"
fi
if [ -n "$root" ]; then
	# What works for a capable host uid must not work from a worker of root either.
	h BLOCKED "--policy python --workers 1" syscall_probe
	h "BLOCKED denied" "--policy strict" syscall_probe
fi

# ---- files and pipes ----
h PENDING "--collect * --collect */* --out-dir $T/tmp/out --timeout $(scaled 20)s" out_tricks.py
mkdir -p "$T/tmp/out"
is "$("$PY" "$T/h/out_tricks.py" --check "$T/tmp/out" --canary canary-of-the-supervisor | cut -d: -f1)" BLOCKED "out_tricks: the collected copy is clean"
chmod -R u+rwx "$T/tmp/out"
rm -rf "$T/tmp/out"

# ---- ordinary ----
if [ -z "${KNIT_IMAGE:-}" ]; then
	h WORKS "" legit_task.py
	cat >"$T/python.json" <<-'X'
		{"version": 1, "extends": "python", "allow_degraded": ["cgroup.memory", "cgroup.pids", "cgroup.cpu"]}
	X
	h WORKS "--policy $T/python.json" legit_task.py
	command -v git >/dev/null && h WORKS "" legit_task.py --git
else
	not_here "legit_task.py asks for its user, of which an image knows nothing"
fi

sed 's/^/# /' "$T/matrix"
if [ -n "${HARNESS_ACTIVE-}" ]; then # prove shows only failures: the matrix on stderr
	cat "$T/matrix" >&2
fi
left=0
left_after "hostile programs"
done_testing
