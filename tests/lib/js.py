"""js.py FILE EXPR: a Python expression over a file of JSON.

L is the list of its documents (one a line, or one in all), by maps ids to them.
Booleans print as yes and no, None as null, bytes of stdout or stdout_b64 by raw(x).
A line that is not JSON is an error: that is what half of the tests ask.
"""
import base64
import json
import sys


def load(path):
    with open(path, "rb") as f:
        data = f.read()
    text = data.decode("utf-8")  # strict: results have to be UTF-8
    try:
        return [json.loads(text)]
    except ValueError:
        return [json.loads(line) for line in text.split("\n") if line]


def raw(r, name="stdout"):
    if r.get(name + "_b64") is not None:
        return base64.b64decode(r[name + "_b64"])
    return (r.get(name) or "").encode()


L = load(sys.argv[1])
by = {r.get("id"): r for r in L if isinstance(r, dict)}
v = eval(sys.argv[2])
print({True: "yes", False: "no"}[v] if isinstance(v, bool) else "null" if v is None else v)
