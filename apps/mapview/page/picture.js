// SPDX-License-Identifier: Apache-2.0
// Draws what the camera sees. Where a piece has not come yet, a coarser one stands in for it, and
// finer ones on top of that where they are still here.
import {side} from "./pieces.js";

const fadeMs = 160;
const still = matchMedia("(prefers-reduced-motion: reduce)");

export class Picture {
  constructor(canvas, pieces, camera) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d", {alpha: false});
    this.pieces = pieces;
    this.camera = camera;
  }

  resize(width, height, ratio) {
    this.ratio = ratio;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
  }

  // Returns {level, shown, all, missing, fading}: pieces of this level, and how many have come.
  draw(now) {
    const {context: c, camera, pieces, ratio} = this;
    const style = getComputedStyle(document.documentElement);
    c.fillStyle = style.getPropertyValue("--ground");
    c.fillRect(0, 0, this.canvas.width, this.canvas.height);
    const scale = camera.scale * ratio;
    // Shared edges fall on the same pixel of the screen, so there are no seams.
    const across = (x) => Math.round((x - camera.x) * scale + this.canvas.width / 2);
    const down = (y) => Math.round((y - camera.y) * scale + this.canvas.height / 2);
    this.place = (a) => {
      const x = across(a.x), y = down(a.y);
      return [x, y, across(a.x + a.width) - x, down(a.y + a.height) - y];
    };
    this.drawEdge(style);
    c.imageSmoothingEnabled = scale < 6;  // who looks that closely wants to see the pixels
    c.imageSmoothingQuality = "medium";

    const level = pieces.levelFor(camera.scale, ratio);
    const list = pieces.visible(level, camera, camera.width, camera.height);
    const result = {level, all: list.length, shown: 0, missing: 0, fading: false};
    for (const {i, j} of list) {
      const p = pieces.have(level, i, j);
      const seen = p === undefined ? 0 : still.matches ? 1 : Math.min(1, (now - p.born) / fadeMs);
      if (seen < 1) this.drawInstead(level, i, j);
      if (p === undefined) continue;
      c.globalAlpha = Math.max(0, seen);
      c.drawImage(p.bitmap, ...this.place(pieces.area(p)));
      c.globalAlpha = 1;
      ++result.shown;
      result.missing += p.missing;
      result.fading ||= seen < 1;
    }
    return result;
  }

  drawEdge(style) {
    const c = this.context, [x, y, w, h] = this.place({x: 0, y: 0, width: this.pieces.map.width, height: this.pieces.map.height});
    c.save();
    c.shadowColor = "rgb(0 0 0 / 0.35)";
    c.shadowBlur = 24 * this.ratio;
    c.shadowOffsetY = 4 * this.ratio;
    c.fillStyle = style.getPropertyValue("--empty") || "#8fa5b8";
    c.fillRect(x, y, w, h);
    c.restore();
  }

  drawInstead(level, i, j) {
    const {context: c, pieces} = this;
    const a = pieces.area({level, i, j});
    for (let up = level + 1; up <= pieces.top; ++up) {
      const p = pieces.have(up, i >> (up - level), j >> (up - level));
      if (p === undefined) continue;
      const whole = pieces.area(p);
      const sx = p.bitmap.width / whole.width, sy = p.bitmap.height / whole.height;
      c.drawImage(p.bitmap, (a.x - whole.x) * sx, (a.y - whole.y) * sy, a.width * sx, a.height * sy, ...this.place(a));
      break;
    }
    for (let finer = Math.max(0, level - 2); finer < level; ++finer) {
      const n = 2 ** (level - finer);
      for (let v = j * n; v < (j + 1) * n; ++v) {
        for (let u = i * n; u < (i + 1) * n; ++u) {
          const p = pieces.have(finer, u, v);
          if (p !== undefined) c.drawImage(p.bitmap, ...this.place(pieces.area(p)));
        }
      }
    }
  }
}
