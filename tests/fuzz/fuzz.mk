# fuzz.mk -- harnesses over any bytes (tests/fuzz/fuzz.h): under libFuzzer for as long as one likes, and their seeds without a fuzzer in
# make check. Included by the Makefile.
FUZZ_PART := $(filter-out tests/fuzz/replay.c,$(wildcard tests/fuzz/*.c))
REPLAY    := $O/tests/fuzz/replay
$(REPLAY): $(FUZZ_PART:%=$O/%.o) $O/tests/fuzz/replay.c.o $(LINKED)
	@mkdir -p $(@D)
	$(call say,LINK,$@)$(CC) $(CFLAGS) -fopenmp $(LDFLAGS) $^ -lcmocka $(LDLIBS) -o $@
$O/tests/fuzz/fuzz: $(FUZZ_PART:%=$O/%.o) $(LINKED)
	@mkdir -p $(@D)
	$(call say,LINK,$@)$(CC) $(CFLAGS) -fsanitize=fuzzer -fopenmp $(LDFLAGS) $^ -lcmocka $(LDLIBS) -o $@

FUZZ_CC    ?= clang
FUZZ_FLAGS := -O1 -g -fno-omit-frame-pointer -fsanitize=fuzzer-no-link,address,undefined,float-cast-overflow \
              -fno-sanitize-recover=all -Wno-pass-failed
.PHONY: fuzz
## fuzz: harnesses under clang's libFuzzer, in build-fuzz (T='png jpeg': these; TIME=60 seconds each, or RUNS=1000000 inputs)
fuzz:
	@tests/fuzz/has_clang '$(FUZZ_CC)'
	+@$(MAKE) --no-print-directory O=build-fuzz CUDA=0 DEBUG=1 CC='$(FUZZ_CC)' CFLAGS='$(FUZZ_FLAGS)' build-fuzz/tests/fuzz/fuzz
	+@O=build-fuzz TIME='$(or $(TIME),60)' RUNS='$(or $(RUNS),-1)' MAKE='$(MAKE)' tests/fuzz/run $T
