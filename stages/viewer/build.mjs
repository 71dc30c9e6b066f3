// node build.mjs PACKAGES OUT -- makes of our pages and of the library in PACKAGES (a node_modules folder) the folder OUT that kiln-serve
// serves and kiln-export --format html puts into its files: viewer.js, viewer.css, serve.html, and the licences of what viewer.js contains.
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const CONTAINS = ['three', '@sparkjsdev/spark', 'fflate', 'esbuild']; // esbuild puts a few functions of its own in front
const [packages, out] = process.argv.slice(2).map((folder) => path.resolve(folder));
const here = path.dirname(fileURLToPath(import.meta.url));
const esbuild = createRequire(path.join(packages, 'x'))('esbuild');

const licenceOf = (name) => ['LICENSE', 'LICENSE.md'].map((file) => path.join(packages, name, file)).find((file) => fs.existsSync(file));
const licences = CONTAINS.map((name) => {
    const { version, license } = JSON.parse(fs.readFileSync(path.join(packages, name, 'package.json'), 'utf8'));
    return { name, title: `${name} ${version} (${license})`, text: fs.readFileSync(licenceOf(name), 'utf8').replace(/\r/g, '').trim() };
});
// A file that somebody gets has viewer.js inside, and the licences want to be with it.
const banner = `/*\nviewer.js is a part of SplatKiln (MIT) and contains these libraries:\n\n${licences.map(({ title, text }) => `${title}\n\n${text}`).join('\n\n')}\n*/`;
// Nothing may end the element, or begin what HTML reads otherwise than as script.
const isSafe = (script) => /^[\n\t\x20-\x7e]*$/.test(script) && !/<\/script|<!--/i.test(script);

const { outputFiles: [file] } = await esbuild.build({
    entryPoints: [path.join(here, 'main.js')], nodePaths: [packages], bundle: true, minify: true, write: false, format: 'iife', target: 'es2022', charset: 'ascii',
    legalComments: 'none', banner: { js: banner.replace(/[^\n\t\x20-\x7e]/g, '?') },
});
if (!isSafe(file.text)) throw new Error('viewer.js cannot stand in a page: it has bytes beyond ASCII, </script or <!-- in it');
fs.rmSync(out, { recursive: true, force: true });
fs.mkdirSync(out, { recursive: true });
for (const { name, title, text } of licences) fs.writeFileSync(path.join(out, `LICENSE.${name.split('/').at(-1)}`), `${title}\n\n${text}\n`);
for (const name of ['viewer.css', 'serve.html']) if (fs.existsSync(path.join(here, name))) fs.copyFileSync(path.join(here, name), path.join(out, name));
fs.writeFileSync(path.join(out, 'viewer.js'), file.text); // last: who finds it finds the others
