"""attempts.py: inside a sandbox: try what no task may do, and print what succeeded.

One line a success, nothing if all was refused. Each is asked of the kernel by its number, so
that no library is in between. HOST in the environment names a file of the caller that must
not be there; MORE has names of further attempts, which only some policies refuse.
"""
import ctypes
import os
import socket
import sys

if os.getuid() == 0:
    sys.exit("attempts.py: not as root: outside of a sandbox some of it would come true")
libc = ctypes.CDLL(None, use_errno=True)
X86 = dict(ptrace=101, process_vm_readv=310, mount=165, umount2=166, pivot_root=155, chroot=161, unshare=272,
           setns=308, keyctl=250, bpf=321, perf_event_open=298, io_uring_setup=425, userfaultfd=323,
           open_by_handle_at=304, pidfd_getfd=438, kexec_load=246, init_module=175, reboot=169, swapon=167,
           settimeofday=164, sethostname=170, mknod=133, personality=135, acct=163, syslog=103, fsopen=430,
           memfd_secret=447, modify_ldt=154, ioperm=173, vmsplice=278, remap_file_pages=216)
ARM = dict(ptrace=117, process_vm_readv=270, mount=40, umount2=39, pivot_root=41, chroot=51, unshare=97,
           setns=268, keyctl=219, bpf=280, perf_event_open=241, io_uring_setup=425, userfaultfd=282,
           open_by_handle_at=265, pidfd_getfd=438, kexec_load=104, init_module=105, reboot=142, swapon=224,
           settimeofday=170, sethostname=161, personality=92, acct=89, syslog=116, fsopen=430, memfd_secret=447,
           vmsplice=75, remap_file_pages=234)
NR = X86 if os.uname().machine == "x86_64" else ARM


def call(name, *args):
    if name not in NR:
        return False
    return libc.syscall(NR[name], *[ctypes.c_void_p(a) if isinstance(a, int) else a for a in args]) >= 0


def opens(path, how=os.O_RDONLY):
    os.close(os.open(path, how, 0o600))
    return True


def sends(family, kind, to):
    with socket.socket(family, kind) as s:
        s.settimeout(0.2)
        s.connect(to)
    return True


def makes(family, kind):
    socket.socket(family, kind).close()
    return True


def forks():
    if os.fork() == 0:
        os._exit(0)
    os.wait()
    return True


def pairs():
    for s in socket.socketpair():
        s.close()
    return True


ALWAYS = {
    "a socket to the network": lambda: makes(socket.AF_INET, socket.SOCK_STREAM),
    "datagrams of IPv6": lambda: makes(socket.AF_INET6, socket.SOCK_DGRAM),
    "raw packets": lambda: makes(socket.AF_PACKET, socket.SOCK_RAW),
    "netlink": lambda: makes(socket.AF_NETLINK, socket.SOCK_RAW),
    "an abstract socket of the host": lambda: sends(socket.AF_UNIX, socket.SOCK_STREAM, "\0knit-no-such"),
    "a file of the caller": lambda: opens(os.environ["HOST"]),
    "the caller's home": lambda: bool(os.listdir("/root") if os.path.isdir("/root") else 0),
    "shadow": lambda: opens("/etc/shadow"),
    "the environment of process 1": lambda: opens("/proc/1/environ"),
    "memory of process 1": lambda: opens("/proc/1/mem", os.O_RDWR),
    "writing to /usr": lambda: opens("/usr/knit-x", os.O_CREAT | os.O_WRONLY),
    "writing to /etc": lambda: opens("/etc/knit-x", os.O_CREAT | os.O_WRONLY),
    "writing to /": lambda: opens("/knit-x", os.O_CREAT | os.O_WRONLY),
    "writing to /dev": lambda: opens("/dev/knit-x", os.O_CREAT | os.O_WRONLY),
    "a setting of the kernel": lambda: opens("/proc/sys/kernel/core_pattern", os.O_WRONLY),
    "more user namespaces": lambda: call("unshare", 0x10000000),
    "a mount namespace": lambda: call("unshare", 0x20000),
    "a mount": lambda: call("mount", b"none", b"/tmp", b"tmpfs", 0, 0),
    "a mount by its new names": lambda: call("fsopen", b"tmpfs", 0),
    "taking down a mount": lambda: call("umount2", b"/proc", 2),
    "another root": lambda: call("pivot_root", b"/tmp", b"/tmp") or call("chroot", b"/tmp"),
    "tracing": lambda: call("ptrace", 16, 1, 0, 0),
    "reading a process's memory": lambda: call("process_vm_readv", os.getpid(), 0, 0, 0, 0, 0),
    "another's descriptor": lambda: call("pidfd_getfd", 0, 0, 0),
    "namespaces of others": lambda: call("setns", 0, 0),
    "keys": lambda: call("keyctl", 0, -3 & 0xFFFFFFFF, 1),
    "programs in the kernel": lambda: call("bpf", 0, b"\0" * 72, 72),
    "performance counters": lambda: call("perf_event_open", b"\0" * 128, 0, -1, -1, 0),
    "io_uring": lambda: call("io_uring_setup", 1, b"\0" * 120),
    "userfaultfd": lambda: call("userfaultfd", 1),
    "16-bit segments": lambda: call("modify_ldt", 0, b"\0" * 64, 64),
    "ports": lambda: call("ioperm", 0x80, 1, 1),
    "secret memory": lambda: call("memfd_secret", 0),
    "pages given away": lambda: call("vmsplice", 1, 0, 0, 0),
    "executable data": lambda: call("personality", 0x0400000),
    "a device": lambda: call("mknod", b"/tmp/dev", 0o20666, 0x103),
    "the clock": lambda: call("settimeofday", b"\0" * 16, 0),
    "the host's name": lambda: call("sethostname", b"x", 1),
    "accounting": lambda: call("acct", 0),
    "the kernel's log": lambda: call("syslog", 3, ctypes.create_string_buffer(16), 16),
    "a restart": lambda: call("reboot", 0, 0, 0, 0),
    "swap": lambda: call("swapon", b"/tmp/x", 0),
    "another uid": lambda: os.setresuid(0, 0, 0) is None,
    "a set-user-id file": lambda: os.chmod("/tmp", 0o4777) is None,
    "real time": lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1)) is None,
    "the stub's limits": lambda: libc.prlimit(1, 7, b"\1" + b"\0" * 15, None) == 0,
}
SOME = {
    "fork": forks,
    "socketpair": pairs,
    "unix": lambda: makes(socket.AF_UNIX, socket.SOCK_STREAM),
    "chown": lambda: os.chown("/task", os.getuid(), os.getgid()) is None,
    "create": lambda: opens("/task/new", os.O_CREAT | os.O_WRONLY),
    "write": lambda: opens("/tmp", os.O_TMPFILE | os.O_RDWR),
    "mkdir": lambda: os.mkdir("/task/dir") is None,
    "memfd": lambda: os.close(os.memfd_create("x")) is None,
    "inotify": lambda: libc.inotify_init1(0) >= 0,
    "sync": lambda: libc.syncfs(1) == 0,
    "shmget": lambda: libc.shmget(0, 4096, 0o1600) >= 0,
    "kill": lambda: os.kill(os.getpid(), 0) is None,
}
what = dict(ALWAYS)
for name in os.environ.get("MORE", "").split():
    what[name] = SOME[name]
for name, attempt in what.items():
    try:
        if attempt():
            print(name)
    except OSError:
        pass
print("%d attempts" % len(what))
