/* tests/model/dekker.pml: claiming by dekker from a shared bank (ipc/claim.c by_dekker,
 * ipc/offer.c). CLAIMANTS of them, of whom one may die, or stop for good, at any step; a
 * replacement goes on at its id. Regions of one slot; each claimant's want and ack are one
 * word, loaded and stored whole, as they are.
 *
 * The first survey only says where to look: here any region that is pending at that moment
 * may be tried. A senior's wait may end at any step.
 *
 * Proves: a task is run once; a copy is whole; only what was never started is queued again;
 * at the end each task is answered, or known to have been started by the one that died
 * (otherwise the supervisor waits for ever, which is an invalid end state). With STOPPED
 * nobody is reaped: all that is not in the stopped one's hands or region is answered.
 *
 * run: two, a death, a replacement  -DCLAIMANTS=2 -DTASKS=2
 * run: the same, three tasks         -DCLAIMANTS=2 -DTASKS=3
 * run: two, one stops for good       -DCLAIMANTS=2 -DTASKS=3 -DSTOPPED
 * run: three, one stops for good     -DCLAIMANTS=3 -DTASKS=2 -DSTOPPED
 * run: the supervisor takes back     -DCLAIMANTS=2 -DTASKS=2 -DTAKE_BACK -DNO_DEATH
 * mutant: PUBLISH_BEFORE_WRITE  the toggle before the slot's words
 * mutant: ACK_AFTER_RUN         run, then retire
 * mutant: WANT_BEFORE_ACK       let go, then retire
 * mutant: LIVE_BEFORE_REAP      buried when it is to be killed, not when it is dead
 * mutant: NO_SECOND_LOOK        claim without looking at the others' want again
 * mutant: NO_SENIOR_WAIT        a senior goes on although a junior wants the region
 * mutant: LOOK_BEFORE_WANT      look at the others, then say what is wanted
 * mutant: PUBLISHED_FIRST       the producer's word is loaded before the acks, not after
 * mutant: LIVE_FIRST            LIVE is loaded before want is stored
 * mutant: ACK_FROM_ZERO         the replacement forgets what its id has retired
 * mutant: NO_LAST_LOOK          buried without a look at its last ack
 * mutant: REQUEUE_ALL           also what the dead one had started is queued again
 * mutant: REQUEUE_NONE          nothing of the dead one's batch is queued again
 * mutant: DEAD_WANT_COUNTS      LIVE is not cleared
 * mutant: SUPERVISOR_NOT_LIVE   nobody heeds what the supervisor wants when it takes back
 * mutant: TAKE_BACK_BY_WANT     it takes back without a look at the others' acks
 * mutant: TAKE_BACK_BY_ACK      it takes back without a look at the others' wants
 */
#ifndef CLAIMANTS
#define CLAIMANTS 2
#endif
#ifndef TASKS
#define TASKS 3
#endif
#define SLOTS 2
#ifdef SUPERVISOR_NOT_LIVE
#define TAKE_BACK
#endif
#ifdef TAKE_BACK_BY_WANT
#define TAKE_BACK
#endif
#ifdef TAKE_BACK_BY_ACK
#define TAKE_BACK
#endif
/* The supervisor is one more claimant, the most junior one, and always live. */
#ifdef TAKE_BACK
#define PEERS (CLAIMANTS + 1)
#else
#define PEERS CLAIMANTS
#endif
#ifdef SUPERVISOR_NOT_LIVE
#define ALL ((1 << CLAIMANTS) - 1)
#else
#define ALL ((1 << PEERS) - 1)
#endif

byte published;
byte word[CLAIMANTS + 1]; /* bits 0, 1: ack; above: the wanted region + 1 */
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
#ifdef NO_SECOND_LOOK
#define NO_LOOK 1
#else
#define NO_LOOK 0
#endif
/* By a live senior; with STOPPED also by the one that stopped: tries that end in a wait
 * for it, and come to nothing, are left out. */
