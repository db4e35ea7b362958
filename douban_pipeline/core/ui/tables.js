"use strict";
/* Filter, sort and paging of the tables of a page. The rows of a table are in the page, which is whole without this
   script. Those of a list are in pieces beside it, each a script that calls `listPiece`, because a page that was opened
   as a file may not fetch; a piece is loaded when its rows are to be shown, all of them as soon as something is filtered
   or sorted. All text from outside is set as text. */

const FILTERED_FROM = 8; // rows
const MOST_CHOICES = 12;
const LONGEST_CHOICE = 14; // letters
const SIZES = [50, 100, 200];
const UNSHOWN = ["picture", "rank"];
const UNREAD = ["links", ...UNSHOWN]; // neither searched nor sorted
const HASH = /\b([0-9a-f]{40,128})\b/;
const collator = new Intl.Collator("zh-Hans", { numeric: true });
const amount = (value) => value.toLocaleString("zh-CN", { maximumFractionDigits: 2 });
const nothing = (cell) => cell === null || cell === undefined || cell === "";

function el(tag, kind, ...children) {
  const made = document.createElement(tag);
  if (kind) made.className = kind;
  made.append(...children);
  return made;
}

function button(text, label, click) {
  const made = el("button", "plain", text);
  Object.assign(made, { type: "button", ariaLabel: label });
  made.addEventListener("click", click);
  return made;
}

/** Returns the words of a label's cell, which holds their numbers. */
const labelsOf = (column, cell) => (Array.isArray(cell) ? cell : nothing(cell) ? [] : [cell]).map((code) => column.labels[code]);

/** The rows of a table in the page: an array of values each, in the form of a list's, with its element. */
class PageRows {
  constructor(table) {
    const trs = [...table.tBodies[0].rows];
    this.columns = [...table.tHead.rows[0].cells].map((head, place) => this.column(head, trs.map((tr) => tr.cells[place]), place));
    this.rows = trs.map((element, number) => Object.assign(this.columns.map((column) => column.cells[number]), { element }));
    this.count = this.rows.length;
    this.size = Infinity;
  }

  column(head, cells, place) {
    const text = (cell) => (cell.querySelector("div:not([hidden])") ? cell.textContent.trim().replace(/\s+/g, " ") : null);
    const drawn = /\b(act|plot)\b/.test(head.className);
    const kind = drawn ? "links" : head.dataset.kind || (head.classList.contains("number") ? "number" : "text");
    const column = { key: head.dataset.key || String(place), head: head.textContent, kind, cells: cells.map(text) };
    if (kind === "number") column.cells = column.cells.map((each) => each && Number.parseFloat(each.replaceAll(",", "")));
    return ["text", "label"].includes(kind) ? this.offered(column, cells) : column;
  }

  /** Offers a column as a choice if many rows say the same few things. */
  offered(column, cells) {
    const words = cells.map((cell, number) => {
      const chips = [...cell.querySelectorAll(".chip")].map((chip) => chip.textContent);
      return chips.length ? chips : nothing(column.cells[number]) ? [] : [column.cells[number]];
    });
    const counts = new Map();
    for (const word of words.flat()) counts.set(word, (counts.get(word) || 0) + 1);
    const labels = [...counts.keys()].sort((a, b) => counts.get(b) - counts.get(a) || collator.compare(a, b));
    if (labels.length < 2 || labels.length > Math.min(MOST_CHOICES, cells.length / 2)) return column;
    if (labels.some((word) => word.length > LONGEST_CHOICE)) return column;
    const codes = words.map((each) => (each.length === 1 ? labels.indexOf(each[0]) : each.map((word) => labels.indexOf(word))));
    return { ...column, kind: "label", labels, cells: codes, choices: labels.map((word, code) => [code, counts.get(word)]) };
  }

  async need() {}

  element(row) {
    return row.element;
  }
}

/** The rows of a list, which are loaded in pieces and drawn when they are shown. */
class PieceRows {
  constructor(list) {
    Object.assign(this, { list, columns: list.columns, count: list.count, size: list.size });
    this.rows = new Array(list.count);
    this.pieces = new Map();
    this.places = new Map(list.columns.map((column, place) => [column.key, place]));
    this.visible = list.columns.map((_, place) => place).filter((place) => !list.columns[place].empty && !UNSHOWN.includes(list.columns[place].kind));
    globalThis.listPiece = (name, number, given) => {
      if (name === list.name) given.forEach((row, place) => (this.rows[number * list.piece + place] = row));
    };
  }

