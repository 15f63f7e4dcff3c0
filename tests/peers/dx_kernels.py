#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes kernels of cuSolverDx 0.5.0 for gpu_peers.py, on a machine that needs no GPU.

    dx_kernels.py FOLDER [--libraries FOLDER] [--only qr-64x64] [--arch 90]

FOLDER gets machine code (.cubin.xz) and, beside each, how to launch it (.json). cuSolverDx is a
library of device functions: it comes as an intermediate form, which the linker makes into one
kernel with the caller's code. --libraries holds libmathdx.so.0, libnvrtc.so.13 and
libnvJitLink.so.13 of 13.0 (pip download nvidia-libmathdx-cu13==0.4.1.15 'nvidia-cuda-nvrtc==13.0.*'
'nvidia-nvjitlink==13.0.*'). Matrices are row-major and lie one behind the other; a block holds its
matrices in shared memory, and is called as its best user would: `qr` forms Q where R was, without
a way through global memory, and R leaves as n x n. Each kernel is made in up to three ways
(threads, matrices in a block, padding of rows against bank conflicts): the fastest is chosen on the
device. A kernel takes a minute of a core; those that FOLDER has are not made again, and several of
these programs, each with its own --only, may fill one FOLDER.
"""
import argparse
import collections
import ctypes
import json
import lzma
import os
import pathlib
import sys

VERSION = "cuSolverDx 0.5.0"
SHARED_BYTES = 227 * 1024  # of a block on compute capability 9.0
MOST_WAYS = 3
# (function, m, n, right sides); what does not fit in shared memory is left out.
SHAPES = ((16, 16), (32, 32), (64, 64), (128, 64), (256, 128))
KERNELS = [*((work, m, n, 0) for m, n in SHAPES for work in ("r", "qr")),
           ("gels", 16, 4, 1), ("gels", 64, 64, 1)]
# (name in CUDA, bytes, precision in cuSolverDx)
TYPES = {"single": ("float", 4, 5), "double": ("double", 8, 6)}

# Of libcusolverdx.h and libcommondx.h.
SIZE, TYPE, PRECISION, SM, EXECUTION, BLOCK_DIM, API, FUNCTION, ARRANGEMENT = range(9)
TRANSPOSE_MODE, LEADING_DIMENSION, BATCHES_PER_BLOCK = 12, 13, 14
REAL, BLOCK, SHARED_MEMORY, ROW_MAJOR, NOT_TRANSPOSED = 0, 1, 0, 1, 0
FUNCTIONS = {"geqrf": 7, "gels": 14, "ungqr": 15}
SYMBOL_NAME, SUGGESTED_BLOCK_DIM, SUGGESTED_BATCHES, WORKSPACE_BYTES = 2, 5, 6, 12
# Of nvJitLink.h.
LTO_IR, FAT_BINARY = 3, 4

Kernel = collections.namedtuple("Kernel", "work m n sides precision")
Way = collections.namedtuple("Way", "threads per_block padding")


def must(code, what):
    if code:
        raise RuntimeError(f"{what}: error {code}")


class Libraries:
    def __init__(self, folder, arch):
        def load(name):
            return ctypes.CDLL(str(folder / name) if folder else name)
        self.dx = load("libmathdx.so.0")
        self.compiler, self.linker = load("libnvrtc.so.13"), load("libnvJitLink.so.13")
        self.arch = arch

    def link_call(self, name):
        """The plain names of nvJitLink are inline functions of its header."""
        return getattr(self.linker, f"__nvJitLink{name}_13_0", None) or getattr(
            self.linker, f"nvJitLink{name}")


def sized(ask, fill, what):
    """The bytes of which ask(&size) says how many and fill(size, buffer) writes them."""
    size = ctypes.c_size_t()
    must(ask(ctypes.byref(size)), what)
    buffer = ctypes.create_string_buffer(size.value)
    must(fill(size, buffer), what)
    return buffer.raw


class DeviceFunction:
    """A function of cuSolverDx for one kernel, for the block and the padding of `way`."""

    def __init__(self, libraries, name, kernel, way):
        self.dx, self.handle = libraries.dx, ctypes.c_longlong()
        must(self.dx.cusolverdxCreateDescriptor(ctypes.byref(self.handle)), "descriptor")
        reflectors = min(kernel.m, kernel.n)
        self.put_list(SIZE, kernel.m, kernel.n, kernel.sides or reflectors)
        self.put(TYPE, REAL)
        self.put(PRECISION, TYPES[kernel.precision][2])
        self.put(SM, 10 * libraries.arch)
        self.put(EXECUTION, BLOCK)
        self.put(API, SHARED_MEMORY)
        self.put(FUNCTION, FUNCTIONS[name])
        of_b = name == "gels"
        self.put_list(ARRANGEMENT, *[ROW_MAJOR] * (1 + of_b))
        if of_b:
            self.put(TRANSPOSE_MODE, NOT_TRANSPOSED)
        if way.padding:
            self.put_list(LEADING_DIMENSION, kernel.n + way.padding, *[kernel.sides] * of_b)
        if way.per_block:
            self.put(BATCHES_PER_BLOCK, way.per_block)
        if way.threads:
            self.put_list(BLOCK_DIM, way.threads, 1, 1)

    def put(self, operator, value):
        must(self.dx.cusolverdxSetOperatorInt64(self.handle, operator, ctypes.c_longlong(value)),
             f"operator {operator}")

    def put_list(self, operator, *values):
        must(self.dx.cusolverdxSetOperatorInt64s(
            self.handle, operator, ctypes.c_size_t(len(values)),
            (ctypes.c_longlong * len(values))(*values)), f"operator {operator}")

    def trait(self, trait):
        value = ctypes.c_longlong()
        must(self.dx.cusolverdxGetTraitInt64(self.handle, trait, ctypes.byref(value)),
             f"trait {trait}")
        return value.value

    def suggested_threads(self):
        block = (ctypes.c_longlong * 3)()
        must(self.dx.cusolverdxGetTraitInt64s(self.handle, SUGGESTED_BLOCK_DIM, ctypes.c_size_t(3),
                                              block), "suggested block")
        return block[0] * block[1] * block[2]

    def symbol(self):
        name = sized(lambda size: self.dx.cusolverdxGetTraitStrSize(self.handle, SYMBOL_NAME, size),
                     lambda size, to: self.dx.cusolverdxGetTraitStr(self.handle, SYMBOL_NAME, size,
                                                                    to), "symbol")
        return name.rstrip(b"\0").decode()

    def code(self):
        return sized(lambda size: self.dx.cusolverdxGetLTOIRSize(self.handle, size),
                     lambda size, to: self.dx.cusolverdxGetLTOIR(self.handle, size, to), "code")

    def bodies(self):
        """Machine code that the code of every function calls."""
        return sized(lambda size: self.dx.cusolverdxGetUniversalFATBINSize(self.handle, size),
                     lambda size, to: self.dx.cusolverdxGetUniversalFATBIN(self.handle, size, to),
                     "bodies")


def functions_of(kernel):
    return {"r": ["geqrf"], "qr": ["geqrf", "ungqr"], "gels": ["gels"]}[kernel.work]


def shared_numbers(kernel, way):
    """Of A, of B and of tau, in shared memory."""
    rows_of_b = max(kernel.m, kernel.n) if kernel.sides else 0
    return (way.per_block * kernel.m * (kernel.n + way.padding),
            way.per_block * rows_of_b * kernel.sides, way.per_block * min(kernel.m, kernel.n))


def shared_bytes(kernel, way):
    return TYPES[kernel.precision][1] * sum(shared_numbers(kernel, way))


def ways_of(libraries, kernel):
    """What the library suggests, one matrix in a block, and each with padded rows."""
    def threads(per_block):
        return max(DeviceFunction(libraries, name, kernel,
                                  Way(None, per_block, 0)).suggested_threads()
                   for name in functions_of(kernel))

    try:
        suggested = max(1, DeviceFunction(libraries, functions_of(kernel)[0], kernel,
                                          Way(None, None, 0)).trait(SUGGESTED_BATCHES))
        counts = list(dict.fromkeys((suggested, 1)))
        ways = [Way(threads(count), count, padding) for padding in (0, 1) for count in counts]
    except RuntimeError as error:  # too large for shared memory
        print(f"{kernel}: {error}", file=sys.stderr)
        return []
    return [way for way in ways if shared_bytes(kernel, way) <= SHARED_BYTES][:MOST_WAYS]


def source_of(kernel, way, symbols):
    number = TYPES[kernel.precision][0]
    in_a, in_b, _ = shared_numbers(kernel, way)
    m, n, ld = kernel.m, kernel.n, kernel.n + way.padding
    b_each = in_b // way.per_block
    declared = "".join(f'extern "C" __device__ void {name}(number*, number*'
                       f'{", number*" if kernel.sides else ""});\n' for name in symbols)
    calls = [f"{name}(sa, tau{', sb' if kernel.sides else ''});" for name in symbols]
    copy_a = (f"for (int i = threadIdx.x; i < {m * n} * count; i += {way.threads})"
              f" {{ number& s = sa[i / {n} * {ld} + i % {n}];")
    store_r = f"""
  for (int i = threadIdx.x; i < {n * n} * count; i += {way.threads}) {{
    const int matrix = i / {n * n}, row = i / {n} % {n}, column = i % {n};
    r[first * {n * n} + i] = column < row ? number(0) : sa[(matrix * {m} + row) * {ld} + column];
  }}
  __syncthreads();"""
    store_q = f"{copy_a} q[first * {m * n} + i] = s; }}"
    store_x = (f"for (int i = threadIdx.x; i < {b_each} * count; i += {way.threads})"
               f" b[first * {b_each} + i] = sb[i];")
    load_b = store_x.replace(f"b[first * {b_each} + i] = sb[i]", f"sb[i] = b[first * {b_each} + i]")
    after = {"r": [store_r], "qr": [store_r, store_q], "gels": [store_x]}[kernel.work]
    steps = "\n  __syncthreads();\n  ".join(f"{call}\n  __syncthreads();\n  {stores}"
                                           for call, stores in zip(calls, after))
    return f"""typedef {number} number;
{declared}
extern "C" __global__ void __launch_bounds__({way.threads})
run(const number* __restrict__ a, number* __restrict__ q, number* __restrict__ r,
    number* __restrict__ b, int batch) {{
  extern __shared__ __align__(16) number sa[];
  number *sb = sa + {in_a}, *tau = sb + {in_b};
  const long long first = (long long)blockIdx.x * {way.per_block};
  const int count = min({way.per_block}LL, batch - first);
  {copy_a} s = a[first * {m * n} + i]; }}
  {load_b if kernel.sides else ""}
  __syncthreads();
  {steps}
}}
"""


def compile_source(libraries, source):
    compiler, program = libraries.compiler, ctypes.c_void_p()
    must(compiler.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"peer.cu", 0, None,
                                     None), "nvrtcCreateProgram")
    options = (ctypes.c_char_p * 3)(f"-arch=sm_{libraries.arch}".encode(), b"-dlto", b"-std=c++17")
    if compiler.nvrtcCompileProgram(program, len(options), options):
        log = sized(lambda size: compiler.nvrtcGetProgramLogSize(program, size),
                    lambda _, to: compiler.nvrtcGetProgramLog(program, to), "log")
        raise RuntimeError(log.rstrip(b"\0").decode() + source)
    return sized(lambda size: compiler.nvrtcGetLTOIRSize(program, size),
                 lambda _, to: compiler.nvrtcGetLTOIR(program, to), "compiled code")


def link(libraries, parts):
    """parts: (kind, bytes). Returns machine code."""
    call, linker = libraries.link_call, ctypes.c_void_p()
    options = (ctypes.c_char_p * 2)(f"-arch=sm_{libraries.arch}".encode(), b"-lto")
    must(call("Create")(ctypes.byref(linker), len(options), options), "nvJitLinkCreate")
    for kind, data in parts:
        must(call("AddData")(linker, kind, data, ctypes.c_size_t(len(data)), b"part"),
             "nvJitLinkAddData")
    if call("Complete")(linker):
        log = sized(lambda size: call("GetErrorLogSize")(linker, size),
                    lambda _, to: call("GetErrorLog")(linker, to), "log of the linker")
        raise RuntimeError(log.rstrip(b"\0").decode())
    cubin = sized(lambda size: call("GetLinkedCubinSize")(linker, size),
                  lambda _, to: call("GetLinkedCubin")(linker, to), "machine code")
    must(call("Destroy")(ctypes.byref(linker)), "nvJitLinkDestroy")
    return cubin


def make(libraries, kernel, way):
    functions = [DeviceFunction(libraries, name, kernel, way) for name in functions_of(kernel)]
    for function in functions:
        if function.trait(WORKSPACE_BYTES):
            raise RuntimeError(f"{kernel}: needs workspace")
    source = source_of(kernel, way, [function.symbol() for function in functions])
    return link(libraries, [(LTO_IR, compile_source(libraries, source)),
                            *((LTO_IR, function.code()) for function in functions),
                            (FAT_BINARY, functions[0].bodies())])


def write(libraries, kernel, way, folder):
    """Makes a kernel that is not there yet."""
    name = (f"{kernel.work}-{kernel.m}x{kernel.n}-{kernel.precision}-{way.threads}-"
            f"{way.per_block}-{way.padding}")
    if (folder / f"{name}.json").exists():
        return
    cubin = make(libraries, kernel, way)
    with lzma.open(folder / f"{name}.cubin.xz", "wb", preset=6) as file:
        file.write(cubin)
    record = {"version": VERSION, **kernel._asdict(), **way._asdict(),
              "shared_bytes": shared_bytes(kernel, way), "arch": libraries.arch}
    (folder / f"{name}.json").write_text(json.dumps(record) + "\n", encoding="utf-8")
    print(f"{name}: {len(cubin)} bytes", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--libraries", type=pathlib.Path)
    parser.add_argument("--only", default="", help="kernels whose name begins so")
    parser.add_argument("--arch", type=int, default=90, help="compute capability times 10")
    args = parser.parse_args()
    libraries = Libraries(args.libraries, args.arch)
    os.makedirs(args.folder, exist_ok=True)
    kernels = [Kernel(*kernel, precision) for kernel in KERNELS for precision in TYPES]
    ways = {kernel: ways_of(libraries, kernel) for kernel in kernels
            if f"{kernel.work}-{kernel.m}x{kernel.n}-{kernel.precision}".startswith(args.only)}
    for i in range(MOST_WAYS):  # the first way of each kernel first
        for kernel in ways:
            for way in ways[kernel][i:i + 1]:
                write(libraries, kernel, way, args.folder)


if __name__ == "__main__":
    main()
