// Whether a GLB with Gaussians is valid: Khronos' validator, without what it says only because it does not know KHR_gaussian_splatting,
// and that extension's own rules.
import fs from 'node:fs';

const splats = 'KHR_gaussian_splatting', packed = `${splats}_compression_spz_2`;
const FLOAT = 5126, BYTE = 5120, UNSIGNED_BYTE = 5121, SHORT = 5122, UNSIGNED_SHORT = 5123;

// What is wrong by the extension's rules with one primitive of the document g.
function* primitiveRules(g, primitive) {
    const extension = primitive.extensions[splats], attributes = primitive.attributes ?? {};
    const spz = extension.extensions?.[packed];
    if (primitive.mode !== 0) yield `mode is ${primitive.mode ?? 4}, not 0 (points)`;
    if (extension.kernel !== 'ellipse') yield `kernel is ${extension.kernel}`;
    if (!/^(srgb|lin)_rec709_display$/.test(extension.colorSpace)) yield `colorSpace is ${extension.colorSpace}`;
    const types = {
        POSITION: ['VEC3', FLOAT],
        [`${splats}:ROTATION`]: ['VEC4', FLOAT, BYTE, SHORT],
        [`${splats}:SCALE`]: ['VEC3', FLOAT, UNSIGNED_BYTE, UNSIGNED_SHORT],
        [`${splats}:OPACITY`]: ['SCALAR', FLOAT, UNSIGNED_BYTE, UNSIGNED_SHORT],
    };
    let above = false; // a higher degree is there
    for (let l = 3; l >= 0; l--) {
        const names = Array.from({ length: 2 * l + 1 }, (_, n) => `${splats}:SH_DEGREE_${l}_COEF_${n}`);
        const here = names.filter((n) => n in attributes).length;
        if (here && here < names.length) yield `degree ${l} has ${here} of ${names.length} coefficients`;
        if (!here && above && !(spz && l === 0)) yield `no degree ${l} below a higher one`;
        above ||= here > 0;
        for (const name of names) types[name] = ['VEC3', FLOAT];
    }
    const needed = ['POSITION', `${splats}:ROTATION`, `${splats}:SCALE`, ...(spz ? [] : [`${splats}:OPACITY`, `${splats}:SH_DEGREE_0_COEF_0`])];
    for (const name of needed) if (!(name in attributes)) yield `no attribute ${name}`;
    const counts = new Set();
    for (const [name, index] of Object.entries(attributes)) {
        const accessor = g.accessors?.[index];
        counts.add(accessor?.count);
        if (!accessor) yield `${name} has no accessor`;
        else if (types[name] && (accessor.type !== types[name][0] || !types[name].slice(1).includes(accessor.componentType))) yield `${name} is ${accessor.type} of ${accessor.componentType}`;
        else if (!types[name] && name.startsWith(splats)) yield `the extension has no attribute ${name}`;
    }
    if (counts.size > 1) yield `attributes have ${[...counts].join(', ')} rows`;
    if (spz && !g.bufferViews?.[spz.bufferView]) yield `no buffer view ${spz.bufferView}`;
    if (!g.extensionsUsed?.includes(splats)) yield `extensionsUsed lacks ${splats}`;
    if (spz && ![g.extensionsUsed, g.extensionsRequired].every((list) => list?.includes(packed) && list.includes(splats))) yield `extensionsRequired lacks ${packed}`;
}

// Returns {count, problems}. validator: the package gltf-validator.
export async function checkGlb(validator, file) {
    const bytes = fs.readFileSync(file), g = JSON.parse(bytes.toString('utf8', 20, 20 + bytes.readUInt32LE(12)));
    const primitives = (g.meshes ?? []).flatMap((mesh) => mesh.primitives).filter((p) => p.extensions?.[splats]);
    const spzViews = primitives.map((p) => p.extensions[splats].extensions?.[packed]?.bufferView).filter((v) => v !== undefined).map((v) => `/bufferViews/${v}`);
    const { issues } = await validator.validateBytes(new Uint8Array(bytes), { maxIssues: 0 });
    // Of the severities, 0 is an error and 1 a warning.
    const problems = issues.messages.filter(({ code, pointer = '', message, severity }) => severity <= 1 &&
        !(code === 'UNSUPPORTED_EXTENSION' && message.includes(splats)) &&
        !(code === 'MESH_PRIMITIVE_INVALID_ATTRIBUTE' && pointer.includes(`/attributes/${splats}:`)) &&
        !(code === 'UNUSED_OBJECT' && spzViews.includes(pointer))).map(({ code, pointer, message }) => `${code} at ${pointer}: ${message}`);
    for (const primitive of primitives) problems.push(...primitiveRules(g, primitive));
    if (!primitives.length) problems.push('no primitive has Gaussians');
    return { count: primitives.reduce((sum, p) => sum + (g.accessors?.[p.attributes?.POSITION]?.count ?? 0), 0), problems };
}
