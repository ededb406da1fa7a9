# The same verbs locally and in CI. `make help` lists them.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin

.DEFAULT_GOAL := help
.PHONY: help setup run quick test test-again test-full test-portable check format docs samples pictures page page-check test-browser-full test-settings test-masker test-imports test-backups bench bench-full faults test-hosts test-pins test-fleet test-majors test-four test-buckets test-citus build smoke clean

help: ## list the verbs
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## make the virtual environment with everything the project needs
	$(PYTHON) -c 'import start; start.install("dev")'

run: ## start the embedded server and install the plugin into your hermes home
	$(PYTHON) start.py

quick: setup ## the tests that need no Postgres, in twenty seconds
	HYPOTHESIS_PROFILE=quick $(BIN)/python -m pytest -q -n 2 -m 'not large and not slow and not postgres' tests/unit tests/property

test: ## every test but the long ones, the same each time; what CI runs
	$(PYTHON) start.py test

test-again: ## the tests that failed the last time, one after the other
	$(BIN)/python -m pytest -q -n 0 -p no:randomly --last-failed --last-failed-no-failures none

test-full: setup ## the long ones too, in random order and with examples nobody has tried
	HYPOTHESIS_PROFILE=search $(BIN)/python -m pytest -q -n 4 --dist loadfile -m ''

test-portable: setup ## every test but the long ones, as on a system that is not Linux; not as root
	@test "$$(id -u)" -ne 0 || { echo "run it as an ordinary user: without /proc, root cannot hand its folders to Postgres"; exit 1; }
	HERMES_PGVECTOR_PORTABLE=1 $(BIN)/python -m pytest -q -n 4 --dist loadfile -m 'not large and not linux'

test-browser-full: setup ## every test of the page, in the dashboard too
	tests/browser/install.sh
	$(BIN)/python -m pytest -q -m '' tests/browser

page: ## build the memory page from its sources
	tests/browser/install.sh
	npm run --silent build --prefix page

page-check: ## whether the page in the package is what its sources make
	tests/browser/install.sh
	page/check.sh

check: setup ## lint, types, rooms, generated files
	$(BIN)/ruff check src testing tests bench docs start.py
	$(BIN)/ruff format --check src testing tests bench docs start.py
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python docs/generate.py --check

format: setup ## format the code
	$(BIN)/ruff format src testing tests bench docs
	$(BIN)/ruff check --fix src testing tests bench docs

docs: setup ## write the generated reference pages
	$(BIN)/python docs/generate.py

samples: setup ## write the sample outputs of the README and the quickstart from a run
	PYTHONPATH=. $(BIN)/python docs/samples.py

pictures: setup ## take the pictures of the memory page anew
	tests/browser/install.sh
	PYTHONPATH=. $(BIN)/python docs/pictures.py

bench: setup ## measure beside the published package, ten minutes
	$(BIN)/python -m bench run --size small

bench-full: setup ## the same at 100k and 1M rows
	$(BIN)/python -m bench run --size full

faults: setup ## the large fault battery: a million writes, two hundred kills
	$(BIN)/python -m tests.faults.battery

test-settings: setup ## words stay words: every setting that a role or a database can have, one at a time
	$(BIN)/python -m pytest -q -n 2 -m '' tests/database/test_hostile_settings.py

test-masker: setup ## forty tokens in a thousand dresses are masked, lines that are no secrets stay, no pattern is slow
	$(BIN)/python -m pytest -q -n 2 -m '' tests/unit/test_dressed_secrets.py tests/unit/test_hostile_text.py tests/unit/test_secrets.py

test-imports: setup ## files give no orders, and a chat that several themes share is imported into none
	$(BIN)/python -m pytest -q -n 2 -m '' tests/database/test_hostile_files.py tests/database/test_import_state.py

test-backups: setup ## backups of the embedded server, of an own Postgres and of the host, put back into each
	$(BIN)/python -m pytest -q -n 2 -m '' tests/database/test_backup.py tests/database/test_dump.py tests/host/test_copies.py

test-hosts: setup ## chats and gateways in every published hermes-agent; HOSTS= names environments of others
	$(BIN)/python -m tests.host.matrix

test-pins: setup ## whether our ranges admit what a hermes-agent pins; HOST= names its pyproject.toml
	$(BIN)/python -m tests.host.pins $(HOST)

test-fleet: setup ## behind a pooler, through a failover, and after an older dump was restored
	$(BIN)/python -m pytest -q -n 2 --dist loadfile -m '' tests/database/test_pooler.py tests/faults/test_failover.py tests/faults/test_restored_database.py

test-majors: setup ## dumps and moves with every Postgres there is; PGINSTALLS= names folders of more
	$(BIN)/python -m pytest -q -m '' tests/database/test_majors.py

test-four: ## what themes face, once more on four buckets
	$(BIN)/python -m pytest -q -n 2 --buckets 4 $(addprefix tests/database/test_,provider.py session_flows.py memory_writes.py retract.py)

test-buckets: setup test-four ## the same, and fifty hard stops of a writer there
	HYPOTHESIS_PROFILE=search $(BIN)/python -m pytest -q --timeout 1800 tests/database/test_buckets.py -k killed

test-citus: setup ## buckets on a cluster; PGINSTALL= names a Postgres with citus and vector (the folder of bin and lib)
	@test -x "$(PGINSTALL)/bin/postgres" || { echo "make test-citus PGINSTALL=FOLDER, with FOLDER/bin/postgres in it"; exit 1; }
	PGINSTALL=$(PGINSTALL) $(BIN)/python -m pytest -q -n 0 -p no:randomly tests/citus

build: setup ## build wheel and sdist
	$(BIN)/python -m build --no-isolation --outdir dist .

smoke: build ## install the wheel into a clean environment and run the tour
	rm -rf dist/smoke && $(PYTHON) -m venv dist/smoke
	dist/smoke/bin/pip install --quiet --no-compile "$$(ls dist/*.whl)[embedded]"
	dist/smoke/bin/hermes-pgvector --help > /dev/null
	dist/smoke/bin/hermes-pgvector try
	rm -rf dist/smoke

clean: ## remove what the verbs made
	rm -rf $(VENV) dist .mypy_cache .pytest_cache .ruff_cache
