"""seccomp."""

def numbers():
    return {"x86_64": dict(getpriority=140, io_setup=206, ioprio_get=252),
            "aarch64": dict(getpriority=141, io_setup=0, ioprio_get=31)}.get(
                os.uname().machine) or {}


def nr(name):
    n = numbers().get(name)
    if n is None:
        raise NotHere("no table of numbers for this machine")
    return n


def where_no_filter_is_around():
    with open("/proc/self/status") as f:
        if not any(re.match(r"Seccomp:\s*0$", line) for line in f):
            raise NotHere("a filter around us refuses it first")


def errno_of(policy, name, *args):
    """What a call fails with inside; 0: it does not."""
    code = ("import ctypes\nc = ctypes.CDLL(None, use_errno=True)\nr = c.syscall(%s)\nprint(ctypes.get_errno() if r == -1 else 0)"
            % ", ".join(str(x) for x in (nr(name), *args)))
    r = py(policy, code)
    if not re.match(r"\d+$", r.out):
        raise Failed(repr(r))
    return int(r.out)


def seccomp(**members):
    return doc(seccomp=members)


def rule(**members):
    return seccomp(rules=[dict({"names": ["getpriority"], "action": "SCMP_ACT_ERRNO"}, **members)])


def is_errno(policy, want_errno, *call):
    got = errno_of(policy, *call)
    if got != want_errno:
        raise Failed("%s: errno %d, want %d" % (call, got, want_errno))


@key("/seccomp/groups/add", "/seccomp/groups/add/*")
def a_group_is_added():
    where_no_filter_is_around()
    got = errno_of(seccomp(groups={"add": ["@aio"]}), "io_setup", 0, 0)
    want(got not in (38, 1), got)


@key("/seccomp/groups/remove", "/seccomp/groups/remove/*")
def a_group_is_removed():
    is_errno(seccomp(groups={"remove": ["@resources"]}), 38, "ioprio_get", 1, 0)


@key("/seccomp/groups/replace", "/seccomp/groups/replace/*")
def groups_are_replaced():
    p = seccomp(groups={"replace": ["@default", "@basic-io", "@file-system", "@ioctl", "@signal", "@process"]})
    is_errno(p, 38, "ioprio_get", 1, 0)


@key("/seccomp/rules", "/seccomp/rules/*", "/seccomp/rules/*/names", "/seccomp/rules/*/names/*",
     "/seccomp/rules/*/action")
def a_rule_refuses():
    is_errno(rule(), 1, "getpriority", 0, 0)


@key("/seccomp/rules/*/errnoRet")
def a_rule_says_how():
    is_errno(rule(errnoRet=42), 42, "getpriority", 0, 0)


def arg(**members):
    return rule(errnoRet=42, args=[dict({"index": 1, "value": 77, "op": "SCMP_CMP_EQ"}, **members)])


@key("/seccomp/rules/*/args", "/seccomp/rules/*/args/*")
def a_rule_has_conditions():
    is_errno(arg(), 0, "getpriority", 0, 0)


@key("/seccomp/rules/*/args/*/index", "/seccomp/rules/*/args/*/value")
def a_condition_is_about_one_argument_and_value():
    is_errno(arg(), 42, "getpriority", 0, 77)


@key("/seccomp/rules/*/args/*/op")
def a_condition_compares():
    is_errno(arg(op="SCMP_CMP_GT"), 0, "getpriority", 0, 0)


@key("/seccomp/rules/*/args/*/valueTwo")
def a_condition_compares_under_a_mask():
    is_errno(arg(op="SCMP_CMP_MASKED_EQ", value=0xff, valueTwo=7), 42, "getpriority", 0, 0x107)


@key("/seccomp/default/action")
def what_nothing_names_may_kill():
    p = seccomp(default={"action": "SCMP_ACT_KILL_PROCESS"})
    r = batch(p, [task("a", "/usr/bin/python3", "-S", "-c", "import ctypes; ctypes.CDLL(None).syscall(%d, 0, 0)" % nr("io_setup"))])
    want(r.by["a"]["verdict"] == "denied", r)


