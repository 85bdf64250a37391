/* tests/sim/script.c: transcripts. A file holds what happens and what the core does
 * about it; running it writes it anew from the inputs, and it must come out the same.
 *
 *   # words
 *   pool workers 2 depth 4 broker 1           once, first; keys as in keys[]
 *   +4.0ms > ready w0                         input, at a time since the start
 *   +4.0ms     publish t0.1 to w0 attempt 1   what the core does (written, not read)
 *   +9.0ms   < taken-back t1.1 w0.1           what the shell answers (written, not
 * read)
 *
 * Inputs: submit tN [hard MS] [queue MS] [retries N]; cancel tN; ready, stop-acked,
 * violation, gone wN; claimed tN; begun tN AT_MS; result tN[.GEN wN] [infra] [memory
 * N]; drain; stop; stop-now; wait. Timers fire by themselves, on time. SPAWN, PUBLISH
 * and TAKE_BACK succeed unless an input before said: spawn-fails, spawn-fatal,
 * publish-fails, take-fails (the next one). `claimed tN by wM`: from another's lane of
 * its bank; `claims-first` the same, just before the next answer to take-back.
 * LOOK_BEGUN is answered with what `begins tN AT_MS` said before, if anything,
 * LOOK_OVER with what `is-over tN` did. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/sim.h"

enum { TEXT = 64 * 1024, LINE = 200, WORDS = 12, TODO = 256 };

struct script {
	const char *path;
	char text[TEXT];
	size_t text_n;
	struct kn_pool_config c;
	struct kn_pool *pool;
	struct kn_action *out;
	uint64_t now_ns;
	struct kn_event todo[TODO];
	uint32_t todo_head, todo_n;
	struct {
		uint32_t worker, gen;
		uint64_t begins_ns;
		bool over;
	} t[TASKS];
	uint32_t incarnation[WORKERS];
	struct kn_event claims_first;
	bool spawn_fails, spawn_fatal, publish_fails, take_fails, bad;
};

static const uint64_t start_ns = 1000 * MS;

static void put(struct script *k, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

static void
put(struct script *k, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	int n = vsnprintf(k->text + k->text_n, TEXT - k->text_n, fmt, ap);
	va_end(ap);
	if (n > 0 && k->text_n + (size_t)n < TEXT)
		k->text_n += (size_t)n;
	else
		k->bad = true;
}

static void
put_at(struct script *k, const char *mark, const char *line)
{
	put(k, "+%.1fms %s %s\n", (double)(k->now_ns - start_ns) / 1e6, mark, line);
}

static bool
set_key(struct kn_pool_config *c, const char *key, uint64_t v)
{
	uint32_t n = (uint32_t)v;
	struct {
		const char *key;
		uint32_t *to;
	} keys[] = { { "workers", &c->worker_n }, { "tasks", &c->task_max },
		{ "depth", &c->lane_depth }, { "start", &c->start_ms },
		{ "claim", &c->claim_ms }, { "slack", &c->hard_slack_ms },
		{ "teardown", &c->teardown_ms }, { "grace", &c->grace_ms },
		{ "ack", &c->stop_ack_ms }, { "recycle", &c->recycle_tasks },
		{ "seconds", &c->recycle_s }, { "spares", &c->spares },
		{ "backoff", &c->backoff_min_ms },
		{ "backoff-max", &c->backoff_max_ms }, { "crash-loop", &c->crash_loop },
		{ "crash-loop-later", &c->crash_loop_later }, { "bank", &c->bank_size },
		{ "seed", &c->seed } };

	for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
		if (strcmp(keys[i].key, key) == 0) {
			*keys[i].to = n;
			return true;
		}
	}
	if (strcmp(key, "memory") == 0)
		c->recycle_memory = v;
	else if (strcmp(key, "broker") == 0)
		c->broker = n != 0;
	else if (strcmp(key, "balance") == 0 && n < KN_BALANCE_N)
		c->balance = (enum kn_balance)n;
	else if (strcmp(key, "calls") == 0)
		c->calls = n != 0;
	else if (strcmp(key, "eager") == 0)
		c->eager = n != 0;
	else
		return false;
	return true;
}

static void
make_pool(struct script *k, char **word, int n)
{
	k->c = (struct kn_pool_config){ .worker_n = 1,
		.task_max = TASKS,
		.lane_depth = 4,
		.start_ms = 1000,
		.claim_ms = 100,
		.hard_slack_ms = 50,
		.grace_ms = 100,
		.stop_ack_ms = 50,
		.backoff_min_ms = 10,
		.backoff_max_ms = 1000,
		.crash_loop = 3 };
	for (int i = 1; i + 1 < n; i += 2) {
		if (!set_key(&k->c, word[i], strtoull(word[i + 1], NULL, 10)))
			k->bad = true;
	}
	if (kn_pool_workers(&k->c) > WORKERS || k->c.task_max > TASKS)
		k->bad = true;
	void *storage = malloc(kn_pool_bytes(&k->c));
	k->out = calloc(kn_pool_actions_max(&k->c), sizeof *k->out);
	if (storage == NULL || k->out == NULL)
		abort();
	k->pool = kn_pool_init(storage, &k->c);
}

/* ---- the shell ---- */

