#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""measure.py [--long] BUILD [GROUP...]: measures what tests/bench/limits.txt limits, and says for
each figure whether it holds. 1 where one does not, 77 without valgrind.

A figure of instructions is the difference of two runs of different lengths under callgrind, so
that start and end cancel out; the driver's own cost and the loop's are in the run without
any interposer, and are subtracted or shown."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
LIMITS = {name: float(limit) for name, limit in
          re.findall(r"^([a-z][\w.-]*) +([\d.]+)", (HERE / "limits.txt").read_text(), re.M)}
PAIRS = 10000


class Bench:
    def __init__(self, build, long):
        self.build = pathlib.Path(build).resolve()
        self.long = long
        self.bench = self.build / "tests/bench"
        self.shim = self.build / "shim/libcuweir.so"
        self.empty = self.build / "tests/lookup/libcw_empty.so"
        self.failed = False

    def environment(self, preload=None, policy=None, **more):
        env = {name: value for name, value in os.environ.items()
               if not name.startswith(("CUWEIR_", "BENCH_")) and name != "LD_PRELOAD"}
        env["LD_LIBRARY_PATH"] = str(self.bench / "lib")
        if preload:
            if not preload.exists():
                sys.exit(f"measure.py: no {preload}")
            env["LD_PRELOAD"] = str(preload)
        if policy:
            env["CUWEIR_POLICY"] = policy
            env["CUWEIR_STRICT"] = "1"
        env.update(more)
        return env

    def thresholds(self, count=10, step=None):
        return f"{self.bench}/bench_policy.so:{count}" + (f":{step}" if step else "")

    def plain(self, name):
        return None if name == "none" else self.bench / f"{name}.so"

    def output(self, arguments, env):
        done = subprocess.run([self.bench / "bench", *map(str, arguments)], env=env,
                              capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"bench {arguments}: {done.stderr}")
        return done.stdout

    def callgrind(self, command, env, *options):
        """The instructions of a whole run, and of each profile that it dumped."""
        with tempfile.TemporaryDirectory() as work:
            preload = env.get("LD_PRELOAD")
            done = subprocess.run(
                ["valgrind", "--tool=callgrind", f"--callgrind-out-file={work}/out", *options,
                 *map(str, command)], env=env, capture_output=True, text=True)
            if done.returncode:
                sys.exit(f"{command} under {preload}: {done.stderr}")
            parts = [0]
            for path in pathlib.Path(work).iterdir():
                found = re.search(r"^(?:summary|totals): (\d+)", path.read_text(), re.M)
                parts.append(int(found[1]) if found else 0)
            return parts

    def pair(self, how, live, preload, policy=None, pairs=PAIRS, size=512, at_rest=True,
             **more):
        env = self.environment(preload, policy, **more)
        program = self.bench / "bench"
        # Books that were just filled split what chance filled most; then they come to rest.
        rest = min(2 * live, 200000) if at_rest else 0
        runs = [sum(self.callgrind([program, how, live, count, size], env))
                for count in (1000 + rest, 1000 + rest + pairs)]
        return (runs[1] - runs[0]) / pairs

    def show(self, what, figure, unit=""):
        print(f"  {what:52} {figure:12,.1f} {unit}", flush=True)

    def hold(self, name, figure, unit="", what=None):
        limit = LIMITS[name]
        good = figure <= limit
        self.failed |= not good
        print(f"  {what or name:52} {figure:12,.1f} {unit} (at most {limit:g})"
              f"{'' if good else '  TOO MUCH'}", flush=True)


def pair(bench):
    """An allocation and its free through the driver door, one policy with ten thresholds."""
    base = {}
    for how in ("same", "turnover"):
        for name in ("none", "forward"):
            base[how, name] = bench.pair(how, 10, bench.plain(name))
        bench.show(f"{how}: driver and loop alone", base[how, "none"], "instructions")
        bench.show(f"{how}: forwarding only", base[how, "forward"], "instructions")
    lives = (10, 1000, 100000) + ((1000000, 10000000) if bench.long else ())
    for how in ("same", "turnover"):
        first = None
        worst = 0
        for live in lives:
            above = (bench.pair(how, live, bench.shim, bench.thresholds())
                     - base[how, "forward"])
            first = first or above
            worst = max(worst, above / first * 100 - 100)
            name = f"pair.{how}.10"
            if live == 10:
                bench.hold(name, above, "instructions above forwarding")
            else:
                bench.show(f"{how}, {live:,} live", above, "instructions above forwarding")
        bench.hold("pair.growth-percent", worst, "%", f"{how}: growth from 10 live")
        filled = (bench.pair(how, 100000, bench.shim, bench.thresholds(), at_rest=False)
                  - base[how, "forward"])
        bench.show(f"{how}, 100,000 live, just filled", filled, "instructions above forwarding")
        bench.hold("pair.growth-percent", filled / first * 100 - 100, "%",
                   f"{how}: right after growth to 100,000")
    for name in ("atomic", "list") + (("map",) if bench.plain("map").exists() else ()):
        for live in (10, 1000):
            bench.show(f"{name}, {live:,} live",
                       bench.pair("same", live, bench.plain(name)) - base["same", "forward"],
                       "instructions above forwarding")
    bench.show("no policy", bench.pair("same", 10, bench.shim) - base["same", "forward"],
               "instructions above forwarding")
    for name in ("limit", "log"):
        policy = {"limit": "limit:8GiB", "log": "log:format=csv,file=/dev/null"}[name]
        bench.hold(f"pair.{name}", bench.pair("same", 10, bench.shim, policy)
                   - base["same", "forward"], "instructions above forwarding, policy " + name)
    two = ";".join([bench.thresholds()] * 2)
    bench.hold("pair.two-policies", bench.pair("same", 10, bench.shim, two)
               - base["same", "forward"], "instructions above forwarding")


