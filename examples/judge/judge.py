#!/usr/bin/env python3
"""judge.py: the two halves of a small online judge around knit-sandbox.

    judge.py tasks            prints the task lines, one JSON object a line
    judge.py table RESULTS    reads the result lines, prints the table, compares

Everything untrusted happens between the two, in `knit-sandbox run --tasks`.
submissions.tsv says what is run, expected.tsv what should come out.
"""
import base64
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))

# Problem -> runs: what the submission reads, what it should print.
BIG = [(7919 * i) % 900001 for i in range(12000)]  # more bytes than a pipe holds
PROBLEMS = {
    "sum": [
        ("3\n1 2 3\n", "6\n"),
        ("5\n10 -4 7 0 100\n", "113\n"),
        ("3\n2000000000 2000000000 2000000000\n", "6000000000\n"),
        ("%d\n%s\n" % (len(BIG), " ".join(map(str, BIG))), "%d\n" % sum(BIG)),
    ],
    "longest": [
        ("the quick brown fox jumps\n", "quick\n"),
        ("to be\n  or not\tto   be\n", "not\n"),
        ("a extraordinarily b indistinguishable c\n", "indistinguishable\n"),
    ],
    "primes": [("10\n", "4\n"), ("30000\n", "3245\n"), ("1\n", "0\n")],
}
# Small limits, so that the table is there in seconds. A task may only tighten
# what its policy allows.
CPU_MS, WALL_MS, SLEEPER_WALL_MS = 500, 8000, 800
RUN_LIMITS = {"memory": "64M", "pids": 32, "cpu_ms": CPU_MS, "stdout": "64K", "stderr": "64K"}
ARGV = {"py": ["python3", "main.py"], "sh": ["sh", "main.sh"], "c": ["./main"]}
BUILD = ["gcc", "-O2", "-pthread", "-o", "main", "main.c"]


def rows(name):
    """The rows of a .tsv file of this folder, without comments."""
    with open(os.path.join(HERE, name), encoding="utf-8") as f:
        for line in f:
            if line.strip() and not line.startswith("#"):
                yield line.rstrip("\n").split("\t")


def submissions():
    """(file name, problem, runs wanted, waits) of each submission, in order."""
    for name, runs, kind in rows("submissions.tsv"):
        problem = name.split("-")[0]
        yield name, problem, len(PROBLEMS[problem]) if runs == "all" else int(runs), kind


def print_tasks():
    for name, problem, runs, kind in submissions():
        lang = name.rsplit(".", 1)[1]
        with open(os.path.join(HERE, "subs", name), encoding="utf-8") as f:
            source = {"content": f.read()}
        base = {"argv": ARGV[lang], "limits": {"task": RUN_LIMITS},
                "timeouts": {"hard_ms": SLEEPER_WALL_MS if kind == "sleeps" else WALL_MS}}
        if lang == "c":  # compiled once, inside, and the result kept for the runs
            print(json.dumps({"id": name + ".build", "argv": BUILD,
                              "files": {"main.c": source}, "keep": ["main"]}))
            base["after"] = [name + ".build"]
            base["files"] = {"main": {"from": name + ".build/main", "mode": "755"}}
        else:
            base["files"] = {"main." + lang: source}
        for i in range(runs):
            print(json.dumps(dict(base, id="%s.%d" % (name, i + 1),
                                  stdin=PROBLEMS[problem][i][0])))


def stdout_of(r):
    if r.get("stdout_b64") is not None:
        return base64.b64decode(r["stdout_b64"])
    return (r.get("stdout") or "").encode()


ANSWER = {"exit": "RE", "signal": "RE", "denied": "RE", "timeout": "TLE", "cpu-timeout": "TLE",
          "soft-timeout": "TLE", "memory": "MLE", "output-limit": "OLE", "skipped": "-"}


def answer_of(r, problem, run):
    """The judge's word for one result: what the sandbox cannot know is whether
    the output is right."""
    if run == "build":
        return "built" if r["verdict"] == "ok" else "CE"
    if r["verdict"] != "ok":
        return ANSWER.get(r["verdict"], "IE")
    want = PROBLEMS[problem][int(run) - 1][1].encode()
    return "AC" if not r.get("stdout_truncated") and stdout_of(r).split() == want.split() else "WA"


def status_of(r):
    """How the process ended, as expected.tsv writes it."""
    if r.get("signal"):
        return "signal %d" % r["signal"]
    return "exit %d" % r["exit_code"] if r.get("exit_code") is not None else "-"


def agrees(r, answer, want):
    verdict, status, letters = want
    # Which signal ends a task that the sandbox kills is the sandbox's business.
    return (verdict == r["verdict"] and letters == answer
            and (status == "-" or status == status_of(r)))


def print_table(path):
    results, bad = {}, []
    with open(path, encoding="utf-8") as f:
        for line in f:
            r = json.loads(line)
            if r.get("id") in results:
                bad.append("answered twice: %s" % r["id"])
            results[r.get("id")] = r
    expected = {row[0]: tuple(row[1:4]) for row in rows("expected.tsv")}
    fmt = "%-26s %-4s %-5s %-12s %-10s %8s %9s  %-22s %s"
    print(fmt % ("submission", "lang", "judge", "verdict", "ended by", "cpu ms", "memory K",
                 "expected", "match"))
    good = total = runs = 0
    for name, problem, n, _ in submissions():
        lang = name.rsplit(".", 1)[1]
        ids = [name + ".build"] * (lang == "c") + ["%s.%d" % (name, i + 1) for i in range(n)]
        deciding = None  # the first that is not fine decides, else the last
        match = True
        for task in ids:
            r, want = results.pop(task, None), expected.pop(task, None)
            if r is None or want is None:
                bad.append("%s for %s" % ("no result" if r is None else "nothing expected", task))
                match = False
                continue
            runs += 1
            answer = answer_of(r, problem, task.rsplit(".", 1)[1])
            if not agrees(r, answer, want):
                bad.append("%s: %s %s %s, expected %s; %s; stderr: %s" % (
                    task, r["verdict"], status_of(r), answer, " ".join(want),
                    r.get("error") or "no error text", (r.get("stderr") or "")[-200:]))
                match = False
            if deciding is None or deciding[1] in ("AC", "built"):
                deciding = (r, answer, want)
        total += 1
        good += match
        if deciding:
            r, answer, want = deciding
            u = r.get("usage") or {}
            peak = u.get("memory_peak") or u.get("max_rss") or 0
            print(fmt % (name.rsplit(".", 1)[0], lang, answer, r["verdict"], status_of(r),
                         "%.0f" % u.get("cpu_ms", 0), "%d" % (peak // 1024),
                         "%s %s" % (want[2], want[0]), "yes" if match else "NO"))
    bad += ["a result nobody asked for: %s" % t for t in results]
    bad += ["expected, and not among the submissions: %s" % t for t in expected]
    for text in bad:
        print("!! " + text)
    print("%d submissions, %d runs: %d as expected, %d not"
          % (total, runs, good, total - good))
    return 0 if not bad and good == total else 1


def main():
    if sys.argv[1:] == ["tasks"]:
        return print_tasks()
    if len(sys.argv) == 3 and sys.argv[1] == "table":
        return print_table(sys.argv[2])
    sys.stderr.write(__doc__)
    return 2


if __name__ == "__main__":
    sys.exit(main())
