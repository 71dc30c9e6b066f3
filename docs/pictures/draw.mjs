// draw.mjs MODULES DEMO KILN FOLDER -- draws README's pictures into FOLDER: the first picture of the demo's bake in DEMO/bake, its report,
// and its viewer as kiln-serve shows it. `make pictures` runs it. MODULES is a node_modules with playwright-core, KILN the program.
import { spawn } from 'node:child_process';
import { createRequire } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

const [modules, demo, kiln, folder] = process.argv.slice(2).map((p) => path.resolve(p));
const { chromium } = createRequire(path.join(modules, 'x'))('playwright-core');
const bake = path.join(demo, 'bake');
const browser = await chromium.launch({
    executablePath: process.env.KILN_CHROMIUM || '/usr/bin/chromium',
    args: ['--no-sandbox', '--use-angle=swiftshader', '--enable-unsafe-swiftshader', '--ignore-gpu-blocklist', '--hide-scrollbars'],
});

// A page of 960 x 600, as a JPEG of 640 x 400; ready(page) waits until it is to be drawn.
async function draw(name, url, ready) {
    const page = await browser.newPage({ viewport: { width: 960, height: 600 }, deviceScaleFactor: 2 / 3 });
    await page.goto(url, { timeout: 0 });
    await ready(page);
    await page.screenshot({ path: path.join(folder, name), type: 'jpeg', quality: 80, timeout: 0 });
    await page.close();
}

const picture = pathToFileURL(path.join(bake, 'renders/view_00.png')).href;
await draw('demo.jpg', picture, (page) => page.evaluate(() => { document.images[0].style = 'position: fixed; inset: 0; width: 100%; height: 100%'; }));
await draw('report.jpg', pathToFileURL(path.join(bake, 'report.html')).href, (page) =>
    page.evaluate(() => {
        document.images[0].scrollIntoView({ behavior: 'instant', block: 'end' });
        return Promise.all([...document.images].map((i) => i.decode().catch(() => null)));
    }));

const server = spawn(kiln, ['serve', path.join(bake, 'manifest.db')], { stdio: ['ignore', 'pipe', 'ignore'] });
const address = await new Promise((done) => server.stdout.once('data', (text) => done(String(text).trim())));
await draw('viewer.jpg', address, async (page) => {
    await page.waitForFunction(() => window.splatView?.cameras()?.length, null, { timeout: 0 });
    await page.evaluate(() => window.splatView.settled());
});
server.kill();
await browser.close();
