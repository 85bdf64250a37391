"""pool, launcher."""


def pool(**members):
    return doc(pool=members)


def chain(n, *argv):
    """One after the other, so that no worker has more than one."""
    return [task("0", *argv)] + [task(str(i), *argv, after=[str(i - 1)]) for i in range(1, n)]


def module(**members):
    return pool(kind="module", module=B + "/tests/module/basic.so", **members)


def one_call(policy, name, value, *opts):
    return batch(policy, [{"id": "a", "call": name, "value": value}], *opts)


@key("/pool/workers")
def so_many_workers():
    r = batch(pool(workers=1), [task("a", "sleep", "0.4"), task("b", "sleep", "0.4")])
    want({x["worker"] for x in r.by.values()} == {"w0"}, r)
    r = batch(pool(workers=3), [task(str(i), "sleep", str(3 * SLOW)) for i in range(3)])
    want(len({x["worker"] for x in r.by.values()}) == 3, r)


@key("/pool/kind", "/pool/module")
def calls_of_a_module():
    r = one_call(module(), "echo", 21)
    want(r.by["a"]["value"] == 21, r)


@key("/pool/init")
def a_module_is_told_something_first():
    r = one_call(module(init="told"), "init_text", None)
    want(r.by["a"]["value"] == "told", r)


@key("/pool/ipc")
def objects_of_ipc_may_stay():
    r = batch(pool(ipc="worker"), [script("a", "ipcmk -Q"), script("b", "ipcs -q | grep -c ^0x", after=["a"])], "--workers", "1")
    want(r.by["b"]["stdout"] == "1\n", r)


def spawned(r):
    return len(re.findall(r" spawned pid=", r.err))


@key("/pool/spares")
def a_worker_is_launched_ahead():
    r = batch(pool(spares=1), [task("a", "sleep", "0.5")], "--workers", "1", "--debug", "lifecycle")
    want(spawned(r) == 2, r)


@key("/pool/recycle/tasks")
def a_worker_ends_after_so_many_tasks():
    r = batch(pool(recycle={"tasks": 1}), [task(str(i), "true") for i in range(3)], "--workers", "1", "--debug", "lifecycle")
    want(spawned(r) >= 3, r)


@key("/pool/recycle/seconds")
def a_worker_ends_after_so_many_seconds():
    r = batch(pool(recycle={"seconds": 1}), chain(3, "sleep", "0.7"), "--workers", "1", "--debug", "lifecycle")
    want(spawned(r) >= 2, r)


@key("/pool/recycle/memory")
def a_worker_ends_that_holds_too_much():
    cgroup()
    r = batch(pool(recycle={"memory": "64K"}), [task(str(i), "true") for i in range(9)], "--workers", "1", "--debug", "lifecycle")
    want(spawned(r) >= 2, r)


@key("/pool/retries")
def a_task_lost_with_its_worker_is_run_again():
    d = tempfile.mkdtemp(dir=os.environ["T"])
    os.chmod(d, 0o777)
    b = Live(pool(retries=2), "--workers", "1", "--bind", d)
    b.put(task("a", "sh", "-c", "test ! -e %s/begun || exit 0; : >%s/begun; exec sleep 50" % (d, d)))
    for _ in range(500 * SLOW):
        if os.path.exists(d + "/begun"):
            break
        time.sleep(0.01)
    os.kill(b.stub(), signal.SIGKILL)
    r = b.end()
    want(r.by["a"]["verdict"] == "ok" and r.by["a"]["attempt"] == 2, r)


@key("/pool/steal")
def how_a_waiting_task_moves():
    r = batch(pool(steal="off"), [task("a", "true")], "--workers", "2", "--debug", "host")
    want("steal=off" in r.err, r)
    r = one_call(module(steal="shared"), "echo", 1, "--workers", "2", "--debug", "host")
    want("steal=shared" in r.err and r.by["a"]["value"] == 1, r)


@key("/pool/claim", "/pool/region_lanes")
def how_a_worker_takes_a_call():
    r = one_call(module(steal="shared", claim="cas-mask", region_lanes=2), "echo", 1, "--workers", "2", "--debug", "host")
    want("cas-mask" in r.err and re.search(r"(lanes|width)[ =]2\b", r.err), r)


