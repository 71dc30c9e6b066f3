// One Chromium without a GPU that opens a page for each file. Only the loopback server below is reachable from its pages.
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const pages = path.join(path.dirname(fileURLToPath(import.meta.url)), 'pages');
const types = { '.html': 'text/html', '.js': 'text/javascript', '.mjs': 'text/javascript', '.css': 'text/css', '.json': 'application/json', '.wasm': 'application/wasm' };
const imports = {
    spark: { three: 'three/build/three.module.js', 'three/addons/': 'three/examples/jsm/', fflate: 'fflate/esm/browser.js', '@sparkjsdev/spark': '@sparkjsdev/spark/dist/spark.module.js' },
    gaussiansplats3d: { three: 'three/build/three.module.js', '@mkkellogg/gaussian-splats-3d': '@mkkellogg/gaussian-splats-3d/build/gaussian-splats-3d.module.js' },
    babylon: { fflate: 'fflate/esm/browser.js' },
    three: { three: 'three/build/three.webgpu.js', 'three/webgpu': 'three/build/three.webgpu.js', 'three/tsl': 'three/build/three.tsl.js', 'three/addons/': 'three/examples/jsm/' },
    playcanvas: { playcanvas: 'playcanvas/build/playcanvas.mjs' },
};
const scripts = {
    babylon: ['babylonjs/babylon.js', 'babylonjs-loaders/babylonjs.loaders.js'],
    cesium: ['cesium/Build/Cesium/Cesium.js'],
};

const html = (viewer) => `<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,"><title>${viewer}</title>
<style>html, body { margin: 0; height: 100%; overflow: hidden } canvas { display: block }</style>
${viewer === 'supersplat' ? '<link rel="stylesheet" href="/npm/@playcanvas/supersplat-viewer/public/index.css">' : ''}
<script>window.CESIUM_BASE_URL = '/npm/cesium/Build/Cesium/'</script>
${(scripts[viewer] ?? []).map((s) => `<script src="/npm/${s}"></script>`).join('\n')}
<script type="importmap">${JSON.stringify({ imports: Object.fromEntries(Object.entries(imports[viewer] ?? {}).map(([k, v]) => [k, `/npm/${v}`])) })}</script>
<canvas id="canvas"></canvas>
<script type="module" src="/pages/page.js"></script>`;

// Serves /open/VIEWER, /pages/, /npm/ (the packages) and /data/ (the folder that serve.data names at the time), with byte ranges.
function serve(modules) {
    const roots = { pages, npm: modules, data: null };
    const server = http.createServer((request, response) => {
        const [, root, ...rest] = decodeURIComponent(new URL(request.url, 'http://localhost').pathname).split('/');
        const head = { 'Cache-Control': 'no-store', 'Cross-Origin-Opener-Policy': 'same-origin', 'Cross-Origin-Embedder-Policy': 'require-corp' };
        if (root === 'open') return response.writeHead(200, { ...head, 'Content-Type': 'text/html' }).end(html(rest[0]));
        const file = roots[root] && path.join(roots[root], ...rest);
        if (!file?.startsWith(roots[root] + path.sep) || !fs.statSync(file, { throwIfNoEntry: false })?.isFile()) return response.writeHead(404, head).end();
        const { size } = fs.statSync(file), range = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? '');
        const start = range ? Number(range[1]) : 0, end = range?.[2] ? Math.min(Number(range[2]), size - 1) : size - 1;
        if (size && start > end) return response.writeHead(416, head).end();
        Object.assign(head, { 'Content-Type': types[path.extname(file)] ?? 'application/octet-stream', 'Content-Length': end - start + 1, 'Accept-Ranges': 'bytes' });
        if (range) head['Content-Range'] = `bytes ${start}-${end}/${size}`;
        response.writeHead(range ? 206 : 200, head);
        return request.method === 'HEAD' || !size ? response.end() : fs.createReadStream(file, { start, end }).pipe(response);
    });
    return new Promise((done) => server.listen(0, '127.0.0.1', () => done({ server, roots, base: `http://127.0.0.1:${server.address().port}` })));
}

