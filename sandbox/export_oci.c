/* sandbox/export_oci.c: config.json of a bundle (OCI runtime specification 1.0.2) whose
 * rootfs is an empty directory: the system directories are bound into it.
 */
#include <inttypes.h>
#include <string.h>

#include "sandbox/export_int.h"

enum { MAPPED_FROM = 300000, MAPPED_N = 65536 };

static json_t *
strings(const char *const *v, size_t n)
{
	json_t *a = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(a, json_string(v[i]));
	return a;
}

static void
add_rlimit(json_t *list, const char *type, uint64_t value, bool none_is_zero)
{
	if (value || none_is_zero)
		json_array_append_new(
		    list, json_pack("{s:s,s:I,s:I}", "type", type, "hard",
			      (json_int_t)value, "soft", (json_int_t)value));
}

static json_t *
process(const struct kn_policy *p)
{
	static const char *const sets[] = { "bounding", "effective", "inheritable",
		"permitted", "ambient" };
	json_t *limits = json_array(), *caps = json_object();

	for (size_t i = 0; i < sizeof sets / sizeof *sets; i++)
		json_object_set_new(caps, sets[i], json_array());
	add_rlimit(limits, "RLIMIT_CORE", p->task.core, true);
	add_rlimit(limits, "RLIMIT_NOFILE", p->task.nofile, false);
	add_rlimit(limits, "RLIMIT_FSIZE", p->task.fsize, false);
	add_rlimit(limits, "RLIMIT_STACK", p->task.stack, false);
	add_rlimit(limits, "RLIMIT_CPU", (p->task.cpu_ms + 999) / 1000, false);
	return json_pack("{s:b,s:{s:i,s:i},s:[s],s:o,s:s,s:o,s:o,s:b}", "terminal", 0,
	    "user", "uid", KN_EXPORT_ID, "gid", KN_EXPORT_ID, "args", "/bin/sh", "env",
	    strings(p->env.set, p->env.set_n), "cwd", "/task", "capabilities", caps,
	    "rlimits", limits, "noNewPrivileges", 1);
}

/* Takes options. */
static void
mount(
    json_t *list, const char *type, const char *source, const char *at, json_t *options)
{
	json_array_append_new(
	    list, json_pack("{s:s,s:s,s:s,s:o}", "destination", at, "type", type,
		      "source", source, "options", options));
}

static void
add_tmpfs(json_t *list, const char *at, uint64_t bytes, uint64_t inodes, bool task)
{
	json_t *o =
	    json_pack("[s,s,s]", "nosuid", "nodev", task ? "mode=0700" : "mode=1777");

	json_array_append_new(o, json_sprintf("size=%" PRIu64, bytes));
	if (inodes)
		json_array_append_new(o, json_sprintf("nr_inodes=%" PRIu64, inodes));
	if (task) {
		json_array_append_new(o, json_sprintf("uid=%d", KN_EXPORT_ID));
		json_array_append_new(o, json_sprintf("gid=%d", KN_EXPORT_ID));
	}
	mount(list, "tmpfs", "tmpfs", at, o);
}

static json_t *
mounts(const struct kn_policy *p)
{
	json_t *list = json_array();

	mount(list, "proc", "proc", "/proc",
	    json_pack("[s,s,s]", "nosuid", "noexec", "nodev"));
	mount(list, "tmpfs", "tmpfs", "/dev",
	    json_pack("[s,s,s,s]", "nosuid", "strictatime", "mode=755", "size=65536k"));
	mount(list, "devpts", "devpts", "/dev/pts",
	    json_pack("[s,s,s,s,s]", "nosuid", "noexec", "newinstance", "ptmxmode=0666",
		"mode=0620"));
	add_tmpfs(list, "/dev/shm", p->fs.shm_bytes, 0, false);
	for (size_t i = 0; i < p->fs.mount_n; i++) {
		const struct kn_mount *m = &p->fs.mounts[i];
		/* A link of the system root is bound as what it leads to. */
		const char *source =
		    m->type == KN_MOUNT_SYMLINK && !m->user ? m->at : m->source;

		if (m->type == KN_MOUNT_DIR || !source ||
		    (m->type == KN_MOUNT_SYMLINK && m->user))
			continue;
		mount(list, "bind", source, m->at,
		    m->writable
			? json_pack("[s,s,s]", "rbind", "nosuid", "nodev")
			: json_pack("[s,s,s,s]", "rbind", "ro", "nosuid", "nodev"));
	}
	add_tmpfs(list, "/tmp", p->fs.tmp_bytes, p->fs.tmp_inodes, false);
	add_tmpfs(list, "/task", p->fs.task_bytes, p->fs.task_inodes, true);
	return list;
}

