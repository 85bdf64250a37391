#!/bin/sh
# 02-walls.t: what a task cannot see, reach or become.
. "$(dirname "$0")/../lib/tap.sh"
left_before

# ---- files of the host ----
of_the_root="/etc/shadow /var/lib" # (an image has its own)
[ -z "${KNIT_IMAGE:-}" ] || of_the_root=
for path in $of_the_root /root/ /home/ "$HOME/" "$T/secret" /boot /sys/kernel /run/systemd; do
	echo canary-of-the-caller >"$T/secret"
	ks run -- sh -c 'ls -A "$0" >/tmp/list 2>/tmp/why && grep -q . /tmp/list && cat /tmp/list && exit 0; exit 9' "$path"
	is $rc 9 "$path: absent, refused or empty"
done
ks run -- cat /etc/shadow
is $rc 1 "cat /etc/shadow: fails"
is "$(out)" "" "cat /etc/shadow: nothing comes out"
ks run -- ls /root
unlike "$(out)" . "ls /root: nothing comes out"

# The current directory is not visible unless bound.
mkdir "$T/cwd"
echo canary >"$T/cwd/f"
cd "$T/cwd" || exit 1
ks run -- sh -c 'pwd; cat f "$0/f"' "$T/cwd"
unlike "$(out)" canary "the caller's current directory: not visible"
like "$(out)" '^/task' "the task's own directory is /task"
ks run --ro-bind "$T/cwd:/data" -- sh -c 'cat /data/f; echo x >/data/f; echo y >/data/g'
like "$(out)" canary "--ro-bind: readable"
is "$(cat "$T/cwd/f") $(ls "$T/cwd")" "canary f" "--ro-bind: not writable"
ks run --bind "$T/cwd:/data" -- sh -c 'echo made >/data/g && cat /data/g'
is "$rc $(out) $(cat "$T/cwd/g")" "0 made made" "--bind: writable"
is "$(stat -c %u "$T/cwd/g")" "$(id -u)" "--bind: files written belong to the caller"
ks run --ro-bind "$T/cwd/f:/data/only" -- sh -c 'cat /data/only'
is "$(out)" canary "--ro-bind of a single file"
if [ -n "$root" ]; then
	mkdir -m 700 "$T/private"
	echo mine >"$T/private/f"
	chmod 600 "$T/private/f"
	ks run --bind "$T/private:/p" -- sh -c 'cat /p/f; echo more >/p/g'
	is "$rc $(out)" "0 mine" "root's own 0700 files still bind"
	is "$(stat -c %u:%g "$T/private/g")" "0:0" "and what is written there is root's"
else
	mkdir -m 700 "$T/private"
	echo mine >"$T/private/f"
	ks run --bind "$T/private:/p" -- cat /p/f
	is "$rc $(out)" "0 mine" "the caller's own 0700 files bind"
fi
cd - >/dev/null || exit 1

# Read-only root, private places.
ks run -- sh -c 'for d in / /usr /usr/bin /etc /dev /proc /lib /bin; do touch "$d/knit-x" 2>/dev/null && echo "wrote $d"; done; true'
is "$rc:$(out)" "0:" "no directory of the system is writable"
ks run -- sh -c 'for d in /tmp /dev/shm /task .; do touch "$d/x" || echo "no $d"; done; echo "$TMPDIR" >/tmp/t; T=$(mktemp -d) && test -d "$T" && echo fine'
is "$(out)" fine "/tmp, /dev/shm, /task and mktemp work (C152)"
ks run -- sh -c 'head -c 200M /dev/zero >/tmp/big; s=$?; wc -c </tmp/big; exit $s'
is $rc 1 "/tmp is bounded: 200M do not fit"
at_most "$(out | tail -n 1)" 67108864 "/tmp holds at most 64M"

# Mount options: nothing of the caller's host is mounted but what is listed.
image_root=' - overlay overlay '
[ -n "${KNIT_IMAGE:-}" ] || image_root='^$'
ks run -- cat /proc/self/mountinfo
unlike "$(out | grep -v "$image_root")" ' / / ' "the host's root is not mounted as it is"
is "$(grep -c ' rw[, ].* - \(ext4\|xfs\|btrfs\|overlay\) ' "$T/out")" 0 "no host file system is writable"

