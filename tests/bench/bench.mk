# bench.mk -- how long the kernels take. The program runs alone, on a machine without git, toolkit or packages too.
BENCH := $O/tests/bench/kernels_bench
INSERT_BENCH := $O/tests/bench/insert_bench
GATHER_BENCH := $O/tests/bench/gather_bench
PNG_LEVEL6 := $O/tests/bench/png_level6
UNITS_BENCH := $O/tests/bench/units_bench
CODEC_RATE := $O/tests/bench/codec_rate
RAM_WATCH := $O/tests/bench/ram_watch
COARSEN_BENCH := $O/tests/bench/coarsen_bench
FORMAT_FILES := $O/tests/bench/format_files
.PHONY: bench bench-build
## bench: times of the kernels beside the machine's limits and other programs' figures, whole pictures, and exactness, by which alone
## bench: it fails (SHARED=dir: trained scenes and other renderers' pictures, too; tests/bench/README.md says how to read it;
## bench: BENCH_ARGS='--only raster,knn --quick': a part of the GPU's, tests/bench/kernels_bench.cu)
bench: $(if $(wildcard $O/bundle.stamp),,bench-build $(if $(CU_SRC),$(BIN) $(if $(SHARED),$O/tests/unit/truth_test)))
	$(if $(BUILT_CUDA),@O='$O' SHARED='$(SHARED)' tests/bench/all $(BENCH_ARGS))
## bench-build: builds what bench runs, build/tests/bench/kernels_bench
bench-build: $(if $(CU_SRC),$(BENCH)) $(INSERT_BENCH) $(GATHER_BENCH) $(CODEC_RATE) $(PNG_LEVEL6)
	$(if $(CU_SRC),,@echo 'the GPU part of bench did not run: this build has no CUDA')
