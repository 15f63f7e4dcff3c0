# SPDX-License-Identifier: Apache-2.0
"""Checked QR factors and least squares of NumPy arrays, on the CPU or on a GPU.

    q, r = qrtool.qr(a)                       as numpy.linalg.qr, with R_kk >= 0
    x, residues, rank = qrtool.lstsq(a, b)    as scipy.linalg.lstsq, for batches too
    qrtool.verify(a, q, r)                    whether A = QR and Q'Q = I hold

Every result has been measured; report=True gives the errors and the bars that they are held to.
"""
import ctypes
import functools
import operator
import os
import warnings
from collections import namedtuple

import numpy as np

from . import _library
from ._arrays import address_of, array_of, is_masked, matrices_of, memory_of, records_in, stack_of
from ._library import (STATUS_NAMES, CallError, Context, DeviceError, Error, MemoryLimitError)

__version__ = _library.VERSION
__all__ = ["AccuracyWarning", "CallError", "DeviceError", "Error", "LstsqResult",
           "MemoryLimitError", "QRResult", "STATUS_NAMES", "last_run", "lstsq", "open_device",
           "qr", "verify"]

QRResult = namedtuple("QRResult", ["Q", "R"])
LstsqResult = namedtuple("LstsqResult", ["x", "residues", "rank"])

MODES = {"reduced": 0, "complete": 1, "r": 2, "raw": 3}
SIGNS = {"positive": 1, "lapack": 2}
CHECKS = {"full": 0, "probe": 1, "none": 2}
ABOVE_BAR, NON_FINITE, OVERFLOWS, TOO_FEW_ROWS = 1, 2, 3, 5
REPORT = np.dtype(_library.REPORT)
SOLUTION = np.dtype(_library.SOLUTION)

_contexts = {}
# A child has neither the threads nor the driver of its parent's contexts, and must not free them.
_left_to_parents = []


def _leave_to_parent():
    _left_to_parents.extend(_contexts.values())
    _contexts.clear()


os.register_at_fork(after_in_child=_leave_to_parent)


class AccuracyWarning(UserWarning):
    """A result has an error above its bar, or is too large for its type."""


def _whole_number(number, most, name):
    try:
        number = operator.index(number)
    except TypeError:
        raise CallError(f"{name} is {number!r}; it must be a whole number") from None
    if not 0 <= number <= most:
        raise CallError(f"{name} is {number}; it may be 0 to {most}")
    return number


def _name_of(device):
    """A device may be given by its index."""
    if isinstance(device, (int, np.integer)) and not isinstance(device, bool):
        return str(device)
    if not isinstance(device, str):
        raise CallError(f"device is {device!r}; it must be a text, or the index of a device")
    return device


def open_device(device="auto", threads=0, memory=0):
    """Opens a device, or opens it again with as many threads (0: all cores) and bytes of memory
    (0: half of what is free). The functions open what they need without it."""
    device = _name_of(device)
    _contexts[device] = Context(device, _whole_number(threads, 4096, "threads"),
                                _whole_number(memory, 2**63 - 1, "memory"))


def _context(device):
    context = _contexts.get(device) if isinstance(device, str) else None
    if context is None:
        device = _name_of(device)
        if device not in _contexts:
            open_device(device)
        context = _contexts[device]
    return context


def last_run(device="auto"):
    """How the last call on a device was done: backend, device, variant, arithmetic, reason and
    threads."""
    return _context(device).last_run()


def _word(words, word, name):
    number = words.get(word)
    if number is None:
        raise CallError(f"{name} is {word!r}; it may be {', '.join(map(repr, words))}")
    return number


def _matrices(values, name, **how):
    array = array_of(values, name, **how)
    if array.ndim < 2:
        raise CallError(f"{name} has {array.ndim} dimension{'s' * (array.ndim != 1)}; it must have "
                        "two or more, of which the last two are those of a matrix")
    return array


