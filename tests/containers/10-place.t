#!/bin/sh
# tests/containers/10-place.t: what one place (KNIT_PLACE, see inside.sh) gives: a
# sandbox at all, limits that hold exactly, and what it lacks by its name.
. "$(dirname "$0")/../lib/tap.sh"
diag "$KNIT_PLACE: uid $(id -u), $(uname -r), cgroup $(tail -n 1 /proc/self/cgroup), $(grep -c . /proc/self/uid_map) map, $(stat -fc %T /sys/fs/cgroup)" >&2
left_before

ks run -- /bin/echo it runs
is "$rc $(out)" "0 it runs" "a task runs"
"$KS" doctor >"$T/doctor" 2>&1
diag "$(cat "$T/doctor")" >&2
watched "$KS" doctor --json
is "$(js "$T/out" 'L[0]["refused"]')" 0 "doctor: nothing is refused here"

cat >"$T/tasks" <<'X'
{"id":"hog","argv":["python3","-S","-c","x = bytearray(1 << 30)"],"limits":{"task":{"memory":"64M"}}}
{"id":"fits","argv":["python3","-S","-c","x = bytearray(40 << 20)"],"limits":{"task":{"memory":"64M"}}}
{"id":"bomb","argv":["python3","-S","-c","import os, time\nn = 0\ntry:\n  while n < 99:\n    if os.fork() == 0: time.sleep(99)\n    n += 1\nexcept OSError: pass\nprint(n)"],"limits":{"task":{"pids":16}}}
{"id":"small","argv":["true"]}
X
v() {
	js "$T/out" "by['$1']$2"
}
case $KNIT_PLACE:${KNIT_LAUNCHER:-}:$root in
docker:* | podman:* | *:oci:docker:)
	# docker keeps the containers of an ordinary user in groups of its own. In a container:
	# docker mounts the groups read-only before 28, and no flag changes that; with root's
	# podman they belong to the container's root, and we are uid 1000.
	ks run --memory 64M -- true
	is "$rc" 125 "no group of its own: a limit of memory is refused"
	one_clear_line 'cgroup\.memory' "no group of its own"
	ks run --report "$T/report" -- true
	is "$rc $(js "$T/report" '[L[0]["layers"][l] for l in ("cgroup.memory", "cgroup.pids", "cgroup.cpu")]')" \
		"0 ['degraded', 'degraded', 'degraded']" "no group of its own: without a limit it runs, and all three are said to be degraded"
	rm -f "$T/report"
	# What stands in holds of a task's own limits what it can.
	ks run --tasks "$T/tasks" --workers 1
	is "$(v hog '["verdict"]') $(v fits '["verdict"]') $(v bomb '["stdout"].strip()')" "memory ok 15" \
		"no group of its own: memory is watched, and processes are counted by the kernel"
	;;
*)
	ks run --tasks "$T/tasks" --workers 1
	is "$(v hog '["verdict"]') $(v fits '["verdict"]')" "memory ok" "a task over its memory ends as memory, one below does not"
	is "$(v bomb '["stdout"].strip()')" 15 "pids 16: itself and 15 children"
	is "$(js "$T/out" '{r["layers"][l] for r in L for l in ("cgroup.memory", "cgroup.pids", "cgroup.cpu")}')" \
		"{'enforced'}" "all three are said to be enforced"
	ks run --memory 64M --report "$T/report" -- python3 -S -c 'x = bytearray(1 << 30)'
	is "$rc $(verdict)" "137 memory" "--memory ends it as memory"
	rm -f "$T/report"
	;;
esac
left_after "$KNIT_PLACE"
done_testing
