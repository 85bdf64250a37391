#!/bin/sh
# tests/lint/layers.sh [ROOT]: who includes whom, and who may use which library.
#
#   cmd -> include/knit, and of ipc the helpers err.h, fd.h, clock.h, near.h; but `bench` measures
#     what is inside, `policy` shows what is built in and `doctor` asks the machine:
#     these may include all
#   supervisor -> sandbox -> ipc;  supervisor -> ipc;  sandbox/{stub,module} -> ipc
#   lib -> supervisor, sandbox, ipc and include/knit, which is all that others see of it
#   sandbox/module -> include/knit/task.h, which includes nothing of ours
#   supervisor/core -> itself, ipc/err.h, ipc/clock.h and four headers of the language
#   sandbox never learns what a lane is; ipc includes nothing above it; nothing includes
#   cmd or tests
#
# For supervisor/core also what its objects (below $B, if built) leave undefined.
# tests/lint/selftest.sh proves that each rule can fail.
here=$(cd "$(dirname "$0")" && pwd)
root=${1:-$here/../..}
cd "$root" || exit 2
bad=$(mktemp) || exit 2
trap 'rm -f "$bad"' EXIT

# "file:line header" of each include; <system> ones keep their bracket.
includes() {
	grep -nE '^[[:space:]]*#[[:space:]]*include[[:space:]]*[<"]' "$@" /dev/null |
		sed -E 's/^([^:]*:[0-9]+):[[:space:]]*#[[:space:]]*include[[:space:]]*"([^"]*)".*/\1 \2/
			s/^([^:]*:[0-9]+):[[:space:]]*#[[:space:]]*include[[:space:]]*(<[^>]*)>.*/\1 \2/'
}

# allow WHAT REGEX FILE...: each include of ours in FILEs must match REGEX.
allow() {
	what=$1 regex=$2
	shift 2
	[ -e "$1" ] || return 0
	includes "$@" | grep -v ' <' | grep -vE " ($regex)\$" |
		sed -E "s|^([^ ]*) (.*)|\1: $what may not include \"\2\"|" >>"$bad"
}

# only LIBRARY HEADER FILES-REGEX: <HEADER> may stand in files that match only.
only() {
	# shellcheck disable=SC2046
	includes $(find cmd lib supervisor sandbox ipc include -name '*.[ch]' 2>/dev/null) |
		grep -F " <$2" | grep -vE "^($3):" |
		sed -E "s|^([^ ]*) .*|\1: $1 ($2) does not belong in this file|" >>"$bad"
}

files() { # DIR MAXDEPTH
	[ -d "$1" ] && find "$1" -maxdepth "$2" -name '*.[ch]' | sort
}

# shellcheck disable=SC2046,SC2086 # no file of ours has a blank in its name
{
	allow ipc 'ipc/[a-z_]+\.h' $(files ipc 1)
	# calls.h is the stub's list of its own system calls, which the filter reads; sys.h
	# is system calls without libc, for a process that shares a program's memory; what a
	# task left behind is removed, and its processes ended, by either (rmtree.h, children.h).
	allow sandbox 'sandbox/[a-z0-9_]+\.h|sandbox/stub/(calls|sys|rmtree|children)\.h|ipc/(err|fd|clock|near|layout|control|glob)\.h' \
		$(files sandbox 1)
	allow sandbox/stub 'sandbox/stub/[a-z_]+\.h|ipc/[a-z_]+\.h' $(files sandbox/stub 1)
	allow sandbox/module 'sandbox/module/[a-z_]+\.h|include/knit/task\.h|ipc/[a-z_]+\.h' $(files sandbox/module 1)
	allow lib '(lib|supervisor|sandbox|ipc)/[a-z0-9_]+\.h|include/knit/[a-z_]+\.h' $(files lib 1)
	allow include 'knit/[a-z_]+\.h' $(files include 2)
	allow supervisor/core 'supervisor/core/[a-z_]+\.h|ipc/(err|clock)\.h' $(files supervisor/core 1)
	allow supervisor 'supervisor/[a-z0-9_]+\.h|supervisor/core/(event|pool)\.h|sandbox/[a-z0-9_]+\.h|ipc/[a-z_]+\.h' \
		$(files supervisor 1)
	inside='^cmd/((report_)?(bench[a-z_]*|doctor)|policy[a-z_]*)\.[ch]$'
	allow cmd 'version\.h|(cmd|supervisor|sandbox|ipc)/[a-z0-9_]+\.h' \
		$(files cmd 1 | grep -E "$inside")
	# The client of `serve` speaks in lines, with bytes and numbers as these have them.
	lines='^cmd/connect_line\.c$'
	allow cmd 'cmd/[a-z0-9_]+\.h|ipc/(err|fd)\.h|supervisor/(base64|value_json)\.h' \
		$(files cmd 1 | grep -E "$lines")
	allow cmd 'version\.h|cmd/[a-z0-9_]+\.h|ipc/(err|fd|clock|near)\.h' \
		$(files cmd 1 | grep -vE "$inside|$lines")
	core=$(files supervisor/core 1)
	[ -z "$core" ] || includes $core | grep ' <' |
		grep -vE ' <(stdint|stdbool|stddef|string)\.h$' |
		sed 's/ </: supervisor\/core may not include </; s/$/>/' >>"$bad"
}

only jansson jansson.h \
	'sandbox/(policy|export|oci)[a-z_]*\.[ch]|supervisor/(batch|task)[a-z_]*\.[ch]|supervisor/(status|value_json|report[a-z_]*)\.[ch]|cmd/(report[a-z_]*|connect_line|serve_view|top[a-z_]*)\.[ch]'
only libseccomp seccomp.h 'sandbox/filter[a-z_]*\.[ch]|cmd/bench_filter\.c'
only libcap sys/capability.h 'sandbox/caps\.[ch]|sandbox/host\.c'

# A pure core calls nothing of the world: memory, itself, and the compiler's guards. The
# sanitizers' own calls are none of ours. kn_clock_now is the world.
if [ -n "$B" ] && [ -d "$B/supervisor/core" ]; then
	for o in "$B"/supervisor/core/*.o; do
		[ -e "$o" ] || continue
		nm -u "$o" | awk '{ print $NF }' |
			grep -vE '^(_*mem[a-z]+(_chk)?|kn_[a-z0-9_]+|__stack_chk_fail|__assert_fail|_GLOBAL_OFFSET_TABLE_|__(asan|ubsan|tsan)_.*)$' |
			sed "s|^|$o: supervisor/core calls |"
		nm -u "$o" | grep -w kn_clock_now | sed "s|.*|$o: supervisor/core reads the clock|"
	done >>"$bad"
fi

cat "$bad"
[ ! -s "$bad" ]
