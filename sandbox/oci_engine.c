/* sandbox/oci_engine.c: the command lines of podman and docker.
 *
 * Why each option is there:
 *   --pull never           nothing is fetched by a task's start
 *   --read-only            what one task leaves in the root the next would see
 *   --cap-drop all         the stub needs none, but where it is uid 0 inside,
 *                          CAP_SETFCAP: for the user namespace that it makes
 *                          (oci_config.c)
 *   seccomp, unmask, systempaths, apparmor unconfined, label disable
 *                          of the container, in which nothing but the stub ever runs
 *                          as it was started: it makes namespaces and mounts of its
 *                          own for tasks, whose filter is the policy's. Nothing of
 *                          this is --privileged
 *   --no-healthcheck       an image's own command would be run beside the stub, with
 *                          the stub's uid and without its walls
 *   --userns host          the ids are those that were asked for, whatever the engine's
 *                          settings are
 *   --image-volume ignore  podman: a volume of an image's is a copy that would stay
 *   --cgroups disabled     podman: the stub joins those of ours
 *   --no-hosts, --passwd   podman: /etc has what the policy says
 *   --ulimit nofile, nproc as the caller had them
 */
#include "sandbox/oci_engine.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ipc/control.h"
#include "ipc/err.h"
#include "sandbox/bwrap.h"

extern char **environ;

static const char *const podman_only[] = { "--preserve-fds=2", "--cgroups=disabled",
	"--read-only-tmpfs=false", "--security-opt=unmask=ALL",
	"--security-opt=label=disable", "--no-hosts", "--passwd=false",
	"--systemd=false", "--image-volume=ignore" };
static const char *const docker_only[] = { "--security-opt=systempaths=unconfined" };
static const char *const both[] = { "--rm", "--pull=never", "--read-only",
	"--security-opt=seccomp=unconfined", "--security-opt=no-new-privileges",
	"--cap-drop=all", "--log-driver=none", "--workdir=/", "--no-healthcheck",
	"--userns=host" };

