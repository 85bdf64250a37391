/* sandbox/export_docker.c: the command line of `docker run` (Podman takes it as well),
 * and a Pod for Kubernetes. Both show an image in place of the machine's /usr.
 */
#include <inttypes.h>
#include <string.h>

#include "sandbox/export_int.h"

/* What both lack. */
static int
containers_lack(struct kn_exporting *x)
{
	const struct kn_policy *p = x->p;

	if (kn_export_lacks(x, KN_LAYER_UID, "user of its own for each task",
		"user 1000 of the machine for all") < 0)
		return -1;
	if (p->landlock != KN_LANDLOCK_OFF &&
	    kn_export_lacks(x, KN_LAYER_LANDLOCK, "Landlock", "nothing") < 0)
		return -1;
	if (p->fs.root == KN_ROOT_SYSTEM)
		return kn_export_note(x,
		    "/filesystem/root: what a task sees of /usr and /etc is the "
		    "image's");
	return 0;
}

/* "K" of "K=V". */
static int
key_n(const char *pair)
{
	return (int)strcspn(pair, "=");
}

/* ---- docker ---- */

static void
ulimits(struct kn_exporting *x)
{
	const struct kn_task_limits *t = &x->p->task;
	const struct {
		const char *name;
		uint64_t value;
	} rows[] = { { "nofile", t->nofile }, { "fsize", t->fsize },
		{ "stack", t->stack }, { "cpu", (t->cpu_ms + 999) / 1000 } };

	fprintf(x->f, " \\\n  --ulimit core=%" PRIu64, t->core);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (rows[i].value)
			fprintf(
			    x->f, " --ulimit %s=%" PRIu64, rows[i].name, rows[i].value);
}

/* Its --mount is a list with commas. */
static int
check_volumes(struct kn_exporting *x)
{
	for (size_t i = 0; i < x->p->fs.mount_n; i++) {
		const struct kn_mount *m = &x->p->fs.mounts[i];

		if (m->user && m->type == KN_MOUNT_BIND &&
		    (strpbrk(m->source, ",\"") || strpbrk(m->at, ",\"")))
			return kn_err_set(x->e, KN_EK_CONFIG,
			    "docker: a path with a comma or a quote: %.160s",
			    m->source);
	}
	return 0;
}

static void
volumes(struct kn_exporting *x)
{
	for (size_t i = 0; i < x->p->fs.mount_n; i++) {
		const struct kn_mount *m = &x->p->fs.mounts[i];

		if (!m->user || m->type != KN_MOUNT_BIND)
			continue;
		fputs(" \\\n  --mount type=bind,source=", x->f);
		kn_export_sh(x->f, m->source);
		fputs(",target=", x->f);
		kn_export_sh(x->f, m->at);
		if (!m->writable)
			fputs(",readonly", x->f);
	}
}

