# SPDX-License-Identifier: Apache-2.0
"""Calls on arrays that are on a GPU: of PyTorch, JAX, CuPy, Numba, and of whoever else has
__dlpack__ or __cuda_array_interface__. Nothing here imports any of them: what a caller's array
belongs to is imported already."""
import ctypes
import functools
import math
import operator
import pathlib
import sys

import numpy as np

from . import _dlpack
from ._arrays import TYPES
from ._library import LIBRARY, CallError, DeviceError, MemoryLimitError

DEVICE_ORDINAL = 9  # CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
LEGACY_STREAM = _dlpack.LEGACY_STREAM
_driver = functools.lru_cache(ctypes.CDLL)


def _ask_driver(function, *arguments):
    """A call of CUDA's driver, which whoever has made the array has opened."""
    code = getattr(_driver("libcuda.so.1"), function)(*arguments)
    if code:
        raise DeviceError(f"{function}: CUDA error {code}")


class DeviceArray:
    """A result on a GPU, packed by rows, for what reads __dlpack__ or __cuda_array_interface__:
    such as cupy.asarray(x). Its memory is free when nothing of that is left."""
    __slots__ = ("shape", "dtype", "_ordinal", "_context", "_pointer")

    def __init__(self, work, shape, dtype):
        self.shape, self.dtype, self._ordinal, self._context = shape, dtype, work.ordinal, None
        memory = ctypes.c_void_p()
        size = max(math.prod(shape) * dtype.itemsize, 1)
        work.call(LIBRARY.qrtool_allocate, size, work.stream, memory)
        self._context, self._pointer = work.context, memory.value

    def __del__(self, free=LIBRARY.qrtool_free):
        # The call that has filled it has been waited for, and its stream may be gone.
        if self._context is not None:
            free(self._context.handle, self._pointer, LEGACY_STREAM)

    def __dlpack_device__(self):
        return (_dlpack.CUDA, self._ordinal)

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        if copy or dl_device not in (None, self.__dlpack_device__()):
            raise BufferError("qrtool hands out its results as they are, where they are")
        return self._capsule(max_version is not None and max_version[0] >= 1)

    def _capsule(self, is_new):
        return _dlpack.lend(self, self._pointer, self.dtype, self.shape, self._ordinal, is_new)

    @property
    def __cuda_array_interface__(self):
        return {"version": 3, "shape": self.shape, "typestr": self.dtype.str, "strides": None,
                "data": (self._pointer, False), "stream": None}


class Gift(DeviceArray):
    """A result that another library imports, once, and owns from then on."""
    __slots__ = ()

    def _capsule(self, is_new):
        managed, ndim = ctypes.c_void_p(), len(self.shape)
        self._context.call(LIBRARY.qrtool_export, self._pointer, TYPES[self.dtype], ndim,
                           (ctypes.c_int64 * ndim)(*self.shape), None, is_new, managed)
        self._context = None
        return _dlpack.capsule_of(managed.value, is_new)


