/* tests/stress/claim_kill.c: a shared bank under real processes, each with the mapping
 * that a worker has, of whom one is sent SIGKILL or SIGSTOP fifty times a second. The
 * dead are buried and replaced at their ids, those that keep a region too long are
 * killed. Payloads are checked both ways. Each task is answered once, or known to have
 * been started by a process that died; nobody is called a liar.
 *
 *   claim_kill [-c CLAIMANTS] [-t SECONDS] [-s SEED]    default 5, 3 s for each of
 * dekker and cas-mask; the seed is printed
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "ipc/arena.h"
#include "ipc/claim.h"
#include "ipc/clock.h"
#include "ipc/control.h"
#include "ipc/err.h"
#include "ipc/lane.h"
#include "ipc/offer.h"
#include "tests/stress/stress.h"

enum {
	AREA_BYTES = 1 << 17,
	BIG_MAX = 4000,
	ANSWER_MAX = 200,
	TASKS_MAX = 1 << 22,
	KILL_EVERY_MS = 20,
	STUCK_MS = 60,
	STOPPED_MS = 150,
	STALL_MS = 60000,
};

static struct {
	struct kn_arena arena;
	int ro;
	struct kn_bank bank;
	struct kn_offer offer;
	enum kn_claim_how how;
	uint32_t n, width, seed;
	struct kn_slice slice[KN_CLAIMANTS];
	struct kn_return_rx rx[KN_CLAIMANTS];
	pid_t pid[KN_CLAIMANTS];
	uint64_t stopped_ns[KN_CLAIMANTS]; /* since when, 0: not */
	uint8_t answered[TASKS_MAX], lost[TASKS_MAX];
	uint32_t gen[TASKS_MAX], again[TASKS_MAX], again_n, next, settled;
	uint32_t kills, stops, requeued, stuck;
} S;

/* ---- a claimant's process ---- */

static int
answer(struct kn_return_tx *tx, const struct kn_slice *sl, const struct kn_bank *b,
    struct kn_claimant *k, const struct kn_claimed *c)
{
	struct kn_slot_head h = { .task = c->head.task,
		.gen = c->head.gen,
		.area = KN_AREA_INLINE,
		.payload_len = c->head.task % ANSWER_MAX };
	uint8_t out[ANSWER_MAX];

	kn_control_begin(sl->control, h.task, h.gen, 1);
	if (!is_filled(c->head.area == KN_AREA_INLINE ? c->inline_bytes
						      : b->area + c->head.payload_off,
		c->head.payload_len, h.task, h.gen))
		return -1;
	if (c->head.area != KN_AREA_INLINE)
		kn_claim_free(k, c->head.area);
	/* some take longer, so that deaths find a batch half done */
	for (int i = 0; h.task % 50 == 0 && i < 100; i++)
		sched_yield();
	fill(out, h.payload_len, h.task + 1, h.gen);
	while (!kn_return_publish(tx, sl, &h, out))
		sched_yield();
	kn_control_end(sl->control);
	return 0;
}

static int
claimant(uint32_t c)
{
	static struct kn_claimed got[KN_SLOTS];
	static struct kn_claimant k;
	const struct kn_layout *l = &S.arena.layout;
	const uint8_t *id = S.arena.pool_id;
	struct kn_return_tx tx = { 0 };
	struct kn_slice sl;
	struct kn_bank b;
	struct kn_map bm, sm;
	int sealed;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (kn_arena_map_bank(S.arena.fd, S.ro, l, id, c, S.how == KN_CLAIM_CAS_MASK,
		&bm, &sealed, NULL) < 0 ||
	    kn_arena_map_slice(S.arena.fd, l, id, c, &sm, &sealed, NULL) < 0)
		return 1;
	kn_bank_at(bm.p, l, 0, &b);
	kn_slice_at(sm.p, l, &sl);
	if (kn_claimant_init(&k, &b, c, S.how, S.width) < 0)
		return 1;
	while (!kn_control_stopping(sl.control)) {
		int n = kn_claim(&k, got, c % 3 == 1 ? 1 : KN_SLOTS);

		for (int i = 0; i < n; i++)
			if (answer(&tx, &sl, &b, &k, &got[i]) < 0)
				return 2;
		if (n <= 0)
			sched_yield();
	}
	return 0;
}

