# mutate.mk -- tests/mutate: hostile manifests. tests/e2e/mutation.t runs some of them, `make mutate` as many as there is time for.
MUTATE := $O/tests/mutate/mutate
$(MUTATE): $(patsubst %.c,$O/%.c.o,$(wildcard tests/mutate/*.c)) $O/libsplatkiln.a
	@mkdir -p $(@D)
	$(call say,LINK,$@)$(CC) $(CFLAGS) -fopenmp $(LDFLAGS) $^ $(LIB_LDLIBS) -o $@
.PHONY: mutate
## mutate: programs on hostile manifests, for TIME=seconds (600) or N=mutations, from a new SEED or the one that is given
mutate: $(BIN) $(MUTATE)
	@O='$O' TIME='$(TIME)' N='$N' SEED='$(SEED)' tests/mutate/run
