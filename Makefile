# Two commands do everything on a fresh machine: `make demo` and `make test`.
# Needs Python 3.11+, make and git; no root. Everything else is installed into .venv or the cache.

SHELL := /bin/bash
.DEFAULT_GOAL := help
# What the user's shell points at must never decide what demo and tests run against; only
# CLUSTER=current on the command line asks for it by name.
ifneq ($(origin CLUSTER),command line)
unexport KUBECONFIG
endif
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
K8S ?= 1.37
CODE := operator tests demo
# What the tests run; `make control-plane` builds the rest, too.
TEST_BINARIES := etcd kube-apiserver kube-scheduler kube-controller-manager kubectl kwok helm promtool \
  prometheus mpi-operator vc-controller-manager vc-webhook-manager
# The tiers that need no control plane, on two cores. Coverage is that of unit tests and of docs:
# whatever must be covered has tests of its own.
TWO_CORES := --numprocesses 2 --dist worksteal
QUICK := --tiers unit,cycle,docs $(TWO_CORES)

.PHONY: help
help:  ## List the commands
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 18

$(STAMP): pyproject.toml constraints.txt
	@test -x $(BIN)/python || { echo "making $(VENV) (once, about a minute)"; $(PYTHON) -m venv $(VENV); }
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt 'pip>=25.1'
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt --editable . --group dev
	@touch $@

.PHONY: venv
venv: $(STAMP)  ## Make the environment in .venv

.PHONY: control-plane
control-plane: $(STAMP)  ## Build etcd, kube-apiserver and friends into the cache (K8S=1.36 or 1.35 for another minor)
	@$(BIN)/python -m tests.harness.controlplane build --k8s $(K8S)

.PHONY: up
up: $(STAMP)  ## Start a control plane and print how to use it: eval "$$(make up WITH='scheduler controller-manager')"
	@$(BIN)/python -m tests.harness.controlplane up --k8s $(K8S) --with "$(WITH)"

.PHONY: down
down: $(STAMP)  ## Stop what `make up` started
	@$(BIN)/python -m tests.harness.controlplane down

.PHONY: demo
demo: $(STAMP)  ## See gangs wait, start, finish and make way (STAY=1 keeps the cluster; CLUSTER=current for your own)
	@$(BIN)/python -m demo $(if $(filter command line,$(origin CLUSTER)),--cluster "$(CLUSTER)") $(if $(STAY),--stay)

.PHONY: lint
lint: $(STAMP)  ## Check format, style, types and dependencies
	@$(BIN)/ruff format --check $(CODE)
	@$(BIN)/ruff check $(CODE)
	@$(BIN)/mypy -p tutti
	@$(BIN)/mypy tests demo
	@$(BIN)/deptry operator

.PHONY: docs
docs: $(STAMP)  ## Build the site of docs/ into build/site; a dead link fails
	@$(BIN)/python -m mkdocs build --quiet --strict

.PHONY: test
test: $(STAMP)  ## Run every tier: unit, cycle, docs, api, e2e (about 45 minutes, plus the first build)
	@$(BIN)/python -m tests.harness.controlplane build --k8s $(K8S) $(TEST_BINARIES)
	@$(BIN)/python -m pytest --tiers unit,docs $(TWO_CORES) --cov --cov-report=term-missing:skip-covered
	@$(BIN)/python -m pytest --tiers cycle $(TWO_CORES)
	@K8S=$(K8S) $(BIN)/python -m pytest --tiers api,e2e --numprocesses 2 --dist loadfile

.PHONY: test-fast
test-fast: $(STAMP)  ## Run the tiers that need no control plane: unit, cycle, docs
	@$(BIN)/python -m pytest $(QUICK)

.PHONY: bench
bench: $(STAMP)  ## Measure the planner on clusters like real ones, without a control plane (BENCH=-h)
	@$(BIN)/python -m tests.bench.planner $(BENCH)

.PHONY: bench-e2e
bench-e2e: $(STAMP)  ## Measure Tutti beside other schedulers (BENCH='--scenarios a --scale 0.1' for a part; -h)
	@K8S=$(K8S) $(BIN)/python -m tests.bench.e2e $(BENCH)

.PHONY: load
load: $(STAMP)  ## Load your cluster with gangs and measure it (CLUSTER=current GANGS=10 MEMBERS=8 GPUS=0; LOAD=-h)
	@K8S=$(K8S) $(BIN)/python -m tests.bench.load $(if $(filter command line,$(origin CLUSTER)),--cluster "$(CLUSTER)") \
	  $(if $(GANGS),--gangs "$(GANGS)") $(if $(MEMBERS),--members "$(MEMBERS)") \
	  $(if $(GPUS),--gpus "$(GPUS)") $(LOAD)

