"""userns.py [--mount] COMMAND...: run it as root of a new user namespace.

As root all ids are mapped to themselves, else the caller's to 0. --mount adds a mount
namespace of its own, private. Exits with the command's status.
"""
import ctypes
import os
import sys

CLONE_NEWNS, CLONE_NEWUSER = 0x20000, 0x10000000
MS_REC_PRIVATE = 0x4000 | 0x40000
libc = ctypes.CDLL(None, use_errno=True)


def check(result, what):
    if result != 0:
        e = ctypes.get_errno()
        sys.exit("userns.py: %s: %s" % (what, os.strerror(e)))


args = sys.argv[1:]
mount = args[:1] == ["--mount"]
if mount:
    args = args[1:]
uid, gid = os.getuid(), os.getgid()
ready, go = os.pipe(), os.pipe()
me = os.getpid()
if os.fork() == 0:
    # Writes the maps of its parent from outside the new namespace.
    os.read(ready[0], 1)
    if uid == 0:
        maps = (("uid_map", "0 0 4294967295"), ("gid_map", "0 0 4294967295"))
    else:
        maps = (("setgroups", "deny"), ("uid_map", "0 %d 1" % uid), ("gid_map", "0 %d 1" % gid))
    try:
        for name, text in maps:
            with open("/proc/%d/%s" % (me, name), "w") as f:
                f.write(text)
        os.write(go[1], b"y")
    except OSError as e:
        sys.stderr.write("userns.py: %s: %s\n" % (name, e.strerror))
    os._exit(0)
check(libc.unshare(CLONE_NEWUSER), "unshare a user namespace")
os.close(go[1])
os.write(ready[1], b"x")
if os.read(go[0], 1) != b"y":
    sys.exit("userns.py: no id map")
os.wait()
os.setresgid(0, 0, 0)
os.setresuid(0, 0, 0)
if mount:
    check(libc.unshare(CLONE_NEWNS), "unshare a mount namespace")
    check(libc.mount(b"none", b"/", None, MS_REC_PRIVATE, None), "make / private")
for fd in (ready[0], ready[1], go[0]):
    os.close(fd)
os.execvp(args[0], args)
