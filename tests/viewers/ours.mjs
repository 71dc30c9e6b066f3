// Our own pages: the one that kiln-export --format html writes, opened from disk with no network, and that of kiln-serve. The first view is compared
// with kiln-render's picture; names that are markup do nothing; nothing outside is asked for; the console stays empty; with levels of detail finer
// ones are loaded as the camera comes near.
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { checkCut } from './cut_test.mjs';
import { kiln, psnr } from './inputs.mjs';
import { writeKnot } from './knot.mjs';

const HOSTILE = '<img src=x onerror="window.ran=1">';
const shared = process.env.KILN_SHARED;
const knotCameras = [
    { name: 'front', width: 160, height: 160, R: [1, 0, 0, 0, 1, 0, 0, 0, 1], t: [0, 0, 3.6], fx: 200, fy: 200, cx: 80, cy: 80 },
    { name: `side </script><script>window.ran=1</script>${HOSTILE}`, width: 160, height: 160, R: [0.6, 0, -0.8, 0.48, 0.8, 0.36, 0.64, -0.6, 0.48], t: [0.1, -0.1, 3.4], fx: 190, fy: 210, cx: 75, cy: 87 },
];
// floor: dB of the first view against kiln-render's picture. make: fills a folder with a scene, whose name is then `title`.
const scenes = {
    knot: { floor: 38, chunk: 400, make: (folder) => { writeKnot(path.join(folder, 'scene.ply'), 2000); fs.writeFileSync(path.join(folder, 'cameras.json'), JSON.stringify(knotCameras)); }, title: HOSTILE },
    chair: { floor: 44, chunk: 2048, source: 'scenes/chair' },
};
// Walks to the first camera from this many times its distance from the middle of the scene.
const WALK = [128, 32, 1];

export const ourCases = [{ name: 'page cut', page: 'cut' }, ...Object.keys(scenes).flatMap((scene) => ['html', 'serve', 'levels'].map((page) => ({ name: `${scene} page ${page} first`, scene, page })))];

const baked = {};
async function bakeOnce(name, folder) {
    const { source, make, chunk, title } = scenes[name], db = path.join(folder, name, 'bake.db'), from = source ? path.join(shared, source) : path.join(folder, name, title);
    if (baked[name]) return baked[name];
    fs.rmSync(path.join(folder, name), { recursive: true, force: true });
    fs.mkdirSync(path.join(folder, name, title ?? ''), { recursive: true });
    make?.(from);
    await kiln('import', from, db);
    await kiln('knn', db);
    await kiln('chunk', db, '--layer', 'source', '--max', String(chunk));
    await kiln('tiles', db, '--profile', 'gsplat-1.6', '--antialiased', 'on');
    await kiln('render', db, '--profile', 'gsplat-1.6', '--antialiased', 'on');
    return (baked[name] = db);
}

// The first camera of a page: its picture of kiln-render, beside the bake.
const renderOf = (db, camera) => path.join(path.dirname(db), 'renders', `${camera.name}.png`);

// The help speaks of what is there to move the camera with: of a mouse and keys, or on a phone of fingers alone.
async function helpProblem(page) {
    const told = async (of) => {
        await of.waitForFunction(() => document.querySelector('.help dt'));
        return of.evaluate(() => [...document.querySelectorAll('.help dt')].map((e) => e.textContent).join('; '));
    };
    const keys = await told(page);
    if (!/Drag.*Arrow keys/.test(keys) || /One finger/.test(keys)) return `the help of a desktop says: ${keys}`;
    const phone = await page.context().browser().newContext({ hasTouch: true, isMobile: true, viewport: { width: 390, height: 800 } });
    try {
        const small = await phone.newPage();
        await small.goto(page.url());
        const fingers = await told(small);
        const title = await small.evaluate(() => document.querySelector('nav button[aria-label="Help"]').title);
        return /One finger.*Two fingers.*Pinch/.test(fingers) && !/Wheel|Arrow|Shift/.test(fingers) && title === 'Help' ? '' : `the help of a phone says: ${fingers} (${title})`;
    } finally {
        await phone.close();
    }
}

// Opens a page of ours and looks at its first view: {decibels, floor}, after what every page has to be.
async function look(browser, name, db, url, pictures, also) {
    return browser.visit({ url, name, act: async (page, said) => {
        const camera = await page.evaluate(() => window.splatView.cameras()[0]);
        await page.setViewportSize({ width: camera.width, height: camera.height });
        await page.evaluate((shot) => { window.splatView.bare(); window.splatView.aim(shot); }, camera);
        const shoot = async (file) => { fs.writeFileSync(file, Buffer.from((await page.evaluate(() => window.splatView.settled())).split(',')[1], 'base64')); return file; };
        const first = await shoot(path.join(pictures, `${name} first.png`.replaceAll(' ', '-')));
        const result = { ours: await psnr(renderOf(db, camera), first) };
        await page.evaluate(() => window.splatView.bare(false));
        const told = await helpProblem(page);
        if (told) result.why = told;
        await page.focus('canvas');
        // As on a slow machine: the key is up again before the next picture.
        await page.evaluate(() => { const draw = window.requestAnimationFrame; window.requestAnimationFrame = (call) => setTimeout(() => { window.requestAnimationFrame = draw; draw(call); }, 400); });
        await page.keyboard.press('ArrowLeft', { delay: 100 });
        const moved = await shoot(path.join(pictures, `${name} moved.png`.replaceAll(' ', '-')));
        if (await psnr(first, moved) > 45) result.why = 'the picture stays when the camera moves';
        if (await page.evaluate(() => window.ran)) result.why = 'a name was run as script';
        const problem = await also?.(page, camera, shoot);
        if (problem) result.why = problem;
        if (said.length) result.why = `the console has: ${said[0]}`;
        return result;
    } });
}

