#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""meson install into a staged prefix; a policy built against the installed header alone, and run by
the installed command."""
import os
import shutil
import unittest

from support import APPS, BUILD, SOURCE, Case, run

POLICY = """
#include <cuweir/policy.h>

static int admit(void *state, const struct cuweir_event *event)
{
	return event->requested > 4096 ? CUWEIR_ERROR_OUT_OF_MEMORY : CUWEIR_SUCCESS;
}

const struct cuweir_policy cuweir_policy_entry = {
	.struct_size = sizeof(struct cuweir_policy),
	.version = CUWEIR_POLICY_VERSION,
	.name = "small",
	.admit = admit,
};
"""


@unittest.skipUnless(shutil.which("meson"), "no meson")
class Install(Case):
    def find(self, name):
        found = [f"{where}/{name}" for where, _, files in os.walk(self.directory) if name in files]
        self.assertEqual(len(found), 1, f"{name}: {found}")
        return found[0]

    def test_all(self):
        done = run("meson", "install", "-C", BUILD, "--no-rebuild", "--quiet", "--destdir",
                   self.directory)
        self.assertEqual(done.status, 0, done.out + done.err)
        command = self.find("cuweir")
        for name in ("libcuweir.so", "libcuweir-client.so", "symbolize", "cuweir.pc", "cuweir.h"):
            self.find(name)
        if os.path.exists(f"{BUILD}/docs/man/cuweir.1"):
            for name in ("cuweir.1", "cuweir.7", "cuweir-policies.7"):
                self.find(name)
        for name in ("cuweir.bash", "_cuweir", "cuweir.fish"):
            self.find(name)
        self.assertEqual(run(command, "policies").out, run(f"{BUILD}/command/cuweir",
                                                           "policies").out)
        check = run(command, "check", f"{APPS}/scenario_linked")
        self.assertEqual(check.status, 0, check.out)
        self.assertIn(self.directory, check.out)
        self.run_policy(command, os.path.dirname(os.path.dirname(self.find("policy.h"))))
        self.symbolize(command)
        self.simulate(command)
        self.package_config()

    def run_policy(self, command, include):
        source = self.file("small.c", POLICY)
        plugin = f"{self.directory}/small.so"
        done = run("cc", "-std=c11", "-shared", "-fPIC", f"-I{include}", "-o", plugin, source)
        self.assertEqual((done.status, done.err), (0, ""))
        result = run(command, "run", "-q", "-p", plugin, "-p", "log", "--",
                     f"{APPS}/scenario", "dlsym", "alloc a 4096; expect 2 alloc b 4097; free a",
                     env={"LD_LIBRARY_PATH": f"{BUILD}/tests/sim/lib"})
        self.assertEqual((result.status, result.err.count("\n")), (0, 2), result.err)

    def package_config(self):
        if not shutil.which("pkg-config"):
            return
        flags = run("pkg-config", "--cflags", "--libs", "cuweir", env={
            "PKG_CONFIG_LIBDIR": os.path.dirname(self.find("cuweir.pc")),
            "PKG_CONFIG_SYSROOT_DIR": self.directory})
        self.assertEqual((flags.status, flags.err), (0, ""))
        source = self.file("version.c", '#include <cuweir/cuweir.h>\n#include <stdio.h>\n'
                           'int main(void) { puts(cuweir_get_version() ? "there" : "absent"); '
                           'return 0; }\n')
        program = f"{self.directory}/version"
        done = run("cc", "-o", program, source, *flags.out.split())
        self.assertEqual((done.status, done.err), (0, ""))
        libraries = os.path.dirname(self.find("libcuweir-client.so"))
        result = run(self.find("cuweir"), "run", program, env={"LD_LIBRARY_PATH": libraries})
        self.assertEqual((result.status, result.out), (0, "there\n"), result.err)

    def symbolize(self, command):
        report = run(command, "run", "-q", "-r", f"{APPS}/scenario", "dlsym", "alloc a 1",
                     env={"LD_LIBRARY_PATH": f"{BUILD}/tests/sim/lib"}).err
        self.assertIn("(do_allocate at", run(command, "symbolize", stdin=report).out)

    def simulate(self, command):
        """With and without the simulated GPU, as the option has it installed."""
        lib = os.path.dirname(self.find("libcuweir.so"))
        if not os.path.exists(f"{lib}/cuweir/sim"):
            result = run(command, "run", "--sim", "1G", "true")
            self.assertEqual((result.status, result.err),
                             (125, "cuweir: --sim: the simulated GPU is not installed; want a "
                                   "build with it (meson setup -Dsim=enabled)\n"))
            done = run("sh", f"{SOURCE}/command/install-sim", f"{BUILD}/tests/sim/lib",
                       f"{lib}/cuweir/sim".removeprefix(self.directory + "/"),
                       env={"MESON_INSTALL_DESTDIR_PREFIX": self.directory})
            self.assertEqual((done.status, done.err), (0, ""))
        for name in ("libcuda.so.1", "libcudart.so.13", "libnvidia-ml.so.1"):
            self.assertTrue(os.path.exists(f"{lib}/cuweir/sim/{name}"), name)
        result = run(command, "run", "--sim", "1G", f"{APPS}/scenario", "dlsym", "info")
        self.assertEqual((result.status, result.out), (0, "info 1073741824 1073741824\n"))


if __name__ == "__main__":
    unittest.main()
