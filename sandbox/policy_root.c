/* sandbox/policy_root.c: filesystem.root "system": what a program of this machine needs
 * to start, and nothing that tells about the machine's users, secrets or state.
 *
 * Every mount is copied into each task's mount namespace, so mounts are few:
 * directories are bound, small files of /etc travel by content, links are made again as
 * links.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ipc/fd.h"
#include "sandbox/policy_int.h"

enum { KN_ROOT_FILE_MAX = 512 * 1024, KN_JAVA_FIRST = 7, KN_JAVA_LAST = 40 };

/* Links on a merged-/usr system, directories elsewhere. */
static const char *const tops[] = { "/bin", "/sbin", "/lib", "/lib32", "/lib64",
	"/libx32" };

/* Directories of /etc that programs read; none holds a secret. */
static const char *const etc_dirs[] = {
	"/etc/alternatives",  /* Debian: awk, cc, java, editor are links through it */
	"/etc/ssl/certs",     /* certificates, not keys */
	"/etc/pki/tls/certs", /* Fedora */
	"/etc/pki/ca-trust",  /* Fedora */
	"/etc/ca-certificates/extracted", /* Arch */
	"/etc/crypto-policies",		  /* Fedora */
	"/etc/fonts",			  /* converters */
	"/etc/ImageMagick-6",		  /* converters: its own resource policy */
	"/etc/ImageMagick-7",
	"/etc/java",
	"/etc/gnucobol",
};

/* Files of /etc that travel by content. */
static const char *const etc_files[] = {
	"/etc/ld.so.cache",
	"/etc/ld.so.conf",
	"/etc/ld-musl-x86_64.path",
	"/etc/localtime",
	"/etc/timezone",
	"/etc/os-release",
	"/etc/mime.types",
	"/etc/magic",
	"/etc/services",
	"/etc/protocols",
	"/etc/host.conf",
	"/etc/gai.conf",
	"/etc/locale.alias",
	"/etc/inputrc",
	"/etc/ssl/openssl.cnf",
	"/etc/mke2fs.conf",
	"/etc/papersize",
	"/etc/fpc.cfg",
};

/* Made, not copied: the machine's accounts are none of a task's business. */
static const struct {
	const char *at, *data;
} made[] = {
	{ "/etc/nsswitch.conf",
	    "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\n"
	    "networks: files\nprotocols: files\nservices: files\n" },
};

static int add_data(struct kn_pol *p, struct kn_mount_list *l, const char *at,
    const void *data, size_t n, struct kn_err *e);

/* The accounts: root, nobody, and the one that the task is, which comes first. */
static int
add_accounts(struct kn_pol *p, struct kn_mount_list *l, struct kn_err *e)
{
	uint32_t uid = p->pub.identity.uid, gid = p->pub.identity.gid;
	char *users = kn_pmem_fmt(&p->mem, e, "%s:x:%u:%u:task:/task:/bin/sh\n%s%s",
	    uid == 0 ? "root" : "task", uid, gid,
	    uid == 0 ? "" : "root:x:0:0:root:/nonexistent:/usr/sbin/nologin\n",
	    uid == 65534
		? ""
		: "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n");
	char *groups = kn_pmem_fmt(&p->mem, e, "%s:x:%u:\n%s%s",
	    gid == 0 ? "root" : "task", gid, gid == 0 ? "" : "root:x:0:\n",
	    gid == 65534 ? "" : "nogroup:x:65534:\n");

	if (!users || !groups ||
	    add_data(p, l, "/etc/passwd", users, strlen(users), e) < 0)
		return -1;
	return add_data(p, l, "/etc/group", groups, strlen(groups), e);
}

static int
add(struct kn_pol *p, struct kn_mount_list *l, struct kn_mount m, struct kn_err *e)
{
	m.optional = true;
	m.origin = "filesystem.root";
	return kn_mount_add(l, m, &p->mem, e);
}

static int
add_bind(struct kn_pol *p, struct kn_mount_list *l, const char *source, const char *at,
    struct kn_err *e)
{
	struct kn_mount m = { .type = KN_MOUNT_BIND };
	m.source = kn_pmem_dup(&p->mem, source, strlen(source), e);
	m.at = kn_pmem_dup(&p->mem, at, strlen(at), e);
	return m.source && m.at ? add(p, l, m, e) : -1;
}

static int
add_link(struct kn_pol *p, struct kn_mount_list *l, const char *text, const char *at,
    struct kn_err *e)
{
	struct kn_mount m = { .type = KN_MOUNT_SYMLINK };
	m.source = kn_pmem_dup(&p->mem, text, strlen(text), e);
	m.at = kn_pmem_dup(&p->mem, at, strlen(at), e);
	return m.source && m.at ? add(p, l, m, e) : -1;
}

/* data lives as long as the policy. */
static int
add_data(struct kn_pol *p, struct kn_mount_list *l, const char *at, const void *data,
    size_t n, struct kn_err *e)
{
	struct kn_mount m = { .type = KN_MOUNT_DATA, .data = data, .data_n = n };
	m.at = kn_pmem_dup(&p->mem, at, strlen(at), e);
	return m.at ? add(p, l, m, e) : -1;
}

