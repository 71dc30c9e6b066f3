// view -- Gaussians on a canvas: Spark with the settings that kiln-render's picture asks for, and a camera whose matrices are given whole.
//
// Pictures are drawn when something changed, and for as long as Spark loads or sorts. settled() tells when the picture is complete.
import { Color, PerspectiveCamera, Scene, SRGBColorSpace, WebGLRenderer } from 'three';
import { SparkRenderer } from '@sparkjsdev/spark';
import { frameOf, lensOf, poseOf, projectionOf } from './geometry.js';

// Pictures in a row that have to be equal: a sort that is about to start shows in no flag.
const STILL = 2, PAUSE_MS = 60, FAR = 1e5, LINGER_MS = 250, BUSY_MS = 100;
// A Gaussian ends where it adds less than 1/255, as kiln-render's does. DESIGN.md has what each of them is worth in dB.
const EXACT = { sortRadial: false, maxStdDev: Math.sqrt(2 * Math.log(255)), maxPixelRadius: 4096, minAlpha: 1 / 255, accumExtSplats: true };
// Antialiased scenes lose as much opacity as Gaussians gain in size by the 0.3 pixels; classic ones do not.
const blur = (antialiased) => (antialiased ? { preBlurAmount: 0, blurAmount: 0.3 } : { preBlurAmount: 0.3, blurAmount: 0 });

export class View {
    // settings: {antialiased, near, background [3] 0..1, radius}
    constructor(canvas, settings) {
        this.canvas = canvas;
        try {
            this.renderer = new WebGLRenderer({ canvas, antialias: false, alpha: false });
        } catch {
            throw new Error('the browser has no WebGL 2 here, which drawing needs');
        }
        this.scene = new Scene();
        this.spark = new SparkRenderer({ renderer: this.renderer, ...EXACT, ...blur(settings.antialiased), onDirty: () => this.touch() });
        this.scene.add(this.spark);
        this.camera = new PerspectiveCamera();
        this.camera.matrixAutoUpdate = false;
        this.camera.updateProjectionMatrix = () => {}; // whoever resizes would make one with the principal point in the centre
        this.drawn = []; // called before each picture
        this.set(settings);
        new ResizeObserver(() => this.resize()).observe(canvas.parentElement);
    }

    set({ antialiased, near, background, radius }) {
        Object.assign(this.spark, blur(antialiased));
        this.scene.background = new Color().setRGB(...background, SRGBColorSpace);
        this.near = radius > 0 ? Math.min(near, radius / 20) : near; // a small scene is not cut off by the profile's near plane
        this.touch();
    }

    // Looks through a shot, exactly.
    aim(shot) {
        const { position, quaternion } = poseOf(shot);
        this.place(position, quaternion, lensOf(shot));
    }

    place(position, quaternion, lens = this.lens) {
        this.lens = lens;
        this.camera.position.copy(position);
        this.camera.quaternion.copy(quaternion);
        this.camera.updateMatrix();
        this.camera.updateMatrixWorld(true);
        this.resize();
    }

    // The frame of the lens's picture, in CSS pixels of the canvas; and the focal length there.
    frame() {
        return frameOf(this.lens, this.width, this.height);
    }

    focal() {
        return this.lens ? this.frame().scale * Math.max(this.lens.fx, this.lens.fy) : 1;
    }

    resize() {
        const { clientWidth: width, clientHeight: height } = this.canvas.parentElement;
        const ratio = Math.min(window.devicePixelRatio || 1, 2);
        if (!width || !height) return;
        if (width !== this.width || height !== this.height || ratio !== this.ratio) {
            Object.assign(this, { width, height, ratio });
            this.renderer.setPixelRatio(ratio);
            this.renderer.setSize(width, height);
        }
        if (this.lens) {
            this.camera.near = this.near;
            this.camera.far = FAR;
            this.camera.aspect = width / height;
            this.camera.fov = 2 * Math.atan(height / 2 / (this.frame().scale * this.lens.fy)) * 180 / Math.PI;
            this.camera.projectionMatrix.fromArray(projectionOf(this.lens, width, height, this.near, FAR));
            this.camera.projectionMatrixInverse.copy(this.camera.projectionMatrix).invert();
        }
        this.touch();
    }

    // Has a picture drawn soon.
    touch() {
        this.changed = performance.now();
        this.request ??= requestAnimationFrame(() => this.tick());
    }

    // While Spark sorts, a picture now and then is enough for it to go on; more would keep a slow GPU from what the sort waits for.
    tick() {
        this.request = null;
        this.draw();
        if (performance.now() - this.changed < LINGER_MS) this.request ??= requestAnimationFrame(() => this.tick());
        else if (this.isBusy()) setTimeout(() => { this.request ??= requestAnimationFrame(() => this.tick()); }, BUSY_MS);
    }

    draw() {
        if (!this.lens || !this.width) return;
        for (const call of this.drawn) call();
        this.renderer.render(this.scene, this.camera);
    }

    isBusy() {
        return this.spark.sorting || this.spark.sortDirty || this.spark.dirty;
    }

    // Ends when isWhole() is true, nothing is sorted and the picture stays the same; gives the picture as a data address.
    async settled(isWhole = () => true) {
        let last = '';
        for (let still = 0; still < STILL;) {
            if (isWhole() && !this.isBusy()) {
                this.draw();
                const now = this.canvas.toDataURL(); // while the pixels are there
                still = now === last ? still + 1 : 0;
                last = now;
            } else {
                still = 0;
                this.request ??= requestAnimationFrame(() => this.tick()); // which waits for the GPU
            }
            await new Promise((done) => setTimeout(done, still ? PAUSE_MS : BUSY_MS));
        }
        return last;
    }
}
