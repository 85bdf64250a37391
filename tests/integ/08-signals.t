#!/bin/sh
# 08-signals.t: TERM, INT, HUP to the supervisor; stop within grace; forwarding.
. "$(dirname "$0")/../lib/tap.sh"
left_before
v() {
	js "$T/out" "by['$1']['verdict']"
}

# ---- batch ----
# t0 and t1 run, the rest waits. `polite` ends at TERM, `deaf` does not.
mkdir -m 777 "$T/mark"
"$PY" - "$(scaled 5)" "$T/mark" >"$T/tasks" <<'X'
import json, sys
print(json.dumps({"id": "polite", "argv": ["sh", "-c", "trap 'echo bye; exit 0' TERM; echo up >" + sys.argv[2] + "/polite; i=0; while [ $i -lt 300 ]; do sleep 0.1; i=$((i+1)); done"]}))
print(json.dumps({"id": "deaf", "argv": ["sh", "-c", "trap '' TERM INT HUP; sleep 30; sleep 30"]}))
for i in range(50): print(json.dumps({"id": "w%d" % i, "argv": ["sleep", sys.argv[1]]}))
X
for s in TERM:143 INT:130; do
	sig=${s%:*}
	rm -f "$T/mark/polite"
	watch_opts="--from $T/mark/polite --at 300:$sig --limit 60"
	ks run --tasks "$T/tasks" --workers 2 --bind "$T/mark"
	is $rc "${s#*:}" "SIG$sig: status ${s#*:}"
	at_most "$elapsed_ms" 5000 "SIG$sig: ends within the grace time and a little"
	is "$(js "$T/out" 'len(L), len(by)')" "(52, 52)" "SIG$sig: each accepted task has its line"
	is "$(js "$T/out" 'sum(r["verdict"] == "cancelled" for r in L if r["id"].startswith("w"))')" 50 "SIG$sig: those that waited are cancelled"
	is "$(v deaf)" cancelled "SIG$sig: one that ignores it is ended"
	is_any "$(v polite)" "ok cancelled" "SIG$sig: one that listens may end by itself"
	is "$left" 0 "SIG$sig: nothing left"
done

# A running task that ends within grace_ms is let to its end.
printf '{"id":"short","argv":["sh","-c","echo up >%s/mark/up; sleep %d; echo finished"]}\n' "$T" "$(scaled 1)" >"$T/tasks2"
watch_opts="--from $T/mark/up --at 0:TERM"
ks run --tasks "$T/tasks2" --bind "$T/mark" --set "/timeouts/grace_ms=$(scaled 5000)"
is "$rc $(v short) $(js "$T/out" 'by["short"]["stdout"].strip()')" "143 ok finished" "a task that ends within grace_ms ends as itself"

# A second one kills now; HUP in between changes nothing (C128).
rm "$T/mark/polite"
watch_opts="--from $T/mark/polite --at 300:TERM --at 500:HUP --at 700:TERM --at 800:INT --limit 60"
ks run --tasks "$T/tasks" --workers 2 --bind "$T/mark" --set "/timeouts/grace_ms=$(scaled 20000)"
is_any $rc "143 130" "TERM, HUP, TERM, INT: ends (C128)"
at_most "$elapsed_ms" 6000 "TERM, HUP, TERM, INT: the second one kills now (C128)"
is "$(js "$T/out" 'len(L), len(by)')" "(52, 52)" "TERM, HUP, TERM, INT: each task has its line"

# Stop at any moment of the start (C129).
bad=0 n=0
for ms in $(some 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 32 34 36 38 40 45 50 60 70); do
	n=$((n + 1))
	watch_opts="--at $ms:TERM --limit 15"
	ks run --tasks "$T/tasks" --workers 2
	# (143 also if it came before a handler could be there)
	if [ $rc != 143 ] || [ "$left" != 0 ] || [ "$elapsed_ms" -gt 8000 ]; then
		bad=$((bad + 1))
		diag "TERM at $ms ms: status $rc, left $left ($left_names), $elapsed_ms ms"
	fi
done
is $bad 0 "TERM at $n moments of the start: ends, nothing left (C129)"

# The input's end does not come, and still it stops.
mkfifo "$T/never"
exec 7<>"$T/never"
watch_opts="--at 500:TERM --limit 20"
ks run --tasks - <"$T/never"
exec 7<&-
is $rc 143 "stop while waiting for input: 143"
rm -f "$T/never"

# ---- single command: forwarded ----
for s in TERM:5 HUP:6; do
	sig=${s%:*}
	: >"$T/out"
	watch_opts="--from $T/out --at 0:$sig --limit 20"
	ks run --set "/timeouts/grace_ms=$(scaled 2000)" -- sh -c "trap 'echo got-$sig; exit ${s#*:}' $sig; echo up; i=0; while [ \$i -lt 100 ]; do sleep 0.1; i=\$((i+1)); done"
	is "$rc $(out | tail -n 1)" "${s#*:} got-$sig" "single command: SIG$sig is forwarded, its status is the command's"
done
watch_opts="--at 500:TERM --limit 20"
ks run -- sleep 30
is $rc 143 "single command: sleep is ended by a forwarded TERM"
is "$left" 0 "and nothing is left"
watch_opts="--at 500:TERM --at 1000:TERM --limit 30"
ks run -- sh -c "trap '' TERM; sleep 30; sleep 30"
ok "single command that ignores TERM: a second one does not hang" test "$hung" = 0
at_most "$elapsed_ms" 15000 "single command that ignores TERM: ended in bounded time"
watch_opts="--at 500:INT --limit 20"
ks run -- sleep 30
is $rc 130 "single command: SIGINT"
is "$left" 0 "and nothing is left"

# TSTP and CONT reach the task: it is stopped meanwhile.
: >"$T/out"
watch_opts="--from $T/out --at 100:TSTP --at 1100:CONT --limit 20"
ks run -- python3 -c '
import sys, time
print("up", flush=True)
worst, last, end = 0, time.monotonic(), time.monotonic() + int(sys.argv[1])
while time.monotonic() < end:
    time.sleep(0.01)
    now = time.monotonic(); worst = max(worst, now - last); last = now
print("stopped" if worst > 0.7 else "never stopped", round(worst, 2))' "$(scaled 3)"
like "$(out)" '^stopped' "single command: TSTP stops the task, CONT resumes it"
is $rc 0 "and it ends as itself"

left_after "signals"
done_testing
