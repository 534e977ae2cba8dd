"""Measure the CPU time of evaluating a picture of 416×416: python -m benchmarks.evaluation

Full-size tiny-YOLOv2 VOC, in float and as golden model with decoding, runs on the embedded pictures. Seeded weights
give more boxes than trained weights, so suppression takes longer. The time of a thousand pictures on two cores is
derived. It is CPU time, because wall-clock time depends on the machine's other work.
"""

# ruff: noqa: E402  (one core has to be asked for before numpy is imported)
from __future__ import annotations

import os

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

import time

from host.vision.detection import IOU_THRESHOLD
from systolic.evaluation.frames import Subject, compute
from systolic.loading import load_model
from systolic.model import Calibration, quantise_model, sample_pictures
from systolic.report.tables import Cell, table

PICTURES, CORES = 1000, 2
TARGET = 300.0
"""Target in seconds for this number of pictures on this number of cores."""


def seconds_a_picture(subject: Subject) -> float:
    """Return the mean CPU seconds per embedded picture, after one warm-up picture."""
    pictures = sample_pictures()
    compute(subject, pictures[0])
    start = time.process_time()
    for picture in pictures:
        compute(subject, picture)
    return (time.process_time() - start) / len(pictures)


def main() -> None:
    """Print a row per network."""
    rows: list[list[Cell]] = []
    for name in ("tiny-yolov2-voc", "shapes"):
        seed = 1 if name == "tiny-yolov2-voc" else None
        model = load_model(name, seed=seed, size=(416, 416))
        quantised = quantise_model(model, Calibration(sample_pictures()[:2]))
        seconds = seconds_a_picture(Subject(model.network, quantised, model.fit, IOU_THRESHOLD))
        rows.append([name, f"{seconds:.2f}", f"{seconds * PICTURES / CORES:.0f}", f"{TARGET:.0f}"])
    head = ["416×416", "CPU s per picture", f"s for {PICTURES:,} on {CORES} cores", "target"]
    print(table(head, rows))


if __name__ == "__main__":
    main()
