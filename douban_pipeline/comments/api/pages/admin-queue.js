"use strict";
// The queue: comments that a search found, the one that keys speak to, and decisions about them.
import { $, T, button, call, decisions, element, guarded, open, say, text, when } from "./admin.js";

const FIELDS = ["text", "type", "object", "section", "user", "address", "since", "until", "reports"];
const LEAST = 8;  // rows below which the next page is read
const LATE = 30;  // seconds after which no comment worker is assumed to run
const LOOK = 60_000;  // milliseconds between two looks for what was added
const DAY = 86400_000;

export class Queue {
  constructor() {
    this.rows = new Map();
    this.current = null;
    this.next = null;
    this.decided = new Set();
    setInterval(() => this.look(), LOOK);
    $("fresh").onclick = () => guarded(() => this.search());
    $("filters").onsubmit = event => { event.preventDefault(); guarded(() => this.search()); };
    for (const radio of document.querySelectorAll("[name=status]")) radio.onchange = () => guarded(() => this.search());
    $("clear").onclick = () => { $("filters").reset(); guarded(() => this.search()); };
    $("all").onchange = () => { for (const row of this.rows.values()) row.box.checked = $("all").checked; this.count(); };
    for (const each of document.querySelectorAll("[data-many]")) each.onclick = () => guarded(() => this.decideMany(each.dataset.many));
    for (const each of document.querySelectorAll("[data-reason]")) each.onclick = () => this.choose(each);
    $("ban-form").onsubmit = event => { if (event.submitter.value) guarded(() => this.setLevel()); };
  }

  /** Looks for comments that were added to what the filters ask for, and says how many; the list stays as it is. */
  async look() {
    if (document.hidden || $("queue").hidden || !this.rows.size) return;
    const newest = BigInt([...this.rows.keys()].reduce((most, id) => BigInt(id) > BigInt(most) ? id : most));
    const page = await call("GET", "/admin/search?" + this.asked()).catch(() => null);  // asked again a minute later
    const added = page ? page.items.filter(item => BigInt(item.id) > newest && !this.decided.has(item.id)).length : 0;
    $("fresh").hidden = !added;
    $("fresh").textContent = text("fresh", { count: added });
  }

  /** Reads the first page of what the filters ask for. */
  async search() {
    this.next = null;
    $("fresh").hidden = true;
    this.rows.clear();
    $("list").replaceChildren();
    $("all").checked = false;
    await this.more();
    this.go([...this.rows.keys()][0]);
    const { waiting_seconds: waits } = await call("GET", "/admin/state");
    if (waits > LATE) say(text("late", { seconds: Math.round(waits) }), true);
  }

  asked() {
    const asked = new URLSearchParams(), status = document.querySelector("[name=status]:checked").value;
    if (status) asked.set("status", status);
    if ($("because").value) asked.set("reason", $("because").value);
    let narrowed = $("because").value ? 1 : 0;
    for (const name of FIELDS) {
      let value = $(name).value.trim();
      if (!value) continue;
      narrowed += name !== "text";
      if (name === "since" || name === "until") {
        const day = new Date(value + "T00:00");
        day.setDate(day.getDate() + (name === "until"));
        value = day.toISOString();
      }
      asked.set(name, value);
    }
    $("narrowed").textContent = narrowed ? `(${narrowed})` : "";
    return asked;
  }

  async more() {
    const asked = this.asked();
    if (this.next) asked.set("before", this.next);
    const page = await call("GET", "/admin/search?" + asked);
    this.next = page.next;
    for (const item of page.items) if (!this.rows.has(item.id)) $("list").append(this.add(item).element);
    this.count();
  }

  add(item) {
    const row = new Row(this, item);
    this.rows.set(item.id, row);
    return row;
  }

  count() {
    const picked = this.picked().length;
    $("picked").textContent = picked ? text("picked", { count: picked }) : T.all;
    const end = this.next ? button(T.load_more, () => this.more()) : this.rows.size ? T.no_more : T.nothing;
    $("end").replaceChildren(`${text("found", { count: this.rows.size })} `, end);
  }

  picked() {
    return [...this.rows.values()].filter(row => row.box.checked);
  }