static int put(struct kn_argv *a, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
static int
put(struct kn_argv *a, const char *fmt, ...)
{
	char *text;
	va_list ap;
	int rc;

	va_start(ap, fmt);
	rc = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (rc < 0)
		return -1;
	rc = kn_argv_push(a, text);
	free(text);
	return rc;
}

/* Without CAP_SYS_RESOURCE the engine's own defaults may be above what may be set. */
static int
put_limit(struct kn_argv *a, const char *name, const struct rlimit *l)
{
	if (l->rlim_max > INT32_MAX)
		return 0;
	return put(a, "--ulimit=%s=%" PRIu64 ":%" PRIu64, name, (uint64_t)l->rlim_cur,
	    (uint64_t)l->rlim_max);
}

static int
put_list(struct kn_argv *a, const char *const *v, size_t n)
{
	int bad = 0;

	for (size_t i = 0; i < n; i++)
		bad |= kn_argv_push(a, v[i]);
	return bad;
}

/* A comma would end the path, and an end of a line all of it, "readonly" too. */
static int
put_bind(struct kn_argv *a, const struct kn_engine_req *r, const char *from,
    const char *at, bool writable, struct kn_err *e)
{
	bool podman = r->runtime == KN_RUNTIME_PODMAN;

	if (strpbrk(from, ",\"\r\n") != NULL || strpbrk(at, ",\"\r\n") != NULL)
		return kn_err_set(e, KN_EK_CONFIG,
		    "%s: a path with a comma, a quote or an end of line cannot be told "
		    "to %s",
		    from, kn_runtime_name(r->runtime));
	/* (docker has no words for the others; the stub sees to them) */
	return put(a, "--mount=type=bind,src=%s,dst=%s%s%s", from, at,
	    writable ? "" : ",readonly",
	    podman ? ",nosuid,nodev,bind-propagation=rprivate" : "");
}

static int
put_mounts(struct kn_argv *a, const struct kn_engine_req *r, struct kn_err *e)
{
	/* An engine makes the points of mounts in its layer of an image. */
	static const char *const own[] = { "/tmp", "/task" };

	for (size_t i = 0; r->policy->image != NULL && i < sizeof own / sizeof *own;
	     i++)
		if (put(a, "--tmpfs=%s:size=64k,mode=0755", own[i]) < 0)
			return -1;
	for (int user = 0; user < 2; user++)
		for (size_t i = 0; i < r->policy->fs.mount_n; i++) {
			const struct kn_mount *m = &r->policy->fs.mounts[i];
			bool writable = m->type == KN_MOUNT_BIND && m->writable;

			if (m->user != user || r->source[i] == NULL)
				continue;
			if (put_bind(a, r, r->source[i], m->at, writable, e) < 0)
				return -1;
		}
	if (r->runtime != KN_RUNTIME_DOCKER)
		return 0;
	return put(a, "--mount=type=bind,src=%s/knit,dst=" KN_STUB_BRIDGE "%s,readonly",
	    r->dir, r->secret);
}

static int
put_all(struct kn_argv *a, const struct kn_engine_req *r, struct kn_err *e)
{
	bool podman = r->runtime == KN_RUNTIME_PODMAN;
	const char *image = r->image ? r->image : r->policy->image;
	char stub[64] = "/proc/self/fd/4";
	const uint32_t uid = r->own_userns ? 0 : r->uid;
	const uint32_t gid = r->own_userns ? 0 : r->gid;
	int bad = 0;

	if (!podman)
		snprintf(stub, sizeof stub, KN_STUB_BRIDGE "%s/stub", r->secret);
	bad |= put(a, "%s", r->program);
	bad |= put(a, "run");
	bad |= put(a, "--name=%s", r->id);
	bad |= put(a, "--label=knit-sandbox.pool=%s", r->pool);
	bad |= put(a, "--label=knit-sandbox.worker=%s", r->worker);
	bad |= put_list(a, both, sizeof both / sizeof *both);
	if (podman)
		bad |=
		    put_list(a, podman_only, sizeof podman_only / sizeof *podman_only);
	else
		bad |=
		    put_list(a, docker_only, sizeof docker_only / sizeof *docker_only);
	/* (a user's podman gives no profile, and older ones refuse to hear of any) */
	bad |= put(a, "%s",
	    r->own_userns ? "--cap-add=SETFCAP" : "--security-opt=apparmor=unconfined");
	bad |= put(a, "--user=%u:%u", uid, gid);
	bad |=
	    put(a, "--network=%s", r->policy->network == KN_NET_HOST ? "host" : "none");
	bad |= put(a, "--hostname=%s",
	    r->policy->identity.hostname ? r->policy->identity.hostname : "sandbox");
	bad |= put_limit(a, "nofile", &r->nofile);
	if (podman)
		bad |= put_limit(a, "nproc", &r->nproc);
	if (bad || put_mounts(a, r, e) < 0)
		return -1;
	bad |= put(a, "--entrypoint=%s", stub);
	if (r->policy->image == NULL)
		bad |= put(a, "--rootfs");
	bad |= put(a, "%s", image ? image : r->rootfs);
	bad |= put(a, "nest");
	bad |= put(a, "%u", r->policy->identity.uid);
	bad |= put(a, "%u", r->policy->identity.gid);
	bad |= put(a, "%u", uid);
	bad |= put(a, "%u", gid);
	bad |= put(a, "%s", stub);
	if (!podman) {
		bad |= put(a, "fetch");
		bad |= put(a, KN_STUB_BRIDGE "%s/socket", r->secret);
	}
	return bad;
}

int
kn_engine_argv(const struct kn_engine_req *r, struct kn_argv *out, struct kn_err *e)
{
	struct kn_argv a = { 0 };

	_Static_assert(
	    KN_STUB_SOCK_FD == 3 && KN_STUB_EXE_FD == 4, "the two preserved");
	/* A name that begins so would be an option of the engine's. */
	if (r->policy->image != NULL && r->policy->image[0] == '-')
		return kn_err_set(e, KN_EK_CONFIG, "/launcher/image: \"%s\" is no name",
		    r->policy->image);
	if (put_all(&a, r, e) < 0) {
		kn_argv_fini(&a);
		if (e != NULL && e->msg[0] != '\0')
			return -1;
		return kn_err_sys(e, KN_EK_HOST, "build the engine's arguments");
	}
	*out = a;
	return 0;
}

char *const *
kn_engine_env(void)
{
	static const char *const names[] = { "HOME", "PATH", "USER", "TMPDIR",
		"XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME",
		"DBUS_SESSION_BUS_ADDRESS", "CONTAINERS_CONF",
		"CONTAINERS_STORAGE_CONF", "CONTAINERS_REGISTRIES_CONF", "DOCKER_HOST",
		"DOCKER_CONFIG", "DOCKER_CONTEXT", "DOCKER_TLS_VERIFY",
		"DOCKER_CERT_PATH" };
	static char *env[sizeof names / sizeof *names + 1];
	size_t n = 0;

	for (char **v = environ; *v != NULL; v++)
		for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
			size_t len = strlen(names[i]);

			if (strncmp(*v, names[i], len) == 0 && (*v)[len] == '=' &&
			    n < sizeof names / sizeof *names)
				env[n++] = *v;
		}
	env[n] = NULL;
	return env;
}
