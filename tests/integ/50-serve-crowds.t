#!/bin/sh
# 50-serve-crowds.t: what a server does with clients that are many, deaf, slow, wrong or
# killed, with many signals, and with others that want its socket.
. "$(dirname "$0")/../lib/tap.sh"
left_before
. "$(dirname "$0")/../lib/serve.sh"

mkdir "$T/crate"
i=0
while [ $i -lt 60 ]; do
	echo $i >"$T/crate/$i"
	i=$((i + 1))
done
begin --set "/filesystem/task_paths=[\"$T/crate\"]"
is "$(client hungry $pid)" '{"error":"the server is out of memory or descriptors"}| ok' \
	"without memory one that comes is told so, in a whole line, and the next one is served"
is "$(client crate $pid 8 "$T/crate")" "16 ok" \
	"tasks with more files than there are descriptors wait for those of other clients"
is "$(client cancel)" "a:ok,c:ok,line-4:invalid,mine:cancelled b:ok,line-1:invalid" \
	"a task is cancelled by its own connection, and by no other"
is "$(client garbage)" "good:ok line-1:invalid line-2:invalid line-4:invalid nul:invalid" \
	"NULs, noise and a line without end have an answer each, and the next line works"
is "$(client numbers)" "200 1 2 2 2" "who only asks is no client, takes no number, and may ask in pieces"
is "$(client gift "$T/h" $pid)" "ok200 True 0" "descriptors that a client sends along are closed"
is "$(client hoard $pid 24 12000000)" "bounded ok 12 ok" \
	"many lines that do not end: bounded memory, others are served, and those that end are answered"
is "$(client fair 10000)" "ok True" "ten thousand tasks of one client do not keep another waiting"
is "$(client killed 50 10 1)" 25 "50 clients, half of them killed: the others have all their answers"
until_is knit_clients 0
curl "$T/h" /metrics >"$T/metrics"
is "$(ledger "$T/metrics")" "0 0 0" "what was accepted is answered or abandoned"
at_least "$(sed -n 's/^knit_tasks_abandoned_total //p' "$T/metrics")" 1 "and the task of a killed one is abandoned"

# ---- signals ----
"$KS" run --quiet --connect "$S" -- sh -c 'sleep 1; echo kept' >"$T/kept" 2>&1 &
waiting=$!
until_is knit_clients 1
kids=$(wc -w <"/proc/$pid/task/$pid/children")
i=0
while [ $i -lt 50 ]; do
	kill -HUP $pid
	[ $((i % 5)) != 0 ] || pause 20
	i=$((i + 1))
done
wait $waiting
is "$? $(cat "$T/kept")" "0 kept" "50 SIGHUPs: what runs goes on"
t_try=0
while [ "$(number knit_pools) $(wc -w <"/proc/$pid/task/$pid/children")" != "1 $kids" ] && [ $t_try -lt 300 ]; do
	pause 50
	t_try=$((t_try + 1))
done
is "$(number knit_pools) $(wc -w <"/proc/$pid/task/$pid/children")" "1 $kids" "and one pool is left, with as many workers"
at_least "$(number knit_reloads_total)" 1 "which is a new one"
is "$(number knit_reloads_failed_total)" 0 "and none of them failed"
ks run --connect "$S" -- echo served
is "$rc $(out)" "0 served" "that serves"
end TERM
is $rc 0 "and ends"

# ---- who does not read ----
begin --grace 1
client mute 40 100000 >"$T/mute" &
mute=$!
client slow 40 100000 "$T/enough" >"$T/slow" &
slow=$!
until_is knit_tasks_accepted_total 81
until_is knit_tasks_live 1
"$KS" run --quiet --connect "$S" -- sleep 1000 >/dev/null 2>&1 &
holds=$!
until_is knit_tasks_accepted_total 82
kill -TERM $pid
until_is knit_tasks_abandoned_total 1
curl "$T/h" /metrics >"$T/metrics"
is "$(ledger "$T/metrics" | cut -d' ' -f1,2) $(sed -n 's/^knit_tasks_abandoned_total //p' "$T/metrics")" "0 1 1" \
	"draining: one that reads nothing is let go, and what it had running is abandoned"
pause 1500
: >"$T/enough"
wait $slow
is_any "$(cat "$T/slow")" "whole late" "one that reads slowly is told all"
kill -KILL $holds
wait $pid
is $? 0 "and the drain ends"
like "$(cat "$T/se")" 'client [12] reads nothing and is let go: [0-9]+ bytes of answers are lost, 1 tasks abandoned' "which is said"
wait $mute
is "$(cat "$T/mute")" "cut off" "and it sees its end"
begin --grace 1000
client mute 40 100000 >"$T/mute" &
mute=$!
until_is knit_tasks_accepted_total 41
kill -TERM $pid
until_is knit_serving 0
end TERM
is $rc 143 "a second SIGTERM waits for no reader"
wait $mute

# ---- many that want one name ----
start() { # the beginning of a command
	"$@" serve --quiet --socket "$S" --workers 1 2>>"$T/many" &
	starters="$starters $!"
}
one_has_it() { # NAME: of those that were started, who are ended then
	others=$(($(echo "$starters" | wc -w) - 1))
	t_try=0
	while [ "$(grep -c 'somebody listens' "$T/many")" != $others ] && [ $t_try -lt 300 ]; do
		pause 50
		t_try=$((t_try + 1))
	done
	ks run --connect "$S" -- echo served
	is "$(grep -c 'somebody listens' "$T/many") $rc $(out)" "$others 0 served" "$1: one has it, the others say so"
	is "$(ls -d "$S".* 2>/dev/null)" "" "$1: nothing is left of how they got it"
	ended=0
	for p in $starters; do
		kill -TERM "$p" 2>/dev/null
		wait "$p"
		[ $? != 0 ] || ended=$((ended + 1))
	done
	is $ended 1 "$1: and one ends well"
	: >"$T/many"
	starters=
}
dead() {
	"$PY" -c 'import socket, sys
for name in sys.argv[1:]: socket.socket(socket.AF_UNIX).bind(name)' "$@"
}
: >"$T/many"
starters=
for round in 1 2 3; do
	dead "$S" "$S.99999"
	for i in 1 2 3 4 5 6 7 8; do start "$KS"; done
	one_has_it "eight over a dead socket"
done
if command -v strace >/dev/null && strace -o /dev/null true 2>/dev/null; then
	dead "$S"
	start strace -D -o "$T/late" -e 'trace=connect,?unlink,?unlinkat' -e 'inject=?unlink,?unlinkat:delay_enter=1000000:when=1' "$KS_REAL"
	t_try=0
	while ! grep -qs ECONNREFUSED "$T/late" && [ $t_try -lt 300 ]; do
		pause 20
		t_try=$((t_try + 1))
	done
	start "$KS"
	one_has_it "one that is about to take a dead one's name, and another"
else
	not_here "strace of a process"
fi
left_after "serve"
done_testing
