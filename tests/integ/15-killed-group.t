#!/bin/sh
# A supervisor in a cgroup v2 group that has seen a cgroup.kill: clones into other groups
# are killed at their birth there (Linux 6.18), and launches must work all the same.
. "$(dirname "$0")/../lib/tap.sh"

base=
for d in /sys/fs/cgroup/unified /sys/fs/cgroup; do
	[ -f "$d/cgroup.procs" ] && base=$d && break
done
group=$base/knit-test-killed-$$
if [ -z "$root" ]; then
	not_here "an ordinary user makes no groups here"
elif [ -z "$base" ] || ! mkdir "$group" 2>/dev/null; then
	skip "no cgroup v2 to make a group in" "a run in a group that was killed once"
else
	sh -c "echo 1 >$group/cgroup.kill; echo \$\$ >$group/cgroup.procs; exec '$KS' run -- echo alive" \
		>"$T/out" 2>"$T/err"
	is "$?:$(out)" "0:alive" "a run in a group that was killed once"
	rmdir "$group"
fi
ks run -- echo alive
is "$rc:$(out)" "0:alive" "a run in the group that we came in"
done_testing