  /** Loads one piece; returns a promise that fails where the file is not there any more. */
  load(number) {
    if (!this.pieces.has(number)) {
      const promise = new Promise((done, failed) => {
        const script = el("script", "");
        script.src = this.list.files.replace("{}", String(number).padStart(4, "0"));
        script.onload = done;
        script.onerror = () => failed(new Error("这一页已有新的一版，请刷新"));
        document.head.append(script);
      });
      this.pieces.set(number, promise);
      promise.catch(() => this.pieces.delete(number));
    }
    return this.pieces.get(number);
  }

  /** Loads the pieces of rows `first` to `last`, four at a time, and says how far it is. */
  async need(first, last, say) {
    const wanted = [];
    for (let number = Math.floor(first / this.list.piece); number * this.list.piece < last; number += 1) wanted.push(number);
    let done = 0;
    const worker = async () => {
      while (wanted.length) {
        await this.load(wanted.shift());
        done += 1;
        if (wanted.length > 3) say(`正在载入……已载入 ${amount(done * this.list.piece)} 行`);
      }
    };
    await Promise.all([worker(), worker(), worker(), worker()]);
  }

  cell(row, key) {
    return row[this.places.get(key)];
  }

  id(row) {
    return this.cell(row, this.list.key);
  }

  element(row) {
    return el("tr", "", ...this.visible.map((place) => {
      const column = this.columns[place];
      const parts = this.content(column, row[place]);
      const held = place === this.visible[0] ? this.named(row, parts) : el("div", "", ...parts);
      const made = el("td", column.class, ...(parts.length ? [held] : []));
      made.dataset.head = column.head;
      return made;
    }));
  }

  link(text, address) {
    const made = el("a", "", text);
    made.href = address.startsWith("/") ? this.list.ui + address : address;
    made.rel = "noreferrer";
    return made;
  }

  content(column, cell) {
    if (nothing(cell)) return [];
    switch (column.kind) {
      case "number":
        return [amount(cell)];
      case "subject":
        return cell ? [this.link(String(cell), `https://movie.douban.com/subject/${cell}/`)] : [];
      case "label":
        return labelsOf(column, cell).map((text) => el("span", "chip", text));
      case "link":
        return [cell[1] ? this.link(...cell) : cell[0]];
      case "id":
        return [String(cell)];
      case "links": {
        const filled = (address, given) => address.replace(/\{(\d)\}/g, (_, place) => encodeURIComponent(given[Number(place)]));
        const made = cell.map(([key, ...given]) => this.link(this.list.links[key][0], filled(this.list.links[key][1], given)));
        if (made.length < 3) return made;
        return [...made.slice(0, 2), el("details", "", el("summary", "", "更多"), ...made.slice(2))];
      }
      case "time":
        return [cell.replace(" ", "\u00a0")];
      default:
        return String(cell).split("\n").map((line) => el("div", "", ...line.split(HASH).map(shortHash)));
    }
  }

  /** Returns what names a row: with its poster, and as a link to the video's page, where there are any. */
  named(row, parts) {
    const made = el("div", "video");
    const picture = this.cell(row, "picture");
    if (picture) {
      const image = el("img", "poster");
      Object.assign(image, { loading: "lazy", decoding: "async", referrerPolicy: "no-referrer", alt: "", width: 40, height: 56 });
      image.src = this.list.pictures + picture;
      made.append(image);
    }
    const video = this.cell(row, this.list.video);
    const to = this.list.page && video ? this.link("", this.list.page.replace("{id}", String(video))) : null;
    to?.append(...parts);
    made.append(el("span", "", ...(to ? [to] : parts)));
    return made;
  }
}

/** Returns a part of a text: every other one is a hash, whose first digits say enough; a pointer or a tap shows the whole. */
function shortHash(part, place) {
  if (place % 2 === 0) return part;
  return Object.assign(el("abbr", "", `${part.slice(0, 10)}…`), { title: part, tabIndex: 0 });
}

/** One table: what is asked of its rows, and the rows that are left in their order. */
class LiveTable {
  constructor(table, source) {
    Object.assign(this, { table, source, columns: source.columns, list: source.list });
    this.places = new Map(this.columns.map((column, place) => [column.key, place]));
    this.state = { q: "", facets: {}, since: "", until: "", sort: "", down: false, page: 1, size: source.size };
    this.selected = new Set();
    this.order = { of: "", rows: null };
    this.asked = 0;
    this.current = [];
    if (this.list) this.recall();
    this.build();
    if (this.list) {
      addEventListener("hashchange", () => this.recall() && (this.reflect(), this.show()));
      this.show();
    }
  }

  column(key) {
    return this.columns[this.places.get(key)];
  }

