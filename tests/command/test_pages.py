#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each option and each setting has its places in the documents, and nothing else has one; the
completions have them all and are what their shells accept; the example of the page runs."""
import os
import re
import shutil
import subprocess
import unittest

from support import BUILD, SCENARIO, SOURCE, Case, cuweir, run


def read(name):
    with open(f"{SOURCE}/{name}", encoding="utf-8") as file:
        return file.read()


def options():
    rows = re.findall(r'OPTION\("([^"]+)", (0|\'(.)\'), (\w+), "([^"]*)",\s*"([^"]*)"\)',
                      read("command/options.def"))
    return {name: (letter, argument, variable, text) for name, _, letter, argument, variable, text
            in rows}


def settings():
    return set(re.findall(r"^CW_SETTING\((\w+),", read("shim/settings.def"), re.M))


class Pages(Case):
    def test_table(self):
        self.assertEqual(len(options()), read("command/options.def").count("\nOPTION("))
        self.assertGreater(len(settings()), 10)

    def test_options_have_pages(self):
        section = re.search(r"# OPTIONS OF RUN(.*?)\n# ", read("docs/man/cuweir.1.scd"), re.S)[1]
        entries = [line for line in section.splitlines() if line.startswith("*-")]
        documented = {re.search(r"\*--([a-z-]+)\*", line)[1]: line for line in entries}
        self.assertEqual(set(documented), set(options()))
        for name, (letter, argument, _, text) in options().items():
            self.assertEqual(f"*-{letter}*, " in documented[name], letter != "", name)
            value = documented[name].split(f"*--{name}*")[1]
            self.assertEqual(value != "", argument != "no_argument", name)
            self.assertIn(f"--{name}", text)

    def test_variables_of_options(self):
        for name, (_, _, variable, _) in options().items():
            if variable:
                self.assertIn(variable.removeprefix("CUWEIR_"), settings(), name)

    def test_settings_have_pages(self):
        page = read("docs/man/cuweir.7.scd")
        entries = [line for line in page.splitlines() if line.startswith("*CUWEIR_")
                   and not line.endswith(".")]
        documented = {name for line in entries for name in re.findall(r"\*CUWEIR_(\w+)\*", line)}
        self.assertEqual(documented, settings())
        table = read("docs/settings.md")
        rows = {name for line in table.splitlines() if line.startswith("| `CUWEIR_")
                for name in re.findall(r"`CUWEIR_(\w+)`", line.split("|")[1])}
        self.assertEqual(rows, settings())

    def test_options_in_the_settings_page(self):
        rows = {name for line in read("docs/settings.md").splitlines() if line.startswith("| `-")
                for name in re.findall(r"--([a-z-]+)", line.split("|")[1])}
        self.assertEqual(rows, set(options()))

    def test_documents_name_real_options(self):
        known = set(options()) | {"version", "help", "module"}
        names = [f"docs/{name}" for name in os.listdir(f"{SOURCE}/docs") if name.endswith(".md")]
        for name in names + ["README.md"]:
            for line in re.findall(r"cuweir run .*", read(name)):
                line = line.split(" -- ")[0]
                for option in re.findall(r"(?<=\s)--([a-z][a-z-]*)", line):
                    self.assertIn(option, known, f"{name}: {line}")

    def test_policies_have_pages(self):
        listed = cuweir("policies").out
        names = set(re.findall(r"^(\w+)", listed, re.M))
        pages = {name.removesuffix(".md") for name in os.listdir(f"{SOURCE}/docs/policies")}
        self.assertEqual(pages, names)
        for name in names:
            page = read(f"docs/policies/{name}.md")
            arguments = re.search(rf"^{name} .*\n((?: .*\n)*)", listed, re.M)[1]
            for argument in re.findall(r"^ +(\w+)=", arguments, re.M):
                self.assertIn(f"`{argument}=", page, name)

    def test_map_of_the_shim(self):
        """Every file has its room, and what the map points at is there."""
        page = read("shim/README.md")
        files = {name for name in os.listdir(f"{SOURCE}/shim")
                 if name.endswith((".c", ".h", ".S", ".def"))}
        named = set(re.findall(r"`(\w+\.(?:[chS]|def))`", page))
        self.assertEqual(named - files, set())
        stems = {name.split(".")[0] for name in named}
        self.assertEqual({name for name in files if name.split(".")[0] not in stems}, set())
        places = re.findall(r"`(\w+)`(?: and `(\w+)`)? in `(\w+\.[ch])`", page)
        self.assertGreater(len(places), 3)
        for *names, file in places:
            for name in filter(None, names):
                self.assertRegex(read(f"shim/{file}"), rf"\b{name}\b", file)

    def test_roff(self):
        pages = f"{BUILD}/docs/man"
        if not os.path.exists(f"{pages}/cuweir.1"):
            self.skipTest("no scdoc")
        for name in ("cuweir.1", "cuweir.7", "cuweir-policies.7"):
            with open(f"{pages}/{name}", encoding="utf-8") as file:
                self.assertIn(".TH ", file.read())
            if shutil.which("man") and shutil.which("groff"):
                done = subprocess.run(["man", "--warnings", "-l", f"{pages}/{name}"],
                                      stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                      text=True, env={**os.environ, "MANWIDTH": "100"}, check=True)
                self.assertEqual(done.stderr, "", name)


class Completions(Case):
    def completions(self, shell):
        result = cuweir("completions", shell)
        self.assertEqual((result.status, result.err), (0, ""))
        return result.out

    def test_all_have_all(self):
        for shell in ("bash", "zsh", "fish"):
            text = self.completions(shell)
            for name, (letter, _, _, _) in options().items():
                self.assertIn(f"-l {name} " if shell == "fish" else f"--{name}", text, shell)
                if letter and shell != "zsh":
                    self.assertIn(f"-s {letter} " if shell == "fish" else f"-{letter}", text)
            for command in ("run", "check", "policies", "symbolize", "completions"):
                self.assertIn(command, text)

    def test_syntax(self):
        for shell in ("bash", "zsh", "fish"):
            if not shutil.which(shell):
                continue
            path = self.file(shell, self.completions(shell))
            done = run(shell, "-n", path)
            self.assertEqual((done.status, done.err), (0, ""), shell)

    def complete_bash(self, *words):
        script = (f'PATH={BUILD}/command:$PATH; eval "$(cuweir completions bash)"; '
                  'COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _cuweir; '
                  'printf "%s\\n" "${COMPREPLY[@]}"')
        return run("bash", "-c", script, "bash", "cuweir", *words).out.split()

    @unittest.skipUnless(shutil.which("bash"), "no bash")
    def test_bash(self):
        self.assertEqual(self.complete_bash("r"), ["run"])
        self.assertEqual(self.complete_bash("run", "--no"), ["--no-follow"])
        self.assertEqual(self.complete_bash("run", "-p", "exa"), ["example"])
        self.assertEqual(self.complete_bash("completions", "f"), ["fish"])
        self.assertIn("example", self.complete_bash("policies", ""))
        self.assertIn("bash", self.complete_bash("run", "-d", "bas"))

    @unittest.skipUnless(shutil.which("fish"), "no fish")
    def test_fish(self):
        path = self.file("cuweir.fish", self.completions("fish"))

        def complete(line):
            return run("fish", "--no-config", "-c", f"set -x PATH {BUILD}/command $PATH; "
                       f"source {path}; complete -C '{line}'",
                       env={"HOME": self.directory}).out
        self.assertIn("run", complete("cuweir r"))
        self.assertIn("--no-follow", complete("cuweir run --no-"))
        self.assertIn("example", complete("cuweir run -p exa"))


class Example(Case):
    def test_policy_of_the_page(self):
        code = re.search(r"\n```\n(.*?)\n```\n", read("docs/man/cuweir-policies.7.scd"), re.S)[1]
        source = self.file("mine.c", code)
        plugin = f"{self.directory}/mine.so"
        done = run("cc", "-std=gnu11", "-Wall", "-Wextra", "-Wno-unused-parameter", "-Werror",
                   "-shared", "-fPIC", f"-I{SOURCE}/include", "-o", plugin, source)
        self.assertEqual((done.status, done.err), (0, ""))
        result = cuweir("policies", plugin)
        self.assertIn("a mark, a largest request, and patience", result.out)
        result = cuweir("run", "-q", "--sim", "4G", "-p",
                        f"{plugin}:mark=1048576,most=1073741824", "--", SCENARIO, "gpa",
                        "expect 2 alloc a 1073741825; alloc a 1048576; free a")
        self.assertEqual((result.status, result.err),
                         (0, "mine: device 0 has 1048576 bytes after cuMemAlloc\n"))
        result = cuweir("run", "-p", f"{plugin}:mark=1", "true")
        self.assertEqual((result.status, result.err),
                         (125, f"cuweir: --policy {plugin}:mark=1: want mark=BYTES,most=BYTES\n"))

    def test_callbacks_of_the_page(self):
        entries = re.search(r"# THE CALLBACKS(.*?)\n# ", read("docs/man/cuweir-policies.7.scd"),
                            re.S)[1]
        named = set(re.findall(r"^\*(\w+)\*|, \*(\w+)\*$", entries, re.M))
        named = {name for pair in named for name in pair if name} | \
            set(re.findall(r"\*(\w+)\*", "".join(line for line in entries.splitlines()
                                                 if line.startswith("*"))))
        table = re.search(r"struct cuweir_policy \{(.*?)\n\};", read("include/cuweir/policy.h"),
                          re.S)[1]
        real = set(re.findall(r"\(\*(\w+)\)", table)) - {"reserved", "on_alloc_failure_size"}
        self.assertEqual(named - {"allocator"}, real)


if __name__ == "__main__":
    unittest.main()
