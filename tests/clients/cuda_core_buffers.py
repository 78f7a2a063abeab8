# SPDX-License-Identifier: Apache-2.0
"""cuda-core: linear and pinned buffers, and one from the device's pool."""
from cuda.core import Device, LegacyPinnedMemoryResource
from cuda.core._memory._legacy import _SynchronousMemoryResource

MODULE = "cuda.core"
MARK = 6000
EXPECTED = [
    ("alloc", "device", 5000),
    ("over", "device", 12000),
    ("alloc", "device", 7000),
    ("alloc", "host", 1000),
    ("free", "device", 5000),
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
