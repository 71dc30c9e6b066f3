// draw.mjs MODULES DEMO KILN FOLDER [NAME...] -- draws the pictures of README and docs/ into FOLDER: the first picture of the demo's bake
// in DEMO/bake, its report, its viewer as kiln-serve shows it, and what pruning leaves of it. `make pictures` runs it. MODULES is a
// node_modules with playwright-core, KILN the program, NAME one of the files, for that alone.
import { execFileSync, spawn } from 'node:child_process';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

const [modules, demo, kiln, folder] = process.argv.slice(2, 6).map((p) => path.resolve(p)), names = process.argv.slice(6);
const wanted = (name) => !names.length || names.includes(name);
const { chromium } = createRequire(path.join(modules, 'x'))('playwright-core');
const bake = path.join(demo, 'bake');
const browser = await chromium.launch({
    executablePath: process.env.KILN_CHROMIUM || '/usr/bin/chromium',
    args: ['--no-sandbox', '--use-angle=swiftshader', '--enable-unsafe-swiftshader', '--ignore-gpu-blocklist', '--hide-scrollbars'],
});

// A page of 960 x 600, as a JPEG of 640 x 400, or of another height; ready(page) waits until it is to be drawn.
async function draw(name, url, ready, height = 600) {
    if (!wanted(name)) return;
    const page = await browser.newPage({ viewport: { width: 960, height }, deviceScaleFactor: 2 / 3 });
    await page.goto(url, { timeout: 0 });
    await ready(page);
    await page.screenshot({ path: path.join(folder, name), type: 'jpeg', quality: 80, timeout: 0 });
    await page.close();
}

// A part of the demo's first view, of all Gaussians, and of the half and the quarter that matter most to its cameras.
async function drawPruned() {
    const scratch = fs.mkdtempSync(path.join(os.tmpdir(), 'kiln-pictures-'));
    const parts = [];
    for (const [name, words, ...rules] of [
        ['all', '120,000 Gaussians'], ['half', '--keep 50%', '--keep', '50%'], ['quarter', '--keep 25%', '--keep', '25%'],
    ]) {
        const db = path.join(scratch, `${name}.db`), png = path.join(scratch, `${name}.png`);
        fs.copyFileSync(path.join(bake, 'manifest.db'), db);
        execFileSync(kiln, ['prune', db, ...rules, '--quiet']);
        execFileSync(kiln, ['chunk', db, '--quiet']);
        execFileSync(kiln, ['render', db, '--camera', 'view_00', '-o', png, '--quiet']);
        parts.push(`<figure><img src="${pathToFileURL(png).href}"><figcaption>${words}</figcaption></figure>`);
    }
    const style = 'body { margin: 0; display: flex; gap: 6px; background: white } figure { margin: 0; flex: 1; font: 22px sans-serif; text-align: center }' +
        'img { width: 100%; height: 340px; object-fit: cover; display: block }';
    fs.writeFileSync(path.join(scratch, 'page.html'), `<!doctype html><style>${style}</style>${parts.join('')}`);
    await draw('prune.jpg', pathToFileURL(path.join(scratch, 'page.html')).href, (page) =>
        page.evaluate(() => Promise.all([...document.images].map((i) => i.decode()))), 380);
    fs.rmSync(scratch, { recursive: true });
}

if (wanted('prune.jpg')) await drawPruned();
const picture = pathToFileURL(path.join(bake, 'renders/view_00.png')).href;
await draw('demo.jpg', picture, (page) => page.evaluate(() => { document.images[0].style = 'position: fixed; inset: 0; width: 100%; height: 100%'; }));
await draw('report.jpg', pathToFileURL(path.join(bake, 'report.html')).href, (page) =>
    page.evaluate(() => {
        document.images[0].scrollIntoView({ behavior: 'instant', block: 'end' });
        return Promise.all([...document.images].map((i) => i.decode().catch(() => null)));
    }));

if (wanted('viewer.jpg')) {
    const server = spawn(kiln, ['serve', path.join(bake, 'manifest.db')], { stdio: ['ignore', 'pipe', 'ignore'] });
    const address = await new Promise((done) => server.stdout.once('data', (text) => done(String(text).trim())));
    await draw('viewer.jpg', address, async (page) => {
        await page.waitForFunction(() => window.splatView?.cameras()?.length, null, { timeout: 0 });
        await page.evaluate(() => window.splatView.settled());
    });
    server.kill();
}
await browser.close();
