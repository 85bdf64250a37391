# tests/lib/tap.sh: TAP in POSIX sh, and how to look at a run from outside.
#
# KNIT_LAUNCHER=oci:runc runs any script with workers of another launcher; what is said
# of bwrap alone is then left out by `[ -n "$bwrap" ]`; `$direct` is launcher direct.
# KNIT_IMAGE is the image they run in, which docker needs; what is said of the policy's
# /etc is left out with it.
#
# A script sources it, asserts, and ends with `done_testing`. Each script runs as
# whoever calls it (root, or an ordinary user), from the top of the checkout, with B
# the folder of the build. What does not apply to the caller is not counted but told
# with `not_here`; what should apply and cannot be done is `skip`ped with its reason,
# and KNIT_MUST_RUN=1 makes every skip a failure.
#
#   ks ARGS...         run the program; sets rc elapsed_ms left left_ms, $T/out $T/err
#   watched CMD...     the same for any command
#   ok NAME CMD...     true if CMD succeeds        is GOT WANT NAME    equal
#   like GOT ERE NAME  matches                     unlike GOT ERE NAME
#   js FILE EXPR       Python expression over L (JSON lines) and by (id -> line)
#   scaled MS          the time for a machine KNIT_SLOW times slower; pause MS: sleep so
#                      long; slowly FILE: task lines with their times scaled (grace_ms
#                      not: it may not be looser than the policy's)
#   some N...          these; every KNIT_EVERYth of them where that is set
#   wait_lines FILE N  until FILE has N lines (or 20 s are over)
#   wait_marker FILE   until it is there, wait_deaf PID N: until N processes below PID ignore
#                      all signals, as those that are at a call deaf_ms do (or 20 s are over)
#
# Judged from outside: `watched` is a child subreaper, so whatever the program leaves
# running comes back to it, zombies too.

t_lib=$(cd "$(dirname "$0")/../lib" && pwd)
t_top=$(cd "$t_lib/../.." && pwd)
t_n=0
t_failed=0
t_skipped=0
PY=/usr/bin/python3
[ -x $PY ] || PY=$(command -v python3)
if [ -z "$PY" ]; then
	echo "Bail out! no python3 to look from outside with"
	exit 1
