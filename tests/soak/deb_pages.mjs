// deb_pages.mjs MODULES FOLDER PICTURE URL... -- opens pages with our viewer in headless Chromium, from their first camera, and compares
// what they draw with PICTURE, that camera as kiln-render draws it. The pictures stay in FOLDER as page-0.png and so on.
// A picture that is black, upside down or mirrored is far below the floor.
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { psnr } from '../viewers/inputs.mjs';

const FLOOR = 25; // dB; the page draws by another profile than kiln-render
const [modules, folder, picture, ...urls] = process.argv.slice(2);
const { chromium } = createRequire(path.join(path.resolve(modules), 'x'))('playwright-core');
const browser = await chromium.launch({
    executablePath: process.env.KILN_CHROMIUM || '/usr/bin/chromium',
    args: ['--no-sandbox', '--use-gl=angle', '--use-angle=swiftshader', '--enable-unsafe-swiftshader', '--ignore-gpu-blocklist', '--disable-dev-shm-usage'],
    timeout: 0,
});
let worst = Infinity;
for (const [i, url] of urls.entries()) {
    const page = await browser.newPage();
    page.setDefaultTimeout(0);
    await page.goto(url, { timeout: 0 });
    await page.waitForFunction(() => window.splatView?.cameras()?.length, null, { timeout: 0 });
    const camera = await page.evaluate(() => window.splatView.cameras()[0]);
    await page.setViewportSize({ width: camera.width, height: camera.height });
    await page.evaluate((shot) => { window.splatView.bare(); window.splatView.aim(shot); }, camera);
    const file = path.join(folder, `page-${i}.png`);
    fs.writeFileSync(file, Buffer.from((await page.evaluate(() => window.splatView.settled())).split(',')[1], 'base64'));
    const decibels = await psnr(picture, file);
    console.log(`${url}: ${decibels.toFixed(1)} dB`);
    worst = Math.min(worst, decibels);
    await page.close();
}
await browser.close();
if (!(worst >= FLOOR)) {
    console.error(`a page is below ${FLOOR} dB`);
    process.exit(1);
}
