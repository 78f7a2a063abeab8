# SPDX-License-Identifier: Apache-2.0
"""check.py BUILD PYTHON [NAME...]: runs the cases of cases.py on the simulated GPU, without
cuweir and with it, and compares what torch says with what cuweir heard, by value.

scripts/torch-check starts it. A line for each run; status 1 where one is not as it should be.
"""
import collections
import csv
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile

MiB = 1 << 20
HERE = os.path.dirname(os.path.abspath(__file__))
NATIVE = {}
EXPANDABLE = {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}
ASYNC = {"PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync"}
UNCACHED = {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}
REGISTER = {"PYTORCH_CUDA_ALLOC_CONF": "pinned_use_cuda_host_register:True"}


class Wrong(Exception):
    pass


def equal(what, found, wanted):
    if found != wanted:
        raise Wrong(f"{what}: {found}, not {wanted}")


class Skipped(Exception):
    pass


class Run:
    """What one run left: torch's facts, cuweir's reports by process, and its events."""

    def __init__(self, facts, reports, events):
        self.facts, self.reports, self.events = facts, reports, events
        self.report = max(reports, key=lambda r: r["totals"] != [] and r["live"], default=None)

    def total(self, kind="device", device=0, field="current", report=None):
        for t in (report or self.report)["totals"]:
            if t["kind"] == kind and t["device"] == device:
                return t[field]
        return 0

    def counts(self):
        return collections.Counter(action for action, _ in self.events)


def environment(extra):
    kept = {k: v for k, v in os.environ.items()
            if not k.startswith(("CUWEIR_", "PYTORCH_", "CUDA_"))}
    client = os.path.join(BUILD, "client", "libcuweir-client.so")
    return dict(kept, TORCH_CHECK_CLIENT=client, OMP_NUM_THREADS="1",
                TRITON_LIBCUDA_PATH=os.path.join(BUILD, "tests", "sim", "lib"), **extra)


def execute(command, env):
    child = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             text=True, start_new_session=True)
    try:
        out, err = child.communicate(timeout=300)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL) # with the processes that it has started
        child.wait()
        raise
    lines = out.strip().splitlines()
    if child.returncode != 0 or not lines or not lines[-1].startswith("{"):
        raise Wrong(f"status {child.returncode}\n{out[-3000:]}{err[-3000:]}")
    return json.loads(lines[-1])


def program(case):
    start = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node",
             "2"] if case == "ranks" else []
    return [PYTHON, *start, os.path.join(HERE, "cases.py"), case]


def plain(case, extra, devices=1):
    """On the simulated GPU alone."""
    simulation = [os.path.join(BUILD, "tests", "sim", part) for part in ("lib", "nvml")]
    env = environment(extra)
    env.update(LD_LIBRARY_PATH=":".join(simulation), CUWEIR_SIM_CAPACITY="1GiB",
               CUWEIR_SIM_DEVICES=str(devices))
    return execute(program(case), env)


def events_of(path):
    """Rows of the policy log of device memory, as torch's trace has them."""
    with open(path, newline="") as file:
        return [[row["Action"], int(row["Size"])] for row in csv.DictReader(file)]


def watched(case, extra, policies=(), devices=1):
    with tempfile.TemporaryDirectory() as work:
        command = [os.path.join(BUILD, "command", "cuweir"), "run", "--quiet", "--sim",
                   f"1GiB:{devices}", "--report=json", "--log", os.path.join(work, "report.%p"),
                   "-p", f"log:format=csv,kinds=device,file={work}/log.%p"]
        for policy in policies:
            command += ["-p", policy]
        facts = execute(command + ["--", *program(case)], environment(extra))
        reports, events = [], []
        for name in sorted(os.listdir(work)):
            path = os.path.join(work, name)
            if name.startswith("report."):
                with open(path) as file:
                    reports += [json.loads(line) for line in file if line.startswith("{")]
            elif os.path.getsize(path) > 0:
                events += events_of(path)
    if not reports:
        raise Wrong("no report")
    for report in reports:
        equal("frees of unknown addresses", report["unknown_frees"], 0)
        equal("allocations without a record", report["unrecorded"], 0)
    return Run(facts, reports, events)


def steps(trace):
    words = {"segment_alloc": "allocate", "segment_free": "free", "segment_map": "allocate",
             "segment_unmap": "free"}
    return [[words[action], size] for action, size in trace]


