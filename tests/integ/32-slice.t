#!/bin/sh
# 32-slice.t: from inside, in every kind and preset, nothing leads to the memory that
# supervisor and worker share, beyond a module's own slice: not descriptors, mremap,
# remap_file_pages, map_files, /proc/*/mem, ptrace, pidfd_getfd. As root and as a user the
# launcher differs (an id of its own for each worker, or one of the user's); this script
# runs as whoever calls it.
. "$(dirname "$0")/../lib/tap.sh"
P=$B/probes
M=$B/tests/module
if [ ! -x "$P/slice" ]; then
	echo "Bail out! no programs in $P; build them with: make tests"
	exit 1
fi
mkdir "$T/p"
cp "$P/slice" "$T/p/"
chmod 755 "$T/p" "$T/p/slice"
left_before

# strict and judge want memory held by a control group, which not every caller has.
weak=
cgroup_granted || weak='--set /allow_degraded=["cgroup.memory","cgroup.pids","cgroup.cpu"]'
# Where the kernel has no mseal, a module can take its own slice away, and only that.
ks run --quiet --report "$T/report" --module "$M/walls.so" --call constructed
sealed=1
[ "$(js "$T/report" 'L[0]["layers"]["mseal"]')" = enforced ] || sealed=0
[ $sealed = 1 ] || not_here "what only a sealed mapping refuses: the kernel has no mseal"
# Presets that kill for such a call: whoever asks is gone, which is no way in either.
kills() {
	[ "$1" = judge ]
}
for p in default strict python judge; do
	ks run --quiet --policy $p $weak --ro-bind "$T/p:/p" -- /p/slice --no-calls
	like "$rc $(out)" '^0 BLOCKED: .* [1-9][0-9]* other processes seen' "exec, $p: no way by files and mappings"
	ks run --quiet --policy $p $weak --ro-bind "$T/p:/p" -- /p/slice
	if kills $p; then
		is "$rc $(out)" "159 " "exec, $p: killed by the first of the calls"
	else
		like "$rc $(out)" '^0 BLOCKED: ' "exec, $p: no way by calls either"
	fi
	# 1: also what only a sealed mapping refuses; 2: the calls.
	ks run --quiet --policy $p $weak --module "$M/walls.so" --call walls --input $sealed
	is "$rc $(out)" "0 BLOCKED" "module, $p: no way out of its slice by files and mappings"
	ks run --quiet --policy $p $weak --module "$M/walls.so" --call walls --input $((sealed + 2))
	if kills $p; then
		is "$rc $(out)" "159 " "module, $p: killed by the first of the calls"
	else
		is "$rc $(out)" "0 BLOCKED" "module, $p: no way by calls either"
	fi
	ks run --quiet --policy $p $weak --module "$M/walls.so" --call constructed
	is "$rc $(out)" "0 2 1" "module, $p: its constructors find the filter on, and the bell alone"
done

# Several modules in one arena: each has its own part of it, and sees no other's.
printf '%s\n' '{"id":"a","call":"walls","value":'$((sealed + 2))'}' '{"id":"b","call":"walls","value":'$((sealed + 2))'}' '{"id":"c","call":"walls","value":'$((sealed + 2))'}' \
    '{"id":"d","call":"walls","value":'$((sealed + 2))'}' '{"id":"e","call":"walls","value":'$((sealed + 2))'}' '{"id":"f","call":"walls","value":'$((sealed + 2))'}' >"$T/tasks"
ks run --quiet --module "$M/walls.so" --workers 3 --tasks "$T/tasks"
is "$(js "$T/out" '[by[i].get("value") for i in "abcdef"]')" \
    "['BLOCKED', 'BLOCKED', 'BLOCKED', 'BLOCKED', 'BLOCKED', 'BLOCKED']" "three modules in one arena"

# Without namespaces the supervisor itself is to be seen; launcher direct starts no modules.
ks run --quiet --launcher direct --ro-bind "$T/p" -- "$T/p/slice" --kin
if [ $rc = 125 ]; then
	not_here "launcher direct: $(head -n 1 "$T/err")" # 52-direct.t has what it needs
else
	like "$rc $(out)" '^0 BLOCKED: .* 3 other processes seen' "exec, launcher direct: no way to its parents"
fi

# The probes find something where there is something to find.
ks run --quiet --ro-bind "$T/p:/p" -- /bin/sh -c '/bin/sleep 20 & /p/slice'
like "$rc $(out)" '^42 ESCAPE: .*/proc/[0-9]*/(maps|mem)' "the probe sees into a process that is open to it"
if ! cgroup_granted; then
	not_here "where memory is watched and not counted no memfd can be had"
else
	ks run --quiet --ro-bind "$T/p:/p" -- "$PY" -c 'import os
fd = os.memfd_create("knit-arena", 0)
os.truncate(fd, 8192)
os.set_inheritable(fd, True)
os.execv("/p/slice", ["slice"])'
	like "$rc $(out)" '^42 ESCAPE: .*memfd:knit-arena.*it opens and maps' "the probe finds an arena that was left open"
fi
left_after "slice"
done_testing