def _warn(statuses, what):
    for status in (ABOVE_BAR, OVERFLOWS):
        count = int(np.count_nonzero(statuses == status))
        if count:
            warnings.warn(f"{count} {what}: {STATUS_NAMES[status]}", AccuracyWarning, stacklevel=3)


@functools.lru_cache  # most calls ask for the same
def _factor_options(mode, sign, check, mixed, pivoting, condition):
    return _library.FactorOptions(
        ctypes.sizeof(_library.FactorOptions), _word(MODES, mode, "mode"),
        0 if sign is None else _word(SIGNS, sign, "sign"), _word(CHECKS, check, "check"),
        2 if mixed else 0, bool(pivoting), bool(condition))


def qr(a, mode="reduced", *, sign=None, pivoting=False, condition=False, check="full",
       mixed=False, device="auto", report=False):
    """The QR factors of the matrices a [..., m, n], with k = min(m, n).

    mode: "reduced" gives Q [..., m, k] and R [..., k, n]; "complete" Q [..., m, m] and R
        [..., m, n]; "r" R alone; "raw" LAPACK's h [..., n, m] and tau [..., k].
    sign: "positive", R_kk >= 0; "lapack", the signs of numpy.linalg.qr. As usual: positive, and
        lapack with "raw".
    pivoting: a[..., :, P] = Q R with falling |r_ii|; P [..., n] is one more result.
    condition: the report has rank and condition.
    check: "full", "probe" (estimates) or "none".
    mixed: products in half precision, for float32 alone.
    device: "auto", "cpu", or an OpenCL device by its index or a part of its name.
    report: one more result, a record for each matrix: residual, orthogonality, lower, their bars,
        diagonal_ratio, condition, status (a number of STATUS_NAMES), rank, tries, scale.

    The type is that of a; integers become float64, and float16 becomes float32. A matrix that is
    not finite has NaN factors, and changes no other one."""
    options = _factor_options(mode, sign, check, mixed, pivoting, condition)
    array = _matrices(a, "a")
    struct, kept = matrices_of(array)
    batch, (m, n), dtype = array.shape[:-2], array.shape[-2:], kept.dtype
    k = min(m, n)
    lines = memory_of(batch, REPORT)
    out = _library.Factors(_library.FACTORS_SIZE)
    out.reports = address_of(lines)
    if mode == "raw":
        results = [np.empty(batch + (n, m), dtype), np.empty(batch + (k,), dtype)]
        out.v, out.v_strides = address_of(results[0]), (1, m, m * n)
        out.tau = address_of(results[1])
    else:
        rows = m if mode == "complete" else k  # of R, and columns of Q
        results = [np.empty(batch + (rows, n), dtype)]
        out.r = address_of(results[0])
        if mode != "r":
            results.insert(0, np.empty(batch + (m, rows), dtype))
            out.q = address_of(results[0])
    if pivoting:
        results.append(np.empty(batch + (n,), np.int64))
        out.p = address_of(results[-1])
    are_good = _context(device).call(_library.LIBRARY.qrtool_factor, struct, options, out)
    if not are_good:
        _warn(records_in(lines, REPORT)["status"], "matrices")
    if report:
        results.append(records_in(lines, REPORT).view(np.recarray))
    if len(results) == 1:
        return results[0]
    return QRResult(*results) if len(results) == 2 and mode in ("reduced", "complete") \
        else tuple(results)


def _pointer(struct):
    return None if struct is None else ctypes.pointer(struct)


def _permutation(p):
    """Numbers of columns as the library takes them."""
    if is_masked(p):
        raise CallError("p has a mask; it must be the numbers of the columns")
    numbers = np.asarray(p)
    if numbers.dtype.kind not in "iuf" or not np.array_equal(numbers, np.rint(numbers)):
        raise CallError("p must be whole numbers: for each column of Q R that of a column of a")
    order = np.ascontiguousarray(numbers, np.int64)
    return order


