// SPDX-License-Identifier: Apache-2.0
// Where one looks: the map's point in the middle of the window, and how large a pixel of the map is.
// Moves at once, or glides to a destination that is known from the beginning, so that its pieces can
// be fetched before it is reached.
const glideMs = 95, flingMs = 330;
const closest = 16;  // pixels of the window for one of the map
const still = matchMedia("(prefers-reduced-motion: reduce)");

export class Camera {
  constructor(map) {
    this.map = map;
    this.x = map.width / 2;
    this.y = map.height / 2;
    this.scale = 1;  // of the window for one of the map
    this.width = this.height = 1;
    this.goal = null;   // {x, y, scale} or {scale, px, py, mx, my}: what is at px, py stays there
    this.speed = null;  // {x, y} in pixels of the window per ms
  }

  resize(width, height) {
    this.width = width;
    this.height = height;
    this.keepInside();
  }

  get wholeScale() {
    return Math.min(closest, 0.92 * Math.min(this.width / this.map.width, this.height / this.map.height));
  }
  get farthest() { return Math.min(1, 0.6 * this.wholeScale); }
  get closest() { return closest; }
  get seesAll() { return this.width >= this.map.width * this.scale && this.height >= this.map.height * this.scale; }
  get isMoving() { return this.goal !== null || this.speed !== null; }

  toMap(px, py) {
    return {x: this.x + (px - this.width / 2) / this.scale, y: this.y + (py - this.height / 2) / this.scale};
  }

  // Where it will come to rest.
  get destination() {
    const end = {x: this.x, y: this.y, scale: this.scale};
    if (this.goal !== null) {
      end.scale = this.goal.scale;
      end.x = this.goal.mx === undefined ? this.goal.x : this.goal.mx - (this.goal.px - this.width / 2) / end.scale;
      end.y = this.goal.my === undefined ? this.goal.y : this.goal.my - (this.goal.py - this.height / 2) / end.scale;
    } else if (this.speed !== null) {
      end.x -= this.speed.x * flingMs / this.scale;
      end.y -= this.speed.y * flingMs / this.scale;
    }
    return this.inside(end);
  }

  stop() { this.goal = this.speed = null; }

  jump(x, y, scale = this.scale) {
    this.stop();
    Object.assign(this, this.inside({x, y, scale}));
  }

  glide(x, y, scale = this.destination.scale) {
    this.speed = null;
    this.goal = this.inside({x, y, scale});
    if (still.matches) this.step(Infinity);
  }

  showWhole() { this.glide(this.map.width / 2, this.map.height / 2, this.wholeScale); }

  // The map follows a finger.
  pan(dx, dy) {
    this.jump(this.x - dx / this.scale, this.y - dy / this.scale);
  }

  panBy(dx, dy) {
    const end = this.destination;
    this.glide(end.x + dx / end.scale, end.y + dy / end.scale, end.scale);
  }

  fling(x, y) {
    this.goal = null;
    this.speed = still.matches ? null : {x, y};
  }

  zoomAbout(px, py, factor, atOnce = false) {
    const at = this.toMap(px, py);
    const scale = this.bounded(this.destination.scale * factor);
    this.speed = null;
    this.goal = {scale, px, py, mx: at.x, my: at.y};
    if (atOnce || still.matches) this.step(Infinity);
  }

  // After so many ms; false when nothing moves any more.
  step(ms) {
    if (this.goal !== null) {
      const end = this.destination, near = Math.exp(-ms / glideMs);
      const left = Math.log(end.scale / this.scale) * near;
      const off = this.scale * near;
      const arrived = Math.abs(left) < 0.002 && Math.hypot(end.x - this.x, end.y - this.y) * off < 0.5;
      if (arrived || near === 0) {
        this.goal = null;
        Object.assign(this, end);
      } else if (this.goal.mx !== undefined) {
        this.scale = end.scale / Math.exp(left);
        this.x = this.goal.mx - (this.goal.px - this.width / 2) / this.scale;
        this.y = this.goal.my - (this.goal.py - this.height / 2) / this.scale;
      } else {
        this.scale = end.scale / Math.exp(left);
        this.x = end.x + (this.x - end.x) * near;
        this.y = end.y + (this.y - end.y) * near;
      }
    } else if (this.speed !== null) {
      const slower = Math.exp(-ms / flingMs);
      const way = flingMs * (1 - slower) / this.scale;
      this.x -= this.speed.x * way;
      this.y -= this.speed.y * way;
      this.speed = {x: this.speed.x * slower, y: this.speed.y * slower};
      if (Math.hypot(this.speed.x, this.speed.y) < 0.012) this.speed = null;
    }
    this.keepInside();
    return this.isMoving;
  }

  bounded(scale) { return Math.min(this.closest, Math.max(this.farthest, scale)); }

  // A map that is smaller than the window stays in its middle; a larger one may be pulled a little
  // beyond its edge, so that what is there can be looked at without the panels over it.
  inside({x, y, scale}) {
    scale = this.bounded(scale);
    const along = (c, size, pixels) => {
      const span = pixels / scale, half = 0.3 * span;
      return span >= size ? size / 2 : Math.min(size - half, Math.max(half, c));
    };
    return {x: along(x, this.map.width, this.width), y: along(y, this.map.height, this.height), scale};
  }

  keepInside() { Object.assign(this, this.inside(this)); }
}
