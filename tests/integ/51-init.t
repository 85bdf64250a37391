#!/bin/sh
# 51-init.t: the program as process 1 of a PID namespace, as in a container that has no
# init: it waits for orphans that the kernel hands to it, has its signals, and ends.
. "$(dirname "$0")/../lib/tap.sh"
case ${KNIT_LAUNCHER:-}:$root in
oci:*:1) ;;
oci:*)
	echo "1..0 # SKIP launcher oci is refused to uid 0 of a user namespace without other ids"
	exit 0
	;;
esac
left_before
S=$T/s
inside="unshare --pid --fork --mount-proc --kill-child"
[ -n "$root" ] || inside="unshare --user --map-root-user --pid --fork --mount-proc --kill-child"
# An orphan that ends in a second, one that has ended already, then the program in the
# shell's place.
orphans='{ sleep 1 & } & { : & } & exec "$0" "$@"'
begin() { # ARGS...
	# shellcheck disable=SC2086
	$inside sh -c "$orphans" "$KS" "$@" >"$T/so" 2>"$T/se" &
	outer=$!
	t_try=0
	init=
	while [ -z "$init" ] && [ $t_try -lt 400 ]; do
		pause 50
		init=$(cat /proc/$outer/task/$outer/children 2>/dev/null)
		init=${init%% *}
		t_try=$((t_try + 1))
	done
}
children() { # in state $1
	for p in $(cat "/proc/$init/task/$init/children"); do
		sed -n "s/^State:[^A-Z]*$1.*/$p/p" "/proc/$p/status" 2>/dev/null
	done
}
no_zombie() { # NAME
	t_try=0
	while [ -n "$(children Z)" ] && [ $t_try -lt 400 ]; do
		pause 50
		t_try=$((t_try + 1))
	done
	is "$(children Z)" "" "$1"
}

# ---- serve ----
begin serve --quiet --socket "$S" --workers 2 --health-file "$T/health"
t_try=0
while [ ! -e "$T/health" ] && [ $t_try -lt 400 ] && kill -0 $outer; do
	pause 50
	t_try=$((t_try + 1))
done
is "$(sed -n 's/^NSpid:.*[^0-9]//p' "/proc/$init/status")" 1 "the server is process 1"
pause 1200
no_zombie "serve: orphans are waited for"
ks run --connect "$S" -- echo served
is "$rc $(out)" "0 served" "and a task is answered"
# What a worker's end leaves is an orphan too, and the pool's own children are not.
for p in $(children S); do
	kill -KILL "$p"
done
pause 300
ks run --connect "$S" -- echo again
is "$rc $(out)" "0 again" "workers that were killed: the next task is answered"
no_zombie "and nothing of them is left"
kill -TERM "$init"
wait $outer
is "$? $(ls "$S" 2>/dev/null)" "0 " "SIGTERM drains it"

# ---- run ----
cat >"$T/cmd" <<'X'
trap 'echo usr' USR1
trap 'echo term; exit 7' TERM
echo up
while :; do sleep 0.1; done
X
begin run --quiet --set /timeouts/grace_ms=20000 --ro-bind "$T/cmd:/cmd" -- sh /cmd
wait_lines "$T/so" 1
pause 1200
no_zombie "run: orphans are waited for"
kill -USR1 "$init"
wait_lines "$T/so" 2
kill -TERM "$init"
wait $outer
is "$? $(paste -sd' ' "$T/so")" "7 up usr term" "run: signals reach the command, whose status it is"
printf '%s\n' '{"id":"a","argv":["true"]}' '{"id":"b","argv":["sleep","100"]}' >"$T/tasks"
begin run --quiet --tasks "$T/tasks"
wait_lines "$T/so" 1
kill -INT "$init"
wait $outer
is "$? $(js "$T/so" 'L[1]["verdict"]')" "130 cancelled" "a batch: SIGINT stops it"

# ---- one that holds no signals ----
cat >"$T/deaf.py" <<'X'
import socket, sys
s = socket.socket(socket.AF_UNIX)
s.bind(sys.argv[1])
s.listen(1)
a = s.accept()[0]
print("came", flush=True)
a.recv(1)
s.accept()
X
"$PY" "$T/deaf.py" "$T/deaf" >"$T/came" &
listener=$!
t_try=0
while [ ! -e "$T/deaf" ] && [ $t_try -lt 400 ]; do
	pause 50
	t_try=$((t_try + 1))
done
begin run --connect "$T/deaf" --quiet -- true
wait_lines "$T/came" 1
kill -TERM "$init"
wait $outer
is "$?" 143 "a verb that holds no signals ends by SIGTERM all the same"
kill $listener
ks version
left_after "process 1"
done_testing
