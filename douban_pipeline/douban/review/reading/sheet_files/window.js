"use strict";
/* Of thousands of cards only some dozens around the eye are in the page; the others come as they are needed. */

const LEAST_CARDS = 12;
const MOST_CARDS = 36;
const MORE_CARDS = 8;

class CardWindow {
  /** `cardOf` returns the card of an item, `heading` the name over one that begins a group or "", `total` of how many. */
  constructor(box, cardOf, heading, total) {
    Object.assign(this, { box, cardOf, heading, total, list: [], start: 0, end: 0 });
    this.edges = [el("div", "edge"), el("div", "edge")];
    box.append(...this.edges);
    this.near = new IntersectionObserver((entries) => this.filled(entries), { rootMargin: "1500px 0px" });
    const edges = new IntersectionObserver((entries) => this.reached(entries), { rootMargin: "1200px 0px" });
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
    this.sync(true);
    // An edge that is still near would not be told of again.
    for (const edge of seen) {
      this.edgeObserver.unobserve(edge);
      this.edgeObserver.observe(edge);
    }
  }

  /** Puts the cards of the window into the page; `still` keeps what is seen where it is. */
  sync(still = false) {
    const seen = still ? this.seen() : null;
    const before = seen?.getBoundingClientRect().top;
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
        child.remove();
      }
    }
    let next = this.edges[0].nextSibling;
    for (const child of wanted) {
      if (child === next) next = next.nextSibling;
      else {
        this.box.insertBefore(child, next);
        if (child.matches("article:not(.filled)")) this.near.observe(child);
      }
    }
    if (seen?.isConnected) window.scrollBy({ top: seen.getBoundingClientRect().top - before, behavior: "instant" });
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
