#!/bin/sh
# 16-delegate.t: --delegate begins anew through systemd-run, once, and then asks the
# kernel what it was given. systemd itself is not here: a program of that name on PATH
# says how it was called, and what it does is what a real one may do.
. "$(dirname "$0")/../lib/tap.sh"
left_before

fake=$T/fake
mkdir "$fake" "$T/run"
chmod 755 "$fake" "$T/run"
XDG_RUNTIME_DIR=$T/run
unset DBUS_SESSION_BUS_ADDRESS
: >"$T/run/bus"
PATH=$fake:$PATH
# systemd_run BODY: what systemd-run does; $n is the number of the call.
systemd_run() {
	rm -f "$T/calls" "$T"/args.* "$T"/guard.*
	cat >"$fake/systemd-run" <<-EOF
		#!/bin/sh
		n=\$((\$(cat $T/calls 2>/dev/null || echo 0) + 1))
		echo \$n >$T/calls
		printf '%s\n' "\$@" >$T/args.\$n
		echo "\${KNIT_DELEGATED-none} \$\$" >$T/guard.\$n
		$1
	EOF
	chmod 755 "$fake/systemd-run"
}
just_exec='while [ "$1" != -- ]; do shift; done; shift; exec "$@"'
refused() { # ERE NAME
	is $rc 125 "$2: 125"
	one_clear_line "$1" "$2"
	like "$(err)" '^hint: ' "$2: and a hint"
}

# ---- what it is asked ----
user=--user
[ -n "$root" ] && user=
want() { # THE PROGRAM'S ARGUMENTS
	{
		[ -n "$user" ] && echo $user
		printf '%s\n' --scope -p Delegate=yes -q -- "$KS_REAL" "$@"
	} | tr '\n' '|'
}
systemd_run '[ $n = 1 ] || exit 42'
ks run --delegate --timeout 5s -- echo 'two  words' '$HOME' ''
is $rc 42 "its exit status is ours: it is executed, not waited for"
is "$(cat "$T/calls")" 2 "it is tried once, then executed once"
is "$(tr '\n' '|' <"$T/args.1")" "$(want version)" "tried with a command that does nothing"
is "$(tr '\n' '|' <"$T/args.2")" \
	"$(want run --delegate --timeout 5s -- echo 'two  words' '$HOME' '')" \
	"called with the arguments as they were given"
is "$(cat "$T/guard.2")" "1 $(tail -n 1 "$T/pids" | cut -d- -f1)" "same process; and it is told"
systemd_run '[ $n = 1 ] || exit 42'
ks bench --delegate --quick --only M14
is "$(tr '\n' '|' <"$T/args.2")" "$(want bench --delegate --quick --only M14)" \
	"bench has it too"
is "$(cat "$T/calls")" 2 "once tried, once executed there as well"

# ---- what becomes of it ----
# Nothing but an exec: no group was given, so what this caller has anyway is what the
# check finds.
systemd_run "$just_exec"
ks run --delegate --set '/environment/inherit=["KNIT_DELEGATED"]' -- sh -c \
	'echo "guard=${KNIT_DELEGATED-none}"; cat; exit 7' 
is "$(cat "$T/calls")" 2 "it cannot loop: begun anew once"
if cgroup_granted; then
	is "$rc $(out)" "7 guard=none" "goes on in the group, and the task sees no guard"
	left_after "begun anew"
else
	refused 'systemd-run gave is not delegated: cgroup .*(may not be written|missing|is mounted)' \
		"a group that was not delegated"
fi
watched sh -c 'echo through | "$1" run --delegate -- cat' sh "$KS"
cgroup_granted && is "$(out)" through "standard input comes through"
watched env KNIT_DELEGATED=1 "$KS" run --set '/environment/inherit=["KNIT_DELEGATED"]' -- \
	sh -c 'echo "guard=${KNIT_DELEGATED-none}"'
is "$(out)" "guard=none" "a guard that was not asked for does not reach a task either"
if cgroup_granted && [ -n "$root" ]; then
	watched sh -c '"$1" run --delegate --set "/timeouts/grace_ms=$3" -- sh -c "trap \"exit 9\" TERM; echo up; sleep 90 & wait" \
		>"$2" & pid=$!
		until grep -q up "$2"; do sleep 0.05; done
		kill -TERM $pid
		wait $pid' sh "$KS" "$T/up" "$(scaled 5000)"
	is $rc 9 "a signal to the process reaches the task, its status comes back"
