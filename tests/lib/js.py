"""js.py FILE EXPR: a Python expression over a file of JSON.

L is the list of its documents (one a line, or one in all), by maps ids to them.
slow is KNIT_SLOW, how many times slower than usual the machine is (see tap.sh).
Booleans print as yes and no, None as null, bytes of stdout or stdout_b64 by raw(x).
A line that is not JSON is an error: that is what half of the tests ask.
"""
import binascii
import os
import sys

# A script asks hundreds of times: without the packages json and base64 this starts in a
# third of the time.
try:
    from _json import make_scanner
except ImportError:
    from json import loads
else:
    def refuse(name):
        raise ValueError(name + " is not JSON")

    class Options:
        strict = True
        object_hook = object_pairs_hook = None
        parse_float, parse_int, parse_constant = float, int, refuse

    scan = make_scanner(Options)

    def loads(text):
        text = text.strip(" \t\r\n")
        try:
            value, end = scan(text, 0)
        except StopIteration:
            end = -1
        if end != len(text):
            raise ValueError("not JSON: " + text[:200])
        return value


class base64:
    b64decode = binascii.a2b_base64


def load(path):
    with open(path, "rb") as f:
        data = f.read()
    text = data.decode("utf-8")  # strict: results have to be UTF-8
    try:
        return [loads(text)]
    except ValueError:
        return [loads(line) for line in text.split("\n") if line]


def raw(r, name="stdout"):
    if r.get(name + "_b64") is not None:
        return base64.b64decode(r[name + "_b64"])
    return (r.get(name) or "").encode()


L = load(sys.argv[1])
slow = int(os.environ.get("KNIT_SLOW", "1"))
by = {r.get("id"): r for r in L if isinstance(r, dict)}
v = eval(sys.argv[2])
print({True: "yes", False: "no"}[v] if isinstance(v, bool) else "null" if v is None else v)