  go(id, seen = true) {
    this.rows.get(this.current)?.element.classList.remove("current");
    this.current = id;
    const row = this.rows.get(id);
    if (!row) return;
    row.element.classList.add("current");
    if (!seen) return;
    row.element.focus({ preventScroll: true });
    row.element.scrollIntoView({ block: "nearest" });
  }

  step(by) {
    const ids = [...$("list").children].map(each => each.dataset.id), at = ids.indexOf(this.current);
    if (at + by >= ids.length && this.next) return guarded(async () => { await this.more(); this.step(by); });
    this.go(ids[Math.min(Math.max(at + by, 0), ids.length - 1)]);
  }

  /** Does what a key stands for; returns whether it stands for anything. */
  press(key) {
    const row = this.rows.get(this.current);
    if (key === "j" || key === "ArrowDown") this.step(1);
    else if (key === "k" || key === "ArrowUp") this.step(-1);
    else if (key === "/") $("text").focus();
    else if (key === "g") guarded(() => this.search());
    else if (/^[1-6]$/.test(key)) this.choose(document.querySelectorAll("[data-reason]")[key - 1]);
    else if (!row) return false;
    else if (key === "x") { row.box.checked = !row.box.checked; this.count(); }
    else if (row.keys[key]) guarded(() => row.keys[key]());
    else return false;
    return true;
  }

  choose(chosen) {
    for (const each of document.querySelectorAll("[data-reason]")) each.setAttribute("aria-pressed", each === chosen);
    $("reason").value = "";
  }

  reason(status) {
    const own = $("reason").value.trim();
    if (own.length > 1) return own;
    if (status !== 2) return status ? T.looking : T.harmless;
    return document.querySelector("[data-reason][aria-pressed=true]").dataset.reason;
  }

  decideMany(name) {
    const rows = this.picked();
    if (rows.length) return this.decide(rows, { approve: 0, delete: 2 }[name]);
  }

  /** Decides about rows; those that are decided leave, and those that may not be stay and say why. */
  async decide(rows, status) {
    const ids = rows.map(row => row.item.id);
    const found = await call("POST", "/admin/moderate", { ids, status, reason: this.reason(status), dry_run: false });
    const done = rows.filter(row => !(row.item.id in found.refused));
    const name = { 0: "approved", 1: "held", 2: "deleted" }[status];
    const what = done.length === 1 ? done[0].item.content.slice(0, 24) : text("found", { count: done.length });
    if (done.length) {
      decisions.add(text(name, { what }), [["POST", "/admin/undo", { batch: found.batch, reason: T.undo }]], done.map(row => row.item));
      this.leave(done);
      say(text(name, { what }));
    }
    const why = Object.values(found.refused);
    if (why.length) say(text("refused", { why: why.join("；") }), true);
  }

  /** Takes decided rows away and goes to the next; under "all" they stay and say that it is being applied. */
  leave(rows) {
    const listed = [...$("list").children].map(each => each.dataset.id), gone = new Set(rows.map(row => row.item.id));
    const at = listed.indexOf(this.current);
    const next = gone.has(this.current) ? listed.slice(at).find(id => !gone.has(id)) || listed.slice(0, at).findLast(id => !gone.has(id)) : this.current;
    for (const row of rows) {
      this.decided.add(row.item.id);
      this.rows.delete(row.item.id);
      row.element.remove();
    }
    this.go(next);
    this.count();
    if (this.rows.size < LEAST && this.next) guarded(() => this.more());
  }

  /** Shows rows again whose decision was undone. */
  back(items) {
    for (const item of items.filter(item => !this.rows.has(item.id)).reverse()) $("list").prepend(this.add({ ...item, pending: true }).element);
    if (items.length) { open("queue"); this.go(items[0].id); }
    this.count();
  }

  narrow(values) {
    for (const name of FIELDS) $(name).value = values[name] || "";
    $("because").value = "";
    document.querySelector(`[name=status][value="${values.status || ""}"]`).checked = true;
    open("queue");
    return this.search();
  }

