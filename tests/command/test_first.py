#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A program's very first call of CUDA: on its device for all policies, in many threads at once.
The foreign runtime is the one that no door but the runtime's hears (D-19)."""
import os
import unittest

from support import APPS, BUILD, SHIM, Case, environment, run

LIBRARIES = {"shared": "lib", "static": "lib", "foreign": "foreign"}
MIB = 1 << 20


def first(way, *arguments, policy="", devices=1, **more):
    settings = {"LD_PRELOAD": SHIM, "LD_LIBRARY_PATH": f"{BUILD}/tests/sim/{LIBRARIES[way]}",
                "CUWEIR_SIM_CAPACITY": "1GiB", "CUWEIR_SIM_DEVICES": devices,
                "CUWEIR_POLICY": policy, **more}
    return run(f"{APPS}/first_{way}", *arguments,
               env={name: str(value) for name, value in settings.items()})


class First(Case):
    def all(self, failed, *arguments, ways=LIBRARIES, **more):
        """The same with a context that is there already, and without."""
        results = []
        for way in ways:
            for before in ((), ("context",)):
                with self.subTest(way=way, before=before):
                    results.append(first(way, *before, *arguments, **more))
                    self.assertEqual((results[-1].status, results[-1].out),
                                     (0, f"failed {failed}\n"), results[-1].err)
        return results

    def test_many_threads(self):
        for way in LIBRARIES:
            for _ in range(25):
                result = first(way, 8, 3, 4096)
                self.assertEqual((result.status, result.out, result.err), (0, "failed 0\n", ""), way)

    def test_limits(self):
        self.all(1, 1, 1, 600 * MIB, policy="limit:50%")
        self.all(0, 1, 1, 512 * MIB, policy="limit:50%")
        self.all(1, 1, 1, 600 * MIB, policy="limit:512MiB")
        self.all(1, 1, 1, 600 * MIB, 1, policy="limit:0=1GiB,1=512MiB", devices=2)
        self.all(0, 1, 1, 600 * MIB, 1, policy="limit:0=512MiB,1=1GiB", devices=2)
        shared = f"limit:512MiB,shared=first-{os.getpid()}"
        self.all(1, 1, 1, 600 * MIB, policy=shared, XDG_RUNTIME_DIR=self.directory)

    def test_device(self):
        self.all(1, 1, 2, 4096, policy="inject:device=0,nth=1")
        self.all(0, 1, 2, 4096, policy="inject:device=1,nth=1", devices=2)
        self.all(1, 1, 2, 4096, 1, policy="inject:device=1,nth=1", devices=2)
        for result in self.all(1, 1, 1, 2048 * MIB, CUWEIR_RUN=1):
            self.assertIn("of device memory on device 0, from first_", result.err)

    def test_act(self):
        runs = self.all(0, 1, 1, 900 * MIB, policy=f"act:total=80%,file={self.directory}/act")
        with open(f"{self.directory}/act", encoding="utf-8") as file:
            lines = [line for line in file.read().splitlines() if " what=over " in line]
        self.assertEqual(len(lines), len(runs))
        for line in lines:
            self.assertIn(" device=0 kind=device mark=858993459 value=943718400 ", line)

    def test_spill(self):
        # Where no context is there, a policy has none to allocate in: not the foreign runtime's.
        self.all(0, 1, 1, 600 * MIB, policy="spill;limit:512MiB", ways=("shared", "static"))
        self.assertEqual(first("foreign", "context", 1, 1, 600 * MIB,
                               policy="spill;limit:512MiB").out, "failed 0\n")

    def test_missing_device(self):
        for way in LIBRARIES:
            result = first(way, 1, 1, 4096, policy="limit:5=1GiB", CUWEIR_STRICT=1)
            self.assertIn("there is no device 5 here; want one below 1", result.err, way)

    def test_nvml_before_cuda(self):
        """NVML's figures are asked, then the program forks: nobody has initialized the driver."""
        code = ("import ctypes, os\n"
                "cuda, nvml = ctypes.CDLL('libcuda.so.1'), ctypes.CDLL('libnvidia-ml.so.1')\n"
                "device, memory = ctypes.c_void_p(), (ctypes.c_uint64 * 3)()\n"
                "assert nvml.nvmlInit_v2() == 0\n"
                "assert nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device)) == 0\n"
                "assert nvml.nvmlDeviceGetMemoryInfo(device, memory) == 0\n"
                "print(cuda.cuDeviceGetCount(ctypes.byref(ctypes.c_int())), flush=True)\n"
                "if os.fork() == 0: os._exit(cuda.cuInit(0))\n"
                "print(os.wait()[1])\n")
        for policy, said in (("limit:512MiB", ""), ("limit:0=512MiB", ""), ("limit:50%", ""),
                             ("limit:5=1GiB", ""),
                             ("act:total=80%,debug=1", "act: total=80%: the driver does not say")):
            with self.subTest(policy=policy):
                result = run("python3", "-c", code, env={
                    "LD_PRELOAD": SHIM, "CUWEIR_POLICY": policy,
                    "LD_LIBRARY_PATH": f"{BUILD}/tests/sim/lib:{BUILD}/tests/sim/nvml"})
                self.assertEqual((result.status, result.out), (0, "3\n0\n"), result.err)
                self.assertIn(said, result.err)
                self.assertEqual(result.err.count("\n"), said != "")

    def test_no_driver(self):
        """The runtime's own error, and nothing of ours."""
        for way in LIBRARIES:
            bare = run(f"{APPS}/first_{way}", 2, 2, 4096, env={
                "LD_LIBRARY_PATH": f"{BUILD}/tests/sim/{LIBRARIES[way]}", "CUWEIR_SIM_DEVICES": "0"})
            hooked = first(way, 2, 2, 4096, policy="limit:1GiB", devices=0)
            self.assertEqual((hooked.status, hooked.out), (bare.status, bare.out), hooked.err)


if __name__ == "__main__":
    environment()
    unittest.main()
