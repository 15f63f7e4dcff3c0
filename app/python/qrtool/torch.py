# SPDX-License-Identifier: Apache-2.0
"""qr() and lstsq() as operators of PyTorch (2.4 or later), for autograd, torch.compile and
torch.func.vmap.

    q, r = qrtool.torch.qr(a)
    x, residues, rank = qrtool.torch.lstsq(a, b)

Tensors on the CPU are used where they are, those on a GPU of NVIDIA too. Types are torch's:
float32, float64 and both complex ones; autocast changes none. What torch.linalg refuses is a
RuntimeError as there. A compiled function has each call in its graph; with mode="reduce-overhead"
a graph of CUDA ends before it, from PyTorch 2.8 on. torch.func.grad takes no operators of others:
use torch.autograd."""
import functools
from typing import Optional, Tuple

import torch
from torch import Tensor
from torch.autograd import forward_ad

from . import LstsqResult, QRResult
from . import lstsq as _lstsq_of_package
from . import qr as _qr_of_package

__all__ = ["lstsq", "qr"]

if not hasattr(torch.library, "custom_op"):
    raise ImportError(f"qrtool.torch needs PyTorch 2.4 or later; this is {torch.__version__}")

_TENSORS = (Tensor, torch.nn.Parameter)
_solve_triangular = torch.linalg.solve_triangular
# A call waits for the device where its errors are measured, which no graph of CUDA can do.
_TAGS = {"tags": [torch.Tag.cudagraph_unsafe]} if hasattr(torch.Tag, "cudagraph_unsafe") else {}


def _operator(name, fake, setup_context, backward, vmap):
    """Makes a function the operator qrtool::name."""
    def make(function):
        made = torch.library.custom_op(f"qrtool::{name}", function, mutates_args=(), **_TAGS)
        made.register_fake(fake)
        made.register_autograd(_without_autocast(backward), setup_context=setup_context)
        if hasattr(made, "register_vmap"):  # from PyTorch 2.5 on
            made.register_vmap(vmap)
        return made
    return make


@functools.lru_cache
def _plain_keys(device_type):
    return torch._C._dispatch_keys(torch.empty(0, device=device_type))


def _is_plain_call(*tensors):
    """Whether no gradient, graph, transform or mode has to know of a call, which needs no operator
    then: one takes as long as a small matrix."""
    if (not hasattr(torch._C, "_dispatch_keys") or torch.compiler.is_compiling()
            or torch.jit.is_tracing() or torch._C._len_torch_dispatch_stack()):
        return False
    records = torch.is_grad_enabled()
    return all(type(each) in _TENSORS and not (records and each.requires_grad)
               and torch._C._dispatch_keys(each) == _plain_keys(each.device.type)
               for each in tensors if each is not None)


def _without_autocast(backward):
    def full_backward(ctx, *gradients):
        kind = ctx.saved_tensors[0].device.type
        if not torch.is_autocast_enabled(kind):
            return backward(ctx, *gradients)
        with torch.autocast(kind, enabled=False):
            return backward(ctx, *gradients)
    return full_backward


def _plain(tensor):
    """The tensor as the package takes it."""
    return tensor.detach().resolve_conj().resolve_neg()


def _tensor(result):
    return result if isinstance(result, Tensor) else torch.as_tensor(result)


def _require(call, tensor, name):
    if not isinstance(tensor, Tensor):
        raise TypeError(f"qrtool.torch.{call}(): {name} must be a Tensor, not "
                        f"{type(tensor).__name__}")
    kind = str(tensor.dtype)[6:]
    if not (tensor.is_floating_point() or tensor.is_complex()):
        raise RuntimeError(f"qrtool.torch.{call}: Expected a floating point or complex tensor as "
                           f"{name}. Got {kind}")
    if tensor.dtype not in (torch.float32, torch.float64, torch.complex64, torch.complex128):
        raise RuntimeError(f"qrtool.torch.{call}: Low precision dtypes not supported. Got {kind}")
    if forward_ad._current_level >= 0 and forward_ad.unpack_dual(tensor).tangent is not None:
        raise NotImplementedError(f"Trying to use forward AD with qrtool.torch.{call} that does "
                                  "not support it")


