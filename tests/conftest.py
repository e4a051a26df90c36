"""What every test runs under: a kernel cache of its own, shared by the session's processes."""

import atexit
import os
import shutil
import tempfile

if "PYTEST_XDIST_WORKER" not in os.environ:  # a worker is given its controller's
    os.environ["WEFT_CACHE_DIR"] = tempfile.mkdtemp(prefix="weft-test-kernels-")
    atexit.register(shutil.rmtree, os.environ["WEFT_CACHE_DIR"], ignore_errors=True)
os.environ.pop("WEFT_CACHE", None)
