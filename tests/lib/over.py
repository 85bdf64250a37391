"""over.py [FROM AT]... -- COMMAND...: run it where FROM is seen at AT.

In a mount namespace of its own; an ordinary user's is below a user namespace that maps
him to himself. Ends with the command's status, or with 77: none is to be had here.
"""
import ctypes
import os
import sys

CLONE_NEWNS, CLONE_NEWUSER = 0x20000, 0x10000000
MS_BIND, MS_REC, MS_PRIVATE = 0x1000, 0x4000, 0x40000
libc = ctypes.CDLL(None, use_errno=True)


def check(result, what):
    if result != 0:
        sys.stderr.write("over.py: %s: %s\n" % (what, os.strerror(ctypes.get_errno())))
        sys.exit(77)


def mount(source, at, flags):
    check(libc.mount(source.encode(), at.encode(), None, ctypes.c_ulong(flags), None), at)


end = sys.argv.index("--")
pairs, command = sys.argv[1:end], sys.argv[end + 1:]
uid, gid = os.geteuid(), os.getegid()
check(libc.unshare(CLONE_NEWNS if uid == 0 else CLONE_NEWNS | CLONE_NEWUSER), "unshare")
if uid != 0:
    for name, text in (("setgroups", "deny"), ("uid_map", "%d %d 1" % (uid, uid)),
                       ("gid_map", "%d %d 1" % (gid, gid))):
        with open("/proc/self/" + name, "w") as f:
            f.write(text)
mount("none", "/", MS_REC | MS_PRIVATE)
for source, at in zip(pairs[::2], pairs[1::2]):
    mount(source, at, MS_BIND)
os.execvp(command[0], command)
