// stream -- loads the chunks of a cut, near ones that are seen first, and draws them.
//
// What is drawn stays until all that takes its place has been loaded, so that no part of the scene is ever missing or there twice. What is no
// longer drawn is kept for a while, within a number of rows.
import { SplatFileType, SplatMesh } from '@sparkjsdev/spark';
import { Frustum, Matrix4 } from 'three';
import { chooseCut, intervals, isOutside, overlap } from './cut.js';
import { ask } from './patient.js';

const AT_ONCE = 4, PAUSE_MS = 100, KEPT_SHARE = 0.5, RETRY_MS = 3000, SWAP_MS = 250;

export class Stream {
    // tell(): what is drawn or loaded has changed; fail(error): a chunk cannot be loaded
    constructor(view, { budget, tell, fail }) {
        Object.assign(this, { view, budget, tell, fail, parts: new Map(), nodes: [], wanted: new Map(), asked: [], loading: 0, refined: new Set(), chosen: null, time: 0 });
        view.drawn.push(() => this.update());
    }

    // {layer, levels, nodes} of chunks.json. Parts that the new tree has, too, stay.
    setTree({ layer, levels, nodes }) {
        this.nodes = nodes;
        this.digests = { layer, levels };
        this.spans = intervals(nodes);
        this.refined = new Set();
        const places = new Map(nodes.flatMap((node, i) => node.details.map((detail) => [this.key(detail), i])));
        for (const part of this.parts.values()) part.node = places.get(part.key) ?? -1;
        for (const [key, part] of this.wanted) part.node = places.get(key) ?? -1;
        this.queue = []; // until the next cut: what was to be loaded was of the tree before
        this.chosen = null;
        this.view.touch();
    }

    key({ of, chunk }) {
        return `${this.digests[of]}/${chunk}`;
    }

    // Is all of what this camera shall see on the screen?
    isWhole() {
        return Boolean(this.chosen?.equals(this.pose())) && [...this.wanted.keys()].every((key) => this.parts.get(key)?.isShown) && [...this.parts.values()].every((part) => !part.isShown || this.wanted.has(part.key));
    }

    pose() {
        return new Matrix4().multiplyMatrices(this.view.camera.projectionMatrix, this.view.camera.matrixWorldInverse);
    }

    update() {
        const now = performance.now(), pose = this.pose();
        if (!this.nodes.length || this.chosen?.equals(pose) || now - this.time < PAUSE_MS) return;
        this.time = now;
        this.chosen = pose;
        const eye = this.view.camera.position.toArray(), frustum = new Frustum().setFromProjectionMatrix(pose);
        const planes = frustum.planes.slice(0, 4).map(({ normal, constant }) => ({ normal: normal.toArray(), constant }));
        this.cut = chooseCut(this.nodes, { eye, focal: this.view.focal(), budget: this.budget, refined: this.refined });
        this.refined = this.cut.refined;
        for (const part of this.cut.parts) part.isSeen = !isOutside(this.nodes[part.node], planes);
        this.wanted = new Map(this.cut.parts.map((part) => [this.key(part.detail), part]));
        this.queue = [...this.wanted.values()].sort((a, b) => b.isSeen - a.isSeen || a.distance - b.distance);
        for (const part of this.parts.values()) if (part.abort && !this.wanted.has(part.key)) part.abort.abort();
        this.swap();
        this.loadMore();
    }

    loadMore() {
        for (const { detail, node } of this.queue ?? []) {
            if (this.loading >= AT_ONCE) return;
            const key = this.key(detail), part = this.parts.get(key);
            if (!part || part.failed < performance.now()) this.load({ key, node, rows: detail.rows, level: detail.level, isShown: false, abort: new AbortController() });
        }
    }

    async load(part) {
        this.loading++;
        this.parts.set(part.key, part);
        this.asked.push(part.key);
        try {
            const answer = await ask(`splats/${part.key}.ply`, { signal: part.abort.signal });
            part.mesh = new SplatMesh({ fileBytes: await answer.arrayBuffer(), fileType: SplatFileType.PLY, fileName: 'chunk.ply', extSplats: true, lod: false });
            part.mesh.visible = false;
            await part.mesh.initialized;
            this.view.scene.add(part.mesh);
            part.isLoaded = true;
        } catch (e) {
            this.parts.delete(part.key);
            if (e.name !== 'AbortError') this.parts.set(part.key, { ...part, mesh: null, failed: performance.now() + RETRY_MS }), this.fail(e), setTimeout(() => this.loadMore(), RETRY_MS);
        }
        part.abort = null;
        this.loading--;
        this.loadMore();
        this.swapSoon();
    }

    // Each change has all that is drawn sorted anew, so some wait for each other.
    swapSoon() {
        if (!this.loading) this.swap();
        else this.timer ??= setTimeout(() => this.swap(), SWAP_MS);
    }

    // A part of no node, as after a new tree, is in the way of all.
    spanOf({ node }) {
        return node < 0 ? [0, Infinity] : this.spans[node];
    }

    // Shows what can be shown, hides what is replaced.
    swap() {
        clearTimeout(this.timer);
        this.timer = null;
        const wanted = [...this.wanted.keys()].map((key) => ({ part: this.parts.get(key), span: this.spanOf(this.wanted.get(key)) }));
        const old = [...this.parts.values()].filter((part) => part.isShown && !this.wanted.has(part.key)).map((part) => ({ part, span: this.spanOf(part) }));
        const staying = old.filter(({ span }) => wanted.some((w) => overlap(w.span, span) && !w.part?.isLoaded));
        for (const one of old) if (!staying.includes(one)) this.show(one.part, false);
        for (const { part, span } of wanted)
            if (part?.isLoaded && !part.isShown && !staying.some((one) => overlap(one.span, span))) this.show(part, true);
        this.forget();
        this.tell();
        this.view.touch();
    }

    show(part, isShown) {
        part.isShown = isShown;
        part.mesh.visible = isShown;
        part.time = performance.now();
    }

    // Parts that are not drawn, the oldest first.
    forget() {
        const hidden = [...this.parts.values()].filter((part) => part.isLoaded && !part.isShown && !this.wanted.has(part.key)).sort((a, b) => a.time - b.time);
        let rows = hidden.reduce((sum, part) => sum + part.rows, 0);
        for (const part of hidden) {
            if (rows <= this.budget * KEPT_SHARE && part.node >= 0) continue;
            rows -= part.rows;
            this.view.scene.remove(part.mesh);
            part.mesh.dispose();
            this.parts.delete(part.key);
        }
    }

    // {shown: [{key, node, level, rows}], rows: drawn, parts: wanted, left: of them not yet loaded}
    state() {
        const shown = [...this.parts.values()].filter((part) => part.isShown);
        const left = [...this.wanted.keys()].filter((key) => !this.parts.get(key)?.isLoaded).length;
        return { shown: shown.map(({ key, node, level, rows }) => ({ key, node, level, rows })), rows: shown.reduce((sum, part) => sum + part.rows, 0), parts: this.wanted.size, left };
    }
}
