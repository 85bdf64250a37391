"""runc_docker.py run|exec|stop|rm|logs|inspect|volume rm ...: the conditions of `docker run`, made by runc.

There is no dockerd on most machines that run tests, but what it gives to a container is
known and small: capabilities, a profile of system calls, mounts, covers over /proc, ids,
limits. A command line of docker's is taken word by word and becomes a bundle; an option
that is not known here is an error. The image is this machine's /usr and the program.

In the folder $KNIT_RUNC; the program is $KNIT_PROGRAM. tests/lib/runc_pod.py gives its own.
"""
import json
import os
import resource
import select
import shutil
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
CAPS = ["CHOWN", "DAC_OVERRIDE", "FSETID", "FOWNER", "MKNOD", "NET_RAW", "SETGID", "SETUID", "SETFCAP", "SETPCAP",
        "NET_BIND_SERVICE", "SYS_CHROOT", "KILL", "AUDIT_WRITE"]
MASKED = ["/proc/asound", "/proc/acpi", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/timer_list",
          "/proc/timer_stats", "/proc/sched_debug", "/proc/scsi", "/sys/firmware"]
READONLY = ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"]
MAP_FROM, MAP_N = 300000, 65536
UNITS = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def size(text):
    unit = UNITS.get(text[-1:].lower())
    return int(text[:-1]) * unit if unit else int(text)


def docker_profile(caps):
    """Docker's own format (tests/profiles) as a runtime takes it."""
    d = json.load(open(HERE + "/../profiles/docker-20.10.json"))
    arch = {"x86_64": "amd64", "aarch64": "arm64"}.get(os.uname().machine)

    def holds(c, every):
        tests = [x in caps for x in c.get("caps", [])] + [arch in c.get("arches", [])] * ("arches" in c)
        return (all if every else any)(tests)

    calls = []
    for e in d["syscalls"]:
        if holds(e.get("includes", {}), True) and not holds(e.get("excludes", {}), False):
            calls.append({k: v for k, v in e.items() if k in ("names", "action", "args", "errnoRet") and v is not None})
    machine = [a for a in d["archMap"] if a["architecture"].endswith(os.uname().machine.upper())]
    return {"defaultAction": d["defaultAction"], "defaultErrnoRet": d.get("defaultErrnoRet", 1),
            "architectures": [m["architecture"] for m in machine] + [s for m in machine for s in m["subArchitectures"] or []],
            "syscalls": calls}


