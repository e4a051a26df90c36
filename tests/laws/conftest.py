"""Laws with children: run one by one, they come last and their children start with the first law;
run by several processes, they come first and each starts its own.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

from tests.laws.child import Child, Row

SHARED = "PYTEST_XDIST_WORKER" in os.environ  # both cores have work already


def _children(item: Any) -> list[Child]:
    return getattr(item.module, "CHILDREN", [])


def _is_law(item: Any) -> bool:
    return getattr(item, "module", None) is not None and item.path.parent.name == "laws"


def pytest_collection_modifyitems(items: list[Any]) -> None:
    places = [i for i, item in enumerate(items) if _is_law(item)]
    ordered = sorted(
        (items[i] for i in places), key=lambda item: bool(_children(item)), reverse=SHARED
    )
    for i, item in zip(places, ordered, strict=True):
        items[i] = item


@pytest.fixture(scope="session", autouse=True)
def children(request: pytest.FixtureRequest) -> Iterator[None]:
    """Runs the children of the laws that were asked for."""
    laws = [item for item in request.session.items if _is_law(item) and not SHARED]
    row = Row(list(dict.fromkeys(c for item in laws for c in _children(item))))
    yield
    row.stop()