class Kind:
    """How arrays of one library are read and made: here of one that only has __dlpack__."""
    keeps_order = False  # whether its memory is used again in the order of the stream alone
    allocator = turned = importer = library = None
    memory_hint = ""
    to_host = staticmethod(np.asarray)

    def __init__(self, example):
        space = getattr(example, "__array_namespace__", None)
        root = _root_of(type(example))
        module = space() if space else None if root == "__main__" else sys.modules.get(root)
        self.importer, self.library = getattr(module, "from_dlpack", None), module

    def ordinal(self, array, name):
        """N of the array's device cuda:N; None: it is not on a GPU of CUDA."""
        try:
            place, number = array.__dlpack_device__()
        except BufferError as trouble:
            raise CallError(f"{name} cannot be read by DLPack: {trouble}") from None
        return int(number) if place in (_dlpack.CUDA, _dlpack.MANAGED) else None

    def stream(self, array, ordinal):
        return LEGACY_STREAM

    def given(self, array, name, work):
        if getattr(array, "requires_grad", False):
            _refuse_gradients(name)
        return _dlpack.given_by_dlpack(array, name, work.stream)

    def empty(self, work, shape, dtype):
        """A new array, or what importer makes one of when it is filled; and its address."""
        result = (Gift if self.importer else DeviceArray)(work, shape, dtype)
        return result, result._pointer

    def from_host(self, work, array):
        return array

    def packed(self, work, array, shape):
        """The array in this shape, packed by rows."""
        raise CallError("the strides of an array are those of no batch of matrices; copy it first "
                        "to an array that is stored by rows")

    def with_ones(self, array):
        """The matrices with a column of ones before their own."""
        join = getattr(self.library, "concatenate", None)
        if join is None or not array.shape[-1]:
            raise CallError("intercept=True is for arrays of NumPy, PyTorch, CuPy and JAX that "
                            "have columns; put a column of ones into a")
        return join((self.library.ones_like(array[..., :1]), array), -1)


def _refuse_gradients(name):
    raise CallError(f"{name} requires gradients, which the functions of qrtool.torch compute; "
                    f"call one of them, or this one with {name}.detach()")


class ByInterface(Kind):
    """Arrays that have only __cuda_array_interface__."""

    def ordinal(self, array, name):
        pointer = array.__cuda_array_interface__["data"][0]
        number = ctypes.c_int()
        if pointer:
            _ask_driver("cuPointerGetAttributes", 1, ctypes.byref(ctypes.c_int(DEVICE_ORDINAL)),
                        (ctypes.c_void_p * 1)(ctypes.addressof(number)), ctypes.c_uint64(pointer))
        return number.value

    def stream(self, array, ordinal):
        return array.__cuda_array_interface__.get("stream") or LEGACY_STREAM

    def given(self, array, name, work):
        given = _dlpack.given_by_interface(array, name)
        if given.stream not in (None, work.stream):
            _ask_driver("cuStreamSynchronize", ctypes.c_void_p(given.stream))
        return given


class Numba(ByInterface):
    to_host = operator.methodcaller("copy_to_host")

    def __init__(self, example):
        cuda = sys.modules["numba"].cuda
        self.on, self.new, self.asarray = cuda.gpus.__getitem__, cuda.device_array, cuda.to_device

    def empty(self, work, shape, dtype):
        with self.on(work.ordinal):
            result = self.new(shape, dtype)
        return result, result.__cuda_array_interface__["data"][0]

    def from_host(self, work, array):
        with self.on(work.ordinal):
            return self.asarray(array)

    def packed(self, work, array, shape):
        with self.on(work.ordinal):
            result = self.new(shape, array.dtype)
            result[...] = array
        return result


class Cupy(Numba):  # its strides by DLPack are wrong where they are negative
    keeps_order = True
    turned, to_host = operator.methodcaller("swapaxes", -1, -2), operator.methodcaller("get")

    def __init__(self, example):
        self.library = cupy = sys.modules["cupy"]
        self.on, self.new, self.asarray = cupy.cuda.Device, cupy.empty, cupy.asarray
        self.current = cupy.cuda.get_current_stream

    def ordinal(self, array, name):
        return array.data.device_id

    def stream(self, array, ordinal):
        return self.current(ordinal).ptr or LEGACY_STREAM


class Jax(Kind):
    memory_hint = ("JAX takes most of the GPU's memory for itself, unless it starts with "
                   "XLA_PYTHON_CLIENT_PREALLOCATE=false or a lower XLA_PYTHON_CLIENT_MEM_FRACTION")

    def __init__(self, example):
        self.jax = sys.modules["jax"]
        self.importer, self.library = self.jax.dlpack.from_dlpack, self.jax.numpy

    def from_host(self, work, array):
        return self.jax.device_put(array, next(iter(work.lead.devices())))

    def packed(self, work, array, shape):
        return self.jax.numpy.broadcast_to(array, shape)


