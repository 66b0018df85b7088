"""Tensors of torch travel as NumPy arrays do: bytes beside the pickle, or by their address."""

from __future__ import annotations

import importlib
import sys
from typing import Any

from . import arrays

# Kinds of numbers that NumPy lacks, by the integers that have as many bytes.
_AS_INTEGERS = {
    "torch.bfloat16": "int16",
    "torch.float8_e4m3fn": "uint8",
    "torch.float8_e5m2": "uint8",
}


def is_tensor(kind: type) -> bool:
    return kind.__module__ == "torch" and kind.__name__ == "Tensor"


def _is_ordinary(tensor: Any) -> bool:
    """Whether it is all in numbers and a shape; torch writes the others itself."""
    return (
        tensor.device.type == "cpu"
        and str(tensor.layout) == "torch.strided"
        and not tensor.is_quantized
        and not tensor.is_conj()
        and not tensor.is_neg()
        and not any(getattr(tensor, "names", ()))  # torch has given them up
        and not tensor._backward_hooks
        and not vars(tensor)
    )


def _made(array: Any, order: list[int] | None, kind: str, requires_grad: bool) -> Any:
    """The tensor; it uses the array's memory."""
    torch: Any = importlib.import_module("torch")
    tensor = torch.from_numpy(array if array.flags.writeable else array.copy())
    if kind:
        tensor = tensor.view(getattr(torch, kind))
    if order is not None:
        tensor = tensor.permute(order)
    return tensor.requires_grad_() if requires_grad else tensor


def reduce_tensor(tensor: Any, is_reply: bool) -> Any:
    """How it is pickled; NotImplemented where that is torch's business."""
    torch: Any = sys.modules["torch"]
    kind = str(tensor.dtype)
    integers = _AS_INTEGERS.get(kind)
    try:
        if not _is_ordinary(tensor):
            return NotImplemented
        plain = tensor.detach()
        array = (plain if integers is None else plain.view(getattr(torch, integers))).numpy()
    except (AttributeError, RuntimeError, TypeError):  # no NumPy; not of a kind that it has
        return NotImplemented
    name = "" if integers is None else kind.partition(".")[2]
    order = None
    if not arrays.is_shared(array, is_reply) and not array.flags.c_contiguous:
        # Whatever its strides say is first, in memory it may be without gaps.
        by_stride = sorted(range(array.ndim), key=lambda i: -array.strides[i])
        turned = array.transpose(by_stride)
        if turned.flags.c_contiguous:
            array, order = turned, sorted(range(array.ndim), key=by_stride.__getitem__)
    return _made, (array, order, name, tensor.requires_grad)
