# Names for the commands people use. The build itself is CMake: see CMakePresets.json.
.PHONY: build quick test peers single demo gates valgrind format layers asan tsan sanitize fuzz setup

# For first builds, which take a third of the time. A build directory that exists keeps its own settings.
configure := -DHONE_PCH=ON -DCMAKE_UNITY_BUILD=ON
# Four real models with their inputs and outputs, for `make gates`.
MODELS := ../shared/models

build: build-release

test: setup layers
	@tools/format
	@$(MAKE) --no-print-directory build-release
	@ctest --preset release
	@echo "NOT TESTED HERE: agreement with other programs that run ONNX. Run: make peers (needs network once)"

# What finds most in a few minutes: build and run the tests that take seconds.
quick: setup layers
	@test -f build/release/build.ninja || cmake --preset release $(configure)
	@cmake --build --preset release --target quick_tests
	@ctest --preset release -L quick

# hone against ONNX Runtime and the reference implementation of ONNX, on models at random, some of them
# optimized; against the types that ONNX infers; its runtime with tensors of NumPy and PyTorch; derivatives
# against PyTorch. Of the
# optimized models, a part that changes with the day.
peers: setup
	@test -f build/release/build.ninja || cmake --preset release $(configure)
	@cmake --build --preset release --target hone hone_runtime_shared peer_derivatives
	@tools/peers build/release
	@tools/peers build/release --dlpack
	@tools/peers build/release --derivatives
	@tools/shapes build/release
	@tools/peers build/release --reports
	@tools/peers build/release --optimize --seconds 100

# That files of src/ compile without the others of a unity build and without precompiled headers: a third
# of them, which changes with the day. `tools/single` checks all.
single: setup
	@tools/single --part $$(($$(date -u +%-j) % 3))/3 src

demo: setup
	@test -f build/release/build.ninja || cmake --preset release $(configure)
	@cmake --build --preset release --target hone digits
	@tools/demo build/release

# Bounds of speed as ratios, and the time of a start. On a quiet machine; what the first prints is
# kept in bench/results/.
gates: build-release
	@cmake --build --preset release --target bench_gates bench_start
	@build/release/bench/bench_gates $(MODELS) > bench/results/gates-$$(date -u +%F).jsonl; \
	  status=$$?; cat bench/results/gates-$$(date -u +%F).jsonl; exit $$status
	@build/release/bench/bench_start build/release/hone-run

# The demo's model compiled and run under memcheck, which knows no AVX-512: kernels of x86-64-v3. Then
# the saved plan, by the program that has no compiler.
valgrind: setup
	@test -f build/release/build.ninja || cmake --preset release $(configure)
	@cmake --build --preset release --target hone hone-run
	@tools/memcheck build/release

asan tsan: %: build-%
	@ctest --preset $*

# The part of both that continuous integration runs.
sanitize: chosen-asan chosen-tsan
chosen-%: setup
	@test -f build/$*/build.ninja || cmake --preset $* $(configure)
	@cmake --build --preset $* --target chosen_tests
	@ctest --preset $* -L chosen

# Each fuzz target for SECONDS, from the corpus on; what it finds is left in build/fuzz/fuzz. Optimised,
# so several times as many inputs in a second as the tests that `make asan` builds.
SECONDS := 30
FUZZ := onnx_import onnx_run safetensors gguf plan ir_text
fuzz: setup
	@test -f build/fuzz/build.ninja || cmake --preset fuzz $(configure)
	@cmake --build --preset fuzz --target $(FUZZ:%=fuzz_%)
	@for target in $(FUZZ); do tools/fuzz build/fuzz $$target $(SECONDS) || exit 1; done

build-%: setup
	@test -f build/$*/build.ninja || cmake --preset $* $(configure)
	@cmake --build --preset $*

setup:
	@tools/setup

layers: setup
	@tools/layers

format: setup
	@tools/format --fix
