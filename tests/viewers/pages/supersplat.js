import { createViewer } from '/npm/@playcanvas/supersplat-viewer/public/index.js';
import { playcanvasView } from './playcanvas_view.js';

const off = (more) => ({ enabled: false, ...more });

export async function open(job, canvas) {
    canvas.remove();
    const container = document.createElement('div');
    container.style = `width:${job.width}px;height:${job.height}px`;
    document.body.append(container);
    // The viewer tells a failure to the console alone and then waits for ever.
    const failed = new Promise((done, fail) => {
        const log = console.error;
        console.error = (...words) => { log(...words); if (/Failed to load/.test(words[0])) fail(new Error(words.join(' '))); };
    });
    const viewer = await createViewer({
        container, contentUrl: job.url, contentFilename: job.name, ui: false, noanim: true, nofx: true, renderer: 'webgl', fullload: job.format !== 'lod',
        ...(job.format === 'lod' && { budget: job.budget / 1e6 }), // it gives the nearest what it has
        settings: {
            version: 2, tonemapping: 'none', highPrecisionRendering: false, background: { color: job.background.map((v) => v / 255) },
            postEffectSettings: {
                sharpness: off({ amount: 0 }), bloom: off({ intensity: 0, blurLevel: 0 }), fringing: off({ intensity: 0 }),
                grading: off({ brightness: 1, contrast: 1, saturation: 1, tint: [1, 1, 1] }), vignette: off({ intensity: 0, inner: 0, outer: 0, curvature: 0 }),
            },
            animTracks: [], annotations: [], startMode: 'default', cameras: [{ initial: { position: [0, 0, 5], target: [0, 0, 0], fov: 60 } }],
        },
    });
    const { app } = viewer;
    if (!viewer.state.loaded) await Promise.race([failed, new Promise((done) => viewer.events.once('loaded:changed', done))]);
    const { entity } = app.root.findComponents('gsplat')[0];
    const camera = app.root.findComponents('camera').find((c) => c.enabled && c.entity.enabled);
    const resource = entity.gsplat.asset?.resource ?? app.assets.list().find((a) => a.type === 'gsplat').resource;
    return {
        ...playcanvasView(app, camera, () => resource.numSplats ?? resource.gsplatData.numSplats, job.format === 'lod'),
        canvas: app.graphicsDevice.canvas,
        world: Array.from(entity.getWorldTransform().data), // turned by 180 degrees about z
    };
}