  ban(row) {
    const { user, address } = row.item, whom = [];
    if (user) whom.push(["user", user, text("user", { number: user })]);
    if (address) whom.push(["address", address, address]);
    if (address && address.includes(".")) whom.push(["address", address.replace(/\d+$/, "0/24"), address.replace(/\d+$/, "0/24")]);
    if (!whom.length) return say(text("refused", { why: T.address }), true);
    $("ban-whom").replaceChildren(...whom.map(([kind, subject, name]) => element("option", { value: `${kind} ${subject}`, text: name })));
    $("ban-reason").value = this.reason(2);
    $("ban").showModal();
  }

  async setLevel() {
    const [kind, subject] = $("ban-whom").value.split(" "), days = Number($("ban-days").value);
    const until = days ? new Date(Date.now() + days * DAY).toISOString() : null;
    const made = await call("POST", "/admin/trust", { kind, subject, level: $("ban-level").value, reason: $("ban-reason").value, until });
    const what = `${T["level_" + $("ban-level").value]} ${made.subject}`;
    decisions.add(what, [["DELETE", "/admin/trust/" + made.id]]);
    say(text("done", { what }));
  }
}

class Row {
  constructor(queue, item) {
    this.queue = queue;
    this.item = item;
    this.keys = {
      a: () => queue.decide([this], 0), d: () => queue.decide([this], 2), r: () => queue.decide([this], 1),
      p: () => this.toggle("pin", "pinned", T.pin, T.unpin), f: () => this.toggle("feature", "featured", T.feature, T.unfeature),
      m: () => this.toggle("promote", "promoted", T.promote, T.unpromote), v: () => this.set("review_first", T.review_first_on, T.review_first_off),
      b: () => queue.ban(this), c: () => this.set("closed", T.close_section, T.open_section), e: () => this.explain(), o: () => this.rule(),
    };
    this.box = element("input", { type: "checkbox", "aria-label": text("floor", { number: item.floor }), onchange: () => queue.count() });
    this.detail = element("div", { class: "detail", hidden: true });
    this.further = element("div", { class: "acts" });
    this.body = element("div", { class: "body" });
    this.element = element("article", { id: "c" + item.id, "data-id": item.id, tabindex: "-1" }, this.box, this.poster(), this.body);
    this.element.addEventListener("pointerdown", () => queue.go(item.id, false));
    this.fill();
  }

  poster() {
    const { object } = this.item, kind = T["kind_" + object.type] || "";
    if (!object.poster) return element("div", { class: "poster", "aria-hidden": "true" }, kind);
    const image = element("img", { class: "poster has", src: `/comments/v1/admin/films/${object.id}/poster`, alt: "", loading: "lazy", width: "48", height: "69" });
    image.onerror = () => image.replaceWith(element("div", { class: "poster", "aria-hidden": "true" }, kind));
    return image;
  }

  fill() {
    const { item } = this, { object } = item, pattern = document.body.dataset.page;
    const name = object.title || text("page_of", { kind: T["kind_" + object.type] || "", number: object.id });
    const film = element("div", { class: "film" }, button(name, () => this.queue.narrow({ type: object.type, object: object.id }), { class: "plain" }),
      pattern && object.type === 1 ? element("a", { href: pattern.replace("{id}", object.id), target: "_blank", rel: "noreferrer", "aria-label": name }, "↗") : null,
      object.closed ? element("span", { class: "bad", text: T.closed }) : null, object.review_first ? element("span", { class: "why", text: T.review_first }) : null);
    const facts = element("div", { class: "facts" }, this.facts());
    const reported = Object.entries(item.reported).map(([reason, count]) => `${T["because_" + reason] || reason} × ${count}`);
    const why = [...item.reasons, ...reported];
    this.further.replaceChildren(this.act("m", item.promoted ? T.unpromote : T.promote, item.promoted),
      this.act("v", object.review_first ? T.review_first_off : T.review_first_on, object.review_first));
    this.body.replaceChildren(film, element("div", { class: "text", text: item.erased ? T.erased : item.content }),
      why.length ? element("div", { class: "why", text: why.join("；") }) : "", facts, this.acts(), this.detail);
  }

