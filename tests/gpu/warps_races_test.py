#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The OpenCL library of tests/gpu/warps stops kernels with a planted fault, and runs them without
it. Each kernel runs in a process of its own, since the library ends the process. Arguments: the
folder of the library; for such a process also the kernel and its number of groups."""
import ctypes
import os
import subprocess
import sys

ITEMS = 64  # of a group: two warps
SEEDS = ("0", "7", "1000")
# name, text, groups, and what the library says: nothing where the kernel is right; None: the output
# is NaN
CASES = [
    ("local memory with a barrier",
     "__local float room[64]; room[i] = i; barrier(CLK_LOCAL_MEM_FENCE); out[i] = room[63 - i];",
     1, ""),
    ("local memory without a barrier",
     "__local float room[64]; room[i] = i; out[i] = room[63 - i];", 1, "local memory"),
    ("a warp that meets", "__local float room[64]; room[i] = i; sync_lanes(32); out[i] = "
     "room[i ^ 1];", 1, ""),
    ("a warp that does not meet", "__local float room[64]; room[i] = i; out[i] = room[i ^ 1];", 1,
     "local memory"),
    ("two warps that meet alone", "__local float room[64]; room[i] = i; sync_lanes(32); out[i] = "
     "room[63 - i];", 1, "local memory"),
    ("a counter that an item clears before a barrier",
     "volatile __local int count[1]; if (i == 0) count[0] = 0; barrier(CLK_LOCAL_MEM_FENCE); "
     "atomic_inc(count); barrier(CLK_LOCAL_MEM_FENCE); out[i] = count[0];", 1, ""),
    ("a counter that an item clears without a barrier",
     "volatile __local int count[1]; if (i == 0) count[0] = 0; atomic_inc(count); "
     "barrier(CLK_LOCAL_MEM_FENCE); out[i] = count[0];", 1, "local memory"),
    ("a group for each place", "out[get_global_id(0)] = i;", 2, ""),
    ("two groups for a place", "out[i] = get_global_id(0);", 2, "global memory"),
    ("a copy that is waited for",
     "__local float4 room[64]; out[4 * i] = i; begin_whole_copy(room + i, in + i); "
     "wait_for_copies(); out[i] = room[i].x;", 1, ""),
    ("a copy that is not waited for",
     "__local float4 room[64]; begin_whole_copy(room + i, in + i); out[i] = room[i].x;", 1,
     "a copy that is not waited for"),
    ("local memory that nobody writes", "__local float room[64]; if (in == 0) room[i] = i; "
     "out[i] = room[i];", 1, None),
]


def run(library, number, groups):
    """Runs the kernel of a case, and returns what it wrote. Programs take the functions of the
    machine from the library."""
    cl = ctypes.CDLL(os.path.join(library, "libOpenCL.so.1"), ctypes.RTLD_GLOBAL)
    for name in ("clCreateBuffer", "clCreateProgramWithSource", "clCreateKernel"):
        getattr(cl, name).restype = ctypes.c_void_p
    error = ctypes.c_int()
    body = CASES[number][1]
    # The library puts its own nvidia.clh before the first line.
    text = ("#ifndef QRTOOL_NVIDIA_CLH\n#endif\n"
            "__kernel void planted(__global float* out, __global const float4* in) {\n"
            f"  const int i = get_local_id(0);\n  {body}\n}}\n").encode()
    texts = (ctypes.c_char_p * 1)(text)
    program = ctypes.c_void_p(cl.clCreateProgramWithSource(None, 1, texts, None,
                                                           ctypes.byref(error)))
    if cl.clBuildProgram(program, 0, None, b"", None, None) != 0:
        log = ctypes.create_string_buffer(1 << 16)
        cl.clGetProgramBuildInfo(program, None, 0x1183, ctypes.c_size_t(len(log)), log, None)
        sys.exit(log.value.decode())
    kernel = ctypes.c_void_p(cl.clCreateKernel(program, b"planted", ctypes.byref(error)))
    buffers = []
    for argument in range(2):
        buffers.append(ctypes.c_void_p(cl.clCreateBuffer(None, 0, ctypes.c_size_t(4096), None,
                                                         ctypes.byref(error))))
        cl.clSetKernelArg(kernel, argument, ctypes.c_size_t(8), ctypes.byref(buffers[-1]))
    total, items = ctypes.c_size_t(groups * ITEMS), ctypes.c_size_t(ITEMS)
    cl.clEnqueueNDRangeKernel(None, kernel, 1, None, ctypes.byref(total), ctypes.byref(items), 0,
                              None, None)
    values = (ctypes.c_float * ITEMS)()
    cl.clEnqueueReadBuffer(None, buffers[0], 1, ctypes.c_size_t(0),
                           ctypes.c_size_t(ctypes.sizeof(values)), values, 0, None, None)
    return list(values)


def fault_of(library, number, seed):
    """Runs a case in a process; returns what was wrong, or nothing."""
    name, _, groups, expected = CASES[number]
    done = subprocess.run([sys.executable, __file__, library, str(number), str(groups)],
                          capture_output=True, text=True, check=False, timeout=120,
                          env=dict(os.environ, QRTOOL_WARPS_SEED=seed))
    if expected is None:
        is_right = done.returncode == 0 and "number" not in done.stdout
    elif expected:
        is_right = "warps: " in done.stderr and expected in done.stderr
    else:
        is_right = done.returncode == 0 and not done.stderr
    return "" if is_right else (f"{name}, seed {seed}: {done.returncode}\n"
                                f"{done.stdout}{done.stderr}")


if len(sys.argv) == 4:
    print(*("NaN" if x != x else "number" for x in run(sys.argv[1], *map(int, sys.argv[2:]))))
else:
    faults = [fault_of(sys.argv[1], number, seed) for number in range(len(CASES))
              for seed in SEEDS]
    sys.exit("\n".join(filter(None, faults)) or 0)