class Traced(Kind):
    """What stands for an array while a function is traced."""

    def __init__(self, example):
        pass

    def ordinal(self, array, name):
        raise CallError("qrtool works on arrays that have memory, and cannot be traced by jax.jit, "
                        "torch.compile or torch.func; call it outside of them, or in torch.compile "
                        "that of qrtool.torch, or in jax.jit by jax.pure_callback")


class Torch(Kind):
    keeps_order = True
    turned = operator.methodcaller("swapaxes", -1, -2)

    def __init__(self, example):
        self.library = self.torch = torch = sys.modules["torch"]
        self.types = {getattr(torch, dtype.name): dtype for dtype in TYPES}
        self.names = {dtype: name for name, dtype in self.types.items()}
        # That of torch.cuda.current_stream() without its object, which takes 1.5 us.
        self.raw_stream = getattr(torch._C, "_cuda_getCurrentRawStream", None) or (
            lambda ordinal: torch.cuda.current_stream(ordinal).cuda_stream)

    def ordinal(self, array, name):
        return array.get_device() if array.is_cuda else None

    def stream(self, array, ordinal):
        return self.raw_stream(ordinal) or LEGACY_STREAM

    def given(self, array, name, work):
        torch = self.torch
        if array.requires_grad and torch.is_grad_enabled():
            _refuse_gradients(name)
        if array.layout is not torch.strided:
            raise CallError(f"{name} is sparse; call it with {name}.to_dense()")
        if array.is_conj() or array.is_neg():
            array = array.resolve_conj().resolve_neg()
        dtype = self.types.get(array.dtype)
        if dtype is None:
            _dlpack.refuse_type(name, str(array.dtype).replace("torch.", ""))
        if work.kind is not self:
            torch.cuda.current_stream(array.device).synchronize()
        return _dlpack.Given(self.address(array), dtype, tuple(array.shape),
                             None if array.is_contiguous() else array.stride(), array)

    def address(self, tensor):
        try:
            address = tensor.data_ptr()
        except RuntimeError:
            address = 0
        if address == 0 and tensor.numel():
            Traced.ordinal(self, tensor, None)
        return address

    def empty(self, work, shape, dtype):
        result = work.lead.new_empty(shape, dtype=self.names[dtype])
        return result, self.address(result)

    def from_host(self, work, array):
        return self.torch.from_numpy(array).to(work.lead.device)

    def to_host(self, array):
        return array.cpu().numpy()

    def packed(self, work, array, shape):
        return array.expand(shape).contiguous()

    def allocator(self, ordinal):
        """Functions that take work memory from PyTorch, and give it back."""
        cuda = self.torch.cuda

        def allocate(_, size, stream):
            try:
                return cuda.caching_allocator_alloc(
                    size, ordinal, 0 if stream in (None, LEGACY_STREAM) else stream)
            except RuntimeError:  # of which its error for memory is one
                return None

        def deallocate(_, memory, stream):
            cuda.caching_allocator_delete(memory)

        return allocate, deallocate


_kinds = dict.fromkeys((np.ndarray, list, tuple, float, int, type(None)))  # of types of arrays


def _root_of(array_type):
    return str(array_type.__module__).partition(".")[0]


def _kind_of(array):
    """None: it is on the host."""
    array_type = type(array)
    if array_type in _kinds:
        return _kinds[array_type]
    root = _root_of(array_type)
    if isinstance(array, getattr(sys.modules.get("torch"), "Tensor", ())):
        make = Traced if array_type.__name__ == "FakeTensor" else Torch
    elif root in ("jax", "jaxlib") and any(
            each.__name__ == "Tracer" for each in array_type.__mro__):
        make = Traced
    elif hasattr(array, "__dlpack_device__"):
        make = {"cupy": Cupy, "jax": Jax, "jaxlib": Jax}.get(root, Kind)
    elif hasattr(array, "__cuda_array_interface__"):
        make = Numba if root == "numba" else ByInterface
    else:
        return None
    kind = _kinds[array_type] = make(array)
    return kind


