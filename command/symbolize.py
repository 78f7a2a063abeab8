#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Adds functions and source lines to the call sites of a cuweir report or log.

A call site is MODULE+0xOFFSET. Reports name the file of each module, as text ("module NAME is
PATH") or as JSON ("modules": [{"name": ..., "path": ...}]). The return address is one past the
call, hence the subtraction.
"""
import argparse
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import sys

SITE = re.compile(r"([^\s\"]+)\+0x([0-9a-f]+)")
MODULE = re.compile(r"module (\S+) is (.*)")


def load_address(path):
    """Where the first segment is linked to lie: what offsets in the file's own terms begin at."""
    with open(path, "rb") as file:
        head = file.read(64)
        if head[:5] != b"\x7fELF\x02":
            return 0
        offset, = struct.unpack_from("<Q", head, 32)
        size, count = struct.unpack_from("<HH", head, 54)
        for i in range(count):
            file.seek(offset + i * size)
            kind, _, at, address = struct.unpack_from("<IIQQ", file.read(size))
            if kind == 1:
                return address - at if at < address else address
    return 0


class Symbolizer:
    def __init__(self, paths):
        self.paths = {os.path.basename(path): path for path in paths}
        self.tool = shutil.which("addr2line") or shutil.which("eu-addr2line")
        self.known = {}
        if self.tool is None:
            refuse("want addr2line (binutils) or eu-addr2line (elfutils)")

    def learn(self, name, path):
        self.paths.setdefault(name, path)

    def place(self, name, offset):
        """(function, file, line), each None where it is not known."""
        key = name, offset
        if key not in self.known:
            self.known[key] = self.ask(self.paths.get(name), offset)
        return self.known[key]

    def ask(self, path, offset):
        try:
            address = load_address(path) + offset - 1
        except (OSError, TypeError, struct.error):
            return None, None, None
        found = subprocess.run([self.tool, "-f", "-C", "-e", path, hex(address)],
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                               check=False).stdout.splitlines()
        function, place = (found + ["??", "??"])[:2]
        file, _, line = place.split(" (")[0].rpartition(":")
        number = int(line) if line.isdigit() and line != "0" else None
        return (None if function.startswith("??") else function,
                None if file.startswith("??") or number is None else file, number)


def in_text(symbolizer, line):
    def replace(match):
        function, file, number = symbolizer.place(match.group(1), int(match.group(2), 16))
        if function is None and file is None:
            return match.group(0)
        where = f" at {file}:{number}" if file else ""
        return f"{match.group(0)} ({function or 'in it'}{where})"
    return SITE.sub(replace, line)


def in_json(symbolizer, value):
    if isinstance(value, list):
        for element in value:
            in_json(symbolizer, element)
    elif isinstance(value, dict):
        match = SITE.fullmatch(value.get("site") or "")
        if match:
            function, file, number = symbolizer.place(match.group(1), int(match.group(2), 16))
            value.update(function=function, file=file, line=number)
        # Callers become objects of the same kind, and are filled in as those.
        if isinstance(value.get("callers"), list):
            value["callers"] = [{"site": site} if isinstance(site, str) else site
                                for site in value["callers"]]
        for element in list(value.values()):
            in_json(symbolizer, element)


def as_json(line):
    try:
        value = json.loads(line) if line.startswith("{") else None
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def learn_all(symbolizer, lines):
    for line in lines:
        value = as_json(line)
        for module in (value or {}).get("modules", []):
            symbolizer.learn(module.get("name"), module.get("path"))
        match = None if value else MODULE.search(line)
        if match:
            symbolizer.learn(*match.groups())


def refuse(reason):
    """As the rest of the command: one line, and 125."""
    print(f"cuweir: symbolize: {reason}", file=sys.stderr)
    sys.exit(125)


class Parser(argparse.ArgumentParser):
    def error(self, message):
        refuse(f"{message} (cuweir symbolize --help)")


def main():
    parser = Parser(prog="cuweir symbolize", description=__doc__)
    parser.add_argument("-m", "--module", action="append", default=[], metavar="FILE",
                        help="the file of a module")
    parser.add_argument("file", nargs="?", help="a report or log; standard input")
    arguments = parser.parse_args()
    try:
        with (open(arguments.file, errors="surrogateescape", encoding="utf-8")
              if arguments.file else open(0, errors="surrogateescape", encoding="utf-8")) as file:
            lines = file.read().splitlines()
    except OSError as error:
        refuse(f"{arguments.file or 'standard input'}: {error.strerror}")
    for path in arguments.module:
        if not os.path.isfile(path):
            refuse(f"-m {path}: there is no such file")
    symbolizer = Symbolizer(arguments.module)
    learn_all(symbolizer, lines)
    named = {name for line in lines for name, _ in SITE.findall(line)}
    for path in arguments.module:
        if os.path.basename(path) not in named:
            print(f"cuweir: symbolize: -m {path}: no call site is in a module of that name",
                  file=sys.stderr)
    sys.stdout.reconfigure(errors="surrogateescape")
    for line in lines:
        value = as_json(line)
        if value is None:
            print(in_text(symbolizer, line))
        else:
            in_json(symbolizer, value)
            print(json.dumps(value))


if __name__ == "__main__":
    # A reader that has seen enough (`head`) ends it, as it ends any filter.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    try:
        main()
        sys.stdout.flush()
    except OSError as error:
        # The interpreter would try once more at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        refuse(f"standard output: {error.strerror}")
