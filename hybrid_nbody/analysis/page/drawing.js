// Drawing: WebGL where there is one, else a plain canvas; both draw the same lists. Axes and the scale lie over them.

const canvas = document.getElementById("view");
const over = document.getElementById("over");

// ---- WebGL ---------------------------------------------------------------------------------------------------------

const VERTEX = `
  attribute vec3 position, colour, normal;
  uniform vec4 angles;  // cos and sin of yaw, cos and sin of pitch
  uniform vec4 lens;    // zoom, aspect, size of a point, whether z is up
  uniform vec2 shift;
  varying vec3 tint;
  vec3 turned(vec3 p) {
    vec3 up = lens.w > 0.5 ? vec3(p.x, p.z, -p.y) : p;
    float x = angles.x * up.x + angles.y * up.z, z = -angles.y * up.x + angles.x * up.z;
    return vec3(x, angles.z * up.y - angles.w * z, angles.w * up.y + angles.z * z);
  }
  void main() {
    vec3 p = turned(position), n = turned(normal);
    float depth = ${DISTANCE.toFixed(3)} - p.z;
    vec2 flat_ = (p.xy * ${FOCUS.toFixed(3)} * lens.x + shift * depth) / vec2(lens.y, 1.0);
    gl_Position = vec4(flat_, -0.4 * p.z * depth, depth);
    gl_PointSize = max(1.0, lens.z * lens.x * ${DISTANCE.toFixed(3)} / depth);
    float light = length(normal) > 0.1 ? 0.35 + 0.65 * abs(dot(n, normalize(vec3(0.4, 0.5, 0.8)))) : 1.0;
    tint = colour * light;
  }`;
const FRAGMENT = "precision mediump float; varying vec3 tint; void main() { gl_FragColor = vec4(tint, 1.0); }";

function program(gl) {
  const made = gl.createProgram();
  for (const [type, source] of [[gl.VERTEX_SHADER, VERTEX], [gl.FRAGMENT_SHADER, FRAGMENT]]) {
    const shader = gl.createShader(type);
    gl.shaderSource(shader, source);
    gl.compileShader(shader);
    gl.attachShader(made, shader);
  }
  gl.linkProgram(made);
  return gl.getProgramParameter(made, gl.LINK_STATUS) ? made : null;
}

function webglRenderer() {
  const gl = window.WebGLRenderingContext && canvas.getContext("webgl", { preserveDrawingBuffer: true });  // so that it can be saved
  const linked = gl && program(gl);
  if (!linked) return null;
  gl.useProgram(linked);
  gl.enable(gl.DEPTH_TEST);
  const buffers = { position: gl.createBuffer(), colour: gl.createBuffer(), normal: gl.createBuffer() };
  const uniform = (name) => gl.getUniformLocation(linked, name);
  const zeros = (values) => new Float32Array(values.length);

  function fill(name, values) {
    const where = gl.getAttribLocation(linked, name);
    gl.bindBuffer(gl.ARRAY_BUFFER, buffers[name]);
    gl.bufferData(gl.ARRAY_BUFFER, new Float32Array(values), gl.DYNAMIC_DRAW);
    gl.enableVertexAttribArray(where);
    gl.vertexAttribPointer(where, 3, gl.FLOAT, false, 0, 0);
  }

  function batch(mode, positions, colours, normals) {
    fill("position", positions);
    fill("colour", colours);
    fill("normal", normals);
    gl.drawArrays(mode, 0, positions.length / 3);
  }

  return function () {
    gl.viewport(0, 0, canvas.width, canvas.height);
    gl.clearColor(...paper(), 1);
    gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
    const angles = [Math.cos(state.yaw), Math.sin(state.yaw), Math.cos(state.pitch), Math.sin(state.pitch)];
    gl.uniform4f(uniform("angles"), ...angles);
    const size = scene.size * canvas.height / 560, aspect = canvas.width / canvas.height;
    gl.uniform4f(uniform("lens"), state.zoom * fit(), aspect, size, hasPoints() ? 1 : 0);
    gl.uniform2f(uniform("shift"), state.x, state.y);
    batch(gl.LINES, box, box.map(() => 0.6), zeros(box));
    const { positions, colours, normals } = shape(state.frame);
    batch(normals ? gl.TRIANGLES : gl.POINTS, positions, colours, normals || zeros(positions));
    if (state.trails) {
      const paths = trails(state.frame);
      batch(gl.LINES, paths.positions, paths.colours, zeros(paths.positions));
    }
  };
}

// ---- a plain canvas: what is far is drawn first --------------------------------------------------------------------

