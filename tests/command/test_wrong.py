#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What each wrong argument, setting and program is answered, before anything has run."""
import os
import shutil
import subprocess
import unittest

from support import BUILD, CUWEIR, PLUGINS, SHIM, Case, cuweir, run

TRIAL = f"{BUILD}/tests/command/trial.so"


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
            ("--error-exitcode", "3", "--print-env", "x"):
                "--error-exitcode and --print-env are both given; want one of them: the status is "
                "that of cuweir run itself",
            ("--sim", "3Q", "x"): "--sim 3Q: want a size and perhaps a number of devices up to "
                                  "16: 24GiB:2",
            ("--sim", "1GiB:0", "x"): "--sim 1GiB:0: want a size and perhaps a number of devices "
                                      "up to 16: 24GiB:2",
            ("--sim", "1GiB:17", "x"): "--sim 1GiB:17: want a size and perhaps a number of "
                                       "devices up to 16: 24GiB:2",
            ("--sim", "", "x"): "--sim : want a size and perhaps a number of devices up to 16: "
                                "24GiB:2",
            ("-l", "1GiB;log", "x"): "--limit 1GiB;log: want no ';' in it; -p adds another policy",
            ("--only", "", "x"): "--only : want file names of programs without a /, separated by "
                                 "commas: python3*,train",
            ("--skip", "a,/tmp/b", "x"): "--skip a,/tmp/b: want file names of programs without a "
                                         "/, separated by commas: python3*,train",
            (): "want a program to run (cuweir run --help)",
            ("--",): "want a program to run (cuweir run --help)",
            ("-d",): "want a program to run (cuweir run --help)",
        }.items():
            with self.subTest(arguments=arguments):
                self.refused(125, line, "run", *arguments)

    def test_policies(self):
        want = "want a policy that is there (cuweir policies), or the path with a / of a plugin"
        no_policy = f"there is no policy of that name beside libcuweir.so; {want}"
        contract = ("made for version 2 of the policy contract; this cuweir has 1: want a newer "
                    "cuweir, or the policy built with this one's header")
        for chain, line in {
            "nobody": f"--policy nobody: {no_policy}",
            "nobody:with=it": f"--policy nobody:with=it: {no_policy}",
            "example:x": "--policy example:x: want up to 8 marks in bytes: 1048576,8388608",
            "/no/such.so": f"--policy /no/such.so: there is no such file; {want}",
            f"{PLUGINS}/no_entry.so": f"--policy {PLUGINS}/no_entry.so: it exports no "
                                      f"cuweir_policy_entry; {want}",
            f"{PLUGINS}/new_abi.so": f"--policy {PLUGINS}/new_abi.so: {contract}",
            f"{PLUGINS}/unresolved.so": f"--policy {PLUGINS}/unresolved.so: undefined "
                                        f"symbol: cuweir_nobody_has_this; {want}",
            f"{TRIAL}:crash": f'a policy of "{TRIAL}:crash" ends the process by signal 11 '
                              "(Segmentation fault)",
            f"{TRIAL}:exit": f'a policy of "{TRIAL}:exit" ends the process with status 5',
        }.items():
            with self.subTest(chain=chain):
                self.refused(125, line, "run", "-p", chain, "--", "echo", "no")
                if TRIAL not in chain:
                    self.refused(125, line, "run", "-p", "example:1", "-p", chain, "echo", "no")
        self.refused(125, f"--policy nobody: {no_policy}", "run", "echo", "no",
                     env={"CUWEIR_POLICY": "nobody"})
        result = cuweir("run", "--limit", "much", "--", "echo", "no")
        self.assertEqual((result.status, result.out, result.err.count("\n")), (125, "", 1))
        self.assertRegex(result.err, '^cuweir: --limit much: .*want SIZE')

    def test_environment(self):
        self.refused(125, "CUWEIR_LIMT is not a setting; want one of cuweir(7)", "run", "echo",
                     env={"CUWEIR_LIMT": "1"})
        for name, value, want in (
                ("DEBUG", "maybe", "0 or 1"), ("FOLLOW", "7", "0 or 1"),
                ("REPORT", "xml", "0, 1, text or json"),
                ("STRICT", "2", "0 or 1"),
                ("VERBOSE", "9", "0 (silent), 1, 2 or 3"),
                ("VERBOSE", "loud", "0 (silent), 1, 2 or 3")):
            self.refused(125, f'CUWEIR_{name}="{value}": want {want}', "run", "echo",
                         env={f"CUWEIR_{name}": value})

    def test_log(self):
        closed = self.file("closed", mode=0o444)
        self.refused(125, f"--log {self.directory}: it is a directory; want a file", "run", "-o",
                     self.directory, "echo")
        self.refused(125, "--log /tmp/%q.log: want %p for the process id, and %% for a percent "
                          "sign; -p log:file= has more", "run", "-o", "/tmp/%q.log", "echo")
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
            (125, f"{suid} is setuid, setgid or has capabilities, so that the loader preloads "
                  "nothing into it; want a plain copy of it", suid),
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


if __name__ == "__main__":
    unittest.main()
