# SPDX-License-Identifier: Apache-2.0
"""tinygrad: its own ctypes binding; a buffer, and a tensor copied there and back."""
from tinygrad import Tensor
from tinygrad.device import Buffer, Device
from tinygrad.dtype import dtypes

MODULE = "tinygrad"
MARK = 4000
EXPECTED = [
    ("over", "device", 4000),
    ("alloc", "device", 4000),
    ("under", "device", 0),
    ("free", "device", 4000),
    ("alloc", "device", 400),
    ("alloc", "host", 400),
    ("free", "device", 400),
    ("free", "host", 400),
]


def main():
    allocator = Device["CUDA"].allocator
    buffer = Buffer("CUDA", 1000, dtypes.float32).allocate()
    del buffer
    allocator.free_cache()  # until then tinygrad keeps it for itself
    tensor = Tensor(list(range(100))).to("CUDA").realize()
    assert tensor.tolist() == list(range(100))
    del tensor
    allocator.free_cache()


if __name__ == "__main__":
    main()
