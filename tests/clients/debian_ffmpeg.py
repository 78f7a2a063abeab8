# SPDX-License-Identifier: Apache-2.0
"""Debian's ffmpeg: frames that go up to the GPU and come back, and a filter with a module and pools
of its own. It takes the driver with dlopen, and all of its names with dlsym before it uses one."""
import debian

FRAME = 512 * (240 + 120)  # 320x240 of NV12; libavutil aligns rows to the device's 512 bytes
SMALL = 512 * (128 + 64)  # 160x120, of which scale_cuda makes 160x128


def command(*filters):
    """Three frames, and a line with a checksum for each that comes out."""
    return ["ffmpeg", "-nostdin", "-hide_banner", "-loglevel", "error",
            "-init_hw_device", "cuda=gpu:0", "-filter_hw_device", "gpu",
            "-f", "lavfi", "-i", "testsrc=size=320x240:rate=5:duration=0.6",
            "-vf", ",".join(("format=nv12",) + filters), "-f", "framemd5", "-"]


# Backwards, so that all three frames are on the GPU at once.
REVERSED = command("hwupload", "reverse", "hwdownload", "format=nv12")
SCALED = command("hwupload", "scale_cuda=160:120", "hwdownload", "format=nv12")
OUT_OF_MEMORY = [
    "[AVHWDeviceContext @ 0xA] cu->cuMemAlloc(&data, size) failed -> "
    "CUDA_ERROR_OUT_OF_MEMORY: out of memory",
    "[hwupload @ 0xA] Failed to allocate frame to upload to.",
    "Error while filtering: Cannot allocate memory",
    "Failed to inject frame into filter network: Cannot allocate memory",
    "Error while processing the decoded data for stream #0:0",
]


class Ffmpeg(debian.Case):
    def test_same_frames(self):
        """Those of the CPU, whether we are there or not."""
        cpu = self.run_plain(command("reverse"))
        self.assertEqual((cpu.status, cpu.said), (0, []))
        frames = [line.split()[-1] for line in cpu.out.splitlines() if line[0] != "#"]
        self.assertEqual(len(set(frames)), 3)
        self.assert_same(self.run_plain(REVERSED), cpu)
        under = self.run_under([], REVERSED)
        self.assert_same(under, cpu)
        self.assertEqual(under.told, [])

    def test_events(self):
        result, events = self.events_of(REVERSED, 400000)
        self.assert_same(result, self.run_plain(REVERSED))
        self.assertEqual(events, [
            ("alloc", "cuMemAlloc", FRAME),
            ("alloc", "cuMemAlloc", FRAME),
            ("over", "cuMemAlloc", 3 * FRAME),
            ("alloc", "cuMemAlloc", FRAME),
            ("under", "cuMemFree", 2 * FRAME),
            ("free", "cuMemFree", FRAME),
            ("free", "cuMemFree", FRAME),
            ("free", "cuMemFree", FRAME),
        ])

    def test_filter_of_its_own(self):
        """scale_cuda loads a module, and keeps a frame beside the one that it gives away."""
        result, events = self.events_of(SCALED, 300000)
        self.assert_same(result, self.run_plain(SCALED))
        self.assertEqual(events, [
            ("alloc", "cuMemAlloc", SMALL),
            ("alloc", "cuMemAlloc", FRAME),
            ("over", "cuMemAlloc", FRAME + 2 * SMALL),
            ("alloc", "cuMemAlloc", SMALL),
            ("under", "cuMemFree", FRAME + SMALL),
            ("free", "cuMemFree", SMALL),
            ("free", "cuMemFree", SMALL),
            ("free", "cuMemFree", FRAME),
        ])

    def test_nothing_is_left(self):
        """Neither after a run that is right, nor where memory ran out in its midst."""
        for options, status, count, failed in (([], 0, 3, 0), (["--limit", "400000"], 1, 2, 1)):
            result, report = self.report_of(options, REVERSED)
            total = report["totals"][0]
            self.assertEqual(result.status, status)
            self.assertEqual(len(report["totals"]), 1)
            self.assertEqual((total["device"], total["kind"], total["current"], total["peak"],
                              total["allocations"], total["frees"]),
                             (0, "device", 0, count * FRAME, count, count))
            self.assertEqual(total["peak_by"]["call"], "cuMemAlloc")
            self.assertRegex(total["peak_by"]["site"], r"^libavutil\.so\.57\+0x[0-9a-f]+$")
            self.assertEqual((report["live"], report["failed"], report["unknown_frees"],
                              report["unrecorded"], report["context_lost"]),
                             (0, failed, 0, 0, False))

    def test_limit(self):
        """It says and does what it does on a GPU with that much memory, and we say why."""
        result = self.run_under(["--limit", str(2 * FRAME)], REVERSED)
        self.assertEqual((result.status, result.said), (1, OUT_OF_MEMORY))
        self.assert_same(result, self.run_plain(REVERSED, CUWEIR_SIM_CAPACITY=str(2 * FRAME)))
        self.assertEqual(result.told, [
            "cuweir[P]: out of memory: cuMemAlloc asked for 180.0 KiB (184320 B) of device memory "
            "on device 0, from libavutil.so.57+0xA; tried 1 time",
            "cuweir[P]:   in use by this process: device 360.0 KiB",
            "cuweir[P]:   limit 360.0 KiB, of it taken 360.0 KiB, and of that reserved 0 B",
            "cuweir[P]:   the driver has 1023.6 MiB of 1.0 GiB free",
            "cuweir[P]:   holds 360.0 KiB in 2: device memory by cuMemAlloc from "
            "libavutil.so.57+0xA",
            "cuweir[P]:   try: the limit refuses it: raise it, or have -p retry wait for a free",
        ])

    def test_limit_that_is_enough(self):
        result = self.run_under(["--limit", str(3 * FRAME)], REVERSED)
        self.assert_same(result, self.run_plain(REVERSED))
        self.assertEqual((result.status, result.told), (0, []))

    def test_inject(self):
        result = self.run_under(["-p", "inject:nth=2"], REVERSED)
        self.assertEqual((result.status, result.said), (1, OUT_OF_MEMORY))
        self.assertEqual(result.told[:2], [
            "cuweir[P]: out of memory: cuMemAlloc asked for 180.0 KiB (184320 B) of device memory "
            "on device 0, from libavutil.so.57+0xA; tried 1 time",
            "cuweir[P]:   in use by this process: device 180.0 KiB",
        ])
        again = self.run_under(["-p", "retry", "-p", "inject:nth=2"], REVERSED)
        self.assert_same(again, self.run_plain(REVERSED))
        self.assertEqual((again.status, again.told), (0, []))


if __name__ == "__main__":
    debian.main("ffmpeg", "version 5.1")