def _require_matrices(call, tensor, name):
    _require(call, tensor, name)
    if tensor.dim() < 2:
        raise RuntimeError(f"qrtool.torch.{call}: The input tensor {name} must have at least 2 "
                           "dimensions.")


# ---- qr ----

def _qr_fake(a, mode, sign, pivoting, check, mixed):
    *batch, m, n = a.shape
    k = min(m, n)
    p = a.new_empty((*batch, n if pivoting else 0), dtype=torch.int64)
    if mode == "raw":
        h = a.new_empty((*batch, n, m)) if a.device.type == "cpu" else a.new_empty(a.shape).mT
        return h, a.new_empty((*batch, k)), p
    rows = m if mode == "complete" else k
    q = a.new_empty((*batch, 0) if mode == "r" else (*batch, m, rows))
    return q, a.new_empty((*batch, rows, n)), p


def _qr_setup_context(ctx, inputs, output):
    a, ctx.mode, _, ctx.pivots, *_ = inputs
    q, r, _ = output
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(a if ctx.mode == "r" else q, r)
    ctx.rows, ctx.columns = a.shape[-2:]


def _qr_backward(ctx, of_q, of_r, _):
    if ctx.mode == "raw":
        raise RuntimeError("the derivative for the mode 'raw' of qrtool.torch.qr is not "
                           "implemented. Please use mode='reduced'.")
    if ctx.pivots:
        raise RuntimeError("the derivative for pivoting=True of qrtool.torch.qr is not "
                           "implemented. Please use qr(a.gather(...)) of the columns in their "
                           "order.")
    if ctx.mode == "complete" and ctx.rows != ctx.columns:
        raise RuntimeError("The QR decomposition is not differentiable when mode='complete' and "
                           "nrows > ncols.")
    if ctx.rows < ctx.columns:
        raise RuntimeError("The QR decomposition of qrtool.torch.qr is not differentiable when "
                           "nrows < ncols.")
    q, r = ctx.saved_tensors
    if ctx.mode == "r":
        q, of_q = _solve_triangular(r, q, upper=True, left=False), None
    return _qr_gradient(q, r, of_q, of_r), None, None, None, None, None


def _qr_gradient(q, r, of_q, of_r):
    """(gQ + Q M) R^-H, where M is Hermitian and its upper part that of gR R^H - Q^H gQ."""
    if of_q is None and of_r is None:
        return None
    inner = 0
    if of_r is not None:
        inner = of_r @ r.mH
    if of_q is not None:
        inner = inner - q.mH @ of_q
    upper = inner.triu()
    hermitian = upper + upper.mH
    hermitian.diagonal(dim1=-2, dim2=-1).mul_(0.5)
    result = q @ hermitian
    if of_q is not None:
        result = result + of_q
    return _solve_triangular(r.mH, result, upper=False, left=False)


def _qr_vmap(info, in_dims, a, *options):
    return _qr(a.movedim(in_dims[0], 0), *options), (0, 0, 0)


def _qr_of_plain(a, mode, sign, pivoting, check, mixed):
    results = _qr_of_package(_plain(a), mode, sign=sign, pivoting=pivoting, check=check,
                             mixed=mixed)
    if not isinstance(results, tuple):
        return _tensor(results)
    make = getattr(results, "_make", tuple)
    return make(map(_tensor, results))


@_operator("qr", _qr_fake, _qr_setup_context, _qr_backward, _qr_vmap)
def _qr(a: Tensor, mode: str, sign: Optional[str], pivoting: bool, check: str,
        mixed: bool) -> Tuple[Tensor, Tensor, Tensor]:
    results = _qr_of_plain(a, mode, sign, pivoting, check, mixed)
    results = list(results) if isinstance(results, tuple) else [results]
    if mode == "r":
        results.insert(0, a.new_empty((*a.shape[:-2], 0)))
    if not pivoting:
        results.append(a.new_empty((*a.shape[:-2], 0), dtype=torch.int64))
    return tuple(results)


