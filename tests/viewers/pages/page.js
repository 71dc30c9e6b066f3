// Opens one file in one viewer and takes a picture from each camera of window.job (browser.mjs puts it there):
//   {viewer, url, name, format, width, height, background [3] 0..255, frame [16], cameras [{R, t, fx, fy, cx, cy}],
//    budget of a format that streams: Gaussians}
// A viewer is a module beside this one that exports
//   async open(job, canvas) -> {world, aim(shot), draw(read), idle(), count()}
//     world   16 numbers, or none: how the viewer moves what it loaded, from the numbers in the file to its own world
//     aim     takes the camera: shot.view (camera looks along -z, y up), shot.pose (its inverse), shot.projection, shot.planes
//     draw    draws a picture and returns read() while the pixels are still there
//     idle    true when loading and sorting are over
//     count   Gaussians that were loaded
// Matrices are arrays of 16, column after column, as in WebGL. NEAR and FAR are scene units.
const NEAR = 0.01, FAR = 1000, STILL = 2, PAUSE_MS = 100;
const job = window.job;

export function product(a, b) {
    return Array.from({ length: 16 }, (_, i) => {
        const row = i % 4, column = i - row;
        return a[row] * b[column] + a[row + 4] * b[column + 1] + a[row + 8] * b[column + 2] + a[row + 12] * b[column + 3];
    });
}

// Inverse of a matrix whose last row is 0 0 0 1, by cofactors of its upper left part.
export function inverse(m) {
    const at = (row, column) => m[4 * (column % 3) + row % 3];
    const cofactor = (row, column) => at(row + 1, column + 1) * at(row + 2, column + 2) - at(row + 1, column + 2) * at(row + 2, column + 1);
    const det = at(0, 0) * cofactor(0, 0) + at(0, 1) * cofactor(0, 1) + at(0, 2) * cofactor(0, 2);
    const out = new Array(16).fill(0);
    for (let row = 0; row < 3; row++) {
        for (let column = 0; column < 3; column++) {
            out[4 * column + row] = cofactor(column, row) / det;
            out[12 + row] -= out[4 * column + row] * m[12 + column];
        }
    }
    out[15] = 1;
    return out;
}

// The camera as the viewer needs it. Ours has y down and looks along z; WebGL's has y up and looks along -z.
function shotOf(camera, world) {
    const { R, t, fx, fy, cx, cy } = camera;
    const ours = [R[0], -R[3], -R[6], 0, R[1], -R[4], -R[7], 0, R[2], -R[5], -R[8], 0, t[0], -t[1], -t[2], 1];
    const view = product(ours, inverse(product(world, job.frame)));
    const { width: w, height: h } = job;
    const planes = (near) => ({ left: -near * cx / fx, right: near * (w - cx) / fx, bottom: -near * (h - cy) / fy, top: near * cy / fy });
    const projection = [2 * fx / w, 0, 0, 0, 0, 2 * fy / h, 0, 0, 1 - 2 * cx / w, 2 * cy / h - 1, (FAR + NEAR) / (NEAR - FAR), -1,
        0, 0, 2 * FAR * NEAR / (NEAR - FAR), 0];
    return { view, pose: inverse(view), projection, planes, near: NEAR, far: FAR, fovY: 2 * Math.atan(h / 2 / fy) };
}

// Copies a canvas over the background, because some viewers leave alpha below 1.
function copyOf(canvas) {
    const copy = new OffscreenCanvas(job.width, job.height), context = copy.getContext('2d', { willReadFrequently: true });
    context.fillStyle = `rgb(${job.background})`;
    context.fillRect(0, 0, job.width, job.height);
    context.drawImage(canvas, 0, 0, job.width, job.height);
    return { copy, pixels: context.getImageData(0, 0, job.width, job.height).data };
}

// Draws until the viewer is idle and has drawn the same picture STILL times after another: a sort that is about to start shows in no flag.
async function picture(viewer, canvas) {
    let last = null;
    for (let still = 0; still < (viewer.still ?? STILL);) {
        const now = await viewer.draw(() => copyOf(viewer.canvas ?? canvas));
        still = last && viewer.idle() && now.pixels.every((v, i) => v === last.pixels[i]) ? still + 1 : 0;
        last = now;
        await new Promise((done) => setTimeout(done, PAUSE_MS));
    }
    let covered = 0;
    for (let i = 0; i < last.pixels.length; i += 4) covered += job.background.some((v, c) => Math.abs(v - last.pixels[i + c]) > 2);
    const png = new Uint8Array(await (await last.copy.convertToBlob({ type: 'image/png' })).arrayBuffer());
    return { covered: covered / (job.width * job.height), png: btoa(Array.from(png, (v) => String.fromCharCode(v)).join('')) };
}

window.take = async () => {
    const canvas = document.getElementById('canvas');
    canvas.width = job.width;
    canvas.height = job.height;
    const viewer = await (await import(`./${job.viewer}.js`)).open(job, canvas);
    const pictures = [];
    for (const [i, camera] of job.cameras.entries()) {
        // Requests that follow are this camera's (browser.mjs); a viewer that streams loads for the others what they see.
        if (job.cameras.length > 1) await fetch(`/view/${i}`).catch(() => {});
        viewer.aim(shotOf(camera, viewer.world ?? [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1]));
        pictures.push(await picture(viewer, canvas));
    }
    return { pictures, count: viewer.count() };
};
