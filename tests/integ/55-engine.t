#!/bin/sh
# 55-engine.t: containers of an engine that takes its time, and is told to remove them: when a
# run has ended none is left, and when it was killed none after the next one. The engines are
# a script, a container is a file.
unset KNIT_LAUNCHER KNIT_IMAGE # (tap.sh) each run names its own
. "$(dirname "$0")/../lib/tap.sh"
e=$T/engine
mkdir "$e" "$e/asked" "$e/making" "$e/made" "$T/bin"
printf '#!/bin/sh\ne=%s PY=%s nap=299.%s\n' "$e" "$PY" $$ >"$T/bin/docker"
cat >>"$T/bin/docker" <<'X'
# As docker, whose daemon makes what it was asked for when it comes to it, or podman, which
# makes it itself.
[ "$1" = image ] || echo "$*" >>"$e/log"
if [ -e "$e/down" ]; then
	echo "cannot connect to the engine" >&2
	exit 1
fi
id=
for word; do
	case $word in
	--name=*) id=${word#--name=} ;;
	name=*) id=${word#name=} ;;
	knit-*) id=$word ;;
	esac
done
case $1 in
run)
	if [ -e "$e/refuse" ]; then
		echo "${0##*/}: no such image" >&2
		exit 125
	fi
	if [ "${0##*/}" = podman ]; then
		: >"$e/made/$id"
		# (a monitor, called as podman's is)
		[ ! -e "$e/forget" ] || "$PY" -S -c 'import os, sys
if os.fork() == 0:
    os.setsid()
    os.closerange(0, 9)
    os.execv("/bin/sh", ["/usr/bin/conmon", "-c", "sleep %s; :" % sys.argv[2], "-r", "/usr/bin/crun", "-n", sys.argv[1]])' "$id" $nap
		echo made >>"$e/did"
	else
		: >"$e/asked/$id"
	fi
	exec sleep 300
	;;
rm)
	if [ ! -e "$e/made/$id" ]; then
		echo "No such container: $id" >&2
		exit 0
	fi
	sleep "$(cat "$e/slow")"
	rm "$e/made/$id" && echo "$id"
	# (a monitor that is there a little longer, and in our cgroup)
	[ "${0##*/}" != podman ] || sleep 0.5 >/dev/null 2>&1 &
	;;
image)
	echo "sha256:$(printf '%064d' 0) null"
	;;
ps)
	for c in "$e"/made/*; do
		[ "${c##*/}\$" != "$id" ] || echo 123
	done
	;;
esac
exit 0
X
cp "$T/bin/docker" "$T/bin/podman"
chmod 755 "$T/bin" "$T/bin/docker" "$T/bin/podman"
over="$T/bin /usr/local/sbin"
# (root's notes are in /run, where each start of another script sweeps too)
place=$XDG_RUNTIME_DIR/knit-sandbox
if [ -n "$root" ]; then
	mkdir "$T/run"
	over="$over $T/run /run"
	place=$T/run/knit-sandbox
fi
for name in docker podman; do
	for dir in /usr/bin /usr/sbin /usr/local/bin; do
		[ ! -e "$dir/$name" ] || over="$over $T/bin/$name $dir/$name"
	done
done
# shellcheck disable=SC2086
watched "$PY" -S "$t_lib/over.py" $over -- true
if [ "$rc" != 0 ]; then
	skip "$(head -n 1 "$T/err")" "containers of an engine"
	done_testing
