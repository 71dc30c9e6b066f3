import * as pc from 'playcanvas';
import { playcanvasView } from './playcanvas_view.js';

export async function open(job, canvas) {
    const app = new pc.Application(canvas, { graphicsDeviceOptions: { antialias: false, alpha: false, preserveDrawingBuffer: true, deviceTypes: ['webgl2'] } });
    app.graphicsDevice.maxPixelRatio = 1;
    app.setCanvasFillMode(pc.FILLMODE_NONE);
    app.setCanvasResolution(pc.RESOLUTION_FIXED, job.width, job.height);
    // Levels by distance, not as many Gaussians as a million allows.
    if (job.format === 'lod') app.scene.gsplat.splatBudgetMode = pc.GSPLAT_BUDGET_LIMIT;
    const asset = new pc.Asset(job.name, 'gsplat', { url: job.url, filename: job.name });
    app.assets.add(asset);
    app.assets.load(asset);
    await new Promise((done, failed) => { asset.ready(done); asset.once('error', (e) => failed(new Error(String(e)))); });
    const eye = new pc.Entity('eye'), splats = new pc.Entity('splats');
    eye.addComponent('camera', { clearColor: new pc.Color(...job.background.map((v) => v / 255)), nearClip: 0.01, farClip: 1000 });
    splats.addComponent('gsplat', { asset, unified: true });
    app.root.addChild(eye);
    app.root.addChild(splats);
    const view = playcanvasView(app, eye.camera, () => asset.resource.numSplats ?? asset.resource.gsplatData.numSplats, job.format === 'lod');
    // A frame before there is a camera would ask for the levels at the origin.
    let isStarted = false;
    return { ...view, aim: (shot) => { view.aim(shot); if (!isStarted) app.start(); isStarted = true; } };
}
