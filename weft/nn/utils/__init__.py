"""Helpers around modules."""

from weft.nn.utils import rnn as rnn