$(BENCH): $(patsubst %,$O/%.o,$(wildcard tests/bench/*.cu) tests/bench/real_scene.c commit) $O/libsplatkiln.a
	$(call say,LINK,$@)$(CXX) -static-libstdc++ -static-libgcc $(LDFLAGS) $^ -Wl,--as-needed -Wl,-Bstatic -lgomp -Wl,-Bdynamic $(filter-out -lstdc++,$(LIB_LDLIBS)) -o $@
$(INSERT_BENCH): $O/tests/bench/insert_bench.c.o $(LINKED)
	@mkdir -p $(@D)
	$(call say,LINK,$@)$(CC) $(CFLAGS) -fopenmp $(LDFLAGS) $^ $(LDLIBS) -o $@
$(GATHER_BENCH): $O/tests/bench/gather_bench.c.o $(LINKED)
	@mkdir -p $(@D)
	$(call say,LINK,$@)$(CC) $(CFLAGS) -fopenmp $(LDFLAGS) $^ $(LDLIBS) -o $@
$(UNITS_BENCH): $O/tests/bench/units_bench.c.o $(LINKED)
	@mkdir -p $(@D)
	$(call say,LINK,$@)$(CC) $(CFLAGS) -fopenmp $(LDFLAGS) $^ $(LDLIBS) -o $@
$(COARSEN_BENCH): $O/tests/bench/coarsen_bench.c.o $(LINKED)
	@mkdir -p $(@D)
	$(call say,LINK,$@)$(CC) $(CFLAGS) -fopenmp $(LDFLAGS) $^ $(LDLIBS) -o $@
.PHONY: bench-coarsen
## bench-coarsen: merging the chunks of a bake into levels: CPU us and bytes a row, rows and dB of each level (MANIFEST=path,
## bench-coarsen: BENCH_ARGS='seen aa whole cameras 8': tests/bench/coarsen_bench.c)
bench-coarsen: $(COARSEN_BENCH)
	@$(COARSEN_BENCH) '$(MANIFEST)' $(BENCH_ARGS)
$(CODEC_RATE): $O/tests/bench/codec_rate.c.o $(LINKED)
	@mkdir -p $(@D)
	$(call say,LINK,$@)$(CC) $(CFLAGS) -fopenmp $(LDFLAGS) $^ $(LDLIBS) -o $@
$(PNG_LEVEL6): $O/tests/bench/png_level6.c.o
	@mkdir -p $(@D)
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(LDFLAGS) $^ -lpng -o $@
$(RAM_WATCH): $O/tests/bench/ram_watch.c.o
	@mkdir -p $(@D)
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(LDFLAGS) $^ -o $@
$(FORMAT_FILES): $O/tests/bench/format_files.c.o
	@mkdir -p $(@D)
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(LDFLAGS) $^ -lwebp -lzstd -lz -lm -o $@
tests: $(PNG_LEVEL6) $(RAM_WATCH) $(FORMAT_FILES)
.PHONY: bench-frames
## bench-frames: 300 cameras of a million Gaussians to PNG files by kiln-render, ms a frame and size (FRAMES=, DEVICES=, FORMAT=: tests/bench/frames)
bench-frames: $(if $(wildcard $O/bundle.stamp),,$(BIN) $(PNG_LEVEL6))
	@O='$O' tests/bench/frames
.PHONY: bench-formats
## bench-formats: CPU seconds and memory of importing each format, beside a binary PLY of the same rows (GAUSSIANS=, FORMATS="spz3 sog",
## bench-formats: SPLAT_TRANSFORM=path: tests/bench/formats)
bench-formats: $(BIN) $(RAM_WATCH) $(FORMAT_FILES)
	@O='$O' tests/bench/formats $(FORMATS)
.PHONY: bench-export
## bench-export: CPU seconds, memory, size and dB of each format that is written, beside splat-transform and Niantic's packer where make
## bench-export: viewers has brought them (GAUSSIANS=, SCENE=folder, SH=, FORMATS="spz sog": tests/bench/exports)
bench-export: $(BIN) $(RAM_WATCH)
	@O='$O' tests/bench/exports $(FORMATS)
.PHONY: bench-convert
## bench-convert: CPU seconds and memory of kiln convert beside splat-transform's (GAUSSIANS=, PAIRS="ply:spz sog:ply": tests/bench/conversions)
bench-convert: $(BIN) $(RAM_WATCH)
	@O='$O' tests/bench/conversions $(PAIRS)
.PHONY: bench-hosts
## bench-hosts: processor seconds of each stage on one host and shared out among several, and how fast parts are gathered (N=600000
## bench-hosts: PARTS=8 CAMERAS= STAGES= DIR=: tests/bench/hosts)
bench-hosts: $(BIN)
	@O='$O' tests/bench/hosts
.PHONY: bench-gather
## bench-gather: seconds and memory of gathering parts, beside bare inserts (GAUSSIANS=, PARTS=, THREADS=, DIR=: tests/bench/gather)
bench-gather: $(BIN) $(INSERT_BENCH) $(GATHER_BENCH)
	@O='$O' tests/bench/gather $(DIR)
.PHONY: bench-units
## bench-units: seconds and bytes that the engine takes for each unit of a list, and with SHARDS=8 over so many hosts (N=1000000
## bench-units: OUTPUTS=0 SHARDS= DIR=: tests/bench/units_bench.c)
bench-units: $(UNITS_BENCH)
	@d=$$(mktemp -d "$(or $(DIR),/tmp)/kiln-units.XXXXXX") && trap 'rm -rf "$$d"' EXIT && \
	    set -- --quiet --count $(or $(N),1000000) --outputs $(or $(OUTPUTS),0) && $(UNITS_BENCH) "$$d/units.db" "$$@" && \
	    if [ -n '$(SHARDS)' ]; then \
	        echo && $(UNITS_BENCH) "$$d/hosts.db" "$$@" --plan --tasks $(SHARDS) && \
	        for i in $$(seq $(SHARDS)); do $(UNITS_BENCH) "$$d/hosts.db" "$$@" --shard $$i/$(SHARDS) --part "$$d/parts"; done && \
	        $(UNITS_BENCH) "$$d/hosts.db" "$$@" --gather "$$d/parts"; \
	    fi
.PHONY: bench-scaling
## bench-scaling: render, tiles, lod, refinement, SOG and knn on one, two and all GPUs of this machine, and a bake with auto, cpu and a GPU
## bench-scaling: that is named (STEPS="scene render tiles lod sog refine knn homes"; tests/bench/scaling)
bench-scaling: $(if $(wildcard $O/bundle.stamp),,$(BIN) $(INSERT_BENCH))
	@O='$O' tests/bench/scaling $(STEPS)
.PHONY: bench-bake
## bench-bake: a whole bake, stage by stage: time, CPU, bytes and memory, beside what the disk, zstd and the cores allow (N=, CAMERAS=,
## bench-bake: DIR=scratch, DEVICES=, RAM=, STEPS="import verify": tests/bench/bake)
bench-bake: $(if $(wildcard $O/bundle.stamp),,$(BIN) $(CODEC_RATE))
	@O='$O' MADE=$(if $(wildcard $O/bundle.stamp),,1) tests/bench/bake
.PHONY: bench-lod
## bench-lod: how well levels of detail stand for the whole scene, beside splat-transform's ways to thin a scene out (SCENES='chair demo',
## bench-lod: WAYS='M V R' AA='off on' STEPS=100 LEVELS= DIR=: tests/bench/lod)
bench-lod: $(BIN)
	@O='$O' SHARED='$(or $(SHARED),../shared)' tests/bench/lod
.PHONY: bench-decimate
## bench-decimate: files of fewer Gaussians (kiln convert and kiln-export --count) beside splat-transform's --decimate: dB, CPU seconds,
## bench-decimate: memory (SCENES='chair demo', PERCENTS='50 10', DIR=: tests/bench/decimate)
bench-decimate: $(BIN) $(RAM_WATCH)
	@O='$O' SHARED='$(or $(SHARED),../shared)' tests/bench/decimate $(SCENES)
.PHONY: bench-lod-distances
## bench-lod-distances: what kiln-render --level draws near and far, and how far that is from the full scene (MANIFESTS='bakes with levels'
## bench-lod-distances: WISHES='dB:35' FACTORS='1 2 4 8': tests/bench/lod_distances)
bench-lod-distances: $(BIN)
	@O='$O' tests/bench/lod_distances $(MANIFESTS)
.PHONY: soak
## soak: what each stage takes of host memory under which --ram, watched from outside: 3 million Gaussians, caps x threads, some 3 GB
## soak: of disk and half an hour (GAUSSIANS=, CAPS=, THREADS=, STAGES=, SCRATCH=dir: tests/bench/soak)
soak: soak-hosts $(BIN) $(RAM_WATCH)
	@O='$O' tests/bench/soak
.PHONY: soak-hosts
## soak-hosts: tests/soak: several hosts, of which Slurm's nodes and controller, tasks and gathers are killed (HOST_KILLS=200 SEED=);
## soak-hosts: kiln-serve under 2,000 connections (T=soak/serve_load)
soak-hosts: $(BIN)
	@O='$O' tests/run $(if $T,'$T',soak)
include tests/bench/cpu.mk
# Which commit the figures are of.
$O/commit.c: FORCE
	@mkdir -p $(@D) && printf 'extern const char kiln_bench_commit[];\nconst char kiln_bench_commit[] = "%s";\n' \
	    "$$(git describe --always --dirty 2>/dev/null || echo unknown)" > $@.new
	@cmp -s $@.new $@ && rm $@.new || mv $@.new $@
$O/commit.o: $O/commit.c
	$(call say,CC,$<)$(CC) -c $< -o $@