  facts() {
    const { item } = this, author = item.name || (item.user ? text("user", { number: item.user }) : T.guest);
    const words = name => element("span", { text: name });
    return [
      element("span", { class: item.status, text: T["status_" + { NORMAL: 0, REVIEW: 1, DELETED: 2 }[item.status]] }),
      item.pending ? element("span", { class: "tag", text: T.pending }) : null,
      item.pinned ? element("span", { class: "tag", text: T.pinned }) : null, item.featured ? element("span", { class: "tag", text: T.featured }) : null,
      item.promoted ? element("span", { class: "why", text: T.promoted }) : null,
      item.user ? button(author, () => this.queue.narrow({ user: item.user }), { class: "plain" }) : words(author),
      item.address ? button(item.address, () => this.queue.narrow({ address: item.address }), { class: "plain" }) : null,
      words(when(item.at)), words(item.root ? `${T.reply} #${item.floor}` : `#${item.floor}`),
      ...["likes", "dislikes", "replies"].filter(name => item[name]).map(name => words(text(name, { count: item[name] }))),
      item.reports ? words(text("reported", { count: item.reports })) : null,
      item.edits ? button(text("edited", { count: item.edits }), () => this.explain(), { class: "plain" }) : null,
      item.status !== "NORMAL" || item.rank !== "用户" ? words(text("decided_by", { who: item.by })) : null,
    ];
  }

  act(key, words, on) {
    return button([element("kbd", { "aria-hidden": "true", text: key }), words], this.keys[key], { "aria-keyshortcuts": key, ...(on === undefined ? {} : { "aria-pressed": String(on) }) });
  }

  acts() {
    const { item } = this, act = (...given) => this.act(...given);
    return element("div", { class: "acts" },
      item.status !== "NORMAL" && !item.erased ? act("a", T.approve) : null, item.status !== "DELETED" ? act("d", T.delete) : null,
      item.status === "NORMAL" ? act("r", T.hold) : null, item.root ? null : act("p", item.pinned ? T.unpin : T.pin, item.pinned),
      act("f", item.featured ? T.unfeature : T.feature, item.featured), act("b", T.ban),
      act("c", item.object.closed ? T.open_section : T.close_section, item.object.closed), act("e", T.details), item.root ? null : act("o", T.order_rule));
  }

  async toggle(path, field, on, off) {
    const { item } = this, wanted = !item[field];
    if (field === "pinned" && item.root) return;
    await call("PUT", `/comments/${item.id}/${path}`, { on: wanted });
    decisions.add(wanted ? on : off, [["PUT", `/comments/${item.id}/${path}`, { on: !wanted }]]);
    item[field] = wanted;
    this.fill();
    say(text("done", { what: wanted ? on : off }));
  }

  /** Switches something of the section: whether it is closed, or reviews first. */
  async set(field, on, off) {
    const { object } = this.item, wanted = !object[field], path = `/sections/${object.type}/${object.id}`;
    const what = `${wanted ? on : off} ${object.title}`;
    await call("PATCH", path, { [field]: wanted });
    decisions.add(what, [["PATCH", path, { [field]: !wanted }]]);
    for (const row of this.queue.rows.values()) if (row.item.section === this.item.section) { row.item.object[field] = wanted; row.fill(); }
    say(text("done", { what }));
  }

  rule() {
    $("rule-section").value = this.item.section;
    open("rules");
  }

  async explain() {
    if (!this.detail.hidden) { this.detail.hidden = true; return; }
    const found = await call("GET", "/admin/comments/" + this.item.id);
    const list = (name, lines) => lines.length ? [element("h3", { text: name }), element("ol", {}, lines.map(line => element("li", { text: line })))] : [];
    const state = name => T["status_" + { NORMAL: 0, REVIEW: 1, DELETED: 2 }[name]];
    const decided = found.decided.map(d => `${when(d.at)} ${d.actor}：${state(d.from)} → ${state(d.to)} ${d.reason}${d.undone ? `（${T.undone_mark}）` : ""}`);
    const earlier = found.edits.map(edit => `${when(edit.at)}  ${edit.content}`);
    const why = found.why.length ? found.why : found.heat ? Object.entries(found.heat.parts).map(([name, part]) => `${name} ${part > 0 ? "+" : ""}${Number(part).toFixed(3)}`) : [T.no_heat];
    this.detail.replaceChildren(...list(T.earlier, earlier), ...list(T.decisions, decided), ...list(T.rank, why), this.further);
    this.detail.hidden = false;
  }
}