/* /bin and its like: what they are on this machine. */
static int
add_top(struct kn_pol *p, struct kn_mount_list *l, const char *path, struct kn_err *e)
{
	char text[256];
	struct stat st;
	ssize_t n = readlink(path, text, sizeof text - 1);
	if (n > 0) {
		text[n] = 0;
		return add_link(p, l, text, path, e);
	}
	if (stat(path, &st) < 0 || !S_ISDIR(st.st_mode))
		return 0;
	return add_bind(p, l, path, path, e);
}

/* By content, whatever it is called inside. A file that cannot be read or is too large
 * is left out: it is a convenience, not a wall. */
static int
add_content(struct kn_pol *p, struct kn_mount_list *l, const char *real, const char *at,
    struct kn_err *e)
{
	KN_OWN_FD int fd = open(real, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ||
	    st.st_size > KN_ROOT_FILE_MAX)
		return 0;
	size_t size = (size_t)st.st_size;
	char *buf = kn_pmem_room(&p->mem, size, e);
	if (!buf)
		return -1;
	ssize_t got = pread(fd, buf, size, 0);
	if (got != (ssize_t)size)
		return 0;
	return add_data(p, l, at, buf, size, e);
}

/* A link into /usr is made again. A plain file is opened by each launch, under any
 * worker's uid: it may be younger than the pool, as may be what stands in /usr. */
static int
add_file(struct kn_pol *p, struct kn_mount_list *l, const char *path, struct kn_err *e)
{
	char real[4096], text[256];
	struct stat st;
	if (lstat(path, &st) < 0)
		return 0;
	if (S_ISLNK(st.st_mode)) {
		ssize_t n = readlink(path, text, sizeof text - 1);
		if (n <= 0 || !realpath(path, real))
			return 0;
		if (strncmp(real, "/usr/", 5) != 0)
			return add_content(p, l, real, path, e);
		text[n] = 0;
		return add_link(p, l, text, path, e);
	}
	if (!S_ISREG(st.st_mode) || !(st.st_mode & S_IROTH) ||
	    st.st_size > KN_ROOT_FILE_MAX)
		return 0;
	struct kn_mount m = { .type = KN_MOUNT_DATA };
	m.source = m.at = kn_pmem_dup(&p->mem, path, strlen(path), e);
	return m.at ? add(p, l, m, e) : -1;
}

static int
add_dir(struct kn_pol *p, struct kn_mount_list *l, const char *path, struct kn_err *e)
{
	char real[4096];
	struct stat st;
	if (lstat(path, &st) < 0)
		return 0;
	if (S_ISDIR(st.st_mode))
		return add_bind(p, l, path, path, e);
	if (!S_ISLNK(st.st_mode) || !realpath(path, real) || stat(real, &st) < 0 ||
	    !S_ISDIR(st.st_mode))
		return 0;
	return add_bind(p, l, real, path, e);
}

/* The JVM does not start without its folder, which has the version in its name. Asking
 * for each is a tenth of the cost of reading /etc. */
static int
add_java(struct kn_pol *p, struct kn_mount_list *l, struct kn_err *e)
{
	char path[40];
	if (access("/usr/lib/jvm", F_OK) < 0)
		return 0;
	for (int version = KN_JAVA_FIRST; version <= KN_JAVA_LAST; version++) {
		snprintf(path, sizeof path, "/etc/java-%d-openjdk", version);
		if (add_dir(p, l, path, e) < 0)
			return -1;
	}
	return 0;
}

/* With a network of its own a task knows localhost and nothing else. */
static int
add_network_files(struct kn_pol *p, struct kn_mount_list *l, struct kn_err *e)
{
	static const char *const hosts =
	    "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n";
	if (p->pub.network != KN_NET_HOST)
		return add_data(p, l, "/etc/hosts", hosts, strlen(hosts), e);
	if (add_file(p, l, "/etc/hosts", e) < 0)
		return -1;
	return add_file(p, l, "/etc/resolv.conf", e);
}

int
kn_policy_root(struct kn_pol *p, struct kn_mount_list *l, struct kn_err *e)
{
	if (p->pub.rootfs != NULL)
		return kn_policy_rootfs(p, l, e);
	if (p->pub.image != NULL)
		return 0; /* the image's */
	if (add_bind(p, l, "/usr", "/usr", e) < 0)
		return -1;
	for (size_t i = 0; i < sizeof tops / sizeof *tops; i++)
		if (add_top(p, l, tops[i], e) < 0)
			return -1;
	if (add_dir(p, l, "/nix/store", e) < 0 || add_dir(p, l, "/gnu/store", e) < 0)
		return -1;
	if (add_accounts(p, l, e) < 0)
		return -1;
	for (size_t i = 0; i < sizeof made / sizeof *made; i++)
		if (add_data(p, l, made[i].at, made[i].data, strlen(made[i].data), e) <
		    0)
			return -1;
	for (size_t i = 0; i < sizeof etc_files / sizeof *etc_files; i++)
		if (add_file(p, l, etc_files[i], e) < 0)
			return -1;
	for (size_t i = 0; i < sizeof etc_dirs / sizeof *etc_dirs; i++)
		if (add_dir(p, l, etc_dirs[i], e) < 0)
			return -1;
	return add_java(p, l, e) < 0 ? -1 : add_network_files(p, l, e);
}
