#!/bin/sh
# 10-scale.t: 10,000 tasks over 4 workers: each id once, the supervisor's memory flat.
. "$(dirname "$0")/../lib/tap.sh"
left_before

n=${KNIT_SCALE:-10000}
"$PY" - "$n" >"$T/tasks" <<'X'
import json, sys
for i in range(int(sys.argv[1])):
    print(json.dumps({"id": "t%d" % i, "argv": ["/bin/echo", str(i)], "stdin": "x" * (i % 2000)}))
X
watch_opts="--samples $T/samples --limit 300"
ks run --tasks "$T/tasks" --workers 4
is "$rc" 0 "$n tasks over 4 workers: 0"
is "$(wc -l <"$T/out")" "$n" "one line each"
is "$(js "$T/out" 'len(by)')" "$n" "each id once"
is "$(js "$T/out" 'all(r["verdict"] == "ok" and r["stdout"] == r["id"][1:] + "\n" for r in L)')" yes "each with its own output"
is "$(js "$T/out" 'len({r["worker"] for r in L})')" 4 "by four workers"
# A quarter of the way in everything it needs is there; later it must not grow.
is "$(js "$T/samples" 'max(s["rss_kb"] for s in L[len(L)//4:]) <= 1.05 * max(s["rss_kb"] for s in L[len(L)//8:len(L)//4 + 1]) + 1024')" yes \
    "the supervisor's memory is flat"
diag "memory: $(js "$T/samples" '[s["rss_kb"] for s in L[::max(1, len(L)//8)]]') KiB, $elapsed_ms ms"
at_most "$(js "$T/samples" 'max(s["fds"] for s in L)')" 400 "its descriptors are bounded"

# A reader that is slow must not make it grow either.
m=$((n * 15 / 100))
"$PY" - $m >"$T/tasks" <<'X'
import json, sys
for i in range(int(sys.argv[1])):
    print(json.dumps({"id": "t%d" % i, "argv": ["sh", "-c", "head -c 60000 /dev/zero | tr '\\0' x"]}))
X
cat >"$T/slow.py" <<'X'
import sys, time
n = 0
for line in sys.stdin.buffer:
    n += 1
    if n < 60: time.sleep(0.05)
print(n)
X
watch_opts="--samples $T/samples --limit 200"
watched sh -c 'exec 3>&1; "$0" run --tasks "$1" --workers 2 | "$2" "$3" >&3' "$KS" "$T/tasks" "$PY" "$T/slow.py"
is "$(out)" $m "$((m * 6 / 100)) MB of results to a slow reader: all arrive"

# Many files and a long `after` chain in constant memory.
m=$((n * 3 / 100))
"$PY" - $m >"$T/tasks" <<'X'
import json, sys
prev = None
for i in range(int(sys.argv[1])):
    t = {"id": "c%d" % i, "argv": ["sh", "-c", "cat f 2>/dev/null >g; echo %d >>g" % i], "keep": ["g"]}
    if prev: t["after"], t["files"] = [prev], {"f": {"from": prev + "/g"}}
    prev = t["id"]
    print(json.dumps(t))
print(json.dumps({"id": "end", "after": [prev], "argv": ["wc", "-l", "f"], "files": {"f": {"from": prev + "/g"}}}))
X
ks run --tasks "$T/tasks" --workers 4
is "$rc $(js "$T/out" 'by["end"]["stdout"].split()[0]')" "0 $m" "a chain of $m tasks, each with the file of the one before"

# Fewer descriptors than a batch needs: refused, and it says what to do.
echo '{"id":"a","argv":["true"]}' >"$T/tasks"
watched sh -c 'ulimit -n 24; exec "$0" run --tasks "$1"' "$KS" "$T/tasks"
is $rc 125 "24 descriptors for a batch: 125"
like "$(err)" '^hint: .*ulimit -n' "24 descriptors for a batch: what to do"
unlike "$(err)" 'worker [0-9]+: worker' "24 descriptors for a batch: the worker is named once"

left_after "scale"
done_testing
