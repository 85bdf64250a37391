#!/bin/sh
# 53-deploy.t: deploy/: the page's blocks run as written, generated files are the generated
# ones, the others say the same and have their form; and under the conditions of docker and
# of a pod, made by runc, a pool serves, and what doctor says mends what is missing.
. "$(dirname "$0")/../lib/tap.sh"
cd "$t_top" || exit 1
left_before
mkdir "$T/bin" "$T/runc" "$T/page.d"
printf '#!/bin/sh\nexec %s "$@"\n' "$KS_REAL" >"$T/bin/knit-sandbox"
chmod 755 "$T/bin/knit-sandbox"
# page TAG: its blocks as tests of ours.
page() {
	PATH=$T/bin:$PATH TMPDIR=$T/page.d "$PY" tests/lib/blocks.py deploy/README.md "$1" >"$T/page" 2>&1 </dev/null
	told "$1"
}
# told NAME: lines "ok - ..." of $T/page, and what stands below those that are not.
told() {
	while IFS= read -r line; do
		case $line in
		"ok "*) pass "$1: ${line#*- }" ;;
		"not ok "*) fail_because "$(cat "$T/page")" "$1: ${line#*- }" ;;
		esac
	done <"$T/page"
	like "$(cat "$T/page")" '^ok ' "$1: something was run"
}

