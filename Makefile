# Each target sets up what it needs, from nothing. PYTHON chooses the interpreter, ARGS what `make demo` adds.
PYTHON ?= python3
DEMO := .venv-demo
TEST := .venv-test
BENCH := .venv-bench

.PHONY: demo test tiny lint format bench clean

demo: $(DEMO)/ready
	$(DEMO)/bin/weft demo $(ARGS)

test: $(TEST)/ready
	$(TEST)/bin/python -m pytest --numprocesses 2 --dist loadgroup -m "not alone"
	$(TEST)/bin/python -m pytest -m alone

tiny: $(TEST)/ready
	$(TEST)/bin/python -m pytest -m tiny

lint: $(TEST)/ready
	$(TEST)/bin/ruff check .
	$(TEST)/bin/ruff format --check .
	$(TEST)/bin/mypy

format: $(TEST)/ready
	$(TEST)/bin/ruff check --fix .
	$(TEST)/bin/ruff format .

bench: $(BENCH)/ready
	$(BENCH)/bin/python -m benchmarks.eager

$(DEMO)/ready: EXTRA :=
$(TEST)/ready: EXTRA := [test]
$(BENCH)/ready: EXTRA := [bench]

%/ready: pyproject.toml
	rm -rf $*
	$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("Weft needs Python 3.11 or newer: make PYTHON=python3.11 ...")'
	$(PYTHON) -m venv $*
	$*/bin/python -m pip install --quiet --disable-pip-version-check --editable ".$(EXTRA)"
	touch $@

clean:
	rm -rf $(DEMO) $(TEST) $(BENCH) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find weft tests -name __pycache__ -type d -prune -exec rm -rf {} +
