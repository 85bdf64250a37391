#!/bin/sh
# 34-ancestor.t: the experiments that were made with the system this one descends from
# (tests/CONFORMANCE.md has what came of them there), made here with calls.
. "$(dirname "$0")/../lib/tap.sh"
left_before
M=$B/tests/module
# in_batch TASKS... : a batch fed by hand; its lines go to fd 3, its pid is $pid.
begin() {
	rm -f "$T/in"
	mkfifo "$T/in"
	: >"$T/out"
	"$KS" run --quiet --module "$M/hostile.so" --tasks "$T/in" "$@" >"$T/out" 2>"$T/err" &
	pid=$!
	exec 3>"$T/in"
}
say() {
	printf '%s\n' "$@" >&3
}
finish() {
	exec 3>&-
	wait $pid
	rc=$?
}
# residents PID: processes of modules below it (launcher, stub, init, resident), one a line.
residents() {
	"$PY" - "$1" <<'X'
import os, sys
level = [int(sys.argv[1])]
for _ in range(4):
    level = [int(c) for p in level if os.path.exists("/proc/%d" % p) for c in open("/proc/%d/task/%d/children" % (p, p)).read().split()]
print("\n".join(map(str, level)))
X
}
one_of() {
	# shellcheck disable=SC2086
	set -- $1
	echo "$1"
}
may_kill=
begin --workers 1
say '{"id":"a","call":"echo","value":"x"}'
wait_lines "$T/out" 1
victim=$(residents $pid)
if kill -0 "$victim" 2>/dev/null; then
	may_kill=1
	kill -KILL "$victim"
	say '{"id":"b","call":"echo","value":"y"}'
	wait_lines "$T/out" 2
fi
finish
if [ -n "$may_kill" ]; then
	is "$rc $(js "$T/out" 'by["b"]["value"]')" "0 y" "the only worker is killed, then called: another one answers"
else
	not_here "killing a worker's process"
fi

for steal in brokered shared; do
	begin --workers 2 --steal $steal --retries 0
	say '{"id":"w0","call":"deaf_ms","value":20}' '{"id":"w1","call":"deaf_ms","value":20}'
	wait_lines "$T/out" 2
	for i in 0 1 2 3 4 5 6 7 8 9; do
		say '{"id":"f'$i'","call":"deaf_ms","value":'"$(scaled 300)"'}'
	done
	pause 300
	[ -z "$may_kill" ] || kill -KILL $(one_of "$(residents $pid)")
	say '{"id":"next","call":"echo","value":"y"}'
	finish
	[ -n "$may_kill" ] || continue
	is "$(js "$T/out" '(len(L), len(by), sum(r["verdict"] == "signal" for r in L), sum(r["verdict"] == "ok" for r in L), by["next"]["value"])')" "(13, 13, 1, 12, 'y')" \
	    "$steal: one of two workers killed, 10 calls in flight: it costs the one that ran, the next call is right"
done

# A stopped worker, which may hold what it claimed: the other one goes on.
for steal in brokered shared; do
	[ -n "$may_kill" ] || break
	begin --workers 2 --steal $steal --timeout "$(scaled 4)s"
	say '{"id":"w0","call":"deaf_ms","value":20}' '{"id":"w1","call":"deaf_ms","value":20}'
	wait_lines "$T/out" 2
	victim=$(one_of "$(residents $pid)")
	kill -STOP $victim
	"$PY" -c 'import json
for i in range(200): print(json.dumps({"id": str(i), "call": "echo", "value": str(i)}))' >&3
	finish
	is "$(js "$T/out" '(len(L), len(by), sum(r["verdict"] == "ok" and r["value"] == i for i, r in by.items() if i.isdigit()) >= 199)')" "(202, 202, True)" \
	    "$steal: a worker stands still for seconds: all calls are answered"
done

printf '%s\n' '{"id":"t","call":"truncate_all"}' '{"id":"next","call":"echo","value":"x"}' >"$T/tasks"
ks run --quiet --module "$M/hostile.so" --workers 1 --tasks "$T/tasks"
is "$rc $(js "$T/out" '(by["t"]["value"], by["next"]["value"])')" "0 (0, 'x')" "a task shrinks every descriptor it has: none of them is the arena, and we go on"

