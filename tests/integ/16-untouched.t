#!/bin/sh
# 16-untouched.t: /tmp, /dev/shm, /task and the IPC namespace serve the next task only if
# nothing at all can be told from them.
. "$(dirname "$0")/../lib/tap.sh"
left_before

# What can be seen of the three. -I: else python would look into its directory.
cat >"$T/look.py" <<'X'
import fcntl, os, struct
for d in ("/tmp", "/dev/shm", "/task"):
    s, v = os.stat(d), os.statvfs(d)
    fd = os.open(d, os.O_RDONLY)
    try:
        flags = fcntl.ioctl(fd, 0x80086601, struct.pack("l", 0))
    except OSError as e:
        flags = e.errno
    t = os.open(d, os.O_TMPFILE | os.O_RDWR)
    few = os.fstat(t).st_ino < 40
    os.close(t)
    print(d, oct(s.st_mode), s.st_nlink, s.st_size, os.listxattr(d), flags, few, v.f_ffree,
          v.f_bfree, min(s.st_atime, s.st_mtime) > 1e9, os.listdir(d))
X
# One way each to leave something that is no file.
cat >"$T/marks.py" <<'X'
import fcntl, os, struct
def flags(d):
    fd = os.open(d, os.O_RDONLY)
    fcntl.ioctl(fd, 0x40086602, struct.pack("l", 0x40 | 0x80))  # no dump, no atime
def nameless(d):
    for _ in range(60):
        os.close(os.open(d, os.O_TMPFILE | os.O_RDWR))
def passing(d):
    for i in range(60):
        os.close(os.open(d + "/x", os.O_CREAT | os.O_RDWR))
        os.unlink(d + "/x")
acl = struct.pack("<I" + "HHi" * 3, 2, 1, 7, -1, 4, 7, -1, 0x20, 0, -1)
marks = {
    "mode": lambda d: os.chmod(d, 0o700),
    "time": lambda d: os.utime(d, (1000, 1000)),
    "attribute": lambda d: os.setxattr(d, "user.canary", b"x"),
    "default rights": lambda d: os.setxattr(d, "system.posix_acl_default", acl),
    "flags": flags,
    "nameless files": nameless,
    "files that went": passing,
    "a file": lambda d: os.close(os.open(d + "/canary", os.O_CREAT)),
    "nothing": lambda d: None,
}
X
cat >"$T/tasks.py" <<'X'
import json, os, sys
here = os.path.dirname(sys.argv[0])
look, marks = (open(here + "/" + n).read() for n in ("look.py", "marks.py"))
names = {}
exec(marks, names)
def task(id, *argv):
    print(json.dumps({"id": id, "argv": list(argv)}))
def python(id, text):
    task(id, "python3", "-I", "-c", text)
for i in range(6):
    # a copied mount stands between the root and the cell's own /proc
    task("same%d" % i, "awk", """$5 == "/" && !r { r = NR } $5 == "/task" { t = NR }
        $5 == "/proc" { p = NR } END { print(r < t && t < p ? "copied" : "own") }""",
        "/proc/self/mountinfo")
python("clean", look)
for name in names["marks"]:
    # enough of those that leave nothing to have what was thrown away made again
    for i in range(70):
        task("%s/%d" % (name, i), "true")
    python("mark " + name, marks + "\nfor d in ('/tmp', '/dev/shm', '/task'):\n"
        "    try: marks[%r](d)\n    except OSError as e: print(d, e)\n" % name)
    python("look " + name, look)
X
"$PY" "$T/tasks.py" >"$T/tasks"
ks run --tasks "$T/tasks" --workers 1
is "$rc" 0 "tasks that touch nothing and tasks that touch something run"
is "$(js "$T/out" 'by["same5"]["stdout"].strip()')" copied \
	"what was not touched serves the next task too"
# Who was sent a descriptor through a socket outside would still have it.
mkdir "$T/folder"
for opt in "--ro-bind $T/folder:/folder" "--network host"; do
	head -n 6 "$T/tasks" >"$T/six"
	# shellcheck disable=SC2086
	ks run $opt --tasks "$T/six" --workers 1
	is "$(js "$T/out" '" ".join({by["same%d" % i]["stdout"].strip() for i in range(6)})')" own \
		"$opt: each task has file systems of its own"
