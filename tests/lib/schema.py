"""schema.py SCHEMA DOCUMENT: exit 0 if the document is as the schema says, else why.

The few words of JSON Schema that ours use; an unknown one is an error, so that a schema
cannot say something that nobody checks.
"""
import json
import sys

TYPES = {"object": dict, "array": list, "string": str, "integer": int, "null": type(None), "boolean": bool}
NOTES = {"$schema", "title", "description", "$defs", "properties", "additionalProperties"}


def check(root, s, v, at):
    for word, arg in s.items():
        bad = None
        if word == "type":
            if not any(isinstance(v, TYPES[t]) and not (t == "integer" and isinstance(v, bool))
                       for t in ([arg] if isinstance(arg, str) else arg)):
                bad = "is no " + str(arg)
        elif word == "enum":
            bad = None if v in arg else "is not one of " + str(arg)
        elif word == "required":
            bad = ", ".join("lacks " + k for k in arg if k not in v)
        elif word == "minimum":
            bad = None if v >= arg else "is less than %s" % arg
        elif word == "minLength" or word == "minItems":
            bad = None if len(v) >= arg else "is too short"
        elif word == "items":
            for i, x in enumerate(v):
                check(root, arg, x, "%s/%d" % (at, i))
        elif word == "$ref":
            check(root, root["$defs"][arg.split("/")[-1]], v, at)
        elif word not in NOTES:
            sys.exit("schema.py: unknown word " + word)
        if bad:
            sys.exit("%s: %r %s" % (at or "/", v, bad))
    if isinstance(v, dict):
        for k, x in v.items():
            if k in s.get("properties", {}):
                check(root, s["properties"][k], x, at + "/" + k)
            elif "properties" in s and s.get("additionalProperties") is False:
                sys.exit("%s: unknown property %s" % (at or "/", k))


with open(sys.argv[1]) as f:
    schema = json.load(f)
with open(sys.argv[2]) as f:
    check(schema, schema, json.load(f), "")
