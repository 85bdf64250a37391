#!/bin/sh
# 11-bad-host.t: a machine that cannot: no bwrap, no user namespaces, full disks.
# Refused by name, never run without the wall.
. "$(dirname "$0")/../lib/tap.sh"
left_before

refused() { # ERE NAME; after a run that tried to make $T/ran
	is $rc 125 "$2: 125"
	one_clear_line "$1" "$2"
	ok "$2: the command did not run" test ! -e "$T/ran"
	rm -rf "$T/ran"
}
userns() { # SCRIPT ARGS...: a shell as root of a user namespace of its own
	"$PY" "$t_lib/userns.py" sh -c "$@"
}
if "$PY" "$t_lib/userns.py" true 2>"$T/why"; then
	can_userns=1
else
	can_userns=
fi

# ---- no bwrap ----
mkdir "$T/empty"
watched env PATH="$T/empty" "$KS" run -- /bin/touch /tmp/x
if [ $rc = 0 ]; then
	diag "the program finds bwrap without PATH"
else
	is $rc 125 "PATH without bwrap: 125"
	one_clear_line 'bwrap|bubblewrap' "PATH without bwrap"
fi
watched env KNIT_BWRAP=/bin/false "$KS" run -- touch /tmp/x
is $rc 125 "KNIT_BWRAP that is no bwrap: 125"
one_clear_line '/bin/false: ended with status 1' "KNIT_BWRAP that is no bwrap"
like "$(err)" '^hint: KNIT_BWRAP' "and who named it"
# C062: the first bwrap of the PATH cannot be executed, or is somebody else's.
mkdir "$T/evil" "$T/nox"
printf '#!/bin/sh\ntouch %s/ran\n' "$T" >"$T/evil/bwrap"
cp "$T/evil/bwrap" "$T/nox/bwrap"
chmod 755 "$T/evil/bwrap"
chmod 644 "$T/nox/bwrap"
watched env PATH="$T/nox:$PATH" "$KS" run -- echo fine
is "$rc $(out)" "0 fine" "a bwrap without an x bit is passed over (C062)"
chmod 777 "$T/evil"
(cd "$T/evil" && "$PY" "$t_lib/watch.py" --info "$T/info" -- env PATH=".:$PATH" "$KS" run -- echo fine >"$T/out" 2>"$T/err")
is "$? $(out)" "0 fine" "a planted bwrap in the current directory (C062)"
ok "is not run (C062)" test ! -e "$T/ran"
if [ -n "$can_userns" ]; then
	watched "$PY" "$t_lib/userns.py" --mount sh -c 'mount -t tmpfs none "$(dirname "$(command -v bwrap)")" && exec "$0" run --bind "$1:/t" -- /bin/touch /t/ran' "$KS_REAL" "$T" # (no shell there either)
	refused 'bwrap|bubblewrap' "no bwrap on the machine"
	watched "$PY" "$t_lib/userns.py" --mount sh -c 'mount -t tmpfs none /proc && exec "$0" run --bind "$1:/t" -- /bin/touch /t/ran' "$KS_REAL" "$T"
	refused '/proc is not mounted' "no /proc"
	# ---- user namespaces off (C060) ----
	watched "$PY" "$t_lib/userns.py" sh -c 'echo 0 >/proc/sys/user/max_user_namespaces && exec "$0" run --bind "$1:/t" -- touch /t/ran' "$KS" "$T"
	refused 'user namespaces|max_user_namespaces' "max_user_namespaces=0 (C060)"
	watched "$PY" "$t_lib/userns.py" sh -c 'echo 0 >/proc/sys/user/max_user_namespaces
		printf "{\"id\":\"a\",\"argv\":[\"true\"]}\n{\"id\":\"b\",\"argv\":[\"true\"]}\n" | "$0" run --tasks -' "$KS"
	is $rc 125 "max_user_namespaces=0, a batch: 125 (C060)"
	is "$(js "$T/out" 'sum(r["verdict"] == "ok" for r in L)')" 0 "max_user_namespaces=0, a batch: nothing ran (C060)"
	is "$(js "$T/out" 'len(L) == len(by)')" yes "max_user_namespaces=0, a batch: no id answered twice"
	# Inside a user namespace of a namespace it works as for anybody.
	watched "$PY" "$t_lib/userns.py" "$KS" run -- echo fine
	is "$rc $(out)" "0 fine" "it works inside a user namespace"
