#!/bin/sh
# 50-serve.t: a pool behind a socket: many clients, each with its own answers; drained,
# reloaded, asked for its health, told by whoever starts it; what dies leaves nothing.
. "$(dirname "$0")/../lib/tap.sh"
left_before
. "$(dirname "$0")/../lib/serve.sh"

ks run -- true
grep 'weaker stands in' "$T/err" >"$T/weaker"
begin
is "$(grep 'weaker stands in' "$T/se")" "$(cat "$T/weaker")" "what something weaker stands in for is told, as a run tells it"
is "$(cat "$T/health" 2>&1)" serving "the health file is there when a worker is ready"
is "$(stat -c %a "$S")" 600 "the socket is its owner's alone"
is "$(curl "$T/h" /health)" "200 serving" "/health"
ks serve --probe "$T/h"
is "$rc $(out)" "0 serving" "--probe asks it"
ks serve --probe "$S"
is "$rc $(out)" "0 serving" "and so does the socket for tasks"
ks serve --probe "$T/nobody" --alive
is $rc 125 "--probe of nobody: 125"
like "$(err)" "^hint: .*serve --socket PATH --http $T/nobody" "and of which server that is asked"
ks serve --probe 127.0.0.1:1
like "$rc $(err | tr '\n' ' ')" '^125 .*hint: .*--http 127.0.0.1:1' "nor on a port"
ks run --connect "$T/h" -- touch /tmp/x
is $rc 125 "a command sent to --http: refused"
one_clear_line 'speaks HTTP' "and what that is"
like "$(err)" '^hint: .*--socket' "and what is meant"
unlike "$(err)" 'may have run' "it did not run"
head -c 100000 /dev/zero | "$KS" run --connect "$T/h" -- cat >"$T/out" 2>"$T/err"
is $? 125 "with more than a request has"
one_clear_line 'speaks HTTP' "that is told too"
(echo '{"argv":["true"]}'; pause 9000) | "$KS" run --connect "$T/h" --tasks - >"$T/out" 2>"$T/err"
is $? 125 "a batch that goes on: in a while"
one_clear_line 'speaks HTTP' "and told the same"
ks run --connect "$S" -- sh -c 'echo out; echo err >&2; exit 5'
is "$rc $(out) $(err)" "5 out err" "a command by way of the server: its streams and its status"
ks run --connect "$S" -- head -c 4 /dev/zero
is "$rc $(od -An -tx1 <"$T/out" | tr -d ' ')" "0 00000000" "bytes that are no text"
printf 'a\0b\377' | "$KS" run --connect "$S" -- cat >"$T/back" 2>&1
is "$(od -An -tx1 <"$T/back" | tr -d ' ')" 610062ff "the caller's standard input, byte for byte"
echo "of a file" >"$T/stdin"
ks run --connect "$S" --stdin "$T/stdin" -- cat
is "$rc $(out)" "0 of a file" "--stdin"
(echo early; sleep 4) | "$KS" run --connect "$S" -- cat >"$T/out" 2>"$T/err"
is "$(out)" early "input that ends late is waited for"
one_clear_line 'waiting for the end of standard input' "and said"
watched "$PY" -S -c 'import os, sys
r, w = os.pipe()
os.set_blocking(r, False)
os.dup2(r, 0)
os.close(r)
if os.fork() == 0:
    import time; time.sleep(0.5); os.write(w, b"slow"); os._exit(0)
