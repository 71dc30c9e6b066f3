# library.mk -- libsplatkiln for other programs (schema, kernels and base), and installing.
#
# The headers that other programs may include, with the folders they have here; whatever one of them includes is among them.
PUBLIC = $(addprefix base/,extern_c.h hd.h status.h) $(addprefix schema/,codec.h hash.h levels.h manifest.h) \
          $(addprefix kernels/,arrays.h device.h exec.h ops.h runner.h view.h view_cut.h violation.h profiles/profiles.h profiles/profiles.def raster/raster_plan.h) \
          $(addprefix kernels/draw/,draw.h draw_size.h draw_tally.h draw_types.h drawing.h plain.h) \
          $(shell sed -n 's/^.include "\(kernels[^"]*\)".*/\1/p' kernels/ops.h)
VERSION = $(shell sed -n 's/.*kiln_version\[\] = "\(.*\)";/\1/p' base/option.c)
# Raised when a program must be compiled again.
SONAME := libsplatkiln.so.1
LIBDIR ?= $(PREFIX)/lib
.PHONY: lib install uninstall release deb

## lib: libsplatkiln, static and shared, into build
lib: $O/libsplatkiln.a $O/$(SONAME) $O/splatkiln.pc
$O/$(SONAME): $(LIB_OBJ) $O/libsplatkiln.list $(CUDA_STATE) pipelines/library.map
	$(call say,LINK,$@)$(CC) -shared -Wl,-soname,$(SONAME) -Wl,--version-script=pipelines/library.map -Wl,--no-undefined \
	    -Wl,--as-needed $(CFLAGS) -fopenmp $(LDFLAGS) $(LIB_OBJ) $(LIB_LDLIBS) -o $@
# Requires.private would make pkg-config ask for the -dev packages of SQLite and others also where nobody links statically.
$O/splatkiln.pc: FORCE | $(CUDA_STATE)
	@mkdir -p $(@D)
	@$(pkg_config_lines) $(put)
pkg_config_lines = printf '%s\n' 'prefix=$(PREFIX)' 'libdir=$(LIBDIR:$(PREFIX)/%=$${prefix}/%)' 'includedir=$${prefix}/include/splatkiln' '' \
    'Name: splatkiln' 'Description: reads and draws bakes of 3D Gaussian Splatting scenes' 'Version: $(VERSION)' \
    'Cflags: -I$${includedir}' 'Libs: -L$${libdir} -lsplatkiln' 'Libs.private: -fopenmp $(LIB_LDLIBS)'

# Links what a build without CUDA links, where builds with CUDA are made: ops_no_cuda.c must not fall behind.
NO_CUDA := $(if $(CU_SRC),$O/no-cuda/kiln)
$O/no-cuda/kiln: $O/stages/tools/kiln.c.o $(PART_SRC:%=$O/%.o) $(filter-out %.cu.o %/ops_cuda.c.o,$(LIB_OBJ)) $O/kernels/ops_no_cuda.c.o
	@mkdir -p $(@D)
	$(call say,LINK,$@)$(CC) $(CFLAGS) -fopenmp $(LDFLAGS) $^ $(filter-out $(CUDA_LDLIBS),$(LDLIBS)) -o $@

# Shell completion from the programs' option tables. Where shells look: bash by the name of the command, zsh in its fpath.
COMPLETION := $O/completion/kiln.bash $O/completion/_kiln
$O/completion/kiln.bash: SHELL_NAME := bash
$O/completion/_kiln: SHELL_NAME := zsh
$(COMPLETION): $(BIN)
	@mkdir -p $(@D)
	$O/bin/kiln completion $(SHELL_NAME) $(put)
BASH_DIR := share/bash-completion/completions
ZSH_DIR  ?= share/zsh/site-functions

AT = $(DESTDIR)$(PREFIX)
# Where kiln looks for scripts, seen from its folder; in a build folder they are those of the source tree.
$O/bin/kiln: | $O/share/splatkiln/slurm
$O/share/splatkiln/slurm:
	@mkdir -p $(@D) && ln -sfnr pipelines/slurm $@

