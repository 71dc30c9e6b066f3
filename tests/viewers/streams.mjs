// Formats that stream: a viewer opens the file far away and comes nearer; what it asks for is written down, and its pictures far and near are
// compared with kiln-render's of the whole scene, beside those of splat-transform's lod-meta.json of the same scene and the same counts, and
// beside its own pictures of all Gaussians at once: what those lack is the viewer's, not the levels'.
import fs from 'node:fs';
import path from 'node:path';
import { formats, identity, streams } from './cases.mjs';
import { hasSplatTransform, kiln, psnr, splatTransform, writeOurs as writeWhole } from './inputs.mjs';

// The camera at `times` the distance from the world's origin, about which the scenes lie.
const away = (camera, times) => ({ ...camera, t: camera.t.map((v) => v * times) });

// Pictures of the whole scene from all distances: a function of the step and the kind of antialiasing.
async function rendered(scene, baked, camera, place) {
    const list = path.join(place, 'walk.json');
    fs.writeFileSync(list, JSON.stringify(streams.walk.map((times) => ({ name: `at-${times}`, width: scene.width, height: scene.height, ...away(camera, times) }))));
    for (const antialiased of ['on', 'off'])
        await kiln('render', baked.db, '--cameras', list, '--profile', 'gsplat-1.6', '--antialiased', antialiased, '--background', 'white', '-o', path.join(place, `walk-${antialiased}/`));
    return (times, antialiased) => path.join(place, `walk-${antialiased}`, `at-${times}.png`);
}

// In chunks so small that a viewer can choose.
async function writeOurs(name, baked, folder) {
    const file = path.join(folder, 'ours', formats[name].file), db = path.join(folder, 'streams.db');
    if (fs.existsSync(file)) return file;
    fs.mkdirSync(path.dirname(path.dirname(file)), { recursive: true });
    if (!fs.existsSync(db)) {
        fs.copyFileSync(baked.db, db);
        await kiln('chunk', db, '--max', String(streams.chunk));
        await kiln('lod', db);
    }
    await kiln('export', db, '--format', name, '-o', path.extname(formats[name].file) === '.json' ? path.dirname(file) : file);
    return file;
}

// Half of the rows: the most that a viewer with a budget draws.
const half = (baked) => Math.round(Number(/^element vertex (\d+)$/m.exec(fs.readFileSync(baked.ply).toString('latin1', 0, 4096))[1]) / 2);

// Their levels have the counts of ours: each is the whole, thinned out.
async function writeTheirs(name, baked, folder, modules) {
    const file = path.join(folder, 'theirs', 'lod', 'lod-meta.json'), meta = path.join(folder, 'ours', formats.lod.file);
    if (!['lod'].includes(name) || !hasSplatTransform(modules) || !fs.existsSync(meta)) return null;
    if (fs.existsSync(file)) return file;
    fs.mkdirSync(path.dirname(file), { recursive: true });
    const { counts } = JSON.parse(fs.readFileSync(meta, 'utf8')), parts = [];
    for (const [level, count] of counts.entries()) {
        const part = level ? path.join(folder, 'theirs', `level${level}.ply`) : baked.ply;
        if (level && !fs.existsSync(part)) await splatTransform(modules, '-g', 'cpu', baked.ply, '--decimate', String(count), part);
        parts.push(part, '-l', String(level));
    }
    await splatTransform(modules, '-g', 'cpu', '--lod-chunk-count', '2', '--lod-chunk-extent', '1', '--lod-chunk-min', '1', ...parts, file);
    return file;
}

// dB of the viewer's pictures of every Gaussian at these steps: of our PLY, or where it reads none, of the tile that has them all.
async function ofAll(browser, scene, baked, { name, antialiased, noPly }, steps, camera, picture, shotOf) {
    const format = noPly ? 'tile' : 'ply', file = noPly ? await writeWhole(format, baked, path.dirname(baked.ply)) : baked.ply;
    const { page, frame } = noPly ? formats[format] : { page: 'ply', frame: identity };
    const taken = await browser.take({ viewer: name, file, format: page, frame, cameras: steps.map((times) => away(camera, times)),
        width: scene.width, height: scene.height, background: [255, 255, 255] });
    const decibels = [];
    for (const [i, times] of steps.entries()) {
        fs.writeFileSync(shotOf('all', times), taken.pictures[i].png);
        decibels.push(await psnr(picture(times, antialiased), shotOf('all', times)));
    }
    return decibels;
}

// Returns results as run.mjs prints them, and prints the requests.
export async function streamCase(browser, sceneName, scene, baked, viewer, { antialiased, noPly }, format, pictures, modules) {
    const name = `${sceneName} ${viewer} ${format} streams`, place = path.dirname(baked.ply), { level, floor = {} } = formats[format], decibels = {};
    const camera = scene.cameras[Object.keys(scene.cameras)[0]], picture = await rendered(scene, baked, camera, place);
    const shotOf = (whose, times) => path.join(pictures, `${name} ${whose} ${times}.png`.replaceAll(' ', '-'));
    let seen, why = '';
    for (const [whose, write] of [['ours', writeOurs], ['theirs', writeTheirs]]) {
        try {
            const file = await write(format, baked, place, modules);
            if (!file) continue;
            const frame = whose === 'ours' ? formats[format].frame : identity;
            const taken = await browser.take({ viewer, file, format: formats[format].page, frame, cameras: streams.walk.map((times) => away(camera, times)),
                width: scene.width, height: scene.height, background: [255, 255, 255], budget: half(baked) });
            decibels[whose] = [];
            for (const [i, times] of streams.walk.entries()) {
                fs.writeFileSync(shotOf(whose, times), taken.pictures[i].png);
                decibels[whose].push(await psnr(picture(times, antialiased), shotOf(whose, times)));
            }
            if (whose === 'ours') seen = taken.requests;
        } catch (e) {
            if (whose === 'ours') return [{ verdict: 'FAIL', name, why: e.message }];
            why = `theirs: ${e.message}`;
        }
    }
    const far = 0, near = streams.walk.length - 1;
    const all = await ofAll(browser, scene, baked, { name: viewer, antialiased, noPly }, [streams.walk[far], streams.walk[near]], camera, picture, shotOf)
        .catch((e) => { why ||= `all at once: ${e.message}`; });
    // What was new at each distance.
    const asked = new Set(), steps = seen.map((list) => list.filter((r) => !asked.has(r) && asked.add(r)));
    for (const [i, times] of streams.walk.entries()) console.log(`       ${name} at ${times}x: ${steps[i].length ? steps[i].join(', ') : 'nothing new'}`.slice(0, 400));
    const levels = new Set([...asked].map(level).filter((l) => l !== undefined));
    return [['far', far], ['near', near]].map(([where, i], end) => {
        const least = floor[`${sceneName} ${viewer} ${where}`];
        const problem = decibels.ours[i] < least ? 'looks worse than it may' : levels.size < 3 && `${levels.size} levels were loaded, not 3`;
        return { verdict: problem ? 'FAIL' : 'ok', name: `${name} ${where}`, ours: decibels.ours[i], theirs: decibels.theirs?.[i], floor: least,
            why: problem || why || `levels ${[...levels].sort().join(' ')}; all at once ${all[end].toFixed(2)}` };
    });
}
