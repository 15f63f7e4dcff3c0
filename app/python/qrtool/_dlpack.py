# SPDX-License-Identifier: Apache-2.0
"""The two ways in which libraries hand each other arrays on a GPU: DLPack's capsules, of versions
0.x and 1.x, and __cuda_array_interface__."""
import ctypes
import math
import struct
from ctypes import c_char_p, c_int, c_void_p

import numpy as np

from ._arrays import TYPES as NUMBERS
from ._library import CallError, Matrices

CUDA, MANAGED = 2, 13
LEGACY_STREAM = 1  # as both protocols name it
OLD, NEW = b"dltensor", b"dltensor_versioned"
USED_OLD, USED_NEW = b"used_dltensor", b"used_dltensor_versioned"
KINDS = {0: "int", 1: "uint", 2: "float", 4: "bfloat", 5: "complex", 6: "bool"}
TYPES = {(2, 64): np.dtype("f8"), (2, 32): np.dtype("f4"), (5, 128): np.dtype("c16"),
         (5, 64): np.dtype("c8")}
CODES = {dtype: code for code, dtype in TYPES.items()}


# DLManagedTensor and DLManagedTensorVersioned, which have a DLTensor at their beginning and end.
OLD_FORM, NEW_FORM = struct.Struct("PiiiBBHPPQ PP"), struct.Struct("iiPPQ PiiiBBHPPQ")

def _of_python(name, *types):
    """A function of Python, of which ctypes.pythonapi has one that all modules share. It takes
    objects by their addresses, since nothing may hold a reference to one that is being freed."""
    return ctypes.PYFUNCTYPE(*types)((name, ctypes.pythonapi))


_is_capsule = _of_python("PyCapsule_IsValid", c_int, c_void_p, c_char_p)
_pointer_in = _of_python("PyCapsule_GetPointer", c_void_p, c_void_p, c_char_p)
_rename = _of_python("PyCapsule_SetName", c_int, c_void_p, c_char_p)
_new_capsule = _of_python("PyCapsule_New", ctypes.py_object, c_void_p, c_char_p, c_void_p)
_Deleter = ctypes.CFUNCTYPE(None, c_void_p)
_deleters = {}


def give_back(managed, deleter):
    """Calls the deleter of a tensor, where it has one."""
    if deleter:
        function = _deleters.get(deleter)
        if function is None:
            function = _deleters.setdefault(deleter, _Deleter(deleter))
        function(managed)


def refuse_type(name, word):
    if word.startswith(("int", "uint", "bool")):
        raise CallError(f"{name} has numbers of type {word}; on a GPU, convert them to float64 "
                        "first")
    raise TypeError(f"{name}: arrays of {word} are not offered; convert them to float64 or "
                    "complex128")


class Given:
    """An array on a GPU as the library reads it, with the names of NumPy. Strides count elements,
    and are None where it is packed by rows; stream: where __cuda_array_interface__ has it ready."""
    stream = loan = None
    is_column = False

    def __init__(self, pointer, dtype, shape, strides, owner):
        self.pointer, self.dtype, self.shape, self.strides = pointer, dtype, shape, strides
        self.owner = owner

    @property
    def ndim(self):
        return len(self.shape)

    def give_back(self):
        if self.loan:
            loan, self.loan = self.loan, None
            give_back(*loan)

    def as_column(self):
        """The array with one more dimension, of size 1, at its end."""
        self.is_column, self.shape = True, (*self.shape, 1)
        self.strides = self.strides and (*self.strides, 1)
        return self

    def astype(self, dtype, copy=False):
        if dtype != self.dtype:
            raise CallError(f"an array of {self.dtype} is among arrays of {dtype}; on a GPU, "
                            "convert them to one type first")
        return self

    def struct(self, batch=None):
        """The struct of its matrices, spread over the places of `batch`, or of the one that serves
        all places; None where strides do not say it."""
        *own, rows, columns = self.shape
        if batch is None or own.count(1) == len(own):
            batch = own
        elif np.broadcast_shapes(own, batch) != tuple(batch):
            raise ValueError
        count, code = math.prod(batch), NUMBERS[self.dtype]
        if not count * rows * columns:
            return Matrices(None, code, 0, count, rows, columns)
        if self.strides is None and list(batch) == own:
            return Matrices(self.pointer, code, 0, count, rows, columns)
        *steps, by_row, by_column = self.strides or packed_strides(self.shape)
        steps = [0] * (len(batch) - len(own)) + [
            step if size > 1 else 0 for size, step in zip(own, steps)]
        by_matrix = one_step(batch, steps)
        by_row, by_column = by_row if rows > 1 else columns, by_column if columns > 1 else 1
        if by_matrix is None or by_row == by_column == 0:
            return None
        return Matrices(self.pointer, code, 0, count, rows, columns, by_row, by_column, by_matrix)


def packed_strides(shape):
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= size
    return tuple(reversed(strides))


def one_step(shape, steps):
    """The step from each place of some dimensions to the next one; None: it is not always the
    same."""
    first = following = None
    for size, step in zip(reversed(shape), reversed(steps)):
        if size == 1:
            continue
        if first is None:
            first = step
        elif step != following:
            return None
        following = step * size
    return first or 0