# The pkg-config file is not that of $O, which another make may write for another PREFIX just now.
## install: programs, man pages, completion, library, headers, pages and examples under PREFIX (DESTDIR before it; LIBDIR: the library)
install: $(BIN) $(MAN) $(COMPLETION) lib install-docs
	install -d '$(AT)/bin' '$(AT)/share/man/man1' '$(AT)/$(BASH_DIR)' '$(AT)/$(ZSH_DIR)' '$(DESTDIR)$(LIBDIR)/pkgconfig'
	install $(BIN) '$(AT)/bin'
	for s in $(STAGE_NAMES); do ln -f '$(AT)/bin/kiln' "$(AT)/bin/kiln-$$s" 2>/dev/null || :; done # as in build/bin
	install -m 644 $(MAN) '$(AT)/share/man/man1'
	install -d '$(AT)/share/splatkiln/slurm'
	install pipelines/slurm/job.sh '$(AT)/share/splatkiln/slurm'
	if [ -e $(VIEWER)/viewer.js ]; then install -d '$(AT)/share/splatkiln/viewer' && install -m 644 $(VIEWER)/* '$(AT)/share/splatkiln/viewer'; fi
	install -m 644 $O/completion/kiln.bash '$(AT)/$(BASH_DIR)/kiln'
	for p in $(notdir $(PROGRAMS)); do ln -sf kiln "$(AT)/$(BASH_DIR)/$$p" || exit 1; done
	install -m 644 $O/completion/_kiln '$(AT)/$(ZSH_DIR)'
	install -m 644 $O/libsplatkiln.a '$(DESTDIR)$(LIBDIR)'
	install $O/$(SONAME) '$(DESTDIR)$(LIBDIR)'
	ln -sf $(SONAME) '$(DESTDIR)$(LIBDIR)/libsplatkiln.so'
	$(pkg_config_lines) > '$(DESTDIR)$(LIBDIR)/pkgconfig/splatkiln.pc' && chmod 644 '$(DESTDIR)$(LIBDIR)/pkgconfig/splatkiln.pc'
	for h in $(PUBLIC); do install -D -m 644 $$h "$(AT)/include/splatkiln/$$h" || exit 1; done
	@case :$$PATH: in *:'$(PREFIX)/bin':*) echo 'installed: $(AT)/bin/kiln' ;; \
	    *) echo 'installed: $(AT)/bin/kiln; to type kiln alone: export PATH=$(PREFIX)/bin:$$PATH' ;; esac
## uninstall: removes what install has put there
uninstall:
	rm -f $(BIN:$O/bin/%='$(AT)/bin/%') $(MAN:$O/man/%='$(AT)/share/man/man1/%')
	rm -f $(BIN:$O/bin/%='$(AT)/$(BASH_DIR)/%') '$(AT)/$(ZSH_DIR)/_kiln'
	rm -f $(addprefix '$(DESTDIR)$(LIBDIR)'/,libsplatkiln.a libsplatkiln.so $(SONAME) pkgconfig/splatkiln.pc)
	rm -rf '$(AT)/include/splatkiln' '$(AT)/share/splatkiln' '$(AT)/share/doc/splatkiln'

# Every GPU since Turing; newer ones take the PTX of the last.
RELEASE_ARCHS := 75 80 86 89 90 100 120
## release: programs, man pages and library for every GPU since Turing, without debug information, into build-release
release:
	$(if $(CU_SRC)$(filter command,$(origin CUDA)),,$(error a release has CUDA, and $(or $(NVCC_WHY_NOT),CUDA is 0); \
	    make release CUDA=0 makes one without))
	$(MAKE) O=build-release CUDA_ARCHS='$(RELEASE_ARCHS)' CFLAGS='-O2' NVFLAGS='-O3 -lineinfo --threads 0 --compress-mode=size' LDFLAGS='-s $(LDFLAGS)' all lib man
	@du -sh build-release/bin build-release/libsplatkiln.a build-release/$(SONAME)
	@echo 'built: build-release; make install O=build-release installs it'

## deb: Debian packages of a release, into build-release/deb: programs, library, what is needed to compile against it
deb: release
	-$(MAKE) O=build-release viewer
	O=build-release MAKE='$(MAKE)' VERSION='$(VERSION)' SONAME='$(SONAME)' pipelines/deb.sh
