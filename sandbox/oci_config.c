/* sandbox/oci_config.c: config.json of a worker's bundle.
 *
 * Why each part is as it is:
 *   user 0, mapped to whoever runs the runtime: all that an unprivileged runtime can
 *     have; the stub makes a user namespace of its own below, in which it is who the
 *     policy says, and by which all mounts made here are locked for it
 *   CAP_SETFCAP   the kernel asks for it where a namespace maps the 0 above it; it is
 *     a power over files of this uid only, and gone with the first filter
 *   read-only root and /dev: what one task leaves there the next would see
 *   rro, rnosuid, rnodev: of binds with all that is mounted below them. crun 1.8
 *     fails at them where the top is a file or may not be read: there they are the
 *     top's, and the stub goes through the rest, as it does everywhere
 *   no masked paths: of this /proc only the stub sees anything; cells have their own,
 *     which the kernel mounts only where another is whole
 *   no resources, no cgroup: the stub is told which to join, without the runtime's
 *     threads and memory
 *   no seccomp: the policy's filter is loaded by the stub, before anything untrusted
 */
#include "sandbox/oci_config.h"

#include <jansson.h>
#include <stdlib.h>

#include "ipc/control.h"
#include "ipc/err.h"
#include "sandbox/policy.h"

_Static_assert(KN_STUB_EXE_FD == 4, "the path below");
static const char stub_path[] = "/proc/self/fd/4";

static json_t *
process(const struct kn_oci_req *r)
{
	static const char *const sets[] = { "bounding", "effective", "permitted" };
	json_t *caps = json_object(), *limits = json_array();
	json_t *args = json_pack("[s,s]", stub_path, "nest");

	json_array_append_new(args, json_sprintf("%u", r->policy->identity.uid));
	json_array_append_new(args, json_sprintf("%u", r->policy->identity.gid));
	json_array_append_new(args, json_string("0")); /* of whom, see user below */
	json_array_append_new(args, json_string("0"));
	json_array_append_new(args, json_string(stub_path));
	for (size_t i = 0; i < sizeof sets / sizeof *sets; i++)
		json_object_set_new(caps, sets[i], json_pack("[s]", "CAP_SETFCAP"));
	/* A runtime raises its own, which would be inherited. */
	if (r->nofile.rlim_max <= INT64_MAX)
		json_array_append_new(
		    limits, json_pack("{s:s,s:I,s:I}", "type", "RLIMIT_NOFILE", "hard",
				(json_int_t)r->nofile.rlim_max, "soft",
				(json_int_t)r->nofile.rlim_cur));
	return json_pack("{s:b,s:{s:i,s:i},s:o,s:[],s:s,s:o,s:o,s:b}", "terminal", 0,
	    "user", "uid", 0, "gid", 0, "args", args, "env", "cwd", "/", "capabilities",
	    caps, "rlimits", limits, "noNewPrivileges", 1);
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
add_mounts(json_t *list, const struct kn_oci_req *r, bool user)
{
	for (size_t i = 0; i < r->policy->fs.mount_n; i++) {
		const struct kn_mount *m = &r->policy->fs.mounts[i];
		bool writable = m->type == KN_MOUNT_BIND && m->writable;
		json_t *options;

		if (m->user != user || r->source[i] == NULL)
			continue;
		options = r->flat ? json_pack("[s,s,s]", "rbind", "nosuid", "nodev")
				  : json_pack("[s,s,s]", "rbind", "rnosuid", "rnodev");
		if (!writable)
			json_array_append_new(
			    options, json_string(r->flat ? "ro" : "rro"));
		mount(list, "bind", r->source[i], m->at, options);
	}
}

static json_t *
mounts(const struct kn_oci_req *r)
{
	json_t *list = json_array();

	mount(list, "proc", "proc", "/proc",
	    json_pack("[s,s,s]", "nosuid", "noexec", "nodev"));
	mount(list, "tmpfs", "tmpfs", "/dev",
	    json_pack(
		"[s,s,s,s,s]", "nosuid", "strictatime", "mode=755", "size=64k", "ro"));
	mount(list, "devpts", "devpts", "/dev/pts",
	    json_pack("[s,s,s,s,s]", "nosuid", "noexec", "newinstance", "ptmxmode=0666",
		"mode=0620"));
	/* A place for each cell's own. */
	mount(list, "tmpfs", "shm", "/dev/shm",
	    json_pack("[s,s,s,s]", "nosuid", "nodev", "mode=0755", "size=64k"));
	add_mounts(list, r, false);
	add_mounts(list, r, true);
	return list;
}

static json_t *
linux_part(const struct kn_oci_req *r)
{
	static const char *const own[] = { "user", "pid", "ipc", "uts", "mount",
		"cgroup", "network" };
	json_t *spaces = json_array();
	size_t n = sizeof own / sizeof *own - (r->policy->network == KN_NET_HOST);

	for (size_t i = 0; i < n; i++)
		json_array_append_new(spaces, json_pack("{s:s}", "type", own[i]));
	return json_pack("{s:o,s:[{s:i,s:I,s:i}],s:[{s:i,s:I,s:i}]}", "namespaces",
	    spaces, "uidMappings", "containerID", 0, "hostID", (json_int_t)r->uid,
	    "size", 1, "gidMappings", "containerID", 0, "hostID", (json_int_t)r->gid,
	    "size", 1);
}

char *
kn_oci_config(const struct kn_oci_req *r, struct kn_err *e)
{
	const char *host = r->policy->identity.hostname;
	json_t *o = json_pack("{s:s,s:o,s:{s:s,s:b},s:s,s:o,s:o,s:{s:s,s:s}}",
	    "ociVersion", "1.0.2", "process", process(r), "root", "path", r->rootfs,
	    "readonly", 1, "hostname", host != NULL ? host : "sandbox", "mounts",
	    mounts(r), "linux", linux_part(r), "annotations", "knit-sandbox.pool",
	    r->pool, "knit-sandbox.worker", r->worker);
	char *text = o != NULL ? json_dumps(o, JSON_INDENT(1)) : NULL;

	json_decref(o);
	if (text == NULL)
		kn_err_set(
		    e, KN_EK_HOST, "config.json: out of memory, or text not in UTF-8");
	return text;
}
