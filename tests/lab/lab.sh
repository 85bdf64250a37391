#!/bin/sh
# tests/lab/lab.sh [--kernels "6.1 6.12"] [SCRIPT...]: the suite on other kernels.
#
# Boots each kernel twice, for root and for an ordinary user, and runs there what
# concerns a kernel: unit tests, simulation, the integration and hostile scripts, and
# those of this folder (or the scripts named). B is the folder of a finished build
# (make tests). A line a script as it ends, the whole console in $LAB/log-KERNEL-WHO,
# and at the end a table of what passed. Status 0 if all did.
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

status=0
table=
for k in $kernels; do
	for who in $whos; do
		log=$LAB/log-$k-$who
		: >"$log"
		at=$(date +%s)
		sh "$TOP/tests/lab/boot.sh" "$k" bookworm "$LAB/disk.sqfs" "$log" "$who" $scripts &
		boot=$!
		show "$log" $boot
		if wait $boot; then
			result=passed
		else
			result=FAILED
			status=1
		fi
		line=$(tr -d '\r' <"$log" | sed -n 's/^\(Files=[0-9]*, Tests=[0-9]*\).*/\1/p' | tail -1)
		line=$(printf '%-6s %-5s %-7s %4d s  %s' "$k" "$who" "$result" $(($(date +%s) - at)) "$line")
		say "$line"
		table="$table
$line"
	done
done
printf '\nkernel who   result    time%s\n' "$table"
[ $# -gt 0 ] || printf 'skipped: %s of the scripts, named above\n' "$(echo "$left_out" | wc -l)"
exit $status
