"""Writes one file of each kind that import knows and does not read, as its program writes it: foreign.py DIR. Prints a line for each:
kind, file, and a pattern of what import must say of it. The marks are those of public sources (stages/files/foreign.c)."""
import io, json, os, struct, sys, zipfile

os.chdir(sys.argv[1])


def archive(*entries):
    data = io.BytesIO()
    with zipfile.ZipFile(data, 'w', zipfile.ZIP_STORED) as z:
        for name, text in entries:
            z.writestr(name, text)
    return data.getvalue()


def ply(columns, before=''):
    return (f'ply\nformat binary_little_endian 1.0\n{before}element vertex 1\n' +
            ''.join(f'property float {c}\n' for c in columns) + 'end_header\n').encode() + bytes(4 * len(columns))


anchors = (['x', 'y', 'z', 'nx', 'ny', 'nz'] + [f'f_offset_{i}' for i in range(30)] + [f'f_anchor_feat_{i}' for i in range(32)] +
           ['opacity'] + [f'scale_{i}' for i in range(6)] + [f'rot_{i}' for i in range(4)])
splats = ['x', 'y', 'z', 'f_dc_0', 'f_dc_1', 'f_dc_2', 'opacity', 'scale_0', 'scale_1', 'scale_2', 'rot_0', 'rot_1', 'rot_2', 'rot_3']
pickle = b'\x80\x02}q\x00(X\x04\x00\x00\x00stepq\x01M/uX\x06\x00\x00\x00%sq\x02'
png = {'shape': [4, 3], 'dtype': 'float32', 'mins': [0, 0, 0], 'maxs': [1, 1, 1]}
sog = {'version': 3, 'count': 4, 'means': {'mins': [0, 0, 0], 'maxs': [1, 1, 1], 'files': ['means_l.webp', 'means_u.webp']}}
polycam = {f't_{i}{j}': float(i == j) for i in range(3) for j in range(4)} | {'fx': 800, 'fy': 800, 'cx': 320, 'cy': 240}

KINDS = [
    ('rad', 'scene.rad', b'RAD0' + struct.pack('<I', 2) + b'{}', 'import the file or bake that it was made from'),
    ('tiles', 'tileset.json', b'{"asset": {"version": "1.1"}, "geometricError": 1, "root": {}}', 'TILE.glb'),
    ('usda', 'scene.usda', b'#usda 1.0\n', 'USD-Fileformat-plugins'),
    ('usdc', 'scene.usdc', b'PXR-USDC' + bytes(80), 'USD-Fileformat-plugins'),
    ('usdz', 'scene.usdz', archive(('scene.usdc', 'PXR-USDC')), 'USD-Fileformat-plugins'),
    ('lcc', 'meta.lcc', b'{"version": "5.0", "totalSplats": 3, "indexDataSize": 20}', 'splat-transform FILE.lcc scene.ply'),
    ('lcc2', 'meta.lcc2', b'{"totalSplats": 3, "lodSplats": [3], "totalLevels": 1, "root": {}}', 'splat-transform meta.lcc2'),
    ('gsplat', 'ckpt_29999_rank0.pt', archive(('ckpt_29999_rank0/data.pkl', pickle % b'splats')), '--save_ply'),
    ('nerfstudio', 'step-000029999.ckpt', archive(('step-000029999/data.pkl', pickle % b'_model.means')), 'ns-export gaussian-splat'),
    ('inria', 'chkpnt30000.pth', archive(('archive/data.pkl', pickle % b'capture')), 'iteration_N/point_cloud.ply'),
    ('legacy', 'old.pth', b'\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02M\xe9\x03.', 'iteration_N/point_cloud.ply'),
    ('npz', 'splats.npz', archive(('means.npy', b'\x93NUMPY')), 'gsplat.export_splats'),
    ('png', 'meta.json', json.dumps({'means': png, 'scales': png}).encode(), 'PngCompression.*decompress'),
    ('sog3', 'meta.json', json.dumps(sog).encode(), 'versions 1 and 2 are read'),
    ('sog3zip', 'scene.sog', archive(('means_l.webp', b'RIFF'), ('meta.json', json.dumps(sog))), 'versions 1 and 2 are read'),
    ('scaffold', 'point_cloud.ply', ply(anchors), 'networks'),
    ('scaffold2', 'point_cloud.ply', ply(anchors, 'comment x\n' * 500), 'networks'),
    ('codebook', 'point_cloud.ply', ply(splats, 'element codebook_centers 256\nproperty float features_dc\n') + bytes(1024),
     'full point_cloud.ply'),
    ('las', 'cloud.laz', b'LASF' + bytes(300), 'pdal translate'),
    ('polycam', 'keyframes/corrected_cameras/1.json', json.dumps(polycam).encode(), 'ns-process-data polycam'),
    ('polycamraw', 'keyframes/cameras/1.json', json.dumps(polycam).encode(), 'ns-process-data polycam'),
    ('bundler', 'bundle.out', b'# Bundle file v0.3\n1 0\n', 'colmap automatic_reconstructor'),
    ('csv', 'cameras.csv', b'#name,x,y,alt,heading,pitch,roll,f,px,py,k1,k2,k3,k4,t1,t2\nv0.jpg,0,0,0,0,0,0,35,0,0,0,0,0,0,0,0\n',
     'ns-process-data realitycapture'),
    ('csv2', 'cameras.csv', b'#cameras 1\n#name,x,y,z,heading,pitch,roll\nv0.jpg,0,0,0,0,0,0\n', 'ns-process-data realitycapture'),
    ('metashape', 'cameras.xml', b'<?xml version="1.0" encoding="UTF-8"?>\n<document version="2.0.0">\n  <chunk label="Chunk 1">\n',
     'ns-process-data metashape'),
    ('blocks', 'blocks.xml', b'<?xml version="1.0"?>\n<BlocksExchange version="2.1">\n', 'colmap automatic_reconstructor'),
    ('nvm', 'scene.nvm', b'NVM_V3 \n\n1\n', 'colmap automatic_reconstructor'),
    ('opensfm', 'reconstruction.json', b'[{"cameras": {"v2 x": {"projection_type": "brown", "width": 4}}, "shots": {}}]',
     'bin/opensfm export_colmap'),
    ('meshroom', 'cameras.sfm', b'{\n "version": ["1", "2"], "featuresFolders": [""], "views": [{"viewId": "1"}]}',
     'aliceVision_exportColmap'),
]
for kind, name, data, says in KINDS:
    path = os.path.join(kind, name)
    os.makedirs(os.path.dirname(path))
    with open(path, 'wb') as f:
        f.write(data)
    print(kind, path, says, sep='\t')
