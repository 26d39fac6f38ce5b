# make demo and make test for newcomers; both make .venv first. PYTHON may name another interpreter (>= 3.11).
PYTHON ?= python3
BIN := .venv/bin
TESTS := -m pytest -n 2 --dist loadfile --no-loadscope-reorder --durations=10
PYTEST := $(BIN)/python $(TESTS)
PIP_INSTALL := -m pip install --quiet --disable-pip-version-check
# extra for the accelerator of `make gpu`; `make gpu ACCELERATOR=` takes the jax that is in .venv
ACCELERATOR ?= cuda
RESULTS := benchmarks/results
# the chip whose compiler's table `make gpu` puts beside the times; `make gpu ACCELERATOR= COMPILED=v5e` on a TPU
COMPILED ?= h100

.PHONY: demo test test-slow test-oldest test-newest gpu docs dist clean

demo: .venv/installed
	$(BIN)/python -m experiments.pipeline --task=digits --output_dir=runs/demo

test: .venv/installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(PYTEST) -m 'not slow'

# minutes of simulation, processes that are started and killed, the notebooks, the wheel in an environment of its own
test-slow: .venv/installed-test .venv/installed-docs .venv/installed-dist
	$(PYTEST) -m slow

# the lowest versions that pyproject.toml allows; they have wheels for Python 3.11
test-oldest:
	$(PYTHON) -m venv --clear .venv-oldest
	.venv-oldest/bin/python $(PIP_INSTALL) uv
	.venv-oldest/bin/uv pip install --quiet --python .venv-oldest/bin/python --resolution lowest-direct -e '.[test]'
	.venv-oldest/bin/python $(TESTS) -m 'not slow'

# the newest versions that there are
test-newest:
	$(PYTHON) -m venv --clear .venv-newest
	.venv-newest/bin/python $(PIP_INSTALL) --upgrade --upgrade-strategy eager -e '.[test]'
	.venv-newest/bin/python $(TESTS) -m 'not slow'

# on a machine with a GPU or TPU: docs/guide/accelerators.md
gpu: .venv/installed-test $(if $(ACCELERATOR),.venv/installed-$(ACCELERATOR))
	mkdir -p $(RESULTS)
	$(BIN)/python -c 'import jax, sys; print("jax " + jax.__version__, *jax.devices(), sep="\n"); \
		sys.exit("no GPU or TPU here" if jax.default_backend() == "cpu" else 0)' > $(RESULTS)/machine.txt
	$(BIN)/python -m pytest -m accelerator tests/test_on_accelerator.py > $(RESULTS)/tests.txt || (cat $(RESULTS)/tests.txt; false)
	$(BIN)/python -m benchmarks.likelihood --num_subjects=1000 --num_items=100000 > $(RESULTS)/likelihood.txt
	$(BIN)/python -m benchmarks.crowd_scale > $(RESULTS)/crowd_scale_mml.txt
	$(BIN)/python -m benchmarks.crowd_scale --model=1pl --estimator=svi > $(RESULTS)/crowd_scale_svi.txt
	$(BIN)/python -m benchmarks.crowd --task=digits --network=mlp > $(RESULTS)/crowd_mlp.txt
	$(BIN)/python -m benchmarks.crowd --task=digits --network=lenet --width=16 > $(RESULTS)/crowd_lenet.txt
	$(BIN)/python -m benchmarks.scaling --num_items=4000000 --output_dir=$(RESULTS)/scaling > $(RESULTS)/scaling.txt
	$(BIN)/python -m benchmarks.compiled --chips=$(COMPILED) --output_dir=$(RESULTS)/compiled > $(RESULTS)/compiled.txt
	cat $(RESULTS)/*.txt

docs: .venv/installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

# a wheel and a source distribution, in dist/
dist: .venv/installed-dist
	rm -rf dist
	$(BIN)/python -m build

.venv/installed: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("irtjax needs Python 3.11 or newer, " + sys.executable + " is older: make PYTHON=python3.12" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv .venv
	$(BIN)/python $(PIP_INSTALL) -e .
	touch $@

.venv/installed-%: .venv/installed
	$(BIN)/python $(PIP_INSTALL) -e '.[$*]'
	touch $@

clean:
	rm -rf .venv .venv-oldest .venv-newest build dist runs site