static void
start(uint32_t c)
{
	struct kn_err e = { 0 };

	if (kn_arena_reset_slice(&S.arena, c, &e) < 0)
		die(e.msg, c);
	memset(&S.rx[c], 0, sizeof S.rx[c]);
	S.stopped_ns[c] = 0;
	kn_offer_join(&S.offer, c);
	S.pid[c] = fork();
	if (S.pid[c] < 0)
		die("fork", c);
	if (S.pid[c] == 0)
		_exit(claimant(c));
}

/* ---- the supervisor ---- */

static bool
offer_one(void)
{
	uint32_t r = rnd(&S.seed), n = r % (KN_INLINE_MAX + 1);
	struct kn_slot_head h = { .kind = KN_REQ_CALL, .area = KN_AREA_INLINE };
	int slot = kn_offer_slot(&S.offer);
	uint8_t in[KN_INLINE_MAX];

	if (slot < 0 || (!S.again_n && S.next == TASKS_MAX))
		return false;
	h.task = S.again_n ? S.again[S.again_n - 1] : S.next;
	h.gen = S.gen[h.task] + 1;
	if (r >> 29 == 0) {
		uint64_t off;
		int area;

		n = KN_INLINE_MAX + 1 + (r >> 8) % (BIG_MAX - KN_INLINE_MAX);
		area = kn_offer_area(&S.offer, n, &off);
		if (area < 0)
			return false;
		fill(S.bank.area + off, n, h.task, h.gen);
		h.area = (uint32_t)area;
		h.payload_off = (uint32_t)off;
	} else {
		fill(in, n, h.task, h.gen);
	}
	h.payload_len = n;
	S.gen[h.task] = h.gen;
	if (S.again_n)
		S.again_n--;
	else
		S.next++;
	kn_offer_put(&S.offer, slot, &h, in);
	return true;
}

static int
drain(uint32_t c)
{
	struct kn_slot_head h;
	uint8_t in[KN_INLINE_MAX];
	int slot, n = 0;

	while ((slot = kn_return_peek(&S.rx[c], &S.slice[c], &h, in)) >= 0) {
		if (kn_offer_answer(&S.offer, c, h.task, h.gen) != KN_ANSWER_ACCEPT)
			die("an answer that is not owed", h.task);
		if (S.answered[h.task]++)
			die("answered twice", h.task);
		if (h.payload_len != h.task % ANSWER_MAX ||
		    !is_filled(in, h.payload_len, h.task + 1, h.gen))
			die("an answer's bytes", h.task);
		kn_return_retire(&S.rx[c], &S.slice[c], slot);
		S.settled++;
		n++;
	}
	return n;
}

static void
bury(uint32_t c)
{
	struct kn_held left[KN_HELD_MAX];
	uint32_t task = 0, gen = 0;
	uint64_t ns;
	bool begun;
	int n;

	drain(c);
	begun = kn_control_begun(S.slice[c].control, &task, &gen, &ns);
	n = kn_offer_bury(&S.offer, c, left);
	for (int i = 0; i < n; i++) {
		if (begun && left[i].task == task && left[i].gen == gen) {
			S.lost[task]++;
			S.settled++;
		} else {
			S.again[S.again_n++] = left[i].task;
			S.requeued++;
		}
	}
}

static void
reap(void)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		for (uint32_t c = 0; c < S.n; c++) {
			if (S.pid[c] != pid)
				continue;
			if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
				die("a claimant ended by itself", (uint32_t)status);
			bury(c);
			start(c);
		}
}

static void
hit(uint64_t now)
{
	uint32_t c = rnd(&S.seed) % S.n,
		 stuck = kn_offer_stuck(&S.offer, now, STUCK_MS * KN_MS_NS);

	for (uint32_t i = 0; i < S.n; i++) {
		bool late =
		    S.stopped_ns[i] && now - S.stopped_ns[i] > STOPPED_MS * KN_MS_NS;

		if ((stuck >> i & 1) && S.stopped_ns[i]) {
			S.stuck++;
			kill(S.pid[i], SIGKILL);
		} else if (late) {
			kill(S.pid[i], SIGCONT);
			S.stopped_ns[i] = 0;
		}
	}
	if (rnd(&S.seed) % 4 == 0 && !S.stopped_ns[c]) {
		kill(S.pid[c], SIGSTOP);
		S.stopped_ns[c] = now;
		S.stops++;
	} else {
		kill(S.pid[c], SIGKILL);
		S.kills++;
	}
}