fi

# ---- refused by name, and nothing runs ----
systemd_run 'echo "Failed to start transient scope unit: Access denied" >&2; exit 1'
ks run --delegate -- touch /tmp/x
refused '\-\-delegate: systemd-run: Failed to start transient scope unit: Access denied' \
	"systemd refuses"
is "$(cat "$T/calls")" 1 "refused at the trial"
systemd_run 'exit 3'
ks run --delegate -- touch /tmp/x
refused '\-\-delegate: systemd-run: ended with status 3' "systemd-run fails without a word"
watched env PATH="$T/none:.:" "$KS_REAL" run --delegate -- touch /tmp/x
refused '\-\-delegate: no systemd-run in PATH' "no systemd-run"
if [ -z "$root" ]; then
	rm "$T/run/bus"
	ks run --delegate -- touch /tmp/x
	refused "no user bus: $T/run/bus" "no bus"
	watched env -u XDG_RUNTIME_DIR -u DBUS_SESSION_BUS_ADDRESS "$KS" run --delegate -- touch /tmp/x
	refused 'no user bus: XDG_RUNTIME_DIR is not set' "no session"
else
	not_here "the user's bus"
fi
rm -f "$T/run/bus"

# ---- delegated for once: what systemd does, done by hand ----
# As an ordinary user, alone in a v2 group that is his: limits by the kernel, and the
# group as it was when the run has ended.
v2=/sys/fs/cgroup
if [ -n "$root" ] && grep -q memory $v2/cgroup.controllers 2>/dev/null &&
	echo '+memory +pids' >$v2/cgroup.subtree_control 2>/dev/null; then
	scope=$v2/test-scope-$$
	systemd_run "$just_exec"
	: >"$T/run/bus"
	in_scope() { # CONTROLLERS THE PROGRAM'S ARGUMENTS
		mkdir $scope/run.scope
		for c in cgroup.procs cgroup.threads cgroup.subtree_control; do
			chown 65534 $scope/run.scope/$c
		done
		chown 65534 $scope/run.scope
		# The shell goes in, and becomes the program: alone there.
		watched sh -c 'echo $$ >"$1/run.scope/cgroup.procs" && shift && exec "$@"' sh $scope \
			setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all -- "$KS_REAL" "$@"
		inside=$(find $scope/run.scope -mindepth 1 -type d)
		on=$(cat $scope/run.scope/cgroup.subtree_control)
		rmdir $scope/run.scope
	}
	mkdir $scope
	chmod 777 "$T" "$T/calls" 2>/dev/null
	echo '+memory +pids' >$scope/cgroup.subtree_control
	rm -f "$T/calls" "$T"/args.* "$T"/guard.*
	in_scope run --delegate --memory 64M --report "$T/report.scope" -- \
		"$PY" -c 'x = bytearray(1 << 30)'
	is "$rc $(verdict "$T/report.scope")" "137 memory" "delegated v2: the kernel keeps the limit"
	is "$(js "$T/report.scope" '[L[0]["layers"][k] for k in ("cgroup.memory", "cgroup.pids")]')" \
		"['enforced', 'enforced']" "delegated v2: both layers are enforced"
	is "$inside$on" "" "delegated v2: nothing is left in the group, no controller on"
	rm -f "$T/calls" "$T"/args.* "$T"/guard.*
	in_scope run --delegate --workers 2 --tasks "$T/none.jsonl"
	is $rc 125 "delegated v2: an error of ours passes through"
	is "$inside$on" "" "delegated v2: nothing is left after that"
	# Handed over without controllers: named.
	echo '-memory' >$scope/cgroup.subtree_control
	rm -f "$T/calls" "$T"/args.* "$T"/guard.*
	in_scope run --delegate -- touch /tmp/x
	refused 'run.scope: controllers missing: memory' "a group without the memory controller"
	rmdir $scope
	rm -f "$T/run/bus"
	chmod 755 "$T"
else
	not_here "a v2 hierarchy that has the memory controller (tests/lab has)"
fi

# ---- the real one ----
rm "$fake/systemd-run"
if command -v systemd-run >/dev/null && [ ! -d /run/systemd/system ]; then
	[ -n "$root" ] || : >"$T/run/bus"
	ks run --delegate -- touch /tmp/x
	refused '\-\-delegate: systemd-run: ' "the real systemd-run, where systemd does not run"
else
	not_here "systemd-run without systemd"
fi

done_testing
