# SPDX-License-Identifier: Apache-2.0
"""NumPy arrays as structs of qrtool.h, without a copy where their order allows."""
import numpy as np

from ._library import CallError, Matrices, Place

TYPES = {np.dtype(np.float64): 0, np.dtype(np.float32): 1, np.dtype(np.complex128): 2,
         np.dtype(np.complex64): 3}


def array_of(values, name):
    """An array of one of the four types: integers become float64, float16 becomes float32."""
    if not isinstance(values, np.ndarray) and hasattr(values, "__dlpack__"):
        try:
            values = np.from_dlpack(values)
        except (BufferError, RuntimeError, TypeError) as trouble:
            raise CallError(f"{name}: only arrays in the memory of the CPU can be read: "
                            f"{trouble}") from None
    array = np.asarray(values)
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
    # __array_interface__ would describe every field of a record: 20 us.
    return array.ctypes.data


def stack_of(array):
    """The array as one batch of matrices: a view where that is possible."""
    if array.ndim == 3:
        return array
    if array.ndim == 2:
        return array[np.newaxis]
    count = 1
    for size in array.shape[:-2]:
        count *= size
    return array.reshape((count, *array.shape[-2:]))


def matrices_of(array):
    """The struct of a batch, and the array that it points to, which must live as long."""
    if array.flags.c_contiguous:
        *leading, rows, columns = array.shape
        count = 1
        for size in leading:
            count *= size
        return Matrices(address_of(array), TYPES[array.dtype], 0, count, rows, columns), array
    stack = stack_of(array)
    size = stack.itemsize
    if any(stride % size for stride in stack.strides) or stack.strides[1:] == (0, 0):
        stack = np.ascontiguousarray(stack)
    by_matrix, by_row, by_column = (stride // size for stride in stack.strides)
    return Matrices(address_of(stack), TYPES[stack.dtype], 0, *stack.shape, by_row, by_column,
                    by_matrix), stack


def place_of(array):
    """A place for a packed array."""
    return Place(address_of(array))