def verify(a, q, r=None, *, p=None, criteria="standard", check="full", mixed=False, device="auto",
           report=False):
    """Whether Q [..., m, k or m] and R [..., k or m, n], whoever made them, are factors of the
    matrices a [..., m, n] within the bars: the errors are measured in float64.
    verify(a, None, r) checks R alone. p: the permutation, a[..., :, p] = Q R. criteria: "standard"
    or "m-eps".

    report: the result is (ok, report), with a record for each matrix as of qr()."""
    array = _matrices(a, "a")
    if r is None:
        raise CallError("r is missing; verify(a, None, r) checks R alone")
    parts, kept = [], []
    for values, name in ((a, "a"), (q, "q"), (r, "r")):
        if values is None:
            parts.append(None)
            continue
        part = array if name == "a" else _matrices(values, name)
        if part.shape[:-2] != array.shape[:-2]:
            raise CallError(f"{name} is {part.shape}, and a is {array.shape}; the dimensions "
                            "before the last two must be equal")
        struct, memory = matrices_of(part)
        parts.append(struct)
        kept.append(memory)
    given = _library.GivenFactors(ctypes.sizeof(_library.GivenFactors), _pointer(parts[1]),
                                  _pointer(parts[2]))
    if p is not None:
        order = _permutation(p)
        if order.shape != (*array.shape[:-2], array.shape[-1]):
            raise CallError(f"p is {order.shape}; for this a it must be "
                            f"{(*array.shape[:-2], array.shape[-1])}")
        given.p = address_of(order)
    options = _library.VerifyOptions(ctypes.sizeof(_library.VerifyOptions),
                                     _word(CHECKS, check, "check"),
                                     _word({"standard": 0, "m-eps": 1}, criteria, "criteria"),
                                     bool(mixed))
    lines = memory_of(array.shape[:-2], REPORT)
    are_good = _context(device).call(
        _library.LIBRARY.qrtool_verify, parts[0], given, options, address_of(lines), 0)
    return (are_good, records_in(lines, REPORT).view(np.recarray)) if report else are_good


def _spread(array, batch):
    """One batch of matrices: all of `batch`, or the one that serves every place."""
    if all(size == 1 for size in array.shape[:-2]):
        return array.reshape((1, *array.shape[-2:]))
    if array.shape[:-2] != batch:
        array = np.broadcast_to(array, (*batch, *array.shape[-2:]))
    return stack_of(array)


def _weights(weights, b, is_vector, dtype):
    """m weights for all right sides, or those of every right side, in the shape of b."""
    array = array_of(weights, "weights", "a weight of 0 leaves a row out")
    if array.dtype.kind == "c":
        raise CallError("weights are complex; they must be real numbers")
    array = array.astype(dtype, copy=False)
    if array.ndim == 1 or is_vector:
        array = array[..., np.newaxis]
    if array.ndim < 2 or array.shape[-2] != b.shape[-2]:
        raise CallError(f"weights are {np.shape(weights)}; they must be m = {b.shape[-2]} numbers, "
                        "or have the shape of b")
    return array


