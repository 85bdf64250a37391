#!/bin/sh
# 40-doctor.t: what a machine lacks is named, with what is lost, who refuses and one fix;
# following the fix takes the finding away; a run that fails says the same.
. "$(dirname "$0")/../lib/tap.sh"
left_before

# Python over the document: D, and P by the name of the probe.
doc() {
	"$PY" -S - "$T/out" "$1" 2>&1 <<'X'
import json, sys
try:
    D = json.load(open(sys.argv[1]))
    P = {p["probe"]: p for p in D["probes"]}
    print(eval(sys.argv[2]))
except Exception as e:
    print("doc: %s: %r" % (type(e).__name__, e))
X
}
fix() {
	doc "P[\"$1\"].get(\"fix\")"
}
# finding PROBE STATUS CAUSE NAME, of the doctor that ran just now.
finding() {
	is "$(doc "P[\"$1\"][\"status\"], P[\"$1\"].get(\"cause\")")" "('$2', '$3')" "$4: $1 is $2, for $3"
	is "$(doc "all(P[\"$1\"][k] for k in (\"detail\", \"loses\", \"layer\", \"fix\", \"fix_by\"))")" True \
		"$4: with what is seen and lost, who refuses, and a fix"
	case $2 in
	refused) is "$rc $(doc 'D["verdict"]')" "1 refused" "$4: no task can be run: status 1" ;;
	*) is "$rc $(doc 'D["verdict"]')" "0 degraded" "$4: tasks can be run: status 0" ;;
	esac
}
schema() {
	is "$("$PY" -S "$t_lib/schema.py" "$t_top/policies/schemas/doctor.schema.json" "$T/out" 2>&1)" "" \
		"$1: as the schema says"
}
# A run as this caller says what doctor said. $1: the fix; then the command.
run_says() {
	t_fix=$1 t_name=$2
	shift 2
	watched "$@"
	is $rc 125 "$t_name: a run is refused"
	case $(err) in
	*"$t_fix"*) pass "$t_name: and says the same fix" ;;
	*) fail_because "want: $t_fix$(t_stderr)" "$t_name: and says the same fix" ;;
	esac
}

# ---- this machine ----
watched "$KS" doctor --json
is $rc 0 "here: tasks can be run"
schema "here"
is "$(doc 'P["run"]["status"], D["refused"]')" "('ok', 0)" "here: a run works, and nothing is refused"
is "$(doc 'len(P) == len(D["probes"]) and [sum(p["status"] == s for p in P.values()) for s in ("refused", "degraded", "unknown")] == [D[s] for s in ("refused", "degraded", "unknown")]')" \
	True "here: each probe once, and counted"
here=$rc
if cgroup_granted; then
	is "$(doc 'P["cgroup-memory"]["status"], P["cgroup-pids"]["status"]')" "('ok', 'ok')" "here: the cgroups that a run gets"
else
	is "$(doc 'P["cgroup-memory"]["status"]')" degraded "here: the cgroup that a run does not get"
fi
watched "$KS" doctor
is "$rc" "$here" "for people: the same status"
at_most "$(wc -l <"$T/out")" 24 "for people: one screen"
like "$(out)" '^ok +run' "for people: what is fine in a list"
like "$(sed -n 1p "$T/out")" ': tasks can be run' "for people: whether tasks can be run, in words"
watched "$KS" doctor --help
is "$rc" 0 "--help"
watched "$KS" doctor --jsno
is "$rc $(err | tr '\n' ' ')" "125 knit-sandbox: doctor: unknown option --jsno hint: did you mean --json? " \
	"an unknown option: which was meant"
sh -c '"$0" doctor >/dev/full' "$KS" 2>"$T/err"
is $? 125 "a full disk: status 125"

