"""blocks.py PAGE TAG [--list]: run a page's own code blocks, so that it cannot lie.

A block is fenced and says what it is for after its language: ```sh docker. All blocks of
TAG are run in the order of the page by one `sh -eu` (variables and the folder stay, as for
a reader who pastes them), in the folder of the call. A block that says `end` as well is
run at the end whatever happened before it. ```text TAG right after one is what it has to
print; `...` stands for anything within a line, and alone for any number of lines.

Prints TAP, a line a block with its place in the page; --list prints the script instead. A
signal to end is the script's, whose ends then run; what was done is told.
Status 0 if all blocks ran and printed what they should.
"""
import os
import re
import signal
import subprocess
import sys
import tempfile


class Block:
    def __init__(self, line, words, text):
        self.line, self.words, self.text, self.want = line, words, text, None


def blocks(text, tag):
    """Those of tag, each with what it has to print."""
    found, last, fence = [], None, None
    for n, line in enumerate(text.split("\n"), 1):
        m = re.match(r"(```+)\s*(.*)$", line)
        if fence is None:
            if m:
                fence, words, start, body = m[1], m[2].split(), n, []
            elif line.strip():
                last = None
            continue
        if line != fence:
            body.append(line)
            continue
        fence = None
        block = Block(start, words, "\n".join(body) + "\n")
        if words[:1] == ["sh"] and tag in words[1:]:
            found.append(block)
            last = block
        elif words[:1] == ["text"] and tag in words[1:] and last:
            last.want = block.text
        else:
            last = None
    if fence:
        sys.exit("blocks.py: a fence of line %d is not closed" % start)
    return found


def quoted(s):
    return "'" + s.replace("'", "'\\''") + "'"


def script(found, folder):
    """Each block writes to a file of its own, and is then named in `done`."""

    def step(i):
        return 'exec >%s/%d 2>&1\n%secho %d >>%s/done\n' % (folder, i, found[i].text, i, folder)

    ends = [i for i, b in enumerate(found) if "end" in b.words]
    text = "set -eu\nat_the_end() {\nset +e\ntrap : INT TERM HUP\n" + "".join(map(step, ends)) + "}\ntrap at_the_end EXIT\n"
    text += "trap 'exit 1' INT TERM HUP\n"
    return text + "".join(step(i) for i in range(len(found)) if i not in ends)


def agrees(got, want):
    some = re.escape("...")
    lines = ["(?:.*\n)*?" if w == "..." else re.escape(w).replace(some, ".*") + "\n" for w in want.splitlines()]
    return re.fullmatch("".join(lines), got if got.endswith("\n") or not got else got + "\n") is not None


def main():
    page, tag = sys.argv[1:3]
    found = blocks(open(page).read(), tag)
    if not found:
        sys.exit("blocks.py: %s has no block of %s" % (page, tag))
    if "--list" in sys.argv[3:]:
        for b in found:
            print("# %s:%d: %s\n%s" % (page, b.line, " ".join(b.words), b.text))
        return 0
    print("1..%d" % len(found), flush=True)
    failed = 0
    with tempfile.TemporaryDirectory(prefix="knit-blocks.") as d:
        with open(d + "/script", "w") as f:
            f.write(script(found, quoted(d)))
        run = subprocess.Popen(["sh", d + "/script"], stdin=subprocess.DEVNULL, env=dict(os.environ, KNIT_PAGE=page))
        for s in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(s, lambda nr, _: run.send_signal(nr))
        run.wait()
        done = open(d + "/done").read().split() if os.path.exists(d + "/done") else []
        for i, b in enumerate(found):
            got = open("%s/%d" % (d, i), errors="replace").read() if os.path.exists("%s/%d" % (d, i)) else None
            right = str(i) in done and (b.want is None or agrees(got, b.want))
            failed += not right
            print("%s %d - %s:%d: %s" % ("ok" if right else "not ok", i + 1, page, b.line, " ".join(b.words)))
            if right:
                continue
            why = "not reached" if got is None else got if str(i) in done else got + "(failed here)"
            for line in why.splitlines()[-30:] + (["want:"] + b.want.splitlines() if b.want and got else []):
                print("#   " + line)
            sys.stdout.flush()
    return 1 if failed else 0


sys.exit(main())
