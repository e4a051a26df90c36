"""Images in folders, one folder a class. Needs Pillow (`pip install weft[images]`)."""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from weft.data.dataset import Dataset
from weft.errors import ArtifactError, IndexRangeError, ShapeError
from weft.tensor.arguments import sizes, word

ENDINGS = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm")
#: Pillow's words
_MODES = {"rgb": "RGB", "gray": "L", "rgba": "RGBA"}


class ImageFolder(Dataset):
    """Examples (image, class) of `root/class name/….png` and the like.

    Images are float32 arrays (channels, height, width) between 0 and 1; with `size` (height, width)
    they are scaled to it. `transform` is called on each. `classes` are the folders' names in order,
    `samples` the files with their class's number.

    >>> import pathlib, tempfile
    >>> import PIL.Image
    >>> import weft as wf
    >>> root = pathlib.Path(tempfile.mkdtemp())
    >>> (root / "cat").mkdir()
    >>> PIL.Image.new("RGB", (4, 2)).save(root / "cat" / "1.png")
    >>> folder = wf.data.ImageFolder(root)
    >>> folder.classes, folder[0][0].shape
    (['cat'], (3, 2, 4))
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        size: Any = None,
        *,
        mode: str = "rgb",
        transform: Callable[[np.ndarray], Any] | None = None,
        extensions: Iterable[str] = ENDINGS,
    ) -> None:
        self.root = Path(root)
        self.mode = _MODES[word(mode, "ImageFolder mode", tuple(_MODES))]
        self.size = None if size is None else sizes(size, "ImageFolder size")
        if self.size is not None and len(self.size) != 2:
            raise ShapeError("ImageFolder", expected="a size (height, width)", got=str(size))
        self.transform = transform
        folders = sorted(p for p in self.root.iterdir() if p.is_dir())
        self.classes = [p.name for p in folders]
        self.class_to_idx = {name: n for n, name in enumerate(self.classes)}
        endings = tuple(e.lower() for e in extensions)
        self.samples = [
            (file, n)
            for n, folder in enumerate(folders)
            for file in sorted(folder.rglob("*"))
            if file.is_file() and file.name.lower().endswith(endings)
        ]
        if not self.samples:
            expected = f"folders of images ({', '.join(endings)})"
            raise ArtifactError(str(self.root), expected=expected, got="none")

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: Any) -> tuple[Any, int]:
        i, n = operator.index(index), len(self)
        if not -n <= i < n:
            raise IndexRangeError("ImageFolder", expected=f"an image in [{-n}, {n})", got=str(i))
        path, label = self.samples[i]
        image = read_image(path, self.size, self.mode)
        return (image if self.transform is None else self.transform(image)), label


def read_image(path: Path, size: Any, mode: str) -> np.ndarray:
    """An image file as float32 (channels, height, width) between 0 and 1."""
    try:
        from PIL import Image
    except ImportError as e:
        hint = "pip install weft[images]"
        raise ArtifactError("ImageFolder", expected="Pillow", got=str(e), hint=hint) from None
    try:
        with Image.open(path) as file:
            image = file.convert(mode)
            if size is not None:
                image = image.resize((size[1], size[0]), Image.Resampling.BILINEAR)
            pixels = np.asarray(image, np.float32) / np.float32(255)
    except (OSError, ValueError, SyntaxError) as e:
        raise ArtifactError(path.name, expected="an image", got=str(e)) from None
    pixels = pixels[:, :, None] if pixels.ndim == 2 else pixels
    return np.ascontiguousarray(pixels.transpose(2, 0, 1))
