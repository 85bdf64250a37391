#!/bin/sh
# tests/lab/containers.sh [--kernel 6.12] [--places "user docker"] [SCRIPT...]: the suite
# where systemd is init, in a session, and in containers of podman and docker.
#
# Boots a Debian with all of that once, and runs there in each place (they are listed in
# containers/inside.sh) the integration and hostile scripts and those of tests/containers/, or
# the scripts named. B is the folder of a finished build (make tests). A line a script as
# it ends, the whole console in $LAB/log-containers, and a table at the end of what passed.
# Status 0 if all did. --quick: only the scripts of tests/containers.
set -eu
. "$(dirname "$0")/common.sh"
kernel=6.12
places="user system podman podman-user docker machine
user/oci:crun user/oci:docker system/oci:crun system/oci:runc system/oci:podman"
quick=
while [ $# -gt 0 ]; do
	case $1 in
	--kernel) kernel=$2 && shift 2 ;;
	--places) places=$2 && shift 2 ;;
	--quick) quick=1 && shift ;;
	-*) die "no such option: $1" ;;
	*) break ;;
	esac
done
build=$(cd "${B:-build/gcc}" && pwd)
[ -x "$build/knit-sandbox" ] || die "no $build/knit-sandbox; build it first: make tests"
here=tests/containers
# In each place, with the workers of another launcher (what asks nothing of them is left
# out there), and on the machine itself.
anywhere=$(cd "$TOP" && ls $here/[1-4]*.t)
workers=$anywhere
machine=$(cd "$TOP" && ls $here/[5-9]*.t)
[ $# -gt 0 ] || [ -n "$quick" ] || {
	say_left_out
	anywhere="$anywhere $(suite)"
	workers="$workers $(suite | grep -E '/(0[1-9]|1[0389]|2[0-5]|5[14])-|hostile/')"
}
for p in $places; do
	scripts=$anywhere
	case $p in
	*/*) scripts=$workers ;;
	machine) scripts=$machine ;;
	esac
	[ $# -eq 0 ] || scripts=$*
	# shellcheck disable=SC2086
	[ -z "$scripts" ] || echo "$p" $scripts
done >"$LAB/scripts"
need mksquashfs squashfs-tools
make_disk "$build" "$TOP/$here/inside.sh" "$TOP/$here/places.sh" "$TOP/$here/lab.service" "$LAB/scripts"

log=$LAB/log-containers
: >"$log"
LAB_KIND=containers sh "$TOP/tests/lab/boot.sh" "$kernel" bookworm "$LAB/disk.sqfs" "$log" containers &
boot=$!
show "$log" $boot
status=0
wait $boot || status=1
printf '\nplace              result      on Linux %s\n' "$kernel"
for p in $places; do
	tr -d '\r' <"$log" | sed -n "s|^LAB-PLACE $p |$p |p" | grep . || echo "$p not-reached"
done | while read -r p result rest; do
	printf '%-18s %-11s %s\n' "$p" "$result" "$rest"
done
exit $status