fi
B=${B:-build/gcc}
case $B in
/*) ;;
*) B=$PWD/$B ;;
esac
KS=${KS:-$B/knit-sandbox}
if [ ! -x "$KS" ]; then
	echo "Bail out! no program $KS; build it with: make"
	exit 1
fi
root=
[ "$(id -u)" = 0 ] && root=1
bwrap= direct=
case ${KNIT_LAUNCHER:-bwrap} in bwrap) bwrap=1 ;; direct) direct=1 ;; esac
# Workers that are no children of ours, but a daemon's or nobody's; the engine is told to
# remove them, and takes its time.
case ${KNIT_LAUNCHER:-} in oci:podman | oci:docker) engine=1 ;; *) engine= ;; esac
# A filter is around us already, as in a container: what it refuses does not come to ours.
around=
grep -q '^Seccomp:[[:space:]]*0' /proc/self/status || around=1
# $own_mounts COMMAND...: as root of mounts of one's own. It is empty where what starts the
# workers would not be in there (a daemon), or takes root of a namespace for root.
own_mounts="$PY $t_lib/userns.py --mount"
case ${KNIT_LAUNCHER:-}$root in
oci:docker*) own_mounts= ;;
oci:*1) own_mounts="unshare --mount" ;;
oci:*) own_mounts= ;;
esac

T=$(mktemp -d "${TMPDIR:-/tmp}/knit-t.XXXXXX") || exit 1
mkdir "$T/tmp" "$T/home"
# The program's own idea of the user's places: nothing may be left there.
TMPDIR=$T/tmp
HOME=$T/home
XDG_RUNTIME_DIR=$T/tmp
export TMPDIR HOME XDG_RUNTIME_DIR
unset KNIT_DEBUG
t_clean() {
	chmod -R u+rwx "$T" 2>/dev/null
	rm -rf "$T"
}
trap t_clean EXIT
# Each run leaves its pid and when it was started here (field 22 of its stat), by which its
# cgroups can be told from those of others: a pid alone comes again.
KS_REAL=$KS
KS=$T/ks
: >"$T/pids"
chmod 666 "$T/pids"
{
	printf '#!/bin/sh
note() {
	shift 19
	echo "$$-$1" >>%s/pids
}
[ -r /proc/$$/stat ] && read -r t_stat </proc/$$/stat && note ${t_stat##*) }
' "$T"
	# (the times that a policy gives to workers of ours, not to tasks)
	[ "${KNIT_SLOW:-1}" = 1 ] || printf 'case " $* " in
*" --connect "* | " run --delegate "*) ;;
" run "* | " serve "*)
	verb=$1
	shift
	set -- $verb --set /timeouts/start_ms=%d --set /timeouts/claim_ms=%d \\
		--set /timeouts/stop_ack_ms=%d --set /timeouts/hard_slack_ms=%d --set /timeouts/teardown_ms=%d "$@"
	;;
esac\n' $((KNIT_SLOW * 10000)) $((KNIT_SLOW * 1000)) $((KNIT_SLOW * 500)) $((KNIT_SLOW * 40)) \
		$((KNIT_SLOW * 10000))
	[ -z "${KNIT_LAUNCHER:-}" ] || printf 'case $1:$2 in
run:--delegate | run:--connect) ;;
run:* | serve:*) v=$1; shift; set -- $v --launcher %s "$@" ;;
esac\n' "$KNIT_LAUNCHER${KNIT_IMAGE:+ --set /launcher/image=$KNIT_IMAGE}"
	printf 'exec %s "$@"\n' "$KS_REAL"
} >"$KS"
chmod 755 "$T" "$KS"
trap 'exit 1' INT TERM HUP
exec </dev/null

diag() {
	printf '%s\n' "$*" | sed 's/^/# /'
}
pass() {
	t_n=$((t_n + 1))
	printf 'ok %d - %s\n' $t_n "$*"
}
# Text that is wrong goes to stderr, so that it shows under prove without -v.
fail() {
	t_n=$((t_n + 1))
	t_failed=$((t_failed + 1))
	printf 'not ok %d - %s\n' $t_n "$*"
	printf '# failed: %s: %s\n' "$0" "$*" >&2
}
fail_because() {
	t_why=$1
	shift
	fail "$@"
	printf '%s\n' "$t_why" | head -n 12 | cut -c1-400 | sed 's/^/#   /' >&2
}
ok() {
	t_name=$1
	shift
	if "$@" >/dev/null 2>&1; then
		pass "$t_name"
	else
		fail_because "not true: $*" "$t_name"
	fi
}
is() {
	if [ "$1" = "$2" ]; then
		pass "$3"
	else
		fail_because "got:  $1
want: $2$(t_stderr)" "$3"
	fi
}
# is_any GOT "A B C" NAME
is_any() {
	case " $2 " in
	*" $1 "*) pass "$3" ;;
	*) fail_because "got: $1
want one of: $2$(t_stderr)" "$3" ;;
	esac
}
like() {
	if printf '%s\n' "$1" | grep -Eq -- "$2"; then
		pass "$3"
	else
		fail_because "got:  $1
want: /$2/$(t_stderr)" "$3"
	fi
}
unlike() {
	if printf '%s\n' "$1" | grep -Eq -- "$2"; then
		fail_because "got: $1
must not match /$2/" "$3"
	else
		pass "$3"
	fi
}
# at_most GOT LIMIT NAME, at_least GOT LIMIT NAME: whole numbers.
at_most() {
	if [ "$1" -le "$2" ] 2>/dev/null; then
		pass "$3"
	else
		fail_because "got: $1, want at most $2$(t_stderr)" "$3"
	fi
}
at_least() {
	if [ "$1" -ge "$2" ] 2>/dev/null; then
		pass "$3"
	else
		fail_because "got: $1, want at least $2$(t_stderr)" "$3"
	fi
}
# What was not looked at, and why: for the closing lines of .ci/run.
t_untold() {
	[ -z "${KNIT_SKIPS-}" ] || printf '%s: %s: %s\n' "$1" "${0##*/}" "$2" >>"$KNIT_SKIPS"
}
skip() { # REASON NAME
	t_untold skipped "$1: $2"
	if [ -n "${KNIT_MUST_RUN-}" ]; then
		fail_because "skipped, but KNIT_MUST_RUN is set: $1" "$2"
	else
		t_n=$((t_n + 1))
		t_skipped=$((t_skipped + 1))
		printf 'ok %d - %s # SKIP %s\n' $t_n "$2" "$1"
	fi
}
# The same, for what the laboratory's root lacks and its second one has (tests/lab/containers.sh).
lacking() {
	if [ -n "${KNIT_LAB-}" ] && [ -z "${KNIT_PLACE-}" ]; then
		not_here "in the laboratory with containers: $1: $2"
	else
		skip "$1" "$2"
	fi
}
# Something that is no business of this caller (root, or an ordinary user).
not_here() {
	t_untold "not for this caller" "$*"
	diag "not for this caller: $*"
}
t_stderr() {
	[ -s "$T/err" ] && printf '\nits stderr: %s' "$(head -c 600 "$T/err" | tr -d '\000')"
}
done_testing() {
	printf '1..%d\n' $t_n
	[ $t_skipped -gt 0 ] && diag "$t_skipped skipped"
	[ $t_failed -eq 0 ] || exit 1
	exit 0
}

