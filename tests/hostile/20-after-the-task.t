#!/bin/sh
# 20-after-the-task.t: what a task does to those that come after it, or beside it.
#
# Each of these worked once: a second run of itself, a lock and memory that outlived it,
# a neighbour that lost its worker, a writer outside that had to wait.
. "$(dirname "$0")/../lib/tap.sh"
H=$B/hostile
if [ ! -x "$H/in_flight" ]; then
	echo "Bail out! no programs in $H; build them with: make tests"
	exit 1
fi
mkdir "$T/h" "$T/mark" "$T/b"
cp "$H/init_limits" "$H/in_flight" "$H/shm_leave" "$H/lease" "$H/keepers_first" \
    "$H/ipc_round" "$T/h/"
chmod 755 "$T" "$T/h" "$T/h/"* "$T/b"
chmod 777 "$T/mark"
echo content >"$T/b/f"
chmod 644 "$T/b/f"
left_before
v() {
	js "$T/out" "by['$1']['verdict']"
}
said() {
	js "$T/out" "by['$1'].get('stdout', '').split(':')[0]"
}

# ---- a task that ends its own cell is not run again ----
printf '{"id":"a","argv":["/h/init_limits","--mark","/mark/m"]}\n' >"$T/tasks"
ks run --tasks "$T/tasks" --bind "$T/mark:/mark" --ro-bind "$T/h:/h" --retries 3
is "$(grep -c begun "$T/mark/m")" 1 "a task that ends its init by a limit runs once"
unlike "$(v a)" 'internal|worker-lost' "and that is no failure of ours"
unlike "$(out)" ESCAPE "limits of a cell's init are not the task's to set"
# The same by the kernel's hand, where a policy lets the call through.
cat >"$T/prlimit.json" <<'X'
{"version": 1, "extends": "default", "seccomp": {"rules": [
  {"names": ["prlimit64"], "action": "SCMP_ACT_ALLOW", "why": "what the guard would refuse"}]}}
X
rm -f "$T/mark/m"
ks run --policy "$T/prlimit.json" --tasks "$T/tasks" --bind "$T/mark:/mark" --ro-bind "$T/h:/h" --retries 3
is "$(grep -c begun "$T/mark/m")" 1 "also where it succeeds: once"
is_any "$(v a)" "signal exit" "its end is its own"

# ---- nothing outlives it ----
cat >"$T/tasks" <<'X'
{"id":"l1","argv":["/h/in_flight","--leave","/b/f","--mib","24"]}
{"id":"k1","after":["l1"],"argv":["/h/in_flight","--look","/b/f"]}
{"id":"l2","after":["k1"],"argv":["/h/in_flight","--leave","/b/f","--mib","24"]}
{"id":"k2","after":["l2"],"argv":["/h/in_flight","--look","/b/f"]}
{"id":"net","after":["k2"],"argv":["wc","-l","/proc/net/unix"]}
X
ks run --tasks "$T/tasks" --workers 1 --ro-bind "$T/h:/h" --ro-bind "$T/b:/b"
is "$(said l1) $(said k1) $(said l2) $(said k2)" "PENDING BLOCKED PENDING BLOCKED" \
    "a lock in flight between sockets is gone before the next task"
is "$(js "$T/out" 'by["net"]["stdout"].split()[0]')" 1 "and so are the sockets"
# The first task has its worker's first namespace in any case.
cat >"$T/tasks" <<'X'
{"id":"first","argv":["true"]}
{"id":"l","after":["first"],"argv":["/h/ipc_round","--leave"]}
{"id":"k","after":["l"],"argv":["/h/ipc_round","--look"]}
X
ks run --tasks "$T/tasks" --workers 1 --ro-bind "$T/h:/h" --timeout "$(scaled 60000)ms"
is "$(said l) $(said k)" "PENDING BLOCKED" \
    "a message queue is gone before the next task, also where the numbers of queues began anew"
