"""The lock under which equal types become one object."""

from __future__ import annotations

import os
import threading

lock = threading.RLock()  # taken again if a finalizer runs while it is held

os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release)
