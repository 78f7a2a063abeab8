# SPDX-License-Identifier: Apache-2.0
"""Stands for a training job: takes device memory through whatever CUDA runtime there is."""
import ctypes
import sys

cudart = ctypes.CDLL("libcudart.so.13")
free, total = ctypes.c_size_t(), ctypes.c_size_t()
if cudart.cudaMemGetInfo(ctypes.byref(free), ctypes.byref(total)) != 0:
    sys.exit("train: no CUDA device")
print(f"train: {free.value >> 20} MiB free of {total.value >> 20}")
batches = []
for batch in range(4):
    pointer = ctypes.c_void_p()
    if cudart.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(64 << 20)) != 0:
        sys.exit(f"train: batch {batch + 1}: out of memory")
    batches.append(pointer)
for pointer in batches:
    cudart.cudaFree(pointer)
print("train: 4 batches")
