#!/bin/sh
# 33-calls.t: ten thousand calls of which each tenth crashes; who runs what, as the trace
# shows it; large payloads: read where they lie, few at a time, their pages given back;
# what the log says of a module; a pool within a pool is refused by name.
. "$(dirname "$0")/../lib/tap.sh"
left_before
M=$B/tests/module

# ---- crashes ----
for steal in brokered shared; do
	n=10000
	[ "${KNIT_SLOW:-1}" = 1 ] || n=1000
	"$PY" - $n >"$T/tasks" <<'X'
import json, sys
for i in range(int(sys.argv[1])):
    print(json.dumps({"id": str(i), "call": "segv" if i % 10 == 0 else "echo", "value": i}))
X
	ks run --quiet --module "$M/basic.so" --workers 4 --steal $steal --tasks "$T/tasks"
	is "$rc $(js "$T/out" '(len(L), len(by))')" "1 ($n, $n)" "$steal: $n calls have an answer each"
	is "$(js "$T/out" 'sum(r["verdict"] == "signal" and r["signal"] == 11 for i, r in by.items() if int(i) % 10 == 0)')" $((n / 10)) \
	    "$steal: each tenth crashed, and says so"
	is "$(js "$T/out" 'sum(r["verdict"] == "ok" and r["value"] == int(i) and r["attempt"] == 1 for i, r in by.items() if int(i) % 10)')" $((n / 10 * 9)) \
	    "$steal: all others are right"
done
# Who dies of memory is answered so, and nobody who dies later in the same process.
if cgroup_granted; then
	printf '%s\n' '{"id":"first","call":"nothing"}' '{"id":"child","call":"child_eats"}' \
	    '{"id":"crash","call":"segv"}' >"$T/tasks"
	ks run --quiet --module "$M/basic.so" --workers 1 --memory 64M --tasks "$T/tasks"
	is "$(js "$T/out" '[(by[i]["verdict"], by[i]["value"]) for i in ("first", "child", "crash")]')" \
	    "[('ok', None), ('ok', 9), ('signal', None)]" "a crash after a child that was killed for memory is a crash"
else
	not_here "what the kernel kills for memory: no memory cgroup is granted"
fi

# ---- who runs what ----
"$PY" - "$(scaled 250)" >"$T/tasks" <<'X'
import json, sys
for i in range(160):
    print(json.dumps({"id": "c%d" % i, "call": "sleep_ms", "value": int(sys.argv[1]) if i % 32 == 0 else 2}))
X
# e EXPR: over the events E of the trace, X of them the runs of calls.
e() {
	"$PY" -c '
import json, sys
E = json.load(open(sys.argv[1]))
X = [e for e in E if e["ph"] == "X"]
rows = {e["tid"]: e["args"]["name"] for e in E if e["name"] == "thread_name"}
print(eval(sys.argv[2]))' "$T/trace" "$1" 2>&1
}
for steal in brokered shared; do
	ks run --quiet --module "$M/basic.so" --workers 4 --steal $steal --tasks "$T/tasks" --trace "$T/trace"
	is "$rc $(js "$T/out" 'len(by)')" "0 160" "$steal: uneven calls over 4 workers"
	is "$(e 'len(X), len({e["name"] for e in X}), all(k in e for e in X for k in ("ts", "dur", "pid", "tid"))')" "(160, 160, True)" \
	    "$steal: the trace is JSON, and has each call once, with its time and its row"
	is "$("$PY" "$t_lib/trace.py" "$T/trace")" loads "$steal: viewers take it"
	is "$(e 'sorted({rows[e["tid"]] for e in X})')" "$(js "$T/out" 'sorted({r["worker"] for r in L})')" "$steal: in the rows of the workers that answered"
	is "$(e '[e["name"] for e in X if e["dur"] > '"$(scaled 200000)"' and sum(o["ts"] > e["ts"] for o in X) > 40 and any(o["tid"] != e["tid"] and o["ts"] < e["ts"] for o in X) and not any(o["tid"] != e["tid"] and e["ts"] < o["ts"] < e["ts"] + e["dur"] for o in X)]')" \
	    "[]" "$steal: while one is at a long call, others begin calls"
