#!/usr/bin/env node
// node run.mjs FOLDER [--quick|--slow] [WORD...] -- opens every format in every viewer that reads it, compares the pictures (cases.mjs), and has
// other programs read the files (readers.mjs). `run` beside this file calls it and says what a WORD is.
//   FOLDER   has node_modules; takes the scenes' files, pictures/ and results.json
//   --quick  only the cases that cases.mjs lists as quick
//   --slow   splat-transform's SOG as well, which takes it many minutes a scene
// A line a case: dB of our file, of splat-transform's where that writes the format, and the least that is asked for. Exit 1 when one failed.
import fs from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { startBrowser } from './browser.mjs';
import { formats, identity, quick, scenes, streams, viewers } from './cases.mjs';
import { bake, psnr, writeOurs, writeTheirs } from './inputs.mjs';
import { ourCase, ourCases } from './ours.mjs';
import { readCase, readerCases, readPly } from './readers.mjs';
import { reportCase, reportCases } from './report.mjs';
import { streamCase } from './streams.mjs';

const MARGIN = 0.3; // dB by which our file may look worse than splat-transform's, in the mean of a format's cameras
const WHITE = [255, 255, 255];
const isQuick = process.argv.includes('--quick'), isSlowToo = process.argv.includes('--slow');
const [folder, ...words] = process.argv.slice(2).filter((a) => !a.startsWith('--')).map((a, i) => (i ? a : path.resolve(a)));
const modules = path.join(folder, 'node_modules'), pictures = path.join(folder, 'pictures');
const isWanted = (name) => words.every((word) => name.includes(word)) && (!isQuick || quick.includes(name));
const results = [];

function say(result) {
    const { verdict, name, ours, theirs, floor, why = '' } = result;
    const number = (v) => (v === undefined ? '' : v === Infinity ? 'equal' : v.toFixed(2)).padStart(6);
    results.push(result);
    console.log(`${verdict.padEnd(4)} ${name.padEnd(48)} ${number(ours)} ${number(theirs)} ${number(floor)}  ${why}`.trimEnd());
}

// The least dB that is asked for: the most special name counts.
function floorOf(format, scene, viewer, view) {
    const { floor = {} } = formats[format];
    return [`${scene} ${viewer} ${view}`, `${scene} ${viewer}`, `${scene} ${view}`, scene].map((key) => floor[key]).find((v) => v !== undefined);
}

// Opens one file in one viewer: {shots: {view: {file, covered}}, count, seconds}.
async function take(browser, name, scene, viewer, views, file, page, frame) {
    const cameras = views.map((view) => scene.cameras[view]);
    const taken = await browser.take({ viewer, file, format: page, frame, cameras, width: scene.width, height: scene.height, background: WHITE });
    const shots = Object.fromEntries(views.map((view, i) => {
        const picture = path.join(pictures, `${name} ${view}.png`.replaceAll(' ', '-'));
        fs.writeFileSync(picture, taken.pictures[i].png);
        return [view, { file: picture, covered: taken.pictures[i].covered }];
    }));
    return { ...taken, shots };
}

