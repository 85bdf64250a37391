/* cmd/bench_start.c: M1, one command from nothing to its end; M12, a worker from
 * nothing to ready. Both beside the very bwrap command that we generate, run bare.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cmd/bench.h"
#include "ipc/clock.h"
#include "ipc/fd.h"
#include "sandbox/policy.h"
#include "supervisor/sup.h"

enum { PER_ROUND = 20, PER_ROUND_QUICK = 3, ARGS_MAX = 250, FILES_MAX = 32 };

/* bwrap's command line as `run -- /bin/true` would use it, /bin/true in place of the
 * stub. */
struct bare {
	struct kn_sup *sup; /* owns the words */
	const char *argv[ARGS_MAX];
	char numbers[FILES_MAX][12];
	int fds[FILES_MAX];
	size_t fd_n;
	struct kn_bench_cmd cmd;
};

/* Files that bwrap is given by content. */
static int
open_files(struct bare *x, const struct kn_policy *p, struct kn_err *e)
{
	for (size_t i = 0; i < p->fs.mount_n; i++) {
		const struct kn_mount *m = &p->fs.mounts[i];
		int fd;

		if (m->type != KN_MOUNT_DATA)
			continue;
		if (x->fd_n == FILES_MAX)
			return kn_err_set(e, KN_EK_HOST, "too many files by content");
		fd = m->data ? memfd_create("bench-file", MFD_CLOEXEC)
			     : open(m->source, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			return kn_err_sys(e, KN_EK_HOST, "open a file of the root");
		x->fds[x->fd_n++] = fd;
		if (kn_fd_write_all(fd, m->data, m->data_n) < 0)
			return kn_err_sys(e, KN_EK_HOST, "write a file");
	}
	return 0;
}

static void
bare_close(struct bare *x)
{
	while (x->fd_n > 0)
		kn_fd_close(&x->fds[--x->fd_n]);
	kn_sup_close(x->sup);
	x->sup = NULL;
}

static int
bare_open(struct bare *x, struct kn_bench *b, int n, struct kn_err *e)
{
	const char *const *argv;
	size_t i, file = 0;

	if (kn_sup_dry_run(b->plain, &b->host, &argv, &x->sup, e) < 0 ||
	    open_files(x, b->plain, e) < 0)
		return -1;
	for (i = 0; argv[i]; i++) {
		if (i + 1 >= ARGS_MAX)
			return kn_err_set(e, KN_EK_HOST, "too many arguments");
		x->argv[i] = argv[i];
		if (i > 0 && strcmp(argv[i - 1], "--file") == 0 && file < x->fd_n) {
			snprintf(x->numbers[file], sizeof x->numbers[file], "%d",
			    x->fds[file]);
			x->argv[i] = x->numbers[file++];
		}
	}
	x->argv[i - 1] = "/bin/true"; /* the stub comes last */
	x->cmd = (struct kn_bench_cmd){ .path = argv[0],
		.argv = x->argv,
		.rewind = x->fds,
		.rewind_n = x->fd_n,
		.uid = b->drop_uid,
		.lanes = 1,
		.n = n };
	return 0;
}

void
kn_bench_start(struct kn_bench *b)
{
	static const char *const argv[] = { "knit-sandbox", "run", "--quiet", "--",
		"/bin/true", NULL };
	struct kn_bench_row *r =
	    kn_bench_row(b, "M1", "ms", "run -- /bin/true, start to end");
	int n = b->quick ? PER_ROUND_QUICK : PER_ROUND;
	struct kn_bench_cmd ours = { .path = b->exe, .argv = argv, .lanes = 1, .n = n };
	struct kn_series s = { 0 }, f = { 0 };
	uint64_t t0 = kn_clock_now();
	struct bare bare = { 0 };
	struct kn_err e = { 0 };
	int rc = bare_open(&bare, b, n, &e);
	double ms;

	for (unsigned i = 0; rc == 0 && kn_bench_another(b, i, t0, 15000); i++) {
		rc = kn_bench_spawn(b, &ours, &ms, &e);
		if (rc == 0)
			kn_series_add(&s, ms / n);
		if (rc == 0 && (rc = kn_bench_spawn(b, &bare.cmd, &ms, &e)) == 0)
			kn_series_add(&f, ms / n);
	}
	if (rc < 0)
		kn_bench_note(r, "%s", e.msg);
	kn_bench_compare(r, &s, &f, "same bwrap, bare");
	kn_bench_at_most(r, 1.35);
	bare_close(&bare);
	kn_series_fini(&s);
	kn_series_fini(&f);
}

/* From before the fork to the echo of the ping, by the supervisor's own log. */
static int
cold(struct kn_bench *b, const char *launcher, int n, double *out_ms, struct kn_err *e)
{
	bool docker = strcmp(launcher, "oci:docker") == 0;
	double sum = 0;

	for (int i = 0; i < n; i++) {
		char text[8192];
		const char *at;

		if (kn_bench_child_lifecycle(b, launcher, docker ? b->image : NULL,
			text, sizeof text, e) < 0)
			return -1;
		at = strstr(text, " after=");
		if (!at)
			return kn_err_set(e, KN_EK_BUG, "the log has no ready line");
		sum += strtod(at + 7, NULL) / 1000;
	}
	*out_ms = sum / n;
	return 0;
}

/* A row for each other launcher that starts anything here, and why not of the one that
 * was asked for. */
static void
cold_others(struct kn_bench *b, int n)
{
	static const char *const launchers[] = { "oci:runc", "oci:crun", "oci:podman",
		"oci:docker", "direct" };

	for (size_t k = 0; k < sizeof launchers / sizeof *launchers; k++) {
		struct kn_series s = { 0 }, f = { 0 };
		uint64_t t0 = kn_clock_now();
		struct kn_bench_row *r;
		struct kn_err e = { 0 };
		double ms;
		int rc;
		bool asked = b->image && strcmp(launchers[k], "oci:docker") == 0;
		rc = cold(b, launchers[k], 1, &ms, &e);
		if (rc < 0 && !asked)
			continue;
		r = kn_bench_row(
		    b, "M12", "ms", "a worker by %s, launch to ready", launchers[k]);
		for (unsigned i = 0; rc == 0 && kn_bench_another(b, i, t0, 5000); i++) {
			rc = cold(b, launchers[k], n, &ms, &e);
			if (rc == 0)
				kn_series_add(&s, ms);
			if (rc == 0 && (rc = cold(b, "bwrap", n, &ms, &e)) == 0)
				kn_series_add(&f, ms);
		}
		if (rc < 0)
			kn_bench_note(r, "%s", e.msg);
		kn_bench_compare(r, &s, &f, "by bwrap");
		kn_series_fini(&s);
		kn_series_fini(&f);
	}
}

void
kn_bench_cold(struct kn_bench *b)
{
	struct kn_bench_row *r =
	    kn_bench_row(b, "M12", "ms", "a pool's first worker, launch to ready");
	int n = b->quick ? PER_ROUND_QUICK : PER_ROUND / 2;
	struct kn_series s = { 0 }, f = { 0 };
	uint64_t t0 = kn_clock_now();
	struct bare bare = { 0 };
	struct kn_err e = { 0 };
	int rc = bare_open(&bare, b, n, &e);
	double ms;

	for (unsigned i = 0; rc == 0 && kn_bench_another(b, i, t0, 15000); i++) {
		rc = cold(b, "bwrap", n, &ms, &e);
		if (rc == 0)
			kn_series_add(&s, ms);
		if (rc == 0 && (rc = kn_bench_spawn(b, &bare.cmd, &ms, &e)) == 0)
			kn_series_add(&f, ms / n);
	}
	if (rc < 0)
		kn_bench_note(r, "%s", e.msg);
	kn_bench_compare(r, &s, &f, "same bwrap to /bin/true");
	kn_bench_at_most(r, 1.3);
	bare_close(&bare);
	kn_series_fini(&s);
	kn_series_fini(&f);
	cold_others(b, n);
}
