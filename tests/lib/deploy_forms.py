"""deploy_forms.py KNIT-SANDBOX: the files of deploy/ have the form that their readers take,
ask for no privilege, and say what `policy export --around` says.

Prints TAP lines without numbers ("ok - ...", "not ok - ..."), for tests/integ/53-deploy.t.
The shapes below are written by hand from the API references: a key that is not there is
one that the reader would refuse, or worse, pass over.
"""
import json
import re
import shlex
import subprocess
import sys

import yaml

KS = sys.argv[1]
INT, STR, BOOL = int, str, bool
MAP = {str: str}


def opt(**keys):
    return keys


PROBE = opt(exec={"command": [STR]}, periodSeconds=INT, timeoutSeconds=INT, failureThreshold=INT)
CONTAINER = opt(
    name=STR, image=STR, imagePullPolicy=("IfNotPresent",), command=[STR], args=[STR], restartPolicy=("Always",),
    startupProbe=PROBE, readinessProbe=PROBE, livenessProbe=PROBE, volumeMounts=[opt(name=STR, mountPath=STR, readOnly=BOOL)],
    resources={"requests": {"memory": STR, "cpu": (INT, STR)}, "limits": {"memory": STR}},
    securityContext=opt(procMount=("Unmasked",), allowPrivilegeEscalation=(False,), readOnlyRootFilesystem=(True,),
                        capabilities={"drop": (["ALL"],)}))
POD = opt(
    hostUsers=(False,), automountServiceAccountToken=(False,), enableServiceLinks=(False,),
    terminationGracePeriodSeconds=INT, runtimeClassName=STR, containers=[CONTAINER], initContainers=[CONTAINER],
    securityContext=opt(runAsNonRoot=(True,), runAsUser=(1000,), runAsGroup=(1000,), fsGroup=(1000,),
                        seccompProfile={"type": ("Localhost",), "localhostProfile": STR},
                        appArmorProfile={"type": ("Unconfined",)}),
    volumes=[opt(name=STR, emptyDir={"medium": ("Memory",), "sizeLimit": STR}, configMap={"name": STR})])
META = opt(name=STR, namespace=STR, labels=MAP)
KINDS = {
    "Pod": opt(apiVersion=("v1",), kind=STR, metadata=META, spec=POD),
    "Namespace": opt(apiVersion=("v1",), kind=STR, metadata=META),
    "Deployment": opt(apiVersion=("apps/v1",), kind=STR, metadata=META, spec=opt(
        replicas=INT, selector={"matchLabels": MAP}, template={"metadata": META, "spec": POD})),
    "RuntimeClass": opt(apiVersion=("node.k8s.io/v1",), kind=STR, metadata=META, handler=STR,
                        scheduling={"nodeSelector": MAP}),
    "Kustomization": opt(apiVersion=("kustomize.config.k8s.io/v1beta1",), kind=STR, namespace=STR, resources=[STR],
                         patches=[{"target": MAP, "patch": STR}]),
}
COMPOSE = opt(name=STR, volumes={str: {"name": STR}}, services={str: opt(
    image=STR, build={"context": STR, "dockerfile": STR}, command=[STR], restart=STR, user=STR, read_only=(True,),
    tmpfs=[STR], cap_drop=(["ALL"],), security_opt=[STR], cgroup=("private",), ipc=("private",), network_mode=("none",), mem_limit=STR,
    memswap_limit=STR, pids_limit=INT, ulimits={str: INT}, stop_grace_period=STR, volumes=[STR])})
QUADLET = {
    "Unit": {"Description"}, "Install": {"WantedBy"},
    "Service": {"ExecStartPre", "TimeoutStartSec", "TimeoutStopSec", "Restart"},
    "Container": set("ContainerName Image Exec Notify User Group UserNS ReadOnly Tmpfs DropCapability NoNewPrivileges "
                     "SeccompProfile SecurityLabelDisable Unmask Network PidsLimit Ulimit Volume HealthCmd PodmanArgs".split())}


