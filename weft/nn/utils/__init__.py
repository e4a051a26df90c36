"""Helpers around modules."""

import typing as _typing

from weft.nn.utils import rnn as rnn
from weft.tensor.elsewhere import NN_UTILS as _NAMES, no_name as _no_name

if not _typing.TYPE_CHECKING:  # a checker should see what is there

    def __getattr__(name):
        raise _no_name("weft.nn.utils", name, _NAMES)
