#!/bin/sh
# tests/lab/20-cgroup2.t: where there is nothing but cgroup v2: limits and peaks, and in
# which groups they can be had. What cannot be had is refused or degraded by its name.
. "$(dirname "$0")/../lib/tap.sh"
top=/sys/fs/cgroup
if [ "$(stat -fc %T $top)" != cgroup2fs ]; then
	echo "Bail out! this is for a machine with cgroup v2 alone: make check-lab"
	exit 1
fi
# We are in BASE/session, beside others; BASE is ours (inside.sh).
base=$top$(sed -n 's/^0:://p' /proc/self/cgroup)
base=${base%/*}
group() { # NAME: a new one below base; path in $g
	g=$base/$1
	mkdir "$g"
}
ungroup() { # NAME
	ok "$1: it is empty afterwards" rmdir "$g"
}
# in_group CMD...: as `watched`, with CMD alone in $g
in_group() {
	watched sh -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$g" "$@"
}
hog='x = bytearray(1 << 30)'
echo "+memory +pids" >"$base/cgroup.subtree_control"
left_before

# ---- limits and figures, task by task on one worker ----
cat >"$T/tasks" <<'X'
{"id":"hog","argv":["python3","-S","-c","x = bytearray(1 << 30)"],"limits":{"task":{"memory":"64M"}}}
{"id":"fits","argv":["python3","-S","-c","x = bytearray(40 << 20)"],"limits":{"task":{"memory":"64M"}}}
{"id":"bomb","argv":["python3","-S","-c","import os, time\nn = 0\ntry:\n  while n < 99:\n    if os.fork() == 0: time.sleep(99)\n    n += 1\nexcept OSError: pass\nprint(n)"],"limits":{"task":{"pids":16}}}
{"id":"big","argv":["python3","-S","-c","import time\nx = bytearray(100 << 20)\nwhile time.process_time() < 2: pass"]}
{"id":"small","argv":["true"]}
X
ks run --tasks "$T/tasks" --workers 1
v() {
	js "$T/out" "by['$1']$2"
}
is "$(v hog '["verdict"]') $(v fits '["verdict"]')" "memory ok" "a task over its memory ends as memory, one below does not"
is "$(v bomb '["stdout"].strip()')" 15 "pids 16: itself and 15 children"
is "$(js "$T/out" '{r["layers"][l] for r in L for l in ("cgroup.memory", "cgroup.pids", "cgroup.cpu")}')" \
    "{'enforced'}" "all three are said to be enforced"
is "$(v big '["usage"]["cpu_ms"] >= 2000')" yes "CPU time of one"
is "$(v small '["usage"]["cpu_ms"] < 1000')" yes "the next one's is its own"
is "$(v big '["usage"]["memory_peak"] >= 100 << 20')" yes "memory peak of one"
if peaks_told; then
	is "$(v small '["usage"]["memory_peak"] < 20 << 20')" yes "the next one's is its own, as memory.peak can be reset"
else
	is "$(v small '["usage"].get("memory_peak")')" null "the next one's is not told, as memory.peak cannot be reset"
fi
is "$(v small '["usage"]["max_rss"] < 20 << 20')" yes "max_rss is its own in any case"
is "$(js "$T/out" '(by["small"]["usage"].get("pids_peak") or 0) < 15')" yes "a peak of processes is never an earlier task's"

ks run --set /limits/worker/memory=64M --set /limits/task/memory=0 --report "$T/report" -- python3 -S -c 'x = bytearray(1 << 30)'
is "$rc $(verdict)" "137 memory" "a worker's memory is its task's too"

# ---- alone in a group: into a leaf first, and back ----
group alone
in_group "$KS" run --memory 64M --report "$T/report" -- python3 -S -c "$hog"
is "$rc $(verdict)" "137 memory" "alone in a group: --memory is enforced"
is "$(cat "$g/cgroup.subtree_control")" "" "alone in a group: controllers are off again"
in_group "$KS" run --set /limits/worker/memory=64M --set /limits/task/memory=0 --report "$T/report" -- python3 -S -c "$hog"
is "$rc $(verdict)" "137 memory" "alone in a group: a worker's memory is its task's too"
in_group sh -c 'umask 0777; exec "$0" run --memory 64M -- echo it runs' "$KS"
is "$rc $(out)" "0 it runs" "alone in a group: whatever the umask is"
echo 150M >"$g/memory.max"
in_group "$KS" run --memory 600M --report "$T/report" -- python3 -S -c "$hog"
is "$rc $(verdict)" "125 internal" "killed for what the group around may have: no limit of the task's"
like "$(err)" 'at no limit of its own' "and said"
in_group "$KS" run --memory 64M --report "$T/report" -- python3 -S -c "$hog"
is "$rc $(verdict)" "137 memory" "its own limit within such a group: memory"
ungroup "alone in a group"

# ---- a share of the processors, for two who want all ----
echo "+cpu" >"$base/cgroup.subtree_control"
group share
in_group "$KS" run --set /limits/task/cpus=0.2 --report "$T/report" -- python3 -S -c 'import os, sys, time
t = time.time()
for i in range(2):
  if os.fork() == 0:
    while time.time() < t + int(sys.argv[1]): pass
    os._exit(0)
os.wait(); os.wait()
print(sum(os.times()[:4]) / (time.time() - t) < 0.4)' "$(scaled 2)" # on average: an emulator's own rests are not seen inside
is "$rc $(out)" "0 True" "cpus 0.2: they have that and no more"
is "$(js "$T/report" 'L[0]["layers"]["cgroup.cpu"]')" enforced "cpus 0.2: and it is said"
is "$(cat "$g/cgroup.subtree_control")" "" "cpus 0.2: the controller is off again"
ungroup "cpus 0.2"

# ---- shared, with a limit that must not be left behind: nothing to be had ----
group shared
echo 500 >"$g/pids.max"
sh -c 'echo $$ >"$0/cgroup.procs"; exec sleep 1000' "$g" &
other=$!
i=0
while [ -z "$(cat "$g/cgroup.procs")" ] && [ $i -lt 100 ]; do
	pause 20
	i=$((i + 1))
done
in_group "$KS" run --memory 64M -- echo it runs
is "$rc $(out)" "125 " "in a limited group with others: --memory is refused"
like "$(err)" 'cgroup\.memory' "in a limited group with others: by its name"
rm -f "$T/report"
in_group "$KS" run --report "$T/report" -- echo it runs
is "$rc $(out)" "0 it runs" "in a limited group with others: without limits it runs"
is "$(js "$T/report" 'L[0]["layers"]["cgroup.memory"], L[0]["layers"]["cgroup.pids"]')" \
    "('degraded', 'degraded')" "in a limited group with others: degraded"
like "$(err)" 'cgroup\.memory.*cgroup\.pids' "in a limited group with others: and said"
kill $other
wait $other 2>/dev/null
ungroup "in a limited group with others"

# ---- a container: its own cgroup namespace, its group a root to it, a limit on it ----
group container
echo 512M >"$g/memory.max"
ns="unshare -C -m"
[ -n "$root" ] || ns="unshare -U -r -C -m"
# (the same file system cannot be mounted twice on one place)
enter="mount -t tmpfs none $top && mount -t cgroup2 none $top"
rm -f "$T/report"
# shellcheck disable=SC2086
in_group $ns sh -c "$enter"' && exec "$@"' sh \
    "$KS" run --memory 64M --report "$T/report" -- python3 -S -c "$hog"
is "$rc $(verdict)" "137 memory" "a container's entry point: --memory is enforced"
# shellcheck disable=SC2086
in_group $ns sh -c "$enter"' && "$@"; exit $?' sh \
    "$KS" run --memory 64M -- echo it runs
is "$rc $(out)" "125 " "started by a container's shell, which stays in the group: refused"
like "$(err)" 'cgroup\.memory' "started by a container's shell: by its name"
ungroup "a container"

# ---- delegation: root gives a group to a user, or does not ----
if [ -n "$root" ]; then
	user="setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all --"
	mkdir -m 777 "$T/w"
	group given
	chown 65534:65534 "$g" "$g/cgroup.procs" "$g/cgroup.subtree_control" "$g/cgroup.threads"
	# shellcheck disable=SC2086
	in_group $user "$KS" run --memory 64M --report "$T/w/report" -- python3 -S -c "$hog"
	is "$rc $(verdict "$T/w/report")" "137 memory" "a user in a group delegated to him: --memory is enforced"
	ungroup "a delegated group"
	group kept
	# shellcheck disable=SC2086
	in_group $user "$KS" run --memory 64M -- echo it runs
	is "$rc $(out)" "125 " "a user in a group of root's: --memory is refused"
	like "$(err)" 'cgroup\.memory' "a user in a group of root's: by its name"
	like "$(err)" '^hint: .*--delegate' "a user in a group of root's: what to do"
	ungroup "a group of root's"
else
	not_here "giving groups to others"
fi

# ---- a server that is reloaded: each pool beside the last one, not below it ----
. "$t_lib/serve.sh"
group served
printf '#!/bin/sh\necho $$ >"%s/cgroup.procs" && exec "%s" "$@"\n' "$g" "$KS" >"$T/alone"
chmod 755 "$T/alone"
outside=$KS
KS=$T/alone
begin --quiet --memory 64M
KS=$outside
i=0
while [ $i -lt 10 ] && kill -0 $pid; do
	i=$((i + 1))
	kill -HUP $pid
	until_is knit_reloads_total $i
done
is "$(number knit_reloads_total) $(number knit_reloads_failed_total)" "10 0" "a server alone in a group: ten reloads"
ks run --connect "$S" -- python3 -S -c "$hog"
is "$rc" 137 "and --memory is enforced after them"
t_try=0
while [ "$(number knit_pools)" != 1 ] && [ $t_try -lt 300 ]; do
	pause 50
	t_try=$((t_try + 1))
done
is "$(find "$g" -name 'knit-*-sup' | wc -l) $(find "$g" -mindepth 1 -maxdepth 1 -name 'knit-*' | wc -l)" "1 2" "it sits in one group, and its workers in another"
end TERM
is "$rc $(cat "$g/cgroup.subtree_control")" "0 " "its end: controllers are off again"
ungroup "a server that was reloaded"

rm -f "$T/report"
left_after "cgroup v2"
done_testing