def _contents(capsule):
    """(managed tensor, its deleter, DLPack's version, DLTensor, the capsule's name when it is used)
    of the capsule at an address; None: it has no tensor any more."""
    if _is_capsule(capsule, NEW):
        managed = _pointer_in(capsule, NEW)
        major, _, _, deleter, _, *tensor = NEW_FORM.unpack(
            ctypes.string_at(managed, NEW_FORM.size))
        return managed, deleter, major, tensor, USED_NEW
    if _is_capsule(capsule, OLD):
        managed = _pointer_in(capsule, OLD)
        *tensor, _, deleter = OLD_FORM.unpack(ctypes.string_at(managed, OLD_FORM.size))
        return managed, deleter, 1, tensor, USED_OLD
    return None


def given_by_capsule(capsule, name):
    """What a capsule holds, which is used by this; its memory is lent until give_back()."""
    contents = _contents(id(capsule))
    if contents is None:
        raise CallError(f"{name} has given no capsule of DLPack, or one that was used before")
    managed, deleter, major, tensor, used = contents
    _rename(id(capsule), used)
    if major != 1:  # then all but the deleter may lie elsewhere
        give_back(managed, deleter)
        raise CallError(f"{name} comes by version {major} of DLPack; 0 and 1 are known")
    data, _, _, ndim, kind, bits, lanes, shape, strides, offset = tensor
    numbers = struct.Struct(f"{ndim}q")
    given = Given((data or 0) + offset, TYPES.get((kind, bits)),
                  numbers.unpack(ctypes.string_at(shape, 8 * ndim)) if ndim else (),
                  numbers.unpack(ctypes.string_at(strides, 8 * ndim)) if strides and ndim else None,
                  None)
    given.loan = managed, deleter
    if given.dtype is None or lanes != 1:
        given.give_back()
        refuse_type(name, f"{KINDS.get(kind, 'type')}{bits}{f' x {lanes}' * (lanes != 1)}")
    return given


def given_by_dlpack(array, name, stream):
    """The array, whose numbers are ready on the stream."""
    try:
        try:
            capsule = array.__dlpack__(stream=stream, max_version=(1, 0))
        except TypeError:  # an older producer
            capsule = array.__dlpack__(stream=stream)
    except (BufferError, RuntimeError, ValueError) as trouble:
        raise CallError(f"{name} cannot be read by DLPack: {trouble}") from None
    return given_by_capsule(capsule, name)


def given_by_interface(array, name):
    """The array by __cuda_array_interface__; its stream says where its numbers are ready."""
    facts = array.__cuda_array_interface__
    if facts["version"] < 2:
        raise CallError(f"{name} has version {facts['version']} of __cuda_array_interface__; "
                        "2 and newer are known")
    if facts.get("mask") is not None:
        raise CallError(f"{name} has a mask; fill its masked values with numbers first")
    dtype = np.dtype(facts["typestr"])
    if dtype not in CODES:
        refuse_type(name, str(dtype))
    strides, stream = facts.get("strides"), facts.get("stream")
    if strides is not None:
        if any(stride % dtype.itemsize for stride in strides):
            raise CallError(f"{name} has strides of {strides} bytes, and numbers of "
                            f"{dtype.itemsize}")
        strides = tuple(stride // dtype.itemsize for stride in strides)
    if stream == 0:
        raise CallError(f"{name} names stream 0, which __cuda_array_interface__ does not allow")
    given = Given(facts["data"][0], dtype, tuple(facts["shape"]), strides, array)
    given.stream = stream
    return given


def capsule_of(managed, is_new):
    """A capsule for a tensor, which is given back with it unless somebody uses it."""
    return _new_capsule(managed, NEW if is_new else OLD, _DROP)


@ctypes.PYFUNCTYPE(None, c_void_p)
def _drop(capsule):
    contents = _contents(capsule)
    if contents:
        give_back(*contents[:2])


_lent = {}  # address of a tensor -> the tensor, its shape and strides, and whose memory it is


@_Deleter
def _end_of_loan(managed):
    _lent.pop(managed, None)


_DROP, _END_OF_LOAN = (ctypes.cast(function, c_void_p).value for function in (_drop, _end_of_loan))
for _function in (_drop, _end_of_loan):  # capsules may live longer than this module
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(_function))


def lend(owner, pointer, dtype, shape, device, is_new):
    """A capsule for memory, packed by rows, of an owner that lives until it has come back."""
    numbers = (ctypes.c_int64 * (2 * len(shape)))(*shape, *packed_strides(shape))
    first = ctypes.addressof(numbers)
    tensor = (pointer, CUDA, device, len(shape), *CODES[dtype], 1, first, first + 8 * len(shape), 0)
    managed = ctypes.create_string_buffer(
        NEW_FORM.pack(1, 0, 0, _END_OF_LOAN, 0, *tensor) if is_new else
        OLD_FORM.pack(*tensor, 0, _END_OF_LOAN))
    address = ctypes.addressof(managed)
    _lent[address] = managed, numbers, owner
    return capsule_of(address, is_new)
