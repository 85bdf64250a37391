#!/bin/sh
# tests/lint/selftest.sh: each rule of the other lints fails on a bad sample, and says
# where. A lint that cannot fail would be worse than none: it would be believed.
here=$(cd "$(dirname "$0")" && pwd)
tmp=$(mktemp -d) || exit 2
trap 'rm -rf "$tmp"' EXIT
failed=0

# put PATH: a file of the sample tree, from standard input.
put() {
	mkdir -p "$tmp/t/$(dirname "$1")"
	cat >"$tmp/t/$1"
}
fresh() {
	rm -rf "$tmp/t"
	mkdir "$tmp/t"
}
# bad LINT TEXT: LINT must fail on the tree and say TEXT.
bad() {
	if B=$tmp/t/build sh "$here/$1.sh" "$tmp/t" >"$tmp/out" 2>&1; then
		echo "$1 passes a sample that is bad: $2"
		failed=1
	elif ! grep -qF -- "$2" "$tmp/out"; then
		echo "$1 does not say '$2' but:"
		sed 's/^/	/' "$tmp/out"
		failed=1
	fi
}
good() {
	if ! B=$tmp/t/build sh "$here/$1.sh" "$tmp/t" >"$tmp/out" 2>&1; then
		echo "$1 fails a sample that is good ($2):"
		sed 's/^/	/' "$tmp/out"
		failed=1
	fi
}

# ---- conformance ----
fresh
printf 'shown by `test_x:it_is_so`, `transcripts:calm`, `01-a.t`, `a.py:b`, `lies.py:c-d`\n' | put tests/CONFORMANCE.md
printf 'static void\nit_is_so(void **state)\n' | put tests/unit/test_x.c
: | put tests/sim/transcripts/calm.txt
: | put tests/integ/01-a.t
printf 'def test_b(place):\n' | put tests/fault/a.py
printf 'LIES = {\n    "c-d": ("x", ()),\n' | put tests/fault/lies.py
good conformance 'all are there'
rm "$tmp/t/tests/integ/01-a.t"
bad conformance 'names 01-a.t'
: | put tests/unit/test_x.c
bad conformance 'names test_x:it_is_so'
rm "$tmp/t/tests/sim/transcripts/calm.txt"
bad conformance 'names transcripts:calm'
: | put tests/fault/a.py
bad conformance 'names a.py:b'
: | put tests/fault/lies.py
bad conformance 'names lies.py:c-d'

