#!/bin/sh
# tests/lab/boot.sh SERIES SUITE PROJECT.sqfs LOG [ARG...]: boot one kernel with the
# laboratory's root and the project's disk, run /lab/inside.sh ARG... there, and return
# its exit status. The console goes to LOG as it comes.
set -eu
. "$(dirname "$0")/common.sh"
series=$1 suite=$2 project=$3 log=$4
shift 4
need qemu-system-x86_64 qemu-system-x86
need mksquashfs squashfs-tools
root=$(make_root "$suite")
if [ ! -f "$root.sqfs" ]; then
	mksquashfs "$root" "$root.sqfs.new" -comp lz4 -noappend -quiet -no-progress \
		-e "$root/var/cache/apt" -e "$root/usr/share/doc" >/dev/null
	mv "$root.sqfs.new" "$root.sqfs"
fi
kernel=$(sh "$TOP/tests/lab/kernel.sh" "$series")
args=$(echo "$*" | tr ' ' ,)
say "booting $series (log: $log)"
timeout "${LAB_TIMEOUT:-1500}" qemu-system-x86_64 -accel tcg,thread=multi -cpu max -smp 2 -m "${LAB_MEMORY:-4096}" \
	-display none -no-reboot -nodefaults -serial stdio -monitor none \
	-kernel "${kernel%% *}" -initrd "${kernel##* }" \
	-append "console=ttyS0 quiet panic=-1 mitigations=off lab.args=$args" \
	-drive "file=$root.sqfs,if=virtio,format=raw,readonly=on" \
	-drive "file=$project,if=virtio,format=raw,readonly=on" </dev/null >"$log" 2>&1 || true
status=$(tr -d '\r' <"$log" | sed -n 's/^LAB-EXIT //p' | tail -1)
[ -n "$status" ] || die "kernel $series ended without a verdict; the end of $log: $(tail -5 "$log")"
exit "$status"