def thresholds(bench):
    """Lists of any length cost the same while nothing is crossed, and a crossing O(log n)."""
    quiet = {count: bench.pair("same", 10, bench.shim, bench.thresholds(count))
             for count in (1, 100, 10000)}
    for count, figure in quiet.items():
        bench.show(f"{count:,} thresholds, none crossed", figure, "instructions a pair")
    bench.hold("thresholds.spread", max(quiet.values()) - min(quiet.values()), "instructions")
    crossing = {}
    for count in (1, 100, 10000):
        # From below the first to above the last, and back: the search goes its whole way.
        step = 1 << 20
        crossing[count] = bench.pair("same", 10, bench.shim, bench.thresholds(count, step),
                                     size=(count + 1) * step)
        bench.show(f"{count:,} thresholds, all crossed", crossing[count],
                   "instructions a pair with two callbacks")
    bench.hold("thresholds.crossing-spread", crossing[10000] - crossing[1], "instructions")


def growth(bench):
    """Memory of the books, and the worst single call while they grow."""
    for live in (1000000, 10000000) if bench.long else (1000000,):
        used = {}
        for name, preload, policy in (("none", None, None),
                                      ("cuweir", bench.shim, bench.thresholds())):
            env = bench.environment(preload, policy)
            before, after = map(int, bench.output(["memory", live], env).split())
            used[name] = after - (before if name == "none" else 0)
        bench.hold("bytes.live", (used["cuweir"] - used["none"]) / live,
                   f"bytes at {live:,}, the whole process")
    live = 1000000 if bench.long else 100000
    env = bench.environment(bench.shim, bench.thresholds())
    parts = bench.callgrind([bench.bench / "bench", "grow", live], env,
                            "--toggle-collect=cw_ledger_enter_further_",
                            "--dump-after=cw_ledger_enter_further_")
    whole = bench.pair("turnover", 10, bench.shim, bench.thresholds())
    bench.hold("call.worst", max(parts) + whole, f"instructions, of {len(parts):,} growing")


def stripped(path, work):
    copy = pathlib.Path(work) / "stripped.so"
    subprocess.run(["strip", "-o", copy, path], check=True)
    # Pages of a file that is not on the disk yet would count as the process's own.
    with copy.open() as file:
        os.fsync(file.fileno())
    return copy


def object_(bench):
    """A process that never touches CUDA, and the preloaded object itself."""
    with tempfile.TemporaryDirectory() as work:
        copy = stripped(bench.shim, work)
        bench.hold("object.kib", copy.stat().st_size / 1024, "KiB")
        true = shutil.which("true")
        env = bench.environment(bench.shim)
        parts = bench.callgrind([true], env, "--toggle-collect=on_load")
        bench.hold("start.instructions", max(parts), "instructions of the constructor")
        runs = [sum(bench.callgrind([true], bench.environment(preload)))
                for preload in (bench.empty, copy)]
        bench.show("the whole process above an empty object", runs[1] - runs[0],
                   "instructions, the loader's included")
        counts = []
        for preload in (bench.empty, copy):
            trace = subprocess.run(["strace", "-f", true], env=bench.environment(preload),
                                   capture_output=True, text=True).stderr \
                if shutil.which("strace") else ""
            opened = [path for path in re.findall(r'open(?:at)?\((?:\w+, )?"([^"]*)', trace)
                      if path != str(preload) and "/libdl.so" not in path
                      and "/libpthread.so" not in path]
            counts.append((len(opened), len(re.findall(r"clone3?\(", trace))))
        bench.hold("start.files", counts[1][0] - counts[0][0], "files of ours opened")
        bench.hold("start.threads", counts[1][1], "threads")
        used = []
        for preload in (bench.empty, copy):
            text = subprocess.run(["cat", "/proc/self/smaps_rollup"], capture_output=True,
                                  text=True, env=bench.environment(preload)).stdout
            used.append(sum(map(int, re.findall(r"^Private_Dirty: +(\d+)", text, re.M))))
        bench.hold("start.kib", used[1] - used[0], "KiB of private memory")


