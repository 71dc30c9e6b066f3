// overlays -- lines over the scene: cameras as frustums, which can be clicked, and boxes of what is drawn.
import { BufferGeometry, Color, Float32BufferAttribute, LineBasicMaterial, LineSegments, Vector3 } from 'three';
import { poseOf } from './geometry.js';

const FRUSTUM_SIZE = 0.07, PICK_PX = 18;
const PLAIN = new Color('#ffb000'), CHOSEN = new Color('#ff3d9a'), LEVELS = ['#4cc9f0', '#80ed99', '#f9c74f', '#f8961e', '#f94144'].map((c) => new Color(c));
const EDGES = [[0, 1], [1, 3], [3, 2], [2, 0], [4, 5], [5, 7], [7, 6], [6, 4], [0, 4], [1, 5], [2, 6], [3, 7]];

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
        Object.assign(this, { view, frustums: lines(view), boxes: lines(view), cameras: [] });
    }

    setCameras(cameras, radius, chosen) {
        const points = [], colours = [], size = FRUSTUM_SIZE * (radius || 1);
        this.cameras = cameras.map((camera) => poseOf(camera).position);
        cameras.forEach(({ R, fx, fy, cx, cy, width, height }, i) => {
            const apex = this.cameras[i], scale = size / Math.max(width / fx, height / fy);
            const corner = (x, y) => {
                const v = [(x - cx) / fx * scale, (y - cy) / fy * scale, scale];
                return [0, 1, 2].map((a) => R[a] * v[0] + R[3 + a] * v[1] + R[6 + a] * v[2] + apex.getComponent(a));
            };
            const corners = [corner(0, 0), corner(width, 0), corner(width, height), corner(0, height)], top = corner(width / 2, -0.25 * height), tip = apex.toArray();
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

    // The camera whose place is nearest to a point of the canvas, in CSS pixels; -1: none is near.
    pick(x, y) {
        let best = -1, least = PICK_PX;
        if (!this.frustums.visible) return best;
        this.cameras.forEach((place, i) => {
            const p = new Vector3().copy(place).project(this.view.camera);
            const distance = Math.hypot((p.x + 1) / 2 * this.view.width - x, (1 - p.y) / 2 * this.view.height - y);
            if (p.z < 1 && distance < least) [best, least] = [i, distance];
        });
        return best;
    }
}