# ---- arena ----
fresh
mkdir -p "$tmp/t/ipc" "$tmp/t/man"
cp "$here"/../../ipc/*.h "$here/../../ipc/layout.c" "$tmp/t/ipc/"
cp "$here/../../man/knit-arena.7" "$tmp/t/man/"
good arena 'the page as it is'
sed 's/control.begun_ns Ta 256/control.begun_ns Ta 264/' "$here/../../man/knit-arena.7" | put man/knit-arena.7
bad arena 'field kn_control begun_ns 264 8'
sed '/control.parked Ta/d' "$here/../../man/knit-arena.7" | put man/knit-arena.7
bad arena 'no row for parked of struct kn_control'
sed 's/KN_AREAS Ta 32/KN_AREAS Ta 33/' "$here/../../man/knit-arena.7" | put man/knit-arena.7
bad arena 'number KN_AREAS 33'
cp "$here/../../man/knit-arena.7" "$tmp/t/man/"
sed 's/KN_WORD32(stop_ack);/&\n	KN_WORD32(heartbeat);/' "$here/../../ipc/layout.h" | put ipc/layout.h
bad arena 'no row for heartbeat of struct kn_control'

# ---- layers ----

# include FILE HEADER TEXT: a file with that include is bad.
include() {
	fresh
	printf '/* a sample */\n#include %s\n' "$2" | put "$1"
	bad layers "$1:2: $3"
}
include ipc/a.c '"sandbox/policy.h"' 'ipc may not include "sandbox/policy.h"'
include ipc/a.h '"tests/unit/x.h"' 'ipc may not include'
include sandbox/a.c '"ipc/lane.h"' 'sandbox may not include "ipc/lane.h"'
include sandbox/a.c '"supervisor/sup.h"' 'sandbox may not include'
include sandbox/a.c '"sandbox/stub/stub.h"' 'sandbox may not include'
include sandbox/stub/a.c '"sandbox/policy.h"' 'sandbox/stub may not include'
include supervisor/core/a.c '"ipc/fd.h"' 'supervisor/core may not include "ipc/fd.h"'
include supervisor/core/a.c '"supervisor/sup.h"' 'supervisor/core may not include'
include supervisor/core/a.c '<stdio.h>' 'supervisor/core may not include <stdio.h>'
include supervisor/a.c '"cmd/cmd.h"' 'supervisor may not include'
include supervisor/a.c '"supervisor/core/state.h"' 'supervisor may not include'
include cmd/bench_a.c '"supervisor/core/pool.h"' 'cmd may not include'
include cmd/run_a.c '"supervisor/sup.h"' 'cmd may not include'
include cmd/out.h '"sandbox/layer.h"' 'cmd may not include'
include cmd/run.c '"ipc/lane.h"' 'cmd may not include'
include supervisor/loop.c '<jansson.h>' 'jansson'
include cmd/run.c '<jansson.h>' 'jansson'
include sandbox/launch.c '<seccomp.h>' 'libseccomp'
include sandbox/stub/wall.c '<sys/capability.h>' 'libcap'
fresh
printf '#include <%s>\n' jansson.h | put sandbox/policy_json.c
printf '#include "%s"\n' ipc/err.h sandbox/policy.h | put sandbox/a.c
printf '#include "%s"\n' ipc/err.h supervisor/core/event.h | put supervisor/core/a.c
printf '#include <%s>\n' stdint.h string.h | put supervisor/core/b.c
printf '#include "%s"\n' ipc/fd.h supervisor/sup.h version.h | put cmd/bench_a.c
printf '#include "%s"\n' ipc/fd.h cmd/cmd.h version.h | put cmd/run.c
good layers 'all as it should be'

# object SOURCE: as if it were an object of the core.
object() {
	mkdir -p "$tmp/t/build/supervisor/core"
	echo "$1" >"$tmp/a.c"
	${CC:-cc} -c -o "$tmp/t/build/supervisor/core/a.o" "$tmp/a.c"
}
object 'int open(void); int f(void) { return open(); }' &&
	bad layers 'supervisor/core calls open'
object 'long kn_clock_now(void); long f(void) { return kn_clock_now(); }' &&
	bad layers 'supervisor/core reads the clock'
object 'void kn_x(void *); void f(void *p) { __builtin_memset(p, 0, 9999); kn_x(p); }' &&
	good layers 'memset and kn_x'

# ---- atomics ----

good_atomics() {
	fresh
	put ipc/shm.h <<'END'
static inline int
kn_shm_load32_acquire(const int *p)
{
	return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}
static inline void
kn_shm_store32_release(int *p, int v)
{
	__atomic_store_n(
	    p, v, __ATOMIC_RELEASE);
}
END
	put ipc/layout.h <<'END'
/* word: writer one, reader other.
 * P1 kn_a_put store release <-> C1 kn_a_get load
 * acquire. If one dies before P1 nothing was said. */
END
	put ipc/a.c <<'END'
void
kn_a_put(int *w)
{
	kn_shm_store32_release(w, 1); /* P1 */
}
int
kn_a_get(int *w)
{
	return kn_shm_load32_acquire( /* C1 */
	    w);
}
END
}
# change FILE SED TEXT: the good tree with one thing changed is bad.
change() {
	good_atomics
	sed "$2" "$tmp/t/$1" >"$tmp/changed"
	if cmp -s "$tmp/changed" "$tmp/t/$1"; then
		echo "selftest: $2 changes nothing"
		failed=1
	fi
	cp "$tmp/changed" "$tmp/t/$1"
	bad atomics "$3"
}
good_atomics
good atomics 'a pair'
change ipc/a.c 's/^void$/#include <stdatomic.h>/' 'ipc/a.c:1: atomics belong in ipc/shm.h'
change ipc/a.c 's/kn_shm_load32_acquire(.*/__atomic_load_n(/' 'atomics belong in ipc/shm.h'
change ipc/a.c 's/^int$/_Atomic int/' 'ipc/a.c:6: atomics belong in ipc/shm.h'
change ipc/shm.h 's/return/__atomic_thread_fence(__ATOMIC_SEQ_CST); return/' \
	'ipc/shm.h:4: a standalone fence'
