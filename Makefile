# Each target sets up what it needs, from nothing. PYTHON chooses the interpreter, ARGS what `make demo` adds.
PYTHON ?= python3
DEMO := .venv-demo
TEST := .venv-test
BENCH := .venv-bench
DOCS := .venv-docs

.PHONY: demo test tiny lint format bench docs clean

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
	$(TEST)/bin/mypy --config-file= --check-untyped-defs --ignore-missing-imports examples

format: $(TEST)/ready
	$(TEST)/bin/ruff check --fix .
	$(TEST)/bin/ruff format .

bench: $(BENCH)/ready
	$(BENCH)/bin/python -m benchmarks.eager

docs: $(DOCS)/ready
	NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/mkdocs build --strict --quiet
	@echo "The site is site/index.html; with a search box: $(PYTHON) -m http.server --directory site"

$(DEMO)/ready: EXTRA :=
$(TEST)/ready: EXTRA := [test]
$(BENCH)/ready: EXTRA := [bench]
$(DOCS)/ready: EXTRA := [docs]

%/ready: pyproject.toml
	rm -rf $*
	$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("Weft needs Python 3.11 or newer: make PYTHON=python3.11 ...")'
	$(PYTHON) -m venv $*
	$*/bin/python -m pip install --quiet --disable-pip-version-check --editable ".$(EXTRA)"
	touch $@

clean:
	rm -rf $(DEMO) $(TEST) $(BENCH) $(DOCS) site build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find weft tests -name __pycache__ -type d -prune -exec rm -rf {} +
