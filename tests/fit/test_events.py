"""Files of events are TensorBoard's to the byte."""

import math
import struct

import pytest

from weft.debug.events import EventWriter, crc32c, event, record

pytestmark = pytest.mark.tiny

#: what TensorBoard's own writer (2.21) makes of this event
THEIRS = bytes.fromhex(
    "2800000000000000ff70164a09000000000000f83f10ac022a1a0a0b0a046c6f7373150000803e0a0b0a047261"
    "746515cdcccc3d1b0fecb8"
)


def test_a_record_is_tensorboards():
    assert record(event(1.5, 300, {"loss": 0.25, "rate": 0.1})) == THEIRS


@pytest.mark.parametrize(
    ("data", "crc"), [(b"", 0), (b"123456789", 0xE3069283), (bytes(32), 0x8A9136AA)]
)
def test_checksums(data, crc):
    assert crc32c(data) == crc


def test_a_file_begins_with_its_version_and_is_whole_after_every_flush(tmp_path):
    with EventWriter(tmp_path) as events:
        for step in range(3):
            events.write({"nan": math.nan}, step)
            events.flush()
            data, sizes = events.path.read_bytes(), []
            while data:
                (size,) = struct.unpack("<Q", data[:8])
                assert record(data[12 : 12 + size]) == data[: size + 16]
                sizes.append(size)
                data = data[size + 16 :]
            assert len(sizes) == step + 2
    assert b"brain.Event:2" in events.path.read_bytes()


def test_writers_of_one_moment_have_files_of_their_own(tmp_path):
    with EventWriter(tmp_path), EventWriter(tmp_path):
        assert len(list(tmp_path.iterdir())) == 2
