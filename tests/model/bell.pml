/* tests/model/bell.pml: the doorbell (ipc/bell.h) and the sleep of a worker on its wake
 * word (ipc/park.h). Both are the same: a sleeper arms, looks once more, sleeps; a
 * publisher publishes, then exchanges the armed word and rings if it was set.
 *
 * Proves: no wake is lost (a sleeper with something to do, and nobody left who will ring,
 * is an invalid end state); a burst rings once, and nobody is rung who is not asleep or
 * about to be. The publisher may die between any two steps; then its pidfd rings (PIDFD).
 *
 * run: base
 * mutant: NO_SECOND_LOOK       arms, and sleeps without looking again
 * mutant: RING_BEFORE_PUBLISH  rings, then publishes
 * mutant: LOOK_BEFORE_ARM      looks again, then arms
 * mutant: PLAIN_ARMED          the publisher reads armed before its publication is seen
 * mutant: NO_PIDFD             a death does not wake
 * mutant: RING_WITHOUT_DISARM  the bell rings for each of a burst
 */
#define BURST 3

byte lane;	/* publications not yet taken */
bit armed, bell; /* the word; the eventfd's counter, or the futex's wake */
byte published, took, rings, sleeps;
bool killed, dead, reaped;

proctype publisher() {
	bit was;

	{
		do
		:: published == BURST -> break
		:: else ->
#ifdef RING_BEFORE_PUBLISH
			atomic { was = armed; armed = 0 };
			if
			:: was -> atomic { bell = 1; rings++ }
			:: else
			fi;
			atomic { lane++; published++ }
#else
#ifdef PLAIN_ARMED
			/* what a load may do that is not ordered after the store */
			was = armed;
			atomic { lane++; published++ };
			if
			:: was -> armed = 0
			:: else
			fi;
#else
			atomic { lane++; published++ }; /* R1 or P1 */
#ifdef RING_WITHOUT_DISARM
			was = armed;
#else
			atomic { was = armed; armed = 0 }; /* B2, K2: one exchange */
#endif
#endif
			if
			:: was -> atomic { bell = 1; rings++; assert(rings <= sleeps) }
			:: else
			fi
#endif
		od;
		goto over
	} unless { killed };
	dead = true;
over:
	skip
}

proctype sleeper() {
	do
	:: lane > 0 -> atomic { lane--; took++ }
	:: lane == 0 && (took == BURST || reaped) -> break
	:: lane == 0 && took < BURST && !reaped ->
#ifdef LOOK_BEFORE_ARM
		if
		:: lane > 0 -> goto again
		:: else
		fi;
#endif
		atomic { sleeps++; armed = 1 }; /* B1, K1: an exchange */
#ifndef LOOK_BEFORE_ARM
#ifndef NO_SECOND_LOOK
		if
		:: lane > 0 -> armed = 0; goto again
		:: else
		fi;
#endif
#endif
		/* epoll_wait, futex wait */
		if
		:: bell -> bell = 0
#ifndef NO_PIDFD
		:: dead -> reaped = true
#endif
		fi;
		armed = 0;
	again:
		skip
	od;
	assert(took == published || !reaped)
}

init {
	atomic {
		run publisher();
		run sleeper()
	};
	if
	:: killed = true
	:: skip
	fi
}
