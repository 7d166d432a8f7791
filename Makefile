# Two commands matter: `make book` and `make test`. `make` alone lists all of them.
.DEFAULT_GOAL := help
.PHONY: help book notebooks lab pdf test check portable execute chapter grown serve format lint lock address clean env

# The first Python that is new enough; `make PYTHON=/path/to/python ...` chooses another.
PYTHON ?= $(shell for p in python3.13 python3.12 python3.11 python3 python; do \
	"$$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && echo "$$p" && exit; \
	done; for p in python3 python; do command -v "$$p" >/dev/null 2>&1 && echo "$$p" && exit; done)
PORT ?= 8000
.NOTPARALLEL: # one installation at a time
BIN := .venv/bin
comma := ,

# Threads that wait for each other make small models many times slower: one thread for each kernel.
export OMP_NUM_THREADS := 1
export MKL_NUM_THREADS := 1
export OPENBLAS_NUM_THREADS := 1

help: ## list the commands
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## (.*)/  make \1|\2/' \
		| awk -F'|' '{printf "%-17s%s\n", $$1, $$2}'

env: .venv/.installed ## make .venv and install everything into it, without running anything

# Two sets in one .venv: what the site needs, and everything. A stamp says which is there.
.venv/.installed: requirements.txt requirements-site.txt pyproject.toml book/pyproject.toml
.venv/.installed-site: requirements-site.txt
.venv/.installed .venv/.installed-site:
	@if [ -z "$(PYTHON)" ] || ! command -v "$(PYTHON)" >/dev/null 2>&1; then \
		echo "No Python was found$(if $(PYTHON),$(comma) at $(PYTHON)): install Python 3.11 or newer and run make again, or name one with 'make PYTHON=/path/to/python3.11 ...'." >&2; \
		exit 1; fi
	@"$(PYTHON)" tools/bootstrap.py $<

book: .venv/.installed-site ## build the site from the committed outputs and say where it lies
	@$(BIN)/python tools/build_site.py

notebooks: .venv/.installed-site ## write the notebooks that open in Jupyter, Colab and Binder (part of make book)
	@$(BIN)/python tools/build_site.py --if-stale
	@echo "The notebooks: $(CURDIR)/_build/html/notebooks (notebooks.zip has all of them)"

lab: env ## open the notebooks in JupyterLab, in a folder of your own (TO=my-notebooks)
	@$(BIN)/python tools/lab.py $(if $(TO),--to "$(TO)")

pdf: env ## print the site with Chromium: the book and each chapter as PDF, linked from every page
	@$(BIN)/python tools/make_pdf.py

test: env ## run every test: the package, every notebook, figures, style, the site
	@$(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder

check: env ## run what a change can break, and say why (BASE= names what to compare with)
	@$(BIN)/python tools/check.py $(if $(BASE),--base "$(BASE)")

portable: env ## run all notebooks under a matrix of processors, threads and Pythons (PYTHONS= names more)
	@$(BIN)/python -m tformer_book.kit.experiments.portable $(if $(PYTHONS),--pythons $(PYTHONS))

execute: env ## run all notebooks afresh, in order, and save their outputs
	@$(BIN)/python tools/execute.py

chapter: env ## make a new chapter that walks (NAME=slug TITLE="..." AFTER=chapter)
	@$(BIN)/python tools/new_chapter.py "$(NAME)" "$(TITLE)" $(if $(AFTER),--after "$(AFTER)")

grown: env ## collect the code of Part I into one script, _build/grown.py: a transformer that trains and writes
	@$(BIN)/python tools/grown.py

serve: env ## serve the built site on this machine (PORT=8000)
	@if [ ! -e _build/html/index.html ]; then \
		echo "There is no site yet: run 'make book' first." >&2; exit 1; fi
	@echo "http://127.0.0.1:$(PORT)/ (Ctrl-C ends it)"
	@$(BIN)/python -m http.server --bind 127.0.0.1 --directory _build/html $(PORT)

format: env ## format the code, notebooks too
	@$(BIN)/python -m ruff format .
	@$(BIN)/python tools/format_notebooks.py

lint: env ## check style, formatting (notebooks too), floors of imports and types
	@$(BIN)/python -m ruff check .
	@$(BIN)/python -m ruff format --check .
	@$(BIN)/python tools/format_notebooks.py --check
	@$(BIN)/lint-imports --no-cache
	@mkdir -p _build/link && ln -sfn ../../book _build/link/tformer_book
	@$(BIN)/python -m mypy

lock: env ## pin what pyproject.toml asks for (UPGRADE=1: the newest versions)
	@$(BIN)/python tools/lock.py $(if $(UPGRADE),--upgrade)

address: env ## set the repository's address wherever it stands (URL=https://github.com/NAME/BOOK)
	@$(BIN)/python tools/address.py "$(URL)"

clean: ## remove everything built, except .venv
	rm -rf _build build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +
