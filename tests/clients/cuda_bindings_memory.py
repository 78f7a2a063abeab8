# SPDX-License-Identifier: Apache-2.0
"""cuda-bindings: every kind of memory, through Cython code that uses cuGetProcAddress."""
from cuda.bindings import driver

MODULE = "cuda.bindings"
MARK = 1000000
EXPECTED = [
    ("over", "device", 1048576),
    ("alloc", "device", 1048576),
    ("alloc", "device", 3000),
    ("alloc", "managed", 5000),
    ("alloc", "host", 700),
    ("under", "device", 3000),
    ("free", "device", 1048576),
    ("free", "device", 3000),
    ("free", "managed", 5000),
    ("free", "host", 700),
]


def call(function, *arguments):
    status, *results = function(*arguments)
    assert status == driver.CUresult.CUDA_SUCCESS, (function.__name__, status)
    return results[0] if results else None


def main():
    call(driver.cuInit, 0)
    device = call(driver.cuDeviceGet, 0)
    call(driver.cuCtxSetCurrent, call(driver.cuDevicePrimaryCtxRetain, device))
    linear = call(driver.cuMemAlloc, 1 << 20)
    ordered = call(driver.cuMemAllocAsync, 3000, 0)
    managed = call(driver.cuMemAllocManaged, 5000, driver.CUmemAttach_flags.CU_MEM_ATTACH_GLOBAL)
    pinned = call(driver.cuMemHostAlloc, 700, 0)
    call(driver.cuMemFree, linear)
    call(driver.cuMemFreeAsync, ordered, 0)
    call(driver.cuStreamSynchronize, 0)
    call(driver.cuMemFree, managed)
    call(driver.cuMemFreeHost, pinned)


if __name__ == "__main__":
    main()
