"""Where a value sits: aligned storage, layout, DLPack and NumPy interchange. Knows no op."""

from weft.buffer.buffer import Buffer as Buffer
from weft.buffer.layout import Layout as Layout
