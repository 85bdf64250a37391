# tests/lab/inside.sh WHO WHAT...: runs in the booted kernel. WHO is root or user; WHAT are
# test scripts relative to the checkout, or `quick` for a look at the layers. The project's disk
# holds the checkout with its build in /lab/src; it is copied, since tests write beside it.
who=$1
shift
cp -r /lab/src /tmp/src
chmod -R a+rX /tmp/src
cd /tmp/src || exit 93
B=/tmp/src/build
export B KNIT_MUST_RUN=1 KNIT_LAB=1
uname -r
cat /sys/fs/cgroup/cgroup.controllers
as() {
	if [ "$who" = user ]; then
		setpriv --reuid 65534 --regid 65534 --clear-groups env HOME=/tmp TMPDIR=/tmp "$@"
	else
		"$@"
	fi
}
chmod 1777 /tmp
case $1 in
quick)
	as $B/knit-sandbox run --report /tmp/report.json -- sh -c 'id; cat /proc/self/status | grep -E "Cap|NoNew|Seccomp"'
	echo "status $?"
	cat /tmp/report.json
	as $B/knit-sandbox run --memory 64M -- python3 -c 'x=bytearray(1<<30)'
	echo "memory: status $?"
	find /sys/fs/cgroup -name 'knit-*'
	;;
*)
	# Emulation is some thirty times slower than the machine: bounds on time give way.
	as env KNIT_SLOW=30 prove --timer --formatter TAP::Formatter::File "$@"
	;;
esac
