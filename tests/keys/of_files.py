"""filesystem, environment, identity, network, layers."""


def dir_of(*files):
    """A folder that a worker's user can reach."""
    d = tempfile.mkdtemp(dir=os.environ["T"])
    os.chmod(d, 0o777)
    for f in files:
        with open(d + "/" + f, "w") as h:
            h.write(f + "\n")
        os.chmod(d + "/" + f, 0o644)
    return d


def fs(**members):
    return doc(filesystem=members)


def mounts(*m):
    return fs(mounts=list(m))


@key("/filesystem/root")
def the_system_is_there():
    r = run(doc(filesystem={"root": "system"}), "/bin/true")
    want(r.rc == 0, r)


@key("/filesystem/root")
def or_nothing_is():
    r = run(doc(extends="default", filesystem={"root": "empty"}), "/bin/true")
    want(r.rc == 127, r)


@key("/filesystem/mounts", "/filesystem/mounts/*", "/filesystem/mounts/*/bind")
def a_bind_is_shown():
    r = sh(mounts({"bind": dir_of("there"), "at": "/in"}), "cat /in/there")
    want(r.out == "there\n", r)


@key("/filesystem/mounts/*/at")
def a_bind_is_shown_elsewhere():
    d = dir_of("there")
    r = sh(mounts({"bind": d, "at": "/else"}), "ls /else; ls %s" % d)
    want(r.out == "there\n" and r.rc != 0, r)


@key("/filesystem/mounts/*/mode")
def a_bind_is_written_where_the_policy_says_so():
    d = dir_of()
    r = sh(mounts({"bind": d, "at": "/in", "mode": "rw"}), "echo x >/in/new")
    want(r.rc == 0 and os.path.exists(d + "/new"), r)


@key("/filesystem/mounts/*/dir")
def an_empty_directory_is_made():
    r = sh(mounts({"dir": "/empty"}), "ls -A /empty && echo there")
    want(r.out == "there\n", r)


@key("/filesystem/mounts/*/symlink")
def a_link_is_made():
    r = sh(mounts({"symlink": "usr/share", "at": "/link"}), "readlink /link")
    want(r.out == "usr/share\n", r)


@key("/filesystem/mounts/*/tmpfs", "/filesystem/mounts/*/size")
def a_tmpfs_has_a_size():
    r = sh(mounts({"tmpfs": "/tmp", "size": "1M"}), "head -c 3000000 /dev/zero >/tmp/f; wc -c </tmp/f")
    want(r.out == "1048576\n", r)


@key("/filesystem/mounts/*/inodes")
def a_tmpfs_has_so_many_files():
    r = py(mounts({"tmpfs": "/tmp", "size": "1M", "inodes": 50}),
           "n = 0\ntry:\n  for n in range(200): open('/tmp/f%d' % n, 'w').close()\nexcept OSError as e: print(n < 50, e.errno)")
    want(r.out == "True 28\n", r)


@key("/filesystem/task_paths", "/filesystem/task_paths/*")
def a_task_line_may_name_a_path():
    d = dir_of("file")
    r = batch(fs(task_paths=[d]), [script("a", "cat f", files={"f": {"path": d + "/file"}})])
    want(r.by["a"].get("stdout") == "file\n", r)


@key("/filesystem/read", "/filesystem/read/*")
def what_is_read_is_shown():
    d = dir_of("there")
    r = sh(fs(read=[d]), "cat %s/there && ! touch %s/new" % (d, d))
    want(r.out == "there\n" and r.rc == 0, r)


@key("/filesystem/write", "/filesystem/write/*")
def what_is_written_is_shown_and_written():
    d = dir_of()
    r = sh(fs(write=[d]), "echo x >%s/new" % d)
    want(r.rc == 0 and os.path.exists(d + "/new"), r)