class Container:
    """What `docker run` without options is."""

    def __init__(self):
        self.name, self.argv, self.env = "knit-%d" % os.getpid(), [], {}
        self.entry = ["/knit/knit-sandbox"]
        self.user = (0, 0)
        self.caps = ["CAP_" + c for c in CAPS]
        self.profile, self.no_new_privs = "docker", False
        self.covered, self.readonly, self.cgroup_rw = True, False, False
        self.not_known = ()  # keys of a profile that the engine passes over
        self.userns = False
        self.memory = self.pids = None
        self.rlimits, self.mounts = {}, []
        self.detach = self.remove = False
        self.marker = "/.dockerenv"

    def rootfs(self, d):
        top = d + "/rootfs"
        for sub in "usr tmp proc dev sys etc knit run/knit run/secrets".split():
            os.makedirs(top + "/" + sub, exist_ok=True)
        for sub in ("bin", "lib", "lib64", "sbin"):
            os.symlink("usr/" + sub, top + "/" + sub)
        os.chmod(top + "/tmp", 0o1777)
        shutil.copy(os.environ["KNIT_PROGRAM"], top + "/knit/knit-sandbox")
        for path, at, _ in self.mounts:
            os.makedirs(os.path.dirname(top + at), exist_ok=True)
            if path and not os.path.isdir(path):
                open(top + at, "w").close()
            else:
                os.makedirs(top + at, exist_ok=True)
        if self.marker:
            open(top + self.marker, "w").close()
        with open(top + "/etc/passwd", "w") as f:
            f.write("root:x:0:0::/:/bin/sh\n")
        os.chown(top + "/run/knit", 1000, 1000)
        if self.userns:
            for p, ds, fs in os.walk(top):
                for n in [""] + ds + fs:
                    st = os.lstat(os.path.join(p, n))
                    if st.st_uid < MAP_FROM:
                        os.lchown(os.path.join(p, n), st.st_uid + MAP_FROM, st.st_gid + MAP_FROM)

    def seccomp(self):
        if self.profile == "unconfined":
            return None
        if self.profile == "docker":
            return docker_profile(self.caps)
        return {k: v for k, v in json.load(open(self.profile)).items() if k not in self.not_known}

    def config(self):
        def mount(at, kind, *options, source=None):
            return {"destination": at, "type": kind, "source": source or kind, "options": list(options)}

        mounts = [
            mount("/proc", "proc", "nosuid", "noexec", "nodev"),
            mount("/dev", "tmpfs", "nosuid", "strictatime", "mode=755", "size=65536k"),
            mount("/dev/pts", "devpts", "nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620"),
            mount("/sys", "sysfs", "nosuid", "noexec", "nodev", "ro"),
            mount("/sys/fs/cgroup", "cgroup", "nosuid", "noexec", "nodev", *([] if self.cgroup_rw else ["ro"])),
            mount("/dev/shm", "tmpfs", "nosuid", "noexec", "nodev", "mode=1777", "size=67108864"),
            mount("/usr", "bind", "rbind", "ro", source="/usr")]
        for path, at, options in self.mounts:
            mounts.append(mount(at, "bind", "rbind", *options, source=path) if path else mount(at, "tmpfs", *options))
        spaces = ["pid", "ipc", "uts", "mount", "network", "cgroup"] + ["user"] * self.userns
        env = dict(PATH="/knit:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", **self.env)
        # Who is not root has none, but for what root may take up again.
        caps = {"bounding": self.caps}
        if self.user[0] == 0:
            caps.update({s: self.caps for s in ("effective", "permitted")})
        linux = {"namespaces": [{"type": s} for s in spaces],
                 "maskedPaths": MASKED if self.covered else [], "readonlyPaths": READONLY if self.covered else [],
                 "resources": {"devices": [{"allow": False, "access": "rwm"}]}}
        if self.userns:
            for kind in ("uidMappings", "gidMappings"):
                linux[kind] = [{"containerID": 0, "hostID": MAP_FROM, "size": MAP_N}]
        if self.memory:
            linux["resources"]["memory"] = {"limit": self.memory, "swap": self.memory}
        if self.pids:
            linux["resources"]["pids"] = {"limit": self.pids}
        if self.seccomp():
            linux["seccomp"] = self.seccomp()
        return {"ociVersion": "1.0.2", "hostname": "container", "root": {"path": "rootfs", "readonly": self.readonly},
                "process": {"terminal": False, "cwd": "/", "args": self.entry + self.argv,
                            "user": {"uid": self.user[0], "gid": self.user[1]}, "capabilities": caps,
                            "env": ["%s=%s" % i for i in env.items()], "noNewPrivileges": self.no_new_privs,
                            "rlimits": [{"type": "RLIMIT_" + k.upper(), "soft": v, "hard": v}
                                        for k, v in self.rlimits.items()]},
                "mounts": mounts, "linux": linux}


def image_word(word):
    """What the Containerfile says of ENTRYPOINT or CMD."""
    for line in open(HERE + "/../../deploy/Containerfile"):
        if line.startswith(word + " ["):
            return json.loads(line[len(word):])
    sys.exit("runc_docker.py: no %s in the Containerfile" % word)


def state():
    return os.environ["KNIT_RUNC"]


def runc(*argv, **how):
    return subprocess.call(["runc", "--root", state() + "/state"] + list(argv), **how)


def start(c):
    """Status of the container, or of its start if it is detached."""
    d = state() + "/" + c.name
    shutil.rmtree(d, ignore_errors=True)
    os.makedirs(d)
    os.chmod(d, 0o755)
    c.rootfs(d)
    with open(d + "/config.json", "w") as f:
        json.dump(c.config(), f)
    if not c.detach:
        rc = runc("run", "-b", d, c.name)
        shutil.rmtree(d, ignore_errors=True)
        return rc
    with open(d + "/log", "wb") as log:
        rc = runc("run", "--detach", "--pid-file", d + "/pid", "-b", d, c.name, stdin=subprocess.DEVNULL, stdout=log,
                  stderr=log)
    if rc:
        sys.stderr.write(open(d + "/log").read())
    else:
        print(c.name)
    return rc


def security(c, text):
    word, _, value = text.partition("=")
    if text in ("no-new-privileges", "no-new-privileges=true"):
        c.no_new_privs = True
    elif word == "seccomp":
        c.profile = value
    elif text == "apparmor=unconfined":
        pass  # runc gives a profile only where it is asked for one
    elif text == "systempaths=unconfined":
        c.covered = False
    elif text == "writable-cgroups=true":
        c.cgroup_rw = True
    else:
        sys.exit("docker run: --security-opt %s: not known here" % text)