if cgroup_granted; then
	before=
	for i in s1:shm_leave u1:shm_leave f1:in_flight g1:shm_leave s2:shm_leave u2:shm_leave f2:in_flight g2:shm_leave; do
		args='"--use","--mib","40"'
		case $i in
		s*) args='"--mib","40"' ;;
		f*) args='"--leave","/b/f","--mib","40"' ;;
		esac
		printf '{"id":"%s","argv":["/h/%s",%s]%s}\n' "${i%%:*}" "${i#*:}" "$args" "${before:+,\"after\":[\"$before\"]}"
		before=${i%%:*}
	done >"$T/tasks"
	ks run --tasks "$T/tasks" --workers 1 --memory 64M --ro-bind "$T/h:/h" --ro-bind "$T/b:/b"
	is "$(js "$T/out" 'sorted({l["verdict"] for l in L})')" "['ok']" \
	    "memory that a task leaves behind is not the next one's"
	if peaks_told; then
		is "$(js "$T/out" '[(l["id"], l["usage"]["memory_peak"]) for l in L if not 38 << 20 <= l["usage"]["memory_peak"] < 62 << 20]')" "[]" \
		    "each one's peak is its own"
	else
		is "$(js "$T/out" '[(l["id"], l["usage"]["memory_peak"]) for l in L if l["usage"].get("memory_peak", by["s1"]["usage"]["memory_peak"]) not in range(38 << 20, 62 << 20)]')" "[]" \
		    "a peak, which cannot begin anew here, is told where it rose: of the first at least"
	fi
else
	not_here "no cgroup: memory is counted by process, and what has none is nobody's"
fi
cat >"$T/tasks" <<'X'
{"id":"a","argv":["sh","-c","chmod 0 /dev/pts/ptmx; chmod 0 /dev/pts; chmod 0 /dev/shm; chmod 0 /dev/ptmx; true"]}
{"id":"b","after":["a"],"argv":["sh","-c","stat -Lc %a /dev/pts /dev/ptmx /dev/shm"]}
X
ks run --tasks "$T/tasks" --workers 1
is "$(js "$T/out" '" ".join(by["b"]["stdout"].split())')" "755 666 1777" "modes below /dev are not what the last task made them"
ks run -- "$PY" -c 'import os; m, s = os.openpty(); os.write(s, b"x\n"); print(os.ttyname(s), os.read(m, 9))'
like "$(out)" "/dev/pts/0 b'x" "and terminals can be made"

# Files that are handed over are memory of the worker until they have been read.
part=1 # of all sizes, in proportion: an emulated machine writes long
[ "${KNIT_SLOW:-1}" = 1 ] || part=2
for i in 1 2 3 4; do
	printf '{"id":"c%d","argv":["sh","-c","for f in 1 2; do head -c %d /dev/zero >f$f; done"],"collect":["f*"]}\n' \
	    $i $((12000000 / part))
	printf '{"id":"m%d","argv":["/h/shm_leave","--use","--mib","%d"]}\n' $i $((40 / part))
done >"$T/tasks"
ks run --tasks "$T/tasks" --workers 1 --debug lifecycle --set /timeouts/claim_ms="$(scaled 5000)" --set /timeouts/stop_ack_ms=20000 \
	--set /timeouts/grace_ms=20000 --ro-bind "$T/h:/h" $(cgroup_granted && echo --memory $((56 / part))M)
is "$(js "$T/out" 'sorted({l["verdict"] for l in L})')" "['ok']" "files of one task are not the memory of the next"
is "$(grep ' kill ' "$T/err")" "" "no worker is blamed while we write"
at_most "$maxrss_kb" 600000 "results that are long are not piled up"