static bool
turn(bool more)
{
	struct kn_taken taken[KN_SLOTS];
	bool did = false;

	for (int i = 0; i < 16 && (more || S.again_n) && offer_one(); i++)
		did = true;
	kn_offer_publish(&S.offer);
	did |= kn_offer_poll(&S.offer, taken) > 0;
	for (uint32_t c = 0; c < S.n; c++)
		did |= drain(c) > 0;
	if (S.offer.liars)
		die(kn_lie_name(S.offer.lie[__builtin_ctz(S.offer.liars)]),
		    S.offer.liars);
	return did;
}

static void
supervise(uint32_t seconds)
{
	uint64_t now = kn_clock_now(), end = now + seconds * 1000ull * KN_MS_NS;
	uint64_t next_hit = now, last = now;

	while (now < end || S.settled < S.next) {
		if (now >= end)
			for (uint32_t c = 0; c < S.n; c++)
				if (S.stopped_ns[c])
					kill(S.pid[c], SIGKILL);
		if (turn(now < end))
			last = now;
		else
			sched_yield();
		if (now - last > STALL_MS * KN_MS_NS)
			die("nothing moves", S.next - S.settled);
		if (now < end && now >= next_hit) {
			hit(now);
			next_hit += KILL_EVERY_MS * KN_MS_NS;
		}
		reap();
		now = kn_clock_now();
	}
}

static void
round_of(enum kn_claim_how how, uint32_t n, uint32_t seconds, uint32_t seed)
{
	static const uint8_t pool_id[16] = "stress-kill";
	struct kn_err e = { 0 };
	struct kn_layout l;

	memset(&S, 0, sizeof S);
	S.how = how;
	S.n = n;
	S.seed = seed;
	S.width = kn_claim_width(n, 0);
	if (kn_layout_of(n, 4096, 4096, &l) < 0 ||
	    kn_layout_share(&l, n, AREA_BYTES) < 0 ||
	    kn_arena_open(&S.arena, &l, pool_id, &e) < 0 ||
	    kn_arena_readonly(&S.arena, &S.ro, &e) < 0)
		die(e.msg, 0);
	kn_arena_bank(&S.arena, 0, &S.bank);
	if (kn_offer_init(&S.offer, &S.bank, how, S.width) < 0)
		die("too few regions", S.width);
	for (uint32_t c = 0; c < n; c++) {
		kn_arena_slice(&S.arena, c, &S.slice[c]);
		start(c);
	}
	supervise(seconds);
	for (uint32_t c = 0; c < n; c++)
		kill(S.pid[c], SIGKILL);
	for (uint32_t c = 0; c < n; c++)
		waitpid(S.pid[c], NULL, 0);
	for (uint32_t i = 0; i < S.next; i++)
		if (S.answered[i] + S.lost[i] != 1)
			die("neither answered nor lost, or both", i);
	printf("claim_kill: %s, %u claimants: %u tasks, %u killed, %u stopped, %u of "
	       "these "
	       "kept a region, %u tasks queued again\n",
	    kn_claim_how_name(how), n, S.next, S.kills, S.stops, S.stuck, S.requeued);
	fflush(stdout);
	if (S.kills == 0 || S.next == 0)
		die("nobody was killed", 0);
	kn_fd_close(&S.ro);
	kn_arena_close(&S.arena);
}

int
main(int argc, char **argv)
{
	uint32_t n = 5, seconds = 3, seed = (uint32_t)time(NULL);
	int opt;

	while ((opt = getopt(argc, argv, "c:t:s:")) != -1) {
		uint32_t v = optarg ? (uint32_t)strtoul(optarg, NULL, 10) : 0;
		if (v == 0 || opt == '?') {
			fprintf(stderr, "usage: claim_kill [-c CLAIMANTS] [-t SECONDS] "
					"[-s SEED]\n");
			return 2;
		}
		*(opt == 'c' ? &n : opt == 't' ? &seconds : &seed) = v;
	}
	fill_open();
	printf("claim_kill: seed %u\n", seed);
	fflush(stdout);
	round_of(KN_CLAIM_DEKKER, n, seconds, seed);
	round_of(KN_CLAIM_CAS_MASK, n, seconds, seed);
	return 0;
}
