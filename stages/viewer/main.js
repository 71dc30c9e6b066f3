// main -- one bundle, two pages: one with a scene inside, and that of kiln-serve, which loads it.
import { openScene } from './scene_page.js';
import { openServed } from './serve_page.js';

(document.getElementById('scene') ? openScene : openServed)(document.getElementById('viewer'));
