# SPDX-License-Identifier: Apache-2.0
from collections.abc import Sequence
from typing import Any, Generic, Literal, NamedTuple, Protocol, TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

class _ByDlpack(Protocol):
    def __dlpack_device__(self) -> tuple[Any, int]: ...

class _ByInterface(Protocol):
    @property
    def __cuda_array_interface__(self) -> dict[str, Any]: ...

_OnDevice = _ByDlpack | _ByInterface

__version__: str
STATUS_NAMES: tuple[str, ...]
KINDS: tuple[str, ...]

class Error(Exception): ...
class CallError(Error, ValueError): ...
class DeviceError(Error, RuntimeError): ...
class MemoryLimitError(Error, MemoryError): ...
class AccuracyWarning(UserWarning): ...

class DeviceArray:
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    def __dlpack__(self, *, stream: int | None = None, max_version: tuple[int, int] | None = None,
                   dl_device: tuple[int, int] | None = None, copy: bool | None = None) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...
    @property
    def __cuda_array_interface__(self) -> dict[str, Any]: ...

_Array = NDArray[Any]
_Mode = Literal["reduced", "complete", "r", "raw"]
_Sign = Literal["positive", "lapack"] | None
_Check = Literal["full", "probe", "none"]
_A = TypeVar("_A")

# Arrays of NumPy, or of the kind that was given where it is on a GPU.
class QRResult(NamedTuple, Generic[_A]):
    Q: _A
    R: _A

class LstsqResult(NamedTuple, Generic[_A]):
    x: _A
    residues: NDArray[np.float64]
    rank: int | NDArray[np.int32]  # of each matrix, or where rows may differ of each right side

def open_device(device: str | int = "auto", threads: int = 0, memory: int = 0) -> None: ...
def last_run(device: str | int = "auto") -> dict[str, Any]: ...
def release() -> None: ...
def workspace(shape: Sequence[int], dtype: DTypeLike = "float64",
              mode: Literal["reduced", "complete", "r", "raw"] = "reduced", *,
              sign: Literal["positive", "lapack"] | None = None, pivoting: bool = False,
              condition: bool = False, check: Literal["full", "probe", "none"] = "full",
              mixed: bool = False, device: str | int = "cuda:0") -> int: ...
@overload
def matrices(kind: str, shape: Sequence[int], dtype: DTypeLike = "float64", seed: int = 0,
             device: Literal["cpu"] = "cpu", *, cond: float | None = None) -> _Array: ...
@overload
def matrices(kind: str, shape: Sequence[int], dtype: DTypeLike = "float64", seed: int = 0,
             device: str = "cpu", *, cond: float | None = None) -> _Array | DeviceArray: ...
@overload
def qr(a: ArrayLike, mode: Literal["reduced", "complete"] = "reduced", *, sign: _Sign = None,
       pivoting: Literal[False] = False, condition: bool = False, check: _Check = "full",
       mixed: bool = False, device: str | int = "auto",
       report: Literal[False] = False) -> QRResult[_Array]: ...
@overload
def qr(a: ArrayLike, mode: Literal["r"], *,  # type: ignore[overload-overlap]
       sign: _Sign = None,
       pivoting: Literal[False] = False, condition: bool = False, check: _Check = "full",
       mixed: bool = False, device: str | int = "auto",
       report: Literal[False] = False) -> _Array: ...
@overload
def qr(a: ArrayLike, mode: _Mode = "reduced", *, sign: _Sign = None, pivoting: bool = False,
       condition: bool = False, check: _Check = "full", mixed: bool = False,
       device: str | int = "auto", report: bool = False) -> tuple[_Array, ...]: ...
@overload
def qr(a: _OnDevice, mode: Literal["reduced", "complete"] = "reduced", *, sign: _Sign = None,
       pivoting: Literal[False] = False, condition: bool = False, check: _Check = "full",
       mixed: bool = False, device: str | int = "auto",
       report: Literal[False] = False) -> QRResult[Any]: ...
@overload
def qr(a: _OnDevice, mode: _Mode = "reduced", *, sign: _Sign = None, pivoting: bool = False,
       condition: bool = False, check: _Check = "full", mixed: bool = False,
       device: str | int = "auto", report: bool = False) -> Any: ...
@overload
def apply(b: ArrayLike, product: Literal["qt", "q", "rinv", "rinvt"] = "qt", *,
          q: ArrayLike | None = None, r: ArrayLike | None = None, p: ArrayLike | None = None,
          h: ArrayLike | None = None, tau: ArrayLike | None = None,
          report: Literal[False] = False) -> _Array: ...
@overload
def apply(b: ArrayLike, product: Literal["qt", "q", "rinv", "rinvt"] = "qt", *,
          q: ArrayLike | None = None, r: ArrayLike | None = None, p: ArrayLike | None = None,
          h: ArrayLike | None = None, tau: ArrayLike | None = None,
          report: Literal[True]) -> tuple[_Array, _Array]: ...
@overload
def verify(a: ArrayLike | _OnDevice, q: ArrayLike | _OnDevice | None,
           r: ArrayLike | _OnDevice | None = None, *, p: ArrayLike | _OnDevice | None = None,
           criteria: Literal["standard", "m-eps"] = "standard",
           check: Literal["full", "probe"] = "full", mixed: bool = False,
           device: str | int = "auto", report: Literal[False] = False) -> bool: ...
@overload
def verify(a: ArrayLike | _OnDevice, q: ArrayLike | _OnDevice | None,
           r: ArrayLike | _OnDevice | None = None, *, p: ArrayLike | _OnDevice | None = None,
           criteria: Literal["standard", "m-eps"] = "standard",
           check: Literal["full", "probe"] = "full", mixed: bool = False,
           device: str | int = "auto", report: Literal[True]) -> tuple[bool, _Array]: ...
@overload
def lstsq(a: ArrayLike, b: ArrayLike, weights: ArrayLike | None = None, *, ridge: float = 0.0,
          intercept: bool = False, rank_tolerance: float | None = None,
          missing: Literal["nan", "error", "skip"] = "nan", least_norm: bool = False,
          basic: bool = False, errors: Literal[False] = False, device: str | int = "auto",
          report: Literal[False] = False) -> LstsqResult[_Array]: ...
@overload
def lstsq(a: ArrayLike, b: ArrayLike, weights: ArrayLike | None = None, *, ridge: float = 0.0,
          intercept: bool = False, rank_tolerance: float | None = None,
          missing: Literal["nan", "error", "skip"] = "nan", least_norm: bool = False,
          basic: bool = False, errors: bool = False, device: str | int = "auto",
          report: bool = False) -> tuple[Any, ...]: ...
@overload
def lstsq(a: ArrayLike | _OnDevice, b: ArrayLike | _OnDevice,
          weights: ArrayLike | _OnDevice | None = None, *, ridge: float = 0.0,
          intercept: bool = False, rank_tolerance: float | None = None,
          missing: Literal["nan", "error", "skip"] = "nan", least_norm: bool = False,
          basic: bool = False, errors: bool = False, device: str | int = "auto",
          report: bool = False) -> Any: ...