os.close(w)
os.execv(sys.argv[1], sys.argv[1:])' "$KS" run --connect "$S" -- cat
is "$rc $(out)" "0 slow" "standard input that does not block"
"$KS" run --connect "$S" -- echo nohup 0>/dev/null >"$T/out" 2>&1
is "$(out)" nohup "standard input that cannot be read, as of nohup: none"
ks run --connect "$S" --stdin "$T" -- cat
is $rc 125 "a directory as standard input: refused"
head -c 13000000 /dev/zero >"$T/stdin"
ks run --connect "$S" --stdin "$T/stdin" -- wc -c
is $rc 125 "more than a task line holds: refused"
one_clear_line 'more than 12582912 bytes' "and said"
head -c 12000000 /dev/zero >"$T/stdin"
ks run --connect "$S" --stdin "$T/stdin" -- wc -c
is "$rc $(out)" "0 12000000" "what fits arrives"
ks run --connect "$S" --stdin "$T/stdin" -- cat
one_clear_line 'the middle of its stdout is missing' "an output that the server has cut is told"
rm "$T/stdin"
ks run --connect "$S" -- no-such-command
is $rc 127 "a command that is not found: 127"
like "$(err)" '^hint: .*PATH inside.*serve --ro-bind' "and what can be done about it is said here too"
ks run --connect "$S" --memory 64M -- true
is "$rc" 125 "a policy option: refused, the policy is the server's"
one_clear_line '--memory: not with --connect' "and said"
is "$(client half)" "a:ok line-2:invalid" "a client that ends within a line: the half is no task"
is "$(client many 50 10 1)" "250 25 0" "50 clients, half of them go away: the others have all their answers, right ones"
until_is knit_clients 0
curl "$T/h" /metrics >"$T/metrics"
is "$(ledger "$T/metrics")" "0 0 0" "the ledger: what was accepted is answered or abandoned"
at_least "$(sed -n 's/^knit_tasks_answered_total.*} //p' "$T/metrics" | awk '{ n += $1 } END { print n }')" 254 "and at least what was read"
like "$(cat "$T/metrics")" 'knit_steal_info\{mode="[a-z]+",reason="[^"]+",' "how waiting tasks get to idle workers is told, and why"
is "$(client deaf 4500 3000)" "True 4500 4500" "a client that does not read is not read; when it reads, nothing is lost"
at_most "$(sed -n 's/^VmHWM:[^0-9]*\([0-9]*\).*/\1/p' "/proc/$pid/status")" 200000 "and costs bounded memory"
is "$(curl "$T/h" /nosuch)" "404 /health or /metrics" "another path: 404"
is "$(curl "$T/h" /health POST)" "405 GET or HEAD" "another method: 405"
is "$(curl "$T/h" / 'x y')" "400 bad request" "no request: 400"
"$PY" - "$T/h" <<'X'
import socket, sys
idle = []
for i in range(40):
    s = socket.socket(socket.AF_UNIX)
    s.connect(sys.argv[1])
    if i % 2: s.sendall(b"A" * 9000)
    idle.append(s)
X
is "$(curl "$T/h" /health)" "200 serving" "forty connections of rubbish do not keep a probe from its answer"
if command -v strace >/dev/null && strace -o /dev/null true 2>/dev/null; then
	pause 6000
	timeout -s INT 3 strace -f -o "$T/strace" -p $pid 2>/dev/null
	is "$(grep -v 'restart_syscall\|strace: ' "$T/strace" | grep '(')" "" "an idle server makes no system call"
else
	not_here "strace of a process"
fi

# ---- another one, and what a killed one leaves ----
ks serve --socket "$S"
is $rc 125 "a second server on the same socket: 125"
one_clear_line 'somebody listens on' "and why"
ks serve --socket "$S" --health-file "$T/health"
is "$rc $(cat "$T/health")" "125 serving" "nor does it take the health file of the first"
echo x >"$T/file"
ks serve --socket "$T/file"
is "$rc $(cat "$T/file")" "125 x" "a file in the socket's place stays"
ks serve --socket "$T/s2" --health-file "$T/file"
is "$rc $(cat "$T/file")" "125 x" "and one in the place of the health file"
one_clear_line 'exists and was not left by a server' "and why"
"$KS" run --quiet --connect "$S" -- sleep 100 >/dev/null 2>&1 &
waiting=$!
printf '%s\n' '{"id":"a","argv":["true"]}' '{"id":"b","argv":["sleep","100"]}' >"$T/two"
: >"$T/twoout"
"$KS" run --quiet --connect "$S" --tasks "$T/two" >"$T/twoout" 2>"$T/err" &
batch=$!
wait_lines "$T/twoout" 1
until_is knit_tasks_running 2
kids=$(cat /proc/$pid/task/$pid/children)
end KILL
is "$rc" 137 "SIGKILL"
wait $waiting
is $? 125 "its client is told"
wait $batch
is $? 125 "and one of a batch that has not all of its answers"
one_clear_line '1 answers came, the other lines have none' "which is said"
t_try=0
while :; do
	alive=
	for k in $kids; do
		grep -qs '^State:[^Z]*$' "/proc/$k/status" && alive="$alive $k"
	done
	[ -n "$alive" ] && [ $t_try -lt 100 ] || break
	pause 50
	t_try=$((t_try + 1))
