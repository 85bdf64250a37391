#!/bin/sh
# 51-oci.t: workers as containers of a runtime: the same walls, and nothing left. Any
# other script runs so with KNIT_LAUNCHER=oci:runc (tests/lib/tap.sh).
. "$(dirname "$0")/../lib/tap.sh"

ks run --launcher oci:rnuc -- true
is $rc 125 "a runtime that nobody knows: refused"
like "$(err)" '--launcher: .*"rnuc"; did you mean "runc"' "and the nearest is named"
runtime=
for dir in /usr/bin /usr/sbin /usr/local/bin /usr/local/sbin; do
	for name in crun runc; do
		[ -x "$dir/$name" ] && runtime=$name
	done
done
case ${KNIT_LAUNCHER:-} in oci:*) runtime=${KNIT_LAUNCHER#oci:} ;; esac
if [ -z "$runtime" ]; then
	ks run --launcher oci -- true
	is $rc 125 "no runtime: refused"
	one_clear_line 'no runc or crun in' "no runtime"
	lacking "neither runc nor crun here" "workers in containers"
	done_testing
fi
oci="--launcher oci:$runtime${KNIT_IMAGE:+ --set /launcher/image=$KNIT_IMAGE}"
left_before

# ---- the same walls as under bwrap ----
# shellcheck disable=SC2086
ks run $oci --report "$T/report" -- sh -c 'id -u; hostname; cat /proc/self/uid_map | tr -s " "; grep -c . /proc/net/dev
	for s in user pid mnt ipc uts cgroup net; do readlink /proc/self/ns/$s; done
	grep -E "^(CapBnd|CapPrm|NoNewPrivs|Seccomp):" /proc/self/status'
is "$rc" 0 "a task in a container"
like "$(out | sed -n 1,2p | tr '\n' ' ')" '^1000 sandbox ' "it is who the policy says, on a host of that name"
like "$(out | sed -n 3p)" '^ 1000 [0-9]+ 1$' "in a user namespace of the worker's own, below the container's"
is "$(out | sed -n 4p)" 3 "with an empty network"
is "$(out | grep -c "$(for s in user pid mnt ipc uts cgroup net; do readlink /proc/self/ns/$s; done | tr '\n' '|' | sed 's/|$//; s/[][]/\\&/g; s/|/\\|/g')")" 0 \
	"no namespace is the machine's"
is "$(out | tail -n 4 | tr -s '\t\n' '  ')" "CapPrm: 0000000000000000 CapBnd: 0000000000000000 NoNewPrivs: 1 Seccomp: 2 " \
	"no capability, no new ones, a filter"
ks run --report "$T/report.bwrap" -- true
is "$(js "$T/report" 'L[0]["layers"]')" "$(js "$T/report.bwrap" 'L[0]["layers"]')" "the layers are those of bwrap"
ks run $oci -- sh -c 'for d in / /usr /etc /dev /proc /etc/passwd; do touch "$d/x" 2>/dev/null || touch "$d" 2>/dev/null && echo "wrote $d"; done
	for d in /tmp /dev/shm /task; do echo x >"$d/x" || echo "no $d"; done; unshare -U true 2>/dev/null && echo namespace; true'
is "$rc $(out)" "0 " "nothing of the system is writable, its own places are, and no namespace is to be had"
# An engine shows more than it is told to.
ks run $oci -- sh -c 'ls -A /sys 2>/dev/null
	cut -d" " -f5,6 /proc/self/mountinfo | grep -v "^/dev" | grep -v "nosuid.*nodev"; true'
is "$rc $(out)" "0 " "it sees nothing of /sys; no mount has set-user-id programs or devices"
if [ -z "${KNIT_IMAGE:-}" ]; then
	ks run $oci -- sh -c 'id -un; grep -c "^task:" /etc/passwd'
	is "$(out | tr '\n' ' ')" "task 1 " "and /etc as the policy has it"
fi
mkdir "$T/tree" "$T/tree/secret"
echo mine >"$T/tree/f"
echo denied >"$T/tree/secret/g"
echo denied >"$T/tree/.env"
[ -z "$root" ] || chmod 700 "$T/tree"
ks run $oci --bind "$T/tree:/w" --set "/filesystem/deny=[\"$T/tree/secret\",\"$T/tree/.env\"]" -- \
	sh -c 'cat /w/f; echo new >/w/n; cat /w/secret/g /w/.env 2>/dev/null; ls /w/secret 2>/dev/null; true'
is "$rc $(out)" "0 mine" "binds are shown, what is denied in them is not"
is "$(cat "$T/tree/n") $(stat -c %u "$T/tree/n")" "new $(id -u)" "what is written there is the caller's"
# Where docker's worker has come to its socket by, which is its tasks' user too.
ks run $oci -- sh -c 'for d in /.knit-*; do [ ! -e "$d" ] || { echo "$d"; ls -A "$d"; }; done; true'
if [ "$runtime" = docker ]; then
	like "$(out)" '^/\.knit-[0-9a-f]{32}$' "what the stub has begun with is where nobody could know"
	like "$(err)" 'Permission denied' "and closed"
else
	is "$rc $(out)" "0 " "nothing is there that the stub has begun with"
fi
# An image may name a command of its own that an engine runs beside the worker, as the
# worker's user and without its walls; and volumes, which are mounted where its links lead,
# over what the policy shows, and stay.
build_image() { # NAME INSTRUCTION...
	name=$1
	shift
	rm -rf "$T/context"
	mkdir "$T/context"
	printf '%s\n' "FROM $KNIT_IMAGE" "$@" >"$T/context/Dockerfile"
	format=
	[ "$runtime" = docker ] || format="--format docker"
	# shellcheck disable=SC2086
	HOME=$(getent passwd "$(id -u)" | cut -d: -f6) DOCKER_BUILDKIT=0 "$runtime" build $format -q -t "$name" "$T/context" >"$T/built" 2>&1
}
if [ -n "${KNIT_IMAGE:-}" ]; then
	beside=8$$
	if build_image "knit-h$$" "HEALTHCHECK --interval=1s CMD exec sleep $beside" && build_image "knit-v$$" 'VOLUME /data /srv/real'; then
		"$KS" run $oci --set "/launcher/image=knit-h$$" -- sleep 60 >"$T/out" 2>"$T/err" &
		sup=$!
		seen=
		t_try=0
		while [ $t_try -lt 60 ] && [ -d /proc/$sup ]; do
			sleep 0.1
			t_try=$((t_try + 1))
			! pgrep -f "sleep $beside" >/dev/null || seen=1
		done
		ok "a task in such an image" test -d /proc/$sup
		is "$seen" "" "an image's own check of health is not run"
		kill -9 $sup
		wait $sup 2>/dev/null
		ks run $oci -- true # removes what that one left
		volumes=$("$runtime" volume ls -q | sort)
		mkdir "$T/tree/real"
		echo real >"$T/tree/real/f"
		ks run $oci --set "/launcher/image=knit-v$$" --ro-bind "$T/tree:/srv" -- cat /srv/real/f
		if [ "$runtime" = docker ]; then
			is "$rc $(out)" "125 " "an image with volumes: refused"
			one_clear_line '/launcher/image: knit-v[0-9]* has volumes.*/data' "an image with volumes"
		else
			is "$rc $(out)" "0 real" "an image with volumes: none is mounted"
		fi
		is "$("$runtime" volume ls -q | sort)" "$volumes" "and none is left"
		"$runtime" rmi --force "knit-h$$" "knit-v$$" >/dev/null 2>&1
		ks run $oci --set "/launcher/image=knit-no$$" -- true
		is $rc 125 "an image that is not there: refused"
		like "$(err)" "(N|n)o such image|image not known" "and why"
	else
		skip "no image can be built here: $(tail -n 1 "$T/built")" "an image's check of health, and volumes"
	fi
fi
if cgroup_granted; then
	ks run $oci --pids 7 -- "$PY" -S -c 'import os, time
n = 0
try:
    while True:
        if not os.fork(): time.sleep(60)
        n += 1
except OSError: print(n, flush=True)
os._exit(0)'
	is "$(out)" 6 "a limit of processes counts the task's, not the runtime's"
	ks run $oci --memory 64M -- "$PY" -S -c 'bytearray(200 << 20)'
	is $rc 137 "a limit of memory"
	like "$(err)" '^knit-sandbox: memory:' "and it is named"
else
	not_here "no cgroups are granted"
fi

# ---- a root of one's own ----
if [ -z "${KNIT_IMAGE:-}" ]; then
	mkdir "$T/rootfs" "$T/rootfs/dev" "$T/rootfs/etc"
	ln -s usr/bin "$T/rootfs/bin"
	[ ! -L /lib64 ] || cp -P /lib /lib64 "$T/rootfs/"
	echo mark >"$T/rootfs/etc/mark"
	if [ "$runtime" = podman ]; then
		ks run $oci --set "/launcher/rootfs=$T/rootfs" -- true
		is $rc 125 "a root without what podman binds upon: refused"
		like "$(err)" "^hint: touch $T/rootfs/etc/hostname" "and what to do"
		touch "$T/rootfs/etc/hostname"
	fi
	chmod -R a+rX "$T/rootfs"
	(cd "$T/rootfs" && find . | sort) >"$T/before"
	if [ -L /bin ]; then
		ks run $oci --set "/launcher/rootfs=$T/rootfs" --ro-bind /usr -- sh -c 'cat /etc/mark; ls /etc | grep -v hostname; touch /etc/x 2>/dev/null || echo no'
		is "$rc $(out | tr '\n' ' ')" "0 mark mark no " "launcher.rootfs is the root, read-only"
	else
		skip "no merged /usr here" "launcher.rootfs is the root, read-only"
	fi
	is "$(cd "$T/rootfs" && find . | sort)" "$(cat "$T/before")" "and nothing is made in it"
	rmdir "$T/rootfs/dev"
	mkdir "$T/outside"
	ln -s ../outside "$T/rootfs/dev"
	ks run $oci --set "/launcher/rootfs=$T/rootfs" -- true
	is "$rc $(ls "$T/outside")" "125 " "a root whose /dev is a link: refused, and nothing is made outside (C003)"
fi

# ---- its end ----
ks run $oci --dry-run -- true
if [ -n "$engine" ]; then
	like "$(out | tr '\n' ' ')" "$runtime run --name=knit-[0-9a-f]{32}-w0-0 .*--cap-drop=all" "--dry-run shows the command"
else
	like "$(out | tr '\n' ' ')" "$runtime --root .* run --preserve-fds=2 --bundle .* knit-[0-9a-f]{32}-w0" "--dry-run shows the command"
fi
left_after "after runs in containers"
place=${XDG_RUNTIME_DIR:-/run}/knit-sandbox
[ -z "$root" ] || place=/run/knit-sandbox
mine() { # our pools' directories
	for d in "$place"/knit-*; do
		grep -qx "$(echo "${d##*/}" | cut -d- -f3,4)" "$T/pids" && echo "$d"
	done
}
is "$(mine)" "" "no bundle is left"
nap=60.$$
printf '{"id":"a","argv":["sleep","%s"]}\n' $nap >"$T/tasks"
# shellcheck disable=SC2086
"$KS" run $oci --workers 1 --tasks "$T/tasks" >/dev/null 2>"$T/err" &
sup=$!
stub=
t_try=0
while [ -z "$stub" ] && [ $t_try -lt 400 ]; do
	pause 50
	t_try=$((t_try + 1))
	# (an engine's is nobody's that we know)
	stub=$(ps -eo pid,ppid,args | awk -v p=$sup -v nap=$nap -v any=$engine '
		{ parent[$1] = $2; if ($3 " " $4 " " $5 == "sleep " nap " ") task[$1] = 1 }
		END { for (c in task) for (x = c; x in parent; x = parent[x])
			if (x == p || any) { print c; break } }')
done
ok "a task runs in a container" test -n "$stub"
if [ -n "$engine" ]; then
	like "$("$runtime" ps --format '{{.Names}}' --filter label=knit-sandbox.worker=w0)" '^knit-[0-9a-f]{32}-w0-1$' "the container is named after the pool"
else
	like "$(for d in $(mine); do ls "$d"/w0/state; done)" '^knit-[0-9a-f]{32}-w0$' "the container is named after the pool"
fi
kill -9 $sup
wait $sup 2>/dev/null
t_try=0
while [ -n "$stub" ] && [ -d "/proc/$stub" ] && [ $t_try -lt 200 ]; do
	pause 50
	t_try=$((t_try + 1))
done
ok "a killed supervisor takes it along" test ! -d "/proc/${stub:-0}"
ks run $oci -- true
is "$rc $(mine)" "0 " "the next start removes what it left"
if [ -n "$engine" ]; then
	t_try=0
	while [ -n "$("$runtime" ps --all --quiet --filter label=knit-sandbox.worker)" ] && [ $t_try -lt 200 ]; do
		pause 50
		t_try=$((t_try + 1))
	done
	is "$("$runtime" ps --all --format '{{.Names}}' --filter label=knit-sandbox.worker)" "" "and no container is left"
fi

# ---- what leaves the group of its launcher ----
# As runc's first process in a container does before it waits for runc.
case $runtime in
runc | crun)
	printf '#!/bin/sh\n/usr/bin/setsid /bin/sh -c "/bin/sleep 300 3>&- 4>&- >/dev/null 2>&1 &"\nexec "$@"\n' >"$T/leaves"
	chmod 755 "$T/leaves"
	ks run $oci --set "/launcher/prefix=[\"$T/leaves\"]" -- true
	is "$rc $left" "0 0" "what leaves the group of its launcher ends with it"
	watch_opts="--at 2000:KILL"
	ks run $oci --set "/launcher/prefix=[\"$T/leaves\"]" -- sleep 60
	is "$rc $left" "137 0" "and with a killed supervisor"
	ks run $oci -- true
	;;
esac

# ---- what a note names ----
# The runtime's notes are in the worker's reach: they may name anybody. Whom the next start
# ends has to be what is left of a container by the kernel's word.
uid=$(id -u)
[ -z "$root" ] || uid=1090000000
sh -c 'exit 0' &
dead=$!
wait $dead
start_of() {
	sed 's/.*) //' "/proc/$1/stat" | cut -d' ' -f20
}
pool=knit-0123456789abcdef0123456789abcdef
noted=$place/$pool-$dead-1-$(stat -L -c %i /proc/self/ns/pid)
plant() { # WORKER PID [FOLDER]
	at=${3:-$noted/$1/state}
	mkdir -p "$noted/$1" "$at/$pool-$1"
	printf '{"init_process_pid":%d,"init_process_start":%d}' "$2" "$(start_of "$2")" >"$at/$pool-$1/state.json"
	printf '{"pid":%d,"process-start-time":%d}' "$2" "$(start_of "$2")" >"$at/$pool-$1/status"
	[ -z "$root" ] || chown -R $uid "$at"
	[ -z "${3-}" ] || ln -s "$3" "$noted/$1/state"
}
cat >"$T/first.py" <<'X'
# Tells the first process of a user and a PID namespace, which is left there.
import ctypes, os, sys, time
uid = int(sys.argv[1])
if os.getuid() != uid:
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
if ctypes.CDLL(None).unshare(0x30000000):
    sys.exit("unshare")
pid = os.fork()
if pid == 0:
    os.close(1)
    time.sleep(300)
    os._exit(0)
print(pid)
X
first() {
	: >"$T/first"
	"$PY" -S "$T/first.py" "$1" >>"$T/first" 2>/dev/null &
	wait_lines "$T/first" 1
	cat "$T/first"
}
state() {
	sed 's/.*) //' "/proc/${1:-none}/stat" 2>/dev/null | cut -c1
}
chmod 644 "$T/first.py"
sleep 300 &
stranger=$!
rest=$(first $uid)
elsewhere=$(first $uid)
other=
[ -z "$root" ] || other=$(first $((uid + 1)))
[ -d "$place" ] || mkdir -m 711 "$place"
mkdir "$noted"
plant w0 $stranger
plant w1 "$rest"
plant w3 "$elsewhere" "$T/elsewhere"
[ -z "$other" ] || plant w4 "$other"
ks run $oci -- true
ok "the next start has looked" test ! -d "$noted"
is "$(state $stranger)" S "a stranger that a note names lives"
is_any "$(state "$rest")" "Z " "what is left of a container is ended"
is "$(state "$elsewhere")" S "notes that a link leads to are nobody's"
if [ -n "$root" ]; then
	is "$(state "$other")" S "that of another user lives"
fi
kill -9 $stranger "$elsewhere" $other
wait $stranger 2>/dev/null
rmdir "$place" 2>/dev/null
left_after "after a killed supervisor and another start"
done_testing
