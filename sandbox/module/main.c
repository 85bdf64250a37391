/* sandbox/module/main.c: knit-worker-module, the process in which a module lives.
 *
 * It has no arguments; descriptors 3 and up are those of enum kn_resident_fd. By the
 * time the module's first instruction runs, the arena's descriptor is closed and the
 * slice is mapped for good.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ipc/err.h"
#include "sandbox/module/module.h"

enum { RECORD_MAX = 64 << 20, DIED = 70 };

struct kn_mod kn_mod = { .abort.abort_id = KN_NO_ABORT };

void
kn_mod_die(const char *what)
{
	fprintf(stderr, "knit-worker-module: %s\n", what);
	_exit(DIED);
}

/* Mapped and not read: whoever else has this descriptor may have moved its place. */
static int
read_record(struct kn_mod *m, struct kn_err *e)
{
	struct stat st;
	void *p;

	if (fstat(KN_RESIDENT_RECORD, &st) < 0)
		return kn_err_sys(e, KN_EK_HOST, "no record");
	if (st.st_size <= 0 || st.st_size > RECORD_MAX)
		return kn_err_set(
		    e, KN_EK_PROTOCOL, "a record of %lld bytes", (long long)st.st_size);
	p = mmap(
	    NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, KN_RESIDENT_RECORD, 0);
	if (p == MAP_FAILED)
		return kn_err_sys(e, KN_EK_HOST, "map the record");
	if (kn_resident_decode(p, (size_t)st.st_size, &m->record) < 0)
		return kn_err_set(e, KN_EK_PROTOCOL, "the record makes no sense");
	close(KN_RESIDENT_RECORD);
	return 0;
}

static int
map_slice(struct kn_mod *m, struct kn_err *e)
{
	const struct kn_resident *r = &m->record;
	uint32_t half = r->layout.worker_n / 2;
	int sealed = 0;

	if (kn_arena_map_slice(KN_RESIDENT_ARENA, &r->layout, r->pool_id, r->slice,
		&m->slice_map, &sealed, e) < 0)
		return -1;
	if (!sealed && r->need_mseal)
		return kn_err_set(e, KN_EK_HOST,
		    "this kernel has no mseal, and the slice has to be sealed");
	kn_slice_at(m->slice_map.p, &r->layout, &m->slice);
	kn_payload_init(&m->pay, m->slice.return_area_bytes);
	m->area = m->slice.submit_area;
	m->area_bytes = m->slice.submit_area_bytes;
	m->abort_words = m->slice.control->abort;
	m->worker = r->slice >= half ? r->slice - half : r->slice;
	m->bell = KN_RESIDENT_BELL;
	/* A program that a task starts has no use for it. */
	if (fcntl(m->bell, F_SETFD, FD_CLOEXEC) < 0)
		return kn_err_sys(e, KN_EK_HOST, "no doorbell");
	return 0;
}

/* Else it is called "3", as the descriptor it was started from. */
static void
name_process(const struct kn_mod *m)
{
	if (m->record.may_name)
		(void)prctl(PR_SET_NAME, "knit-module");
}

int
main(void)
{
	struct kn_mod *m = &kn_mod;
	struct kn_err e;

	kn_err_clear(&e);
	/* What a task prints before it crashes is not to be lost in a buffer. */
	setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
	if (read_record(m, &e) < 0 || map_slice(m, &e) < 0 || kn_mod_share(m, &e) < 0)
		kn_mod_die(e.msg);
	name_process(m);
	close(KN_RESIDENT_ARENA);
	if (m->claimant)
		close(KN_RESIDENT_REGION);
	kn_mod_load(m);
	kn_mod_serve(m);
	/* Destructors and exit handlers are the module's; we have none. */
	return 0;
}
