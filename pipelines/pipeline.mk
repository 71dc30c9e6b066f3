# pipeline.mk -- make rules that bake a scene; they call `kiln pipeline`, which does all of it (stages/front/pipeline.c).
#
#   make pipeline [SCENE=dir-or-file] [OUT=dir] [DEVICE=auto|cpu|cuda] [JOBS=n] [PROFILE=name] [OPTION=value ...]
#   make prune SCENE=dir MIN_OPACITY=0.02     one stage again
#
# Stages are the rows of stages.def. Every option of a stage's program is a variable: --min-opacity is MIN_OPACITY, for one
# stage alone PRUNE_MIN_OPACITY. There is no list of them here: what was typed goes to `kiln pipeline`, which knows them and
# refuses others. Only make's command line counts, never the environment.

STAGE_ORDER := $(shell sed -n 's/^STAGE.\([a-z]*\),.*/\1/p' pipelines/stages.def)
BAKES := $(if $(filter pipeline pipeline-slurm,$(MAKECMDGOALS)),$(STAGE_ORDER),$(filter $(MAKECMDGOALS),$(STAGE_ORDER)))

.PHONY: pipeline pipeline-slurm bake $(STAGE_ORDER)
## pipeline: bakes SCENE=dir-or-file into OUT=dir; without SCENE a demo. Any option of a stage: MIN_OPACITY=0.02
## pipeline-slurm: the same over the hosts of a Slurm cluster (TASKS=8 SBATCH='--partition=gpu --gres=gpu:1')
## import, knn, ... (any stage): one stage again; the next pipeline redoes what depends on it
pipeline pipeline-slurm $(STAGE_ORDER): bake

ifneq ($(BAKES),)
blank :=
comma := $(blank),$(blank)
# The value of a variable of make's command line, as typed; a variable of the environment has none.
given = $(if $(filter command,$(origin $1)),$(value $1))
quote = '$(subst ','\'',$1)'

# What make and the build take; everything else that was typed is for the stages.
BUILD_VARS := O CC CUDA CUDA_ARCHS CUDA_HOME PREFIX LIBDIR DESTDIR CFLAGS CPPFLAGS LDFLAGS NVFLAGS DEBS TEST_DEBS V
TYPED_VARS := $(filter-out $(BUILD_VARS),$(foreach v,$(filter-out -% .% MAKE%,$(.VARIABLES)),$(if $(filter command,$(origin $v)),$v)))

# The demo scene is made once, in the build folder. A single stage of a bake that OUT names needs no scene.
DEMO := $(if $(call given,SCENE)$(if $(filter import,$(BAKES)),,$(call given,OUT)),,--demo SCENE=$(call quote,$O/demo))

# The recipe ends with the exit code of the stage that failed, which make turns into 2; the last line above make's own says it.
# All programs are built with it: kiln-info and kiln-verify are what a user reaches for next.
bake: $(BIN)
	$(if $V,,@)$O/bin/kiln $(if $(filter pipeline-slurm,$(MAKECMDGOALS)),slurm,pipeline) --make $(if $(filter pipeline pipeline-slurm,$(MAKECMDGOALS)),,--stages=$(subst $() ,$(comma),$(strip $(BAKES)))) \
	    $(DEMO) $(foreach v,$(TYPED_VARS),$v=$(call quote,$(call given,$v)))
endif
