#!/bin/sh
# 13-capabilities.t: a capability that survives its dropping fails the launch.
#
# strace answers the stub's calls in the kernel's stead with "done": nothing was
# dropped, and the stub has to find out by itself and refuse to serve.
. "$(dirname "$0")/../lib/tap.sh"
left_before

# Why none is given (sandbox/policy_caps.c): below the launcher's user namespaces, with all
# of them, what is said to change nothing does not, and what would take a wall down does.
cat >"$T/all.py" <<'X'
import errno, os, socket
def does(f):
    try:
        f()
        return "works"
    except OSError as e:
        return errno.errorcode[e.errno]
with open("/proc/self/status") as f:
    print([x.split()[1].strip("0") != "" for x in f if x.startswith("CapEff")])
os.chdir("/tmp")
open("f", "w").close()
os.chmod("f", 0)
print(does(lambda: socket.socket().bind(("127.0.0.1", 80))), does(lambda: os.chown("f", 5, -1)),
      does(lambda: os.setuid(5)), does(lambda: os.setgid(5)), does(lambda: open("f").close()),
      does(lambda: os.chroot("/tmp")))
X
chmod 755 "$T"
chmod 644 "$T/all.py"
drop=
[ -z "$root" ] || drop="setpriv --reuid 65534 --regid 65534 --clear-groups"
set -- bwrap --unshare-user --unshare-pid --unshare-net --disable-userns --uid 1000 --gid 1000 --cap-add ALL \
	--ro-bind / / --tmpfs /tmp --ro-bind "$T/all.py" /tmp/all.py --proc /proc --dev /dev
if $drop "$@" true >/dev/null 2>&1; then
	watched $drop "$@" "$PY" -S /tmp/all.py
	chroot=works
	[ -z "$around" ] || chroot='(works|EPERM)'
	like "$(out | tr '\n' ' ')" "^\[True\] EACCES EINVAL EINVAL EINVAL works $chroot \$" "all capabilities in a task's place: a low port, other owners: nothing; a mode of 0, a root: all"
else
	not_here "a bwrap of its own with all capabilities"
fi

if [ "${KNIT_LAUNCHER:-}" = oci:docker ]; then
	not_here "the stub is started by docker's daemon: strace of ours does not see it"
	left_after "capabilities"
	done_testing
fi
if ! command -v strace >/dev/null; then
	skip "no strace here" "a surviving capability fails the launch"
	done_testing
fi
# Does strace work on this machine at all, and does a sandbox start below it?
watched strace -f -o "$T/trace" -e trace=capset,prctl "$KS" run -- echo fine
if [ $rc != 0 ]; then
	skip "a sandbox does not start below strace here: $(head -c 200 "$T/err")" "a surviving capability fails the launch"
	done_testing
fi
is "$(out)" fine "below strace, without injection: runs"

inject() { # NAME OPTION ARGS OF run...
	name=$1 option=$2
	shift 2
	watch_opts="--limit 60"
	watched strace -f -o "$T/trace" -e "trace=capset,prctl,execve" -e "$option" "$KS" run --bind "$T:/t" "$@"
	ok "$name: the injection took place" grep -q INJECTED "$T/trace"
	is "$left" 0 "$name: nothing left"
}
refused() {
	is $rc 125 "$name: 125"
	like "$(err)" "$1" "$name: the message says it"
	ok "$name: the command did not run" test ! -e "$T/ran"
	rm -rf "$T/ran"
}
# strace counts calls by process: the stub's own drop is the second capset of the
# process that bwrap made (the first is bwrap's, before it becomes the stub).
inject "the stub's capset does nothing" inject=capset:retval=0:when=2 -- touch /t/ran
refused capabilit
# The first of each process: the launching child's, bwrap's, and that of the cell's
# init. Whatever the outcome, no command ends up with a capability.
inject "the cell's capset does nothing" inject=capset:retval=0:when=1 -- \
	sh -c 'grep ^Cap /proc/self/status >/t/caps'
if [ -s "$T/caps" ]; then
	is "$(awk '{print $2}' "$T/caps" | sort -u)" 0000000000000000 "$name: the command has none"
else
	is $rc 125 "$name: 125"
	pass "$name: the command did not run"
fi
rm -f "$T/caps"
# No prctl does anything: bounding set and no_new_privs stay as they were.
inject "prctl does nothing" inject=prctl:retval=0 -- touch /t/ran
refused 'worker 0: '

left_after "capabilities"
done_testing
