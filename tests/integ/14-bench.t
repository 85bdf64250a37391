#!/bin/sh
# 14-bench.t: bench runs, and its JSON is well-formed and means what it says. No figure
# is judged here: that depends on the machine and on its other load.
. "$(dirname "$0")/../lib/tap.sh"
left_before

ks bench --quick --json
is $rc 0 "bench --quick --json: status 0"
is "$left" 0 "bench: no process left"
is "$(ls "$TMPDIR")" "" "bench: no file left"
cp "$T/out" "$T/bench.json"

# j EXPR: a Python expression over the document D and its rows R.
j() {
	"$PY" -c '
import json, sys
D = json.load(open(sys.argv[1]))
R = D["figures"]
print(eval(sys.argv[2]))' "$T/bench.json" "$1" 2>&1
}
is "$(j 'sorted({r["id"] for r in R}, key=lambda i: (int(i[1:].rstrip("ab")), i))')" \
	"['M1', 'M2', 'M3', 'M4a', 'M4b', 'M5', 'M6', 'M7', 'M8', 'M9', 'M10', 'M11', 'M12', 'M13', 'M14', 'M15']" "every measure has a row"
is "$(j '[r["measure"] for r in R if not {"id", "measure", "unit", "values", "met"} <= set(r)]')" \
	"[]" "every row has what a row has"
is "$(j '[r["measure"] for r in R if "ours" not in r and "note" not in r]')" \
	"[]" "a row without a figure says why"
is "$(j '[r["measure"] for r in R if "ratio" in r and not r["ratio_min"] <= r["ratio"] <= r["ratio_max"]]')" \
	"[]" "ratios lie within their spread"
is "$(j '[r["measure"] for r in R if "target" in r and "ratio" in r and r["met"] != eval(str(r["ratio"]) + r["target"])]')" \
	"[]" "met is what ratio and target say"
is "$(j '[r["measure"] for r in R if "target" in r and "ratio" not in r and r["met"] is not None and r["met"] != eval(str(r["ours"]) + r["target"])]')" \
	"[]" "met is what figure and target say where there is no floor"
is "$(j '[r["id"] for r in R if r.get("ours", 1) < 0 and r["id"] != "M9"]')" "[]" "no figure is negative"
for id in M1 M2 M3 M4a M4b M5 M6 M7 M10 M11 M12 M14 M15; do
	is "$(j "any('ratio' in r for r in R if r['id'] == '$id')")" True "$id: a ratio was measured"
done
for id in M8 M9 M13; do
	is "$(j "any('ours' in r for r in R if r['id'] == '$id')")" True "$id: a figure was measured"
done
is "$(j 'sorted({int(r["measure"].split(", ")[1].split()[0]) for r in R if r["id"] == "M15" and "workers" in r["measure"] and "ratio" in r})')" \
	"[2, 32]" "M15: in pools of modules as well, of one bank and of several"
is "$(j 'sorted({int(r["measure"].split("pool of ")[1].split(",")[0]) for r in R if r["id"] == "M15" and "pool of" in r["measure"] and "ours" in r})')" \
	"[1, 33]" "M15: pools of any size, more workers than one bank holds among them"
# An idle pool that does something is a bug, on any machine: no timed assertion.
is "$(j '{r["ours"] for r in R if r["measure"].startswith("idle pool, context switches")}')" "{0.0}" \
	"an idle pool is never switched to"
is "$(j '{r["ours"] for r in R if r["measure"].startswith("idle module pool, context")}')" \
	"{0.0}" "nor one of modules, whoever watches their memory"
is "$(j 'D["quick"]')" True "a quick run says so"
is "$(j '"bwrap" in D["peers"] and "firejail" in D["peers"]')" True "peers are named, here or absent"
if command -v unshare >/dev/null; then
	is "$(j 'any(r.get("floor_name", "").startswith("unshare") for r in R)')" True \
		"a peer that is here has a row"
fi
watched env PATH=/nowhere "$KS" bench --quick --json --only M3
"$PY" -c 'import json,sys; d=json.load(open(sys.argv[1])); sys.exit(d["peers"]["unshare"] is not None)' "$T/out"
is $? 0 "a peer that is absent is null"

ks bench --quick --only M14
is $rc 0 "bench --only: status 0"
like "$(out)" '^M14 .* policy of 400 system call names' "the table has the row"
unlike "$(out)" '^M2 ' "and no other"
ks bench --only M3 --image debian:bookworm-slim
is $rc 125 "--image without M12: refused, as it would do nothing"
# (an engine that is installed and does not run would leave notes of what it may have made)
mkdir "$T/few"
ln -s "$(command -v bwrap)" "$(command -v unshare)" "$T/few"
watched env PATH="$T/few" "$KS" bench --quick --only M12 --image localhost/knit-none:none
is "$rc $(out | grep -A1 'by oci:docker' | grep -c 'run -- /bin/true failed: ')" "0 1" "--image: that it cannot be had is told, and why"

# usage: usage ERE NAME ARGS...
usage() {
	want=$1 name=$2
	shift 2
	ks bench "$@"
	is $rc 125 "$name: status 125"
	one_clear_line "$want" "$name"
}
usage '\-\-only: no measure' "no such measure" --only M99
usage '\-\-only: needs a value' "no measure at all" --only ''
usage '\-\-rounds' "no rounds" --rounds 0
usage '\-\-rounds' "rounds that are no number" --rounds many
usage 'unknown option --nosuchflag' "unknown option" --nosuchflag
ks bench --help
is $rc 0 "bench --help: status 0"
for o in $(sed -n 's/^  --\([a-z]*\) .*/\1/p' "$T/out"); do
	[ "$o" = help ] && continue
	ok "man page has --$o of bench" grep -q "^\.It Fl -$o" "$t_top/man/knit-sandbox.1"
done

# ^C in the middle: nothing is left and the status says so.
watch_opts="--at 1500:TERM"
ks bench --only M9
is $rc 143 "SIGTERM: status 143"
is "$left" 0 "SIGTERM: no process left"
is "$(ls "$TMPDIR")" "" "SIGTERM: no file left"

done_testing
