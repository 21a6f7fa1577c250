# Everything a newcomer needs: Python 3.11 or newer, make and git. `make help` lists the targets.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
FITS := .python-fits
CONFIG ?= deploy/config/local.toml
SEEDS ?= 1-100
SOAKS := $(patsubst tests/soak/soak_%.py,%,$(wildcard tests/soak/soak_*.py))
SERVICES := apiserver claimcontroller nodes dynamicresources preemption framework
BENCHES := $(patsubst tests/bench/bench_%.py,%,$(wildcard tests/bench/bench_*.py))

.DEFAULT_GOAL := help
.PHONY: help setup test check format demo run oracle-test e2e-web $(addprefix run-,$(SERVICES)) simulate kep mutants jaeger kubectl protos clean $(FITS)

help: ## List the targets
	@grep -hE '^[a-z0-9%-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9%-]+):.*## /\1\t/' | \
		while IFS="$$(printf '\t')" read -r target text; do printf '  %-12s %s\n' "$$target" "$$text"; done
	@printf '  %-12s %s\n' run-SERVICE 'Start one service: $(SERVICES)'
	@printf '  %-12s %s\n' bench-NAME 'Measure (ARGS=... passes options): $(BENCHES)'
	@printf '  %-12s %s\n' soak-NAME 'Test at length (ARGS=... passes options): $(SOAKS)'

setup: $(STAMP) ## Make .venv with the locked dependencies (PYTHON=python3.13 chooses the interpreter)

# A PYTHON that is named must not be passed over in silence because .venv was made with another.
$(FITS):
ifneq ($(filter command environment,$(origin PYTHON)),)
	@$(PYTHON) -c '' 2>/dev/null || { echo "$(PYTHON) does not run here; name one that does, PYTHON=/path/to/python3.13" >&2; exit 2; }
	@test ! -x $(BIN)/python || test "$$($(BIN)/python -V)" = "$$($(PYTHON) -V)" || \
		{ echo ".venv has $$($(BIN)/python -V), not $$($(PYTHON) -V): make clean first, or leave PYTHON out" >&2; exit 2; }
endif
	@:

$(STAMP): requirements.lock pyproject.toml | $(FITS)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "earmark needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) -V 2>&1). Try: make setup PYTHON=python3.13" >&2; exit 2; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing locked dependencies into $(VENV) (a minute or two, once) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

test: setup ## Run the tests
	$(BIN)/python -m pytest -n 2 --dist loadfile

oracle-test: setup ## Compare the allocator and CEL with Kubernetes' own on random inputs (needs Go and ../shared/oracle)
	$(BIN)/python tests/oracle/compare.py $(ARGS)

e2e-web: setup ## Look at a preemption on the page, in a real Chromium (needs chromium and chromedriver)
	@command -v chromium >/dev/null && command -v chromedriver >/dev/null || \
		{ echo "chromium and chromedriver are missing; Debian: apt-get install chromium chromium-driver" >&2; exit 1; }
	$(BIN)/python -m pytest -n 1 tests/e2e/test_web.py

check: setup ## Formatter, linter, types, layers, protos, drift of generated code
	$(BIN)/ruff format --check services clients tests
	$(BIN)/ruff check services clients tests
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/buf lint protos
	@rm -rf .generated && mkdir .generated && PYTHON_BIN=$(BIN)/python ./protos/generate.sh .generated
	diff -r --exclude=__pycache__ .generated/earmark/v1 services/earmark/v1
	@rm -rf .generated

format: setup ## Format the code and apply the linter's safe fixes
	$(BIN)/ruff format services clients tests
	$(BIN)/ruff check --fix services clients tests

demo: setup ## A pod is preempted for its GPU, and the GPU is held for the preemptor (under a minute)
	@$(BIN)/earmark demo --config $(CONFIG)

run: setup ## Start all services and stay up until Ctrl-C
	@$(BIN)/earmark up --config $(CONFIG)

$(addprefix run-,$(SERVICES)): run-%: setup
	@EARMARK_CONFIG=$(CONFIG) $(BIN)/python -m earmark.$*

simulate: setup ## Play the scenario files given by FILES=...
	@test -n "$(FILES)" || { echo "say which files: make simulate FILES=tests/scenarios/binding.yaml" >&2; exit 2; }
	@$(BIN)/earmark simulate $(FILES)

kep: setup ## Print which test proves which sentence of the KEP; writes docs/kep-coverage.md
	@$(BIN)/python tests/kep/coverage.py $(ARGS)

mutants: setup ## Break the core on purpose, in many ways: which test catches which
	@$(BIN)/python tests/mutants/run.py $(ARGS)

random: setup ## Play random scenarios: SEEDS=1-1000, ARGS="--keep DIR --jobs 2"
	@$(BIN)/python tests/random/run.py $(SEEDS) $(ARGS)

bench-%: setup
	$(BIN)/python tests/bench/bench_$(subst -,_,$*).py $(ARGS)

soak-%: setup
	$(BIN)/python tests/soak/soak_$(subst -,_,$*).py $(ARGS)

jaeger: ## Start Jaeger on loopback: a built one (tests/tools/build_jaeger.sh) or its image
	@tests/tools/run_jaeger.sh

kubectl: ## Build the kubectls that tests use, from Go modules (minutes, once)
	@tests/tools/build_kubectl.sh

protos: setup ## Generate services/earmark/v1 from protos
	PYTHON_BIN=$(BIN)/python ./protos/generate.sh

clean: ## Remove .venv, caches and local state
	rm -rf $(VENV) .earmark .generated .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find services clients tests -name __pycache__ -type d -prune -exec rm -rf {} +