static void
answer_with(struct script *k, const struct kn_action *a, enum kn_event_type type,
    uint64_t begun_ns, bool fatal)
{
	struct kn_event ev = { .type = type,
		.worker = a->worker,
		.incarnation = a->incarnation,
		.task = a->task,
		.gen = a->gen,
		.begun_ns = begun_ns,
		.fatal = fatal };

	if (k->todo_n < TODO)
		k->todo[(k->todo_head + k->todo_n++) % TODO] = ev;
	else
		k->bad = true;
}

static void
perform(struct script *k, const struct kn_action *a)
{
	switch ((int)a->type) {
	case KN_ACT_SPAWN:
		k->incarnation[a->worker] = a->incarnation;
		answer_with(k, a,
		    k->spawn_fails || k->spawn_fatal ? KN_EV_SPAWN_FAILED
						     : KN_EV_SPAWNED,
		    0, k->spawn_fatal);
		k->spawn_fails = k->spawn_fatal = false;
		break;
	case KN_ACT_PUBLISH:
		k->t[a->task].worker = a->worker;
		k->t[a->task].gen = a->gen;
		answer_with(k, a,
		    k->publish_fails ? KN_EV_PUBLISH_FAILED : KN_EV_PUBLISHED, 0,
		    false);
		k->publish_fails = false;
		break;
	case KN_ACT_TAKE_BACK:
		if (k->claims_first.type == KN_EV_CLAIMED && k->todo_n < TODO)
			k->todo[(k->todo_head + k->todo_n++) % TODO] = k->claims_first;
		k->claims_first.type = KN_EV_N;
		answer_with(k, a, k->take_fails ? KN_EV_TAKE_FAILED : KN_EV_TAKEN_BACK,
		    0, false);
		k->take_fails = false;
		break;
	case KN_ACT_LOOK_BEGUN:
		if (k->t[a->task].begins_ns == 0)
			break;
		answer_with(k, a, KN_EV_CLAIMED, 0, false);
		answer_with(k, a, KN_EV_BEGUN, k->t[a->task].begins_ns, false);
		break;
	case KN_ACT_LOOK_OVER:
		if (k->t[a->task].over)
			answer_with(k, a, KN_EV_OVER, 0, false);
		break;
	}
}

static void
step(struct script *k, struct kn_event ev)
{
	char line[LINE];

	ev.now_ns = k->now_ns;
	size_t n = kn_pool_step(k->pool, &ev, k->out);
	for (size_t i = 0; i < n; i++) {
		trace_line_action(line, sizeof line, &k->out[i]);
		put_at(k, "   ", line);
	}
	for (size_t i = 0; i < n; i++)
		perform(k, &k->out[i]);
}

