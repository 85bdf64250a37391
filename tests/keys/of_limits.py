"""limits, timeouts, payload, on_output_limit."""


def limits(**task):
    return doc(limits={"task": task}, allow_degraded=LESS)


@key("/version")
def another_version_is_refused():
    want(check(doc(version=2)).rc == 1, check(doc(version=2)))


@key("/extends")
def what_is_extended_holds():
    r = sh(doc(extends="judge", allow_degraded=LESS), "ulimit -n")
    want(r.out == "256\n", r)


@key("/limits/task/memory")
def memory_has_a_limit():
    r = batch(limits(memory="64M"), [task("a", "/usr/bin/python3", "-S", "-c", "x = b'x' * (400 << 20)\nimport time; time.sleep(5)")])
    want(r.by["a"]["verdict"] == "memory", r)


@key("/limits/task/pids")
def processes_have_a_limit():
    r = py(limits(pids=9), "import os, time\nn = 0\ntry:\n  while n < 40:\n    if os.fork() == 0: time.sleep(9); os._exit(0)\n    n += 1\nexcept OSError as e: print(n, e.errno)")
    want(re.match(r"[0-8] 11$", r.out), r)


@key("/limits/task/cpu_ms")
def cpu_time_has_a_limit():
    r = batch(limits(cpu_ms=200), [script("a", "while :; do :; done", timeouts={"hard_ms": min(9000 * SLOW, 60000)})])
    want(r.by["a"]["verdict"] == "cpu-timeout", r)


@key("/limits/task/cpus")
def processors_have_a_limit():
    # (an emulated processor that rests is not noticed inside: the limit holds on average over a while)
    r = py(limits(cpus=0.1), "import os, time\nt = time.time()\nfor i in range(4):\n  if os.fork() == 0:\n    while time.time() < t + %d: pass\n    os._exit(0)\nfor i in range(4): os.wait()\nu = os.times()\nprint(sum(u[:4]) / (time.time() - t))" % (2 * SLOW - 1))
    refused = r.rc == 125 and "cgroup.cpu" in r.err and "/limits/task/cpus" in r.err
    want(refused if not r.out else float(r.out) < 0.2, r)


@key("/limits/task/nofile")
def descriptors_have_a_limit():
    r = sh(limits(nofile=77), "ulimit -n")
    want(r.out == "77\n", r)


@key("/limits/task/fsize")
def a_file_has_a_limit():
    r = sh(limits(fsize="8K"), "ulimit -f; head -c 9000 /dev/zero >f; echo $?; wc -c <f")
    want(r.out.startswith("16\n") and r.out.endswith("8192\n"), r)


@key("/limits/task/stack")
def a_stack_has_a_limit():
    r = sh(limits(stack="1M"), "ulimit -s")
    want(r.out == "1024\n", r)


@key("/limits/task/core")
def a_core_file_has_a_limit():
    import resource
    if 0 <= resource.getrlimit(resource.RLIMIT_CORE)[1] < 1 << 20:
        raise NotHere("our own hard limit of core files is less")
    r = py(limits(core="1M"), "import resource; print(resource.getrlimit(resource.RLIMIT_CORE)[0])")
    want(r.out == "1048576\n", r)


@key("/limits/task/stdout")
def stdout_is_cut():
    r = batch(limits(stdout=100), [script("a", "head -c 5000 /dev/zero | tr '\\0' x")])
    want(r.by["a"]["stdout_truncated"] and r.by["a"]["stdout_bytes"] == 5000, r)


@key("/limits/task/stderr")
def stderr_is_cut():
    r = batch(limits(stderr=100), [script("a", "head -c 5000 /dev/zero | tr '\\0' x >&2")])
    want(r.by["a"]["stderr_truncated"] and r.by["a"]["stderr_bytes"] == 5000, r)


@key("/on_output_limit")
def too_much_output_ends_the_task():
    p = doc(limits={"task": {"stdout": 100}}, on_output_limit="kill")
    r = batch(p, [script("a", "head -c 500000 /dev/zero; sleep 9")])
    want(r.by["a"]["verdict"] == "output-limit", r)


@key("/limits/worker/memory")
def a_workers_memory_holds_for_all_in_it():
    p = doc(limits={"worker": {"memory": "64M"}, "task": {"memory": "128M"}}, allow_degraded=LESS)
    r = check(p)
    want(r.rc == 1 and "/limits/worker/memory" in r.out, r)


@key("/limits/worker/memory")
def a_workers_memory_is_its_cgroups():
    cgroup()
    p = doc(limits={"worker": {"memory": "64M"}, "task": {"memory": 0}})
    r = batch(p, [task("a", "/usr/bin/python3", "-S", "-c", "x = b'x' * (400 << 20)")])
    want(r.by["a"]["verdict"] == "memory", r)