@key("/filesystem/deny", "/filesystem/deny/*")
def what_is_denied_is_not_opened():
    d = dir_of("open", "secret")
    r = sh(fs(read=[d], deny=[d + "/secret"]), "cat %s/open; cat %s/secret" % (d, d))
    want(r.out == "open\n" and r.rc != 0 and "Permission denied" in r.err, r)


@key("/filesystem/mounts/*/overlay")
def an_overlay_is_written_for_the_task_alone():
    d = dir_of("there")
    r = sh(mounts({"overlay": d, "at": "/in"}), "echo x >/in/new && cat /in/there /in/new")
    want(r.out == "there\nx\n" and not os.path.exists(d + "/new"), r)


@key("/filesystem/mounts/*/copy")
def a_copy_is_each_tasks_own():
    d = dir_of("there")
    r = sh(mounts({"copy": d, "at": "/in"}), "echo x >/in/there && cat /in/there")
    want(r.out == "x\n" and open(d + "/there").read() == "there\n", r)


@key("/filesystem/mounts/*/out")
def what_was_changed_in_a_copy_is_brought_out():
    d, to = dir_of("there", "left"), dir_of()
    r = sh(mounts({"copy": d, "at": "/in", "out": to}), "echo x >/in/there")
    want(r.rc == 0 and os.listdir(to + "/command") == ["there"], r)


def words(**members):
    return doc(permissions=members)


def at_home(d):
    return {"HOME": d}


@key("/permissions", "/permissions/mode", "/permissions/project")
def a_project_is_written_and_its_secrets_denied():
    d = dir_of("open", ".env")
    r = sh(words(mode="project", project=d), "cd %s && cat open && echo x >new; cat .env" % d, more=at_home(d))
    want(r.out == "open\n" and os.path.exists(d + "/new"), r)


@key("/permissions/read", "/permissions/read/*")
def words_name_what_is_read():
    d = dir_of("there")
    r = sh(words(read=[d]), "cat %s/there && ! touch %s/new" % (d, d))
    want(r.out == "there\n" and r.rc == 0, r)


@key("/permissions/write", "/permissions/write/*")
def words_name_what_is_written():
    d = dir_of()
    r = sh(words(write=[d]), "echo x >%s/new" % d)
    want(r.rc == 0 and os.path.exists(d + "/new"), r)


@key("/permissions/deny_read", "/permissions/deny_read/*")
def words_deny_reading():
    d = dir_of("open", "secret")
    r = sh(words(read=[d], deny_read=[d + "/secret"]), "cat %s/open; cat %s/secret" % (d, d))
    want(r.out == "open\n" and r.rc != 0, r)


@key("/permissions/deny_write", "/permissions/deny_write/*")
def words_deny_writing():
    d = dir_of("kept")
    r = sh(words(write=[d], deny_write=[d + "/kept"]), "cat %s/kept; echo x >%s/kept" % (d, d))
    want(r.out == "kept\n" and r.rc != 0 and open(d + "/kept").read() == "kept\n", r)


@key("/permissions/env", "/permissions/env/*")
def words_name_variables():
    r = sh(words(env=["KNIT_KEYS_A"]), "echo $KNIT_KEYS_A", more={"KNIT_KEYS_A": "a"})
    want(r.out == "a\n", r)


@key("/permissions/console")
def a_console_is_none():
    r = sh(words(console=False), "echo out; exit 3")
    want(r.rc == 3 and r.out == "", r)


# ---- environment, identity ----

@key("/environment/inherit", "/environment/inherit/*")
def a_variable_is_taken_from_the_caller():
    r = sh(doc(environment={"inherit": ["KNIT_KEYS_A"]}), "echo $KNIT_KEYS_A $KNIT_KEYS_B",
           more={"KNIT_KEYS_A": "a", "KNIT_KEYS_B": "b"})
    want(r.out == "a\n", r)


@key("/environment/set", "/environment/set/*")
def a_variable_is_set():
    r = sh(doc(environment={"set": {"A": "x y"}}), "echo \"$A\"")
    want(r.out == "x y\n", r)