def mount(c, text):
    v = dict(w.partition("=")[::2] for w in text.split(","))
    options = ["ro"] if "readonly" in v else ["rw"]
    source = v["source"]
    if v["type"] == "volume":
        source = "%s/volume-%s" % (state(), source)
        if not os.path.isdir(source):
            os.makedirs(source)
            os.chown(source, 1000, 1000)  # as the image's folder is
    elif v["type"] != "bind" or not os.path.exists(source):
        sys.exit("docker run: --mount %s" % text)
    c.mounts.append((os.path.abspath(source), v["target"], options))


def docker_run(argv):
    c = Container()
    c.not_known = ("defaultErrnoRet",)  # as of 20.10: what no entry names is refused with EPERM
    same = {"--ipc": ("private",), "--cgroupns": ("private",), "--network": ("none", "bridge"), "--cap-drop": ("ALL",)}
    while argv and argv[0].startswith("-"):
        o = argv.pop(0)
        if o in ("--rm", "--interactive", "-i"):
            continue
        if o in ("--detach", "-d"):
            c.detach = True
            continue
        if o == "--read-only":
            c.readonly = True
            continue
        v = argv.pop(0)
        if o in same:
            if v not in same[o]:
                sys.exit("docker run: %s %s: not known here" % (o, v))
            c.caps = [] if o == "--cap-drop" else c.caps
        elif o == "--security-opt":
            security(c, v)
        elif o == "--mount":
            mount(c, v)
        elif o == "--tmpfs":
            at, _, options = v.partition(":")
            c.mounts.append((None, at, ["noexec", "nosuid", "nodev", "mode=1777"] + options.split(",") * bool(options)))
        elif o == "--ulimit":
            name, n = v.split("=")
            # dockerd may raise them; who runs tests may not.
            hard = resource.getrlimit(getattr(resource, "RLIMIT_" + name.upper()))[1]
            c.rlimits[name] = int(n) if hard == resource.RLIM_INFINITY else min(int(n), hard)
        elif o == "--user":
            c.user = tuple(map(int, (v + ":" + v.split(":")[0]).split(":")[:2])) if ":" in v else (int(v), 0)
        elif o == "--memory":
            c.memory = size(v)
        elif o == "--pids-limit":
            c.pids = int(v)
        elif o == "--name":
            c.name = v
        elif o == "--entrypoint":
            c.entry = [v]
        elif o not in ("--memory-swap", "--stop-timeout", "--hostname"):
            sys.exit("docker run: %s: not known here" % o)
    c.argv = argv[1:] or image_word("CMD")
    return start(c)


def main(argv):
    verb, argv = argv[0], argv[1:]
    if verb == "run":
        return docker_run(argv)
    if verb == "exec":
        argv = [a for i, a in enumerate(argv) if i or a not in ("-i", "--interactive")]
        c = json.load(open("%s/%s/config.json" % (state(), argv[0])))["process"]
        user = "%d:%d" % (c["user"]["uid"], c["user"]["gid"])
        return runc("exec", "--user", user, *argv)
    name = argv[-1]
    d = "%s/%s" % (state(), name)
    if verb == "inspect" and argv[:-1] == ["--format", "{{.State.Running}}"]:
        got = subprocess.run(["runc", "--root", state() + "/state", "state", name], capture_output=True, text=True)
        if got.returncode == 0:
            print("true" if json.loads(got.stdout)["status"] == "running" else "false")
        return got.returncode
    if verb == "volume" and argv[0] == "rm":
        shutil.rmtree("%s/volume-%s" % (state(), name))
        return 0
    if verb == "logs":
        sys.stdout.write(open(d + "/log").read())
        return 0
    if verb == "stop":
        pid = int(open(d + "/pid").read())
        fd = os.pidfd_open(pid)
        signal.pidfd_send_signal(fd, signal.SIGTERM)
        gone = select.select([fd], [], [], 90)[0]
        print(name if gone else "it did not stop")
        return 0 if gone else 1
    if verb == "rm":
        rc = runc("delete", "--force", name, stderr=subprocess.DEVNULL)
        for _ in range(100):
            if not os.path.exists("%s/state/%s" % (state(), name)):
                break
            time.sleep(0.1)
        shutil.rmtree(d, ignore_errors=True)
        print(name)
        return rc
    sys.exit("docker %s: not known here" % verb)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