  get sortable() {
    return this.columns.filter((column) => !UNREAD.includes(column.kind) && !column.empty);
  }

  // --- what is asked ---

  build() {
    this.heads = [...this.table.tHead.rows[0].cells].filter((head, place) => {
      const column = this.list ? this.column(head.dataset.key) : this.columns[place];
      if (UNREAD.includes(column.kind)) return false;
      const made = el("button", "", head.textContent);
      made.type = "button";
      made.addEventListener("click", () => this.sortBy(column));
      head.replaceChildren(made);
      head.dataset.key = column.key;
      head.setAttribute("aria-sort", "none");
      return true;
    });
    if (!this.list && this.source.count < FILTERED_FROM) return;
    this.none = Object.assign(el("p", "empty", "没有符合的"), { hidden: true });
    this.table.parentElement.after(this.none);
    this.bar = el("div", "filters", this.search(), ...this.choices(), ...this.days(), this.sorter());
    this.bar.setAttribute("role", "search");
    this.table.parentElement.before(this.bar);
    if (this.list) {
      this.said = this.table.closest("section").querySelector(".said");
      this.said.after(this.pager());
      if (this.list.batch.length) this.bar.after(this.batch());
    } else {
      this.said = el("p", "said", `共 ${amount(this.source.count)} 行`);
      this.said.setAttribute("aria-live", "polite");
      this.bar.append(this.said);
    }
    this.reflect();
  }

  search() {
    this.q = el("input", "");
    Object.assign(this.q, { type: "search", autocomplete: "off" });
    let typing = 0;
    this.q.addEventListener("input", () => {
      clearTimeout(typing);
      typing = setTimeout(() => this.change({ q: this.q.value.trim() }), 150);
    });
    return el("label", "wide", this.list ? "文字（片名、ID、原因……）" : "查找", this.q);
  }

  select(label, options, change) {
    const made = el("select", "", ...options.map(([text, value]) => new Option(text, value)));
    made.ariaLabel = label;
    made.addEventListener("change", () => change(made.value));
    return made;
  }

  choices() {
    this.facets = this.columns.filter((column) => column.choices?.length > 1).map((column) => {
      const options = column.choices.map(([code, count]) => [`${column.labels[code]}（${amount(count)}）`, code]);
      const made = this.select(column.head, [["全部", ""], ...options], (code) => {
        const facets = { ...this.state.facets };
        if (code === "") delete facets[column.key];
        else facets[column.key] = Number(code);
        this.change({ facets });
      });
      made.dataset.facet = column.key;
      return made;
    });
    return this.facets.map((made) => el("label", "", made.ariaLabel, made));
  }

  days() {
    if (!this.list?.time) return [];
    const made = (key, text) => {
      this[key] = Object.assign(el("input", ""), { type: "date" });
      this[key].addEventListener("change", () => this.change({ [key]: this[key].value }));
      return el("label", "", text, this[key]);
    };
    return [made("since", `${this.column(this.list.time).head}起`), made("until", "止")];
  }

  /** On a phone there are no heads to press. */
  sorter() {
    const options = this.sortable.flatMap(({ key, head }) => [[`${head} ▲`, key], [`${head} ▼`, `${key} down`]]);
    this.sort = this.select("排序", [[this.list?.order || "原来的", ""], ...options], (chosen) => {
      const [sort, down] = chosen.split(" ");
      this.change({ sort, down: Boolean(down) });
    });
    return el("label", "", "排序", this.sort);
  }

  pager() {
    const turn = (text, label, page) => button(text, label, () => {
      this.state.page = page();
      this.show();
      this.table.closest("section").scrollIntoView();
    });
    this.back = [turn("«", "第一页", () => 1), turn("‹", "上一页", () => this.state.page - 1)];
    this.ahead = [turn("›", "下一页", () => this.state.page + 1), turn("»", "最后一页", () => Infinity)];
    this.page = Object.assign(el("input", ""), { type: "number", min: 1, ariaLabel: "页" });
    this.page.addEventListener("change", () => {
      this.state.page = Number.parseInt(this.page.value, 10) || 1;
      this.show();
    });
    this.pages = el("span", "");
    this.size = this.select("每页行数", SIZES.map((size) => [`每页 ${size}`, size]), (size) => this.change({ size: Number(size) }));
    return el("span", "turns", ...this.back, this.page, this.pages, ...this.ahead, this.size);
  }

  batch() {
    this.batches = this.list.batch.map(([text]) => Object.assign(el("a", "", text), { rel: "noreferrer" }));
    this.unselect = button("取消选择", "取消选择", () => {
      this.selected.clear();
      this.render();
    });
    return el("div", "batch", ...this.batches, this.unselect);
  }

