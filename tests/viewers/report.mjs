// The page of kiln-report in Chromium: opened from disk at desktop and phone width, light and dark, by keyboard, and by axe-core. What
// is asked of every page: nothing is loaded but the file, the console is empty, nothing is wider than the window, no text lies on
// another, Tab reaches every control in the order of the page and shows where it is, sliders and buttons work by keyboard, and axe-core
// finds no serious violation. Pictures of each stay in pictures/ to be looked at.
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { execFileSync } from 'node:child_process';
import { kiln } from './inputs.mjs';

const shared = process.env.KILN_SHARED;
const MARKUP = `</script></style>--><img src=x onerror="window.ran=1"><script>window.ran=1</script>'><svg onload=window.ran=1>`;

async function bake(source, folder, { faults = {}, options = {} } = {}) {
    const db = path.join(folder, 'manifest.db');
    for (const stage of ['import', 'knn', 'prune', 'chunk', 'tiles', 'render']) {
        const env = { ...process.env, ...(faults[stage] && { KILN_FAULT: faults[stage] }) };
        const args = stage === 'import' ? [source, db] : [db];
        try {
            execFileSync(path.join(process.env.KILN_BIN, `kiln-${stage}`), ['--quiet', ...args, ...(options[stage] ?? [])], { env, stdio: 'pipe' });
        } catch (e) {
            if (!(faults[stage] && e.status === 7)) throw new Error(`kiln-${stage}: ${e.stderr}`);
        }
    }
    return db;
}

async function demo(folder, cameras, size, options) {
    await kiln('generate', 'demo', path.join(folder, 'scene'), '--gaussians', '6000', '--cameras', cameras, '--size', size);
    return bake(path.join(folder, 'scene'), folder, options);
}

// A stranger's manifest: every text is markup, and photos lead to a file of this machine and to a pipe that never answers.
function makeHostile(db) {
    const pipe = path.join(path.dirname(db), 'pipe.png');
    execFileSync('mkfifo', [pipe]);
    execFileSync('python3', ['-c', `
import json, sqlite3, sys
db, evil, pipe = sqlite3.connect(sys.argv[1]), sys.argv[2], sys.argv[3]
db.execute("UPDATE scene SET name = ?, up_axis = ?, unit = ?", ("scene" + evil, evil[:40], evil[-20:]))
for i, p, c in db.execute("SELECT id, parameters, counters FROM run").fetchall():
    p, c = json.loads(p), json.loads(c)
    p["key" + evil] = "value" + evil
    c["host"], c["device"] = "host" + evil, "device" + evil
    c["dropped"] = {"reason" + evil: 3}
    for l in c.get("lists", []):
        l["what"] = evil
    db.execute("UPDATE run SET parameters = ?, counters = ?, device = ?, program = ? WHERE id = ?", (json.dumps(p), json.dumps(c), "device" + evil, evil, i))
db.execute("INSERT INTO quarantine VALUES (randomblob(16), 'tiles', ?, 3, ?, ?, 1795470251865196815)", ("unit" + evil, "gpu" + evil, "reason" + evil))
photos = [p for p, in db.execute("SELECT path FROM photo ORDER BY camera")]
for old, new in zip(photos, ("/etc/passwd", pipe)):
    db.execute("UPDATE photo SET path = ? WHERE path = ?", (new, old))
    db.execute("UPDATE source_file SET path = ? WHERE path = ?", (new, old))
db.commit()
`, db, MARKUP, pipe]);
    return db;
}

// Each makes a manifest in a folder, and says what the page must show. null: the reference data are not here.
const pages = {
    chair: { make: (folder) => shared && bake(path.join(shared, 'scenes/chair'), folder, { options: { render: ['--background', 'white'] } }), shows: ['Pruning', 'Cameras', 'Chunks'] },
    colmap: { make: (folder) => shared && bake(path.join(shared, 'scenes/colmap_sculpture'), folder), shows: ['Import', 'Cameras'] },
    many: { make: (folder) => demo(folder, 400, '160x100'), shows: ['24 of 400 cameras'] },
    quarantined: { make: (folder) => demo(folder, 6, '320x200', { faults: { render: 'unit=*view_02*:abort' } }), shows: ['1 unit is quarantined'] },
    levels: {
        async make(folder) {
            const db = await demo(folder, 6, '640x400', { options: { chunk: ['--max', '1024'] } });
            await kiln('lod', db);
            return db;
        },
        shows: ['Level 1', 'of 255'],
    },
    against: {
        make: (folder) => demo(folder, 6, '320x200', { options: { prune: ['--min-opacity', '0.9'] } }),
        against: (folder) => demo(folder, 6, '320x200'),
        shows: ['kiln-prune --min-opacity', 'Pictures that changed most'],
    },
    hostile: { make: async (folder) => makeHostile(await demo(folder, 4, '160x100')), shows: [`scene${MARKUP}`, `reason${MARKUP}`, `host${MARKUP}`] },
};

