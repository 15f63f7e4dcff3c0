# SPDX-License-Identifier: Apache-2.0
"""widened.py: numbers as the judges compare them. Damage makes a type a complex one, too."""
import numpy as np


def widened(numbers):
    """As float64, complex numbers as complex128. h5py gives pairs where a part has another name."""
    a = np.asarray(numbers)
    if a.dtype.names is not None and len(a.dtype.names) == 2:
        real, imaginary = (a[name].astype("f8") for name in a.dtype.names)
        return real + 1j * imaginary
    return a.astype("c16" if a.dtype.kind == "c" else "f8")


def is_single(dtype):
    part = dtype if dtype.names is None else dtype[0]
    return part in (np.float32, np.complex64)