// modules: the node_modules folder. Ends with close().
export async function startBrowser({ chromium, modules, program, profile }) {
    const { server, roots, base } = await serve(modules);
    const context = await chromium.launchPersistentContext(profile, {
        executablePath: program, headless: true, deviceScaleFactor: 1, timeout: 120000,
        args: ['--no-sandbox', '--use-gl=angle', '--use-angle=swiftshader', '--enable-unsafe-swiftshader', '--ignore-gpu-blocklist', '--disable-dev-shm-usage', '--no-first-run',
            '--disable-background-networking', '--disable-component-update', '--disable-sync', '--force-color-profile=srgb', '--hide-scrollbars'],
    });
    let allowed = null; // of our own pages: the file, or the server's address
    const asked = [];
    await context.route('**/*', (route) => {
        const url = route.request().url(), isOwn = /^(blob|data):/.test(url) || url.startsWith(`${base}/`) || (allowed && url.startsWith(allowed));
        if (!isOwn) asked.push(url);
        return isOwn ? route.continue() : route.abort();
    });
    return {
        // {viewer, file, format, width, height, background, frame, cameras} -> {pictures: [{png (a Buffer), covered}], count, seconds, requests:
        // [of the first camera, of the second, ...]}. Throws what the page said.
        async take({ file, seconds = 300 * Number(process.env.KILN_SLOW || 1), ...job }) {
            const started = Date.now(), said = [], page = await context.newPage();
            const requests = [[]]; // by camera: what was asked for below the file's folder
            roots.data = path.dirname(file);
            page.on('request', (r) => {
                const asked = new URL(r.url()).pathname, range = r.headers().range;
                if (asked.startsWith('/view/') && asked !== '/view/0') requests.push([]);
                else if (asked.startsWith('/data/')) requests.at(-1).push(decodeURIComponent(asked.slice(6)) + (range ? ` ${range}` : ''));
            });
            page.on('console', (m) => { if (m.type() === 'error') said.push(m.text()); });
            page.on('pageerror', (e) => said.push(String(e)));
            const crashed = new Promise((done, failed) => page.on('crash', () => failed(new Error('the page crashed'))));
            const late = new Promise((done, failed) => setTimeout(() => failed(new Error(`not ready after ${seconds} s`)), seconds * 1000).unref());
            try {
                await page.setViewportSize({ width: job.width, height: job.height });
                await page.addInitScript((given) => { window.job = given; }, { ...job, name: path.basename(file), url: `${base}/data/${encodeURIComponent(path.basename(file))}` });
                await page.goto(`${base}/open/${job.viewer}`, { timeout: 0 });
                // A rejection that no code of a viewer waits for ends in pageerror; what open() throws ends here.
                const taken = page.waitForFunction(() => window.take, null, { timeout: 0 }).then(() => page.evaluate(() => window.take()));
                const { pictures, count } = await Promise.race([taken, crashed, late]);
                return { pictures: pictures.map((p) => ({ ...p, png: Buffer.from(p.png, 'base64') })), count, requests, seconds: (Date.now() - started) / 1000 };
            } catch (e) {
                const first = String(e.message ?? e).split('\n')[0].replace(/^page\.evaluate: /, '');
                throw new Error([first, ...said].join('; ').slice(0, 400));
            } finally {
                await page.close().catch(() => {});
            }
        },
        // Opens a page of ours that says window.splatView, from a file or a server, and lets act(page, said) look at it; said: what the page has
        // complained of. Gives what act gives. Throws if anything outside was asked for.
        async visit({ url, act, seconds = 120 * Number(process.env.KILN_SLOW || 1) }) {
            const said = [], page = await context.newPage();
            allowed = url;
            asked.length = 0;
            page.on('console', (m) => { if (m.type() === 'error' || m.type() === 'warning') said.push(m.text()); });
            page.on('pageerror', (e) => said.push(String(e)));
            const late = new Promise((done, failed) => setTimeout(() => failed(new Error(`not ready after ${seconds} s${said.length ? `; ${said[0]}` : ''}`)), seconds * 1000).unref());
            const visited = async () => {
                await page.goto(url, { timeout: 0 });
                await page.waitForFunction(() => window.splatView?.cameras()?.length, null, { timeout: 0 });
                const result = await act(page, said);
                if (asked.length) throw new Error(`asks for ${asked[0]}`);
                return result;
            };
            try {
                return await Promise.race([visited(), late]);
            } finally {
                allowed = null;
                await page.close().catch(() => {});
            }
        },
        async close() {
            await context.close().catch(() => {});
            server.close();
            server.closeAllConnections?.();
        },
    };
}
