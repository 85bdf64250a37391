/* caps - what privilege is left in a task.
 * TRIES:    reads all five capability sets, no_new_privs and the filter count from
 *           /proc/self/status, asks PR_CAPBSET_READ for each capability, tries to get
 *           one back (capset, ambient), and looks whether PID 1 of the cell lets itself
 *           be read (dumpable).
 * SANDBOX:  BLOCKED: every set empty, no_new_privs on, a filter loaded, PID 1 closed.
 * OUTSIDE:  nothing to check.
 */
#include <linux/capability.h>
#include <stdbool.h>

#include "tests/hostile/hostile.h"

static char found[900];

static void
note(const char *fmt, ...)
{
	va_list ap;
	size_t n = strlen(found);

	va_start(ap, fmt);
	vsnprintf(found + n, sizeof found - n, fmt, ap);
	va_end(ap);
}

static void
read_status(void)
{
	static const char *const sets[] = {
		"CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:"
	};
	FILE *f = fopen("/proc/self/status", "r");
	char line[300];
	int seen = 0;

	if (!f)
		inconclusive("no /proc/self/status: %s", strerror(errno));
	while (fgets(line, sizeof line, f)) {
		for (int i = 0; i < 5; i++) {
			if (strncmp(line, sets[i], 7))
				continue;
			seen++;
			if (strtoull(line + 7, NULL, 16))
				note(" %.*s", (int)strcspn(line, "\n"), line);
		}
		if (!strncmp(line, "NoNewPrivs:", 11) && atoi(line + 11) != 1)
			note(" no_new_privs is off");
		if (!strncmp(line, "Seccomp:", 8) && atoi(line + 8) != 2)
			note(" no filter");
	}
	fclose(f);
	if (seen != 5)
		note(" only %d capability sets in /proc/self/status", seen);
}

static void
ask_kernel(void)
{
	struct __user_cap_header_struct h = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct d[2] = { { 0, 1u << CAP_SYS_ADMIN, 0 }, { 0 } };

	for (int cap = 0; cap < 64; cap++) {
		if (prctl(PR_CAPBSET_READ, cap, 0, 0, 0) == 1)
			note(" bounding:%d", cap);
		if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, cap, 0, 0) == 0)
			note(" ambient:%d raised", cap);
	}
	d[0].effective = d[0].permitted;
	if (syscall(SYS_capset, &h, d) == 0)
		note(" CAP_SYS_ADMIN raised");
	if (prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0) == 0)
		note(" no_new_privs switched off");
}

static void
look_at_init(void)
{
	static const char *const files[] = { "environ", "maps", "mem", "auxv", "stack",
		"syscall", "fd", "map_files", "cwd", "root", "exe", "smaps_rollup" };
	char path[64];

	for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
		snprintf(path, sizeof path, "/proc/1/%s", files[i]);
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		char b[16];

		/* Some open and then read nothing. */
		if (fd >= 0 && (!strcmp(files[i], "fd") || read(fd, b, sizeof b) > 0))
			note(" %s", path);
		if (fd >= 0)
			close(fd);
	}
	if (getpid() == 1)
		note(" the task is PID 1");
}

int
main(int c, char **v)
{
	h_init(c, v, 10, 10);
	read_status();
	ask_kernel();
	look_at_init();
	if (found[0])
		escape("privilege is left:%s", found);
	blocked("no capability in any set, no_new_privs, a filter, PID 1 closed");
}