# ---- bwrap ----
mkdir "$T/bin"
printf '#!/bin/sh\necho bubblewrap of a kind; exit 3\n' >"$T/bin/bwrap"
cp "$T/bin/bwrap" "$T/bin/plain"
chmod 755 "$T/bin" "$T/bin/bwrap"
chmod 644 "$T/bin/plain"
watched env KNIT_BWRAP="$T/bin/bwrap" "$KS" doctor --json
finding bwrap refused bwrap-named "a bwrap that fails"
schema "a bwrap that fails"
is "$(fix bwrap)" "unset KNIT_BWRAP" "a bwrap that fails: the fix"
is "$(doc 'P["run"]["status"], P["run"]["fix"]')" "('refused', 'unset KNIT_BWRAP')" "a bwrap that fails: so does a run, with one fix"
is "$(doc 'P["user-namespace"]["status"]')" ok "a bwrap that fails: the rest is looked at"
run_says "unset KNIT_BWRAP" "a bwrap that fails" env KNIT_BWRAP="$T/bin/bwrap" "$KS" run -- true
watched env KNIT_BWRAP="$T/bin/plain" "$KS" doctor --json
finding bwrap refused bwrap-named "a bwrap without an x bit"
printf '#!/bin/sh\necho bubblewrap 0.4.1\n' >"$T/bin/bwrap"
watched env KNIT_BWRAP="$T/bin/bwrap" "$KS" doctor --json
finding bwrap refused bwrap-old "bubblewrap 0.4"
if [ -n "$root" ]; then
	cp "$(command -v bwrap)" "$T/bin/setuid"
	chmod 4755 "$T/bin/setuid"
	watched env KNIT_BWRAP="$T/bin/setuid" "$KS" doctor --json
	finding bwrap refused bwrap-setuid "a set-user-id bwrap (C149)"
	run_says "chmod u-s" "a set-user-id bwrap (C149)" env KNIT_BWRAP="$T/bin/setuid" "$KS" run -- true
	chmod u-s "$T/bin/setuid"
	watched env KNIT_BWRAP="$T/bin/setuid" "$KS" doctor --json
	is "$(doc 'P["bwrap"]["status"], P["run"]["status"]')" "('ok', 'ok')" "a set-user-id bwrap (C149): gone with the fix"
	mkdir "$T/shut"
	chmod 700 "$T/shut"
	cp "$T/bin/setuid" "$T/shut/bwrap"
	watched env KNIT_BWRAP="$T/shut/bwrap" "$KS" doctor --json
	finding bwrap refused bwrap-unreachable "a bwrap that workers may not execute"
	run_says "chmod a+rx" "a bwrap that workers may not execute" env KNIT_BWRAP="$T/shut/bwrap" "$KS" run -- true
else
	not_here "a set-user-id bwrap, which is root's to make"
fi
# Nothing of PATH is needed (C147), and nothing of it trusted: doctor runs what it finds
# there as a worker, without powers.
watched env PATH=/nonexistent "$KS_REAL" doctor --json
is "$(doc 'P["run"]["status"], P["container-runtimes"]["detail"][:4]')" "('ok', 'none')" "an empty PATH (C147)"
printf '#!/bin/sh\nid -u >%s/who\necho fake version 7.1\n' "$T/bin" >"$T/bin/runc"
chmod 755 "$T/bin/runc"
: >"$T/bin/who"
chmod 666 "$T/bin/who"
watched env PATH="$T/bin:$PATH" "$KS" doctor --json
like "$(doc 'P["container-runtimes"]["detail"]')" '^runc 7.1' "a runtime is found and asked"
[ -z "$root" ] || like "$(cat "$T/bin/who")" '^[1-9]' "a runtime is not asked as root"

# Within a sandbox of ours there is none.
cp "$KS_REAL" "$T/bin/inner"
watched "$KS" run --quiet --ro-bind "$T/bin/inner:/inner" -- /inner doctor --json
finding identity refused inside-cell "inside of a sandbox"
schema "inside of a sandbox"

# ---- a container's filter (C148) ----
watched "$PY" "$t_lib/refuse.py" "$KS" doctor --json
finding user-namespace refused filter "under a container's filter (C148)"
schema "under a container's filter (C148)"
is "$(doc 'P["run"]["status"], P["run"]["cause"], P["proc"]["status"], P["seccomp"]["status"]')" \
	"('refused', 'filter', 'unknown', 'ok')" "under a container's filter (C148): what follows from it is told apart"
like "$(doc 'P["user-namespace"]["layer"]')" 'seccomp' "under a container's filter (C148): it is named as the layer"
run_says "$(fix user-namespace)" "under a container's filter (C148)" "$PY" "$t_lib/refuse.py" "$KS" run -- true
watched "$PY" "$t_lib/refuse.py" "$KS" doctor
like "$(sed -n 1p "$T/out")" ': no task can be run$' "under a container's filter (C148): in words"
like "$(sed -n 2p "$T/out")" '^refused +run, user-namespace: ' "under a container's filter (C148): the worst comes first"
# (an older kernel has more that is only weaker)
at_most "$(wc -l <"$T/out")" $((18 + 5 * $(grep -cE '^(refused|degraded) ' "$T/out"))) "under a container's filter (C148): one screen"
if [ -n "$root" ]; then
	# As in a container: a PID namespace of its own, with the marker of what made it.
	watched unshare --pid --fork --mount --mount-proc sh -c 'mount -t tmpfs none /run && mkdir -p /run/lock && : >/run/.containerenv && exec "$@"' \
		- "$PY" "$t_lib/refuse.py" "$KS_REAL" doctor --json
	is "$(doc 'D["container"], P["user-namespace"]["fix_by"]')" "('podman', 'container')" "in a container: the fix is for who starts it"
	like "$(fix user-namespace)" 'podman run .*seccomp=k\.json' "in a container: it is an option of that"
