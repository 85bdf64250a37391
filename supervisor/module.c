/* supervisor/module.c: what all workers of kind module share: the image of their
 * process, its environment, the numbers of functions.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ipc/fd.h"
#include "supervisor/inner.h"

/* Embedded by the linker (Makefile). */
extern const char kn_module_image[], kn_module_image_end[];
extern char **environ;

/* The worker says what is wrong inside of the file; here only what would make a bind of
 * something else. */
static int
check_file(const char *path, struct kn_err *e)
{
	KN_OWN_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	struct stat st;

	if (fd < 0)
		return kn_err_sys(e, KN_EK_CONFIG, "module %s", path);
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return kn_err_set(
		    e, KN_EK_CONFIG, "module %s: not a regular file", path);
	return 0;
}

int
kn_module_open(struct kn_sup *s, struct kn_err *e)
{
	const struct kn_sup_options *o = &s->opt;
	struct kn_module *m;

	if (check_file(s->policy->pool.module, e) < 0)
		return -1;
	m = calloc(1, sizeof *m);
	if (!m)
		return kn_err_set(e, KN_EK_HOST, "out of memory");
	s->module = m;
	m->null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	m->exe_fd = kn_fd_sealed("knit-worker-module", kn_module_image,
	    (size_t)(kn_module_image_end - kn_module_image), 1, e);
	if (m->exe_fd < 0)
		return -1;
	if (m->null_fd < 0)
		return kn_err_sys(e, KN_EK_HOST, "open /dev/null");
	if (!o->env)
		return kn_env_build(
		    &m->env, s->policy, (const char *const *)environ, e);
	return kn_env_copy(&m->env, o->env, o->env_n) < 0
		   ? kn_err_set(e, KN_EK_HOST, "out of memory")
		   : 0;
}

void
kn_module_close(struct kn_sup *s)
{
	struct kn_module *m = s->module;

	if (!m)
		return;
	kn_fd_close(&m->exe_fd);
	kn_fd_close(&m->null_fd);
	kn_env_fini(&m->env);
	for (uint32_t i = 1; i < m->name_n; i++)
		free(m->name[i]);
	free(m->name);
	free(m->bucket);
	free(m->value);
	free(m);
	s->module = NULL;
}

/* ---- functions ---- */

static uint32_t
hash(const char *s)
{
	uint32_t h = 2166136261u;

	for (; *s; s++)
		h = (h ^ (unsigned char)*s) * 16777619u;
	return h;
}

/* Where name is, or would go. */
static uint32_t *
bucket(const struct kn_module *m, const char *name)
{
	uint32_t i = hash(name) & (m->bucket_n - 1);

	while (m->bucket[i] && strcmp(m->name[m->bucket[i]], name) != 0)
		i = (i + 1) & (m->bucket_n - 1);
	return &m->bucket[i];
}

static int
grow(struct kn_module *m)
{
	uint32_t room = m->name_room ? 2 * m->name_room : 64;
	char **name = realloc(m->name, room * sizeof *name);
	uint32_t *b;

	if (!name)
		return -1;
	m->name = name;
	b = calloc((size_t)room * 2, sizeof *b);
	if (!b)
		return -1;
	free(m->bucket);
	m->bucket = b;
	m->bucket_n = room * 2;
	m->name_room = room;
	if (m->name_n == 0)
		m->name[m->name_n++] = NULL; /* 0 is no function */
	for (uint32_t i = 1; i < m->name_n; i++)
		*bucket(m, m->name[i]) = i;
	return 0;
}

uint32_t
kn_module_function(struct kn_module *m, const char *name)
{
	uint32_t *at;

	if (m->name_n == m->name_room && grow(m) < 0)
		return 0;
	at = bucket(m, name);
	if (*at)
		return *at;
	if (m->name_n >= KN_FN_OTHER)
		return 0;
	m->name[m->name_n] = strdup(name);
	if (!m->name[m->name_n])
		return 0;
	return *at = m->name_n++;
}

uint32_t
kn_sup_function(struct kn_sup *s, const char *name)
{
	return s->module ? kn_module_function(s->module, name) : 0;
}
