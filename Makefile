# Thin on purpose: every target is one command of infra.local, which explains itself and works without make.
PYTHON ?= python3
LOCAL := $(PYTHON) -m infra.local
# make up S3=1 keeps files in a local S3 server; make test ARGS="-k name" passes options on.
UP := $(if $(S3),--with-s3) $(if $(QUIET),--quiet)
export PYTHONPATH := $(CURDIR)

.PHONY: help up up-detached down status setup test test-faults check bench \
	bench-inference bench-router bench-parse bench-poison bench-retrieval bench-citations doctor clean clean-data lock env
.DEFAULT_GOAL := help

help:
	@echo "make up           install what is missing, start everything, print the URL (Ctrl-C stops it)"
	@echo "make up-detached  the same in the background; make status, make down"
	@echo "make test         check, then all tests"
	@echo "make check        formats, lint, types, layers"
	@echo "make test-faults  kill processes under load and count what was lost"
	@echo "make bench        measure, print, write build/bench/*.json"
	@echo "make bench-inference   the same for the inference tier alone: admission, overload, failover"
	@echo "make bench-router DATA=DIR   train and judge the router's estimate on labelled questions (docs/routing.md)"
	@echo "make bench-parse DATA=DIR    facts that must be found in difficult documents, and how fast files are read (docs/files.md)"
	@echo "make bench-poison            files made to harm: who dies, how long, how much memory (docs/files.md)"
	@echo "make bench-retrieval DATA=DIR  judge search on public sets (docs/retrieval.md)"
	@echo "make bench-citations         wrong citations that are noticed; DATA=DIR adds real answers"
	@echo "make env         secrets for docker compose (.env)"
	@echo "make doctor       what is wrong with this installation, and what to do"
	@echo "make clean        remove what was installed and built; make clean-data also what people stored"

up:
	@$(LOCAL) up $(UP)

up-detached:
	@$(LOCAL) up --detach $(UP)

down:
	@$(LOCAL) down

status:
	@$(LOCAL) status $(ARGS)

setup:
	@$(LOCAL) setup --tests

test:
	@$(LOCAL) test $(ARGS)

test-faults:
	@$(LOCAL) test-faults $(ARGS)

check:
	@$(LOCAL) check $(ARGS)

bench:
	@$(LOCAL) bench $(ARGS)

bench-inference:
	@$(LOCAL) bench admission inference overload failover

bench-router:
	@$(if $(DATA),PARLEY_BENCH_ROUTER="$(abspath $(DATA))") $(LOCAL) bench router $(ARGS)

bench-parse:
	@$(if $(DATA),PARLEY_BENCH_PARSE="$(abspath $(DATA))") $(LOCAL) bench parse files tables ingest $(ARGS)

bench-poison:
	@$(LOCAL) bench poison $(ARGS)

bench-retrieval:
	@$(if $(DATA),PARLEY_BENCH_RETRIEVAL="$(abspath $(DATA))") $(LOCAL) bench retrieval $(ARGS)

bench-citations:
	@$(if $(DATA),PARLEY_BENCH_CITATIONS="$(abspath $(DATA))") $(LOCAL) bench citations $(ARGS)

doctor:
	@$(LOCAL) doctor $(ARGS)

env:
	@$(LOCAL) env

lock:
	@$(LOCAL) lock

clean:
	@$(LOCAL) clean

clean-data:
	@$(LOCAL) clean --data
