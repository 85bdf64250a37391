#!/bin/sh
# tests/probes/matrix.sh [POLICY...]: what the probes find, under each policy (default: all
# presets) and each launcher that works here: one table. Status 1 if a probe got out, found nothing out, or
# if two launchers differ. `make probe-matrix` builds what it needs.
#
# A word a column: BLOCKED, or how the run ended where the policy kills for the attempt
# (denied, signal); no-fork where a probe needs a process for each attempt and none may be
# started (what the filter says to each call is tests/integ/41-calls.t's); refused where the
# run does not start. Who asks for less than a preset holds
# (a caller without a cgroup) gets it with that allowed, which is said below the table.
set -u
B=${B:-build/gcc}
KS=$B/knit-sandbox
launchers=${LAUNCHERS:-bwrap $(for l in oci:runc oci:crun; do
	"$KS" run --quiet --launcher $l -- true 2>/dev/null && echo $l
done)}
[ $# -gt 0 ] || set -- $("$KS" policy list)
probes="fds caps slice:--no-calls slice abi_bypass exit_forge fd_leak_arena mount_attempt proc1_peek
ptrace_parent raw_socket self_exe setuid_attempt syscall_probe tiocsti"
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
trap 'exit 130' INT TERM HUP
chmod 755 "$dir"
mkdir "$dir/p"
cp "$B"/probes/* "$B"/hostile/* "$dir/p/" 2>/dev/null
chmod -R a+rX "$dir/p"
weak=
"$KS" run --memory 64M -- true 2>/dev/null || weak=1
status=0

# What becomes of one: the word that it says, or the verdict.
one() { # LAUNCHER POLICY PROBE
	program=${3%%:*} args=
	[ "$program" = "$3" ] || args=${3#*:}
	set -- run --quiet --launcher "$1" --policy "$2" --report "$dir/report" --ro-bind "$dir/p:/p" --timeout 60s
	[ -z "$weak" ] || set -- "$@" --set '/allow_degraded=["cgroup.memory","cgroup.pids","cgroup.cpu"]'
	rm -f "$dir/report"
	# shellcheck disable=SC2086
	"$KS" "$@" -- "/p/$program" $args >"$dir/out" 2>"$dir/err"
	said=$(grep -Eao '^(ESCAPE|BLOCKED|PENDING|INCONCLUSIVE|WORKS|BROKEN)' "$dir/out" | tail -n 1)
	grep -q '^INCONCLUSIVE: fork: ' "$dir/out" && said=no-fork
	verdict=$(sed -n 's/.*"verdict":"\([^"]*\)".*/\1/p' "$dir/report" 2>/dev/null)
	case $verdict in
	ok | exit) echo "${said:-nothing}" ;;
	*) echo "${verdict:-refused}" ;;
	esac
}

printf '%-18s' probe
for policy; do
	for l in $launchers; do printf ' %-16s' "$policy/$l"; done
done
echo
for probe in $probes; do
	printf '%-18s' "$probe"
	for policy; do
		first=
		for l in $launchers; do
			word=$(one "$l" "$policy" "$probe")
			mark=
			case $word in
			BLOCKED | no-fork | denied | signal | not-found | not-executable) ;;
			*) mark='!' status=1 ;;
			esac
			[ "${first:=$word}" = "$word" ] || mark='!=' status=1
			printf ' %-16s' "$word$mark"
		done
	done
	echo
done
[ -z "$weak" ] || echo "without a cgroup of the caller's: its limits were allowed to be weaker"
[ $status = 0 ] || echo "what is marked is not as it has to be"
exit $status
