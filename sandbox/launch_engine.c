/* sandbox/launch_engine.c: workers as containers of podman or docker.
 *
 *   <place>/left-w<N>-<start>  which engine, and the name of the container: a note
 *                              (place.h) that there may be one
 *   <place>/w<N>/knit/         docker: the stub's program, and the socket that it
 *                              fetches its own by (oci_bridge.h)
 *
 * The client of the engine is the process that we start and wait for. The container is
 * not below it, so it is ended by its cgroup where it joined ours, by the end of its
 * socket, and by the engine, which is told to remove it (oci_remove.h). Each start has
 * a name and a note of its own, since a removal may still be under way. The note is
 * there before the client is started, and until the container is gone: the end of the
 * pool waits for that, and whom no end was given leaves notes to the next start.
 */
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ipc/clock.h"
#include "ipc/err.h"
#include "sandbox/launch_oci_int.h"
#include "sandbox/oci_bridge.h"
#include "sandbox/oci_engine.h"
#include "sandbox/oci_left.h"
#include "sandbox/oci_remove.h"
#include "sandbox/place.h"

enum {
	PATH_ROOM = 420,
	NOTE_MAX = 256,
	PAUSE_FIRST_MS = 1,
	PAUSE_MOST_MS = 50,
	STOPPED_MIN = 128 /* statuses from here on say that a signal came */
};

extern const char kn_stub_image[], kn_stub_image_end[];

/* podman binds files of its own, and in a root that is read-only makes no point. */
static int
check_rootfs(const char *rootfs, struct kn_err *e)
{
	static const char *const own[] = { "/etc/hostname", "/run/.containerenv" };

	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
		char path[PATH_ROOM];
		struct stat st;
		int dir_n = (int)(strrchr(own[i], '/') - own[i]);

		snprintf(path, sizeof(path), "%.300s%.*s", rootfs, dir_n, own[i]);
		if (stat(path, &st) < 0)
			continue; /* then it is made beside */
		snprintf(path, sizeof(path), "%.300s%s", rootfs, own[i]);
		if (lstat(path, &st) == 0)
			continue;
		kn_err_set(e, KN_EK_CONFIG,
		    "/launcher/rootfs: podman puts a file of its own at %s, and in "
		    "%.200s there is none",
		    own[i], rootfs);
		kn_err_hint(e, "touch %.200s%s, or: --launcher oci", rootfs, own[i]);
		return -1;
	}
	return 0;
}

int
kn_engine_check(const struct kn_launcher *l, struct kn_err *e)
{
	struct kn_oci *o = l->own;
	bool docker = o->runtime == KN_RUNTIME_DOCKER;

	if (!docker && l->policy->rootfs != NULL &&
	    check_rootfs(l->policy->rootfs, e) < 0)
		return -1;
	if (docker && l->policy->image == NULL) {
		kn_err_set(e, KN_EK_CONFIG,
		    "/launcher/runtime: docker runs images only, and /launcher/image "
		    "names none");
		kn_err_hint(e,
		    "--set /launcher/image=NAME; tar -C DIR -c . | docker import "
		    "- NAME makes one of a directory");
		return -1;
	}
	if (!docker)
		return 0;
	for (size_t i = 0; i < l->policy->fs.mount_n; i++) {
		const struct kn_bind *b = &l->binds[i];

		if (!l->host->root || b->fd < 0 || !b->mount->writable)
			continue;
		kn_err_set(e, KN_EK_CONFIG,
		    "%s: docker shows root's %s as it is, and the worker is another "
		    "user: it cannot be written to",
		    b->mount->origin, b->path);
		kn_err_hint(e, "--launcher oci:podman, or run it as an ordinary user");
		return -1;
	}
	if (l->policy->image[0] == '-')
		return kn_err_set(e, KN_EK_CONFIG, "/launcher/image: \"%s\" is no name",
		    l->policy->image);
	return kn_image_pin(l->program, l->policy->image, o->image, e);
}

/* The caller's limit of processes. podman sets its own to the largest pid, and above
 * that may only raise it where it has CAP_SYS_RESOURCE. */
static int
read_nproc(struct rlimit *out)
{
	KN_OWN_FD int fd =
	    open("/proc/sys/kernel/pid_max", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	char text[24] = "";
	rlim_t most;

	if (getrlimit(RLIMIT_NPROC, out) < 0)
		return -1;
	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0)
		return 0;
	most = strtoul(text, NULL, 10);
	if (most > 0 && out->rlim_max > most)
		out->rlim_max = most;
	if (out->rlim_cur > out->rlim_max)
		out->rlim_cur = out->rlim_max;
	return 0;
}

