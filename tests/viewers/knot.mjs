// A scene in which every column counts: a coloured trefoil knot, alike under no turn and in no mirror, of Gaussians of three different
// scales, turned in all directions, many of them translucent, with strong SH of all degrees that change along the knot. Thousands of small
// ones: where a few large ones make a pixel, the rounding of their SH and the order of equal depths hide what a test looks for.
import fs from 'node:fs';

const rest = Array.from({ length: 45 }, (_, i) => `f_rest_${i}`);
const names = ['x', 'y', 'z', 'nx', 'ny', 'nz', 'f_dc_0', 'f_dc_1', 'f_dc_2', ...rest, 'opacity', 'scale_0', 'scale_1', 'scale_2', 'rot_0', 'rot_1', 'rot_2', 'rot_3'];

// Uniform in 0 .. 1: mulberry32.
function random(seed) {
    return () => {
        seed = (seed + 0x6d2b79f5) | 0;
        let v = Math.imul(seed ^ (seed >>> 15), 1 | seed);
        v = (v + Math.imul(v ^ (v >>> 7), 61 | v)) ^ v;
        return ((v ^ (v >>> 14)) >>> 0) / 4294967296;
    };
}

export function writeKnot(file, count) {
    const uniform = random(7), normal = () => Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform());
    const values = new Float32Array(count * names.length);
    for (let row = 0; row < count; row++) {
        const t = 2 * Math.PI * uniform(), around = 2 * Math.PI * uniform(), tube = 0.28 + 0.02 * normal();
        const out = Math.cos(around) * tube, q = Array.from({ length: 4 }, normal), length = Math.hypot(...q);
        const gaussian = {
            x: 0.4 * (Math.sin(t) + 2 * Math.sin(2 * t)) + out * Math.sin(2 * t),
            y: 0.4 * (Math.cos(t) - 2 * Math.cos(2 * t)) - out * Math.cos(2 * t),
            z: -0.4 * Math.sin(3 * t) + Math.sin(around) * tube,
            f_dc_0: 1.2 * Math.sin(t), f_dc_1: 1.2 * Math.cos(2 * t + 1), f_dc_2: 1.2 * Math.sin(around),
            opacity: 1.5 + 1.5 * normal(),
            scale_0: -4.1 + 0.3 * normal(), scale_1: -4.5 + 0.3 * normal(), scale_2: -5.1 + 0.3 * normal(),
        };
        // Of degree 3 less, which GaussianSplats3D leaves out.
        rest.forEach((name, i) => { gaussian[name] = (i % 15 < 8 ? 0.3 : 0.12) * Math.sin((1 + i % 4) * t + i); });
        q.forEach((v, i) => { gaussian[`rot_${i}`] = v / length; });
        names.forEach((name, i) => { values[row * names.length + i] = gaussian[name] ?? 0; });
    }
    const header = ['ply', 'format binary_little_endian 1.0', `element vertex ${count}`, ...names.map((n) => `property float ${n}`), 'end_header', ''].join('\n');
    fs.writeFileSync(file, Buffer.concat([Buffer.from(header), Buffer.from(values.buffer)]));
}
