// three.js with the loaders and the GaussianSplat of its own addons.
import * as THREE from 'three/webgpu';
import { GaussianSplat } from 'three/addons/objects/GaussianSplat.js';
import { colourOf, threeCamera } from './three_camera.js';

const loaders = { ply: 'GaussianSplatPLYLoader', splat: 'SPLATLoader', spz: 'SPZLoader', ksplat: 'KSPLATLoader', glb: 'GLTFLoader' };

async function load(job) {
    const name = loaders[job.format];
    if (!name) throw new Error(`three.js has no loader for ${job.format}`);
    const loader = new (await import(`three/addons/loaders/${name}.js`))[name]();
    if (job.format !== 'glb') return new GaussianSplat(await loader.loadAsync(job.url));
    const { GLTFGaussianSplatLoaderExtension: Extension } = await import('three/addons/loaders/GLTFGaussianSplatLoaderExtension.js');
    return (await loader.register((parser) => new Extension(parser)).loadAsync(job.url)).scene;
}

export async function open(job, canvas) {
    const renderer = new THREE.WebGPURenderer({ canvas, antialias: false, alpha: false, forceWebGL: true, preserveDrawingBuffer: true });
    await renderer.init();
    renderer.setSize(job.width, job.height, false);
    renderer.toneMapping = THREE.NoToneMapping;
    // GaussianSplat hands out display colours, which the renderer would encode once more.
    renderer.outputColorSpace = THREE.LinearSRGBColorSpace;
    const scene = new THREE.Scene();
    scene.background = colourOf(job, THREE.LinearSRGBColorSpace);
    scene.add(await load(job));
    let splat;
    scene.traverse((object) => { if (object.isGaussianSplat) splat = object; });
    if (!splat) throw new Error('three.js made no GaussianSplat of the file');
    const camera = threeCamera();
    camera.coordinateSystem = renderer.coordinateSystem;
    return {
        still: 6, // it sorts within the frame and tells nothing, so more equal pictures are asked for
        aim: camera.aim,
        draw: async (read) => { renderer.render(scene, camera); return read(); },
        idle: () => true,
        count: () => Object.values(splat.splatGeometry.attributes)[0].count,
    };
}
