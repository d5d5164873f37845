# `make run` and `make test` work as the first command in a fresh clone. They need Python 3.11 or later, make and a
# package index.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check install --constraint constraints.txt
FLEET ?= examples/fleet.toml
CLOCK ?= system
# The listen addresses as HOST:PORT. Default: the settings (127.0.0.1:8169 and 127.0.0.1:8170).
GUEST ?=
OPERATOR ?=
# The console's page and its checks. The virtual environment has Node.js; package.json lists the packages.
WEB := src/forewarn/console/web
WEB_FILES := $(WEB) tests/console_unit package.json tsconfig.json
NODE := $(BIN)/node
PRETTIER := $(NODE) node_modules/prettier/bin/prettier.cjs --log-level warn
SERVED = $(if $(GUEST),--guest $(GUEST)) $(if $(OPERATOR),--operator $(OPERATOR))

.PHONY: run setup test test-long test-long-histories test-long-examples test-long-attacks coverage check bench bench-scale bench-night reference docs test-mutants test-model test-system test-machines test-openstack machines wheel test-page test-console screenshots format clean

run: $(VENV)/.server
	$(strip $(BIN)/forewarn serve --fleet $(FLEET) --clock $(CLOCK) $(SERVED))

setup: $(VENV)/.dev

# More workers than most computers have cores, because many tests wait for a clock or for another process. The quick
# tests come last.
TESTED := tests/integration tests/contract tests/unit -n 5 --dist worksteal

PAGE_TESTED := tests/system/console -n 2 --dist worksteal

# Most of these tests wait for processes. The tests of one file share their set-up, so they run in one worker.
SYSTEM_TESTED := tests/system tests/hostile --ignore tests/system/console -n 3 --dist loadfile

# Allow Python to cache bytecode. Otherwise each of the many processes of the tests would compile forewarn again.
test test-long-histories test-long-examples test-long-attacks coverage test-mutants test-model test-system test-machines test-openstack test-page test-console screenshots: export PYTHONDONTWRITEBYTECODE :=

test: $(VENV)/.dev
	$(NODE) --test --test-force-exit --test-reporter dot 'tests/console_unit/*.test.js'
	$(BIN)/pytest $(TESTED)

# The same tests with far more random examples, histories and kills. CONTRIBUTING.md has the numbers.
test-long: test-long-histories test-long-examples test-long-attacks

# Random histories of fleets, rollouts, failing hosts and unruly drivers.
HISTORIES := $(addprefix tests/integration/service/,test_rules.py test_rollout_rules.py test_unruly_driver.py)
test-long-histories: $(VENV)/.dev
	FOREWARN_TEST_LONG=1 $(BIN)/pytest $(HISTORIES) -n 3

test-long-examples: $(VENV)/.dev
	FOREWARN_TEST_LONG=1 $(BIN)/pytest $(TESTED) $(addprefix --ignore ,$(HISTORIES))

test-long-attacks: $(VENV)/.dev
	FOREWARN_TEST_LONG=1 $(BIN)/pytest tests/hostile

# The unit tests cover every branch of core. Random examples do not count, because they differ in each run.
coverage: $(VENV)/.dev
	$(BIN)/coverage run -m pytest --quiet -n 0 -m "not hypothesis" tests/unit
	$(BIN)/coverage report

# Break each rule in one function at a time; a test must fail each time. MUTANTS="name …" selects some.
test-mutants: $(VENV)/.dev
	$(BIN)/python -m tests.mutants $(MUTANTS)

# Search the model of rules 1, 4, 5 and 11 with Spin, and replay its traces on core. MODEL="mutants replays" selects parts.
test-model: $(VENV)/.dev $(if $(shell command -v spin && command -v gcc),,$(VENV)/.spin)
	$(BIN)/python -m tests.model $(MODEL)

