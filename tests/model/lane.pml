/* tests/model/lane.pml: the toggle lane (ipc/lane.h, return lane): one producer, one
 * consumer, a word each. The producer is the worker: it may die at any step, and what it
 * had published is still whole.
 *
 * Proves: each task that was published is taken once, in one piece; nothing else is.
 * Copies are two steps, so that a torn one shows.
 *
 * run: base
 * mutant: PUBLISH_BEFORE_WRITE  the toggle before the slot's words
 * mutant: RETIRE_BEFORE_COPY    the consumer hands the slot back, then copies
 * mutant: NO_BUSY_TEST          the producer takes any slot
 * mutant: KEEP_TAKING           the consumer does not note what it has retired
 */
#define SLOTS 2
#define TASKS 4

byte published, retired; /* the two words: a bit a slot */
byte half_a[SLOTS], half_b[SLOTS];
byte sent, taken[TASKS + 1], took;
bool killed, dead;

#define BIT(s) (1 << (s))
#define PENDING(s) (((published ^ retired) >> (s)) & 1)

proctype producer() {
	byte task = 1, mine, s;

	{
		do
		:: task > TASKS -> break
		:: else ->
			atomic {
				/* shadow of our word; theirs is loaded */
#ifdef NO_BUSY_TEST
				if
				:: s = 0
				:: s = 1
				fi
#else
				if
				:: !(((mine ^ retired) >> 0) & 1) -> s = 0
				:: !(((mine ^ retired) >> 1) & 1) -> s = 1
				fi
#endif
			}
#ifdef PUBLISH_BEFORE_WRITE
			atomic { mine = mine ^ BIT(s); published = mine; sent++ }
			half_a[s] = task;
			half_b[s] = task;
#else
			half_a[s] = task;
			half_b[s] = task;
			atomic { mine = mine ^ BIT(s); published = mine; sent++ } /* R1 */
#endif
			task++
		od
	} unless { killed };
	dead = true
}

proctype consumer() {
	byte mine, s, a, b;

	do
	:: atomic { (((published ^ mine) >> 0) & 1) -> s = 0 } goto take /* R2 */
	:: atomic { (((published ^ mine) >> 1) & 1) -> s = 1 } goto take
	:: dead && published == mine -> break
	continue:
	od;
	assert(took == sent);
	goto done;
take:
#ifdef RETIRE_BEFORE_COPY
	atomic { mine = mine ^ BIT(s); retired = mine };
	a = half_a[s];
	b = half_b[s];
#else
	a = half_a[s];
	b = half_b[s];
#ifdef KEEP_TAKING
	retired = retired ^ BIT(s);
#else
	atomic { mine = mine ^ BIT(s); retired = mine }; /* R3 */
#endif
#endif
	atomic {
		assert(a == b && a != 0);
		taken[a]++;
		took++;
		assert(taken[a] == 1);
		a = 0;
		b = 0
	};
	goto continue;
done:
	skip
}

init {
	atomic {
		run producer();
		run consumer()
	};
	/* at any step, or never */
	if
	:: killed = true
	:: skip
	fi
}
