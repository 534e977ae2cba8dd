"""The loop of a campaign over drawn models, which counts them and keeps every model with a defect."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from boards.errors import SystolicError
from tests.fuzz.campaign import Campaign


@dataclass
class Tally:
    """The numbers of models that were tried, were refused, and showed a defect."""

    tried: int = 0
    refused: int = 0
    defects: int = 0


def count(
    campaign: Campaign,
    kind: str,
    attempt: Callable[[int], str],
    model: Callable[[int], Any],
    *,
    names_refused: bool = True,
    told_every: int = 0,
) -> Tally:
    """Try the campaign's models.

    Args:
        kind: The word for a model, in messages and names of files.
        attempt: Returns what is wrong with the model of a number, "" if nothing is; raises SystolicError if the model
            is refused.
        model: Draws the model of a number, which is written to the campaign's folder if something is wrong.
        names_refused: Whether each refusal is printed.
        told_every: The number of models after which the count is printed; 0 for never.
    """
    tally = Tally()
    for number in campaign.numbers():
        tally.tried += 1
        try:
            told = attempt(number)
        except SystolicError as error:
            tally.refused += 1
            if names_refused:
                print(f"{kind} {number} is refused: {error}", flush=True)
            continue
        except Exception as error:  # any error that is not a SystolicError is a defect
            told = f"{type(error).__name__}: {error}"
        if told:
            tally.defects += 1
            campaign.keep(kind, number, told, model(number).SerializeToString())
        if told_every and tally.tried % told_every == 0:
            print(f"{tally.tried} of {kind}", flush=True)
    return tally
