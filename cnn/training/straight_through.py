"""Rounding that gradients pass through unchanged, and the quantisers made of it.

    DoReFa  w = round(n · tanh(w) / max|tanh(w)|) / n           arXiv:1606.06160

    LSQ     w = round(clip(w / s, −n, n)) · s, s is learned     arXiv:1902.08153

    both    y = round(clip(y / s, 0, M)) · s; DoReFa has s = 1 / M, so that values are clipped to 0…1

Weights are computed in float64, as in ``cnn.exported.integers``.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

SAMPLE_SIZE = 1 << 16
"""The most values of a row by which its step is chosen."""


class _Round(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor) -> Tensor:
        return torch.round(values)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        return gradients[0]


class _ScaleGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, share: float) -> Tensor:
        ctx.share = share
        return values.clone()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return gradients[0] * ctx.share, None


def round_through(values: Tensor) -> Tensor:
    """Return values rounded to integers, halves to even, with a straight-through gradient (as if not rounded)."""
    rounded: Tensor = _Round.apply(values)
    return rounded


def squeezed_integers(weights: Tensor, greatest: int) -> Tensor:
    """Return DoReFa's integer weights round(n · tanh(w) / max|tanh(w)|), float64, with n = ``greatest``."""
    squeezed = torch.tanh(weights.double())
    return round_through(greatest * (squeezed / squeezed.detach().abs().max()))


def stepped_integers(weights: Tensor, step: Tensor, greatest: int) -> Tensor:
    """Return LSQ's integer weights round(clip(w / s, −n, n)), float64, with s = ``step`` and n = ``greatest``."""
    return round_through((weights.double() / step.double()).clamp(-greatest, greatest))


def learnable(step: Tensor, values: int, greatest: int) -> Tensor:
    """Return a quantisation step unchanged, with its gradient scaled by 1 / sqrt(values · greatest) as LSQ does.

    The step then learns as fast as the values that it quantises. values: the number of values per step.
    """
    scaled: Tensor = _ScaleGradient.apply(step, (values * greatest) ** -0.5)
    return scaled


def quantised_activations(values: Tensor, step: Tensor, greatest: int) -> Tensor:
    """Return activations quantised to round(clip(y / s, 0, M)) · s, with s = ``step`` and M = ``greatest``."""
    return round_through((values / step).clamp(0, greatest)) * step


def least_error_steps(rows: Tensor, low: int, greatest: int) -> Tensor:
    """Return, per row of values, the quantisation step with the least squared error for integers low…greatest.

    50 steps up to max|values| / greatest are tried. Of more than SAMPLE_SIZE values a regular sample decides.
    """
    top = rows.abs().amax(1, keepdim=True)
    sample = rows[:, :: max(1, rows.shape[1] // SAMPLE_SIZE)]
    best, lowest = torch.ones_like(top), torch.full_like(top, torch.inf)
    for share in range(1, 51):
        step = (top / greatest * share / 50).clamp(min=1e-12)
        error = ((sample - torch.round(sample / step).clamp(low, greatest) * step) ** 2).sum(1, keepdim=True)
        best, lowest = torch.where(error < lowest, step, best), torch.minimum(error, lowest)
    return torch.where(top > 0, best, torch.full_like(best, 1.0 / greatest))[:, 0]
