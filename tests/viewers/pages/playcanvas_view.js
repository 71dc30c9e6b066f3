// The engine chooses levels of detail at every tenth frame, and until then calls those for the last camera ready.
const FRAMES_TO_CHOICE = 12;

// Puts a camera of the engine where the shot says, and draws a frame; the SuperSplat viewer stands on the same engine.
export function playcanvasView(app, camera, count, hasLevels) {
    let shot, ready = 0; // frames one after another
    app.scene.gsplat.colorUpdateAngle = 0; // else harmonics stay those of a camera up to 10 degrees away
    camera.calculateProjection = (m) => { if (shot) m.data.set(shot.projection); };
    app.systems.gsplat.on('frame:ready', (of, layer, isReady, loading) => { ready = isReady && loading === 0 ? ready + 1 : 0; });
    // Controls of a viewer move the camera before a frame: this comes after them.
    app.on('prerender', () => {
        if (!shot) return;
        const pose = app.root.getWorldTransform().clone();
        pose.data.set(shot.pose);
        camera.entity.setPosition(...shot.pose.slice(12, 15));
        camera.entity.setRotation(camera.entity.getRotation().clone().setFromMat4(pose));
    });
    return {
        aim: (to) => { shot = to; ready = 0; },
        draw: (read) => new Promise((done) => { app.renderNextFrame = true; app.once('frameend', () => done(read())); }),
        idle: () => ready >= (hasLevels ? FRAMES_TO_CHOICE : 1),
        count,
    };
}
