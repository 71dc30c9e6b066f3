// main -- one bundle, two pages: what is in the document says which.
import { openScene } from './scene_page.js';

const root = document.getElementById('viewer');
if (document.getElementById('scene')) openScene(root);
