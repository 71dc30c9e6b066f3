import * as THREE from 'three';
import { SparkRenderer, SplatMesh } from '@sparkjsdev/spark';
import { colourOf, threeCamera } from './three_camera.js';

const CHOICE_MS = 5000;

export async function open(job, canvas) {
    const renderer = new THREE.WebGLRenderer({ canvas, antialias: false, alpha: false, preserveDrawingBuffer: true });
    renderer.setSize(job.width, job.height, false);
    const scene = new THREE.Scene();
    scene.background = colourOf(job);
    const spark = new SparkRenderer({ renderer });
    const mesh = new SplatMesh({ url: job.url, fileName: job.name, ...(job.format === 'rad' && { paged: true }) });
    scene.add(spark, mesh);
    await mesh.initialized;
    const camera = threeCamera();
    let aimed = 0;
    return {
        aim: (shot) => { aimed = performance.now(); camera.aim(shot); },
        draw: async (read) => { renderer.render(scene, camera); return read(); },
        // A file that streams: nothing is asked for or on its way, and the worker that chooses what is drawn has had its time.
        idle: () => (job.format !== 'rad' || performance.now() - aimed > CHOICE_MS) && spark.activeSplats > 0 && !spark.sorting && !spark.sortDirty && !spark.dirty && !spark.pager?.fetchers.length && !spark.pager?.fetched.length,
        count: () => mesh.paged?.numSplats ?? mesh.splats?.getNumSplats() ?? mesh.packedSplats.numSplats,
    };
}
