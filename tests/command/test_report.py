#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The report as text and JSON, the out-of-memory block, and symbolizing them."""
import json
import re
import subprocess
import unittest

from support import APPS, BUILD, CUWEIR, SCENARIO, Case, cuweir, environment, run, scenario

LEAKS = ("alloc a 8192; alloc b 8192; alloc c 8192; alloc t 100000; free t; managed m 4096; "
         "host h 1000; free h; expect 2 alloc z 2G")


class Report(Case):
    def test_text(self):
        result = scenario("alloc a 8192; alloc b 8192; alloc t 100000; free t; host h 1000; "
                          "free h", "--report", way="gpa")
        site = "cuMemAlloc from scenario+0xA"
        leak = "cuweir[P]: still allocated: 0xA, 8192 B, device 0, by cuMemAlloc, called from " \
               "scenario+0xA\n"
        self.assertEqual(re.sub(r"after \d+\.\d s", "after N s", result.lines), (
            "cuweir[P]: report when libcuweir.so is closed; frees by libraries that are closed "
            "later are not in it\n"
            "cuweir[P]: device 0, device memory: 16384 B (16.0 KiB) in use, peak 116384 B (113.6 "
            "KiB), 3 allocations, 1 frees\n"
            f"cuweir[P]:   its peak came after N s, by {site}\n"
            "cuweir[P]: device 0, host memory: 0 B (0 B) in use, peak 1000 B (1000 B), 1 "
            "allocations, 1 frees\n"
            "cuweir[P]:   its peak came after N s, by cuMemAllocHost from scenario+0xA\n"
            "cuweir[P]: 0 allocations failed for want of memory, 0 retries\n"
            "cuweir[P]: 0 frees of unknown addresses, 0 allocations without a record\n"
            "cuweir[P]: 2 allocations still live\n"
            f"cuweir[P]:   16384 B (16.0 KiB) in 2 of 8192 B, device memory of device 0, by {site}"
            f"\n{leak}{leak}"
            f"cuweir[P]: module scenario is {APPS}/scenario\n"))

    def report(self, script, *options, way="dlsym"):
        result = scenario(script, "-q", "--report=json", *options, way=way)
        self.assertEqual(result.status, 0, result.err)
        line, = result.err.splitlines()
        return json.loads(line)

    def test_json(self):
        report = self.report(LEAKS)
        device, managed, host = report["totals"]
        self.assertEqual((device["device"], device["kind"], device["current"], device["peak"],
                          device["held"], device["allocations"], device["frees"]),
                         (0, "device", 24576, 124576, 0, 4, 1))
        self.assertEqual(device["peak_by"]["call"], "cuMemAlloc")
        self.assertRegex(device["peak_by"]["site"], r"^scenario\+0x[0-9a-f]+$")
        self.assertGreaterEqual(device["peak_after_ms"], 0)
        self.assertEqual((managed["kind"], managed["current"]), ("managed", 4096))
        self.assertEqual((host["kind"], host["current"], host["peak"]), ("host", 0, 1000))
        self.assertEqual([report[name] for name in (
            "cuweir", "version", "live", "failed", "retries", "unknown_frees", "unrecorded",
            "context_lost", "sites")], ["report", 1, 4, 1, 0, 0, 0, False, 2])
        first, second = report["live_by_site"]
        self.assertEqual([first[name] for name in ("bytes", "count", "smallest", "largest",
                                                   "device", "kind", "call")],
                         [24576, 3, 8192, 8192, 0, "device", "cuMemAlloc"])
        self.assertEqual((second["bytes"], second["call"]), (4096, "cuMemAllocManaged"))
        self.assertEqual(report["modules"], [{"name": "scenario", "path": f"{APPS}/scenario"}])

    def test_json_counts(self):
        report = self.report("expect 2 alloc z 2G; expect 2 alloc z 2G", "-p", "example:1",
                             "--max-retries", "3")
        self.assertEqual((report["failed"], report["retries"], report["totals"],
                          report["live_by_site"], report["modules"]), (2, 6, [], [], []))

    def test_json_of_names(self):
        """Names of files may hold anything."""
        name = f'{self.directory}/we"ird \\ é \x01'
        run("cp", f"{APPS}/scenario", name)
        result = cuweir("run", "-q", "--sim", "1G", "--report=json", "-o",
                        f"{self.directory}/report", name, "dlsym", "alloc a 100")
        self.assertEqual((result.status, result.err), (0, ""))
        with open(f"{self.directory}/report", encoding="utf-8") as file:
            report = json.load(file)
        self.assertEqual(report["modules"][0]["path"], name)
        self.assertTrue(report["live_by_site"][0]["site"].startswith('we"ird \\ é \x01+0x'))

    def test_json_of_bytes(self):
        name = f"{self.directory}/a".encode() + b"\xff\xc3"
        with open(f"{APPS}/scenario", "rb") as source, open(name, "wb") as copy:
            copy.write(source.read())
        run("chmod", "+x", name.decode(errors="surrogateescape"))
        report = json.loads(cuweir("run", "-q", "--sim", "1G", "-rjson",
                                   name.decode(errors="surrogateescape"), "dlsym",
                                   "alloc a 1").err)
        self.assertEqual(report["modules"][0]["path"].encode(errors="surrogateescape"), name)


    def test_json_of_many(self):
        """Larger than what it is gathered in: the most sites, the deepest stacks, a long name."""
        source = self.file("deep.c", "#include <dlfcn.h>\n"
                           "static int (*take)(unsigned long *, unsigned long);\n"
                           "static __attribute__((noinline)) int deep(int depth, unsigned path)\n"
                           "{\n\tunsigned long p;\n\tvolatile int more = 0;\n"
                           "\tif (depth == 0) more = take(&p, 100);\n"
                           "\telse if (path & 1) more += deep(depth - 1, path >> 1);\n"
                           "\telse more = more + deep(depth - 1, path >> 1) + 1;\n"
                           "\treturn more;\n}\n"
                           "int main(void)\n{\n"
                           '\tvoid *cuda = dlopen("libcudart.so.13", RTLD_NOW);\n'
                           "\ttake = (int (*)(unsigned long *, unsigned long))dlsym(cuda, "
                           '"cudaMalloc");\n'
                           "\tfor (unsigned i = 0; i < 1024; i++) deep(30, i);\n\treturn 0;\n}\n")
        program = f"{self.directory}/{100 * 'n'}"
        done = run("cc", "-O1", "-fno-optimize-sibling-calls", "-o", program, source)
        self.assertEqual(done.status, 0, done.err)
        result = cuweir("run", "-q", "--sim", "1G", "--stack=32", "--report=json", program)
        self.assertGreater(len(result.err), 2 << 20)
        report = json.loads(result.err)
        self.assertEqual((report["live"], report["sites"], len(report["live_by_site"])),
                         (1024, 1024, 1024))
        self.assertEqual({len(site["callers"]) for site in report["live_by_site"]}, {31})


