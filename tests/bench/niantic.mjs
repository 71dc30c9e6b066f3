// node niantic.mjs MODULES IN.ply OUT.spz VERSION -- a PLY of float columns written by Niantic's library (@adobe/spz), for tests/bench/exports.
// Reading the PLY is part of what is measured, as it is of every program there.
import fs from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

const [modules, input, output, version] = process.argv.slice(2);
const spz = await (await import(pathToFileURL(path.join(modules, '@adobe/spz/dist/spz.js')))).default({ print() {} });
const bytes = fs.readFileSync(input), end = bytes.indexOf('end_header\n') + 11, header = bytes.toString('latin1', 0, end);
const names = [...header.matchAll(/^property float (\w+)$/gm)].map(([, name]) => name);
const count = Number(/^element vertex (\d+)$/m.exec(header)[1]), width = names.length;
if (bytes.length !== end + 4 * count * width) throw new Error(`${input} has other columns than floats`);
const rows = new Float32Array(bytes.buffer.slice(bytes.byteOffset + end, bytes.byteOffset + bytes.length));

// [count][columns], row by row
function gather(columns) {
    const places = columns.map((name) => names.indexOf(name)), n = places.length, out = new Float32Array(count * n);
    for (let row = 0, to = 0, from = 0; row < count; row++, from += width) for (let c = 0; c < n; c++) out[to++] = rows[from + places[c]];
    return out;
}

const rest = names.filter((name) => name.startsWith('f_rest_')).length, inner = rest / 3;
const cloud = {
    numPoints: count,
    shDegree: Math.sqrt(inner + 1) - 1,
    antialiased: false,
    extensions: [],
    positions: gather(['x', 'y', 'z']),
    scales: gather(['scale_0', 'scale_1', 'scale_2']),
    rotations: gather(['rot_1', 'rot_2', 'rot_3', 'rot_0']),
    alphas: gather(['opacity']),
    colors: gather(['f_dc_0', 'f_dc_1', 'f_dc_2']),
    sh: gather(Array.from({ length: rest }, (_, i) => `f_rest_${i % 3 * inner + Math.floor(i / 3)}`)),
};
fs.writeFileSync(output, spz.saveSpzToBuffer(cloud, { version: Number(version), from: spz.CoordinateSystem.RDF, sh1Bits: 5, shRestBits: 4 }));