// Comes nearer, step by step: parts are drawn that were not drawn before, and more rows.
async function walk(page, camera) {
    const { R, t } = camera, middle = await page.evaluate(() => window.splatView.centre());
    const depth = R[6] * middle[0] + R[7] * middle[1] + R[8] * middle[2] + t[2];
    let rows = 0, shown = [];
    for (const times of WALK) {
        await page.evaluate((shot) => window.splatView.aim(shot), { ...camera, t: [t[0], t[1], t[2] + (times - 1) * depth] });
        await page.evaluate(() => window.splatView.settled());
        const now = await page.evaluate(() => window.splatView.state()), keys = now.shown.map((part) => part.key);
        if (now.rows <= rows) return `at ${times} times the distance ${now.rows} rows are drawn, and farther away ${rows}`;
        if (keys.every((key) => shown.includes(key))) return `at ${times} times the distance nothing finer is drawn`;
        rows = now.rows;
        shown = keys;
    }
    return '';
}

// From farther back a mouse click on the second camera's frustum flies there.
async function click(page, camera) {
    const { t } = camera;
    await page.evaluate((shot) => { window.splatView.bare(); window.splatView.aim(shot); }, { ...camera, t: [t[0], t[1], 3 * t[2]] });
    await page.focus('canvas');
    await page.keyboard.press('f');
    const place = await page.evaluate(() => {
        const { view } = window.splatView, { R, t } = window.splatView.cameras()[1], at = (k) => -(R[k] * t[0] + R[3 + k] * t[1] + R[6 + k] * t[2]);
        const p = view.camera.position.clone().set(at(0), at(1), at(2)).project(view.camera);
        return { x: (p.x + 1) / 2 * view.width, y: (1 - p.y) / 2 * view.height };
    });
    await page.mouse.click(place.x + 2, place.y + 2);
    const flown = await page.waitForFunction(() => window.location.hash === `#camera=${window.splatView.cameras()[1].key}`, null, { timeout: 5000 }).catch(() => null);
    return flown ? '' : 'a click on a frustum does not fly there';
}

// kiln-serve on a free port; act gets the address.
async function served(db, act) {
    const server = spawn(path.join(process.env.KILN_BIN, 'kiln-serve'), [db], { stdio: ['ignore', 'pipe', 'ignore'] });
    try {
        let text = '';
        const address = await new Promise((done, failed) => {
            server.stdout.on('data', (part) => { text += part; const found = /http:\S+/.exec(text); if (found) done(found[0]); });
            server.on('exit', () => failed(new Error('kiln-serve has ended')));
            server.on('error', failed);
        });
        return await act(address);
    } finally {
        server.kill();
    }
}

// {verdict, name, ours, floor, why} for run.mjs.
export async function ourCase(browser, { name, scene, page }, folder, pictures) {
    if (page === 'cut') return { name, why: checkCut(), verdict: checkCut() ? 'FAIL' : 'ok' };
    const { floor, source } = scenes[scene], result = { name, floor };
    const skip = (why) => ({ ...result, verdict: 'skip', why });
    if (source && !(shared && fs.existsSync(path.join(shared, source)))) return skip(`no reference data with ${source}`);
    if (page !== 'html' && !fs.existsSync(path.join(process.env.KILN_BIN, 'kiln-serve'))) return skip('kiln-serve is not built');
    try {
        const db = await bakeOnce(scene, path.join(folder, 'pages'));
        if (page === 'html') {
            const file = path.join(path.dirname(db), 'scene.html');
            await kiln('export', db, '-o', file);
            Object.assign(result, await look(browser, name, db, pathToFileURL(file).href, pictures));
        } else {
            const also = page === 'levels' ? walk : scene === 'knot' ? click : null;
            if (page === 'levels') await kiln('lod', db);
            Object.assign(result, await served(db, (url) => look(browser, name, db, url, pictures, also)));
        }
        return { ...result, verdict: result.why || result.ours < floor ? 'FAIL' : 'ok', why: result.why ?? (result.ours < floor ? 'is not like the picture of kiln-render' : '') };
    } catch (e) {
        return { ...result, verdict: 'FAIL', why: e.message };
    }
}
