#!/bin/sh
# 23-run.t: permissions.run: which files the kernel executes for a task, asked of it by
# all ways there are to have it execute another.
. "$(dirname "$0")/../lib/tap.sh"
left_before

may() { # LIST ARGS...: run with that list
	t_list=$1
	shift
	ks run --quiet --set "/permissions/run=$t_list" "$@"
}
mkdir "$T/w" "$T/ro"
chmod 777 "$T/w"
cp /usr/bin/id "$T/w/id"
cp /usr/bin/env "$T/ro/mine"
printf '#!%s/ro/mine sh\necho script ran\n' "$T" >"$T/ro/script"
chmod 755 "$T/w/id" "$T/ro/mine" "$T/ro/script"
loader=$("$PY" -c 'import re, sys; print(re.search(rb"/lib[^\0]*/ld-[^\0]*", open("/usr/bin/id", "rb").read()).group().decode())')

# Tries each way, and prints the name of one that came true. WHAT: a program that works.
cat >"$T/ways.py" <<'X2'
import ctypes, errno, os, sys
libc = ctypes.CDLL(None, use_errno=True)
EXECVEAT, MEMFD = (322, 319) if os.uname().machine == "x86_64" else (281, 279)
argv = (ctypes.c_char_p * 2)(b"id", None)
what = sys.argv[1]

