#!/bin/sh
# 09-death.t: the supervisor is SIGKILLed, a worker is SIGKILLed, a launcher dies.
. "$(dirname "$0")/../lib/tap.sh"
left_before

# The bwrap processes of a supervisor: its children. A worker's stub: theirs. (Of launcher
# oci there are wardens between it and them, and what is said of bwrap is said of these.)
children() {
	cat /proc/[0-9]*/stat 2>/dev/null |
		awk -v up="$1" '{ pid = $1; sub(/.*[)] . /, ""); if ($1 == up) print pid }'
}

# ---- supervisor SIGKILLed: nothing left after 1 s ----
cat >"$T/tasks" <<'X'
{"id":"spin","argv":["sh","-c","for i in 1 2 3 4 5 6 7 8; do (trap '' TERM HUP INT; while :; do :; done) & done; wait"]}
{"id":"daemon","argv":["sh","-c","(setsid sleep 100 &) ; sleep 100"]}
{"id":"deaf","argv":["python3","-c","import signal, time, os\nfor s in range(1, 65):\n    try: signal.signal(s, signal.SIG_IGN)\n    except (OSError, ValueError): pass\nos.setsid() if os.fork() == 0 else None\ntime.sleep(100)"]}
{"id":"stopped","argv":["sh","-c","kill -STOP $$"]}
X
grace=1000
# (what an engine has begun it ends in its own time)
[ -z "$engine" ] || grace=$(scaled 10000)
for ms in 800 1500; do
	watch_opts="--at $ms:KILL --grace $grace --limit 20"
	ks run --tasks "$T/tasks" --workers 4
	is $rc 137 "supervisor SIGKILLed at $ms ms"
	is "$left" 0 "nothing left after $grace ms (C072)"
	diag "gone in $left_ms ms"
done
# At any moment of its start (C070). (An engine that was asked for a container makes it, and
# then hears that it is to be removed.)
bad=0 n=0
for ms in $(some 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 32 34 36 38 40 45 50 60 80); do
	n=$((n + 1))
	watch_opts="--at $ms:KILL --grace $grace --limit 20"
	ks run -- sleep 100
	if [ "$left" != 0 ]; then
		bad=$((bad + 1))
		diag "SIGKILL at $ms ms: left $left ($left_names)"
	fi
done
is $bad 0 "supervisor SIGKILLed at $n moments of its start: nothing left after $grace ms (C070)"
# The next start sweeps what a killed one could not remove (C099).
ks run -- true
is $rc 0 "the next start works"
left_after "after SIGKILL and a next start (C099)"

# ---- a worker SIGKILLed: its task is answered, the others do not notice ----
"$PY" - >"$T/tasks" <<'X'
import json
for i in range(200): print(json.dumps({"id": "t%d" % i, "argv": ["sleep", "0.05"]}))
X
: >"$T/err"
"$KS" run --debug lifecycle --workers 4 --tasks "$T/tasks" >"$T/out" 2>"$T/err" &
pid=$!
wait_lines "$T/err" 30
killed=0
for victim in $(children $pid); do
	kill -KILL "$victim" 2>/dev/null && killed=$((killed + 1))
	[ $killed -ge 2 ] && break
done
wait $pid
rc=$?
like "$(err)" 'gone signal 9' "two launchers SIGKILLed: it is seen"
# (one that had claimed nothing at that moment costs nobody a task)
is_any "$rc" "0 1" "two launchers SIGKILLed: the batch ends"
is "$(js "$T/out" 'len(L), len(by)')" "(200, 200)" "two launchers SIGKILLed: each id once"
like "$(js "$T/out" 'sorted({r["verdict"] for r in L})')" "^\['ok'(, 'worker-lost')?\]$" "two launchers SIGKILLed: ok or worker-lost"
at_most "$(js "$T/out" 'sum(r["verdict"] == "worker-lost" for r in L)')" 2 "two launchers SIGKILLed: at most two tasks lost"

# The stub itself (only the host's root can: it is not the caller's to signal; an engine's
# is no child of the process that we know).
if [ -n "$root" ] && [ -z "$engine" ]; then
	: >"$T/err"
	"$KS" run --debug lifecycle --workers 2 --tasks "$T/tasks" >"$T/out" 2>"$T/err" &
	pid=$!
	wait_lines "$T/err" 30
	for up in $(children $pid); do
		[ -n "$bwrap$direct" ] || up=$(children "$up" | head -n 1)
		stub=$(children "${up:-0}" | head -n 1)
		[ -z "$direct" ] || stub=$up
		[ -n "$stub" ] && kill -KILL "$stub" && break
	done
	wait $pid
	is_any $? "0 1" "a stub SIGKILLed: the batch ends"
	like "$(err)" 'gone (status 137|signal 9)' "a stub SIGKILLed: it is seen"
	is "$(js "$T/out" 'len(L), len(by)')" "(200, 200)" "a stub SIGKILLed: each id once"
	at_most "$(js "$T/out" 'sum(r["verdict"] != "ok" for r in L)')" 1 "a stub SIGKILLed: at most one task lost"
else
	not_here "killing a stub"
fi

# With retries a lost task is run again.
: >"$T/err"
"$KS" run --debug lifecycle --workers 2 --retries 2 --tasks "$T/tasks" >"$T/out" 2>"$T/err" &
pid=$!
wait_lines "$T/err" 30
victim=$(children $pid | head -n 1)
kill -KILL "$victim"
wait $pid
is "$? $(js "$T/out" '{r["verdict"] for r in L}')" "0 {'ok'}" "--retries: a lost task is run again"

# A single command whose worker dies.
mkdir -m 777 "$T/mark"
"$KS" run --workers 1 --bind "$T/mark" --report "$T/report" -- sh -c ": >$T/mark/up; exec sleep 30" >"$T/out" 2>"$T/err" &
pid=$!
wait_marker "$T/mark/up"
for victim in $(children $pid); do # a spare one too
	kill -KILL "$victim"
done
wait $pid
is "$? $(verdict)" "125 worker-lost" "a single command whose worker dies: 125, worker-lost"
rm -f "$T/report"

# Two supervisors side by side do not meet (C133).
"$KS" run --workers 2 --tasks "$T/tasks" >"$T/out1" 2>&1 &
one=$!
"$KS" run --workers 2 --tasks "$T/tasks" >"$T/out2" 2>&1 &
two=$!
wait $one
s1=$?
wait $two
is "$s1 $?" "0 0" "two supervisors side by side (C133)"

left=0
left_after "deaths"
done_testing
