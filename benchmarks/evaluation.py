"""Processor seconds of evaluation, a picture of 416×416: python -m benchmarks.evaluation

Full-size tiny-YOLOv2 VOC, floats and the golden model with decoding, on the embedded pictures. Seeded weights give more
boxes than trained ones, and so more to suppress. The time of a thousand pictures on two cores follows from it:
processor time, since wall-clock depends on what else a machine does.
"""

# ruff: noqa: E402  (one core has to be asked for before numpy is imported)
from __future__ import annotations

import os

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

import time

from host.vision.detection import OVERLAP
from systolic.evaluation.frames import Subject, compute
from systolic.loading import load_model
from systolic.model import Calibration, quantise_model, sample_pictures
from systolic.report.tables import Cell, table

PICTURES, CORES = 1000, 2
TARGET = 300.0
"""Seconds for so many pictures on so many cores."""


def seconds_a_picture(subject: Subject) -> float:
    """Processor seconds, the mean of the embedded pictures; the first is computed once before."""
    pictures = sample_pictures()
    compute(subject, pictures[0])
    start = time.process_time()
    for picture in pictures:
        compute(subject, picture)
    return (time.process_time() - start) / len(pictures)


def main() -> None:
    """Prints a row a network."""
    rows: list[list[Cell]] = []
    for name in ("tiny-yolov2-voc", "shapes"):
        seed = 1 if name == "tiny-yolov2-voc" else None
        model = load_model(name, seed=seed, size=(416, 416))
        quantised = quantise_model(model, Calibration(sample_pictures()[:2]))
        seconds = seconds_a_picture(Subject(model.network, quantised, model.fit, OVERLAP))
        rows.append([name, f"{seconds:.2f}", f"{seconds * PICTURES / CORES:.0f}", f"{TARGET:.0f}"])
    head = ["416×416", "CPU s a picture", f"s for {PICTURES:,} on {CORES} cores", "target"]
    print(table(head, rows))


if __name__ == "__main__":
    main()
