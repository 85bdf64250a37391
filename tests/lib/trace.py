"""trace.py FILE: is it a trace that viewers take? By the Trace Event Format (Chrome) and
what Perfetto's importer asks for. Prints "loads", or what is wrong with which event.

Also that arrows have ends to be drawn at: each ends within a slice of its thread, and
starts in one too, if its worker was not just between two: then viewers leave it out.
"""
import json
import sys

NEEDS = {"M": ("name", "pid", "tid", "args"), "X": ("name", "cat", "ts", "dur", "pid", "tid"),
         "b": ("name", "cat", "id", "ts", "pid", "tid"), "e": ("name", "cat", "id", "ts", "pid", "tid"),
         "s": ("name", "cat", "id", "ts", "pid", "tid"), "f": ("name", "cat", "id", "ts", "pid", "tid", "bp"),
         "i": ("name", "cat", "ts", "s", "pid", "tid")}
NUMBERS, COUNTS, TEXTS = ("ts", "dur"), ("pid", "tid", "id"), ("name", "cat", "ph", "s", "bp")


def number(x):
    return isinstance(x, (int, float)) and not isinstance(x, bool) and x >= 0


def wrong(e):
    """What is wrong with one event by itself."""
    if not isinstance(e, dict) or e.get("ph") not in NEEDS:
        return "no event"
    for k in NEEDS[e["ph"]]:
        if k not in e:
            return "no " + k
    for k, v in e.items():
        if (k in NUMBERS and not number(v)) or (k in COUNTS and (not isinstance(v, int) or v < 0)) or (
                k in TEXTS and not isinstance(v, str)) or (k == "args" and not isinstance(v, dict)):
            return "%s is %r" % (k, v)
    if e["ph"] == "i" and e["s"] not in "gpt":
        return "scope " + e["s"]
    if e["ph"] == "M" and not (e["name"] in ("process_name", "thread_name") and isinstance(e["args"].get("name"), str)):
        return "metadata"
    return None


def pairs(events, first, last, key):
    """Problems of events that belong together: one of each, and in order."""
    at = {}
    for e in events:
        if e["ph"] in (first, last):
            at.setdefault(key(e), []).append(e)
    for k, es in at.items():
        es.sort(key=lambda e: (e["ts"], e["ph"] == last))
        if len(es) % 2 or [e["ph"] for e in es] != [first, last] * (len(es) // 2):
            yield "%s: %s" % (k, [(e["ph"], e["ts"]) for e in es])


def problems(events):
    if not isinstance(events, list):
        return ["no array"]
    bad = ["%s: %s" % (wrong(e), e) for e in events if wrong(e)]
    if bad:
        return bad
    slices = {}
    for e in events:
        if e["ph"] == "X":
            slices.setdefault(e["tid"], []).append((e["ts"], e["ts"] + e["dur"]))
    bad += pairs(events, "b", "e", lambda e: (e["cat"], e["id"], e["pid"]))
    bad += pairs(events, "s", "f", lambda e: (e["cat"], e["name"], e["id"]))
    # One thread's slices do not overlap: they would be drawn as nested, or not at all.
    for tid, s in slices.items():
        s.sort()
        bad += ["thread %d: %s and %s overlap" % (tid, a, b) for a, b in zip(s, s[1:]) if b[0] < a[1] - 0.0015]
    lies = {"s": [], "f": []}
    for e in events:
        if e["ph"] in "sf" and not any(a - 0.0015 <= e["ts"] <= b + 0.0015 for a, b in slices.get(e["tid"], [])):
            lies[e["ph"]].append(e)
    bad += ["an arrow's end lies nowhere: %s" % e for e in lies["f"]]
    if lies["s"] and len(lies["s"]) == sum(e["ph"] == "s" for e in events):
        bad.append("no arrow has a start that can be drawn")
    return bad


if __name__ == "__main__":
    try:
        found = problems(json.load(open(sys.argv[1])))
    except ValueError as e:
        found = ["not JSON: %s" % e]
    print("loads" if not found else "%d problems: %s" % (len(found), "; ".join(found[:3])))