# ---- descriptors ----
echo fd-secret >"$T/fdfile"
exec 9<"$T/fdfile" 8>"$T/fdwrite"
ks run -- sh -c 'ls /proc/self/fd; cat <&9; cat /proc/self/fd/9; echo x >&8'
exec 9<&- 8>&-
unlike "$(out)" 'fd-secret' "inherited descriptor 9: its file cannot be read (C028)"
is "$(out | grep -c '^[0-9]*$')" 4 "descriptors of a task: 0, 1, 2 and ls's own (C028)"
is "$(cat "$T/fdwrite")" "" "inherited descriptor 8: cannot be written"
ks run -- sh -c 'for f in 0 1 2; do readlink /proc/self/fd/$f; done'
unlike "$(out)" '/' "a task's streams are pipes: no path of the host"
is "$(readlink "$T/nothing" 2>/dev/null; out | grep -c '^pipe:')" 3 "all three streams are pipes"

# ---- environment (C032) ----
KNIT_TEST_SECRET=canary-in-environment
export KNIT_TEST_SECRET
ks run -- sh -c 'env; for p in /proc/[0-9]*; do tr "\0" "\n" <$p/environ; tr "\0" " " <$p/cmdline; done 2>/dev/null; true'
unlike "$(out)" "canary-in-environment" "the supervisor's environment: nowhere (C032)"
ks run --env KNIT_TEST_SECRET=given --env EMPTY= -- sh -c 'echo "$KNIT_TEST_SECRET,${EMPTY-unset},"'
is "$(out)" "given,," "--env gives what it names"
unset KNIT_TEST_SECRET
ks run -- sh -c 'echo "$PATH"; command -v sh'
like "$(out)" '/usr/bin' "PATH is set inside"

# ---- identity and capabilities ----
ks run -- sh -c 'grep -E "^(Cap|NoNewPrivs|Seccomp:)" /proc/self/status'
is "$(out | awk '/^Cap/ {print $2}' | sort -u)" 0000000000000000 "no capability in any set"
like "$(out)" 'NoNewPrivs:[[:space:]]*1' "no_new_privs is set"
like "$(out)" 'Seccomp:[[:space:]]*2' "a seccomp filter is in place"
ks run -- sh -c 'sleep 0.2 & for p in /proc/[0-9]*/status; do grep -E "^(Cap|Name)" $p; done; wait'
is "$(out | awk '/^CapEff/ {print $2}' | sort -u)" 0000000000000000 "no process that the task sees has a capability"
ks run -- sh -c 'id -u; whoami >/dev/null 2>&1; hostname'
unlike "$(out)" '^0$' "a task is not uid 0"
is "$(out | tail -n 1)" sandbox "its host name is the policy's"
if [ -n "$root" ]; then
	# The host uid of a task, seen from outside; two workers have two.
	nap=99.5$$
	for id in a b; do echo "{\"id\":\"$id\",\"argv\":[\"sleep\",\"$nap\"]}"; done >"$T/two"
	"$KS" run --workers 2 --tasks "$T/two" >"$T/two.out" 2>&1 &
	pid=$!
	for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
		uids=$(for p in /proc/[0-9]*; do
			[ "$(tr '\0' ' ' <"$p/cmdline" 2>/dev/null)" = "sleep $nap " ] && stat -c %u "$p"
		done 2>/dev/null | sort -u)
		[ "$(echo "$uids" | grep -c .)" = 2 ] && break
		pause 200
	done
	kill $pid
	wait $pid
	is "$(echo "$uids" | grep -c .)" 2 "as root each worker has a host uid of its own"
	unlike "$uids" '^0$' "and none is root"
fi

# ---- processes ----
ks run -- sh -c 'ls -d /proc/[0-9]* | wc -l'
at_most "$(out)" 6 "a task sees its own few processes"
for f in environ mem maps fd/0 root/ cwd/ exe; do
	ks run -- sh -c 'cat "/proc/1/$0" 2>/dev/null | grep -q . && echo readable; ls "/proc/1/$0" 2>/dev/null | grep -q . && [ "$0" != mem ] && [ "$0" != environ ] && [ "$0" != maps ] && echo listed; true' $f
	is "$rc:$(out)" "0:" "/proc/1/$f: nothing comes out"
done
ks run -- sh -c 'echo x 2>/dev/null >/proc/1/mem && echo wrote; echo x 2>/dev/null >/proc/sys/kernel/core_pattern && echo wrote; echo b 2>/dev/null >/proc/sysrq-trigger && echo wrote; true'
is "$rc:$(out)" "0:" "/proc/1/mem, core_pattern, sysrq-trigger: not writable (C036)"

# ---- network ----
for family in AF_INET AF_INET6 AF_UNIX AF_NETLINK AF_PACKET; do
	ks run -- python3 -c "
import socket, sys
try:
    s = socket.socket(getattr(socket, '$family'), socket.SOCK_RAW if '$family' in ('AF_PACKET', 'AF_NETLINK') else socket.SOCK_STREAM)
