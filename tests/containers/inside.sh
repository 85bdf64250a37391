# tests/containers/inside.sh: what lab.service runs in the booted machine, as root.
# /lab/scripts has lines PLACE SCRIPT...: these are run in that place, a place being
# where our program is started:
#
#   user         a session of an ordinary user, in a scope that systemd delegates
#   system       the same for root
#   podman       in a container of root's podman, as uid 1000 of the container
#   podman-user  in a container of an ordinary user's podman
#   docker       in a container of docker's, as uid 1000
#   machine      as root, without anything around: scripts that start containers
#
# PLACE/LAUNCHER, as user/oci:crun, has its workers started by that (--launcher).
# A line "LAB-PLACE PLACE STATUS WHAT" for each place.
PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8
export PATH HOME LANG
end() {
	echo "LAB-EXIT $1"
	sync
	sleep 1
	echo o >/proc/sysrq-trigger
	sleep 9
}
echo "LAB-START $(uname -r), $(nproc) processors, $(systemctl --version | sed -n 1p), podman $(podman --version | sed 's/.* //'), $(crun --version | sed -n 1p), $(docker --version)"
echo "LAB-NOTE system is $(systemctl is-system-running), controllers: $(cat /sys/fs/cgroup/cgroup.controllers)"

S=/scratch/lab
mkdir -p $S
hostname lab
printf '%s\n' '127.0.0.1 localhost' '127.0.1.1 lab vm' '::1 localhost ip6-localhost ip6-loopback' >/etc/hosts
# (Debian's podman ships a file of CNI's, takes CNI for that, and lacks its plugins.)
mkdir -p /etc/containers
printf '[network]\nnetwork_backend = "netavark"\n' >/etc/containers/containers.conf
if grep -q lab.shell=1 /proc/cmdline; then
	setsid sh -i <>/dev/ttyS1 >&0 2>&1 &
fi
at=$(cat /lab/built-at)
slow=${LAB_SLOW:-8}
. /lab/places.sh
status=0
# (a terminal and nothing to read: what is started may not take our list for input)
while read -r place scripts <&3; do
	launcher=bwrap
	case $place in */*) launcher=${place#*/} ;; esac
	if ! why=$(prepare "${place%%/*}" "$launcher" 2>&1); then
		echo "LAB-PLACE $place CANNOT $(echo "$why" | tail -n 3 | tr '\n' ' ')"
		status=1
		continue
	fi
	echo "LAB-RUN $place"
	enter "${place%%/*}" sh "$(copy_in "${place%%/*}")/go" "$launcher" $scripts 2>&1 | tee "$S/out" | sed -u "s|^|$place: |"
	line=$(sed -n 's/^\(Files=[0-9]*, Tests=[0-9]*\).*/\1/p' "$S/out" | tail -1)
	if grep -qx 'Result: PASS' "$S/out"; then
		echo "LAB-PLACE $place passed $line"
	elif grep -qx 'Result: NOTESTS' "$S/out" && grep -q '^Files=[1-9]' "$S/out"; then
		echo "LAB-PLACE $place passed nothing applies there"
	else
		echo "LAB-PLACE $place FAILED $line"
		status=1
	fi
done 3</lab/scripts
wait
end $status