fi

# ---- what systemd's RestrictSUIDSGID= does, and DynamicUser= with it ----
no_openat2() {
	watched "$PY" "$t_lib/refuse.py" --openat2 "$KS" "$@"
}
no_openat2 run --quiet -- true
bwrap_rc=$rc
no_openat2 doctor --json
schema "openat2 refused"
no_openat2_fix='RestrictSUIDSGID=.*DynamicUser=.*User=' no_openat2_hint='RestrictSUIDSGID= of systemd'
case $(doc 'D["container"]') in
docker | podman)
	no_openat2_fix='run .*seccomp=k\.json'
	no_openat2_hint=$(fix openat2)
	;;
esac
like "$(fix openat2)" "$no_openat2_fix" "openat2 refused: which settings, and what instead"
if [ "$bwrap_rc" = 0 ]; then
	finding openat2 degraded openat2 "openat2 refused"
	is "$(doc 'P["run"]["status"], P["cgroup-memory"]["cause"]')" "('ok', 'openat2')" "openat2 refused: a plain run works, and no cgroup can be had for that reason"
	run_says "$no_openat2_hint" "openat2 refused: a limit that must hold" \
		"$PY" "$t_lib/refuse.py" --openat2 "$KS" run --memory 64M -- true
	mkdir "$T/mine"
	run_says "$no_openat2_hint" "openat2 refused: a writable bind" \
		"$PY" "$t_lib/refuse.py" --openat2 "$KS" run --bind "$T/mine" -- true
	cat >"$T/tasks" <<'X'
{"id":"given","argv":["true"],"files":{"x":{"content":"y"}}}
{"id":"left","argv":["sh","-c","echo >x"],"collect":["x"]}
X
	no_openat2 run --quiet --tasks "$T/tasks"
	like "$(grep '"given"' "$T/out")" '"internal".*RestrictSUIDSGID=' "openat2 refused: a task with files does not run, and says why"
	like "$(grep '"left"' "$T/out")" 'RestrictSUIDSGID=' "openat2 refused: what cannot be collected says why"
else # bubblewrap opens by it too, from 0.11 on
	is "$rc $(doc 'P["openat2"]["cause"], P["run"]["status"]')" "1 ('openat2', 'refused')" "openat2 refused: no task can be run"
	run_says "$no_openat2_hint" "openat2 refused: any run" "$PY" "$t_lib/refuse.py" --openat2 "$KS" run -- true
fi

# ---- a real container, without privileges (C148) ----
if [ -n "$root" ] && command -v runc >/dev/null; then
	mkdir -p "$T/box/rootfs" && for d in usr tmp proc dev sys etc kn; do mkdir "$T/box/rootfs/$d"; done
	for d in bin lib lib64 sbin; do ln -s usr/$d "$T/box/rootfs/$d"; done
	cp "$KS_REAL" "$T/box/rootfs/kn/knit-sandbox"
	: >"$T/box/rootfs/.dockerenv"
	(cd "$T/box" && runc spec)
	# contain SCRIPT ARGS: doctor, or what ARGS are, in a container whose document (c) SCRIPT has changed
	contain() {
		"$PY" - "$T/box/config.json" "$@" <<'X'
import json, sys
c = json.load(open(sys.argv[1]))
p = c["process"]
p["terminal"] = False
if len(c["mounts"]) < 9 and not any(m["destination"] == "/usr" for m in c["mounts"]):
    c["mounts"].append({"destination": "/usr", "type": "bind", "source": "/usr", "options": ["rbind", "ro"]})
p["args"] = ["/kn/knit-sandbox"] + sys.argv[3:]
exec(sys.argv[2])
json.dump(c, open(sys.argv[1], "w"))
X
		watched sh -c 'cd "$1" && exec runc --root "$1/state" run knit-$2' - "$T/box" $$
	}
	contain pass doctor --json
	finding identity refused root-powerless "a container's root (C148)"
	is "$(doc 'D["container"], P["user-namespace"]["cause"], P["identity"]["fix_by"]')" "('docker', 'root-powerless', 'container')" \
		"a container's root (C148): one cause"
	like "$(fix identity)" 'docker run --user 1000 ' "a container's root (C148): another user"
	contain 'p["user"] = {"uid": 1000, "gid": 1000}; p["capabilities"] = {}' doctor --json
	finding proc refused proc-masked "a container's user (C148)"
	is "$(doc 'P["user-namespace"]["status"], P["cgroup-memory"]["cause"]')" "('ok', 'cgroup-readonly')" "a container's user (C148): the rest"
	like "$(fix proc)" 'systempaths=unconfined' "a container's user (C148): which option"
	contain pass run -- true
	is $rc 125 "a container's user (C148): a run is refused"
	like "$(err)" 'systempaths=unconfined' "a container's user (C148): and says which option"
	contain 'del c["linux"]["maskedPaths"], c["linux"]["readonlyPaths"]' doctor --json
	is "$(doc 'P["run"]["status"], D["refused"]')" "('ok', 0)" "a container's user with that option (C148): runs"
	contain pass run --policy container -- /usr/bin/python3 -c 'import multiprocessing as m; print(m.Pool(2).map(abs, [-1, 2]))'
	is "$rc $(out)" "0 [1, 2]" "a container's user with that option (C148): preset container"