def amounts(events):
    return {action: sum(size for a, size in events if a == action)
            for action in ("allocate", "free")}


def comparable(facts):
    """Of threads the order is nobody's."""
    return dict(facts, trace=sorted(facts.get("trace", []))
                if facts["case"] == "threads" else facts.get("trace"))


def same(case, extra, devices=1):
    """Both runs alike for the program."""
    run = watched(case, extra, devices=devices)
    equal("what the program saw", comparable(run.facts),
          comparable(plain(case, extra, devices)))
    return run


def reserved(run, device=0):
    """Every byte that torch has reserved is counted, and the driver has no other in use."""
    facts = run.facts
    equal("bytes in use", run.total(device=device), facts["reserved"])
    equal("highest", run.total(device=device, field="peak"), facts["peak"])
    equal("taken of the device", facts["info"][1] - facts["info"][0], facts["reserved"])
    return f"reserved {facts['reserved']}, highest {facts['peak']}"


def traced(run):
    """Event by event what torch's own trace says."""
    trace = steps(run.facts["trace"])
    if run.facts["case"] == "threads":
        equal("events", sorted(run.events), sorted(trace))
    else:
        equal("events", run.events, trace)
    return f"{reserved(run)}, {len(trace)} events as in torch's trace"


def native(case):
    return traced(same(case, NATIVE))


def expandable(case):
    """torch's trace has ranges, cuweir the handles that they are made of."""
    run = same(case, EXPANDABLE)
    if run.facts.get("trace"):
        equal("bytes", amounts(run.events), amounts(steps(run.facts["trace"])))
    equal("bytes in use", run.total(), run.facts["reserved"])
    equal("reserved addresses held", run.total("virtual", -1) > 0, True)
    return f"reserved {run.facts['reserved']}, {run.counts()['allocate']} handles made"


def stream_ordered(case):
    """torch counts what the pool holds; at exit torch frees all, the report has the peak."""
    run = same(case, ASYNC)
    frees = run.counts()["free"]
    equal("frees", frees, run.total(field="frees"))
    equal("failed", run.report["failed"], run.counts()["allocate failure"])
    return f"{run.counts()['allocate']} allocations, {frees} frees, " \
           f"{run.report['failed']} failed"


def uncached(case):
    run = same(case, UNCACHED)
    equal("left at exit", run.total(), 0)
    return f"{run.counts()['allocate']} allocations, {run.counts()['free']} frees"


def copies():
    run = same("copies", NATIVE)
    equal("copies", run.facts["same"], True)
    return reserved(run)


def host(extra, kind):
    run = same("pinned", extra)
    equal("pinned and registered", [run.facts[k] for k in ("pinned", "own", "registered")],
          [True, True, 0])
    equal(kind, run.total(kind), run.facts["host"])
    own = run.total("registered", field="peak")
    equal("registered", own, 5 * MiB + (run.facts["host"] if kind == "registered" else 0))
    return f"{kind} memory {run.facts['host']}, own memory registered and given back"


def loader(case):
    run = same(case, NATIVE)
    equal("sum", run.facts["total"], {"loader": 799980000, "forked": 7998000}[case])
    equal("pinned memory there", run.total("host") > 0, True)
    return f"{run.total('host', field='allocations')} pinned allocations"


def devices():
    run = same("devices", NATIVE, devices=2)
    equal("reserved", [run.total(device=n) for n in range(2)], run.facts["reserved"])
    return f"reserved {run.facts['reserved']}"


def share():
    run = same("share", NATIVE)
    equal("what the other process got", [run.facts["got"], run.facts["status"]],
          [[5, MiB], 0])
    imported = [run.total("imported", field="peak", report=r) for r in run.reports]
    own = [run.total(report=r) for r in run.reports]
    equal("imported", max(imported), run.facts["reserved"])
    equal("own", max(own), run.facts["reserved"])
    return f"one process has {max(own)}, the other imported {max(imported)}"


def ranks():
    run = same("ranks", NATIVE, devices=2)
    own = [max(run.total(device=n, report=r) for r in run.reports) for n in range(2)]
    equal("reserved", own, run.facts["reserved"])
    return f"{own[0]} of the first rank, {own[1]} of the second, a report each"