int
kn_engine_command(struct kn_launcher *l, uint32_t w, struct kn_err *e)
{
	struct kn_oci *o = l->own;
	struct kn_oci_worker *x = &o->w[w];
	const char *place = strrchr(l->place, '/');
	char root[PATH_ROOM], name[16];
	struct kn_engine_req r = { .policy = l->policy,
		.runtime = o->runtime,
		.program = l->program,
		.id = x->id,
		.pool = place != NULL ? place + 1 : o->pool,
		.worker = name,
		.source = o->source,
		.rootfs = root,
		.dir = x->dir,
		.image = o->image[0] != '\0' ? o->image : NULL,
		.secret = o->pool,
		.own_userns = !l->host->root && o->runtime == KN_RUNTIME_PODMAN,
		.uid = l->host->root ? l->host->worker_uid_base + w : l->host->uid,
		.gid = l->host->root ? l->host->worker_uid_base + w : l->host->gid,
		.nofile = l->nofile };

	if (read_nproc(&r.nproc) < 0)
		return kn_err_sys(e, KN_EK_HOST, "read the limit of processes");
	snprintf(root, sizeof(root), "%s/root", l->place);
	snprintf(name, sizeof(name), "w%u", w);
	snprintf(x->id, sizeof(x->id), "knit-%s-w%u-%u", o->pool, w, x->starts);
	kn_argv_fini(&x->argv);
	if (kn_engine_argv(&r, &x->argv, e) < 0)
		return -1;
	return kn_argv_prepend(&x->argv, l->policy->prefix, l->policy->prefix_n, e);
}

static void
note_path(const struct kn_launcher *l, uint32_t w, char out[PATH_ROOM])
{
	const struct kn_oci *o = l->own;

	snprintf(
	    out, PATH_ROOM, "%s/" KN_PLACE_NOTE "w%u-%u", l->place, w, o->w[w].starts);
}

/* For who finds it after us. */
static int
note(const struct kn_launcher *l, uint32_t w, struct kn_err *e)
{
	const struct kn_oci *o = l->own;
	struct kn_oci_worker *x = &o->w[w];
	char path[PATH_ROOM], text[NOTE_MAX];
	KN_OWN_FD int fd = -1;
	int n =
	    snprintf(text, sizeof(text), "%s %s\n", kn_runtime_name(o->runtime), x->id);

	note_path(l, w, path);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	x->noted = fd >= 0;
	if (fd < 0 || write(fd, text, (size_t)n) != n)
		return kn_err_sys(e, KN_EK_HOST, "write %s", path);
	kn_oci_remove_stamp(path);
	return 0;
}

static int
make(const struct kn_oci *o, struct kn_oci_worker *x, struct kn_err *e)
{
	char dir[PATH_ROOM];

	if (kn_oci_make_dir(x->dir) < 0)
		return kn_err_sys(e, KN_EK_HOST, "make %s", x->dir);
	if (o->runtime == KN_RUNTIME_DOCKER) {
		snprintf(dir, sizeof(dir), "%s/knit", x->dir);
		x->bridge = kn_bridge_open(
		    dir, kn_stub_image, (size_t)(kn_stub_image_end - kn_stub_image), e);
		if (x->bridge < 0)
			return -1;
	}
	x->made = true;
	return 0;
}

int
kn_engine_plan(struct kn_launcher *l, uint32_t w, struct kn_child *c, struct kn_err *e)
{
	struct kn_oci *o = l->own;
	struct kn_oci_worker *x = &o->w[w];

	if (!x->made && make(o, x, e) < 0)
		return -1;
	x->starts++;
	if (kn_engine_command(l, w, e) < 0 || note(l, w, e) < 0)
		return -1;
	c->argv = x->argv.v;
	c->stay = true;
	c->envp = kn_engine_env();
	c->bridge_fd = x->bridge;
	c->bridge_uid = l->host->root ? c->uid : l->host->uid;
	return 0;
}

/* Not by a signal: the engine has told it how things ended. */
static bool
ended_by_itself(const struct kn_launched *lw)
{
	siginfo_t si = { 0 };

	return waitid(P_PIDFD, (id_t)lw->proc.pidfd, &si,
		   WEXITED | WNOHANG | WNOWAIT | __WALL) == 0 &&
	       si.si_pid != 0 && si.si_code == CLD_EXITED && si.si_status < STOPPED_MIN;
}

