#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What starting a program by the command costs, in instructions: all processes together."""
import re
import shutil
import unittest

from support import CUWEIR, Case, run

BUDGET = 8_000_000  # beside what the program itself does; a python is 100 million


@unittest.skipUnless(shutil.which("valgrind"), "no valgrind")
class Cost(Case):
    def instructions(self, *command):
        result = run("valgrind", "--tool=callgrind", "--trace-children=yes",
                     f"--callgrind-out-file={self.directory}/out.%p", *command)
        self.assertEqual(result.status, 0, result.err)
        return sum(int(count) for count in re.findall(r"Collected : (\d+)", result.err))

    def test_start(self):
        bare = self.instructions("/bin/true")
        watched = self.instructions(CUWEIR, "run", "/bin/true")
        with_policy = self.instructions(CUWEIR, "run", "-p", "example", "/bin/true")
        print(f"true: {bare}; under cuweir run: {watched}; with a policy: {with_policy}")
        self.assertGreater(bare, 10_000)
        self.assertLess(watched - bare, BUDGET)
        self.assertLess(with_policy - bare, BUDGET)


if __name__ == "__main__":
    unittest.main()
