#!/bin/sh
# 41-presets.t: under each preset the program that it is for does its work, and what no
# task may do is refused, call by call.
. "$(dirname "$0")/../lib/tap.sh"
left_before
echo secret >"$T/secret"
chmod 644 "$T/secret"
cp "$t_lib/attempts.py" "$T/attempts.py"
mkdir "$T/work"
chmod 755 "$T/work"

# A program that this machine lacks: counted, no failure. $1: its package.
not_installed() {
	t_untold "not installed" "$1: $2"
	diag "not installed: $1: $2"
}
# Without a cgroup the memory is watched: said once, for the presets that demand one.
weak=
cgroup_granted || weak='/allow_degraded=["cgroup.memory"]'
under() { # PRESET ARGS...: run with it
	t_preset=$1
	shift
	case $t_preset in
	strict | judge | convert) ks run --quiet --policy "$t_preset" ${weak:+--set "$weak"} "$@" ;;
	*) ks run --quiet --policy "$t_preset" "$@" ;;
	esac
}
works() { # WHAT WANT
	is "$rc $(out)" "0 $2" "$t_preset: $1"
}
# refuses PRESET MORE: of all attempts none succeeds.
refuses() {
	under "$1" --ro-bind "$T/attempts.py:/attempts.py" --env "HOST=$T/secret" --env "MORE=$2" -- "$PY" /attempts.py
	like "$(out)" '^[4-9][0-9] attempts$' "$1: was tried"
	is "$(grep -v ' attempts$' "$T/out")" "" "$1: nothing of that, nor: $2"
}

# That it can tell: outside, an ordinary user gets something of it.
HOST=$T/secret MORE="fork socketpair unix create mkdir" as_user "$PY" "$T/attempts.py" >"$T/out" 2>"$T/err"
is "$(grep -cE '^(a socket to the network|a file of the caller|fork|socketpair|unix)$' "$T/out")" 5 "outside, attempts come true"

# ---- compute ----
cat >"$T/work/sum.c" <<'X'
#include <pthread.h>
#include <stdio.h>
static void *half(void *p)
{
	double s = 0;
	for (int i = 1; i < 100000; i++)
		s += 1.0 / i / i;
	*(double *)p = s;
	return 0;
}
int main(void)
{
	pthread_t t;
	double s;
	int n;
	if (scanf("%d", &n) != 1 || pthread_create(&t, 0, half, &s) || pthread_join(t, 0))
		return 1;
	printf("%d %.3f\n", 2 * n, s);
	return 0;
}
X
echo 21 >"$T/number"
if gcc -O1 -o "$T/work/sum" "$T/work/sum.c" -pthread 2>/dev/null; then
	under compute --ro-bind "$T/work:/work" --stdin "$T/number" -- /work/sum
	works "a program with a thread" "42 1.645"
else
	not_installed gcc "a program with a thread"
fi
under compute -- "$PY" -c 'import math, threading; t = threading.Thread(target=lambda: print(math.comb(40, 20))); t.start(); t.join()'
works "Python" 137846528820
if "$PY" -c 'import numpy' 2>/dev/null; then
	under compute -- "$PY" -c 'import numpy as n; a = n.arange(90000.).reshape(300, 300); print(int((a @ n.eye(300)).sum()))'
	works "numpy" 4049955000
else
	not_installed python3-numpy "numpy under compute"
fi
under compute --module "$B/tests/module/basic.so" --call echo --input loud
works "a call of a module" loud
refuses compute "fork socketpair unix chown create write mkdir memfd inotify sync shmget kill"
under compute -- sh -c 'true; (exit 3); echo no'
unlike "$(out)" no "compute: a shell starts nothing"
under compute -- sh -c 'exec /bin/echo other'
is "$rc $(out)" "126 " "compute: nor does it become another program"

