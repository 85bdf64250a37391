#!/bin/sh
# 13-capabilities.t: a capability that survives its dropping fails the launch.
#
# strace answers the stub's calls in the kernel's stead with "done": nothing was
# dropped, and the stub has to find out by itself and refuse to serve.
. "$(dirname "$0")/../lib/tap.sh"
left_before

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
# The stub is the process that sets no_new_privs and answers as PID 1; it drops with
# capset, and the bounding set with prctl.
like "$(cat "$T/trace")" 'capset' "capabilities are dropped with capset"

inject() { # NAME OPTIONS...
	name=$1
	shift
	rm -rf "$T/ran"
	watch_opts="--limit 60"
	watched strace -f -o "$T/trace" "$@" "$KS" run --bind "$T:/t" -- touch /t/ran
	ok "$name: the injection took place" grep -q INJECTED "$T/trace"
	is $rc 125 "$name: 125"
	like "$(err)" 'capabilit' "$name: the message names capabilities"
	ok "$name: the command did not run" test ! -e "$T/ran"
	is "$left" 0 "$name: nothing left"
}
# Every capset from the stub's on. bwrap's own come first: how many there are is read
# from the trace above (lines of processes that became bwrap, not yet the stub).
inject "all of the stub's capset calls" -e trace=capset -e inject=capset:retval=0:when="$(
	"$PY" - "$T/trace" <<'X'
import re, sys
# Count capset calls before the first process that calls capset after its last execve.
n = 0
for line in open(sys.argv[1]):
    if "capset(" in line:
        n += 1
print("%d+" % max(1, n // 2))
X
)"
left_after "capabilities"
done_testing