def qr(a, mode="reduced", *, sign=None, pivoting=False, check="full", mixed=False):
    """The QR factors of the matrices a [..., m, n], as of qrtool.qr().

    Gradients: of Q and R with mode="reduced", of R with mode="r", both for m >= n; where the rank
    is less than n, they are inf or NaN. The rest raises a RuntimeError in backward()."""
    _require_matrices("qr", a, "a")
    if _is_plain_call(a):
        return _qr_of_plain(a, mode, sign, pivoting, check, mixed)
    q, r, p = _qr(a, mode, sign, pivoting, check, mixed)
    results = (r,) if mode == "r" else (q, r)
    if pivoting:
        return (*results, p)
    if mode == "r":
        return r
    return (q, r) if mode == "raw" else QRResult(q, r)


# ---- lstsq ----
# Its operators take b [..., m, p], and as weights None, [..., m, 1] or [..., m, p].

def _weighted(weights, rows):
    return rows if weights is None else weights * rows


def _of_weights(weights, products):
    """The gradient of weights from the real parts of products [..., m, p]."""
    if weights is None:
        return None
    products = products.real if products.is_complex() else products
    return products.sum_to_size(weights.shape)


def _in_front(in_dims, *tensors):
    """The tensors of a vmap with its dimension in front of as many as the others have."""
    most = max(t.dim() - (d is not None) for t, d in zip(tensors, in_dims) if t is not None)
    for tensor, place in zip(tensors, in_dims):
        if place is not None:
            tensor = tensor.movedim(place, 0)
            tensor = tensor.reshape(tensor.shape[0], *[1] * (most + 1 - tensor.dim()),
                                    *tensor.shape[1:])
        yield tensor


def _normal_fake(a, weights, g, rank):
    return g.new_empty(g.shape)


def _normal_setup_context(ctx, inputs, output):
    a, weights, _, rank = inputs
    ctx.save_for_backward(a, weights, output, rank)


def _normal_backward(ctx, of_z):
    a, weights, z, rank = ctx.saved_tensors
    of_g = _normal(a, weights, of_z, rank)
    az, ag = a @ z, a @ of_g
    of_a = -_weighted(weights, az) @ of_g.mH - _weighted(weights, ag) @ z.mH
    return of_a.sum_to_size(a.shape), _of_weights(weights, -ag.conj() * az), of_g, None


def _normal_vmap(info, in_dims, a, weights, g, rank):
    if in_dims[2] is None:
        g, in_dims = g.expand(info.batch_size, *g.shape), (*in_dims[:2], 0, in_dims[3])
    a, weights, g = _in_front(in_dims[:3], a, weights, g)
    if in_dims[3] is not None:
        rank = rank.movedim(in_dims[3], 0)
    return _normal(a, weights, g, rank), 0


@_operator("normal", _normal_fake, _normal_setup_context, _normal_backward, _normal_vmap)
def _normal(a: Tensor, weights: Optional[Tensor], g: Tensor, rank: Tensor) -> Tensor:
    """(A'WA)^-1 G by R of the weighted rows; NaN where the rank is less than n. It has a gradient
    of its own, because the root of a weight of 0 has none."""
    is_each = weights is not None and weights.shape[-1] > 1
    g = g.detach()
    if is_each:  # a matrix for each right side
        g = g.mT.unsqueeze(-1)
        rows = weights.sqrt().mT.unsqueeze(-1) * a.unsqueeze(-3)
    else:
        rows = a if weights is None else weights.sqrt() * a
    r = _tensor(_qr_of_package(_plain(rows), "r", check="none"))
    z = _solve_triangular(r, _solve_triangular(r.mH, g, upper=False), upper=True)
    is_full = (rank == a.shape[-1]).to(a.device)
    z = torch.where(is_full[..., None, None], z, torch.nan)
    return z.squeeze(-1).mT.contiguous() if is_each else z.contiguous()


