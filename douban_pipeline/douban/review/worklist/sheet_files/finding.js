"use strict";
/* Which videos are shown, and in which order: facets, search, sorting. */

const BANDS = {
  confirm: ["达到确认线", (item, sheet) => item.score !== null && item.score >= sheet.confirm],
  near: ["审核线与确认线之间", (item, sheet) => item.score !== null && item.score >= sheet.review && item.score < sheet.confirm],
  low: ["低于审核线", (item, sheet) => item.score !== null && item.score < sheet.review],
  none: ["没有得分", (item) => item.score === null],
};
const LINKED = {
  yes: ["首选已关联别的影片", (item) => item.linked],
  no: ["首选未被关联", (item) => !item.linked],
  current: ["已有豆瓣 ID", (item) => item.id > 0],
  empty: ["没有豆瓣 ID", (item) => !item.id],
};
const descending = (value) => (one, other) => value(other) - value(one);
const SORTS = {
  queue: ["审核次序", null],
  hits: ["热度，高的在前", descending((item) => item.hits)],
  score: ["得分，高的在前", descending((item) => (item.score === null ? -1 : item.score))],
  low: ["得分，低的在前", (one, other) => (one.score ?? 1000) - (other.score ?? 1000)],
  lead: ["领先，小的在前", (one, other) => (one.lead ?? 1000) - (other.lead ?? 1000)],
  updated: ["更新时间，新的在前", (one, other) => (one.updated < other.updated) - (one.updated > other.updated)],
  year: ["年份，新的在前", descending((item) => Number(item.year) || 0)],
  title: ["片名", (one, other) => one.title.localeCompare(other.title, "zh-Hans")],
};

const folded = (text) => text.toLowerCase().normalize("NFKC");

/** Reads the fields over the cards. */
class Finder {
  constructor(sheet, changed) {
    this.sheet = sheet;
    this.fields = Object.fromEntries(
      ["find", "reason", "year", "category", "score", "linked", "sort"].map((name) => [name, byId(`by-${name}`)]),
    );
    for (const field of Object.values(this.fields)) field.addEventListener("input", () => changed());
    this.offer("score", Object.entries(BANDS).map(([name, [text]]) => [name, text]));
    this.offer("linked", Object.entries(LINKED).map(([name, [text]]) => [name, text]));
    this.offer("sort", Object.entries(SORTS).map(([name, [text]]) => [name, text]), "");
  }

  /** Puts the values into a field, and keeps what was chosen if it is among them. */
  offer(name, values, all = "全部") {
    const field = this.fields[name];
    const before = field.value;
    const options = values.map(([value, text]) => new Option(text, value));
    field.replaceChildren(...(all ? [new Option(all, "")] : []), ...options);
    field.value = values.some(([value]) => value === before) ? before : all ? "" : values[0][0];
  }

  /** Offers what there is to choose among `items`, with how often. */
  learn(items) {
    const counts = { reason: new Map(), year: new Map(), category: new Map() };
    const count = (name, value) => counts[name].set(value, (counts[name].get(value) || 0) + 1);
    for (const item of items) {
      for (const reason of [item.status, ...item.labels]) count("reason", reason);
      count("year", item.year || "无");
      count("category", item.category || "无");
    }
    for (const [name, found] of Object.entries(counts)) {
      const order = name === "year" ? (one, other) => (one[0] < other[0] ? 1 : -1) : (one, other) => other[1] - one[1];
      this.offer(name, [...found].sort(order).map(([value, times]) => [value, `${value}（${number(times)}）`]));
    }
  }

  get active() {
    return Object.entries(this.fields).some(([name, field]) => name !== "sort" && field.value.trim());
  }

  clear() {
    for (const [name, field] of Object.entries(this.fields)) if (name !== "sort") field.value = "";
  }

  /** Returns those of `items` that the fields let through, in the order that they ask for. */
  matching(items) {
    const value = (name) => this.fields[name].value;
    const sought = folded(value("find")).split(/\s+/).filter(Boolean);
    const found = items.filter(
      (item) =>
        (!value("reason") || item.status === value("reason") || item.labels.includes(value("reason"))) &&
        (!value("year") || (item.year || "无") === value("year")) &&
        (!value("category") || (item.category || "无") === value("category")) &&
        (!value("score") || BANDS[value("score")][1](item, this.sheet)) &&
        (!value("linked") || LINKED[value("linked")][1](item)) &&
        (!sought.length || this.says(item, sought)),
    );
    const order = SORTS[value("sort")]?.[1];
    return order ? found.sort(order) : found;
  }

  says(item, sought) {
    const candidates = (item.candidates || []).map((each) => `${each.title} ${each.id}`);
    const text = folded([item.vod, item.title, item.reason, item.id || "", ...candidates].join(" "));
    return sought.every((word) => text.includes(word));
  }

  /** Whether the order is that of the queue, in which seasons stand together. */
  get asQueued() {
    return !SORTS[this.fields.sort.value]?.[1];
  }
}
