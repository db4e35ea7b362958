"use strict";
/* Sort and filter of the tables of a report. Every row is in the page, which is whole without this script; nothing is
   asked of anybody. All text is set as text. */

const FILTERED_FROM = 8; // rows
const MOST_CHOICES = 12;
const LONGEST_CHOICE = 14; // letters
const collator = new Intl.Collator("zh-Hans", { numeric: true });

function el(tag, kind, ...children) {
  const made = document.createElement(tag);
  if (kind) made.className = kind;
  made.append(...children);
  return made;
}

const textOf = (cell) => (cell.querySelector("div:not([hidden])") ? cell.textContent.trim().replace(/\s+/g, " ") : "");
const count = (value) => value.toLocaleString("zh-CN");

/** One table: what its rows say, what is asked of them, and the rows that are left in their order. */
class LiveTable {
  constructor(table) {
    this.body = table.tBodies[0];
    this.heads = [...table.tHead.rows[0].cells];
    this.rows = [...this.body.rows];
    this.sort = { place: -1, down: false };
    this.words = "";
    this.chosen = new Map();
    this.texts = new Map();
    this.begin(table);
  }

  column(place) {
    if (!this.texts.has(place)) this.texts.set(place, this.rows.map((row) => textOf(row.cells[place])));
    return this.texts.get(place);
  }

  isNumber(place) {
    return this.heads[place].classList.contains("number");
  }

  /** Links and drawings are neither sorted nor searched. */
  isAct(place) {
    return /\b(act|plot)\b/.test(this.heads[place].className);
  }

  begin(table) {
    this.heads.forEach((head, place) => {
      if (this.isAct(place)) return;
      const button = el("button", "", head.textContent);
      button.type = "button";
      button.addEventListener("click", () => this.sortBy(place));
      head.replaceChildren(button);
      head.setAttribute("aria-sort", "none");
    });
    if (this.rows.length < FILTERED_FROM) return;
    const bar = el("div", "filters");
    bar.setAttribute("role", "search");
    bar.append(this.search(), ...this.choices(), this.sorter());
    this.said = el("p", "said", `共 ${count(this.rows.length)} 行`);
    this.said.setAttribute("aria-live", "polite");
    bar.append(this.said);
    table.parentElement.before(bar);
  }

  search() {
    const input = el("input", "");
    input.type = "search";
    input.autocomplete = "off";
    let typing = 0;
    input.addEventListener("input", () => {
      clearTimeout(typing);
      typing = setTimeout(() => {
        this.words = input.value.trim().toLowerCase();
        this.show();
      }, 120);
    });
    return el("label", "wide", "查找", input);
  }

  /** Offers the columns of which many rows say the same few things. */
  choices() {
    const made = [];
    this.heads.forEach((head, place) => {
      if (this.isAct(place) || this.isNumber(place)) return;
      const counts = new Map();
      for (const text of this.column(place)) counts.set(text, (counts.get(text) || 0) + 1);
      const words = [...counts.keys()].filter(Boolean);
      if (words.length < 2 || words.length > MOST_CHOICES || words.length > this.rows.length / 2) return;
      if (words.some((text) => text.length > LONGEST_CHOICE)) return;
      const select = el("select", "", new Option("全部", ""));
      words.sort((a, b) => counts.get(b) - counts.get(a) || collator.compare(a, b));
      words.forEach((text) => select.append(new Option(`${text}（${count(counts.get(text))}）`, text)));
      select.ariaLabel = head.textContent;
      select.addEventListener("change", () => {
        if (select.value) this.chosen.set(place, select.value);
        else this.chosen.delete(place);
        this.show();
      });
      made.push(el("label", "", head.textContent, select));
    });
    return made;
  }

  /** On a phone there are no heads to press. */
  sorter() {
    this.select = el("select", "", new Option("原来的", ""));
    this.select.ariaLabel = "排序";
    this.heads.forEach((head, place) => {
      if (this.isAct(place)) return;
      for (const [sign, down] of [["▲", ""], ["▼", " down"]]) {
        this.select.append(new Option(`${head.textContent} ${sign}`, `${place}${down}`));
      }
    });
    this.select.addEventListener("change", () => {
      const [place, down] = this.select.value.split(" ");
      this.sort = { place: place === "" ? -1 : Number(place), down: Boolean(down) };
      this.show();
    });
    return el("label", "", "排序", this.select);
  }

  /** Numbers begin with the largest, texts with the first; pressed a third time, the order is the report's again. */
  sortBy(place) {
    const first = this.isNumber(place);
    if (this.sort.place !== place) this.sort = { place, down: first };
    else if (this.sort.down === first) this.sort = { place, down: !first };
    else this.sort = { place: -1, down: false };
    this.show();
  }

  keeps(number) {
    for (const [place, text] of this.chosen) if (this.column(place)[number] !== text) return false;
    if (!this.words) return true;
    const places = this.heads.map((_, place) => place).filter((place) => !this.isAct(place));
    const text = places.map((place) => this.column(place)[number]).join("\n").toLowerCase();
    return this.words.split(/\s+/).every((word) => text.includes(word));
  }

  show() {
    const { place, down } = this.sort;
    const order = this.rows.map((_, number) => number).filter((number) => this.keeps(number));
    if (place >= 0) {
      const texts = this.column(place);
      const values = this.isNumber(place) ? texts.map((text) => Number.parseFloat(text.replaceAll(",", ""))) : texts;
      const compare = this.isNumber(place) ? (a, b) => a - b : collator.compare;
      order.sort((a, b) => {
        // What is empty comes last either way.
        if (!texts[a] || !texts[b]) return Number(!texts[a]) - Number(!texts[b]) || a - b;
        return (down ? -1 : 1) * compare(values[a], values[b]) || a - b;
      });
    }
    this.body.replaceChildren(...order.map((number) => this.rows[number]));
    this.heads.forEach((head, each) => {
      if (!this.isAct(each)) head.setAttribute("aria-sort", each === place ? (down ? "descending" : "ascending") : "none");
    });
    if (!this.said) return;
    const all = count(this.rows.length);
    this.said.textContent = order.length === this.rows.length ? `共 ${all} 行` : `${count(order.length)} 行符合，共 ${all} 行`;
    this.select.value = place < 0 ? "" : `${place}${down ? " down" : ""}`;
  }
}

// A poster that cannot be had leaves no hole, also one that failed before this script ran.
document.addEventListener("error", (event) => event.target.matches?.("img.poster") && event.target.remove(), true);
document.querySelectorAll("img.poster").forEach((poster) => poster.complete && !poster.naturalWidth && poster.remove());
document.querySelectorAll("table.entries").forEach((table) => table.tBodies[0].rows.length > 1 && new LiveTable(table));