def _lstsq_fake(a, b, weights):
    batch = torch.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    sides = b.shape[-1]
    is_each = weights is not None and weights.shape[-1] > 1
    of_host = {"device": "cpu"}
    return (a.new_empty((*batch, a.shape[-1], sides)),
            a.new_empty((*batch, sides), dtype=torch.float64, **of_host),
            a.new_empty((*batch, sides) if is_each else batch, dtype=torch.int32, **of_host))


def _lstsq_setup_context(ctx, inputs, output):
    x, residues, rank = output
    ctx.mark_non_differentiable(residues, rank)
    ctx.save_for_backward(*inputs, x, rank)


def _lstsq_backward(ctx, of_x, *_):
    """With Z = (A'WA)^-1 gX and S = B - AX: gA = W S Z^H - W A Z X^H, gB = W A Z, and for weights
    the real part of conj(A Z) S."""
    a, b, weights, x, rank = ctx.saved_tensors
    z = _normal(a, weights, of_x, rank)
    az, s = a @ z, b - a @ x
    of_b = _weighted(weights, az)
    of_a = _weighted(weights, s) @ z.mH - of_b @ x.mH
    return (of_a.sum_to_size(a.shape), of_b.sum_to_size(b.shape),
            _of_weights(weights, az.conj() * s))


def _lstsq_vmap(info, in_dims, a, b, weights):
    if in_dims[1] is None:
        b, in_dims = b.expand(info.batch_size, *b.shape), (in_dims[0], 0, in_dims[2])
    return _lstsq(*_in_front(in_dims, a, b, weights)), (0, 0, 0)


def _lstsq_of_plain(a, b, weights):
    x, residues, rank = _lstsq_of_package(
        _plain(a), _plain(b), None if weights is None else _plain(weights))
    return _tensor(x), _tensor(residues), torch.as_tensor(rank, dtype=torch.int32)


@_operator("lstsq", _lstsq_fake, _lstsq_setup_context, _lstsq_backward, _lstsq_vmap)
def _lstsq(a: Tensor, b: Tensor, weights: Optional[Tensor]) -> Tuple[Tensor, Tensor, Tensor]:
    return _lstsq_of_plain(a, b, weights)


def lstsq(a, b, weights=None):
    """The x that minimise ||a x - b||, as of qrtool.lstsq() for a [..., m, n], b [m] or [..., m, p]
    and weights of the squared residuals. residues and rank are on the CPU.

    Gradients: of x, for a, b and weights; NaN where the rank is less than n. residues and rank
    have none; ((b - a @ x)**2).sum(-2) has."""
    _require_matrices("lstsq", a, "a")
    _require("lstsq", b, "b")
    if a.dtype != b.dtype:
        raise RuntimeError("qrtool.torch.lstsq: Expected a and b to have the same dtype, but got "
                           f"a's dtype {str(a.dtype)[6:]} and b's dtype {str(b.dtype)[6:]}")
    if weights is not None:
        kind = a.real.dtype if a.is_complex() else a.dtype
        if weights.dtype != kind:
            raise RuntimeError(f"qrtool.torch.lstsq: Expected weights to be {str(kind)[6:]}, but "
                               f"got {str(weights.dtype)[6:]}")
    is_vector = b.dim() == 1
    b = b.unsqueeze(-1) if is_vector else b
    if weights is not None and (is_vector or weights.dim() == 1):
        weights = weights.unsqueeze(-1)
    call = _lstsq_of_plain if _is_plain_call(a, b, weights) else _lstsq
    x, residues, rank = call(a, b, weights)
    if is_vector:
        x, residues = x.squeeze(-1), residues.squeeze(-1)
    return LstsqResult(x, residues, rank)
