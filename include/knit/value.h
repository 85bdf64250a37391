/* knit/value.h: the types of values that go into a module's task and come back. */
#ifndef KNIT_VALUE_H
#define KNIT_VALUE_H

/* Arrays are elements of the machine's own form, back to back. */
enum knit_type {
	KNIT_NULL = 1,
	KNIT_BOOL, /* one byte, 0 or 1 */
	KNIT_I64,
	KNIT_F64,
	KNIT_TEXT,  /* UTF-8 */
	KNIT_BYTES, /* anything */
	KNIT_JSON,  /* UTF-8 text of one JSON value */
	KNIT_I32S,
	KNIT_I64S,
	KNIT_U64S,
	KNIT_F64S
};

#endif