static void
feed(struct script *k, struct kn_event ev)
{
	char line[LINE];

	step(k, ev);
	while (k->todo_n > 0) {
		struct kn_event next = k->todo[k->todo_head];
		k->todo_head = (k->todo_head + 1) % TODO;
		k->todo_n--;
		trace_line_event(line, sizeof line, &next);
		if (next.type != KN_EV_SPAWNED && next.type != KN_EV_PUBLISHED)
			put_at(k, " <", line);
		step(k, next);
	}
}

/* Let time pass, with every timer on time. */
static void
pass(struct script *k, uint64_t to_ns)
{
	for (;;) {
		uint64_t due_ns = kn_pool_deadline(k->pool);
		if (due_ns == 0 || due_ns > to_ns)
			break;
		if (due_ns > k->now_ns)
			k->now_ns = due_ns;
		feed(k, (struct kn_event){ .type = KN_EV_TIMER });
	}
	if (to_ns > k->now_ns)
		k->now_ns = to_ns;
}

/* ---- inputs ---- */

static uint64_t
value_of(char **word, int n, const char *key)
{
	for (int i = 1; i + 1 < n; i++) {
		if (strcmp(word[i], key) == 0)
			return strtoull(word[i + 1], NULL, 10);
	}
	return 0;
}

static uint64_t
time_of(const char *ms)
{
	return start_ns + (uint64_t)(strtod(ms, NULL) * 1e6 + 0.5);
}

/* A claim of a task by a worker of the same bank, in whose lane it was or not. */
static void
claimed_by(struct script *k, const char *worker, struct kn_event *ev)
{
	ev->type = KN_EV_CLAIMED;
	ev->from = ev->worker;
	ev->worker = (uint32_t)strtoul(worker + 1, NULL, 10) % WORKERS;
	ev->moved = ev->worker != ev->from;
	ev->incarnation = k->incarnation[ev->worker];
	k->t[ev->task].worker = ev->worker;
}

static bool
say(struct script *k, char **word, int n, uint32_t task)
{
	const char *w = word[0];

	if (strcmp(w, "spawn-fails") == 0)
		k->spawn_fails = true;
	else if (strcmp(w, "spawn-fatal") == 0)
		k->spawn_fatal = true;
	else if (strcmp(w, "publish-fails") == 0)
		k->publish_fails = true;
	else if (strcmp(w, "take-fails") == 0)
		k->take_fails = true;
	else if (strcmp(w, "is-over") == 0)
		k->t[task].over = true;
	else if (strcmp(w, "begins") == 0 && n == 3)
		k->t[task].begins_ns = time_of(word[2]);
	else
		return strcmp(w, "wait") == 0;
	return true;
}

static void
input(struct script *k, char **word, int n)
{
	struct kn_event ev = { .type = KN_EV_N };
	char kind = n > 1 ? word[1][0] : ' ';
	char *rest = NULL;
	uint32_t index = n > 1 ? (uint32_t)strtoul(word[1] + 1, &rest, 10) : 0;

	for (unsigned t = 0; t < KN_EV_N; t++) {
		if (strcmp(kn_event_name((enum kn_event_type)t), word[0]) == 0)
			ev.type = (enum kn_event_type)t;
	}
	if (kind == 't' && index < TASKS) {
		ev.task = index;
		ev.gen = k->t[index].gen;
		ev.worker = k->t[index].worker;
	}
	if (kind == 'w' && index < WORKERS)
		ev.worker = index;
	/* A lie names what it likes. */
	if (kind == 't' && rest != NULL && *rest == '.' && n > 2) {
		ev.gen = (uint32_t)strtoul(rest + 1, NULL, 10);
		ev.worker = (uint32_t)strtoul(word[2] + 1, NULL, 10) % WORKERS;
	}
	ev.incarnation = k->incarnation[ev.worker];
	ev.submit.hard_ms = (uint32_t)value_of(word, n, "hard");
	ev.submit.queue_ms = (uint32_t)value_of(word, n, "queue");
	ev.submit.retries = (uint32_t)value_of(word, n, "retries");
	ev.memory = value_of(word, n, "memory");
	ev.infra_fail = n > 2 && strcmp(word[n - 1], "infra") == 0;
	if (ev.type == KN_EV_BEGUN && n == 3)
		ev.begun_ns = time_of(word[2]);
	bool by = kind == 't' && n == 4 && strcmp(word[2], "by") == 0;
	if (by)
		claimed_by(k, word[3], &ev);
	if (by && strcmp(word[0], "claims-first") == 0)
		k->claims_first = ev; /* before the next answer to take-back */
	else if (ev.type != KN_EV_N)
		feed(k, ev);
	else if (!say(k, word, n, ev.task))
		k->bad = true;
}

