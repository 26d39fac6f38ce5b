"""Tasks of folders of images, one folder for each class."""

import os
from collections.abc import Callable
from pathlib import Path

from irtjax.arguments import checks_types
from irtjax.errors import InputError
from irtjax.storage.sources import expanded, naming, refuse_address
from irtjax.tasks.building import Choices, Given, Note, build
from irtjax.tasks.columns import split_of
from irtjax.tasks.image_files import Size, decode_once
from irtjax.tasks.labels import ClassNames
from irtjax.tasks.splitting import SHARE
from irtjax.tasks.task import Task

ENDINGS = (".png", ".jpg", ".jpeg")


@checks_types
def from_images(
    folder: str | Path,
    *,
    size: Size = None,
    class_names: ClassNames = None,
    name: str | None = None,
    seed: int = 0,
    validation_share: float = SHARE,
    test_share: float = SHARE,
    flips: bool = False,
    on_note: Note | None = None,
    on_progress: Callable[[str, int, int], None] = lambda *_: None,
) -> Task:
    """A task of PNG and JPEG files.

        task = irtjax.tasks.from_images("pets")               # pets/cat/0001.png, pets/dog/0001.png, …
        task = irtjax.tasks.from_images("photos", size=32)    # photos/train/cat/…, photos/test/cat/…

    The folder has one folder for each class, or folders train, validation (val, dev) and test with such folders in
    them. The id of an image is its path in the folder. Files of other kinds are left out. Decoded images are kept in
    the cache.

    Args:
        folder: with the images.
        size: to bring all images to: a side of squares, or height and width. None for their own size, where they are of
            one; a side of more than 64 pixels is made smaller, and a note says so.
        class_names: a mapping of names of folders to names of classes, or names of folders in the order of the classes.
        name: of the task; None for that of the folder.
        seed: of the splits that are drawn.
        validation_share: see `from_arrays`, as `test_share`, `flips` and `on_note`.
        test_share: see there.
        flips: see there.
        on_note: see there.
        on_progress: called with a description, the number of images read and that of all.

    Raises:
        InputError: names the file that cannot be read; or there is no such folder, images are of several sizes and
            `size` is not given, or see `from_arrays`.
    """
    refuse_address(folder)
    root = expanded(folder)
    title = (root.resolve().name or "images") if name is None else name
    choices = Choices(title, class_names, seed, validation_share, test_share, flips, on_note)
    splits = _splits(root)
    files = {split: _files(path) for split, path in splits.items()}
    with naming(title):
        given = {}
        for split, own in files.items():
            if not own:
                raise InputError(f"{splits[split]}: no folder of it has images that end in {', '.join(ENDINGS)}")
            ids = [path.relative_to(root).as_posix() for path, _ in own]
            given[split] = Given([path for path, _ in own], [label for _, label in own], ids, _place(own))
        key = [
            (split, str(path.resolve()), path.stat().st_size, path.stat().st_mtime_ns)
            for split in given
            for path in given[split].inputs
        ]
        given = decode_once(f"images-{root.resolve().name}", key, given, size, choices.note, on_progress)
    return build(given, choices)


def _splits(root: Path) -> dict[str, Path]:
    """The folder of each split; of one without, training alone."""
    if not root.is_dir():
        raise InputError(f"{root}: {'is a file, expected a folder' if root.exists() else 'there is no such folder'}")
    inner = _folders(root)
    named = {split_of(path.name): path for path in inner}
    if "train" not in named:
        return {"train": root}
    if None in named:
        raise InputError(f"{root}: has a folder train, and {named[None].name}, which is not a split")
    return {str(split): named[split] for split in ("train", "validation", "test") if split in named}


def _files(folder: Path) -> list[tuple[Path, str]]:
    """The images below each folder of a class, in order of their paths, with the class."""
    return [
        (Path(place) / file, of_class.name)
        for of_class in _folders(folder)
        for place, _, files in sorted(os.walk(of_class))
        for file in sorted(files)
        if file.lower().endswith(ENDINGS) and not file.startswith(".")
    ]


def _folders(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))


def _place(files: list[tuple[Path, str]]) -> Callable[[int], str]:
    return lambda at: str(files[at][0])
