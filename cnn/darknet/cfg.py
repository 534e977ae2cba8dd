"""Parse the text of a darknet cfg file into sections with options, each with its line.

Three tables below list the known options. All other options are errors.

- READ: options that decide shapes or numbers.
- NEUTRAL: options that would change the result of a layer and are not supported. Only the value that changes nothing
  is accepted.
- TRAINING: options without effect on a trained network. Any value is accepted.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from boards.errors import (
    ChoiceError,
    ConflictError,
    DamagedFileError,
    FileAccessError,
    InvalidValueError,
    MissingValueError,
    RangeError,
    SeveralFaultsError,
    SystolicError,
    UnknownKeyError,
    UnsupportedError,
    cut,
)

MAX_CFG_BYTES = 1 << 20
MAX_SECTIONS = 1024

ALIASES = {
    "network": "net",
    "conv": "convolutional",
    "conn": "connected",
    "max": "maxpool",
    "avg": "avgpool",
    "soft": "softmax",
}

# Options that decide shapes and numbers, by section.
READ: dict[str, frozenset[str]] = {
    "net": frozenset({"width", "height", "channels", "letter_box"}),
    "convolutional": frozenset(
        {
            *("batch_normalize", "filters", "size", "size_x", "size_y", "pad", "padding", "groups"),
            *("stride", "stride_x", "stride_y", "activation", "dilation", "xnor"),
        }
    ),
    "maxpool": frozenset({"size", "stride", "stride_x", "stride_y", "padding"}),
    "avgpool": frozenset(),
    "connected": frozenset({"output", "activation", "batch_normalize"}),
    "route": frozenset({"layers", "groups", "group_id"}),
    "batchnorm": frozenset(),
    "reorg": frozenset({"stride", "extra"}),
    "reorg3d": frozenset({"stride"}),
    "upsample": frozenset({"stride", "scale"}),
    "shortcut": frozenset({"from", "activation"}),
    "sam": frozenset({"from", "activation"}),
    "scale_channels": frozenset({"from", "activation"}),
    "crop": frozenset({"crop_width", "crop_height", "noadjust"}),
    "dropout": frozenset(),
    "cost": frozenset(),
    "softmax": frozenset({"groups", "spatial", "temperature"}),
    "region": frozenset({"anchors", "classes", "coords", "num", "softmax"}),
    "detection": frozenset({"classes", "coords", "num", "side", "sqrt"}),
    "Gaussian_yolo": frozenset({"anchors", "classes", "num", "mask", "scale_x_y"}),
    "yolo": frozenset({"anchors", "classes", "num", "mask", "new_coords", "scale_x_y"}),
}

# Options that would change the result, and the only value that is accepted because it changes nothing.
NEUTRAL: dict[str, dict[str, float]] = {
    "convolutional": {
        "antialiasing": 0,
        "binary": 0,
        "dontload": 0,
        "dontloadscales": 0,
        "flipped": 0,
    },
    "maxpool": {"antialiasing": 0, "maxpool_depth": 0},
    "connected": {"dontload": 0, "dontloadscales": 0, "flipped": 0},
    "reorg": {"reverse": 0, "flatten": 0},
    "reorg3d": {"reverse": 0},
    "region": {"background": 0},
    "scale_channels": {"scale_wh": 0},
    "detection": {"softmax": 0, "reorg": 0},
}


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_TRAINING_OF_ANY = _words("learning_rate onlyforward stopbackward burnin_update train_only_bn dont_update")

# Options of training, augmentation, evaluation or logging, which do not change the result of a trained network.
TRAINING: dict[str, frozenset[str]] = {
    "net": _words(
        """adam angle aspect augment_speed b1 b2 batch batches_per_cycle blur burn_in center cutmix decay
        dynamic_minibatch ema_alpha eps exposure flip gamma hue label_smooth_eps learning_rate_min loss_scale
        max_batches max_chart_loss max_crop max_epochs min_crop min_ratio max_ratio mixup momentum mosaic notruth
        optimized_memory policy power random resize_step saturation scale scales seen seq_scales
        sequential_subdivisions show_receptive_field sgdr_cycle sgdr_mult step steps subdivisions time_steps track
        try_fix_nan contrastive contrastive_color contrastive_jit_flip unsupervised use_cuda_graph
        workspace_size_limit_mb zero"""
    ),
    "convolutional": frozenset({"dot", "angle", "assisted_excitation", "bin_output"}),
    "crop": _words("flip angle saturation exposure shift"),
    "dropout": frozenset({"probability", "dropblock", "dropblock_size_abs", "dropblock_size_rel"}),
    "cost": frozenset({"type", "scale", "ratio"}),
    "softmax": frozenset({"noloss"}),
    "region": _words(
        """absolute bias_match class_scale classfix coord_scale focal_loss jitter log mask_scale max
        noobject_scale object_scale random rescore sqrt thresh"""
    ),
    "detection": _words("class_scale coord_scale forced jitter max noobject_scale object_scale random rescore resize"),
    "Gaussian_yolo": _words(
        """beta_nms cls_normalizer ignore_thresh iou_loss iou_normalizer iou_thresh jitter label_smooth_eps max
        max_delta nms_kind random resize truth_thresh uc_normalizer"""
    ),
    "yolo": _words(
        """beta_nms cls_normalizer counters_per_class focal_loss ignore_thresh iou_loss iou_normalizer
        iou_thresh iou_thresh_kind jitter label_smooth_eps max max_delta nms_kind obj_normalizer
        objectness_smooth random resize rescore show_details track_history_size truth_thresh beta1 uc_normalizer"""
    ),
}

_INTEGER = re.compile(r"[+-]?[0-9]{1,9}")


@dataclass(frozen=True)
class CfgOption:
    """The value of an option of a darknet cfg file, and its place as "file:line"."""

    value: str
    source: str


@dataclass(frozen=True)
class Section:
    """One section of a darknet cfg file, such as [convolutional], with its options.

    Attributes:
        kind: Its name, with aliases replaced.
        options: Its options by key.
        source: The place of its header, "file:line".
    """

    kind: str
    options: dict[str, CfgOption]
    source: str

    def source_of(self, key: str) -> str:
        """Return the place of an option, "file:line", or of the section's header if the option is left out."""
        return self.options[key].source if key in self.options else self.source

    def name_of(self, key: str) -> str:
        """Return an option's name as errors show it, such as "stride of [maxpool]"."""
        return f"{key} of [{self.kind}]"

    def integer(self, key: str, default: int | None, low: int, high: int) -> int:
        """Return the value of the option ``key``: one whole number from ``low`` to ``high``, or its default.

        Raises:
            RangeError: It is not between ``low`` and ``high``.
            InvalidValueError: It is not one whole number.
            MissingValueError: It is left out and has no default.
        """
        if key not in self.options and default is not None:
            return default
        values = self.integers(key)
        if len(values) != 1:
            raise self._refusal(key, "one whole number")
        if not low <= values[0] <= high:
            raise RangeError(self.name_of(key), values[0], low, high, where=self.source_of(key))
        return values[0]

    def integers(self, key: str) -> tuple[int, ...]:
        """Return the value of the option ``key``: a list of whole numbers separated by commas.

        Raises:
            InvalidValueError: It has other entries.
            MissingValueError: It is left out.
        """
        parts = self._parts(key)
        if not all(_INTEGER.fullmatch(part) for part in parts):
            raise self._refusal(key, "whole numbers of at most 9 digits")
        return tuple(int(part) for part in parts)

    def numbers(self, key: str) -> tuple[float, ...]:
        """Return the value of the option ``key``: a list of finite numbers separated by commas.

        Raises:
            InvalidValueError: It has other entries.
            MissingValueError: It is left out.
        """
        try:
            values = tuple(float(part) for part in self._parts(key))
        except ValueError:
            raise self._refusal(key, "numbers") from None
        if not all(math.isfinite(value) for value in values):
            raise self._refusal(key, "finite numbers")
        return values

    def number(self, key: str, default: float) -> float:
        """Return the value of the option ``key``: one finite number, or its default; InvalidValueError otherwise."""
        values = self.numbers(key) if key in self.options else (default,)
        if len(values) != 1:
            raise self._refusal(key, "one number")
        return values[0]

    def choice(self, key: str, default: str, choices: Iterable[str]) -> str:
        """Return the value of the option ``key``: one of ``choices``, or its default; ChoiceError otherwise."""
        value = self.options[key].value if key in self.options else default
        if value not in choices:
            where, remedy = self.source_of(key), "train the network with one of these"
            raise ChoiceError(self.name_of(key), value, tuple(choices), where=where, remedy=remedy)
        return value

    def _parts(self, key: str) -> list[str]:
        if key not in self.options:
            raise MissingValueError(self.name_of(key), where=self.source, remedy="add it")
        # darknet's own files end some lists with a comma
        return self.options[key].value.rstrip(",").split(",")

    def _refusal(self, key: str, required: str) -> InvalidValueError:
        return InvalidValueError(self.name_of(key), self.options[key].value, required, where=self.source_of(key))


