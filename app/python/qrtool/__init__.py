# SPDX-License-Identifier: Apache-2.0
"""Checked QR factors and least squares of NumPy arrays, on the CPU or on a GPU; and of arrays of
PyTorch, JAX, CuPy, Numba and others that are on a GPU of NVIDIA, where they are.

    q, r = qrtool.qr(a)                       as numpy.linalg.qr, with R_kk >= 0
    x, residues, rank = qrtool.lstsq(a, b)    as scipy.linalg.lstsq, for batches too
    qrtool.apply(b, "qt", q=q)                Q'b; also Qb, R^-1 b and R^-H b
    qrtool.verify(a, q, r)                    whether A = QR and Q'Q = I hold
    qrtool.matrices("contest", (100, 64, 32)) test matrices, which are hard for many programs
    qrtool.torch                              qr and lstsq for autograd and torch.compile

Every result has been measured; report=True gives the errors and the bars that they are held to.
"""
import ctypes
import functools
import math
import warnings
from collections import namedtuple

import numpy as np

from . import _device, _library
from ._arrays import (TYPES, address_of, array_of, is_masked, keep, matrices_of, memory_of,
                      new_array, records_in, stack_of)
from ._contexts import context_of, last_run, open_device, opened_work, release, whole_number
from ._device import DeviceArray, stay_untraced
from ._library import KINDS, STATUS_NAMES, CallError, DeviceError, Error, MemoryLimitError

__version__ = _library.VERSION
__all__ = ["AccuracyWarning", "CallError", "DeviceArray", "DeviceError", "Error", "KINDS",
           "LstsqResult", "MemoryLimitError", "QRResult", "STATUS_NAMES", "apply", "last_run",
           "lstsq", "matrices", "open_device", "qr", "release", "verify", "workspace"]

QRResult = namedtuple("QRResult", ["Q", "R"])
LstsqResult = namedtuple("LstsqResult", ["x", "residues", "rank"])

MODES = {"reduced": 0, "complete": 1, "r": 2, "raw": 3}
SIGNS = {"positive": 1, "lapack": 2}
CHECKS = {"full": 0, "probe": 1, "none": 2}
ABOVE_BAR, NON_FINITE, OVERFLOWS, TOO_FEW_ROWS = 1, 2, 3, 5
REPORT = np.dtype(_library.REPORT)
SOLUTION = np.dtype(_library.SOLUTION)


class AccuracyWarning(UserWarning):
    """A result has an error above its bar, or is too large for its type."""


def _word(words, word, name):
    number = words.get(word)
    if number is None:
        raise CallError(f"{name} is {word!r}; it may be {', '.join(map(repr, words))}")
    return number


def _matrices(values, name, **how):
    array = array_of(values, name, **how)
    return array if array.ndim >= 2 else _require_matrices(array, name)


def _require_matrices(array, name):
    count = len(array.shape)
    if count < 2:
        raise CallError(f"{name} has {count} dimension{'s' * (count != 1)}; it must have two or "
                        "more, of which the last two are those of a matrix")
    return array


def _warn(statuses, what):
    for status in (ABOVE_BAR, OVERFLOWS):
        count = int(np.count_nonzero(statuses == status))
        if count:
            warnings.warn(f"{count} {what}: {STATUS_NAMES[status]}", AccuracyWarning, stacklevel=3)


@functools.lru_cache  # most calls ask for the same
def _factor_options(mode, sign, check, mixed, pivoting, condition, stream=None, no_wait=False):
    return _library.FactorOptions(
        ctypes.sizeof(_library.FactorOptions), _word(MODES, mode, "mode"),
        0 if sign is None else _word(SIGNS, sign, "sign"), _word(CHECKS, check, "check"),
        2 if mixed else 0, bool(pivoting), bool(condition), stream, no_wait)


