# SPDX-License-Identifier: Apache-2.0
"""numba-cuda: arrays on the device, pinned and managed, and a copy there and back."""
import numpy
from numba import cuda

MODULE = "numba.cuda"
MARK = 4500
EXPECTED = [
    ("alloc", "device", 4000),
    ("over", "device", 4800),
    ("alloc", "device", 800),
    ("alloc", "host", 1600),
    ("alloc", "managed", 2400),
    ("under", "device", 800),
    ("free", "device", 4000),
    ("free", "device", 800),
    ("free", "host", 1600),
    ("free", "managed", 2400),
]


def main():
    plain = cuda.device_array(1000, dtype=numpy.float32)
    copied = cuda.to_device(numpy.arange(100, dtype=numpy.float64))
    assert copied.copy_to_host().sum() == 4950
    pinned = cuda.pinned_array(200, dtype=numpy.float64)
    managed = cuda.managed_array(300, dtype=numpy.float64)
    deallocations = cuda.current_context().memory_manager.deallocations
    # numba frees when it sees fit; one after the other, so that the order is known.
    del plain
    deallocations.clear()
    del copied
    deallocations.clear()
    del pinned
    deallocations.clear()
    del managed
    deallocations.clear()


if __name__ == "__main__":
    main()
