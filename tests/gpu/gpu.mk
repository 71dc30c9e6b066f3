# GPU tests: their binaries, the targets that run them, and a bundle of them for a machine that cannot build. Included by
# the Makefile.
GPU_PART := $(filter-out %_test.c,$(wildcard tests/gpu/*.c)) $(if $(CU_SRC),$(wildcard tests/gpu/*.cu))
# About CUDA alone; the others compute on the CPU where there is nothing else.
CUDA_TEST := $(patsubst %,$O/tests/gpu/%_test,device planted fast radix tame outputs plan)
GPU_TEST  := $(filter-out $(if $(CU_SRC),,$(CUDA_TEST)),$(patsubst tests/gpu/%.c,$O/tests/gpu/%,$(wildcard tests/gpu/*_test.c)))
# Unit tests that tests/gpu/truth.t runs once more, on the GPU; tests/gpu/units names them.
GPU_UNIT  := $(patsubst %,$O/tests/unit/%_test,$(file <tests/gpu/units))
$(GPU_TEST): $O/tests/gpu/%: $O/tests/gpu/%.c.o $(GPU_PART:%=$O/%.o) $O/tests/filter.c.o $(LINKED)
	@mkdir -p $(@D)
	$(call say,LINK,$@)$(CC) $(CFLAGS) -fopenmp $(LDFLAGS) $^ -lcmocka $(LDLIBS) -o $@
# What tests/gpu/example.t runs: no compiler is needed where it runs.
EXAMPLE := $O/examples/draw_camera
$(EXAMPLE): $O/examples/draw_camera.c.o $(LINKED)
	@mkdir -p $(@D)
	$(call say,LINK,$@)$(CC) $(CFLAGS) -fopenmp $(LDFLAGS) $^ $(LDLIBS) -o $@
ifeq ($(CU_SRC),)
$(CUDA_TEST): ; $(error $(@F) is about CUDA alone, and this build has no CUDA)
endif

.PHONY: gpu-tests gpu-test sanitize gpu-bundle
gpu-tests: $(BIN) $(GPU_TEST) $(GPU_UNIT) $(EXAMPLE)
# What was carried from elsewhere is as it should be, whatever the times of its files say.
BUILT := $(if $(wildcard $O/bundle.stamp),,gpu-tests)
BUILT_CUDA = $(CU_SRC)$(wildcard $O/bundle.stamp)
## gpu-test: the tests that need a GPU (SHARED=dir: with the reference data there, and what skips has failed; T=gpu/NAME)
gpu-test: $(BUILT)
	@O='$O' SHARED='$(SHARED)' BUILT_CUDA='$(BUILT_CUDA)' tests/gpu/all $(if $T,'$T',gpu)
SANITIZERS ?= memcheck racecheck initcheck synccheck
SANITIZED  ?= same_bits_test radix_test device_test
## sanitize: small GPU tests under compute-sanitizer (SANITIZERS="memcheck racecheck initcheck synccheck")
sanitize: $(BUILT)
	@O='$O' BUILT_CUDA='$(BUILT_CUDA)' tests/gpu/sanitize '$(SANITIZERS)' $(SANITIZED)

BUNDLE ?= build-gpu
ifdef RELOCATABLE
LDFLAGS += -Wl,--disable-new-dtags,-rpath,'$$ORIGIN/../lib:$$ORIGIN/../../lib'
$O/lib/libkiln.so: $O/libstages.a $O/libsplatkiln.a
	@mkdir -p $(@D)
	$(call say,LINK,$@)$(CC) -shared -Wl,-soname,$(@F) -fopenmp $(LDFLAGS) -Wl,--whole-archive $^ -Wl,--no-whole-archive $(LDLIBS) -o $@
endif
## gpu-bundle: programs and GPU tests with their libraries, for sm_90, in build-gpu: carry it, then make gpu-test O=build-gpu
gpu-bundle: $(READY)
	$(need_nvcc)
	+@$(MAKE) --no-print-directory O='$(BUNDLE)-objects' CUDA=1 CUDA_ARCHS=90 CFLAGS=-O2 RELOCATABLE=1 gpu-tests bench-build
	@tests/gpu/bundle '$(BUNDLE)-objects' '$(BUNDLE)'
