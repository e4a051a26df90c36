"""Files that data comes in."""

import gzip
import struct

import numpy as np
import pytest

import weft as wf
from weft.data import DataLoader, TextLines, read_csv, read_idx
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
    for bad in (raw[:-1], raw + b"x", raw[:7], b"", b"\0\0\7\1", gzip.compress(raw)[:-9]):
        path.write_bytes(bad)
        with pytest.raises(ArtifactError):
            read_idx(path)
