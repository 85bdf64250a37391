#!/bin/sh
# tests/containers/15-session.t: --delegate where a real systemd answers: as a user in
# a session that has no group of its own, and as root in a service.
. "$(dirname "$0")/../lib/tap.sh"
case $KNIT_PLACE in
user | system) ;;
*)
	echo "1..0 # SKIP there is no systemd here"
	exit 0
	;;
esac
case ${KNIT_LAUNCHER:-}:$root in
oci:docker:)
	echo "1..0 # SKIP docker keeps the containers of an ordinary user in groups of its own"
	exit 0
	;;
esac
[ -n "$root" ] || XDG_RUNTIME_DIR=/run/user/$(id -u)
hog='x = bytearray(1 << 30)'
left_before

# Out of the group that was delegated, into one that was not: a scope without.
scope="systemd-run --scope -q"
[ -n "$root" ] || scope="systemd-run --user --scope -q"
# shellcheck disable=SC2086
watched $scope "$KS" run --delegate --memory 64M --report "$T/report" -- python3 -S -c "$hog"
is "$rc $(verdict)" "137 memory" "--delegate: a limit of memory is enforced"
is "$(js "$T/report" '{L[0]["layers"][l] for l in ("cgroup.memory", "cgroup.pids", "cgroup.cpu")}')" \
	"{'enforced'}" "--delegate: all three layers"
rm -f "$T/report"

# The same, asked for by hand.
# shellcheck disable=SC2086
watched $scope -p Delegate=yes "$KS" run --memory 64M --report "$T/report" -- python3 -S -c "$hog"
is "$rc $(verdict)" "137 memory" "alone in a scope with Delegate=yes: a limit of memory is enforced"
rm -f "$T/report"
# shellcheck disable=SC2086
watched $scope -p Delegate=yes "$KS" doctor --json
is "$(js "$T/out" '{p["status"] for p in L[0]["probes"] if p["probe"].startswith("cgroup-")}')" "{'ok'}" \
	"alone in a scope with Delegate=yes: doctor says so"
# And not alone, which leaves nothing to be had.
# shellcheck disable=SC2086
watched $scope -p Delegate=yes sh -c '"$@"; exit $?' sh "$KS" run --memory 64M -- true
is "$rc" 125 "beside its shell in such a scope: refused"
like "$(err)" '^hint: .*--delegate' "beside its shell in such a scope: what to do"

left_after "--delegate"
done_testing