# ---- its worker ----
ks run --ro-bind "$T/h:/h" -- /h/keepers_first
like "$(out)" '^BLOCKED' "a task stays first in line when memory runs out"
if cgroup_granted; then
	for i in 1 2 3; do
		printf '{"id":"k%d","argv":["/h/keepers_first","--full"]}\n{"id":"n%d","argv":["echo","n%d"]}\n' $i $i $i
	done >"$T/tasks"
	ks run --tasks "$T/tasks" --workers 1 --memory 48M --debug lifecycle --ro-bind "$T/h:/h"
	is "$(v k1) $(v k2) $(v k3)" "memory memory memory" "memory of nobody is charged to whom it belongs"
	is "$(v n1) $(v n2) $(v n3)" "ok ok ok" "its neighbours run"
	is "$(err | grep -c spawned)" 1 "all on one worker"
fi

# ---- neighbours ----
# One user, one low limit of open files: his supervisor and his other tasks go on.
cat >"$T/tasks" <<'X'
{"id":"hog","argv":["/h/in_flight","--fill","--for","8"]}
{"id":"w","argv":["sleep","0.5"]}
{"id":"n1","after":["w"],"argv":["sh","-c","echo one >f; echo one"],"collect":["f"]}
{"id":"n2","after":["n1"],"argv":["sh","-c","cat g; echo two"],"files":{"g":{"content":"g"}}}
X
# (for longer than a worker has to take its task)
watched sh -c "ulimit -n 1024; exec \"$KS\" run --workers 2 --debug lifecycle --set /timeouts/claim_ms=$(scaled 5000) --tasks \"$T/tasks\" --ro-bind \"$T/h:/h\""
is "$(v w) $(v n1) $(v n2)" "ok ok ok" "descriptors in flight of one task leave the others theirs"
unlike "$(err)" "spawn failed|not-claimed" "no worker is lost to it"

# One user, few processes, no cgroup: a task gets its share and not the neighbours' too.
if ! cgroup_granted; then
	printf 'import os, time\ntry:\n  while os.fork(): pass\nexcept OSError: pass\ntime.sleep(3)\n' >"$T/h/hog.py"
	cat >"$T/tasks" <<'X'
{"id":"hog","argv":["/usr/bin/python3","/h/hog.py"]}
{"id":"w","argv":["sleep","1"]}
{"id":"n1","after":["w"],"argv":["sh","-c","(echo one); (echo two)"]}
{"id":"n2","after":["n1"],"argv":["sh","-c","(echo three)"]}
X
	watched prlimit --nproc=150 "$KS" run --workers 2 --tasks "$T/tasks" --ro-bind "$T/h:/h"
	is "$(v w) $(v n1) $(v n2)" "ok ok ok" "processes of one task leave the others theirs"
fi

# A tree that many patterns meet, with a folder nobody can read and files called as the
# patterns are: no answer is given twice, which would be a lie of the worker's.
cat >"$T/tree.sh" <<'X'
mkdir -p o/dir shut
: >'o/*'; : >'**'; : >o/f; : >shut/x
ln -s f o/link
mkfifo o/fifo
i=0
while [ $i -lt 300 ]; do : >o/n$i; i=$((i + 1)); done
chmod 0 o/dir o/f
chmod 300 shut
X
chmod 644 "$T/tree.sh"
cat >"$T/tasks" <<'X'
{"id":"tree","argv":["sh","/tree.sh"],"collect":["**","o/*","*/*","**/*","**/**/*","shut/*"],"keep":["o","o/f","o/link","o/fifo","**"]}
{"id":"n1","argv":["echo","one"]}
{"id":"n2","argv":["echo","two"]}
{"id":"n3","argv":["echo","three"]}
X
ks run --tasks "$T/tasks" --workers 1 --debug lifecycle --ro-bind "$T/tree.sh:/tree.sh"
is "$(v tree) $(v n1) $(v n2) $(v n3)" "ok ok ok ok" "a tree of traps costs nobody the worker"
unlike "$(err)" 'violation' "and is no breach of the protocol"

# ---- outside ----
ks run --ro-bind "$T/h:/h" --ro-bind "$T/b:/b" -- /h/lease --file /b/f
like "$(out)" '^BLOCKED' "no lease on a file that is only bound"

left_after "after the task"
done_testing
