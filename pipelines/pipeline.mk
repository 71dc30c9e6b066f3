# pipeline.mk -- make rules that bake a scene.
#
#   make pipeline [SCENE=dir-or-file] [OUT=dir] [DEVICE=auto|cpu|cuda] [JOBS=n] [PROFILE=name] [OPTION=value ...]
#   make prune SCENE=dir MIN_OPACITY=0.02     one stage again
#
# Stages and their order are the rows of stages.def. Every option of a stage's program is a variable: --min-opacity is
# MIN_OPACITY, for one stage alone PRUNE_MIN_OPACITY. The programs themselves say which there are (--help-make), so there
# is no list here to keep. Only make's command line counts, never the environment, and nothing has a default here: what
# is not given is what the program stored or what its own table says.

STAGE_ROWS  := $(shell sed -n 's/^STAGE.\([a-z]*\),.*/\1:\U\1/p' pipelines/stages.def)
STAGE_ORDER := $(foreach r,$(STAGE_ROWS),$(firstword $(subst :, ,$r)))
stage_upper  = $(patsubst $1:%,%,$(filter $1:%,$(STAGE_ROWS)))
# The stages to run, in their order whatever the order of the goals.
BAKES := $(if $(filter pipeline,$(MAKECMDGOALS)),$(STAGE_ORDER),$(filter $(MAKECMDGOALS),$(STAGE_ORDER)))

.PHONY: pipeline bake $(STAGE_ORDER)
## pipeline: bakes SCENE=dir-or-file into OUT=dir; without SCENE a demo. Any option of a stage: MIN_OPACITY=0.02
## import, knn, prune, chunk, tiles, render, export: one stage again; the next pipeline redoes what depends on it
pipeline $(STAGE_ORDER): bake

ifneq ($(BAKES),)

# These options mean something else in each program that has them: the stage must be said, as in EXPORT_FORMAT.
AMBIGUOUS := FORMAT LAYER ORDER CAMERAS OUTPUT
# The value of a variable of make's command line, as typed; a variable of the environment has none.
given = $(if $(filter command,$(origin $1)),$(value $1))
quote = '$(subst ','\'',$1)'
# name:option pairs of a stage, with the stage's own names first, so that they win.
vars  = $(foreach p,$(VARS_$1),$(call stage_upper,$1)_$p) $(filter-out $(AMBIGUOUS:%=%:%),$(VARS_$1))
name  = $(firstword $(subst :, ,$1))
# One option of a stage: its most specific variable that is given.
option_value = $(firstword $(foreach p,$(filter %:$2,$(call vars,$1)),$(if $(call given,$(call name,$p)),$(call name,$p))))
stage_option = $(foreach v,$(call option_value,$1,$2),--$2=$(call quote,$(call given,$v)))
stage_args   = $(foreach o,$(sort $(foreach p,$(VARS_$1),$(lastword $(subst :, ,$p)))),$(call stage_option,$1,$o))

# Making this file builds the programs; make then starts over with it.
include $O/options.mk
$O/options.mk: $(STAGE_ORDER:%=$O/bin/kiln-%)
	@for p in $^; do $$p --help-make || exit 1; done > $@.tmp && mv $@.tmp $@

# A variable that no stage to be run has is a slip of the pen, which must not bake something else than was meant.
BUILD_VARS := O CC CUDA CUDA_ARCHS CUDA_HOME PREFIX DESTDIR CFLAGS CPPFLAGS LDFLAGS NVFLAGS DEBS TEST_DEBS V SCENE OUT
KNOWN_VARS  = $(foreach s,$(BAKES),$(foreach p,$(call vars,$s),$(call name,$p)))
TYPED_VARS := $(foreach v,$(filter-out -% .% MAKE%,$(.VARIABLES)),$(if $(filter command,$(origin $v)),$v))
ifdef VARS_$(lastword $(STAGE_ORDER))
$(foreach v,$(filter-out $(BUILD_VARS) $(KNOWN_VARS),$(TYPED_VARS)),$(error \
    $(shell pipelines/suggest.awk $(call quote,$v) $(sort $(KNOWN_VARS) SCENE OUT))))
endif

# The demo scene, made once by our own generator.
$O/demo.made: | $O/bin/kiln-generate
	$O/bin/kiln-generate demo $O/demo
	@touch $@

DEMO := $(if $(call given,SCENE)$(if $(filter import,$(BAKES)),,$(call given,OUT)),,$O/demo.made)

# $$scene and $$out in the shell of a recipe, a leading ~ expanded: OUT, else bake/ in a scene's folder, else FILE.bake
# beside a scene's file.
define places
scene=$(call quote,$(call given,SCENE)); out=$(call quote,$(call given,OUT)); \
: "$${scene:=$O/demo}"; \
case $$scene in '~'|'~/'*) scene=$$HOME$${scene#'~'};; esac; \
case $$out in '~'|'~/'*) out=$$HOME$${out#'~'};; esac; \
if [ -n "$$out" ]; then :; \
elif [ -d "$$scene" ]; then out=$${scene%/}/bake; \
else file=$${scene##*/}; out=$${scene%"$$file"}$${file%.*}.bake; fi; \
manifest=$$out/manifest.db
endef

# What a stage's exit code means for those behind it: with --allow-partial (ALLOW_PARTIAL=1) they go on from 7, finished
# partially, and the bake ends with it.
goes_on = $(if $(call option_value,$1,allow-partial),$(filter-out 0 no off false,$(call given,$(call option_value,$1,allow-partial))))
after_failure = $(if $(call goes_on,$1),{ code=$$?; [ $$code = 7 ] && partial="$$partial kiln-$1" || exit $$code; },exit)

# A slip in an option of the last stage is told before the first one has worked for an hour: --version ends a program
# after its options have been read.
# A bake stops at the first stage that fails; make shows the exit code behind that stage's own sentence. The programs that
# only look (kiln-info, kiln-verify) are built with it: they are what a user reaches for next.
bake: $(BAKES:%=$O/bin/kiln-%) $(BIN) $(DEMO)
	@$(foreach s,$(BAKES),$O/bin/kiln-$s $(call stage_args,$s) --version >/dev/null || exit;) \
	$(places); partial=; $(foreach s,$(BAKES),\
	  $(if $V,echo kiln-$s $(call quote,$(call stage_args,$s)) >&2;) \
	  $O/bin/kiln-$s $(if $(filter import,$s),"$$scene") "$$manifest" $(call stage_args,$s) || $(call after_failure,$s);) \
	if [ -n "$$partial" ]; then \
	  echo "baked in part: $$manifest lacks what$$partial gave up; the same command tries it again, kiln-info names it" >&2; exit 7; fi; \
	echo "baked: $$manifest; pictures: $$out/renders; for other renderers: $$out/export"

endif