def qr(a, mode="reduced", *, sign=None, pivoting=False, condition=False, check="full",
       mixed=False, device="auto", report=False):
    """The QR factors of the matrices a [..., m, n], with k = min(m, n).

    mode: "reduced" gives Q [..., m, k] and R [..., k, n]; "complete" Q [..., m, m] and R
        [..., m, n]; "r" R alone; "raw" LAPACK's h [..., n, m] and tau [..., k].
    sign: "positive", R_kk >= 0; "lapack", the signs of numpy.linalg.qr. As usual: positive, and
        lapack with "raw".
    pivoting: a[..., :, P] = Q R with falling |r_ii|; P [..., n] is one more result.
    condition: the report has rank and condition, for which report=True is needed.
    check: "full", "probe" (estimates) or "none".
    mixed: products in half precision, for float32 alone.
    device: "auto", "cpu", or an OpenCL device by its index or a part of its name.
    report: one more result, a record for each matrix: residual, orthogonality, lower, their bars,
        diagonal_ratio, condition, status (a number of STATUS_NAMES), rank, tries, scale.

    The type is that of a; integers become float64, and float16 becomes float32. A matrix that is
    not finite has NaN factors, and changes no other one.

    Where a is on a GPU (an array of PyTorch, JAX, CuPy or Numba, or with __dlpack__ or
    __cuda_array_interface__), so are the results, of a's kind; those of other libraries that offer
    no from_dlpack() are a DeviceArray. The work is in the order of the library's current stream.
    With check="none", and without report, pivoting and condition, PyTorch's and CuPy's go on
    before it is done. Integers are refused there, device is "auto" or a's own, such as "cuda:0",
    and the report is an array of NumPy."""
    stay_untraced()
    if condition and not report:
        raise CallError("condition is a part of the report: give report=True, too")
    work = None if type(a) is np.ndarray else opened_work(device, a=a)
    try:
        if work is None:
            options = _factor_options(mode, sign, check, mixed, pivoting, condition)
            array = _matrices(a, "a")
            struct, kept = matrices_of(array)
            dtype, new, call = kept.dtype, new_array, context_of(device).call
        else:
            goes_on = work.kind.keeps_order and check == "none" and not (
                report or pivoting or condition)
            options = _factor_options(mode, sign, check, mixed, pivoting, condition, work.stream,
                                      goes_on)
            array = _require_matrices(work.take("a"), "a")
            struct = work.struct(array, "a")
            dtype, new, call = array.dtype, work.new, work.call
        batch, (m, n) = array.shape[:-2], array.shape[-2:]
        k = min(m, n)
        out = _library.Factors(_library.FACTORS_SIZE)
        if work is None or not goes_on:
            lines = memory_of(batch, REPORT, not report)
            out.reports = address_of(lines)
        if mode == "raw":
            if work is not None and work.kind.turned:
                h, out.v = new(batch + (m, n), dtype)
                h = work.kind.turned(h)
            else:
                h, out.v = new(batch + (n, m), dtype)
                out.v_strides = (1, m, m * n)
            tau, out.tau = new(batch + (k,), dtype)
            results = [h, tau]
        else:
            rows = m if mode == "complete" else k  # of R, and columns of Q
            r, out.r = new(batch + (rows, n), dtype)
            results = [r]
            if mode != "r":
                q, out.q = new(batch + (m, rows), dtype)
                results = [q, r]
        if pivoting:
            p, out.p = new_array(batch + (n,), np.int64)
        are_good = call(_library.LIBRARY.qrtool_factor, struct, options, out)
        if work is not None and work.kind.importer:
            results = work.finished(*results)
        if pivoting:
            results.append(p if work is None else work.kind.from_host(work, p))
    finally:
        if work is not None:
            work.end()
    if not are_good:
        _warn(records_in(lines, REPORT)["status"], "matrices")
    if report:
        results.append(records_in(lines, REPORT).view(np.recarray))
    elif work is None or not goes_on:
        keep(lines)
    if len(results) == 1:
        return results[0]
    return QRResult(*results) if len(results) == 2 and mode in ("reduced", "complete") \
        else tuple(results)


def _pointer(struct):
    return None if struct is None else ctypes.pointer(struct)