function canvasRenderer() {
  const pen = canvas.getContext("2d");

  function lines(positions, style) {
    for (let i = 0; i < positions.length; i += 6) {
      pen.strokeStyle = style(i);
      pen.beginPath();
      pen.moveTo(...pixel(positions.slice(i, i + 3)).slice(0, 2));
      pen.lineTo(...pixel(positions.slice(i + 3, i + 6)).slice(0, 2));
      pen.stroke();
    }
  }

  function points({ positions, colours }) {
    const list = [];
    for (let i = 0; i < positions.length; i += 3) list.push([pixel(positions.slice(i, i + 3)), colours.slice(i, i + 3)]);
    list.sort((a, b) => a[0][2] - b[0][2]);
    for (const [[x, y, z], colour] of list) {
      const size = Math.max(1, scene.size * state.zoom * fit() * DISTANCE / (DISTANCE - z) * canvas.height / 560);
      pen.fillStyle = css(colour);
      pen.fillRect(x - size / 2, y - size / 2, size, size);
    }
  }

  function triangles({ positions, colours, normals }) {
    const list = [], sun = unit([0.4, 0.5, 0.8]);
    for (let i = 0; i < positions.length; i += 9) {
      const corners = [0, 3, 6].map((k) => pixel(positions.slice(i + k, i + k + 3)));
      const normal = turn(normals.slice(i, i + 3));
      const light = 0.35 + 0.65 * Math.abs(normal[0] * sun[0] + normal[1] * sun[1] + normal[2] * sun[2]);
      const style = css(colours.slice(i, i + 3).map((value) => value * light));
      list.push([corners[0][2] + corners[1][2] + corners[2][2], corners, style]);
    }
    list.sort((a, b) => a[0] - b[0]);
    for (const [, corners, style] of list) {
      pen.fillStyle = pen.strokeStyle = style;
      pen.beginPath();
      for (const [x, y] of corners) pen.lineTo(x, y);
      pen.closePath();
      pen.fill();
      pen.stroke();
    }
  }

  return function () {
    pen.fillStyle = css(paper());
    pen.fillRect(0, 0, canvas.width, canvas.height);
    lines(box, () => "#999");
    if (state.trails) {
      const paths = trails(state.frame);
      lines(paths.positions, (i) => css(paths.colours.slice(i, i + 3)));
    }
    (hasPoints() ? points : triangles)(shape(state.frame));
  };
}

// ---- axes and the scale --------------------------------------------------------------------------------------------

// 1, 2 or 5 times a power of ten: the largest up to `most`, or the smallest from `least` on.
function roundDown(most) {
  const power = 10 ** Math.floor(Math.log10(most));
  return [5, 2, 1].find((step) => step * power <= most * (1 + 1e-9)) * power;
}

function roundUp(least) {
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].find((step) => step * power >= least * (1 - 1e-9)) * power;
}

function words(value, step) {
  const near = Math.abs(value) < step / 1e6 ? 0 : Number(value.toPrecision(6));
  const size = Math.abs(near);
  return size && (size < 1e-3 || size >= 1e5) ? near.toExponential().replace("e+", "e") : String(near);
}

const withUnits = (text, units) => units ? `${text} (${units})` : text;

// The ends of the edge along an axis that is at the left of the picture, or at its bottom.
function edgeOf(axis) {
  const vertical = axis === (hasPoints() ? 2 : 1);
  const score = ([a, b]) => vertical ? -(a[0] + b[0]) : a[1] + b[1];
  let best = null, most = -Infinity;
  for (let i = 0; i < 4; i++) {
    const at = axis * 24 + i * 6, ends = [box.slice(at, at + 3), box.slice(at + 3, at + 6)];
    const found = score(ends.map(pixel));
    if (found > most) { most = found; best = ends; }
  }
  return best;
}

function drawAxis(pen, axis, density) {
  const [from, to] = edgeOf(axis), [a, b] = [pixel(from), pixel(to)];
  const length = Math.hypot(b[0] - a[0], b[1] - a[1]);
  if (length < 50 * density) return 0;
  const middle = pixel([0, 0, 0]), centre = [(a[0] + b[0]) / 2, (a[1] + b[1]) / 2];
  const across = unit([b[1] - a[1], a[0] - b[0]]);
  const side = across[0] * (centre[0] - middle[0]) + across[1] * (centre[1] - middle[1]) < 0 ? -1 : 1;
  const place = (p, far) => [p[0] + side * across[0] * far * density, p[1] + side * across[1] * far * density];
  const extent = scene.box[axis] * scene.scale, step = roundUp(extent / clamp(length / density / 36, 2, 6));
  const first = Math.ceil(scene.origin[axis] / step - 1e-9) * step;
  let ticks = 0;
  for (let value = first; value <= scene.origin[axis] + extent + step / 1e6; value += step) {
    const share = (value - scene.origin[axis]) / extent;
    const at = pixel(from.map((start, k) => start + share * (to[k] - start)));
    pen.beginPath(); pen.moveTo(at[0], at[1]); pen.lineTo(...place(at, 5)); pen.stroke();
    pen.fillText(words(value, step), ...place(at, 16));
    ticks++;
  }
  pen.fillText(withUnits("xyz"[axis], scene.units), ...place(centre, 36));
  return ticks;
}

function drawScale(pen, density) {
  const perUnit = FOCUS * state.zoom * fit() / DISTANCE * canvas.height / 2 / scene.scale;
  const length = roundDown(110 * density / perUnit), wide = length * perUnit;
  const [left, low] = [14 * density, canvas.height - 14 * density];
  pen.beginPath();
  pen.moveTo(left, low - 5 * density); pen.lineTo(left, low); pen.lineTo(left + wide, low); pen.lineTo(left + wide, low - 5 * density);
  pen.stroke();
  pen.fillText(`${words(length, length)} ${scene.units}`, left + wide / 2, low - 10 * density);
  return length;
}

function drawOver(density) {
  const pen = over.getContext("2d");
  pen.clearRect(0, 0, over.width, over.height);
  pen.fillStyle = pen.strokeStyle = css(ink());
  pen.lineWidth = density;
  pen.font = `${12 * density}px system-ui, sans-serif`;
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  const ticks = [0, 1, 2].reduce((sum, axis) => sum + drawAxis(pen, axis, density), 0);
  Object.assign(canvas.dataset, { ticks, scale: drawScale(pen, density) });
}
