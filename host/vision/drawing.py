"""Drawing of detections into a picture: boxes, and labels that are readable on any background."""

from __future__ import annotations

import colorsys
import io
import unicodedata
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageFont

from boards.errors import FileAccessError
from host.arguments import check_pixels
from host.vision.detection import Detection, Score
from host.vision.heads.segmentation import Segmentation
from host.vision.picture import Pixels
from host.whole_file import check_whole, write_whole

Colour = tuple[int, int, int]
Size = tuple[int, int]
Font = ImageFont.FreeTypeFont | ImageFont.ImageFont

ARRAYS = ".npz"
"""Suffix of a tensor file, which is written instead of a drawing."""
MAX_CAPTIONS = 12
"""Maximum number of classes listed in the corner of the picture."""
_MAX_LABEL_LENGTH = 40  # characters
_NO_CHARACTER = "\U0010ffff"  # never assigned, so a font draws its glyph for missing characters
_NEAREST = 0  # the number, because Pillow before 9.1 has no name for it
_GOLDEN = (5**0.5 - 1) / 2
_SHADES = ((0.85, 0.95), (0.55, 1.0), (0.9, 0.7))  # saturation and value


def draw(
    picture: Pixels,
    detections: Sequence[Detection],
    labels: Sequence[str] = (),
    scores: Sequence[Score] = (),
    segmentation: Segmentation | None = None,
) -> Pixels:
    """Return a copy of the picture with the boxes drawn in, and the classes listed in its corner.

    Boxes are clipped to the picture. Labels are drawn above all boxes, and the most probable one last. Any label can be
    drawn: line breaks become spaces, and characters that the font lacks become question marks.

    Args:
        picture: uint8 ``(height, width, 3)``.
        detections: The detections.
        labels: Class labels. They give each class the same colour in every picture; see ``class_colour``.
        scores: Classes of the whole picture, which are listed in the corner.
        segmentation: Class of each pixel. Pixels are mixed half and half with the colour of their class, and the
            classes are listed in the corner.
    """
    check_pixels(picture)
    if segmentation is not None:
        picture = _coloured(picture, segmentation, labels)
        scores = [*scores, *(Score(part.label, part.share, part.index) for part in segmentation.segments)]
    image = Image.fromarray(picture)
    canvas = ImageDraw.Draw(image)
    shorter = min(image.size)
    font = _font(max(10, round(shorter / 36)))
    line = max(1, round(shorter / 220))
    clipped = [
        detection.clipped(*image.size) for detection in sorted(detections, key=lambda detection: detection.probability)
    ]
    for detection in clipped:
        box = _on_picture(detection, image.size)
        canvas.rectangle(box, outline=class_colour(detection.label, labels), width=line)
    style = font, line + 1
    for detection in clipped:
        above = partial(_tag_position, _on_picture(detection, image.size), image.size)
        _draw_label(canvas, caption(detection), above, class_colour(detection.label, labels), style)
    row = 0
    for score in scores[:MAX_CAPTIONS]:
        row = _draw_label(canvas, caption(score), partial(_below, row), class_colour(score.label, labels), style)
    return np.array(image)


