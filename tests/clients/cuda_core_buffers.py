# SPDX-License-Identifier: Apache-2.0
"""cuda-core: linear and pinned buffers, and one from the device's pool."""
from cuda.core import Device, LegacyPinnedMemoryResource
from cuda.core._memory._legacy import _SynchronousMemoryResource

MODULE = "cuda.core"
MARK = 6000
# The pool's 5000 bytes are not in it: cuMemAllocFromPoolAsync is not in hooks.def. That its
# memory is freed by a call that is must do no harm.
EXPECTED = [
    ("over", "device", 7000),
    ("alloc", "device", 7000),
    ("alloc", "host", 1000),
    ("under", "device", 0),
    ("free", "device", 7000),
    ("free", "host", 1000),
]


def main():
    device = Device()
    device.set_current()
    stream = device.create_stream()
    pooled = device.allocate(5000, stream=stream)
    # What cuda-core takes by itself on a device without pools.
    linear = _SynchronousMemoryResource(device.device_id).allocate(7000, stream=stream)
    pinned = LegacyPinnedMemoryResource().allocate(1000)
    assert (pooled.size, linear.size, pinned.size) == (5000, 7000, 1000)
    pooled.close(stream)
    stream.sync()
    linear.close(stream)
    pinned.close()


if __name__ == "__main__":
    main()
