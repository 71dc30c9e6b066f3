# SplatKiln. `make help` lists the targets.
#   make CUDA=0        build without CUDA
#   make O=dir         build elsewhere; make test T=unit/knn: one test
-include config.mk
O       ?= build
CC      := $(if $(filter default,$(origin CC)),gcc,$(CC))
CUDA    ?= $(if $(shell command -v nvcc),1,0)
CFLAGS  ?= -O2 -g
NVFLAGS ?= -O3 -lineinfo
# These decide bits and are not for overriding.
STD     := -std=c11 -D_GNU_SOURCE -ffp-contract=off -fno-math-errno -fno-trapping-math -fopenmp
AVX2    := -mavx2 -mfma -DKILN_CPU_ISA=_avx2
NVSTD   := -std=c++17 --fmad=false
WARN    := -Wall -Wextra -Werror -Wconversion -Wno-sign-conversion -Wshadow -Wstrict-prototypes -Wno-unknown-pragmas
LDLIBS  := -lsqlite3 -lzstd -lpng -ljpeg -lxxhash -ljansson -lz -lm -ldl -lpthread

LIB_SRC := $(wildcard base/*.c schema/*.c kernels/*/*.c) $(filter-out kernels/ops_%,$(wildcard kernels/*.c)) kernels/ops_cpu.c
CU_SRC  := $(if $(filter 1,$(CUDA)),$(wildcard kernels/*.cu kernels/*/*.cu))
LIB_SRC += $(if $(CU_SRC),kernels/ops_cuda.c $(CU_SRC),kernels/ops_no_cuda.c)
LIB_OBJ := $(LIB_SRC:%=$O/%.o) $(patsubst %.c,$O/%.avx2.o,$(wildcard kernels/*/*_cpu.c))
PART_SRC := $(wildcard stages/import/*.c stages/export/*.c stages/engine/*.c stages/image/*.c stages/frame/*.c stages/tiles/*.c stages/render/*.c stages/prune/*.c stages/chunk/*.c stages/generate/*.c)
STAGES  := $(patsubst stages/%.c,%,$(wildcard stages/*.c))
TOOLS   := $(patsubst stages/tools/%.c,%,$(wildcard stages/tools/*.c))
BIN     := $(STAGES:%=$O/bin/kiln-%) $(TOOLS:%=$O/bin/kiln-%)
UNIT    := $(patsubst tests/unit/%.c,$O/tests/unit/%,$(wildcard tests/unit/*_test.c))

.SECONDARY:
.PHONY: all tests clean
all: $(BIN)
tests: $(UNIT)

$(STAGES:%=$O/bin/kiln-%): $O/bin/kiln-%: $O/stages/%.c.o $O/libstages.a $O/libsplatkiln.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -fopenmp $(LDFLAGS) $^ $(LDLIBS) -o $@
$(TOOLS:%=$O/bin/kiln-%): $O/bin/kiln-%: $O/stages/tools/%.c.o $O/libstages.a $O/libsplatkiln.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -fopenmp $(LDFLAGS) $^ $(LDLIBS) -o $@
$O/tests/unit/%: $O/tests/unit/%.c.o $O/libstages.a $O/libsplatkiln.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -fopenmp $(LDFLAGS) $^ -lcmocka $(LDLIBS) -o $@
$O/libstages.a: $(PART_SRC:%=$O/%.o)
	rm -f $@ && $(AR) rcs $@ $^
$O/libsplatkiln.a: $(LIB_OBJ)
	rm -f $@ && $(AR) rcs $@ $^
$O/%.c.o: %.c
	@mkdir -p $(@D)
	$(CC) $(STD) $(WARN) -I. -MMD -MP $(CPPFLAGS) $(CFLAGS) -c $< -o $@
$O/%.avx2.o: %.c
	@mkdir -p $(@D)
	$(CC) $(STD) $(AVX2) $(WARN) -I. -MMD -MP $(CPPFLAGS) $(CFLAGS) -O3 -c $< -o $@
$O/%.cu.o: %.cu
	@mkdir -p $(@D)
	nvcc $(NVSTD) -I. -MMD -MP -MF $(@:.o=.d) $(NVFLAGS) -c $< -o $@
-include schema/schema.mk
-include $(shell find $O -name '*.d' 2>/dev/null)

clean: ; rm -rf $O
