# library.mk -- libsplatkiln for other programs (schema, kernels and base), and installing.
#
# The headers that other programs may include, with the folders they have here; whatever one of them includes is among them.
PUBLIC := $(addprefix base/,extern_c.h hd.h status.h) $(addprefix schema/,codec.h hash.h manifest.h) \
          $(addprefix kernels/,arrays.h device.h exec.h fault.h ops.h runner.h view.h profiles/profiles.h draw/draw.h) \
          $(shell sed -n 's/^.include "\(kernels[^"]*\)".*/\1/p' kernels/ops.h)
VERSION = $(shell sed -n 's/.*kiln_version\[\] = "\(.*\)";/\1/p' base/option.c)
# Raised when a program must be compiled again.
SONAME := libsplatkiln.so.0
.PHONY: lib install uninstall release

## lib: libsplatkiln, static and shared, into build
lib: $O/libsplatkiln.a $O/$(SONAME) $O/splatkiln.pc
$O/$(SONAME): $(LIB_OBJ) $(CUDA_STATE) pipelines/library.map
	$(call say,LINK,$@)$(CC) -shared -Wl,-soname,$(SONAME) -Wl,--version-script=pipelines/library.map -Wl,--no-undefined \
	    -Wl,--as-needed $(CFLAGS) -fopenmp $(LDFLAGS) $(LIB_OBJ) $(LIB_LDLIBS) -o $@
# Requires.private would make pkg-config ask for the -dev packages of SQLite and others also where nobody links statically.
$O/splatkiln.pc: FORCE | $(CUDA_STATE)
	@mkdir -p $(@D)
	@printf '%s\n' 'prefix=$(PREFIX)' 'libdir=$${prefix}/lib' 'includedir=$${prefix}/include/splatkiln' '' \
	    'Name: splatkiln' 'Description: reads and draws bakes of 3D Gaussian Splatting scenes' 'Version: $(VERSION)' \
	    'Cflags: -I$${includedir}' 'Libs: -L$${libdir} -lsplatkiln' 'Libs.private: -fopenmp $(LIB_LDLIBS)' > $@

# Links what a build without CUDA links, where builds with CUDA are made: ops_no_cuda.c must not fall behind.
NO_CUDA := $(if $(CU_SRC),$O/no-cuda/kiln-render)
$O/no-cuda/kiln-render: $O/stages/render.c.o $(PART_SRC:%=$O/%.o) $(filter-out %.cu.o %/ops_cuda.c.o,$(LIB_OBJ)) $O/kernels/ops_no_cuda.c.o
	@mkdir -p $(@D)
	$(call say,LINK,$@)$(CC) $(CFLAGS) -fopenmp $(LDFLAGS) $^ $(filter-out $(CUDA_LDLIBS),$(LDLIBS)) -o $@

AT = $(DESTDIR)$(PREFIX)
## install: programs, man pages, library and headers under PREFIX (DESTDIR before it)
install: $(BIN) $(BIN:$O/bin/%=$O/man/%.1) lib
	install -d '$(AT)/bin' '$(AT)/lib/pkgconfig' '$(AT)/share/man/man1'
	install $(BIN) '$(AT)/bin'
	install -m 644 $(BIN:$O/bin/%=$O/man/%.1) '$(AT)/share/man/man1'
	install -m 644 $O/libsplatkiln.a '$(AT)/lib'
	install $O/$(SONAME) '$(AT)/lib'
	ln -sf $(SONAME) '$(AT)/lib/libsplatkiln.so'
	install -m 644 $O/splatkiln.pc '$(AT)/lib/pkgconfig'
	for h in $(PUBLIC); do install -D -m 644 $$h "$(AT)/include/splatkiln/$$h" || exit 1; done
## uninstall: removes what install has put there
uninstall:
	rm -f $(BIN:$O/bin/%='$(AT)/bin/%') $(BIN:$O/bin/%='$(AT)/share/man/man1/%.1')
	rm -f '$(AT)/lib/libsplatkiln.a' '$(AT)/lib/libsplatkiln.so' '$(AT)/lib/$(SONAME)' '$(AT)/lib/pkgconfig/splatkiln.pc'
	rm -rf '$(AT)/include/splatkiln'

# Every GPU since Turing; newer ones take the PTX of the last.
RELEASE_ARCHS := 75 80 86 89 90 100 120
## release: programs, man pages and library for every GPU since Turing, without debug information, into build-release
release:
	$(if $(CU_SRC)$(filter command,$(origin CUDA)),,$(error a release has CUDA, and $(or $(NVCC_WHY_NOT),CUDA is 0); \
	    make release CUDA=0 makes one without))
	$(MAKE) O=build-release CUDA_ARCHS='$(RELEASE_ARCHS)' CFLAGS='-O2' NVFLAGS='-O3 -lineinfo --threads 0 --compress-mode=size' LDFLAGS='-s $(LDFLAGS)' all lib man
	@du -sh build-release/bin build-release/libsplatkiln.a build-release/$(SONAME)
	@echo 'built: build-release; make install O=build-release installs it'