check: $(VENV)/.dev node_modules/.installed $(WEB)/generated/api.d.ts
	$(BIN)/ruff format --check src tests bench packaging
	$(BIN)/ruff check src tests bench packaging
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/codespell src tests bench packaging examples docs *.md
	$(BIN)/python -m tests.prose
	$(MAKE) --silent docs
	$(PRETTIER) --check $(WEB_FILES)
	$(NODE) node_modules/typescript/bin/tsc

format: $(VENV)/.dev node_modules/.installed
	$(BIN)/ruff format src tests bench packaging
	$(BIN)/ruff check --fix src tests bench packaging
	$(PRETTIER) --write $(WEB_FILES)

bench: $(VENV)/.dev
	$(BIN)/python -m bench --json bench.json

# From a thousand machines to a million. Needs some minutes and a few gigabytes; draws the chart of
# docs/contributing/scale.md.
bench-scale: $(VENV)/.dev
	$(BIN)/python -m bench.scale --docs docs/contributing

# A night of maintenance over five hundred hosts on the manual clock. Needs some minutes.
bench-night: $(VENV)/.dev
	$(BIN)/python -m bench.night --docs docs/contributing

# Write the generated parts of docs/reference. A test compares them with the code.
reference: $(VENV)/.dev
	$(BIN)/python -m tests.helpers.documents.reference

# Build the documentation site in build/site. A broken link is an error. `python3 -m http.server -d build/site` serves it.
docs: $(VENV)/.dev
	$(BIN)/python packaging/docs_site.py
	$(BIN)/zensical build --strict > build/site.log 2>&1 || { cat build/site.log; exit 1; }

# Build a source archive and a wheel in dist for a release. Both contain the console's page as a bundle.
wheel: $(VENV)/.dev node_modules/.installed
	FOREWARN_CONSOLE=bundled $(BIN)/python -m hatchling build -t sdist -t wheel

# Tests that need root or Debian packages, tests with clients of other projects, and attacks.
test-system: $(VENV)/.system $(VENV)/.machines $(VENV)/.browser node_modules/.installed
	$(BIN)/pytest $(PAGE_TESTED)
	$(BIN)/pytest $(SYSTEM_TESTED)

# Tests with real hypervisors and guests, and their faults (tests/machines/bed). MACHINES="-k reboot" selects some.
test-machines: machines
	$(BIN)/pytest tests/machines $(MACHINES)

machines: $(VENV)/.machines

# The OpenStack driver with a real nova in its own virtual environment. The installation needs some minutes.
test-openstack: $(VENV)/.openstack
	$(BIN)/pytest tests/openstack $(OPENSTACK)

# The console in a browser, if Debian's Chromium is already installed. PAGE="-k fleet" selects some.
test-page: $(VENV)/.browser node_modules/.installed
	$(BIN)/pytest $(PAGE_TESTED) $(PAGE)

# Slow tests of the console: first views, updates, memory, screenshots.
test-console: $(VENV)/.browser node_modules/.installed
	$(BIN)/pytest tests/console_long

# Take the screenshots of docs/console. The fleet is the same each time.
screenshots: $(VENV)/.browser node_modules/.installed
	FOREWARN_SCREENSHOTS=docs/console $(BIN)/pytest tests/console_long/test_pictures.py

clean:
	rm -rf $(VENV) node_modules $(WEB)/generated build dist .cache .mypy_cache .ruff_cache .pytest_cache .coverage .hypothesis .import_linter_cache
	find src tests bench -name __pycache__ -prune -exec rm -r {} +

# Each set of packages has a stamp file, so that make quickly sees when nothing needs to be installed.
$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "forewarn needs Python 3.11 or later: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.server: pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "Installing forewarn into $(VENV) ..."
	$(PIP) --editable '.[server]'
	@touch $@

$(VENV)/.dev: pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "Installing forewarn and the packages of its tests into $(VENV) ..."
	$(PIP) --editable '.[server,dev]'
	@touch $@ $(VENV)/.server

