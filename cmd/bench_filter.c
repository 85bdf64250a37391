/* cmd/bench_filter.c: M14: a policy with 400 names of system calls -> the program that
 * the kernel takes. Beside libseccomp alone: the same names with the same decision,
 * for this machine's calls, by whichever of its two layouts is made faster.
 *
 * The names are all that this machine's calls have, filled up with those that only
 * other architectures know, as policies that are meant for many have them.
 */
#include <errno.h>
#include <fcntl.h>
#include <seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cmd/bench.h"
#include "ipc/clock.h"
#include "ipc/fd.h"
#include "sandbox/filter.h"
#include "sandbox/policy.h"

enum { NAMES = 400, NUMBERS = 512, REPEAT = 10, REFUSED = 38 };

struct names {
	char *v[NAMES];
	size_t n;
};

static bool
has(const struct names *x, const char *name)
{
	for (size_t i = 0; i < x->n; i++)
		if (strcmp(x->v[i], name) == 0)
			return true;
	return false;
}

static void
add_names(struct names *x, uint32_t arch)
{
	for (int nr = 0; nr < NUMBERS && x->n < NAMES; nr++) {
		char *name = seccomp_syscall_resolve_num_arch(arch, nr);

		if (name && !has(x, name) && kn_filter_check_call(name, NULL) == 0)
			x->v[x->n++] = name;
		else
			free(name);
	}
}

static void
names_fini(struct names *x)
{
	while (x->n > 0)
		free(x->v[--x->n]);
}

static int
load(const struct kn_bench *b, const struct names *x, struct kn_policy **out,
    struct kn_err *e)
{
	char path[128];
	const struct kn_policy_src src = {
		.type = KN_SRC_NAMED, .text = path, .label = "--policy"
	};
	FILE *f;

	snprintf(path, sizeof path, "%s/names.json", b->dir);
	f = fopen(path, "we");
	if (!f)
		return kn_err_sys(e, KN_EK_HOST, "open %s", path);
	fprintf(f,
	    "{\"version\":1,\"extends\":\"default\",\"seccomp\":{"
	    "\"groups\":{\"replace\":[]},"
	    "\"default\":{\"action\":\"SCMP_ACT_ERRNO\",\"errnoRet\":%d},"
	    "\"rules\":[{\"action\":\"SCMP_ACT_ALLOW\",\"names\":[",
	    REFUSED);
	for (size_t i = 0; i < x->n; i++)
		fprintf(f, "%s\"%s\"", i ? "," : "", x->v[i]);
	fputs("]}]}}\n", f);
	if (fclose(f) != 0)
		return kn_err_sys(e, KN_EK_HOST, "write %s", path);
	return kn_policy_load(&src, 1, out, e);
}

/* ---- both sides ---- */

static int
ours(const struct kn_policy *p, struct kn_series *s, struct kn_err *e)
{
	uint64_t t0 = kn_clock_now();

	for (int i = 0; i < REPEAT; i++) {
		struct kn_filter f;

		if (kn_filter_build(p, &f, e) < 0)
			return -1;
		kn_filter_fini(&f);
	}
	kn_series_add(s, (double)(kn_clock_now() - t0) / REPEAT / 1e3);
	return 0;
}

static int
theirs_once(const struct names *x, uint32_t layout, int fd)
{
	scmp_filter_ctx c = seccomp_init(SCMP_ACT_ERRNO(REFUSED));
	int rc = c ? 0 : -ENOMEM;

	if (rc == 0)
		rc = seccomp_attr_set(c, SCMP_FLTATR_CTL_OPTIMIZE, layout);
	for (size_t i = 0; rc == 0 && i < x->n; i++)
		/* a name of another architecture has nothing to be added for */
		(void)seccomp_rule_add(
		    c, SCMP_ACT_ALLOW, seccomp_syscall_resolve_name(x->v[i]), 0);
	if (rc == 0 && (lseek(fd, 0, SEEK_SET) < 0 || ftruncate(fd, 0) < 0))
		rc = -errno;
	if (rc == 0)
		rc = seccomp_export_bpf(c, fd);
	seccomp_release(c);
	return rc;
}

static int
theirs(const struct names *x, struct kn_series *s, struct kn_err *e)
{
	KN_OWN_FD int fd = memfd_create("bench-bpf", MFD_CLOEXEC);
	double best = 0;

	if (fd < 0)
		return kn_err_sys(e, KN_EK_HOST, "make a file");
	for (uint32_t layout = 1; layout <= 2; layout++) { /* by priority; as a tree */
		uint64_t t0 = kn_clock_now();
		double us;

		for (int i = 0; i < REPEAT; i++) {
			errno = -theirs_once(x, layout, fd);
			if (errno)
				return kn_err_sys(e, KN_EK_HOST, "libseccomp");
		}
		us = (double)(kn_clock_now() - t0) / REPEAT / 1e3;
		if (layout == 1 || us < best)
			best = us;
	}
	kn_series_add(s, best);
	return 0;
}

void
kn_bench_filter(struct kn_bench *b)
{
	struct kn_bench_row *r;
	struct kn_series s = { 0 }, f = { 0 };
	uint64_t t0 = kn_clock_now();
	struct kn_policy *p = NULL;
	struct names x = { 0 };
	struct kn_err e = { 0 };
	int rc;

	add_names(&x, seccomp_arch_native());
	add_names(&x, SCMP_ARCH_X86);
	add_names(&x, SCMP_ARCH_ARM);
	r = kn_bench_row(b, "M14", "us", "policy of %zu system call names to BPF", x.n);
	rc = load(b, &x, &p, &e);
	for (unsigned i = 0; rc == 0 && kn_bench_another(b, i, t0, 10000); i++)
		if ((rc = ours(p, &s, &e)) == 0)
			rc = theirs(&x, &f, &e);
	if (rc < 0)
		kn_bench_note(r, "%s", e.msg);
	kn_bench_compare(r, &s, &f, "libseccomp alone");
	kn_bench_at_most(r, 1.2);
	kn_policy_free(p);
	names_fini(&x);
	kn_series_fini(&s);
	kn_series_fini(&f);
}
