# SPDX-License-Identifier: Apache-2.0
"""cases.py CASE: what a PyTorch program does with memory, run by check.py with cuweir and
without. The last line that it prints is JSON: what torch itself says it did.

Nothing here reads what a kernel has computed: on the simulated GPU kernels do nothing.
"""
import gc
import json
import os
import sys
import tempfile
import threading
import time

import torch

MiB = 1 << 20


def empty(size, device="cuda"):
    return torch.empty(size, dtype=torch.uint8, device=device)


def stats():
    s = torch.cuda.memory_stats()
    return {"reserved": torch.cuda.memory_reserved(), "allocated": torch.cuda.memory_allocated(),
            "requested": s.get("requested_bytes.all.current", 0),
            "peak": torch.cuda.max_memory_reserved(), "retries": s.get("num_alloc_retries", 0),
            "ooms": s.get("num_ooms", 0), "info": torch.cuda.mem_get_info()}


def trace():
    """What the caching allocator took from CUDA and gave back: [action, size], in order."""
    if backend() != "native":
        return []
    return [[e["action"], e["size"]]
            for device in torch.cuda.memory._snapshot()["device_traces"] for e in device
            if e["action"].startswith("segment_")]


def backend():
    return torch.cuda.memory.get_allocator_backend()


def record():
    if backend() == "native":
        torch.cuda.memory._record_memory_history(stacks="python", context=None)


def failing(size):
    """The class of what torch raises, and its text."""
    try:
        empty(size)
    except Exception as e:
        return [type(e).__name__, str(e)]
    return ["none", ""]


