#!/bin/sh
# tests/lab/lab.sh [--kernels "6.1 6.12"] [SCRIPT...]: the suite on other kernels.
#
# Boots each kernel twice, for root and for an ordinary user, and runs the integration
# and hostile scripts there (or those named). B is the folder of a finished build.
# The console of each boot is kept below $LAB/log-*; the closing table says what passed.
set -eu
. "$(dirname "$0")/common.sh"
kernels="6.1 6.12"
[ "${1:-}" != --kernels ] || { kernels=$2; shift 2; }
whos=${LAB_WHO:-root user}
build=$(cd "${B:-build/gcc}" && pwd)
[ -x "$build/knit-sandbox" ] || die "no $build/knit-sandbox; build it first: make tests"
scripts=${*:-$(cd "$TOP" && ls tests/integ/*.t tests/hostile/*.t)}
need mksquashfs squashfs-tools

disk=$LAB/disk
rm -rf "$disk" "$disk.sqfs"
mkdir -p "$disk/src"
(cd "$TOP" && git ls-files -z | xargs -0 cp --parents -t "$disk/src")
mkdir -p "$disk/src/build"
for f in knit-sandbox knit-worker probes hostile; do
	[ ! -e "$build/$f" ] || cp -r "$build/$f" "$disk/src/build/"
done
cp "$TOP/tests/lab/inside.sh" "$disk/inside.sh"
mksquashfs "$disk" "$disk.sqfs" -comp lz4 -noappend -quiet -no-progress >/dev/null
rm -rf "$disk"

status=0
table=
for k in $kernels; do
	for who in $whos; do
		log=$LAB/log-$k-$who
		if sh "$TOP/tests/lab/boot.sh" "$k" bookworm "$disk.sqfs" "$log" "$who" $scripts; then
			result=passed
		else
			result="FAILED"
			status=1
			tr -d '\r' <"$log" | grep -E '^(# failed|not ok|.*(Failed|Wstat))' | head -40
		fi
		line=$(tr -d '\r' <"$log" | grep -E '^(Files=|Result:)' | tr '\n' ' ')
		table="$table
$(printf '%-6s %-5s %-7s %s' "$k" "$who" "$result" "$line")"
	done
done
printf 'kernel who   result%s\n' "$table"
exit $status
