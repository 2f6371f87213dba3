// SPDX-License-Identifier: Apache-2.0
// The whole map, small, and on it what the window shows. A click or a drag goes there.
const most = {width: 190, height: 150};  // pixels of the window

export class Overview {
  constructor(panel, map, camera, moved) {
    this.panel = panel;
    this.canvas = panel.querySelector("canvas");
    this.map = map;
    this.camera = camera;
    this.moved = moved;
    const go = (e, smoothly) => {
      const r = this.canvas.getBoundingClientRect();
      const x = (e.clientX - r.left) / r.width * map.width, y = (e.clientY - r.top) / r.height * map.height;
      if (smoothly) camera.glide(x, y);
      else camera.jump(x, y);
      moved();
    };
    this.canvas.addEventListener("pointerdown", (e) => {
      this.canvas.setPointerCapture(e.pointerId);
      go(e, true);
    });
    this.canvas.addEventListener("pointermove", (e) => {
      if (this.canvas.hasPointerCapture(e.pointerId)) go(e, false);
    });
  }

  resize(windowWidth, ratio) {
    const small = windowWidth < 620 ? 0.6 : 1;
    const scale = Math.min(most.width * small / this.map.width, most.height * small / this.map.height);
    this.scale = scale;
    this.ratio = ratio;
    const width = Math.max(24, Math.round(this.map.width * scale)), height = Math.max(24, Math.round(this.map.height * scale));
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
  }

  // whole: the piece of the whole map, if it has come.
  draw(whole) {
    const c = this.canvas.getContext("2d"), {width, height} = this.canvas, {camera, map} = this;
    c.clearRect(0, 0, width, height);
    c.imageSmoothingQuality = "high";
    if (whole !== undefined) c.drawImage(whole.bitmap, 0, 0, width, height);
    const across = width / map.width, down = height / map.height;
    const w = camera.width / camera.scale, h = camera.height / camera.scale;
    const left = Math.max(0, camera.x - w / 2), right = Math.min(map.width, camera.x + w / 2);
    const upper = Math.max(0, camera.y - h / 2), lower = Math.min(map.height, camera.y + h / 2);
    let box = [left * across, upper * down, (right - left) * across, (lower - upper) * down];
    // Close up it would be less than a pixel.
    const least = 9 * this.ratio;
    if (box[2] < least) box = [box[0] + box[2] / 2 - least / 2, box[1], least, box[3]];
    if (box[3] < least) box = [box[0], box[1] + box[3] / 2 - least / 2, box[2], least];
    c.fillStyle = "rgb(8 14 24 / 0.42)";
    c.beginPath();
    c.rect(0, 0, width, height);
    c.rect(...box);
    c.fill("evenodd");
    c.lineWidth = 2 * this.ratio;
    c.strokeStyle = "#fff";
    c.strokeRect(box[0] + c.lineWidth / 2, box[1] + c.lineWidth / 2, box[2] - c.lineWidth, box[3] - c.lineWidth);
  }
}
