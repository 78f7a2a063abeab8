# SPDX-License-Identifier: Apache-2.0
"""Debian's hashcat: kernels that NVIDIA's NVRTC compiles, and 30 allocations of 1 B to 134 MiB.
Their sizes it takes from what the driver says of the device and its free memory. Since kernels do
nothing here, it finds no password."""
import os
import shutil

import debian

HASHCAT = os.environ["HASHCAT"]
EXHAUSTED, ABORTED, FAILED = 1, 252, 255
# In the order of its allocations; what it frees is in another one.
SIZES = [262144] * 8 + [
    32, 16, 4, 568, 4, 1, 1, 1, 1, 16, 568, 64, 4096, 263168, 67371008, 4096, 140574720, 1,
    138412032, 6488076, 2162688, 2162688]
ASKED = ("cuweir[P]: out of memory: cuMemAlloc asked for 64.2 MiB (67371008 B) of device memory on "
         "device 0, from hashcat+0xA; tried 1 time")


class Hashcat(debian.Case):
    @classmethod
    def setUpClass(cls):
        """It keeps compiled kernels beside itself: a copy, in a directory of its own."""
        super().setUpClass()
        for name in os.listdir(HASHCAT):
            os.symlink(os.path.join(HASHCAT, name), os.path.join(cls.directory, name))
        program = os.path.join(cls.directory, "hashcat")
        os.unlink(program)
        shutil.copy(os.path.join(HASHCAT, "hashcat"), program)
        # All numbers of four digits, none of which has this MD5. The kernels' workload is fixed
        # (-n), which --force lets it, since it would measure what is best.
        cls.command = [program, "--quiet", "--force", "-n", "4", "--backend-ignore-opencl",
                       "--hwmon-disable", "--self-test-disable", "--potfile-disable",
                       "--logfile-disable", "--restore-disable", "-m", "0", "-a", "3",
                       "00000000000000000000000000000000", "?d?d?d?d"]
        cls.plain = cls.run_plain(cls.command)

    def test_alone(self):
        self.assertEqual((self.plain.status, self.plain.out, self.plain.said), (EXHAUSTED, "", []))

    def test_events(self):
        result, events = self.events_of(self.command, 300000000)
        self.assert_same(result, self.plain)
        self.assertEqual([size for word, _, size in events if word == "alloc"], SIZES)
        self.assertEqual(sorted(size for word, _, size in events if word == "free"), sorted(SIZES))
        self.assertEqual([event for event in events if event[0] in ("over", "under")], [
            ("over", "cuMemAlloc", sum(SIZES[:27])),
            ("under", "cuMemFree", sum(SIZES) - 140574720)])
        self.assertEqual({call for word, call, _ in events if word == "alloc"}, {"cuMemAlloc"})
        self.assertEqual({call for word, call, _ in events if word == "free"}, {"cuMemFree"})

    def test_nothing_is_left(self):
        result, report = self.report_of([], self.command)
        total = report["totals"][0]
        self.assertEqual((result.status, len(report["totals"])), (EXHAUSTED, 1))
        self.assertEqual((total["device"], total["kind"], total["current"], total["peak"],
                          total["allocations"], total["frees"]),
                         (0, "device", 0, sum(SIZES), 30, 30))
        self.assertEqual((report["live"], report["failed"], report["unknown_frees"],
                          report["unrecorded"], report["context_lost"]), (0, 0, 0, 0, False))

    def test_limit(self):
        """It asks how much memory there is, is told what the limit has, and asks for no more: as
        on a GPU with that much."""
        result = self.run_under(["--limit", "100MiB"], self.command)
        self.assertEqual((result.status, result.said, result.told), (ABORTED, [
            "* Device #1: Not enough allocatable device memory for this attack.", ""], []))
        self.assert_same(result, self.run_plain(self.command, CUWEIR_SIM_CAPACITY="100MiB"))
        enough = self.run_under(["--limit", "640MiB"], self.command)
        self.assert_same(enough, self.run_plain(self.command, CUWEIR_SIM_CAPACITY="640MiB"))
        self.assertEqual((enough.status, enough.told), (EXHAUSTED, []))

    def test_inject(self):
        result = self.run_under(["-p", "inject:min=64MiB,count=1"], self.command)
        self.assertEqual((result.status, result.told[0]), (FAILED, ASKED))
        self.assertEqual(result.said, ["cuMemAlloc(): out of memory", ""])
        again = self.run_under(["-p", "retry", "-p", "inject:min=64MiB,count=1"], self.command)
        self.assert_same(again, self.plain)
        self.assertEqual((again.status, again.told), (EXHAUSTED, []))


if __name__ == "__main__":
    debian.main(os.path.join(HASHCAT, "hashcat"), "v6.2.6",
                [os.path.join(os.path.dirname(HASHCAT), "nvrtc", "libnvrtc.so")],
                "scripts/fetch-clients")
