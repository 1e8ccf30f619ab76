# `make demo` and `make test` need nothing but python3 (3.11 or newer) with venv, and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
REFERENCE ?=
# Of `make accuracy`: data sets for each cell, processes, labelled data sets, finished results.
SEEDS ?= 5
JOBS ?= 2
DATA ?=
RESULTS ?= benchmarks/results/accuracy
EXPERIMENTS ?= benchmarks/results/experiments

.PHONY: demo test lint types contracts check docs pictures bench bench-scale parity accuracy selection-study experiments \
    test-oldest clean help

help:  ## Show what can be made
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

$(VENV)/installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[report]"
	touch $@

$(VENV)/installed-dev: $(VENV)/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[dev]"
	touch $@

demo: $(VENV)/installed  ## Simulate the paper's design, fit it and show the result
	$(BIN)/mmpca demo

test: $(VENV)/installed-dev  ## Run the tests, then a part of them without compilation
	$(BIN)/python -m pytest --numprocesses 2 --dist worksteal
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -q tests/test_kernels.py tests/engine

lint: $(VENV)/installed-dev  ## Check format and style
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(VENV)/installed-dev  ## Check types
	$(BIN)/mypy

contracts: $(VENV)/installed-dev  ## Check that rooms import only from rooms below them
	$(BIN)/lint-imports

check: lint types contracts test  ## Everything that has to pass

docs: $(VENV)/installed-dev  ## Build the documentation, offline, its examples run: docs/_build/html/index.html
	$(BIN)/python -m sphinx -b html -W --keep-going -q docs docs/_build/html

pictures: $(VENV)/installed-dev  ## Draw the pictures of README and documentation anew; needs chromium and chromedriver
	$(BIN)/python docs/draw_demo.py
	$(BIN)/python docs/draw_pictures.py
	$(BIN)/python docs/draw_report.py

bench: $(VENV)/installed-dev  ## Print ratios of time and memory against rivals on the same data: make bench DATA=path
	$(BIN)/python benchmarks/bench.py $(if $(DATA),--data $(DATA)) $(OPTIONS)

bench-scale: $(VENV)/installed-dev  ## Print time and memory of large fits beside rivals: make bench-scale OPTIONS=--long
	$(BIN)/python benchmarks/scale.py $(OPTIONS)

parity: $(VENV)/installed-dev  ## Compare with runs of the authors' R package: make parity REFERENCE=path
	@test -n "$(REFERENCE)" || { echo "Say where runs of the R package are: make parity REFERENCE=path"; exit 2; }
	$(BIN)/python benchmarks/parity.py $(REFERENCE)

accuracy: $(VENV)/installed-dev  ## Compare labels with the truth, resumable: make accuracy SEEDS=5 JOBS=2 DATA=path
	$(BIN)/python benchmarks/accuracy.py --seeds $(SEEDS) --jobs $(JOBS) --results $(RESULTS) \
	    $(if $(DATA),--data $(DATA)) $(if $(REFERENCE),--reference $(REFERENCE)) $(OPTIONS)

selection-study: $(VENV)/installed-dev  ## See how often the criteria choose the true (Q, K), resumable
	$(BIN)/python benchmarks/selection_study.py --jobs $(JOBS) $(OPTIONS)

experiments: $(VENV)/installed-dev  ## Run the experiments of docs/experiments.md, resumable, and refresh its figures
	$(BIN)/mmpca reproduce intro --out $(EXPERIMENTS)/intro --jobs $(JOBS)
	$(BIN)/mmpca reproduce noise --replicates 10 --levels 0.2,0.4,0.6 --out $(EXPERIMENTS)/noise --jobs $(JOBS)
	$(BIN)/mmpca reproduce selection --replicates 10 --out $(EXPERIMENTS)/selection --jobs $(JOBS)
	$(BIN)/mmpca reproduce sample-size --replicates 10 --out $(EXPERIMENTS)/sample-size --jobs $(JOBS)
	$(BIN)/mmpca reproduce runtime --out $(EXPERIMENTS)/runtime
	$(BIN)/python docs/draw_experiments.py $(EXPERIMENTS)

test-oldest:  ## Run the tests on the oldest versions that pyproject.toml allows
	$(PYTHON) -m venv .venv-oldest
	.venv-oldest/bin/python -m pip install --quiet --constraint tests/oldest.txt --editable ".[test]"
	.venv-oldest/bin/python -m pytest -q --numprocesses 2

clean:  ## Remove what the other targets made
	rm -rf docs/_build docs/api docs/gallery docs/sg_execution_times.rst
	rm -rf $(VENV) .venv-oldest .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
