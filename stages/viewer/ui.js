// ui -- what both pages have around the canvas: heading, list of cameras, help, messages. Texts of the scene are only ever text nodes.

export function element(tag, properties = {}, ...children) {
    const node = document.createElement(tag);
    for (const [key, value] of Object.entries(properties)) {
        if (key.startsWith('on')) node.addEventListener(key.slice(2), value);
        else if (key in node && key !== 'list') node[key] = value;
        else node.setAttribute(key, value);
    }
    node.append(...children);
    return node;
}

export const count = (n) => n.toLocaleString('en');

const KEYS = [
    ['Drag', 'circle around the scene; in look mode, look around'],
    ['Right button, Shift and drag, two fingers', 'move sideways'],
    ['Wheel, pinch', 'nearer and farther'],
    ['Arrow keys', 'circle, or look around'],
    ['W A S D, Q E', 'fly forward, left, back, right, down, up; faster with Shift'],
    ['[ and ]', 'the camera before and after'],
    ['Home', 'the first view'],
    ['L', 'look mode: turn where you stand'],
    ['C', 'the list of cameras'],
    ['?', 'this help'],
];

// Where fingers are all that moves the camera, on a phone or tablet.
const TOUCHES = [
    ['One finger', 'circle around the scene; in look mode, look around'],
    ['Two fingers', 'move sideways'],
    ['Pinch', 'nearer and farther'],
    ['Look', 'look mode: turn where you stand'],
    ['Cameras', 'the list of cameras'],
];
const hasFingersOnly = () => matchMedia('(pointer: coarse)').matches && !matchMedia('(any-pointer: fine)').matches;

const ofKey = (key) => (hasFingersOnly() ? '' : ` (${key})`);

const isTyping = (target) => /^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName) && !/^(range|checkbox|radio)$/.test(target.type);

export class Frame {
    // goTo(index): a camera was chosen; home(): the first view; look(on): look mode; keys: more lines for the help, [key, what it does, function].
    constructor(root, { goTo, home, look, keys = [], links = [] }) {
        Object.assign(this, { cameras: [], current: -1, goTo });
        this.canvas = element('canvas', { tabIndex: 0 });
        this.canvas.setAttribute('role', 'img');
        this.title = element('h1');
        this.facts = element('p', { className: 'facts' });
        this.message = element('p', { className: 'message', hidden: true });
        this.message.setAttribute('role', 'status');
        this.lookButton = element('button', { type: 'button', textContent: 'Look', title: `Look mode: turn where you stand${ofKey('L')}`, onclick: () => this.setLook(!this.looking, look) });
        this.lookButton.setAttribute('aria-pressed', 'false');
        this.listButton = element('button', { type: 'button', textContent: 'Cameras', title: `The list of cameras${ofKey('C')}`, onclick: () => this.openList(this.panel.hidden) });
        this.filter = element('input', { type: 'search', placeholder: 'Find a camera', hidden: true, oninput: () => this.showFound() });
        this.filter.setAttribute('aria-label', 'Find a camera');
        this.list = element('ol', { className: 'cameras' });
        this.extras = element('div', { className: 'extras' });
        this.panel = element('aside', { className: 'panel', hidden: true }, this.extras, this.filter, this.list);
        this.panel.setAttribute('aria-label', 'Cameras');
        this.help = element('dialog', { className: 'help' },
            element('h2', { textContent: 'Moving around', tabIndex: -1, autofocus: true }), // on the button the text would be scrolled away
            element('dl', {}, ...(hasFingersOnly() ? TOUCHES : [...KEYS, ...keys]).flatMap(([key, what]) => [element('dt', { textContent: key }), element('dd', { textContent: what })])),
            element('button', { type: 'button', textContent: 'Close', onclick: () => this.help.close() }));
        this.stage = element('main', { className: 'stage' }, this.canvas);
        root.replaceChildren(this.stage,
            element('header', { className: 'bar' }, element('div', { className: 'names' }, this.title, this.facts),
                element('nav', {}, ...links, this.listButton, this.lookButton,
                    element('button', { type: 'button', textContent: '?', title: `Help${ofKey('?')}`, ariaLabel: 'Help', onclick: () => this.help.showModal() }))),
            this.panel, this.message, this.help);
        document.addEventListener('keydown', (e) => {
            if (e.ctrlKey || e.metaKey || e.altKey || isTyping(e.target) || this.help.open) return;
            const act = { ...Object.fromEntries(keys.map(([key, , run]) => [key.toLowerCase(), run])), '?': () => this.help.showModal(), '[': () => this.step(-1), ']': () => this.step(1), Home: home, l: () => this.lookButton.click(), c: () => this.listButton.click() }[e.key.length === 1 ? e.key.toLowerCase() : e.key];
            if (act) e.preventDefault(), act();
        });
    }

    setScene({ name, rows, sh_degree: degree, antialiased }, cameras) {
        this.title.textContent = name || 'Scene';
        document.title = `${this.title.textContent} \u2013 SplatKiln`;
        this.counts = [`${count(rows)} Gaussians`, `SH degree ${degree}`, antialiased ? 'antialiased' : '', cameras.length ? `${count(cameras.length)} camera${cameras.length > 1 ? 's' : ''}` : ''];
        this.showFacts();
        this.canvas.setAttribute('aria-label', `${this.title.textContent}, seen from a camera that you can move`);
        this.listButton.hidden = !cameras.length && !this.extras.children.length;
        this.setCameras(cameras);
    }

    showFacts() {
        this.facts.textContent = [...(this.counts ?? []), this.loading, this.baking].filter(Boolean).join(' \u00b7 ');
    }

    // Behind the counts: how far loading is, which stage bakes; '' takes it away.
    progress(text) {
        this.loading = text;
        this.showFacts();
    }

    stageText(text) {
        this.baking = text;
        this.showFacts();
    }

    setCameras(cameras) {
        this.cameras = cameras;
        this.filter.hidden = cameras.length < 12;
        this.list.replaceChildren(...cameras.map((camera, i) => element('li', {}, element('button', { type: 'button', onclick: () => this.goTo(i) },
            element('span', { className: 'name', textContent: camera.name }), element('span', { className: 'note', textContent: camera.note ?? '' })))));
        this.mark(this.current);
        this.showFound();
    }

    showFound() {
        const wanted = this.filter.value.toLowerCase();
        this.cameras.forEach((camera, i) => { this.list.children[i].hidden = !camera.name.toLowerCase().includes(wanted); });
    }

    // The camera that one looks through; -1: none.
    mark(index) {
        this.list.children[this.current]?.firstChild.removeAttribute('aria-current');
        this.current = index;
        const item = this.list.children[index];
        item?.firstChild.setAttribute('aria-current', 'true');
        if (item && !this.panel.hidden) item.scrollIntoView({ block: 'nearest' });
    }

    step(by) {
        if (this.cameras.length) this.goTo((Math.max(this.current, by > 0 ? -1 : 0) + by + this.cameras.length) % this.cameras.length);
    }

    openList(open) {
        this.panel.hidden = !open || this.listButton.hidden;
        this.listButton.setAttribute('aria-expanded', String(!this.panel.hidden));
        this.mark(this.current);
    }

    setLook(on, tell) {
        this.looking = on;
        this.lookButton.setAttribute('aria-pressed', String(on));
        tell(on);
    }

    // A sentence; '' takes it away.
    say(text, isError = false) {
        this.message.textContent = text;
        this.message.hidden = !text;
        this.message.classList.toggle('error', isError);
    }
}

export const isWide = () => matchMedia('(min-width: 720px)').matches;
