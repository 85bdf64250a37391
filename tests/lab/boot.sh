#!/bin/sh
# tests/lab/boot.sh SERIES SUITE PROJECT.sqfs LOG [ARG...]: boot one kernel with the
# laboratory's root and the project's disk, run /lab/inside.sh ARG... there, and return
# its exit status. The console goes to LOG as it comes.
set -eu
. "$(dirname "$0")/common.sh"
series=$1 suite=$2 project=$3 log=$4
shift 4
[ "$(uname -m)" = x86_64 ] || die "the kernels are for x86_64 machines"
need qemu-system-x86_64 qemu-system-x86
need mksquashfs squashfs-tools
root=$(make_root "$suite")
if [ ! -f "$root.sqfs" ]; then
	mksquashfs "$root" "$root.sqfs.new" -comp lz4 -noappend -quiet -no-progress \
		-e "$root/var/cache/apt" -e "$root/usr/share/doc" >/dev/null
	mv "$root.sqfs.new" "$root.sqfs"
fi
scratch=$LAB/scratch.ext4
if [ ! -f "$scratch" ]; then
	need mkfs.ext4 e2fsprogs
	truncate -s 3G "$scratch.new"
	mkfs.ext4 -q -F -O ^has_journal "$scratch.new"
	mv "$scratch.new" "$scratch"
fi
kernel=$(sh "$TOP/tests/lab/kernel.sh" "$series")
args=$(echo "$*" | tr ' ' ,)
# Each process at its own addresses means that the emulator translates the same libraries
# anew for each one, which makes starts four times slower: norandmaps. The rest of the
# line spares zeroing and mitigations that prove nothing here.
${CC:-cc} -O1 -o "$LAB/tsc" "$TOP/tests/lab/tsc.c"
append="console=ttyS0 loglevel=3 panic=-1 norandmaps nokaslr mitigations=off init_on_alloc=0 \
randomize_kstack_offset=off tsc=reliable tsc_early_khz=$("$LAB/tsc") audit=0"
say "booting $series for $1 (log: $log)"
boot() {
	timeout "${LAB_TIMEOUT:-3600}" qemu-system-x86_64 -accel tcg,thread=multi \
		-cpu max,la57=off -smp 2 -m "${LAB_MEMORY:-4096}" \
		-display none -no-reboot -nodefaults -serial stdio -monitor none \
		-kernel "${kernel%% *}" -initrd "${kernel##* }" -append "$append lab.args=$args" \
		-drive "file=$root.sqfs,if=virtio,format=raw,readonly=on" \
		-drive "file=$project,if=virtio,format=raw,readonly=on" \
		-drive "file=$scratch,if=virtio,format=raw,snapshot=on" </dev/null >"$log" 2>&1 || true
}
boot
# An emulated machine that dies before anything of ours runs says nothing of us.
if ! grep -q '^LAB-START' "$log"; then
	say "kernel $series did not come up, once more"
	mv "$log" "$log.first"
	boot
fi
status=$(tr -d '\r' <"$log" | sed -n 's/^LAB-EXIT //p' | tail -1)
[ -n "$status" ] || die "kernel $series ended without a verdict; the end of $log:
$(tail -5 "$log")"
exit "$status"
