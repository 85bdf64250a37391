/* tests/model/stop.pml: the stop word and its acknowledgement (PROTOCOL section 5): the
 * worker sees the request between tasks and acknowledges; then it claims nothing more. The
 * supervisor waits for that only so long, kills, reaps, and only then settles what is left
 * and gives the slice's memory to another. The worker may die by itself at any step.
 *
 * Proves: after an acknowledgement was seen no task is claimed; each task is answered,
 * known to have been started, or given back once; nobody touches memory that was given
 * away. A worker that never acknowledges (it may be busy for ever) does not keep the
 * supervisor from its end.
 *
 * run: base
 * mutant: CLAIM_AFTER_ACK    one more claim after the acknowledgement
 * mutant: REUSE_BEFORE_REAP  the slice is given away when the kill was sent
 * mutant: SETTLE_ON_ACK      what is left is settled on the acknowledgement, by a look
 *                            made before it
 * mutant: NO_DEADLINE        waits for the acknowledgement for ever
 */
#define TASKS 2

bit stop, ack;
byte offered = 3;	/* tasks in the lane, a bit each */
byte begun;		/* bits */
byte answered, gave_back, started; /* bits */
bool doomed, killed, dead, reused, seen_ack;

proctype worker() {
	byte t;
	bit asked;

	{
		do
		::
			asked = stop; /* S2 */
			if
			:: asked ->
				ack = 1; /* S3 */
#ifndef CLAIM_AFTER_ACK
				break
#endif
			:: else
			fi;
			atomic { /* C2 */
				assert(!reused);
				if
				:: offered & 1 -> offered = offered & 2; t = 1
				:: !(offered & 1) && (offered & 2) -> offered = 0; t = 2
				:: offered == 0 -> t = 0
				fi;
				assert(t == 0 || !seen_ack)
			};
			if
			:: t == 0 -> (stop) /* sleeps until woken */
			:: else ->
				begun = begun | t; /* G1 */
				atomic {
					assert(!reused && !(gave_back & t));
					answered = answered | t
				}
			fi
		od
	} unless { killed };
	dead = true
}

/* Busy for ever: the worker's alter ego. It claimed a task, and that is all. */
proctype busy() {
	{
		atomic { offered & 1 -> offered = offered & 2; begun = 1 };
		(false)
	} unless { killed };
	dead = true
}

proctype supervisor() {
	byte left;

	/* stops at any moment, or when all is answered */
	stop = 1; /* S1, and a wake */
#ifdef SETTLE_ON_ACK
	left = offered;
#endif
	if
	:: ack -> seen_ack = true /* S4 */
#ifndef NO_DEADLINE
	:: true /* stop_ack_ms have passed */
#endif
	:: dead
	fi;
	doomed = true; /* the kill is sent: it takes its time */
#ifdef REUSE_BEFORE_REAP
	reused = true;
#else
	(dead);
#endif
#ifndef SETTLE_ON_ACK
	left = offered;
#endif
	d_step {
		/* not claimed: back in the queue. Claimed and not answered: begun tells. */
		gave_back = left;
		assert(!(gave_back & (answered | begun)));
		started = begun & ~answered;
		gave_back = gave_back | (3 & ~(left | answered | begun));
		assert((answered | gave_back | started) == 3)
	};
	reused = true
}

init {
	atomic {
		if
		:: run worker()
		:: run busy()
		fi;
		run supervisor()
	};
	if
	:: true -> killed = true /* by itself, at any step */
	:: true -> (doomed); killed = true
	fi
}
