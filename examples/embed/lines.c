/* lines.c: task lines on standard input, result lines on standard output, in an event loop
 * as a server would have one for each of its clients.
 *
 *   printf '{"id":"a","argv":["echo","hello"]}\n' | ./lines
 */
#include <knit/pool.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

struct client {
	struct knit_batch *batch;
	int not_ok;
};

static int
failed(const char *what, const struct knit_error *e)
{
	fprintf(stderr, "lines: %s: %s\n", what, e->text);
	if (e->hint[0])
		fprintf(stderr, "hint: %s\n", e->hint);
	return 1;
}

static void
on_result(void *ctx, const struct knit_batch_result *r)
{
	struct client *c = ctx;
	char *line = knit_batch_json(c->batch, r, KNIT_JSON_STREAMS | KNIT_JSON_FILES, NULL);

	c->not_ok += r->outcome->verdict != KNIT_OK;
	if (line)
		fputs(line, stdout);
	free(line);
}

static int
serve(struct knit_pool *pool, struct client *c)
{
	struct knit_error e = KNIT_ERROR_NONE;
	int input = 1, rc;

	for (;;) {
		struct pollfd p[2] = {
			{ .fd = knit_pool_poll_fd(pool), .events = POLLIN },
			{ .fd = input && knit_batch_wants(c->batch) ? 0 : -1, .events = POLLIN },
		};

		fflush(stdout);
		if (poll(p, 2, -1) < 0)
			continue;
		if (p[1].revents && knit_batch_read(c->batch, 0, &e) < 0) {
			input = 0;
			if (e.kind != KNIT_E_NONE)
				failed("read", &e);
		}
		if (knit_pool_dispatch(pool, &e) < 0)
			return failed("pool", &e);
		rc = knit_batch_work(c->batch, &e);
		if (rc < 0)
			return failed("batch", &e);
		if (rc > 0)
			return c->not_ok > 0;
	}
}

int
main(int argc, char **argv)
{
	struct knit_error e = KNIT_ERROR_NONE;
	struct knit_policy *policy = knit_policy_new(argc > 1 ? argv[1] : NULL);
	struct knit_batch_options options;
	struct knit_pool *pool;
	struct client c = { NULL, 0 };
	int rc;

	if (knit_pool_open(policy, NULL, &pool, &e) < 0)
		return failed("open", &e);
	knit_batch_options_init(&options, sizeof options);
	options.result = on_result;
	options.ctx = &c;
	if (knit_batch_open(pool, &options, &c.batch, &e) < 0)
		return failed("batch", &e);
	rc = serve(pool, &c);
	knit_batch_close(c.batch);
	knit_pool_close(pool);
	knit_policy_free(policy);
	return rc;
}