class OutOfMemory(Case):
    def block(self, script, *options, way="dlsym", **more):
        result = scenario(script, *options, way=way, **more)
        self.assertEqual(result.status, 0, result.err)
        return result.lines

    def test_driver(self):
        self.assertEqual(self.block("alloc a 600M; managed m 1M; host h 8192; "
                                    "expect 2 alloc b 500M"), (
            "cuweir[P]: out of memory: cuMemAlloc asked for 500.0 MiB (524288000 B) of device "
            "memory on device 0, from scenario+0xA; tried 1 time\n"
            "cuweir[P]:   in use by this process: device 600.0 MiB, managed 1.0 MiB, host 8.0 KiB"
            "\n"
            "cuweir[P]:   the driver has 424.0 MiB of 1.0 GiB free\n"
            "cuweir[P]:   holds 600.0 MiB in 1: device memory by cuMemAlloc from scenario+0xA\n"
            "cuweir[P]:   holds 1.0 MiB in 1: managed memory by cuMemAllocManaged from "
            "scenario+0xA\n"
            "cuweir[P]:   holds 8.0 KiB in 1: host memory by cuMemAllocHost from scenario+0xA\n"
            "cuweir[P]:   try: give back what the largest holders keep; -p retry, if other threads "
            "will; other processes on this GPU (nvidia-smi)\n"))

    def test_limit(self):
        text = self.block("alloc a 600K; expect 2 alloc b 500K", "-l", "1M")
        self.assertIn("cuweir[P]:   limit 1.0 MiB, of it taken 600.0 KiB, and of that reserved 0 "
                      "B\n", text)
        self.assertIn("  try: the limit refuses it: raise it, or have -p retry wait for a free\n",
                      text)
        self.assertIn("  try: it is larger than the limit\n",
                      self.block("expect 2 alloc b 2M", "-l", "1M"))
        # 1000 B were asked for, and 5120 would be taken.
        self.assertIn("  try: with its padding it is larger than the limit\n",
                      self.block("expect 2 pitch a 100 10", "-l", "5000"))
        self.assertIn("  try: the limit refuses it: raise it, or have -p retry wait for a free\n",
                      self.block("alloc a 3000; expect 2 pitch b 100 10", "-l", "6000"))

    def test_host_memory(self):
        """What the device has is not what is short."""
        text = self.block("alloc a 600M; expect 2 host h 1048576G")
        self.assertIn("out of memory: cuMemAllocHost asked for 1.0 PiB", text)
        self.assertNotIn("the driver has", text)
        self.assertIn("  try: the host's memory is short, or what may be locked of it (ulimit -l, "
                      "other programs' pinned memory)\n", text)

    def test_shared_limit(self):
        """What others have of it is not in our books, and is said none the less."""
        options = ("-l", "1M,shared=oom")
        place = {"XDG_RUNTIME_DIR": self.directory}
        other = subprocess.Popen([CUWEIR, "run", "--sim", "1GiB", *options, SCENARIO, "dlsym",
                                  "alloc a 700K; echo ready; sleep 60000"], text=True,
                                 stdout=subprocess.PIPE, env=environment(**place))
        try:
            self.assertEqual(other.stdout.readline(), "ready\n")
            text = self.block("alloc a 200K; expect 2 alloc b 200K; free a", *options, env=place)
        finally:
            other.kill()
            other.communicate()
        self.assertIn("  of that, programs are told 124.0 KiB\n", text)
        self.assertIn("  try: a policy leaves less than that, by what other processes have of a "
                      "limit that they share: raise it, or have -p retry wait for them\n", text)

    def test_less_is_told(self):
        """Of a full device it is not the policies that leave nothing."""
        text = self.block("alloc a 900M; expect 2 alloc b 200M", "-p",
                          "limit:4GiB,safety=256MiB")
        self.assertIn("  of that, programs are told 0 B\n", text)
        self.assertIn("  try: give back what the largest holders keep;", text)

    def test_larger_than_the_device(self):
        text = self.block("expect 2 alloc b 2G")
        self.assertIn("  in use by this process: nothing\n", text)
        self.assertIn("  try: it is larger than the device\n", text)

    def test_policy(self):
        text = self.block("expect 2 alloc b 1K", "-p", "inject:nth=1")
        self.assertIn("  try: there is enough: a policy refuses it, or it is not to be had", text)

    def test_capture(self):
        """While one is open the driver is not asked, and the capture survives."""
        text = self.block("alloc a 1K; capture begin s; expect 2 alloc b 1K; capture end s",
                          "-p", "inject:nth=2", env={"CUWEIR_SIM_STRICT_CAPTURE": "1"})
        self.assertIn("out of memory: cuMemAlloc asked for 1.0 KiB", text)
        self.assertNotIn("the driver has", text)

    def test_not_wanted(self):
        self.assertEqual(self.block("expect 2 alloc b 2G", "-q"), "")
        bare = run("sh", "-c", f'eval "$({BUILD}/command/cuweir run --sim 1G --print-env)"; '
                               f"unset CUWEIR_RUN; {APPS}/scenario dlsym 'expect 2 alloc b 2G'")
        self.assertEqual((bare.status, bare.err), (0, ""))

    def test_not_often(self):
        text = self.block("repeat 100 { expect 2 alloc b 2G }")
        self.assertEqual(text.count("out of memory"), 1)

    def test_threads(self):
        text = self.block("threads 8 { repeat 20 { expect 2 alloc .b 2G } }; join")
        self.assertEqual(text.count("out of memory"), 1)
        self.assertEqual(text.count("\n"), 4)


