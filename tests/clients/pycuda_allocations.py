# SPDX-License-Identifier: Apache-2.0
"""pycuda: a C++ extension linked to libcuda.so.1, with a context of its own."""
import numpy
import pycuda.driver as cuda

MODULE = "pycuda"
MARK = 5000
EXPECTED = [
    ("over", "device", 5000),
    ("alloc", "device", 5000),
    ("alloc", "managed", 400),
    ("alloc", "host", 1000),
    ("under", "device", 0),
    ("free", "device", 5000),
    ("free", "managed", 400),
    ("free", "host", 1000),
]


def main():
    cuda.init()
    context = cuda.Device(0).make_context()
    linear = cuda.mem_alloc(5000)
    managed = cuda.managed_empty(100, numpy.float32, mem_flags=cuda.mem_attach_flags.GLOBAL)
    pinned = cuda.pagelocked_empty(1000, numpy.uint8)
    linear.free()
    del managed
    del pinned
    context.pop()


if __name__ == "__main__":
    main()
