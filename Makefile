# make demo    install weft into .venv and see the newest of three messages win
# make test    install what the tests need and run them
# make soak    try what takes long in full: ten minutes of kill -9 at random, ten workers and 50,000 runs, every point of every
#              fault, every order of two runs; an hour or more
# make coverage    the same, and which lines and branches of weft no test goes through
# make lint types contracts    the other checks; make clean    remove what was made
#
# Needs Python 3.11 to 3.13 and make. PYTHON=python3.13 chooses another Python, with an environment of its own.

PYTHON ?= python3
VENV := .venv$(if $(filter-out python3,$(notdir $(PYTHON))),-$(notdir $(PYTHON)))
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --root-user-action=ignore
# Two processes even on one core: the tests wait for the database more than they compute.
WORKERS ?= $(shell n=$$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2); [ $$n -lt 2 ] && n=2; [ $$n -gt 8 ] && n=8; echo $$n)
TESTS ?=

.PHONY: demo test soak coverage lint types contracts clean
.DELETE_ON_ERROR:

demo: $(VENV)/installed
	@$(BIN)/python examples/newest-wins/demo.py

test: $(VENV)/installed-for-tests
	@$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal $(TESTS)

coverage: $(VENV)/installed-for-tests
	@$(BIN)/python -m coverage erase
	@$(BIN)/python -m coverage run -m pytest -n $(WORKERS) --dist worksteal $(TESTS)
	@$(BIN)/python -m coverage combine --quiet
	@$(BIN)/python -m coverage report

SOAK := tests/engine/test_soak.py tests/engine/test_many_workers.py tests/engine/faults tests/store/test_steering_model.py tests/store/test_state_machine.py tests/store/test_plans.py tests/store/test_plans_waits.py

soak: $(VENV)/installed-for-tests
	@$(BIN)/python -m pytest -n $(WORKERS) --soak --rounds 2500 --timeout 14400 $(SOAK)

lint: $(VENV)/installed-for-tests
	@$(BIN)/python -m ruff check .

types: $(VENV)/installed-for-tests
	@$(BIN)/python -m mypy

contracts: $(VENV)/installed-for-tests
	@$(BIN)/lint-imports

clean:
	rm -rf .venv .venv-* build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage*
	find weft catalog examples tests -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/made:
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' || { \
	  echo "weft needs Python 3.11, 3.12 or 3.13, and $(PYTHON) is not one. Name one: make PYTHON=python3.13" >&2; \
	  exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { \
	  version=$$($(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])'); \
	  echo "$(PYTHON) cannot make virtual environments. On Debian or Ubuntu: apt-get install python$$version-venv" >&2; \
	  exit 1; }
	@echo "Making $(VENV) ..."
	@$(PYTHON) -m venv $(VENV)
	@touch $@

# Installed as a link to this folder, so that what runs and what is tested is what stands here.
$(VENV)/installed: $(VENV)/made pyproject.toml
	@echo "Installing weft into $(VENV) ..."
	@$(INSTALL) --editable .
	@touch $@

$(VENV)/installed-for-tests: $(VENV)/made pyproject.toml
	@echo "Installing weft and what its tests need into $(VENV) ..."
	@$(INSTALL) --editable '.[test]'
	@touch $@ $(VENV)/installed
