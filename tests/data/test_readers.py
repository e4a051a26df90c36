"""Files that data comes in."""

import gzip
import random
import struct

import numpy as np
import pytest

import weft as wf
from weft.data import DataLoader, TextLines, read_csv, read_idx, read_npy
from weft.errors import ArtifactError, IndexRangeError


def test_lines_of_text(tmp_path):
    path = tmp_path / "text"
    path.write_bytes("α first\r\nsecond\n\nlast".encode())
    lines = TextLines(path)
    assert list(lines) == ["α first", "second", "", "last"] and len(lines) == 4
    assert lines[-1] == "last"
    batches = list(DataLoader(lines, batch_size=2, workers=2))
    assert batches == [["α first", "second"], ["", "last"]]
    with pytest.raises(IndexRangeError):
        lines[4]


def test_tables(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text('n,x,name\n1,1.5,"a, b"\n2,,c\n')
    table = read_csv(path)
    assert table["n"].dtype is wf.int64 and table["n"].tolist() == [1, 2]
    assert table["x"].dtype is wf.float32 and np.isnan(table["x"].numpy()[1])
    assert table["name"] == ["a, b", "c"]
    path.write_text("1;2\n3;4\n")
    assert read_csv(path, header=False, delimiter=";")["1"].tolist() == [2, 4]
    path.write_text("a,b\n1\n")
    with pytest.raises(ArtifactError, match="row 2: expected 2 entries, got 1"):
        read_csv(path)
    path.write_text("")
    assert read_csv(path) == {}
    path.write_text("month,n\n2024_01,1\n2024_02,2\n")
    assert read_csv(path)["month"] == ["2024_01", "2024_02"]


def test_tables_that_cannot_be_read(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("a,b,a\n1,2,3\n")
    with pytest.raises(ArtifactError, match="different names, got two named 'a'"):
        read_csv(path)
    path.write_bytes("name\nJürgen\n".encode("latin-1"))
    with pytest.raises(ArtifactError, match=r"text in utf-8, got 0xfc .* encoding="):
        read_csv(path)
    assert read_csv(path, encoding="latin-1") == {"name": ["Jürgen"]}
    with pytest.raises(ArtifactError, match=r"table\.csv, line 2: expected text in utf-8"):
        TextLines(path)[1]
    path.write_text("a\n" + "x" * 200_000)
    with pytest.raises(ArtifactError, match="field larger"):
        read_csv(path)


def test_arrays_of_numpys(tmp_path):
    path, more = tmp_path / "a.npy", tmp_path / "a.npz"
    for a in (np.arange(6, dtype=">i4").reshape(2, 3), np.float64(1.5), np.zeros((0, 2), bool)):
        np.save(path, a)
        found = read_npy(path)
        assert (found.numpy() == a).all() and found.shape == np.shape(a)
        assert found.dtype.name == np.asarray(a).dtype.name
    np.savez_compressed(more, x=np.ones(3, np.float32), y=np.arange(2))
    table = read_npy(more)
    assert list(table) == ["x", "y"] and table["x"].tolist() == [1, 1, 1]
    np.save(path, np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(ArtifactError, match="arrays of numbers"):
        read_npy(path)  # and not opened: it is a pickle
    raw = more.read_bytes()
    for bad in (b"", b"\x93NUMPY", raw[:-20], raw[:60] + bytes(40) + raw[100:], b"PK\3\4junk"):
        path.write_bytes(bad)
        with pytest.raises(ArtifactError):
            read_npy(path)


def test_damaged_arrays_are_arrays_or_artifact_errors(tmp_path):
    """Whatever NumPy, zipfile and the tokenizer make of the bytes."""
    path, rng = tmp_path / "a.npz", random.Random(0)
    np.savez(path, a=np.arange(3), b=np.ones(2))
    zipped = path.read_bytes()
    np.save(path.with_suffix(".npy"), np.arange(6).reshape(2, 3))
    refused = 0
    for raw in (zipped, path.with_suffix(".npy").read_bytes()):
        for _ in range(300):
            damaged = bytearray(raw)
            for _ in range(rng.randrange(1, 4)):
                damaged[rng.randrange(len(raw))] = rng.randrange(256)
            path.write_bytes(damaged)
            try:
                read_npy(path)
            except ArtifactError:
                refused += 1
    assert refused > 300
    with pytest.raises(FileNotFoundError):
        read_npy(tmp_path / "none.npy")


def test_idx_files(tmp_path):
    path = tmp_path / "images-idx3-ubyte"
    a = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    raw = struct.pack(">BBBB3I", 0, 0, 8, 3, *a.shape) + a.tobytes()
    for content in (raw, gzip.compress(raw)):
        path.write_bytes(content)
        found = read_idx(path)
        assert found.dtype is wf.uint8 and (found.numpy() == a).all()
    path.write_bytes(struct.pack(">BBBBI", 0, 0, 13, 1, 2) + struct.pack(">2f", 1.5, -2.0))
    assert read_idx(path).tolist() == [1.5, -2.0]
    for bad in (raw[:-1], raw + b"x", raw[:7], b"", b"\0\0\7\1", gzip.compress(raw)[:-9],
                b"\x1f\x8b\x08\x00" + b"junk" * 9,
                b"\0\0\x08\xff" + bytes([0, 0, 0, 1]) * 255 + b"x",
                b"\0\0\x08\4" + bytes(4) + b"\xff" * 12):  # fmt: skip
        path.write_bytes(bad)
        with pytest.raises(ArtifactError):
            read_idx(path)
