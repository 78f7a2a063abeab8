#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cuweir run, check and policies, by value; what is wrong is in test_wrong.py."""
import os
import pty
import shutil
import signal
import subprocess
import unittest

from support import APPS, BUILD, CUWEIR, PLUGINS, SCENARIO, SHIM, Case, cuweir, environment
from support import run, scenario

TRIAL = f"{BUILD}/tests/command/trial.so"
PAIR = "alloc a 8192; free a"


class Transparency(Case):
    def test_standard_files(self):
        data = bytes(range(256)) * 300
        done = subprocess.run([CUWEIR, "run", "-p", "log", "--", "cat"], input=data,
                              capture_output=True, env=environment(), check=False, timeout=60)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        self.assertTrue(done.stdout == data)
        for options in ((), ("-p", "log"), ("--error-exitcode", "9")):
            result = cuweir("run", *options, "--", "sh", "-c", "echo out; echo err >&2; exit 7")
            self.assertEqual((result.status, result.out, result.err), (7, "out\n", "err\n"))

    def test_descriptors_and_arguments(self):
        bare = run("ls", "/proc/self/fd")
        watched = cuweir("run", "-p", "log", "--", "ls", "/proc/self/fd")
        self.assertEqual(watched.out, bare.out)
        program = self.file("a b;c'd", '#!/bin/sh\nfor a in "$0" "$@"; do echo "[$a]"; done\n',
                            0o755)
        result = cuweir("run", program, "-p", "x y", "", "--", "*")
        self.assertEqual(result.out, f"[{program}]\n[-p]\n[x y]\n[]\n[--]\n[*]\n")
        # As execvp has it: no first line, so the shell's.
        program = self.file("bare", "echo bare $1\n", 0o755)
        self.assertEqual(cuweir("run", program, "1").out, "bare 1\n")

    def test_process(self):
        with subprocess.Popen([CUWEIR, "run", "sh", "-c", "echo $$"], stdout=subprocess.PIPE,
                              env=environment(), text=True) as process:
            self.assertEqual(process.communicate()[0], f"{process.pid}\n")

    def test_status_and_signals(self):
        for options in ((), ("--error-exitcode", "9")):
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGKILL, signal.SIGABRT):
                result = cuweir("run", *options, "sh", "-c", f"kill -{int(number)} $$")
                self.assertEqual(result.status, -number, options)
            for status in (1, 125, 255):
                self.assertEqual(cuweir("run", *options, "sh", "-c", f"exit {status}").status,
                                 status)

    def test_forwarded_signals(self):
        script = ("trap 'echo got; exit 3' {0}; echo ready; "
                  "while :; do sleep 0.05; done")
        for options in ((), ("--error-exitcode", "9")):
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1,
                           signal.SIGQUIT):
                with subprocess.Popen([CUWEIR, "run", *options, "sh", "-c",
                                       script.format(int(number))],
                                      stdout=subprocess.PIPE, env=environment(),
                                      text=True) as process:
                    self.assertEqual(process.stdout.readline(), "ready\n")
                    process.send_signal(number)
                    self.assertEqual(process.communicate(timeout=20)[0], "got\n")
                    self.assertEqual(process.returncode, 3, (options, number))

    def test_terminal(self):
        """What the terminal sends to all of its group comes once, and the program's end stays."""
        program = self.file("count.py", "import signal, sys, time\ngot = []\n"
                            "signal.signal(signal.SIGINT, lambda number, frame: got.append(1))\n"
                            "print('ready', flush=True)\nend = time.time() + 1\n"
                            "while time.time() < end:\n    time.sleep(0.05)\n"
                            "print('got', len(got))\nsys.exit(4)\n")
        for options in ((), ("--error-exitcode", "9")):
            pid, terminal = pty.fork()
            if pid == 0:
                os.execve(CUWEIR, ["cuweir", "run", *options, "python3", program], environment())
            text = b""
            while b"ready" not in text:
                text += os.read(terminal, 1000)
            os.write(terminal, b"\x03")
            try:
                while piece := os.read(terminal, 1000):
                    text += piece
            except OSError:
                pass
            os.close(terminal)
            self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 4)
            self.assertIn(b"got 1\r\n", text)

    def test_twice(self):
        result = cuweir("run", "-r", CUWEIR, "run", "--sim", "1G", SCENARIO, "dlsym", PAIR)
        self.assertEqual((result.status, result.err.count("report when")), (0, 1))

    def test_verbose(self):
        result = scenario(PAIR, "-v", way="gpa")
        self.assertEqual((result.status, result.err),
                         (0, f"cuweir: {SCENARIO}: CUDA: opens libcuda.so.1 by itself\n"))

    def test_ignored_signal(self):
        result = run("sh", "-c", f"trap '' HUP; {CUWEIR} run --error-exitcode 9 sh -c "
                                 "'kill -HUP $PPID; kill -HUP $$; echo alive'")
        self.assertEqual((result.status, result.out), (0, "alive\n"))

    def test_existing_preload(self):
        first = f"{PLUGINS}/no_entry.so"
        result = cuweir("run", "sh", "-c", 'echo "$LD_PRELOAD"', env={"LD_PRELOAD": first})
        self.assertEqual(result.out, f"{first}:{SHIM}\n")
        result = cuweir("run", "sh", "-c", 'echo "$LD_PRELOAD"', env={"LD_PRELOAD": SHIM})
        self.assertEqual(result.out, f"{SHIM}\n")


