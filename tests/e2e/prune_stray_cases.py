"""The python of tests/e2e/prune_stray.t: `py FUNCTION [argument...]` of tests/cases.sh calls one of these."""
import os
import sys

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))


def planes(manifest, layer, plane, kind, components):
    from schema_page import reader
    array, db = reader(manifest)
    where = "plane_data WHERE layer = ? AND chunk = ? AND plane = ?"
    chunks = [c for c, in db.execute("SELECT DISTINCT chunk FROM plane_data WHERE layer = ? ORDER BY ordinal", (layer,))]
    return np.concatenate([np.array(array(kind, where, layer, c, plane)).reshape(components, -1) for c in chunks], axis=1)


def mean_distances(means, counts):
    """To the k nearest others for each k of counts, in float64: queries in the order of x, candidates within a reach of x that grows until it is enough."""
    order = np.argsort(means[0], kind="stable")
    p = means[:, order].astype(np.float64)
    n, step, k = p.shape[1], 64, max(counts)
    out = np.empty((len(counts), n))
    reach = 0.005 * (p[0, int(0.99 * n)] - p[0, int(0.01 * n)])
    for first in range(0, n, step):
        todo = np.arange(first, min(first + step, n))
        near = reach
        while len(todo):
            lo, hi = np.searchsorted(p[0], [p[0, todo[0]] - near, p[0, todo[-1]] + near])
            d2 = sum((p[a, todo][:, None] - p[a, lo:hi][None, :])**2 for a in range(3))
            d2[np.arange(len(todo)), todo - lo] = np.inf
            best = np.sqrt(np.sort(np.partition(d2, min(k, hi - lo) - 1, axis=1)[:, :k], axis=1))
            done = (best[:, -1] <= near) if hi - lo > k else np.zeros(len(todo), bool)
            if lo == 0 and hi == n:
                done[:] = True
            for means_of, m in zip(out, counts):
                means_of[order[todo[done]]] = best[done, :m].mean(axis=1)
            todo, near = todo[~done], 4 * near
    return out


def dropped(source, *asked):
    """asked: PRUNED K S, once or more. Fails where other rows are dropped than the definition says."""
    asked = [(asked[i], int(asked[i + 1]), float(asked[i + 2])) for i in range(0, len(asked), 3)]
    rows = planes(source, "source", "source_row", "I", 1)[0]
    all_values = mean_distances(planes(source, "source", "means", "f", 3), [k for _, k, _ in asked])
    for values, (pruned, k, sigmas) in zip(all_values, asked):
        limit = values.mean() + sigmas * values.std(ddof=1)
        stays = np.isin(rows, planes(pruned, "pruned", "source_row", "I", 1)[0])
        wrong = (values > limit) == stays
        print(f"K {k}, S {sigmas}: limit {limit:g}, {int((~stays).sum())} of {len(stays)} dropped, {int(wrong.sum())} otherwise")
        assert not wrong.any(), (rows[wrong][:10], values[wrong][:10], limit)
        assert 100 < (~stays).sum() < len(stays) / 4


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
