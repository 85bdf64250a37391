#!/bin/sh
# 07-accounting.t: usage and peaks are the task's own, also in the 1000th of a worker.
. "$(dirname "$0")/../lib/tap.sh"
left_before

# 500 pairs on one worker: 100 MiB in Python, then `true`.
pairs=${KNIT_PAIRS:-500}
"$PY" - "$pairs" >"$T/tasks" <<'X'
import json, sys
for i in range(int(sys.argv[1])):
    print(json.dumps({"id": "big%d" % i, "argv": ["python3", "-S", "-c", "x = bytearray(100 << 20)"]}))
    print(json.dumps({"id": "small%d" % i, "argv": ["true"]}))
X
watch_opts="--limit 400"
ks run --tasks "$T/tasks" --workers 1
is "$rc $(js "$T/out" 'len({r["id"] for r in L if r["verdict"] == "ok"})')" "0 $((pairs * 2))" "$pairs pairs on one worker: all ok"
is "$(js "$T/out" '{r["worker"] for r in L}')" "{'w0'}" "on one worker"
peak='(r["usage"].get("memory_peak") or r["usage"]["max_rss"])'
at_least "$(js "$T/out" "min($peak for r in L if r['id'].startswith('big'))")" 104857600 "each Python reports at least its 100 MiB"
at_most "$(js "$T/out" "max($peak for r in L if r['id'].startswith('big'))")" 167772160 "and not much more"
at_most "$(js "$T/out" "max($peak for r in L if r['id'].startswith('small'))")" 20971520 "each true reports its own, in all $pairs"
is "$(js "$T/out" 'min(r["usage"]["max_rss"] for r in L if r["id"].startswith("big")) >= 100 << 20 and max(r["usage"]["max_rss"] for r in L if r["id"].startswith("small")) < 20 << 20')" yes "max_rss too"
is "$(js "$T/out" 'sum(r["usage"]["cpu_ms"] for r in L if r["id"].startswith("small")) < sum(r["usage"]["cpu_ms"] for r in L if r["id"].startswith("big")) / 2')" yes "CPU time too: true costs less than half"
if cgroup_granted; then
# (the kernel charges in batches: the smallest tasks may not move the counter)
	peaks_told && is "$(js "$T/out" 'all(r["usage"].get("memory_peak") for r in L if r["id"].startswith("big"))')" yes "with a cgroup: memory_peak is there"
fi

# CPU time: of a spinner, of children, of orphans, of threads; wall of a sleeper.
cat >"$T/tasks" <<'X'
{"id":"sleep","argv":["sleep","0.5"]}
{"id":"spin","argv":["python3","-c","import time\nwhile time.process_time() < 0.5: pass"]}
{"id":"kids","argv":["python3","-c","import os, time\nfor i in range(5):\n    if os.fork() == 0:\n        while time.process_time() < 0.1: pass\n        os._exit(0)\n    os.wait()"]}
{"id":"nowait","argv":["python3","-c","import os, time, signal\nsignal.signal(signal.SIGCHLD, signal.SIG_IGN)\nfor i in range(5):\n    if os.fork() == 0:\n        while time.process_time() < 0.1: pass\n        os._exit(0)\ntry:\n    os.wait()\nexcept OSError:\n    pass"]}
{"id":"true","argv":["true"]}
X
ks run --tasks "$T/tasks" --workers 1
is "$rc" 0 "CPU time: all ok"
cpu() {
	js "$T/out" "$2 <= by['$1']['usage']['cpu_ms'] <= $3 * slow"
}
is "$(cpu sleep 0 100)" yes "a sleeper uses no CPU"
is "$(js "$T/out" 'by["sleep"]["usage"]["wall_ms"] >= 500')" yes "but wall time"
is "$(cpu spin 500 700)" yes "a spinner's 500 ms (C076)"
is "$(cpu kids 500 800)" yes "five children of 100 ms each"
is "$(cpu true 0 100)" yes "true after all of them: its own"
# (without a cgroup the last milliseconds of each are missing)
is "$(cpu nowait 300 800)" yes "five children that nobody waited for"