class Watching(Case):
    def test_limit_and_chain(self):
        result = scenario("alloc a 1000; expect 2 alloc b 25; free a; alloc b 1024; free b",
                          "-q", "-p", "log", "--limit", "1K")
        self.assertEqual(result.status, 0, result.err)
        self.assertEqual([line.split()[1] for line in result.err.splitlines()],
                         ["+", "!", "-", "+", "-"])
        # The environment's chain stays in front of the limit.
        result = scenario("expect 2 alloc a 1025", "-q", "--limit", "1K",
                          env={"CUWEIR_POLICY": "log"})
        self.assertEqual((result.status, result.err.count(" ! ")), (0, 1), result.err)

    def test_debug_and_log(self):
        said = ("cuweir[P]: allocated 8.0 KiB (8192 B) device by cuMemAlloc, device 0, 0xA, total "
                "8.0 KiB (8192 B)\ncuweir[P]: freed 8.0 KiB (8192 B) device by cuMemFree, device "
                "0, 0xA, total 0 B (0 B)\n")
        result = scenario(PAIR, "-d")
        self.assertEqual((result.status, result.lines), (0, said))
        result = scenario(PAIR, "-d", "-l", "8GiB", "-p", "retry")
        self.assertEqual((result.status, result.lines), (0, said))
        result = scenario(PAIR, "-d", "-r", "-o", f"{self.directory}/log.%p")
        self.assertEqual((result.status, result.err), (0, ""))
        name, = os.listdir(self.directory)
        with open(f"{self.directory}/{name}", encoding="utf-8") as file:
            text = file.read()
        self.assertEqual(text.count(f"cuweir[{name[4:]}]: "), text.count("\n"))
        self.assertIn("0 allocations still live", text)

    def test_inject_that_selects_nothing(self):
        for policy, err in (
                ("inject:call=cudaMaloc", "cuweir[P]: inject: none of 2 allocations was selected: "
                                          "nothing has failed\n"),
                ("inject:call=cuMemAlloc,nth=9", "")):
            result = scenario("alloc a 8; alloc b 8; free a; free b", "-p", policy)
            self.assertEqual((result.status, result.lines), (0, err))
        self.assertEqual(scenario("", "-p", "inject:call=cudaMaloc").err, "")

    def test_retry_below_spill(self):
        """Attempts behind a policy that serves are not taken for ten seconds of them."""
        result = scenario("alloc a 100M; alloc b 200M; free a; free b", "-p", "spill", "-p",
                          "retry:max=2", "-l", "200MiB")
        self.assertEqual((result.status, result.lines), (
            0, "cuweir[P]: spill: device memory ran out; 209715200 bytes of cuMemAlloc, and what "
            "follows, are managed memory\n"))

    def test_writes_bring_no_signal(self):
        """What cannot be written is lost and told of, and the program's status is its own."""
        reader, writer = os.pipe()
        os.close(reader)
        for options in (("-r",), ("-d",), ("-p", "log"), ("-v", "-v")):
            with self.subTest(options=options):
                done = subprocess.run([CUWEIR, "run", "--sim", "1G", *options, SCENARIO, "dlsym",
                                       "alloc a 8192"], stderr=writer, env=environment(),
                                      preexec_fn=lambda: signal.signal(signal.SIGPIPE,
                                                                       signal.SIG_DFL), check=False)
                self.assertEqual(done.returncode, 0)
        os.close(writer)
        lost = r"cuweir\[P\]: CUWEIR_LOG=\"FILE\": cannot be written \(error %d\); lines are lost\n"
        rows = (("-d -o", lost % 27),
                ("-p log:file=", r"cuweir\[P\]: log: a row could not be written to FILE: File too large"
                 r"\ncuweir\[P\]: log: \d+ rows are missing in FILE\n"),
                ("-p log:flush=block,file=", r"(cuweir\[P\]: log: .*\n)+"))
        for number, (options, want) in enumerate(rows):
            file = f"{self.directory}/log{number}"
            with self.subTest(options=options):
                result = run("sh", "-c", f"ulimit -f 1; exec {CUWEIR} run --sim 1G {options}"
                             f"{file} {SCENARIO} dlsym '{99 * 'alloc a 8192; free a; '}'",
                             cwd=self.directory)
                self.assertEqual(result.status, 0, result.err)
                self.assertRegex(result.lines.replace(file, "FILE"), f"^{want}$")
        # A line that there is room for a part of: as much of it as there is.
        file = f"{self.directory}/part"
        result = run("prlimit", "--fsize=50", CUWEIR, "run", "--sim", "1G", "-d", "-o", file,
                     SCENARIO, "dlsym", "alloc a 8192")
        self.assertEqual((result.status, os.path.getsize(file)), (0, 50), result.err)
        self.assertRegex(result.lines.replace(file, "FILE"), f"^{lost % 27}$")
        result = scenario(PAIR, "--report=json", "-o", "/dev/full")
        self.assertEqual(result.status, 0)
        self.assertRegex(result.lines.replace("/dev/full", "FILE"), f"^{lost % 28}$")

    def test_closed_descriptors(self):
        """The program's files are its own, whatever it closes; no row is lost."""
        data, rows = f"{self.directory}/data", f"{self.directory}/rows"
        for options, lines in ((("-p", f"log:file={rows}"), 8),
                               (("-p", f"log:file={rows},flush=block"), 8),
                               (("-p", "log", "-o", rows), 8), (("-d", "-o", rows), 8)):
            with self.subTest(options=options):
                result = cuweir("run", "--sim", "1G", *options, f"{APPS}/careless", "fds", data)
                self.assertEqual((result.status, result.out, result.err), (0, "size 4\n", ""))
                with open(rows, encoding="utf-8") as file:
                    self.assertEqual(len(file.read().splitlines()), lines)
                os.unlink(rows)

    def test_runtime_opened_again(self):
        """Elsewhere, more often than there are places to remember, beside libraries that call it."""
        for more in ((), ("moving",)):
            for options in ((), ("-d", "-o", "/dev/null")):
                result = cuweir("run", "--sim", "1G", *options, f"{APPS}/reopen",
                                f"{APPS}/reopen_plugin.so", "libcudart.so.13", "20", *more)
                self.assertEqual((result.status, result.out, result.err),
                                 (0, "failed 0, places 20\n", ""))

    def test_contexts_that_end(self):
        """While other threads' run out of memory, and their handles come again at once."""
        for options in ((), ("-p", "pool"), ("-p", "spill"), ("-p", "pool", "-p",
                                                               "retry:max=1,backoff=1us..2us"),
                        ("-p", "limit:512MiB", "-p", "pool", "-d", "-o", "/dev/null")):
            with self.subTest(options=options):
                result = cuweir("run", "-q", "--sim", "1G", *options, f"{APPS}/contexts", "300")
                self.assertEqual((result.status, result.out), (0, "wrong 0\n"), result.err)

    def test_cancelled_threads(self):
        for options in (("-d", "-o", "/dev/null"), ("-p", "log", "-o", "/dev/null"),
                        ("-p", f"log:flush=block,rotate=16K,file={self.directory}/rows"),
                        ("-p", "pool", "-p", f"log:file={self.directory}/rows")):
            with self.subTest(options=options):
                result = cuweir("run", "--sim", "1G", *options, f"{APPS}/careless", "cancel")
                self.assertEqual((result.status, result.out), (0, "within 0, left 0\n"))

    def test_trial_leaves_no_file(self):
        for options in (("-l", "1G,shared=t", "-p", "limit:lots"), ("-l", "1G,shared=t",
                                                                   "--print-env")):
            cuweir("run", *options, SCENARIO, env={"XDG_RUNTIME_DIR": self.directory})
            self.assertEqual(os.listdir(self.directory), [])

    def test_relative_paths(self):
        """The program goes elsewhere before its first CUDA call."""
        os.makedirs(f"{self.directory}/a b")
        shutil.copy(TRIAL, f"{self.directory}/a b/here.so")
        result = cuweir("run", "--sim", "1G", "-p", "./here.so", "-o", "log", "sh", "-c",
                        f"cd / && exec {SCENARIO} dlsym '{PAIR}'", cwd=f"{self.directory}/a b")
        self.assertEqual((result.status, result.err), (0, ""))
        with open(f"{self.directory}/a b/log", encoding="utf-8") as file:
            self.assertEqual(file.read(), "trial: a line\n")

    def test_files_of_policies(self):
        """They are meant from where the program was started, too."""
        for options, name in ((("-p", "log:file=rows"), "rows"),
                              (("-p", "act:total=1,file=lines"), "lines")):
            code = (f"import ctypes, os; c = ctypes.CDLL('{BUILD}/tests/sim/lib/libcudart.so.13');"
                    "os.chdir('/'); p = ctypes.c_void_p();"
                    "c.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(4096))")
            result = cuweir("run", "--sim", "1G", *options, "python3", "-c", code,
                            cwd=self.directory)
            self.assertEqual((result.status, result.err), (0, ""))
            self.assertGreater(os.path.getsize(f"{self.directory}/{name}"), 20)
        # By the variables alone, the shim's log as well.
        result = run(SCENARIO, "dlsym", PAIR, cwd=self.directory, env={
            "LD_PRELOAD": SHIM, "CUWEIR_LOG": "log", "CUWEIR_DEBUG": "1",
            "LD_LIBRARY_PATH": f"{BUILD}/tests/sim/lib"})
        self.assertEqual((result.status, os.path.getsize(f"{self.directory}/log") > 100), (0, True))

    def test_simulation(self):
        result = cuweir("run", "--sim", "512M:3", SCENARIO, "gpa", "device 2; device 3; info")
        self.assertEqual((result.status, result.out), (1, ""), result.err)
        result = cuweir("run", "--sim", "512M:3", SCENARIO, "gpa", "device 2; info")
        self.assertEqual((result.status, result.out), (0, "info 536870912 536870912\n"))

    def test_simulated_nvml(self):
        code = ("import ctypes; n = ctypes.CDLL('libnvidia-ml.so.1'); n.nvmlInit_v2();"
                "d = ctypes.c_void_p(); m = (ctypes.c_uint64 * 3)();"
                "n.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(d));"
                "print(n.nvmlDeviceGetMemoryInfo(d, m), m[0])")
        result = cuweir("run", "--sim", "512M", "python3", "-c", code)
        self.assertEqual((result.status, result.out), (0, "0 536870912\n"), result.err)

    def test_simulation_and_nvidias_runtime(self):
        """Told before it runs, to whoever asked for the simulated GPU and has the real runtime."""
        path = f"{self.directory}/prog"
        shutil.copy("/bin/true", path)
        with open(path, "ab") as file:
            file.write(b"libcuda.so.1\0cudaMalloc\0cuGetExportTable\0")
        said = (f"cuweir: {path}: NVIDIA's static runtime is in it, which does not start on the "
                "simulated GPU; want it linked to libcudart.so (nvcc -cudart shared), or no --sim\n")
        for options, err in ((("--sim", "1G"), said), ((), ""), (("-q", "--sim", "1G"), "")):
            result = cuweir("run", *options, path)
            self.assertEqual((result.status, result.err), (0, err), options)

    def test_max_retries(self):
        script = "expect 2 alloc a 2G"
        result = scenario(script, "-q", "--max-retries", "2", "-p", "example:1", "--report")
        self.assertEqual(result.status, 0, result.err)
        self.assertIn("1 allocations failed for want of memory, 2 retries", result.err)

    def test_strict(self):
        """What is wrong only in the program's own process, which the trial cannot know."""
        path = f"{self.directory}/no/file"
        for options, status in (((), 0), (("--strict",), 127)):
            result = scenario(PAIR, *options, "-p", f"{TRIAL}:{path}")
            self.assertEqual(result.status, status)
            self.assertIn("cannot make its file; the policy is left out", result.err)

    def test_error_exitcode(self):
        for way in ("dlsym", "gpa"):
            for script, status in (
                (PAIR, 0),
                ("alloc a 8192", 9),
                ("expect 2 alloc a 2G", 9),
                ("", 0),
            ):
                with self.subTest(script=script, way=way):
                    self.assertEqual(scenario(script, "--error-exitcode", "9", "-q",
                                              way=way).status, status)
        # The program's own status wins; so does nothing where it is 0 and off.
        self.assertEqual(scenario("alloc a 2G", "--error-exitcode", "9", "-q").status, 1)
        self.assertEqual(scenario("alloc a 8192", "--error-exitcode", "0").status, 0)
        # In a program that it starts, too.
        result = cuweir("run", "-q", "--sim", "1G", "--error-exitcode", "9", "sh", "-c",
                        f"{SCENARIO} dlsym 'alloc a 1'; exit 0")
        self.assertEqual(result.status, 9)
        # However it ends, in threads too; what ended well does not count, nor what still runs.
        for code, status in (
            ("take(); os._exit(0)", 9),
            ("give(take()); os._exit(0)", 0),
            ("import threading as t\n"
             "ts = [t.Thread(target=lambda: [give(take()) for _ in range(200)]) for _ in range(4)]\n"
             "[x.start() for x in ts]; [x.join() for x in ts]; os._exit(0)", 0),
            ("take(); os.execv('/bin/true', ['true'])", 9),
            ("if os.fork() == 0: take(); os.kill(os.getpid(), 9)\nos.wait()", 9),
            ("if os.fork() == 0: give(take()); os.kill(os.getpid(), 9)\nos.wait()", 0),
            ("p = take()\nif os.fork() == 0: c.cudaFree(p); os._exit(0)\nos.wait(); os._exit(0)", 9),
            ("p = take()\nif getattr(ctypes.CDLL(None), '_Fork', os.fork)() == 0: c.cudaFree(p); os._exit(0)\n"
             "os.wait(); os._exit(0)", 9),
            ("p = take()\nif os.fork() == 0: os._exit(0)\nos.wait(); give(p); os._exit(0)", 0),
            ("r, w = os.pipe()\n"
             "if os.fork() == 0: take(); os.write(w, b'x'); os.closerange(0, 3); time.sleep(20)\n"
             "os.read(r, 1)", 0),
        ):
            with self.subTest(code=code):
                self.assertEqual(cuweir(
                    "run", "-q", "--sim", "1G", "--error-exitcode", "9", "python3", "-c",
                    "import ctypes, os, time\nc = ctypes.CDLL('libcudart.so.13')\n"
                    "def take():\n p = ctypes.c_void_p()\n"
                    " assert c.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(4096)) == 0\n"
                    " return p\n"
                    "def give(p): assert c.cudaFree(p) == 0\n" + code).status, status)
        # Nothing stays; a directory that cannot hold it is told of before the program runs.
        place = {"TMPDIR": self.directory}
        result = cuweir("run", "-q", "--sim", "1G", "--error-exitcode", "9", "sh", "-c",
                        f"ls {self.directory}; {SCENARIO} dlsym 'alloc a 1'", env=place)
        self.assertEqual((result.status, result.out[:14]), (9, "cuweir-result-"))
        self.assertEqual(os.listdir(self.directory), [])
        result = run("sh", "-c", f"ulimit -f 100; {CUWEIR} run --error-exitcode 9 true", env=place)
        self.assertEqual((result.status, result.err),
                         (125, "cuweir: --error-exitcode: cannot make a file of 256 KiB in "
                          f"{self.directory}: File too large; want TMPDIR to name a directory with "
                          "room\n"))
        self.assertEqual(os.listdir(self.directory), [])

    def children(self, *options, shell="sh"):
        result = cuweir("run", "--sim", "1G", *options, "--", shell, "-c",
                        f"{SCENARIO} dlsym '{PAIR}'; {APPS}/scenario_linked linked '{PAIR}'")
        self.assertEqual(result.status, 0, result.err)
        return result.err.count("report when")

    def test_children(self):
        self.assertEqual(self.children("-r"), 2)
        self.assertEqual(self.children("-r", shell="bash"), 2)
        self.assertEqual(self.children("-r", "--no-follow"), 0)
        self.assertEqual(self.children("-r", "--only", "*linked"), 1)
        self.assertEqual(self.children("-r", "--only", "scenario,*linked"), 2)
        self.assertEqual(self.children("-r", "--skip", "scen?rio"), 1)
        self.assertEqual(self.children("-r", "--skip", "*"), 0)

    def test_no_follow_environment(self):
        result = cuweir("run", "--no-follow", "-p", "log", "--sim", "1G", "sh", "-c",
                        "echo \"$LD_PRELOAD|$CUWEIR_POLICY|$CUWEIR_SIM_CAPACITY|$KEPT\"; env",
                        env={"KEPT": "yes", "LD_PRELOAD": f"{PLUGINS}/no_entry.so"})
        first, rest = result.out.split("\n", 1)
        self.assertEqual(first, f"{PLUGINS}/no_entry.so||1G|yes")
        self.assertNotIn("libcuweir", rest)
        # The program itself is watched, on the GPU that was asked for.
        result = scenario("info", "--no-follow", "-r")
        self.assertEqual((result.out, result.err.count("report when")),
                         ("info 1073741824 1073741824\n", 1))

    def test_python(self):
        code = ("import ctypes; c = ctypes.CDLL('libcudart.so.13'); p = ctypes.c_void_p(); "
                "print(c.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(4096)))")
        result = cuweir("run", "--sim", "1G", "-r", "python3", "-c", code)
        self.assertEqual((result.status, result.out), (0, "0\n"), result.err)
        self.assertIn("4096 B (4.0 KiB) in 1 of 4096 B, device memory of device 0, by cudaMalloc",
                      result.err)

    def test_print_env(self):
        options = ("-p", f"{TRIAL}:it's here", "-r", "--sim", "1GiB", "--limit", "1M")
        printed = cuweir("run", "--print-env", *options)
        self.assertEqual(printed.status, 0, printed.err)
        os.chdir(self.directory)
        script = f"{SCENARIO} dlsym 'alloc a 8192; expect 2 alloc b 1M; info'"
        by_hand = run("sh", "-c", f'eval "$({CUWEIR} run --print-env "$@")"; exec {script}', "sh",
                      *options)
        by_command = cuweir("run", *options, "sh", "-c", f"exec {script}")
        self.assertEqual((by_hand.status, by_hand.out, by_hand.lines),
                         (by_command.status, by_command.out, by_command.lines))
        self.assertEqual(by_command.out, "info 1040384 1048576\n")

    def test_trial_leaves_nothing(self):
        path = f"{self.directory}/made"
        result = cuweir("run", "-p", f"{TRIAL}:{path}", "--", "true")
        self.assertEqual((result.status, result.out, result.err, os.path.exists(path)),
                         (0, "", "", False))
        result = scenario(PAIR, "-p", f"{TRIAL}:{path}")
        self.assertEqual((result.status, os.path.exists(path)), (0, True), result.err)
        result = cuweir("run", "-p", f"{TRIAL}:stdout", "--", "cat", stdin="in")
        self.assertEqual((result.status, result.out, result.err), (0, "in", ""))

    def test_log_policy_on_trial(self):
        kept = self.file("kept.csv", "old\n")
        result = cuweir("run", "-p", f"log:format=csv,file={kept}", "-p",
                        f"log:file={self.directory}/new.%p", "true")
        self.assertEqual((result.status, result.err), (0, ""))
        self.assertEqual(os.listdir(self.directory), ["kept.csv"])
        with open(kept, encoding="utf-8") as file:
            self.assertEqual(file.read(), "old\n")

    def test_unheard(self):
        hidden = f"{BUILD}/tests/command/hidden"
        result = cuweir("run", "--sim", "1G", hidden)
        self.assertEqual((result.status, result.out, result.lines),
                         (0, "cuInit: 0\n",
                          "cuweir[P]: the program loaded libcuda.so.1, but no call of its came "
                          "through a door of cuweir: if it used the GPU, nothing was watched "
                          "(cuweir check says why)\n"))
        self.assertEqual(cuweir("run", "-q", "--sim", "1G", hidden).err, "")
        self.assertEqual(scenario("", way="gpa").err, "")


