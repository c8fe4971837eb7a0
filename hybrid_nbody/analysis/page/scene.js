// The scene of the view in space: what its data hold, as points, triangles and lines, and the way into the picture.

const NOWHERE = 65535, STEPS = 65534;
const START = { yaw: 0.6, pitch: 0.35, zoom: 1, x: 0, y: 0 };
let scene = JSON.parse(document.getElementById("scene").textContent);
const state = { ...START, frame: scene.times.length - 1, trails: scene.trail > 0 && scene.trails };
let shapes = new Map();

const minus = (a, b) => [a[0] - b[0], a[1] - b[1], a[2] - b[2]];
const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
const unit = (a) => { const length = Math.hypot(...a) || 1; return a.map((value) => value / length); };
const clamp = (value, low, high) => Math.min(high, Math.max(low, value));
const hasPoints = () => scene.geometry === "points";

function replaceScene(next) {
  const atEnd = state.frame === scene.times.length - 1;
  scene = next;
  shapes = new Map();
  box = boxLines();
  state.frame = atEnd ? scene.times.length - 1 : Math.min(state.frame, scene.times.length - 1);
}

// ---- data ----------------------------------------------------------------------------------------------------------

function numbers(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  return new Uint16Array(bytes.buffer);
}

function position(raw, at) {
  return [0, 1, 2].map((axis) => raw[at + axis] / STEPS - scene.box[axis] / 2);
}

function pointsOf(text) {
  const raw = numbers(text), positions = [], colours = [];
  for (let i = 0; i < raw.length; i += 3) {
    if (raw[i] === NOWHERE) continue;
    positions.push(...position(raw, i));
    colours.push(...tone(scene.colours[i / 3]));
  }
  return { raw, positions, colours, normals: null };
}

function surfaceOf([vertexText, triangleText]) {
  const raw = numbers(vertexText), corners = numbers(triangleText);
  const vertices = [], sums = [];
  for (let i = 0; i < raw.length; i += 3) { vertices.push(position(raw, i)); sums.push([0, 0, 0]); }
  for (let i = 0; i < corners.length; i += 3) {
    const [a, b, c] = [vertices[corners[i]], vertices[corners[i + 1]], vertices[corners[i + 2]]];
    const normal = cross(minus(b, a), minus(c, a));
    for (let k = 0; k < 3; k++) for (let axis = 0; axis < 3; axis++) sums[corners[i + k]][axis] += normal[axis];
  }
  const normals = sums.map(unit), positions = [], all = [], colours = [];
  for (const corner of corners) {
    positions.push(...vertices[corner]);
    all.push(...normals[corner]);
    colours.push(0.36, 0.56, 0.75);
  }
  return { positions, colours, normals: all };
}

function shape(frame) {
  if (!shapes.has(frame)) shapes.set(frame, (hasPoints() ? pointsOf : surfaceOf)(scene.frames[frame]));
  return shapes.get(frame);
}

// The last parts of the paths as pairs of ends, which fade into the paper.
function trails(frame) {
  const positions = [], colours = [], ground = paper();
  for (let age = 0; age < scene.trail && frame - age > 0; age++) {
    const [from, to] = [shape(frame - age - 1).raw, shape(frame - age).raw], left = 1 - age / scene.trail;
    for (let i = 0; i < to.length; i += 3) {
      if (from[i] === NOWHERE || to[i] === NOWHERE) continue;
      positions.push(...position(from, i), ...position(to, i));
      const colour = tone(scene.colours[i / 3]).map((value, k) => ground[k] + (value - ground[k]) * left);
      colours.push(...colour, ...colour);
    }
  }
  return { positions, colours };
}

function boxLines() {
  const half = scene.box.map((edge) => edge / 2), lines = [];
  for (let axis = 0; axis < 3; axis++) {
    const [b, c] = [(axis + 1) % 3, (axis + 2) % 3];
    for (const u of [-1, 1]) for (const v of [-1, 1]) for (const end of [-1, 1]) {
      const point = [0, 0, 0];
      point[axis] = end * half[axis]; point[b] = u * half[b]; point[c] = v * half[c];
      lines.push(...point);
    }
  }
  return lines;
}
let box = boxLines();

// ---- colours: of the page's style, light or dark ---------------------------------------------------------------------

function styled(name) {
  const text = getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  return [1, 3, 5].map((at) => parseInt(text.slice(at, at + 2), 16) / 255);
}
const paper = () => styled("--paper");
const ink = () => styled("--ink");
const isDark = () => matchMedia("(prefers-color-scheme: dark)").matches;
const tone = (colour) => isDark() ? colour.map((value) => 0.25 + 0.75 * value) : colour;
const css = (colour) => `rgb(${colour.map((value) => Math.round(255 * value)).join(",")})`;

// ---- the way into the picture: turn about the vertical axis, tilt, then perspective ----------------------------------
// Of bodies z points up, of a fluid y does, as in the other pictures.

const DISTANCE = 3.2, FOCUS = 3.4;
const fit = () => Math.min(1, canvas.width / canvas.height);

function turn(p) {
  const up = hasPoints() ? [p[0], p[2], -p[1]] : p;
  const [cy, sy, cp, sp] = [Math.cos(state.yaw), Math.sin(state.yaw), Math.cos(state.pitch), Math.sin(state.pitch)];
  const x = cy * up[0] + sy * up[2], z = -sy * up[0] + cy * up[2];
  return [x, cp * up[1] - sp * z, sp * up[1] + cp * z];
}

// Pixels from the left and from the top, and what is near is large.
function pixel(p) {
  const [x, y, z] = turn(p), scale = FOCUS * state.zoom * fit() / (DISTANCE - z), half = canvas.height / 2;
  return [canvas.width / 2 + (x * scale + state.x) * half, half - (y * scale + state.y) * half, z];
}
