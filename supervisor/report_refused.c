/* supervisor/report_refused.c: "refused" of a result line. All text in it is the
 * policy's or ours; of the task there are numbers only. */
#include "supervisor/report_refused.h"

#include "supervisor/verdict.h"

static json_t *
one(const struct kn_refused *r)
{
	json_t *o = json_object(), *args = json_array();
	char buf[16];
	int bad = 0;

	for (unsigned i = 0; i < r->arg_n && i < 6; i++)
		bad |= json_array_append_new(args, json_integer(r->args[i]));
	bad |= json_object_set_new(o, "call", json_string(r->name));
	bad |= json_object_set_new(o, "args", args);
	bad |= json_object_set_new(o, "count", json_integer((json_int_t)r->count));
	bad |= json_object_set_new(
	    o, "errno", json_string(kn_errno_name((int)r->errno_ret, buf)));
	bad |= json_object_set_new(o, "by", kn_report_words(r->by));
	bad |= json_object_set_new(
	    o, "allow", r->allow ? json_string(r->allow) : json_null());
	if (!bad)
		return o;
	json_decref(o);
	return NULL;
}

int
kn_report_refused(json_t *root, const struct kn_outcome *o)
{
	json_t *list;
	int r = 0;

	if (o->refused_n == 0 && o->refused_more == 0)
		return 0;
	list = json_array();
	for (size_t i = 0; i < o->refused_n; i++)
		r |= json_array_append_new(list, one(&o->refused[i]));
	r |= json_object_set_new(root, "refused", list);
	if (o->refused_more)
		r |= json_object_set_new(
		    root, "refused_more", json_integer((json_int_t)o->refused_more));
	return r;
}
