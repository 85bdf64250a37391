/* sandbox/stub/boot.c: the stub's start, a timeline of privileges.
 *
 *   1. own house: not dumpable, default signals, nothing inherited but the socket
 *   2. boot record; in a container of a runtime, cgroups (nest.h); arena: map the
 * slice, seal it, close the arena's descriptor
 *   3. mounts: are the binds the files the supervisor meant; the template namespace
 *      and, if the policy has a way out, the socket that leads there
 *   4. capabilities down to the one that makes cells, verified
 *   5. no_new_privs, limits, the worker filter
 *
 * Each step that fails is named in a BOOT_FAIL message with the errno and a word on
 * what; the sentence is the supervisor's. Nothing untrusted has run by then.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "ipc/err.h"
#include "sandbox/stub/egress.h"
#include "sandbox/stub/nest.h"
#include "sandbox/stub/send.h"
#include "sandbox/stub/stub.h"
#include "sandbox/stub/sys.h"
#include "sandbox/stub/text.h"

enum {
	BINDS_MAX = 4096,
	RECORD_MAX = 4 << 20,
	/* Descriptors in flight in local sockets are counted per user of the host, and
	 * whoever wants to send some is refused above his own limit of open files, plus
	 * one message (253). A task must be refused well before its keepers are: they
	 * are the same user where no root gives each worker one of its own. */
	FLIGHT_RESERVE = 320,
};

static void
say(enum kn_boot_step step, int err, const char *what)
{
	static const char *const words[] = { [EPERM] = "Operation not permitted",
		[ENOENT] = "No such file or directory",
		[EACCES] = "Permission denied",
		[EINVAL] = "Invalid argument",
		[ENOSPC] = "No space left on device" };
	const size_t words_n = sizeof words / sizeof *words;
	char buf[400];
	struct kn_text t = { buf, sizeof buf, 0 };

	kn_text_str(&t, kn_boot_step_name(step));
	kn_text_str(&t, ": ");
	kn_text_str(&t, what ? what : "failed");
	if (err > 0 && (size_t)err < words_n && words[err]) {
		kn_text_str(&t, ": ");
		kn_text_str(&t, words[err]);
	} else if (err) {
		kn_text_str(&t, ": error ");
		kn_text_u64(&t, (uint64_t)err);
	}
	kn_text_str(&t, "\n");
	(void)!write(2, buf, t.n);
}

int
kn_boot_fail(int sock, enum kn_boot_step step, int err, const char *what)
{
	struct {
		struct kn_msg m;
		char text[200];
	} out = { .m = { .type = KN_MSG_BOOT_FAIL,
		      .arg = (uint32_t)step,
		      .sys = (uint32_t)(err < 0 ? -err : err) } };

	if (what)
		out.m.bytes = (uint32_t)kn_err_printable(
		    out.text, sizeof out.text, what, (int)strnlen(what, 1024));
	if (kn_fd_send(sock, &out, sizeof out.m + out.m.bytes, NULL, 0, 0) < 0)
		say(step, (int)out.m.sys, what);
	return -1;
}

static int
fail(const struct kn_stub *s, enum kn_boot_step step, int err, const char *what)
{
	return kn_boot_fail(s->sock, step, err, what);
}

/* ---- 1. own house ---- */

static int
take_house(struct kn_stub *s, const char **out_what)
{
	struct sigaction dfl = { .sa_handler = SIG_DFL };
	sigset_t none;
	int null;

	*out_what = "the stub must be PID 1 of its sandbox";
	if (!s->direct.place && getpid() != 1) /* kill(-1) would reach strangers */
		return -EINVAL;
	/* Openable only while dumpable; without it max_rss keeps the peak of large
	 * jobs. */
	s->refs_fd = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
	*out_what = "dumpable";
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return -errno;
	/* What a launcher ignores or blocks would be inherited by every task. */
	for (int sig = 1; sig <= SIGRTMAX; sig++)
		(void)sigaction(sig, &dfl, NULL);
	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	umask(022);
	*out_what = "/dev/null";
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null < 0)
		return -errno;
	for (int fd = 0; fd < 3; fd++)
		if (null != fd && dup2(null, fd) < 0)
			return -errno;
	if (null > 2)
		close(null);
	close(KN_STUB_EXE_FD);
	*out_what = "an eventfd";
	s->told_fd = (int)KN_SYS2(SYS_eventfd2, 0, O_CLOEXEC | O_NONBLOCK);
	if (s->told_fd < 0)
		return s->told_fd;
	kn_left_init(&s->left);
	s->watch.proc_fd =
	    open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOATIME);
	if (s->watch.proc_fd < 0)
		s->watch.proc_fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	*out_what = "/proc";
	return s->watch.proc_fd < 0 ? -errno : 0;
}

/* ---- 2. boot record and arena ---- */

