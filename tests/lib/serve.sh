# tests/lib/serve.sh: a server to ask, after tap.sh: its sockets are $S and $T/h.
#
#   begin ARGS...         start it, until a worker is ready; sets pid
#   end SIGNAL            sets rc
#   client WHAT...        tests/lib/clients.py
#   curl AT PATH          "STATUS BODY"
#   number NAME           of /metrics; until_is NAME N: until it is that, or long enough
#   ledger FILE           of saved metrics: accepted - answered - abandoned - live; live;
#                         clients

S=$T/s
curl() { # PATH of the http socket or port, PATH: "STATUS BODY"
	"$PY" - "$@" <<'X'
import socket, sys
at, path = sys.argv[1:3]
s = socket.socket(socket.AF_UNIX) if "/" in at else socket.socket()
s.settimeout(30)
s.connect(at if "/" in at else ("127.0.0.1", int(at)))
s.sendall(("%s %s HTTP/1.1\r\nHost: x\r\n\r\n" % (sys.argv[3] if len(sys.argv) > 3 else "GET", path)).encode())
data = b""
while True:
    got = s.recv(65536)
    if not got: break
    data += got
head, body = data.split(b"\r\n\r\n", 1)
print(head.split()[1].decode(), body.decode().strip())
X
}
number() { # NAME: of the metrics
	curl "$T/h" /metrics | sed -n "s/^$1 //p"
}
begin() { # ARGS...
	"$KS" serve --socket "$S" --http "$T/h" --health-file "$T/health" --workers 2 "$@" >"$T/so" 2>"$T/se" &
	pid=$!
	t_try=0
	while [ ! -e "$T/health" ] && [ $t_try -lt 400 ] && kill -0 $pid 2>/dev/null; do
		pause 50
		t_try=$((t_try + 1))
	done
}
end() { # SIGNAL
	kill -"$1" $pid
	wait $pid
	rc=$?
}
client() {
	"$PY" "$t_lib/clients.py" "$S" "$@"
}
until_is() { # NAME N
	t_try=0
	while [ "$(number "$1")" != "$2" ] && [ $t_try -lt 300 ] && kill -0 $pid; do
		pause 50
		t_try=$((t_try + 1))
	done
}
ledger() { # FILE
	"$PY" -S - "$1" <<'X'
import re, sys
v, answered = {}, 0
for line in open(sys.argv[1]):
    m = re.match(r"(\w+)(\{[^}]*\})? (\d+)$", line)
    if m and m[1] == "knit_tasks_answered_total":
        answered += int(m[3])
    elif m:
        v[m[1]] = int(m[3])
print(v["knit_tasks_accepted_total"] - answered - v["knit_tasks_abandoned_total"] - v["knit_tasks_live"], v["knit_tasks_live"], v["knit_clients"])
X
}
