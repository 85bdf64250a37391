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
# Left out: SCRIPT REASON
left_out='tests/integ/01-usage.t options and their faults are the same on every kernel
tests/integ/11-policies.t policies and their faults are the same on every kernel
tests/integ/12-install.t files are copied the same on every kernel
tests/integ/31-libknit.t compiling and linking are the same; what libknit does is in 10-units.t
tests/integ/14-bench.t it measures, and figures of an emulated processor say nothing'
scripts=${*:-$(cd "$TOP" && ls tests/lab/*.t tests/integ/*.t tests/hostile/*.t |
	grep -vxF "$(echo "$left_out" | cut -d' ' -f1)")}
[ $# -gt 0 ] || echo "$left_out" | while read -r script reason; do say "skipped: $script: $reason"; done
need mksquashfs squashfs-tools

disk=$LAB/disk
rm -rf "$disk" "$disk.sqfs"
mkdir -p "$disk/src/build"
(cd "$TOP" && git ls-files -z | xargs -0 cp -p --parents -t "$disk/src")
# Of tests only the programs: their objects are large, and nothing is built there.
tar -c -C "$build" --exclude=./lab --exclude='./tests/*.[od]' . | tar -x -C "$disk/src/build"
cp "$TOP/tests/lab/inside.sh" "$disk/inside.sh"
echo "$build" >"$disk/built-at"
mksquashfs "$disk" "$disk.sqfs" -comp lz4 -noappend -quiet -no-progress >/dev/null
rm -rf "$disk"

# The lines of the log that are of interest while it runs: each script's, and failures.
show() {
	sed -u 's|\r||g' | grep --line-buffered -E \
		'^(LAB-START|\[..:..:..\] tests/|# failed: |# skipped|  Failed test|.*\(Wstat: |Kernel panic)' | sed -u 's/^/  /'
}

status=0
table=
for k in $kernels; do
	for who in $whos; do
		log=$LAB/log-$k-$who
		: >"$log"
		at=$(date +%s)
		sh "$TOP/tests/lab/boot.sh" "$k" bookworm "$disk.sqfs" "$log" "$who" $scripts &
		boot=$!
		tail --pid=$boot -n +1 -f "$log" 2>/dev/null | show || true
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
