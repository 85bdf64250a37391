#!/bin/sh
# 52-top.t: what a server's workers do is told on its sockets, and shown by `top`.
. "$(dirname "$0")/../lib/tap.sh"
left_before
S=$T/s
port=$("$PY" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
"$KS" serve --quiet --socket "$S" --http "127.0.0.1:$port" --workers 2 --health-file "$T/health" 2>"$T/se" &
pid=$!
t_try=0
while [ ! -e "$T/health" ] && [ $t_try -lt 400 ] && kill -0 $pid; do
	pause 50
	t_try=$((t_try + 1))
done
shown() { # EXPRESSION over the document d and its workers W, UNTIL it is that
	t_try=0
	while :; do
		ks top --socket "$S" --once --json
		got=$("$PY" - "$T/out" "$1" <<'X' 2>&1
import json, sys
d = json.loads(open(sys.argv[1]).readlines()[0])
W = [w for p in d["pools"] for w in p["workers"]]
print(eval(sys.argv[2]))
X
)
		[ "$got" = "$2" ] && break
		[ $t_try -ge 200 ] && break
		pause 50
		t_try=$((t_try + 1))
	done
}
shown 'sum(w["state"] == "idle" for w in W), sum(w["state"] == "busy" for w in W), d["state"], d["pid"]' \
	"(2, 0, 'serving', $pid)"
is "$got" "(2, 0, 'serving', $pid)" "the task socket tells of idle workers"
printf '%s\n' '{"id":"bell\u0007\u001b[31mred","argv":["sleep","100"]}' '{"id":"b","argv":["sleep","100"]}' \
	'{"id":"c","argv":["true"]}' >"$T/tasks"
"$KS" run --quiet --connect "$S" --tasks "$T/tasks" >"$T/results" 2>/dev/null &
client=$!
want="(['b', 'bell\\x07\\x1b[31mred'], 2, 3, 1)"
shown 'sorted(t["id"] for w in W for t in w["tasks"]), d["tasks"]["running"], d["tasks"]["live"], len(d["clients"])' "$want"
is "$got" "$want" "and of what runs in busy ones"
worker=$("$PY" -c 'import json, sys; print([w["pid"] for p in json.load(open(sys.argv[1]))["pools"] for w in p["workers"] if w["tasks"]][0])' "$T/out")
ok "the process it names is there" test -e "/proc/$worker/status"
ks top --socket "$S" --once
is "$rc $(grep -c ' busy ' "$T/out")" "0 2" "top: a line for each worker"
like "$(out)" 'tasks: 2 running, 1 waiting, 0 answered' "and the sums"
for args in "--once $S" "$S --once"; do
	# shellcheck disable=SC2086
	ks top $args
	is "$rc $(grep -c ' busy ' "$T/out")" "0 2" "top ${args%%"$S"*}...: the server by its path alone"
done
is "$(tr -d '[:print:]\n' <"$T/out" | wc -c)" 0 "hostile ids: nothing that a terminal obeys, no colour in a file"
"$PY" - "$KS" "$S" "$T/tty" "$T/nocolor" <<'X'
import os, pty, signal, sys, time
for path, env in ((sys.argv[3], {}), (sys.argv[4], {"NO_COLOR": "1"})):
    pid, fd = pty.fork()
    if pid == 0:
        os.environ["TERM"] = "xterm"
        os.environ.update(env)
        os.execv(sys.argv[1], [sys.argv[1], "top", "--socket", sys.argv[2], "--interval", "100ms"])
    data, stopped = b"", False
    while True:
        try:
            got = os.read(fd, 65536)
        except OSError:
            break
        if not got:
            break
        data += got
        if data.count(b"\x1b[H") >= 3 and not stopped:
            os.kill(pid, signal.SIGINT)
            stopped = True
    data += b"STATUS %d" % os.waitpid(pid, 0)[1]
    open(path, "wb").write(data)
X
is "$("$PY" - "$T/tty" "$T/nocolor" <<'X'
import re, sys
a, b = (open(p, "rb").read() for p in sys.argv[1:])
print(a.startswith(b"\x1b[?1049h"), b"\x1b[?1049lSTATUS 0" in a, b"\x1b[2J" in a,
      b"\x1b[32m" in a, b"\x1b[31m" in a, bool(re.search(rb"\x1b\[\d+m", b)))
X
)" "True True False True False False" "a terminal: drawn over, never cleared; colours, but with NO_COLOR; put back by SIGINT"
is "$("$PY" - $port <<'X'
import socket, sys
s = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
s.sendall(b"GET /workers HTTP/1.0\r\n\r\n")
print(s.makefile().read().split()[1])
X
)" 403 "not on a port, which is open to other users"
kill $client
wait $client
shown 'd["tasks"]["abandoned"], d["connections"]' "(3, 0)"
is "$got" "(3, 0)" "a client that went away: its tasks are told as abandoned"
kill -TERM $pid
wait $pid
is $? 0 "the server ends"
ks top --socket "$S" --once
is $rc 125 "no server there: 125"
one_clear_line 'No such file' "and why"
ks top
is $rc 125 "no socket named: 125"
left_after "top"
done_testing