def _permutation(p):
    """Numbers of columns as the library takes them."""
    p = _device.on_host(p, "p")
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

    report: the result is (ok, report), with a record for each matrix as of qr(). a, q and r may be
    on a GPU, all of them, as a of qr()."""
    stay_untraced()
    if r is None:
        raise CallError("r is missing; verify(a, None, r) checks R alone")
    work = None if type(a) is type(r) is np.ndarray and (q is None or type(q) is np.ndarray) \
        else opened_work(device, a=a, q=q, r=r)
    structs, kept, shape = [], [], None
    try:
        for values, name in ((a, "a"), (q, "q"), (r, "r")):
            if values is None:
                structs.append(None)
                continue
            part = _matrices(values, name) if work is None else _require_matrices(
                work.take(name), name)
            shape = part.shape if shape is None else shape
            if part.shape[:-2] != shape[:-2]:
                raise CallError(f"{name} is {part.shape}, and a is {shape}; the dimensions "
                                "before the last two must be equal")
            struct, memory = matrices_of(part) if work is None else (work.struct(part, name), None)
            structs.append(struct)
            kept.append(memory)
        given = _library.GivenFactors(ctypes.sizeof(_library.GivenFactors), _pointer(structs[1]),
                                      _pointer(structs[2]))
        if p is not None:
            order = _permutation(p)
            if order.shape != (*shape[:-2], shape[-1]):
                raise CallError(f"p is {order.shape}; for this a it must be "
                                f"{(*shape[:-2], shape[-1])}")
            given.p = address_of(order)
        options = _library.VerifyOptions(
            ctypes.sizeof(_library.VerifyOptions), _word(CHECKS, check, "check"),
            _word({"standard": 0, "m-eps": 1}, criteria, "criteria"), bool(mixed), 0,
            work and work.stream)
        lines = memory_of(shape[:-2], REPORT, not report)
        are_good = (work or context_of(device)).call(
            _library.LIBRARY.qrtool_verify, structs[0], given, options, address_of(lines), 0)
    finally:
        if work is not None:
            work.end()
    if report:
        return are_good, records_in(lines, REPORT).view(np.recarray)
    keep(lines)
    return are_good


def _spread(array, batch):
    """One batch of matrices: all of `batch`, or the one that serves every place."""
    if all(size == 1 for size in array.shape[:-2]):
        return array.reshape((1, *array.shape[-2:]))
    if array.shape[:-2] != batch:
        array = np.broadcast_to(array, (*batch, *array.shape[-2:]))
    return stack_of(array)


def _as_column(array):
    return array[..., np.newaxis] if isinstance(array, np.ndarray) else array.as_column()


def _weights(array, b, is_vector, dtype):
    """m weights for all right sides, or those of every right side, in the shape of b."""
    if array.dtype.kind == "c":
        raise CallError("weights are complex; they must be real numbers")
    shape, array = array.shape, array.astype(dtype, copy=False)
    if array.ndim == 1 or is_vector:
        array = _as_column(array)
    if array.ndim < 2 or array.shape[-2] != b.shape[-2]:
        raise CallError(f"weights are {shape}; they must be m = {b.shape[-2]} numbers, "
                        "or have the shape of b")
    return array


def _struct_of(work, array, name, batch):
    """The struct of matrices that are spread over a batch, and the array that it points to."""
    if work is None:
        return matrices_of(_spread(array, batch))
    return work.struct(array, name, batch), array


def _with_ones(matrix, work):
    """The matrices with a column of ones before their own."""
    if work is not None:
        return work.take_with_ones("a")
    return np.concatenate([np.ones((*matrix.shape[:-1], 1), matrix.dtype), matrix], axis=-1)


def _systems(work, a, b, weights, masked, intercept):
    """What lstsq() solves: the structs of a, b and weights, and the arrays that they point to; the
    batch, n, p and the type; whether b is a vector, and whether each right side has weights of its
    own."""
    if work is None:
        matrix, sides = _matrices(a, "a", masked=masked), array_of(b, "b", masked)
    else:
        matrix, sides = _require_matrices(work.take("a"), "a"), work.take("b")
    if intercept:
        matrix = _with_ones(matrix, work)
    shape_b = sides.shape
    is_vector = sides.ndim == 1
    if sides.ndim == 0:
        raise CallError("b has no dimension")
    if is_vector:
        sides = _as_column(sides)
    dtype = np.result_type(matrix.dtype, sides.dtype)
    matrix, sides = matrix.astype(dtype, copy=False), sides.astype(dtype, copy=False)
    if matrix.shape[-2] != sides.shape[-2]:
        is_stack = shape_b == (*matrix.shape[:-2], matrix.shape[-2])
        raise CallError(f"a is {matrix.shape} and b is {shape_b}: they have {matrix.shape[-2]} and "
                        f"{sides.shape[-2]} rows"
                        + ("; one right side for each a is b[..., None]" if is_stack else ""))
    try:
        batch = np.broadcast_shapes(matrix.shape[:-2], sides.shape[:-2])
    except ValueError:
        raise CallError(f"a is {matrix.shape} and b is {shape_b}: the dimensions before the last "
                        "two do not belong together") from None
    in_a, kept_a = _struct_of(work, matrix, "a", batch)
    in_b, kept_b = _struct_of(work, sides, "b", batch)
    in_w, kept_w, weighs_each = None, None, False
    if weights is not None:
        given = array_of(weights, "weights", "a weight of 0 leaves a row out") \
            if work is None else work.take("weights")
        shape = given.shape
        given = _weights(given, sides, is_vector, np.empty(0, dtype).real.dtype)
        weighs_each = given.shape[-1] > 1
        try:
            in_w, kept_w = _struct_of(work, given, "weights", batch)
        except ValueError:
            raise CallError(f"weights are {shape}; they do not fit b, {shape_b}") from None
    return ((in_a, in_b, in_w), (kept_a, kept_b, kept_w), batch, matrix.shape[-1], sides.shape[-1],
            dtype, is_vector, weighs_each)


def lstsq(a, b, weights=None, *, ridge=0.0, intercept=False, rank_tolerance=None, missing="nan",
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
    ridge: minimises ||a x - b||^2 + ridge ||x||^2.
    intercept: a column of ones is put before those of a, as the command's --intercept does; x
        begins with its coefficient, which the ridge leaves alone.
    rank_tolerance: of a's columns scaled to norm 1; as usual u max(16, 2n).
    missing: "nan": an x whose b or a has NaN or Inf is NaN; "error": a CallError; both refuse
        masked values; "skip": rows with NaN or masked values are left out.
    least_norm: x of least norm where too few rows count, which is NaN otherwise.
    errors: standard errors of x are one more result.
    device: as of qr(). Weights and standard errors are real.
    report: one more result, a record for each x: residual_norm, backward_error, least_norm_error,
        their bar, degrees_of_freedom, condition, scaled_condition, status, rank, tries.

    a, b and weights may be on a GPU, all of them, as a of qr(), and of one precision. x and errors
    are there, too; residues, rank and report are NumPy's."""
    stay_untraced()
    options = _library.SolveOptions(
        ctypes.sizeof(_library.SolveOptions),
        0 if rank_tolerance is None else rank_tolerance, ridge, bool(intercept), bool(basic),
        _word({"nan": 0, "error": 0, "skip": 1}, missing, "missing"), bool(least_norm))
    work = None if type(a) is type(b) is np.ndarray and (
        weights is None or type(weights) is np.ndarray) else opened_work(
            device, a=a, b=b, weights=weights)
    try:
        structs, kept, batch, n, p, dtype, is_vector, weighs_each = _systems(
            work, a, b, weights,
            "nan" if missing == "skip" else 'missing="skip" leaves their rows out', intercept)
        new = new_array if work is None else work.new
        shape = (*batch, n) if is_vector else (*batch, n, p)
        out = _library.Solutions(ctypes.sizeof(_library.Solutions))
        x, out.x = new(shape, dtype)
        memory = memory_of((*batch, p), SOLUTION, not report)
        lines = records_in(memory, SOLUTION)
        out.solutions = address_of(memory)
        standard_errors = []
        if errors:
            array, out.errors = new(shape, np.empty(0, dtype).real.dtype)
            standard_errors.append(array)
        if work is not None:
            options.stream = work.stream
        are_good = (work or context_of(device)).call(
            _library.LIBRARY.qrtool_solve, *structs, options, out)
        del kept  # the structs pointed there
        if work is not None:
            x, *standard_errors = work.finished(x, *standard_errors)
    finally:
        if work is not None:
            work.end()
    if not are_good:
        bad = int(np.count_nonzero(lines["status"] == NON_FINITE))
        if bad and missing == "error":
            raise CallError(f"{bad} of {lines.size} right sides, or their a, hold NaN or Inf; "
                            'missing="skip" leaves rows with NaN out')
        _warn(lines["status"], "solutions")
    if is_vector or not (missing == "skip" or weighs_each):
        ranks = lines["rank"][..., 0].copy() if p > 0 else np.full(batch, -1, np.int32)
    else:
        ranks = lines["rank"].copy()
    if is_vector:
        lines = lines[..., 0]
    results = [x, np.square(lines["residual_norm"]), ranks if ranks.ndim else int(ranks)]
    if not report:
        keep(memory)
    more = [*standard_errors, *([lines.view(np.recarray)] if report else [])]
    return (*results, *more) if more else LstsqResult(*results)