def read_bounded(path: Path, limit: int, title: str) -> bytes:
    """Return the bytes of a file; RangeError if it has more than ``limit`` bytes.

    Args:
        path: The file.
        limit: Limit for the number of bytes.
        title: The kind of file in errors: ``cfg file``.

    Raises:
        FileAccessError: The file cannot be read.
        RangeError: It has more than ``limit`` bytes.
    """
    try:
        with path.open("rb") as file:
            data = file.read(limit + 1)
            size = max(len(data), os.fstat(file.fileno()).st_size)
    except OSError as error:
        raise FileAccessError(str(path), f"cannot be read: {error.strerror or error}", title) from error
    if len(data) > limit:
        remedy = f"check that this is a {title}"
        raise RangeError(f"the size of the {title} in bytes", size, high=limit, where=str(path), remedy=remedy)
    return data


def read_text(path: Path, limit: int, title: str) -> str:
    """Return the text of a file of at most ``limit`` bytes; DamagedFileError if it is not UTF-8."""
    data = read_bounded(path, limit, title)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        reason, remedy = f"is not UTF-8 text at byte {error.start}", f"check that this is a {title}"
        raise DamagedFileError(file_label(path), reason, f"line {line}", remedy=remedy) from error


def file_label(path: Path) -> str:
    """Return a file's name in a form for error messages: printable, on one line and shortened."""
    return cut("".join(character if character.isprintable() else "?" for character in path.name))


