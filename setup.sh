#!/bin/sh
# setup.sh: from a fresh clone to a running program with one command.
#
#   sh setup.sh demo    install what is missing, build, judge the shipped examples
#   sh setup.sh check   the same with the test tools, and run all tests
#   sh setup.sh deps    only install what is missing for both (used by .ci/run)
#
# Needs a shell. Installs only what is missing, with the system's own package manager,
# as root or through sudo; where nothing is missing it installs nothing, asks for no
# rights and needs no network.
set -u
cd "$(dirname "$0")" || exit 1

say() {
	echo "setup: $*"
}
die() {
	echo "setup: $*" >&2
	exit 1
}
# run WHAT COMMAND...: says what is done; a failure names the command.
run() {
	say "$1"
	shift
	"$@" || die "failed: $*"
}

# ---- what is missing; each line: a test, then the package of apt, dnf, apk ----
missing=
want() {
	case $manager in
	apt) pkg=$2 ;;
	dnf) pkg=$3 ;;
	apk) pkg=$4 ;;
	*) pkg="$2 (Debian's name)" ;;
	esac
	if ! eval "$1" >/dev/null 2>&1; then
		case " $missing " in
		*" $pkg "*) ;;
		*) missing="$missing $pkg" ;;
		esac
	fi
}
have() {
	command -v "$1"
}
lib() {
	pkg-config --exists "$1"
}
# The worker stub is a static program: libc.a has to be there, and kernel headers.
can_link_static() {
	t=$(mktemp -d) || return 1
	printf '#include <linux/seccomp.h>\n#include <stdlib.h>\nint main(void){return 0;}\n' >"$t/a.c"
	gcc -static -o "$t/a" "$t/a.c"
	s=$?
	rm -rf "$t"
	return $s
}

find_manager() {
	manager=none
	for m in apt-get dnf apk; do
		if have $m >/dev/null; then
			manager=${m%-get}
			return
		fi
	done
}
find_missing() {
	missing=
	want 'have gcc' gcc gcc gcc
	want 'have make' make make make
	want 'have pkg-config' pkg-config pkgconf-pkg-config pkgconf
	want 'can_link_static' libc6-dev glibc-static 'musl-dev linux-headers'
	want 'lib libseccomp' libseccomp-dev libseccomp-devel libseccomp-dev
	want 'lib jansson' libjansson-dev jansson-devel jansson-dev
	want 'lib libcap' libcap-dev libcap-devel libcap-dev
	want 'have bwrap' bubblewrap bubblewrap bubblewrap
	want 'test -x /usr/bin/python3' python3 python3 python3
	[ "$1" = demo ] && return
	want 'lib cmocka' libcmocka-dev libcmocka-devel cmocka-dev
	want 'have prove' perl perl-Test-Harness perl-utils
	want 'have strace' strace strace strace
	want 'have mandoc' mandoc mandoc mandoc
	want 'have setpriv' util-linux util-linux setpriv
	want 'have unshare' util-linux util-linux util-linux-misc
	want 'have script' bsdutils util-linux-script util-linux-misc
	want 'have git' git git git
	want '/usr/bin/python3 -c "import yaml"' python3-yaml python3-pyyaml py3-yaml
	# dnf and apk have no spin: make check-models names it and goes on without
	[ $manager != apt ] || want 'have spin' spin spin spin
}

install_missing() {
	find_manager
	find_missing "$1"
	if [ -z "$missing" ]; then
		say "nothing is missing, installing nothing"
		return
	fi
	say "missing:$missing"
	[ "$manager" = none ] && die "this system has none of apt-get, dnf, apk;" \
		"install by hand:$missing"
	sudo=
	if [ "$(id -u)" != 0 ]; then
		have sudo >/dev/null ||
			die "not root and no sudo here; ask an administrator to install:$missing"
		sudo=sudo
	fi
	case $manager in
	apt)
		run "updating the package lists" $sudo apt-get -q update
		# shellcheck disable=SC2086
		run "installing with apt-get" $sudo env DEBIAN_FRONTEND=noninteractive \
			apt-get -q -y --no-install-recommends install $missing
		;;
	dnf)
		# shellcheck disable=SC2086
		run "installing with dnf" $sudo dnf -q -y install $missing
		;;
	apk)
		# shellcheck disable=SC2086
		run "installing with apk" $sudo apk -q add $missing
		;;
	esac
	find_missing "$1"
	[ -z "$missing" ] || die "still missing after the installation:$missing"
}

jobs=$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
case ${1-} in
demo)
	install_missing demo
	run "building" make -j"$jobs"
	say "judging the examples"
	if ! make --no-print-directory demo; then
		build/gcc/knit-sandbox doctor # what this machine lacks, and the fix
		die "failed: make demo"
	fi
	say "the program is build/gcc/knit-sandbox; try: build/gcc/knit-sandbox run -- python3 -c 'print(6*7)'"
	;;
check)
	install_missing check
	run "building the program and its tests" make -j"$jobs" tests
	run "running the tests" make --no-print-directory check
	;;
deps)
	install_missing check
	;;
*)
	echo "usage: sh setup.sh demo|check|deps (see the first lines of this file)" >&2
	exit 2
	;;
esac
say "done"