PRODUCTS = {"qt": 0, "q": 1, "rinv": 2, "rinvt": 3}


def apply(b, product="qt", *, q=None, r=None, p=None, h=None, tau=None, report=False):
    """Right sides b, [m] or [..., m, p], multiplied by factors of qr() or another program: by Q^H
    ("qt"), Q ("q"), R^-1 ("rinv") or R^-H ("rinvt"), each checked by the inverse product.

    q: [..., m, k] or [..., m, m], for "qt" and "q"; r: [..., n, n], for "rinv" and "rinvt"; or for
        all of them h and tau of mode "raw", whose Q is m x m and is not formed, as by LAPACK's
        ormqr. The dimensions before the last two are broadcast.
    p: the permutation of a pivoted r, a[..., :, p] = Q R: "rinv" gives P R^-1 b, "rinvt" R^-H P'b.
    report: one more result, a record for each right side as of lstsq(), in which backward_error,
        bar, status and tries are set.

    An x is NaN where b or the factors are not finite, or where R has a zero on its diagonal."""
    stay_untraced()
    number, sides = _word(PRODUCTS, product, "product"), array_of(b, "b")
    name = "h" if h is not None else "q" if number < 2 else "r"
    factor = {"q": q, "r": r, "h": h}[name]
    if factor is None or (h is None) != (tau is None):
        raise CallError(f"{product!r} needs {'q' if number < 2 else 'r'}, or h and tau")
    factor, is_vector = _matrices(factor, name), sides.ndim == 1
    if name == "h":
        factor = factor.swapaxes(-1, -2)
    sides = _as_column(sides) if is_vector else _require_matrices(sides, "b")
    dtype, (m, n) = np.result_type(factor.dtype, sides.dtype), factor.shape[-2:]
    given = [factor, sides] + ([array_of(tau, "tau")[..., np.newaxis, :]] if name == "h" else [])
    try:
        batch = np.broadcast_shapes(*(each.shape[:-2] for each in given))
    except ValueError:
        raise CallError(f"{name} is {factor.shape} and b is {sides.shape}: the dimensions before "
                        "the last two do not belong together") from None
    structs, kept = zip(*(matrices_of(_spread(each.astype(dtype, copy=False), batch))
                          for each in given))
    factors = _library.GivenFactors(ctypes.sizeof(_library.GivenFactors))
    setattr(factors, "v" if name == "h" else name, _pointer(structs[0]))
    factors.tau = _pointer(structs[2]) if name == "h" else None
    if p is not None and number >= 2:
        order = _permutation(p)
        if order.shape != (*factor.shape[:-2], n):
            raise CallError(f"p is {order.shape}; for this {name} it must be "
                            f"{(*factor.shape[:-2], n)}")
        order = np.array(_spread(order[..., np.newaxis, :], batch))
        factors.p = address_of(order)
    rows = n if number >= 2 else m if number == 1 or name == "h" else n
    out = _library.Solutions(ctypes.sizeof(_library.Solutions))
    x, out.x = new_array((*batch, rows, sides.shape[-1]), dtype)
    memory = memory_of((*batch, sides.shape[-1]), SOLUTION)
    lines, out.solutions = records_in(memory, SOLUTION), address_of(memory)
    options = _library.ApplyOptions(ctypes.sizeof(_library.ApplyOptions), number)
    if not context_of("cpu").call(_library.LIBRARY.qrtool_apply, factors, structs[1], options, out):
        _warn(lines["status"], "products")
    del kept  # the structs pointed there
    if is_vector:
        x, lines = x[..., 0], lines[..., 0]
    return (x, lines.view(np.recarray)) if report else x


