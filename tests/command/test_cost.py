#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What starting a program by the command costs, in instructions: all processes together."""
import re
import shutil
import unittest

from support import CUWEIR, SHIM, Case, run

BUDGET = 2_000_000  # a python's start is fifty times that


@unittest.skipUnless(shutil.which("valgrind"), "no valgrind")
class Cost(Case):
    def instructions(self, *command):
        result = run("valgrind", "--tool=callgrind", "--trace-children=yes",
                     f"--callgrind-out-file={self.directory}/out.%p", *command)
        self.assertEqual(result.status, 0, result.err)
        return sum(int(count) for count in re.findall(r"Collected : (\d+)", result.err))

    def test_start(self):
        # All that comes before the program, the process on trial too; an exec ends the count.
        before = self.instructions(CUWEIR, "run", "--print-env")
        with_policy = self.instructions(CUWEIR, "run", "--print-env", "-p", "example")
        bare = self.instructions("/bin/true")
        watched = self.instructions("env", f"LD_PRELOAD={SHIM}", "/bin/true")
        print(f"before the program: {before}, with a policy: {with_policy}; true: {bare}, with the "
              f"library: {watched}")
        self.assertGreater(before, 100_000)
        self.assertLess(before + watched - bare, BUDGET)
        self.assertLess(with_policy + watched - bare, BUDGET)


if __name__ == "__main__":
    unittest.main()
