// Puts a camera of the engine where the shot says, and draws a frame; the SuperSplat viewer stands on the same engine.
export function playcanvasView(app, camera, count) {
    let shot, isReady = false;
    camera.calculateProjection = (m) => { if (shot) m.data.set(shot.projection); };
    app.systems.gsplat.on('frame:ready', (of, layer, ready, loading) => { isReady = ready && loading === 0; });
    // Controls of a viewer move the camera before a frame: this comes after them.
    app.on('prerender', () => {
        if (!shot) return;
        const pose = app.root.getWorldTransform().clone();
        pose.data.set(shot.pose);
        camera.entity.setPosition(...shot.pose.slice(12, 15));
        camera.entity.setRotation(camera.entity.getRotation().clone().setFromMat4(pose));
    });
    return {
        aim: (to) => { shot = to; isReady = false; },
        draw: (read) => new Promise((done) => { app.renderNextFrame = true; app.once('frameend', () => done(read())); }),
        idle: () => isReady,
        count,
    };
}
