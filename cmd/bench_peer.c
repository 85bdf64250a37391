/* cmd/bench_peer.c: other sandboxes, as a user would start one per task: no network,
 * namespaces of its own, the system's directories read-only, the program brought in.
 *
 * What each one isolates differs, and none does all that a cell does; the lines aim at
 * what comes nearest with the tool's own options, with few mounts, in its favour.
 */
#include "cmd/bench_peer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ipc/fd.h"

enum { ISOLATE_BOX = 998 /* and 999, the last two: least likely to be somebody's */ };

static const char *const names[] = {
	[KN_PEER_BWRAP] = "bwrap",
	[KN_PEER_UNSHARE] = "unshare",
	[KN_PEER_FIREJAIL] = "firejail",
	[KN_PEER_CRUN] = "crun",
	[KN_PEER_RUNC] = "runc",
	[KN_PEER_NSJAIL] = "nsjail",
	[KN_PEER_MINIJAIL] = "minijail0",
	[KN_PEER_ISOLATE] = "isolate",
};
_Static_assert(sizeof names / sizeof *names == KN_PEER_N, "a name per peer");

/* Runs in a round: enough for a fair rate, in bounded time. */
static const int counts[KN_PEER_N] = {
	[KN_PEER_BWRAP] = 60,
	[KN_PEER_UNSHARE] = 60,
	[KN_PEER_FIREJAIL] = 6,
	[KN_PEER_CRUN] = 16,
	[KN_PEER_RUNC] = 8,
	[KN_PEER_NSJAIL] = 30,
	[KN_PEER_MINIJAIL] = 60,
	[KN_PEER_ISOLATE] = 30,
};

const char *
kn_peer_name(int peer)
{
	return names[peer];
}

static void
add(struct kn_peers *p, int peer, const char *a, const char *b, const char *c)
{
	const char *words[3] = { a, b, c };
	size_t n = 0;

	while (p->argv[peer][n])
		n++;
	for (int i = 0; i < 3 && words[i] && n + 1 < KN_PEER_ARGS; i++)
		p->argv[peer][n++] = words[i];
}

/* /bin and the like, as they are on this machine: links into /usr, or directories. */
static void
add_system(struct kn_peers *p)
{
	static const struct {
		const char *at, *text;
	} dirs[] = { { "/bin", "usr/bin" }, { "/lib", "usr/lib" },
		{ "/lib64", "usr/lib64" }, { "/sbin", "usr/sbin" } };
	struct stat st;

	add(p, KN_PEER_BWRAP, "--ro-bind", "/usr", "/usr");
	for (size_t i = 0; i < sizeof dirs / sizeof *dirs; i++) {
		if (lstat(dirs[i].at, &st) < 0)
			continue;
		if (S_ISLNK(st.st_mode))
			add(p, KN_PEER_BWRAP, "--symlink", dirs[i].text, dirs[i].at);
		else
			add(p, KN_PEER_BWRAP, "--ro-bind", dirs[i].at, dirs[i].at);
	}
}

static void
plan_plain(struct kn_peers *p, const struct kn_bench *b)
{
	bool root = b->host.uid == 0;

	add(p, KN_PEER_BWRAP, "bwrap", "--unshare-all", "--die-with-parent");
	add_system(p);
	add(p, KN_PEER_BWRAP, "--proc", "/proc", NULL);
	add(p, KN_PEER_BWRAP, "--dev", "/dev", NULL);
	add(p, KN_PEER_BWRAP, "--tmpfs", "/tmp", NULL);
	add(p, KN_PEER_BWRAP, "--ro-bind", b->task, KN_BENCH_TASK);
	add(p, KN_PEER_BWRAP, "--", KN_BENCH_TASK, NULL);

	add(p, KN_PEER_UNSHARE, "unshare", "--user", "--map-root-user");
	add(p, KN_PEER_UNSHARE, "--mount", "--pid", "--fork");
	add(p, KN_PEER_UNSHARE, "--ipc", "--uts", "--net");
	add(p, KN_PEER_UNSHARE, "--cgroup", "--", b->task);

	add(p, KN_PEER_FIREJAIL, "firejail", "--quiet", "--noprofile");
	add(p, KN_PEER_FIREJAIL, "--net=none", "--", b->task);

	add(p, KN_PEER_NSJAIL, "nsjail", "-Mo", "--really_quiet");
	add(p, KN_PEER_NSJAIL, "--chroot", "/", NULL);
	add(p, KN_PEER_NSJAIL, "--", b->task, NULL);

	add(p, KN_PEER_MINIJAIL, "minijail0", "-v", "-p");
	add(p, KN_PEER_MINIJAIL, "-l", "-e", "-N");
	if (!root)
		add(p, KN_PEER_MINIJAIL, "-U", "-m", "-M");
	add(p, KN_PEER_MINIJAIL, "--", b->task, NULL);

	snprintf(p->text[0], sizeof p->text[0], "--dir=/bench=%s", b->dir);
	add(p, KN_PEER_ISOLATE, "isolate", "--box-id=0", "--silent");
	add(p, KN_PEER_ISOLATE, p->text[0], "--run", "--");
	add(p, KN_PEER_ISOLATE, "/bench/task", NULL, NULL);
	p->cmd[KN_PEER_ISOLATE].lane_arg = 1;
	p->cmd[KN_PEER_ISOLATE].lane_prefix = "--box-id=";
	p->cmd[KN_PEER_ISOLATE].lane_first = ISOLATE_BOX;
}

/* ---- OCI runtimes ---- */