done
is "$alive" "" "its workers are gone"
ks serve --socket "$T/s2" --health-file "$T/health" --policy nosuch
is "$rc $(ls "$T/health" 2>/dev/null)" "125 " "the health file of a killed one does not speak for the next"
begin --clients 1000
is "$(curl "$T/h" /health)" "200 serving" "the next one takes the name over"
is "$(client crowd "$T/h" $pid)" "rests 200 ok" "where descriptors run out connections wait, and the server does not spin"

# ---- drain ----
accepted=$(number knit_tasks_accepted_total)
"$KS" run --quiet --connect "$S" -- sh -c 'sleep 2; echo done' >"$T/slow" 2>&1 &
waiting=$!
until_is knit_tasks_accepted_total $((accepted + 1))
end TERM
is "$rc" 0 "SIGTERM: ends with 0"
wait $waiting
is "$? $(cat "$T/slow")" "0 done" "what was taken is answered"
is "$(ls "$S" "$T/h" "$T/health" 2>/dev/null)" "" "sockets and health file are gone"
begin
"$KS" run --quiet --connect "$S" -- sleep 100 >/dev/null 2>&1 &
waiting=$!
until_is knit_tasks_running 1
kill -TERM $pid
until_is knit_serving 0
ks serve --probe "$T/h"
is "$rc $(out)" "1 draining" "--probe while it drains: not ready"
ks serve --probe "$T/h" --alive
is $rc 0 "and alive"
end TERM
is "$rc" 143 "a second SIGTERM ends what runs"
wait $waiting
is "$?" 125 "whose client has its answer: cancelled"

# ---- reload ----
echo '{"version":1,"environment":{"set":{"GEN":"one"}}}' >"$T/p.json"
begin --policy "$T/p.json" --trace "$T/trace"
exec 3>&- 4<&-
mkfifo "$T/in"
"$KS" run --quiet --connect "$S" --tasks "$T/in" >"$T/old" 2>&1 &
waiting=$!
exec 3>"$T/in"
echo '{"id":"a","argv":["printenv","GEN"]}' >&3
wait_lines "$T/old" 1
echo '{"version":1,"environment":{"set":{"GEN":"two"}}}' >"$T/p.json"
kill -HUP $pid
until_is knit_reloads_total 1
ks run --connect "$S" -- printenv GEN
is "$(out)" two "SIGHUP: a new connection has the new policy"
echo '{"id":"b","argv":["printenv","GEN"]}' >&3
wait_lines "$T/old" 2
exec 3>&-
wait $waiting
is "$(js "$T/old" '[r["stdout"] for r in L]')" "['one\\n', 'one\\n']" "and one from before it the old one"
echo '{"version":1,' >"$T/p.json"
kill -HUP $pid
until_is knit_reloads_failed_total 1
like "$(cat "$T/se")" 'reload: the policy stays as it was' "a policy that is wrong: said"
ks run --connect "$S" -- printenv GEN
is "$(out)" two "and the old one stays"
echo '{"version":1,"launcher":{"prefix":["false"]}}' >"$T/p.json"
kill -HUP $pid
until_is knit_reloads_failed_total 2
ks run --connect "$S" -- printenv GEN
is "$(out)" two "a policy with which no worker can be started: the old one stays"
is "$(number knit_pools)" 1 "no pool is left over"
end INT
is "$rc" 0 "SIGINT drains as well"
is "$(cd "$T" && "$PY" -c 'import glob, json
print(*((f, sum(e.get("ph") == "X" for e in json.load(open(f))) > 0) for f in sorted(glob.glob("trace*"))))')" \
	"('trace', True) ('trace.1', True)" "the trace of each pool that came to serve is a whole document"