# ---- python ----
tests=$("$PY" -c 'import test; print(test.__path__[0])' 2>/dev/null)
if [ -e "$tests/test_json/__init__.py" ]; then
	under python -- "$PY" -m test test_json test_re
	like "$rc $(out)" '^0 .*' "python: CPython's own tests of json and re"
	like "$(out)" 'All 2 tests OK' "python: all of them"
	# Those that start other programs; the rest, half a minute, with KNIT_LONG=1.
	if [ -n "${KNIT_LONG-}" ]; then
		under python -- "$PY" -m test test_subprocess
	else
		under python -- "$PY" -m test test_subprocess -m 'test_user' -m 'test_group' -m 'test_communicate*' -m 'test_shell*' \
			-m 'test_preexec*' -m 'test_start_new_session' -m 'test_process_group*' -m 'test_pass_fds*'
	fi
	is $rc 0 "python: CPython's own tests of subprocess"
else
	not_installed libpython3-testsuite "CPython's own tests under python"
	under python -- "$PY" -c 'import json, re, subprocess
assert json.loads(json.dumps({"a": [1, 2.5, None]})) == {"a": [1, 2.5, None]} and re.sub(r"(\w+) (\w+)", r"\2 \1", "a b") == "b a"
print(subprocess.run("exec cat", shell=True, input=b"fine", capture_output=True).stdout.decode())'
	works "json, re, subprocess" fine
fi
printf 'all:\n\t@echo made\n' >"$T/work/Makefile"
under python --ro-bind "$T/work:/work" -- make -s -C /work
works "make, as a child" made
refuses python "chown"

# ---- node ----
node=
for n in /usr/bin/node /usr/local/bin/node; do [ ! -x $n ] || node=$n; done
if [ -n "$node" ]; then
	cat >"$T/work/app.js" <<'X'
const { Worker, isMainThread, parentPort } = require('worker_threads');
const cp = require('child_process'), fs = require('fs'), zlib = require('zlib'), crypto = require('crypto');
const one = (it, what) => new Promise((ok, no) => { it.on(what, ok); it.on('error', no); });
if (!isMainThread) {
	parentPort.postMessage(6 * 7);
} else if (process.argv[2] === 'child') {
	process.send('pong');
} else (async () => {
	const seen = [await one(new Worker(__filename), 'message'), cp.execSync('echo hi').toString().trim()];
	fs.writeFileSync('/task/a', 'x'.repeat(1e6));
	fs.renameSync('/task/a', '/task/b');
	seen.push(zlib.gunzipSync(zlib.gzipSync(fs.readFileSync('/task/b'))).length);
	seen.push(await one(cp.fork(__filename, ['child']), 'message'));
	crypto.scryptSync('a', 'b', 32);
	const wasm = new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0, 1, 7, 1, 96, 2, 127, 127, 1, 127, 3, 2, 1, 0, 7, 7, 1, 3, 97, 100,
		100, 0, 0, 10, 9, 1, 7, 0, 32, 0, 32, 1, 106, 11]);
	seen.push((await WebAssembly.instantiate(wasm)).instance.exports.add(2, 3));
	await new Promise((ok) => require('net').connect(80, '127.0.0.1').on('error', (e) => { seen.push(e.code); ok(); }));
	console.log(seen.join(' '));
	process.exit(0);
})();
X
	under node --ro-bind "$T/work:/work" -- "$node" /work/app.js
	works "threads, children, files, zlib, crypto, WebAssembly; no network" "42 hi 1000000 pong 5 EAFNOSUPPORT"
else
	not_installed nodejs "Node under node"
fi
refuses node "unix chown"

