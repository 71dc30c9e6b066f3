// overlays -- lines over the scene: cameras as frustums, which can be clicked, and boxes of what is drawn.
import { BufferGeometry, Color, Float32BufferAttribute, LineBasicMaterial, LineSegments, Vector3 } from 'three';
import { poseOf } from './geometry.js';

// A frustum's size, of the scene's radius and of how far cameras are from what they look at: the smaller one.
const FRUSTUM_SIZE = 0.07, FRUSTUM_REACH = 0.12, PICK_PX = 18;
const PLAIN = new Color('#ffb000'), CHOSEN = new Color('#ff3d9a'), LEVELS = ['#4cc9f0', '#80ed99', '#f9c74f', '#f8961e', '#f94144'].map((c) => new Color(c));
const EDGES = [[0, 1], [1, 3], [3, 2], [2, 0], [4, 5], [5, 7], [7, 6], [6, 4], [0, 4], [1, 5], [2, 6], [3, 7]];

// Of a point from the line between two others, on the screen.
function distanceToLine(p, from, to) {
    const dx = to.x - from.x, dy = to.y - from.y, square = dx * dx + dy * dy;
    const part = square > 0 ? Math.max(0, Math.min(1, ((p.x - from.x) * dx + (p.y - from.y) * dy) / square)) : 0;
    return Math.hypot(from.x + part * dx - p.x, from.y + part * dy - p.y);
}

function lines(view) {
    const made = new LineSegments(new BufferGeometry(), new LineBasicMaterial({ vertexColors: true, depthTest: false, depthWrite: false, transparent: true, toneMapped: false }));
    made.frustumCulled = false;
    made.renderOrder = 10;
    made.visible = false;
    view.scene.add(made);
    return made;
}

function fill(made, points, colours) {
    made.geometry.dispose();
    made.geometry = new BufferGeometry();
    made.geometry.setAttribute('position', new Float32BufferAttribute(points, 3));
    made.geometry.setAttribute('color', new Float32BufferAttribute(colours, 3));
}

export class Overlays {
    constructor(view) {
        Object.assign(this, { view, frustums: lines(view), boxes: lines(view), cameras: [], middles: [] });
    }

    // centre: what the cameras look at; chosen: index of the camera that one looks through, or -1
    setCameras(cameras, { radius, centre }, chosen) {
        this.cameras = cameras.map((camera) => poseOf(camera).position);
        const reach = this.cameras.map((place) => place.distanceTo(new Vector3(...centre))).sort((a, b) => a - b)[cameras.length >> 1];
        const points = [], colours = [], size = Math.min(FRUSTUM_SIZE * (radius || 1), FRUSTUM_REACH * (reach || radius || 1));
        this.middles = [];
        cameras.forEach(({ R, fx, fy, cx, cy, width, height }, i) => {
            const apex = this.cameras[i], scale = size / Math.max(width / fx, height / fy);
            const corner = (x, y) => {
                const v = [(x - cx) / fx * scale, (y - cy) / fy * scale, scale];
                return [0, 1, 2].map((a) => R[a] * v[0] + R[3 + a] * v[1] + R[6 + a] * v[2] + apex.getComponent(a));
            };
            const corners = [corner(0, 0), corner(width, 0), corner(width, height), corner(0, height)], top = corner(width / 2, -0.25 * height), tip = apex.toArray();
            this.middles.push(new Vector3(...corner(width / 2, height / 2)));
            const pairs = [...corners.flatMap((c, k) => [tip, c, c, corners[(k + 1) % 4]]), corners[0], top, top, corners[1]];
            for (const p of pairs) points.push(...p), colours.push(...(i === chosen ? CHOSEN : PLAIN).toArray());
        });
        fill(this.frustums, points, colours);
        this.view.touch();
    }

    // parts: [{node, level}] of nodes.
    setBoxes(parts, nodes) {
        const points = [], colours = [];
        for (const { node, level } of parts) {
            if (!nodes[node]) continue;
            const { lo, hi } = nodes[node], corner = (k) => [k & 1 ? hi[0] : lo[0], k & 2 ? hi[1] : lo[1], k & 4 ? hi[2] : lo[2]];
            for (const [a, b] of EDGES) points.push(...corner(a), ...corner(b)), colours.push(...LEVELS[Math.min(level, LEVELS.length - 1)].toArray(), ...LEVELS[Math.min(level, LEVELS.length - 1)].toArray());
        }
        fill(this.boxes, points, colours);
    }

    set(which, isOn) {
        this[which].visible = isOn;
        this.view.touch();
    }

    // The camera whose frustum's axis, from its place to the middle of its picture, is nearest to a point of the canvas, in CSS pixels; -1: none
    // is near.
    pick(x, y) {
        let best = -1, least = PICK_PX;
        if (!this.frustums.visible) return best;
        const onScreen = (place) => {
            const p = new Vector3().copy(place).project(this.view.camera);
            return { x: (p.x + 1) / 2 * this.view.width, y: (1 - p.y) / 2 * this.view.height, isInFront: p.z > -1 && p.z < 1 };
        };
        this.cameras.forEach((place, i) => {
            const from = onScreen(place), to = onScreen(this.middles[i]);
            if (!from.isInFront || !to.isInFront) return;
            const distance = distanceToLine({ x, y }, from, to);
            if (distance < least) [best, least] = [i, distance];
        });
        return best;
    }
}
