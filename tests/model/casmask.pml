/* tests/model/casmask.pml: claiming by cas-mask from a shared bank (ipc/claim.c by_cas_mask,
 * ipc/offer.c). CLAIMANTS of them, of whom one may die at any step; a replacement goes on
 * at its id. Regions of one slot. The owners mask has a count; the supervisor clears bits
 * that no live claimant wants, at any time.
 *
 * Proves what dekker.pml proves, and that a bit in use is never cleared by another.
 *
 * run: two, a death, a replacement  -DCLAIMANTS=2 -DTASKS=2
 * mutant: PUBLISH_BEFORE_WRITE  the toggle before the slot's words
 * mutant: ACK_AFTER_RUN         run, then retire
 * mutant: DISOWN_BEFORE_ACK     let go, then retire
 * mutant: WANT_AFTER_CAS        who owns a bit is said after the exchange
 * mutant: WANT_GONE_FIRST       the want is cleared before the bit
 * mutant: NO_COUNT              the supervisor clears by the bits alone: ABA
 * mutant: LIVE_BEFORE_REAP      buried when it is to be killed, not when it is dead
 * mutant: ACKS_BEFORE_CAS       the others' acks are from before the exchange
 * mutant: ORPHANS_STAY          bits of the dead are not cleared
 */
#ifndef CLAIMANTS
#define CLAIMANTS 2
#endif
#ifndef TASKS
#define TASKS 3
#endif
#define SLOTS 2
#define ALL ((1 << CLAIMANTS) - 1)

byte published;
byte word[CLAIMANTS]; /* bits 0, 1: ack; above: the wanted region + 1 */
byte live = ALL;
byte half_a[SLOTS], half_b[SLOTS];

/* slices: begun word and return lane */
byte begun[CLAIMANTS];
byte answered[TASKS + 1]; /* by whom, + 1 */

byte ran[TASKS + 1];
byte doomed = 255; /* who is to die */
bool killed[CLAIMANTS], dead[CLAIMANTS];
bool stop;

#define BIT(s) (1 << (s))
#define ACK(w) ((w) & 3)
#define WANTS(w, r) ((w) >> 2 == (r) + 1)
#define WORD(want, ack) ((((want) + 1) << 2) | (ack))
#if CLAIMANTS == 2
#define PENDING ((published ^ word[0] ^ word[1]) & 3)
#else
#define PENDING ((published ^ word[0] ^ word[1] ^ word[2]) & 3)
#endif

/* begun says so first; what dies in between counts as started either way */
inline run_it(a) {
	atomic {
		begun[me] = a; /* G1 */
		ran[a]++;
		assert(ran[a] == 1)
	}
}

byte owners;  /* regions being claimed */
bool changed; /* in place of the count: exchanged since the supervisor's load */
#if CLAIMANTS == 2
#define OTHERS_ACK (ACK(word[1 - me]))
#else
#define OTHERS_ACK (ACK(word[(me + 1) % 3] ^ word[(me + 2) % 3]))
#endif

/* One shared access a step; what is local goes with it. The acks of two peers are loaded
 * in one: in a region that is owned neither can change. */
proctype claimant(byte me) {
	byte ack, sum, r, a;

	{
		ack = ACK(word[me]);
		do
		:: stop -> break
		:: atomic { (PENDING & 1) && !(owners & 1) -> r = 0 } goto try
		:: atomic { (PENDING & 2) && !(owners & 2) -> r = 1 } goto try
		next:
			skip
		od;
		goto over;
	try:
#ifdef ACKS_BEFORE_CAS
		sum = OTHERS_ACK;
#endif
#ifndef WANT_AFTER_CAS
		word[me] = WORD(r, ack); /* W3 */
#endif
		/* M1: it may also find the bit set, or fail as often as it tries */
		if
		:: atomic { !(owners & BIT(r)) -> owners = owners | BIT(r); changed = true }
		:: goto withdraw
		fi;
#ifdef WANT_AFTER_CAS
		word[me] = WORD(r, ack);
#endif
#ifndef ACKS_BEFORE_CAS
		sum = OTHERS_ACK; /* W2 */
#endif
		sum = sum ^ published; /* Y2 */
		if
		:: !(((sum ^ ack) >> r) & 1) -> a = 0; goto disown
		:: else
		fi;
		atomic { sum = 0; a = half_a[r] }; /* D2 */
		assert(a == half_b[r] && a != 0);
#ifdef ACK_AFTER_RUN
		run_it(a);
#endif
#ifdef DISOWN_BEFORE_ACK
		d_step { owners = owners & ~BIT(r); changed = true };
#endif
		atomic { ack = ack ^ BIT(r); word[me] = WORD(r, ack) }; /* W3 */
	disown:
		sum = 0;
#ifdef WANT_GONE_FIRST
		word[me] = ack;
#endif
#ifndef DISOWN_BEFORE_ACK
		/* M1: until it succeeds; a liar's doing apart it is still set */
		d_step { 
			assert(owners & BIT(r));
			owners = owners & ~BIT(r);
			changed = true };
#endif
		atomic { word[me] = ack; r = 0 }; /* W3 */
		if
		:: a == 0 -> goto next
		:: else
		fi;
#ifndef ACK_AFTER_RUN
		run_it(a);
#endif
		atomic { assert(answered[a] == 0); answered[a] = me + 1; a = 0 }; /* R1 */
		begun[me] = 0;
		goto next;
	withdraw:
		atomic { word[me] = ack; sum = 0; r = 0; a = 0 } /* W3 */
		goto next;
	over:
		skip
	} unless { killed[me] };
	dead[me] = true
}

