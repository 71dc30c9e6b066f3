import * as THREE from 'three';
import { SparkRenderer, SplatMesh } from '@sparkjsdev/spark';
import { colourOf, threeCamera } from './three_camera.js';

// A file that streams: what is drawn was chosen for this camera (Spark chooses anew from MOVED on), and nothing is asked for, on its way, or
// waits to be put into the tree. Spark tells of none of it, and on a busy machine a choice takes longer than any pause would be.
const MOVED = 0.001, POLL_MS = 5;
function isChosen({ lastLod, lodDirty, lodUpdates, pager }, camera) {
    return lastLod?.pos.distanceTo(camera.position) < MOVED && !lodDirty &&
        [lodUpdates, pager.fetchers, pager.fetched, pager.newUploads, pager.readyUploads, pager.lodTreeUpdates].every((list) => !list.length);
}

export async function open(job, canvas) {
    const renderer = new THREE.WebGLRenderer({ canvas, antialias: false, alpha: false, preserveDrawingBuffer: true });
    renderer.setSize(job.width, job.height, false);
    const scene = new THREE.Scene();
    scene.background = colourOf(job);
    const spark = new SparkRenderer({ renderer });
    const mesh = new SplatMesh({ url: job.url, fileName: job.name, ...(job.format === 'rad' && { paged: true }) });
    scene.add(spark, mesh);
    // Spark throws a tree away that it has not drawn for 3 s, also while it draws it: a picture takes longer than that where there is no GPU.
    spark.cleanupLodTrees = () => {};
    await mesh.initialized;
    const camera = threeCamera();
    return {
        aim: (shot) => camera.aim(shot),
        draw: async (read) => {
            renderer.render(scene, camera);
            const drawn = read();
            // Each picture lets a worker choose: until it has, the lists of isChosen say nothing.
            while (spark.lodWorker?.queue) await new Promise((done) => setTimeout(done, POLL_MS));
            return drawn;
        },
        idle: () => spark.activeSplats > 0 && !spark.sorting && !spark.sortDirty && !spark.dirty && (job.format !== 'rad' || isChosen(spark, camera)),
        count: () => mesh.paged?.numSplats ?? mesh.splats?.getNumSplats() ?? mesh.packedSplats.numSplats,
    };
}