int
kn_export_docker(struct kn_exporting *x)
{
	const struct kn_policy *p = x->p;
	FILE *f = x->f;

	if (containers_lack(x) < 0 || check_volumes(x) < 0)
		return -1;
	if (p->task.cpu_ms &&
	    kn_export_lacks(x, KN_LAYER_CG_CPU, "limit of all processes' CPU time",
		"a limit of each process (--ulimit cpu)") < 0)
		return -1;
	if (kn_export_note(x,
		"seccomp: the profile is what --format seccomp prints; put it in "
		"%s.seccomp.json",
		x->name) < 0 ||
	    kn_export_say_times(x, false) < 0)
		return -1;
	fprintf(f, "docker run --rm --interactive --read-only --network %s",
	    p->network == KN_NET_HOST ? "host" : "none");
	fputs(" \\\n  --cap-drop ALL --security-opt no-new-privileges", f);
	fputs(" --security-opt seccomp=", f);
	kn_export_sh(f, x->name);
	fputs(".seccomp.json", f);
	fprintf(f, " \\\n  --user %d:%d --ipc private --hostname ", KN_EXPORT_ID,
	    KN_EXPORT_ID);
	kn_export_sh(f, p->identity.hostname);
	if (p->task.pids)
		fprintf(f, " \\\n  --pids-limit %" PRIu64, p->task.pids);
	if (p->task.memory)
		fprintf(f, " \\\n  --memory %" PRIu64 " --memory-swap %" PRIu64,
		    p->task.memory, p->task.memory);
	if (p->task_cpus)
		fprintf(f, " \\\n  --cpus %u.%03u", p->task_cpus / 1000,
		    p->task_cpus % 1000);
	ulimits(x);
	fprintf(f, " \\\n  --shm-size %" PRIu64, p->fs.shm_bytes);
	fprintf(f,
	    " \\\n  --tmpfs /tmp:rw,exec,nosuid,nodev,size=%" PRIu64
	    ",nr_inodes=%" PRIu64 ",mode=1777",
	    p->fs.tmp_bytes, p->fs.tmp_inodes);
	fprintf(f,
	    " \\\n  --tmpfs /task:rw,exec,nosuid,nodev,size=%" PRIu64
	    ",nr_inodes=%" PRIu64 ",mode=0700,uid=%d,gid=%d --workdir /task",
	    p->fs.task_bytes, p->fs.task_inodes, KN_EXPORT_ID, KN_EXPORT_ID);
	volumes(x);
	for (size_t i = 0; i < p->env.set_n; i++) {
		fputs(" \\\n  --env ", f);
		kn_export_sh(f, p->env.set[i]);
	}
	for (size_t i = 0; i < p->env.inherit_n; i++) {
		fputs(" \\\n  --env ", f);
		kn_export_sh(f, p->env.inherit[i]);
	}
	fputs(" \\\n  IMAGE COMMAND...\n", f);
	return 0;
}

/* ---- Kubernetes ---- */

/* A YAML scalar is a JSON string. */
static void
yaml(FILE *f, const char *s, size_t n)
{
	json_t *v = json_stringn(s, n);
	char *text = v ? json_dumps(v, JSON_ENCODE_ANY | JSON_ENSURE_ASCII) : NULL;

	fputs(text ? text : "\"\"", f);
	free(text);
	json_decref(v);
}

/* A Pod has no limits of a process: the shell sets them, and then is the command. */
static void
pod_command(struct kn_exporting *x)
{
	const struct kn_task_limits *t = &x->p->task;

	fprintf(
	    x->f, "    command: [\"sh\", \"-c\", \"ulimit -c %" PRIu64, t->core / 512);
	if (t->nofile)
		fprintf(x->f, " && ulimit -n %" PRIu64, t->nofile);
	if (t->fsize)
		fprintf(x->f, " && ulimit -f %" PRIu64, t->fsize / 512);
	if (t->stack)
		fprintf(x->f, " && ulimit -s %" PRIu64, t->stack / 1024);
	if (t->cpu_ms)
		fprintf(x->f, " && ulimit -t %" PRIu64, (t->cpu_ms + 999) / 1000);
	fputs(" && exec \\\"$@\\\"\", \"sh\", COMMAND]\n", x->f);
}

static void
pod_volumes(struct kn_exporting *x)
{
	const struct kn_policy *p = x->p;
	const struct {
		const char *name, *at;
		uint64_t bytes;
	} own[] = { { "tmp", "/tmp", p->fs.tmp_bytes },
		{ "shm", "/dev/shm", p->fs.shm_bytes },
		{ "task", "/task", p->fs.task_bytes } };

	fputs("    volumeMounts:\n", x->f);
	for (size_t i = 0; i < 3; i++)
		fprintf(
		    x->f, "    - {name: %s, mountPath: %s}\n", own[i].name, own[i].at);
	for (size_t i = 0; i < p->fs.mount_n; i++) {
		const struct kn_mount *m = &p->fs.mounts[i];

		if (!m->user || m->type != KN_MOUNT_BIND)
			continue;
		fprintf(x->f, "    - {name: bind-%zu, mountPath: ", i);
		yaml(x->f, m->at, strlen(m->at));
		fprintf(x->f, ", readOnly: %s}\n", m->writable ? "false" : "true");
	}
	fputs("  volumes:\n", x->f);
	for (size_t i = 0; i < 3; i++)
		fprintf(x->f,
		    "  - {name: %s, emptyDir: {medium: Memory, sizeLimit: %" PRIu64
		    "}}\n",
		    own[i].name, own[i].bytes);
	for (size_t i = 0; i < p->fs.mount_n; i++) {
		const struct kn_mount *m = &p->fs.mounts[i];

		if (!m->user || m->type != KN_MOUNT_BIND)
			continue;
		fprintf(x->f, "  - {name: bind-%zu, hostPath: {path: ", i);
		yaml(x->f, m->source, strlen(m->source));
		fputs("}}\n", x->f);
	}
}

