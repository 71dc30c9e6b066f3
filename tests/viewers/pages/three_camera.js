// A camera of three.js with all its matrices given; for the viewers that stand on three.js.
import * as THREE from 'three';

export function threeCamera() {
    const camera = new THREE.PerspectiveCamera();
    let shot;
    camera.matrixAutoUpdate = false;
    // Whoever resizes the canvas calls this, and would make a projection with the principal point in the centre.
    camera.updateProjectionMatrix = () => {
        if (!shot) return;
        camera.projectionMatrix.fromArray(shot.projection);
        camera.projectionMatrixInverse.copy(camera.projectionMatrix).invert();
    };
    camera.aim = (to) => {
        shot = to;
        camera.near = to.near;
        camera.far = to.far;
        camera.fov = to.fovY * 180 / Math.PI;
        camera.matrix.fromArray(to.pose);
        camera.matrix.decompose(camera.position, camera.quaternion, camera.scale);
        camera.updateMatrixWorld(true);
        camera.updateProjectionMatrix();
    };
    return camera;
}
export const colourOf = (job, space = THREE.SRGBColorSpace) => new THREE.Color().setRGB(...job.background.map((v) => v / 255), space);
