#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""device_arrays_test.py LIBRARY ROOT [DRAWS]: the Python package on arrays of a GPU, beside the
same calls on NumPy's arrays. libcuda.so.1 is the stand-in of tests/support/cuda_stand_in, whose
memory the host cannot read."""
import contextlib
import ctypes
import gc
import os
import pathlib
import subprocess
import sys
import threading
import types
import unittest
import unittest.mock
import weakref

import numpy as np

os.environ["QRTOOL_LIBRARY"] = sys.argv[1]
sys.path.insert(0, str(pathlib.Path(sys.argv[2]) / "app/python"))
import qrtool  # noqa: E402

DRAWS = int(sys.argv[3]) if len(sys.argv) > 3 else 30
TYPES = (np.float64, np.float32, np.complex128, np.complex64)
KIND_OF = {"f": 2, "c": 5, "i": 0, "u": 1, "b": 6}


class Driver:
    """Memory and streams of the device, for the arrays that tests make."""

    def __init__(self):
        self.library, self.context = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
        self.call("cuInit", 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(self.context), 0)

    def call(self, function, *arguments):
        code = getattr(self.library, function)(*arguments)
        if code:
            raise RuntimeError(f"{function}: {code}")

    def enter(self):
        """Makes the context that of this thread."""
        self.call("cuCtxSetCurrent", self.context)

    def current(self):
        context = ctypes.c_void_p()
        self.call("cuCtxGetCurrent", ctypes.byref(context))
        return context.value

    def allocate(self, size, is_managed=False):
        address = ctypes.c_uint64()
        if is_managed:
            self.call("cuMemAllocManaged", ctypes.byref(address), ctypes.c_size_t(max(size, 1)), 1)
        else:
            self.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(max(size, 1)))
        return address.value

    def free(self, address):
        self.call("cuMemFree_v2", ctypes.c_uint64(address))

    def write(self, address, host, size):
        self.call("cuMemcpyHtoD_v2", ctypes.c_uint64(address), ctypes.c_void_p(host),
                  ctypes.c_size_t(size))

    def read(self, address, size):
        memory = ctypes.create_string_buffer(max(size, 1))
        if size:
            self.call("cuMemcpyDtoH_v2", memory, ctypes.c_uint64(address), ctypes.c_size_t(size))
        return memory.raw[:size]

    def stream(self):
        stream = ctypes.c_void_p()
        self.call("cuStreamCreate", ctypes.byref(stream), 1)  # which does not wait for others
        return stream.value

    def bytes_in_use(self):
        self.library.qrtool_stand_in_bytes.restype = ctypes.c_uint64
        return self.library.qrtool_stand_in_bytes()


DRIVER = Driver()
DRIVER.enter()


class Memory:
    """What an array of the host spans, as it lies there, on the device."""

    def __init__(self, array, is_managed=False):
        reach = [stride * (size - 1) for size, stride in zip(array.shape, array.strides)]
        low = sum(min(0, each) for each in reach)
        size = sum(map(abs, reach)) + array.itemsize if array.size else 0
        self.address = DRIVER.allocate(size, is_managed)
        if size:
            DRIVER.write(self.address, array.ctypes.data + low, size)
        self.offset = -low

    def __del__(self, free=DRIVER.free):
        free(self.address)


class DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32),
                ("device", ctypes.c_int32), ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8),
                ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Old(ctypes.Structure):
    _fields_ = [("tensor", DLTensor), ("manager", ctypes.c_void_p), ("deleter", DELETER)]


class New(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32),
                ("manager", ctypes.c_void_p), ("deleter", DELETER), ("flags", ctypes.c_uint64),
                ("tensor", DLTensor)]


PYTHON = ctypes.PyDLL(None)
PYTHON.PyCapsule_New.restype = ctypes.py_object
PYTHON.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
PYTHON.PyCapsule_GetName.restype = ctypes.c_char_p
PYTHON.PyCapsule_GetName.argtypes = [ctypes.py_object]
PYTHON.PyCapsule_GetPointer.restype = ctypes.c_void_p
PYTHON.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
PYTHON.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]


class ByDlpack:
    """An array of a library that has __dlpack__ alone."""
    kind, knows_versions, major, lanes, code, bits = 2, True, 1, 1, None, None

    def __init__(self, array, **facts):
        self.__dict__.update(facts)
        self.shape, self.dtype = array.shape, array.dtype
        self.strides = [stride // array.itemsize for stride in array.strides]
        self.is_packed = array.flags.c_contiguous
        self.memory = Memory(array, self.kind == 13)
        self.streams, self.lent, self.deleted, self.capsules = [], {}, [], []

    def __dlpack_device__(self):
        return (self.kind, 0)

    def __dlpack__(self, *, stream=None, **keywords):
        if keywords and not self.knows_versions:
            raise TypeError("unexpected keywords")
        self.streams.append(stream)
        is_new = keywords.get("max_version", (0,))[0] >= 1
        ndim = len(self.shape)
        numbers = (ctypes.c_int64 * (2 * ndim))(*self.shape, *self.strides)
        first = ctypes.addressof(numbers)
        pointers = [ctypes.cast(first, ctypes.POINTER(ctypes.c_int64)),
                    ctypes.cast(first + 8 * ndim, ctypes.POINTER(ctypes.c_int64))]
        if self.is_packed and not is_new:
            pointers[1] = None
        code = KIND_OF[self.dtype.kind] if self.code is None else self.code
        tensor = DLTensor(self.memory.address, self.kind, 0, ndim, code,
                        self.bits or 8 * self.dtype.itemsize, self.lanes, *pointers,
                        self.memory.offset)
        deleter = DELETER(self.delete)
        managed = New(self.major, 0, None, deleter, 1, tensor) if is_new else \
            Old(tensor, None, deleter)
        address = ctypes.addressof(managed)
        self.lent[address] = managed, numbers
        name = b"dltensor_versioned" if is_new else b"dltensor"
        self.capsules.append(PYTHON.PyCapsule_New(address, name, None))
        return self.capsules[-1]

    def delete(self, address):
        self.deleted.append(address)

    def is_over(self):
        """Whether each capsule was used and given back once."""
        names = [PYTHON.PyCapsule_GetName(capsule) for capsule in self.capsules]
        return sorted(self.deleted) == sorted(self.lent) and \
            all(name.startswith(b"used_dltensor") for name in names)


class ByOldDlpack(ByDlpack):
    knows_versions = False


class ByInterface:
    """An array of a library that has __cuda_array_interface__ alone."""

    def __init__(self, array, stream=None, **facts):
        self.memory = Memory(array)
        self.__cuda_array_interface__ = {
            "shape": array.shape, "typestr": array.dtype.str, "version": 3, "stream": stream,
            "data": (self.memory.address + self.memory.offset, True),
            "strides": None if array.flags.c_contiguous else array.strides, **facts}


class Imported:
    """An array of a library that imports capsules, which it gives back when it ends."""

    def __init__(self, source):
        name = b"dltensor_versioned"
        capsule = source.__dlpack__(stream=2, max_version=(1, 1))
        self.managed = New.from_address(PYTHON.PyCapsule_GetPointer(capsule, name))
        PYTHON.PyCapsule_SetName(capsule, b"used_dltensor_versioned")
        tensor = self.managed.tensor
        self.shape = tuple(tensor.shape[:tensor.ndim])
        self.dtype = {(2, 64): np.dtype("f8"), (2, 32): np.dtype("f4"), (5, 128): np.dtype("c16"),
                      (5, 64): np.dtype("c8")}[tensor.code, tensor.bits]
        self.address = tensor.data

    def __del__(self):
        self.managed.deleter(ctypes.addressof(self.managed))


class Importer(ByDlpack):
    def __array_namespace__(self):
        return Namespace


class Namespace:
    from_dlpack = Imported


class InOrder(ByDlpack):
    """An array of a library that has a stream and an allocator of its own."""


class Ordered(qrtool._device.Kind):
    keeps_order = True

    def __init__(self):
        self.order, self.taken, self.has_memory, self.count = DRIVER.stream(), [], True, 0
        self.importer = None

    def stream(self, array, ordinal):
        return self.order

    def allocator(self, ordinal):
        def allocate(_, size, stream):
            address = ctypes.c_uint64()
            if not self.has_memory or stream != self.order or DRIVER.library.cuMemAllocAsync(
                    ctypes.byref(address), ctypes.c_size_t(size), ctypes.c_void_p(stream)):
                return None
            self.taken.append(address.value)
            self.count += 1
            return address.value

        def deallocate(_, memory, stream):
            self.taken.remove(memory)
            DRIVER.call("cuMemFreeAsync", ctypes.c_uint64(memory), ctypes.c_void_p(stream))

        return allocate, deallocate


class OfCupy(ByInterface):
    """An array of CuPy, whose DLPack counts negative strides as numbers without a sign."""
    __module__ = "cupy"

    def __init__(self, array):
        super().__init__(array, 1)
        self.host, self.data = array, types.SimpleNamespace(
            ptr=self.__cuda_array_interface__["data"][0], device_id=0)
        self.shape, self.dtype = array.shape, array.dtype

    def __dlpack_device__(self):
        return (2, 0)

    def __getitem__(self, part):
        return OfCupy(self.host[part])

    def __setitem__(self, everything, other):
        self.host[everything] = other.host
        DRIVER.write(self.memory.address, self.host.ctypes.data, self.host.nbytes)


def joining(make):
    """What with_ones() takes from a library, for arrays that make(array of NumPy) gives."""
    return {"ones_like": lambda array: make(np.ones_like(array.host)),
            "concatenate": lambda arrays, axis: make(
                np.concatenate([array.host for array in arrays], axis))}


CUPY = types.SimpleNamespace(
    **joining(OfCupy), empty=lambda shape, dtype: OfCupy(np.empty(shape, dtype)), asarray=OfCupy,
    cuda=types.SimpleNamespace(
        Device=lambda ordinal: contextlib.nullcontext(),
        get_current_stream=lambda ordinal: types.SimpleNamespace(ptr=0)))


class Tensor(ByInterface):
    """What a tensor of PyTorch tells of itself. Its memory is read by the test alone."""
    __module__ = "torch"
    is_cuda, requires_grad, layout = True, False, "strided"

    def __init__(self, array, **facts):
        super().__init__(array)
        self.host, self.shape, self.dtype = array, array.shape, array.dtype.name
        self.__dict__.update(facts)

    get_device = is_conj = is_neg = lambda self: 0

    def __getitem__(self, part):
        return Tensor(self.host[part])

    def data_ptr(self):
        return self.__cuda_array_interface__["data"][0]

    def numel(self):
        return self.host.size

    def is_contiguous(self):
        return self.host.flags.c_contiguous

    def stride(self):
        return tuple(stride // self.host.itemsize for stride in self.host.strides)

    def new_empty(self, shape, dtype):
        return Tensor(np.empty(shape, dtype))

    def expand(self, shape):
        return Tensor(np.broadcast_to(self.host, shape))

    def contiguous(self):
        return Tensor(np.ascontiguousarray(self.host))


class Torch(types.SimpleNamespace):
    """The part of PyTorch that serves them, with a stream and an allocator."""

    def __init__(self):
        super().__init__(Tensor=Tensor, strided="strided", taken=[], **joining(Tensor),
                         float64="float64", float32="float32", complex128="complex128",
                         complex64="complex64")
        self.order = DRIVER.stream()
        self._C = types.SimpleNamespace(_cuda_getCurrentRawStream=lambda ordinal: self.order)
        self.cuda = types.SimpleNamespace(caching_allocator_alloc=self.take,
                                          caching_allocator_delete=self.give_back)

    def take(self, size, ordinal, stream):
        if stream != self.order:
            raise RuntimeError("out of memory")
        self.taken.append(DRIVER.allocate(size))
        return self.taken[-1]

    def give_back(self, memory):
        self.taken.remove(memory)
        DRIVER.free(memory)


TORCH = Torch()  # which the package keeps from the first tensor on


def numbers(chance, shape, dtype):
    array = chance.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        array = array + 1j * chance.standard_normal(shape)
    return array.astype(dtype)


def in_some_order(chance, array):
    """The same numbers, with other strides."""
    order = chance.integers(6)
    if order == 0:
        return np.swapaxes(np.swapaxes(array, -1, -2).copy(), -1, -2)
    if order == 1:
        wide = np.zeros((*array.shape[:-1], 2 * array.shape[-1] + 1), array.dtype)
        wide[..., 1::2] = array
        return wide[..., 1::2]
    if order == 2:
        return np.ascontiguousarray(array[..., ::-1, ::-1])[..., ::-1, ::-1]
    if order == 3 and array.ndim > 2:
        return np.broadcast_to(array[(0,) * (array.ndim - 2)], array.shape)
    return array


def on_device(chance, array):
    """The same numbers on the device, as a library of some kind has them."""
    way = chance.integers(6)
    if way == 0:
        return ByInterface(array)
    if way == 1:
        return ByOldDlpack(array)
    if way == 2:
        return ByDlpack(array, kind=13)
    return (Importer if way == 3 else ByDlpack)(array)


def on_host(result):
    """The numbers of a result, as an array of NumPy."""
    if isinstance(result, (np.ndarray, np.generic)):
        return result
    address = result.address if isinstance(result, Imported) else \
        result.__cuda_array_interface__["data"][0]
    dtype = np.dtype(result.dtype)
    size = int(np.prod(result.shape)) * dtype.itemsize
    return np.frombuffer(DRIVER.read(address, size), dtype).reshape(result.shape)


class DeviceArrays(unittest.TestCase):
    def setUp(self):
        self.chance = np.random.default_rng(11)

    def assert_same(self, ours, theirs):
        ours = ours if isinstance(ours, tuple) else (ours,)
        theirs = theirs if isinstance(theirs, tuple) else (theirs,)
        self.assertEqual(len(ours), len(theirs))
        for one, other in zip(ours, theirs):
            one = on_host(one) if hasattr(one, "shape") else one
            if isinstance(one, np.recarray):  # whose NaN equals itself
                self.assertEqual(one.tobytes(), other.tobytes())
            else:
                np.testing.assert_array_equal(one, other)
            self.assertEqual(getattr(one, "dtype", None), getattr(other, "dtype", None))

    def assert_close(self, ours, theirs, bar):
        for one, other in zip(ours, theirs):
            if isinstance(other, np.recarray):
                np.testing.assert_array_equal(one.status, other.status)
            else:
                np.testing.assert_allclose(on_host(one) if hasattr(one, "shape") else one, other,
                                           bar, bar)

    def test_matrices_are_made_there(self):
        for kind, dtype in zip(qrtool.KINDS, 9 * TYPES):
            there = qrtool.matrices(kind, (3, 6, 4), dtype, device="cuda:0")
            self.assertIsInstance(there, qrtool.DeviceArray)
            self.assert_same(there, qrtool.matrices(kind, (3, 6, 4), dtype))
        there = qrtool.matrices("contest", (3, 6, 4), device="cuda:0")
        self.assertTrue(qrtool.verify(there, *qrtool.qr(there)))
        self.assertEqual(qrtool.matrices("gauss", (0, 4, 3), device="cuda:0").shape, (0, 4, 3))
        self.assertRaises(qrtool.DeviceError, qrtool.matrices, "gauss", (4, 3), device="cuda:7")

    def test_importing_loads_no_other_library(self):
        program = ("import sys, qrtool; loaded = open('/proc/self/maps').read(); "
                   "assert 'libcuda' not in loaded; "
                   "assert not {'torch', 'jax', 'cupy', 'numba'} & set(sys.modules)")
        subprocess.run([sys.executable, "-c", program], check=True, timeout=60,
                       env={**os.environ, "PYTHONPATH": sys.path[0]})

    def test_factors_by_chance_are_those_of_host_arrays(self):
        for _ in range(DRAWS):
            batch = ((), (3,), (2, 2))[self.chance.integers(3)]
            m, n = ((6, 4), (3, 6))[self.chance.integers(2)]
            dtype = TYPES[self.chance.integers(4)]
            a = in_some_order(self.chance, numbers(self.chance, (*batch, m, n), dtype))
            mode = ("reduced", "complete", "r", "raw")[self.chance.integers(4)]
            check = ("full", "probe", "none")[self.chance.integers(3)]
            given = on_device(self.chance, a)
            with self.subTest(shape=a.shape, dtype=dtype, strides=a.strides, mode=mode,
                              given=type(given)):
                ours = qrtool.qr(given, mode, check=check)
                self.assert_same(ours, qrtool.qr(a, mode, check=check, device="cuda:0"))
                if isinstance(given, ByDlpack):
                    self.assertTrue(given.is_over())
                    self.assertEqual(set(given.streams), {1})
                kind = Imported if isinstance(given, Importer) else qrtool.DeviceArray
                for each in ours if isinstance(ours, tuple) else (ours,):
                    self.assertIs(type(each), kind)
                if mode == "reduced":
                    q, r = map(on_host, ours)
                    self.assertLess(np.abs(q @ r - a).max(), 1e3 * np.finfo(dtype).eps)

    def test_what_no_kernel_takes_goes_by_the_cpu(self):
        a = numbers(self.chance, (600, 5), "c8")
        ours = qrtool.qr(ByDlpack(a), "complete")
        self.assert_same(ours, qrtool.qr(a, "complete", device="cpu"))
        self.assertIn("no kernels", qrtool.last_run("cuda:0")["reason"])

    def test_solutions_by_chance_are_those_of_host_arrays(self):
        for _ in range(DRAWS):
            batch = ((), (3,), (2, 2))[self.chance.integers(3)]
            m, n, p = 9, 3, (1, 3)[self.chance.integers(2)]
            dtype = TYPES[self.chance.integers(4)]
            a = numbers(self.chance, (*batch, m, n), dtype)
            b = numbers(self.chance, (m,) if self.chance.integers(3) == 0 else (*batch, m, p),
                        dtype)
            w = (self.chance.random(m) + 0.1).astype(a.real.dtype)
            w = w if self.chance.integers(2) else None
            a, b = in_some_order(self.chance, a), b if b.ndim == 1 else in_some_order(
                self.chance, b)
            given = [on_device(self.chance, a), on_device(self.chance, b),
                     None if w is None else on_device(self.chance, w)]
            options = {"errors": bool(self.chance.integers(2)), "report": True}
            with self.subTest(a=a.shape, b=b.shape, dtype=dtype, weights=w is not None, **options):
                # Complex systems are solved on the CPU.
                expected = qrtool.lstsq(a, b, w, **options,
                                        device="cpu" if np.iscomplexobj(a) else "cuda:0")
                found = qrtool.lstsq(*given, **options)
                if batch:
                    self.assert_same(found, expected)
                else:  # of one matrix on the host the CPU solves the systems
                    self.assert_close(found, expected, 1e3 * np.finfo(dtype).eps)
                self.assertTrue(all(each.is_over() for each in given
                                    if isinstance(each, ByDlpack)))

    def test_arrays_are_broadcast(self):
        a, b = numbers(self.chance, (2, 1, 6, 2), "f8"), numbers(self.chance, (3, 6, 1), "f8")
        with self.assertRaisesRegex(qrtool.CallError, "strides"):
            qrtool.lstsq(ByDlpack(a), ByDlpack(b))
        expected = qrtool.lstsq(a[0], b, device="cuda:0")
        self.assert_same(tuple(qrtool.lstsq(ByDlpack(a[0]), ByDlpack(b))), tuple(expected))
        with self.assertRaisesRegex(qrtool.CallError, "weights are"):
            qrtool.lstsq(ByDlpack(a[0]), ByDlpack(b), ByDlpack(np.ones((2, 6, 1))))

    def test_factors_are_verified(self):
        a = numbers(self.chance, (3, 6, 4), "f8")
        q, r, p, report = qrtool.qr(ByDlpack(a), pivoting=True, report=True)
        self.assertTrue(np.all(report.status == 0))
        ok, report = qrtool.verify(ByDlpack(a), q, r, p=p, report=True)
        self.assertTrue(ok)
        self.assertEqual(report.shape, (3,))
        self.assertFalse(qrtool.verify(ByInterface(a), q, r))
        self.assertTrue(qrtool.verify(ByInterface(a), None, qrtool.qr(ByInterface(a), "r")))
        np.testing.assert_allclose(np.take_along_axis(a, p[:, None, :], -1),
                                   on_host(q) @ on_host(r), atol=1e-13)

    def test_empty_arrays_have_the_shapes_of_numpy(self):
        for shape in ((0, 3), (3, 0), (0, 0), (0, 4, 2), (2, 0, 3), (2, 3, 0)):
            for mode in ("reduced", "complete", "r", "raw"):
                for make in (ByDlpack, ByInterface, Importer):
                    with self.subTest(shape=shape, mode=mode, make=make):
                        self.assert_same(qrtool.qr(make(np.zeros(shape)), mode),
                                         qrtool.qr(np.zeros(shape), mode))
        x = qrtool.lstsq(ByDlpack(np.zeros((0, 5, 2))), ByDlpack(np.zeros((0, 5, 1)))).x
        self.assertEqual(x.shape, (0, 2, 1))

    def test_the_arrays_of_a_call_are_in_one_place(self):
        a, b = np.ones((5, 2)), np.ones(5)
        for call, text in (
                (lambda: qrtool.lstsq(ByDlpack(a), b), "^b is in host memory, and a on cuda:0"),
                (lambda: qrtool.lstsq(a, ByInterface(b)), "^b is on cuda:0, and a in host memory"),
                (lambda: qrtool.lstsq(ByDlpack(a), ByDlpack(b), b), "^weights is in host memory"),
                (lambda: qrtool.verify(ByDlpack(a), ByDlpack(a), a[:2]), "^r is in host memory"),
                (lambda: qrtool.qr(ByDlpack(a), device="cpu"), "'auto' or 'cuda:0'"),
                (lambda: qrtool.qr(ByDlpack(a), device="cuda:1"), "'auto' or 'cuda:0'")):
            with self.assertRaisesRegex(qrtool.CallError, text):
                call()

    def test_what_cannot_be_read_is_refused_and_given_back(self):
        a = np.ones((5, 2))
        for facts, error, text in (
                ({"code": 0}, qrtool.CallError, "^a has numbers of type int64"),
                ({"code": 2, "bits": 16}, TypeError, "float16 are not offered"),
                ({"code": 4, "bits": 16}, TypeError, "bfloat16 are not offered"),
                ({"lanes": 2}, TypeError, "float64 x 2 are not offered"),
                ({"major": 2}, qrtool.CallError, "version 2 of DLPack")):
            given = ByDlpack(a, **facts)
            with self.assertRaisesRegex(error, text):
                qrtool.qr(given)
            self.assertTrue(given.is_over(), facts)
        for facts, error, text in (
                ({"version": 1}, qrtool.CallError, "version 1 of __cuda_array_interface__"),
                ({"mask": a}, qrtool.CallError, "mask"),
                ({"typestr": "<i8"}, qrtool.CallError, "int64"),
                ({"typestr": "<f2"}, TypeError, "float16"), ({"typestr": ">f8"}, TypeError, ">f8"),
                ({"stream": 0}, qrtool.CallError, "stream 0"),
                ({"strides": (20, 8)}, qrtool.CallError, "strides of")):
            with self.assertRaisesRegex(error, text):
                qrtool.qr(ByInterface(a, **facts))
        given = ByDlpack(a, requires_grad=True)
        with self.assertRaisesRegex(qrtool.CallError, r"a\.detach\(\)"):
            qrtool.qr(given)
        with self.assertRaisesRegex(qrtool.CallError, "^b has numbers of type int64"):
            qrtool.lstsq(ByDlpack(a), ByDlpack(a, code=0))
        with self.assertRaisesRegex(qrtool.CallError, "float32 is among arrays of float64"):
            qrtool.lstsq(ByDlpack(a), ByDlpack(a.astype("f4")))
        with self.assertRaisesRegex(qrtool.CallError, "1 dimension"):
            qrtool.qr(ByDlpack(np.ones(3)))
        with self.assertRaisesRegex(qrtool.CallError, "strides"):
            qrtool.qr(ByDlpack(np.ones((4, 3, 5, 2))[:, ::2]))

    def test_a_capsule_is_used_once(self):
        class Again(ByDlpack):
            def __dlpack__(self, **keywords):
                return self.capsules[0] if self.capsules else super().__dlpack__(**keywords)
        given = Again(np.ones((4, 2)))
        qrtool.qr(given)
        with self.assertRaisesRegex(qrtool.CallError, "used before"):
            qrtool.qr(given)
        self.assertTrue(given.is_over())

    def test_what_stands_for_an_array_in_jax_is_refused(self):
        tracer = type("Tracer", (), {"__module__": "jax._src.core"})()
        with self.assertRaisesRegex(qrtool.CallError, "jax.pure_callback"):
            qrtool.qr(tracer)
        with self.assertRaisesRegex(qrtool.CallError, "jax.pure_callback"):
            qrtool.lstsq(np.ones((3, 2)), tracer)

    def test_torch_compile_is_told_to_leave_the_package_alone(self):
        rules = types.SimpleNamespace(FORCE_SKIP_FILES={"another.py"})
        with unittest.mock.patch.dict(sys.modules, {"torch._dynamo.trace_rules": rules}):
            qrtool.qr(np.ones((3, 2)))
        files = {str(file) for file in pathlib.Path(qrtool.__file__).parent.glob("*.py")}
        # The operators of torch.py are for it.
        self.assertEqual(rules.FORCE_SKIP_FILES, {"another.py"} | {
            file for file in files if not file.endswith("torch.py")})
        for function in (qrtool.qr, qrtool.lstsq, qrtool.verify):
            self.assertTrue(function._torchdynamo_disable)

    def test_a_tensor_without_memory_is_refused_before_it_is_asked_for_any(self):
        tensor = type("Tensor", (), {"__module__": "torch"})
        fake = type("FakeTensor", (tensor,), {"__module__": "torch._subclasses.fake_tensor"})()
        with unittest.mock.patch.dict(sys.modules, torch=types.SimpleNamespace(Tensor=tensor)), \
                self.assertRaisesRegex(qrtool.CallError, "torch.compile or torch.func"):
            qrtool.qr(fake)

    def test_memory_is_freed_once(self):
        a = numbers(self.chance, (3, 6, 4), "f4")
        qrtool.qr(ByDlpack(a))
        qrtool.release()
        gc.collect()
        before = DRIVER.bytes_in_use()
        for make in (ByDlpack, Importer):
            given = make(a)
            q, r = qrtool.qr(given)
            more = None
            if make is ByDlpack:
                more = [Imported(q), Imported(q), q.__dlpack__(), q.__dlpack__(max_version=(1, 0))]
                whose = weakref.ref(more[0])
                address = more[0].address
                expected = on_host(q)
                del q
                gc.collect()
                np.testing.assert_array_equal(on_host(more[1]), expected)
                self.assertIsNotNone(whose())
                self.assertEqual(address, more[1].address)
            q = None
            del r, more, given
            qrtool.release()
            gc.collect()
            self.assertEqual(DRIVER.bytes_in_use(), before)
        gift = qrtool._device.Gift  # that nobody imports, or not to its end
        work = qrtool.opened_work("auto", a=ByDlpack(a))
        first, second, third = (gift(work, (2, 3), np.dtype("f4")) for _ in range(3))
        capsules = first.__dlpack__(), second.__dlpack__(max_version=(1, 0))
        del first, second, third, capsules, work
        qrtool.release()
        gc.collect()
        self.assertEqual(DRIVER.bytes_in_use(), before)

    def test_memory_does_not_grow_from_call_to_call(self):
        a = numbers(self.chance, (3, 6, 4), "f4")
        used = []
        for _ in range(30):
            qrtool.qr(ByDlpack(a))
            qrtool.qr(Importer(a), check="none")
            gc.collect()  # the arrays of this test refer to themselves
            used.append(DRIVER.bytes_in_use())
        self.assertEqual(used[-1], used[4])

    def test_the_stream_of_an_array_is_worked_on(self):
        a, b = numbers(self.chance, (3, 6, 4), "f8"), numbers(self.chance, (6,), "f8")
        streams = DRIVER.stream(), DRIVER.stream()
        given = ByInterface(a, streams[0]), ByInterface(b, streams[1])
        expected = qrtool.lstsq(a, b, device="cuda:0")
        self.assert_same(tuple(qrtool.lstsq(*given)), tuple(expected))
        later = ByDlpack(b)
        self.assert_same(tuple(qrtool.lstsq(given[0], later)), tuple(expected))
        self.assertEqual(later.streams, [streams[0]])
        for stream in (1, 2):
            self.assert_same(qrtool.qr(ByInterface(a, stream)), qrtool.qr(a, device="cuda:0"))

    def test_a_library_with_an_order_and_memory_of_its_own(self):
        kind = qrtool._device._kinds[InOrder] = Ordered()
        a = numbers(self.chance, (3, 6, 4), "f8")
        given = InOrder(a)
        for options in ({}, {"check": "none"}, {"mode": "raw", "check": "none"}):
            ours = qrtool.qr(given, **options)
            DRIVER.call("cuStreamSynchronize", ctypes.c_void_p(kind.order))
            self.assert_same(ours, qrtool.qr(a, device="cuda:0", **options))
            self.assertEqual(kind.taken, [])
        self.assertEqual(set(given.streams), {kind.order})
        self.assertIn("opencl", qrtool.last_run("cuda:0")["variant"])
        tall, before = numbers(self.chance, (2, 6, 200000), "f8").swapaxes(1, 2), kind.count
        given = InOrder(tall)  # both are packed in more than 16 MiB, each of them in less
        expected = qrtool.qr(tall, "r", check="none", device="cuda:0")
        self.assert_same(qrtool.qr(given, "r"), expected)
        self.assertGreater(kind.count, before)  # less memory comes from elsewhere
        kind.has_memory = False
        self.assert_same(qrtool.qr(given, "r"), expected)
        self.assertEqual(kind.taken, [])

    def test_arrays_of_cupy_with_negative_strides(self):
        a, b = numbers(self.chance, (3, 6, 4), "f8"), numbers(self.chance, (3, 6, 2), "f8")
        with unittest.mock.patch.dict(sys.modules, cupy=CUPY):
            for view in (a[..., ::-1, ::-1], a[::-1], a[:, ::2], a):
                given, sides = OfCupy(view), OfCupy(np.ascontiguousarray(b[:, :view.shape[1]]))
                ours, solved = qrtool.qr(given), qrtool.lstsq(given, sides)
                self.assertIs(type(ours.Q), OfCupy)
                self.assert_same(ours, qrtool.qr(view, device="cuda:0"))
                self.assert_same(tuple(solved), tuple(qrtool.lstsq(
                    view, b[:, :view.shape[1]], device="cuda:0")))
            swapped = numbers(self.chance, (2, 3, 6, 4), "f8").swapaxes(0, 1)  # is packed first
            self.assert_same(qrtool.qr(OfCupy(swapped)), qrtool.qr(swapped, device="cuda:0"))

    def test_tensors_of_pytorch(self):
        torch = TORCH
        with unittest.mock.patch.dict(sys.modules, torch=torch):
            for dtype in TYPES:
                a, b = numbers(self.chance, (3, 6, 4), dtype), numbers(self.chance, (6,), dtype)
                for view in (a, a.swapaxes(-1, -2), a[:, ::2], a[0]):
                    for options in ({}, {"check": "none"}, {"mode": "r", "check": "none"}):
                        ours = qrtool.qr(Tensor(view), **options)
                        DRIVER.call("cuStreamSynchronize", ctypes.c_void_p(torch.order))
                        self.assert_same(ours, qrtool.qr(view, device="cuda:0", **options))
                        self.assertIs(type(getattr(ours, "R", ours)), Tensor)
                expected = qrtool.lstsq(a, b, device="cpu", errors=True)
                self.assert_close(qrtool.lstsq(Tensor(a), Tensor(b), errors=True), expected,
                                  1e3 * np.finfo(dtype).eps)
            several = numbers(self.chance, (2, 3, 6, 4), "f8").swapaxes(0, 1)  # is packed first
            self.assert_same(qrtool.qr(Tensor(several)), qrtool.qr(several, device="cuda:0"))
            self.assert_same(qrtool.qr(Tensor(np.ones((0, 3)))), qrtool.qr(np.ones((0, 3))))
            self.assertEqual(torch.taken, [])
            torch.is_grad_enabled = lambda: True
            for facts, text in (({"requires_grad": True}, r"a\.detach\(\)"),
                                ({"layout": "sparse"}, r"a\.to_dense\(\)"),
                                ({"dtype": "torch.int32"}, "numbers of type int32"),
                                ({"data_ptr": lambda: 0}, "torch.compile or torch.func")):
                given = Tensor(a, **facts)
                with self.assertRaisesRegex(qrtool.CallError, text):
                    qrtool.qr(given)
            with self.assertRaisesRegex(qrtool.CallError, "^b is in host memory"):
                qrtool.lstsq(given, np.ones(6))

    def test_an_intercept_is_put_before_the_columns(self):
        """As on the host, by the library that the arrays are of."""
        for make, module in ((OfCupy, {"cupy": CUPY}), (Tensor, {"torch": TORCH})):
            with unittest.mock.patch.dict(sys.modules, **module):
                for shape, dtype in (((3, 9, 4), "f8"), ((9, 4), "f4"), ((3, 9, 2), "c16")):
                    a, b = numbers(self.chance, shape, dtype), numbers(self.chance, (9,), dtype)
                    for view, more in ((a, {"errors": True}),
                                       (a[..., ::-1].copy()[..., ::-1], {"ridge": 0.5})):
                        options = {"intercept": True, **more}
                        self.assert_close(qrtool.lstsq(make(view), make(b), **options),
                                          qrtool.lstsq(view, b, device="cpu", **options),
                                          1e3 * np.finfo(dtype).eps)
                with self.assertRaisesRegex(qrtool.CallError, "^a has 1 dimension"):
                    qrtool.lstsq(make(b), make(b), intercept=True)
                with self.assertRaisesRegex(qrtool.CallError, "column of ones into a"):
                    qrtool.lstsq(make(np.ones((9, 0))), make(np.ones(9)), intercept=True)
        with self.assertRaisesRegex(qrtool.CallError, "PyTorch, CuPy and JAX"):
            qrtool.lstsq(ByDlpack(np.ones((9, 2))), ByDlpack(np.ones(9)), intercept=True)

    def test_the_context_of_the_caller_stays(self):
        before = DRIVER.current()
        qrtool.qr(ByDlpack(np.ones((4, 2))))
        self.assertEqual(DRIVER.current(), before)

    def test_the_way_of_the_last_call_is_known(self):
        a = numbers(self.chance, (3, 6, 4), "f8")
        qrtool.qr(ByDlpack(a))
        there = qrtool.last_run("cuda:0")
        self.assertIn("opencl", there["variant"])
        qrtool.open_device("cuda:0", threads=1, memory=1 << 30)
        qrtool.qr(ByDlpack(a))
        self.assertEqual(qrtool.last_run("cuda:0")["variant"], there["variant"])
        small, large = (qrtool.workspace((count, 64, 32), "float32") for count in (10, 1000))
        self.assertLess(0, small)
        self.assertLessEqual(small, large)
        for shape in ((3,), (2, -1), (2.5, 1), 3):
            with self.assertRaisesRegex(qrtool.CallError, "shape"):
                qrtool.workspace(shape)
        with self.assertRaisesRegex(qrtool.CallError, "int64"):
            qrtool.workspace((3, 2), int)

    def test_a_hint_names_who_holds_the_memory(self):
        def fail(*_):
            raise qrtool.MemoryLimitError("no memory")
        work = qrtool.opened_work("auto", a=ByDlpack(np.ones((3, 2))))
        work.kind = type("", (), {"memory_hint": "XLA_PYTHON_CLIENT_PREALLOCATE"})
        work.context = type("", (), {"call": fail})()
        with self.assertRaisesRegex(qrtool.MemoryLimitError, "no memory; XLA_PYTHON_CLIENT"):
            work.call(None)

    def test_threads_share_a_device(self):
        arrays = [numbers(self.chance, (3, 6, 4), dtype) for dtype in TYPES]
        expected, wrong = [qrtool.qr(a, device="cuda:0") for a in arrays], []

        def work(number):
            DRIVER.enter()
            for _ in range(5):
                q, r = qrtool.qr(ByDlpack(arrays[number]))
                if not (np.array_equal(on_host(q), expected[number].Q) and
                        np.array_equal(on_host(r), expected[number].R)):
                    wrong.append(number)
        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_a_child_of_fork_is_told(self):
        a = numbers(self.chance, (3, 6, 4), "f8")
        given = ByDlpack(a)
        q, _ = qrtool.qr(given)
        child = os.fork()
        if child == 0:
            try:
                qrtool.qr(given)
            except qrtool.DeviceError:
                q = None  # whose memory is the parent's
                os._exit(0 if np.array_equal(qrtool.qr(a, "r"), qrtool.qr(a, "r")) else 2)
            os._exit(1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.assert_same(q, qrtool.qr(a, device="cuda:0").Q)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