few=$(some 1 2 3 4 5 6 7 8 9 10 | wc -l)
# C076, C078: a small CPU limit is kept, and told the truth about.
"$PY" -c '
import json, sys
for i in range(2 * int(sys.argv[1])): print(json.dumps({"id": "t%d" % i, "argv": ["sh", "-c", "while :; do :; done"], "limits": {"task": {"cpu_ms": 50}}}))' $few >"$T/tasks"
ks run --tasks "$T/tasks" --workers 1
is "$(js "$T/out" '{r["verdict"] for r in L}')" "{'cpu-timeout'}" "cpu_ms 50: stopped (C076)"
# (one whose watcher gets no time uses more, and that is told)
is "$(js "$T/out" '(lambda c: 52 - 2 * slow <= c[0] and c[len(c) // 2] <= 150 * slow)(sorted(r["usage"]["cpu_ms"] for r in L))')" yes "near 50 ms, and the time reported is true (C076)"
"$PY" -c '
import json, sys
for i in range(4 * int(sys.argv[1])): print(json.dumps({"id": "t%d" % i, "argv": ["python3", "-S", "-c", "import time\nwhile time.process_time() < 0.12: pass"], "limits": {"task": {"cpu_ms": 100}}}))' $few >"$T/tasks"
ks run --tasks "$T/tasks" --workers 2
is "$(js "$T/out" 'all(r["verdict"] == "cpu-timeout" or r["usage"]["cpu_ms"] <= 100 for r in L)')" yes "never ok with more time than the limit (C078)"

# Memory verdicts: over the limit is memory, told apart from a plain SIGKILL (C095).
if cgroup_granted; then
	cat >"$T/tasks" <<'X'
{"id":"hog","argv":["python3","-c","x = bytearray(1 << 30)"],"limits":{"task":{"memory":"64M"}}}
{"id":"kill","argv":["sh","-c","kill -KILL $$"],"limits":{"task":{"memory":"64M"}}}
{"id":"child","argv":["sh","-c","python3 -c 'x = bytearray(1 << 30)'; sleep 0.1; exit 3"],"limits":{"task":{"memory":"64M"}}}
{"id":"shm","argv":["sh","-c","head -c 60M /dev/zero >/dev/shm/a; head -c 60M /dev/zero >/tmp/a; exit 3"],"limits":{"task":{"memory":"48M"}}}
{"id":"after","argv":["python3","-S","-c","x = bytearray(30 << 20)"],"limits":{"task":{"memory":"64M"}}}
{"id":"memfd","argv":["python3","-c","import os\nf = os.memfd_create('x')\nb = b'x' * (1 << 20)\nfor i in range(512): os.write(f, b)"],"limits":{"task":{"memory":"64M"}}}
X
	ks run --tasks "$T/tasks" --workers 1
	is "$(js "$T/out" '" ".join(by[i]["verdict"] for i in "hog kill child after".split())')" "memory signal memory ok" \
	    "memory, a plain SIGKILL, a child over the limit, a good one afterwards (C095)"
	# (direct has no files in memory)
	[ -n "$direct" ] || is_any "$(js "$T/out" 'by["shm"]["verdict"]')" "memory" "memory in tmpfs files counts"
	is "$(js "$T/out" 'by["memfd"]["verdict"]')" memory "memory in a memfd counts"
	is "$(js "$T/out" 'by["hog"]["attempt"]')" 1 "and it is not tried again (C095)"
	# C097, C098: limits too small to live in are refused or end as memory, never ok.
	"$PY" -c '
import json, sys
for i in range(10 * int(sys.argv[1])): print(json.dumps({"id": "t%d" % i, "argv": ["python3", "-c", "x = b\"x\" * (8 << 20)"], "limits": {"task": {"memory": "4M"}}}))' $few >"$T/tasks"
	ks run --tasks "$T/tasks" --workers 2
	like "$(js "$T/out" 'sorted({r["verdict"] for r in L})')" "^\['(memory|invalid|launch-failed)'\]$" "a limit of 4M: one consistent verdict, never ok (C097, C098)"
else
	not_here "memory verdicts need a cgroup; without one see 01-exit-codes.t"
fi