done
# Every other one is given to the worker that is at the long one.
{
	echo '{"id":"long","call":"sleep_ms","value":1000}'
	for i in 1 2 3 4 5 6 7 8 9 10 11 12; do echo "{\"id\":\"c$i\",\"call\":\"sleep_ms\",\"value\":2}"; done
} >"$T/tasks"
ks run --quiet --module "$M/basic.so" --workers 2 --set /pool/balancer=round-robin --steal brokered --tasks "$T/tasks" --trace "$T/trace"
at_least "$(e 'len({e["name"] for e in E if e.get("cat") == "moved"})')" 1 "brokered: calls moved away from busy workers"

# ---- payloads ----
"$PY" - >"$T/tasks" <<'X'
import json
print(json.dumps({"id": "large", "call": "where", "value": "x" * 513}))
print(json.dumps({"id": "huge", "call": "where", "value": "x" * 5000000}))
X
for steal in brokered shared; do
	ks run --quiet --module "$M/checked.so" --workers 2 --steal $steal --tasks "$T/tasks"
	is "$(js "$T/out" '[by[i]["value"] for i in ("large", "huge")]')" "['arena arena', 'arena arena']" \
	    "$steal: what is larger than a slot is read and written where it lies"
done

# Blocks of the arena, as the kernel counts them: while 200 large calls wait, and when all
# has been quiet for some seconds.
cat >"$T/blocks.py" <<'X'
import json, os, subprocess, sys, threading, time, zlib
p = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
arena = None
def ask(*args): # beside the reading, or both pipes would fill
    threading.Thread(target=write, args=args).start()
def write(n, size, sleep_us):
    for i in range(n):
        rest = "%d %d %s" % (i, sleep_us, "x" * size)
        line = {"id": "%d.%d.%f" % (size, i, time.monotonic()), "call": "checked", "value": "%08x %s" % (zlib.crc32(rest.encode()), rest)}
        p.stdin.write((json.dumps(line) + "\n").encode())
    p.stdin.flush()
def kib():
    global arena
    while not arena:
        for fd in os.listdir("/proc/%d/fd" % p.pid):
            path = "/proc/%d/fd/%s" % (p.pid, fd)
            try:
                if "memfd:knit-arena" in os.readlink(path):
                    arena = path
            except OSError:
                pass
    return os.stat(arena).st_blocks // 2
most, ended = 0, False
def watch(): # beside the reading, which takes longer than the quiet on a slow machine
    global most
    while not ended:
        most = max(most, kib())
        time.sleep(0.01)
def answers(n):
    for _ in range(n):
        line = p.stdout.readline()
        r = json.loads(line)
        if r["verdict"] != "ok":
            print(r["verdict"], r["error"])
def most_of(n, size, sleep_us):
    global most
    most = 0
    ask(n, size, sleep_us)
    answers(n)
    return most - base
