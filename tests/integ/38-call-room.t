#!/bin/sh
# 38-call-room.t: calls and results that have no room: in the payload area, in the
# supervisor's memory, on its streams.
. "$(dirname "$0")/../lib/tap.sh"
left_before
M=$B/tests/module

# ---- the payload area ----
"$PY" - >"$T/tasks" <<'X'
import json
for i in range(200):
    print(json.dumps({"id": str(i), "call": "echo", "value": "%d:" % i + "x" * 8000}))
    if i in (50, 100):
        print(json.dumps({"id": "cap%d" % i, "call": "echo", "value": "x" * 8193}))
        print(json.dumps({"id": "area%d" % i, "call": "echo", "value": "x" * 65536}))
X
for how in off brokered shared; do
	ks run --module "$M/basic.so" --workers 2 --steal $how --set /payload/area=64K --set /payload/max=8K --tasks "$T/tasks"
	is "$(js "$T/out" 'len(L) == len(by) == 204 and all(r["verdict"] == "ok" and r["value"] == i + ":" + "x" * 8000 for i, r in by.items() if i.isdigit())')" \
	    yes "$how: 200 calls of 8 KB through an area of 64 KB wait for each other, and are right"
	is "$(js "$T/out" '{r["verdict"] + " " + str("KNT_ERROR_3" in r["error"]) for i, r in by.items() if not i.isdigit()}')" \
	    "{'too-large True'}" "$how: more than its cap, and more than the area: KNT_ERROR_3"
done

# Results that wait for room while their worker is told to stop, which in a bank it may be at
# any time: what it has claimed is answered first.
n=2000
[ "${KNIT_SLOW:-1}" = 1 ] || n=300
"$PY" - $n >"$T/tasks" <<'X'
import json, sys
for i in range(int(sys.argv[1])):
    print(json.dumps({"id": str(i), "call": "make", "value": 8000}))
X
ks run --quiet --module "$M/basic.so" --workers 8 --steal shared --set /pool/recycle/tasks=30 \
    --set /payload/area=64K --set /payload/max=8K --tasks "$T/tasks"
is "$rc $(js "$T/out" 'len(L), len(by), {r["verdict"] + " " + str(r["error"]) for r in L if r["verdict"] != "ok" or r["attempt"] != 1}')" \
    "0 ($n, $n, set())" "shared: a worker that is recycled while its results have no room answers them all"

# ---- long calls that run, each with its own room, in workers of one bank ----
"$PY" - "$(scaled 300)" "$(scaled 3000)" >"$T/tasks" <<'X'
import json, sys
warm = ["warm%d" % i for i in range(12)]
def say(id, ms, n, **more):
    print(json.dumps({"id": id, "call": "hold_ms", "value": ms + " " + "x" * n, **more}))
for i in warm:
    say(i, sys.argv[1], 1)
for i in range(11):
    say("long%d" % i, sys.argv[2], 8000, after=warm)
for i in range(20):
    say("short%d" % i, "0", 1, after=warm)
X
ks run --module "$M/basic.so" --workers 12 --steal shared --set /payload/area=64K --set /payload/max=8K \
	--set /timeouts/claim_ms="$(scaled 1000)" --set /timeouts/stop_ack_ms=20000 --set /timeouts/grace_ms=20000 --debug lifecycle --tasks "$T/tasks"
is "$rc $(js "$T/out" 'len(L) == len(by) == 43 and {r["verdict"] for r in L} == {"ok"}')" "0 yes" "more long calls at a time than one worker has room for"
is "$(grep -c 'kill why' "$T/err")" 0 "no worker is killed for what waits for room"
at_least "$(js "$T/out" 'len({r["worker"] for i, r in by.items() if i.startswith("long")})')" 9 "and they do not wait for each other"

# ---- the supervisor's memory ----
cat >"$T/starve.py" <<'X'
import json, os, resource, subprocess, sys
p = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
def call(**task):
    p.stdin.write((json.dumps(task) + "\n").encode())
    p.stdin.flush()
    return json.loads(p.stdout.readline())
first = call(id="first", call="worker")
# A mapping goes on growing here and there: as much as it has, and two megabytes.
pages = int(open("/proc/%d/statm" % p.pid).read().split()[0])
old = resource.prlimit(p.pid, resource.RLIMIT_AS)
resource.prlimit(p.pid, resource.RLIMIT_AS, (pages * resource.getpagesize() + (2 << 20), old[1]))
big = call(id="big", call="make", value=8 << 20)
small = call(id="small", call="make", value=4096)
resource.prlimit(p.pid, resource.RLIMIT_AS, old)
again = call(id="again", call="make", value=8 << 20)
p.stdin.close()
status = p.wait()
print(first["verdict"], big["verdict"], small["verdict"], again["verdict"], status)
print(big["error"])
X
KS_MODULE="$KS run --module $M/basic.so --workers 1 --debug lifecycle --tasks -"
# shellcheck disable=SC2086
"$PY" "$T/starve.py" $KS_MODULE >"$T/told" 2>"$T/err"
is "$(head -1 "$T/told")" "ok internal ok ok 1" "a result that there is no memory for: internal, and its neighbours are right"
like "$(tail -1 "$T/told")" "result.*memory" "and it is said what was missing"
is "$(grep -c ' spawned ' "$T/err")" 1 "and its worker lives on"

# ---- its streams ----
cat >"$T/talk.py" <<'X'
import json, subprocess, sys, time
p = subprocess.Popen(sys.argv[2:], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=open(sys.argv[1], "wb"))
for t in ({"id": "talk", "call": "talk_for_ever"}, {"id": "wait", "call": "deaf_ms", "value": 3600000}):
    p.stdin.write((json.dumps(t) + "\n").encode())
p.stdin.flush()
def told():
    return open(sys.argv[1], "rb").read().count(b"more than is shown")
def read():
    return next(int(x.split()[1]) for x in open("/proc/%d/io" % p.pid) if x.startswith("rchar"))
end = time.monotonic() + 60
while told() < 2 and time.monotonic() < end:
    time.sleep(0.05)
at, n = time.monotonic(), read()
time.sleep(1)
took, n = time.monotonic() - at, read() - n
# Two pipes, each of 64 KiB, each 50 ms at most; and what else it reads.
most = 2 * 65536 * (took / 0.05 + 2) + 65536
print("few" if told() == 2 and n <= most else "%d bytes in %.2f s, told %d" % (n, took, told()))
p.kill()
p.wait()
X
"$PY" "$T/talk.py" "$T/err" "$KS" run --quiet --module "$M/hostile.so" --workers 1 --timeout 3600s \
    --set /limits/task/stdout=64K --set /limits/task/stderr=64K --tasks - >"$T/told" 2>&1
is "$(cat "$T/told")" few "what a module prints past its cap is not read as fast as it comes"
printf '%s\n' '{"id":"talk","call":"talk_for_ever"}' '{"id":"at","call":"deaf_ms","value":3600000}' '{"id":"next","call":"echo","value":"x"}' >"$T/tasks"
ks run --module "$M/hostile.so" --workers 1 --timeout 3600s --set /limits/task/stdout=64K --set /on_output_limit=kill --tasks "$T/tasks"
is "$(js "$T/out" '[by[i]["verdict"] for i in ("at", "next")]')" "['output-limit', 'ok']" "where the policy says so it is the end of the call that runs, and the next one is right"
left_after "calls without room"
done_testing
