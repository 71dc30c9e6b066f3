"""scheduler_stand_ins -- stand for AWS Batch and for an Open Job Description scheduler in e2e/schedulers.t. Each task is a container of its
own: a mount namespace in which DATA is a fresh folder below HOSTS.

    scheduler_stand_ins.py batch submit-job WORD...      as `aws`: runs the job of the file DEFINITION, and waits for no task
    scheduler_stand_ins.py openjd TEMPLATE NAME=VALUE...  runs all steps at the same time and waits for all tasks; the lead's folder is DATA's own"""
import json
import os
import re
import subprocess
import sys

data, hosts = os.environ["DATA"], os.environ["HOSTS"]


def fail(why):
    sys.exit(f"scheduler_stand_ins: {why}")


def fields(where, value, needed, allowed=()):
    """The object has all of the fields that are needed, and none but those and those allowed."""
    if not isinstance(value, dict):
        fail(f"{where} is no object")
    for name in value:
        if name not in (*needed, *allowed):
            fail(f"{where} has no field '{name}'")
    for name in needed:
        if name not in value:
            fail(f"{where} lacks '{name}'")


def container(words, **env):
    number = len(os.listdir(hosts))
    folder = f"{hosts}/{number}"
    os.mkdir(folder)
    log = open(f"{hosts}.{number}.log", "w")
    return subprocess.Popen(["unshare", "-m", "sh", "-c", 'mount --bind "$1" "$2" && shift 2 && exec "$@"', "sh", folder, data, *words],
                            stdout=log, stderr=log, stdin=subprocess.DEVNULL, env={**os.environ, **env}, start_new_session=True)


def check_definition(d):
    """The input of RegisterJobDefinition, as far as the example has it; by the service's own model where botocore is installed."""
    fields("job definition", d, ("jobDefinitionName", "type", "containerProperties"), ("retryStrategy", "timeout"))
    c = d["containerProperties"]
    fields("containerProperties", c, ("image", "command", "resourceRequirements"), ("environment",))
    for r in c["resourceRequirements"]:
        fields("resourceRequirements", r, ("type", "value"))
    try:
        from botocore.loaders import Loader
        from botocore.model import ServiceModel
        from botocore.validate import validate_parameters
    except ImportError:
        return
    model = ServiceModel(Loader().load_service_model("batch", "service-2"), "batch")
    validate_parameters(d, model.operation_model("RegisterJobDefinition").input_shape)


def batch(words):
    if words[:1] != ["submit-job"] or len(words) % 2 != 1:
        fail(f"no command of AWS Batch: {words}")
    given = dict(zip(words[1::2], words[2::2]))
    fields("submit-job", given, ("--job-name", "--job-queue", "--job-definition"), ("--array-properties",))
    with open(os.environ["DEFINITION"]) as f:
        d = json.load(f)
    check_definition(d)
    if given["--job-definition"] != d["jobDefinitionName"]:
        fail("no such job definition")
    c = d["containerProperties"]
    env = {e["name"]: e["value"] for e in c.get("environment", [])}
    if "--array-properties" not in given:
        container(c["command"], **env)
        return
    size = re.fullmatch(r"size=(\d+)", given["--array-properties"])
    if not size or not 2 <= int(size[1]) <= 10000:
        fail("an array has 2 to 10,000 jobs")
    for i in range(int(size[1])):
        container(c["command"], AWS_BATCH_JOB_ARRAY_INDEX=str(i), **env)


def openjd(template, words):
    with open(template) as f:
        t = json.load(f)
    fields("template", t, ("specificationVersion", "name", "steps"), ("description", "parameterDefinitions"))
    if t["specificationVersion"] != "jobtemplate-2023-09":
        fail("another version")
    given, values = dict(w.split("=", 1) for w in words), {}
    for p in t["parameterDefinitions"]:
        fields("parameter", p, ("name", "type"), ("default", "description", *(("minValue", "maxValue") if p["type"] == "INT" else ())))
        if p["name"] not in given and "default" not in p:
            fail(f"no value for {p['name']}")
        values["Param." + p["name"]] = given.pop(p["name"], str(p.get("default")))
    if given:
        fail(f"no parameters: {given}")

    def fill(text, names):
        def value(m):
            return names[m[1]] if m[1] in names else fail(f"no value {m[1]}")
        return re.sub(r"\{\{ *([A-Za-z.]+) *\}\}", value, text)

    running = []
    for step in t["steps"]:
        fields("step", step, ("name", "script"), ("parameterSpace",))
        fields("script", step["script"], ("actions",))
        fields("actions", step["script"]["actions"], ("onRun",))
        run = step["script"]["actions"]["onRun"]
        fields("onRun", run, ("command",), ("args", "timeout"))
        tasks = [values]
        if "parameterSpace" in step:
            fields("parameterSpace", step["parameterSpace"], ("taskParameterDefinitions",))
            (p,) = step["parameterSpace"]["taskParameterDefinitions"]
            fields("task parameter", p, ("name", "type", "range"))
            first, last = fill(p["range"], values).split("-")
            tasks = [{**values, "Task.Param." + p["name"]: str(i)} for i in range(int(first), int(last) + 1)]
        for names in tasks:
            command = [run["command"], *(fill(a, names) for a in run.get("args", []))]
            running.append(container(command) if "parameterSpace" in step else subprocess.Popen(command))
    codes = [p.wait() for p in running]
    if any(codes):
        fail(f"tasks ended with {codes}")


if sys.argv[1] == "batch":
    batch(sys.argv[2:])
elif sys.argv[1] == "openjd":
    openjd(sys.argv[2], sys.argv[3:])
else:
    fail("no such scheduler")
