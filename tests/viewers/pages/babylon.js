/* global BABYLON */
import * as fflate from 'fflate';
import { product } from './page.js';

export async function open(job, canvas) {
    const engine = new BABYLON.Engine(canvas, false, { alpha: false, stencil: false, preserveDrawingBuffer: true, adaptToDeviceRatio: false });
    engine.setSize(job.width, job.height);
    const scene = new BABYLON.Scene(engine);
    scene.clearColor = new BABYLON.Color4(...job.background.map((v) => v / 255), 1);
    // A folder's meta.json is recognised by its name; other files by the suffix.
    const splat = { fflate, spzLibraryUrl: new URL('/npm/@adobe/spz/dist/spz.js', location).href, disableAutoCameraLimits: true };
    const plugin = { pluginOptions: { splat, gltf: {} }, ...(job.name.endsWith('.json') ? {} : { pluginExtension: `.${job.format}` }) };
    await BABYLON.ImportMeshAsync(job.url, scene, plugin);
    const mesh = scene.meshes.find((m) => m._isGaussianSplatting);
    if (!mesh) throw new Error('Babylon made no Gaussian splatting mesh of the file');
    const camera = new BABYLON.FreeCamera('camera', BABYLON.Vector3.Zero(), scene);
    await scene.whenReadyAsync();
    // Babylon is left-handed: depth grows forward, so z changes its sign between its camera and WebGL's.
    const mirror = [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, -1, 0, 0, 0, 0, 1];
    return {
        world: Array.from(mesh.computeWorldMatrix(true).m),
        aim: (shot) => {
            const view = BABYLON.Matrix.FromArray(product(mirror, shot.view));
            camera.minZ = shot.near;
            camera.maxZ = shot.far;
            camera.position.set(shot.pose[12], shot.pose[13], shot.pose[14]);
            camera._getViewMatrix = () => view;
            camera.freezeProjectionMatrix(BABYLON.Matrix.FromArray(product(shot.projection, mirror)));
        },
        draw: async (read) => { scene.render(); return read(); },
        idle: () => mesh.isReady(true) && mesh._isDepthSortSettled !== false,
        count: () => mesh.splatCount ?? mesh._vertexCount,
    };
}
