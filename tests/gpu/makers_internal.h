/* makers_internal -- what the files of makers share: each has the arguments of some operations, for
 * makers.c to find by their names. */
#ifndef KILN_TESTS_GPU_MAKERS_INTERNAL_H
#define KILN_TESTS_GPU_MAKERS_INTERNAL_H

#include "tests/gpu/call.h"
#include "tests/gpu/makers.h"

/* Zeroed memory that made_release frees. */
void *made_own(made_call *c, uint64_t count, size_t elem);
/* A scene that is there for its Gaussians, all of them numbers. */
bool scene_is_finite_cloud(const scene *s);
/* What the camera sees; false where that takes too long. */
bool scene_look_quickly(scene *s);
/* Numbers of both signs, from 2^-20 to 2^20 and some of them zero, each made from its place. */
float *make_signed(made_call *c, uint64_t n);

bool make_depth_order(const scene *s, unsigned variant, kiln_depth_order_args *a, made_call *c);
bool make_initial(const scene *s, unsigned variant, kiln_initial_args *a, made_call *c);
bool make_knn(const scene *s, unsigned variant, kiln_knn_args *a, made_call *c);
bool make_knn_join(const scene *s, unsigned variant, kiln_knn_join_args *a, made_call *c);
bool make_ranks(const scene *s, unsigned variant, kiln_ranks_args *a, made_call *c);
bool make_spatial_order(const scene *s, unsigned variant, kiln_spatial_order_args *a, made_call *c);
bool make_palette_train(const scene *s, unsigned variant, kiln_palette_train_args *a, made_call *c);
bool make_palette_index(const scene *s, unsigned variant, kiln_palette_index_args *a, made_call *c);
bool make_palette_assign(const scene *s, unsigned variant, kiln_palette_assign_args *a,
                         made_call *c);
bool make_undistort(const scene *s, unsigned variant, kiln_undistort_args *a, made_call *c);
bool make_prune(const scene *s, unsigned variant, kiln_prune_args *a, made_call *c);
bool make_sh_halves(const scene *s, unsigned variant, kiln_sh_halves_args *a, made_call *c);
bool make_project(const scene *s, unsigned variant, kiln_project_args *a, made_call *c);
bool make_tile_pairs_count(scene *s, unsigned variant, kiln_tile_pairs_count_args *a, made_call *c);
bool make_tile_pairs_emit(scene *s, unsigned variant, kiln_tile_pairs_emit_args *a, made_call *c);
bool make_tile_lists(scene *s, unsigned variant, kiln_tile_lists_args *a, made_call *c);
bool make_raster(scene *s, unsigned variant, kiln_raster_args *a, made_call *c);
bool make_blend_weights(scene *s, unsigned variant, kiln_blend_weights_args *a, made_call *c);
bool make_raster_backward(scene *s, unsigned variant, kiln_raster_backward_args *a, made_call *c);
bool make_project_backward(scene *s, unsigned variant, kiln_project_backward_args *a, made_call *c);
bool make_adam(const scene *s, unsigned variant, kiln_adam_args *a, made_call *c);
bool make_visible_gather(scene *s, unsigned variant, kiln_visible_gather_args *a, made_call *c);
bool make_visible_window(scene *s, unsigned variant, kiln_visible_window_args *a, made_call *c);
bool make_visible_order(scene *s, unsigned variant, kiln_visible_order_args *a, made_call *c);
bool make_metrics(const scene *s, unsigned variant, kiln_metrics_args *a, made_call *c);
bool make_ssim(const scene *s, unsigned variant, kiln_ssim_args *a, made_call *c);
bool make_ssim_backward(const scene *s, unsigned variant, kiln_ssim_backward_args *a, made_call *c);
bool make_ssim3d(const scene *s, unsigned variant, kiln_ssim3d_args *a, made_call *c);
bool make_ssim3d_backward(const scene *s, unsigned variant, kiln_ssim3d_backward_args *a,
                          made_call *c);
bool make_pixel_hashes(const scene *s, unsigned variant, kiln_pixel_hashes_args *a, made_call *c);
bool make_png_rows(const scene *s, unsigned variant, kiln_png_rows_args *a, made_call *c);
bool make_pixel_bytes(const scene *s, unsigned variant, kiln_pixel_bytes_args *a, made_call *c);

#endif
