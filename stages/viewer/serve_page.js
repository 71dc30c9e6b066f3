// serve_page -- the page of kiln-serve: a bake, also one that is still running. stages/serve/DESIGN.md has the addresses; all are relative.
import { Compare } from './compare.js';
import { Controls } from './controls.js';
import { overview } from './geometry.js';
import { Overlays } from './overlays.js';
import { ask } from './patient.js';
import { Stream } from './stream.js';
import { Frame, count, element, isWide } from './ui.js';
import { View } from './view.js';

const RUNNING_MS = 2000, RESTING_MS = 10000, BUDGET = { wide: 4000000, narrow: 1200000 }, CLICK_PX = 4;
const DEFAULTS = { near: 0.01, background: [0, 0, 0], up: [0, -1, 0], centre: [0, 0, 0], radius: 1 };

const get = async (name) => (await ask(name, { cache: 'no-store' })).json();

class ServePage {
    constructor(root) {
        this.frame = new Frame(root, {
            goTo: (i) => this.goTo(i), home: () => this.home(), look: (on) => { if (this.controls) this.controls.look = on; },
            keys: [['F', 'cameras as frustums; a click flies there', () => this.boxes?.frustums.click()], ['B', 'bounds of what is drawn', () => this.boxes?.boxes.click()]],
            links: [element('a', { className: 'button', href: 'report.html', textContent: 'Report' })],
        });
        this.root = root;
        this.cameras = [];
        this.version = null;
        const page = this;
        window.splatView = {
            aim: (shot) => this.person(() => this.controls.aim(shot)),
            goTo: (i) => this.goTo(i),
            settled: () => this.view.settled(() => this.stream.isWhole() && !this.controls.isWalking),
            get view() { return page.view; },
            get stream() { return page.stream; },
            bare: (on = true) => root.classList.toggle('bare', on),
            cameras: () => page.cameras,
            centre: () => page.data.centre,
            asked: () => [...this.stream.asked],
            state: () => this.stream.state(),
            version: () => this.version,
        };
    }

    person(act) {
        this.frame.mark(-1);
        this.compare.setCamera(null);
        act();
    }

    // Everything that stands around the canvas is made when there is a scene.
    begin(state) {
        this.view = new View(this.frame.canvas, state);
        this.controls = new Controls(this.view, state, () => { if (this.frame.current >= 0 || this.compare.camera) this.person(() => this.mark()); });
        this.overlays = new Overlays(this.view);
        this.compare = new Compare(this.view, this.frame, (text) => this.frame.say(text, true));
        this.stream = new Stream(this.view, { budget: BUDGET[isWide() ? 'wide' : 'narrow'], tell: () => this.showState(), fail: (e) => this.failPart(e) });
        const box = (which, label) => {
            const input = element('input', { type: 'checkbox', onchange: () => { this.overlays.set(which, input.checked); this.showState(); } });
            return [input, element('label', { className: 'choice' }, input, label)];
        };
        const [frustums, frustumLabel] = box('frustums', 'Cameras'), [boxes, boxLabel] = box('boxes', 'Bounds of what is drawn');
        this.boxes = { frustums, boxes };
        this.frame.extras.append(element('fieldset', {}, element('legend', { textContent: 'Lines' }), frustumLabel, boxLabel));
        let down;
        this.frame.canvas.addEventListener('pointerdown', (e) => { down = [e.clientX, e.clientY]; });
        this.frame.canvas.addEventListener('pointerup', (e) => {
            if (!down || Math.hypot(e.clientX - down[0], e.clientY - down[1]) > CLICK_PX) return;
            const camera = this.overlays.pick(e.offsetX, e.offsetY);
            if (camera >= 0) this.goTo(camera);
        });
    }

    mark() {
        this.overlays.setCameras(this.cameras, this.data, this.frame.current);
    }