def parse_cfg(text: str, file: str) -> tuple[Section, ...]:
    """Return the sections of a darknet cfg file's text, in order; the first is [net].

    If a section or option is unknown or not supported, its error is raised; SeveralFaultsError if there are several.
    """
    sections = _split(text, file)
    if not sections or sections[0].kind != "net":
        first = f"[{sections[0].kind}]" if sections else "nothing"
        what, remedy = "the first section of a cfg", "check that this is a cfg file"
        raise InvalidValueError(what, first, "[net]", where=f"{file}:1", remedy=remedy)
    wrong = [fault for section in sections for fault in _faults(section)]
    for second in sections[1:]:
        if second.kind == "net":
            subjects = ("this [net]", f"the [net] at {sections[0].source}")
            wrong.append(ConflictError(subjects, "a cfg has only one", where=second.source, remedy="remove one"))
    if wrong:
        raise wrong[0] if len(wrong) == 1 else SeveralFaultsError(wrong, f"{file} has {len(wrong)} faults")
    return sections


def _split(text: str, file: str) -> tuple[Section, ...]:
    sections: list[Section] = []
    for number, line in enumerate(text.split("\n"), 1):
        # darknet ignores white space and text after a number, so that remarks after a value work there too
        bare = re.sub(r"\s+", "", re.split("[#;]", line, maxsplit=1)[0])
        source = f"{file}:{number}"
        if bare.startswith("["):
            name = _header(bare, source)
            sections.append(Section(ALIASES.get(name, name), {}, source))
        elif bare:
            _add_option(sections, bare, source)
        if len(sections) > MAX_SECTIONS:
            raise RangeError("the number of sections", len(sections), high=MAX_SECTIONS, where=source)
    return tuple(sections)


