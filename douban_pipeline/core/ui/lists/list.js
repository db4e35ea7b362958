"use strict";
/* Filter, sort and paging of a list page. The rows are in pieces beside the page, each a script that calls `listPiece`,
   because a page that was opened as a file may not fetch. A piece is loaded when its rows are to be shown, all of them
   as soon as something is filtered or sorted. All text from outside is set as text. */

const list = JSON.parse(document.getElementById("list-data").textContent);
const rows = new Array(list.count);
const pieces = new Map();
const places = new Map(list.columns.map((column, place) => [column.key, place]));
const state = { q: "", facets: {}, since: "", until: "", sort: "", down: false, page: 1, size: list.size };
const selected = new Set();
const at = (id) => document.getElementById(id);
let shown = 0;
let kept = { of: "", order: null };

globalThis.listPiece = (name, number, given) => {
  if (name !== list.name) return;
  given.forEach((row, place) => (rows[number * list.piece + place] = row));
};

/** Loads one piece; returns a promise that fails where the file is not there any more. */
function load(number) {
  if (!pieces.has(number)) {
    const promise = new Promise((done, failed) => {
      const script = document.createElement("script");
      script.src = list.files.replace("{}", String(number).padStart(4, "0"));
      script.onload = done;
      script.onerror = () => failed(new Error("这一页已有新的一版，请刷新"));
      document.head.append(script);
    });
    pieces.set(number, promise);
    promise.catch(() => pieces.delete(number));
  }
  return pieces.get(number);
}

/** Loads the pieces of rows `first` to `last`, four at a time, and says how far it is. */
async function need(first, last) {
  const wanted = [];
  for (let number = Math.floor(first / list.piece); number * list.piece < last; number += 1) wanted.push(number);
  let done = 0;
  const worker = async () => {
    while (wanted.length) {
      await load(wanted.shift());
      done += 1;
      if (wanted.length > 3) say(`正在载入……已载入 ${(done * list.piece).toLocaleString("zh-CN")} 行`);
    }
  };
  await Promise.all([worker(), worker(), worker(), worker()]);
}

const column = (place) => list.columns[place];

/** Returns a cell as text, as it is searched. */
function textOf(row, place) {
  const cell = row[place];
  const kind = column(place).kind;
  if (cell === null || cell === undefined || ["links", "picture", "rank"].includes(kind)) return "";
  if (kind === "label") return labelsOf(place, cell).join(" ");
  return String(cell);
}

function labelsOf(place, cell) {
  return (Array.isArray(cell) ? cell : cell === null ? [] : [cell]).map((code) => column(place).labels[code]);
}

function keeps(filter) {
  const q = filter.q.toLowerCase().split(/\s+/).filter(Boolean);
  const facets = Object.entries(filter.facets).map(([key, code]) => [places.get(key), Number(code)]);
  const time = places.get(list.time);
  const textual = list.columns.map((_, place) => place).filter((place) => column(place).kind !== "links");
  return (row) => {
    for (const [place, code] of facets) {
      const cell = row[place];
      if (Array.isArray(cell) ? !cell.includes(code) : cell !== code) return false;
    }
    if (filter.since && !((row[time] || "") >= filter.since)) return false;
    if (filter.until && !((row[time] || "") && row[time].slice(0, 10) <= filter.until)) return false;
    if (!q.length) return true;
    const text = textual.map((place) => textOf(row, place)).join("\n").toLowerCase();
    return q.every((word) => text.includes(word));
  };
}

/** Returns what a cell is sorted by; empty ones always come last. */
function rankOf(place) {
  const { kind, by } = column(place);
  if (by) return (row) => row[places.get(by)];
  if (kind === "label") return (row) => labelsOf(place, row[place]).join(" ") || null;
  if (kind === "subject") return (row) => row[place] || null;
  return (row) => (row[place] === "" ? null : row[place]);
}

/** Returns the rows that are left, in their order, as places; null for all of them in the order of the list. */
function ordered() {
  const of = JSON.stringify([state.q, state.facets, state.since, state.until, state.sort, state.down]);
  if (kept.of === of) return kept.order;
  const filter = keeps(state);
  const order = [];
  rows.forEach((row, place) => filter(row) && order.push(place));
  if (state.sort) {
    const rank = rankOf(places.get(state.sort));
    const ranks = rows.map(rank);
    const sign = state.down ? -1 : 1;
    order.sort((a, b) => {
      const [x, y] = [ranks[a], ranks[b]];
      if (x === y) return a - b;
      if (x === null || x === undefined) return 1;
      if (y === null || y === undefined) return -1;
      return x < y ? -sign : sign;
    });
  }
  kept = { of, order };
  return order;
}

const filtering = () => Boolean(state.q || state.since || state.until || state.sort || Object.keys(state.facets).length);

