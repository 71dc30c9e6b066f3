import * as THREE from 'three';
import { SparkRenderer, SplatMesh } from '@sparkjsdev/spark';
import { colourOf, threeCamera } from './three_camera.js';

export async function open(job, canvas) {
    const renderer = new THREE.WebGLRenderer({ canvas, antialias: false, alpha: false, preserveDrawingBuffer: true });
    renderer.setSize(job.width, job.height, false);
    const scene = new THREE.Scene();
    scene.background = colourOf(job);
    const spark = new SparkRenderer({ renderer });
    const mesh = new SplatMesh({ url: job.url, fileName: job.name });
    scene.add(spark, mesh);
    await mesh.initialized;
    const camera = threeCamera();
    return {
        aim: camera.aim,
        draw: async (read) => { renderer.render(scene, camera); return read(); },
        idle: () => spark.activeSplats > 0 && !spark.sorting && !spark.sortDirty && !spark.dirty,
        count: () => mesh.splats?.getNumSplats() ?? mesh.packedSplats.numSplats,
    };
}