#define KEPT(r) ((me > 0 && (live & 1) && WANTS(word[0], r)) || STUCK(r))
#ifdef STOPPED
#define STUCK(r) (doomed < CLAIMANTS && dead[doomed] && WANTS(word[doomed], r))
#else
#define STUCK(r) false
#endif
#if CLAIMANTS == 2
#define PENDING ((published ^ word[0] ^ word[1] ^ word[2]) & 3)
#else
#define PENDING ((published ^ word[0] ^ word[1] ^ word[2] ^ word[3]) & 3)
#endif

/* begun says so first; what dies in between counts as started either way */
inline run_it(a) {
	atomic {
		begun[me] = a; /* G1 */
		ran[a]++;
		assert(ran[a] == 1)
	}
}

/* One shared access a step; what is local goes with it. */
proctype claimant(byte me) {
	byte ack, sum, p, r, lv, a;

	{
#ifndef ACK_FROM_ZERO
		ack = ACK(word[me]);
#endif
		do
		:: stop -> break
		:: atomic { /* Y2, W2: something to be had, where no live senior is at work */
			(PENDING & 1) && !KEPT(0) -> r = 0 }
			goto try
		:: atomic {
			(PENDING & 2) && !KEPT(1) -> r = 1 }
			goto try
		next:
			skip
		od;
		goto over;
	try:
#ifdef PUBLISHED_FIRST
		a = published;
#endif
#ifdef LIVE_FIRST
		lv = live;
#endif
#ifndef LOOK_BEFORE_WANT
		word[me] = WORD(r, ack); /* W1 */
#endif
#ifndef LIVE_FIRST
		lv = live; /* V2 */
#endif
		do
		:: p == PEERS -> break
		:: atomic { p == me -> p++ }
		:: atomic { p != me && p < PEERS && /* W2: clear */
			(NO_LOOK || !((lv >> p) & 1) || !WANTS(word[p], r)) ->
			sum = sum ^ ACK(word[p]);
			p++ }
		:: atomic { p < me && !NO_LOOK && ((lv >> p) & 1) && WANTS(word[p], r) ->
			goto withdraw }
		:: atomic { p > me && p < PEERS && !NO_LOOK && ((lv >> p) & 1) &&
			WANTS(word[p], r) -> skip };
#ifdef NO_SENIOR_WAIT
			atomic { sum = sum ^ ACK(word[p]); p++ }
#else
			/* V2, W2; looks that change nothing are left out */
			do
			:: atomic { !((live >> p) & 1) -> skip };
				atomic { sum = sum ^ ACK(word[p]); p++ };
				break
			:: atomic { !WANTS(word[p], r) -> sum = sum ^ ACK(word[p]); p++ };
				break
			:: goto withdraw
			od
#endif
		od;
#ifdef LOOK_BEFORE_WANT
		word[me] = WORD(r, ack);
#endif
#ifdef PUBLISHED_FIRST
		sum = sum ^ a;
#else
		sum = sum ^ published; /* Y2 */
#endif
		if
		:: !(((sum ^ ack) >> r) & 1) -> goto withdraw
		:: else
		fi;
		atomic { sum = 0; p = 0; lv = 0; a = half_a[r] }; /* D2 */
		assert(a == half_b[r] && a != 0);
#ifdef ACK_AFTER_RUN
		run_it(a);
#endif
#ifdef WANT_BEFORE_ACK
		word[me] = ack;
#endif
		atomic { ack = ack ^ BIT(r); word[me] = ack; r = 0 }; /* W3 */
#ifndef ACK_AFTER_RUN
		run_it(a);
#endif
		atomic { assert(answered[a] == 0); answered[a] = me + 1; a = 0 }; /* R1 */
		begun[me] = 0;
		goto next;
	withdraw:
		atomic { word[me] = ack; sum = 0; p = 0; r = 0; lv = 0; a = 0 } /* W3 */
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

#ifdef REQUEUE_ALL
#define REQUEUES_BEGUN 1
#else
#define REQUEUES_BEGUN 0
#endif
/* Of what c owned and did not answer. */
inline settle_dead(c) {
	t = 1;
	do
	:: t <= TASKS ->
		if
		:: owner[t] == c + 1 && !(settled & BIT(t)) ->
			if
			:: begun[c] == t && !REQUEUES_BEGUN ->
				settled = settled | BIT(t);
				settled_n++
			:: else ->
				assert(REQUEUES_BEGUN || ran[t] == 0);
				owner[t] = 0;
#ifndef REQUEUE_NONE
				queued = queued | BIT(t)
#endif
			fi
		:: else
		fi;
		t++
	:: else -> break
	od;
	t = 0
}

#ifdef TAKE_BACK_BY_ACK
#define IN_THE_WAY(c, s) false
#else
#define IN_THE_WAY(c, s) WANTS(word[c], s)
#endif
#ifdef TAKE_BACK_BY_WANT
#define HAS_IT(c, s) false
#else
#define HAS_IT(c, s) ((ACK(word[c]) ^ seen[c]) & BIT(s))
#endif

#define UNSETTLED(t) (answered[t] && owner[t] == answered[t] && !(settled & BIT(t)))
#define NEWS(c) (ACK(word[c]) != seen[c])
#ifdef LIVE_BEFORE_REAP
#define FALLEN (doomed < CLAIMANTS && !buried)
#else
#define FALLEN (doomed < CLAIMANTS && dead[doomed] && !buried)
#endif

proctype supervisor() {
	byte s, t;
#ifdef TAKE_BACK
	byte c, ack, backs;
#endif

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
	:: d_step { NEWS(0) || UNSETTLED(1) -> look(0) }
	:: d_step { NEWS(1) || UNSETTLED(2) -> look(1) }
#if CLAIMANTS > 2
	:: d_step { NEWS(2) -> look(2) }
#endif
#if TASKS > 2
	:: d_step { UNSETTLED(3) -> look(1) }
#endif
#ifndef STOPPED
	:: atomic { FALLEN -> buried = true };
#ifndef NO_LAST_LOOK
		d_step { look(doomed) };
#endif
#ifndef DEAD_WANT_COUNTS
		live = live & ~BIT(doomed); /* V1 */
#endif
		d_step { settle_dead(doomed) };
		if
		:: true -> /* a replacement at its id */
			d_step { word[doomed] = seen[doomed]; begun[doomed] = 0; killed[doomed] = false };
			atomic { live = live | BIT(doomed); run claimant(doomed) }
		:: true
		fi
#endif
#ifdef TAKE_BACK
	:: atomic { backs < 2 && (offered & 1) -> s = 0 } goto back
	:: atomic { backs < 2 && (offered & 2) -> s = 1 } goto back
#endif
	:: settled_n == TASKS || stop -> break
#ifdef TAKE_BACK
	back:
		atomic { backs++; word[CLAIMANTS] = WORD(s, ack) }; /* W1 */
		do
		:: c == CLAIMANTS -> break
		:: atomic { c < CLAIMANTS && /* W2 */
			!(((live >> c) & 1) && (IN_THE_WAY(c, s) || HAS_IT(c, s))) -> c++ }
		:: atomic { c < CLAIMANTS && ((live >> c) & 1) &&
			(IN_THE_WAY(c, s) || HAS_IT(c, s)) -> skip };
			goto let_go
		od;
		atomic {
			ack = ack ^ BIT(s);
			word[CLAIMANTS] = WORD(s, ack); /* W3 */
			offered = offered & ~BIT(s);
			queued = queued | BIT(at[s])
		};
	let_go:
		atomic { word[CLAIMANTS] = ack; s = 0; c = 0 } /* W3 */
#endif
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
#ifndef NO_DEATH
	:: atomic {
		if
		:: doomed = 0
		:: doomed = 1
#if CLAIMANTS > 2
		:: doomed = 2
#endif
		fi };
		killed[doomed] = true
#endif
	:: true
	fi;
#ifdef STOPPED
	/* When nothing moves any more: */
	timeout ->
	atomic {
		for (c : 1 .. TASKS) {
			/* neither answered, nor taken by the stopped one, nor in its region */
			assert(answered[c] || (doomed < CLAIMANTS && (
			    begun[doomed] == c || owner[c] == doomed + 1 ||
			    (WANTS(word[doomed], 0) && at[0] == c && (offered & 1)) ||
			    (WANTS(word[doomed], 1) && at[1] == c && (offered & 2)) ||
			    (queued & BIT(c)))));
		};
		stop = true
	}
#endif
}