class Symbolize(Case):
    def test_text(self):
        report = scenario("alloc a 8192", "-r", way="gpa").err
        result = cuweir("symbolize", stdin=report)
        self.assertEqual((result.status, result.err), (0, ""))
        self.assertRegex(result.out, r"by cuMemAlloc from scenario\+0x[0-9a-f]+ \(do_allocate at "
                                     r"\S*tests/apps/commands\.c:\d+\)\n")
        self.assertEqual(re.sub(r" \(do_allocate at [^)]*\)", "", result.out), report)

    def test_json_and_file(self):
        path = self.file("report", "before\n" + scenario("alloc a 8192", "-q", "-rjson").err)
        result = cuweir("symbolize", path)
        self.assertEqual(result.status, 0, result.err)
        before, line = result.out.splitlines()
        self.assertEqual(before, "before")
        place, = json.loads(line)["live_by_site"]
        self.assertEqual(place["function"], "do_allocate")
        self.assertRegex(place["file"], r"tests/apps/commands\.c$")
        with open(f"{place['file']}", encoding="utf-8") as file:
            self.assertIn("way.", file.read().splitlines()[place["line"] - 1])

    def test_fixed_address(self):
        """A program that is not position-independent: offsets begin at its first segment."""
        source = self.file("fixed.c", "#include <dlfcn.h>\n"
                           "int main(void)\n{\n\tunsigned long p;\n"
                           '\tvoid *cuda = dlopen("libcudart.so.13", RTLD_NOW);\n'
                           "\tint (*take)(unsigned long *, unsigned long) = (int (*)(unsigned "
                           'long *, unsigned long))dlsym(cuda, "cudaMalloc");\n'
                           "\treturn take(&p, 4096);\n}\n")
        program = f"{self.directory}/fixed"
        done = run("cc", "-g", "-no-pie", "-o", program, source)
        self.assertEqual(done.status, 0, done.err)
        report = cuweir("run", "-q", "--sim", "1G", "-r", program).err
        self.assertRegex(cuweir("symbolize", stdin=report).out,
                         r"fixed\+0x[0-9a-f]+ \(main at \S*/fixed\.c:7\)")

    def test_module_given(self):
        log = re.sub("module .*", "", scenario("alloc a 8192", "-r").err)
        self.assertEqual(cuweir("symbolize", stdin=log).out, log)
        self.assertIn("(do_allocate at", cuweir("symbolize", "-m", f"{APPS}/scenario",
                                                stdin=log).out)

    def test_wrong(self):
        result = cuweir("symbolize", "/no/such/file")
        self.assertEqual((result.status, result.out, result.err),
                         (125, "", "cuweir: symbolize: /no/such/file: No such file or directory\n"))
        for arguments, line in (
                (("-m", "./nope"), "-m ./nope: there is no such file"),
                (("-m",), "argument -m/--module: expected one argument (cuweir symbolize --help)"),
                (("-x",), "unrecognized arguments: -x (cuweir symbolize --help)"),
                (("a", "b"), "unrecognized arguments: b (cuweir symbolize --help)")):
            result = cuweir("symbolize", *arguments)
            self.assertEqual((result.status, result.out, result.err),
                             (125, "", f"cuweir: symbolize: {line}\n"))
        result = cuweir("symbolize", "-m", "/bin/true", stdin="nothing")
        self.assertEqual((result.status, result.out, result.err), (
            0, "nothing\n", "cuweir: symbolize: -m /bin/true: no call site is in a module of that "
            "name\n"))

    def test_full_disk(self):
        log = self.file("log", "line\n")
        for arguments, who in ((("symbolize", log), "symbolize: "), (("--help",), ""),
                               (("run", "--help"), ""), (("policies",), ""), (("check",), ""),
                               (("run", "--print-env"), ""), (("completions", "zsh"), "")):
            result = run("sh", "-c", 'exec "$@" >/dev/full', "sh", CUWEIR, *arguments)
            self.assertEqual((result.status, result.err), (
                125, f"cuweir: {who}standard output: No space left on device\n"), arguments)


if __name__ == "__main__":
    unittest.main()