/* The supervisor's own record. */
byte mine, offered;		/* bits */
byte at[SLOTS];			/* the task in a slot */
byte seen[CLAIMANTS];		/* acks */
byte owner[TASKS + 1];		/* + 1 */
byte queued = ((1 << TASKS) - 1) << 1; /* a bit a task */
byte settled, settled_n;	/* a bit a task */
bool buried;

/* A look at claimant c: one load of its word, then of its return lane. */
inline look(c) {
	t = ACK(word[c]) ^ seen[c]; /* W4 */
	seen[c] = seen[c] ^ t;
	if
	:: t & 1 -> assert(offered & 1); offered = offered & 2; owner[at[0]] = c + 1
	:: else
	fi;
	if
	:: t & 2 -> assert(offered & 2); offered = offered & 1; owner[at[1]] = c + 1
	:: else
	fi;
	t = 1;
	do
	:: t <= TASKS ->
		if
		:: answered[t] && !(settled & BIT(t)) && owner[t] == answered[t] ->
			settled = settled | BIT(t);
			settled_n++
		:: else
		fi;
		t++
	:: else -> break
	od;
	t = 0
}

/* Of what c owned and did not answer. */
inline settle_dead(c) {
	t = 1;
	do
	:: t <= TASKS ->
		if
		:: owner[t] == c + 1 && !(settled & BIT(t)) ->
			if
			:: begun[c] == t ->
				settled = settled | BIT(t);
				settled_n++
			:: else ->
				assert(ran[t] == 0);
				owner[t] = 0;
				queued = queued | BIT(t)
			fi
		:: else
		fi;
		t++
	:: else -> break
	od;
	t = 0
}

#define UNSETTLED(t) (answered[t] && owner[t] == answered[t] && !(settled & BIT(t)))
#define NEWS(c) (ACK(word[c]) != seen[c])
#ifdef LIVE_BEFORE_REAP
#define FALLEN (doomed < CLAIMANTS && !buried)
#else
#define FALLEN (doomed < CLAIMANTS && dead[doomed] && !buried)
#endif

#define WANTED(w) ((w) >> 2 == 0 -> 0 : BIT(((w) >> 2) - 1))
#ifdef NO_COUNT
#define SAME(x, y) ((x) == (y))
#else
#define SAME(x, y) ((x) == (y) && !changed)
#endif

proctype supervisor() {
	byte s, t, m, w, c;
	bool cleared;

	do
	:: d_step { queued != 0 && offered != 3 -> /* lowest task, lowest slot */
			t = 1;
			do
			:: !(queued & BIT(t)) -> t++
			:: else -> break
			od;
			queued = queued & ~BIT(t);
			s = offered & 1;
			at[s] = t
		};
#ifdef PUBLISH_BEFORE_WRITE
		atomic { offered = offered | BIT(s); published = published ^ BIT(s) };
#endif
		half_a[s] = t; /* D1 */
#ifdef PUBLISH_BEFORE_WRITE
		d_step { half_b[s] = t; s = 0; t = 0 }
#else
		half_b[s] = t;
		d_step { offered = offered | BIT(s); published = published ^ BIT(s); s = 0; t = 0 }
#endif
#ifndef ORPHANS_STAY
	/* any number of times once somebody is dead; before that, once will do */
	:: atomic { (owners & 3) && (!cleared || buried) ->
			cleared = true;
			changed = false;
			m = owners }; /* M2 */
		w = 0;
		do
		:: c < CLAIMANTS ->
			atomic { /* W4 */
				w = w | (((live >> c) & 1) -> WANTED(word[c]) : 0);
				c++ }
		:: else -> break
		od;
		if
		:: !(m & 3 & ~w)
		:: atomic { (m & 3 & ~w) && SAME(owners, m) -> owners = owners & w } /* M2 */
		:: (m & 3 & ~w) && !SAME(owners, m)
		fi;
		d_step { m = 0; w = 0; c = 0 }
#endif
	:: d_step { NEWS(0) || UNSETTLED(1) -> look(0) }
	:: d_step { NEWS(1) || UNSETTLED(2) -> look(1) }
#if CLAIMANTS > 2
	:: d_step { NEWS(2) -> look(2) }
#endif
#if TASKS > 2
	:: d_step { UNSETTLED(3) -> look(1) }
#endif
	:: atomic { FALLEN -> buried = true };
		d_step { look(doomed) };
		live = live & ~BIT(doomed); /* V1 */
		d_step { settle_dead(doomed) };
		if
		:: true -> /* a replacement at its id */
			d_step { word[doomed] = seen[doomed]; begun[doomed] = 0; killed[doomed] = false };
			atomic { live = live | BIT(doomed); run claimant(doomed) }
		:: true
		fi
	:: settled_n == TASKS -> break
	od;
	stop = true
}

init {
	byte c;

	atomic {
		run supervisor();
		run claimant(0);
		run claimant(1);
#if CLAIMANTS > 2
		run claimant(2);
#endif
	};
	if
	:: atomic {
		if
		:: doomed = 0
		:: doomed = 1
#if CLAIMANTS > 2
		:: doomed = 2
#endif
		fi };
		killed[doomed] = true
	:: true
	fi;
}
