import * as THREE from 'three';
import * as Splats from '@mkkellogg/gaussian-splats-3d';
import { colourOf, threeCamera } from './three_camera.js';

const formats = { ply: 'Ply', splat: 'Splat', ksplat: 'KSplat', spz: 'Spz' };

export async function open(job, canvas) {
    if (!formats[job.format]) throw new Error(`GaussianSplats3D has no reader for ${job.format}`);
    const renderer = new THREE.WebGLRenderer({ canvas, antialias: false, alpha: false, precision: 'highp', preserveDrawingBuffer: true });
    renderer.setSize(job.width, job.height, false);
    renderer.setClearColor(colourOf(job), 1);
    const camera = threeCamera();
    const viewer = new Splats.Viewer({
        renderer, camera, rootElement: document.body, selfDrivenMode: false, useBuiltInControls: false, ignoreDevicePixelRatio: true,
        sharedMemoryForWorkers: false, gpuAcceleratedSort: false, sceneRevealMode: Splats.SceneRevealMode.Instant, sphericalHarmonicsDegree: 2,
    });
    await viewer.addSplatScene(job.url, { format: Splats.SceneFormat[formats[job.format]], showLoadingUI: false, progressiveLoad: false });
    return {
        aim: (shot) => { camera.aim(shot); viewer.runSplatSort(true, true); },
        draw: async (read) => { viewer.update(); viewer.render(); return read(); },
        idle: () => viewer.splatRenderReady && viewer.splatRenderCount > 0 && !viewer.sortRunning && !viewer.isLoadingOrUnloading(),
        count: () => viewer.splatMesh.getSplatCount(),
    };
}