/* Descriptors in the order of enum kn_boot_fd, of those that are present. */
static int
sort_fds(int *got, int got_n, uint32_t has, int fd[KN_BOOT_FD_N])
{
	int at = 0;

	for (int i = 0; i < KN_BOOT_FD_N; i++) {
		fd[i] = -1;
		if (i <= KN_BOOT_FD_BELL || has >> i & 1) {
			if (at == got_n)
				return -EBADMSG;
			fd[i] = got[at++];
		}
	}
	return at == got_n ? 0 : -EBADMSG;
}

static int
read_record(int fd, struct kn_map *out, struct kn_boot *b, struct kn_boot_bind *binds)
{
	const int seals = F_SEAL_WRITE | F_SEAL_SHRINK;
	struct stat st;

	if ((fcntl(fd, F_GET_SEALS) & seals) != seals)
		return -EPERM;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_size <= 0 || st.st_size > RECORD_MAX)
		return -EFBIG;
	out->n = (size_t)st.st_size;
	out->p = mmap(NULL, out->n, PROT_READ, MAP_PRIVATE, fd, 0);
	if (out->p == MAP_FAILED)
		return -errno;
	return kn_boot_decode(out->p, out->n, b, binds, BINDS_MAX) < 0 ? -EBADMSG : 0;
}

static void
keep_record(struct kn_stub *s, const struct kn_boot *b)
{
	s->flags = b->flags;
	s->worker = b->worker;
	s->worker_n = b->worker_n;
	s->tmp_bytes = b->tmp_bytes;
	s->tmp_inodes = b->tmp_inodes;
	s->task_bytes = b->task_bytes;
	s->task_inodes = b->task_inodes;
	s->collect = (struct kn_collect_limits){ b->collect_file_max,
		b->collect_total_max, b->collect_count_max };
	kn_mounts_opts(s->tmp_opts, b->tmp_bytes, b->tmp_inodes, "1777");
	kn_mounts_opts(s->shm_opts, b->shm_bytes, b->shm_inodes, "1777");
	kn_mounts_opts(s->task_opts, b->task_bytes, b->task_inodes, "0755");
	kn_fresh_init(s->fresh);
	kn_ipcns_init(&s->ipcns);
	memcpy(s->cell_bpf, b->cell_bpf, (size_t)b->cell_bpf_n * sizeof s->cell_bpf[0]);
	s->cell_bpf_n = b->cell_bpf_n;
}

static int
map_slice(struct kn_stub *s, const struct kn_boot *b, int arena)
{
	struct kn_err e;
	int sealed = 0;

	kn_err_clear(&e);
	if (kn_arena_map_slice(arena, &b->layout, b->pool_id, b->worker, &s->slice_map,
		&sealed, &e) < 0)
		return fail(s, KN_BSTEP_MAP, e.sys ? e.sys : EPROTO, e.msg);
	if (!sealed && (b->flags & KN_BOOT_NEED_MSEAL))
		return fail(s, KN_BSTEP_SEAL, ENOSYS, NULL);
	kn_slice_at(s->slice_map.p, &b->layout, &s->slice);
	return 0;
}

/* ---- 3. to 5. walls ---- */

/* permissions.run: nothing is executed where a task can write. What each cell mounts
 * for itself is made so there, and not shared: only binds are here already. */
static int
set_programs(struct kn_stub *s, const struct kn_boot *b)
{
	const char *what = NULL;
	int r;

	s->land.exec_key = b->exec_key;
	if (b->run_n == 0)
		return 0;
	s->land.run_only = true;
	s->may_share = false;
	r = kn_programs_find(&s->land.run, b->run, b->run_n, &what);
	for (uint32_t i = 0; r == 0 && i < b->bind_n; i++) {
		if (!b->binds[i].writable || b->binds[i].overlay_bytes > 0)
			continue;
		what = b->binds[i].at;
		r = kn_mounts_no_exec(what);
	}
	return r < 0 ? fail(s, KN_BSTEP_RUN, r, what) : 0;
}

/* Files where they stand on the machine, in place of mounts. */
static int
set_direct(struct kn_stub *s, const struct kn_boot *b)
{
	const char *what = NULL;
	int r;

	/* Which of the two it is was decided when we were started. */
	if (b->run_n > 0 || (b->flags & (KN_BOOT_EGRESS | KN_BOOT_NEW_IPC)))
		return fail(s, KN_BSTEP_RECORD, EINVAL, "not without namespaces");
	if (b->flags & KN_BOOT_LANDLOCK && b->landlock_abi >= 6 && !s->direct.scoped)
		return fail(s, KN_BSTEP_LANDLOCK, EPERM, "scopes");
	s->watch.below = true;
	s->watch.singly = !s->direct.scoped;
	s->land.exec_key = b->exec_key;
	s->overlays.out = s->overlays.layer_fd = -1; /* there are none */
	s->land.overlays = &s->overlays;
	s->land.no_tcp = b->flags & KN_BOOT_NO_TCP;
	r = kn_direct_rules(&s->land, b, &s->direct, &what);
	return r < 0 ? fail(s, KN_BSTEP_LANDLOCK, r, what) : 0;
}

