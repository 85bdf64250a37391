#!/bin/sh
# demo.sh: judge the submissions of this folder with knit-sandbox and compare.
#
#   sh examples/judge/demo.sh PATH/TO/knit-sandbox
#
# Exit 0 only if every submission ends as expected.tsv says.
set -u
here=$(dirname "$0")
bin=${1:-knit-sandbox}
# The environment's own secret: sum-environment.sh looks for it and must not find it.
JUDGE_SECRET=must-not-be-seen
export JUDGE_SECRET

die() {
	echo "demo: $*" >&2
	exit 1
}
command -v "$bin" >/dev/null || die "no program $bin; build it with: make"
for tool in python3 gcc; do
	command -v $tool >/dev/null || die "no $tool here; install it, or run: sh setup.sh demo"
done
tmp=$(mktemp -d) || die "cannot make a folder for the results below ${TMPDIR:-/tmp}"
trap 'rm -rf "$tmp"' EXIT
trap 'exit 130' INT TERM HUP

# The preset `judge` insists on cgroups, and refuses to run where none is granted, as
# for most ordinary users. Then a variant of it lets the watching supervisor hold the
# limits, and we say so.
policy=judge
if ! "$bin" run --policy judge --quiet -- true 2>"$tmp/refused"; then
	grep -q cgroup "$tmp/refused" || {
		cat "$tmp/refused" >&2
		die "the sandbox does not start here"
	}
	policy=$here/no-cgroup.json
	echo "No cgroup for this user: memory and process limits are held by the watching" \
	    "supervisor (policy $policy)."
fi

python3 "$here/judge.py" tasks >"$tmp/tasks.jsonl" || die "cannot make the task lines"
start=$(date +%s)
"$bin" run --policy "$policy" --tasks "$tmp/tasks.jsonl" --workers 2 \
    >"$tmp/results.jsonl" 2>"$tmp/stderr"
status=$?
# 0: all tasks ok; 1: all answered, some not ok, which is what this folder is about.
[ $status -le 1 ] || {
	cat "$tmp/stderr" >&2
	die "knit-sandbox ended with status $status"
}
python3 "$here/judge.py" table "$tmp/results.jsonl"
status=$?
echo "$(($(date +%s) - start)) s of judging with 2 workers"
exit $status
