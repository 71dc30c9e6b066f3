// scene_page -- the page that kiln-export --format html writes: everything is in the file itself.
//   #scene   JSON: {version, name, rows, sh_degree, antialiased, background, up, centre, radius, bytes, cameras: [{name, R, t, fx, ...}]}
//   .splats  base64 of a SOG archive of so many bytes, one piece in each element, each of whole groups of three bytes but the last
import { SplatFileType, SplatMesh } from '@sparkjsdev/spark';
import { Controls } from './controls.js';
import { overview } from './geometry.js';
import { Frame, isWide } from './ui.js';
import { View } from './view.js';

const VERSION = 1;

const bytesOf = Uint8Array.fromBase64?.bind(Uint8Array) ?? ((text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0)));

// The pieces leave the page as they are read: a scene is there once, not twice.
async function archive(bytes, tell) {
    const all = new Uint8Array(bytes), pieces = [...document.querySelectorAll('.splats')];
    let at = 0;
    for (const [i, piece] of pieces.entries()) {
        const part = bytesOf(piece.textContent.trim());
        if (at + part.length > bytes) break;
        all.set(part, at);
        at += part.length;
        piece.remove();
        tell((i + 1) / pieces.length);
        await new Promise((done) => setTimeout(done));
    }
    if (at !== bytes) throw new Error(`the file holds ${at} bytes of the scene's ${bytes}; was it copied whole?`);
    return all;
}

export async function openScene(root) {
    const scene = JSON.parse(document.getElementById('scene').textContent);
    let controls;
    const goTo = (i) => { frame.mark(i); return controls.flyTo(scene.cameras[i]); };
    const first = scene.cameras[0] ?? overview(scene);
    const home = () => { frame.mark(scene.cameras.length ? 0 : -1); return controls.flyTo(first); };
    const frame = new Frame(root, { goTo, home, look: (on) => { controls.look = on; } });
    try {
        if (scene.version !== VERSION) throw new Error(`the scene is of version ${scene.version}, and this viewer reads ${VERSION}`);
        frame.setScene(scene, scene.cameras.map((camera) => ({ ...camera, note: camera.split })));
        if (isWide() && scene.cameras.length > 1) frame.openList(true);
        const view = new View(frame.canvas, scene);
        controls = new Controls(view, scene, () => frame.mark(-1));
        controls.aim(first);
        frame.mark(scene.cameras.length ? 0 : -1);
        let mesh;
        window.splatView = {
            view,
            cameras: () => scene.cameras,
            centre: () => scene.centre,
            aim: (shot) => controls.aim(shot),
            settled: () => view.settled(() => Boolean(mesh?.isInitialized) && !controls.isWalking),
            bare: (on = true) => root.classList.toggle('bare', on),
        };
        frame.say('Reading the scene \u2026');
        const fileBytes = await archive(scene.bytes, (part) => frame.say(`Reading the scene \u2026 ${Math.round(100 * part)} %`));
        mesh = new SplatMesh({ fileBytes, fileType: SplatFileType.PCSOGSZIP, fileName: 'scene.sog', lod: false, extSplats: true });
        view.scene.add(mesh);
        await mesh.initialized;
        view.touch();
        frame.say('');
    } catch (e) {
        frame.say(`The scene cannot be shown: ${e?.message ?? e}`, true);
        throw e;
    }
}
