"""What converted functions call: the run-time side of the converters."""

from __future__ import annotations

import sys

from weft.capture.join import UNDEFINED as UNDEFINED
from weft.capture.perhaps import Unsure as Unsure
from weft.capture.source.bindings import bound as bound
from weft.capture.source.calls import call as call
from weft.capture.source.comprehensions import (
    comprehension as comprehension,
    gathered as gathered,
    kept as kept,
)
from weft.capture.source.convert import convert as convert, install
from weft.capture.source.effects import (
    breakpoint_ as breakpoint_,
    error as error,
    failed as failed,
    finishing as finishing,
    formatted as formatted,
    handling as handling,
    is_captured as is_captured,
    kinds as kinds,
    mod as mod,
    refusals as refusals,
    text as text,
    thrown as thrown,
)
from weft.capture.source.flow import (
    and_ as and_,
    broke as broke,
    choose as choose,
    compare as compare,
    completed as completed,
    filled as filled,
    for_ as for_,
    given as given,
    if_ as if_,
    iterate as iterate,
    load as load,
    not_ as not_,
    or_ as or_,
    returned as returned,
    returned_value as returned_value,
    same as same,
    skipped as skipped,
    test as test,
    while_ as while_,
)
from weft.capture.source.handlers import caught as caught, orelse as orelse
from weft.capture.source.patterns import (
    either as either,
    equals as equals,
    instance as instance,
    is_ as is_,
    mapping as mapping,
    match as match,
    named as named,
    rest as rest,
    sequence as sequence,
)
from weft.capture.source.picks import unless as unless
from weft.capture.source.reads import (
    attr as attr,
    augment as augment,
    augment_attr as augment_attr,
    augment_item as augment_item,
    del_attr as del_attr,
    del_item as del_item,
    item as item,
    known as known,
    made as made,
    new as new,
    outside as outside,
    owns as owns,
    rebinds as rebinds,
    seen as seen,
    set_attr as set_attr,
    set_item as set_item,
    slice as slice,
    union as union,
)
from weft.capture.source.signals import BREAK as BREAK, CONTINUE as CONTINUE, Return as Return
from weft.capture.source.special import (
    augmented as augmented,
    binary as binary,
    manager as manager,
    unary as unary,
)

install(sys.modules[__name__])