def wrong(v, shape, at=""):
    """The first thing that has another form, or None."""
    if isinstance(shape, tuple):
        fits = any(type(v) is s if isinstance(s, type) else v == s for s in shape)
        return None if fits else "%s: %r" % (at, v)
    if isinstance(shape, type):
        return None if type(v) is shape else "%s: %r" % (at, v)
    if isinstance(shape, list):
        if not isinstance(v, list):
            return "%s: no list" % at
        return next(filter(None, (wrong(x, shape[0], "%s[%d]" % (at, i)) for i, x in enumerate(v))), None)
    if not isinstance(v, dict):
        return "%s: no mapping" % at
    for k, x in v.items():
        s = shape.get(str) if str in shape else shape.get(k)
        if s is None:
            return "%s/%s: not known" % (at, k)
        if wrong(x, s, "%s/%s" % (at, k)):
            return wrong(x, s, "%s/%s" % (at, k))
    return None


def told(name, why):
    print("%sok - %s" % ("not " if why else "", name))
    for line in str(why).splitlines()[:12] if why else []:
        print("# " + line)


def differs(got, want):
    return None if got == want else "%s has %s\nand not %s" % ("it", got, want)


def export(form, *more):
    return subprocess.run([KS, "policy", "export", "--format", form, "--around", *more], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, check=True, text=True).stdout


def read(path):
    return open("deploy/" + path).read()


# ---- docker, as a set of options ----


def options(line):
    """Of a command line `docker run ...`: its options (without where files lie), and the command."""
    words, found = shlex.split(line.replace("\\\n", " ")), []
    words = words[words.index("run") + 1:]
    while words[0].startswith("-"):
        o = words.pop(0)
        if o not in ("--detach", "--read-only", "--rm", "--interactive"):
            o += " " + words.pop(0)
        found.append(re.sub(r"seccomp=.*", "seccomp=PROFILE", o))
    return sorted(found), words[1:]


def compose_options(s):
    o = ["--detach", "--name knit", "--read-only", "--user " + s["user"], "--cgroupns " + s["cgroup"], "--ipc " + s["ipc"],
         "--network " + s["network_mode"], "--memory " + s["mem_limit"], "--memory-swap " + s["memswap_limit"],
         "--pids-limit %d" % s["pids_limit"], "--stop-timeout " + s["stop_grace_period"].rstrip("s")]
    o += ["--cap-drop " + c for c in s["cap_drop"]] + ["--ulimit %s=%d" % u for u in s["ulimits"].items()]
    o += ["--security-opt " + re.sub(r"seccomp=.*", "seccomp=PROFILE", x) for x in s["security_opt"]]
    o += ["--mount type=volume,source=%s,target=%s" % tuple(v.split(":")) for v in s["volumes"]]
    o += ["--tmpfs " + v for v in s["tmpfs"]]
    return sorted(o)


def docker(want, argv):
    lines = re.findall(r"^docker run --detach(?:.*\\\n)*.*", read("README.md"), re.M)
    told("README: docker run as exported", differs([options(x)[0] for x in lines], [want]))
    doc = yaml.safe_load(read("compose.yaml"))
    told("compose.yaml: its form", wrong(doc, COMPOSE))
    s = doc["services"]["knit"]
    told("compose.yaml: the options as exported", differs(compose_options(s), want))
    told("compose.yaml: the command as exported", differs(s["command"], argv))
    # Podman has another word for what is uncovered, and SELinux.
    lines = re.findall(r"^podman run --detach(?:.*\\\n)*.*", read("README.md"), re.M)
    same = [o for o in want if "systempaths" not in o and "nofile" not in o]
    more = ["--security-opt label=disable", "--security-opt unmask=ALL"]
    told("README: podman run as exported", differs([options(x)[0] for x in lines], [sorted(same + more)]))


