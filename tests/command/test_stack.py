#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Call sites with their callers (--stack): in the report, in JSON, symbolized, where memory runs out."""
import json
import re
import unittest

from support import APPS, BUILD, SHIM, Case, cuweir, run

WAYS = {"shared": "lib", "static": "lib", "foreign": "foreign"}


def frames(way, stack, **more):
    return run(f"{APPS}/frames_{way}", env={
        "LD_PRELOAD": SHIM, "LD_LIBRARY_PATH": f"{BUILD}/tests/sim/{WAYS[way]}",
        "CUWEIR_SIM_CAPACITY": "1GiB", "CUWEIR_STACK": str(stack), **more})


def functions(text):
    """Those that a symbolized text names, line by line, our own program's alone."""
    return re.findall(r"frames_\w+\+0x[0-9a-f]+ \((\w+) at \S*/frames\.c:\d+\)", text)


class Stack(Case):
    def sites(self, result, begin=r" in \d+ of "):
        """The functions of each sum of what is live, the largest first; or of the peak."""
        text = cuweir("symbolize", stdin=result.err).out
        blocks = re.findall(rf"{begin}.*\n(?:.*:     called from .*\n)*", text)
        return [functions(block) for block in blocks]

    def test_report(self):
        for way in WAYS:
            with self.subTest(way=way):
                result = frames(way, 16, CUWEIR_REPORT="1")
                self.assertEqual([site[:3] for site in self.sites(result)],
                                 [["take", "load_model", "main"], ["take", "make_batch", "main"]])
                peak, = self.sites(result, "its peak came")
                self.assertEqual(peak[:3], ["take", "make_batch", "main"])

    def test_depth(self):
        for stack, want in ((0, [["take"]]), (1, [["take"]]),
                            (2, [["take", "load_model"], ["take", "make_batch"]]),
                            (3, [["take", "load_model", "main"], ["take", "make_batch", "main"]])):
            self.assertEqual(self.sites(frames("shared", stack, CUWEIR_REPORT="1")), want)

    def test_json(self):
        for way in WAYS:
            report = re.search(r"^\{.*\n", frames(way, 4, CUWEIR_REPORT="json").err, re.M)[0]
            value = json.loads(report)
            for site in value["live_by_site"]:
                self.assertEqual(len(site["callers"]), 3)
            value = json.loads(cuweir("symbolize", stdin=report).out)
            first = value["live_by_site"][0]
            ours = [at for at in [first] + first["callers"]
                    if (at["file"] or "").endswith("/frames.c")]
            self.assertEqual([at["function"] for at in ours], ["take", "load_model", "main"])
            for at in ours:
                self.assertRegex(at["site"], r"^frames_\w+\+0x[0-9a-f]+$")

    def test_out_of_memory(self):
        for way in WAYS:
            text = frames(way, 8, CUWEIR_RUN="1").err
            log = "".join(re.findall(r".*\n", text)) + f"module frames_{way} is {APPS}/frames_{way}\n"
            asked, rest = cuweir("symbolize", stdin=log).out.split("in use by this process", 1)
            self.assertEqual(functions(asked)[:3], ["take", "grow", "main"])
            holders = [functions(block) for block in
                       re.findall(r"holds .*\n(?:.*:     called from .*\n)*", rest)]
            self.assertEqual([holder[:3] for holder in holders],
                             [["take", "load_model", "main"], ["take", "make_batch", "main"]])

    def test_many_threads(self):
        """They walk at once, and all find the same place: the program is none the worse."""
        result = run(f"{APPS}/first_shared", 8, 200, 4096, env={
            "LD_PRELOAD": SHIM, "LD_LIBRARY_PATH": f"{BUILD}/tests/sim/lib", "CUWEIR_STACK": "32",
            "CUWEIR_REPORT": "1"})
        self.assertEqual((result.status, result.out), (0, "failed 0\n"))
        self.assertIn(", 1600 allocations, 1600 frees\n", result.err)

    def test_values(self):
        for value in ("33", "-1", "x"):
            self.assertIn(f'CUWEIR_STACK="{value}": want a number of frames, 0 to 32; it is ignored\n',
                          frames("shared", value).err)
        result = cuweir("run", "--stack=33", "x")
        self.assertEqual((result.status, result.err), (
            125, "cuweir: --stack 33: want a whole number from 0 to 32\n"))


if __name__ == "__main__":
    unittest.main()
