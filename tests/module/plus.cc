// tests/module/plus.cc: knit/task.h in C++: names without mangling, no warnings.
#include <cstring>
#include <new>
#include <string>

#include <knit/task.h>

KNIT_TASK(reverse)
{
	size_t n;
	const char *s = knit_arg_text(call, &n);

	if (!s)
		return -1;
	std::string r(s, n);
	std::string back(r.rbegin(), r.rend());
	return knit_result_text(call, back.data(), back.size());
}

KNIT_TASK(is_null)
{
	return knit_result_bool(call, knit_arg_type(call) == KNIT_NULL);
}
