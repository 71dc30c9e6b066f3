// compare -- the photo of a camera, kiln-render's picture or the heat map of its tiles, laid over the scene where one looks through that camera.
import { element } from './ui.js';

const TILE = 16; // pixels of a tile's side, which is a pixel of the heat map
const LAYERS = [['none', 'Scene', null], ['photo', 'Photo', 'jpg'], ['picture', 'Rendered picture', 'jpg'], ['heat', 'Heat of the tiles', 'webp']];

export class Compare {
    // fail(sentence)
    constructor(view, frame, fail) {
        Object.assign(this, { view, fail, camera: null, wanted: 'none' });
        this.image = element('img', { alt: '', hidden: true, onload: () => this.tell(''), onerror: () => this.tell(`The ${this.wanted} of camera '${this.camera?.name}' cannot be loaded`) });
        this.edge = element('div', { className: 'edge', hidden: true });
        frame.stage.append(this.image, this.edge);
        this.image.className = 'layer';
        this.choices = Object.fromEntries(LAYERS.map(([key, label]) => [key, element('input', { type: 'radio', name: 'layer', value: key, checked: key === 'none', onchange: () => this.choose(key) })]));
        const range = (label, value) => {
            const input = element('input', { type: 'range', min: 0, max: 100, value, oninput: () => this.place() });
            return [input, element('label', { className: 'range' }, label, input)];
        };
        const [wipe, wipeLabel] = range('Part shown', 50), [opacity, opacityLabel] = range('Opacity', 100);
        Object.assign(this, { wipe, opacity });
        this.sliders = element('div', { hidden: true }, wipeLabel, opacityLabel);
        this.box = element('fieldset', { hidden: true }, element('legend', { textContent: 'Laid over the scene' }),
            ...LAYERS.map(([key, label]) => element('label', { className: 'choice' }, this.choices[key], label)), this.sliders);
        frame.extras.append(this.box);
        view.drawn.push(() => this.place());
    }

    // Says what is wrong with the picture; '': nothing any more.
    tell(why) {
        if (why || this.failed) this.fail(why);
        this.failed = Boolean(why);
        this.place();
    }

    // The camera through which one looks; null: the camera was moved. version: of the bake, whose pictures may have been drawn again since.
    setCamera(camera, version = this.version) {
        Object.assign(this, { camera, version });
        this.box.hidden = !camera;
        if (camera) for (const [key, , suffix] of LAYERS) if (suffix) this.choices[key].parentElement.hidden = !camera[key];
        const has = camera && (this.wanted === 'none' || camera[this.wanted]);
        this.show(has ? this.wanted : 'none');
    }

    choose(key) {
        this.wanted = key;
        this.show(key);
    }

    show(key) {
        const suffix = LAYERS.find(([name]) => name === key)[2], address = suffix && this.camera ? `${key}/${this.camera.key}.${suffix}${key === 'photo' ? '' : `?${this.version}`}` : '';
        this.choices[key].checked = true;
        this.sliders.hidden = !address;
        this.image.hidden = this.edge.hidden = !address;
        this.image.classList.toggle('pixels', key === 'heat');
        this.image.alt = address ? `${LAYERS.find(([name]) => name === key)[1]} of camera ${this.camera.name}` : '';
        if (!address) this.tell('');
        else if (this.failed || this.image.getAttribute('src') !== address) this.image.src = address;
        this.place();
    }

    place() {
        if (this.image.hidden) return;
        const { left, top, width, height } = this.view.frame(), part = this.wipe.value / 100, { naturalWidth, naturalHeight } = this.image;
        // The last tiles of a row and of a column may reach beyond the picture.
        const isHeat = this.image.classList.contains('pixels') && this.image.complete && naturalWidth > 0;
        const whole = isHeat ? { width: width * naturalWidth * TILE / this.camera.width, height: height * naturalHeight * TILE / this.camera.height } : { width, height };
        Object.assign(this.image.style, { left: `${left}px`, top: `${top}px`, width: `${whole.width}px`, height: `${whole.height}px`, opacity: this.opacity.value / 100, clipPath: `inset(0 ${whole.width - part * width}px ${whole.height - height}px 0)` });
        Object.assign(this.edge.style, { left: `${left + part * width}px`, top: `${top}px`, height: `${height}px` });
        this.edge.hidden = part === 0 || part === 1;
    }
}
