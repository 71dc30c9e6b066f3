# SplatKiln. `make help` lists the targets; pipelines/pipeline.mk has those that bake a scene.
-include config.mk
# No rule of make's own applies here, and trying them on every header took two thirds of the time of a make with nothing to do.
MAKEFLAGS += -r
O       ?= build
CC      := $(if $(filter default,$(origin CC)),gcc,$(CC))
CFLAGS  ?= -O2 -g
NVFLAGS ?= -O3 -lineinfo
PREFIX  ?= /usr/local
# What Debian and Ubuntu call the things we need; pipelines/packages.sh looks after them.
DEBS      := build-essential pkg-config libsqlite3-dev libzstd-dev libpng-dev libjpeg-dev libwebp-dev libtiff-dev libxxhash-dev zlib1g-dev libisal-dev libjansson-dev libmicrohttpd-dev
TEST_DEBS := libcmocka-dev python3
# These decide bits and are not for overriding.
STD     := -std=c11 -D_GNU_SOURCE -fsigned-char -ffp-contract=off -fno-math-errno -fno-trapping-math -fopenmp $(if $(filter command%,$(origin DEBUG)),-DKILN_SAYS_WHERE,-DNDEBUG)
AVX2    := -mavx2 -mfma -DKILN_CPU_ISA=_avx2
# x86-64 has the CPU files of kernels twice, and of NAME_avx2.c and NAME_no_avx2.c the first (base/isa.h).
X86_64  := $(filter x86_64-%,$(shell $(CC) -dumpmachine))
WARN    := -Wall -Wextra -Werror -Wconversion -Wno-sign-conversion -Wshadow -Wstrict-prototypes -Wno-unknown-pragmas
# One set of objects for programs, static and shared library.
PIC     := -fPIC -fno-semantic-interposition

