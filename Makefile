# make demo and make test for newcomers; both make .venv first. PYTHON may name another interpreter (>= 3.11).
PYTHON ?= python3
BIN := .venv/bin
PYTEST := $(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder --durations=10

.PHONY: demo test test-slow docs clean

demo: .venv/installed
	$(BIN)/python -m experiments.pipeline --task=digits --output_dir=runs/demo

test: .venv/installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(PYTEST) -m 'not slow'

# minutes of simulation, processes that are started and killed, the notebooks
test-slow: .venv/installed-test .venv/installed-docs
	$(PYTEST) -m slow

docs: .venv/installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

.venv/installed: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("irtjax needs Python 3.11 or newer, " + sys.executable + " is older: make PYTHON=python3.12" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	touch $@

.venv/installed-%: .venv/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[$*]'
	touch $@

clean:
	rm -rf .venv runs site
