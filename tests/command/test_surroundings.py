#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Where what a process counts on is not there: environment, /proc, descriptors, memory, SIGCHLD."""
import json
import os
import signal
import unittest

from support import BUILD, CUWEIR, SCENARIO, Case, cuweir, run, scenario

CUDA = ("import ctypes, os, resource, signal, time\n"
        f"c = ctypes.CDLL('{BUILD}/tests/sim/lib/libcudart.so.13')\n"
        "libc, driver = ctypes.CDLL(None), ctypes.CDLL('libcuda.so.1')\n"
        "def take(size=4096):\n p = ctypes.c_void_p()\n"
        " return c.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(size))\n")


def python(code, *options, **more):
    """A program that has the runtime as `c`, and a function that takes memory."""
    return cuweir("run", "--sim", "1G", *options, "--", "python3", "-c", CUDA + code, **more)


def ignore_children():
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)


class Apart(Case):
    def apart(self, *options):
        """What runs a command in namespaces of its own."""
        for start in (("unshare", *options), ("unshare", "-Ur", *options)):
            if run(*start, "true").status == 0:
                return start
        return self.skipTest("no namespaces here")

    def without_proc(self):
        return self.apart("-m", "sh", "-c", 'mount -t tmpfs none /proc && exec "$@"', "sh")


class Command(Apart):
    """Of what starts cuweir run."""
    wrong = ('cuweir: --policy limit:lots: argument 1, "lots": want SIZE, PERCENT%, DEVICE=SIZE, '
             "shared=NAME or safety=SIZE, as in 8GiB or 80% or 0=8GiB,1=512MiB (whole numbers; up "
             "to 100%; devices 0 to 63)\n")

    def test_ignored_children(self):
        """The program gets it as it was."""
        for options in ((), ("--error-exitcode", "9"), ("-p", "limit:1G")):
            with self.subTest(options=options):
                result = python("print(signal.getsignal(signal.SIGCHLD).name); os._exit(5)",
                                *options, preexec_fn=ignore_children)
                self.assertEqual((result.status, result.out, result.err), (5, "SIG_IGN\n", ""))
        result = scenario("alloc a 1", "--error-exitcode", "9", "-q", preexec_fn=ignore_children)
        self.assertEqual(result.status, 9)
        result = cuweir("run", "-p", "limit:lots", "true", preexec_fn=ignore_children)
        self.assertEqual((result.status, result.err), (125, self.wrong))

    def data(self, code, *options, **more):
        """What a program's data file holds that may have come to lie behind descriptor 2."""
        path = os.path.join(self.directory, "data")
        opening = f"def data():\n return os.open('{path}', os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)\n"
        result = python(opening + code, *options, **more)
        self.assertEqual(result.status, 0, result.err)
        with open(path, encoding="utf-8") as file:
            return file.read()

    def test_the_programs_files_behind_descriptor_2(self):
        """Lines of ours are not for them; a standard error that was redirected gets them."""
        end = "os.write(d, b'head\\n'); take(2 << 20); os.write(d, b'tail\\n'); os._exit(0)"
        whole = "head\ntail\n"
        # Started without one.
        self.assertEqual(self.data("d = data(); " + end, "-l", "1M", "-r",
                                   preexec_fn=lambda: os.close(2)), whole)
        # Closed as by a daemon.
        closing = "take(); [os.close(i) for i in (0, 1, 2)]; [data() for i in (0, 1)]; d = data(); "
        self.assertEqual(self.data(closing + "assert d == 2; " + end, "-l", "1M", "-r"), whole)
        # A connection.
        code = ("import socket\na, b = socket.socketpair()\nos.dup2(a.fileno(), 2); take(2 << 20)\n"
                "a.close(); os.close(2); print(b.recv(4096)); os._exit(0)")
        self.assertEqual(python(code, "-l", "1M").out, "b''\n")
        # A pipe that the program reads, too.
        code = (f"os.mkfifo('{self.directory}/fifo'); os.close(2)\n"
                f"d = os.open('{self.directory}/fifo', os.O_RDWR | os.O_NONBLOCK); assert d == 2\n"
                "take(2 << 20)\ntry: print(os.read(d, 4096))\nexcept BlockingIOError: print('none')\n"
                "os._exit(0)")
        self.assertEqual(python(code, "-l", "1M").out, "none\n")
        # Redirected, as freopen does.
        path = os.path.join(self.directory, "err")
        code = f"os.dup2(os.open('{path}', os.O_WRONLY | os.O_CREAT), 2); take(2 << 20); os._exit(0)"
        self.assertEqual(python(code, "-l", "1M").err, "")
        with open(path, encoding="utf-8") as file:
            self.assertIn("out of memory: cudaMalloc asked for 2.0 MiB", file.read())

    def test_closed_standard_files(self):
        for closed in ("<&-", ">&-", "<&- >&-"):
            with self.subTest(closed=closed):
                result = run("sh", "-c", f"{CUWEIR} run -p limit:lots true {closed}")
                self.assertEqual((result.status, result.err), (125, self.wrong))
        for limit, status in (("lots", 125), ("1G", 0)):
            result = run("sh", "-c", f"{CUWEIR} run -p limit:{limit} true <&- >&- 2>&-")
            self.assertEqual(result.status, status)

    def test_no_proc(self):
        start = self.without_proc()
        for options, status in ((("-p", "limit:lots", "true"), 125),
                                (("--error-exitcode", "9", SCENARIO, "dlsym", "alloc a 1"), 9),
                                (("-p", "limit:1G", SCENARIO, "dlsym", "alloc a 1; free a"), 0)):
            with self.subTest(options=options):
                result = run(*start, CUWEIR, "run", "--sim", "1G", *options)
                self.assertEqual((result.status, result.err),
                                 (status, self.wrong if status == 125 else ""))


