"""Images in folders."""

import numpy as np
import pytest
from PIL import Image

import weft as wf


@pytest.fixture
def folder(tmp_path):
    """Red and blue images of several sizes, and a file that is none."""
    for name, colour in (("red", (255, 0, 0)), ("blue", (0, 0, 255))):
        (tmp_path / name / "more").mkdir(parents=True)
        for n, place in enumerate((".", "more")):
            pixels = np.full((4 + n, 6, 3), colour, np.uint8)
            Image.fromarray(pixels).save(tmp_path / name / place / f"{n}.png")
        (tmp_path / name / "notes.txt").write_text("no image")
    return tmp_path


def test_reads_classes_and_pixels(folder):
    data = wf.data.ImageFolder(folder)
    assert data.classes == ["blue", "red"] and len(data) == 4
    assert data.class_to_idx == {"blue": 0, "red": 1}
    image, label = data[0]
    assert image.shape == (3, 4, 6) and image.dtype == np.float32 and label == 0
    assert image[2].min() == 1.0 and image[:2].max() == 0.0
    assert data[-1][1] == 1
    with pytest.raises(IndexError):
        data[4]


def test_loads_in_batches(folder):
    data = wf.data.ImageFolder(folder, (8, 8), transform=lambda x: x - 0.5)
    x, y = next(iter(wf.data.DataLoader(data, batch_size=4, workers=2)))
    assert x.shape == (4, 3, 8, 8) and x.dtype is wf.float32 and y.tolist() == [0, 0, 1, 1]
    assert x.min().item() == -0.5


def test_gray(folder):
    image, _ = wf.data.ImageFolder(folder, mode="gray")[0]
    assert image.shape == (1, 4, 6)


def test_wrong_folders_and_files(folder, tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(wf.errors.ArtifactError, match="folders of images"):
        wf.data.ImageFolder(tmp_path / "empty")
    (folder / "red" / "bad.png").write_bytes(b"\x89PNG nothing")
    data = wf.data.ImageFolder(folder)
    bad = next(i for i, (p, _) in enumerate(data.samples) if p.name == "bad.png")
    with pytest.raises(wf.errors.ArtifactError, match="an image"):
        data[bad]
    with pytest.raises(wf.errors.ShapeError, match="height, width"):
        wf.data.ImageFolder(folder, 8)
