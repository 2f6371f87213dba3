// SPDX-License-Identifier: Apache-2.0
// Mouse, fingers, wheel and keys move the camera.
const tapMs = 320, tapPx = 22;     // two taps are a double click
const rememberMs = 90;             // of a drag, for its speed at the end
const pixelsPerLine = 18;

export function listen(canvas, camera, moved) {
  const down = new Map();  // pointer id -> {x, y}
  let trail = [], lastTap = null, travelled = 0;

  const middle = () => {
    const all = [...down.values()], n = all.length;
    const x = all.reduce((s, p) => s + p.x, 0) / n, y = all.reduce((s, p) => s + p.y, 0) / n;
    return {x, y, spread: n < 2 ? 0 : Math.hypot(all[0].x - all[1].x, all[0].y - all[1].y)};
  };

  canvas.addEventListener("pointerdown", (e) => {
    if (e.button !== 0) return;
    canvas.focus({preventScroll: true});
    canvas.setPointerCapture(e.pointerId);
    down.set(e.pointerId, {x: e.clientX, y: e.clientY});
    if (down.size === 1) travelled = 0;
    trail = [];
    camera.stop();
    moved();
  });

  canvas.addEventListener("pointermove", (e) => {
    if (!down.has(e.pointerId)) return;
    const before = middle();
    down.set(e.pointerId, {x: e.clientX, y: e.clientY});
    const after = middle();
    const dx = after.x - before.x, dy = after.y - before.y;
    travelled += Math.hypot(dx, dy) + Math.abs(after.spread - before.spread);
    camera.pan(dx, dy);
    if (before.spread > 0 && after.spread > 0) camera.zoomAbout(after.x, after.y, after.spread / before.spread, true);
    trail.push({x: after.x, y: after.y, at: e.timeStamp});
    while (trail[0].at < e.timeStamp - rememberMs) trail.shift();
    moved();
  });

  const up = (e) => {
    if (!down.delete(e.pointerId)) return;
    if (down.size > 0) {
      trail = [];
      return;
    }
    if (travelled < tapPx / 4 && e.type === "pointerup") {
      const twice = lastTap !== null && e.timeStamp - lastTap.at < tapMs && Math.hypot(e.clientX - lastTap.x, e.clientY - lastTap.y) < tapPx;
      if (twice) camera.zoomAbout(e.clientX, e.clientY, e.shiftKey ? 0.5 : 2);
      lastTap = twice ? null : {x: e.clientX, y: e.clientY, at: e.timeStamp};
    } else {
      lastTap = null;
      const first = trail[0], last = trail.at(-1);
      // A finger that has rested before it was lifted throws nothing.
      if (first !== undefined && last.at > first.at && e.timeStamp - last.at < rememberMs / 2) {
        const ms = last.at - first.at;
        camera.fling((last.x - first.x) / ms, (last.y - first.y) / ms);
      }
    }
    moved();
  };
  canvas.addEventListener("pointerup", up);
  canvas.addEventListener("pointercancel", up);

  canvas.addEventListener("wheel", (e) => {
    e.preventDefault();
    const pixels = e.deltaMode === WheelEvent.DOM_DELTA_PIXEL ? e.deltaY : e.deltaY * pixelsPerLine * (e.deltaMode === WheelEvent.DOM_DELTA_PAGE ? 20 : 1);
    // Browsers report a pinch on a touchpad as a wheel with Ctrl, in smaller numbers.
    const factor = Math.exp(-Math.min(400, Math.max(-400, pixels)) * (e.ctrlKey ? 0.01 : 0.0025));
    camera.zoomAbout(e.clientX, e.clientY, factor);
    moved();
  }, {passive: false});
}

export function listenToKeys(camera, moved, {fullScreen, help}) {
  const zoom = (factor) => camera.zoomAbout(camera.width / 2, camera.height / 2, factor);
  const keys = {
    ArrowLeft: () => camera.panBy(-0.2 * camera.width, 0),
    ArrowRight: () => camera.panBy(0.2 * camera.width, 0),
    ArrowUp: () => camera.panBy(0, -0.2 * camera.height),
    ArrowDown: () => camera.panBy(0, 0.2 * camera.height),
    "+": () => zoom(1.6),
    "=": () => zoom(1.6),
    "-": () => zoom(1 / 1.6),
    "0": () => camera.showWhole(),
    Home: () => camera.showWhole(),
    f: fullScreen,
    "?": help,
  };
  addEventListener("keydown", (e) => {
    const act = keys[e.key];
    if (act === undefined || e.ctrlKey || e.altKey || e.metaKey || document.querySelector("dialog[open]") !== null) return;
    e.preventDefault();
    act();
    moved();
  });
}