/* Takes profile. */
static json_t *
linux_part(const struct kn_policy *p, json_t *profile)
{
	static const char *const own[] = { "pid", "ipc", "uts", "mount", "cgroup",
		"user", "network" };
	static const char *const masked[] = { "/proc/kcore", "/proc/keys",
		"/proc/timer_list", "/proc/sched_debug", "/proc/latency_stats",
		"/proc/acpi", "/proc/scsi", "/sys/firmware" };
	static const char *const readonly[] = { "/proc/bus", "/proc/fs", "/proc/irq",
		"/proc/sys", "/proc/sysrq-trigger" };
	json_t *spaces = json_array(), *resources = json_object();

	for (size_t i = 0; i < 6 + (p->network != KN_NET_HOST); i++)
		json_array_append_new(spaces, json_pack("{s:s}", "type", own[i]));
	json_object_set_new(resources, "devices",
	    json_pack("[{s:b,s:s}]", "allow", 0, "access", "rwm"));
	if (p->task.memory)
		json_object_set_new(resources, "memory",
		    json_pack("{s:I,s:I}", "limit", (json_int_t)p->task.memory, "swap",
			(json_int_t)p->task.memory));
	if (p->task.pids)
		json_object_set_new(resources, "pids",
		    json_pack("{s:I}", "limit", (json_int_t)p->task.pids));
	if (p->task_cpus)
		json_object_set_new(resources, "cpu",
		    json_pack("{s:I,s:I}", "quota", (json_int_t)p->task_cpus * 100,
			"period", (json_int_t)100000));
	return json_pack("{s:o,s:[{s:i,s:i,s:i}],s:[{s:i,s:i,s:i}],s:o,s:o,s:o,s:o}",
	    "namespaces", spaces, "uidMappings", "containerID", 0, "hostID",
	    MAPPED_FROM, "size", MAPPED_N, "gidMappings", "containerID", 0, "hostID",
	    MAPPED_FROM, "size", MAPPED_N, "resources", resources, "maskedPaths",
	    strings(masked, sizeof masked / sizeof *masked), "readonlyPaths",
	    strings(readonly, sizeof readonly / sizeof *readonly), "seccomp", profile);
}

static int
lacks(struct kn_exporting *x)
{
	const struct kn_policy *p = x->p;

	if (p->landlock != KN_LANDLOCK_OFF &&
	    kn_export_lacks(x, KN_LAYER_LANDLOCK, "Landlock", "nothing") < 0)
		return -1;
	if (p->task.cpu_ms &&
	    kn_export_lacks(x, KN_LAYER_CG_CPU, "limit of all processes' CPU time",
		"a limit of each process (RLIMIT_CPU)") < 0)
		return -1;
	if (kn_export_note(x,
		"uid: mapped to %d and up for every bundle; give each a range of its "
		"own in uidMappings and gidMappings",
		MAPPED_FROM) < 0 ||
	    kn_export_note(x, "/filesystem/root: \"rootfs\" beside config.json is an "
			      "empty directory; "
			      "made-up files of /etc are missing") < 0)
		return -1;
	if (p->env.inherit_n &&
	    kn_export_note(x, "/environment/inherit: a bundle has no caller") < 0)
		return -1;
	return kn_export_say_times(x, false);
}

int
kn_export_oci(struct kn_exporting *x)
{
	const struct kn_policy *p = x->p;
	json_t *profile, *o;
	char *text;

	if (lacks(x) < 0 || !(profile = kn_export_profile(p, x->e)))
		return -1;
	o = json_pack("{s:s,s:o,s:{s:s,s:b},s:s,s:o,s:o}", "ociVersion", "1.0.2",
	    "process", process(p), "root", "path", "rootfs", "readonly", 1, "hostname",
	    p->identity.hostname, "mounts", mounts(p), "linux", linux_part(p, profile));
	text = o ? json_dumps(o, JSON_INDENT(2)) : NULL;
	if (text)
		fprintf(x->f, "%s\n", text);
	json_decref(o);
	free(text);
	return text ? 0 : kn_err_set(x->e, KN_EK_HOST, "export: out of memory");
}