except OSError as e:
    print('refused'); sys.exit()
for a in {'AF_INET': [('127.0.0.1', $$ % 1000 + 20000), ('127.0.0.1', 22)], 'AF_INET6': [('::1', 22)],
          'AF_UNIX': ['/run/dbus/system_bus_socket', '\0knit-test-$$']}.get('$family', []):
    try:
        s.settimeout(2); s.connect(a); print('connected', a)
    except OSError:
        pass
print('refused')
"
	unlike "$(out)" connected "socket $family: reaches nothing"
	like "$(out)$rc" 'refused|159' "socket $family: refused or led nowhere"
done
# Listeners of the host, C063: a port, a named and an abstract socket.
cat >"$T/listen.py" <<'X'
import socket, sys, os, time
t = sys.argv[1]
a = socket.socket(socket.AF_INET); a.bind(("127.0.0.1", 0)); a.listen()
u = socket.socket(socket.AF_UNIX); u.bind(t + "/sock"); u.listen()
os.chmod(t + "/sock", 0o777)
b = socket.socket(socket.AF_UNIX); b.bind("\0knit-test-" + os.path.basename(t)); b.listen()
with open(t + "/port.tmp", "w") as f: f.write(str(a.getsockname()[1]))
os.rename(t + "/port.tmp", t + "/port")
time.sleep(60)
X
"$PY" "$T/listen.py" "$T" &
listener=$!
for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
	[ -s "$T/port" ] && break
	pause 100
done
ks run --ro-bind "$T:/host" -- python3 -c "
import socket
for f, a in ((socket.AF_INET, ('127.0.0.1', $(cat "$T/port"))), (socket.AF_UNIX, '/host/sock'),
             (socket.AF_UNIX, '\0knit-test-$(basename "$T")')):
    try:
        s = socket.socket(f); s.settimeout(2); s.connect(a); print('connected', a)
    except OSError:
        pass
"
unlike "$(out)" connected "listeners of the host: port, socket file, abstract name (C063)"
kill $listener
wait $listener 2>/dev/null
rm -f "$T/port" "$T/sock"
ks run -- sh -c 'cat /proc/net/dev | tail -n +3 | grep -v "^ *lo:" | wc -l'
is_any "$(out)" "0" "no network device but lo"

# ---- namespaces and kernel doors, from ordinary tools ----
ks run -- unshare -U true
ok "unshare -U: refused" test $rc -ne 0
ks run -- sh -c 'mount -t tmpfs none /tmp 2>&1; umount /proc 2>&1; test -d /proc/self'
is $rc 0 "mount and umount change nothing"
ks run -- sh -c 'ulimit -c; ulimit -n; ulimit -Hn'
is "$(out | head -n 1)" 0 "no core dumps (C100)"
ok "descriptor limit is set" test "$(out | tail -n 1)" != unlimited
ks run -- sh -c 'kill -9 -1; kill -9 1; echo alive'
is "$rc $(out)" "0 alive" "a task cannot kill its init (C132)"

# C011, C004: destinations that climb or pass through links.
ks run --ro-bind "$T:/a/../../../b" -- true
ok "a bind destination with ..: refused or cleaned (C004)" test $rc -eq 125 -o $rc -eq 0
ok "and nothing was made on the host" test ! -e /b

# C027: a working directory in somebody's descriptor table.
for n in 3 7 20; do
	ks run --workdir /proc/self/fd/$n -- sh -c 'ls ../../../etc/hostname; /bin/pwd'
	ok "workdir /proc/self/fd/$n: refused (C027)" test $rc -ne 0
	unlike "$(out)" 'etc/hostname' "workdir /proc/self/fd/$n: no way to the host (C027)"
done
ks run --workdir relative -- true
is $rc 125 "a relative --workdir: refused"
ks run --workdir /usr/share -- pwd
is "$(out)" /usr/share "--workdir"

# The report lists every layer, and none is silently missing.
ks run --report "$T/report" -- true
for layer in namespaces seccomp capabilities rlimits; do
	is "$(js "$T/report" "L[0]['layers']['$layer']")" enforced "layer $layer: enforced"
done
like "$(js "$T/report" 'sorted(set(L[0]["layers"].values()) - {"enforced", "degraded", "absent"})')" \
    '^\[\]$' "each layer is enforced, degraded or absent"
if [ -z "$root" ] && ! cgroup_granted; then
	ks run -- true
	like "$(err)" 'cgroup' "degraded limits are said in a line on stderr"
	is "$(grep -c . "$T/err")" 1 "in one line"
fi
rm -f "$T/report"

left_after "walls"
done_testing
