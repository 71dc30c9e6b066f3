import { writeKnot } from './knot.mjs';

// What is opened where, and how good it has to look. A format, a viewer, a scene or a camera is added here; a viewer also has pages/NAME.js.
//
// All decibels are PSNR over white. The picture of a format is compared with the same viewer's picture of our PLY, so that what a viewer
// does otherwise than we cancels; that picture of the PLY is compared with kiln-render's, so that it is neither empty nor upside down.

const identity = [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1];
const aboutX = [1, 0, 0, 0, 0, -1, 0, 0, 0, 0, -1, 0, 0, 0, 0, 1];
const aboutZ = [-1, 0, 0, 0, 0, -1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1];

// antialiased  which of kiln-render's pictures is like the viewer's
// reads        the formats below that it has a reader for, beside PLY
// byChance     formats of which it draws one file in two ways from run to run (40.6 or 52.7 dB on the chair), so that theirs is no measure
// slack        share of Gaussians by which its number may differ; none: 0
export const viewers = {
    spark: { package: '@sparkjsdev/spark', antialiased: 'on', reads: ['compressed-ply', 'sog', 'spz', 'splat', 'ksplat', 'ksplat2'] },
    gaussiansplats3d: { package: '@mkkellogg/gaussian-splats-3d', antialiased: 'off', byChance: ['compressed-ply'], reads: ['compressed-ply', 'splat', 'ksplat0', 'ksplat', 'ksplat2'] },
    babylon: { package: 'babylonjs', antialiased: 'on', reads: ['compressed-ply', 'sog', 'sog-folder', 'spz', 'spz4', 'splat', 'glb'] },
    playcanvas: { package: 'playcanvas', antialiased: 'on', reads: ['compressed-ply', 'sog', 'sog-folder'] },
    supersplat: { package: '@playcanvas/supersplat-viewer', antialiased: 'on', reads: ['compressed-ply', 'sog', 'sog-folder'] },
    three: { package: 'three', antialiased: 'on', reads: ['spz', 'spz4', 'splat', 'glb', 'ksplat', 'ksplat2'] },
    // Has no reader for PLY: its pictures are compared with kiln-render's alone.
    cesium: { package: 'cesium', antialiased: 'on', reads: ['tile'], noPly: true },
};

