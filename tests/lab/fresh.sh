#!/bin/sh
# tests/lab/fresh.sh [SUITE...]: a machine on which nothing of ours was ever installed.
#
# For each suite (default bookworm and trixie): debootstrap a minimal Debian, enter it by pivot_root
# in new mount, PID, IPC and UTS namespaces (a plain chroot cannot make user namespaces),
# copy the committed tree there, and run both commands of the README as a newcomer would.
# Root only. The tree is made anew each time from a cached pristine copy.
set -eu
. "$(dirname "$0")/common.sh"
[ "$(id -u)" = 0 ] || die "needs root"
need debootstrap debootstrap

enter() { # enter ROOT COMMAND...: run COMMAND with ROOT as /
	root=$1
	shift
	unshare --mount --pid --ipc --uts --fork --kill-child sh -euc '
		root=$1; shift
		mount --make-rprivate /
		mount --bind "$root" "$root"
		cd "$root"
		mkdir -p proc sys dev old
		mount -t proc proc proc
		mount --rbind /sys sys
		mount -t tmpfs -o mode=755 dev dev
		for n in null zero full random urandom tty; do : >dev/$n; mount --bind /dev/$n dev/$n; done
		mkdir dev/pts dev/shm
		mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts dev/pts
		ln -s pts/ptmx dev/ptmx
		ln -s /proc/self/fd dev/fd
		mount -t tmpfs -o mode=1777 shm dev/shm
		pivot_root . old
		umount -l old
		exec chroot . "$@"
	' enter "$root" "$@"
}

status=0
for suite in ${*:-bookworm trixie}; do
	pristine=$LAB/pristine-$suite
	if [ ! -f "$pristine.done" ]; then
		rm -rf "$pristine"
		say "debootstrap $suite, nothing but the base"
		debootstrap --variant=minbase --include=ca-certificates "$suite" "$pristine" "$(mirror)" \
			>"$LAB/pristine-$suite.log" 2>&1 || die "debootstrap $suite failed, see $LAB/pristine-$suite.log"
		# Whoever installs a Debian writes this; debootstrap does not.
		[ -e "$pristine/etc/hosts" ] || printf '127.0.0.1 localhost\n::1 localhost\n' >"$pristine/etc/hosts"
		# The ways to the package mirror are this machine's.
		[ ! -d /etc/apt/apt.conf.d ] || cp -r /etc/apt/apt.conf.d/. "$pristine/etc/apt/apt.conf.d/"
		cp -L /etc/resolv.conf "$pristine/etc/resolv.conf" 2>/dev/null || true
		[ ! -d /usr/local/share/ca-certificates ] ||
			cp -r /usr/local/share/ca-certificates/. "$pristine/usr/local/share/ca-certificates/"
		: >"$pristine.done"
	fi
	root=$LAB/fresh-$suite
	rm -rf "$root"
	cp -a "$pristine" "$root"
	mkdir -p "$root/src"
	git -C "$TOP" archive HEAD | tar -x -C "$root/src"
	for verb in demo check; do
		say "$suite: sh setup.sh $verb (log: $LAB/fresh-$suite-$verb.log)"
		at=$(date +%s)
		if enter "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
			sh -c "cd /src && sh setup.sh $verb" >"$LAB/fresh-$suite-$verb.log" 2>&1 </dev/null; then
			echo "ok - $suite: setup.sh $verb, $(($(date +%s) - at)) s"
		else
			status=1
			echo "not ok - $suite: setup.sh $verb, $(($(date +%s) - at)) s; its last lines:"
			tail -15 "$LAB/fresh-$suite-$verb.log"
		fi
	done
	rm -rf "$root"
done
exit $status
