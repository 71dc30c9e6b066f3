/* info_cameras -- writes the cameras of a bake as the JSON list that kiln-render --cameras
 * takes. */
#include "stages/info/info_internal.h"

#include "base/count.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/quote.h"
#include "stages/cameras/cameras_list_text.h"
#include "stages/products/product_guard.h"
#include "stages/select/move.h"

#include <stdlib.h>
#include <string.h>

kiln_status kiln_info_write_cameras(kiln_run *r, const char *output, bool overwrite,
                                    kiln_error *err)
{
    kiln_manifest *m = kiln_run_manifest(r);
    kiln_status st = KILN_OK;
    kiln_scene *scene = NULL;
    kiln_camera *cameras = NULL;
    kiln_similarity move;
    kiln_buffer text = {0};
    uint32_t n;
    kiln_product_seen seen;
    if (strcmp(output, "-") != 0)
        KILN_TRY(kiln_product_guard_ask(m, overwrite, output, &seen, err));
    KILN_GO(KILN_ALLOC(&scene, 1, "a scene", err));
    KILN_GO(kiln_scene_get(m, scene, err));
    KILN_GO(kiln_transforms_moves(scene->transforms, &move, err));
    KILN_GO(kiln_cameras_get(m, &cameras, &n, err));
    KILN_GO(kiln_cameras_list_text(cameras, n, &move, &text, err));
    if (strcmp(output, "-") == 0) {
        kiln_print_json((const char *)text.data);
        goto done;
    }
    text.data[text.size - 1] = '\n';
    KILN_GO(kiln_product_write(output, text.data, text.size, &seen, err));
    kiln_say("%s written to '%s'", KILN_COUNT(n, "camera"), output);
done:
    kiln_buffer_release(&text);
    free(cameras);
    free(scene);
    return st;
}
