#!/bin/sh
# 19-teardown.t: a worker that is busy taking down what a task left is not killed for it:
# its next task finds it as it was, and the accounts of the one before are whole.
. "$(dirname "$0")/../lib/tap.sh"
left_before

# Much to take down: files without number, memory, processes; far past its limit.
cat >"$T/heavy.py" <<'X'
import os, sys, time
x = bytearray(200 << 20)
for top in ("/tmp", "/task"):
    try:
        for i in range(30000):
            with open("%s/%d" % (top, i), "w") as f:
                f.write("x")
    except OSError:
        pass  # no room for more
for i in range(20):
    if os.fork() == 0:
        break
sys.stdout.write("full")
sys.stdout.flush()
time.sleep(1000)
X
"$PY" - "$T/heavy.py" $(scaled 4000) >"$T/tasks" <<'X'
import json, sys
code = open(sys.argv[1]).read()
for i in range(3):
    print(json.dumps({"id": "heavy%d" % i, "argv": ["python3", "-S", "-c", code], "timeouts": {"hard_ms": int(sys.argv[2])}}))
    print(json.dumps({"id": "after%d" % i, "argv": ["ls", "/tmp", "/task"]}))
X
watch_opts="--limit 200"
ks run --debug lifecycle --tasks "$T/tasks" --workers 1 --set /timeouts/hard_slack_ms="$(scaled 500)" --report "$T/report"
is "$(js "$T/out" '[r["verdict"] for r in L if r["id"].startswith("heavy")]')" "['timeout', 'timeout', 'timeout']" "past its limit: timeout"
is "$(js "$T/out" 'min(r["usage"]["cpu_ms"] for r in L if r["id"].startswith("heavy")) > 50')" yes "its CPU time is told"
is "$(js "$T/out" '[r["verdict"] for r in L if r["id"].startswith("after")]')" "['ok', 'ok', 'ok']" "the task after it is ok"
is "$(js "$T/out" '{r["stdout"] for r in L if r["id"].startswith("after")} == {"/task:\n\n/tmp:\n"}')" yes "and finds nothing"
is "$(js "$T/report" 'L[0]["workers_lost"]')" 0 "no worker was lost"
is "$(grep -c ' spawned ' "$T/err")" 1 "it was one worker all the time"
diag "asked whether it was over: $(grep -c 'is over, its cell' "$T/err") of 3, had made all: $(grep -c '"stdout":"full' "$T/out")"

# That time is teardown_ms: where there is none, the worker is killed for being busy.
head -n 1 "$T/tasks" >"$T/one"
watch_opts="--limit 200"
ks run --debug lifecycle --tasks "$T/one" --workers 1 --set /timeouts/teardown_ms=0
is "$(js "$T/out" 'by["heavy0"]["verdict"]')" timeout "without teardown_ms: the same verdict"
late=$("$PY" -S - "$T/err" $(scaled 4000) <<'X'
import re, sys
said = open(sys.argv[1], errors="replace").read()
at = lambda what: float(re.search(r"\+([0-9.]+)ms lifecycle\] %s heavy0" % what, said)[1])
print("in time" if at("answer") - at("task") < int(sys.argv[2]) + 1000 else "late")
X
)
if [ "$late" = "in time" ] && ! grep -q 'kill why=' "$T/err"; then
	diag "all was taken down within a second, and the worker kept"
else
	at_least "$(grep -c 'kill why=' "$T/err")" 1 "and a worker that is killed"
fi

left_after "cells that take long to take down"
done_testing
