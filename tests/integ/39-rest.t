#!/bin/sh
# 39-rest.t: an idle pool of modules does nothing at all, also where no cgroup holds their
# memory and it has to be watched; what a module left behind is watched all the same; and a
# call now and then wakes each side no more often than it must.
. "$(dirname "$0")/../lib/tap.sh"
left_before
M=$B/tests/module/idle.so

cat >"$T/idle.py" <<'X'
import glob, json, os, subprocess, sys, time
err = open(sys.argv[1], "wb")
p = subprocess.Popen(sys.argv[3:], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=err)
n = 0
def call(name, value=None):
    global n
    n += 1
    p.stdin.write((json.dumps({"id": str(n), "call": name, "value": value}) + "\n").encode())
    p.stdin.flush()
    return json.loads(p.stdout.readline())
def below(top):
    found = []
    for f in glob.glob("/proc/%d/task/*/children" % top):
        for c in open(f).read().split():
            found += [int(c)] + below(int(c))
    return found
def number(pid, key):
    return sum(int(x.split()[1]) for x in open("/proc/%d/status" % pid) if key in x)
def state(pid):
    return open("/proc/%d/stat" % pid).read().rsplit(")", 1)[1].split()[0]
def switches():
    return {q: number(q, "ctxt_switches") for q in [p.pid] + below(p.pid)}
def until(what, seconds=60):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if what():
            return True
        time.sleep(0.1)
    return False
def still():
    a = switches()
    time.sleep(1)
    return a == switches()
def told(text):
    return text in open(sys.argv[1], "rb").read()
def idle():
    call("echo", 1)
    time.sleep(2) # by then it is at rest
    first = until(still)
    again = [call("echo", i)["value"] for i in range(20)]
    print("still" if first else "at work", "right" if again == list(range(20)) else again,
          "still" if until(still) else "at work", call("echo", 7)["value"])
def thread():
    call("start_thread")
    a = call("count")["value"]
    time.sleep(4) # longer than until one without threads rests
    print("goes on" if call("count")["value"] - a > 100 else "was stopped")
def eats():
    call("eat_later", 4000)
    until(lambda: any(state(q) == "T" for q in below(p.pid)), 4)
    print("ended" if until(lambda: told(b"resident ended")) else "eats", call("echo", 3)["value"])
def paced():
    call("echo", 0)
    module = [q for q in below(p.pid) if open("/proc/%d/comm" % q).read().strip() == "knit-module"]
    def waits(): # of its own accord
        return [number(q, "ctxt_switches") - number(q, "nonvoluntary") for q in [p.pid] + module]
    a, n, cpus, wall_ms = waits(), 100, set(), []
    for i in range(n // 2):
        cpus.add(call("cpus")["value"])
        time.sleep(0.005)
        wall_ms.append(call("busy_us", 200)["usage"]["wall_ms"])
        time.sleep(0.005)
    ours, its = [y - x for x, y in zip(a, waits())]
    for i in range(2000): # and without a pause
        cpus.add(call("cpus")["value"])
    print("once" if its <= n + n // 2 else its, "twice" if ours <= 3 * n else ours,
          "free" if cpus == {len(os.sched_getaffinity(0))} else cpus,
          "timed" if min(wall_ms) > 0.199 else sorted(wall_ms))
globals()[sys.argv[2]]()
p.stdin.close()
p.wait()
X
# All at once: most of it is waiting.
idle() { # FILE WHAT OPTIONS...
	t_file=$1 t_what=$2
	shift 2
	"$PY" "$T/idle.py" "$T/told.$t_file" "$t_what" "$KS" run --quiet --module "$M" --debug lifecycle "$@" --tasks - >"$T/$t_file" 2>&1 &
}
idle two idle --workers 2
idle three idle --workers 3 --steal shared
idle paced paced --workers 1
idle thread thread --workers 1
idle eats eats --workers 1 --set /limits/task/memory=64M --set '/allow_degraded=["uid","landlock","cgroup.memory","cgroup.pids","cgroup.cpu","mseal"]'
wait
is "$(cat "$T/two")" "still right still 7" "two workers: no process is switched to, and each call is right"
is "$(cat "$T/three")" "still right still 7" "three that share: likewise"
is "$(cat "$T/thread")" "goes on" "a thread of a module's own goes on between calls"
is "$(cat "$T/eats")" "ended 3" "memory that is taken while nobody calls ends who takes it"
is "$(cat "$T/paced")" "once twice free timed" "of calls now and then the module sleeps once for each, we twice; each has all processors, and its time"
ks run --module "$M" --call echo --input 5
is "$(cat "$T/out")" 5 "another pool"
left_after "modules at rest"
done_testing