def _header(bare: str, source: str) -> str:
    if not bare.endswith("]"):
        raise InvalidValueError("a section header", bare, "[name]", where=source, remedy="close the bracket")
    return bare[1:-1]


def _add_option(sections: list[Section], bare: str, source: str) -> None:
    key, equals, value = bare.partition("=")
    if not equals or not key:
        raise InvalidValueError("a line", bare, "[section] or option=value", where=source)
    if not sections:
        raise InvalidValueError("the first entry of a cfg", bare, "[net]", where=source)
    section = sections[-1]
    if key in section.options and key in READ.get(section.kind, ()):
        subjects = (f"this {key}", f"the one at {section.options[key].source}")
        raise ConflictError(subjects, "an option may be given only once", where=source, remedy="remove one of the two")
    section.options.setdefault(key, CfgOption(value, source))  # darknet uses the first one


_NO_LAYERS = {
    **dict.fromkeys(("rnn", "lstm", "gru", "crnn", "conv_lstm"), "it keeps a state from one image to the next"),
    "local": "it has different weights at each position",
    "normalization": "it divides by a sum over neighbouring channels",
    "contrastive": "it compares embeddings of the objects of several images",
}
"""Sections of darknet that no layer can do, and why."""


_OF_ONNX = {
    "deconvolutional": ("it is a transposed convolution", "ConvTranspose"),
    "local_avgpool": ("it divides by the number of pixels of each window inside the map", "AveragePool"),
}
"""Sections that are not read, why not, and the ONNX operator that computes the same and is read."""


_NO_OPTIONS = {
    "tree": "it arranges the classes in a tree, which another file describes",
    "share_index": "it uses the weights of another layer",
    "embedding_layer": "it distinguishes objects of several images by the values of another layer",
}
"""Options that no layer has, and their effect in darknet."""


def _faults(section: Section) -> list[SystolicError]:
    """Return the errors of a cfg section that is not supported, or of its unsupported options."""
    kind, name = section.kind, f"[{cut(section.kind)}]"
    if kind in _NO_LAYERS:
        return [UnsupportedError(name, _NO_LAYERS[kind], where=section.source)]
    if kind in _OF_ONNX:
        reason, operator = _OF_ONNX[kind]
        remedy = f"export the network as ONNX, whose {operator} is read"
        return [UnsupportedError(name, reason, where=section.source, remedy=remedy)]
    if kind == "net" and "inputs" in section.options:
        reason = "a network reads an image with width, height and channels"
        return [UnsupportedError(section.name_of("inputs"), reason, where=section.source_of("inputs"))]
    if kind not in READ:
        return [ChoiceError("a section", kind, sorted(READ), where=section.source)]
    return [fault for key in section.options if (fault := _option_fault(section, key)) is not None]


def _option_fault(section: Section, key: str) -> SystolicError | None:
    kind, source = section.kind, section.options[key].source
    neutral = NEUTRAL.get(kind, {})
    if key in READ[kind] or key in _TRAINING_OF_ANY or key.lower() in TRAINING.get(kind, ()):
        return None
    if key in neutral:
        return _neutral_fault(section, key, neutral[key])
    if key in _NO_OPTIONS:
        return UnsupportedError(section.name_of(key), _NO_OPTIONS[key], where=source)
    return UnknownKeyError([key], sorted(READ[kind] | neutral.keys()), where=f"{source}: [{kind}]")


def _neutral_fault(section: Section, key: str, neutral: float) -> SystolicError | None:
    try:
        if section.numbers(key) == (neutral,):
            return None
    except InvalidValueError as error:
        return error
    option = section.options[key]
    subject, reason = f"{key}={cut(option.value)} of [{section.kind}]", f"only {key}={neutral:g} changes nothing"
    return UnsupportedError(subject, reason, where=option.source)
