# SPDX-License-Identifier: Apache-2.0
"""run.py CLIENT: runs it as it is on the simulated GPU, with libcuweir.so preloaded, and
compares what the recorder heard with the EXPECTED of the client's file, in order.

An expected event is ("alloc" | "free", kind, bytes), or ("over" | "under", "device", total)
where device memory crosses MARK; a crossing is told before its allocation or free is.
Comes in the environment: CLIENT_PYTHON, SHIM, RECORDER. 77 where the client is not installed.
"""
import ast
import os
import re
import subprocess
import sys
import tempfile

KINDS = {"1": "device", "2": "managed", "3": "host"}
WORDS = {"allocated": "alloc", "deallocated": "free",
         "alloc_threshold": "over", "dealloc_threshold": "under"}
LINE = re.compile(r"(\w+) (?:size|total)=(\d+) call=\w+ kind=(\d) ")


def constants_of(path):
    """The literals that a client's file assigns to names at its top, without running it."""
    with open(path) as file:
        tree = ast.parse(file.read())
    return {node.targets[0].id: ast.literal_eval(node.value)
            for node in tree.body if isinstance(node, ast.Assign)}


def heard(path):
    events = []
    with open(path) as file:
        for line in file:
            match = LINE.match(line)
            if match and match[1] in WORDS:
                events.append((WORDS[match[1]], KINDS.get(match[3], match[3]), int(match[2])))
    return events


def installed(python, module):
    found = [python, "-c", f"import importlib.util as u, sys; "
             f"sys.exit(u.find_spec({module!r}) is None)"]
    return os.path.exists(python) and subprocess.run(found).returncode == 0


def main():
    client = sys.argv[1]
    constants = constants_of(client)
    python = os.environ["CLIENT_PYTHON"]
    if not installed(python, constants["MODULE"]):
        print(constants["MODULE"], "is not installed, see scripts/fetch-clients")
        return 77
    with tempfile.TemporaryDirectory() as work:
        record = os.path.join(work, "record")
        mark = constants["MARK"]
        environment = dict(os.environ, HOME=work, XDG_CACHE_HOME=work)
        first = environment.get("CUWEIR_TEST_PRELOAD_FIRST", "")
        environment["LD_PRELOAD"] = (first + ":" if first else "") + os.environ["SHIM"]
        environment["CUWEIR_POLICY"] = (
            f"{os.environ['RECORDER']}:file={record},alloc={mark},dealloc={mark},debug=1")
        subprocess.run([python, client], env=environment, check=True, timeout=100)
        events = heard(record)
    if events != constants["EXPECTED"]:
        for name, found in ("expected", constants["EXPECTED"]), ("heard", events):
            print(name, *found, sep="\n  ")
        return 1
    print(len(events), "events as expected")
    return 0


if __name__ == "__main__":
    sys.exit(main())
