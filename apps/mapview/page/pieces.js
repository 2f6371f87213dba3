// SPDX-License-Identifier: Apache-2.0
// The map's pictures, in square pieces at powers of two: a piece of level n shows side * 2^n pixels
// of the map. They are asked for in the order in which they are wanted, a few at a time, and kept
// until there are too many; what is no longer wanted is not waited for.
export const side = 512;
const atOnce = 5;
const keptAtLeast = 160;

export class Pieces {
  // changed(): one has come, or could not.
  constructor(map, changed) {
    this.map = map;
    this.changed = changed;
    this.known = new Map();  // key -> piece
    this.wanted = [];
    this.loading = 0;
    this.clock = 0;
    this.top = 0;  // at this level the whole map is one piece
    while (Math.max(map.width, map.height) > side * 2 ** this.top) ++this.top;
    this.again = this.tries = 0;  // after a server that did not answer: one request, some time later
    this.trouble = "";  // why the last piece could not be had; empty once one has come
  }

  // The level whose pixels are about as fine as the window's.
  levelFor(scale, ratio) {
    const level = Math.floor(-Math.log2(scale * ratio) + 0.2);
    return Math.min(this.top, Math.max(0, level));
  }

  // Pieces that a window shows, the middle first.
  visible(level, {x, y, scale}, width, height, margin = 0) {
    const size = side * 2 ** level;
    const range = (c, pixels, length) => {
      const first = Math.floor((c - pixels / scale / 2) / size) - margin;
      const last = Math.ceil((c + pixels / scale / 2) / size) - 1 + margin;
      return [Math.max(0, first), Math.min(Math.ceil(length / size) - 1, last)];
    };
    const [left, right] = range(x, width, this.map.width);
    const [upper, lower] = range(y, height, this.map.height);
    const all = [];
    for (let j = upper; j <= lower; ++j) {
      for (let i = left; i <= right; ++i) all.push({level, i, j, far: Math.hypot((i + 0.5) * size - x, (j + 0.5) * size - y)});
    }
    return all.sort((a, b) => a.far - b.far);
  }

  // What of the map it shows.
  area({level, i, j}) {
    const size = side * 2 ** level, x = i * size, y = j * size;
    return {x, y, width: Math.min(size, this.map.width - x), height: Math.min(size, this.map.height - y)};
  }

  // The piece if it is here, else undefined.
  have(level, i, j) {
    const p = this.known.get(key({level, i, j}));
    if (p === undefined || p.bitmap === null) return undefined;
    p.used = ++this.clock;
    return p;
  }

  // Fetches these, the first ones first, and stops waiting for all others.
  want(list) {
    this.wanted = list;
    const keys = new Set(list.map(key));
    for (const [k, p] of this.known) {
      if (p.abort !== null && !keys.has(k)) p.abort.abort();
    }
    this.drop(Math.max(keptAtLeast, 3 * list.length));
    this.next();
  }

  next() {
    const now = performance.now();
    const most = this.tries > 0 ? 1 : atOnce;
    let wake = this.again > now ? this.again : Infinity;
    for (const at of wake < Infinity ? [] : this.wanted) {
      if (this.loading >= most) return;
      const p = this.known.get(key(at));
      if (p !== undefined && (p.bitmap !== null || p.abort !== null)) continue;
      if (p !== undefined && p.again > now) {
        wake = Math.min(wake, p.again);
        continue;
      }
      this.fetch(at);
    }
    clearTimeout(this.timer);
    if (wake < Infinity) this.timer = setTimeout(() => this.next(), wake - now + 1);
  }

  async fetch(at) {
    const p = this.known.get(key(at)) ?? {...at, bitmap: null, missing: 0, tries: 0, used: 0, born: 0};
    this.known.set(key(at), p);
    p.abort = new AbortController();
    ++this.loading;
    const a = this.area(at), pixels = (n) => Math.ceil(n / 2 ** at.level);
    const query = new URLSearchParams({x: a.x, y: a.y, width: a.width, height: a.height, to_width: pixels(a.width), to_height: pixels(a.height)});
    try {
      const answer = await fetch(`/view?${query}`, {signal: p.abort.signal});
      if (!answer.ok) throw new Error((await answer.text()).trim());
      p.bitmap = await createImageBitmap(await answer.blob());
      p.missing = Number(answer.headers.get("X-Missing-Tiles"));
      p.born = performance.now();
      p.used = ++this.clock;
      this.trouble = "";
      this.tries = 0;
    } catch (e) {
      if (e.name === "AbortError") {
        this.known.delete(key(at));
      } else if (e instanceof TypeError) {
        this.again = later(this.tries++);
        this.trouble = "The server does not answer";
      } else {
        p.again = later(p.tries++);
        this.trouble = `The server says: ${e.message}`;
      }
    }
    p.abort = null;
    --this.loading;
    this.next();
    this.changed();
  }

  // The least recently used go; never the one of the whole map.
  drop(most) {
    if (this.known.size <= most) return;
    const old = [...this.known.entries()].filter(([, p]) => p.bitmap !== null && p.level !== this.top);
    old.sort(([, a], [, b]) => a.used - b.used);
    for (const [k, p] of old.slice(0, this.known.size - most)) {
      p.bitmap.close();
      this.known.delete(k);
    }
  }
}

function later(tries) { return performance.now() + Math.min(8000, 500 * 2 ** tries); }

function key({level, i, j}) { return `${level}/${i}/${j}`; }
