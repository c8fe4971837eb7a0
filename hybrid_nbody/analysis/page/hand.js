// The hand: mouse, fingers and keys turn, move and enlarge the view, and choose the frame.

const slider = document.getElementById("frame");
const clock = document.getElementById("clock");
const play = document.getElementById("play");
const trailsButton = document.getElementById("trails");
const webgl = webglRenderer();
const render = webgl || canvasRenderer();
let waiting = false, timer = null;

function draw() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => { waiting = false; drawNow(); });
}

function drawNow() {
  const density = window.devicePixelRatio || 1;
  const [width, height] = [canvas.clientWidth, canvas.clientHeight].map((side) => Math.round(side * density));
  for (const one of [canvas, over]) if (one.width !== width || one.height !== height) { one.width = width; one.height = height; }
  render();
  drawOver(density);
  clock.textContent = `time ${Number(scene.times[state.frame].toPrecision(4))}${scene.time_units ? ` ${scene.time_units}` : ""}`;
  const drawn = shape(state.frame).positions.length / (hasPoints() ? 3 : 9);
  Object.assign(canvas.dataset, { renderer: webgl ? "webgl" : "canvas", drawn, frame: state.frame, trails: state.trails });
  for (const name of ["yaw", "pitch", "zoom", "x", "y"]) canvas.dataset[name] = state[name].toFixed(3);
}

// ---- mouse and fingers ---------------------------------------------------------------------------------------------

const held = new Map();  // by the id of a pointer: where it is

function rotate(across, down) {
  state.yaw += across;
  state.pitch = clamp(state.pitch + down, -1.57, 1.57);
}

function move(across, down) {
  state.x += across;
  state.y -= down;
}

function enlarge(factor, at = [canvas.clientWidth / 2, canvas.clientHeight / 2]) {
  const zoom = clamp(state.zoom * factor, 0.3, 20), by = zoom / state.zoom, half = canvas.clientHeight / 2;
  const [x, y] = [(at[0] - canvas.clientWidth / 2) / half, (canvas.clientHeight / 2 - at[1]) / half];
  state.x = x - (x - state.x) * by;  // what is below the hand stays there
  state.y = y - (y - state.y) * by;
  state.zoom = zoom;
}

function reset() { Object.assign(state, START); }

function pinch(before, after) {
  const span = ([a, b]) => Math.hypot(a[0] - b[0], a[1] - b[1]) || 1;
  const middle = ([a, b]) => [(a[0] + b[0]) / 2, (a[1] + b[1]) / 2];
  const [from, to, frame] = [middle(before), middle(after), canvas.getBoundingClientRect()];
  const half = canvas.clientHeight / 2;
  move((to[0] - from[0]) / half, (to[1] - from[1]) / half);
  enlarge(span(after) / span(before), [to[0] - frame.left, to[1] - frame.top]);
}

canvas.addEventListener("pointerdown", (event) => {
  if (held.size < 2) held.set(event.pointerId, [event.clientX, event.clientY]);
});
for (const end of ["pointerup", "pointercancel"]) window.addEventListener(end, (event) => held.delete(event.pointerId));
window.addEventListener("pointermove", (event) => {
  const last = held.get(event.pointerId), now = [event.clientX, event.clientY];
  if (!last) return;
  const before = [...held.values()];
  held.set(event.pointerId, now);
  const [across, down] = [now[0] - last[0], now[1] - last[1]], half = canvas.clientHeight / 2;
  if (held.size === 2) pinch(before, [...held.values()]);
  else if (event.shiftKey || event.buttons & 6) move(across / half, down / half);
  else rotate(across / 150, down / 150);
  draw();
});
canvas.addEventListener("contextmenu", (event) => event.preventDefault());
canvas.addEventListener("wheel", (event) => {
  event.preventDefault();
  enlarge(Math.exp(-event.deltaY / 600), [event.offsetX, event.offsetY]);
  draw();
}, { passive: false });
canvas.addEventListener("dblclick", () => { reset(); draw(); });

// ---- frames --------------------------------------------------------------------------------------------------------

function show(frame) {
  state.frame = clamp(frame, 0, scene.times.length - 1);
  slider.value = state.frame;
  draw();
}

function fitSlider() {
  slider.max = scene.times.length - 1;
  slider.value = state.frame;
}

function togglePlay() {
  if (timer) { clearInterval(timer); timer = null; play.textContent = "Play"; return; }
  play.textContent = "Stop";
  timer = setInterval(() => show((state.frame + 1) % scene.times.length), 120);
}

function toggleTrails() {
  state.trails = scene.trail > 0 && !state.trails;
  trailsButton.setAttribute("aria-pressed", state.trails);
  draw();
}

slider.addEventListener("input", () => show(Number(slider.value)));
play.addEventListener("click", togglePlay);
trailsButton.addEventListener("click", toggleTrails);

// ---- keys ----------------------------------------------------------------------------------------------------------

const KEYS = {
  ArrowLeft: (shift) => shift ? move(-0.1, 0) : rotate(-0.1, 0),
  ArrowRight: (shift) => shift ? move(0.1, 0) : rotate(0.1, 0),
  ArrowUp: (shift) => shift ? move(0, -0.1) : rotate(0, -0.1),
  ArrowDown: (shift) => shift ? move(0, 0.1) : rotate(0, 0.1),
  "+": () => enlarge(1.2),
  "=": () => enlarge(1.2),
  "-": () => enlarge(1 / 1.2),
  "0": reset,
  t: toggleTrails,
  " ": togglePlay,
  ",": () => show(state.frame - 1),
  ".": () => show(state.frame + 1),
  Home: () => show(0),
  End: () => show(scene.times.length - 1),
};
canvas.addEventListener("keydown", (event) => {
  const act = KEYS[event.key];
  if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  act(event.shiftKey);
  draw();
});

// ---- the legend ----------------------------------------------------------------------------------------------------

function showLegend() {
  const list = document.getElementById("legend");
  list.replaceChildren(...scene.legend.map(([name, colour]) => {
    const entry = document.createElement("li"), dot = document.createElement("span");
    dot.className = "dot";
    dot.style.background = css(tone(colour));
    entry.append(dot, name);
    return entry;
  }));
}

// ---- the beginning -------------------------------------------------------------------------------------------------

function showAgain() {  // after a change of the style
  shapes = new Map();
  showLegend();
  draw();
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", showAgain);
window.addEventListener("resize", draw);
trailsButton.hidden = !scene.trail;
trailsButton.setAttribute("aria-pressed", state.trails);
fitSlider();
showLegend();
drawNow();