# Who is killed for what others had is not told that it was over a limit (cgroup v2: see
# tests/lab/20-cgroup2.t).
around=/sys/fs/cgroup/memory$(sed -n 's/^[0-9]*:memory://p' /proc/self/cgroup)/knit-test-$$
if [ -n "$root" ] && [ -d "${around%/*}" ] && mkdir "$around"; then
	echo 150M >"$around/memory.limit_in_bytes"
	hog_within() { # LIMIT
		watched sh -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$around" \
		    "$KS" run --memory "$1" --report "$T/report" -- python3 -S -c 'x = bytearray(300 << 20)'
	}
	hog_within 400M
	is "$rc $(verdict)" "125 internal" "killed for want of memory in a group around: no limit of the task's"
	one_clear_line 'at no limit of its own' "and said"
	hog_within 50M
	is "$rc $(verdict)" "137 memory" "its own limit within such a group: memory"
	rmdir "$around"
else
	echo "# no cgroup v1 for memory that we may make"
fi

# What no cgroup counts is not had by leaving it in no account: of children whose end is
# ignored the kernel keeps none, and what is shared and unmapped is in no process.
slow=${KNIT_SLOW:-1}
cat >"$T/forget.py" <<'X'
import os, signal, sys, time
each, n = float(sys.argv[1]), int(sys.argv[2])
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
for i in range(n):
    if os.fork() == 0:
        while time.process_time() < each: pass
        os._exit(0)
    try: os.wait()
    except OSError: pass
    print(int(i * each * 1000), flush=True)
X
cat >"$T/waits.py" <<'X'
import os, resource, subprocess
for i in range(100):
    subprocess.run(["sh", "-c", "/bin/true; /bin/true & (/bin/true); wait"])
print(int(1000 * sum(r.ru_utime + r.ru_stime for r in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))))
X
"$PY" - "$T" "$slow" >"$T/tasks" <<'X'
import json, sys
slow = int(sys.argv[2])
f = {n: {"content": open(sys.argv[1] + "/" + n).read()} for n in ("forget.py", "waits.py")}
cpu, small = {"task": {"cpu_ms": 400 * slow}}, {"task": {"memory": "64M"}}
hold = """import mmap
kept = []
for i in range(64):
    m = mmap.mmap(%s, 8 << 20)
    for at in range(0, 8 << 20, 4096): m[at]
    m.madvise(mmap.MADV_DONTNEED); kept.append(m)
"""
pool = """from multiprocessing import Pool, Value, shared_memory
p = Pool(2)
s = shared_memory.SharedMemory(create=True, size=4096)
print(p.map(abs, [-1, 2]), Value("i", 3).value, s.buf[0])
s.unlink()
"""
zeros = "head -c 3000000 /dev/zero | wc -c; dd if=/dev/zero of=f bs=1M count=3 2>/dev/null; tr -d '\\000' <f | wc -c"
for t in (
    {"id": "long", "argv": ["python3", "-S", "forget.py", "0.05", str(100 * slow)], "limits": cpu},
    {"id": "short", "argv": ["python3", "-S", "forget.py", "0.003", str(2000 * slow)], "limits": cpu},
    {"id": "told", "argv": ["python3", "-S", "forget.py", "0.05", "20"]},
    {"id": "waits", "argv": ["python3", "-S", "waits.py"]},
    {"id": "anon", "argv": ["python3", "-S", "-c", hold % -1], "limits": small},
    {"id": "zero", "argv": ["python3", "-S", "-c", "import os\n" + hold % "os.open('/dev/zero', os.O_RDWR)"], "limits": small},
    {"id": "pool", "argv": ["python3", "-c", pool]},
    {"id": "zeros", "argv": ["sh", "-c", zeros]},
): print(json.dumps(dict(t, files=f)))
X
# A run of these; and another one where a pause let a task use more than it should have.
unseen_by() { # COMMAND...
	"$@"
	[ "$(js "$T/out" 'all(int((by[i]["stdout"].split() or ["0"])[-1]) < 1600 * slow for i in ("long", "short")) and by["told"]["usage"]["cpu_ms"] <= 2000 * slow and by["waits"]["usage"]["cpu_ms"] <= 200 * slow + 1.2 * int(by["waits"]["stdout"])')" = yes ] || {
		diag "once more"
		"$@"
	}
}
unseen() { # WHO
	is "$(js "$T/out" 'by["long"]["verdict"], by["short"]["verdict"]')" "('cpu-timeout', 'cpu-timeout')" "$1: children whose end is ignored count (C076)"
	is "$(js "$T/out" 'all(int(by[i]["stdout"].split()[-1]) < 1600 * slow and by[i]["usage"]["cpu_ms"] >= 400 * slow for i in ("long", "short"))')" yes "$1: they end near the limit, and what they used is told"
	is "$(js "$T/out" 'by["told"]["verdict"] == "ok" and 500 <= by["told"]["usage"]["cpu_ms"] <= 2000 * slow')" yes "$1: 20 of 50 ms each are told where there is no limit"
	is "$(js "$T/out" 'by["waits"]["verdict"] == "ok" and by["waits"]["usage"]["cpu_ms"] <= 200 * slow + 1.2 * int(by["waits"]["stdout"])')" yes "$1: short processes that are waited for count once"
	is "$(js "$T/out" 'by["zeros"]["stdout"].split()')" "['3000000', '0']" "$1: /dev/zero can be read"
	# (launcher direct has no /dev/shm)
	[ -n "$direct" ] || is "$(js "$T/out" 'by["pool"]["stdout"].strip()')" "[1, 2] 3 0" "$1: multiprocessing works"
	is "$(js "$T/out" 'by["zero"]["verdict"] in ("memory", "exit")')" yes "$1: /dev/zero is no memory without a limit"
}
refused_and_told() { # WHO
	is "$(js "$T/out" 'by["anon"]["verdict"], [r["call"] for r in by["anon"]["refused"]], "PermissionError" in by["anon"]["stderr"]')" "('exit', ['mmap'], True)" "$1: shared memory of no file is refused, and that is told"
}
allow='/allow_degraded=["uid","landlock","cgroup.memory","cgroup.pids","cgroup.cpu","mseal"]'
unseen_by ks run --set "$allow" --tasks "$T/tasks" --workers 2
if cgroup_granted; then
	unseen "with a cgroup"
	is "$(js "$T/out" 'by["anon"]["verdict"]')" memory "with a cgroup: shared memory of no file counts"
