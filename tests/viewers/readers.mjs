// Other people's programs read what kiln-export wrote; counts and columns are compared with our PLY of the same scene.
//   splat-transform     reads all but GLB and writes a PLY
//   @adobe/spz          Niantic's library: it turns SPZ's axes into PLY's itself
//   gltf-validator      and the rules of KHR_gaussian_splatting, which it does not know (gltf_rules.mjs)
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { checkGlb } from './gltf_rules.mjs';
import { splatTransform } from './inputs.mjs';

const C0 = 0.28209479177387814; // 1 / (2 sqrt pi), Y_0^0

// A binary PLY of float columns. {count, column(name)}: a Float32Array, or undefined.
export function readPly(file) {
    const bytes = fs.readFileSync(file), end = bytes.indexOf('end_header\n') + 11, header = bytes.toString('latin1', 0, end);
    const names = [...header.matchAll(/^property (\w+) (\w+)$/gm)].map(([, type, name]) => {
        if (type !== 'float') throw new Error(`${file}: column ${name} is of type ${type}`);
        return name;
    });
    const count = Number(/^element vertex (\d+)$/m.exec(header)[1]);
    if (bytes.length !== end + 4 * count * names.length) throw new Error(`${file} has ${bytes.length} bytes instead of ${end + 4 * count * names.length}`);
    return {
        file,
        count,
        column(name) {
            const c = names.indexOf(name);
            return c < 0 ? undefined : Float32Array.from({ length: count }, (_, row) => bytes.readFloatLE(end + 4 * (row * names.length + c)));
        },
    };
}

// What @adobe/spz gives, as readPly does. Its rotations are x y z w, its SH has the channel innermost.
async function readSpz(modules, file) {
    const spz = await (await import(pathToFileURL(path.join(modules, '@adobe/spz/dist/spz.js')))).default({ print() {} });
    const cloud = spz.loadSpzFromBuffer(fs.readFileSync(file), { to: spz.CoordinateSystem.RDF });
    const count = cloud.numPoints, inner = (cloud.shDegree + 1) ** 2 - 1;
    const place = new Map();
    const put = (values, width, names) => names.forEach((name, at) => place.set(name, [values, width, at]));
    put(cloud.positions, 3, ['x', 'y', 'z']);
    put(cloud.scales, 3, ['scale_0', 'scale_1', 'scale_2']);
    put(cloud.rotations, 4, ['rot_1', 'rot_2', 'rot_3', 'rot_0']);
    put(cloud.alphas, 1, ['opacity']);
    put(cloud.colors, 3, ['f_dc_0', 'f_dc_1', 'f_dc_2']);
    put(cloud.sh, 3 * inner, Array.from({ length: 3 * inner }, (_, i) => `f_rest_${i % 3 * inner + Math.floor(i / 3)}`));
    return { count, column: (name) => place.has(name) ? Float32Array.from({ length: count }, (_, row) => { const [v, width, at] = place.get(name); return v[row * width + at]; }) : undefined };
}

// For each row of `to` the row of `from` whose centre is nearest, or -1 beyond `reach`: formats may change the order of rows.
function partners(from, to, reach) {
    const cell = (p, d) => p.map((v, c) => Math.floor(v / reach) + d[c]).join();
    const grid = new Map(), at = (columns, row) => columns.map((c) => c[row]);
    const a = ['x', 'y', 'z'].map((n) => from.column(n)), b = ['x', 'y', 'z'].map((n) => to.column(n));
    for (let row = 0; row < from.count; row++) {
        const key = cell(at(a, row), [0, 0, 0]);
        if (grid.has(key)) grid.get(key).push(row);
        else grid.set(key, [row]);
    }
    const around = [-1, 0, 1].flatMap((x) => [-1, 0, 1].flatMap((y) => [-1, 0, 1].map((z) => [x, y, z])));
    return Array.from({ length: to.count }, (_, row) => {
        let best = -1, least = reach * reach;
        const p = at(b, row);
        for (const d of around) {
            for (const other of grid.get(cell(p, d)) ?? []) {
                const far = p.reduce((sum, v, c) => sum + (v - a[c][other]) ** 2, 0);
                if (far <= least) [best, least] = [other, far];
            }
        }
        return best;
    });
}

const middle = (values) => Float64Array.from(values).sort()[values.length >> 1] ?? 0;

