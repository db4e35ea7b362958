"use strict";
/* Of thousands of cards only some dozens around the eye are in the page; the others come as they are needed. */

const LEAST_CARDS = 12;
const MOST_CARDS = 36;
const MORE_CARDS = 8;

class CardWindow {
  /** `cardOf` returns the card of an item, `heading` the name over one that begins a group or "", `current` what is
     marked, `total` of how many. */
  constructor(box, { cardOf, heading, current, total }) {
    Object.assign(this, { box, cardOf, heading, current, total, list: [], start: 0, end: 0, heights: new WeakMap() });
    this.edges = [el("div", "edge"), el("div", "edge")];
    box.append(...this.edges);
    this.near = new IntersectionObserver((entries) => this.filled(entries), { rootMargin: "1500px 0px" });
    const edges = new IntersectionObserver((entries) => this.reached(entries), { rootMargin: "1200px 0px" });
    this.sizes = new ResizeObserver((entries) => this.resized(entries));
    for (const edge of this.edges) edges.observe(edge);
    this.edgeObserver = edges;
  }

  /** Shows another list, around `item` if that is in it. */
  set(list, item) {
    const before = this.list[this.start];
    this.list = list;
    const kept = [item, before].map((each) => (each ? list.indexOf(each) : -1)).find((place) => place >= 0);
    const inside = kept !== undefined && kept >= this.start && kept < this.end;
    if (!inside) this.start = Math.max(0, (kept ?? 0) - 3);
    this.start = Math.min(this.start, Math.max(0, list.length - LEAST_CARDS));
    this.end = Math.min(list.length, Math.max(this.end, this.start + LEAST_CARDS));
    this.end = Math.min(this.end, this.start + MOST_CARDS);
    this.sync();
  }

  /** Makes sure that the item at a place is in the page, and some after it. */
  reach(place) {
    if (place < this.start || place >= this.end) {
      this.start = Math.max(0, place - 3);
      this.end = Math.min(this.list.length, place + LEAST_CARDS);
    } else if (place + 3 >= this.end) {
      this.end = Math.min(this.list.length, this.end + MORE_CARDS);
      this.start = Math.max(this.start, Math.min(place - 3, this.end - MOST_CARDS), 0);
    } else return;
    this.sync();
  }

  reached(entries) {
    const seen = new Set(entries.filter((each) => each.isIntersecting).map((each) => each.target));
    const [top, bottom] = this.edges;
    if (seen.has(bottom) && this.end < this.list.length) {
      this.end = Math.min(this.list.length, this.end + MORE_CARDS);
      this.start = Math.max(this.start, this.end - MOST_CARDS);
    } else if (seen.has(top) && this.start > 0) {
      this.start = Math.max(0, this.start - MORE_CARDS);
      this.end = Math.min(this.end, this.start + MOST_CARDS);
    } else return;
    this.steady(() => this.sync());
    // An edge that is still near would not be told of again.
    for (const edge of seen) {
      this.edgeObserver.unobserve(edge);
      this.edgeObserver.observe(edge);
    }
  }

  /** Does `work`, after which the card that is looked at is where it was: the current one, or the first in sight. */
  steady(work) {
    const current = this.current();
    const seen = current && isSeen(current) ? current : this.seen();
    const before = seen?.getBoundingClientRect().top;
    work();
    const there = seen && this.box.querySelector(`article[data-vod="${seen.dataset.vod}"]`);
    if (there) this.shift(there.getBoundingClientRect().top - before);
  }

  /** Keeps the current card where it is when those above it get their heights. */
  resized(entries) {
    const current = this.current();
    let by = 0;
    for (const { target } of entries.filter((each) => each.target.isConnected)) {
      const { height } = target.getBoundingClientRect();
      const above = current && target.compareDocumentPosition(current) & Node.DOCUMENT_POSITION_FOLLOWING;
      if (above) by += height - (this.heights.get(target) ?? height);
      this.heights.set(target, height);
    }
    if (by && isSeen(current, by)) this.shift(by);
  }

  shift(by) {
    if (Math.abs(by) >= 1) window.scrollBy({ top: by, behavior: "instant" });
  }

  /** Puts the cards of the window into the page. */
  sync() {
    const wanted = [];
    for (let place = this.start; place < this.end; place += 1) {
      const item = this.list[place];
      const name = place === this.start || this.list[place - 1].group !== item.group ? this.heading(item) : "";
      if (name) wanted.push(this.named(item, name));
      const card = this.cardOf(item);
      card.place(`${place + 1}/${this.total()}`);
      wanted.push(card.element);
    }
    const keep = new Set(wanted);
    for (const child of [...this.box.children]) {
      if (!keep.has(child) && !this.edges.includes(child)) {
        this.near.unobserve(child);
        this.sizes.unobserve(child);
        child.remove();
      }
    }
    const added = [];
    let next = this.edges[0].nextSibling;
    for (const child of wanted) {
      if (child === next) next = next.nextSibling;
      else {
        this.box.insertBefore(child, next);
        if (child.matches("article:not(.filled)")) this.near.observe(child);
        if (child.matches("article")) added.push(child);
      }
    }
    for (const card of added) {
      this.heights.set(card, card.getBoundingClientRect().height);
      this.sizes.observe(card);
    }
  }

  named(item, name) {
    const there = [...this.box.children].find((child) => child.matches("h2") && child.dataset.of === String(item.vod));
    const made = there || el("h2", "series", name);
    made.dataset.of = item.vod;
    return made;
  }

  /** Returns the first card that is in sight. */
  seen() {
    return [...this.box.querySelectorAll("article")].find((each) => each.getBoundingClientRect().bottom > 120);
  }

  filled(entries) {
    for (const entry of entries.filter((each) => each.isIntersecting)) {
      this.near.unobserve(entry.target);
      this.list.slice(this.start, this.end).map(this.cardOf).find((card) => card.element === entry.target)?.fill();
    }
  }
}