def on_host(array, name):
    """The same numbers, as an array of NumPy where they are on a GPU."""
    kind = _kind_of(array)
    return array if kind is None or kind.ordinal(array, name) is None else kind.to_host(array)


def work_on(device, arrays):
    """The work of a call on {name: array}; None where all of them are on the host."""
    lead = first = work = None
    for name, array in arrays.items():
        kind = _kind_of(array)
        place = None if kind is None else kind.ordinal(array, name)
        if lead is None:
            lead, first = name, place
            work = None if place is None else Work(place, arrays, array, kind)
        elif array is not None and place != first:
            raise CallError(f"{name} is {_place(place)}, and {lead} {_place(first)}; the arrays "
                            "of a call must be in one place")
    if work and device != "auto" and device != f"cuda:{first}":
        raise CallError(f"device is {device!r}, and {lead} is on cuda:{first}; it may be "
                        f"'auto' or 'cuda:{first}'")
    return work


_rules = None  # of torch.compile, which know this package
_FILES = {str(pathlib.Path(__file__).with_name(f"{name}.py"))
          for name in ("__init__", "_arrays", "_contexts", "_device", "_dlpack", "_library")}


def stay_untraced():
    """Keeps torch.compile out of this package, with the marks that the functions have: its graphs
    end before a call, and begin after it. It may be imported at any time, so that every call that
    it may trace begins with this. The functions of torch.py are traced."""
    global _rules
    rules = sys.modules.get("torch._dynamo.trace_rules")
    if rules is not _rules and hasattr(rules, "FORCE_SKIP_FILES"):
        rules.FORCE_SKIP_FILES.update(_FILES)
        _rules = rules


def _place(ordinal):
    return "in host memory" if ordinal is None else f"on cuda:{ordinal}"


class Work:
    """A call on arrays of one GPU, whose results are of the first array's kind."""
    __slots__ = ("ordinal", "arrays", "lead", "kind", "stream", "context", "given")

    def __init__(self, ordinal, arrays, lead, kind):
        self.ordinal, self.arrays, self.lead, self.kind = ordinal, arrays, lead, kind
        self.stream, self.given = kind.stream(lead, ordinal), []

    def take(self, name, copy=None):
        array = self.arrays[name] if copy is None else copy
        given = _kind_of(array).given(array, name, self)
        self.given.append(given)
        return given

    def take_with_ones(self, name):
        array = self.arrays[name]
        self.arrays[name] = _kind_of(array).with_ones(array)
        return self.take(name)

    def struct(self, given, name, batch=None):
        """The struct of what take() has given, from a copy where its strides need one."""
        struct = given.struct(batch)
        if struct is None:
            array, shape = self.arrays[name], (*(batch or given.shape[:-2]), *given.shape[-2:])
            copy = _kind_of(array).packed(self, array, shape[:-1] if given.is_column else shape)
            packed = self.take(name, copy)
            struct = (packed.as_column() if given.is_column else packed).struct()
        return struct

    def new(self, shape, dtype):
        return self.kind.empty(self, shape, dtype)

    def finished(self, *results):
        """Results, which are filled, as the caller gets them."""
        make = self.kind.importer
        return [make(each) for each in results] if make else list(results)

    def call(self, function, *arguments):
        try:
            return self.context.call(function, *arguments)
        except MemoryLimitError as error:
            if self.kind.memory_hint:
                raise MemoryLimitError(f"{error}; {self.kind.memory_hint}") from None
            raise

    def end(self):
        for given in self.given:
            if given.loan:
                given.give_back()


def new_on(context, ordinal, shape, dtype):
    """A new DeviceArray, and its address."""
    work = Work(ordinal, {}, None, Kind(None))
    work.context = context
    return work.new(shape, dtype)