@key("/seccomp/default/errnoRet")
def what_nothing_names_fails_with():
    where_no_filter_is_around()
    is_errno(seccomp(default={"action": "SCMP_ACT_ERRNO", "errnoRet": 99}), 99, "io_setup", 0, 0)


@key("/seccomp/profile")
def a_profile_decides():
    p = seccomp(profile={"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [
        {"names": ["getpriority"], "action": "SCMP_ACT_ERRNO", "errnoRet": 43}]})
    is_errno(p, 43, "getpriority", 0, 0)


@key("/seccomp/explain")
def refused_calls_are_told():
    where_no_filter_is_around()
    r = batch(seccomp(explain=True), [task("a", "/usr/bin/python3", "-S", "-c",
                                           "import ctypes; ctypes.CDLL(None).syscall(%d, 0, 0)" % nr("io_setup"))])
    want([x["call"] for x in r.by["a"].get("refused", [])] == ["io_setup"], r)


@key("/seccomp/architectures", "/seccomp/architectures/*")
def calls_of_another_abi_where_it_is_named():
    if os.uname().machine != "x86_64":
        raise NotHere("another machine")
    # exit(7) by int 0x80, in the smallest of ELF files
    code = b"\xb8\x01\x00\x00\x00\xbb\x07\x00\x00\x00\xcd\x80"
    base = 0x08048000
    elf = (b"\x7fELF\x01\x01\x01" + b"\0" * 9 + (2).to_bytes(2, "little") + (3).to_bytes(2, "little")
           + (1).to_bytes(4, "little") + (base + 84).to_bytes(4, "little") + (52).to_bytes(4, "little") + b"\0" * 8
           + b"\x34\0\x20\0\x01\0\0\0\0\0\0\0" + (1).to_bytes(4, "little") + (0).to_bytes(4, "little")
           + base.to_bytes(4, "little") * 2 + (96).to_bytes(4, "little") * 2 + (5).to_bytes(4, "little")
           + (4096).to_bytes(4, "little") + code)
    d = dir_of()
    with open(d + "/x", "wb") as f:
        f.write(elf)
    os.chmod(d + "/x", 0o755)
    if subprocess.run([d + "/x"]).returncode != 7:
        raise NotHere("a kernel without i386 programs")
    r = run(doc(seccomp={"architectures": ["SCMP_ARCH_X86"]}, filesystem={"mounts": [{"bind": d, "at": "/in"}]}), "/in/x")
    want(r.rc == 7, r)


@key("/seccomp/explain")
def a_refused_call_is_told():
    p = doc(seccomp={"explain": True, "rules": [{"names": ["getpriority"], "action": "SCMP_ACT_ERRNO", "errnoRet": 42}]})
    r = batch(p, [task("a", "/usr/bin/python3", "-S", "-c", "import ctypes; ctypes.CDLL(None).syscall(%d, 0, 0)" % nr("getpriority"))])
    want(any(x["call"] == "getpriority" for x in r.by["a"].get("refused", [])), r)


@key("/capabilities", "/capabilities/*")
def a_capability_is_refused_with_the_reason():
    for name, why in (("CAP_SYS_ADMIN", "undo its cell"), ("CAP_NET_BIND_SERVICE", "change nothing"),
                      ("CAP_DAC_OVERRIDE", "filesystem.deny"), ("CAP_CHWN", "CAP_CHOWN")):
        r = run(doc(capabilities=[name]), "true")
        want(r.rc == 125 and "/capabilities/0: " in r.err and name in r.err and why in r.err, r)


@key("/capabilities")
def an_empty_list_is_what_a_task_has():
    r = sh(doc(capabilities=[], identity={"user": "root"}), "grep ^Cap /proc/self/status; chown 5 /task 2>&1")
    want(re.findall("^Cap.*", r.out, re.M) and not re.search("^Cap.*[1-9a-f]$", r.out, re.M) and "chown: " in r.out, r)
