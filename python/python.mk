# python.mk -- the wheel of python/splatkiln: Python files, libsplatkiln, kiln, and the libraries that both are linked to.
PYTHON ?= $(or $(wildcard /usr/bin/python3),python3)
STAGE  := $O/wheel/stage
# An old tag, DT_RPATH and not DT_RUNPATH: it counts for the libraries of libraries, too.
NEAR    = -s -Wl,--disable-new-dtags,-rpath,
$(STAGE)/lib/$(SONAME): $(LIB_OBJ) $O/libsplatkiln.list $(CUDA_STATE) pipelines/library.map
	@mkdir -p $(@D)
	$(call say,LINK,$@)$(CC) -shared -Wl,-soname,$(SONAME) -Wl,--version-script=pipelines/library.map -Wl,--no-undefined -Wl,--as-needed \
	    $(CFLAGS) -fopenmp $(LDFLAGS) $(NEAR)'$$ORIGIN' $(LIB_OBJ) $(LIB_LDLIBS) -o $@
$(STAGE)/bin/kiln: $O/stages/tools/kiln.c.o $O/libstages.a $O/libsplatkiln.a
	@mkdir -p $(@D)
	$(call say,LINK,$@)$(CC) $(CFLAGS) -fopenmp $(LDFLAGS) -Wl,--build-id $(NEAR)'$$ORIGIN/../lib' $^ $(LDLIBS) -o $@
# In the place of a library under the GPL that Debian's libtiff is linked to. What links to kiln finds it first: see NEAR.
$(STAGE)/lib/libjbig.so.0: python/no_jbig.c | $(READY)
	@mkdir -p $(@D)
	$(call say,LINK,$@)$(CC) $(STD) $(PIC) $(WARN) $(CFLAGS) -s -shared -Wl,-soname,$(@F) $(LDFLAGS) $< -o $@
# A wheel holds no links. kiln is the stage by whose name it is called.
$(STAGE_NAMES:%=$(STAGE)/bin/kiln-%): python/stage.sh
	@mkdir -p $(@D)
	@cp $< $@ && chmod 755 $@
.PHONY: wheel
## wheel: the Python package with library and programs, for pip, into build/wheel (PYTHON=path; CUDA_ARCHS as for all)
wheel: $(STAGE)/lib/$(SONAME) $(STAGE)/lib/libjbig.so.0 $(STAGE)/bin/kiln $(STAGE_NAMES:%=$(STAGE)/bin/kiln-%)
	@$(PYTHON) python/build_wheel.py $(STAGE) $O/wheel