static int
set_mounts(struct kn_stub *s, const struct kn_boot *b)
{
	enum kn_boot_step step;
	const char *at = NULL;
	int r = kn_mounts_check(b, &at);

	if (r < 0)
		return fail(s, KN_BSTEP_BINDS, r, at);
	s->may_share = s->left.none > 0 && kn_mounts_lead_nowhere(b);
	r = kn_mounts_find_covered(b, &s->covered);
	if (r < 0)
		return fail(s, KN_BSTEP_BINDS, r, "binds below /tmp, /dev/shm, /task");
	r = kn_mounts_template(&step);
	if (r < 0)
		return fail(s, step, r, NULL);
	r = b->flags & KN_BOOT_NEST ? kn_nest_shut(b, &at) : 0;
	if (r < 0)
		return fail(s, KN_BSTEP_PRIVATE, r, at);
	r = kn_mounts_keep_links(b, &at);
	if (r < 0)
		return fail(s, KN_BSTEP_BINDS, r, at);
	r = kn_cg_holds_memory(&s->cg) ? 0 : kn_mounts_zeros();
	if (r < 0)
		return fail(s, KN_BSTEP_PRIVATE, r, "/dev/zero");
	r = kn_overlays_find(b, &s->overlays);
	if (r == 0)
		r = kn_overlays_try(&s->overlays, &at);
	if (r < 0)
		return fail(s, KN_BSTEP_OVERLAY, r, at);
	s->land.overlays = &s->overlays;
	r = kn_wall_land_open(&s->land,
	    b->flags & KN_BOOT_LANDLOCK ? b->landlock_abi : 0, b->binds, b->bind_n);
	if (r < 0)
		return fail(s, KN_BSTEP_LANDLOCK, r, NULL);
	if (set_programs(s, b) < 0)
		return -1;
	r = b->flags & KN_BOOT_EGRESS ? kn_egress_hand_over(s->sock) : 0;
	return r < 0 ? fail(s, KN_BSTEP_EGRESS, r, NULL) : 0;
}

static int
set_limits(struct kn_stub *s, const char **out_what)
{
	struct rlimit l;
	cpu_set_t set;

	*out_what = "read the limits we were started with";
	for (int i = 0; i < RLIM_NLIMITS; i++) {
		if (getrlimit((__rlimit_resource_t)i, &l) < 0)
			return -errno;
		s->hard[i] = l.rlim_max;
		if (i == RLIMIT_NOFILE)
			s->nofile = l.rlim_cur;
	}
	(void)kn_sys_short_turns();
	*out_what = "open files";
	l.rlim_max = s->hard[RLIMIT_NOFILE];
	l.rlim_cur = l.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &l) < 0)
		return -errno;
	s->hard[RLIMIT_NOFILE] = l.rlim_max > 2 * FLIGHT_RESERVE
				     ? l.rlim_max - FLIGHT_RESERVE
				     : l.rlim_max / 2;
	s->watch.cpus = 1;
	if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 1)
		s->watch.cpus = (uint32_t)CPU_COUNT(&set);
	return 0;
}

/* To the supervisor, and out of our hands before anything untrusted could use it. */
static int
hand_over(const struct kn_stub *s, int listener)
{
	const struct kn_msg m = { .type = KN_MSG_LISTENER };
	int r = kn_send_fds(s->sock, &m, sizeof m, &listener, 1);

	close(listener);
	return r;
}

static int
set_filter(struct kn_stub *s, const struct kn_boot *b)
{
	const char *what = NULL;
	int listener = -1, r;

	if (b->cell_bpf_n == 0)
		return fail(s, KN_BSTEP_FILTER, EINVAL, "no cell filter");
	r = kn_wall_first_filter(
	    b->worker_bpf, b->worker_bpf_n, b->flags & KN_BOOT_TELL ? &listener : NULL);
	if (r == 0 && listener >= 0) {
		what = "its listener";
		r = hand_over(s, listener);
	}
	return r < 0 ? fail(s, KN_BSTEP_FILTER, r, what) : 0;
}

