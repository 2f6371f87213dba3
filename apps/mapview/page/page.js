// SPDX-License-Identifier: Apache-2.0
// Puts the page together. What it shows is also told in attributes of <html>, for tests and for
// scripts: data-state (loading, ready, error), data-level, data-shown, data-missing.
import {Camera} from "./camera.js";
import {listen, listenToKeys} from "./gestures.js";
import {Overview} from "./overview.js";
import {Picture} from "./picture.js";
import {Pieces} from "./pieces.js";

const $ = (id) => document.getElementById(id);
const root = document.documentElement;
const number = new Intl.NumberFormat("en");

function notice(text, kind = "warning") {
  const n = $("notice");
  if (n.textContent !== text) n.textContent = text;
  n.dataset.kind = kind;
  n.hidden = text === "";
}

async function readMap() {
  for (let wait = 500;; wait = Math.min(8000, 2 * wait)) {
    try {
      const answer = await fetch("/map.json");
      if (answer.ok) return await answer.json();
      notice((await answer.text()).trim(), "error");
    } catch {
      notice("The server does not answer; trying again …", "error");
    }
    root.dataset.state = "error";
    await new Promise((f) => setTimeout(f, wait));
  }
}

// "#x,y,zoom"; null if it is not that.
function placeInAddress() {
  const parts = location.hash.slice(1).split(",").map(Number);
  return parts.length === 3 && parts.every(Number.isFinite) && parts[2] > 0 ? parts : null;
}

function drawReadout(camera, pointer) {
  // A length of 1, 2 or 5 times a power of ten that is neither short nor long.
  const length = [1, 2, 5, 10].map((n) => n * 10 ** Math.floor(Math.log10(120 / camera.scale))).filter((n) => n * camera.scale <= 120 && n >= 1).at(-1) ?? 1;
  $("bar-text").textContent = `${number.format(length)} px`;
  $("bar").querySelector("i").style.width = `${length * camera.scale}px`;
  const percent = camera.scale * 100;
  $("zoom").textContent = `${percent < 10 ? percent.toPrecision(2) : Math.round(percent)} %`;
  const at = pointer === null ? camera : camera.toMap(pointer.x, pointer.y);
  const inside = at.x >= 0 && at.y >= 0 && at.x < camera.map.width && at.y < camera.map.height;
  $("where").textContent = inside ? `x ${number.format(Math.floor(at.x))}   y ${number.format(Math.floor(at.y))}` : "";
  $("in").disabled = camera.destination.scale >= camera.closest;
  $("out").disabled = camera.destination.scale <= camera.farthest;
}

function describe(map) {
  document.title = map.name;
  $("name").textContent = map.name;
  const nodes = map.nodes === 1 ? "1 node" : `${map.nodes} nodes`;
  $("facts").textContent = `${number.format(map.width)} × ${number.format(map.height)} pixels · ${number.format(map.tiles)} tiles · ${nodes}`;
  $("map").setAttribute("aria-label", `map ${map.name}, ${map.width} by ${map.height} pixels`);
}

async function start() {
  const map = await readMap();
  notice("");
  describe(map);
  const camera = new Camera(map);
  const pieces = new Pieces(map, request);
  const picture = new Picture($("map"), pieces, camera);
  const overview = new Overview($("overview"), map, camera, request);
  let pointer = null, frame = 0, before = 0, addressTimer = 0;

  function request() {
    if (root.dataset.state === "ready") root.dataset.state = "loading";  // until it has been drawn
    if (frame === 0) frame = requestAnimationFrame(draw);
  }

  function resize() {
    const ratio = Math.min(2, devicePixelRatio || 1);
    camera.resize(innerWidth, innerHeight);
    picture.resize(innerWidth, innerHeight, ratio);
    overview.resize(innerWidth, ratio);
    request();
  }

  // The pieces of where the camera is going, then of where it is, then what surrounds them.
  function want() {
    const whole = {level: pieces.top, i: 0, j: 0};
    const end = camera.destination, ratio = picture.ratio;
    const level = pieces.levelFor(end.scale, ratio);
    const list = [whole, ...pieces.visible(level, end, camera.width, camera.height)];
    if (camera.isMoving && pieces.levelFor(camera.scale, ratio) === level) list.push(...pieces.visible(level, camera, camera.width, camera.height));
    if (!camera.isMoving) list.push(...pieces.visible(level, end, camera.width, camera.height, 1));
    const seen = new Set();
    pieces.want(list.filter(({level: l, i, j}) => !seen.has(`${l}/${i}/${j}`) && seen.add(`${l}/${i}/${j}`)));
  }

  function draw(now) {
    frame = 0;
    const moving = camera.step(before === 0 ? 16 : Math.min(50, now - before));
    before = moving ? now : 0;
    want();
    const drawn = picture.draw(performance.now());
    overview.draw(pieces.have(pieces.top, 0, 0));
    $("overview").classList.toggle("idle", camera.seesAll);
    drawReadout(camera, pointer);
    tell(drawn, moving);
    if (moving || drawn.fading) request();
  }

  function tell(drawn, moving) {
    const complete = drawn.shown === drawn.all;
    root.dataset.level = drawn.level;
    root.dataset.shown = drawn.shown;
    root.dataset.missing = drawn.missing;
    root.dataset.state = pieces.trouble !== "" ? "error" : complete && !moving && !drawn.fading ? "ready" : "loading";
    $("progress").classList.toggle("busy", !complete);
    $("progress").style.setProperty("--done", drawn.shown / drawn.all);
    $("progress").setAttribute("aria-valuenow", Math.round(100 * drawn.shown / drawn.all));
    if (pieces.trouble !== "") notice(`${pieces.trouble}; trying again …`, "error");
    else notice(drawn.missing > 0 ? "Tiles are missing here, drawn as a red hatch; the server has named them." : "");
    if (addressTimer === 0) addressTimer = setTimeout(keepAddress, 200);  // browsers limit how often
  }

  function keepAddress() {
    addressTimer = 0;
    const exact = (n) => Number(n.toPrecision(6));
    const place = `#${exact(camera.x)},${exact(camera.y)},${exact(camera.scale)}`;
    if (place !== location.hash) history.replaceState(null, "", place);
  }

  function goToAddress() {
    const place = placeInAddress();
    if (place !== null) camera.jump(...place);
    else camera.jump(map.width / 2, map.height / 2, camera.wholeScale);
    request();
  }

  const fullScreen = () => document.fullscreenElement ? document.exitFullscreen() : root.requestFullscreen?.().catch(() => {});
  const help = () => $("keys").showModal();
  const zoom = (factor) => { camera.zoomAbout(camera.width / 2, camera.height / 2, factor); request(); };
  $("in").addEventListener("click", () => zoom(2));
  $("out").addEventListener("click", () => zoom(0.5));
  $("whole").addEventListener("click", () => { camera.showWhole(); request(); });
  $("full").addEventListener("click", fullScreen);
  $("full").hidden = !document.fullscreenEnabled;
  $("help").addEventListener("click", help);
  listen($("map"), camera, request);
  listenToKeys(camera, request, {fullScreen, help});
  addEventListener("pointermove", (e) => { pointer = e.target === $("map") ? {x: e.clientX, y: e.clientY} : null; request(); });
  addEventListener("resize", resize);
  addEventListener("hashchange", goToAddress);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", request);
  resize();
  goToAddress();
}

start();
