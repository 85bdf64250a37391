# tests/lab/inside.sh WHO SCRIPT...: runs in the booted kernel. WHO is root or user, the
# scripts are relative to the checkout, which is on the project's disk with its build. It
# is copied, since tests write beside it.
#
# Both live as a login session does: in a cgroup that holds other processes too, below
# one of their own; the ordinary user's is delegated, as systemd's Delegate= does it.
who=$1
shift
echo "LAB-START $(uname -r), $(nproc) processors, controllers: $(cat /sys/fs/cgroup/cgroup.controllers)"
cp -a /lab/src /tmp/src && cd /tmp/src || exit 93
chmod 1777 /tmp
# Some programs find others by the path at which they were built.
at=$(cat /lab/built-at)
[ -e "$at" ] || { mkdir -p "${at%/*}" && ln -s /tmp/src/build "$at"; } || exit 93
# As an installer leaves it; debootstrap has none.
printf '%s\n' '127.0.0.1 localhost' "127.0.1.1 $(hostname)" '::1 localhost ip6-localhost ip6-loopback' >/etc/hosts
top=/sys/fs/cgroup
echo "+memory +pids +cpu" >$top/cgroup.subtree_control || exit 94
mkdir -p $top/login/session || exit 94
if [ "$who" = user ]; then
	chown -R 65534:65534 /tmp/src
	for d in login login/session; do
		chown 65534:65534 $top/$d $top/$d/cgroup.procs $top/$d/cgroup.subtree_control \
			$top/$d/cgroup.threads
	done
	as="setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all --"
else
	as=
fi
echo $$ >$top/login/session/cgroup.procs || exit 94
# What may last so many times longer here, and what is done less often.
set -- env B=/tmp/src/build HOME=/tmp TMPDIR=/tmp KNIT_MUST_RUN=1 KNIT_LAB=1 \
	KNIT_SLOW="${LAB_SLOW:-8}" KNIT_PAIRS=15 KNIT_SCALE=400 KNIT_EVERY=5 \
	prove --timer -j2 --formatter TAP::Formatter::File "$@"
# shellcheck disable=SC2086
$as "$@"