def _shape_and_type(shape, dtype):
    """The shape [..., m, n] and the type of matrices that are described."""
    try:
        *batch, m, n = (whole_number(size, 2**63 - 1, "a size of shape") for size in shape)
    except (TypeError, ValueError):
        raise CallError(f"shape is {shape!r}; it must be whole numbers, the last two those of a "
                        f"matrix") from None
    dtype = np.dtype(dtype)
    if dtype not in TYPES:
        raise CallError(f"dtype is {dtype}; it may be {', '.join(map(str, TYPES))}")
    return (*batch, m, n), dtype


def _described(shape, dtype):
    return _library.Matrices(None, TYPES[dtype], 0, math.prod(shape[:-2]), *shape[-2:])


def workspace(shape, dtype="float64", mode="reduced", *, sign=None, pivoting=False,
              condition=False, check="full", mixed=False, device="cuda:0"):
    """The bytes of work memory that qr() takes on a GPU for matrices of this shape [..., m, n].
    Where there is less, it works in parts."""
    matrices = _described(*_shape_and_type(shape, dtype))
    size = ctypes.c_uint64()
    context_of(device).call(
        _library.LIBRARY.qrtool_workspace, matrices,
        _factor_options(mode, sign, check, mixed, pivoting, condition), size)
    return size.value