else
	unseen "without a cgroup"
	refused_and_told "without a cgroup"
fi
if [ -n "$root" ] && [ -n "$bwrap" ] && cgroup_granted; then
	shut='awk '"'"'/ - cgroup2? /{print $5}'"'"' /proc/self/mountinfo | while read -r d; do mount -o remount,bind,ro "$d"; done;'
	unseen_by watched unshare --mount sh -c "$shut"' exec "$0" "$@"' "$KS" run --set "$allow" --tasks "$T/tasks" --workers 2
	unseen "root, who is given no cgroup"
	refused_and_told "root, who is given no cgroup"
fi

# pids: of a fork bomb and of a neighbour of the same user (C088).
cat >"$T/bomb.py" <<'X'
import os, time
n = 0
try:
    while n < 5000:
        if os.fork() == 0:
            time.sleep(30); os._exit(0)
        n += 1
except OSError:
    print(n); raise SystemExit(4)
raise SystemExit(0)
X
"$PY" - "$T" >"$T/tasks" <<'X'
import json, sys
bomb = open(sys.argv[1] + "/bomb.py").read()
print(json.dumps({"id": "bomb", "argv": ["python3", "b.py"], "files": {"b.py": {"content": bomb}}, "limits": {"task": {"pids": 32}}}))
print(json.dumps({"id": "bomb2", "argv": ["python3", "b.py"], "files": {"b.py": {"content": bomb}}}))
for i in range(20):
    print(json.dumps({"id": "n%d" % i, "argv": ["sh", "-c", "for i in 1 2 3 4 5; do (true); sleep 0.02; done"]}))
X
ks run --tasks "$T/tasks" --workers 4
is "$(js "$T/out" 'by["bomb"]["exit_code"], int(by["bomb"]["stdout"] or 0) <= 32')" "(4, True)" "pids 32: fork is refused below it"
is "$(js "$T/out" 'by["bomb2"]["exit_code"], int(by["bomb2"]["stdout"] or 0) <= 256')" "(4, True)" "pids by default: 256"
is "$(js "$T/out" 'sum(by["n%d" % i]["verdict"] == "ok" for i in range(20))')" 20 "neighbours still fork (C088)"

left_after "accounting"
done_testing
