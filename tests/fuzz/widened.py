# SPDX-License-Identifier: Apache-2.0
"""widened.py: numbers as the judges compare them. Damage makes a type a complex one, too."""
import numpy as np


def widened(numbers):
    """As float64, complex numbers as complex128."""
    a = np.asarray(numbers)
    return a.astype("c16" if a.dtype.kind == "c" else "f8")


def is_single(dtype):
    return dtype in (np.float32, np.complex64)
