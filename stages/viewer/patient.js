// patient -- asks the server, and again where it is busy. Throws a sentence about any other answer that is not what was asked for.

const BUSY = 503, TRIES = 20, PAUSE_MS = 1000;

export async function ask(name, options = {}) {
    for (let tries = 1; ; tries++) {
        const answer = await fetch(name, options);
        if (answer.ok) return answer;
        if (answer.status !== BUSY || tries === TRIES) throw new Error(`${(await answer.text()).trim() || name} (kiln-serve, ${answer.status})`);
        await new Promise((done) => setTimeout(done, PAUSE_MS));
        options.signal?.throwIfAborted();
    }
}
