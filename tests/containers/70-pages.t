#!/bin/sh
# tests/containers/70-pages.t: the blocks of deploy/README.md, run as they are written,
# with docker, with podman as root and as an ordinary user, and with systemd. The image's
# base is that of this machine, and the program in it the one that is tested.
. "$(dirname "$0")/../lib/tap.sh"
S=/scratch/lab
. "$t_top/tests/containers/places.sh"
cd "$t_top" || exit 1
mkdir -p "$T/page"
chmod 777 "$T/page"
# Where a checkout's own build is: what the image's context has.
mkdir -p build/gcc
cp "$KS_REAL" build/gcc/knit-sandbox

# page PLACE TAG...: one `sh deploy/check` for them all, since one needs another's image.
page() {
	t_place=$1
	shift
	t_line="cd $t_top && BASE=$image PROGRAM=build/gcc/knit-sandbox TMPDIR=$T/page sh deploy/check $*"
	case $t_place in
	root) sh -c "$t_line" ;;
	user) as_user "$t_line" ;;
	esac >"$T/got" 2>&1 </dev/null
	is $? 0 "$t_place: the page's blocks $*"
	diag "$(cat "$T/got")" >&2
}
page root here
page user here
page root docker-image docker
page root podman-image podman
page user podman-image podman
page root systemd

diag "left out: compose: Debian 12 has no compose of Docker's own" >&2
diag "left out: quadlet: it came with podman 4.4, its keys with 4.7; this is $(podman --version)" >&2
diag "left out: node, k8s, kustomize: there is no cluster" >&2
done_testing