def log(bench):
    """The log policy's rows: CSV, what an event costs and whether any is lost."""
    policy = bench.build / "policy/log.so"
    with tempfile.TemporaryDirectory() as work:
        path = pathlib.Path(work) / "log.csv"
        setting = f"{policy}:format=csv,file={path},flush=block"
        env = bench.environment(bench.shim, setting)
        own = [sum(bench.callgrind([bench.bench / "bench", "same", 10, count], env,
                                   "--toggle-collect=on_allocated",
                                   "--toggle-collect=before_free"))
               for count in (1000, 1000 + PAIRS)]
        bench.hold("log.csv-event", (own[1] - own[0]) / PAIRS / 2,
                   "instructions an event, in the policy")
        whole = bench.pair("same", 10, bench.shim, setting)
        bench.show("a pair with its two rows", whole - bench.pair("same", 10, bench.plain("forward")),
                   "instructions above forwarding")
        path.unlink()
        count = 1000000 if bench.long else 50000
        bench.output(["threads", 8, count // 2], bench.environment(bench.shim, setting))
        with path.open() as file:
            lines = sum(1 for line in file) - 1
        bench.hold("log.lost", 8 * (count // 2) * 2 - lines,
                   f"of {8 * (count // 2) * 2:,} rows of 8 threads")


def shards(bench):
    """Where the ledger's shards lie in the object, for the count of contended locks."""
    text = subprocess.run(["nm", bench.shim], capture_output=True, text=True).stdout
    found = re.search(r"^([0-9a-f]+) . cw_ledger_shards_$", text, re.M)
    return {"BENCH_SHARDS": f"{found[1]},64"} if found else {}


def threads(bench):
    """Threads: CPU time beside one shared atomic add, against the same with one thread. Times
    of a busy machine are what they are: the least of several runs, taken in turn."""
    for spin in (0, 300):
        first = None
        for count in (1, 2, 4, 8, 32):
            best = {}
            contended = 0
            pairs = 2000000 // count
            for _ in range(7 if bench.long else 3):
                for name, preload, policy in (("atomic", bench.plain("atomic"), None),
                                              ("cuweir", bench.shim, bench.thresholds())):
                    env = bench.environment(preload, policy, BENCH_SPIN=str(spin),
                                            **(shards(bench) if policy else {}))
                    cost, locks = bench.output(["threads", count, pairs], env).split()
                    best[name] = min(best.get(name, 1e9), float(cost))
                    contended = max(contended, int(locks))
            ratio = best["cuweir"] / best["atomic"]
            first = first or ratio
            bench.show(f"spin {spin}, {count} threads: cuweir, atomic", best["cuweir"],
                       f"ns, {best['atomic']:.1f} ns; {contended} of {4 * pairs * count // 2:,}"
                       " locks contended")
            bench.hold("threads.ratio", ratio / first, f"of one thread's {first:.2f}",
                       f"spin {spin}, {count} threads")


def lookup(bench):
    """dlsym of a name that is not ours."""
    done = subprocess.run([HERE.parent / "lookup/check_cost", bench.build / "tests/lookup/lookup_cost",
                           bench.shim, bench.empty], capture_output=True, text=True)
    for name, more in re.findall(r"^(\w+): .*: \+(-?\d+)$", done.stdout, re.M):
        bench.hold("lookup.foreign", float(more), "instructions", f"dlsym of {name}")
    bench.failed |= done.returncode != 0


GROUPS = {"pair": pair, "thresholds": thresholds, "growth": growth, "object": object_,
          "lookup": lookup, "log": log, "threads": threads}


def main(arguments):
    long = "--long" in arguments
    arguments = [one for one in arguments if one != "--long"]
    if not arguments or any(one not in GROUPS for one in arguments[1:]):
        sys.exit(f"usage: measure.py [--long] BUILD [{'|'.join(GROUPS)}]...")
    if shutil.which("valgrind") is None:
        print("no valgrind")
        return 77
    bench = Bench(arguments[0], long)
    for name in arguments[1:] or GROUPS:
        print(f"{name}: {GROUPS[name].__doc__.splitlines()[0]}", flush=True)
        GROUPS[name](bench)
    return 1 if bench.failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