# ---- running ----
# An emulated processor (tests/lab) is KNIT_SLOW times slower than the machines that the
# scripts' times are meant for: what a script gives to a task or waits for is so much
# more, and elapsed_ms is told so much less.
scaled() {
	echo $(($1 * ${KNIT_SLOW:-1}))
}
slowly() {
	[ "${KNIT_SLOW:-1}" = 1 ] || "$PY" -S - "$1" "$KNIT_SLOW" <<'X'
import re, sys
text = open(sys.argv[1]).read()
with open(sys.argv[1], "w") as f:
    f.write(re.sub(r'((?<!grace)_ms":\s*)(\d+)', lambda m: m[1] + str(int(m[2]) * int(sys.argv[2])), text))
X
}
some() {
	printf '%s\n' "$@" | awk -v every="${KNIT_EVERY:-1}" 'NR % every == 1 % every'
}
wait_lines() {
	t_try=0
	while [ "$(wc -l <"$1")" -lt "$2" ] && [ $t_try -lt 400 ]; do
		pause 50
		t_try=$((t_try + 1))
	done
}
wait_marker() {
	t_try=0
	while [ ! -e "$1" ] && [ $t_try -lt 400 ]; do
		pause 50
		t_try=$((t_try + 1))
	done
}
wait_deaf() {
	"$PY" -S - "$1" "$2" "${KNIT_SLOW:-1}" <<'X'
import glob, sys, time
top, n, slow = map(int, sys.argv[1:])
ALL = (1 << 31) - 1 & ~(1 << 8 | 1 << 18)  # but KILL and STOP
def text(path):
    try:
        return open(path).read()
    except OSError:
        return ""
end = time.monotonic() + 20 * slow
while time.monotonic() < end:
    todo, deaf = [top], 0
    while todo:
        p = todo.pop()
        todo += [int(c) for f in glob.glob("/proc/%d/task/*/children" % p) for c in text(f).split()]
        deaf += any(l[:7] == "SigIgn:" and int(l[7:], 16) & ALL == ALL for l in text("/proc/%d/status" % p).splitlines())
    if deaf >= n:
        break
    time.sleep(0.02)
X
}
pause() {
	sleep "$(scaled "$1" | sed 's/^/000/; s/...$/.&/')"
}
# Options of tests/lib/watch.py come in `watch_opts`, for one run.
watch_opts=
watched() {
	# shellcheck disable=SC2086
	"$PY" -S -E "$t_lib/watch.py" --slow "${KNIT_SLOW:-1}" --info "$T/info" ${engine:+--grace 20000} $watch_opts -- "$@" \
	    >"$T/out" 2>"$T/err"
	rc=$?
	watch_opts=
	elapsed_ms=-1 left=-1 left_ms=-1 left_names='?'
	# shellcheck disable=SC1091
	. "$T/info"
	elapsed_ms=$((elapsed_ms / ${KNIT_SLOW:-1}))
}
ks() {
	watched "$KS" "$@"
}
out() {
	tr -d '\000' <"$T/out"
}
err() {
	tr -d '\000' <"$T/err"
}
js() {
	"$PY" -S "$t_lib/js.py" "$@" 2>&1
}
# The verdict of a report file (default: the one of `ks run --report $T/report`).
verdict() {
	js "${1:-$T/report}" 'L[0]["verdict"]'
}
# One clear line: the message and at most one hint, no debris of a crash. The notice of
# degraded layers, which an ordinary user may get before it, does not count.
one_clear_line() { # ERE NAME
	is "$(grep -v 'something weaker stands in' "$T/err" | grep -c . | awk '{print ($1 >= 1 && $1 <= 2) ? "one line" : $1 " lines"}')" \
		"one line" "$2: one line and at most a hint"
	like "$(err)" "$1" "$2: it names the thing"
}
# The user that ordinary users' parts run as, when the caller is root.
as_user() {
	if [ -n "$root" ]; then
		setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all -- "$@"
	else
		"$@"
	fi
}
# Does this machine grant us a memory cgroup? Asked of the kernel where that is simple
# (cgroup v1), of the program otherwise.
cgroup_granted() {
	[ -n "${t_cgroup-}" ] || {
		t_cgroup=no
		t_d=/sys/fs/cgroup/memory$(sed -n 's/^[0-9]*:memory://p' /proc/self/cgroup)
		if [ -d "$t_d" ]; then
			if mkdir "$t_d/knit-test-probe-$$" 2>/dev/null; then
				rmdir "$t_d/knit-test-probe-$$"
				t_cgroup=yes
			fi
		elif "$KS" run --memory 64M -- true >/dev/null 2>&1; then
			t_cgroup=yes
		fi
	}
	[ $t_cgroup = yes ]
}
# Can this kernel begin a peak anew, so that each task's memory peak is told? v1 can, v2
# from Linux 6.12 on: there the owner of memory.peak may write it.
peaks_told() {
	[ ! -f "/sys/fs/cgroup$(sed -n 's/^0:://p' /proc/self/cgroup)/memory.peak" ] ||
		[ -n "$(find "/sys/fs/cgroup$(sed -n 's/^0:://p' /proc/self/cgroup)/memory.peak" -perm /200)" ]
}

