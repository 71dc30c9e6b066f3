// controls -- moves the camera: mouse, touch and keyboard.
//
// The camera circles around a pivot on its axis (or, in look mode, turns where it stands). The scene's up axis stays upright on the screen.
import { Quaternion, Vector3 } from 'three';
import { directions, lensOf, mixLens, poseOf } from './geometry.js';

const TURN = 0.005, WHEEL = 0.0015, FLIGHT_MS = 700, SLOPE_MAX = 0.998, KEY_TURN = 1.2, KEY_SPEED = 0.8;
const FLY = { KeyW: [0, 0, 1], KeyS: [0, 0, -1], KeyA: [-1, 0, 0], KeyD: [1, 0, 0], KeyQ: [0, -1, 0], KeyE: [0, 1, 0] };
const CIRCLE = { ArrowLeft: [1, 0], ArrowRight: [-1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };

export class Controls {
    // world: {up, centre, radius}; moved() is called whenever a person moves the camera.
    constructor(view, world, moved) {
        Object.assign(this, { view, moved, look: false, keys: new Map(), pointers: new Map() });
        this.setWorld(world);
        const canvas = view.canvas;
        canvas.addEventListener('pointerdown', (e) => this.down(e));
        canvas.addEventListener('pointermove', (e) => this.move(e));
        for (const name of ['pointerup', 'pointercancel']) canvas.addEventListener(name, (e) => this.pointers.delete(e.pointerId));
        canvas.addEventListener('wheel', (e) => this.wheel(e), { passive: false });
        canvas.addEventListener('contextmenu', (e) => e.preventDefault());
        canvas.addEventListener('keydown', (e) => this.key(e, true));
        window.addEventListener('keyup', (e) => this.key(e, false));
        window.addEventListener('blur', () => this.keys.clear());
    }

    setWorld({ up, centre, radius }) {
        this.up = new Vector3(...up).normalize();
        this.centre = new Vector3(...centre);
        this.radius = radius > 0 ? radius : 1;
        this.distance ??= this.radius;
        this.pace ??= this.radius;
    }

    // The pivot is at the depth of the scene's centre, where that is in front of the camera. Its distance is also the measure for flying:
    // the scene's radius would not do, since a sky makes it many times as large as what is looked at.
    aim(shot) {
        this.flight = null;
        this.view.aim(shot);
        this.findPivot();
    }

    findPivot() {
        const { position, quaternion } = this.view.camera, depth = this.centre.clone().sub(position).dot(directions(quaternion).forward);
        this.distance = this.pace = depth > this.radius / 200 ? depth : this.radius / 4;
    }

    pivot() {
        const { position, quaternion } = this.view.camera;
        return directions(quaternion).forward.multiplyScalar(this.distance).add(position);
    }

    // Flies to a shot; without motion where a person does not want any. Ends when it is there; false: something else came in between.
    flyTo(shot) {
        if (matchMedia('(prefers-reduced-motion: reduce)').matches || !this.view.lens) return this.aim(shot), Promise.resolve(true);
        const from = { position: this.view.camera.position.clone(), quaternion: this.view.camera.quaternion.clone(), lens: this.view.lens };
        const to = { ...poseOf(shot), lens: lensOf(shot) }, started = performance.now(), flight = {};
        this.flight = flight;
        return new Promise((done) => {
            const step = () => {
                if (this.flight !== flight) return done(false);
                const part = Math.min((performance.now() - started) / FLIGHT_MS, 1), amount = part * part * (3 - 2 * part);
                if (part === 1) return this.aim(shot), done(true);
                this.view.place(from.position.clone().lerp(to.position, amount), from.quaternion.clone().slerp(to.quaternion, amount), mixLens(from.lens, to.lens, amount));
                requestAnimationFrame(step);
            };
            step();
        });
    }

    // Turns by angles to the right and up; never over the pole.
    turn(yaw, pitch) {
        const { position, quaternion } = this.view.camera, { forward, right } = directions(quaternion), pivot = this.pivot();
        const slope = forward.dot(this.up), after = Math.sin(Math.asin(Math.max(-1, Math.min(1, slope))) + pitch);
        if (Math.abs(after) > SLOPE_MAX && Math.abs(after) > Math.abs(slope)) pitch = 0;
        const turned = new Quaternion().setFromAxisAngle(this.up, yaw).multiply(new Quaternion().setFromAxisAngle(right, pitch)).multiply(quaternion).normalize();
        const from = this.look ? position.clone() : pivot.addScaledVector(directions(turned).forward, -this.distance);
        this.person(from, turned);
    }

    // Moves by shares of what is seen at the pivot: to the right, up; and by a factor nearer.
    shift(right, up, forward) {
        const { position, quaternion } = this.view.camera, d = directions(quaternion);
        this.person(position.clone().addScaledVector(d.right, right).addScaledVector(d.up, up).addScaledVector(d.forward, forward), quaternion.clone());
    }

    // At the pivot the camera would stand still, so near it the pivot is pushed on.
    nearer(factor) {
        const least = this.radius / 200, distance = this.distance * factor, step = this.distance - distance;
        this.distance = Math.max(distance, least);
        this.shift(0, 0, factor < 1 ? Math.max(step, least / 4) : step);
    }

    person(position, quaternion) {
        this.flight = null;
        this.view.place(position, quaternion);
        this.moved();
    }

    down(e) {
        this.view.canvas.focus({ preventScroll: true });
        this.view.canvas.setPointerCapture(e.pointerId);
        this.pointers.set(e.pointerId, { x: e.clientX, y: e.clientY });
    }

    move(e) {
        const last = this.pointers.get(e.pointerId);
        if (!last) return;
        const now = { x: e.clientX, y: e.clientY }, dx = now.x - last.x, dy = now.y - last.y, unit = this.distance / this.view.focal();
        this.pointers.set(e.pointerId, now);
        if (this.pointers.size > 2 || (!dx && !dy)) return;
        if (this.pointers.size === 2) {
            const other = [...this.pointers].find(([id]) => id !== e.pointerId)[1];
            const before = Math.hypot(last.x - other.x, last.y - other.y), after = Math.hypot(now.x - other.x, now.y - other.y);
            this.shift(-dx / 2 * unit, dy / 2 * unit, 0);
            if (before > 10 && after > 10) this.nearer(before / after);
        } else if (e.buttons & 6 || e.shiftKey || e.ctrlKey) {
            this.shift(-dx * unit, dy * unit, 0);
        } else {
            this.turn(-dx * TURN * (this.look ? 0.5 : 1), -dy * TURN * (this.look ? 0.5 : 1));
        }
    }

    wheel(e) {
        e.preventDefault();
        const lines = e.deltaMode === 1 ? 30 : e.deltaMode === 2 ? 300 : 1;
        this.nearer(Math.exp(Math.max(-0.5, Math.min(0.5, e.deltaY * lines * WHEEL))));
    }

    key(e, isDown) {
        if (!FLY[e.code] && !CIRCLE[e.code]) return;
        const held = this.keys.get(e.code);
        if (!isDown) {
            if (held) held.until = e.timeStamp;
            return;
        }
        if (e.ctrlKey || e.metaKey || e.altKey) return;
        e.preventDefault();
        this.fast = e.shiftKey;
        if (!held || held.until) this.keys.set(e.code, { since: e.timeStamp, until: 0 });
        if (!this.isWalking) this.walk();
    }

    // Moves for as long as each key was held since the last picture. A key that is tapped while a slow picture is drawn counts as well: by the
    // time of the next one it has been released.
    walk() {
        this.isWalking = this.keys.size > 0;
        if (!this.isWalking) return;
        requestAnimationFrame((now) => {
            const move = [0, 0, 0], turn = [0, 0];
            for (const [code, held] of this.keys) {
                const seconds = Math.min(Math.max((held.until || now) - held.since, 1) / 1000, 0.1), step = seconds * this.pace * KEY_SPEED * (this.fast ? 4 : 1);
                FLY[code]?.forEach((way, axis) => { move[axis] += way * step; });
                CIRCLE[code]?.forEach((way, axis) => { turn[axis] += way * seconds * KEY_TURN; });
                if (held.until) this.keys.delete(code);
                else held.since = now;
            }
            if (move.some(Boolean)) this.shift(...move);
            if (turn.some(Boolean)) this.turn(this.look ? turn[0] : -turn[0], this.look ? turn[1] : -turn[1]);
            this.walk();
        });
    }
}
