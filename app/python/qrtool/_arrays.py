# SPDX-License-Identifier: Apache-2.0
"""NumPy arrays as structs of qrtool.h, without a copy where their order allows."""
import ctypes
import math
import threading

import numpy as np

from ._library import CallError, Matrices

TYPES = {np.dtype(np.float64): 0, np.dtype(np.float32): 1, np.dtype(np.complex128): 2,
         np.dtype(np.complex64): 3}

LEAST_KEPT, MOST_KEPT = 1 << 13, 1 << 21  # numbers
_kept = threading.local()
addressof, from_buffer = ctypes.addressof, ctypes.c_char.from_buffer


def _without_mask(values, name, masked):
    """The numbers of a masked array; those that are masked become NaN if `masked` is "nan"."""
    if isinstance(values, (list, tuple)):
        values = np.ma.stack([np.ma.asanyarray(each) for each in values])
    mask = np.ma.getmaskarray(values)
    count = int(np.count_nonzero(mask))
    if count == 0:
        return values.data
    if masked != "nan":
        raise CallError(f"{name} has {count} masked value{'s' * (count > 1)}; {masked}")
    if values.dtype.kind in "biu":
        values = values.astype(np.float64)
    return values.filled(np.nan)


def is_masked(values):
    """Whether it is a masked array, as netCDF4 returns them, or a sequence of such."""
    if isinstance(values, (list, tuple)):
        return any(isinstance(each, np.ma.MaskedArray) for each in values)
    return isinstance(values, np.ma.MaskedArray)


def _some_array_of(values, name, masked):
    if is_masked(values):
        values = _without_mask(values, name, masked)
    if not isinstance(values, np.ndarray) and hasattr(values, "__dlpack__"):
        try:
            values = np.from_dlpack(values)
        except (BufferError, RuntimeError, TypeError) as trouble:
            if str(getattr(values, "dtype", "")).endswith("bfloat16"):
                raise CallError(f"{name} is bfloat16; convert it to float32") from None
            raise CallError(f"{name}: only arrays in the memory of the CPU, or of a GPU of NVIDIA, "
                            f"can be read: {trouble}") from None
    return np.asarray(values)


def array_of(values, name, masked="fill them with numbers first, such as array.filled(0)"):
    """An array of one of the four types: integers become float64, float16 becomes float32.
    `masked`: "nan", so that masked values become NaN; else what a message advises, since they are
    refused."""
    array = values if type(values) is np.ndarray else _some_array_of(values, name, masked)
    if array.dtype in TYPES:
        return array if array.flags.aligned else array.copy()
    kind, size = array.dtype.kind, array.dtype.itemsize
    if kind in "biu":
        return array.astype(np.float64)
    if kind == "f" and size <= 8:
        return array.astype(np.float32 if size <= 4 else np.float64)
    if kind == "c" and size <= 16:
        return array.astype(np.complex64 if size == 8 else np.complex128)
    raise TypeError(f"{name}: arrays of {array.dtype} are not offered; convert them to float64 or "
                    "complex128")


def address_of(array):
    # array.ctypes takes 0.8 us, and the buffer of an array of records 1 us; this takes 0.3. What is
    # empty, read-only or not in C order has no such buffer.
    try:
        return addressof(from_buffer(array))
    except (BufferError, TypeError, ValueError):
        return array.ctypes.data


def new_array(shape, dtype):
    """A new array, and its address."""
    array = np.empty(shape, dtype)
    return array, address_of(array)


def memory_of(shape, record, may_be_used_again=False):
    """Memory for an array of records, as numbers; what is large and may_be_used_again is that of
    the thread's last call, whose pages are there."""
    shape = shape + (record.itemsize // 8,)
    size = math.prod(shape)
    if not may_be_used_again or not LEAST_KEPT <= size <= MOST_KEPT:
        return np.empty(shape)
    memory = _kept.__dict__.pop("memory", None)  # so that a call within this one has another
    if memory is None or memory.size < size:
        memory = np.empty(size)
    return memory[:size].reshape(shape)


def keep(memory):
    """Keeps what memory_of() has given, which nobody has any more."""
    if memory.base is not None:
        _kept.memory = memory.base


def records_in(memory, record):
    return memory.view(record)[..., 0]


def stack_of(array):
    """The array as one batch of matrices: a view where that is possible."""
    if array.ndim == 3:
        return array
    if array.ndim == 2:
        return array[np.newaxis]
    return array.reshape((math.prod(array.shape[:-2]), *array.shape[-2:]))


def matrices_of(array):
    """The struct of a batch, and the array that it points to, which must live as long."""
    if array.flags.c_contiguous:
        *batch, rows, columns = array.shape
        count = math.prod(batch) if batch else 1
        return Matrices(address_of(array), TYPES[array.dtype], 0, count, rows, columns), array
    stack = stack_of(array)
    size = stack.itemsize
    if any(stride % size for stride in stack.strides) or stack.strides[1:] == (0, 0):
        stack = np.ascontiguousarray(stack)
    by_matrix, by_row, by_column = (stride // size for stride in stack.strides)
    return Matrices(address_of(stack), TYPES[stack.dtype], 0, *stack.shape, by_row, by_column,
                    by_matrix), stack
