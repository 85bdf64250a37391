"""refuse.py [--openat2] COMMAND...: run it under a system call filter like the one of a container.

What Docker's default profile refuses to who has no capability: unshare, mount and its
like, clone with the bits of namespaces, keyctl give EPERM, clone3 gives ENOSYS. x86-64 and
arm64; no_new_privs is set only where the kernel demands it.

--openat2: like that of systemd's RestrictSUIDSGID=, as far as it concerns who sets no such
bit: openat2 gives ENOSYS, since its mode lies in memory, and all else is let through.
"""
import ctypes
import os
import struct
import sys

libc = ctypes.CDLL(None, use_errno=True)
machine = os.uname().machine
if machine == "x86_64":
    refused = {272, 308, 165, 166, 155, 161, 250, 428, 429, 430, 431, 432, 442}
    clone, clone3 = 56, 435
elif machine == "aarch64":
    refused = {97, 268, 40, 39, 41, 51, 219, 428, 429, 430, 431, 432, 442}
    clone, clone3 = 220, 435
else:
    sys.exit("refuse.py: no numbers for " + machine)
NAMESPACES = 0x7E020000
LD, JEQ, JSET, RET = 0x20, 0x15, 0x45, 0x06
ALLOW, ERRNO = 0x7FFF0000, 0x00050000
EPERM, ENOSYS = 1, 38

OPENAT2 = 437  # on all machines
command = sys.argv[1:]
code = [(LD, 0, 0, 0)]
if command[0] == "--openat2":
    command.pop(0)
    code += [(JEQ, 0, 1, OPENAT2), (RET, 0, 0, ERRNO | ENOSYS), (RET, 0, 0, ALLOW)]
for nr in sorted(refused):
    code += [(JEQ, 0, 1, nr), (RET, 0, 0, ERRNO | EPERM)]
code += [(JEQ, 0, 1, clone3), (RET, 0, 0, ERRNO | ENOSYS)]
code += [(JEQ, 0, 3, clone), (LD, 0, 0, 16), (JSET, 0, 1, NAMESPACES), (RET, 0, 0, ERRNO | EPERM)]
code += [(RET, 0, 0, ALLOW)]
text = b"".join(struct.pack("HBBI", *c) for c in code)
buf = ctypes.create_string_buffer(text, len(text))


class Prog(ctypes.Structure):
    _fields_ = [("n", ctypes.c_ushort), ("p", ctypes.c_void_p)]


prog = Prog(len(code), ctypes.cast(buf, ctypes.c_void_p))
if libc.prctl(22, 2, ctypes.byref(prog), 0, 0) != 0:
    libc.prctl(38, 1, 0, 0, 0)
    if libc.prctl(22, 2, ctypes.byref(prog), 0, 0) != 0:
        sys.exit("refuse.py: no filter can be had: " + os.strerror(ctypes.get_errno()))
os.execvp(command[0], command)