else
	not_here "containers of runc, where root has it"
fi

if [ -n "$root" ]; then
	mkdir -p "$T/jail/proc"
	cp "$KS_REAL" "$T/jail/knit-sandbox"
	watched unshare --mount sh -c 'mount -t proc proc "$1/proc" && exec chroot "$1" /knit-sandbox doctor --json' - "$T/jail"
	finding user-namespace refused chroot "in a chroot"
	is "$(doc 'P["bwrap"]["cause"], P["run"]["status"]')" "('bwrap-missing', 'refused')" "in a chroot: no bwrap either"
	like "$(fix bwrap)" 'bubblewrap' "in a chroot: the package"
fi

# ---- limits ----
watched sh -c 'ulimit -n 256; exec "$0" doctor --json' "$KS"
finding open-files degraded nofile "256 open files"
is "$(doc 'P["run"]["status"]')" ok "256 open files: a run works"
watched sh -c 'ulimit -f 1000; exec "$0" doctor --json' "$KS"
finding memory refused file-size "1000 blocks a file"
run_says "ulimit -f" "1000 blocks a file" sh -c 'ulimit -f 1000; exec "$0" run -- true' "$KS"
watched sh -c 'ulimit -v 70000; exec "$0" doctor --json' "$KS_REAL"
finding memory refused address-space "70 MB of address space"
if [ -n "$root" ]; then
	not_here "a limit of processes, which does not count root's"
else
	watched prlimit --nproc=1 "$KS_REAL" doctor --json
	is "$rc $(doc 'P["run"]["status"]')" "1 refused" "no more processes: refused, not an abort"
fi

# ---- user namespaces and mounts, in a namespace where they can be switched ----
if ! "$PY" "$t_lib/userns.py" --mount true 2>"$T/why"; then
	skip "no user namespace here: $(cat "$T/why")" "switched-off user namespaces, covered mounts"
	left_after "doctor"
	done_testing