def compiled(extra):
    """Triton builds a launcher in C."""
    asked = subprocess.run([PYTHON, "-c", "import sysconfig as s; "
                            "print(s.get_path('include'))"], stdout=subprocess.PIPE, text=True)
    if shutil.which("cc") is None or not os.path.exists(
            os.path.join(asked.stdout.strip(), "Python.h")):
        raise Skipped("no C compiler, or no Python.h")
    run = same("compiled", extra)
    equal("bytes in use", run.total(), run.facts["reserved"])
    return f"reserved {run.facts['reserved']}"


def oom(extra):
    run = same("oom", extra)
    equal("error", run.facts["error"], "OutOfMemoryError")
    equal("failed", run.report["failed"] > 1, True)
    return f"{run.report['failed']} failed, one OutOfMemoryError: torch asks again by itself"


def limit(extra, case):
    """torch sees a device of the limit's size, and raises its own error at it."""
    run = watched(case, extra, ["limit:512MiB"])
    facts = run.facts
    total = facts["total"] if case == "oom" else facts["at"][1]
    equal("size", total, 512 * MiB)
    equal("error", facts["error"], "OutOfMemoryError")
    if case == "fill":
        equal("blocks", facts["blocks"], 5)
        equal("free", facts["at"][0], 12 * MiB)
        equal("after the free", facts["after"], "none")
    equal("within", run.total(field="peak") <= 512 * MiB, True)
    if extra is not ASYNC:
        equal("bytes in use", run.total(), facts["reserved"])
        equal("the error's text", "total capacity of 512.00 MiB" in facts["text"], True)
        equal("taken", facts["info"], [512 * MiB - facts["reserved"], 512 * MiB])
    return f"{facts['error']}, highest {run.total(field='peak')}, {run.report['failed']} refused"


def fraction():
    run = watched("fraction", NATIVE, ["limit:512MiB"])
    equal("error", run.facts["error"], "OutOfMemoryError")
    equal("asked", run.events, [])
    return "torch's own fraction, of the limit, refuses before anything is asked"


def injected_once():
    """torch asks a second time, so one failure never reaches the program."""
    run = watched("life", NATIVE, ["inject:nth=3"])
    before = plain("life", NATIVE)
    equal("failed", run.report["failed"], 1)
    for part in "middle", "reserved", "allocated", "ooms":
        equal(part, run.facts[part], before[part])
    return "1 failure, which the program did not see"


def injected(extra):
    run = watched("fill", extra, ["inject:nth=3,count=2,call=cudaMalloc*"])
    equal("blocks", [run.facts["blocks"], run.facts["error"]], [2, "OutOfMemoryError"])
    equal("failed", run.report["failed"], 2)
    return "2 blocks, then OutOfMemoryError"


def retried():
    run = watched("fill", NATIVE, ["retry:max=3,backoff=1ms..2ms"])
    equal("retries", run.report["retries"], 3 * run.report["failed"])
    return f"{run.report['failed']} failed, tried again {run.report['retries']} times"


def waited():
    equal("without", plain("wait", UNCACHED)["error"], "AcceleratorError")
    run = watched("wait", UNCACHED, ["retry"])
    equal("with retry", run.facts["error"], "none")
    return f"{run.report['retries']} retries until another thread had freed it"


def spilled(extra):
    run = watched("spilled", extra, ["spill"])
    equal("contents", run.facts["same"], True)
    equal("in use", run.total(field="peak"), 1600 * MiB)
    return f"{run.facts['peak'] or 1600 * MiB} of a device of {1024 * MiB}"


def pooled(case):
    """What torch gives back stays with the pool; with it the driver has so much in use."""
    run = watched(case, NATIVE, ["pool"])
    before = plain(case, NATIVE)
    for part in "reserved", "allocated", "peak", "trace":
        equal(part, run.facts[part], before[part])
    held = run.total(field="held")
    equal("the driver's", run.facts["info"][1] - run.facts["info"][0],
          run.facts["reserved"] + held)
    return f"reserved {run.facts['reserved']}, {held} held back"


def pooled_limit():
    run = watched("fill", NATIVE, ["limit:512MiB", "pool"])
    equal("error", run.facts["error"], "OutOfMemoryError")
    equal("within", run.total() + run.total(field="held") <= 512 * MiB, True)
    return f"{run.facts['blocks']} blocks, then OutOfMemoryError"