# ---- started by somebody: sockets handed over, and told ----
cat >"$T/starter.py" <<'X'
import os, socket, sys
notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
notify.bind(sys.argv[1] + "/notify")
tasks = socket.socket(socket.AF_UNIX); tasks.bind(sys.argv[1] + "/given"); tasks.listen(5)
http = socket.socket(); http.bind(("127.0.0.1", 0)); http.listen(5)
pid = os.fork()
if pid == 0:
    a, b = os.dup(tasks.fileno()), os.dup(http.fileno())
    os.dup2(a, 13); os.dup2(b, 14); os.dup2(13, 3); os.dup2(14, 4); os.closerange(5, 100)
    env = dict(os.environ, LISTEN_PID=str(os.getpid()), LISTEN_FDS="2", LISTEN_FDNAMES="tasks:http",
               NOTIFY_SOCKET=sys.argv[1] + "/notify")
    os.execve(sys.argv[2], [sys.argv[2], "serve", "--quiet", "--workers", "1"], env)
notify.settimeout(30)
said = [notify.recv(4096).decode().split("\n")[0]]
s = socket.socket(socket.AF_UNIX); s.settimeout(30); s.connect(sys.argv[1] + "/given")
s.sendall(b'{"id":"a","argv":["sh","-c","echo $NOTIFY_SOCKET $LISTEN_FDS; ls /proc/self/fd | wc -l"]}\n'); s.shutdown(socket.SHUT_WR)
line = s.makefile().read()
h = socket.create_connection(http.getsockname()); h.sendall(b"GET /health HTTP/1.0\r\n\r\n")
health = h.makefile().read().split("\n")[-2]
os.kill(pid, 15)
said.append(notify.recv(4096).decode().split("\n")[0])
print(os.waitpid(pid, 0)[1], *said, health, '"stdout":"\\n4\\n"' in line)
X
is "$("$PY" "$T/starter.py" "$T" "$KS_REAL")" "0 READY=1 STOPPING=1 serving True" \
	"socket activation, sd_notify, and a task that learns of neither"

# ---- calls of a module ----
if [ -e "$B/tests/module/basic.so" ]; then
	begin --module "$B/tests/module/basic.so"
	ks run --connect "$S" --call echo --input '{"a":[1,2]}'
	is "$rc $(out)" '0 {"a":[1,2]}' "a call by way of the server"
	# Each as --module has it: what it prints, what it says, how it ends.
	both() { # NAME [INPUT]
		ks run --quiet --module "$B/tests/module/basic.so" --call "$1" ${2+--input "$2"}
		own=$rc
		cp "$T/out" "$T/own"
		grep -v 'weaker stands in' "$T/err" >"$T/ownerr"
		ks run --quiet --connect "$S" --call "$1" ${2+--input "$2"}
		cmp -s "$T/out" "$T/own" && cmp -s "$T/err" "$T/ownerr" && [ $rc = $own ] && return
		diag "$1 $2: $rc, without a server $own"
		diag "$(od -c "$T/out" | head -3) $(cat "$T/err")"
		diag "$(od -c "$T/own" | head -3) $(cat "$T/ownerr")"
		differ="$differ $1($2)"
	}
	differ=
	for v in null true 21 1234567890123.25 0.1 '[0.30000000000000004]' '"NaN"' text '' '"two
lines"' '@@name' 99999999999999999999; do
		both echo "$v"
	done
	both make 1000
	both nothing
	both fail 3
	both fail_silently
	both not_json
	both exit 3
	both segv
	both no_such_task
	is "$differ" "" "values, bytes, errors, ends are what they are without a server"
	"$PY" - "$T/a.sock" >"$T/nul" <<'X' &
import json, socket, sys
l = socket.socket(socket.AF_UNIX); l.bind(sys.argv[1]); l.listen()
for value in ("a\0b", None):
    s = l.accept()[0]
    while s.recv(65536): pass
    r = {"id": "command", "verdict": "ok", "value_type": "text", "error": None}
    s.sendall(json.dumps(dict(r, value=value)).encode() + b"\n"); s.close()
X
	answers=$!
	until [ -S "$T/a.sock" ]; do sleep 0.05; done
	ks run --quiet --connect "$T/a.sock" --call x
	is "$rc $(od -An -c "$T/out" | tr -d ' ')" '0 a\0b' "text is not cut at a NUL"
	ks run --quiet --connect "$T/a.sock" --call x
	is "$rc $(out)" "125 " "a value that did not come is not passed over"
	wait $answers
	end TERM
	is $rc 0 "and its end"
fi
left_after "serve"
done_testing