def life():
    """Tensors of all sizes in four streams, dropped and given back."""
    record()
    streams = [torch.cuda.current_stream()] + [torch.cuda.Stream() for _ in range(3)]
    kept = []
    for n in range(60):
        with torch.cuda.stream(streams[n % 4]):
            kept.append(empty(1 + n * n * 9973 % (40 * MiB)))
        if n % 3 == 2:
            kept[n // 2].record_stream(streams[(n + 1) % 4])
            kept[n // 2] = None
    del kept[30:]
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    middle = torch.cuda.memory_reserved()
    x = torch.zeros(1000, device="cuda")
    y = ((x + 1) * x).sum() # kernels, and their temporaries
    torch.cuda.synchronize()
    return {"middle": middle, "trace": trace(), **stats()}


def copies():
    """Copies are done, on the simulated GPU too."""
    a = torch.arange(100000, dtype=torch.int32)
    pinned = a.pin_memory()
    b = pinned.to("cuda", non_blocking=True)
    c = b.clone()
    d = c.cpu()
    return {"same": bool((a == d).all()), **stats()}


def pinned():
    kept = [torch.empty(n * MiB, dtype=torch.uint8, pin_memory=True) for n in (1, 3, 8)]
    own = torch.empty(5 * MiB, dtype=torch.uint8)
    registered = torch.cuda.cudart().cudaHostRegister(own.data_ptr(), own.numel(), 0)
    host = torch.cuda.host_memory_stats()
    ret = {"pinned": all(k.is_pinned() for k in kept), "registered": int(registered),
           "own": own.is_pinned(), "host": host["allocated_bytes.current"]}
    int(torch.cuda.cudart().cudaHostUnregister(own.data_ptr()))
    kept[2].to("cuda")
    return ret


def loader():
    """A data loader that pins in a thread of its own."""
    data = torch.utils.data.TensorDataset(torch.arange(40 * 1000).reshape(40, 1000))
    total = 0
    for (batch,) in torch.utils.data.DataLoader(data, batch_size=8, pin_memory=True):
        total += int(batch.to("cuda", non_blocking=True).cpu().sum())
    return {"total": total, "host": torch.cuda.host_memory_stats()["allocated_bytes.current"]}


def oom():
    """Too much; then what fits only after the cache was given back."""
    free, total = torch.cuda.mem_get_info()
    kind, text = failing(total + MiB)
    a = empty(total // 2)
    used = torch.cuda.mem_get_info()[0]
    del a
    b = empty(total // 4 * 3)
    return {"error": kind, "text": text, "free": free, "total": total, "used": used, **stats()}


def fill():
    """As many blocks of 100 MiB as there are, then an error; then a smaller one."""
    kept = []
    error = ["none", ""]
    while len(kept) < 100:
        try:
            kept.append(empty(100 * MiB))
        except Exception as e:
            error = [type(e).__name__, str(e)]
            break
    blocks = len(kept)
    at = torch.cuda.mem_get_info()
    del kept[1:]
    after = failing(150 * MiB)[0]
    return {"blocks": blocks, "at": at, "error": error[0],
            "text": error[1], "after": after, **stats()}


def fraction():
    torch.cuda.set_per_process_memory_fraction(0.25)
    return {"error": failing(400 * MiB)[0], **stats()}


def mempool():
    """A pool of its own, and one that is made of a CUDAPluggableAllocator."""
    record()
    pool = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(pool):
        a = empty(30 * MiB)
    b = empty(30 * MiB)
    inside = torch.cuda.memory_reserved()
    del a, pool
    gc.collect()
    torch.cuda.empty_cache()
    return {"inside": inside, "trace": trace(), **stats()}


def graph():
    """A graph with memory of its private pool, replayed, and dropped."""
    record()
    x = torch.zeros(MiB, device="cuda")
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        y = x * 2
    torch.cuda.synchronize()
    g = torch.cuda.CUDAGraph()
    with torch.cuda.graph(g):
        y = x * 2
        z = y + empty(24 * MiB).view(torch.float32)[:MiB]
    for _ in range(3):
        g.replay()
    torch.cuda.synchronize()
    captured = torch.cuda.memory_reserved()
    g.reset()
    del y, z, g
    gc.collect()
    torch.cuda.empty_cache()
    return {"captured": captured, "trace": trace(), **stats()}


def devices():
    """Two devices at once, each with what is its own."""
    kept = [empty((n + 1) * 30 * MiB, f"cuda:{n}") for n in range(2)]
    kept.append(kept[0].to("cuda:1"))
    return {"reserved": [torch.cuda.memory_reserved(n) for n in range(2)],
            "info": [torch.cuda.mem_get_info(n) for n in range(2)]}


def threads():
    """Eight threads that take and drop at once."""
    errors = []

    def work(seed):
        try:
            with torch.cuda.stream(torch.cuda.Stream()):
                kept = []
                for n in range(200):
                    kept.append(empty(1 + (seed + n) * 7919 % (3 * MiB)))
                    if len(kept) > 5:
                        kept.pop(0)
        except Exception as e:
            errors.append(str(e))

    record()
    all_threads = [threading.Thread(target=work, args=(n * 1000,)) for n in range(8)]
    for t in all_threads:
        t.start()
    for t in all_threads:
        t.join()
    torch.cuda.synchronize()
    before = torch.cuda.memory_reserved()
    torch.cuda.empty_cache()
    return {"errors": errors, "before": before, "trace": trace(), **stats()}


def take_over(queue, back):
    x = queue.get()
    back.put([int(x[5]), x.numel()])
    del x
    gc.collect()
    torch.cuda.ipc_collect()


def share():
    """A tensor given to another process: torch sends it by cudaIpcGetMemHandle."""
    mp = torch.multiprocessing.get_context("spawn")
    queue, back = mp.Queue(), mp.Queue()
    child = mp.Process(target=take_over, args=(queue, back))
    child.start()
    x = torch.arange(MiB, dtype=torch.uint8).to("cuda")
    queue.put(x)
    got = back.get(timeout=60)
    child.join()
    return {"got": got, "status": child.exitcode, **stats()}


def forked():
    """A data loader whose workers are forks that use no CUDA."""
    data = torch.utils.data.TensorDataset(torch.arange(4000).reshape(40, 100))
    x = empty(10 * MiB)
    loaded = torch.utils.data.DataLoader(data, batch_size=8, num_workers=2, pin_memory=True,
                                         multiprocessing_context="fork")
    total = sum(int(b.to("cuda").cpu().sum()) for (b,) in loaded)
    return {"total": total, **stats()}


def ranks():
    """Under torchrun: each rank takes memory of a device of its own. gloo carries the messages,
    since NCCL has a CUDA runtime of its own, which does not start here."""
    torch.distributed.init_process_group("gloo")
    rank = torch.distributed.get_rank()
    torch.cuda.set_device(rank)
    kept = empty((rank + 1) * 30 * MiB)
    both = [None, None]
    torch.distributed.all_gather_object(both, torch.cuda.memory_reserved())
    torch.distributed.destroy_process_group()
    if rank != 0:
        sys.exit(0)
    return {"reserved": both, "kept": kept.numel()}


def compiled():
    """torch.compile with Triton's kernels, in CUDA graphs of its own (reduce-overhead)."""
    with tempfile.TemporaryDirectory() as work:
        os.environ.update(TRITON_CACHE_DIR=work, TORCHINDUCTOR_CACHE_DIR=work,
                          TORCHINDUCTOR_COMPILE_THREADS="1")
        made = torch.compile(lambda a, b: (a * b + 1).relu(), mode="reduce-overhead")
        x = torch.empty(MiB, device="cuda")
        for _ in range(4):
            torch.compiler.cudagraph_mark_step_begin()
            y = made(x, x)
        torch.cuda.synchronize()
    return {"shape": list(y.shape), **stats()}


def client_library():
    return os.environ["TORCH_CHECK_CLIENT"]


def pluggable():
    """docs/serving.md: all of torch's memory from cuweir's client library."""
    given = torch.cuda.memory.CUDAPluggableAllocator(client_library(), "cuweir_torch_alloc",
                                                     "cuweir_torch_free")
    torch.cuda.memory.change_current_allocator(given)
    info = torch.cuda.mem_get_info()
    a = empty(10 * MiB)
    with torch.cuda.stream(torch.cuda.Stream()):
        b = empty(3 * MiB)
    torch.cuda.synchronize()
    ret = {"taken": info[0] - torch.cuda.mem_get_info()[0]}
    ret["error"] = failing(2 * info[1])[0]
    x = torch.arange(1000, dtype=torch.int32).cuda()
    ret["same"] = bool((x.cpu() == torch.arange(1000, dtype=torch.int32)).all())
    del a, b, x
    torch.cuda.synchronize()
    ret["left"] = info[0] - torch.cuda.mem_get_info()[0]
    return ret


def pluggable_devices():
    """The same with two devices, dropped while the other one is current."""
    given = torch.cuda.memory.CUDAPluggableAllocator(client_library(), "cuweir_torch_alloc",
                                                     "cuweir_torch_free")
    torch.cuda.memory.change_current_allocator(given)
    before = [torch.cuda.mem_get_info(n)[0] for n in range(2)]
    a = empty(10 * MiB, "cuda:0")
    b = empty(20 * MiB, "cuda:1")
    torch.cuda.synchronize(0)
    torch.cuda.synchronize(1)
    taken = [before[n] - torch.cuda.mem_get_info(n)[0] for n in range(2)]
    torch.cuda.set_device(1)
    del a
    torch.cuda.set_device(0)
    del b
    for n in range(2):
        torch.cuda.synchronize(n)
    return {"taken": taken, "left": [before[n] - torch.cuda.mem_get_info(n)[0] for n in range(2)]}


def pluggable_pool():
    """Only one MemPool from the client library; the rest as ever."""
    given = torch.cuda.memory.CUDAPluggableAllocator(client_library(), "cuweir_torch_alloc",
                                                     "cuweir_torch_free")
    pool = torch.cuda.MemPool(given.allocator())
    with torch.cuda.use_mem_pool(pool):
        a = empty(30 * MiB)
    b = empty(30 * MiB)
    return stats()


def spilled():
    """More than the device has, copied there and back."""
    x = torch.arange(100 * MiB, dtype=torch.int32)
    kept = [x.to("cuda") for _ in range(4)]
    return {"same": all(bool((k.cpu() == x).all()) for k in kept), **stats()}


def wait():
    """Asks for what another thread gives back a little later."""
    kept = [empty(700 * MiB)]

    def drop():
        time.sleep(0.3)
        kept.clear()

    other = threading.Thread(target=drop)
    other.start()
    error = failing(700 * MiB)[0]
    other.join()
    return {"error": error}


if __name__ == "__main__":
    answer = {"case": sys.argv[1], "devices": torch.cuda.device_count(),
              **globals()[sys.argv[1]]()}
    print(json.dumps(answer), flush=True)