@key("/pool/abort_ids")
def so_many_calls_can_be_asked_to_give_up():
    for ids, asked in ((0, True), (1, False)):
        policy = doc(pool={"kind": "module", "module": B + "/tests/module/basic.so", "abort_ids": ids},
                     timeouts={"stop_ack_ms": 20000, "grace_ms": 20000 if asked else 2000})
        b = Live(policy, "--workers", "1")
        b.put({"id": "first", "call": "sleep_ms", "value": 500}, {"id": "then", "call": "until_aborted"})
        b.answer()
        time.sleep(0.2)
        b.put({"cancel": "then"})
        r = b.end()
        want(r.by["then"]["verdict"] == "cancelled", r)
        want(("kill why=" in r.err) != asked, r)


@key("/pool/balancer")
def who_gets_the_next_task():
    both = [task("a", "sleep", "0.4"), task("b", "sleep", "0.4")]
    then = [task("c", "true", after=["a", "b"]), task("d", "true", after=["c"]), task("e", "true", after=["d"])]
    r = batch(pool(balancer="round-robin", workers=2), both + then)
    want({r.by[x]["worker"] for x in "cde"} == {"w0", "w1"}, r)


@key("/pool/isolation")
def a_worker_of_its_own_for_each_task():
    r = batch(pool(isolation="worker"), [task(str(i), "true") for i in range(3)], "--workers", "1", "--debug", "lifecycle")
    want(spawned(r) >= 3 and all(x["verdict"] == "ok" for x in r.by.values()), r)


@key("/launcher/type", "/launcher/runtime")
def a_launcher_is_what_it_says_or_is_refused():
    r = run(doc(launcher={"type": "direct"}), "true")
    if r.rc == 125 and "layer landlock: required for /launcher/type" in r.err:
        r = run(doc(launcher={"type": "direct"}, allow_degraded=["landlock"]), "true")
    want(r.rc == 0 and "without namespaces a task is on the machine itself" in r.err, r)
    r = run(doc(launcher={"type": "oci", "runtime": "crun"}), "cat", "/proc/self/mountinfo")
    missing = r.rc == 125 and "oci: no crun in" in r.err
    want(missing or (r.rc == 0 and "/root / " in r.out), r)
    r = run(doc(launcher={"runtime": "runc"}), "true")
    want(r.rc == 125 and "/launcher/runtime: is of the launcher oci" in r.err, r)


@key("/launcher/rootfs")
def a_directory_is_the_root():
    d = tempfile.mkdtemp()
    try:
        r = run(doc(launcher={"type": "oci", "rootfs": d + "/none"}), "true")
        want(r.rc == 125 and "/launcher/rootfs: %s/none: No such file" % d in r.err, r)
    finally:
        os.rmdir(d)


@key("/launcher/image")
def an_image_goes_with_an_engine():
    r = run(doc(launcher={"type": "oci", "runtime": "runc", "image": "debian"}), "true")
    want(r.rc == 125 and "/launcher/image: goes with" in r.err, r)


@key("/launcher/prefix", "/launcher/prefix/*")
def something_starts_the_launcher():
    r = run(doc(launcher={"prefix": ["nice", "-n", "7"]}), "nice")
    want(r.out == "%d\n" % min(19, 7 + os.nice(0)), r)


@key("/launcher/prefix")
def what_starts_the_launcher_may_stay_and_dies_with_the_worker():
    stays = doc(launcher={"prefix": ["/bin/sh", "-c", "\"$@\"; exit $?", "stays"]})
    r = run(stays, "echo", "through")
    want(r.out == "through\n" and r.rc == 0, r)
    b = Live(stays, "--workers", "1")
    b.put(task("a", "sleep", "61"))
    stub = None
    for _ in range(300 * SLOW):
        below = [g for s in stubs(b.p.pid) for g in children(s)]
        if below:
            stub = below[0]
            break
        time.sleep(0.02)
    time.sleep(0.2)
    b.p.kill()
    b.reader.join(LIMIT)
    b.p.wait()
    end = time.time() + 5 * SLOW
    while stub and os.path.exists("/proc/%d" % stub) and time.time() < end:
        time.sleep(0.02)
    want(stub and not os.path.exists("/proc/%d" % stub), "what ran inside outlives its supervisor: %s" % stub)


@key("/launcher/prefix")
def what_is_no_program_is_said():
    r = run(doc(launcher={"prefix": ["knit-no-such-program"]}), "true")
    want(r.rc == 125 and "/launcher/prefix: knit-no-such-program: no such program" in r.err, r)
