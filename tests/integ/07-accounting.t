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
if cgroup_granted; then
	is "$(cpu nowait 500 800)" yes "five children that nobody waited for"
fi

few=$(some 1 2 3 4 5 6 7 8 9 10 | wc -l)
# C076, C078: a small CPU limit is kept, and told the truth about.
"$PY" -c '
import json, sys
for i in range(2 * int(sys.argv[1])): print(json.dumps({"id": "t%d" % i, "argv": ["sh", "-c", "while :; do :; done"], "limits": {"task": {"cpu_ms": 50}}}))' $few >"$T/tasks"
ks run --tasks "$T/tasks" --workers 1
is "$(js "$T/out" '{r["verdict"] for r in L}')" "{'cpu-timeout'}" "cpu_ms 50: stopped (C076)"
is "$(js "$T/out" 'all(52 - 2 * slow <= r["usage"]["cpu_ms"] <= 150 * slow for r in L)')" yes "near 50 ms, and the time reported is true (C076)"
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