/** Shows what the state asks for; of two that overlap the later one. */
async function show() {
  shown += 1;
  const mine = shown;
  try {
    let total = list.count;
    let page = [];
    if (filtering()) {
      await need(0, list.count);
      if (mine !== shown) return;
      const order = ordered();
      total = order.length;
      const first = firstOf(total);
      page = order.slice(first, first + state.size).map((place) => rows[place]);
    } else {
      const first = firstOf(total);
      await need(first, Math.min(first + state.size, total));
      if (mine !== shown) return;
      page = rows.slice(first, first + state.size);
    }
    render(page, total);
  } catch (error) {
    say(error.message);
  }
}

function firstOf(total) {
  state.page = Math.max(1, Math.min(state.page, Math.ceil(total / state.size) || 1));
  return (state.page - 1) * state.size;
}

function el(tag, kind, ...children) {
  const made = document.createElement(tag);
  if (kind) made.className = kind;
  made.append(...children);
  return made;
}

function link(text, address) {
  const made = el("a", "", text);
  made.href = address.startsWith("/") ? list.ui + address : address;
  made.rel = "noreferrer";
  return made;
}

const filled = (address, given) => address.replace(/\{(\d)\}/g, (_, place) => encodeURIComponent(given[Number(place)]));
const number = (value) => value.toLocaleString("zh-CN", { maximumFractionDigits: 2 });

function content(row, place) {
  const cell = row[place];
  if (cell === null || cell === undefined || cell === "") return [];
  switch (column(place).kind) {
    case "number":
      return [number(cell)];
    case "subject":
      return cell ? [link(String(cell), `https://movie.douban.com/subject/${cell}/`)] : [];
    case "label":
      return labelsOf(place, cell).map((text) => el("span", "chip", text));
    case "id":
      return [String(cell)];
    case "links": {
      const made = cell.map(([key, ...given]) => link(list.links[key][0], filled(list.links[key][1], given)));
      if (made.length < 3) return made;
      return [...made.slice(0, 2), el("details", "", el("summary", "", "更多"), ...made.slice(2))];
    }
    case "time":
      return [cell.replace(" ", "\u00a0")];
    default:
      return String(cell).split("\n").map((line) => el("div", "", ...line.split(HASH).map(shortHash)));
  }
}

const HASH = /\b([0-9a-f]{40,128})\b/;

/** Returns a part of a text: every other one is a hash, whose first digits say enough; a pointer or a tap shows the whole. */
function shortHash(part, place) {
  if (place % 2 === 0) return part;
  return Object.assign(el("abbr", "", `${part.slice(0, 10)}…`), { title: part, tabIndex: 0 });
}

/** Returns what names a row: with its poster, and as a link to the video's page, where there are any. */
function named(row, parts) {
  const made = el("div", "video");
  const picture = row[places.get("picture")];
  if (picture) {
    const image = el("img", "poster");
    Object.assign(image, { loading: "lazy", decoding: "async", referrerPolicy: "no-referrer", alt: "", width: 40, height: 56 });
    image.addEventListener("error", () => image.remove());
    image.src = list.pictures + picture;
    made.append(image);
  }
  const video = row[places.get(list.video)];
  const shown = el("span", "", ...parts);
  made.append(shown);
  if (list.page && video) {
    const to = link("", list.page.replace("{id}", String(video)));
    to.append(...parts);
    shown.append(to);
  }
  return made;
}

function box(row) {
  const id = row[places.get(list.key)];
  const made = el("input", "");
  Object.assign(made, { type: "checkbox", checked: selected.has(id) });
  made.setAttribute("aria-label", `选中 ${id}`);
  made.addEventListener("change", () => {
    if (made.checked) selected.add(id);
    else selected.delete(id);
    batches();
  });
  return made;
}

let current = [];
const visible = list.columns.map((_, place) => place).filter((place) => !column(place).empty && !["picture", "rank"].includes(column(place).kind));

function render(page, total) {
  current = page;
  remember();
  const body = at("list-rows");
  body.replaceChildren(
    ...page.map((row) => {
      const cells = visible.map((place) => {
        const each = column(place);
        const parts = content(row, place);
        const held = place === visible[0] ? named(row, parts) : el("div", "", ...parts);
        const made = el("td", each.class, ...(parts.length ? [held] : []));
        made.dataset.head = each.head;
        return made;
      });
      if (list.batch.length) cells[0].prepend(box(row));
      return el("tr", "", ...cells);
    }),
  );
  at("list-none").hidden = Boolean(page.length);
  const pages = Math.ceil(total / state.size) || 1;
  at("list-page").value = state.page;
  at("list-page").max = pages;
  at("list-pages").textContent = `/ ${pages.toLocaleString("zh-CN")} 页`;
  for (const [id, off] of [["list-first", state.page <= 1], ["list-back", state.page <= 1]]) at(id).disabled = off;
  for (const [id, off] of [["list-next", state.page >= pages], ["list-last", state.page >= pages]]) at(id).disabled = off;
  const all = list.count.toLocaleString("zh-CN");
  say(total === list.count ? `共 ${all} 行` : `${total.toLocaleString("zh-CN")} 行符合，共 ${all} 行`);
  at("list").dataset.total = total;
  document.querySelectorAll("#list th[data-key]").forEach((head) => {
    const by = head.dataset.key === state.sort;
    head.setAttribute("aria-sort", by ? (state.down ? "descending" : "ascending") : "none");
  });
  at("list-sort").value = state.sort ? `${state.sort}${state.down ? " down" : ""}` : "";
  batches();
}