fi
off='echo 0 >/proc/sys/user/max_user_namespaces;'
watched "$PY" "$t_lib/userns.py" sh -c "$off"' exec "$0" doctor --json' "$KS"
finding user-namespace refused userns-max "max_user_namespaces=0 (C060)"
schema "max_user_namespaces=0 (C060)"
line=$(fix user-namespace)
like "$line" '^sysctl -w user.max_user_namespaces=[0-9]+$' "max_user_namespaces=0 (C060): the fix is a command"
run_says "$line" "max_user_namespaces=0 (C060)" "$PY" "$t_lib/userns.py" sh -c "$off"' exec "$0" run -- true' "$KS"
do=$line
# the same, where procps is not installed
command -v sysctl >/dev/null || do="(echo ${line##*=} >/proc/sys/user/max_user_namespaces)"
watched "$PY" "$t_lib/userns.py" sh -c "$off $do"' >/dev/null; exec "$0" doctor --json' "$KS"
is "$(doc 'P["user-namespace"]["status"], P["run"]["status"]')" "('ok', 'ok')" "max_user_namespaces=0 (C060): gone with the fix"
watched "$PY" "$t_lib/userns.py" sh -c 'echo 1 >/proc/sys/user/max_user_namespaces; exec "$0" doctor --json' "$KS"
is "$rc $(doc 'P["nested-user-namespace"]["status"], P["run"]["status"]')" "1 ('refused', 'refused')" "one user namespace and no more: no run, and the nested one is named"
watched "$PY" "$t_lib/userns.py" --mount sh -c 'mount -t tmpfs none /proc && exec "$0" doctor --json' "$KS_REAL"
finding identity refused proc-missing "no /proc"
watched "$PY" "$t_lib/userns.py" --mount sh -c 'mount -t tmpfs none /sys/fs/cgroup && exec "$0" doctor --json' "$KS"
# (in a container it may be that no group is to be had there anyway)
[ -n "$around" ] || finding cgroup-memory degraded cgroup-covered "an empty /sys/fs/cgroup"
schema "an empty /sys/fs/cgroup"
is "$(doc 'P["run"]["status"]')" ok "an empty /sys/fs/cgroup: a run works"
line=$(fix cgroup-memory)
watched "$PY" "$t_lib/userns.py" --mount sh -c 'mount -t tmpfs none /sys/fs/cgroup && '"$line"' && exec "$0" doctor --json' "$KS"
unlike "$(doc 'P["cgroup-memory"].get("cause")')" covered "an empty /sys/fs/cgroup: gone with the fix"
# A mask of /proc, as containers have it. One that lies hidden below / (the laboratory's, from
# its initramfs) cannot be masked, and then a fresh one is given: asked of the kernel.
mask='awk '"'"'/ - proc /{print $5}'"'"' /proc/self/mountinfo | while read -r p; do mount --bind /dev/null "$p/version"; done;'
watched "$PY" "$t_lib/userns.py" --mount sh -c "$mask"' exec "$0" doctor --json' "$KS_REAL"
if "$PY" "$t_lib/userns.py" --mount sh -c "$mask"' unshare --user --map-root-user --mount --pid --fork mount -t proc proc /proc' 2>/dev/null; then
	is "$(doc 'P["proc"]["status"]')" ok "a masked /proc, and another that is whole"
else
	finding proc refused proc-masked "a masked /proc (C148)"
fi
if [ -n "$root" ] && cgroup_granted; then
	shut='awk '"'"'/ - cgroup2? /{print $5}'"'"' /proc/self/mountinfo | while read -r d; do mount -o remount,bind,ro "$d"; done;'
	watched unshare --mount sh -c "$shut"' exec "$0" doctor --json' "$KS"
	finding cgroup-memory degraded cgroup-readonly "a read-only /sys/fs/cgroup"
	line=$(fix cgroup-memory)
	run_says "remount,bind,rw" "a read-only /sys/fs/cgroup" unshare --mount sh -c "$shut"' exec "$0" run --memory 64M -- true' "$KS"
	watched unshare --mount sh -c "$shut $line"'; exec "$0" doctor --json' "$KS"
	is "$(doc 'P["cgroup-memory"]["status"]')" ok "a read-only /sys/fs/cgroup: gone with the fix"
	# An ordinary user: what doctor tells root to do for that user's shell.
	mkdir "$T/user"
	chmod 777 "$T/user"
	cat >"$T/grant" <<'X'
"$1" doctor --json >"$2/before"
: >"$2/told"
while [ ! -e "$2/granted" ]; do sleep 0.05; done
"$1" doctor --json >"$2/after"
X
	as_user sh "$T/grant" "$KS" "$T/user" &
	user=$!
	t_try=0
	while [ ! -e "$T/user/told" ] && [ $t_try -lt 400 ]; do
		pause 50
		t_try=$((t_try + 1))
	done
	cp "$T/user/before" "$T/out"
	line=$(fix cgroup-memory)
	like "$line" 'chown -R 65534 .*cgroup\.procs' "a user without a cgroup: one command for root"
	sh -c "$line" 2>"$T/err"
	: >"$T/user/granted"
	wait $user
	cp "$T/user/after" "$T/out"
	is "$(doc 'P["cgroup-memory"]["status"], P["cgroup-pids"]["status"]')" "('ok', 'ok')" "a user without a cgroup: gone with that command"
	for d in $(printf '%s\n' "$line" | sed 's/^for d in //; s/; do.*//'); do
		rmdir "$d/knit-65534/shell" "$d/knit-65534" 2>/dev/null
	done
else
	not_here "cgroups that root can shut and grant"
fi
left_after "doctor"
done_testing