  change(values) {
    Object.assign(this.state, { page: 1 }, values);
    this.reflect();
    this.show();
  }

  /** Amounts and times begin with the largest, texts with the first; pressed a third time, it is the order of old. */
  sortBy({ key, kind, by }) {
    const first = Boolean(by) || !["text", "label", "link"].includes(kind);
    if (this.state.sort !== key) this.change({ sort: key, down: first });
    else if (this.state.down === first) this.change({ sort: key, down: !first });
    else this.change({ sort: "", down: false });
  }

  /** Shows in the controls what is asked. */
  reflect() {
    const { q, facets, sort, down } = this.state;
    this.heads.forEach((head) => {
      head.setAttribute("aria-sort", head.dataset.key === sort ? (down ? "descending" : "ascending") : "none");
    });
    if (!this.bar) return;
    if (this.q.value.trim() !== q) this.q.value = q;
    this.facets.forEach((made) => (made.value = facets[made.dataset.facet] ?? ""));
    this.sort.value = sort ? `${sort}${down ? " down" : ""}` : "";
    for (const key of ["since", "until"]) if (this[key]) this[key].value = this.state[key];
    if (this.size) this.size.value = this.state.size;
  }

  // --- what is left ---

  text(row, place) {
    const column = this.columns[place];
    if (nothing(row[place]) || UNREAD.includes(column.kind)) return "";
    if (column.kind === "label") return labelsOf(column, row[place]).join(" ");
    return Array.isArray(row[place]) ? row[place][0] : String(row[place]); // a link's text
  }

  keeper() {
    const { facets, since, until } = this.state;
    const words = this.state.q.toLowerCase().split(/\s+/).filter(Boolean);
    const chosen = Object.entries(facets).map(([key, code]) => [this.places.get(key), code]);
    const time = this.places.get(this.list?.time);
    return (row) => {
      for (const [place, code] of chosen) {
        const cell = row[place];
        if (Array.isArray(cell) ? !cell.includes(code) : cell !== code) return false;
      }
      if (since && !((row[time] || "") >= since)) return false;
      if (until && !((row[time] || "") && row[time].slice(0, 10) <= until)) return false;
      if (!words.length) return true;
      const text = this.columns.map((_, place) => this.text(row, place)).join("\n").toLowerCase();
      return words.every((word) => text.includes(word));
    };
  }

  /** Returns what a row is sorted by, null for nothing, and how two of them compare. */
  ranking() {
    const place = this.places.get(this.state.sort);
    const { by, kind } = this.columns[place];
    const less = (a, b) => (a < b ? -1 : Number(a > b));
    if (by) return [(row) => row[this.places.get(by)] ?? null, less];
    if (kind === "subject") return [(row) => row[place] || null, less];
    if (["text", "label", "link"].includes(kind)) return [(row) => this.text(row, place) || null, collator.compare];
    return [(row) => (nothing(row[place]) ? null : row[place]), less];
  }

  /** Returns the rows that are left, in their order. */
  ordered() {
    const of = JSON.stringify([this.state.q, this.state.facets, this.state.since, this.state.until, this.state.sort, this.state.down]);
    if (this.order.of === of) return this.order.rows;
    let rows = this.source.rows.filter(this.keeper());
    if (this.state.sort) {
      const [rank, compare] = this.ranking();
      const sign = this.state.down ? -1 : 1;
      const ranked = rows.map((row) => [rank(row), row]);
      // What is empty comes last either way.
      ranked.sort(([a], [b]) => (a === null || b === null ? Number(a === null) - Number(b === null) : sign * compare(a, b)));
      rows = ranked.map(([, row]) => row);
    }
    this.order = { of, rows };
    return rows;
  }

  get filtering() {
    const { q, since, until, sort, facets } = this.state;
    return Boolean(q || since || until || sort || Object.keys(facets).length);
  }

  /** Shows what is asked for; of two that overlap the later one. */
  async show() {
    this.asked += 1;
    const mine = this.asked;
    const { source, state } = this;
    const first = (total) => {
      state.page = Math.max(1, Math.min(state.page, Math.ceil(total / state.size) || 1));
      return (state.page - 1) * state.size || 0;
    };
    const say = (text) => this.said && (this.said.textContent = text);
    try {
      const all = this.filtering || !this.list;
      const begin = first(source.count);
      await source.need(all ? 0 : begin, all ? source.count : Math.min(begin + state.size, source.count), say);
      if (mine !== this.asked) return;
      const rows = all ? this.ordered() : source.rows;
      this.total = rows.length;
      const from = first(this.total);
      this.current = rows.slice(from, from + state.size);
      this.render();
      const every = amount(source.count);
      say(this.total === source.count ? `共 ${every} 行` : `${amount(this.total)} 行符合，共 ${every} 行`);
    } catch (error) {
      say(error.message);
    }
  }