// All cases of one viewer in one scene. views: {format: the cameras that are wanted}.
async function openAll(browser, sceneName, scene, baked, viewer, views) {
    const { antialiased, byChance = [], slack = 0, noPly } = viewers[viewer], place = path.dirname(baked.ply);
    const rendered = (view) => baked.picture(view, antialiased);
    const renderFloor = (view) => scene.render[`${viewer} ${view}`] ?? scene.render[viewer];
    const uncovered = (shot) => shot.covered < scene.covered && `covers ${shot.covered.toFixed(3)} of the picture, not ${scene.covered}`;
    const tell = (name, facts, problem, taken) => say({ name, ...facts, verdict: problem ? 'FAIL' : 'ok', why: problem || `${taken.count} Gaussians, ${taken.seconds.toFixed(0)} s` });
    let plain;
    if (!noPly) {
        try {
            plain = await take(browser, `${sceneName} ${viewer} ply ours`, scene, viewer, [...new Set(Object.values(views).flat())], baked.ply, 'ply', identity);
        } catch (e) {
            return say({ verdict: 'FAIL', name: `${sceneName} ${viewer} ply`, why: e.message });
        }
        for (const view of views.ply ?? []) {
            const shot = plain.shots[view], ours = await psnr(rendered(view), shot.file), floor = renderFloor(view);
            tell(`${sceneName} ${viewer} ply ${view}`, { ours, floor }, ours < floor ? 'is not like the picture of kiln-render' : uncovered(shot), plain);
        }
    }
    for (const [format, ofFormat] of Object.entries(views)) {
        if (format === 'ply') continue;
        const { page, frame, otherFrame } = formats[format], taken = {}, problems = {};
        for (const [whose, write, axes] of [['ours', writeOurs, frame], ['theirs', writeTheirs, otherFrame]]) {
            if (whose === 'theirs' && isQuick) continue;
            try {
                const file = await write(format, baked, place, modules, isSlowToo);
                if (file) taken[whose] = await take(browser, `${sceneName} ${viewer} ${format} ${whose}`, scene, viewer, ofFormat, file, page, axes);
            } catch (e) {
                problems[whose] = e;
            }
        }
        const decibels = {}; // whose: by view
        for (const [whose, { shots }] of Object.entries(taken)) {
            decibels[whose] = [];
            for (const view of ofFormat) decibels[whose].push(await psnr(noPly ? rendered(view) : plain.shots[view].file, shots[view].file));
        }
        // In the mean of the cameras: in one, the order of equal depths alone makes half a decibel.
        const mean = (values) => values.reduce((sum, v) => sum + v, 0) / values.length;
        const isWorse = !byChance.includes(format) && taken.ours && taken.theirs && mean(decibels.ours) < mean(decibels.theirs) - MARGIN;
        for (const [i, view] of ofFormat.entries()) {
            const name = `${sceneName} ${viewer} ${format} ${view}`, want = (plain ?? taken.theirs)?.count;
            const facts = { floor: noPly ? renderFloor(view) : floorOf(format, sceneName, viewer, view) };
            for (const [whose, values] of Object.entries(decibels)) facts[whose] = values[i];
            if (problems.theirs) facts.theirsProblem = problems.theirs.message;
            if (problems.ours) say({ name, ...facts, verdict: problems.ours.skip ? 'skip' : 'FAIL', why: problems.ours.message });
            else {
                const { count, shots } = taken.ours;
                tell(name, facts, (facts.ours < facts.floor && 'looks worse than it may') || (isWorse && "looks worse than splat-transform's file") ||
                    (Math.abs(count - want) > slack * want && `${count} Gaussians instead of ${want}`) || uncovered(shots[view]), taken.ours);
            }
        }
    }
}

async function main() {
    fs.mkdirSync(pictures, { recursive: true });
    for (const name of reportCases.filter(isWanted)) {
        say(await reportCase(name, folder, pictures, modules).catch((e) => ({ verdict: 'FAIL', name, why: e.message.split('\n')[0] })));
    }
    const profile = fs.mkdtempSync(path.join(os.tmpdir(), 'kiln-viewers-'));
    const { chromium } = createRequire(path.join(modules, 'x'))('playwright-core');
    const browser = await startBrowser({ chromium, modules, program: process.env.KILN_CHROMIUM, profile });
    try {
        for (const [sceneName, scene] of Object.entries(scenes)) {
            const wanted = {}; // viewer: {format: views}
            for (const [viewer, { reads, noPly }] of Object.entries(viewers)) {
                for (const format of scene.streamsOnly ? [] : noPly ? reads : ['ply', ...reads]) {
                    const views = Object.keys(scene.cameras).filter((view) => isWanted(`${sceneName} ${viewer} ${format} ${view}`));
                    if (views.length) (wanted[viewer] ??= {})[format] = views;
                }
            }
            const reading = (scene.streamsOnly ? [] : readerCases(sceneName)).filter(({ name }) => isWanted(name));
            const streaming = Object.entries(streams.viewers).flatMap(([viewer, of]) => of.map((format) => [viewer, format]))
                .filter(([viewer, format]) => formats[format].scene === sceneName && isWanted(`${sceneName} ${viewer} ${format} streams`));
            if (!Object.keys(wanted).length && !reading.length && !streaming.length) continue;
            const baked = await bake(scene, path.join(folder, sceneName));
            if (!baked) {
                say({ verdict: 'skip', name: sceneName, why: `no reference data with ${scene.ply}` });
                continue;
            }
            const place = path.dirname(baked.ply), plain = reading.length && readPly(baked.ply);
            for (const c of reading) say(await readCase(c, plain, (format) => writeOurs(format, baked, place), place, modules));
            for (const [viewer, views] of Object.entries(wanted)) await openAll(browser, sceneName, scene, baked, viewer, views);
            for (const [viewer, format] of streaming)
                for (const result of await streamCase(browser, sceneName, scene, baked, viewer, viewers[viewer], format, pictures, modules)) say(result);
        }
        for (const c of ourCases.filter(({ name }) => isWanted(name))) say(await ourCase(browser, c, folder, pictures));
    } finally {
        await browser.close();
        fs.rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
    }
}

console.log(`     ${'scene viewer format camera'.padEnd(48)} ${'ours'.padStart(6)} ${'theirs'.padStart(6)} ${'floor'.padStart(6)}`);
await main();
fs.writeFileSync(path.join(folder, 'results.json'), JSON.stringify(results, null, 1));
const count = (verdict) => results.filter((r) => r.verdict === verdict).length;
console.log(`${count('ok')} passed, ${count('FAIL')} failed${count('skip') ? `, ${count('skip')} skipped` : ''}`);
process.exit(count('FAIL') || !results.length ? 1 : 0);