# ---- convert ----
printf 'P3 2 2 255\n255 0 0  0 255 0\n0 0 255  255 255 255\n' >"$T/work/in.ppm"
if [ -x /usr/bin/convert ]; then
	under convert --ro-bind "$T/work:/work" -- /usr/bin/convert /work/in.ppm -resize 64x64 -blur 0x2 png:-
	is "$rc $(od -An -c -N4 "$T/out" | tr -d ' ') $(err)" "0 211PNG " "convert: ImageMagick makes a PNG, and warns of nothing"
	under convert -- /usr/bin/convert -size 6000x6000 xc:white -crop 2x2+9+9 pgm:-
	is "$rc $(head -c 2 "$T/out")" "0 P5" "convert: 36 million pixels, which go to a file"
	printf 'push graphic-context\nviewbox 0 0 9 9\nfill "url(https://127.0.0.1/x.png)"\nimage over 0,0 9,9 "|touch /task/pwned"\npop graphic-context\n' >"$T/work/evil.mvg"
	under convert --ro-bind "$T/work:/work" --collect pwned --out-dir "$T/got" -- /usr/bin/convert mvg:/work/evil.mvg png:/task/o.png
	ok "convert: a picture that names a command starts none" test ! -e "$T/got/pwned"
else
	not_installed imagemagick "ImageMagick under convert"
fi
if [ -x /usr/bin/ffmpeg ]; then
	under convert -- sh -c 'exec /usr/bin/ffmpeg -v error -f lavfi -i testsrc=duration=1:size=64x48:rate=5 -c:v mpeg4 -f avi -'
	is "$rc $(head -c 4 "$T/out")" "0 RIFF" "convert: ffmpeg makes a film"
	under convert -- /usr/bin/ffmpeg -v error -i http://127.0.0.1:9/x.mp4 -f null -
	ok "convert: a film from the network is none" test $rc -ne 0
else
	not_installed ffmpeg "ffmpeg under convert"
fi
refuses convert "fork socketpair unix chown inotify sync shmget"
under convert -- sh -c 'id; echo no'
unlike "$(out)" no "convert: a shell starts nothing"

# ---- build ----
cat >"$T/work/build.sh" <<'X'
set -e
cd /task
git init -q a
cd a
git config user.email t@t
git config user.name t
printf 'int f(void) { return 7; }\n' >f.c
printf 'int f(void);\nint main(void) { return f(); }\n' >m.c
printf 'p: m.o f.o\n\t$(CC) $(CFLAGS) -o $@ m.o f.o\n' >Makefile
git add .
git commit -qm one
git clone -q . ../b
cd ../b
make -s -j4 CC=gcc CFLAGS='-O1 -fsanitize=address'
./p || test $? = 7
git log --oneline | wc -l
X
if command -v git >/dev/null && [ -x "$T/work/sum" ]; then
	under build --ro-bind "$T/work:/work" -- sh /work/build.sh
	works "git, make -j, gcc, its address sanitizer" 1
else
	not_installed git "git and gcc under build"
fi
refuses build "unix chown sync"

# ---- what ordinary programs need (C145) ----
cp "$t_top/tests/hostile/legit_task.py" "$T/legit.py"
for p in python build container; do
	under $p --ro-bind "$T/legit.py:/legit.py" -- "$PY" /legit.py
	like "$rc $(out)" '^0 WORKS' "$p: what ordinary programs need (C145)"
done

# ---- container (in one: 40-doctor.t), default, strict ----
under container -- "$PY" -c 'import multiprocessing as m; print(m.Pool(2).map(abs, [-1, 2]))'
works "Python with processes" "[1, 2]"
refuses container "unix inotify sync"
refuses default "unix"
refuses strict "unix chown inotify sync shmget"

# Each preset is listed, valid, and each of its rules and mounts says why.
is "$("$KS" policy list | tr '\n' ' ')" "default strict compute python node judge convert build container " "the presets"
is "$("$PY" - "$t_top"/policies/*.json <<'X'
import json, sys
for name in sys.argv[1:]:
    d = json.load(open(name))
    assert d["description"].endswith("."), name
    for x in d.get("seccomp", {}).get("rules", []) + d.get("filesystem", {}).get("mounts", []):
        if not x.get("why", "").endswith("."):
            print(name, x)
X
)" "" "each rule says why"
left_after "presets"
done_testing
