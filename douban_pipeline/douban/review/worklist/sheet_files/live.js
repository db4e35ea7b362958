"use strict";
/* The sheet as the service offers it: cards that are claimed, choices that are sent, and what became of them.

   A choice is kept in the browser until the service has recorded it, and sent again under the same name until then: the
   service records a name once. */

/* How long a choice waits for others to be sent with, and for second thoughts; milliseconds. */
const GRACE = 500;
const AGED = 200;
const AT_ONCE = 40;
const WANTED = 24;
const FIRST = 12;
const FEWEST = 10;
const OPEN_AGAIN = ["refused", "reverted"];
const KEPT_BACK = ["held", "outdated"];
const SETTLED = ["applied", "already", ...OPEN_AGAIN];
const KEPT_SENT = 200;
const ABANDONED = 20000;

/** Returns a name that nobody else draws; `crypto.randomUUID` is for secure pages only. */
function drawn() {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

class Live {
  constructor(app) {
    this.app = app;
    this.page = this.kept("page") || drawn();
    // Loaded again, the page claims under another name: what the former one gives up, however late, is not this one's.
    const loads = Number(this.kept("loads")) || 0;
    this.former = loads ? `${this.page}-${loads}` : null;
    this.holder = `${this.page}-${loads + 1}`;
    try {
      sessionStorage.setItem("douban-review:page", this.page);
      sessionStorage.setItem("douban-review:loads", String(loads + 1));
    } catch {
      /* Another page after a reload: the claims of this one expire. */
    }
    this.place = `${app.choices.place}:outbox:`;
    const own = app.choices.read(this.place + this.page);
    this.outbox = new Map(Object.entries(objectOf(own.entries)));
    this.batch = own.batch && Array.isArray(own.batch.entries) ? own.batch : null;
    this.adopt();
    const sent = app.choices.read(`${app.choices.place}:sent`).all;
    this.sent = Array.isArray(sent) ? sent.filter((each) => each && each.key && each.run) : [];
    this.states = new Map(this.sent.map((each) => [each.key, each]));
    // Of thousands few were touched: the others need not be looked up by their key.
    this.touched = new Set([...this.sent, ...this.outbox.values(), ...(this.batch?.entries || [])].map((each) => each.vod));
    this.wait = 0;
    this.asked = false; // until then nobody knows whether anything waits
    this.trouble = "";
    this.busy = { send: false, look: false, load: null };
    this.outdated = new Set();
    this.sharing = new Sharing(this);
  }

  kept(name) {
    try {
      return sessionStorage.getItem(`douban-review:${name}`);
    } catch {
      return null;
    }
  }

  async start() {
    const { app } = this;
    await this.open();
    // The first card is there before the other thousands of lines are asked for.
    requestAnimationFrame(() => setTimeout(() => this.refresh(), 0));
    setInterval(() => this.tick(), 1000);
    addEventListener("visibilitychange", () => document.visibilityState === "hidden" && this.send(true));
    addEventListener("pagehide", () => {
      // What was chosen for stays claimed until it is recorded.
      const open = app.items.filter((item) => item.candidates && !app.isDone(item));
      const given = JSON.stringify({ page: this.holder, given_up: open.map((item) => item.vod) });
      if (open.length) navigator.sendBeacon("release", new Blob([given], { type: "application/json" }));
    });
  }

  /** Asks the service; raises an error with its sentence, and `status` where it answered. */
  async ask(path, body) {
    const request = body
      ? { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body), keepalive: JSON.stringify(body).length < 50000 }
      : {};
    const answer = await fetch(path, { ...request, redirect: "error", credentials: "same-origin", signal: AbortSignal.timeout(25000) });
    if (answer.ok) return answer.status === 204 ? null : answer.json();
    const said = await answer.text();
    let detail = said;
    try {
      ({ detail } = JSON.parse(said));
    } catch {
      /* Plain text. */
    }
    const error = new Error(typeof detail === "string" ? detail : `请求有误（HTTP ${answer.status}）`);
    error.status = answer.status;
    throw error;
  }

  /** Who asks: the page, and who looks at it. */
  get asking() {
    return { page: this.holder, reviewer: this.app.choices.who.reviewer.slice(0, 64) };
  }

  /** Says in the bar what is wrong. */
  report(text) {
    this.trouble = text;
    byId("trouble").textContent = text;
    byId("trouble").hidden = !text;
    // The buttons of the card stick above the bar.
    document.documentElement.style.setProperty("--bar", text ? `${byId("trouble").parentElement.offsetHeight}px` : "");
  }

  /** Says that nothing is wrong any more. */
  calm() {
    if (this.trouble) this.report("");
  }

  /** Says in the bar, for half a minute, what is not wrong. */
  say(text) {
    this.report(text);
    this.trouble = "";
    setTimeout(() => byId("trouble").textContent === text && this.report(""), 30000);
  }

  /** Asks for the first cards; the whole queue comes after them. */
  async open() {
    try {
      const first = askedFor();
      const found = await this.ask("open", { ...this.asking, former: this.former, most: FIRST, first });
      const cards = new Map(found.cards.map((card) => [card.vod, card]));
      this.asked = true;
      const items = found.items.map((item) => Object.assign(item, cards.get(item.vod), { group: item.group }));
      this.app.replace({ ...found, items });
      items.forEach(retarget);
      if (first) this.goTo(first);
    } catch {
      /* What follows says so. */
    }
  }

  /** Goes to the card that the address names. */
  goTo(vod) {
    const item = this.app.listed.find((each) => each.vod === vod);
    if (item) move(this.app.listed.indexOf(item));
    else this.say(`影片 ${vod} 已不在待审核之列，或正由他人审核`);
    history.replaceState(null, "", location.pathname);
  }

  /** Reads the queue, a line for each video; cards that are here stay. */
  async refresh() {
    try {
      const queue = await this.ask(`queue?page=${this.holder}`);
      this.version = queue.version;
      this.asked = true;
      this.app.whole = true;
      this.app.replace(queue);
      await this.reread();
      this.calm();
    } catch (error) {
      this.report(`队列此刻无法读取：${error.status ? error.message : "服务没有应答"}。稍后自动重试`);
    }
  }

  /** Returns cards for as many of `items` as may be had, those here already among them. */
  async load(items, most) {
    while (this.busy.load) await this.busy.load;
    const missing = items.filter((item) => !item.candidates && !this.app.isDone(item) && !this.sharing.left(item));
    if (!missing.length) return;
    const wanted = missing.slice(0, 1000).map((item) => item.vod);
    this.busy.load = this.ask("cards", { ...this.asking, wanted, most })
      .then((found) => this.app.receive(found))
      .catch((error) => this.report(`卡片此刻无法读取：${error.status ? error.message : "服务没有应答"}`))
      .finally(() => (this.busy.load = null));
    await this.busy.load;
  }

  /** Loads more where few cards are left that nobody has decided about. */
  async fill() {
    const { app } = this;
    const open = app.listed.filter((item) => item.candidates && !app.isDone(item)).length;
    const ahead = app.matching.filter((item) => !item.candidates && !app.isDone(item) && !this.sharing.left(item));
    if (this.busy.load || !ahead.length || open >= FEWEST) return;
    await this.load(ahead, WANTED - open);
  }

  /** Notes that a choice is new, another one, or none any more. */
  chosen(item) {
    this.touched.add(item.vod);
    const key = this.app.choices.key(item);
    const row = this.meant(item);
    const before = this.states.get(key);
    const known = before && before.row === row && !OPEN_AGAIN.includes(before.state);
    if (!row || known || this.holds(item)) this.outbox.delete(key);
    else if (!(before && before.row === row && before.state === "refused")) {
      const words = wordsOf(item, this.app.choices.of(item), this.app.sheet.ids);
      const decisions = this.app.choices.decisions(item).map((each) => ({ ...each, seen_id: item.id || 0 }));
      this.outbox.set(key, { key, vod: item.vod, title: item.title, words, row, decisions, at: Date.now() });
      setTimeout(() => this.send(false), GRACE);
    }
    this.keep();
  }

  /** Returns a choice with the id that its card shows: refused because that was another one, it may be meant again. */
  meant(item) {
    const row = this.app.choices.row(item);
    return row && `${row}${item.id || 0}`;
  }

  /** Returns why a choice is not sent: "outdated" on a verdict that is not the last one, "held" by the site's lock as long
      as it does not say that it is meant, "" where it may be. */
  holds(item) {
    const { choices, sheet } = this.app;
    if (!(item.newer || item.cmsLocked) || !(choices.key(item) in choices.made)) return "";
    const choice = choices.of(item);
    if (item.newer && decisionOf(item, choice, sheet.ids)) return "outdated";
    return refusedByLock(item, choice, sheet.ids) ? "held" : "";
  }

  /** Returns how far a choice has come: its state and the sentence that belongs to it. */
  stateOf(item) {
    const sent = this.touched.has(item.vod) ? this.sentOf(this.app.choices.key(item)) : undefined;
    const open = !sent || OPEN_AGAIN.includes(sent.state);
    const held = open && this.holds(item);
    if (!held || sent?.row === this.meant(item)) return sent;
    return { state: held, reason: held === "outdated" ? "这部影片刚刚重新判定：请按 v 查看新的判定，再选一次" : "" };
  }

  sentOf(key) {
    const waits = this.outbox.has(key) || this.batch?.entries.some((entry) => entry.key === key);
    return waits ? { state: "waiting", reason: "" } : this.states.get(key);
  }

  isDone(item) {
    const found = this.stateOf(item);
    return Boolean(found) && ![...KEPT_BACK, ...OPEN_AGAIN].includes(found.state);
  }

  keep() {
    this.app.choices.write(this.place + this.page, { at: Date.now(), entries: Object.fromEntries(this.outbox), batch: this.batch });
  }

  keepSent() {
    this.sent = this.sent.slice(-KEPT_SENT);
    this.app.choices.write(`${this.app.choices.place}:sent`, { all: this.sent });
  }

  /** Takes over what pages left behind that are gone: the same choice twice is harmless. */
  adopt() {
    try {
      for (const name of Object.keys(localStorage).filter((each) => each.startsWith(this.place))) {
        if (name === this.place + this.page) continue;
        const left = this.app.choices.read(name);
        if (Date.now() - left.at < ABANDONED) continue;
        for (const entry of [...(left.batch?.entries || []), ...Object.values(objectOf(left.entries))]) {
          if (entry && entry.key && !this.outbox.has(entry.key)) this.outbox.set(entry.key, entry);
        }
        localStorage.removeItem(name);
      }
      this.keep();
    } catch {
      /* Nothing is kept in this browser. */
    }
  }

  tick() {
    this.ticks = (this.ticks || 0) + 1;
    if (this.outbox.size || this.batch) this.keep();
    this.send(false);
    renewUnseen();
    const waits = this.sent.some((each) => !SETTLED.includes(each.state));
    if (this.ticks % (waits || this.sharing.expects() ? 1 : 8) === 0) this.look();
    this.fill();
  }

  /** Sends what was chosen a moment ago, together; one batch at a time. */
  async send(now) {
    if (this.busy.send || (!this.batch && !this.outbox.size) || (Date.now() < this.wait && !now)) return;
    const { reviewer, note } = this.app.choices.who;
    if (!this.batch) {
      const aged = [...this.outbox.values()].filter((entry) => now || Date.now() - entry.at >= AGED);
      const due = aged.some((entry) => now || Date.now() - entry.at >= GRACE) || aged.length >= AT_ONCE / 2;
      if (!due) return;
      if (!reviewer.trim()) return this.report("请先填写审核员：已选的保存在此浏览器中，填写后自动提交");
      this.batch = { request: drawn(), reviewer: reviewer.trim(), note: note.trim(), entries: aged.slice(0, AT_ONCE) };
      for (const entry of this.batch.entries) this.outbox.delete(entry.key);
      this.keep();
    }
    this.busy.send = true;
    const { entries, ...signed } = this.batch;
    try {
      const { run } = await this.ask("decisions", { ...signed, decisions: entries.flatMap((entry) => entry.decisions) });
      this.took(entries, run, "sent", "");
      this.batch = null;
      this.wait = 0;
      this.tries = 0;
      this.calm();
    } catch (error) {
      if (error.status === 422 || error.status === 400) {
        this.took(entries, "", "refused", error.message);
        this.batch = null;
      } else {
        this.tries = (this.tries || 0) + 1;
        this.wait = Date.now() + Math.min(30000, 1000 * 2 ** this.tries);
        const why = error.status ? error.message : "服务没有应答";
        this.report(`${why}。选择保存在此浏览器中，恢复后自动提交`);
      }
    }
    this.busy.send = false;
    this.keep();
  }

  took(entries, run, state, reason) {
    for (const { key, vod, title, words, row, decisions } of entries) {
      const actions = decisions.map((each) => each.action);
      const entry = { key, vod, title, words, row, run, actions, state, reason, at: Date.now() };
      this.sent = [...this.sent.filter((each) => each.key !== key), entry];
      this.states.set(key, entry);
    }
    this.keepSent();
    this.app.progressed(entries.map((entry) => entry.key));
  }

  /** Asks what became of choices and of the queue, and holds the cards that are here. */
  async look() {
    if (this.busy.look) return;
    this.busy.look = true;
    const { app } = this;
    try {
      const open = this.sent.filter((each) => each.run && !SETTLED.includes(each.state)).slice(-200);
      // A choice that may still be refused comes back to this page.
      const here = app.items.filter((item) => item.candidates && !["applied", "already"].includes(this.stateOf(item)?.state));
      const sent = open.map(({ run, vod, actions }) => ({ run, vod, actions }));
      const hidden = document.visibilityState === "hidden";
      const found = await this.ask("live", { ...this.asking, held: here.map((item) => item.vod), sent, hidden });
      this.settle(open, found.states);
      await this.undoOne();
      app.lose(found.gone);
      if (found.asked) await this.sharing.handOver(found.asked);
      const free = app.others(found.others);
      await this.reread();
      if (!this.batch && !this.outbox.size) this.calm();
      if (found.version !== this.version || (free && !app.listed.length)) await this.refresh();
    } catch (error) {
      if (!this.batch) this.report(`${error.status ? error.message : "服务没有应答"}。稍后自动重试`);
    }
    this.busy.look = false;
  }

  settle(open, states) {
    const changed = [];
    for (const entry of open.filter((each) => each.state !== "undoing" || each.undone)) {
      const own = states.filter((each) => each.run === entry.run && each.vod === entry.vod);
      if (own.length < entry.actions.length) continue;
      // Of two decisions the one that has come less far speaks for both; a refusal before all.
      const rank = (each) => ["refused", "recorded", "reverted", "already", "applied"].indexOf(each.state);
      const [first] = own.sort((one, other) => rank(one) - rank(other));
      if (entry.undone && !["reverted", "refused"].includes(first.state)) continue;
      const state = entry.undone ? "reverted" : first.state;
      if (state === entry.state) continue;
      Object.assign(entry, { state, reason: ["refused", "already"].includes(state) ? first.reason : "" });
      changed.push(entry.key);
      if (state === "refused") this.outdated.add(entry.vod);
    }
    if (changed.length) {
      this.keepSent();
      this.app.progressed(changed);
    }
  }

  /** Reads the cards again whose choice was refused: what speaks against it may have come after they were read. */
  async reread() {
    const typing = document.activeElement?.matches("input") ? document.activeElement.closest("article") : null;
    const items = this.app.items.filter((item) => this.outdated.has(item.vod) && String(item.vod) !== typing?.dataset.vod);
    const wanted = items.filter((item) => item.candidates).map((item) => item.vod).slice(0, 60);
    if (!wanted.length) return;
    this.app.receive(await this.ask("cards", { ...this.asking, wanted, most: wanted.length }), true);
    for (const vod of wanted) this.outdated.delete(vod);
  }

  /** Undoes a choice that was sent, as soon as it is recorded. */
  undo(entry) {
    Object.assign(entry, { state: "undoing", reason: "", undo: drawn() });
    this.keepSent();
    this.app.progressed([entry.key]);
    this.undoOne();
  }

  async undoOne() {
    const entry = this.sent.find((each) => each.state === "undoing" && !each.undone);
    if (!entry || this.undoingNow) return;
    this.undoingNow = true;
    const { run, vod, actions } = entry;
    try {
      await this.ask("undo", { request: entry.undo, reviewer: this.app.choices.who.reviewer.trim(), sent: { run, vod, actions } });
      entry.undone = true;
      this.keepSent();
    } catch (error) {
      entry.tries = (entry.tries || 0) + 1;
      if (error.status === 422 || (error.status === 409 && entry.tries > 30)) {
        Object.assign(entry, { state: "refused", reason: `没有撤销：${error.message}` });
        this.keepSent();
        this.app.progressed([entry.key]);
      }
    }
    this.undoingNow = false;
  }

  /** Returns the last choices that were sent, the newest first. */
  recent() {
    return [...this.sent].sort((one, other) => other.at - one.at).slice(0, 10);
  }
}
