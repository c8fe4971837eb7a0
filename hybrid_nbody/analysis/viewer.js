// The view in space of a report: drag to turn, wheel to zoom, a slider for the frame. WebGL where there is one, else a
// plain canvas. Both draw the same list of points or triangles, so that either can be compared with the other.
"use strict";
(function () {
  const scene = JSON.parse(document.getElementById("scene").textContent);
  const canvas = document.getElementById("view");
  const slider = document.getElementById("frame");
  const clock = document.getElementById("clock");
  const NOWHERE = 65535, STEPS = 65534;
  const state = { yaw: 0.6, pitch: 0.35, zoom: 1, frame: scene.times.length - 1 };

  // ---- data --------------------------------------------------------------------------------------------------------

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
      colours.push(...scene.colours[i / 3]);
    }
    return { positions, colours, normals: null };
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

  const minus = (a, b) => [a[0] - b[0], a[1] - b[1], a[2] - b[2]];
  const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
  const unit = (a) => { const length = Math.hypot(...a) || 1; return a.map((value) => value / length); };

  const shapes = new Map();
  function shape(frame) {
    if (!shapes.has(frame)) {
      shapes.set(frame, (scene.geometry === "points" ? pointsOf : surfaceOf)(scene.frames[frame]));
    }
    return shapes.get(frame);
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
  const box = boxLines();

  // ---- the way into the picture: turn about the vertical axis, tilt, then perspective ------------------------------
  // Of bodies z points up, of a fluid y does, as in the other pictures.

  function turn(p) {
    const up = scene.geometry === "points" ? [p[0], p[2], -p[1]] : p;
    const [cy, sy, cp, sp] = [Math.cos(state.yaw), Math.sin(state.yaw), Math.cos(state.pitch), Math.sin(state.pitch)];
    const x = cy * up[0] + sy * up[2], z = -sy * up[0] + cy * up[2];
    return [x, cp * up[1] - sp * z, sp * up[1] + cp * z];
  }

  const DISTANCE = 3.2, FOCUS = 3.4;

  function project(p) {
    const [x, y, z] = turn(p), scale = FOCUS * state.zoom / (DISTANCE - z);
    return [x * scale, y * scale, z];
  }

  // ---- WebGL -------------------------------------------------------------------------------------------------------

  const VERTEX = `
    attribute vec3 position, colour, normal;
    uniform vec4 angles;  // cos and sin of yaw, cos and sin of pitch
    uniform vec4 lens;    // zoom, aspect, size of a point, whether z is up
    varying vec3 tint;
    vec3 turned(vec3 p) {
      vec3 up = lens.w > 0.5 ? vec3(p.x, p.z, -p.y) : p;
      float x = angles.x * up.x + angles.y * up.z, z = -angles.y * up.x + angles.x * up.z;
      return vec3(x, angles.z * up.y - angles.w * z, angles.w * up.y + angles.z * z);
    }
    void main() {
      vec3 p = turned(position), n = turned(normal);
      float depth = ${DISTANCE.toFixed(3)} - p.z;
      gl_Position = vec4(p.xy * ${FOCUS.toFixed(3)} * lens.x / vec2(lens.y, 1.0), -0.4 * p.z * depth, depth);
      gl_PointSize = lens.z * lens.x * ${DISTANCE.toFixed(3)} / depth;
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
    gl.clearColor(1, 1, 1, 1);
    const buffers = { position: gl.createBuffer(), colour: gl.createBuffer(), normal: gl.createBuffer() };

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
      gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
      const { yaw, pitch, zoom } = state, up = scene.geometry === "points" ? 1 : 0;
      const angles = [Math.cos(yaw), Math.sin(yaw), Math.cos(pitch), Math.sin(pitch)];
      gl.uniform4f(gl.getUniformLocation(linked, "angles"), ...angles);
      const size = scene.size * canvas.height / 560;
      gl.uniform4f(gl.getUniformLocation(linked, "lens"), zoom, canvas.width / canvas.height, size, up);
      const zeros = (values) => new Float32Array(values.length);
      batch(gl.LINES, box, box.map(() => 0.6), zeros(box));
      const { positions, colours, normals } = shape(state.frame);
      batch(normals ? gl.TRIANGLES : gl.POINTS, positions, colours, normals || zeros(positions));
    };
  }

  // ---- a plain canvas: what is far is drawn first ------------------------------------------------------------------

  function canvasRenderer() {
    const pen = canvas.getContext("2d");
    const pixel = (p) => {
      const [x, y, z] = project(p), unit = canvas.height / 2;
      return [canvas.width / 2 + x * unit, canvas.height / 2 - y * unit, z];
    };
    const tint = (colour, light) => `rgb(${colour.map((value) => Math.round(255 * value * light)).join(",")})`;

    function lines() {
      pen.strokeStyle = "#999";
      pen.beginPath();
      for (let i = 0; i < box.length; i += 6) {
        pen.moveTo(...pixel(box.slice(i, i + 3)).slice(0, 2));
        pen.lineTo(...pixel(box.slice(i + 3, i + 6)).slice(0, 2));
      }
      pen.stroke();
    }

    function points({ positions, colours }) {
      const list = [];
      for (let i = 0; i < positions.length; i += 3) list.push([pixel(positions.slice(i, i + 3)), colours.slice(i, i + 3)]);
      list.sort((a, b) => a[0][2] - b[0][2]);
      for (const [[x, y, z], colour] of list) {
        const size = scene.size * state.zoom * DISTANCE / (DISTANCE - z) * canvas.height / 560;
        pen.fillStyle = tint(colour, 1);
        pen.fillRect(x - size / 2, y - size / 2, size, size);
      }
    }

    function triangles({ positions, colours, normals }) {
      const list = [], sun = unit([0.4, 0.5, 0.8]);
      for (let i = 0; i < positions.length; i += 9) {
        const corners = [0, 3, 6].map((k) => pixel(positions.slice(i + k, i + k + 3)));
        const normal = turn(normals.slice(i, i + 3));
        const light = 0.35 + 0.65 * Math.abs(normal[0] * sun[0] + normal[1] * sun[1] + normal[2] * sun[2]);
        list.push([corners[0][2] + corners[1][2] + corners[2][2], corners, tint(colours.slice(i, i + 3), light)]);
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
      pen.fillStyle = "#fff";
      pen.fillRect(0, 0, canvas.width, canvas.height);
      lines();
      (scene.geometry === "points" ? points : triangles)(shape(state.frame));
    };
  }

  // ---- the hand ----------------------------------------------------------------------------------------------------

  const webgl = webglRenderer();
  const render = webgl || canvasRenderer();
  let waiting = false;

  function draw() {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; drawNow(); });
  }

  function drawNow() {
    const density = window.devicePixelRatio || 1;
    const [width, height] = [canvas.clientWidth, canvas.clientHeight].map((side) => Math.round(side * density));
    if (canvas.width !== width || canvas.height !== height) { canvas.width = width; canvas.height = height; }
    render();
    clock.textContent = "time " + Number(scene.times[state.frame].toPrecision(4));
    const drawn = shape(state.frame).positions.length / (scene.geometry === "points" ? 3 : 9);
    Object.assign(canvas.dataset, { renderer: webgl ? "webgl" : "canvas", drawn, frame: state.frame });
    Object.assign(canvas.dataset, { yaw: state.yaw.toFixed(3), pitch: state.pitch.toFixed(3) });
    canvas.dataset.zoom = state.zoom.toFixed(3);
  }

  const clamp = (value, low, high) => Math.min(high, Math.max(low, value));
  let held = null;
  canvas.addEventListener("pointerdown", (event) => { held = [event.clientX, event.clientY]; });
  window.addEventListener("pointerup", () => { held = null; });
  window.addEventListener("pointermove", (event) => {
    if (!held) return;
    state.yaw += (event.clientX - held[0]) / 150;
    state.pitch = clamp(state.pitch + (event.clientY - held[1]) / 150, -1.57, 1.57);
    held = [event.clientX, event.clientY];
    draw();
  });
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    state.zoom = clamp(state.zoom * Math.exp(-event.deltaY / 600), 0.3, 20);
    draw();
  }, { passive: false });
  canvas.addEventListener("dblclick", () => { Object.assign(state, { yaw: 0.6, pitch: 0.35, zoom: 1 }); draw(); });

  slider.max = scene.times.length - 1;
  slider.value = state.frame;
  slider.addEventListener("input", () => { state.frame = Number(slider.value); draw(); });
  let timer = null;
  const play = document.getElementById("play");
  play.addEventListener("click", () => {
    if (timer) { clearInterval(timer); timer = null; play.textContent = "Play"; return; }
    play.textContent = "Stop";
    timer = setInterval(() => {
      state.frame = (state.frame + 1) % scene.times.length;
      slider.value = state.frame;
      draw();
    }, 120);
  });
  window.addEventListener("resize", draw);
  drawNow();
})();
