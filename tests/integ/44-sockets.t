#!/bin/sh
# 44-sockets.t: no socket of the machine below a bound directory, and no abstract one, is
# reached from a task: by no preset, with bwrap as with direct; preset python alone says that
# it is otherwise, with bwrap. Leases on bound files: by no preset.
. "$(dirname "$0")/../lib/tap.sh"
left_before
mkdir "$T/r"
chmod 755 "$T" "$T/r"
echo x >"$T/r/f"
# The machine's service: what it hears is in $T/heard, a line each.
cat >"$T/service.py" <<'X1'
import os, select, socket, sys
d = sys.argv[1]
listens = {}
for name, kind in ("stream", socket.SOCK_STREAM), ("packet", socket.SOCK_SEQPACKET), ("dgram", socket.SOCK_DGRAM):
    s = listens[name] = socket.socket(socket.AF_UNIX, kind)
    s.bind(d + "/r/" + name)
    os.chmod(d + "/r/" + name, 0o777)
    if name != "dgram":
        s.listen(99)
abstract = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
abstract.bind(("\0" + d).encode())
listens["abstract"] = abstract
heard = open(d + "/heard", "a", buffering=1)
open(d + "/ready", "w").close()
while True:
    for s in select.select(list(listens.values()), [], [])[0]:
        c = s if s.type == socket.SOCK_DGRAM else s.accept()[0]
        c.settimeout(5)
        heard.write(c.recv(99).decode() + "\n")
X1
# What a task tries: each way to the service by its name, if it came to an end. What is sent
# begins with a word of the try's own, as what came before may be heard late.
cat >"$T/r/try.py" <<'X1'
import fcntl, os, signal, socket, sys
d, tag = sys.argv[1:]
U = socket.AF_UNIX
kinds = {"stream": socket.SOCK_STREAM, "packet": socket.SOCK_SEQPACKET, "dgram": socket.SOCK_DGRAM, "raw": socket.SOCK_RAW}
places = [d + "/r/" + n for n in ("stream", "packet", "dgram")] + [b"\0" + d.encode()]
def own(what, kind, to):
    s = socket.socket(U, kind)
    s.connect(to)
    s.send(what)
def sends(what, kind, to):
    a, b = socket.socketpair(U, kind)
    try:
        a.sendto(what, to)
    finally:
        # What its peer got did not go elsewhere.
        b.setblocking(False)
        try:
            got = b.recv(99)
        except BlockingIOError:
            got = None
    if got:
        raise OSError("its peer got it")
def connects(what, kind, to, left):
    a, b = socket.socketpair(U, kind)
    if left:
        b.close()
    a.connect(to)
    a.send(what)
for kn, kind in kinds.items():
    for i, p in enumerate(places):
        for name, f in ("socket", lambda w: own(w, kind, p)), ("pair-sendto", lambda w: sends(w, kind, p)), \
                ("pair-connect", lambda w: connects(w, kind, p, False)), ("widow-connect", lambda w: connects(w, kind, p, True)):
            what = "%s-%s-%d" % (name, kn, i)
            try:
                f((tag + " " + what).encode())
                print("did", what)
            except OSError:
                pass
# What programs do with pairs goes on.
try:
    for kind in socket.SOCK_STREAM, socket.SOCK_SEQPACKET:
        a, b = socket.socketpair(U, kind | socket.SOCK_NONBLOCK)
        a.send(b"x")
        b.recv(9) == b"x" and print("pair")
except OSError as e:
    print("no pair")
signal.signal(signal.SIGIO, signal.SIG_IGN)
fd = os.open(d + "/r/f", os.O_RDONLY)
for what, command in ("lease", 1024), ("delegation", 1040):
    try:
        fcntl.fcntl(fd, command, fcntl.F_RDLCK if command == 1024 else b"\0" * 4 + b"\0\0" + b"\0\0")
        print("did", what)
    except OSError as e:
        print(what, e.errno)
X1
chmod 644 "$T/r/f" "$T/r/try.py"
"$PY" -S "$T/service.py" "$T" &
service=$!
wait_marker "$T/ready"
# That it can tell: outside, each way that there is is gone.
"$PY" -S "$T/r/try.py" "$T" outside >"$T/out"
at_least "$(grep -c '^did socket-stream-0\|^did pair-sendto-dgram-2\|^did pair-connect-raw-2\|^did pair-sendto-raw-3' "$T/out")" 4 \
	"outside, sockets are reached"
wait_lines "$T/heard" 4
ok "and heard" grep -q '^outside ' "$T/heard"
tries=0
weak='["cgroup.memory","landlock"]'
for launcher in bwrap direct; do
	for preset in default strict judge node build container compute convert python; do
		at="$launcher, $preset"
		tries=$((tries + 1))
		ks run --quiet --launcher $launcher --policy $preset --set "/allow_degraded=$weak" --ro-bind "$T/r" -- \
			"$PY" -S "$T/r/try.py" "$T" try$tries
		is $rc 0 "$at: it runs to its end"
		pause 20
		sed -n "s/^try$tries //p" "$T/heard" >"$T/of_it"
		case "$at" in
		"bwrap, python")
			is "$(grep -v '^socket-' "$T/of_it")$(grep '^did' "$T/out" | grep -v '^did socket-')" "" \
				"$at: sockets, as its rule says, no pairs"
			;;
		*)
			is "$(cat "$T/of_it")" "" "$at: nothing is heard outside"
			is "$(grep '^did' "$T/out")" "" "$at: no way comes to an end"
			;;
		esac
		case $preset in
		compute | convert) like "$(out)" 'no pair' "$at: no pairs" ;;
		*) is "$(grep -c '^pair' "$T/out")" 2 "$at: connected pairs" ;;
		esac
		is "$(grep '^lease\|^delegation' "$T/out" | tr '\n' ' ')" "lease 1 delegation 1 " "$at: no leases"
	done
done
kill $service
wait $service 2>/dev/null

# A document's own rule, with direct: the start says that there are none, and there are none.
echo '{"version":1,"seccomp":{"rules":[{"names":["socket","socketpair"],"action":"SCMP_ACT_ALLOW"}]}}' >"$T/p.json"
for kind in "socket 1 1" "socketpair 1 2" "socketpair 1 3"; do
	# shellcheck disable=SC2086
	ks policy explain --policy "$T/p.json" --call $kind
	like "$(out)" "^${kind%% *}: allowed" "$kind: what a rule names is allowed"
	# shellcheck disable=SC2086
	ks policy explain --policy "$T/p.json" --set /launcher/type=direct --call $kind
	like "$(out)" "^${kind%% *}: refused" "$kind: not with direct"
	like "$(out)" 'never with launcher direct' "$kind: and by what"
done
left_after "sockets"
done_testing
