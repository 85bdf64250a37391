/* sandbox/module/load.c: dlopen, the init hook, and from names to functions. */
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sandbox/module/module.h"

#define PREFIX "knit_task_"
enum { NAME_MAX_BYTES = 255, SYMBOLS_MAX = 1 << 20 };

/* ---- the start ---- */

int
knit_init_fail(const struct knit_init *init, const char *format, ...)
{
	va_list ap;

	(void)init;
	kn_mod_error_clear(&kn_mod.load_error);
	va_start(ap, format);
	(void)kn_mod_error_add(&kn_mod.load_error, "InitError", format, ap);
	va_end(ap);
	return -1;
}

static void
run_hook(struct kn_mod *m)
{
	struct knit_init init = {
		.size = sizeof init,
		.api = KNIT_TASK_API,
		.worker = m->worker,
		.text = m->record.init,
		.text_n = strlen(m->record.init),
	};
	int (*hook)(const struct knit_init *);
	int r;

	*(void **)&hook = dlsym(m->handle, "knit_worker_init");
	if (!hook)
		return;
	r = hook(&init);
	if (r == 0)
		return;
	m->failed = true;
	if (m->load_error.e.n == 0)
		kn_mod_error_set(
		    &m->load_error, "InitError", "knit_worker_init returned %d", r);
}

void
kn_mod_load(struct kn_mod *m)
{
	/* Now: a symbol that is missing is better said here than by the first call that
	 * needs it. */
	m->handle = dlopen(m->record.module, RTLD_NOW | RTLD_LOCAL);
	if (!m->handle) {
		const char *why = dlerror();

		m->failed = true;
		kn_mod_error_set(
		    &m->load_error, "LoadError", "%s", why ? why : m->record.module);
		return;
	}
	run_hook(m);
}

/* ---- names ---- */

static struct kn_mod_fn *
look_up(struct kn_mod *m, const char *name, size_t n)
{
	char symbol[sizeof PREFIX + NAME_MAX_BYTES];
	struct kn_mod_fn *f = malloc(sizeof *f + n + 1);

	if (!f)
		kn_mod_die("no memory for a task's name");
	memcpy(f->name, name, n);
	f->name[n] = '\0';
	f->n = n;
	f->run = NULL;
	if (n == 0 || n > NAME_MAX_BYTES || strlen(f->name) != n)
		return f;
	snprintf(symbol, sizeof symbol, PREFIX "%s", f->name);
	*(void **)&f->run = dlsym(m->handle, symbol);
	return f;
}

/* Where a name comes with the call it is compared with what it was before: in a bank a
 * liar can make us read what is being overwritten. The answer to that does not count;
 * the next call of that number does. */
const struct kn_mod_fn *
kn_mod_find(struct kn_mod *m, const struct kn_slot_head *head, const uint8_t *payload)
{
	const char *name = (const char *)payload + head->payload_len - head->name_n;
	struct kn_mod_fn **at;

	if (head->fn >= KN_FN_MAX)
		return NULL;
	at = &m->fns[head->fn];
	if (head->name_n > 0 && *at &&
	    ((*at)->n != head->name_n ||
		memcmp((*at)->name, name, head->name_n) != 0)) {
		free(*at);
		*at = NULL;
	}
	if (!*at && head->name_n > 0)
		*at = look_up(m, name, head->name_n);
	return *at;
}

/* ---- what there is ---- */

struct symbols {
	const ElfW(Sym) * table;
	const char *names;
	const uint32_t *gnu;
	const uint32_t *sysv;
	size_t names_n;
};

static void
find_symbols(const struct link_map *map, struct symbols *out)
{
	memset(out, 0, sizeof *out);
	for (const ElfW(Dyn) *d = map->l_ld; d->d_tag != DT_NULL; d++) {
		void *p = (void *)d->d_un.d_ptr;

		if (d->d_tag == DT_SYMTAB)
			out->table = p;
		else if (d->d_tag == DT_STRTAB)
			out->names = p;
		else if (d->d_tag == DT_STRSZ)
			out->names_n = d->d_un.d_val;
		else if (d->d_tag == DT_GNU_HASH)
			out->gnu = p;
		else if (d->d_tag == DT_HASH)
			out->sysv = p;
	}
}

/* The table's length stands nowhere: it follows from the hash table's last chain. */
static uint32_t
count_symbols(const struct symbols *s)
{
	uint32_t bucket_n, first, last = 0;
	const uint32_t *buckets, *chain;

	if (s->sysv)
		return s->sysv[1];
	if (!s->gnu)
		return 0;
	bucket_n = s->gnu[0];
	first = s->gnu[1];
	buckets = s->gnu + 4 + s->gnu[2] * (sizeof(ElfW(Addr)) / 4);
	chain = buckets + bucket_n;
	for (uint32_t i = 0; i < bucket_n; i++)
		if (buckets[i] > last)
			last = buckets[i];
	if (last < first)
		return 0;
	while (last - first < SYMBOLS_MAX && !(chain[last - first] & 1))
		last++;
	return last + 1;
}

static size_t
append(char *out, size_t n, size_t at, const char *text)
{
	size_t left = n - at, len = strlen(text);

	if (len >= left)
		len = left - 1;
	memcpy(out + at, text, len);
	out[at + len] = '\0';
	return at + len;
}

void
kn_mod_list(struct kn_mod *m, char *out, size_t n)
{
	struct link_map *map = NULL;
	struct symbols s;
	uint32_t count;
	size_t at = 0;

	out[0] = '\0';
	if (dlinfo(m->handle, RTLD_DI_LINKMAP, &map) < 0 || !map)
		return;
	find_symbols(map, &s);
	if (!s.table || !s.names)
		return;
	count = count_symbols(&s);
	for (uint32_t i = 0; i < count && i < SYMBOLS_MAX && at + 1 < n; i++) {
		const ElfW(Sym) *sym = &s.table[i];
		const char *name = s.names + sym->st_name;

		if (sym->st_shndx == SHN_UNDEF || sym->st_name >= s.names_n ||
		    strncmp(name, PREFIX, sizeof PREFIX - 1) != 0)
			continue;
		if (at > 0)
			at = append(out, n, at, ", ");
		at = append(out, n, at, name + sizeof PREFIX - 1);
	}
}

void
kn_mod_tell(struct kn_mod *m, char *out, size_t n)
{
	struct link_map *map = NULL;
	size_t at = append(out, n, 0, m->record.module);

	at = append(out, n, at, ": tasks ");
	kn_mod_list(m, out + at, n - at);
	at += strlen(out + at);
	at = append(out, n, at, "; loaded");
	if (dlinfo(m->handle, RTLD_DI_LINKMAP, &map) < 0)
		return;
	while (map && map->l_prev)
		map = map->l_prev;
	for (const char *between = " "; map; map = map->l_next) {
		if (map->l_name[0] == '\0' || map == m->handle)
			continue;
		at = append(out, n, at, between);
		at = append(out, n, at, map->l_name);
		between = ", ";
	}
}