    // Through the camera, and what there is of it can be laid over.
    async goTo(i) {
        const camera = this.cameras[i];
        if (!camera) return;
        this.frame.mark(i);
        this.compare.setCamera(null);
        this.mark();
        history.replaceState(null, '', `#camera=${camera.key}`);
        if (await this.controls.flyTo(camera) && this.frame.current === i) this.compare.setCamera(camera, this.data.version);
    }

    home() {
        if (!this.controls) return undefined;
        return this.cameras.length ? this.goTo(0) : this.controls.flyTo(overview(this.data));
    }

    // Said until all parts are there: one that a new layer has replaced is not wanted any more.
    failPart(e) {
        this.partFailed = true;
        this.frame.say(`A part of the scene cannot be loaded: ${e.message}`, true);
    }

    showState() {
        const { rows, parts, left, shown } = this.stream.state();
        if (this.partFailed && !left) this.partFailed = false, this.frame.say('');
        if (this.overlays.boxes.visible) this.overlays.setBoxes(shown, this.stream.nodes);
        this.frame.progress(left ? `loading ${count(left)} of ${count(parts)} parts` : rows < this.data.rows ? `${count(rows)} drawn` : '');
    }

    async load() {
        const state = await get('state.json');
        const running = state.stages?.find((stage) => stage.state === 'running')?.name;
        this.frame.stageText(state.running ? `baking${running ? `: ${running}` : ''}` : '');
        if (state.version !== this.version) {
            const data = { ...DEFAULTS, ...Object.fromEntries(Object.entries(state).filter(([, value]) => value !== null)) };
            const [cameras, chunks] = await Promise.all([get('cameras.json'), get('chunks.json')]);
            this.take(data, cameras.cameras, chunks);
            this.version = state.version;
        }
        if (this.view?.lens && chunksMissing(this.stream)) this.frame.say(state.running ? 'Nothing is in chunks yet; the scene comes when it is baked.' : 'The bake has no chunks; kiln-chunk makes them.');
        else if (!this.frame.message.classList.contains('error') || this.isLost) this.frame.say('');
        this.isLost = false;
        return state.running;
    }

    take(data, cameras, chunks) {
        const isFirst = !this.view;
        this.data = data;
        if (isFirst) this.begin(data);
        this.view.set(data);
        this.controls.setWorld(data);
        const current = cameras.findIndex(({ name }) => name === this.cameras[this.frame.current]?.name); // ids are of a version
        this.cameras = cameras;
        this.frame.current = -1;
        this.frame.setScene(data, cameras.map((camera) => ({ ...camera, note: [camera.synthetic ? 'orbit' : camera.split, camera.psnr == null ? '' : `${camera.psnr.toFixed(1)} dB`].filter(Boolean).join(' \u00b7 ') })));
        this.stream.setTree(chunks);
        if (isFirst || (!this.hadCameras && cameras.length)) this.first();
        else if (current >= 0) this.frame.mark(current);
        if (!isFirst && this.compare.camera) this.compare.setCamera(cameras[this.frame.current] ?? null, data.version);
        this.hadCameras = cameras.length > 0;
        this.mark();
    }

    first() {
        const asked = /^#camera=([0-9a-f]+)$/.exec(location.hash)?.[1];
        const i = Math.max(0, this.cameras.findIndex((camera) => camera.key === asked));
        if (!this.cameras.length) return this.controls.aim(overview(this.data));
        this.controls.aim(this.cameras[i]);
        this.frame.mark(i);
        this.compare.setCamera(this.cameras[i], this.data.version);
        if (isWide()) this.frame.openList(true);
    }

    async poll() {
        let isRunning = true;
        try {
            if (!document.hidden) isRunning = await this.load();
        } catch (e) {
            this.isLost = true;
            this.frame.say(e instanceof TypeError ? 'kiln-serve does not answer; is it still running?' : `The bake cannot be shown: ${e.message}`, true);
        }
        setTimeout(() => this.poll(), isRunning ? RUNNING_MS : RESTING_MS);
    }
}

const chunksMissing = (stream) => !stream.nodes.length;

export function openServed(root) {
    new ServePage(root).poll();
}
