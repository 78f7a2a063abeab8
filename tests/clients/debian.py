# SPDX-License-Identifier: Apache-2.0
"""What the tests of Debian's programs share. These are as Debian 12 has them, on a simulated GPU of
1 GiB; scripts/setup installs them.

Comes in the environment: CUWEIR, RECORDER, LD_LIBRARY_PATH.
"""
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

CUWEIR = os.environ["CUWEIR"]
LINE = re.compile(r"(\w+) (?:size|total)=(\d+) call=(\w+) kind=1 ")
WORDS = {"allocated": "alloc", "deallocated": "free",
         "alloc_threshold": "over", "dealloc_threshold": "under"}


class Result:
    """What a program said, with process ids, addresses and offsets made equal: `said` are its own
    lines of standard error, `told` are cuweir's."""

    def __init__(self, done):
        self.status, self.out = done.returncode, done.stdout
        lines = re.sub(r"0x[0-9a-f]+", "0xA", re.sub(r"cuweir\[\d+\]", "cuweir[P]", done.stderr))
        self.said = [line for line in lines.splitlines() if not line.startswith("cuweir")]
        self.told = [line for line in lines.splitlines() if line.startswith("cuweir")]


class Case(unittest.TestCase):
    maxDiff = None

    own = {}  # what a program wants in its environment

    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory(prefix="cuweir-debian-")
        cls.addClassCleanup(directory.cleanup)
        cls.directory = directory.name

    @classmethod
    def run_plain(cls, command, **more):
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith(("CUWEIR", "GST_")) and name != "LD_PRELOAD"}
        environment.update({"HOME": cls.directory, "LC_ALL": "C", "CUWEIR_SIM_CAPACITY": "1GiB",
                            **cls.own, **more})
        return Result(subprocess.run(command, stdin=subprocess.DEVNULL, text=True, env=environment,
                                     capture_output=True, check=False, timeout=100))

    @classmethod
    def run_under(cls, options, command):
        return cls.run_plain([CUWEIR, "run", *options, "--", *command])

    def events_of(self, command, mark):
        """The result; and what the recorder heard, in order: (word, call, bytes), where "over" and
        "under" have the total that crosses the mark, and come before what takes it there."""
        record = os.path.join(self.directory, "record")
        policy = f"{os.environ['RECORDER']}:file={record},alloc={mark},dealloc={mark},debug=1"
        result = self.run_under(["-p", policy], command)
        with open(record, encoding="utf-8") as file:
            found = [LINE.match(line) for line in file]
        return result, [(WORDS[match[1]], match[3], int(match[2]))
                        for match in found if match and match[1] in WORDS]

    def report_of(self, options, command):
        path = os.path.join(self.directory, "report.json")
        if os.path.exists(path):
            os.unlink(path)
        result = self.run_under(["--report=json", "--log", path, *options], command)
        with open(path, encoding="utf-8") as file:
            return result, json.load(file)

    def assert_same(self, result, plain):
        self.assertEqual((result.status, result.out, result.said),
                         (plain.status, plain.out, plain.said))


def main(program, version, files=(), setup="scripts/setup"):
    """Runs the tests of a program that says it is of this version, which is Debian 12's: another
    one allocates otherwise. What else must be there are files, as for glob."""
    said = ""
    if shutil.which(program):
        ask = "-version" if program == "ffmpeg" else "--version"
        said = subprocess.run([program, ask], text=True, capture_output=True, check=False).stdout
    lacking = [pattern for pattern in files if not glob.glob(pattern)]
    if not re.search(re.escape(version) + r"\b", said):
        lacking.append(f"{program} ({version})")
    if lacking:
        print(f"not installed, see {setup}:", *lacking)
        sys.exit(77)
    unittest.main()