# Use the system's certificates. Behind a proxy that inspects TLS, Node.js's own list is not enough.
node_modules/.installed: package.json .npmrc | $(VENV)/.dev
	@echo "Installing the checks of the console into node_modules ..."
	NODE_OPTIONS=--use-system-ca $(BIN)/npm install --loglevel error --fetch-retries 1 --fetch-retry-maxtimeout 10000 || { \
	  echo "npm could not install the packages of package.json; check that it reaches its registry, or name a mirror (npm_config_registry=URL)"; exit 1; }
	@touch $@

# The file is rewritten only if it has changed. Then the types are generated again.
node_modules/openapi.json: FORCE | $(VENV)/.dev node_modules/.installed
	@$(BIN)/python -m tests.helpers.documents.openapi_file $@

$(WEB)/generated/api.d.ts: node_modules/openapi.json
	$(NODE) node_modules/openapi-typescript/bin/cli.js $< --output $@ > node_modules/types.log || { cat node_modules/types.log; exit 1; }

FORCE:

CREATECLUSTER := /etc/postgresql-common/createcluster.d

# Packages in unpacked.txt are only unpacked, so that they do not replace another kubectl, for example, and so that
# etcd-server's package does not start a server. The file in $(CREATECLUSTER) prevents PostgreSQL's package from creating
# and starting a server.
$(VENV)/.system: $(VENV)/.dev tests/system/packages.txt tests/system/unpacked.txt tests/system/requirements.txt
	@test "$$(id -u)" = 0 || { echo "make test-system installs Debian packages: run it as root"; exit 1; }
	mkdir -p $(CREATECLUSTER) && echo 'create_main_cluster = false' > $(CREATECLUSTER)/forewarn.conf
	apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $$(cat tests/system/packages.txt) > /dev/null; \
	  code=$$?; rm $(CREATECLUSTER)/forewarn.conf; rmdir --ignore-fail-on-non-empty $(CREATECLUSTER); exit $$code
	cd $(VENV) && for name in $$(cat $(CURDIR)/tests/system/unpacked.txt); do \
	  apt-get download -qq $$name && dpkg -x $${name}_*.deb $$name && rm $${name}_*.deb || exit 1; done
	$(PIP) --requirement tests/system/requirements.txt
	@touch $@

# Debian's kernel, busybox and guest agent are only for the guests, so they are unpacked and not installed.
$(VENV)/.hypervisors: tests/machines/packages.txt tests/machines/unpacked.txt | $(VENV)/bin/python
	@test "$$(id -u)" = 0 || { echo "make test-machines installs Debian packages: run it as root"; exit 1; }
	apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$(cat tests/machines/packages.txt) > /dev/null
	cd $(VENV) && for name in $$(cat $(CURDIR)/tests/machines/unpacked.txt); do \
	  kernel=$$(apt-cache depends $$name | sed -n 's/ *Depends: \(linux-image-.*\)/\1/p'); name=$${kernel:-$$name}; \
	  apt-get download -qq $$name && dpkg -x $${name}_*.deb $$name && rm $${name}_*.deb || exit 1; done
	@touch $@

$(VENV)/.machines: $(VENV)/.dev $(VENV)/.hypervisors
	$(PIP) --editable '.[server,dev,libvirt]'
	@touch $@

# nova expects its etc folder beside its packages.
$(VENV)/.openstack: $(VENV)/.dev tests/openstack/requirements.txt
	@echo "Installing openstacksdk, and nova into $(VENV)/nova ..."
	$(PIP) --editable '.[server,dev,openstack]'
	$(PYTHON) -m venv $(VENV)/nova
	$(VENV)/nova/bin/python -m pip --quiet --disable-pip-version-check install --requirement tests/openstack/requirements.txt
	ln -sfn ../../../etc $$($(VENV)/nova/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/etc
	@touch $@

$(VENV)/.spin: | $(VENV)/.dev
	@test "$$(id -u)" = 0 || { echo "make test-model installs Debian's spin and gcc: run it as root, or install them first"; exit 1; }
	apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq spin gcc libc6-dev > /dev/null
	@touch $@

$(VENV)/.browser: $(VENV)/.dev tests/system/console/requirements.txt
	$(PIP) --requirement tests/system/console/requirements.txt
	@touch $@
