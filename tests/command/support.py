# SPDX-License-Identifier: Apache-2.0
"""What the tests of the command share."""
import os
import re
import subprocess
import tempfile
import unittest

BUILD = os.environ["CUWEIR_TEST_BUILD"]
SOURCE = os.environ["CUWEIR_TEST_SOURCE"]
CUWEIR = f"{BUILD}/command/cuweir"
SHIM = f"{BUILD}/shim/libcuweir.so"
APPS = f"{BUILD}/tests/apps"
SCENARIO = f"{APPS}/scenario"
PLUGINS = f"{BUILD}/tests/plugins"


def environment(**more):
    """The caller's, without what would decide the outcome."""
    own = {name: value for name, value in os.environ.items()
           if not name.startswith("CUWEIR_") and name not in ("LD_PRELOAD", "LD_LIBRARY_PATH")}
    return {**own, **more}


class Result:
    def __init__(self, done):
        self.status, self.out, self.err = done.returncode, done.stdout, done.stderr

    @property
    def lines(self):
        """stderr with process ids and addresses made equal."""
        return re.sub(r"0x[0-9a-f]+", "0xA", re.sub(r"cuweir\[\d+\]", "cuweir[P]", self.err))


def run(*arguments, env=None, stdin="", **options):
    return Result(subprocess.run([str(argument) for argument in arguments], input=stdin, text=True,
                                 capture_output=True, env=environment(**(env or {})),
                                 check=False, timeout=60, **options))


def cuweir(*arguments, **options):
    return run(CUWEIR, *arguments, **options)


def scenario(script, *options, way="dlsym", **more):
    """The scenario program on a simulated GPU of 1 GiB, under cuweir run."""
    return cuweir("run", "--sim", "1GiB", *options, "--", SCENARIO, way, script, **more)


class Case(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="cuweir-command-")
        self.addCleanup(directory.cleanup)
        self.directory = directory.name

    def file(self, name, text="", mode=0o644):
        path = os.path.join(self.directory, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, mode)
        return path
