// geometry -- cameras as the bake has them, and as WebGL wants them.
//
// A shot is {R, t, fx, fy, cx, cy, width, height}: R (9 numbers, row after row) and t take a point of the scene to the camera, which has x to
// the right, y down and looks along z; the others are pixels, with the centre of the first one at 0.5. WebGL's camera has y up and looks along -z.
// A pose is {position: Vector3, quaternion: Quaternion} of WebGL's camera in the scene; a lens is the rest of a shot.
import { Matrix4, Quaternion, Vector3 } from 'three';

export function poseOf({ R, t }) {
    const turn = new Matrix4().set(R[0], -R[3], -R[6], 0, R[1], -R[4], -R[7], 0, R[2], -R[5], -R[8], 0, 0, 0, 0, 1);
    const along = (column) => -(R[column] * t[0] + R[3 + column] * t[1] + R[6 + column] * t[2]);
    return { position: new Vector3(along(0), along(1), along(2)), quaternion: new Quaternion().setFromRotationMatrix(turn) };
}

export const lensOf = ({ fx, fy, cx, cy, width, height }) => ({ fx, fy, cx, cy, width, height });

// Where a picture of this lens lies in a window, as large as it fits, in the middle.
export function frameOf(lens, windowWidth, windowHeight) {
    const scale = Math.min(windowWidth / lens.width, windowHeight / lens.height);
    return { scale, left: (windowWidth - scale * lens.width) / 2, top: (windowHeight - scale * lens.height) / 2, width: scale * lens.width, height: scale * lens.height };
}

// The projection that draws the lens's picture in its frame, and what lies beside it around it. Column after column, as in WebGL.
export function projectionOf(lens, windowWidth, windowHeight, near, far) {
    const { scale, left, top } = frameOf(lens, windowWidth, windowHeight);
    const fx = scale * lens.fx, fy = scale * lens.fy, cx = scale * lens.cx + left, cy = scale * lens.cy + top;
    return [2 * fx / windowWidth, 0, 0, 0, 0, 2 * fy / windowHeight, 0, 0, 1 - 2 * cx / windowWidth, 2 * cy / windowHeight - 1, (far + near) / (near - far), -1,
        0, 0, 2 * far * near / (near - far), 0];
}

export const directions = (quaternion) => ({
    right: new Vector3(1, 0, 0).applyQuaternion(quaternion),
    up: new Vector3(0, 1, 0).applyQuaternion(quaternion),
    forward: new Vector3(0, 0, -1).applyQuaternion(quaternion),
});

// Between two lenses of perhaps different sizes: what is seen changes evenly.
export function mixLens(a, b, amount) {
    const scale = b.height / a.height, mixed = { width: b.width, height: b.height };
    for (const key of ['fx', 'fy']) mixed[key] = (a[key] * scale) ** (1 - amount) * b[key] ** amount;
    for (const [key, size] of [['cx', 'width'], ['cy', 'height']]) mixed[key] = (a[key] / a[size] * b[size]) * (1 - amount) + b[key] * amount;
    return mixed;
}

// A shot that looks at the whole scene from a little above, for scenes without cameras.
export function overview({ up, centre, radius }) {
    const axis = new Vector3(...up).normalize(), middle = new Vector3(...centre), fov = 50 * Math.PI / 180;
    const side = new Vector3(Math.abs(axis.x) > 0.9 ? 0 : 1, 0, Math.abs(axis.x) > 0.9 ? 1 : 0).projectOnPlane(axis).normalize();
    const distance = (radius || 1) / Math.sin(fov / 2), from = middle.clone().addScaledVector(side, distance * 0.94).addScaledVector(axis, distance * 0.34);
    const forward = middle.clone().sub(from).normalize(), right = forward.clone().cross(axis).normalize(), down = forward.clone().cross(right);
    const R = [right, down, forward].flatMap((v) => v.toArray());
    const t = [right, down, forward].map((v) => -v.dot(from));
    return { name: '', R, t, fx: 360 / Math.tan(fov / 2), fy: 360 / Math.tan(fov / 2), cx: 640, cy: 360, width: 1280, height: 720 };
}
