#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the commands of the documents' `console` blocks, each document in a directory of its own
with the programs that they speak of, and compares what comes with what stands there.

A line `...` stands for any lines; process ids, addresses and offsets, and times may differ. A block
`console gpu` wants a real GPU, or programs that are not here, and is not run: it says so. Indented lines
that show how something is run, `cuweir run ... -- program`, are run with a program that is here; it has to
come to its end.
"""
import os
import pty
import re
import shutil
import subprocess
import sys
import tempfile

BUILD = os.environ["CUWEIR_TEST_BUILD"]
SOURCE = os.environ["CUWEIR_TEST_SOURCE"]
HERE = os.path.dirname(os.path.abspath(__file__))
INDENTED = re.compile(r"^    (cuweir run .* -- )program$", re.M)
BLOCK = re.compile(r"^```console( gpu)?\n(.*?)^```$", re.M | re.S)


def normal(text):
    text = re.sub(r"cuweir\[\d+\]", "cuweir[P]", text)
    text = re.sub(r"0x[0-9a-f]+", "0xA", text)
    text = re.sub(r"\d+\.\d s\b", "N s", text)
    text = re.sub(r"(?<=at )\S*/(?=\w+\.c:)", "", text)
    return re.sub(r"module (\S+) is \S+", r"module \1 is PATH", text)


def matches(expected, got):
    pattern = "".join(r"(?:.*\n)*" if line == "..." else re.escape(line) + "\n"
                      for line in normal(expected).splitlines())
    return re.fullmatch(pattern, normal(got)) is not None


def environment(directory):
    own = {name: value for name, value in os.environ.items()
           if not name.startswith("CUWEIR_") and name not in ("LD_PRELOAD", "LD_LIBRARY_PATH")}
    own["PATH"] = f"{BUILD}/command:{own['PATH']}"
    own["HOME"] = own["TMPDIR"] = own["XDG_RUNTIME_DIR"] = directory
    own["CPATH"] = f"{SOURCE}/include"  # as an installed header would be found
    # What the documents' programs run on, since there is no GPU.
    own["LD_LIBRARY_PATH"] = f"{BUILD}/tests/sim/lib"
    own["CUWEIR_SIM_CAPACITY"] = "1GiB"
    return own


def commands(block):
    """(command, expected output); a command goes on in lines that begin with "> "."""
    found = []
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append([line[2:], ""])
        elif found and line.startswith("> ") and found[-1][1] == "":
            found[-1][0] += "\n" + line[2:]
        elif found:
            found[-1][1] += line + "\n"
    return found


def output(command, directory):
    """As on a terminal, where a program's lines come when it writes them."""
    ours, theirs = pty.openpty()
    text = b""
    with subprocess.Popen(["timeout", "60", "bash", "-c", command], cwd=directory,
                          stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs,
                          env=environment(directory)):
        os.close(theirs)
        try:
            while piece := os.read(ours, 65536):
                text += piece
        except OSError:
            pass  # the last one that had it open has closed it
    os.close(ours)
    return text.decode().replace("\r\n", "\n")


def run_document(path):
    failures = ran = skipped = 0
    with tempfile.TemporaryDirectory(prefix="cuweir-docs-") as directory:
        for name in ("leaky", "hog"):
            shutil.copy(f"{BUILD}/tests/docs/{name}", directory)
        for name in ("train.py", "mine.c"):
            if os.path.exists(f"{HERE}/{name}"):
                shutil.copy(f"{HERE}/{name}", directory)
        with open(path, encoding="utf-8") as file:
            text = file.read()
        for source in re.finditer(r"^```c (\w+\.c)\n(.*?)^```$", text, re.M | re.S):
            with open(f"{directory}/{source[1]}", "w", encoding="utf-8") as file:
                file.write(source[2])
        for gpu, block in BLOCK.findall(text):
            for command, expected in commands(block):
                if gpu:
                    skipped += 1
                    continue
                got = output(command, directory)
                ran += 1
                if not matches(expected, got):
                    failures += 1
                    print(f"{path}: $ {command}\n--- expected\n{expected}--- got\n{got}")
        for start in INDENTED.findall(text):
            command = re.sub(r"(?<==)(/var)?/tmp/", "./", start) + "./hog 3"
            got = output(command, directory)
            ran += 1
            if re.search(r"^hog: [0-3] of 3 blocks$", got, re.M) is None:
                failures += 1
                print(f"{path}: {command}\n--- got\n{got}")
    print(f"{os.path.relpath(path, SOURCE)}: {ran} commands, {skipped} for a real GPU")
    return failures


def main():
    # README.md: what it shows is another test's; see scripts/demo.
    documents = sys.argv[1:] or sorted(
        f"{where}/{name}" for where, _, names in os.walk(f"{SOURCE}/docs") for name in names
        if name.endswith(".md")) + [f"{SOURCE}/README.md"]
    sys.exit(1 if sum(run_document(path) for path in documents) else 0)


if __name__ == "__main__":
    main()
