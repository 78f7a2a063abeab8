#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Where what a process counts on is not there: environment, /proc, descriptors, memory, SIGCHLD."""
import os
import unittest

from support import BUILD, Case, cuweir

CUDA = (f"import ctypes, os, resource\nc = ctypes.CDLL('{BUILD}/tests/sim/lib/libcudart.so.13')\n"
        "libc = ctypes.CDLL(None)\n"
        "def take(size=4096):\n p = ctypes.c_void_p()\n"
        " return c.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(size))\n")


def python(code, *options, **more):
    """A program that has the runtime as `c`, and a function that takes memory."""
    return cuweir("run", "--sim", "1G", *options, "--", "python3", "-c", CUDA + code, **more)


class Environment(Case):
    def test_cleared(self):
        """Names are made of what the program was started with."""
        result = python("libc.clearenv(); take()", "-p", "log:file=%r.%q{WORD}",
                        cwd=self.directory,
                        env={"LONG": 9000 * "l", "SLURM_PROCID": "17", "WORD": "w0rd"})
        self.assertEqual((result.status, result.err), (0, ""))
        self.assertGreater(os.path.getsize(f"{self.directory}/17.w0rd"), 20)


if __name__ == "__main__":
    unittest.main()