export const reportCases = Object.keys(pages).map((name) => `report ${name}`);

/* ---- in the page ---- */
// Texts that lie on each other: boxes of text nodes that are seen and not within a picture's frame.
function overlaps() {
    const boxes = [], range = document.createRange();
    const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let n = walk.nextNode(); n; n = walk.nextNode()) {
        const parent = n.parentElement;
        if (!n.data.trim() || parent.closest('script, style, .stage, title, nav') || !parent.checkVisibility({ visibilityProperty: true })) continue;
        range.selectNodeContents(n);
        const clip = parent.closest('.scroll, .names span')?.getBoundingClientRect();
        for (const r of range.getClientRects()) {
            if (clip && (r.left >= clip.right || r.right <= clip.left)) continue;
            boxes.push({ left: r.left, right: clip ? Math.min(r.right, clip.right) : r.right, top: r.top, bottom: r.bottom, text: n.data.trim().slice(0, 30) });
        }
    }
    boxes.sort((a, b) => a.top - b.top);
    for (let i = 0; i < boxes.length; i++) {
        for (let k = i + 1; k < boxes.length && boxes[k].top < boxes[i].bottom - 3; k++) {
            const [a, b] = [boxes[i], boxes[k]];
            if (Math.min(a.right, b.right) - Math.max(a.left, b.left) > 2 && Math.min(a.bottom, b.bottom) - b.top > 3) return `'${a.text}' lies on '${b.text}'`;
        }
    }
    return null;
}

// What Tab should reach, in the order of the page; of radio buttons the one that is chosen.
function tabbable() {
    const all = [...document.querySelectorAll('a[href], summary, input, [tabindex="0"]')];
    return all.filter((e) => e.checkVisibility({ visibilityProperty: true }) && (e.type !== 'radio' || e.checked)).map((e, i) => { e.dataset.order = i; return i; }).length;
}

// Where the keyboard is, and whether that can be seen: an outline of it, of its label, or of the frame around it.
function focused() {
    const e = document.activeElement;
    if (!e || e === document.body) return null;
    const outlined = [e, e.nextElementSibling, e.parentElement].some((x) => x && getComputedStyle(x).outlineStyle !== 'none' && parseFloat(getComputedStyle(x).outlineWidth) > 0);
    return { order: Number(e.dataset.order), outlined, what: `${e.tagName} ${e.className} ${e.getAttribute('aria-label') ?? e.textContent.slice(0, 30)}` };
}

/* ---- checks ---- */
async function tabThrough(page) {
    const n = await page.evaluate(tabbable);
    for (let i = 0; i < n; i++) {
        await page.keyboard.press('Tab');
        const at = await page.evaluate(focused);
        if (at?.order !== i) return `Tab ${i + 1} of ${n} is at ${at ? `${at.what} (${at.order})` : 'nothing'}`;
        if (!at.outlined) return `nothing shows that the keyboard is at ${at.what}`;
    }
    return null;
}

async function useByKeyboard(page) {
    const slider = page.locator('.slider').first();
    if (await slider.count() === 0) return null;
    const card = page.locator('article:has(.slider)').first();
    await card.locator('input.compare').focus();
    await page.keyboard.press('Space'); // pictures are beside each other at first
    await slider.focus();
    const place = () => slider.evaluate((e) => e.parentElement.style.getPropertyValue('--at'));
    const before = await place();
    for (let i = 0; i < 5; i++) await page.keyboard.press('ArrowRight');
    if (await place() === before) return 'the slider does not move by keyboard';
    await card.locator('input.compare').focus();
    await page.keyboard.press('ArrowLeft'); // from the first around to the last
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('ArrowRight');
    return await card.locator('img.left').evaluate((e) => getComputedStyle(e).visibility === 'visible' && getComputedStyle(e).clipPath === 'none') ? null : 'buttons do not choose a picture by keyboard';
}

