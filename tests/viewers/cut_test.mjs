// What stages/viewer/cut.js chooses, tried on a small tree: a cut covers each leaf once, keeps its budget, gets finer as the eye comes near, and stays
// when the eye sways. checkCut() returns a sentence about what is wrong, or ''.
import { chooseCut, distanceTo, intervals, isOutside, overlap } from '../../stages/viewer/cut.js';

// A row of eight unit cubes along x under a binary tree; children before parents, as chunks.json has them.
function tree() {
    const nodes = [];
    const add = (from, to) => {
        const children = to - from > 1 ? [add(from, (from + to) / 2), add((from + to) / 2, to)] : [], width = to - from, index = nodes.length;
        const details = children.length ? [] : [{ level: 0, chunk: from, of: 'layer', rows: 1000, error: 0 }];
        details.push({ level: 1 + Math.log2(width), chunk: index, of: 'levels', rows: 400 + 100 * width, error: 0.01 * width });
        nodes.push({ parent: -1, lo: [from, 0, 0], hi: [to, 1, 1], children, details });
        for (const child of children) nodes[child].parent = index;
        return index;
    };
    add(0, 8);
    return nodes;
}

export function checkCut() {
    const nodes = tree(), spans = intervals(nodes), leaves = nodes.flatMap((n, i) => (n.children.length ? [] : [i]));
    const cover = (cut) => leaves.every((leaf) => cut.parts.filter((part) => overlap(spans[part.node], spans[leaf]) && spans[part.node][0] <= spans[leaf][0]).length === 1);
    const at = (z, more = {}) => chooseCut(nodes, { eye: [4, 0.5, -z], focal: 100, budget: 1e9, ...more });
    let last = 0;
    for (const z of [1e5, 600, 300, 100, 30, 10, 0.1]) {
        const cut = at(z);
        if (!cover(cut)) return `from ${z} a leaf is drawn not at all, or twice`;
        if (cut.rows < last || !cut.isComplete || cut.rows !== cut.parts.reduce((sum, p) => sum + p.detail.rows, 0)) return `from ${z} there are ${cut.rows} rows, and ${last} from farther away`;
        last = cut.rows;
    }
    if (at(1e5).parts.length !== 1 || last !== 8000) return 'far away is not one part, or near not all of the rows';
    for (const budget of [500, 1300, 2600, 5000]) {
        const cut = at(0.1, { budget });
        if (!cover(cut) || cut.isComplete || (budget >= 1300 && cut.rows > budget)) return `a budget of ${budget} gives ${cut.rows} rows`;
    }
    // Between the distance at which a part is refined and the one at which it is not any more, it stays as it was.
    const zs = Array.from({ length: 400 }, (_, i) => 20 * 1.02 ** i), edge = zs.find((z, i) => at(z).rows !== at(zs[i + 1] ?? z).rows);
    const near = at(edge), far = at(edge * 1.05, { refined: near.refined });
    if (far.rows !== near.rows || at(edge * 3, { refined: near.refined }).rows === near.rows) return 'a camera that sways draws something else, or one that leaves does not';
    const leavesOnly = nodes.map((n) => ({ ...n, details: n.children.length ? [] : n.details.slice(0, 1) })), few = chooseCut(leavesOnly, { eye: [0, 0, 0], focal: 100, budget: 3000 });
    if (few.parts.length !== 3 || few.isComplete || few.parts.some((p) => leavesOnly[p.node].lo[0] > 2)) return 'without levels, not the nearest chunks are drawn';
    if (distanceTo(nodes[0], [-3, 0.5, 5]) !== 5 || !isOutside(nodes[0], [{ normal: [1, 0, 0], constant: -2 }]) || isOutside(nodes[0], [{ normal: [1, 0, 0], constant: 0 }])) return 'a distance or a side is wrong';
    return '';
}
