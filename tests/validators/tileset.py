#!/usr/bin/env python3
"""tileset.py TILESET.json -- is this a valid tileset of Gaussians, by the specifications alone?

3D Tiles 1.1 (OGC 22-025r4), glTF 2.0 (GLB layout), KHR_gaussian_splatting with KHR_gaussian_splatting_compression_spz_2, and SPZ version 3
(nianticlabs/spz). Every tile's GLB is opened and every position decoded. Prints a line for each problem, then one of facts as JSON:
tiles, depth (tiles above each other), leaf_rows, root_rows, degree. Exits 1 where there are problems. Knows nothing of SplatKiln."""
import gzip, json, math, os, struct, sys

SPLATS = 'KHR_gaussian_splatting'
PACKED = SPLATS + '_compression_spz_2'
problems = []


def wrong(where, what):
    problems.append(f'{where}: {what}')


def is_number(v):
    return isinstance(v, (int, float)) and not isinstance(v, bool) and math.isfinite(v)


def numbers(v, n):
    return isinstance(v, list) and len(v) == n and all(is_number(x) for x in v)


def corners(box):
    c, axes = box[:3], (box[3:6], box[6:9], box[9:12])
    return [[c[i] + sum(s * a[i] for s, a in zip(signs, axes)) for i in range(3)]
            for signs in [(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]]


def inside(point, box, slack):
    """In an axis-aligned box: the only kind that is compared here."""
    half = [abs(box[3]), abs(box[7]), abs(box[11])]
    return all(abs(p - c) <= h + slack for p, c, h in zip(point, box[:3], half))


def is_aligned(box):
    return all(box[i] == 0 for i in (4, 5, 6, 8, 9, 10))


def spz(data, where):
    """Rows, degree, positions (x, y, z lists)."""
    raw = gzip.decompress(data)
    magic, version, n, degree, fraction, flags, _ = struct.unpack('<IIIBBBB', raw[:16])
    if magic != 0x5053474e: wrong(where, f'its SPZ begins with {magic:#x}')
    if version != 3: wrong(where, f'its SPZ has version {version}')
    if degree > 3: wrong(where, f'its SPZ has degree {degree}')
    want = 16 + n * (9 + 1 + 3 + 3 + 4 + 3 * ((degree + 1) ** 2 - 1))
    if len(raw) != want: wrong(where, f'its SPZ has {len(raw)} bytes, not {want}')
    positions = []
    for i in range(n):
        row = raw[16 + 9 * i:25 + 9 * i]
        positions.append([int.from_bytes(row[3 * c:3 * c + 3], 'little', signed=True) / (1 << fraction) for c in range(3)])
    return n, degree, positions, 1.0 / (1 << fraction)


def glb(path, where):
    """Rows, degree, positions in the glTF's axes."""
    data = open(path, 'rb').read()
    if len(data) < 20 or data[:4] != b'glTF': return wrong(where, 'no GLB')
    version, size, text_size, kind = struct.unpack('<IIII', data[4:20])
    if version != 2 or size != len(data): wrong(where, f'GLB of version {version}, {size} bytes of {len(data)}')
    if kind != 0x4e4f534a or text_size % 4: return wrong(where, 'its first part is no JSON of a multiple of 4 bytes')
    g = json.loads(data[20:20 + text_size])
    at = 20 + text_size
    bin_size, kind = struct.unpack('<II', data[at:at + 8])
    if kind != 0x004e4942 or bin_size % 4 or at + 8 + bin_size != len(data): return wrong(where, 'its second part is no BIN to the end')
    for name in ('extensionsUsed', 'extensionsRequired'):
        for extension in (SPLATS, PACKED):
            if extension not in g.get(name, []): wrong(where, f'{name} lacks {extension}')
    if g.get('asset', {}).get('version') != '2.0': wrong(where, 'its glTF is not of version 2.0')
    node = g['nodes'][g['scenes'][g.get('scene', 0)]['nodes'][0]]
    primitive = g['meshes'][node['mesh']]['primitives'][0]
    extension = primitive['extensions'][SPLATS]
    view = g['bufferViews'][extension['extensions'][PACKED]['bufferView']]
    if primitive.get('mode') != 0: wrong(where, 'the primitive is not points')
    if extension.get('kernel') != 'ellipse': wrong(where, f"kernel {extension.get('kernel')}")
    begin = at + 8 + view.get('byteOffset', 0)
    if view.get('byteOffset', 0) + view['byteLength'] > g['buffers'][view['buffer']]['byteLength'] or g['buffers'][0]['byteLength'] > bin_size:
        wrong(where, 'the SPZ leaves its buffer')
    n, degree, positions, step = spz(data[begin:begin + view['byteLength']], where)
    need = ['POSITION', 'COLOR_0', SPLATS + ':SCALE', SPLATS + ':ROTATION']
    need += [f'{SPLATS}:SH_DEGREE_{l}_COEF_{m}' for l in range(1, degree + 1) for m in range(2 * l + 1)]
    for name in need:
        index = primitive['attributes'].get(name)
        if index is None: wrong(where, f'no attribute {name}')
        elif g['accessors'][index]['count'] != n: wrong(where, f"{name} has {g['accessors'][index]['count']} rows, the SPZ {n}")
    bounds = g['accessors'][primitive['attributes']['POSITION']]
    for p in positions:
        if any(v < lo - step or v > hi + step for v, lo, hi in zip(p, bounds['min'], bounds['max'])):
            wrong(where, f'a position {p} is outside the accessor\'s min and max')
            break
    m = node.get('matrix', [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1])
    if not numbers(m, 16): return wrong(where, 'the node has no matrix of 16 numbers')
    world = [[sum(m[4 * j + i] * p[j] for j in range(3)) + m[12 + i] for i in range(3)] for p in positions]
    return n, degree, world, step


def check_tile(folder, tile, parent, above, facts, where):
    """parent: its tile; above: how many tiles are above this one."""
    box = tile.get('boundingVolume', {}).get('box')
    if not numbers(box, 12): return wrong(where, 'no bounding box of 12 numbers')
    error = tile.get('geometricError')
    if not is_number(error) or error < 0: return wrong(where, f'geometricError {error}')
    if tile.get('refine') not in (None, 'ADD', 'REPLACE'): wrong(where, f"refine {tile['refine']}")
    if parent is None and 'refine' not in tile: wrong(where, 'the root has no refine')
    if 'transform' in tile and not (numbers(tile['transform'], 16) and [tile['transform'][i] for i in (3, 7, 11, 15)] == [0, 0, 0, 1]):
        wrong(where, 'transform is no affine matrix')
    slack = 1e-6 * (1 + max(map(abs, box)))
    if parent is not None:
        if error > parent['geometricError']: wrong(where, f"geometricError {error} above its parent's {parent['geometricError']}")
        outer = parent['boundingVolume']['box']
        if 'transform' not in tile and is_aligned(outer) and not all(inside(p, outer, slack) for p in corners(box)):
            wrong(where, "its box leaves its parent's")
    children = tile.get('children')
    if children is not None and (not isinstance(children, list) or not children): wrong(where, 'children is an empty list')
    if not children and error != 0: wrong(where, f'no children, but geometricError {error}: some viewers draw nothing')
    facts['tiles'] += 1
    facts['depth'] = max(facts['depth'], above + 1)
    uri = tile.get('content', {}).get('uri')
    if uri is not None:
        if os.path.isabs(uri) or '..' in uri.split('/') or not os.path.isfile(os.path.join(folder, uri)):
            return wrong(where, f'content {uri} is no file beside the tileset')
        if uri in facts['files']: wrong(where, f'{uri} is the content of two tiles')
        facts['files'].add(uri)
        got = glb(os.path.join(folder, uri), uri)
        if got:
            n, degree, positions, step = got
            turned = [[x, -z, y] for x, y, z in positions]  # y up to z up
            bad = [p for p in turned if is_aligned(box) and not inside(p, box, slack + step)]
            if bad: wrong(where, f'{len(bad)} of {n} positions of {uri} are outside the tile\'s box, such as {bad[0]}')
            if not children: facts['leaf_rows'] += n
            if parent is None: facts['root_rows'] = n
            facts['degree'] = max(facts['degree'], degree)
    for i, child in enumerate(children or []): check_tile(folder, child, tile, above + 1, facts, f'{where}/{i}')


def main(path):
    sys.setrecursionlimit(10000)
    t = json.load(open(path))
    facts = {'tiles': 0, 'depth': 0, 'leaf_rows': 0, 'root_rows': 0, 'degree': 0, 'files': set()}
    if t.get('asset', {}).get('version') != '1.1': wrong('tileset', 'asset.version is not 1.1')
    if not is_number(t.get('geometricError')) or t['geometricError'] < 0: wrong('tileset', 'geometricError')
    content = t.get('extensions', {}).get('3DTILES_content_gltf', {})
    if '3DTILES_content_gltf' not in t.get('extensionsUsed', []): wrong('tileset', 'extensionsUsed lacks 3DTILES_content_gltf')
    for extension in (SPLATS, PACKED):
        if extension not in content.get('extensionsRequired', []): wrong('tileset', f'3DTILES_content_gltf does not require {extension}')
    if 'root' not in t: wrong('tileset', 'no root')
    else:
        if t['geometricError'] < t['root'].get('geometricError', 0): wrong('tileset', "geometricError below the root's")
        check_tile(os.path.dirname(os.path.abspath(path)), t['root'], None, 0, facts, 'root')
    extra = {f for f in os.listdir(os.path.dirname(os.path.abspath(path))) if f.endswith('.glb')} - facts.pop('files')
    if extra: wrong('tileset', f'{len(extra)} GLB beside it are of no tile, such as {sorted(extra)[0]}')
    for p in problems: print(p)
    print(json.dumps(facts))
    return 1 if problems else 0


if __name__ == '__main__':
    if len(sys.argv) != 2: sys.exit(__doc__)
    sys.exit(main(sys.argv[1]))