async function axeProblem(page, source) {
    await page.evaluate(source);
    const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ['violations'] }));
    const bad = violations.filter((v) => ['serious', 'critical'].includes(v.impact));
    return bad.length ? `axe-core: ${bad.map((v) => `${v.id} (${v.nodes.length}: ${v.nodes[0].html.slice(0, 120)})`).join('; ')}` : null;
}

async function look(browser, file, shot, { width, colorScheme, shows, axe, keyboard }) {
    const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme, deviceScaleFactor: 1 });
    const page = await context.newPage(), said = [], asked = [];
    page.on('console', (m) => said.push(m.text()));
    page.on('pageerror', (e) => said.push(String(e)));
    page.on('dialog', (d) => { said.push(`dialog: ${d.message()}`); d.dismiss(); });
    page.on('request', (r) => asked.push(r.url()));
    try {
        await page.goto(pathToFileURL(file).href);
        const opened = await page.evaluate(() => performance.getEntriesByType('navigation')[0].loadEventEnd);
        const others = asked.filter((url) => !url.startsWith('data:')).slice(1);
        if (others.length) return { problem: `asks for ${others[0].slice(0, 80)}` };
        await page.evaluate(() => Promise.all([...document.images].map((image) => image.decode())));
        await page.screenshot({ path: shot, fullPage: true });
        const text = await page.evaluate(() => document.body.textContent);
        const missing = shows.find((word) => !text.includes(word));
        if (missing) return { problem: `lacks '${missing}'` };
        if (await page.evaluate(() => window.ran)) return { problem: 'a script of the manifest ran' };
        const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
        if (wide > 0) return { problem: `is ${wide} pixels wider than the window` };
        const problem = (await page.evaluate(overlaps)) ?? (await axeProblem(page, axe)) ?? (keyboard ? (await tabThrough(page)) ?? (await useByKeyboard(page)) : null);
        return { problem: problem ?? (said.length ? `the console says: ${said[0].slice(0, 120)}` : null), opened };
    } finally {
        await context.close();
    }
}

// One page in all forms, and printed: {verdict, name, why} for run.mjs.
export async function reportCase(name, folder, pictures, modules) {
    const what = pages[name.split(' ')[1]], place = path.join(folder, name.replaceAll(' ', '-'));
    fs.rmSync(place, { recursive: true, force: true });
    fs.mkdirSync(path.join(place, 'other'), { recursive: true });
    const db = await what.make(place);
    if (!db) return { verdict: 'skip', name, why: 'no reference data' };
    const file = path.join(place, 'report.html'), { chromium } = createRequire(path.join(modules, 'x'))('playwright-core');
    await kiln('report', db, '-o', file, ...(what.against ? ['--against', await what.against(path.join(place, 'other'))] : []));
    const bytes = fs.statSync(file).size, axe = fs.readFileSync(path.join(modules, 'axe-core/axe.min.js'), 'utf8');
    if (bytes > 15e6) return { verdict: 'FAIL', name, why: `${bytes} bytes are more than 15 MB` };
    const browser = await chromium.launch({ executablePath: process.env.KILN_CHROMIUM, args: ['--no-sandbox', '--disable-gpu'] });
    let slowest = 0;
    try {
        for (const [width, form] of [[1280, 'desktop'], [390, 'phone']]) {
            for (const colorScheme of ['light', 'dark']) {
                const shot = path.join(pictures, `${name} ${form} ${colorScheme}.png`.replaceAll(' ', '-'));
                const { problem, opened } = await look(browser, file, shot, { width, colorScheme, shows: what.shows, axe, keyboard: colorScheme === 'light' });
                if (problem) return { verdict: 'FAIL', name, why: `${form}, ${colorScheme}: ${problem}` };
                slowest = Math.max(slowest, opened);
            }
        }
        const page = await browser.newPage();
        await page.goto(pathToFileURL(file).href);
        await page.pdf({ path: path.join(pictures, `${name}.pdf`.replaceAll(' ', '-')), format: 'A4' });
    } finally {
        await browser.close();
    }
    return { verdict: 'ok', name, why: `${(bytes / 1e6).toFixed(1)} MB, opened in ${(slowest / 1000).toFixed(2)} s` };
}