def _coloured(picture: Pixels, segmentation: Segmentation, labels: Sequence[str]) -> Pixels:
    colours = np.zeros((max(part.index for part in segmentation.segments) + 1, 3), np.uint8)
    for part in segmentation.segments:
        colours[part.index] = class_colour(part.label, labels)
    return np.asarray(picture // 2 + colours[segmentation.classes] // 2, np.uint8)


def class_colour(label: str, labels: Sequence[str] = ()) -> Colour:
    """Return the colour (red, green, blue) in which a class is drawn, which is the same in every picture.

    If ``labels`` contains the class, its index chooses the hue in steps of the golden ratio. Neighbours then differ,
    and a few hundred classes all get different hues. Otherwise a checksum of the label chooses the hue.
    """
    place = labels.index(label) if label in labels else zlib.crc32(label.encode("utf-8", "replace")) % 997
    saturation, value = _SHADES[place % len(_SHADES)]
    red, green, blue = colorsys.hsv_to_rgb(place * _GOLDEN % 1, saturation, value)
    return round(red * 255), round(green * 255), round(blue * 255)


def text_colour(background: Colour) -> Colour:
    """Return black or white, the one with the greater contrast to ``background`` (contrast ratio of WCAG 2.1, section
    1.4.3)."""
    red, green, blue = (_linear(value / 255) for value in background)
    luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    on_white, on_black = 1.05 / (luminance + 0.05), (luminance + 0.05) / 0.05
    return (255, 255, 255) if on_white > on_black else (0, 0, 0)


def caption(detection: Detection | Score) -> str:
    """Return the caption of a detection or a class: one printable line with the label and, if known, the probability in
    per cent."""
    line = "".join(c if c.isprintable() else " " for c in detection.label).strip()
    if len(line) > _MAX_LABEL_LENGTH:
        line = line[: _MAX_LABEL_LENGTH - 1] + "…"
    return line if detection.probability is None else f"{line} {detection.probability:.0%}".strip()


def _on_picture(detection: Detection, size: tuple[int, int]) -> tuple[int, int, int, int]:
    """Return a detection's box in whole pixels within the picture, (x0, y0, x1, y1)."""
    x0, y0, x1, y1 = (round(value) for value in detection.box)
    x0, y0 = min(x0, size[0] - 1), min(y0, size[1] - 1)
    return x0, y0, min(max(x1, x0), size[0] - 1), min(max(y1, y0), size[1] - 1)


def _draw_label(
    canvas: ImageDraw.ImageDraw, text: str, place: Callable[[Size], Size], colour: Colour, style: tuple[Font, int]
) -> int:
    """Draw a label's text on a tag (a filled rectangle) of the colour, and return the row below the tag.

    Args:
        canvas: The picture.
        text: The label.
        place: Returns the corner of a tag of the given size.
        colour: Colour of the tag.
        style: Font, and margin in pixels.
    """
    font, pad = style
    text = _drawable(text, font)
    if not isinstance(font, ImageFont.FreeTypeFont):
        letters = _lettering(text, font, min(canvas.im.size) // 36)
        x, y, below = _draw_tag(canvas, place, colour, (letters.width + 2 * pad, letters.height + 2 * pad))
        canvas.bitmap((x + pad, y + pad), letters, fill=text_colour(colour))
        return below
    left, top, right, bottom = font.getbbox(text)
    x, y, below = _draw_tag(canvas, place, colour, (int(right - left) + 2 * pad, int(bottom - top) + 2 * pad))
    canvas.text((x + pad - left, y + pad - top), text, fill=text_colour(colour), font=font)
    return below


def _draw_tag(
    canvas: ImageDraw.ImageDraw, place: Callable[[Size], Size], colour: Colour, tag: Size
) -> tuple[int, int, int]:
    """Draw a label's filled rectangle; return its corner (x, y) and the row below it."""
    x, y = place(tag)
    canvas.rectangle((x, y, x + tag[0] - 1, y + tag[1] - 1), fill=colour)
    return x, y, y + tag[1]


def _lettering(text: str, font: ImageFont.ImageFont, height: int) -> Image.Image:
    """Return a mask image of the text in a font of fixed size, enlarged to about ``height`` pixels."""
    width, own_height = font.getmask(text).size
    mask = Image.new("L", (width, own_height))
    ImageDraw.Draw(mask).text((0, 0), text, fill=255, font=font)
    factor = max(1, round(height / own_height))
    return mask.resize((width * factor, own_height * factor), _NEAREST)


@lru_cache(maxsize=8)
def _font(size: int) -> Font:
    """Return a font of about ``size`` pixels. Before 10.1 Pillow's own has one size only, so a system font is preferred
    then."""
    try:
        return ImageFont.load_default(size)
    except (TypeError, ImportError):
        try:
            return ImageFont.truetype("DejaVuSans.ttf", size)
        except (OSError, ImportError):
            return ImageFont.load_default()


def _tag_position(box: tuple[int, int, int, int], size: Size, tag: Size) -> Size:
    """Return the top left corner of a label's tag: above the box if there is room, else inside it at the top, always in
    the picture."""
    x = max(min(box[0], size[0] - tag[0]), 0)
    above = box[1] - tag[1]
    y = above if above >= 0 else box[1]
    return x, max(min(y, size[1] - tag[1]), 0)


def _below(row: int, _tag: Size) -> Size:
    """Return the top left corner of a label's tag at the left edge of the picture, in row ``row``."""
    return 0, row


def _drawable(text: str, font: Font) -> str:
    """Return the text in characters that the font has. An accent is dropped if needed; other characters become "?"."""
    if not isinstance(font, ImageFont.FreeTypeFont):
        return text.encode("latin-1", "replace").decode("latin-1")  # Pillow without FreeType has a bitmap font
    missing = _shape(_NO_CHARACTER, font)
    return "".join(_glyph(character, font, missing) for character in text)


def _glyph(character: str, font: ImageFont.FreeTypeFont, missing: tuple[object, bytes]) -> str:
    for candidate in (character, unicodedata.normalize("NFKD", character)[0]):
        if candidate == " " or _shape(candidate, font) != missing:
            return candidate
    return "?"


@lru_cache(maxsize=2048)  # in a video the same few characters recur, and drawing them takes most of the time
def _shape(character: str, font: ImageFont.FreeTypeFont) -> tuple[object, bytes]:
    mask = font.getmask(character)
    return mask.getbbox(), bytes(mask)


def _linear(value: float) -> float:
    return value / 12.92 if value <= 0.04045 else float(((value + 0.055) / 1.055) ** 2.4)


def save_picture(image: Image.Image, path: Path) -> None:
    """Write a picture in the format given by the file's suffix, atomically. FileAccessError if that fails."""
    with _refusal(path):
        write_whole(path, _encoded(image, path))


def save_arrays(arrays: Mapping[str, npt.NDArray[Any]], path: Path) -> None:
    """Write arrays by name into an .npz file, atomically. FileAccessError if that fails."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:  # np.savez refuses arrays named like its own parameters
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                np.lib.format.write_array(file, array, allow_pickle=False)
    with _refusal(path):
        write_whole(path, buffer.getvalue())


def check_picture(path: Path) -> None:
    """Raise FileAccessError if ``save_picture`` or ``save_arrays`` would fail for ``path``. Call it before long
    work."""
    with _refusal(path):
        if path.suffix != ARRAYS:
            _encoded(Image.new("RGB", (1, 1)), path)
        check_whole(path)


def _encoded(image: Image.Image, path: Path) -> bytes:
    data = io.BytesIO()
    image.save(data, Image.registered_extensions()[path.suffix.lower()])
    return data.getvalue()


_REMEDY = "choose another FILE.png"


@contextmanager
def _refusal(path: Path) -> Iterator[None]:
    try:
        yield
    except KeyError as error:
        ending = f"{path.suffix} is not the suffix of a picture format" if path.suffix else "its name has no suffix"
        raise FileAccessError(str(path), f"cannot be written: {ending}", remedy=_REMEDY) from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise FileAccessError(str(path), f"cannot be written: {reason}", remedy=_REMEDY) from error
