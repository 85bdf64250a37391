#!/bin/sh
# 18-pool.t: spares, recycling, crash loops, and who gets which task: stolen tasks in the
# trace; what a start sweeps, and that it crosses no mount.
. "$(dirname "$0")/../lib/tap.sh"
left_before

# ---- stealing, as the trace shows it ----
"$PY" - "$(scaled 400)" >"$T/tasks" <<'X'
import json, sys
for i in range(96):
    print(json.dumps({"id": "t%d" % i, "argv": ["sleep", str(int(sys.argv[1]) / 1000) if i % 16 == 0 else "0.005"]}))
X
# e EXPR: over the events E of the trace, X of them the runs of tasks.
e() {
	"$PY" -c '
import json, sys
E = json.load(open(sys.argv[1]))
X = {e["name"]: e for e in E if e["ph"] == "X"}
named = {e["tid"]: e["args"]["name"] for e in E if e["name"] == "thread_name"}
moved = {}
for e in E:
    if e.get("cat") == "moved":
        moved.setdefault(e["name"], []).append(e)
starts = [e for v in moved.values() for e in v if e["ph"] == "s"]
print(eval(sys.argv[2]))' "$T/trace" "$1" 2>&1
}
ks run --tasks "$T/tasks" --workers 4 --trace "$T/trace"
is "$rc $(js "$T/out" 'len(by)')" "0 96" "uneven tasks over 4 workers"
is "$(e 'sorted({e["ph"] for e in E})')" "['M', 'X', 'b', 'e', 'f', 'i', 's']" "the trace is JSON, with Chrome's kinds of events"
is "$(e 'len(X), sum(e["ph"] == "X" for e in E)')" "(96, 96)" "each task ran once"
is "$(e 'all(isinstance(e[k], (int, float)) for e in E if e["ph"] != "M" for k in ("ts", "pid", "tid"))')" True "each event has its time and its row"
at_least "$(e 'len(moved)')" 1 "tasks were moved away from busy workers"
diag "$(e 'len(moved)') of 96 tasks moved: $(e 'sorted({e["args"]["from"] + ">" + e["args"]["to"] for e in starts})')"
is "$(e '[m for m, v in moved.items() if 2 * sum(e["ph"] == "s" for e in v) != len(v)]')" "[]" "each move has its two ends"
is "$(e '[m for m, v in moved.items() if named[X[m]["tid"]] != [e for e in v if e["ph"] == "s"][-1]["args"]["to"]]')" "[]" \
    "a moved task ran where the move went to"
is "$(e '[e for e in starts if named[e["tid"]] != e["args"]["from"] or e["args"]["from"] == e["args"]["to"]]')" "[]" "and it came from another worker"
is "$(e '[m for m, v in moved.items() if X[m]["ts"] < v[0]["ts"]]')" "[]" "it began after it was taken back"
# Whom it was taken from had a task to run: one that was going on then.
is "$(e '[e for e in starts if not any(x["tid"] == e["tid"] and x["ts"] - '"$(scaled 20000)"' <= e["ts"] <= x["ts"] + x["dur"] + '"$(scaled 20000)"' for x in X.values())]')" "[]" \
    "its first worker was busy"
ks run --tasks "$T/tasks" --workers 4 --steal off --trace "$T/trace"
is "$rc $(js "$T/out" 'len(by)') $(e 'len(moved)')" "0 96 0" "--steal off: nothing moves"

# ---- spares ----
# One task a worker: with a spare the next task finds one that is ready, without it never.
naps() { # N MS
	"$PY" - "$1" "$(scaled "$2")" >"$T/tasks" <<'X'
import json, sys
for i in range(int(sys.argv[1])):
    print(json.dumps({"id": "t%d" % i, "argv": ["sleep", "%.2f" % (int(sys.argv[2]) / 1000)]}))
X
}
cat >"$T/spares.py" <<'X'
# Log of --debug lifecycle -> how many tasks went to a worker that was ready before the
# task before had ended, and how long each waited after that end (median, ms).
import re, sys
ready, ended, used, waits = {}, None, 0, []
for line in open(sys.argv[1]):
    m = re.match(r"\[(w\d+) \+([0-9.]+)ms lifecycle\] (\S+)", line)
    if not m:
        continue
    w, at, what = m.group(1), float(m.group(2)), m.group(3)
    if what == "ready":
        ready[w] = at
    elif what == "answer":
        ended = at
    elif what == "task" and " slot=" in line and ended is not None:
        used += ready[w] < ended
        waits.append(at - ended)