// Median errors of `read` against `plain`: centre in median sizes of a Gaussian, size as a difference of logarithms, turn in degrees, alpha
// and colour of 0 to 1, sh in the coefficients' units; far: share of rows without a partner. Medians, because two Gaussians that are nearer
// to each other than a format's step may be taken for one another.
function errors(plain, read) {
    const scale = Math.exp(middle(plain.column('scale_0')));
    const pair = partners(plain, read, scale), rows = [...pair.keys()].filter((row) => pair[row] >= 0);
    const of = (names) => names.map((n) => [plain.column(n), read.column(n)]);
    const middleOf = (pairs, change = (v) => v) => middle(pairs.flatMap(([a, b]) => rows.map((row) => Math.abs(change(a[pair[row]]) - change(b[row])))));
    const apart = (names, change) => middleOf(of(names), change);
    const sigmoid = (v) => 1 / (1 + Math.exp(-v));
    const turns = of(['rot_0', 'rot_1', 'rot_2', 'rot_3']);
    // All of R, then G, then B: a file of a lower degree has other numbers for the same coefficients.
    const counts = [plain, read].map((ply) => Array.from({ length: 45 }, (_, i) => i).filter((i) => ply.column(`f_rest_${i}`)).length / 3);
    const rest = Array.from({ length: 3 * Math.min(...counts) }, (_, i) => [i % 3, Math.floor(i / 3)])
        .map(([channel, k]) => [plain, read].map((ply, side) => ply.column(`f_rest_${channel * counts[side] + k}`)));
    return {
        far: 1 - rows.length / pair.length,
        centre: apart(['x', 'y', 'z']) / scale,
        size: apart(['scale_0', 'scale_1', 'scale_2']),
        // An ellipsoid is the same after half a turn about one of its own axes, by which programs that turn scenes differ: a times 1, i, j or k.
        turn: middle(rows.map((row) => {
            const [a, b] = [0, 1].map((side) => turns.map((t) => t[side][side ? row : pair[row]]));
            const [w, x, y, z] = a, alike = [[w, x, y, z], [-x, w, z, -y], [-y, -z, w, x], [-z, y, -x, w]];
            const dots = alike.map((q) => Math.abs(q.reduce((sum, v, i) => sum + v * b[i], 0)));
            return 2 * Math.acos(Math.min(1, Math.max(...dots) / Math.hypot(...a) / Math.hypot(...b))) * 180 / Math.PI;
        })),
        alpha: apart(['opacity'], sigmoid),
        colour: apart(['f_dc_0', 'f_dc_1', 'f_dc_2'], (v) => v * C0),
        sh: rest.length ? middleOf(rest) : 0,
    };
}

// The greatest errors: half as much again as the steps of the coarsest format bring. Signs, orders and axes that are taken otherwise go far beyond.
const most = { far: 0.002, centre: 0.05, size: 0.025, turn: 0.3, alpha: 0.0015, colour: 0.003, sh: 0.03 };
// Rotations of 8 bits; splat-transform takes those of .splat by another formula, half a step aside.
const limitsOf = (format) => ({ ...most, ...(format.startsWith('sog') ? { turn: 0.6 } : format === 'splat' ? { turn: 1 } : {}) });
const exact = { far: 0, centre: 0, size: 0, turn: 0, alpha: 0, colour: 0, sh: 0 };

const programs = {
    'splat-transform': {
        package: '@playcanvas/splat-transform',
        formats: ['ply', 'compressed-ply', 'sog', 'sog-folder', 'spz', 'spz4', 'splat', 'ksplat0', 'ksplat', 'ksplat2'],
        async read(modules, file, format, folder) {
            const out = path.join(folder, 'read.ply');
            // It takes SPZ's numbers for a PLY's.
            await splatTransform(modules, file, ...(format.startsWith('spz') ? ['--rotate', '180,0,0'] : []), out);
            return readPly(out);
        },
    },
    '@adobe/spz': { package: '@adobe/spz', formats: ['spz', 'spz4'], read: readSpz },
    'gltf-validator': {
        package: 'gltf-validator',
        formats: ['glb', 'tile'],
        async check(modules, file) {
            return checkGlb(createRequire(path.join(modules, 'x'))('gltf-validator'), file.replace(/tileset\.json$/, 'tile.glb'));
        },
    },
};

// All cases of a scene, as "SCENE readers PROGRAM FORMAT".
export function readerCases(scene) {
    return Object.entries(programs).flatMap(([program, { formats }]) => formats.map((format) => ({ name: `${scene} readers ${program} ${format}`, program, format })));
}

// Has one program read one file. plain: our PLY of the scene; write(format) gives the path of our file or throws. Returns {name, verdict, why}.
export async function readCase({ name, program, format }, plain, write, folder, modules) {
    const { package: from, read, check } = programs[program];
    if (!fs.existsSync(path.join(modules, from))) return { name, verdict: 'skip', why: `${from} is not installed` };
    try {
        const file = format === 'ply' ? plain.file : await write(format);
        const got = await (read ?? check)(modules, file, format, folder);
        const problems = got.problems ?? [];
        let seen = `${got.count} Gaussians`;
        if (got.count !== plain.count) problems.push(`${got.count} Gaussians instead of ${plain.count}`);
        else if (read) {
            const limit = format === 'ply' ? exact : limitsOf(format);
            for (const [what, v] of Object.entries(errors(plain, got))) {
                seen += `, ${what} ${Number(v.toPrecision(2))}`;
                if (!(v <= limit[what])) problems.push(`${what} is off by ${v.toPrecision(3)}, more than ${limit[what]}`);
            }
        }
        return { name, verdict: problems.length ? 'FAIL' : 'ok', why: problems.join('; ') || seen };
    } catch (e) {
        return { name, verdict: e.skip ? 'skip' : 'FAIL', why: (e.stderr || e.message).trim().split('\n').pop() };
    }
}
