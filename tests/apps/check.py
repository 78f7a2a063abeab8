# SPDX-License-Identifier: Apache-2.0
"""check.py driver|runtime|static PROGRAM [ARGUMENT...]: runs one of the programs that know nothing
of cuweir alone and with libcuweir.so preloaded. Both times it must print the same truth of the
simulated GPU, and what the recorder heard must be what the program's source says, in order.

Comes in the environment: SHIM, RECORDER, SIM_DIR.
"""
import os
import re
import subprocess
import sys
import tempfile

CAPACITY = 1 << 30
MARK = 10000
LINE = re.compile(r"(\w+) (?:(?:size|total)=(\d+) )?(?:count=\d+ )?call=(\w+) kind=\d device=0 "
                  r"requested=(\d+) charged=\d+ before=(\d+) after=(\d+) retry=0 status=(\d+)")

# Event, its number (size or total), call by the driver's name and by the runtime's, before,
# after, status. A static runtime is heard by the driver's names, since it is only there that
# its calls come by.
EVENTS = [
    ("allocated", 8192, "cuMemAlloc", "cudaMalloc", 0, 8192, 0),
    ("alloc_threshold", 12288, "cuMemAllocAsync", "cudaMallocAsync", 8192, 12288, 0),
    ("allocated", 4096, "cuMemAllocAsync", "cudaMallocAsync", 8192, 12288, 0),
    ("allocated", 3000, "cuMemAllocManaged", "cudaMallocManaged", 0, 3000, 0),
    ("allocated", 1000, "cuMemAllocHost", "cudaMallocHost", 0, 1000, 0),
    ("alloc_failure", 1 << 60, None, "cudaMalloc", 12288, 12288, 2),
    ("alloc_failed", 1 << 60, None, "cudaMalloc", 12288, 12288, 2),
    ("dealloc_threshold", 4096, "cuMemFree", "cudaFree", 12288, 4096, 0),
    ("deallocated", 8192, "cuMemFree", "cudaFree", 12288, 4096, 0),
    ("deallocated", 4096, "cuMemFreeAsync", "cudaFreeAsync", 4096, 0, 0),
    ("deallocated", 1000, "cuMemFreeHost", "cudaFreeHost", 1000, 0, 0),
]
TRUTH = "truth 0 1 3000 1\n"


def expected(api):
    events = []
    for event, number, driver, runtime, *rest in EVENTS:
        if api == "static":
            driver = {"cudaMallocHost": "cuMemHostAlloc", "cudaMalloc": "cuMemAlloc"}.get(
                runtime, driver)
        call = runtime if api == "runtime" else driver
        if call:
            events.append((event, number, call, *rest))
    return events


def heard(path):
    events = []
    wanted = {event[0] for event in EVENTS}
    with open(path) as file:
        for line in file:
            match = LINE.match(line)
            if match and match[1] in wanted:
                events.append((match[1], int(match[2] or match[4]), match[3],
                               *map(int, match.group(5, 6, 7))))
    return events


def run(program, **settings):
    environment = dict(os.environ, CUWEIR_SIM_CAPACITY=str(CAPACITY),
                       LD_LIBRARY_PATH=os.environ["SIM_DIR"], **settings)
    done = subprocess.run([*program, "truth"], env=environment, capture_output=True, text=True,
                          timeout=25)
    if (done.returncode, done.stdout, done.stderr) != (0, TRUTH, ""):
        sys.exit(f"{program} with {settings}: {done}")


def main():
    api, *program = sys.argv[1:]
    first = os.environ.get("CUWEIR_TEST_PRELOAD_FIRST", "")
    run(program)
    with tempfile.TemporaryDirectory() as work:
        record = os.path.join(work, "record")
        policy = f"{os.environ['RECORDER']}:file={record},alloc={MARK},dealloc={MARK},debug=1"
        run(program, LD_PRELOAD=(first + ":" if first else "") + os.environ["SHIM"],
            CUWEIR_POLICY=policy)
        events = heard(record)
    if events != expected(api):
        for name, found in ("expected", expected(api)), ("heard", events):
            print(name, *found, sep="\n  ")
        return 1
    print(len(events), "events as expected")
    return 0


if __name__ == "__main__":
    sys.exit(main())
