// cut -- which detail of each node of the octree is drawn from where. Pure functions; tests/viewers/cut_test.mjs tries them.
//
// nodes: as in chunks.json: {parent, lo, hi, children, details: [{level, chunk, of, rows, error}, finest first]}. An error is the width of a
// pixel, in scene units at the node's distance, from which on the detail is like the full one (35 dB); 0: always. A node's details stand for all that is below it.
//
// The cut begins with the coarsest details and is refined where a detail is worst: where its error is the largest number of pixels. It ends where all
// are good enough, or when the budget of rows is spent. So what is missing is missing where it shows least.

// At one pixel a detail is 35 dB from the full one, which shows. In pixels of a sixteenth of the width it does not (DESIGN.md).
const ENOUGH = 1 / 16;
// A detail that was refined before is left so until the coarser one is good enough by this factor: a camera that sways draws the same.
const HYSTERESIS = 1.4;

export function distanceTo({ lo, hi }, eye) {
    return Math.hypot(...eye.map((v, a) => Math.max(lo[a] - v, 0, v - hi[a])));
}

// Is all of the box on the outer side of one of the planes? planes: [{normal [3], constant}], the inside is positive.
export function isOutside({ lo, hi }, planes) {
    return planes.some(({ normal, constant }) => normal.reduce((sum, n, a) => sum + n * (n > 0 ? hi[a] : lo[a]), constant) < 0);
}

// The first nodes below `node`, itself included, that have details.
function firstWithDetails(nodes, node) {
    return nodes[node].details.length ? [node] : nodes[node].children.flatMap((child) => firstWithDetails(nodes, child));
}

// eye: [3]; focal: pixels; budget: rows; refined: what the cut before had refined (its .refined).
// Returns {parts: [{node, detail, pixels, distance}], refined: Set, rows, isComplete: nothing was left out or left coarse for the budget}.
export function chooseCut(nodes, { eye, focal, budget, refined = new Set() }) {
    const now = new Set(), parts = [];
    let rows = 0, isComplete = true;
    const part = (node, k) => {
        const detail = nodes[node].details[k], distance = distanceTo(nodes[node], eye);
        return { node, k, detail, distance, pixels: detail.error ? detail.error * focal / Math.max(distance, 1e-9) : 0 };
    };
    const below = ({ node, k }) => (k > 0 ? [part(node, k - 1)] : nodes[node].children.flatMap((child) => firstWithDetails(nodes, child)).map((child) => part(child, nodes[child].details.length - 1)));
    const begin = nodes.flatMap((node, i) => (node.parent < 0 ? firstWithDetails(nodes, i) : [])).map((node) => part(node, nodes[node].details.length - 1));
    const open = [];
    for (const one of begin.sort((a, b) => a.distance - b.distance)) {
        if (rows && rows + one.detail.rows > budget) isComplete = false;
        else rows += one.detail.rows, push(open, one);
    }
    while (open.length) {
        const worst = pop(open), key = `${worst.node}:${worst.k}`, limit = refined.has(key) ? ENOUGH / HYSTERESIS : ENOUGH;
        const finer = worst.pixels > limit ? below(worst) : [], more = finer.reduce((sum, one) => sum + one.detail.rows, -worst.detail.rows);
        if (!finer.length || rows + more > budget) {
            isComplete &&= !finer.length;
            parts.push(worst);
            continue;
        }
        now.add(key);
        rows += more;
        for (const one of finer) push(open, one);
    }
    return { parts, refined: now, rows, isComplete };
}

// A heap: the part with the most pixels first.
function push(heap, one) {
    let i = heap.push(one) - 1;
    for (let up; i > 0 && heap[up = (i - 1) >> 1].pixels < one.pixels; i = up) heap[i] = heap[up];
    heap[i] = one;
}

function pop(heap) {
    const top = heap[0], last = heap.pop();
    if (!heap.length) return top;
    let i = 0;
    for (let down; (down = 2 * i + 1) < heap.length; i = down) {
        if (down + 1 < heap.length && heap[down + 1].pixels > heap[down].pixels) down++;
        if (heap[down].pixels <= last.pixels) break;
        heap[i] = heap[down];
    }
    heap[i] = last;
    return top;
}

// [enter, leave) of each node in a walk through the tree: a node is below another if it enters there.
export function intervals(nodes) {
    const spans = nodes.map(() => [0, 0]);
    let at = 0;
    const walk = (node) => {
        spans[node][0] = at++;
        nodes[node].children.forEach(walk);
        spans[node][1] = at;
    };
    nodes.forEach((node, i) => { if (node.parent < 0) walk(i); });
    return spans;
}
export const overlap = (a, b) => a[0] < b[1] && b[0] < a[1];
