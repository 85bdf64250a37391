/* tests/model/takeback.pml: the private submit lane (ipc/lane.h): the supervisor offers,
 * the worker claims, the supervisor may take back; both by a compare-exchange on one word
 * of toggle bits and a count. The worker may die at any step.
 *
 * Proves: no task is run twice, or run and taken back; each is answered, taken back, or
 * known to have been started or not; a copy that counts is whole. One slot: all that is hard is in reusing it.
 *
 * run: base
 * mutant: NO_COUNT              toggle bits alone: ABA
 * mutant: PUBLISH_BEFORE_WRITE  the toggle before the slot's words
 * mutant: COPY_AFTER_CLAIM      claim, then copy what may be overwritten by then
 * mutant: CLAIM_AFTER_RUN       run, then claim
 * mutant: BLIND_TAKE_BACK       take back without asking the word
 * mutant: BEFORE_REAP           what is left is settled while the worker may still go on
 */
#define TASKS 3
#define COUNTS 16

byte published; /* bit 0 */
byte claimed;	/* bit 0: toggle; above: the count */
byte half_a, half_b;
byte begun, ran[TASKS + 1];
bool doomed, killed, dead, stop;
byte settled[TASKS + 1], settled_n;

#define BITS(w) ((w) & 1)
#ifdef NO_COUNT
#define FLIP(w) ((w) ^ 1)
#else
#define FLIP(w) (((w) ^ 1) + 2) % (2 * COUNTS)
#endif
#define PENDING ((published ^ BITS(claimed)) & 1)

proctype worker() {
	byte w, p, a, b;

	{
		do
		:: stop -> break
		:: atomic { PENDING -> w = claimed }; /* C2: the first look */
			p = published; /* C1 */
			if
			:: !((p ^ BITS(w)) & 1) -> goto next
			:: else
			fi;
#ifndef COPY_AFTER_CLAIM
			a = half_a; /* D2 */
			b = half_b;
#endif
#ifdef CLAIM_AFTER_RUN
			atomic { begun = a; ran[a]++; assert(ran[a] == 1) };
#endif
			if
			:: atomic { claimed == w -> claimed = FLIP(w) } /* C2 */
#ifdef COPY_AFTER_CLAIM
				a = half_a;
				b = half_b;
#endif
				assert(a == b && a != 0);
				begun = a; /* G1 */
#ifndef CLAIM_AFTER_RUN
				atomic { ran[a]++; assert(ran[a] == 1) };
#endif
				/* answered: the return lane is lane.pml's business */
				atomic {
					assert(!settled[a]);
					settled[a] = 1;
					settled_n++
				};
				begun = 0
			:: atomic { claimed != w -> skip }
			fi;
		next:
			atomic { a = 0; b = 0; w = 0; p = 0 }
		od
	} unless { killed };
	dead = true
}

proctype supervisor() {
	byte task = 1, w, mine, offered, held; /* held: the last one seen claimed */

	do
	:: offered == 0 && task <= TASKS && !doomed ->
#ifdef PUBLISH_BEFORE_WRITE
		atomic { mine = mine ^ 1; published = mine; offered = task };
		half_a = task;
		half_b = task;
#else
		half_a = task; /* D1 */
		half_b = task;
		atomic { mine = mine ^ 1; published = mine; offered = task }; /* P1 */
#endif
		task++
	:: offered != 0 ->
		w = claimed;
		if
		:: !((mine ^ BITS(w)) & 1) -> atomic { held = offered; offered = 0; w = 0 }
		:: else ->
			if
#ifdef BLIND_TAKE_BACK
			:: atomic { true -> claimed = FLIP(claimed);
#else
			:: atomic { claimed == w -> claimed = FLIP(w); /* C2: taken back */
#endif
				assert(!settled[offered] && ran[offered] == 0);
				settled[offered] = 1;
				settled_n++;
				offered = 0;
				w = 0 }
			:: atomic { claimed != w -> w = 0 }
			:: w = 0 /* leaves it there */
			fi
		fi
	:: settled_n == TASKS && task > TASKS -> break
#ifdef BEFORE_REAP
	:: doomed -> goto bury
#else
	:: dead -> goto bury
#endif
	od;
	stop = true;
	goto done;
bury:
	/* What was not claimed was not run. Of what was claimed and not answered, begun says
	 * whether it had been started. */
	atomic {
		w = claimed;
		if
		:: offered != 0 && !((mine ^ BITS(w)) & 1) -> held = offered; offered = 0
		:: else
		fi;
		if
		:: offered != 0 -> /* to another worker */
			assert(ran[offered] == 0);
			settled[offered]++;
			settled_n++
		:: else
		fi;
		if
		:: held != 0 && !settled[held] ->
			assert(begun == held || ran[held] == 0);
			settled[held]++;
			settled_n++
		:: else
		fi;
		assert(settled_n == task - 1)
	}
done:
	skip
}

init {
	atomic {
		run worker();
		run supervisor()
	};
	if
	:: doomed = true; killed = true
	:: skip
	fi
}
