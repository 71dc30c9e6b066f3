# GPU tests: their binaries, the targets that run them, and a bundle of them for a machine that cannot build. Included by
# the Makefile.
GPU_PART := $(filter-out %_test.c,$(wildcard tests/gpu/*.c)) $(if $(CU_SRC),$(wildcard tests/gpu/*.cu))
# device_test is about CUDA alone; the others compute on the CPU where there is nothing else.
GPU_TEST := $(patsubst tests/gpu/%.c,$O/tests/gpu/%,$(filter-out $(if $(CU_SRC),,%/device_test.c),$(wildcard tests/gpu/*_test.c)))
# Unit tests that tests/gpu/truth.t runs once more, on the GPU.
GPU_UNIT := $(patsubst %,$O/tests/unit/%_test,truth knn metrics)
$(GPU_TEST): $O/tests/gpu/%: $O/tests/gpu/%.c.o $(GPU_PART:%=$O/%.o) $O/tests/filter.c.o $(LINKED)
	@mkdir -p $(@D)
	$(call say,LINK,$@)$(CC) $(CFLAGS) -fopenmp $(LDFLAGS) $^ -lcmocka $(LDLIBS) -o $@

.PHONY: gpu-tests gpu-test sanitize gpu-bundle
gpu-tests: $(BIN) $(GPU_TEST) $(GPU_UNIT)
# What was carried from elsewhere is as it should be, whatever the times of its files say.
BUILT := $(if $(wildcard $O/bundle.stamp),,gpu-tests)
## gpu-test: the tests that need a GPU (SHARED=dir: with the reference data there, and what skips has failed; T=gpu/NAME)
gpu-test: $(BUILT)
	@O='$O' SHARED='$(SHARED)' BUILT_CUDA='$(CU_SRC)$(wildcard $O/bundle.stamp)' tests/gpu/all $(if $T,'$T',gpu)
# Tests that kill their own context do so in processes of their own, which are not looked at.
SANITIZERS ?= memcheck racecheck initcheck synccheck
SANITIZED  ?= same_bits_test device_test
## sanitize: small GPU tests under compute-sanitizer (SANITIZERS="memcheck racecheck initcheck synccheck")
sanitize: $(BUILT)
	@if ! tests/gpu/has_gpu; then echo 'sanitize did not run: no GPU'; exit 0; fi; \
	for tool in $(SANITIZERS); do for t in $(SANITIZED); do echo "== $$tool $$t"; \
	    KILN_GPU_SMALL=1 compute-sanitizer --tool $$tool --target-processes application-only --error-exitcode 1 \
	        '$O'/tests/gpu/$$t || exit 1; done; done

BUNDLE ?= build-gpu
ifdef RELOCATABLE
LDFLAGS += -Wl,--disable-new-dtags,-rpath,'$$ORIGIN/../lib:$$ORIGIN/../../lib'
$O/lib/libkiln.so: $O/libstages.a $O/libsplatkiln.a
	@mkdir -p $(@D)
	$(call say,LINK,$@)$(CC) -shared -Wl,-soname,$(@F) -fopenmp $(LDFLAGS) -Wl,--whole-archive $^ -Wl,--no-whole-archive $(LDLIBS) -o $@
endif
## gpu-bundle: programs and GPU tests with their libraries, for sm_90, in build-gpu: carry it, then make gpu-test O=build-gpu
gpu-bundle:
	+@$(MAKE) --no-print-directory O='$(BUNDLE)-objects' CUDA=1 CUDA_ARCHS=90 CFLAGS=-O2 RELOCATABLE=1 gpu-tests bench-build
	@tests/gpu/bundle '$(BUNDLE)-objects' '$(BUNDLE)'
