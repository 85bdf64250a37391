"""runc_pod.py MANIFEST NAME [--in FOLDER] [-- ARGS...]: a container of a pod's template.

The container NAME of a Deployment is started by runc under the conditions that the
manifest states: a user namespace, /proc without covers, the profile of the node, ids,
limits, volumes in memory. What is stated and not known here is an error, so that no
condition is passed over. FOLDER stands for the kubelet's seccomp folder. With ARGS they
run in place of the manifest's and in the foreground. No cluster is involved, and this is
no kubelet: see tests/lib/runc_docker.py.
"""
import os
import sys

import yaml

from runc_docker import Container, start

PASSED_OVER = {  # the cluster's business
    "pod": {"automountServiceAccountToken", "enableServiceLinks", "terminationGracePeriodSeconds", "containers",
            "initContainers", "volumes"},
    "container": {"name", "image", "imagePullPolicy", "restartPolicy", "startupProbe", "readinessProbe", "livenessProbe"},
}


def quantity(text):
    for unit, n in (("Ki", 10), ("Mi", 20), ("Gi", 30)):
        if str(text).endswith(unit):
            return int(text[:-2]) << n
    return int(text)


def known(where, given, *more):
    left = set(given) - PASSED_OVER.get(where, set()) - set(more)
    if left:
        sys.exit("runc_pod.py: %s: not known here: %s" % (where, ", ".join(sorted(left))))


def pod_of(path):
    doc = yaml.safe_load(open(path))
    return doc["spec"]["template"]["spec"] if doc["kind"] == "Deployment" else doc["spec"]


def container_of(pod, name):
    return [c for c in pod.get("initContainers", []) + pod["containers"] if c["name"] == name][0]


def build(pod, spec, node):
    c = Container()
    known("pod", pod, "hostUsers", "securityContext", "runtimeClassName")
    around, own = pod["securityContext"], spec["securityContext"]
    known("the pod's securityContext", around, "runAsNonRoot", "runAsUser", "runAsGroup", "fsGroup", "seccompProfile",
          "appArmorProfile")
    known("securityContext", own, "procMount", "allowPrivilegeEscalation", "readOnlyRootFilesystem", "capabilities")
    known("container", spec, "securityContext", "args", "command", "resources", "volumeMounts")
    c.marker = None
    c.env["KUBERNETES_SERVICE_HOST"] = "10.0.0.1"
    c.userns = pod.get("hostUsers") is False
    c.user = (around["runAsUser"], around["runAsGroup"])
    c.profile = {"Localhost": lambda: "%s/%s" % (node, around["seccompProfile"]["localhostProfile"]),
                 "RuntimeDefault": lambda: "docker", "Unconfined": lambda: "unconfined"}[around["seccompProfile"]["type"]]()
    c.covered = own.get("procMount", "Default") != "Unmasked"
    if not c.covered and not c.userns:
        sys.exit("runc_pod.py: a cluster refuses procMount: Unmasked without hostUsers: false")
    c.no_new_privs = own["allowPrivilegeEscalation"] is False
    c.readonly = own["readOnlyRootFilesystem"]
    if own["capabilities"]["drop"] == ["ALL"]:
        c.caps = []
    c.memory = quantity(spec["resources"]["limits"]["memory"])
    volumes = {v["name"]: v for v in pod["volumes"]}
    for m in spec["volumeMounts"]:
        how = volumes[m["name"]]["emptyDir"]
        # The kubelet makes it for fsGroup.
        c.mounts.append((None, m["mountPath"], ["size=%d" % quantity(how["sizeLimit"]), "mode=0770",
                                                "uid=%d" % c.user[0], "gid=%d" % around["fsGroup"]]))
    if spec.get("command"):
        c.entry = [w.replace("knit-sandbox", "/knit/knit-sandbox") if w == "knit-sandbox" else w for w in spec["command"]]
    c.argv = spec.get("args", [])
    return c


def main():
    path, name = sys.argv[1:3]
    node = sys.argv[sys.argv.index("--in") + 1] if "--in" in sys.argv else "."
    pod = pod_of(path)
    c = build(pod, container_of(pod, name), node)
    c.name, c.detach = name, "--" not in sys.argv
    if not c.detach:
        c.name, c.argv = "knit-%d" % os.getpid(), sys.argv[sys.argv.index("--") + 1:]
    return start(c)


if __name__ == "__main__":
    sys.exit(main())