def lstsq(a, b, weights=None, *, ridge=0.0, intercept=False, rank_tolerance=None, missing="error",
          least_norm=False, basic=False, errors=False, device="auto", report=False):
    """The x that minimise ||a x - b|| for the matrices a [..., m, n] and b: one vector [m] for
    every a, or [..., m, p] with p right sides each. The dimensions before the last two are
    broadcast.

    The result has x [n] or [..., n, p], residues (the squares of ||b - a x||, weighted where there
    are weights) and rank, that of each matrix. Where rows may count for one right side and not for
    another, which is so with missing="skip" and with weights in the shape of b, each right side has
    a rank of its own: [..., p]. Where the rank is less than n, x has least norm, or zeros where
    basic.

    weights: of the squared residuals: m numbers, or an array that fits b.
    ridge: minimises ||a x - b||^2 + ridge ||x||^2; intercept: column 0 of a is all ones, and its x
        is left alone by the ridge. No column is added, as the command's --intercept does it; other
        numbers there than 1 and NaN are refused.
    rank_tolerance: of a's columns scaled to norm 1; as usual u max(16, 2n).
    missing: "error": an x whose b or a has NaN is NaN, and masked values are refused; "skip": rows
        with NaN or masked values are left out.
    least_norm: x of least norm where too few rows count, which is NaN otherwise.
    errors: standard errors of x are one more result.
    device: as of qr(). Weights and standard errors are real.
    report: one more result, a record for each x: residual_norm, backward_error, least_norm_error,
        their bar, degrees_of_freedom, condition, scaled_condition, status, rank, tries."""
    options = _library.SolveOptions(
        ctypes.sizeof(_library.SolveOptions),
        0 if rank_tolerance is None else rank_tolerance, ridge, bool(intercept), bool(basic),
        _word({"error": 0, "skip": 1}, missing, "missing"), bool(least_norm))
    masked = "nan" if missing == "skip" else 'missing="skip" leaves their rows out'
    matrix, sides = _matrices(a, "a", masked=masked), array_of(b, "b", masked)
    is_vector = sides.ndim == 1
    if sides.ndim == 0:
        raise CallError("b has no dimension")
    if is_vector:
        sides = sides[:, np.newaxis]
    dtype = np.result_type(matrix.dtype, sides.dtype)
    real = np.empty(0, dtype).real.dtype
    matrix, sides = matrix.astype(dtype, copy=False), sides.astype(dtype, copy=False)
    if matrix.shape[-2] != sides.shape[-2]:
        raise CallError(f"a is {np.shape(a)} and b is {np.shape(b)}: they have {matrix.shape[-2]} "
                        f"and {sides.shape[-2]} rows")
    try:
        batch = np.broadcast_shapes(matrix.shape[:-2], sides.shape[:-2])
    except ValueError:
        raise CallError(f"a is {np.shape(a)} and b is {np.shape(b)}: the dimensions before "
                        "the last two do not belong together") from None
    n, p = matrix.shape[-1], sides.shape[-1]
    in_a, memory_a = matrices_of(_spread(matrix, batch))
    in_b, memory_b = matrices_of(_spread(sides, batch))
    in_w, memory_w = None, None
    if weights is not None:
        given = _weights(weights, sides, is_vector, real)
        try:
            in_w, memory_w = matrices_of(_spread(given, batch))
        except ValueError:
            raise CallError(f"weights are {np.shape(weights)}; they do not fit b, "
                            f"{np.shape(b)}") from None
    shape = (*batch, n, p)
    x, memory = np.empty(shape, dtype), memory_of((*batch, p), SOLUTION)
    lines = records_in(memory, SOLUTION)
    out = _library.Solutions(ctypes.sizeof(_library.Solutions))
    out.x, out.solutions = address_of(x), address_of(memory)
    standard_errors = np.empty(shape, real) if errors else None
    if errors:
        out.errors = address_of(standard_errors)
    are_good = _context(device).call(
        _library.LIBRARY.qrtool_solve, in_a, in_b, in_w, options, out)
    del memory_a, memory_b, memory_w  # the structs pointed to them
    if not are_good:
        _warn(lines["status"], "solutions")
    weighs_each = weights is not None and given.shape[-1] > 1
    if is_vector or not (missing == "skip" or weighs_each):
        ranks = lines["rank"][..., 0] if p > 0 else np.full(batch, -1, np.int32)
    else:
        ranks = lines["rank"].copy()
    results = [x, np.square(lines["residual_norm"]), ranks if ranks.ndim else int(ranks)]
    if is_vector:
        results[:2] = x[..., 0], results[1][..., 0]
        lines = lines[..., 0]
        standard_errors = standard_errors[..., 0] if errors else None
    more = [*([standard_errors] if errors else []), *([lines.view(np.recarray)] if report else [])]
    return (*results, *more) if more else LstsqResult(*results)
