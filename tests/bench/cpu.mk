# cpu.mk -- the part of the bench that needs no GPU.
CPU_BENCH := $O/tests/bench/cpu_bench
# Debian's libnanoflann-dev, to be compared with; absent, its rows are left out.
NANOFLANN := $(wildcard /usr/include/nanoflann.hpp)
# What is measured beside the AVX2 siblings is built as they are.
CPU_BENCH_OBJ := $(patsubst %.c,$O/%.c.o,$(filter-out %/cpu_no_nanoflann.c %/cpu_plain.c %/cpu_fma.c,$(wildcard tests/bench/cpu_*.c))) \
    $O/tests/bench/cpu_plain.avx2.o $O/tests/bench/cpu_fma.avx2.o $O/commit.o \
    $(if $(NANOFLANN),$O/tests/bench/cpu_nanoflann.cc.o,$O/tests/bench/cpu_no_nanoflann.c.o)
.PHONY: bench-cpu
bench: $(if $(BENCH_ARGS)$(wildcard $O/bundle.stamp),,bench-cpu)
bench-build: $(CPU_BENCH) $O/bin/kiln-import $O/bin/kiln-generate
## bench-cpu: the part of bench that needs no GPU (CPU_BENCH_ARGS='--only knn,frame,codec,import --quick --json FILE': tests/bench/cpu_bench.c)
bench-cpu: bench-build
	@mkdir -p '$O/bench' && $(CPU_BENCH) --programs $O/bin --json '$O/bench/cpu.json' $(CPU_BENCH_ARGS)
# Changes when nanoflann comes or goes. Without it the program would stay as it was linked: .SECONDARY leaves a missing object
# unmade, and one that was made long ago is no reason to link.
NANOFLANN_STATE := $O/tests/bench/nanoflann
NANOFLANN_NOW := $(or $(NANOFLANN),none)
NANOFLANN_BUILT := $(file <$(NANOFLANN_STATE))
$(NANOFLANN_STATE): FORCE
	$(if $(call same,$(NANOFLANN_NOW),$(NANOFLANN_BUILT)),,@mkdir -p $(@D) && echo '$(NANOFLANN_NOW)' > $@)
$(CPU_BENCH): $(CPU_BENCH_OBJ) $(LINKED) $(NANOFLANN_STATE)
	$(call say,LINK,$@)$(CXX) $(CFLAGS) -fopenmp $(LDFLAGS) $(filter-out $(NANOFLANN_STATE),$^) $(LDLIBS) -o $@
$O/%.cc.o: %.cc | $(READY)
	@mkdir -p $(@D)
	$(call say,CXX,$<)$(CXX) -std=c++17 -O3 -mavx2 -mfma -ffp-contract=off -fopenmp -Wall -Wextra -Werror -I. -MMD -MP $(CPPFLAGS) -c $< -o $@
