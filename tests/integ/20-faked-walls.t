#!/bin/sh
# 20-faked-walls.t: a wall that the kernel says stands and does not: nothing is run.
#
# A system call that answers 0 and does nothing is not far-fetched: profiles that fake
# success exist. strace plays one; the answer must be 125 with a line that names the step.
# As root in a mount namespace of our own: a fake there once covered the machine's /tmp.
. "$(dirname "$0")/../lib/tap.sh"
if [ "${KNIT_LAUNCHER:-}" = oci:docker ]; then
	echo "1..0 # SKIP the stub is started by docker's daemon: strace of ours does not see it"
	exit 0
fi
if ! command -v strace >/dev/null || ! strace -f -o /dev/null -e trace=getppid -e inject=getppid:retval=0 true 2>/dev/null; then
	skip "no strace here that can inject" "walls that are faked"
	done_testing
fi
echo shown >"$T/f"
private=
[ -n "$root" ] && private="unshare -m --propagation private"
# faked "CALLS" ERE: each of the calls does nothing and says 0.
faked() {
	# shellcheck disable=SC2086
	watched $private strace -f -qq -o "$T/trace" -e trace="$1" -e inject="$1":retval=0 \
	    "$KS" run --ro-bind "$T/f:/f" -- sh -c 'echo it runs; cat /f'
	if ! grep -q INJECTED "$T/trace" 2>/dev/null; then
		skip "nobody calls it here" "faked $1"
		return
	fi
	is $rc 125 "faked $1: refused"
	unlike "$(out)" 'it runs' "faked $1: nothing is run"
	like "$(err)" "$2" "faked $1: the step is named"
}
faked seccomp 'filter|bwrap'
# (that its rules hold is asked by a signal, which only scopes refuse: Linux 6.12)
if [ "$("$PY" -S -c 'import ctypes; print(ctypes.CDLL(None).syscall(444, 0, 0, 1))')" -ge 6 ]; then
	faked landlock_restrict_self 'Landlock'
else
	not_here "Landlock without scopes cannot be looked at"
fi
faked setsid 'session'
# (the last is podman's, whose monitor is not told of its container's end)
faked prctl 'no_new_privs|capabilit|mount namespace|bwrap|join the worker.s cgroup|attach socket'
faked capset 'capabilit|mount namespace|bwrap'
faked mount 'mount|root|bwrap'
# (the last is crun's, of a network that is not its own)
faked unshare 'namespace|bwrap|SIOCSIFFLAGS'
if [ -n "$root" ]; then
	private="$private setpriv --groups 4,24"
	faked setgroups 'supplementary groups'
	faked setresgid 'gid'
	faked setresuid 'uid'
	faked move_mount 'bind'
fi
done_testing
