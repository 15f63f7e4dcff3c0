# SPDX-License-Identifier: Apache-2.0
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

__version__: str
STATUS_NAMES: tuple[str, ...]

class Error(Exception): ...
class CallError(Error, ValueError): ...
class DeviceError(Error, RuntimeError): ...
class MemoryLimitError(Error, MemoryError): ...
class AccuracyWarning(UserWarning): ...

class QRResult(NamedTuple):
    Q: NDArray[Any]
    R: NDArray[Any]

class LstsqResult(NamedTuple):
    x: NDArray[Any]
    residues: NDArray[np.float64]
    rank: int | NDArray[np.int32]  # of each matrix, or where rows may differ of each right side

def open_device(device: str | int = "auto", threads: int = 0, memory: int = 0) -> None: ...
def last_run(device: str | int = "auto") -> dict[str, Any]: ...
def qr(a: ArrayLike, mode: Literal["reduced", "complete", "r", "raw"] = "reduced", *,
       sign: Literal["positive", "lapack"] | None = None, pivoting: bool = False,
       condition: bool = False, check: Literal["full", "probe", "none"] = "full",
       mixed: bool = False, device: str | int = "auto", report: bool = False) -> Any: ...
def verify(a: ArrayLike, q: ArrayLike | None, r: ArrayLike | None = None, *,
           p: ArrayLike | None = None, criteria: Literal["standard", "m-eps"] = "standard",
           check: Literal["full", "probe"] = "full", mixed: bool = False,
           device: str | int = "auto", report: bool = False) -> Any: ...
def lstsq(a: ArrayLike, b: ArrayLike, weights: ArrayLike | None = None, *, ridge: float = 0.0,
          intercept: bool = False, rank_tolerance: float | None = None,
          missing: Literal["error", "skip"] = "error", least_norm: bool = False,
          basic: bool = False, errors: bool = False, device: str | int = "auto",
          report: bool = False) -> Any: ...
