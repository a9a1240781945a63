# The tasks of the project; `make help` lists them. CONTRIBUTING.md says more.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

CARGO ?= cargo
# Where `install` puts things: DESTDIR is the root of a package, PREFIX is where it will stand.
PREFIX ?= /usr/local
DESTDIR ?=
PLACE := $(abspath $(DESTDIR)$(PREFIX))
# Rounds of `bench-server`.
ROUNDS ?= 15
# Names of other programs that `install` links to the binary, which then behaves as they do.
LINKS ?=
# How many random configurations `conformance` compares with Apache.
CASES ?= 2000
# How many rules `bench-loading` loads, and how long `fuzz` runs each target.
RULES ?= 1000000
SECONDS ?= 300

# As cargo has it, so that all tasks share what is built.
TARGET := $(or $(CARGO_TARGET_DIR),target)
MILEPOST := $(TARGET)/release/milepost

# Results say which commit they are from.
export MILEPOST_COMMIT ?= $(shell git describe --always --dirty 2>/dev/null)

.PHONY: help demo test lint bench bench-load bench-loading bench-truth bench-server bench-tls bench-upload fuzz conformance install deb clean
.PHONY: release manual uninstall

help: ## List the tasks
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: release ## Measure what redirects cost on every server found here: the table, and a report to open
	$(MILEPOST) lab run redirect-methods --quick

test: ## Everything that must hold before a change goes in
	@scripts/test.sh

lint: ## Formatting, lints and documentation, without the tests
	@scripts/test.sh lint

bench: release ## What a decision costs by number of rules, then the whole experiment (some minutes)
	$(CARGO) bench --locked --workspace --bench '*'
	$(MILEPOST) lab run redirect-methods

bench-loading: release ## What it costs to load RULES rules, beside Apache and nginx
	scripts/loading.sh $(MILEPOST) $(RULES)

fuzz: ## Run each fuzz target for SECONDS seconds
	scripts/fuzz.sh $(SECONDS)

bench-server: release ## What a request costs here and on nginx, Apache, HAProxy, Caddy and a server that parses nothing, and beside a crowd
	$(CARGO) build --locked --release -p milepost-server --example null
	$(CARGO) run --locked --release -p milepost-lab --example bench_server -- \
		$(MILEPOST) $(TARGET)/release/examples/null $(ROUNDS)

bench-tls: release ## What handshakes cost, of the server beside nginx and of the client beside openssl s_time
	scripts/bench-tls.sh $(MILEPOST)

bench-upload: release ## An upload that outlasts a real Tomcat's patience: straight, and through Apache, nginx and milepost
	scripts/bench-upload.sh $(MILEPOST)

bench-load: ## Hold the load generator against wrk, h2load and oha, one thread each (some eight minutes)
	$(CARGO) run --locked --release -p milepost-load --example bench_load

bench-truth: ## Hold what is reported against a server whose service times are known (four minutes, two idle processors)
	$(CARGO) run --locked --release -p milepost-load --example bench_truth

conformance: ## Compare CASES random configurations with the Apache found here
	$(CARGO) run --locked -p milepost-testkit --example differential -- --cases $(CASES)

install: release manual ## Copy binary, manual pages and completions below $(DESTDIR)$(PREFIX); LINKS="ab siege http_load" as well
	install -D -m 755 $(MILEPOST) $(PLACE)/bin/milepost
	cd $(TARGET)/release/manual && find . -type f -exec install -D -m 644 {} $(PLACE)/share/{} \;
	cd $(PLACE)/bin && for name in $(LINKS); do \
		[ "$$(readlink $$name)" = milepost ] || ln -s milepost $$name; done

uninstall: manual ## Remove what install has put below $(DESTDIR)$(PREFIX)
	cd $(TARGET)/release/manual && find . -type f -exec rm -f $(PLACE)/share/{} \;
	find $(PLACE)/bin -maxdepth 1 -lname milepost -delete
	rm -f $(PLACE)/bin/milepost

deb: release manual ## Make the Debian package; needs cargo-deb
	$(CARGO) deb --locked --no-build --strip -p milepost

clean: ## Remove what was built and the results of experiments run here
	$(CARGO) clean
	rm -rf lab-results

release:
	$(CARGO) build --locked --release --bin milepost

manual: release
	rm -rf $(TARGET)/release/manual
	$(MILEPOST) manual $(TARGET)/release/manual