class Result(Apart):
    """--error-exitcode of processes that are not where it is."""
    daemon = ("r, w = os.pipe()\nif os.fork() == 0:\n os.setsid(); {}\n take(); os.write(w, b'x')\n"
              " os.closerange(0, 3); time.sleep(20)\nos.read(r, 1)")

    def test_chroot(self):
        code = "os.chroot({!r}); take()"
        if os.getuid() != 0:
            self.skipTest("only root can")
        for options in ((), ("-p", "log:file=rows")):
            result = python(code.format(self.directory), "-q", "--error-exitcode", "9", *options)
            self.assertEqual((result.status, result.err), (9, ""))
        result = python(self.daemon.format(f"os.chroot({self.directory!r})"), "-q",
                        "--error-exitcode", "9")
        self.assertEqual((result.status, result.err), (0, ""))

    def test_file_that_is_not_seen(self):
        """Its directory is another one there; told, unless it is over."""
        os.mkdir(f"{self.directory}/tmp")
        start = self.apart("-m", "sh", "-c", f"mount -t tmpfs none {self.directory}/tmp && exec "
                           '"$@"', "sh")
        place = {"TMPDIR": f"{self.directory}/tmp"}
        result = cuweir("run", "--sim", "1G", "--error-exitcode", "9", *start, SCENARIO, "dlsym",
                        "alloc a 1", env=place)
        self.assertEqual(result.status, 0)
        self.assertRegex(result.lines, r'^cuweir\[P\]: CUWEIR_RESULT="\S+/cuweir-result-\S+": it '
                         r"cannot be used \(error 2\); .* this process does not count\n$")
        # The shell waits for cuweir run, which is gone then.
        code = (f"{CUWEIR} run --sim 1G --error-exitcode 9 sh -c "
                "'(while kill -0 $PPID; do sleep 0.01; done 2>/dev/null; "
                f"exec {SCENARIO} dlsym \"alloc a 1\") & exit 0'; echo $?")
        result = run("sh", "-c", code, env=place)
        self.assertEqual((result.out, result.err), ("0\n", ""))

    def test_daemon_of_another_time(self):
        start = self.apart("-T", "--boottime", "86400")
        result = cuweir("run", "--sim", "1G", "-q", "--error-exitcode", "9", *start, "python3",
                        "-c", CUDA + self.daemon.format(""))
        self.assertEqual((result.status, result.err), (0, ""))

    def test_daemon_without_proc(self):
        start = self.without_proc()
        result = run(*start, CUWEIR, "run", "--sim", "1G", "-q", "--error-exitcode", "9", "python3",
                     "-c", CUDA + self.daemon.format(""))
        self.assertEqual((result.status, result.err), (0, ""))


class Memory(Case):
    """Where the program may not have more of it."""
    no_sites = r"cuweir\[P\]: no memory to sum up call sites in: they are not listed\n"
    used = ("def limit(more):\n"
            " size = int(open('/proc/self/statm').read().split()[0]) * 4096 + more\n"
            " resource.setrlimit(resource.RLIMIT_AS, (size if more < 1 << 40 else -1, -1))\n")

    def test_report(self):
        """It is whole, however little there is; what is missing is told."""
        code = self.used + "take(); take(); limit(0); libc.exit(0)"
        result = python(code, "--report=json")
        self.assertEqual(result.status, 0, result.err)
        self.assertRegex(result.lines, f"^{self.no_sites}")
        report = json.loads(result.err.splitlines()[1])
        self.assertEqual((report["live"], report["totals"][0]["peak"], report["live_by_site"]),
                         (2, 8192, []))
        self.assertRegex(python(code, "--report").lines,
                         f"2 allocations still live\n{self.no_sites}")

    def test_stacks(self):
        result = python(self.used + "limit(6 << 20); take(); limit(1 << 40); print(take())",
                        "--stack=8")
        self.assertEqual((result.status, result.out, result.lines), (
            0, "0\n", "cuweir[P]: CUWEIR_STACK: no memory to keep stacks in; call sites are single "
            "addresses\n"))


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
