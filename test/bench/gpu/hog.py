#!/usr/bin/env python3
"""Takes the memory of a card but for LEAVE MiB, prints what is free, and holds it until its stdin ends. Needs the driver alone.

    python3 hog.py LEAVE DEVICE [LIBRARY]
"""

import ctypes
import sys

leave, ordinal = int(sys.argv[1]) << 20, int(sys.argv[2])
cuda = ctypes.CDLL(sys.argv[3] if len(sys.argv) > 3 else "libcuda.so.1")


def call(name, *arguments):
    status = getattr(cuda, name)(*arguments)
    if status != 0:
        raise RuntimeError(f"{name} failed: CUDA error {status}")


def free_bytes():
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
    return free.value


device, context, held = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_uint64()
call("cuInit", 0)
call("cuDeviceGet", ctypes.byref(device), ordinal)
call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
call("cuCtxSetCurrent", context)
for step in (1 << 30, 256 << 20, 64 << 20, 16 << 20):
    while free_bytes() > leave + step:
        call("cuMemAlloc_v2", ctypes.byref(held), ctypes.c_size_t(step))
print(free_bytes() >> 20, flush=True)
sys.stdin.read()
