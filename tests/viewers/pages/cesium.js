/* global Cesium */
import { product } from './page.js';

// x east, y north, z up at a place on the equator: Cesium wants to be on the globe.
const PLACE = [0, 1, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0, 6379137, 0, 0, 1];
// 3D Tiles turn the glTF of a tile from y up to z up.
const TILE = [1, 0, 0, 0, 0, 0, 1, 0, 0, -1, 0, 0, 0, 0, 0, 1];

// Cesium moves the near plane to what a tile's box says, and moves the four sides along where they are given by angles alone. Where they are
// given in numbers the picture would be enlarged: then a tile must be around the camera.
function frustumOf({ left, right, bottom, top }) {
    const near = 0.1, far = 10000, isCentred = Math.abs(left + right) + Math.abs(bottom + top) < 1e-9;
    if (!isCentred) return new Cesium.PerspectiveOffCenterFrustum({ left, right, bottom, top, near, far });
    const fov = 2 * Math.atan(Math.max(right, top) / near); // of the longer side
    return new Cesium.PerspectiveFrustum({ fov, aspectRatio: right / top, near, far });
}

export async function open(job, canvas) {
    const box = document.createElement('div');
    box.style = `width:${job.width}px;height:${job.height}px`;
    canvas.replaceWith(box);
    const widget = new Cesium.CesiumWidget(box, {
        baseLayer: false, globe: false, skyBox: false, skyAtmosphere: false, scene3DOnly: true, useDefaultRenderLoop: false, msaaSamples: 1,
        showRenderLoopErrors: false, creditContainer: document.createElement('div'),
        contextOptions: { webgl: { alpha: false, antialias: false, preserveDrawingBuffer: true } },
    });
    const { scene } = widget;
    widget.resize();
    scene.backgroundColor = new Cesium.Color(...job.background.map((v) => v / 255), 1);
    scene.highDynamicRange = false;
    scene.logarithmicDepthBuffer = false;
    scene.fog.enabled = false;
    scene.postProcessStages.fxaa.enabled = false;
    for (const light of [scene.sun, scene.moon]) if (light) light.show = false;
    const tileset = await Cesium.Cesium3DTileset.fromUrl(job.url, { modelMatrix: Cesium.Matrix4.fromArray(PLACE), dynamicScreenSpaceError: false, foveatedScreenSpaceError: false });
    let problem;
    tileset.tileFailed.addEventListener((e) => { problem = `${e.url}: ${e.message}`; });
    scene.renderError.addEventListener((s, e) => { problem = String(e?.message ?? e); });
    scene.primitives.add(tileset);
    const splats = () => tileset.gaussianSplatPrimitive;
    return {
        canvas: widget.canvas,
        still: 6, // textures are filled over many frames
        world: product(PLACE, TILE),
        aim: ({ pose, planes }) => {
            const vector = (from, sign) => new Cesium.Cartesian3(sign * pose[from], sign * pose[from + 1], sign * pose[from + 2]);
            scene.camera.frustum = frustumOf(planes(0.1));
            scene.camera.setView({ destination: vector(12, 1), endTransform: Cesium.Matrix4.IDENTITY, orientation: { direction: vector(8, -1), up: vector(4, 1) } });
        },
        draw: async (read) => {
            widget.render();
            if (problem) throw new Error(problem);
            return read();
        },
        idle: () => tileset.tilesLoaded && splats()?._drawCommand !== undefined && splats().isStable !== false,
        count: () => splats()._numSplats,
    };
}