fi
left_before
: >"$e/log"
( # the daemon
	while [ -e "$e/log" ]; do
		for f in "$e"/asked/*; do
			[ -e "$f" ] || continue
			id=${f##*/}
			mv "$f" "$e/making/"
			(
				sleep "$(cat "$e/late")"
				[ ! -e "$e/break" ] || : >"$e/down"
				mv "$e/making/$id" "$e/made/"
				echo made >>"$e/did"
			) &
		done
		sleep 0.05
	done
) >/dev/null 2>&1 &
mine() { # our pools' directories
	for d in "$place"/knit-*; do
		grep -qx "$(echo "${d##*/}" | cut -d- -f3,4)" "$T/pids" && echo "$d"
	done
}
on() { # ENGINE ARGS...: a batch of one task on a worker that never answers
	: >"$e/did"
	: >"$e/log"
	name=$1
	shift
	[ "$name" = podman ] || set -- --set /launcher/image=none "$@"
	# shellcheck disable=SC2086
	watched "$PY" -S "$t_lib/over.py" $over -- "$KS" run --launcher "oci:$name" --workers 1 --tasks "$T/tasks" "$@"
}
made() { # what there is when the engine has done all that it was asked for
	t_try=0
	while [ -n "$(find "$e/asked" "$e/making" -type f)" ] && [ $t_try -lt 400 ]; do
		pause 50
		t_try=$((t_try + 1))
	done
	find "$e/asked" "$e/making" "$e/made" -type f
}
echo '{"id":"a","argv":["true"]}' >"$T/tasks"
echo 0 >"$e/late"
echo 0 >"$e/slow"

# ---- an orderly end ----
: >"$e/refuse"
on docker
ok "an engine that refuses: so does the run" test "$rc" -ne 0
at_least "$(grep -c '^run' "$e/log")" 1 "(it was asked)"
at_most "$elapsed_ms" 25000 "an engine that refuses: no container is waited for"
is "$(made) $(mine)" " " "an engine that refuses: nothing is left"
rm "$e/refuse"

echo 3 >"$e/late"
watch_opts="--from $e/log --at 300:TERM --at 600:TERM"
on docker
is "$(made)" "" "stopped while a container is being made: it is removed when it is there"
is "$(cat "$e/did")" made "(it was made)"
is "$left $(mine)" "0 " "stopped while a container is being made: no process and no note is left"

on docker --set /timeouts/start_ms=1000
ok "a container that is made too late: the run is refused" test "$rc" -ne 0
is "$(made)" "" "a container that is made too late: it is removed"
at_least "$(grep -c made "$e/did")" 1 "(it was made)"
is "$left $(mine)" "0 " "a container that is made too late: no process and no note is left"

for name in docker podman; do
	echo 0 >"$e/late"
	echo 3 >"$e/slow"
	watch_opts="--from $e/did --at 300:TERM --at 600:TERM"
	on $name
	is "$left $(find "$e/made" -type f) $(mine)" "0  " "$name takes long to remove a container: the end waits for it"
	is "$(cat "$e/did")" made "(it was made)"
done
echo 0 >"$e/slow"

# ---- after a crash ----
echo 6 >"$e/late"
watch_opts="--from $e/log --at 300:KILL"
on docker
is "$rc" 137 "killed while a container is being made"
: >"$e/refuse"
on docker
is "$(made)" "" "killed while a container is being made: the next start removes it"
is "$left $(mine)" "0 " "killed while a container is being made: no process and no note is left"
rm "$e/refuse"

: >"$e/forget"
: >"$e/did"
# (not watched, which would end the monitor)
# shellcheck disable=SC2086
"$PY" -S "$t_lib/over.py" $over -- "$KS" run --launcher oci:podman --workers 1 --tasks "$T/tasks" >"$T/out" 2>"$T/err" &
sup=$!
wait_lines "$e/did" 1
pause 300
kill -9 $sup
wait $sup 2>/dev/null
pause 300
monitors() {
	ps -eo stat,args | grep -c "^[^Z].*conmon -c [s]leep 299[.]$$"
}
is "$(monitors)" 1 "(its monitor stays, and what it has begun)"
rm "$e/forget"
: >"$e/refuse"
on podman
t_try=0
while { [ "$(monitors)" != 0 ] || [ -n "$(mine)" ]; } && [ $t_try -lt 400 ]; do
	pause 50
	t_try=$((t_try + 1))
done
is "$(monitors) $(pgrep -f "^sleep 299[.]$$")" "0 " "killed while podman starts a container: the next start ends what podman knows nothing of"
is "$(find "$e/made" -type f) $(mine)" " " "killed while podman starts a container: no note is left"
rm "$e/refuse"

echo 0 >"$e/late"
: >"$e/break"
watch_opts="--from $e/did --at 300:TERM --at 600:TERM --at 2500:KILL"
on docker
is "$rc" 137 "an engine that does not answer at the end: who waits for it is killed"
is "$(made | wc -l) $(cd "$(mine)" && echo left-*)" "1 left-w0-1" "its container stays noted"
rm "$e/break" "$e/down"
: >"$e/refuse"
on docker
is "$(made)" "" "an engine that did not answer: the next start removes the container"
is "$left $(mine)" "0 " "an engine that did not answer: no process and no note is left"
rm "$e/log"
left_after "containers of an engine"
done_testing
