# Everything that is done with this repository. `.ci/run` calls these targets and nothing else.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help

.PHONY: help demo test bench engine images lint docs licences check-scripts toolchain clean

help: ## Says what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile

demo: toolchain engine ## Runs the tests of a project from PyPI in a container, from nothing
	@scripts/demo.sh

test: toolchain engine images ## Runs every test, then checks that nothing is left behind
	@scripts/test.sh

bench: toolchain engine images ## Measures what one call costs
	cargo bench --all-features --locked

engine: ## Makes sure that a container engine answers
	@scripts/engine.sh

images: engine ## Builds the images of the tests and the demo
	@scripts/images.sh

lint: toolchain check-scripts ## Checks format, lints (each feature alone and all of them) and scripts
	cargo fmt --all --check
	cargo clippy --all-targets --all-features --locked -- -D warnings
	cargo clippy --lib --no-default-features --locked -- -D warnings
	cargo clippy --lib --no-default-features --features container --locked -- -D warnings
	cargo clippy --lib --no-default-features --features helper --locked -- -D warnings
	cargo clippy --lib --no-default-features --features conformance --locked -- -D warnings
	cargo clippy --lib --bins --no-default-features --features helper-program --locked -- -D warnings

check-scripts:
	@if command -v shellcheck > /dev/null; then \
	    shellcheck --external-sources scripts/*.sh .ci/run && echo "scripts: shellcheck finds nothing"; \
	else \
	    echo "scripts: not checked, shellcheck is not installed (apt-get install shellcheck)" >&2; \
	fi
	@scripts/licences.py --self-test

docs: toolchain ## Builds the documentation, without a warning
	RUSTDOCFLAGS="-D warnings" cargo doc --all-features --no-deps --locked

licences: toolchain ## Checks the licences of all dependencies
	@scripts/licences.py

toolchain:
	@command -v cargo > /dev/null || { \
	    echo "cargo is not installed; get Rust from https://rustup.rs and try again" >&2; exit 1; }

clean: ## Removes what was built here; images and engine stay
	cargo clean
