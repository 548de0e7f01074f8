# `make up` runs Headrace on this machine, `make test` tests it; both install what they need first.
# Needs Python >= 3.11 (PYTHON=...), make, and a package registry; nothing is built from source, nothing outside this
# folder is changed.

SHELL := /bin/sh
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
VENV := .venv
RUN := $(VENV)/bin/python
# Containers often forbid Python to keep what it compiled: each of the tests' hundreds of processes would compile it anew.
export PYTHONDONTWRITEBYTECODE :=
PEERS := $(basename $(notdir $(wildcard platform/headrace_dev/bench/peers/*.txt)))

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | sort

install: ## the environment: .venv, exactly what requirements.lock says
	@.ci/environment $(VENV) requirements.lock

up: ## everything on this machine, with a demo tenant; Ctrl-C stops it
	@[ -e $(VENV)/installed ] || .ci/preflight $(ARGS)
	@$(MAKE) install
	@exec $(RUN) manage.py up $(ARGS)

# What `make test` runs: the rest has targets of its own. Files in the order of `testpaths`, the longest of them first, so
# that all processes end at about one time.
HERE := not bench and not chaos and not sglang

test: install ## the tests, with lint, types and layers (ARGS="..." runs pytest alone, with these arguments)
ifdef ARGS
	$(RUN) -m pytest $(ARGS)
else
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m mypy .
	$(VENV)/bin/lint-imports
	$(RUN) -m pytest -q -n 4 --dist loadfile --no-loadscope-reorder -m 'not alone and $(HERE)' || failed=1; \
	$(RUN) -m pytest -q -m 'alone and $(HERE)' || failed=1; exit $${failed:-0}
endif

sglang: ## the environment of the real SGLang on a CPU: .venv-sglang, about 2 GB
	@.ci/environment .venv-sglang engines/launch/sglang_requirements.txt engines/launch/sglang_requirements_no_deps.txt
	@PYTHONPATH=$(CURDIR):$(CURDIR)/engines/launch/sglang_shims \
		.venv-sglang/bin/python -m engines.launch.sglang_convert .venv-sglang/model

test-sglang: install ## the tests against the real SGLang (SGLANG_URL=... names a running one)
	@[ -n "$$SGLANG_URL" ] || $(MAKE) sglang
	$(RUN) -m pytest -m sglang $(ARGS)

test-bench: install ## the tests of benchmarks from end to end, with tiny parameters
	$(RUN) -m pytest -m bench $(ARGS)

test-chaos: install ## 10,000 requests while everything is killed or frozen, attacked, upgraded (CHAOS_REQUESTS=..., CHAOS_SEED=...)
	$(RUN) -m pytest -m chaos -s $(ARGS)

bench-peers: $(PEERS:%=bench-peer-%) ## the routers that `manage.py bench` compares with

bench-peer-%:
	@.ci/environment .venv-peers-$* platform/headrace_dev/bench/peers/$*.txt

LOCK := .venv-uv/bin/uv pip compile pyproject.toml --python-version 3.11 --universal --generate-hashes --quiet \
	--no-emit-index-url --no-annotate --no-header

lock: ## write the lock files anew from pyproject.toml: all of it, and what the image needs
	@.ci/environment .venv-uv .ci/uv.txt
	$(LOCK) --upgrade --group embedded --group dev -o requirements.lock
	$(LOCK) --upgrade -c requirements.lock -o platform/requirements.lock

clean: ## remove the environments and caches; .headrace, the state of `make up`, stays
	rm -rf .venv .venv-* .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis

.PHONY: help install up test test-bench test-chaos sglang test-sglang bench-peers lock clean