static int
pod_lacks(struct kn_exporting *x)
{
	const struct kn_policy *p = x->p;

	if (containers_lack(x) < 0)
		return -1;
	if (p->task.pids &&
	    kn_export_lacks(x, KN_LAYER_CG_PIDS, "limit of processes in a Pod",
		"the kubelet's podPidsLimit, if it has one") < 0)
		return -1;
	if (p->task.cpu_ms &&
	    kn_export_lacks(x, KN_LAYER_CG_CPU, "limit of all processes' CPU time",
		"a limit of each process (ulimit -t)") < 0)
		return -1;
	if (p->network == KN_NET_NONE &&
	    kn_export_note(x,
		"/network/mode: a Pod has an interface; that no socket but a local one "
		"can be made is the profile's doing") < 0)
		return -1;
	if (kn_export_note(x,
		"rlimits: set by sh in the container, which the image must have") < 0 ||
	    kn_export_note(x,
		"seccomp: the profile is what --format seccomp prints; put it on each "
		"node as seccomp/knit/%s.json below the kubelet's folder",
		x->name) < 0)
		return -1;
	return kn_export_say_times(x, true);
}

int
kn_export_k8s(struct kn_exporting *x)
{
	const struct kn_policy *p = x->p;
	FILE *f = x->f;

	if (pod_lacks(x) < 0)
		return -1;
	fputs("apiVersion: v1\nkind: Pod\nmetadata: {name: ", f);
	yaml(f, x->name, strlen(x->name));
	fputs(
	    "}\nspec:\n  restartPolicy: Never\n  automountServiceAccountToken: false\n"
	    "  enableServiceLinks: false\n",
	    f);
	fprintf(f, "  hostNetwork: %s\n  hostname: ",
	    p->network == KN_NET_HOST ? "true" : "false");
	yaml(f, p->identity.hostname, strlen(p->identity.hostname));
	fputc('\n', f);
	if (p->timeouts.hard_ms)
		fprintf(f, "  activeDeadlineSeconds: %u\n",
		    (p->timeouts.hard_ms + 999) / 1000);
	fprintf(f,
	    "  securityContext:\n    runAsNonRoot: true\n    runAsUser: %d\n"
	    "    runAsGroup: %d\n    fsGroup: %d\n    seccompProfile: {type: "
	    "Localhost, "
	    "localhostProfile: ",
	    KN_EXPORT_ID, KN_EXPORT_ID, KN_EXPORT_ID);
	char path[320];
	int n = snprintf(path, sizeof path, "knit/%.300s.json", x->name);
	yaml(f, path, (size_t)n);
	fputs("}\n  containers:\n  - name: task\n    image: IMAGE\n", f);
	pod_command(x);
	fputs("    workingDir: /task\n    securityContext:\n"
	      "      allowPrivilegeEscalation: false\n"
	      "      readOnlyRootFilesystem: true\n"
	      "      capabilities: {drop: [ALL]}\n",
	    f);
	if (p->task.memory || p->task_cpus)
		fputs("    resources: {limits: {", f);
	if (p->task.memory)
		fprintf(f, "memory: %" PRIu64 "%s", p->task.memory,
		    p->task_cpus ? ", " : "");
	if (p->task_cpus)
		fprintf(f, "cpu: %um", p->task_cpus);
	if (p->task.memory || p->task_cpus)
		fputs("}}\n", f);
	if (p->env.set_n)
		fputs("    env:\n", f);
	for (size_t i = 0; i < p->env.set_n; i++) {
		int k = key_n(p->env.set[i]);

		fputs("    - {name: ", f);
		yaml(f, p->env.set[i], (size_t)k);
		fputs(", value: ", f);
		yaml(f, p->env.set[i] + k + 1, strlen(p->env.set[i] + k + 1));
		fputs("}\n", f);
	}
	pod_volumes(x);
	return 0;
}