print(used, "%.2f" % sorted(waits)[len(waits) // 2])
X
# How fast a worker hears and ends is not what is asked here.
patient='--set /timeouts/claim_ms=60000 --set /timeouts/stop_ack_ms=20000 --set /timeouts/grace_ms=20000'
for spares in 0 1; do
	# (a spare is launched while a task runs: that has to be long enough)
	case $spares in 0) n=20 ms=150 ;; 1) n=10 ms=600 ;; esac
	[ "${KNIT_SLOW:-1}" = 1 ] || n=8
	[ -z "$engine" ] || [ $spares = 0 ] || ms=1200
	naps $n $ms
	ks run $patient --tasks "$T/tasks" --workers 1 --set /pool/recycle/tasks=1 --set /pool/spares=$spares --debug lifecycle
	is "$rc $(js "$T/out" 'len(by)')" "0 $n" "recycled after each task, spares $spares: all answered"
	at_least "$(grep -c ' ready pid' "$T/err")" $n "spares $spares: a worker for each task"
	unlike "$(err)" 'kill why|spawn failed' "spares $spares: nobody is killed for it"
	eval "used_$spares='$("$PY" "$T/spares.py" "$T/err")'"
done
is "${used_0% *}" 0 "without a spare each task waits for a launch"
at_least "${used_1% *}" $((n / 2)) "with one spare the next worker is ready already"
echo "# recycled after each task: from one's end to the next's start ${used_0#* } ms without a spare, ${used_1#* } ms with one: $("$PY" -c "print('%.0f times' % (${used_0#* } / max(${used_1#* }, 0.01)))")" >&2

# ---- recycling ----
# How many answers one worker gave, at most.
most() {
	"$PY" -c '
import re, sys
n, most = {}, 0
for line in open(sys.argv[1]):
    m = re.match(r"\[(w\d+) \S+ lifecycle\] (spawned|answer)", line)
    if m and m.group(2) == "spawned":
        n[m.group(1)] = 0
    elif m:
        n[m.group(1)] += 1
        most = max(most, n[m.group(1)])
print(most)' "$T/err"
}
"$PY" - >"$T/tasks" <<'X'
import json
for i in range(60): print(json.dumps({"id": "t%d" % i, "argv": ["true"]}))
X
ks run --tasks "$T/tasks" --workers 2 --set /pool/recycle/tasks=7 --debug lifecycle
is "$rc $(js "$T/out" 'len(by)') $(most)" "0 60 7" "recycled after seven tasks"
"$PY" - >"$T/tasks" <<'X'
import json
for i in range(30): print(json.dumps({"id": "t%d" % i, "argv": ["sleep", "0.1"]}))
X
ks run $patient --tasks "$T/tasks" --workers 1 --set /pool/recycle/seconds=1 --debug lifecycle
is "$rc $(js "$T/out" 'len(by)')" "0 30" "recycled by age: all answered"
at_least "$(grep -c spawned "$T/err")" 3 "recycled by age: three seconds are three workers"
unlike "$(err)" 'kill why' "recycled by age: nobody is killed for it"
if cgroup_granted; then
	ks run --tasks "$T/tasks" --workers 1 --set /pool/recycle/memory=64K --debug lifecycle
	is "$rc $(js "$T/out" 'len(by)')" "0 30" "recycled by memory: all answered"
	at_least "$(grep -c spawned "$T/err")" 2 "recycled by memory: who holds more is replaced"
	ks run --tasks "$T/tasks" --workers 1 --set /pool/recycle/memory=1G --debug lifecycle
	is "$rc $(grep -c spawned "$T/err")" "0 1" "recycled by memory: who holds less stays"
else
	not_here "no cgroup, by which memory would be known"
fi

# ---- a crash loop ends the pool, once, in words ----
if [ -n "$bwrap" ]; then
	printf '#!/bin/sh\necho "bwrap: this machine is not in the mood" >&2\nexit 1\n' >"$T/bwrap"
	chmod 755 "$T/bwrap"
	watched env KNIT_BWRAP="$T/bwrap" "$KS" run --tasks "$T/tasks" --workers 2 --debug lifecycle
	is "$rc $(js "$T/out" '{r["verdict"] for r in L}, len(by)')" "125 ({'launch-failed'}, 30)" "a launcher that always fails: 125, each task has its line"
	is "$(grep -c '^knit-sandbox: .*not in the mood' "$T/err")" 1 "and one cause"
	at_most "$(grep -c spawned "$T/err")" 40 "and it is not tried for ever"
	like "$(err)" 'pool failed why=crash-loop' "and the log says that it was a crash loop"
else
	not_here "another bwrap"
fi

# ---- what a start sweeps ----
# A folder of a supervisor that is dead, with mounts in it: what is mounted stays.
cat >"$T/keep.sh" <<'X'
set -e
prefix=$(sed -n 's/^#define PRIVATE_PREFIX "\(.*\)"$/\1/p' "$3")
d=$TMPDIR/${prefix}dead00
mkdir -p "$d/plain/deep" "$d/mount" "$d/bind" "$1/host"
echo own >"$d/plain/deep/f"
echo precious >"$1/host/f"
mount -t tmpfs none "$d/mount"
echo mounted >"$d/mount/f"
mount --bind "$1/host" "$d/bind"
ln -s "$1/host" "$d/link"
echo '{"id":"a","argv":["sh","-c","echo x >k"],"keep":["k"]}' >"$1/one"
"$2" run --quiet --tasks "$1/one" >"$1/one.out"
cat "$d/mount/f" "$d/bind/f" "$1/host/f"
ls "$d"
umount "$d/mount" "$d/bind"
"$2" run --quiet --tasks "$1/one" >"$1/one.out"
ls -d "$TMPDIR/$prefix"* 2>/dev/null || echo swept
X
# shellcheck disable=SC2086
[ -z "$own_mounts" ] || watched $own_mounts sh "$T/keep.sh" "$T" "$KS" "$t_top/supervisor/batch_keep.c"
if [ -z "$own_mounts" ]; then
	not_here "mounts that only we see"
elif grep -q 'userns.py\|mount: ' "$T/err"; then
	skip "no mounts of one's own here: $(head -n 1 "$T/err")" "a sweep of kept files crosses no mount"
else
	is "$(out)" "mounted
precious
precious
bind
mount
swept" "a sweep of kept files crosses no mount, also none of the same file system"
fi
rm -rf "$T/host"

# A control group of a supervisor that is dead, with a file system mounted in it whose
# cgroup.procs names somebody else.
cat >"$T/group.py" <<'X'
import os, subprocess, sys
sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
import faults as F
ks = sys.argv[2]
victim = subprocess.Popen(["sleep", "100"])
dead = subprocess.Popen(["true"])
dead.wait()
name = "knit-%s-%d-1-%d" % ("0" * 32, dead.pid, os.stat("/proc/self/ns/pid").st_ino)
made = []
# where a live one has its groups
live = subprocess.Popen([ks, "run", "--quiet", "--", "sleep", "1"])
parents = set()
while live.poll() is None:
    parents |= {os.path.dirname(g) for g in F.groups(live.pid)}
for d in sorted(parents):
    g = os.path.join(d, name)
    try:
        os.makedirs(os.path.join(g, "w0"))
        os.makedirs(os.path.join(g, "w1"))
    except OSError:
        continue
    inside = subprocess.Popen(["sleep", "100"])
    try:
        with open(os.path.join(g, "w1", "cgroup.procs"), "w") as f:
            f.write("%d" % inside.pid)
    except OSError:
        inside.kill()
    w0 = os.path.join(g, "w0")
    subprocess.check_call(["mount", "-t", "tmpfs", "none", w0])
    os.makedirs(os.path.join(w0, "folder"))
    for f in ("cgroup.procs", "cgroup.kill"):
        with open(os.path.join(w0, f), "w") as h:
            h.write("%d\n" % victim.pid)
    made.append((g, inside))
subprocess.call([ks, "run", "--quiet", "--", "true"])
print("groups" if made else "no groups")
for g, inside in made:
    w0 = os.path.join(g, "w0")
    print(os.path.isdir(os.path.join(w0, "folder")),
          open(os.path.join(w0, "cgroup.kill")).read() == "%d\n" % victim.pid,
          os.path.exists(os.path.join(g, "w1")), inside.wait(5))
    subprocess.check_call(["umount", w0])
print("victim", victim.poll())
victim.kill()
subprocess.call([ks, "run", "--quiet", "--", "true"])
print("left", [g for g, _ in made if os.path.exists(g)])
X
if [ -n "$root" ] && cgroup_granted && command -v unshare >/dev/null; then
	# (processes of one's own: other supervisors on this machine sweep too)
	watched unshare --mount --propagation private --pid --fork --mount-proc "$PY" "$T/group.py" "$t_top/tests/fault" "$KS"
	is "$(out | LC_ALL=C sort -u)" "True True False -9
groups
left []
victim None" "a sweep of control groups crosses no mount, and takes what is the dead one's"
else
	not_here "a control group of a dead supervisor with a mount in it"
fi

left=0
left_after "pools"
done_testing
