/* export_levels -- main of kiln-export: where an export is to be a cut of the levels of detail and
 * the bake has none, or those of other chunks, kiln-lod makes them first, with the options that
 * the bake stores for it.
 *
 * They stay in the bake: they take as long as all of the export, and the next count wants them
 * again. Rejected: levels in scratch, which need a copy of the layer on disk, and are made anew
 * after an interruption. */
#ifndef KILN_STAGES_FRONT_EXPORT_LEVELS_H
#define KILN_STAGES_FRONT_EXPORT_LEVELS_H

/* Returns the exit code. As kiln_program_main. */
int kiln_front_export(int argc, char **argv);

#endif
