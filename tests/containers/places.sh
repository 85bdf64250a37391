# tests/containers/places.sh: how each place is made ready and entered. Sourced by
# inside.sh as root; $S is its folder on the disk, $at where the build was made.

image=localhost/knit-lab # of /base/image.tar
user=lab                 # the ordinary user, uid 1000

# One command line as another user with a session, as login makes it.
as_user() { # COMMAND-LINE
	su - $user -c "$1"
}

# What containers are given so that a sandbox can be made in them; never --privileged, and
# a profile, which prepare() writes. It is what `doctor` says in a container without. In a
# container of a user's podman its root is that user, who owns the container's groups.
profile=$S/profile.json
flags_docker="--user 1000 --security-opt seccomp=$profile --security-opt apparmor=unconfined
--security-opt systempaths=unconfined"
flags_podman="--user 1000 --security-opt seccomp=$profile --security-opt apparmor=unconfined
--security-opt unmask=ALL"
flags_podman_user="--security-opt seccomp=$profile --security-opt unmask=ALL"

make_user() {
	# What udev does where there is one: an ordinary user's podman needs it for networks.
	modprobe tun && chmod 666 /dev/net/tun || return 1
	id $user >/dev/null 2>&1 && return 0
	useradd -m -u 1000 -s /bin/sh $user || return 1
	grep -q "^$user:" /etc/subuid || usermod --add-subuids 100000-165535 --add-subgids 100000-165535 $user
	# His manager is there as soon as the first session is, and stays.
	loginctl enable-linger $user || return 1
	i=0
	while [ ! -S /run/user/1000/bus ] && [ $i -lt 120 ]; do
		sleep 1
		i=$((i + 1))
	done
	[ -S /run/user/1000/bus ] || {
		echo "no manager of the user's: $(systemctl status user@1000 | head -5)"
		return 1
	}
}

# The image, made as a newcomer without a registry makes it: of a debootstrapped tree.
import_image() { # podman, docker, or user: the podman of the ordinary user
	case $1 in
	user) as_user "podman image exists $image || podman import -q /base/image.tar $image" ;;
	podman) podman image exists $image || podman import -q /base/image.tar $image ;;
	docker)
		docker image inspect $image >/dev/null 2>&1 || docker import /base/image.tar $image
		;;
	esac >/dev/null
}

start_docker() {
	docker info >/dev/null 2>&1 && return 0
	systemctl start docker || {
		journalctl -q -u docker | tail -n 5
		return 1
	}
}

prepare() { # PLACE [LAUNCHER]
	[ -f "$profile" ] || {
		/lab/src/build/knit-sandbox policy export --around 2>/dev/null >"$profile" || return 1
	}
	# (docker's root refuses binds that are written to; its group may ask the daemon)
	[ "${2:-}" != oci:docker ] || {
		make_user && start_docker && import_image docker && usermod -aG docker $user
	} || return 1
	case $1 in
	user) make_user ;;
	system) : ;;
	podman) import_image podman ;;
	podman-user) make_user && import_image user ;;
	docker) start_docker && import_image docker ;;
	machine) make_user && start_docker && import_image podman && import_image user &&
		import_image docker ;;
	*)
		echo "no such place"
		return 1
		;;
	esac
}

# copy_in PLACE: the checkout is copied, since tests write beside it; prints its folder
# as the place sees it.
copy_in() {
	d=$S/$1
	[ -d "$d" ] || {
		mkdir -p "$d/tmp"
		cp -a /lab/src "$d/src"
		chmod 1777 "$d/tmp"
		case $1 in
		system | machine | podman-user) ;;
		*) chown -R 1000:1000 "$d/src" ;;
		esac
		# (the container's root is the user there)
		[ "$1" != podman-user ] || chown -R 1000:1000 "$d"
	}
	cat >"$d/go" <<-G
		# go LAUNCHER SCRIPT...: in the place
		d=\${0%/*}
		cd "\$d/src" || exit 93
		[ -e "$at" ] || { mkdir -p "${at%/*}" && ln -s "\$d/src/build" "$at"; } || exit 93
		export B="\$d/src/build" HOME=/tmp TMPDIR=/tmp KNIT_LAB=1 KNIT_PLACE=$1 KNIT_SLOW=$slow
		export KNIT_PAIRS=15 KNIT_SCALE=400 KNIT_EVERY=5
		# The group we are in is ours where a manager says so; what runs the
		# scripts is a process too, so that it goes below.
		g=/sys/fs/cgroup\$(sed -n 's/^0:://p' /proc/self/cgroup)
		mkdir "\$g/session" 2>/dev/null && echo \$\$ >"\$g/session/cgroup.procs"
		[ "\$1" = bwrap ] || export KNIT_LAUNCHER="\$1"
		[ "\$1" != oci:docker ] || export KNIT_IMAGE=$image
		shift
		# (not in place of this shell: as process 1 of a container it waits for orphans too)
		prove --timer -j2 --formatter TAP::Formatter::File "\$@"
		exit \$?
	G
	case $1 in
	podman* | docker) echo /lab ;;
	*) echo "$d" ;;
	esac
}

enter() { # PLACE COMMAND...
	place=$1
	shift
	d=$S/$place
	into="--rm -i -v $d:/lab -v $d/tmp:/tmp --network none --pids-limit 4096 --ulimit nofile=65536"
	# shellcheck disable=SC2086
	case $place in
	user) as_user "exec systemd-run --user --scope -q -p Delegate=yes -- $*" ;;
	system) systemd-run --scope -q -p Delegate=yes -- "$@" ;;
	machine) "$@" ;;
	podman) podman run $into $flags_podman $image "$@" ;;
	podman-user) as_user "exec podman run $(echo $into $flags_podman_user) $image $*" ;;
	docker) docker run $into $flags_docker $image "$@" ;;
	esac 3<&- </dev/null
}
