# SPDX-License-Identifier: Apache-2.0
"""The open contexts, one for each device, and those whose work memory is PyTorch's."""
import operator
import os

import numpy as np

from ._device import work_on
from ._library import LIBRARY, CallError, Context

_contexts = {}
_settings = {}  # of open_device()
_of_torch = {}  # contexts whose work memory is PyTorch's
_latest = {}  # of several contexts for a device the one that was used last
# A child has neither the threads nor the driver of its parent's contexts, and must not free them.
_left_to_parents = []


def _leave_to_parent():
    for contexts in (_contexts, _of_torch):
        _left_to_parents.extend(contexts.values())
        contexts.clear()
    _latest.clear()


os.register_at_fork(after_in_child=_leave_to_parent)


def whole_number(number, most, name):
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
    settings = whole_number(threads, 4096, "threads"), whole_number(memory, 2**63 - 1, "memory")
    _contexts[device] = Context(device, *settings)
    _settings[device] = settings
    _of_torch.pop(device, None)
    _latest.pop(device, None)


def context_of(device):
    context = _contexts.get(device) if isinstance(device, str) else None
    if context is None:
        device = _name_of(device)
        if device not in _contexts:
            open_device(device)
        context = _contexts[device]
    if _latest:
        _latest.pop(device, None)
    return context


def opened_work(device, **arrays):
    """The work of a call on arrays of a GPU, and its context; None where all are on the host."""
    work = work_on(device, arrays)
    if work is None:
        return None
    device = f"cuda:{work.ordinal}"
    if work.kind.allocator is None:
        work.context = context_of(device)
        return work
    work.context = _of_torch.get(device)
    if work.context is None:
        work.context = _of_torch[device] = Context(
            device, *_settings.get(device, (0, 0)), *work.kind.allocator(work.ordinal))
    _latest[device] = work.context
    return work


def release():
    """Gives back the memory that is kept for later calls."""
    for context in (*_contexts.values(), *_of_torch.values()):
        context.call(LIBRARY.qrtool_release)


def last_run(device="auto"):
    """How the last call on a device was done: backend, device, variant, arithmetic, reason and
    threads."""
    return (_latest.get(device) or context_of(device)).last_run()
