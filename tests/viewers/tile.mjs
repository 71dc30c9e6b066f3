// Puts an SPZ file into a GLB with KHR_gaussian_splatting_compression_spz_2, and that into a tileset: the one way into Cesium 1.145,
// which wants it just so: both extensions required by the tileset, the SPZ in buffer view 0, and a COLOR_0 beside the other attributes.
import fs from 'node:fs';
import path from 'node:path';
import zlib from 'node:zlib';

const splats = 'KHR_gaussian_splatting', packed = `${splats}_compression_spz_2`;

function padded(bytes, filler) {
    return Buffer.concat([bytes, Buffer.alloc(-bytes.length & 3, filler)]);
}

function chunk(type, bytes) {
    const head = Buffer.alloc(8);
    head.writeUInt32LE(bytes.length, 0);
    head.write(type, 4, 'latin1');
    return Buffer.concat([head, bytes]);
}

// spz: a file of version 3. Returns tileset, the path of the tileset.
export function writeTile(spz, tileset) {
    const bytes = fs.readFileSync(spz), header = zlib.gunzipSync(bytes), count = header.readUInt32LE(8), degree = header[12];
    const names = [['POSITION', 'VEC3'], ['COLOR_0', 'VEC4'], [`${splats}:SCALE`, 'VEC3'], [`${splats}:ROTATION`, 'VEC4']];
    for (let l = 1; l <= degree; l++) for (let m = 0; m <= 2 * l; m++) names.push([`${splats}:SH_DEGREE_${l}_COEF_${m}`, 'VEC3']);
    const accessors = names.map(([name, type]) => (name === 'COLOR_0' ? { type, count, componentType: 5121, normalized: true } : { type, count, componentType: 5126 }));
    Object.assign(accessors[0], { min: [-100, -100, -100], max: [100, 100, 100] });
    const extensions = [splats, packed];
    const gltf = {
        asset: { version: '2.0' }, extensionsUsed: extensions, extensionsRequired: extensions, scene: 0, scenes: [{ nodes: [0] }], nodes: [{ mesh: 0 }],
        meshes: [{ primitives: [{
            mode: 0, attributes: Object.fromEntries(names.map(([name], i) => [name, i])),
            extensions: { [splats]: { kernel: 'ellipse', colorSpace: 'srgb_rec709_display', extensions: { [packed]: { bufferView: 0 } } } },
        }] }],
        accessors, bufferViews: [{ buffer: 0, byteLength: bytes.length }], buffers: [{ byteLength: bytes.length }],
    };
    const body = Buffer.concat([chunk('JSON', padded(Buffer.from(JSON.stringify(gltf)), ' ')), chunk('BIN\0', padded(bytes, 0))]);
    const head = Buffer.from('glTF\x02\0\0\0\0\0\0\0', 'latin1');
    head.writeUInt32LE(head.length + body.length, 8);
    fs.mkdirSync(path.dirname(tileset), { recursive: true });
    fs.writeFileSync(path.join(path.dirname(tileset), 'tile.glb'), Buffer.concat([head, body]));
    fs.writeFileSync(tileset, JSON.stringify({
        asset: { version: '1.1' }, geometricError: 100, extensionsUsed: ['3DTILES_content_gltf'],
        extensions: { '3DTILES_content_gltf': { extensionsUsed: extensions, extensionsRequired: extensions } },
        root: { boundingVolume: { sphere: [0, 0, 0, 200] }, geometricError: 0, refine: 'ADD', content: { uri: 'tile.glb' } },
    }));
    return tileset;
}