ask(1, 10, 0)
answers(1)
base = kib()
watcher = threading.Thread(target=watch)
watcher.start()
def left_of(full): # when all has been quiet; an area may share its last page
    few, end = max(full // 16, 48), time.monotonic() + 40
    while kib() - base > few and time.monotonic() < end:
        time.sleep(0.1)
    left = kib() - base
    return "given back" if left <= few else "%d of %d left" % (left, full)
many = most_of(200, 100001, 2000) # no multiple of a line: they lie in a row
areas = many / 100
left = [left_of(many)]
full = most_of(3, 6000000, 0)
left.append(left_of(full))
ask(2, 6000000, 0)
answers(2)
ended = True
watcher.join()
p.stdin.close() # (all is written, or it had not been answered)
# Each place that calls or results lie in has 32 areas: of two workers a lane each and a
# way back each, or one bank and two ways back.
places = int(os.environ["PLACES"]) * 32
print("areas %s; %s; %s; rc %d" % ("at most 32 a place" if areas <= places + 1 else areas, "large" if full > 5500 else full, ", ".join(left), p.wait()))
X
for steal in brokered shared; do # both wait for the same quiet
	PLACES=$([ $steal = shared ] && echo 3 || echo 4) "$PY" "$T/blocks.py" "$KS" run --quiet --module "$M/checked.so" --workers 2 --steal $steal --tasks - >"$T/$steal" &
done
wait
for steal in brokered shared; do
	is "$(cat "$T/$steal")" \
	    "areas at most 32 a place; large; given back, given back; rc 0" "$steal: 32 areas a direction at most; the pages of many in a row and of large ones are given back when all is quiet"
done
# Of a worker that is gone, with nobody in its place: a crash, and no more calls.
cat >"$T/gone.py" <<'X'
import json, os, subprocess, sys, time
p = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
def call(**task):
    p.stdin.write((json.dumps(task) + "\n").encode())
    p.stdin.flush()
    return json.loads(p.stdout.readline())["verdict"]
def kib():
    for fd in os.listdir("/proc/%d/fd" % p.pid):
        path = "/proc/%d/fd/%s" % (p.pid, fd)
        if "memfd:knit-arena" in os.readlink(path):
            return os.stat(path).st_blocks // 2
got, end = [call(id="large", call="echo", value="x" * 6000000), call(id="crash", call="segv")], time.monotonic() + 40
while kib() > 1000 and time.monotonic() < end:
    time.sleep(0.1)
print(*got, "given back" if kib() <= 1000 else "%d KiB left" % kib())
p.stdin.close()
p.wait()
X
for steal in brokered shared; do
	"$PY" "$T/gone.py" "$KS" run --quiet --module "$M/basic.so" --workers 2 --steal $steal --tasks - >"$T/$steal" &
done
wait
for steal in brokered shared; do
	is "$(cat "$T/$steal")" "ok signal given back" "$steal: the pages of a worker that is gone are given back"
done

# ---- what the log says of a module ----
ks run --quiet --debug imports --module "$M/checked.so" --call where --input x
like "$(cat "$T/err")" '^\[w0 \+[0-9.]+ms imports\] /module/checked\.so: tasks [a-z_, ]*checked[a-z_, ]*; loaded .*libc\.so' \
	"--debug imports: the file, its tasks, the libraries"
ks run --quiet --debug lifecycle --module "$M/checked.so" --call where --input x
unlike "$(cat "$T/err")" ' imports\]' "and only where it is asked for"

# ---- a pool within a pool ----
# strict and judge want memory held by a control group, which not every caller has.
weak=
cgroup_granted || weak='--set /allow_degraded=["cgroup.memory","cgroup.pids","cgroup.cpu"]'
# The filter lets nobody make namespaces inside, in any policy: there is one answer.
for p in default strict python judge; do
	ks run --quiet --policy $p $weak --module "$M/nested.so" --call nested
	is $rc 1 "$p: a task that opens a pool gets an error"
	like "$(cat "$T/err")" 'NoPool: this is the inside of a sandbox: no pool can be opened within a pool' "$p: and it says why"
done
cp "$KS_REAL" "$T/inner" && chmod 755 "$T/inner"
ks run --quiet --ro-bind "$T/inner:/inner" -- /inner run -- true
is $rc 125 "the program in its own sandbox: 125"
one_clear_line 'inside of a sandbox' "the program in its own sandbox"

# ---- what it is called ----
printf '{"id":"a","call":"sleep_ms","value":%d}\n' "$(scaled 20000)" >"$T/tasks"
"$KS" run --module "$M/basic.so" --workers 1 --tasks "$T/tasks" >"$T/out" 2>"$T/err" &
pid=$!
is "$("$PY" - $pid <<'X'
import glob, sys, time
def kids(p):
    return [int(c) for f in glob.glob("/proc/%d/task/*/children" % p) for c in open(f).read().split()]
end, name = time.monotonic() + 20, None
while name is None and time.monotonic() < end:
    todo = [int(sys.argv[1])]
    while todo:
        p = todo.pop()
        try:
            todo += kids(p)
            args = open("/proc/%d/cmdline" % p).read()
            comm = open("/proc/%d/comm" % p).read().strip()
        except OSError:
            continue
        if args.startswith("knit-worker-module") and comm != "3":
            name = comm
print(name)
X
)" knit-module "a module's process is not called after a descriptor"
kill -TERM $pid
wait $pid

# ---- names that no task has ----
n=65540
[ "${KNIT_SLOW:-1}" = 1 ] || n=300
"$PY" - $n >"$T/tasks" <<'X'
import json, sys
for i in range(int(sys.argv[1])):
    print(json.dumps({"id": str(i), "call": "wrong%d" % i}))
print(json.dumps({"id": "short", "call": "where", "value": "x"}))
print(json.dumps({"id": "long", "call": "where", "value": "x" * 513}))
X
for steal in brokered shared; do
	ks run --quiet --module "$M/checked.so" --workers 2 --steal $steal --tasks "$T/tasks"
	is "$(js "$T/out" 'len(L), {r["verdict"] for i, r in by.items() if i.isdigit()}, by["short"]["verdict"], by["long"]["verdict"]')" \
	    "($((n + 2)), {'not-found'}, 'ok', 'ok')" "$steal: more wrong names than a pool has numbers for take none of them from right ones"
done

left_after "calls"
done_testing
