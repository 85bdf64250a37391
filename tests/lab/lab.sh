#!/bin/sh
# tests/lab/lab.sh [--kernels "6.1 6.12"] [SCRIPT...]: the suite on other kernels.
#
# Boots each kernel twice, for root and for an ordinary user, and runs there what
# concerns a kernel: unit tests, simulation, the integration and hostile scripts, and
# those of this folder (or the scripts named). B is the folder of a finished build
# (make tests). As many at a time as the machine has room for (LAB_JOBS says otherwise). A
# line a script as it ends, the whole console in $LAB/log-KERNEL-WHO, and at the end a
# table of what passed. Status 0 if all did.
set -eu
. "$(dirname "$0")/common.sh"
kernels="6.1 6.12"
[ "${1:-}" != --kernels ] || { kernels=$2; shift 2; }
whos=${LAB_WHO:-root user}
build=$(cd "${B:-build/gcc}" && pwd)
[ -x "$build/knit-sandbox" ] || die "no $build/knit-sandbox; build it first: make tests"
scripts=${*:-$(cd "$TOP" && ls tests/lab/*.t) $(suite)}
[ $# -gt 0 ] || say_left_out
need mksquashfs squashfs-tools
make_disk "$build" "$TOP/tests/lab/inside.sh"

# As many at a time as there are processors and memory for.
room() {
	awk -v c="$(nproc)" '/^MemAvailable:/ { n = int($2 / (5 * 1024 * 1024)) }
		END { if (n > c) n = c; print n < 1 ? 1 : n }' /proc/meminfo
}

# one KERNEL WHO: boot it, show what is of interest, and keep its line. It has a session of
# its own, so that no machine outlives us.
one() {
	log=$LAB/log-$1-$2
	: >"$log"
	at=$(date +%s)
	# shellcheck disable=SC2086
	setsid sh "$TOP/tests/lab/boot.sh" "$1" bookworm "$LAB/disk.sqfs" "$log" "$2" $scripts &
	boot=$!
	trap 'kill -- -$boot; exit 1' TERM
	show "$log" $boot | sed -u "s/^/$1 $2/" &
	if wait $boot; then result=passed; else result=FAILED; fi
	wait $! # what it showed
	tests=$(tr -d '\r' <"$log" | sed -n 's/^\(Files=[0-9]*, Tests=[0-9]*\).*/\1/p' | tail -1)
	printf '%-6s %-5s %-7s %4d s  %s\n' "$1" "$2" $result $(($(date +%s) - at)) "$tests" \
		>"$LAB/result-$1-$2"
	say "$(cat "$LAB/result-$1-$2")"
}

jobs=${LAB_JOBS:-$(room)}
case $jobs in '' | *[!0-9]* | 0) die "LAB_JOBS: not a number of machines: $jobs" ;; esac
pids= n=0
trap '[ -z "$pids" ] || kill $pids 2>/dev/null' EXIT
trap 'exit 1' INT TERM HUP
rm -f "$LAB"/result-*
for who in $whos; do
	for k in $kernels; do
		one "$k" "$who" &
		pids="$pids $!" n=$((n + 1))
		[ $((n % jobs)) -ne 0 ] || { wait; pids=; }
	done
done
wait
pids=

printf '\nkernel who   result    time\n'
status=0
for who in $whos; do
	for k in $kernels; do
		cat "$LAB/result-$k-$who" 2>/dev/null || echo "$k $who: no result"
		grep -q ' passed ' "$LAB/result-$k-$who" 2>/dev/null || status=1
	done
done
[ $# -gt 0 ] || printf 'skipped: %s of the scripts, named above\n' "$(echo "$left_out" | wc -l)"
exit $status
