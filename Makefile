# Two targets for newcomers, demo and test; both make .venv first. PYTHON may name another interpreter (>= 3.11).
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test clean

demo: .venv/installed
	$(BIN)/python -m experiments.pipeline --task=digits --output_dir=runs/demo

test: .venv/installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

.venv/installed: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("irtjax needs Python 3.11 or newer, " + sys.executable + " is older: make PYTHON=python3.12" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	touch $@

.venv/installed-test: .venv/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[test]'
	touch $@

clean:
	rm -rf .venv .jax_cache runs
