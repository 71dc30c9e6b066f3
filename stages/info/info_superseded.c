/* info_superseded -- files of the bake's folder that do not follow from the bake any more. */
#include "stages/info/info_internal.h"

#include "base/quote.h"
#include "stages/engine/json_text.h"
#include "stages/products/stale_products.h"

kiln_status kiln_info_superseded(kiln_manifest *m, json_t *info, kiln_error *err)
{
    kiln_stale_list stale;
    json_t *list = json_array();
    kiln_status st = kiln_info_set(info, "superseded", list, err);
    if (st == KILN_OK) {
        st = kiln_stale_products_get(m, &stale, err);
        for (uint32_t i = 0; i < stale.n && st == KILN_OK; i++) {
            json_t *one = json_pack("{s:o, s:b}", "path", kiln_json_string(stale.products[i].path),
                                    "unchanged", (int)stale.products[i].unchanged);
            if (json_array_append_new(list, one) != 0)
                st = kiln_fail(err, KILN_E_NOMEM, "out of memory for the bake's files");
        }
        kiln_stale_list_release(&stale);
    }
    return st;
}

void kiln_info_print_superseded(const json_t *info)
{
    enum { NAMED = 5 };
    const json_t *list = json_object_get(info, "superseded"), *one;
    const size_t n = json_array_size(list);
    size_t i;
    if (n == 0) return;
    kiln_print_gap();
    kiln_print("%zu file%s of the bake's folder do%s not belong to the bake any more:", n,
               n == 1 ? "" : "s", n == 1 ? "es" : "");
    json_array_foreach(list, i, one)
    {
        if (i == NAMED) break;
        kiln_print("  %s%s", json_string_value(json_object_get(one, "path")),
                   json_is_true(json_object_get(one, "unchanged")) ? ""
                                                                   : " (changed since, so kept)");
    }
    if (n > NAMED) kiln_print("  and %zu more", n - NAMED);
    kiln_print("kiln gc removes them");
}