done
ks run --tasks "$T/tasks" --workers 1
for m in mode time attribute "default rights" flags "nameless files" "files that went" "a file"; do
	if [ -n "$(js "$T/out" "by['mark $m']['stdout']")" ]; then
		why=$(js "$T/out" "by['mark $m']['stdout']")
		case $m:$why in
		attribute:*'not supported'*)
			not_here "$m: tmpfs has none before Linux 6.6"
			continue
			;;
		esac
		skip "$(js "$T/out" "by['mark $m']['stdout'].split(chr(10))[0]")" "$m"
		continue
	fi
	is "$(js "$T/out" "by['look $m']['stdout'] or by['look $m']['stderr']")" \
		"$(js "$T/out" "by['clean']['stdout']")" "$m: the next task sees none of it"
done

# IPC objects: the numbers of the next ones tell of those that are gone again.
cat >"$T/ipc.py" <<'X'
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
get = {
    "messages": (lambda: libc.msgget(0, 0o600), lambda i: libc.msgctl(i, 0, 0)),
    "semaphores": (lambda: libc.semget(0, 1, 0o600), lambda i: libc.semctl(i, 0, 0, 0)),
    "shared memory": (lambda: libc.shmget(0, 4096, 0o600), lambda i: libc.shmctl(i, 0, 0)),
}
def queue(end):
    q = libc.mq_open(b"/canary", os.O_CREAT | os.O_RDWR, 0o600, 0)
    return q < 0 or (end and libc.mq_unlink(b"/canary"))
what = sys.argv[1]
if what == "look":
    print(*[make() for make, end in get.values()], libc.mq_open(b"/canary", os.O_RDWR))
elif what == "which":
    print(os.readlink("/proc/self/ns/ipc"))
else:
    kind, how = what.split("/")
    bad = queue(how == "gone") if kind == "a queue" else \
        any(i < 0 or (how == "gone" and end(i)) for make, end in [get[kind]] for i in [make()])
    print(os.strerror(ctypes.get_errno()) if bad else "", end="")
X
"$PY" - "$T/ipc.py" >"$T/tasks" <<'X'
import json, sys
text = open(sys.argv[1]).read()
def task(id, what):
    print(json.dumps({"id": id, "argv": ["python3", "-I", "-c", text, what]}))
for i in range(8):
    task("which%d" % i, "which")
task("first", "look")
task("clean", "look")
for kind in ("messages", "semaphores", "shared memory", "a queue"):
    for how in ("stays", "gone"):
        task("mark %s/%s" % (kind, how), "%s/%s" % (kind, how))
        task("look %s/%s" % (kind, how), "look")
X
# Landlock knows the folder of the queues as one that no rule names.
echo '{"version": 1, "landlock": "off"}' >"$T/policy"
ks run --policy "$T/policy" --tasks "$T/tasks" --workers 1
is "$rc" 0 "tasks that make IPC objects and tasks that make none run"
ok "an IPC namespace in which nothing was made serves the next task too" \
	[ "$(js "$T/out" 'len({by["which%d" % i]["stdout"] for i in range(8)})')" -lt 8 ]
for kind in messages semaphores "shared memory" "a queue"; do
	for how in stays gone; do
		why=$(js "$T/out" "by['mark $kind/$how']['stdout']")
		# Where nobody would count its memory there is none to be had.
		case "$kind: $why" in
		"shared memory: Function not "*) # ENOSYS
			ok "$kind, $how: refused to whom no cgroup is given" [ "$(id -u)" != 0 ]
			continue
			;;
		esac
		if [ -n "$why" ]; then
			skip "$why" "$kind, $how"
			continue
		fi
		# One that is gone left no number: only whether it is there can be told.
		case $kind in
		"a queue") part=".split()[-1]" ;;
		*) part="" ;;
		esac
		is "$(js "$T/out" "(by['look $kind/$how']['stdout'] or by['look $kind/$how']['stderr'])$part")" \
			"$(js "$T/out" "by['clean']['stdout']$part")" \
			"$kind, $how: the next task cannot tell"
	done
done

left_after "untouched"
done_testing