@key("/identity/hostname")
def the_host_has_a_name():
    r = run(doc(identity={"hostname": "elsewhere"}), "uname", "-n")
    want(r.out == "elsewhere\n", r)


# ---- network ----

@key("/network/mode")
def the_machines_network():
    s = socket.socket()
    s.bind(("127.0.0.1", 0))
    s.listen(5)
    r = py(doc(network={"mode": "host"}),
           "import socket; socket.create_connection(('127.0.0.1', %d)); print('connected')" % s.getsockname()[1])
    s.close()
    want(r.out == "connected\n", r)


# ---- layers ----

@key("/landlock")
def landlock_may_be_left_out():
    r = batch(doc(landlock="off"), [task("a", "true")])
    want(r.by["a"]["layers"]["landlock"] == "absent", r)


@key("/require", "/require/*")
def what_is_required_must_be_had():
    if ROOT:
        r = run(doc(require=["landlock"], landlock="off"), "true")
        want(r.rc == 125 and "landlock" in r.err, r)
    else:
        r = run(doc(require=["uid"]), "true")
        want(r.rc == 125 and "uid" in r.err, r)


@key("/allow_degraded", "/allow_degraded/*")
def what_may_be_weaker_may():
    p = doc(limits={"task": {"memory": "64M"}}, allow_degraded=["cgroup.memory"])
    hide = ()
    if ROOT:
        hide = ("unshare", "-m", "sh", "-c", "mount -t tmpfs x /sys/fs/cgroup && exec \"$@\"", "sh")
        if subprocess.run([*hide, "true"], capture_output=True).returncode:
            raise NotHere("no mount namespace of one's own")
    else:
        try:
            cgroup()
            raise NotHere("a cgroup, and no way to hide it")
        except NotHere as e:
            if "no cgroup" not in str(e):
                raise
    r = run(p, "true", prefix=hide)
    want(r.rc == 0, r)


def listed_and_no_other(words):
    s = [socket.socket(), socket.socket()]
    for x in s:
        x.bind(("127.0.0.1", 0))
        x.listen(5)
    ports = [x.getsockname()[1] for x in s]
    code = ("import socket\nfor port in %r:\n  s = socket.create_connection(('127.0.0.1', 3128))\n"
            "  s.sendall(b'CONNECT 127.0.0.1:%%d HTTP/1.1\\r\\n\\r\\n' %% port)\n  print(s.recv(100).split()[1].decode())" % ports)
    r = py(doc(**words(["127.0.0.1:%d" % ports[0]])), code)
    for x in s:
        x.close()
    want(re.match(r"200\n4\d\d\n$", r.out), r)


@key("/network/allow", "/network/allow/*")
def the_hosts_that_are_listed_and_no_other():
    listed_and_no_other(lambda hosts: {"network": {"mode": "allow", "allow": hosts}})


@key("/permissions/net", "/permissions/net/*")
def the_same_in_the_words_of_permissions():
    listed_and_no_other(lambda hosts: {"permissions": {"net": hosts}})


@key("/identity/user")
def a_task_is_root_inside_and_has_no_rights():
    d = dir_of()
    r = sh(doc(identity={"user": "root"}, filesystem={"mounts": [{"bind": d, "at": "/in", "mode": "rw"}]}),
           "id -u; id -un; id -g; grep -h '^Cap[EPB]' /proc/self/status; touch /in/f; stat -c %u /in/f")
    want(r.out == "0\nroot\n0\n" + "".join("Cap%s:\t%016x\n" % (x, 0) for x in ("Prm", "Eff", "Bnd")) + "0\n", r)
    want(os.stat(d + "/f").st_uid == os.geteuid(), os.stat(d + "/f"))


@key("/identity/user")
def a_task_is_its_caller_inside():
    r = sh(doc(identity={"user": "caller"}), "id -u; id -g; test \"$(id -un)\" && echo named")
    want(r.out == "%d\n%d\nnamed\n" % (os.getuid(), os.getgid()), r)