change ipc/shm.h 's/, __ATOMIC_ACQUIRE//' 'ipc/shm.h:4: no order'
change ipc/shm.h 's/, __ATOMIC_RELEASE//' 'ipc/shm.h:9: no order'
change ipc/shm.h 's/load32_acquire/load32/' 'kn_shm_load32 does not name its order'
change ipc/a.c 's/ .. P1 ..//' 'ipc/a.c:4: kn_shm_ call without a label'
change ipc/a.c 's/P1/the pair of C1/' 'without a label'
change ipc/a.c 's/C1/C7/' 'ipc/a.c:9: label C7 is on no card'
change ipc/a.c 's/C1/P1/' 'label C1 stands at no call'
change ipc/layout.h 's/dies/dozes/' 'a card without what happens if the writer dies'
change ipc/layout.h 's/kn_a_put/kn_a_post/' 'no function kn_a_post'
change ipc/layout.h 's/<->/and/' 'label P1 is on no card'
good_atomics
cp "$tmp/t/ipc/layout.h" "$tmp/t/ipc/second.h"
bad atomics 'label P1 is on another card too'

# ---- sizes ----

lines() { # N: that many lines
	awk -v n="$1" 'BEGIN { for (i = 0; i < n; i++) print "	x();" }'
}
function_of() { # N: a function of that many lines, the line of its type not counted
	printf 'int\nf(void)\n{\n'
	lines $(($1 - 3))
	echo '}'
}
fresh
lines 500 | put ipc/a.c
function_of 70 | put ipc/b.c
function_of 300 | put tests/unit/t.c
lines 900 | put tests/hostile/h.c
good sizes 'just within'
lines 501 | put ipc/a.c
bad sizes 'ipc/a.c:1: 501 lines (at most 500)'
printf 'ipc/a.c a table, one row an option\n' | put tests/lint/size.allow
good sizes 'an exception by name'
printf 'ipc/a.c\n' | put tests/lint/size.allow
bad sizes 'without a reason'
printf 'ipc/a.c why\nipc/b.c why\n' | put tests/lint/size.allow
bad sizes 'ipc/b.c: not needed any more'
printf 'a 1\nb 2\nc 3\nd 4\ne 5\n' | put tests/lint/size.allow
bad sizes '5 entries (at most 4)'
fresh
function_of 71 | put ipc/b.c
bad sizes 'ipc/b.c:2: f has 71 lines (at most 70)'
printf 'ipc/b.c:f the event switch\n' | put tests/lint/size.allow
good sizes 'a function by name'
fresh
lines 501 | put tests/unit/t.c
bad sizes 'tests/unit/t.c:1: 501 lines'

# ---- banned ----

for call in strcpy strcat sprintf gets system usleep alloca popen signal; do
	fresh
	printf 'void f(void)\n{\n	if (%s (p, q))\n		;\n}\n' "$call" | put supervisor/a.c
	bad banned "supervisor/a.c:3: $call() is banned"
done
fresh
put ipc/a.c <<'END'
/* strcpy(a, b) and system() are not called here, says the comment;
 * signal(x) neither */
void kn_proc_signal(int x);
void f(void) { kn_proc_signal(1); snprintf(p, n, "system(%d) \" gets(x)", 1); o.system(); }
enum { TODO = 4 };
END
printf 'int main(void) { signal(1, 0); }\n' | put tests/hostile/h.c
good banned 'names that only look like it'
for word in TODO FIXME XXX 'not implemented' 'coming soon'; do
	fresh
	printf '\n/* %s: the other half */\n' "$word" | put cmd/a.c
	bad banned 'cmd/a.c:2: a promise'
	printf 'char *s = "%s";\n' "$word" | put cmd/a.c
	bad banned 'cmd/a.c:1: a promise'
	fresh
	printf 'Streams: %s.\n' "$word" | put README.md
	bad banned 'README.md:1: a promise'
done

[ $failed -eq 0 ] && echo "every rule can fail"
exit $failed
