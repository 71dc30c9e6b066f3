# inspect.mk -- looking into the programs: profilers, a build for debuggers, and what must be installed for all of it.
.PHONY: profile debug packages container-check soak-arm

## profile: a stage over a small scene under nsys and ncu (PROFILE_STAGE=render, PROFILERS="nsys ncu", PROFILE_CMD='own command')
PROFILE_STAGE ?= render
PROFILERS     ?= nsys ncu
profile: $(if $(wildcard $O/bundle.stamp),,$(BIN))
	@O='$O' STAGE='$(PROFILE_STAGE)' pipelines/profile.sh '$(PROFILERS)' $(PROFILE_CMD)

## debug: programs for gdb and cuda-gdb, into build-debug: host code as written, kernels as released with their lines
debug:
	$(MAKE) O=build-debug CFLAGS='-O0 -g -fno-omit-frame-pointer' NVFLAGS='-O3 -g -lineinfo' all

## packages: the Debian packages that building and testing need, a line each
packages: ; @printf '%s\n' $(sort $(DEBS) $(TEST_DEBS))

## container-check: the Containerfile's steps in a bare Debian of its own, without CUDA (needs root and debootstrap)
container-check: ; @tests/container $(DIR)
## soak-arm: a build for aarch64 under emulation, whose bakes are compared with this one's (needs a cross compiler and qemu)
soak-arm: $(BIN) ; @O='$O' tests/run soak/arm