/** Gives the batch links what they are about: the rows that are selected, or those of this page. */
function batches() {
  const ids = selected.size ? [...selected] : [...new Set(current.map((row) => row[places.get(list.key)]))];
  const taken = ids.slice(0, list.most);
  document.querySelectorAll("#list-batch a").forEach((made, place) => {
    const [text, address] = list.batch[place];
    made.textContent = `${text}（${selected.size ? "已选" : "本页"} ${taken.length} 项）`;
    made.href = (address.startsWith("/") ? list.ui : "") + address.replace("{ids}", taken.join("%2C%20"));
    made.hidden = !taken.length;
  });
  at("list-unselect").hidden = !selected.size;
}

const say = (text) => (at("list-said").textContent = text);

/** Keeps the state in the address, so that a filtered list can be passed on. */
function remember() {
  const held = new URLSearchParams();
  for (const key of ["q", "since", "until", "sort"]) if (state[key]) held.set(key, state[key]);
  for (const [key, code] of Object.entries(state.facets)) held.set(`_${key}`, column(places.get(key)).labels[code]);
  if (state.down) held.set("down", "1");
  if (state.page > 1) held.set("page", state.page);
  if (state.size !== list.size) held.set("size", state.size);
  history.replaceState(null, "", `#${held}`);
}

function recall() {
  const held = new URLSearchParams(location.hash.slice(1));
  const day = (text) => (/^\d{4}-\d{2}-\d{2}$/.test(text) ? text : "");
  Object.assign(state, { q: held.get("q") || "", since: day(held.get("since") || ""), until: day(held.get("until") || "") });
  state.sort = places.has(held.get("sort")) ? held.get("sort") : "";
  state.down = held.has("down");
  state.page = Number.parseInt(held.get("page"), 10) || 1;
  if ([50, 100, 200].includes(Number(held.get("size")))) state.size = Number(held.get("size"));
  list.columns.forEach((each) => {
    const code = each.labels ? each.labels.indexOf(held.get(`_${each.key}`)) : -1;
    if (code >= 0) state.facets[each.key] = code;
  });
}

function changed(values) {
  Object.assign(state, { page: 1 }, values);
  show();
}

function sortBy(key) {
  const down = state.sort === key ? !state.down : list.columns[places.get(key)].kind !== "text";
  // Pressed a third time, it is the order of the list again.
  if (state.sort === key && down === (column(places.get(key)).kind !== "text")) changed({ sort: "", down: false });
  else changed({ sort: key, down });
}

function begin() {
  recall();
  const here = document.querySelector("nav [aria-current]");
  if (here) here.parentElement.scrollLeft = here.offsetLeft - 48; // on a phone the links are swiped
  document.querySelectorAll("#list th[data-key] button").forEach((made) => {
    made.disabled = false;
    made.addEventListener("click", () => sortBy(made.parentElement.dataset.key));
  });
  let typing = 0;
  at("list-q").value = state.q;
  at("list-q").addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(() => changed({ q: at("list-q").value.trim() }), 150);
  });
  for (const key of ["since", "until"]) {
    const made = at(`list-${key}`);
    if (!made) continue;
    made.value = state[key];
    made.addEventListener("change", () => changed({ [key]: made.value }));
  }
  document.querySelectorAll("select[data-facet]").forEach((made) => {
    const key = made.dataset.facet;
    if (key in state.facets) made.value = state.facets[key];
    made.addEventListener("change", () => {
      const facets = { ...state.facets };
      if (made.value === "") delete facets[key];
      else facets[key] = Number(made.value);
      changed({ facets });
    });
  });
  at("list-sort").addEventListener("change", () => {
    const [sort, down] = at("list-sort").value.split(" ");
    changed({ sort: sort || "", down: Boolean(down) });
  });
  at("list-size").value = state.size;
  at("list-size").addEventListener("change", () => changed({ size: Number(at("list-size").value) }));
  at("list-page").addEventListener("change", () => {
    state.page = Number.parseInt(at("list-page").value, 10) || 1;
    show();
  });
  const go = { first: () => 1, back: () => state.page - 1, next: () => state.page + 1, last: () => Infinity };
  for (const [name, page] of Object.entries(go)) {
    at(`list-${name}`).addEventListener("click", () => {
      state.page = page();
      show();
      at("list").scrollIntoView();
    });
  }
  at("list-unselect").addEventListener("click", () => {
    selected.clear();
    render(current, Number(at("list").dataset.total));
  });
  document.querySelectorAll(".needs-script").forEach((made) => (made.hidden = false));
  show();
}

if (list.count) begin();