def child(name, f):
    ctypes.set_errno(0)
    if os.fork() == 0:
        null = os.open("/dev/null", os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        try:
            f()
        except OSError as e:
            os._exit(100 if e.errno == errno.EACCES else 101)
        os._exit(100 if ctypes.get_errno() == errno.EACCES else 101)
    n = os.waitstatus_to_exitcode(os.wait()[1])
    if n != 100:
        print(name, n)

def at(fd):
    libc.syscall(EXECVEAT, fd, b"", argv, argv, 0x1000)

def memfd(flags):
    fd = libc.syscall(MEMFD, b"m", flags)
    if fd < 0:
        return None
    os.write(fd, open(what, "rb").read())
    return fd

def memory(flags, run):
    fd = memfd(flags)
    if fd is None:
        os._exit(100)
    run(fd)

def copy(where, link=False):
    path = where + "/copied"
    if link:
        os.symlink(what, path)
    else:
        with open(path, "wb") as f:
            f.write(open(what, "rb").read())
        os.chmod(path, 0o755)
    os.execv(path, ["id"])

def script(where):
    with open(where + "/s", "w") as f:
        f.write("#!%s\n" % what)
    os.chmod(where + "/s", 0o755)
    os.execv(where + "/s", ["s"])

def tmpfile():
    fd = os.open("/tmp", os.O_TMPFILE | os.O_RDWR, 0o755)
    os.write(fd, open(what, "rb").read())
    ro = os.open("/proc/self/fd/%d" % fd, os.O_RDONLY)
    os.close(fd)
    at(ro)

child("execve", lambda: os.execv(what, ["id"]))
child("execve with numbers that others guess", lambda: libc.syscall(59 if EXECVEAT == 322 else 221, what.encode(), argv, argv, 0, 1, 2))
child("execveat", lambda: at(os.open(what, os.O_RDONLY)))
child("by its descriptor", lambda: os.execv("/proc/self/fd/%d" % os.open(what, os.O_RDONLY), ["id"]))
for flags in (0, 1, 0x10):
    child("memfd %d" % flags, lambda: memory(flags, at))
    child("memfd %d by its name" % flags, lambda: memory(flags, lambda fd: os.execv("/proc/self/fd/%d" % fd, ["id"])))
fd = memfd(8)
if fd is not None:
    child("a memory file that is not executable", lambda: at(fd))
    os.close(fd)
for d in ["/tmp", "/dev/shm", "/task"] + sys.argv[2:]:
    child("copied to " + d, lambda: copy(d))
    os.unlink(d + "/copied")
    child("linked from " + d, lambda: copy(d, True))
    child("script in " + d, lambda: script(d))
child("unnamed file", tmpfile)
print("tried")
X2

for user in auto root; do
	may '["sh"]' --set "/identity/user=\"$user\"" --ro-bind "$T/ways.py" --bind "$T/w:/w" -- "$PY" "$T/ways.py" /usr/bin/id /w
	is "$rc $(out)" "0 tried" "what is not listed ($user): by no way"
	rm -f "$T/w/copied" "$T/w/s"
	may '[]' --set "/identity/user=\"$user\"" --ro-bind "$T/ways.py" --bind "$T/w:/w" -- "$PY" "$T/ways.py" /usr/bin/id /w
	is "$rc $(out)" "0 tried" "an empty list ($user): by no way"
	rm -f "$T/w/copied" "$T/w/s"
done
# That it can tell.
ks run --quiet --ro-bind "$T/ways.py" --bind "$T/w:/w" -- "$PY" "$T/ways.py" /usr/bin/id /w
like "$(out | grep -c .)" '^(1[5-9]|2[0-9])$' "without the word most of these ways lead there"
rm -f "$T/w/copied" "$T/w/s"

may '["sh","/usr/bin/id"]' -- "$PY" -c 'import subprocess as s; print(s.run("id -u; exec id -u", shell=True, capture_output=True, text=True).stdout.split())'
is "$rc $(out)" "0 ['1000', '1000']" "what is listed, by path and by name, and what that executes"
may '["sh"]' -- sh -c 'id'
is "$rc $(out)" "126 " "a program that is not listed, from a shell"
may '["sh"]' -- /usr/bin/id -u
is "$rc $(out)" "0 1000" "the task's own command need not be in the list"
may '["sh"]' --ro-bind "$T/ro" -- "$T/ro/script"
is "$rc $(out)" "0 script ran" "nor its interpreters, a script with another's loader"
may "[\"$T/ro/script\",\"sh\"]" --ro-bind "$T/ro" -- sh -c "$T/ro/script"
is "$rc $(out)" "0 script ran" "a script that is listed comes with its interpreters"
may '[]' -- "$PY" -c 'import ctypes; print(ctypes.CDLL(None).getpid() > 0)'
is "$rc $(out)" "0 True" "an empty list: the task's own command is executed"
may '[]' --bind "$T/w:/w" -- /w/id -u
is "$rc $(out)" "0 1000" "once, wherever it lies"

# Code at the addresses of the stub, to which the worker's filter allows its own calls.
if [ "$(uname -m)" = x86_64 ]; then
	cat >"$T/there.c" <<'X2'
#include <errno.h>
#include <stdio.h>
static char *argv[] = { "id", 0 };
static long same_call(long key)
{
	register long r10 __asm__("r10") = key;
	long r = 59;
	__asm__ volatile("syscall" : "+a"(r) : "D"("/usr/bin/id"), "S"(argv), "d"(argv), "r"(r10) : "rcx", "r11", "memory");
	return r;
}
int main(void)
{
	long a = same_call(0), b = same_call(1);
	return printf("%d %d %d\n", (unsigned long)main >> 16 == 0x5b4e, a == -EACCES, b == -EACCES) < 0;
}
X2
	if ${CC:-gcc} -O1 -no-pie -Wl,-Ttext-segment=0x5b4e0000 -o "$T/ro/there" "$T/there.c" 2>"$T/cc.err"; then
		for told in true false; do
			may '[]' --set /seccomp/explain=$told --ro-bind "$T/ro" -- "$T/ro/there"
			is "$rc $(out)" "0 1 1 1" "an empty list: nor by code where the stub's was (told: $told)"
		done
	else
		skip "no compiler here: $(head -n 1 "$T/cc.err")" "an empty list: nor by code where the stub's was"
	fi
else
	not_here "the stub's addresses are those of x86-64"
fi
printf '%s\n' '{"id":"a","argv":["sh","-c","exec id"]}' >"$T/tasks"
may '[]' --tasks "$T/tasks"
is "$(js "$T/out" 'L[0]["exit_code"], [(r["call"], r["allow"]) for r in L[0]["refused"]]')" "(126, [('execve', None)])" "the result names the call, and no rule that would allow it"

# A loader: what it may be given lies where nobody of the task's can write.
may '["sh"]' --bind "$T/w:/w" -- sh -c "cat </dev/null; $loader /w/id; cp /usr/bin/id /tmp/i; $loader /tmp/i"
unlike "$(out)" uid= "the loader maps nothing from where a task can write"
may '["sh"]' -- sh -c "$loader /usr/bin/id -u"
is "$(out)" 1000 "but what can be read elsewhere, as the manual says"
may '[]' -- sh -c "exec $loader /usr/bin/id"
is "$rc $(out)" "126 " "an empty list: not the loader either"
may '["sh"]' --bind "$T/w:/w" -- /w/id
is "$rc $(out)" "126 " "nor is a command of the task's own executed there"
printf '%s\n' '{"id":"a","argv":["/w/id"]}' '{"id":"b","argv":["/usr/bin/id"]}' >"$T/tasks"
may '["sh"]' --bind "$T/w:/w" --tasks "$T/tasks"
is "$(js "$T/out" 'sorted((l["id"], l["verdict"]) for l in L)')" "[('a', 'not-executable'), ('b', 'ok')]" "which its verdict says"
may '["sh"]' --set '/filesystem/mounts=[{"overlay":"'"$T/w"'","at":"/o"}]' -- /o/id
is "$rc $(out)" "126 " "nor in an overlay"

# What could not be kept is said.
may '["nosuchprogram"]' -- true
is "$rc" 125 "a program that is not there: refused"
like "$(err)" 'permissions/run.*nosuchprogram' "by its name"
may '["/w/id"]' --bind "$T/w:/w" -- true
is "$rc $(err | grep -c /w/id)" "125 1" "one that a task could write to: refused"
may '["a/b"]' -- true
is "$rc $(err | grep -c /permissions/run/0)" "125 1" "a relative path: refused"
may '["sh"]' --set '/landlock="off"' -- true
is "$rc $(err | grep -c /permissions/run)" "125 1" "without Landlock: refused"
left_after "permissions.run"
done_testing
