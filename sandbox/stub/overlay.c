/* sandbox/stub/overlay.c: overlays of a cell (sandbox/stub/overlay.h). */
#include "sandbox/stub/overlay.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "ipc/layout.h"
#include "sandbox/stub/sys.h"
#include "sandbox/stub/text.h"

#define UPPER "/tmp/" KN_OVERLAY_UPPER
#define WORK "/tmp/work"

static int
add_white(struct kn_overlays *o, size_t *used, const char *at)
{
	size_t n = strlen(at) + 1;

	if (o->white_n == KN_OVERLAY_WHITE_MAX || n > sizeof o->text - *used)
		return -E2BIG;
	memcpy(o->text + *used, at, n);
	o->white[o->white_n++] = o->text + *used;
	*used += n;
	return 0;
}

int
kn_overlays_find(const struct kn_boot *b, struct kn_overlays *out)
{
	size_t used = 0;

	out->n = out->white_n = 0;
	out->out = out->layer_fd = -1;
	for (uint32_t i = 0; i < b->bind_n; i++) {
		const struct kn_boot_bind *bind = &b->binds[i];
		struct kn_overlay *l = &out->v[out->n];
		size_t n = strlen(bind->at) + 1;

		if (bind->white && add_white(out, &used, bind->at) < 0)
			return -E2BIG;
		if (bind->overlay_bytes == 0)
			continue;
		if (out->n == KN_OVERLAY_MAX || n > sizeof l->at)
			return -E2BIG;
		memcpy(l->at, bind->at, n);
		kn_mounts_opts(
		    l->opts, bind->overlay_bytes, bind->overlay_inodes, "0711");
		if (bind->out) {
			out->out = (int)out->n;
			out->out_bytes = bind->overlay_bytes;
			out->out_inodes = bind->overlay_inodes;
		}
		out->n++;
	}
	return 0;
}

static int
make_dir(const char *path, unsigned mode)
{
	int r = kn_sys_mkdirat(AT_FDCWD, path, mode), fd;

	if (r < 0)
		return r;
	fd = kn_sys_openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	if (fd < 0)
		return fd;
	r = (int)KN_SYS2(SYS_fchmod, fd, mode); /* past the umask */
	kn_sys_close(fd);
	return r;
}

/* The folders above `at` in the layer, as they are below it, and nothing at its name.
 */
static int
make_white(const struct kn_overlay *l, const char *at)
{
	const char *rest = at + strlen(l->at);
	char path[KN_PAGE], real[KN_PAGE];
	struct stat st;
	int r = 0;

	if (strlen(rest) + sizeof UPPER > sizeof path || strlen(at) >= sizeof real)
		return -ENAMETOOLONG;
	memcpy(path, UPPER, sizeof UPPER);
	for (size_t n = 1; r == 0 && rest[n]; n++) {
		path[sizeof UPPER - 1 + n - 1] = rest[n - 1];
		path[sizeof UPPER - 1 + n] = '\0';
		if (rest[n] != '/')
			continue;
		memcpy(real, at, strlen(l->at) + n);
		real[strlen(l->at) + n] = '\0';
		r = kn_sys_stat(AT_FDCWD, real, &st, AT_SYMLINK_NOFOLLOW);
		if (r == 0 && !S_ISDIR(st.st_mode))
			return -ENOTDIR;
		if (r == 0)
			r = make_dir(path, st.st_mode & 0777);
		if (r == -EEXIST)
			r = 0;
	}
	memcpy(path + sizeof UPPER - 1, rest, strlen(rest) + 1);
	return r < 0 ? r : (int)KN_SYS4(SYS_mknodat, AT_FDCWD, path, S_IFCHR, 0);
}

static int
make_whites(const struct kn_overlays *o, const struct kn_overlay *l)
{
	size_t n = strlen(l->at);
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < o->white_n; i++)
		if (!strncmp(o->white[i], l->at, n) && o->white[i][n] == '/')
			r = make_white(l, o->white[i]);
	return r;
}

/* The tmpfs stands at /tmp only until the overlay has taken hold of it. */
static int
put(const struct kn_overlays *o, const struct kn_overlay *l)
{
	char opts[2 * KN_OVERLAY_AT];
	struct kn_text t = { opts, sizeof opts, 0 };
	struct stat st;
	int r = kn_sys_stat(AT_FDCWD, l->at, &st, AT_SYMLINK_NOFOLLOW);

	if (r < 0)
		return r;
	if (o->layer_fd >= 0 && l == &o->v[o->out])
		r = kn_sys_move_mount(o->layer_fd, "/tmp");
	else
		r = kn_sys_mount(
		    "tmpfs", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, l->opts);
	if (r < 0)
		return r;
	r = make_dir(UPPER, st.st_mode & 0777);
	if (r == 0)
		r = make_dir(WORK, 0700);
	if (r == 0)
		r = make_whites(o, l);
	kn_text_str(&t, "upperdir=" UPPER ",workdir=" WORK ",userxattr,lowerdir=");
	kn_text_str(&t, l->at);
	if (r == 0)
		r = kn_sys_mount(
		    "overlay", l->at, "overlay", MS_NOSUID | MS_NODEV, opts);
	(void)KN_SYS2(SYS_umount2, "/tmp", MNT_DETACH);
	return r;
}

int
kn_overlays_begin(struct kn_overlays *o)
{
	if (o->out < 0)
		return 0;
	o->layer_fd = kn_mounts_task_fs(o->out_bytes, o->out_inodes);
	return o->layer_fd < 0 ? o->layer_fd : 0;
}

void
kn_overlays_end(struct kn_overlays *o)
{
	kn_sys_close_at(&o->layer_fd);
}

int
kn_overlays_cell(const struct kn_overlays *l, const char **out_at)
{
	for (uint32_t i = 0; i < l->n; i++) {
		int r = put(l, &l->v[i]);

		*out_at = l->v[i].at;
		if (r < 0)
			return r;
	}
	return 0;
}

int
kn_overlays_try(const struct kn_overlays *l, const char **out_at)
{
	for (uint32_t i = 0; i < l->n; i++) {
		int r = put(l, &l->v[i]);

		*out_at = l->v[i].at;
		if (r == 0)
			r = (int)KN_SYS2(SYS_umount2, l->v[i].at, MNT_DETACH);
		if (r < 0)
			return r;
	}
	return 0;
}