def containerfile(argv):
    text = read("Containerfile")
    words = [x for x in text.splitlines() if re.match(r"[A-Z]+ ", x)]
    cmd = json.loads([x for x in words if x.startswith("CMD ")][0][4:])
    told("Containerfile: the command as exported", differs(cmd, argv))
    told("Containerfile: two stages of a base that is an argument",
         differs([x for x in words if x.startswith(("FROM ", "ARG BASE"))],
                 ["ARG BASE=docker.io/library/debian:bookworm-slim", "FROM ${BASE} AS build", "FROM ${BASE}"]))
    told("Containerfile: ends as a user by number, no ADD, nothing left of apt",
         not re.search(r"\nUSER 1000:1000\n", text) or "\nADD " in text or
         text.split("FROM ${BASE}\n")[1].count("apt-get -q update") != text.split("FROM ${BASE}\n")[1].count("rm -rf /var/lib/apt"))
    entry = json.loads([x for x in words if x.startswith("ENTRYPOINT ")][0][11:])
    copied = [x.split()[-1] for x in words if x.startswith("COPY --from=build")]
    told("Containerfile: runs what it copies", differs(entry, copied))


def quadlet(want, argv):
    section, keys = None, {}
    for line in read("quadlet/knit-sandbox.container").splitlines():
        if line.startswith("["):
            section = line.strip("[]")
        elif line and not line.startswith("#"):
            keys.setdefault(section, []).append(tuple(line.split("=", 1)))
    left = [(s, k) for s in keys for k, _ in keys[s] if k not in QUADLET.get(s, ())]
    told("quadlet: keys that podman knows", left)
    c = keys["Container"]
    got = dict(c)
    o = ["--user %s:%s" % (got["User"], got["Group"]), "--network " + got["Network"], "--pids-limit " + got["PidsLimit"],
         "--cap-drop " + got["DropCapability"].upper(), "--name " + got["ContainerName"]]
    o += ["--ulimit " + v for k, v in c if k == "Ulimit"] + ["--tmpfs " + got["Tmpfs"]]
    o += [a.replace("=", " ", 1) for a in got["PodmanArgs"].split()]
    told("quadlet: the options as exported", sorted(set(o) - set(want)))
    # What is missing here has a key of another form: seccomp=, systempaths=, the volume.
    told("quadlet: nothing of the export is missing",
         [x for x in sorted(set(want) - set(o)) if not re.match(
             r"--detach|--read-only|--security-opt (seccomp=|systempaths=|no-new-privileges)|--mount ", x)])
    told("quadlet: SELinux refuses no mount", differs(got.get("SecurityLabelDisable"), "true"))
    told("quadlet: the command as exported", differs(got["Exec"].split(), argv))


# ---- the rest ----


def kubernetes():
    docs = {}
    for f in "pool/namespace pool/deployment pool/kustomization writable-cgroups/kustomization writable-cgroups/runtimeclass".split():
        doc = yaml.safe_load(read("kubernetes/%s.yaml" % f))
        docs[f] = doc
        told("%s.yaml: its form" % f, wrong(doc, KINDS[doc["kind"]]))
    pod = docs["pool/deployment"]["spec"]["template"]["spec"]
    want = yaml.safe_load(export("k8s", "container"))
    told("the exported pod: its form", wrong(want, KINDS["Pod"]))
    want = want["spec"]
    got = {k: v for k, v in pod.items() if k not in ("containers", "initContainers")}
    told("deployment: the pod as exported", differs(got, {k: v for k, v in want.items() if k != "containers"}))
    side = dict(pod["initContainers"][0])
    told("deployment: a sidecar", differs(side.pop("restartPolicy", None), "Always"))
    c = want["containers"][0]
    told("deployment: the container as exported", differs(side, dict(c, image=side["image"])))
    told("deployment: selects itself", differs(docs["pool/deployment"]["spec"]["selector"]["matchLabels"],
                                               docs["pool/deployment"]["spec"]["template"]["metadata"]["labels"]))
    rc = docs["writable-cgroups/runtimeclass"]
    toml = read("kubernetes/writable-cgroups/containerd.toml")
    told("containerd.toml: the handler of the RuntimeClass, writable",
         not re.search(r"\.runtimes\.%s\]\n(  .*\n)*  cgroup_writable = true\n" % rc["handler"], toml))
    told("the patch names the RuntimeClass", rc["metadata"]["name"] not in docs["writable-cgroups/kustomization"]["patches"][0]["patch"])


def main():
    want, argv = options(export("docker", "container"))
    docker(want, argv)
    containerfile(argv)
    quadlet(want, argv)
    kubernetes()


main()
