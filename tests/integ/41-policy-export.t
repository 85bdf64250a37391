#!/bin/sh
# 41-policy-export.t: a policy as other programs take it, given to those that are here.
. "$(dirname "$0")/../lib/tap.sh"

for f in seccomp oci docker k8s systemd bwrap; do
	ks policy export --format $f judge
	is "$rc" 0 "policy export --format $f judge"
	like "$(head -c 40 "$T/out")" '^(\{|docker run|apiVersion|\[Service\]|/)' "$f: begins as such"
	cp "$T/out" "$T/$f"
done
like "$(cat "$T/err")" 'stub' "bwrap: what is not in its command line is said"
# judge wants memory held by a control group, which not every caller has.
if cgroup_granted; then
	unlike "$(cat "$T/err")" refused "bwrap: a caller with cgroups can launch it"
else
	like "$(cat "$T/err")" 'launch by this caller is refused: layer cgroup' "bwrap: that a caller without cgroups could not launch it is said"
fi
ks policy export --format docker judge
like "$(cat "$T/err")" 'landlock: docker has no Landlock' "docker: what it lacks is said"
ks policy export --format docker judge --set /landlock=on
like "$rc:$(cat "$T/out" "$T/err")" '^125:.*cannot enforce landlock' "docker: what it lacks and must have is an error"
ks policy export --format helm judge
like "$rc:$(cat "$T/err")" '^125:.*no format "helm".*k8s' "no such format"
ks policy export judge
like "$rc:$(cat "$T/err")" '^125:.*--format is one of' "no format"

if command -v systemd-analyze >/dev/null 2>&1; then
	{
		printf '[Unit]\nDescription=a task\n'
		cat "$T/systemd"
		echo 'ExecStart=/bin/true'
	} >"$T/task.service"
	# A newer name of a call or of a setting is passed over, and said to be.
	left=$(systemd-analyze verify "$T/task.service" 2>&1 |
		grep -v "Failed to parse system call, ignoring\|Unknown key 'PrivatePIDs'")
	is "$left" "" "systemd: takes the unit"
else
	not_here "no systemd-analyze"
fi

# runc runs the bundle, and inside the walls are what the policy says.
if [ -z "$root" ]; then
	not_here "runc as an ordinary user: other bundles"
elif ! command -v runc >/dev/null 2>&1; then
	not_here "no runc"
else
	bundle=$T/bundle
	mkdir -p "$bundle/rootfs"
	ks policy export --format oci python --set /limits/task/pids=20
	cp "$T/out" "$bundle/config.json"
	# Whose it must be is what the remark says.
	(cd "$bundle" && $(sed -n 's/.*: \(chown [0-9:]* rootfs\)$/\1/p' "$T/err"))
	is "$(stat -c %u:%g "$bundle/rootfs")" 300000:300000 "oci: whose rootfs must be is said"
	cat >"$T/inside.py" <<'E'
import errno, fcntl, os, socket
def refused(what, f):
    try:
        f()
        print(what, "allowed")
    except OSError as e:
        print(what, errno.errorcode[e.errno])
print("uid", os.getuid(), "pid", os.getpid(), os.getcwd())
refused("write /", lambda: open("/x", "w"))
refused("write /task", lambda: open("/task/x", "w"))
refused("write /tmp", lambda: open("/tmp/x", "w"))
refused("inet", lambda: socket.socket())
refused("unix", lambda: socket.socket(socket.AF_UNIX))
refused("tiocsti", lambda: fcntl.ioctl(0, 0x5412, b"x"))
refused("chmod u+s", lambda: os.chmod("/task/x", 0o4755))
refused("chmod", lambda: os.chmod("/task/x", 0o755))
refused("chroot", lambda: os.chroot("/task"))
def many():
    for i in range(30):
        if os.fork() == 0:
            import time; time.sleep(9); os._exit(0)
refused("30 processes", many)
E
	id=knit-t-$$
	timeout 30 runc --root "$T/runc" run -b "$bundle" $id <<E >"$T/got" 2>&1
exec python3 -c '$(cat "$T/inside.py")'
E
	is "$(cat "$T/got")" "uid 1000 pid 1 /task
write / EROFS
write /task allowed
write /tmp allowed
inet EAFNOSUPPORT
unix allowed
tiocsti EPERM
chmod u+s EPERM
chmod allowed
chroot EPERM
30 processes EAGAIN" "oci: runc runs it, walls up"
	runc --root "$T/runc" delete -f $id >/dev/null 2>&1
fi
done_testing