def pluggable(policies):
    run = watched("pluggable", NATIVE, policies)
    held = run.total(field="held")
    equal("taken", run.facts["taken"], 13 * MiB)
    equal("copy", run.facts["same"], True)
    equal("left", run.facts["left"], held)
    equal("heard", [run.total(), run.total(field="allocations")], [0, 3])
    equal("error", run.facts["error"], "RuntimeError")
    return f"3 allocations, {held} held back; refused: {run.facts['error']}"


def pluggable_alone():
    facts = plain("pluggable", NATIVE)
    equal("taken", [facts["taken"], facts["left"], facts["same"]], [13 * MiB, 0, True])
    return "served without cuweir run"


def pluggable_devices():
    run = same("pluggable_devices", NATIVE, devices=2)
    equal("taken", run.facts["taken"], [10 * MiB, 20 * MiB])
    equal("left", run.facts["left"], [0, 0])
    return "10 and 20 MiB of two devices, given back"


def pluggable_pool():
    run = same("pluggable_pool", NATIVE)
    calls = sorted((s["call"], s["bytes"]) for s in run.report["live_by_site"])
    equal("by call", calls, [("cuMemAllocAsync", 30 * MiB), ("cudaMalloc", 30 * MiB)])
    return "a MemPool from the client library, the rest from cudaMalloc"


RUNS = [
    *[(f"{c}, caching allocator", native, c) for c in ("life", "mempool", "graph", "threads")],
    ("copies", copies),
    ("pinned", host, NATIVE, "host"),
    ("pinned, by cudaHostRegister", host, REGISTER, "registered"),
    ("data loader, pinning thread", loader, "loader"),
    ("data loader, forked workers", loader, "forked"),
    ("two devices", devices),
    ("tensor to another process", share),
    ("two ranks of torchrun", ranks),
    ("torch.compile, caching allocator", compiled, NATIVE),
    ("torch.compile, expandable segments", compiled, EXPANDABLE),
    ("out of memory, caching allocator", oom, NATIVE),
    ("out of memory, expandable segments", oom, EXPANDABLE),
    ("out of memory, cudaMallocAsync", oom, ASYNC),
    *[(f"{c}, expandable segments", expandable, c)
      for c in ("life", "fill", "mempool", "graph")],
    *[(f"{c}, cudaMallocAsync", stream_ordered, c) for c in ("life", "fill", "graph")],
    *[(f"{c}, no caching", uncached, c) for c in ("life", "fill")],
    ("limit, caching allocator", limit, NATIVE, "fill"),
    ("limit, expandable segments", limit, EXPANDABLE, "fill"),
    ("limit, cudaMallocAsync", limit, ASYNC, "fill"),
    ("limit, more than all", limit, NATIVE, "oom"),
    ("limit and torch's fraction", fraction),
    ("inject, one failure", injected_once),
    ("inject, caching allocator", injected, NATIVE),
    ("inject, cudaMallocAsync", injected, ASYNC),
    ("retry, in vain", retried),
    ("retry, another thread frees", waited),
    ("spill, caching allocator", spilled, NATIVE),
    ("spill, cudaMallocAsync", spilled, ASYNC),
    *[(f"pool, {c}", pooled, c) for c in ("life", "mempool", "graph")],
    ("pool in a limit", pooled_limit),
    ("client library", pluggable, []),
    ("client library, pool", pluggable, ["pool"]),
    ("client library, limit", pluggable, ["limit:200MiB"]),
    ("client library alone", pluggable_alone),
    ("client library, two devices", pluggable_devices),
    ("client library, one MemPool", pluggable_pool),
]


def main():
    failed, skipped = 0, 0
    wanted = sys.argv[3:]
    for name, check, *arguments in RUNS:
        if wanted and not any(w in name for w in wanted):
            continue
        try:
            print(f"ok    {name}: {check(*arguments)}", flush=True)
        except Skipped as e:
            skipped += 1
            print(f"skip  {name}: {e}", flush=True)
        except (Wrong, subprocess.TimeoutExpired, KeyError) as e:
            failed += 1
            print(f"FAIL  {name}: {type(e).__name__} {e}", flush=True)
    print(f"torch-check: {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    BUILD, PYTHON = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    sys.exit(main())