static int
set_walls(struct kn_stub *s, const struct kn_boot *b)
{
	const char *what = NULL;
	bool overlays = s->overlays.n > 0;
	int r = s->direct.place ? kn_direct_caps() : kn_wall_stub_caps(overlays);

	if (r < 0)
		return fail(s, KN_BSTEP_CAPS, r,
		    s->direct.place
			? NULL
			: "the launcher must leave CAP_SYS_ADMIN and CAP_SETPCAP");
	r = s->direct.place ? 0 : kn_wall_stub_caps_verify(overlays);
	if (r < 0)
		return fail(s, KN_BSTEP_CAPS_LEFT, r, NULL);
	r = kn_wall_no_new_privs();
	if (r < 0)
		return fail(s, KN_BSTEP_NNP, r, NULL);
	r = b->flags & KN_BOOT_NEST ? kn_nest_die_with_parent() : 0;
	if (r < 0)
		return fail(s, KN_BSTEP_NEST, r, "its end with its parent");
	r = set_limits(s, &what);
	if (r < 0)
		return fail(s, KN_BSTEP_RLIMIT, r, what);
	return set_filter(s, b);
}

/* Whole pages between two addresses. */
static void
give_back(uintptr_t from, uintptr_t to)
{
	const uintptr_t mask = ~(uintptr_t)(KN_PAGE - 1);

	from = (from + KN_PAGE - 1) & mask;
	to &= mask;
	if (from < to)
		(void)KN_SYS3(SYS_madvise, from, to - from, MADV_DONTNEED);
}

void
kn_shed_job(const struct kn_stub *s, const uint8_t *area, size_t n)
{
	give_back((uintptr_t)area, (uintptr_t)area + n);
	if (s->refs_fd >= 0)
		kn_sys_pwrite(s->refs_fd, "5", 1, 0);
}

/* What the start touched and serving does not need: a task's max_rss begins at ours
 * (exec keeps the peak of the memory it leaves), and every worker has these pages. */
static void
shed_memory(const struct kn_stub *s, struct kn_boot_bind *binds, size_t binds_n)
{
	extern const char __executable_start[], etext[];

	give_back((uintptr_t)binds, (uintptr_t)(binds + binds_n));
	give_back((uintptr_t)__executable_start, (uintptr_t)etext);
	if (s->refs_fd >= 0)
		kn_sys_pwrite(s->refs_fd, "5", 1, 0);
}

static int
receive(struct kn_stub *s, int *fds, int *out_n)
{
	uint8_t buf[sizeof(struct kn_msg) + 64];
	struct kn_msg m;
	ssize_t n = kn_fd_recv(s->sock, buf, sizeof buf, fds, KN_BOOT_FD_N, out_n, 0);

	if (n == 0)
		kn_sys_exit(0); /* the supervisor is gone: nobody to tell */
	if (n < 0)
		return fail(s, KN_BSTEP_RECV, errno, NULL);
	if (!kn_msg_check(buf, (size_t)n, 1u << KN_MSG_BOOT, &m))
		return fail(s, KN_BSTEP_RECV, EBADMSG, NULL);
	return 0;
}

int
kn_boot_stub(struct kn_stub *s)
{
	static struct kn_boot_bind binds[BINDS_MAX];
	int got[KN_BOOT_FD_N], fd[KN_BOOT_FD_N], got_n = 0, r;
	const char *what = NULL;
	struct kn_map record = { NULL, 0 };
	struct kn_boot b;

	r = take_house(s, &what);
	if (r == 0 && s->direct.place)
		r = kn_direct_enter(&s->direct, &what);
	if (r < 0)
		return fail(s, KN_BSTEP_RECV, r, what);
	if (receive(s, got, &got_n) < 0)
		return -1;
	if (got_n == 0)
		return fail(s, KN_BSTEP_RECV, EBADMSG, "no descriptors");
	r = read_record(got[KN_BOOT_FD_RECORD], &record, &b, binds);
	if (r == 0)
		r = sort_fds(got, got_n, b.has, fd);
	if (r < 0)
		return fail(s, KN_BSTEP_RECORD, r, NULL);
	close(fd[KN_BOOT_FD_RECORD]);
	s->bell = fd[KN_BOOT_FD_BELL];
	r = b.flags & KN_BOOT_NEST ? kn_nest_join(fd) : 0;
	if (r < 0)
		return fail(s, KN_BSTEP_JOIN, r, NULL);
	if (map_slice(s, &b, fd[KN_BOOT_FD_ARENA]) < 0)
		return -1;
	close(fd[KN_BOOT_FD_ARENA]);
	keep_record(s, &b);
	kn_cg_init(&s->cg, &b, fd);
	if (!(b.flags & KN_BOOT_DIRECT) != !s->direct.place)
		return fail(s, KN_BSTEP_RECORD, EINVAL, "where it works");
	if ((s->direct.place ? set_direct(s, &b) : set_mounts(s, &b)) < 0 ||
	    set_walls(s, &b) < 0)
		return -1;
	munmap(record.p, record.n);
	kn_cg_rest_is_now(&s->cg, s->watch.cpus);
	shed_memory(s, binds, BINDS_MAX);
	return 0;
}
