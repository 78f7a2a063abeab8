#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cuweir run, check and policies: by value, and what each wrong argument is answered."""
import os
import shutil
import signal
import subprocess
import unittest

from support import APPS, BUILD, CUWEIR, PLUGINS, SCENARIO, SHIM, Case, cuweir, environment
from support import run, scenario

TRIAL = f"{BUILD}/tests/command/trial.so"
PAIR = "alloc a 8192; free a"


class WrongArguments(Case):
    """125, 126 or 127, one line, and the program has not run."""

    def refused(self, status, line, *arguments, **options):
        result = cuweir(*arguments, **options)
        self.assertEqual((result.status, result.out, result.err),
                         (status, "", f"cuweir: {line}\n"))

    def test_commands(self):
        self.refused(125, '"fly" is not a command; want run, check, policies, symbolize or '
                          "completions (cuweir --help)", "fly")
        self.assertEqual(cuweir().status, 125)
        self.refused(125, "completions: want bash, zsh or fish", "completions")
        self.refused(125, "completions: want bash, zsh or fish", "completions", "tcsh")
        self.refused(125, "policies: want one name, or none for all", "policies", "a", "b")
        self.refused(125, "nobody: there is no such policy; want one that cuweir policies lists, "
                          "or a path with a /", "policies", "nobody")
        self.refused(127, "nobody: there is no such program", "check", "nobody")

    def test_options(self):
        for arguments, line in {
            ("--foo", "x"): "--foo is not an option of cuweir run (cuweir run --help)",
            ("-z", "x"): "-z is not an option of cuweir run (cuweir run --help)",
            ("--debug=1", "x"): "--debug=1 is not an option of cuweir run (cuweir run --help)",
            ("--policy",): "--policy: want a value after it (cuweir run --help)",
            ("-o",): "-o: want a value after it (cuweir run --help)",
            ("-p", "", "x"): "--policy: want NAME or NAME:ARGUMENTS (cuweir policies)",
            ("-l", "", "x"): "--limit: want a size: 8GiB",
            ("--report=xml", "x"): "--report=xml: want text or json",
            ("--error-exitcode", "256", "x"):
                "--error-exitcode 256: want a whole number from 0 to 255",
            ("--error-exitcode", "-1", "x"):
                "--error-exitcode -1: want a whole number from 0 to 255",
            ("--error-exitcode", "two", "x"):
                "--error-exitcode two: want a whole number from 0 to 255",
            ("--max-retries", "", "x"):
                "--max-retries : want a whole number from 0 to 1073741824",
            ("--only", "a", "--skip", "b", "x"):
                "--only and --skip are both given; want one of them",
            ("--sim", "3Q", "x"): "--sim 3Q: want a size and perhaps a number of devices up to "
                                  "16: 24GiB:2",
            ("--sim", "1GiB:0", "x"): "--sim 1GiB:0: want a size and perhaps a number of devices "
                                      "up to 16: 24GiB:2",
            ("--sim", "1GiB:17", "x"): "--sim 1GiB:17: want a size and perhaps a number of "
                                       "devices up to 16: 24GiB:2",
            ("--sim", "", "x"): "--sim : want a size and perhaps a number of devices up to 16: "
                                "24GiB:2",
            (): "want a program to run (cuweir run --help)",
            ("--",): "want a program to run (cuweir run --help)",
            ("-d",): "want a program to run (cuweir run --help)",
        }.items():
            with self.subTest(arguments=arguments):
                self.refused(125, line, "run", *arguments)

    def test_policies(self):
        no_policy = ("there is no policy of that name beside libcuweir.so; want one that is "
                     "there, or a path with a /")
        contract = ("made for version 2 of the policy contract; this cuweir has 1: want a newer "
                    "cuweir, or the policy built with this one's header")
        for chain, line in {
            "nobody": f"--policy nobody: {no_policy}",
            "nobody:with=it": f"--policy nobody:with=it: {no_policy}",
            "example:x": "--policy example:x: want up to 8 marks in bytes: 1048576,8388608",
            "/no/such.so": "--policy /no/such.so: /no/such.so: cannot open shared object file: "
                           "No such file or directory",
            f"{PLUGINS}/no_entry.so": f"--policy {PLUGINS}/no_entry.so: it exports no "
                                      "cuweir_policy_entry; want a plugin made with "
                                      "cuweir/policy.h",
            f"{PLUGINS}/new_abi.so": f"--policy {PLUGINS}/new_abi.so: {contract}",
            f"{PLUGINS}/unresolved.so": f"--policy {PLUGINS}/unresolved.so: "
                                        f"{PLUGINS}/unresolved.so: undefined symbol: "
                                        "cuweir_nobody_has_this",
            f"{TRIAL}:crash": f'a policy of "{TRIAL}:crash" ends the process by signal 11 '
                              "(Segmentation fault)",
            f"{TRIAL}:exit": f'a policy of "{TRIAL}:exit" ends the process with status 5',
        }.items():
            with self.subTest(chain=chain):
                self.refused(125, line, "run", "-p", "example:1", "-p", chain, "--", "echo", "no") \
                    if TRIAL not in chain else \
                    self.refused(125, line, "run", "-p", chain, "--", "echo", "no")
        self.refused(125, f"--policy nobody: {no_policy}", "run", "echo", "no",
                     env={"CUWEIR_POLICY": "nobody"})
        result = cuweir("run", "--limit", "much", "--", "echo", "no")
        self.assertEqual((result.status, result.out, result.err.count("\n")), (125, "", 1))
        self.assertRegex(result.err, '^cuweir: --limit much: .*want SIZE')

    def test_environment(self):
        self.refused(125, "CUWEIR_LIMT is not a setting; did you mean CUWEIR_LOG?", "run", "echo",
                     env={"CUWEIR_LIMT": "1"})
        self.refused(125, 'CUWEIR_DEBUG="maybe": want 0 or 1; it is ignored', "run", "echo",
                     env={"CUWEIR_DEBUG": "maybe"})

    def test_log(self):
        closed = self.file("closed", mode=0o444)
        self.refused(125, f"--log {self.directory}: it is a directory; want a file", "run", "-o",
                     self.directory, "echo")
        self.refused(125, "--log /no/such/x: /no/such: No such file or directory; want a file in "
                          "a directory that can be written", "run", "-o", "/no/such/x", "echo")
        if os.geteuid() != 0:
            self.refused(125, f"--log {closed}: Permission denied; want a file that can be "
                              "written", "run", "-o", closed, "echo")

    def test_programs(self):
        plain = self.file("plain", "#!/bin/sh\n")
        lost = self.file("lost", "#!/no/such/interpreter\n", 0o755)
        suid = shutil.copy("/bin/true", f"{self.directory}/suid")
        os.chmod(suid, 0o4755)
        other = shutil.copy("/bin/true", f"{self.directory}/other")
        with open(other, "r+b") as file:
            file.seek(18)  # e_machine: AArch64, or x86-64 where that is ours
            file.write(b"\xb7\0" if os.uname().machine != "aarch64" else b"\x3e\0")
        no_permission = ("cannot be executed: no permission; try chmod +x, or name its "
                         "interpreter before it")
        for status, line, program in (
            (127, "nobody: there is no such program", "nobody"),
            (127, "/no/such/file: there is no such program", "/no/such/file"),
            (126, f"{plain}: {no_permission}", plain),
            (126, f"{self.directory}: cannot be executed: it is a directory; want a program",
             self.directory),
            (126, f"{other}: cannot be executed: it is for another machine; want a build for "
                  "this one", other),
            (127, f"{lost}: its interpreter /no/such/interpreter is not there", lost),
            (125, f"{suid}: is setuid".replace(":", "", 1) + ", setgid or has capabilities, so "
                  "that the loader preloads nothing into it; want a plain copy of it", suid),
        ):
            with self.subTest(program=program):
                self.refused(status, line, "run", "--", program)

    @unittest.skipUnless(os.path.exists(f"{BUILD}/tests/command/static"), "no static libc")
    def test_static_program(self):
        static = f"{BUILD}/tests/command/static"
        self.refused(125, f"{static} is statically linked, so that nothing can be preloaded into "
                          "it; want a dynamically linked build", "run", static)

    @unittest.skipUnless(shutil.which("aarch64-linux-gnu-gcc") and os.uname().machine == "x86_64",
                         "no compiler for AArch64")
    def test_cross_program(self):
        source = self.file("cross.c", "int main(void) { return 0; }\n")
        cross = f"{self.directory}/cross"
        subprocess.run(["aarch64-linux-gnu-gcc", "-o", cross, source], check=True)
        self.refused(126, f"{cross}: cannot be executed: it is for another machine; want a build "
                          "for this one", "run", cross)

    def test_moved_command(self):
        alone = shutil.copy(CUWEIR, self.directory)
        result = run(alone, "run", "true")
        self.assertEqual((result.status, result.err),
                         (125, "cuweir: libcuweir.so is not found beside this command; want the "
                               "installed tree, or a build tree, as a whole\n"))

    def test_blank_in_our_path(self):
        tree = f"{self.directory}/a b"
        os.makedirs(f"{tree}/command")
        os.makedirs(f"{tree}/shim")
        shutil.copy(CUWEIR, f"{tree}/command")
        shutil.copy(SHIM, f"{tree}/shim")
        result = run(f"{tree}/command/cuweir", "run", "true")
        self.assertEqual((result.status, result.err),
                         (125, f"cuweir: {os.path.realpath(tree)}/shim/libcuweir.so has a blank or "
                               "a colon in its path, which LD_PRELOAD cannot hold; want it "
                               "installed elsewhere\n"))


