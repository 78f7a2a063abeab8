#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_headers.py TABLE EXCEPTIONS CUDA_INCLUDE: every function of CUDA's headers that by its
name has to do with memory is a row of the table, or an exception with a reason."""

import fnmatch
import pathlib
import re
import sys

# What has to do with memory, contexts' lives, streams' devices, captures or look-ups, by name.
MEMORY = re.compile(
    r"^cu(Mem(?!cpy|set)|Array|Mipmapped|Ipc|Graph.*(Mem(Alloc|Free)|MemTrim|MemAttribute)|"
    r"Graph(AddNode|AddChild|Clone|Destroy|Instantiate|ExecUpdate|ExecDestroy|Upload|Launch)|"
    r"Device.*(Mem|Graph)|Multicast|ExternalMemory|Import|DestroyExternal|GreenCtx|"
    r"Ctx(Create|Destroy|Attach|Detach|FromGreen|SetCurrent|PushCurrent|PopCurrent)|"
    r"DevicePrimaryCtx|Graphics|Pointer|Stream(Create|Destroy|BeginCapture|EndCapture|AttachMem)|"
    r"GetProcAddress|GetExportTable|Checkpoint|LogicalEndpoint|VDPAU|GL|EGL)")
RUNTIME = re.compile(
    r"^cuda(Malloc|Free|Mem(?!cpy|set)|Host|Array|Mipmapped|GetMipmapped|Ipc|"
    r"Graph.*(Mem(Alloc|Free)|MemTrim|MemAttribute)|"
    r"Graph(AddNode|AddChild|Clone|Destroy|Instantiate|ExecUpdate|ExecDestroy|Upload|Launch)|"
    r"Device.*(Mem|Graph|Reset)|ThreadExit|External|Import|DestroyExternal|Graphics|Pointer|"
    r"GreenCtx|ExecutionCtx|StreamAttachMem|StreamBeginCapture|StreamEndCapture|"
    r"Get(DeviceProperties|DriverEntryPoint|ExportTable))")


def declared(path):
    """Names that a header declares, and those that it renames them to."""
    text = path.read_text(errors="replace")
    names = set(re.findall(r"^.*?\bCUDAAPI (cu\w+)\s*\(", text, re.M))
    names |= set(re.findall(r"^.*?\bCUDARTAPI (cuda\w+)\s*\(", text, re.M))
    for wrapped, name in re.findall(r"#\s*define cu\w+\s+(?:(__CUDA\w*_PT[DS]S?Z?)\()?(cu\w+)\)?",
                                    text):
        names.add(name)
        if wrapped:
            names.add(name + ("_ptds" if "PTDS" in wrapped else "_ptsz"))
    return names


def main():
    table, exceptions_file, include = map(pathlib.Path, sys.argv[1:])
    rows = re.findall(r"^CW_(?:DRIVER|RUNTIME|RUNTIME_NAMED|RUNTIME0|NVML)\((\w+)",
                      table.read_text(), re.M)
    exceptions = {}
    for line in exceptions_file.read_text().splitlines():
        if line and not line.startswith("#"):
            name, _, reason = line.partition(" ")
            exceptions[name] = reason.strip()
    problems = [f"{name}: an exception without a reason" for name, why in exceptions.items()
                if not why]
    names = declared(include / "cuda.h") | declared(include / "cuda_runtime_api.h")
    wanted = {name for name in names if MEMORY.match(name) or RUNTIME.match(name)}
    for name in sorted(wanted - set(rows)):
        if not any(fnmatch.fnmatchcase(name, pattern) for pattern in exceptions):
            problems.append(f"{name}: neither in hooks.def nor in exceptions.txt")
    problems += [f"{name}: in hooks.def, and an exception" for name in exceptions if name in rows]
    print(f"{len(wanted)} functions by name, {len(wanted & set(rows))} of them in the table")
    if len(wanted) < 200:
        problems.append("the headers were not understood: too few functions were found")
    if problems:
        sys.exit("\n".join(problems))


if __name__ == "__main__":
    main()