static int
split(char *line, char **word)
{
	int n = 0;

	for (char *w = strtok(line, " \n"); w != NULL && n < WORDS;
	     w = strtok(NULL, " \n"))
		word[n++] = w;
	return n;
}

static void
run_line(struct script *k, const char *line)
{
	char copy[LINE];
	char *word[WORDS];

	snprintf(copy, sizeof copy, "%s", line);
	int n = split(copy, word);
	if (n == 0 || word[0][0] == '#' || strcmp(word[0], "pool") == 0) {
		put(k, "%s", line);
		if (n > 0 && word[0][0] == 'p' && k->pool == NULL)
			make_pool(k, word, n);
		return;
	}
	if (k->pool == NULL || word[0][0] != '+' || n < 2) {
		k->bad = true;
		return;
	}
	if (strcmp(word[1], ">") != 0)
		return; /* written, not read */
	pass(k, time_of(word[0] + 1));
	if (n < 3) {
		k->bad = true;
		return;
	}
	put(k, "%s", line);
	input(k, word + 2, n - 2);
}

/* ---- files ---- */

static int
compare(const struct script *k, const char *old, size_t old_n)
{
	size_t i = 0, line = 1, from = 0;

	if (old_n == k->text_n && memcmp(old, k->text, old_n) == 0)
		return 0;
	for (; i < old_n && i < k->text_n && old[i] == k->text[i]; i++) {
		if (old[i] == '\n') {
			line++;
			from = i + 1;
		}
	}
	int a = (int)strcspn(old + from, "\n");
	int b = (int)strcspn(k->text + from, "\n");
	printf("%s:%zu\n  expected: %.*s\n  is:       %.*s\n", k->path, line, a,
	    old + from, b, k->text + from);
	return -1;
}

static int
save(const struct script *k)
{
	FILE *f = fopen(k->path, "w");

	if (f == NULL)
		return -1;
	size_t n = fwrite(k->text, 1, k->text_n, f);
	return fclose(f) == 0 && n == k->text_n ? 0 : -1;
}

int
script_run(const char *path, bool update)
{
	static char old[TEXT];
	char line[LINE];
	struct script *k = calloc(1, sizeof *k);
	FILE *f = fopen(path, "r");
	size_t old_n = 0;

	if (f == NULL || k == NULL) {
		printf("%s: cannot be read\n", path);
		free(k);
		return -1;
	}
	k->path = path;
	k->now_ns = start_ns;
	while (fgets(line, sizeof line, f) != NULL && !k->bad) {
		size_t n = strlen(line);
		if (old_n + n + 1 < TEXT)
			memcpy(old + old_n, line, n + 1);
		old_n += n;
		run_line(k, line);
		if (k->bad)
			printf("%s: not understood: %s", path, line);
	}
	fclose(f);
	int r = k->bad ? -1 : update ? save(k) : compare(k, old, old_n);
	if (k->pool != NULL && kn_pool_bugs(k->pool) != 0) {
		printf("%s: the core counts %llu bugs\n", path,
		    (unsigned long long)kn_pool_bugs(k->pool));
		r = -1;
	}
	free(k->pool); /* the storage starts with it */
	free(k->out);
	free(k);
	return r;
}