static int
write_file(const char *dir, const char *name, const char *text)
{
	char path[192];

	snprintf(path, sizeof path, "%s/%s", dir, name);
	KN_OWN_FD int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	return fd < 0 ? -1 : kn_fd_write_all(fd, text, strlen(text));
}

static int
make_dirs(const struct kn_peers *p)
{
	static const char *const below[] = { "", "/rootfs", "/rootfs/proc",
		"/rootfs/dev", "/rootfs/usr", "/rootfs/bench" };
	char path[192];

	if (mkdir(p->state, 0700) < 0 && errno != EEXIST)
		return -1;
	for (size_t i = 0; i < sizeof below / sizeof *below; i++) {
		snprintf(path, sizeof path, "%s%s", p->bundle, below[i]);
		if (mkdir(path, 0755) < 0 && errno != EEXIST)
			return -1;
	}
	return 0;
}

static int
make_bundle(const struct kn_peers *p, const struct kn_bench *b)
{
	static const char spec[] =
	    "{\"ociVersion\":\"1.0.0\",\"process\":{\"terminal\":false,"
	    "\"user\":{\"uid\":0,\"gid\":0},\"args\":[\"/bench/task\"],"
	    "\"env\":[\"PATH=/usr/bin:/bin\"],\"cwd\":\"/\",\"noNewPrivileges\":true},"
	    "\"root\":{\"path\":\"rootfs\",\"readonly\":true},\"hostname\":\"sandbox\","
	    "\"mounts\":["
	    "{\"destination\":\"/proc\",\"type\":\"proc\",\"source\":\"proc\"},"
	    "{\"destination\":\"/dev\",\"type\":\"tmpfs\",\"source\":\"tmpfs\","
	    "\"options\":[\"nosuid\",\"mode=755\"]},"
	    "{\"destination\":\"/usr\",\"type\":\"bind\",\"source\":\"/usr\","
	    "\"options\":[\"bind\",\"ro\"]},"
	    "{\"destination\":\"/bench\",\"type\":\"bind\",\"source\":\"%s\","
	    "\"options\":[\"bind\",\"ro\"]}],"
	    "\"linux\":{\"namespaces\":[{\"type\":\"pid\"},{\"type\":\"network\"},"
	    "{\"type\":\"ipc\"},{\"type\":\"uts\"},{\"type\":\"mount\"}%s]%s}}\n";
	char text[2048], map[256] = "";

	if (b->host.uid != 0)
		snprintf(map, sizeof map,
		    ",\"uidMappings\":[{\"containerID\":0,\"hostID\":%u,\"size\":1}],"
		    "\"gidMappings\":[{\"containerID\":0,\"hostID\":%u,\"size\":1}]",
		    (unsigned)b->host.uid, (unsigned)b->host.gid);
	snprintf(
	    text, sizeof text, spec, b->dir, map[0] ? ",{\"type\":\"user\"}" : "", map);
	if (make_dirs(p) < 0)
		return -1;
	return write_file(p->bundle, "config.json", text);
}

static void
plan_oci(struct kn_peers *p, const struct kn_bench *b)
{
	static const int runtimes[] = { KN_PEER_CRUN, KN_PEER_RUNC };

	snprintf(p->bundle, sizeof p->bundle, "%s/bundle", b->dir);
	snprintf(p->state, sizeof p->state, "%s/state", b->dir);
	for (size_t i = 0; i < 2; i++) {
		int k = runtimes[i];

		if (!p->path[k][0])
			continue;
		if (make_bundle(p, b) < 0) {
			p->path[k][0] = '\0';
			continue;
		}
		snprintf(p->text[1 + i], sizeof p->text[1 + i], "knit-bench-%d-",
		    (int)getpid());
		add(p, k, names[k], "--root", p->state);
		if (k == KN_PEER_CRUN) /* not in every mode of cgroups, else */
			add(p, k, "--cgroup-manager=disabled", NULL, NULL);
		add(p, k, "run", "--bundle", p->bundle);
		add(p, k, "id", NULL, NULL);
		while (p->argv[k][p->cmd[k].lane_arg + 1])
			p->cmd[k].lane_arg++;
		p->cmd[k].lane_prefix = p->text[1 + i];
	}
}

/* ---- all ---- */

/* The boxes of isolate are made before and removed after. */
static int
isolate_boxes(struct kn_peers *p, struct kn_bench *b, const char *verb)
{
	const char *const argv[] = { "isolate", "--box-id=0", verb, NULL };
	struct kn_bench_cmd c = p->cmd[KN_PEER_ISOLATE];
	struct kn_err e = { 0 };
	double ms;

	c.argv = argv;
	c.n = c.lanes;
	return kn_bench_spawn(b, &c, &ms, &e);
}

void
kn_peers_find(struct kn_peers *p, struct kn_bench *b, int lanes)
{
	memset(p, 0, sizeof *p);
	for (int i = 0; i < KN_PEER_N; i++)
		if (!kn_bench_find(names[i], p->path[i], sizeof p->path[i]))
			p->path[i][0] = '\0';
	plan_plain(p, b);
	plan_oci(p, b);
	for (int i = 0; i < KN_PEER_N; i++) {
		p->cmd[i].path = p->path[i];
		p->cmd[i].argv = p->argv[i];
		p->cmd[i].lanes = lanes;
		p->cmd[i].n = b->quick ? lanes : counts[i];
	}
	if (p->path[KN_PEER_ISOLATE][0])
		p->isolate_made = isolate_boxes(p, b, "--init") == 0;
}

void
kn_peers_end(struct kn_peers *p, struct kn_bench *b)
{
	if (p->isolate_made)
		(void)isolate_boxes(p, b, "--cleanup");
	p->isolate_made = false;
}