class Looking(Case):
    def test_help_and_version(self):
        for arguments in (("--help",), ("run", "--help"), ("run", "-h"), ("check", "--help"),
                          ("policies", "-h"), ("symbolize", "--help"), ("completions", "-h")):
            result = cuweir(*arguments)
            self.assertEqual((result.status, result.err), (0, ""), arguments)
            self.assertTrue(result.out.startswith("usage: cuweir "), arguments)
            self.assertLessEqual(max(map(len, result.out.splitlines())), 100)
        self.assertRegex(cuweir("--version").out, r"^cuweir \d+\.\d+\.\d+\n$")

    def test_check(self):
        result = cuweir("check")
        self.assertEqual(result.status, 0, result.out)
        self.assertIn(f"ok   shim         {SHIM}\nok   preload      works\n", result.out)
        for program, line in (
            (f"{APPS}/scenario_runtime_shared",
             "ok   cuda         libcudart.so.13, heard at the runtime and the driver door\n"),
            (f"{APPS}/scenario_runtime_static",
             "ok   cuda         a static runtime, heard at the driver door\n"),
            (f"{APPS}/scenario_linked", "ok   cuda         linked to libcuda.so.1\n"),
            (SCENARIO, "ok   cuda         opens libcuda.so.1 by itself\n"),
            ("/bin/true", "     cuda         none in the program itself; libraries that it loads "
                          "are heard when they come\n"),
        ):
            result = cuweir("check", program)
            self.assertEqual(result.status, 0, result.out)
            self.assertIn(line, result.out)
        suid = shutil.copy("/bin/true", f"{self.directory}/suid")
        os.chmod(suid, 0o4755)
        result = cuweir("check", suid)
        self.assertEqual(result.status, 1)
        self.assertIn("NOT  privileges   setuid, setgid or capabilities", result.out)

    def test_policies(self):
        result = cuweir("policies")
        self.assertEqual((result.status, result.err), (0, ""))
        names = [line.split()[0] for line in result.out.splitlines() if line[0] != " "]
        self.assertEqual(names, sorted(names))
        self.assertTrue({"example", "limit", "log", "pool"} <= set(names), names)
        result = cuweir("policies", TRIAL)
        self.assertEqual(result.out, f"trial      uses all of the host\n           contract "
                                     f"version 1, {TRIAL}\n")
        self.assertEqual(cuweir("policies", f"{PLUGINS}/no_entry.so").status, 125)


def hear_signals():
    """A test that was started in the background, or by nohup, ignores some, and so would what
    it starts: a shell cannot even trap them then."""
    for number in (signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


if __name__ == "__main__":
    hear_signals()
    unittest.main()
