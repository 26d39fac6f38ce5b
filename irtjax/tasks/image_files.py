"""Images from files and bytes, decoded by Pillow and brought to one size."""

import io
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageOps

from irtjax.errors import InputError
from irtjax.storage.cache import cached
from irtjax.storage.sources import one_line
from irtjax.tasks.building import Given, Note
from irtjax.tasks.inputs import Pictures, Place

LARGEST = 64  # pixels of a side: networks of this library are for small images, and all are held in memory
Size = int | tuple[int, int] | None
GREY = ("1", "L", "LA")
ORIENTATION = 0x0112  # where EXIF says how the camera was held
DEEP = ("I", "F", "I;16", "I;16B", "I;16L")
SHAPED = 1  # how images are decoded: another number makes those in the cache anew


def decode_once(
    name: str,
    key: object,
    given: Mapping[str, Given],
    size: Size,
    on_note: Note,
    on_progress: Callable[[str, int, int], None],
) -> dict[str, Given]:
    """`decode_all`, with arrays that are kept in the cache.

    Args:
        name: of the file in the cache, for people.
        key: what tells these images from others.
        given: see `decode_all`, as the arguments below.
        size: see there.
        on_note: see there; the cache has no news.
        on_progress: see there.

    Raises:
        InputError: see there.
    """
    notes: list[str] = []

    def arrays() -> dict[str, np.ndarray]:
        return {split: own.inputs.images for split, own in decode_all(given, size, notes.append, on_progress).items()}

    found = cached(name, (key, size, SHAPED), arrays)
    for note in notes:
        on_note(note)
    return {split: own._replace(inputs=Pictures(np.asarray(found[split]), 255.0)) for split, own in given.items()}


def decode_all(
    given: Mapping[str, Given],
    size: Size = None,
    on_note: Note = lambda _: None,
    on_progress: Callable[[str, int, int], None] = lambda *_: None,
) -> dict[str, Given]:
    """Images of all splits as arrays of one size; grey ones have one channel if all are grey, else there are three.

    Images of one size of up to `LARGEST` pixels a side stay as they are. Larger ones are made smaller, which is noted.

    Args:
        given: by split; inputs are paths, bytes, what Hugging Face has in their place, images of PIL or arrays.
        size: what to bring images to: a side of squares, or height and width; None for their own.
        on_note: called with one line of news.
        on_progress: called with a description, the number of images done and that of all.

    Raises:
        InputError: names an image that cannot be read; or there are several sizes and none to bring them to.
    """
    sizes: dict[tuple[int, int], str] = {}
    grey = True
    for own in given.values():
        for at, one in enumerate(own.inputs):
            with _opened(one, own.place(at)) as image:
                sides = (image.width, image.height) if _turned(image) else (image.height, image.width)
                sizes.setdefault(sides, own.place(at))
                grey &= image.mode in GREY
    target = _target(sizes, size, on_note)
    found, done, number = {}, 0, sum(len(own.inputs) for own in given.values())
    for split, own in given.items():
        images = np.empty((len(own.inputs), *target, 1 if grey else 3), np.uint8)
        for at, one in enumerate(own.inputs):
            images[at] = _pixels(one, own.place, at, target, grey)
            done += 1
            if done % 256 == 0 or done == number:
                on_progress("images", done, number)
        found[split] = own._replace(inputs=Pictures(images, 255.0))
    return found


def _target(sizes: Mapping[tuple[int, int], str], size: Size, on_note: Note) -> tuple[int, int]:
    """Height and width to bring all images to."""
    if size is not None:
        target = tuple(size) if isinstance(size, Collection) else (size, size)
        if len(target) != 2 or min(target) < 1:
            raise InputError(f"`size`={size}: expected a number of pixels, or height and width")
        return target
    if len(sizes) > 1:
        (first, one), (second, other), *_ = sizes.items()
        raise InputError(
            f"images of {len(sizes):,} sizes, such as {first[0]} × {first[1]} ({one}) and {second[0]} × {second[1]} "
            f"({other}): give the `size` to bring them to, such as 32"
        )
    ((height, width),) = sizes
    if max(height, width) <= LARGEST:
        return height, width
    factor = LARGEST / max(height, width)
    target = max(1, round(height * factor)), max(1, round(width * factor))
    on_note(f"images of {height} × {width} are made smaller, {target[0]} × {target[1]}; `size` can say otherwise")
    return target


def _pixels(one: Any, place: Place, at: int, target: tuple[int, int], grey: bool) -> np.ndarray:
    """(H, W, channels) uint8."""
    with _opened(one, place(at)) as image:
        if image.mode in DEEP:
            raise InputError(f"{place(at)}: an image of more than 8 bits a channel (mode {image.mode}): save it with 8")
        try:
            upright = ImageOps.exif_transpose(image) if _turned(image) else image
            turned = upright.convert("L" if grey else "RGB")
        except (OSError, ValueError, SyntaxError) as error:
            raise InputError(f"{place(at)}: cannot be read ({one_line(error)})") from error
        if (turned.height, turned.width) != target:
            turned = turned.resize(target[::-1], Image.Resampling.BICUBIC)
        return np.asarray(turned, np.uint8).reshape(*target, -1)


def _turned(image: Image.Image) -> bool:
    """Whether height and width are exchanged, because a camera was held upright."""
    return image.format in ("JPEG", "MPO") and image.getexif().get(ORIENTATION) in (5, 6, 7, 8)


def _opened(one: Any, place: str) -> Image.Image:
    """An image of whatever form; only its head is read."""
    try:
        if isinstance(one, Image.Image):
            return one.copy()
        if isinstance(one, dict):
            one = one["bytes"] if one.get("bytes") is not None else one.get("path")
        if isinstance(one, bytes):
            return Image.open(io.BytesIO(one))
        if isinstance(one, (str, Path)):
            return Image.open(one)
        if one is None:
            raise InputError(f"{place} has no image: leave it out")
        array = np.asarray(one)
        return Image.fromarray(array[..., 0] if array.ndim == 3 and array.shape[-1] == 1 else array)
    except (OSError, ValueError, TypeError, SyntaxError, KeyError, Image.DecompressionBombError) as error:
        raise InputError(f"{place}: not an image that can be read ({one_line(error)})") from error
