# A thin front to CMake: the commands that everyday work needs. The work is in CMakeLists.txt and tools/.

PREFIX ?= /usr/local
BUILD_TYPE ?= Release
JOBS ?= $(shell nproc)
FUZZ_RUNS ?= 100000
export JOBS FUZZ_RUNS DESTDIR

# Parallel work happens inside a command, JOBS at a time; the makes that CMake starts are to know nothing of this one.
.NOTPARALLEL:
unexport MAKEFLAGS MFLAGS
cmake := env -u MAKELEVEL cmake

.PHONY: all packages demo test arm check-all bench bench-compare install python deb test-deb tsan oclgrind fuzz coverage format clean help

all: ## build the program and the libraries into build/
	@$(cmake) -S . -B build -DCMAKE_BUILD_TYPE=$(BUILD_TYPE) -DCMAKE_INSTALL_PREFIX=$(PREFIX) >/dev/null || \
	    { echo "If packages are missing: tools/bootstrap build"; exit 1; }
	@$(cmake) --build build --parallel $(JOBS)

packages:
	@tools/bootstrap build

demo: packages all ## build, and show on built-in data what the program can do (installs missing packages)
	build/psld demo

test: ## run all tests (installs missing packages)
	@tools/test

arm: ## run the unit tests for AArch64 under qemu (installs a cross compiler)
	@tools/test-arm

check-all: ## what takes longer than make test has time for: run it every night and before a release
	@tools/check-all

bench: all ## run the benchmarks
	@$(cmake) --build build --target bench

bench-compare: all ## our network beside PyTorch, ONNX Runtime and OpenVINO (makes build/venv)
	@tools/bench-compare

install: all ## install under PREFIX (/usr/local), below DESTDIR if given
	@$(cmake) --install build
	@[ -n "$(DESTDIR)" ] || [ "$$(id -u)" -ne 0 ] || ldconfig

python: packages all ## build the Python wheel into build/python, and test it in a clean virtual environment
	@tools/make-python

deb: ## make Debian packages in build/deb/packages (installs missing packages)
	@tools/make-deb

test-deb: ## install these packages in a fresh Debian root and use them there (needs root and network)
	@tools/test-deb

tsan: ## run the unit tests under the thread sanitizer
	@tools/test-threads

oclgrind: ## run the kernels for GPUs on an interpreter that looks for races and accesses out of bounds
	@tools/test-oclgrind

fuzz: ## run each fuzz target on FUZZ_RUNS inputs
	@tools/fuzz

coverage: ## print which part of each file the tests execute
	@tools/coverage

format: ## format all C files in place
	@tools/check-format --fix

clean: ## remove what was built
	@rm -rf build

help: ## this list
	@awk -F': .*## |: ## ' '/^[a-z-]+:.*## / { printf "make %-14s %s\n", $$1, $$2 }' Makefile