.PHONY: soak
soak: $(STAMP)  ## Break it for hours: faults at every write, 1,400 at random, long life (SEED=2 RUNS=100)
	@$(BIN)/python -m tests.harness.controlplane build --k8s $(K8S) $(TEST_BINARIES)
	@export K8S=$(K8S); failed=0; \
	$(BIN)/python -m tests.chaos.faults $(if $(SEED),--seed $(SEED)) $(if $(RUNS),--runs $(RUNS)) || failed=1; \
	$(BIN)/python -m tests.chaos.faults --queues --series kills --series twice || failed=1; \
	$(BIN)/python -m tests.chaos.faults --foreign --series kills --series twice || failed=1; \
	$(BIN)/python -m tests.chaos.faults --hand-over --series kills --series twice || failed=1; \
	$(BIN)/python -m tests.chaos.faults --preemption --series kills --series twice --series answers || failed=1; \
	$(BIN)/python -m tests.chaos.faults --preemption --series chance --runs $(or $(RUNS),300) $(if $(SEED),--seed $(SEED)) || failed=1; \
	$(BIN)/python -m tests.chaos.faults --jobs --series kills --series answers || failed=1; \
	$(BIN)/python -m tests.chaos.faults --jobs --series chance --runs $(or $(RUNS),100) $(if $(SEED),--seed $(SEED)) || failed=1; \
	$(BIN)/python -m tests.chaos.faults --domains --series kills --series twice --series answers || failed=1; \
	$(BIN)/python -m tests.chaos.faults --claims --series kills --series twice --series answers || failed=1; \
	$(BIN)/python -m tests.chaos.replicas || failed=1; \
	$(BIN)/python -m tests.chaos.replicas --claims || failed=1; \
	$(BIN)/python -m tests.chaos.replicas --preemption || failed=1; \
	$(BIN)/python -m tests.chaos.upgrade || failed=1; \
	$(BIN)/python -m tests.chaos.soak || failed=1; \
	exit $$failed

.PHONY: conformance
conformance: $(STAMP)  ## Compare with kube-scheduler, Spark, a solver and a brute force; count collisions; scrape; run controllers; use the console
	@$(BIN)/python -m tests.harness.controlplane build --k8s $(K8S) $(TEST_BINARIES)
	@failed=0; \
	$(BIN)/python -m tests.conformance.unchanged check || failed=1; \
	$(BIN)/python -m tests.conformance.bruteforce $(if $(SEED),--seed $(SEED)) || failed=1; \
	$(BIN)/python -m tests.conformance.queues $(if $(SEED),--seed $(SEED)) || failed=1; \
	$(BIN)/python -m tests.conformance.queue_oracle $(if $(SEED),--seed $(SEED)) || failed=1; \
	$(BIN)/python -m tests.conformance.queue_oracle --strategy ilp-highs $(if $(SEED),--seed $(SEED)) || failed=1; \
	$(BIN)/python -m tests.conformance.device_oracle $(if $(SEED),--seed $(SEED)) || failed=1; \
	$(BIN)/python -m tests.conformance.device_oracle --strategy ilp-highs $(if $(SEED),--seed $(SEED)) || failed=1; \
	$(BIN)/python -m tests.conformance.preemption $(if $(SEED),--seed $(SEED)) || failed=1; \
	$(BIN)/python -m tests.conformance.oracle $(if $(SEED),--seed $(SEED)) $(if $(RUNS),--runs $(RUNS)) || failed=1; \
	$(BIN)/python -m tests.conformance.oracle --strategy ilp-highs $(if $(SEED),--seed $(SEED)) $(if $(RUNS),--runs $(RUNS)) || failed=1; \
	$(BIN)/python -m tests.conformance.topology $(if $(SEED),--seed $(SEED)) || failed=1; \
	$(BIN)/python -m tests.conformance.topology --strategy ilp-highs $(if $(SEED),--seed $(SEED)) || failed=1; \
	K8S=$(K8S) $(BIN)/python -m tests.conformance.against || failed=1; \
	K8S=$(K8S) $(BIN)/python -m tests.conformance.domains $(if $(SEED),--seed $(SEED)) || failed=1; \
	K8S=$(K8S) $(BIN)/python -m tests.conformance.differential --controls $(if $(SEED),--seed $(SEED)) || failed=1; \
	K8S=$(K8S) $(BIN)/python -m tests.conformance.selectors $(if $(SEED),--seed $(SEED)) || failed=1; \
	K8S=$(K8S) $(BIN)/python -m tests.conformance.collisions || failed=1; \
	K8S=$(K8S) $(BIN)/python -m tests.conformance.spark_sizes || failed=1; \
	K8S=$(K8S) $(BIN)/python -m tests.conformance.spark_jobs || failed=1; \
	K8S=$(K8S) $(BIN)/python -m tests.conformance.prometheus || failed=1; \
	K8S=$(K8S) $(BIN)/python -m tests.conformance.controllers || failed=1; \
	K8S=$(K8S) $(BIN)/python -m tests.conformance.console || failed=1; \
	exit $$failed

.PHONY: image-check
image-check: $(STAMP)  ## Carry out the Dockerfile without a Docker engine, try and install the result (root; needs debootstrap)
	@$(BIN)/python -m tests.harness.controlplane build --k8s $(K8S) $(TEST_BINARIES)
	@K8S=$(K8S) $(BIN)/python -m tests.packaging.image

.PHONY: release
release: $(STAMP)  ## Build wheel, sdist, chart, SBOM and krew archive of the last commit into dist/ (URL=, HOMEPAGE=: krew)
	@$(BIN)/python -m tests.harness.controlplane build --k8s $(K8S) helm
	@$(BIN)/python -m tests.packaging.release build \
	  $(if $(filter command line,$(origin URL)),--url "$(URL)" --homepage "$(HOMEPAGE)")

.PHONY: lock
lock: $(STAMP)  ## Pin what the image holds anew, from constraints.txt; list licences (locks/, docs/dependencies.md)
	@$(BIN)/python -m tests.packaging.release lock

.PHONY: clean
clean:  ## Remove the environment and what was built in the checkout; the cache stays
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage
