# Each target creates .venv when it is missing and reuses it when it is there.
SHELL := /bin/bash
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
MODEL ?= qwen2.5-coder-1.5b
RECORDING := tests/recordings/demo.jsonl.gz
HEADLINE := tests/recordings/headline.jsonl.gz
# What Python compiles is kept: each process of a test run would else compile all that it imports.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: setup package demo test test-slow soak live replay replay-headline numbers bench docs lint format browser clean

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --constraint constraints.txt uv || echo "there is no uv; pip goes on, which takes minutes"
	$(BIN)/python agents/machine/installer.py --constraint constraints.txt --editable '.[dev]'
	touch $@

demo: $(STAMP)  ## set up everything, then the recorded page, then the same on a real served model
	$(BIN)/hallulab demo --live --model $(MODEL)

test: $(STAMP) browser  ## the tests that one waits for, on all cores
	$(BIN)/python -m pytest

test-slow: $(STAMP) browser  ## the same protection bought again and more thoroughly: whole commands, the full table, more kills and fuzz
	$(BIN)/python -m pytest -m slow --junit-xml=.pytest_cache/slow.xml
	HYPOTHESIS_PROFILE=slow $(BIN)/python -m pytest tests/fuzz

soak: $(STAMP)  ## large runs, and faults; then the fuzz tests with fifty times as many examples, in memory where the system has a folder for that
	$(BIN)/python -m benchmarks.scale
	$(BIN)/python -m benchmarks.scale --made 100000
	$(BIN)/python -m tests.faults --kills 1000
	HYPOTHESIS_PROFILE=soak TMPDIR=$$(test -w /dev/shm && echo /dev/shm) $(BIN)/python -m pytest tests/fuzz

live: $(STAMP) browser  ## the tests that start a real vLLM
	$(BIN)/python -m pytest -m live

replay: $(STAMP)  ## the recorded run, offline, into runs/replay, and its replies judged by a second, capable judge
	$(BIN)/hallulab run -c examples/demo.yaml --model $(MODEL) --replay $(RECORDING) --fresh --out runs/replay
	$(BIN)/python -m benchmarks.second_judge runs/replay

replay-headline: $(STAMP)  ## the recorded headline experiment, offline, into runs/headline, and its tables, with a second judge
	$(BIN)/hallulab run -c examples/headline.yaml --model $(MODEL) --replay $(HEADLINE) --fresh --out runs/headline
	$(BIN)/python -m benchmarks.headline runs/headline
	$(BIN)/python -m benchmarks.second_judge runs/headline

numbers: replay  ## every number of the docs that recordings allow; tests hold the pages to them
	$(BIN)/python -m benchmarks.detectors_table --docs docs/studies/detectors.md
	$(BIN)/python -m benchmarks.capable_model --docs docs/studies/trust.md
	for module in corrected_gold planted_report; do $(BIN)/python -m benchmarks.$$module || exit 1; done

bench: $(STAMP)  ## what the runner costs (docs/studies/scale.md, docs/studies/side-by-side.md)
	$(BIN)/python -m benchmarks.orchestration
	$(BIN)/python -m benchmarks.peers --tools bare 'hallulab, plug-in' 'hallulab, endpoint' 'hallulab, callable' --killed 0

docs: $(STAMP)  ## the documentation as a site, into site/; needs no network, and a warning is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build

package: $(STAMP)  ## the source distribution and the wheel, into dist/, checked as a registry would
	$(BIN)/python agents/machine/installer.py --constraint constraints.txt --editable '.[release]'
	rm -rf dist
	$(BIN)/python -m build --no-isolation --outdir dist . >/dev/null
	$(BIN)/twine check --strict dist/*

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

browser:  ## the report page is tested in a real browser
	@command -v chromium >/dev/null && command -v chromedriver >/dev/null || { \
	  if command -v apt-get >/dev/null; then \
	    (apt-get update -qq && apt-get install -y -qq chromium chromium-driver) >/dev/null 2>&1 \
	      || echo "chromium could not be installed; the browser tests will be skipped"; \
	  else echo "no chromium and no apt-get; the browser tests will be skipped"; fi; }

clean:
	rm -rf $(VENV) site *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