  render() {
    const elements = this.current.map((row) => this.source.element(row));
    if (this.batches) this.current.forEach((row, number) => elements[number].cells[0].prepend(this.box(row)));
    this.table.tBodies[0].replaceChildren(...elements);
    if (this.none) this.none.hidden = Boolean(elements.length);
    if (!this.list) return;
    this.remember();
    const pages = Math.ceil(this.total / this.state.size) || 1;
    Object.assign(this.page, { value: this.state.page, max: pages });
    this.pages.textContent = `/ ${amount(pages)} 页`;
    this.back.forEach((each) => (each.disabled = this.state.page <= 1));
    this.ahead.forEach((each) => (each.disabled = this.state.page >= pages));
    if (this.batches) this.aim();
  }

  box(row) {
    const id = this.source.id(row);
    const made = Object.assign(el("input", ""), { type: "checkbox", checked: this.selected.has(id), ariaLabel: `选中 ${id}` });
    made.addEventListener("change", () => {
      if (made.checked) this.selected.add(id);
      else this.selected.delete(id);
      this.aim();
    });
    return made;
  }

  /** Gives the batch links what they are about: the rows that are selected, or those of this page. */
  aim() {
    const ids = this.selected.size ? [...this.selected] : [...new Set(this.current.map((row) => this.source.id(row)))];
    const taken = ids.slice(0, this.list.most);
    this.batches.forEach((made, place) => {
      const [text, address] = this.list.batch[place];
      made.textContent = `${text}（${this.selected.size ? "已选" : "本页"} ${taken.length} 项）`;
      made.href = (address.startsWith("/") ? this.list.ui : "") + address.replace("{ids}", taken.join("%2C%20"));
      made.hidden = !taken.length;
    });
    this.unselect.hidden = !this.selected.size;
  }

  // --- the address, so that a filtered list can be passed on ---

  remember() {
    const held = new URLSearchParams();
    for (const key of ["q", "since", "until", "sort"]) if (this.state[key]) held.set(key, this.state[key]);
    for (const [key, code] of Object.entries(this.state.facets)) held.set(`_${key}`, this.column(key).labels[code]);
    if (this.state.down) held.set("down", "1");
    if (this.state.page > 1) held.set("page", this.state.page);
    if (this.state.size !== this.list.size) held.set("size", this.state.size);
    // An address that names a chapter stays.
    if (held.size || location.hash.includes("=")) history.replaceState(null, "", `#${held}`);
  }

  /** Takes what is asked from the address; returns whether it asks for anything, rather than for a chapter. */
  recall() {
    const given = location.hash.slice(1);
    if (given && !given.includes("=")) return false;
    const held = new URLSearchParams(given);
    const day = (key) => (/^\d{4}-\d{2}-\d{2}$/.test(held.get(key) || "") ? held.get(key) : "");
    const facets = {};
    this.columns.forEach((each) => {
      const code = each.labels ? each.labels.indexOf(held.get(`_${each.key}`)) : -1;
      if (code >= 0) facets[each.key] = code;
    });
    const size = Number(held.get("size"));
    Object.assign(this.state, { q: held.get("q") || "", since: day("since"), until: day("until"), facets });
    this.state.sort = this.places.has(held.get("sort")) ? held.get("sort") : "";
    this.state.down = held.has("down");
    this.state.page = Number.parseInt(held.get("page"), 10) || 1;
    this.state.size = SIZES.includes(size) ? size : this.list.size;
    return true;
  }
}

// A poster that cannot be had leaves no hole, also one that failed before this script ran.
document.addEventListener("error", (event) => event.target.matches?.("img.poster") && event.target.remove(), true);
document.querySelectorAll("img.poster").forEach((poster) => poster.complete && !poster.naturalWidth && poster.remove());
const here = document.querySelector("nav [aria-current]");
if (here) here.parentElement.scrollLeft = here.offsetLeft - 48; // on a phone the links are swiped
const data = document.getElementById("list-data");
const list = data && JSON.parse(data.textContent);
document.querySelectorAll("table.entries").forEach((table) => {
  if (list?.count && table.closest("section").id === "rows") new LiveTable(table, new PieceRows(list));
  else if (table.tBodies[0].rows.length > 1) new LiveTable(table, new PageRows(table));
});