.DEFAULT_GOAL := all
include pipelines/cuda.mk
ALL_SRC := $(wildcard base/*.c schema/*.c kernels/*/*.c) $(filter-out kernels/ops_cuda.c kernels/ops_no_cuda.c,$(wildcard kernels/*.c))
LIB_SRC := $(filter-out $(if $(X86_64),%_no_avx2.c,$(patsubst %_no_avx2.c,%_avx2.c,$(filter %_no_avx2.c,$(ALL_SRC)))),$(ALL_SRC))
LIB_SRC += $(if $(CU_SRC),kernels/ops_cuda.c $(CU_SRC),kernels/ops_no_cuda.c)
LIB_LDLIBS = -lsqlite3 -lzstd -lxxhash -lm -ldl -lpthread $(CUDA_LDLIBS)
LDLIBS   = -lpng -ljpeg -lwebp -ltiff -ljansson -lisal -lz $(LIB_LDLIBS)
LIB_OBJ := $(LIB_SRC:%=$O/%.o) $(if $(X86_64),$(patsubst %.c,$O/%.avx2.o,$(wildcard kernels/*/*_cpu.c)))
# What is linked with a library that one program alone has.
SERVE_SRC := stages/serve/http_server.c
PART_SRC := $(filter-out stages/tools/% $(SERVE_SRC),$(wildcard stages/*.c stages/*/*.c stages/*/*/*.c))
STAGE_NAMES := $(patsubst stages/%.c,%,$(wildcard stages/*.c))
# kiln-NAME from NAME.c; kiln.c is the front command itself.
TOOLS   := $(patsubst stages/tools/%.c,%,$(filter-out stages/tools/kiln.c,$(wildcard stages/tools/*.c)))
PROGRAMS := $(STAGE_NAMES:%=$O/bin/kiln-%) $(TOOLS:%=$O/bin/kiln-%)
BIN     := $O/bin/kiln $(PROGRAMS)
UNIT    := $(patsubst tests/unit/%.c,$O/tests/unit/%,$(wildcard tests/unit/*_test.c))
C_FILES := $(wildcard $(foreach d,base schema kernels kernels/* stages stages/* stages/*/* tests/* examples,$d/*.[ch] $d/*.cc $d/*.cu $d/*.cuh))

# A line a file; V=1 shows the commands, -s nothing.
say = $(if $V$(findstring s,$(firstword -$(MAKEFLAGS))),,@printf '  %-4s %s\n' $1 $2; )

# What a command prints becomes the target, whole or not at all; under a name of its own until then, as two makes may run at once.
put = > $@.tmp.$$$$ && mv $@.tmp.$$$$ $@

.SECONDARY:
.PHONY: FORCE all deps tests check test bless asan format lint man clean help
## all: every program, into build/bin (O=dir: elsewhere; CUDA=0: without CUDA; DEBUG=1: with assertions and sentences that say where they were made, into another O)
all: $(BIN)

# Goals that promise to work on a bare machine install what is missing; the others only say it.
include pipelines/pipeline.mk schema/schema.mk stages/report/report.mk stages/viewer/viewer.mk
WANTED := $(DEBS) $(if $(filter test tests check asan bless deps fuzz gpu-test gpu-tests gpu-bundle,$(MAKECMDGOALS)),$(TEST_DEBS))
READY  := $O/packages$(if $(filter $(TEST_DEBS),$(WANTED)),-test)
$O/packages $O/packages-test: Makefile pipelines/packages.sh
	@mkdir -p $O
	@pipelines/packages.sh $(if $(BAKES)$(filter test deps gpu-bundle,$(MAKECMDGOALS)),install,tell) $(WANTED) && touch $@
## deps: installs the Debian packages that are missing
deps: $(READY)

# What programs and tests are made from; RELOCATABLE=1 (make gpu-bundle): one shared object, because many copies are large.
LINKED := $(if $(RELOCATABLE),$O/lib/libkiln.so,$O/libstages.a $O/libsplatkiln.a)
$O/bin/kiln-serve: $(SERVE_SRC:%=$O/%.o)
$O/bin/kiln-serve: private LDLIBS += -lmicrohttpd
$(TOOLS:%=$O/bin/kiln-%): $O/bin/kiln-%: $O/stages/tools/%.c.o $(LINKED)
	@mkdir -p $(@D)
	$(call say,LINK,$@)$(CC) $(CFLAGS) -fopenmp $(LDFLAGS) $(filter %.o,$^) $(filter-out %.o,$^) $(LDLIBS) -o $@
$O/bin/kiln: $O/stages/tools/kiln.c.o $(LINKED)
	@mkdir -p $(@D)
	$(call say,LINK,$@)$(CC) $(CFLAGS) -fopenmp $(LDFLAGS) -Wl,--build-id $^ $(LDLIBS) -o $@
# The stages are in kiln, which goes by the name under which it is called. Where a file cannot have two names it is copied.
$(STAGE_NAMES:%=$O/bin/kiln-%): $O/bin/kiln
	@ln -f $< $@ 2>/dev/null || cp -p $< $@
$O/tests/unit/%: $O/tests/unit/%.c.o $O/tests/filter.c.o $(LINKED)
	@mkdir -p $(@D)
	$(call say,LINK,$@)$(CC) $(CFLAGS) -fopenmp $(LDFLAGS) $^ -lcmocka $(LDLIBS) -o $@
# Which objects a library has; changes when a source file comes or goes. .SECONDARY leaves a missing object unmade, so without this
# the object of a new file would be missing in a library that was made before. Names are those below $O, or another name of that folder
# would have all programs linked anew.
OBJ_stages    := $(PART_SRC:%=$O/%.o)
OBJ_splatkiln := $(LIB_OBJ)
$O/libstages.list $O/libsplatkiln.list: $O/lib%.list: FORCE
	$(if $(call same,$(OBJ_$*:$O/%=%),$(file <$@)),,@mkdir -p $(@D) && echo '$(OBJ_$*:$O/%=%)' > $@)
$O/libstages.a: $(OBJ_stages) $O/libstages.list
	$(call say,AR,$@)rm -f $@ && $(AR) rcs $@ $(OBJ_stages)
$O/libsplatkiln.a: $(LIB_OBJ) $O/libsplatkiln.list $(CUDA_STATE)
	$(call say,AR,$@)rm -f $@ && $(AR) rcs $@ $(LIB_OBJ)
$O/%.c.o: %.c | $(READY) $O/cuda-archs
	@mkdir -p $(@D)
	$(call say,CC,$<)$(CC) $(STD) $(PIC) $(WARN) -I. -MMD -MP $(CPPFLAGS) $(CFLAGS) -c $< -o $@
$O/%.avx2.o: %.c | $(READY) $O/cuda-archs
	@mkdir -p $(@D)
	$(call say,CC,$<)$(CC) $(STD) $(PIC) $(AVX2) $(WARN) -I. -MMD -MP $(CPPFLAGS) $(CFLAGS) -O3 -c $< -o $@
$O/%.cu.o: %.cu $O/cuda-archs | $(READY)
	$(need_nvcc)
	@mkdir -p $(@D)
	$(call say,NVCC,$<)$(NVCC) $(NVSTD) -I. -MMD -MP -MF $(@:.o=.d) $(NVFLAGS) -c $< -o $@
# A bake needs no test.
-include $(shell find $(if $(BAKES),$(addprefix $O/,base schema kernels stages),$O) -name '*.d' 2>/dev/null)
# Phony, because .SECONDARY would leave it unmade.
FORCE:

include tests/gpu/gpu.mk tests/fuzz/fuzz.mk
## check: the fast tests: unit, golden, layers (T=unit/knn: one test; T='unit/knn:ties*': a part of it)
check: tests
	@O='$O' tests/run $(if $T,'$T',unit golden)
## test: check, the end-to-end tests, faults and same bits (V=1 shows output, KEEP=1 keeps the scratch folders, CASE=word: cases)
test: tests
	$(if $(filter gpu,$T),$(error make gpu-test runs the suite gpu))
	@O='$O' tests/run $(if $T,'$T',unit golden e2e fault gpu/same_bits)
## bless: writes what a golden test gives as what is expected: make bless T=golden/import/odd-ply
bless: tests
	@O='$O' KILN_BLESS=1 tests/run $(if $T,'$T',golden)
export V KEEP
# T names a C test: its binary is all that it needs.
ONE   := $(patsubst %,$O/tests/%_test,$(filter unit/% gpu/%,$(firstword $(subst :, ,$T))))
tests: $(or $(filter $(ONE),$(UNIT) $(GPU_TEST) $(CUDA_TEST)),$(BIN) $(UNIT) $O/tests/gpu/same_bits_test $O/tests/mutate/mutate $(REPLAY) $(NO_CUDA))
## asan: check under AddressSanitizer and UBSan, in build-asan
asan:
	ASAN_OPTIONS=allocator_may_return_null=1 UBSAN_OPTIONS=print_stacktrace=1 $(MAKE) check O=build-asan DEBUG=1 KILN_SLOW=4 CFLAGS='-O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all'
export KILN_SLOW

## format: puts every C file into the layout of .clang-format
format:
	clang-format -i $(C_FILES)
## lint: layout, whitespace, headers that compile alone
lint:
	@tests/run unit/layers
	@if git grep -nIE '[[:blank:]]+$$' -- ':!*.md' ':!tests/data'; then echo 'lint: blanks at the end of these lines'; exit 1; fi
	@if command -v clang-format >/dev/null; then clang-format --dry-run -Werror $(C_FILES); else echo 'lint: no clang-format, layout not checked'; fi

## man: man pages from the option tables, into build/man
MAN := $(BIN:$O/bin/%=$O/man/%.1) $O/man/kiln-pipeline.1
man: $(MAN)
$O/man/%.1: $O/bin/%
	@mkdir -p $(@D)
	$< --man $(put)
# Both ask the programs beside kiln.
$O/man/kiln.1: $O/bin/kiln $(PROGRAMS)
$O/man/kiln-pipeline.1: $O/bin/kiln $(PROGRAMS)
	@mkdir -p $(@D)
	$< pipeline --man $(put)
include pipelines/library.mk python/python.mk pipelines/docs.mk pipelines/inspect.mk tests/bench/bench.mk tests/mutate/mutate.mk tests/viewers/viewers.mk
## clean: removes the build folder
clean: ; rm -rf $O
## help: this list
help: ; @sed -n 's/^## //p' $(MAKEFILE_LIST)