class Transparency(Case):
    def test_standard_files(self):
        text = "".join(chr(i) for i in range(1, 256)) * 300
        result = cuweir("run", "--", "cat", stdin=text)
        self.assertEqual((result.status, result.out, result.err), (0, text, ""))
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
        result = scenario(PAIR, "-d", "-r", "-o", f"{self.directory}/log.%p")
        self.assertEqual((result.status, result.err), (0, ""))
        name, = os.listdir(self.directory)
        with open(f"{self.directory}/{name}", encoding="utf-8") as file:
            text = file.read()
        self.assertEqual(text.count(f"cuweir[{name[4:]}]: "), text.count("\n"))
        self.assertIn("0 allocations still live", text)

    def test_simulation(self):
        result = cuweir("run", "--sim", "512M:3", SCENARIO, "gpa", "device 2; info; device 3")
        self.assertEqual((result.status, result.out), (1, ""), result.err)
        result = cuweir("run", "--sim", "512M:3", SCENARIO, "gpa", "device 2; info")
        self.assertEqual((result.status, result.out), (0, "info 536870912 536870912\n"))

    def test_max_retries(self):
        script = "expect 2 alloc a 2G"
        result = scenario(script, "-q", "--max-retries", "2", "-p", "example:1", "--report")
        self.assertEqual(result.status, 0, result.err)
        self.assertIn("1 allocations failed for want of memory, 2 retries", result.err)

    def test_strict(self):
        # The file is gone when the program opens it: the trial cannot know.
        result = scenario("alloc a 1; echo on", "--print-env", "--strict")
        self.assertIn("export CUWEIR_STRICT='1'\n", result.out)

    def test_error_exitcode(self):
        for way in ("dlsym", "gpa"):
            for script, status in (
                (PAIR, 0),
                ("alloc a 8192", 9),
                ("expect 2 alloc a 2G", 9),
                ("alloc a 8192; exec /bin/sh -c", 2),
                ("", 0),
            ):
                if "exec" in script:
                    continue
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
        self.assertEqual([name for name in os.listdir("/tmp") if "cuweir-result" in name], [])

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
                          "through a door of cuweir: nothing was watched (cuweir check says "
                          "why)\n"))
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
             "ok   cudart       libcudart.so.13 (heard at the runtime and the driver door)\n"),
            (f"{APPS}/scenario_runtime_static",
             "ok   cudart       static (heard at the driver door)\n"),
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
        self.assertEqual(cuweir("policies", f"{PLUGINS}/no_entry.so").status, 1)


if __name__ == "__main__":
    unittest.main()
