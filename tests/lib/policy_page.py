"""policy_page.py PAGE SCHEMA [--write]: knit-policy(5) beside the JSON Schema, which comes
from the table of keys. The page's list of keys, with their ranges and words, is made from
it (--write makes it anew); each key is told of in words; and no key that is none is.
"""
import json
import re
import sys

BEGIN = '.\\" The list of keys is made from the table: tests/lib/policy_page.py --write.\n'
END = '.\\" Here ends what is made from the table.\n'
# Told of together with what they are in, or not by that name.
IN_WORDS = {"version", "extends", "description", "$schema"}


def walk(s, name):
    """(dotted name, schema) of each key; of what holds others these alone."""
    if s.get("enum") == [None, []]:
        return  # not in this version
    if "properties" in s and s["properties"]:
        for k, v in s["properties"].items():
            yield from walk(v, (name + "." if name else "") + k)
    elif "items" in s and s["items"]:
        yield from walk(s["items"], name + "[]")
    else:
        yield name, s


def amount(n, size):
    u = 0
    while size and n and n % 1024 == 0 and u < 3:
        n, u = n // 1024, u + 1
    return str(n) + ("", "K", "M", "G")[u]


def kinds(s):
    """What it may be, in a few words."""
    if "enum" in s:
        return ", ".join('"%s"' % w if isinstance(w, str) else str(w).lower() for w in s["enum"] if w is not None)
    if "anyOf" in s:
        out, size = [], any(x.get("type") == "string" and "pattern" in x for x in s["anyOf"])
        for x in s["anyOf"]:
            if "const" in x:
                out.append(str(x["const"]))
            elif x.get("type") == "integer":
                lo, hi = x.get("minimum"), x.get("maximum")
                what = "size" if size else "integer"
                out.append(what if lo is None else "%s from %s" % (what, amount(lo, size)) if hi is None
                           else "%s %s to %s" % (what, amount(lo, size), amount(hi, size)))
            elif x.get("type") == "number":
                out.append("number %g to %g" % (x["minimum"], x["maximum"]))
            elif x.get("type") not in ("null", "string"):
                out.append(str(x.get("type")))
        return " or ".join(out)
    t = s.get("type")
    t = [x for x in (t if isinstance(t, list) else [t]) if x != "null"]
    return {"string": "text", "boolean": "true or false"}.get(t[0], t[0]) if len(t) == 1 and t[0] else \
        " or ".join({"string": "text"}.get(x, x) for x in t if x)


def block(keys):
    out = [BEGIN, ".Bd -literal\n"]
    for name, s in keys:
        text, left = kinds(s), "%-34s " % name
        words = text.split(", ")
        while words:
            line = left + words.pop(0)
            while words and len(line) + len(words[0]) + 2 <= 76:
                line += ", " + words.pop(0)
            out.append(line + ("," if words else "") + "\n")
            left = " " * 35
    return "".join(out + [".Ed\n", END])


def told(page):
    """Dotted names that the page's tags tell of."""
    names, base = set(), ""
    for line in page.splitlines():
        if not line.startswith((".It Cm ", ".It Bro")):
            continue
        for w in re.findall(r'[A-Za-z_.$]+', line[3:].replace("\\(dq", " ")):
            if re.match(r"[a-z_]+(\.[A-Za-z_]+)+$", w):
                base = w.rsplit(".", 1)[0]
                names.add(w)
            elif re.match(r"\.[A-Za-z_]+$", w) and base:
                names.add(base + w)
            else:
                names.add(w)
    return names


def main():
    page_name, schema_name = sys.argv[1:3]
    page = open(page_name).read()
    keys = list(walk(json.load(open(schema_name)), ""))
    made, bad = block(keys), 0
    if BEGIN not in page or END not in page:
        print("the page has no place for the list of keys")
        return 1
    a, b = page.index(BEGIN), page.index(END) + len(END)
    if page[a:b] != made:
        if "--write" in sys.argv:
            open(page_name, "w").write(page[:a] + made + page[b:])
            print("written")
        else:
            have, want = page[a:b].splitlines(), made.splitlines()
            for x in want:
                if x not in have:
                    print("not on the page: " + x)
            for x in have:
                if x not in want:
                    print("on the page, and not so: " + x)
            bad = 1
    words = page[:a] + page[b:]
    names = told(words)
    dotted = {re.sub(r"\[\]", "", n) for n, _ in keys}
    for n in sorted(dotted):
        last = n.rsplit(".", 1)[-1]
        if not (n in names or last in names and ("." not in n or n.startswith(("filesystem.mounts", "seccomp.rules")))
                or re.search(r"\b%s\b" % re.escape(last), words) and n.startswith("seccomp.rules.args")):
            print("no word of it on the page: " + n)
            bad = 1
    inner = {n for d in dotted for n in (".".join(d.split(".")[:i]) for i in range(1, d.count(".") + 1))}
    for n in sorted(names):
        if "." in n.strip(".") and re.match(r"[a-z]", n) and n not in dotted and n not in inner \
                and n.split(".")[0] in {d.split(".")[0] for d in dotted}:
            print("on the page, and no key: " + n)
            bad = 1
    return bad


sys.exit(main())
