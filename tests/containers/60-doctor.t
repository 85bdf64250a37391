#!/bin/sh
# tests/containers/60-doctor.t: in a container started without any flag, `doctor` says
# what is missing; started again with the flags that it names, until it names none, a
# sandbox runs there.
. "$(dirname "$0")/../lib/tap.sh"
S=/scratch/lab
. "$t_top/tests/containers/places.sh"

cat >"$T/flags.py" <<'X'
import json, os, shlex, subprocess, sys
# flags.py DOCTOR.json ENGINE FLAG...: a fix is a line for the shell that ends with the
# command that starts the container. Prints the flags with those that the findings name
# besides; what comes before that command is run. On standard error the findings.
D = json.load(open(sys.argv[1]))
engine, flags = sys.argv[2], sys.argv[3:]
have = list(zip(flags[::2], flags[1::2]))
for p in D["probes"]:
    fix = p.get("fix") or ""
    if p["status"] == "ok":
        continue
    print(p["probe"], p["status"], p.get("cause"), "by", p.get("fix_by"), ":", fix, file=sys.stderr)
    before, run, after = fix.rpartition(engine + " run ")
    if not run or "(" in fix:
        continue  # (what a newer engine would do)
    if ">k.json" in before and not os.path.exists("k.json"):
        subprocess.run(before, shell=True, check=True)
    words = shlex.split(after)
    for pair in zip(words[::2], words[1::2]):
        if pair not in have:
            have.append(pair)
print(*(w for pair in have for w in pair))
X

# The reader's folder, and his knit-sandbox.
chmod 755 "$T"
cd "$T" || exit 1
mkdir "$T/reader"
ln -s "$KS_REAL" "$T/reader/knit-sandbox"
PATH=$T/reader:$PATH
# start PLACE FLAGS COMMAND-LINE
start() {
	t_into="--rm -i --network none -v $S/machine/src:/src:ro $2 $image"
	case $1 in
	docker) eval "docker run $t_into $3" ;;
	podman) eval "podman run $t_into $3" ;;
	podman-user) as_user "cd $T && exec podman run $t_into $3" ;;
	esac </dev/null
}
for place in docker podman podman-user; do
	flags=
	round=0
	while :; do
		start $place "$flags" "/src/build/knit-sandbox doctor --json" >"$T/doctor" 2>"$T/err"
		rc=$?
		diag "$place $flags: doctor ends with $rc" >&2
		[ $rc -le 1 ] || diag "$(cat "$T/err")" >&2
		refused=$(js "$T/doctor" 'L[0]["refused"]')
		[ $round -gt 0 ] || like "$refused" '^[1-9]' "$place: without flags something is refused"
		# shellcheck disable=SC2086
		now=$("$PY" "$T/flags.py" "$T/doctor" "${place%-user}" $flags 2>"$T/said")
		diag "$(cat "$T/said")" >&2
		[ "$now" != "$flags" ] || break
		flags=$now
		round=$((round + 1))
		[ $round -lt 6 ] || break
	done
	is "$refused" 0 "$place: with the flags it names, nothing is refused"
	start $place "$flags" "/src/build/knit-sandbox run -- /bin/echo it runs" >"$T/out" 2>"$T/err"
	is "$? $(out)" "0 it runs" "$place: and a task runs"
	diag "$(err)" >&2
	unlike "$flags" privileged "$place: without privilege"
	# What is said of limits of memory, and what becomes of one.
	start $place "$flags" "/src/build/knit-sandbox run --memory 64M -- python3 -S -c 'x=bytearray(1<<30)'" >"$T/out" 2>"$T/err"
	rc=$?
	case $(js "$T/doctor" '[p["status"] for p in L[0]["probes"] if p["probe"] == "cgroup-memory"][0]') in
	ok) is $rc 137 "$place: doctor says that memory is limited, and it is" ;;
	*)
		is $rc 125 "$place: doctor says that memory cannot be limited, and a limit is refused"
		like "$(err)" '^hint: ' "$place: with what to do"
		;;
	esac
done
done_testing