// A format has the name that kiln-export gives it.
// file     the name of the file, below the scene's folder
// page     the format's name in the pages
// other    what splat-transform is given between input and output; none: it does not write the format
// slow     splat-transform takes many minutes for it on a CPU: its file is made with --slow alone, and stays
// frame    from the axes of the PLY to those of our file's numbers; otherFrame: of splat-transform's. The viewers take all numbers as they stand.
// floor    of a format that streams: dB against kiln-render's picture of the whole scene, by "SCENE VIEWER near" and "SCENE VIEWER far"; else
//          dB against the same viewer's picture of our PLY, by "SCENE", "SCENE CAMERA", "SCENE VIEWER" or "SCENE VIEWER CAMERA"
// splat-transform's file has 41.5 in Babylon off the centre, and 41.8 in three.js.
const spzFloor = { chair: 45, 'chair off-centre': 42, 'chair babylon off-centre': 41, 'chair three off-centre': 41, knot: 30 };
export const formats = {
    'compressed-ply': { file: 'scene.compressed.ply', page: 'ply', other: [], floor: { chair: 48, 'chair off-centre': 46, 'chair supersplat off-centre': 44, 'chair gaussiansplats3d': 39, 'chair gaussiansplats3d off-centre': 34, knot: 37, 'knot gaussiansplats3d': 20 } },
    sog: { file: 'scene.sog', page: 'sog', other: ['-g', 'cpu'], slow: true, floor: { chair: 46, 'chair off-centre': 44, knot: 40 } },
    'sog-folder': { file: 'sog/meta.json', page: 'sog', other: ['-g', 'cpu'], slow: true, floor: { chair: 46, 'chair off-centre': 44, knot: 40 } },
    // The specification of SPZ says right, up, back; splat-transform writes the PLY's numbers.
    spz: { file: 'scene.spz', page: 'spz', other: ['--spz-version', '3'], frame: aboutX, floor: spzFloor },
    spz4: { file: 'scene4.spz', page: 'spz', other: ['--spz-version', '4'], frame: aboutX, floor: spzFloor },
    splat: { file: 'scene.splat', page: 'splat', floor: { knot: 18 } },
    glb: { file: 'scene.glb', page: 'glb', other: [], frame: aboutZ, otherFrame: aboutZ, floor: { chair: 53, knot: 43 } },
    ksplat0: { file: 'scene0.ksplat', page: 'ksplat', floor: { 'chair gaussiansplats3d': 53, 'knot gaussiansplats3d': 50 } },
    ksplat: { file: 'scene.ksplat', page: 'ksplat', floor: { 'chair gaussiansplats3d': 53, 'knot gaussiansplats3d': 50 } },
    ksplat2: { file: 'scene2.ksplat', page: 'ksplat', floor: { 'chair gaussiansplats3d': 53, 'knot gaussiansplats3d': 50 } },
    // Our SPZ in a glTF in a tileset, which is what Cesium reads (tile.mjs). Its numbers are taken for glTF's.
    tile: { file: 'tileset.json', page: 'tiles', of: 'spz', frame: aboutX },
    // Levels of detail (streams below), of one scene. level: of what a viewer asked for.
    lod: { file: 'lod/lod-meta.json', page: 'lod', scene: 'chair', floor: { 'chair playcanvas near': 36, 'chair playcanvas far': 47, 'chair supersplat near': 35.5, 'chair supersplat far': 46 }, level: (asked) => /^(\d+)_\d+\//.exec(asked)?.[1] },
    '3dtiles': { file: '3dtiles/tileset.json', page: 'tiles', scene: 'chair', frame: aboutX, floor: { 'chair cesium near': 33, 'chair cesium far': 42 }, level: (asked) => /_L(\d+)\.glb$/.exec(asked)?.[1] },
    // A piece of the tree of rows is asked for by its bytes.
    rad: { file: 'scene.rad', page: 'rad', scene: 'large', floor: { 'large spark near': 38, 'large spark far': 40 }, level: (asked) => / bytes=(\d+)/.exec(asked)?.[1] },
};
// Formats that stream, in which viewer; Gaussians in a chunk; how far away each picture is, in distances of a scene's first camera.
export const streams = { chunk: 2048, walk: [16, 8, 4, 2, 1], viewers: { playcanvas: ['lod'], supersplat: ['lod'], cesium: ['3dtiles'], spark: ['rad'] } };
for (const f of Object.values(formats)) Object.assign(f, { frame: f.frame ?? identity, otherFrame: f.otherFrame ?? identity });
export { identity };

// Scenes: a PLY below the folder of reference data, or one that is made. Cameras: x right, y down, z forward, as in cameras.json.
// render   dB of each viewer's picture of our PLY against kiln-render's, by "VIEWER" or "VIEWER CAMERA"
// covered  share of the picture that is not background
const front = [1, 0, 0, 0, -0.466516852, -0.884512246, 0, 0.884512246, -0.466516852];
const back = [-1, 0, 0, 0, 0.734109998, -0.679030657, 0, -0.679030657, -0.734109938];
export const scenes = {
    chair: {
        ply: 'scenes/chair/chair.ply', width: 360, height: 440, covered: 0.1,
        cameras: {
            centre: { R: back, t: [0, 0, 4.03112888], fx: 555.5, fy: 555.5, cx: 180, cy: 220 },
            'off-centre': { R: front, t: [0, 0, 4.03112888], fx: 500, fy: 560, cx: 150, cy: 250 },
        },
        render: { spark: 45.5, gaussiansplats3d: 41, babylon: 37, playcanvas: 36, supersplat: 36, three: 38, cesium: 33,
            // The chair is larger in it.
            'spark off-centre': 42.5, 'gaussiansplats3d off-centre': 35.5, 'babylon off-centre': 32, 'playcanvas off-centre': 32, 'supersplat off-centre': 31, 'three off-centre': 36, 'cesium off-centre': 32,
        },
    },
    knot: {
        generate: (file) => writeKnot(file, 24000), width: 320, height: 320, covered: 0.2,
        cameras: {
            front: { R: [1, 0, 0, 0, 1, 0, 0, 0, 1], t: [0, 0, 3.6], fx: 400, fy: 400, cx: 160, cy: 160 },
            side: { R: [0.6, 0, -0.8, 0.48, 0.8, 0.36, 0.64, -0.6, 0.48], t: [0.1, -0.1, 3.4], fx: 380, fy: 420, cx: 150, cy: 175 },
        },
        // GaussianSplats3D draws degrees 1 and 2 alone.
        render: { spark: 42, gaussiansplats3d: 25, babylon: 36, playcanvas: 34, supersplat: 31, three: 28, cesium: 28 },
    },
    // The knot in so many Gaussians that a file of all levels has several pieces. For streams alone.
    large: {
        generate: (file) => writeKnot(file, 200000), width: 320, height: 320, covered: 0.2, streamsOnly: true,
        cameras: { front: { R: [1, 0, 0, 0, 1, 0, 0, 0, 1], t: [0, 0, 3.6], fx: 400, fy: 400, cx: 160, cy: 160 } },
        render: {},
    },
    leica: {
        ply: 'scenes/files/brush_leica_8192.ply', width: 400, height: 300, covered: 0.4,
        cameras: {
            first: { R: [-0.955336511, 0, 0.295520216, 0.0976252258, 0.943858385, 0.315595806, -0.278929204, 0.330350429, -0.901702344], t: [-0.903836548, -2.17711377, 11.8909016], fx: 480, fy: 480, cx: 200, cy: 150 },
            second: { R: [0.737393737, 0, 0.6754632, 0.223139554, 0.943858385, -0.243598327, -0.637541592, 0.330350429, 0.695995212], t: [-2.62248278, -0.146288976, 6.08854532], fx: 480, fy: 480, cx: 200, cy: 150 },
        },
        // Huge Gaussians around the cameras, which every viewer cuts otherwise than INRIA does.
        render: { spark: 18, gaussiansplats3d: 18, babylon: 18, playcanvas: 18, supersplat: 18, three: 18, cesium: 18 },
    },
};

// What make test has the time for: three viewers and one camera, each format where most of what it holds shows.
export const quick = [
    'knot spark ply front', 'knot spark sog front', 'knot spark spz front',
    'knot gaussiansplats3d ply front', 'knot gaussiansplats3d splat front', 'knot gaussiansplats3d ksplat2 front',
    'knot babylon ply front', 'knot babylon compressed-ply front', 'knot babylon glb front',
    'page cut', 'knot page html first', 'knot page levels first',
    'knot readers @adobe/spz spz', 'knot readers @adobe/spz spz4',
];
