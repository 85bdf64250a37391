#!/bin/sh
# tests/containers/70-pages.t: the blocks of deploy/README.md, run as they are written,
# with systemd, with docker, and with podman as root and as an ordinary user. The image's
# base is that of this machine, and the program in it the one that is tested. Each page has
# its own time, since the machine is ended after an hour (tests/lab/boot.sh). Before Linux
# 6.12 (--kernel 6.1) the launcher direct is refused to a user, and its block left out.
. "$(dirname "$0")/../lib/tap.sh"
S=/scratch/lab
. "$t_top/tests/containers/places.sh"
cd "$t_top" || exit 1
mkdir -p "$T/page"
chmod 777 "$T/page"
# Where a checkout's own build is: what the image's context has.
mkdir -p build/gcc
cp "$KS_REAL" build/gcc/knit-sandbox

# page PLACE SECONDS TAG...: one `sh deploy/check` for them all, since one needs another's
# image.
page() {
	t_place=$1 t_most=$2
	shift 2
	t_line="cd $t_top && BASE=$image PROGRAM=build/gcc/knit-sandbox TMPDIR=$T/page timeout -k 60 $t_most sh deploy/check $*"
	case $t_place in
	root) sh -c "$t_line" ;;
	user) as_user "$t_line" ;;
	esac >"$T/got" 2>&1 </dev/null
	t_rc=$?
	[ $t_rc -ne 124 ] && [ $t_rc -ne 137 ] || echo "(ended after $t_most s)" >>"$T/got"
	is $t_rc 0 "$t_place: the page's blocks $*"
	diag "$(cat "$T/got")" >&2
}
direct=
[ "$(printf '%s\n' 6.12 "$(uname -r)" | sort -V | head -n 1)" != 6.12 ] || direct=docker-direct
page root 400 here
page root 500 systemd
page user 400 here
page root 700 docker-image docker $direct
page root 600 podman-image podman
page user 600 podman-image podman

[ -n "$direct" ] || diag "left out: docker-direct: $(uname -r) is before 6.12" >&2

diag "left out: compose: Debian 12 has no compose of Docker's own" >&2
diag "left out: quadlet: it came with podman 4.4, its keys with 4.7; this is $(podman --version)" >&2
diag "left out: node, k8s, kustomize: there is no cluster" >&2
done_testing
