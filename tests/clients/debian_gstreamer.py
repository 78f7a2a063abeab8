# SPDX-License-Identifier: Apache-2.0
"""Debian's GStreamer: its CUDA elements take pitched memory for the frames that go up to the GPU
and come back. They take the driver's names with GModule, in a plug-in that GStreamer opens."""
import os

import debian

FRAME = 640 * 240  # 320 pixels of UYVY in a row
HELD = 1024 * 240  # with the pitch of the simulated driver
UP = ["cudaupload", "!", "video/x-raw(memory:CUDAMemory)", "!", "cudadownload", "!", "video/x-raw",
      "!"]
POOL = ("ERROR: from element /GstPipeline:pipeline0/GstCudaUpload:cudaupload0: "
        "Failed to configure the buffer pool")
STREAM = ("ERROR: from element /GstPipeline:pipeline0/GstVideoTestSrc:videotestsrc0: "
          "Internal data stream error.")
ASKED = ("cuweir[P]: out of memory: cuMemAllocPitch asked for 150.0 KiB (153600 B) of device "
         "memory on device 0, from libgstcuda-1.0.so.0+0xA; tried 1 time")


def command(elements):
    """Three frames, and a line with a checksum for each that comes out. The sink is async=false:
    gst-launch waits for ever, one time in five, where an element fails before the first frame is
    there, and does so without us and where the driver is what fails."""
    return ["gst-launch-1.0", "-q", "videotestsrc", "num-buffers=3", "!",
            "video/x-raw,format=UYVY,width=320,height=240", "!", *elements,
            "checksumsink", "async=false"]


class GStreamer(debian.Case):
    @classmethod
    def setUpClass(cls):
        """What GStreamer finds out of its plug-ins, by a process of its own, it writes down."""
        super().setUpClass()
        cls.own = {"GST_REGISTRY": os.path.join(cls.directory, "registry")}
        cls.plain = cls.run_plain(command(UP))

    def test_same_frames(self):
        """Those of the CPU, whether we are there or not."""
        cpu = self.run_plain(command([]))
        frames = [line.split()[-1] for line in cpu.out.splitlines()]
        self.assertEqual((cpu.status, cpu.said, len(frames), len(set(frames))), (0, [], 3, 3))
        self.assert_same(self.plain, cpu)
        under = self.run_under([], command(UP))
        self.assert_same(under, cpu)
        self.assertEqual(under.told, [])

    def test_events(self):
        """The pool is tried out with a frame that is given back at once."""
        result, events = self.events_of(command(UP), 200000)
        self.assert_same(result, self.plain)
        once = [("over", "cuMemAllocPitch", HELD), ("alloc", "cuMemAllocPitch", FRAME),
                ("under", "cuMemFree", 0), ("free", "cuMemFree", FRAME)]
        self.assertEqual(events, once + once)

    def test_nothing_is_left(self):
        for options, status, count in ([], 0, 2), (["-p", "inject:nth=2"], 1, 1):
            result, report = self.report_of(options, command(UP))
            total = report["totals"][0]
            self.assertEqual((result.status, len(report["totals"])), (status, 1))
            self.assertEqual((total["device"], total["kind"], total["current"], total["peak"],
                              total["allocations"], total["frees"]),
                             (0, "device", 0, HELD, count, count))
            self.assertEqual(total["peak_by"]["call"], "cuMemAllocPitch")
            self.assertRegex(total["peak_by"]["site"], r"^libgstcuda-1\.0\.so\.0\+0x[0-9a-f]+$")
            self.assertEqual((report["live"], report["failed"], report["unknown_frees"],
                              report["unrecorded"], report["context_lost"]),
                             (0, 2 - count, 0, 0, False))

    def test_limit(self):
        """How much more it says than this is as its threads have it, on a small GPU too."""
        result = self.run_under(["--limit", str(FRAME - 1)], command(UP))
        self.assertEqual((result.status, result.out), (1, ""))
        self.assertIn(POOL, result.said)
        self.assertEqual(result.told, [
            ASKED,
            "cuweir[P]:   in use by this process: nothing",
            "cuweir[P]:   limit 149.9 KiB, of it taken 0 B, and of that reserved 0 B",
            "cuweir[P]:   the driver has 1.0 GiB of 1.0 GiB free",
            "cuweir[P]:   try: it is larger than the limit",
        ])
        small = self.run_plain(command(UP), CUWEIR_SIM_CAPACITY=str(FRAME - 1))
        self.assertEqual((small.status, small.out, small.told), (1, "", []))
        self.assertIn(POOL, small.said)

    def test_limit_that_is_enough(self):
        result = self.run_under(["--limit", str(HELD)], command(UP))
        self.assert_same(result, self.plain)
        self.assertEqual((result.status, result.told), (0, []))

    def test_inject(self):
        """Without the frame to try the pool out it does; not without the one after."""
        first = self.run_under(["-p", "inject:nth=1"], command(UP))
        self.assert_same(first, self.plain)
        self.assertEqual((first.status, first.told[0]), (0, ASKED))
        second = self.run_under(["-p", "inject:nth=2"], command(UP))
        self.assertEqual((second.status, second.out), (1, ""))
        self.assertEqual((second.said[0], second.told[0]), (STREAM, ASKED))
        again = self.run_under(["-p", "retry", "-p", "inject:nth=2"], command(UP))
        self.assert_same(again, self.plain)
        self.assertEqual((again.status, again.told), (0, []))


if __name__ == "__main__":
    debian.main("gst-launch-1.0", "version 1.22", ["/usr/lib/*/gstreamer-1.0/libgstnvcodec.so"])