# ---- what stands there ----
page here
for f in seccomp/container.json:seccomp:container systemd/knit-sandbox.service.d/around.conf:systemd:default; do
	file=deploy/${f%%:*} name=${f##*:} format=${f#*:}
	ks policy export --format "${format%:*}" --around --workers 2 "$name"
	if [ "$(uname -m)" = x86_64 ]; then
		is "$(grep -v '^#' "$file")" "$(out)" "${f%%:*} is the generated one"
	else
		not_here "${f%%:*} is of x86_64"
	fi
done
like "$(err)" 'workers: [0-9]+ MiB for each' "what the amount is made of is said"
ks policy export --around
is "$(out)" "$(cat deploy/seccomp/container.json)" "--around alone: the profile of preset container"
ks policy export --around --workers 0
is $rc 125 "--workers 0: refused"
ks policy export --format oci --around
is $rc 125 "--around in a format that starts no program of ours: refused"
like "$(grep -rnE '^[^#]*(privileged: true|--privileged|SYS_ADMIN|seccomp=unconfined|runAsUser: 0)' deploy/*/ deploy/*.yaml deploy/Containerfile)" \
	'^$' "no privilege is asked for"
if "$PY" -c 'import yaml' 2>/dev/null; then
	"$PY" tests/lib/deploy_forms.py "$KS_REAL" >"$T/page" 2>&1
	told "forms"
	is "$(grep -c . "$T/page")" "$(grep -c '^ok ' "$T/page")" "forms: nothing else is said"
else
	lacking "no python3-yaml" "forms"
fi
for d in ProtectKernelTunables ProtectKernelLogs ProtectHostname ProtectProc ProcSubset RestrictNamespaces PrivateUsers ProtectControlGroups DynamicUser RestrictSUIDSGID; do
	echo "^$d="
done >"$T/breaks"
is "$(cat deploy/systemd/*.service deploy/systemd/*/*.conf | grep -f "$T/breaks")" "" "unit: no setting that breaks sandboxes"
user=$(sed -n 's/^User=//p' deploy/systemd/*.service)
like "$(cat deploy/systemd/sysusers.d/*.conf)" "^u $user " "unit: its user is made, and is not root"
# What is left out on purpose says so where a reader would add it.
for d in $(sed 's/[=^]//g' "$T/breaks"); do
	grep -q "^#.*\\<$d\\>" deploy/systemd/knit-sandbox.service || echo "$d"
done >"$T/unsaid"
is "$(cat "$T/unsaid")" "" "unit: names what must not be added"

# ---- deploy/check does nothing to what is there already ----
mkdir "$T/there"
cat >"$T/there/docker" <<'X'
#!/bin/sh
# an engine that has a container knit
echo "$*" >>"$0.log"
case "$1 $2" in "container inspect" | "image inspect" | "image exists" | "container exists") exit 0 ;; esac
exit 1
X
chmod 755 "$T/there/docker"
cp "$T/there/docker" "$T/there/podman"
for e in docker podman; do
	PATH=$T/there:$PATH PROGRAM=$KS_REAL sh deploy/check $e >"$T/out" 2>&1
	is $? 1 "deploy/check $e: refused where a container knit is"
	like "$(out)" 'the container knit is there already' "deploy/check $e: which is named"
	unlike "$(cat "$T/there/$e.log")" '^(run|rm|stop|volume rm) ' "deploy/check $e: and nothing is started or removed"
done
cat >"$T/there/python3" <<'X'
#!/bin/sh
for x; do tag=$x; done
echo "$tag" >>"$0.log"
X
chmod 755 "$T/there/python3"
PATH=$T/there:$PATH PROGRAM=$KS_REAL sh deploy/check >"$T/out" 2>&1
is "$(sort "$T/there/python3.log" | grep -Ev 'kustomize|docker-direct')" here "deploy/check without a tag: nothing that changes the machine, nor what is there"
like "$(out)" '# left out: systemd: only by name' "deploy/check without a tag: systemd only by name"

# ---- units ----
if command -v systemd-analyze >/dev/null 2>&1; then
	mkdir "$T/units"
	cp -r deploy/systemd/. "$T/units"
	sed -i "s#/usr/local/bin/knit-sandbox#$KS_REAL#" "$T/units/knit-sandbox.service"
	is "$(SYSTEMD_UNIT_PATH="$T/units:" systemd-analyze verify "$T/units"/*.service "$T/units"/*.socket 2>&1 |
		grep 'knit-sandbox' | grep -v 'Failed to parse system call, ignoring\|man knit-serve')" "" "units: systemd takes them"
else
	not_here "no systemd-analyze"
fi
if kubectl kustomize deploy/kubernetes/pool >/dev/null 2>&1; then
	page kustomize
else
	not_here "no kubectl"
fi
left_after "the page"

# ---- the conditions of docker and of a pod ----
if [ -z "$root" ] || ! command -v runc >/dev/null 2>&1; then
	not_here "containers of runc, where root has it"
	done_testing
fi
KNIT_RUNC=$T/runc KNIT_PROGRAM=$KS_REAL
export KNIT_RUNC KNIT_PROGRAM
printf '#!/bin/sh\nexec %s %s/runc_docker.py "$@"\n' "$PY" "$t_lib" >"$T/bin/docker"
chmod 755 "$T/bin/docker"
PATH=$T/bin:$PATH
if ! docker run --rm --entrypoint /bin/true knit-sandbox x >"$T/err" 2>&1; then
	not_here "runc runs nothing here: $(tail -n 1 "$T/err" | cut -c1-200)"
	done_testing
fi
page docker
is "$(ls -d "$T/runc"/volume-* 2>/dev/null)" "" "docker: no volume is left"
# For a user without namespaces Landlock has to have scopes; before, it is refused.
if "$KS" doctor --json | grep -A 1 '"landlock"' | grep -q '"ok"'; then
	page docker-direct
else
	not_here "scopes of Landlock, which the launcher direct needs"
fi
cd "$T" || exit 1

# fix_of: of the doctor that ran just now.
fix_of() {
	"$PY" -S - "$T/out" "$1" <<'X'
import json, sys
print({p["probe"]: p for p in json.load(open(sys.argv[1]))["probes"]}[sys.argv[2]].get("fix"))
X
}
watched docker run --rm knit-sandbox doctor --json
like "$(fix_of run)" '>k\.json; docker run --user 1000 --security-opt seccomp=k\.json' "docker's defaults: doctor names a profile"
watched docker run --rm --user 1000 knit-sandbox run -- true
is $rc 125 "docker's profile for a user: a run is refused"
like "$(err)" 'seccomp=k\.json' "and its hint names a profile"
watched docker run --rm --user 1000 knit-sandbox doctor --json
# Literally: the line, and what it is to run.
fix=$(fix_of run)
watched sh -c "$fix knit-sandbox run -- echo works"
is "$rc $(out)" "0 works" "doctor's fix, followed literally: a run works"
watched sh -c "$fix knit-sandbox doctor --json"
is "$(js "$T/out" '(L[0]["refused"], [p["probe"] for p in L[0]["probes"] if p["status"] == "refused"])')" "(0, [])" \
	"and nothing is refused"
watched docker run --rm --user 1000 --security-opt seccomp=k.json knit-sandbox doctor --json
like "$(fix_of proc)" 'systempaths=unconfined' "the profile alone: doctor names what else"
is "$(js "$T/out" '[p["cause"] for p in L[0]["probes"] if p["probe"] == "proc"]')" "['proc-masked']" "and the layer"
# A call that the kernel has and the container's filter knows not is not laid to the kernel.
if "$KS" doctor --json | grep -A 2 '"mseal"' | grep -q '"ok"'; then
	unlike "$(js "$T/out" '[p.get("cause") for p in L[0]["probes"] if p["probe"] == "mseal"]')" "'mseal'" "mseal: the filter's fault, if any's"
fi

if ! "$PY" -c 'import yaml' 2>/dev/null; then
	skip "no python3-yaml" "a pod"
	done_testing
fi
pod() { # ARGS...: in the deployment's pod, or the one of $manifest
	watched "$PY" "$t_lib/runc_pod.py" "$manifest" knit --in "$T/node" "$@"
}
manifest=$t_top/deploy/kubernetes/pool/deployment.yaml
mkdir -p "$T/node/knit"
cp "$t_top/deploy/seccomp/container.json" "$T/node/knit/"
[ "$(uname -m)" = x86_64 ] || knit-sandbox policy export --around >"$T/node/knit/container.json" 2>/dev/null
pod -- doctor --json
is "$(js "$T/out" '(L[0]["container"], L[0]["refused"])')" "('kubernetes', 0)" "the pod: nothing is refused"
pod -- run -- sh -c 'id -u; grep -c . /proc/self/uid_map; ls /proc | grep -c "^[0-9]*$"'
is "$rc" 0 "the pod: a run works"
# Each condition by itself is needed, and named where it is missing.
sed 's/procMount: Unmasked/procMount: Default/' "$manifest" >"$T/covered.yaml"
sed 's/seccompProfile: .*/seccompProfile: {type: RuntimeDefault}/' "$manifest" >"$T/usual.yaml"
manifest=$T/covered.yaml
pod -- doctor --json
like "$(fix_of run)" 'procMount: Unmasked' "a pod with covers over /proc: doctor says which line"
manifest=$T/usual.yaml
pod -- doctor --json
like "$(fix_of run)" 'seccompProfile: \{type: Localhost\}: knit-sandbox policy export --around' "a pod with the runtime's profile: the same"
manifest=$t_top/deploy/kubernetes/pool/deployment.yaml

# As the kubelet has it: started, probed, used, told to end.
# (Not watched: what goes on would count as left over.)
"$PY" "$t_lib/runc_pod.py" "$manifest" knit --in "$T/node" >"$T/out" 2>&1
is "$(out)" knit "the pod's container starts"
docker exec knit cat /proc/self/uid_map >"$T/map" 2>&1
like "$(cat "$T/map")" '^ *0 +300000 +65536' "its ids are none of the machine's"
t_try=0
until docker exec knit knit-sandbox serve --probe /run/knit/http >"$T/probe" 2>&1; do
	t_try=$((t_try + 1))
	[ $t_try -lt 100 ] || break
	pause 300
done
is "$(cat "$T/probe")" serving "its readiness probe"
# The container's limit holds all that tasks may have: what is theirs, then far more.
"$PY" >"$T/tasks" <<'X'
import json
full = """for d, n in ("/task", 120), ("/tmp", 30), ("/dev/shm", 30):
    with open(d + "/x", "wb") as f: f.write(b"x" * (n << 20))
x = b"y" * (250 << 20)
print(len(x))"""
for i in "a", "b":
    print(json.dumps({"id": "full-" + i, "argv": ["python3", "-S", "-c", full]}))
for i in "c", "d":
    print(json.dumps({"id": "more-" + i, "argv": ["python3", "-S", "-c", "print(len(b'y' * (3 << 30)))"]}))
X
docker exec -i knit knit-sandbox run --quiet --connect /run/knit/tasks --tasks - <"$T/tasks" >"$T/out" 2>"$T/err"
is "$(js "$T/out" 'sorted((r["id"], r["verdict"], r["attempt"]) for r in L)')" \
	"[('full-a', 'ok', 1), ('full-b', 'ok', 1), ('more-c', 'memory', 1), ('more-d', 'memory', 1)]" "what tasks may have is there, and no task is ended for another"
is "$(docker exec knit knit-sandbox serve --probe /run/knit/http 2>&1)" serving "and the server is"
docker exec -i knit knit-sandbox run --quiet --connect /run/knit/tasks --tasks - >"$T/out" 2>"$T/err" <<'X'
{"id":"make","argv":["sh","-c","head -c 15000000 /dev/zero >made"],"keep":["made"]}
{"id":"take","argv":["sh","-c","wc -c <made"],"after":["make"],"files":{"made":{"from":"make/made"}}}
X
is "$(js "$T/out" '[(r["id"], r["verdict"], r["stdout"].strip()) for r in L]')" "[('make', 'ok', ''), ('take', 'ok', '15000000')]" \
	"what a task keeps has room in a pod whose root is read-only"
docker exec knit knit-sandbox run --connect /run/knit/tasks -- sh -c 'sleep 3; echo done' >"$T/slow" 2>&1 &
waiting=$!
until docker exec knit knit-sandbox top --once /run/knit/tasks 2>&1 | grep -q ' busy ' || ! kill -0 $waiting; do
	pause 50
done
docker stop knit >"$T/out" 2>&1 || cat "$T/out" >&2
wait $waiting
is "$(out) $(cat "$T/slow")" "knit done" "SIGTERM: drained, what was taken is answered"
docker rm --force knit >/dev/null
is "$(ls "$T/runc/state")" "" "no container is left"
rm -rf "$T/runc" "$T/node"
watched true
left_after "containers"
done_testing
