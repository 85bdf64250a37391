#!/bin/sh
# tests/lib/as-user.sh: run a command of the checkout as an ordinary user.
#
#   B=build/gcc sh tests/lib/as-user.sh make check-integ check-hostile
#
# Called by root, from the top of the checkout. Checkout and build are copied to a folder
# that belongs to uid 65534 (times kept, so that nothing is built again), and the
# command runs there as that user, without groups and capabilities.
set -u
uid=65534
B=${B:-build/gcc}
[ "$(id -u)" = 0 ] || {
	echo "as-user.sh: not root: just run it: $*" >&2
	exit 1
}
for tool in setpriv tar; do
	command -v $tool >/dev/null || {
		echo "as-user.sh: no $tool here" >&2
		exit 1
	}
done
dir=$(mktemp -d "${TMPDIR:-/tmp}/knit-user.XXXXXX") || exit 1
trap 'rm -rf "$dir"' EXIT
trap 'exit 130' INT TERM HUP
mkdir "$dir/src" "$dir/home" "$dir/tmp"
tar -c --exclude=./.git --exclude=./build . | tar -x -C "$dir/src" || exit 1
case $B in
/*) to=build/copy ;;
*) to=$B ;;
esac
mkdir -p "$dir/src/$to"
tar -c -C "$B" . | tar -x -C "$dir/src/$to" || exit 1
chown -R $uid:$uid "$dir"
chmod 755 "$dir"
cd "$dir/src" || exit 1
setpriv --reuid $uid --regid $uid --clear-groups --inh-caps=-all -- \
	env B="$to" HOME="$dir/home" TMPDIR="$dir/tmp" "$@"
