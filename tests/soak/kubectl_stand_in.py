"""kubectl_stand_in -- stands for kubectl and a cluster in a test: apply checks a Job against the API's models and runs its pods here,
one after the other, in DATA in place of the volume; what fails is tried again as often as backoffLimit allows. STATE is a folder for
logs and names. Needs Debian's python3-yaml and python3-kubernetes.

    apply -f FILE | delete job NAME --ignore-not-found | get job NAME -o jsonpath=... | get pods -l job-name=NAME ... | logs POD"""
import os
import subprocess
import sys
from datetime import datetime

data, state = os.environ["DATA"], os.environ["STATE"]


def check(value, kind, where, client):
    """client: the module of the API's models. The value has just the fields of the API's type, each of its own type; what is wanted is there."""
    if kind.startswith("list["):
        assert isinstance(value, list), f"{where} is no list"
        for i, item in enumerate(value):
            check(item, kind[5:-1], f"{where}[{i}]", client)
    elif kind.startswith("dict("):
        assert isinstance(value, dict), f"{where} is no map"
        for key, item in value.items():
            check(item, kind[5:-1].split(", ")[1], f"{where}.{key}", client)
    elif hasattr(client.models, kind):
        assert isinstance(value, dict), f"{where} is no object"
        model = getattr(client.models, kind)
        names = {there: here for here, there in model.attribute_map.items()}
        for key, item in value.items():
            assert key in names, f"{where} has no field '{key}'"
            check(item, model.openapi_types[names[key]], f"{where}.{key}", client)
        # The model refuses what lacks something, or has a word that is none of those allowed.
        model(**{names[key]: item for key, item in value.items()}, local_vars_configuration=client.Configuration())
    else:
        wanted = {"str": str, "int": int, "bool": bool, "float": (int, float), "datetime": datetime, "object": object}[kind]
        assert isinstance(value, wanted) and (kind != "int" or not isinstance(value, bool)), f"{where} is no {kind}: {value!r}"


def path(name):
    return f"{state}/{name}"


def apply(text):
    import yaml  # both take a second to load
    from kubernetes import client
    doc = yaml.safe_load(text)
    check(doc, "V1" + doc["kind"], doc["kind"], client)
    if doc["kind"] != "Job":
        return
    name, spec = doc["metadata"]["name"], doc["spec"]
    assert len(name) <= 63 and spec["completionMode"] == "Indexed" and not os.path.exists(path(name))
    pod = spec["template"]["spec"]
    (container,) = pod["containers"]
    mounts = {m["name"] for m in container["volumeMounts"]}
    assert mounts == {v["name"] for v in pod["volumes"]} and container["workingDir"] in {m["mountPath"] for m in container["volumeMounts"]}
    tries, ended = spec["backoffLimit"], "Complete"
    for index in range(spec["completions"]):
        while True:
            with open(path(f"{name}-{index}.log"), "w") as log:
                code = subprocess.run(container["command"] + container["args"], cwd=data, stdout=log, stderr=subprocess.STDOUT,
                                      env=dict(os.environ, JOB_COMPLETION_INDEX=str(index))).returncode
            if code == 0:
                break
            if tries == 0:
                ended = "Failed"
                break
            tries -= 1
    with open(path(name), "w") as f:
        f.write(ended)
    print(f"job.batch/{name} created")


words = sys.argv[1:]
if words[:2] == ["apply", "-f"]:
    apply(sys.stdin.read() if words[2] == "-" else open(words[2]).read())
elif words[:2] == ["delete", "job"] and words[3] == "--ignore-not-found":
    if os.path.exists(path(words[2])):
        os.remove(path(words[2]))
elif words[:2] == ["get", "job"] and words[3] == "-o":
    print(open(path(words[2])).read())
elif words[:2] == ["get", "pods"] and words[2] == "-l" and words[-2:] == ["-o", "name"]:
    print(f"pod/{words[3].removeprefix('job-name=')}-0")
elif words[0] == "logs":
    print(open(path(words[1].removeprefix("pod/") + ".log")).read(), end="")
else:
    sys.exit(f"this stand-in has no kubectl {words}")
