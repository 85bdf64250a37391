#!/bin/sh
# tests/lab/boot.sh SERIES SUITE PROJECT.sqfs LOG [ARG...]: boot one kernel with the
# laboratory's root and the project's disk, run /lab/inside.sh ARG... there, and return
# its exit status. The console goes to LOG as it comes. LAB_KIND=containers: the root
# with systemd and containers, whose lab.service runs. LAB_MONITOR: a socket for qemu's
# monitor, by which the machine can be paused. LAB_SHELL: a socket with a root's shell,
# where the root has systemd; the machine stays up until that ends. LAB_QEMU: more of
# qemu's arguments.
set -eu
. "$(dirname "$0")/common.sh"
series=$1 suite=$2 project=$3 log=$4
shift 4
[ "$(uname -m)" = x86_64 ] || die "the kernels are for x86_64 machines"
need qemu-system-x86_64 qemu-system-x86
need mksquashfs squashfs-tools
kind=${LAB_KIND:-}
exec 9>"$LAB/lock" # several may be started at once, and one makes what is missing
flock 9
root=$(make_sqfs "$suite" $kind)
scratch=$LAB/scratch${kind:+-$kind}.ext4
if [ ! -f "$scratch" ]; then
	need mkfs.ext4 e2fsprogs
	truncate -s $([ -z "$kind" ] && echo 3G || echo 12G) "$scratch.new"
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
disks=
if [ "$kind" = containers ]; then
	base=$(make_image "$suite")
	vmlinuz=${kernel%% *}
	for d in "${vmlinuz%/*}/modules.sqfs" "$base"; do
		disks="$disks -drive file=$d,if=virtio,format=raw,readonly=on"
	done
	append="$append lab.init=systemd systemd.unit=lab.service ${LAB_APPEND:-systemd.show_status=0} \
systemd.mask=serial-getty@ttyS0.service systemd.mask=apt-daily.timer \
systemd.mask=apt-daily-upgrade.timer systemd.journald.forward_to_console=0"
fi
exec 9>&-
monitor=none
[ -z "${LAB_MONITOR:-}" ] || monitor=unix:$LAB_MONITOR,server=on,wait=off
extra=${LAB_QEMU:-}
[ -z "${LAB_SHELL:-}" ] || {
	extra="$extra -serial unix:$LAB_SHELL,server=on,wait=off"
	append="$append lab.shell=1"
}
say "booting $series for $1 (log: $log)"
boot() {
	# shellcheck disable=SC2086
	timeout "${LAB_TIMEOUT:-3600}" qemu-system-x86_64 -accel tcg,thread=multi \
		-cpu max,la57=off -smp 2 -m "${LAB_MEMORY:-4096}" \
		-display none -no-reboot -nodefaults -serial stdio -monitor "$monitor" \
		-kernel "${kernel%% *}" -initrd "${kernel##* }" -append "$append lab.args=$args" \
		-drive "file=$root,if=virtio,format=raw,readonly=on" \
		-drive "file=$project,if=virtio,format=raw,readonly=on" \
		-drive "file=$scratch,if=virtio,format=raw,snapshot=on" $disks $extra </dev/null >"$log" 2>&1 || true
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