else
	skip "no user namespace here: $(cat "$T/why")" "no bwrap, no user namespaces"
fi

# A limit that cannot be enforced is refused, not dropped.
if ! cgroup_granted; then
	ks run --policy strict --bind "$T:/t" -- touch /t/ran
	refused 'cgroup' "preset strict without a cgroup"
	ks run --policy judge --bind "$T:/t" -- touch /t/ran
	refused 'cgroup' "preset judge without a cgroup"
fi
# C001: a bind source that is a link.
mkdir "$T/real"
ln -s real "$T/link"
ks run --bind "$T/link:/l" -- touch /l/x
ok "a bind source that is a link: refused, or the folder it names (C001)" test $rc -eq 125 -o -e "$T/real/x"

# ---- full disks ----
printf '{"id":"a","argv":["sh","-c","head -c 300000 /dev/zero >big; echo fine"],"collect":["big"],"keep":["big"]}\n{"id":"b","argv":["true"]}\n' >"$T/tasks"
if [ -n "$can_userns" ]; then
	mkdir "$T/small"
	watched "$PY" "$t_lib/userns.py" --mount sh -c 'mount -t tmpfs -o size=64k none "$1/small" &&
		"$0" run --tasks "$1/tasks" --keep "$1/small"' "$KS" "$T"
	is "$(js "$T/out" 'by["b"]["verdict"]')" ok "a full disk for kept files: other tasks go on"
	is "$(js "$T/out" 'len(L), len(by)')" "(2, 2)" "a full disk for kept files: each task has its line"
	like "$(cat "$T/out" "$T/err")" 'No space left' "a full disk for kept files: said"
	rmdir "$T/small"
	watched "$PY" "$t_lib/userns.py" --mount sh -c 'mount -t tmpfs -o size=8k none "$TMPDIR" && dd if=/dev/zero of="$TMPDIR/f" 2>/dev/null
		"$0" run -- echo fine' "$KS"
	is "$rc $(out)" "0 fine" "a full TMPDIR: nothing of ours needs it"
fi

# ---- few descriptors, few processes ----
watched sh -c 'ulimit -n 12; exec "$0" run -- echo fine' "$KS"
is_any "$rc $(out)" "0 fine 125 " "12 descriptors: works, or refused"
ok "12 descriptors: never a crash" test $rc -eq 0 -o $rc -eq 125
watched sh -c 'ulimit -n 64; exec "$0" run -- echo fine' "$KS"
is_any $rc "0 125" "64 descriptors: works, or refused"
[ $rc = 0 ] || one_clear_line 'open files|ulimit' "64 descriptors"
watched sh -c 'ulimit -n 1024; exec "$0" run --workers 8 -- echo fine' "$KS"
is "$rc $(out)" "0 fine" "1024 descriptors are enough for 8 workers"
watched sh -c 'ulimit -v 300000; exec "$0" run -- echo fine' "$KS"
ok "300 MB of address space: works, or refused, never a crash" test $rc -eq 0 -o $rc -eq 125

# C069: as PID 1 of a PID namespace.
if [ -n "$root" ]; then
	watched unshare --fork --pid --mount-proc "$KS" run -- echo fine
else
	watched unshare --user --map-root-user --fork --pid --mount-proc "$KS" run -- echo fine
fi
is "$rc $(out)" "0 fine" "the supervisor as PID 1 (C069)"

# C012 is bwrap's business; that a noexec source stays noexec is ours to see.
left_after "bad hosts"
done_testing