# ---- what is left: mounts, cgroups, files; processes are watched's business ----
t_mounts() {
	# (the last two are an engine's own: podman's from its first container on, docker's
	# from the first that has the host's network)
	cut -d' ' -f4- /proc/self/mountinfo | grep -v -e ' - \(tracefs\|autofs\) ' \
		-e ' /[a-z/.]*/containers/storage/overlay ' -e ' /run/docker/netns/default ' | sort
}
# Folders of our own runs below the cgroup tree: knit-POOL-PID-START-....
t_cgroups() {
	[ -n "$root" ] && t_whose='' || t_whose="-user $(id -u)"
	# shellcheck disable=SC2086
	find /sys/fs/cgroup -type d -name 'knit-*' $t_whose -prune 2>/dev/null | while read -r d; do
		grep -qx "$(echo "${d##*/}" | cut -d- -f3,4)" "$T/pids" && echo "$d"
	done | sort
}
left_before() {
	t_mounts >"$T/mounts.before"
	: >"$T/pids" # nothing of ours before this
	: >"$T/cgroups.before"
}
# left_after NAME: nothing new after at most 5 s.
left_after() {
	t_try=0
	while :; do
		t_left=
		t_mounts >"$T/mounts.after"
		t_cgroups >"$T/cgroups.after"
		t_left=$(comm -13 "$T/mounts.before" "$T/mounts.after"
			comm -13 "$T/cgroups.before" "$T/cgroups.after"
			find "$T/tmp" "$T/home" -mindepth 1 -print 2>/dev/null)
		[ -z "$t_left" ] && [ "$left" = 0 ] && break
		[ $t_try -ge ${engine:+30}50 ] && break
		t_try=$((t_try + 1))
		sleep 0.1
	done
	if [ -z "$t_left" ] && [ "$left" = 0 ]; then
		pass "$1: no process, mount, cgroup or file left"
	else
		fail_because "processes: $left ($left_names)
$t_left" "$1: no process, mount, cgroup or file left"
	fi
}
