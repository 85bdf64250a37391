#!/bin/sh
# tests/lab/kernel.sh SERIES: fetch Debian's newest cloud kernel of a series (6.1, 6.12),
# and build an initramfs that mounts the laboratory's root. Prints "VMLINUZ INITRAMFS";
# beside them is modules.sqfs, all modules with their index.
# The package is fetched once; the initramfs is built again when this folder's init or
# this script has changed.
set -eu
. "$(dirname "$0")/common.sh"
series=$1
dir=$LAB/kernel-$series
here=$TOP/tests/lab
mkdir -p "$dir"
if ! ls "$dir"/*.deb >/dev/null 2>&1; then
	pkg=$(apt-cache search --names-only "^linux-image-$(echo "$series" | sed 's/[.]/[.]/g')[.][0-9][+0-9a-z.-]*-cloud-amd64\$" |
		awk '{print $1}' | sort -V | tail -1)
	[ -n "$pkg" ] || die "no cloud kernel of series $series in this machine's package lists (apt-get update?)"
	say "kernel $pkg"
	(cd "$dir" && apt-get download "$pkg" >/dev/null 2>&1) || die "cannot download $pkg"
	rm -f "$dir/done"
fi
if [ ! "$dir/done" -nt "$here/init" ] || [ ! "$dir/done" -nt "$here/kernel.sh" ]; then
	need busybox busybox-static
	need cpio cpio
	need xz xz-utils
	need depmod kmod
	rm -rf "$dir/pkg" "$dir/fs"
	mkdir -p "$dir/pkg" "$dir/fs/bin" "$dir/fs/mods"
	dpkg-deb -x "$dir"/*.deb "$dir/pkg"
	cp "$(command -v busybox)" "$dir/fs/bin/busybox"
	# In load order; what is built in is simply not found as a file.
	n=10
	for m in virtio virtio_ring virtio_pci_modern_dev virtio_pci_legacy_dev virtio_pci \
		virtio_blk loop xxhash lz4_decompress lz4hc_compress squashfs overlay; do
		f=$(find "$dir/pkg" -name "$m.ko" -o -name "$m.ko.xz" | head -1)
		[ -n "$f" ] || continue
		case $f in
		*.xz) xz -dc "$f" >"$dir/fs/mods/$n-$m.ko" ;;
		*) cp "$f" "$dir/fs/mods/$n-$m.ko" ;;
		esac
		n=$((n + 1))
	done
	cp "$here/init" "$dir/fs/init"
	chmod 755 "$dir/fs/init"
	(cd "$dir/fs" && find . | cpio -o -H newc 2>/dev/null | gzip -1) >"$dir/initramfs.new"
	mv "$dir/initramfs.new" "$dir/initramfs.gz"
	cp "$dir"/pkg/boot/vmlinuz-* "$dir/vmlinuz"
	for m in "$dir"/pkg/lib/modules/*; do depmod -b "$dir/pkg" "${m##*/}"; done
	mksquashfs "$dir/pkg/lib/modules" "$dir/modules.sqfs" -comp lz4 -noappend -quiet -no-progress >/dev/null
	rm -rf "$dir/pkg" "$dir/fs"
	: >"$dir/done"
fi
echo "$dir/vmlinuz $dir/initramfs.gz"
