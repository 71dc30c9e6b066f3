# cuda.mk -- whether CUDA files are compiled, for which GPUs, and how.
#
#   CUDA=0|1            without CUDA, or not without it; else with CUDA where there is an nvcc that can compile for us
#   CUDA_ARCHS='80 90'  compute capabilities to compile for; else those of the GPUs here, else Hopper's
#   CUDA_HOME=dir       the toolkit, on make's command line or in config.mk; else the one of the nvcc on the path
#
# nvidia-smi takes seconds and many goals compile nothing, so what is slow is asked by the recipes that need it, once.
once = $(eval $1 := $$(shell $2))$($1)
NVCC := $(if $(filter environment undefined,$(origin CUDA_HOME)),,$(CUDA_HOME)/bin/)nvcc
NVCC_WHY_NOT = $(call once,NVCC_WHY_NOT,pipelines/cuda.sh why-not '$(NVCC)')
need_nvcc = $(if $(NVCC_WHY_NOT),$(error this compiles CUDA files, but $(NVCC_WHY_NOT); make CUDA=0 builds without CUDA))

# In some sites' environment CUDA is a folder.
ifeq ($(origin CUDA):$(filter 0 1,$(CUDA)),environment:)
undefine CUDA
endif
# What the build folder holds: "none" or architectures. Under sudo there may be no nvcc, on a login node no GPU: installing
# takes what was built and decides nothing anew, and where there is no nvcc a build with CUDA stays one.
CUDA_BUILT := $(file <$O/cuda-archs)
CUDA_GIVEN := $(filter-out undefined,$(origin CUDA) $(origin CUDA_ARCHS))
CUDA_KEPT := $(if $(CUDA_GIVEN),,$(if $(filter-out install uninstall man,$(or $(MAKECMDGOALS),all)),$(if $(filter-out none,$(CUDA_BUILT)),$(NVCC_WHY_NOT)),yes))
ifneq ($(CUDA_KEPT),)
ifneq ($(CUDA_BUILT),)
CUDA := $(if $(filter none,$(CUDA_BUILT)),0,1)
CUDA_ARCHS := $(filter-out none,$(CUDA_BUILT))
endif
endif
# Who types architectures wants CUDA.
CUDA ?= $(if $(filter command,$(origin CUDA_ARCHS))$(if $(NVCC_WHY_NOT),,nvcc),1,0)
ifneq (x$(strip $(CUDA)),$(filter x0 x1,x$(strip $(CUDA))))
$(error CUDA is 0 (without CUDA) or 1 (not without it), not '$(CUDA)'; without CUDA= an nvcc on the path decides)
endif
CU_SRC := $(if $(filter 1,$(CUDA)),$(wildcard kernels/*.cu kernels/*/*.cu))

# The architectures, lowest first. Neither nvcc nor nvidia-smi is asked about those that are built already.
same  = $(if $(strip $1),$(findstring x$(strip $1)x,x$(strip $2)x))
ARCHS = $(if $(call same,$(CUDA_ARCHS),$(CUDA_BUILT)),$(CUDA_BUILT),$(need_nvcc)$(or \
        $(call once,ARCHS,BUILT='$(filter-out none,$(CUDA_BUILT))' pipelines/cuda.sh archs '$(NVCC)' '$O/gpus' $(CUDA_ARCHS)),$(error no GPU to compile for)))
# These decide bits and are not for overriding. PTX of the last one is for newer GPUs, of the first for those between.
NVSTD = -std=c++17 --fmad=false -DTHRUST_CUB_WRAPPED_NAMESPACE=kiln_cub -Xcompiler -Wall,-fPIC,-fno-gnu-unique,-ffp-contract=off \
        $(foreach a,$(ARCHS),-gencode arch=compute_$a,code=sm_$a) \
        $(foreach a,$(sort $(firstword $(ARCHS)) $(lastword $(ARCHS))),-gencode arch=compute_$a,code=compute_$a)
# The engine asks whether a GPU is older than all of them before it starts a worker on it.
$O/kernels/device.cu.o: NVSTD += -DKILN_CUDA_ARCH_LEAST=$(subst a,,$(subst f,,$(firstword $(ARCHS)))) -DKILN_CUDA_ARCHS='"$(strip $(ARCHS))"'

# Changes when CUDA comes or goes or is compiled for other GPUs. The recipe is empty when it does not.
CUDA_NOW = $(if $(CU_SRC),$(ARCHS),none)
$O/cuda-archs: FORCE
	$(if $(call same,$(CUDA_NOW),$(CUDA_BUILT)),,$(new_cuda_archs))
new_cuda_archs = @$(if $(CUDA_GIVEN)$(CU_SRC),,echo 'make: this build is without CUDA: $(NVCC_WHY_NOT)' >&2;) \
                 mkdir -p $(@D) && echo '$(CUDA_NOW)' > $@
# The runtime is linked in: no program needs a CUDA toolkit to run, and libcuda is loaded when a GPU is first used.
CUDA_LDLIBS = $(if $(CU_SRC),$(file <$O/cuda-lib) -lcudart_static -lrt -lstdc++)
$O/cuda-lib: $O/cuda-archs $(if $(wildcard $(patsubst -L%,%/libcudart_static.a,$(file <$O/cuda-lib))),,FORCE)
	$(need_nvcc)
	@pipelines/cuda.sh lib '$(NVCC)' $(put)
# What all that is linked depends on.
CUDA_STATE := $O/cuda-archs $(if $(CU_SRC),$O/cuda-lib)

.PHONY: cuda
## cuda: compiles the CUDA files alone, which needs no GPU
cuda: $(CU_SRC:%=$O/%.o)
	$(if $(CU_SRC),,$(error make cuda has nothing to compile: $(if $(CUDA_GIVEN),CUDA is 0,$(NVCC_WHY_NOT))))