@key("/limits/worker/pids")
def a_workers_processes_hold_for_all_in_it():
    r = check(doc(limits={"worker": {"pids": 20}, "task": {"pids": 40}}))
    want(r.rc == 1 and "/limits/worker/pids" in r.out, r)


@key("/timeouts/queue_ms")
def who_waits_too_long_is_not_begun():
    r = batch(doc(timeouts={"queue_ms": 300}), [task("a", "sleep", "1.5"), task("b", "true")], "--workers", "1")
    want(r.by["b"]["verdict"] == "queue-timeout", r)


@key("/timeouts/task_ms")
def a_soft_limit_asks_first():
    r = batch(doc(timeouts={"task_ms": 200}), [task("a", "sleep", "9")])
    want(r.by["a"]["verdict"] == "soft-timeout", r)


@key("/timeouts/hard_ms")
def a_hard_limit_kills():
    r = batch(doc(timeouts={"hard_ms": 200}), [task("a", "sleep", "4")])
    want(r.by["a"]["verdict"] == "timeout", r)


@key("/timeouts/grace_ms")
def between_term_and_kill_is_time():
    p = doc(timeouts={"task_ms": 200 * SLOW, "grace_ms": 9000})
    r = batch(p, [script("a", "trap 'sleep 0.7; echo late; exit' TERM; while :; do sleep 0.1; done")])
    want(r.by["a"]["stdout"] == "late\n", r)


# Whoever is slow to end is not what these ask about.
ENDS = {"stop_ack_ms": 20000, "hard_slack_ms": 20000}


@key("/timeouts/claim_ms")
def an_idle_worker_has_time_to_take_its_task():
    b = Live(doc(timeouts={"claim_ms": 60000, **ENDS}), "--workers", "1")
    b.put(task("a", "true"))
    b.answer(1)
    stub = b.stub()
    os.kill(stub, signal.SIGSTOP)
    b.put(task("b", "true"))
    time.sleep(2)
    try:
        os.kill(stub, signal.SIGCONT)
    except ProcessLookupError:
        pass
    r = b.end()
    want(r.by["b"]["verdict"] == "ok" and "kill" not in r.err, r)


@key("/timeouts/stop_ack_ms")
def a_worker_has_time_to_acknowledge_a_stop():
    b = Live(doc(timeouts={**ENDS, "stop_ack_ms": 20000}), "--workers", "1")
    b.put(task("a", "true"))
    b.answer(1)
    stub = b.stub()
    os.kill(stub, signal.SIGSTOP)
    threading.Timer(1.0, lambda: continue_(stub)).start()
    r = b.end()
    want("kill" not in r.err, r)


def continue_(pid):
    try:
        os.kill(pid, signal.SIGCONT)
    except ProcessLookupError:
        pass


@key("/timeouts/hard_slack_ms")
def a_worker_has_time_to_end_its_task():
    b = Live(doc(timeouts={**ENDS, "claim_ms": 60000, "hard_ms": 500 * SLOW, "teardown_ms": 0}), "--workers", "1")
    b.put(script("a", "while :; do :; done"))
    stub = b.stub()
    time.sleep(0.2)
    os.kill(stub, signal.SIGSTOP)
    threading.Timer(2.0, lambda: continue_(stub)).start()
    b.answer(1)
    r = b.end()
    want(r.by["a"]["verdict"] == "timeout" and "kill" not in r.err, r)


@key("/timeouts/start_ms")
def a_worker_that_is_not_ready_is_given_up():
    slow = os.path.join(os.environ["T"], "slow-bwrap")
    bwrap = shutil.which("bwrap")
    if not os.path.exists(slow):
        fd, tmp = tempfile.mkstemp(dir=os.environ["T"])
        os.write(fd, ("#!/bin/sh\n[ \"$1\" = --version ] || sleep %d\nexec %s \"$@\"\n" % (2 * SLOW, bwrap)).encode())
        os.close(fd)
        os.chmod(tmp, 0o755)
        os.rename(tmp, slow)
    r = run(doc(timeouts={"start_ms": 300}), "true", more={"KNIT_BWRAP": slow})
    want(r.rc == 125 and "not ready within 300 ms" in r.err, r)


@key("/payload/max")
def a_task_is_no_larger_than_that():
    r = batch(doc(payload={"max": "4K"}), [task("a", "true", "x" * 60000)])
    want(r.by["a"]["verdict"] == "too-large", r)


@key("/payload/area")
def the_largest_is_an_eighth_of_all():
    r = check(doc(payload={"area": "1M"}))
    want(r.rc == 1 and "/payload/area" in r.out + r.err, r)
