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

# make_root SUITE: a Debian tree with what the suite needs; prints its folder.
make_root() {
	root=$LAB/root-$1
	if [ "$(cat "$root.done" 2>/dev/null)" != "$packages" ]; then
		need debootstrap debootstrap
		rm -rf "$root" "$root.sqfs"
		say "debootstrap $1"
		debootstrap --variant=minbase --include="$packages" "$1" "$root" "$(mirror)" \
			>"$LAB/debootstrap-$1.log" 2>&1 || die "debootstrap $1 failed, see $LAB/debootstrap-$1.log"
		echo "$packages" >"$root.done"
	fi
	echo "$root"
}
