"""Lists, dicts and objects that a path changes, where another path has new ones in their place."""

from dataclasses import dataclass

import pytest
from control_lab import agree
from control_programs import X, Y


def a_slice_or_longer(x, y):
    out = [x, y]
    if x.sum() > 0:
        out = out[1:]
    else:
        out.append(x * y)
    return out, len(out)


def a_new_list_or_another_element(x, y):
    two = out = [x]
    if x.sum() > 0:
        out = [y]
    else:
        out[0] = x * 5
    return two, out


def a_new_dict_or_another_value(x, y):
    d = {"x": x}
    if x.sum() > 0:
        d = {"x": y}
    else:
        d["x"] = x * 3
    return d["x"] * y


def a_new_list_in_a_dict(x, y):
    d = {"x": [x]}
    if x.sum() > 0:
        d["x"].append(x * y)
    else:
        d["x"] = [y]
    return d["x"]


def a_new_element_or_a_longer_one(x, y):
    out = [[x], [y]]
    if x.sum() > 0:
        out[0] = [y, y]
    else:
        out[0].append(x * 5)
    return out


def returned(x, y):
    def with_more(out):
        if x.sum() > 0:
            return [y, x]
        out.append(x * 4)
        return out

    out = [x]
    more = with_more(out)
    return more, out


def a_tuple_of_it(x, y):
    out = [x]
    pair = (out, x)
    if x.sum() > 0:
        out[0] = y
        pair = (out, y)
    return pair, out


@dataclass
class Box:
    value: object


def an_object(x, y):
    one = other = Box(x)
    if x.sum() > 0:
        one = Box(y)
    else:
        one.value = x * 7
    return one.value, other.value


@pytest.mark.parametrize("f", [a_slice_or_longer, a_new_list_or_another_element,
                               a_new_dict_or_another_value, a_new_list_in_a_dict,
                               a_new_element_or_a_longer_one, returned, a_tuple_of_it,
                               an_object])  # fmt: skip
def test_what_a_path_has_changed_is_what_it_leaves(f):
    for x, y in ((X, Y), (-X, Y)):
        agree(f, x, y)