def matrices(kind, shape, dtype="float64", seed=0, device="cpu", *, cond=None):
    """Test matrices [..., m, n], the same as those of `qrtool generate`.

    kind: one of KINDS, which qrtool(1) describes, or several joined by "+", which the matrices
        have in turn. Random orthogonal ones (haar) are qr(matrices("gauss", shape)).Q.
    seed: the same seed gives the same matrices.
    device: "cpu" gives an array of NumPy. "cuda:N" gives a DeviceArray on that GPU, for
        torch.from_dlpack(), jax.dlpack.from_dlpack(), cupy.asarray() and their like.
    cond: the condition number, the ratio of scales, or 1 over the noise; as usual 1e6. Other kinds
        than cond, offset, near-duplicates, contest and the graded ones do without."""
    stay_untraced()
    if not isinstance(kind, str):
        raise CallError(f"kind is {kind!r}; it must be a text, such as 'contest'")
    shape, dtype = _shape_and_type(shape, dtype)
    options = _library.GenerateOptions(
        ctypes.sizeof(_library.GenerateOptions), 0 if cond is None else cond,
        whole_number(seed, 2**63 - 1, "seed"))
    place = _library.Place()
    if device == "cpu":
        array, place.data = new_array(shape, dtype)
    elif isinstance(device, str) and device.startswith("cuda:") and device[5:].isdecimal():
        array, place.data = _device.new_on(context_of(device), int(device[5:]), shape, dtype)
    else:
        raise CallError(f"device is {device!r}; it may be 'cpu' or 'cuda:N'")
    context_of(device).call(_library.LIBRARY.qrtool_generate, kind.encode(),
                          _described(shape, dtype), options, place)
    return array


for _function in (qr, apply, verify, lstsq, matrices, stay_untraced):
    _function._torchdynamo_disable = True