void
kn_engine_kill(const struct kn_launcher *l, uint32_t w, const struct kn_launched *lw)
{
	const struct kn_oci *o = l->own;
	struct kn_oci_worker *x = &o->w[w];
	bool refused = !lw->up && ended_by_itself(lw);
	char path[PATH_ROOM];
	const struct kn_oci_removal r = { .runtime = o->runtime,
		.program = l->program,
		.id = x->id,
		.note = path,
		.client = lw->proc.pidfd,
		.settled = lw->up || refused,
		.refused = refused };

	if (!x->noted)
		return;
	x->noted = false;
	note_path(l, w, path);
	(void)kn_oci_remove(&r); /* else the note stays, for the next start */
}

/* Who has not been killed has never been started. */
void
kn_engine_release(const struct kn_launcher *l, uint32_t w)
{
	const struct kn_oci *o = l->own;
	char path[PATH_ROOM];

	if (!o->w[w].noted)
		return;
	o->w[w].noted = false;
	note_path(l, w, path);
	unlink(path);
}

/* Removals go on without us, but not where our end is everybody's: that of a service,
 * or of a container whose process 1 we are. Nor can our cgroup be removed before. A
 * pool whose process has others leaves it to the last of them. */
void
kn_engine_settle(const struct kn_launcher *l)
{
	const struct kn_oci *o = l->own;
	uint64_t deadline = kn_clock_after_ms(kn_clock_now(), KN_OCI_REMOVE_MS);
	bool used = false;

	for (uint32_t w = 0; o != NULL && o->engine && o->w != NULL && w < l->worker_n;
	     w++)
		used |= o->w[w].starts > 0;
	for (int ms = PAUSE_FIRST_MS; used && kn_clock_now() < deadline;
	     ms = 2 * ms < PAUSE_MOST_MS ? 2 * ms : PAUSE_MOST_MS) {
		if (kn_place_rest(l->place, l->swept) != KN_PLACE_REST_NOTED)
			return;
		poll(NULL, 0, ms);
	}
}

/* Containers of this pool only, whatever is noted, and only if we have noted it. */
static int
read_note(const char *path, const char *pool, char word[16], char id[96])
{
	KN_OWN_FD int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	size_t lead = kn_oci_left_pool(pool);
	char text[NOTE_MAX];
	struct stat st;
	ssize_t n = fd >= 0 && fstat(fd, &st) == 0 && st.st_uid == geteuid()
			? read(fd, text, sizeof(text) - 1)
			: -1;

	if (n <= 0)
		return -1;
	text[n] = '\0';
	return sscanf(text, "%15s %95s", word, id) == 2 &&
		       strncmp(id, pool, lead) == 0 && id[lead] == '-'
		   ? 0
		   : -1;
}

/* When its daemon makes it cannot be known: its client died with its supervisor. A note
 * that says nothing, or of an engine that is no more, is nobody's to follow. */
static void
remove_noted(const char *path, const char *pool)
{
	static const enum kn_runtime engines[] = { KN_RUNTIME_PODMAN,
		KN_RUNTIME_DOCKER };
	char program[256], word[16], id[96];
	struct kn_oci_removal r = {
		.program = program, .id = id, .note = path, .client = -1
	};
	bool known = read_note(path, pool, word, id) == 0 &&
		     kn_host_find_program(word, program, sizeof(program));

	for (size_t i = 0; known && i < sizeof(engines) / sizeof(engines[0]); i++) {
		if (strcmp(word, kn_runtime_name(engines[i])) != 0)
			continue;
		r.runtime = engines[i];
		(void)kn_oci_remove(&r);
		return;
	}
	unlink(path);
}

void
kn_engine_left(const char *place)
{
	const char *pool = strrchr(place, '/');
	char path[PATH_ROOM];
	struct dirent *de;
	DIR *d = pool != NULL ? opendir(place) : NULL;

	while (d != NULL && (de = readdir(d)) != NULL)
		if (kn_place_is_note(de->d_name) &&
		    snprintf(path, sizeof(path), "%s/%s", place, de->d_name) <
			(int)sizeof(path))
			remove_noted(path, pool + 1);
	if (d != NULL)
		closedir(d);
}