begin --workers 1
say '{"id":"w","call":"echo","value":"x"}'
wait_lines "$T/out" 1
say '{"id":"deaf","call":"deaf_ms","value":60000}'
wait_deaf $pid 1
kill -TERM $pid
start=$(date +%s)
finish
is "$rc $(js "$T/out" 'by["deaf"]["verdict"]')" "143 cancelled" "a worker that ignores SIGTERM: the pool ends"
at_most $(($(date +%s) - start)) "$(scaled 5)" "and soon"

printf '%s\n' '{"id":"loop","call":"deaf_ms","value":5000,"timeouts":{"hard_ms":'"$(scaled 200)"'}}' '{"id":"long","call":"deaf_ms","value":1000}' >"$T/tasks"
ks run --quiet --module "$M/hostile.so" --workers 2 --tasks "$T/tasks"
is "$(js "$T/out" '(by["loop"]["verdict"], by["long"]["verdict"])')" "('timeout', 'ok')" "a hard timeout ends the call that loops, and no other"
printf '%s\n' '{"id":"late","call":"deaf_ms","value":'"$(scaled 200)"',"timeouts":{"task_ms":'"$(scaled 50)"'}}' >"$T/tasks"
ks run --quiet --module "$M/hostile.so" --workers 1 --tasks "$T/tasks"
is "$(js "$T/out" 'by["late"]["verdict"]')" soft-timeout "50 ms for a loop of 200 ms: it is late, and not ok"
"$PY" -c 'import json, sys
for i in range(300): print(json.dumps({"id": str(i), "call": "deaf_ms", "value": 20 * int(sys.argv[1]), "timeouts": {"task_ms": 2500 * int(sys.argv[1])}}))' "$(scaled 1)" >"$T/tasks"
ks run --quiet --module "$M/hostile.so" --workers 2 --tasks "$T/tasks"
is "$rc $(js "$T/out" 'sum(r["verdict"] == "ok" for r in L)')" "0 300" "a call of 20 ms with time to spare is never late, however long it waited for its turn"

ks run --quiet --module "$M/basic.so" --call fail --input 3 --report "$T/report"
like "$(js "$T/report" 'L[0]["error"]["cause"]["message"]')" '[a-z]' "an error comes with what was beneath it"

SECRET_OF_THE_HOST=known ks run --quiet --module "$M/hostile.so" --call environment --input SECRET_OF_THE_HOST
is "$rc $(out)" "0 null" "a secret in the caller's environment is not in the task's"

ks run --debug '*' --module "$M/hostile.so" --call echo --input x
is "$rc $(out)" "0 x" "with every debug line on a call is right all the same"

begin --workers 2
say '{"id":"a","call":"deaf_ms","value":60000}' '{"id":"b","call":"deaf_ms","value":60000}'
wait_deaf $pid 2
"$PY" -c 'import os, sys
pid, alive, level = int(sys.argv[1]), [], [int(sys.argv[1])]
while level:
    alive += level
    level = [int(c) for p in level if os.path.exists("/proc/%d" % p) for c in open("/proc/%d/task/%d/children" % (p, p)).read().split()]
print(*alive[1:])' $pid >"$T/alive"
kill -KILL $pid
exec 3>&-
wait $pid 2>/dev/null
t_try=0
while [ $t_try -lt 60 ]; do
	t_left=
	for p in $(cat "$T/alive"); do [ ! -d "/proc/$p" ] || grep -q '^State:.Z' "/proc/$p/status" || t_left="$t_left $p"; done
	[ -n "$t_left" ] || break
	pause 50
	t_try=$((t_try + 1))
done
at_least "$(wc -w <"$T/alive")" 6 "a pool at work has launchers, stubs, inits and residents"
is "$t_left" "" "the supervisor is killed: all of them are gone"
ks run --quiet -- true
left_after "the ancestor's experiments"
done_testing
