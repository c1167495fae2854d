# Names for the commands people use. The build itself is CMake: see CMakePresets.json.
.PHONY: build test format layers asan tsan setup

build: build-release

test: setup layers
	@tools/format
	@$(MAKE) --no-print-directory build-release
	@ctest --preset release

asan tsan: %: build-%
	@ctest --preset $*

build-%: setup
	@test -f build/$*/build.ninja || cmake --preset $*
	@cmake --build --preset $*

setup:
	@tools/setup

layers: setup
	@tools/layers

format: setup
	@tools/format --fix
