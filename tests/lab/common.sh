# tests/lab/common.sh: what the laboratory's scripts share. Sourced, POSIX sh.
#
# The laboratory boots Debian's cloud kernels under qemu's software emulation, with a
# Debian root made by debootstrap as a squashfs, to see what this machine's kernel and
# cgroup set-up cannot show. Everything is cached below $LAB (default build/lab).

TOP=$(cd "$(dirname "$0")/../.." && pwd)
LAB=${LAB:-$TOP/build/lab} # beside the builds, whichever of them is run
mkdir -p "$LAB"
LAB=$(cd "$LAB" && pwd)

say() { printf '%s\n' "lab: $*" >&2; }
die() { say "$*"; exit 1; }

need() { # need COMMAND PACKAGE
	command -v "$1" >/dev/null 2>&1 && return 0
	[ "$(id -u)" = 0 ] || die "$1 is missing (Debian package $2), and only root may install it"
	say "installing $2"
	DEBIAN_FRONTEND=noninteractive apt-get install -y -q "$2" >/dev/null || die "cannot install $2"
}

mirror() { # the first Debian mirror that this machine's apt uses
	apt-get indextargets --format '$(SITE)' 'Created-By: Packages' 2>/dev/null |
		grep -E '/debian/?$' | head -1
}

packages="bubblewrap,perl,python3,strace,procps,util-linux,gcc,libc6-dev,make,pkg-config,\
libseccomp-dev,libjansson-dev,libcap-dev,libcmocka-dev,libpng16-16,mandoc,git,curl,ca-certificates"

# What the second root has besides: an init, and what starts containers.
packages_containers="$packages,systemd,systemd-sysv,dbus,dbus-user-session,libpam-systemd,kmod,\
iproute2,iptables,nftables,podman,crun,runc,conmon,uidmap,slirp4netns,fuse-overlayfs,catatonit,\
netavark,aardvark-dns,apparmor,docker.io,docker-compose,containerd,tini,jq,socat"

# make_root SUITE [containers]: a Debian tree with what the suite needs, or the second
# one; prints its folder.
make_root() {
	root=$LAB/root-$1${2:+-$2}
	if [ "${2:-}" = containers ]; then list=$packages_containers; else list=$packages; fi
	if [ "$(cat "$root.done" 2>/dev/null)" != "$list" ]; then
		need debootstrap debootstrap
		rm -rf "$root" "$root.sqfs"
		say "debootstrap $1 for ${root##*/}"
		debootstrap --variant=minbase --include="$list" "$1" "$root" "$(mirror)" \
			>"$root.log" 2>&1 || die "debootstrap $1 failed, see $root.log"
		echo "$list" >"$root.done"
	fi
	echo "$root"
}

# make_sqfs SUITE [containers]: the same as one file, whose path it prints.
make_sqfs() {
	tree=$(make_root "$@") || exit 1
	if [ ! -f "$tree.sqfs" ]; then
		mksquashfs "$tree" "$tree.sqfs.new" -comp lz4 -noappend -quiet -no-progress \
			-wildcards -e 'var/cache/apt/*.bin' 'var/cache/apt/archives/*.deb' \
			'usr/share/doc/*' >/dev/null
		mv "$tree.sqfs.new" "$tree.sqfs"
	fi
	echo "$tree.sqfs"
}

# make_image SUITE: the tree of which images are made, as image.tar on a disk: the suite's
# root without what only compiles or is read by people, since an emulated machine hashes
# every byte of it three times. dpkg's list stays. Prints the disk's path.
make_image() {
	tree=$(make_root "$1") || exit 1
	if [ ! "$tree.image.sqfs" -nt "$tree.done" ]; then
		rm -rf "$tree.image"
		mkdir "$tree.image"
		tar -C "$tree" -cf "$tree.image/image.tar" --exclude-from=- . <<-X
			./dev/*
			./usr/include/*
			./usr/lib/gcc/*
			./usr/bin/git*
			./usr/bin/scalar
			./usr/bin/x86_64-linux-gnu-*
			./usr/lib/git-core/*
			./usr/lib/x86_64-linux-gnu/gprofng
			./usr/lib/x86_64-linux-gnu/lib[altu]*san.so*
			./usr/lib/x86_64-linux-gnu/libbfd*
			./usr/lib/x86_64-linux-gnu/libgprofng*
			./usr/lib/x86_64-linux-gnu/libisl*
			./usr/lib/x86_64-linux-gnu/perl/*/CORE
			./usr/lib/x86_64-linux-gnu/perl/*/auto/Encode/[CJKT]*
			./usr/lib/x86_64-linux-gnu/*.a
			./usr/lib/x86_64-linux-gnu/gconv/*
			./usr/share/doc/*
			./usr/share/i18n/*
			./usr/share/locale/*
			./usr/share/man/*
			./usr/share/zoneinfo/*
			./var/cache/apt/*.bin
			./var/cache/apt/archives/*.deb
			./var/lib/apt/lists/*
		X
		mksquashfs "$tree.image" "$tree.image.sqfs" -comp lz4 -noappend -quiet -no-progress >/dev/null
		rm -rf "$tree.image"
	fi
	echo "$tree.image.sqfs"
}

# make_disk BUILD FILE...: the checkout with its finished build, and what the machine
# runs, as $LAB/disk.sqfs.
make_disk() {
	disk=$LAB/disk
	build=$1
	shift
	rm -rf "$disk" "$disk.sqfs"
	mkdir -p "$disk/src/build"
	(cd "$TOP" && git ls-files -z | xargs -0 cp -p --parents -t "$disk/src")
	# Of tests only the programs: their objects are large, and nothing is built there.
	tar -c -C "$build" --exclude=./lab --exclude='./tests/*.[od]' . | tar -x -C "$disk/src/build"
	cp "$@" "$disk"
	echo "$build" >"$disk/built-at"
	mksquashfs "$disk" "$disk.sqfs" -comp lz4 -noappend -quiet -no-progress >/dev/null
	rm -rf "$disk"
}

# The scripts that concern a kernel, and which of the others do not: SCRIPT REASON.
left_out='tests/integ/01-usage.t options and their faults are the same on every kernel
tests/integ/11-policies.t policies and their faults are the same on every kernel
tests/integ/12-install.t files are copied the same on every kernel
tests/integ/31-libknit.t compiling and linking are the same; what libknit does is in 10-units.t
tests/integ/14-bench.t it measures, and figures of an emulated processor say nothing'
suite() {
	(cd "$TOP" && ls tests/integ/*.t tests/hostile/*.t | grep -vxF "$(echo "$left_out" | cut -d' ' -f1)")
}
say_left_out() {
	echo "$left_out" | while read -r script reason; do say "skipped: $script: $reason"; done
}

# The lines of a log that are of interest while it grows: each script's, and failures.
show() { # LOG PID-OF-WRITER
	tail --pid="$2" -n +1 -f "$1" 2>/dev/null | sed -u 's|\r||g' | grep --line-buffered -E \
		'^([a-z:/-]*: )?(LAB-[A-Z]+ |\[..:..:..\] tests/|# failed: |# skipped|  Failed test|.*\(Wstat: |Kernel panic)' |
		sed -u 's/^/  /' || true
}
