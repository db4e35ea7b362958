"use strict";
/* A card: what is known of a video, the buttons, what was chosen and what became of that. */

const STATES = {
  held: ["没有提交", "bad"],
  outdated: ["没有提交", "bad"],
  waiting: ["待发送", ""],
  sent: ["已发送，正在记录", ""],
  recorded: ["已记录，等待执行", "good"],
  applied: ["已执行", "good"],
  already: ["无需记录", "good"],
  refused: ["被拒", "bad"],
  undoing: ["正在撤销", ""],
  reverted: ["已撤销", ""],
};
/* How far a choice has come on its way through the service, in words, and whether that is good. */

/** Shows one card and keeps it true to its choice. Only its head stands at once; `fill` adds the rest near the eye. */
class Card {
  constructor(app, data) {
    Object.assign(this, { app, sheet: app.sheet, choices: app.choices, data, filled: false });
    // Over the card: whatever it comes to say moves nothing under a hand.
    this.renewal = el("div", "renewal");
    this.element = el("article", "card", this.renewal, cardHead(this.sheet, data));
    this.element.tabIndex = -1;
    this.element.dataset.vod = data.vod;
    this.element.setAttribute("aria-label", `影片 ${data.vod}《${data.title}》`);
    this.element.classList.toggle("member", Boolean(data.group));
    this.element.addEventListener("pointerdown", () => app.mark(data));
    this.element.addEventListener("focusin", () => app.mark(data));
    this.show();
  }

  /** Says which of how many it is. */
  place(text) {
    const shown = this.element.querySelector(".place");
    if (shown.textContent !== text) shown.textContent = text;
  }

  fill() {
    if (this.filled) return;
    this.filled = true;
    const pick = (name) => this.pick(name);
    const shown = this.data.candidates.length ? comparison(this.sheet, this.data, pick) : this.localOnly();
    if (this.data.both) this.element.append(bothVerdicts(this.data));
    this.hits = el("div", "hits");
    this.hits.setAttribute("aria-live", "polite");
    this.element.append(shown, el("div", "dock", this.hits, this.actions(pick), this.told()));
    this.element.classList.add("filled");
    this.show();
  }

  /** Makes the rest of the card again. */
  refill() {
    while (this.element.children.length > 2) this.element.lastChild.remove();
    this.filled = false;
    this.fill();
  }

  localOnly() {
    const list = el("dl", "");
    const picture = poster("video", this.data.vod, this.data.poster, this.data.title);
    const frame = poster("frame", this.data.vod, this.data.frame, this.data.title);
    if (picture) list.append(el("dt", "", "海报"), el("dd", "", picture));
    if (frame) list.append(el("dt", "", "画面"), el("dd", "", frame));
    for (const [name, label] of this.sheet.labels) {
      if (this.data.facts[name]) list.append(el("dt", "", label), el("dd", "", words(this.data.facts[name])));
    }
    const links = siteLinks(this.sheet, this.data);
    if (links.length) list.append(el("dt", "", "站点"), el("dd", "site", ...links));
    return list;
  }

  actions(pick) {
    const row = el("div", "actions");
    const add = (name, key, text) => {
      const made = button("", key, text, () => pick(name));
      made.dataset.pick = name;
      row.append(made);
    };
    if (this.data.id) add("keep", "0", "现有 ID 正确");
    if (this.data.candidates.some((each) => each.holders)) {
      row.append(button("duplicate", "d", "同一作品，接受重复", () => this.duplicate()));
    }
    if (this.data.locked) add("unlock", "c", "解锁 ID");
    else if (this.data.id) add("clear", "c", "清除现有 ID");
    row.append(button("ignore", "i", "忽略", () => this.ignore()));
    add("rematch", "r", "重新匹配");
    row.append(button("lock toggle", "l", "锁定", () => this.toggle("lock")));
    row.append(button("accept toggle", "a", "接受冲突", () => this.toggle("accept")));
    row.append(button("intro toggle", "s", this.data.introLocked ? "解锁简介" : "锁定简介", () => this.toggle("intro")));
    if (this.data.cmsLocked) row.append(button("override toggle", "w", "CMS 已锁定，仍要写入", () => this.toggle("override")));
    row.append(this.typedField());
    const search = `https://search.douban.com/movie/subject_search?search_text=${encodeURIComponent(this.data.search)}&cat=1002`;
    row.append(link("", search, "在豆瓣搜索 ↗"));
    return row;
  }

  /** Returns the field for a subject that is not among the candidates.

     The service looks it up first, by its id, its address or words, and shows it beside the candidates: half an id that
     somebody typed is never sent. */
  typedField() {
    this.input = el("input", "");
    const placeholder = "片名、豆瓣 ID 或网址，回车";
    Object.assign(this.input, { type: "text", inputMode: "search", autocomplete: "off", placeholder });
    this.input.setAttribute("aria-label", `为影片 ${this.data.vod} 指定豆瓣 ID、网址或片名`);
    this.input.setAttribute("aria-keyshortcuts", "e");
    this.input.addEventListener("keydown", (event) => event.key === "Enter" && !event.isComposing && this.find());
    this.input.addEventListener("paste", () => setTimeout(() => subjectId(this.input.value, this.sheet.ids) && this.find(), 0));
    return el("label", "typed", keySign("e"), "找条目", this.input);
  }

  /** Looks up what is typed: one subject by its id, or those that a search names. */
  async find() {
    const text = this.input.value.trim().slice(0, 100);
    if (!text) return;
    const id = subjectId(text, this.sheet.ids);
    const there = this.data.candidates.find((each) => each.id === id);
    if (there) return this.found(`这个条目是候选 ${there.rank}`);
    this.found(id ? "正在向豆瓣查询…" : "正在搜索…");
    try {
      if (id) await this.add(id);
      else this.list((await this.app.live.ask("search", { words: text })).hits);
    } catch (error) {
      this.found(error.status ? error.message : "服务没有应答，请稍后再试");
    }
  }

  /** Puts a subject beside the candidates. */
  async add(id) {
    const { writes, ...named } = await this.app.live.ask("subject", { vod: this.data.vod, id });
    const { candidates } = this.data;
    const there = candidates.find((each) => each.id === id);
    const rank = there ? there.rank : Math.max(0, ...candidates.map((each) => each.rank)) + 1;
    if (!there) candidates.push({ ...named, rank, named: true });
    this.data.writes[id] = writes;
    this.refill();
    this.found(`《${named.title}》在候选旁边，按 ${rank} 选它`);
    this.element.focus({ preventScroll: true });
    this.element.querySelector(`[data-pick=c${rank}]`).scrollIntoView({ block: "nearest", inline: "end", behavior: "instant" });
  }

  /** Lists what a search named. */
  list(hits) {
    const line = ({ id, title, year, tv }) => {
      const facts = [year, tv ? "剧集" : "", id].filter(Boolean).join(" · ");
      return el("li", "", button("", "", `${title || "（无片名）"}　${facts}`, () => this.take(id)));
    };
    this.found(hits.length ? `搜到 ${hits.length} 个条目，点一个与影片比较：` : "没有搜到条目", hits.map(line));
  }

  async take(id) {
    this.input.value = String(id);
    await this.find();
  }

  /** Says what came of looking something up. */
  found(text, lines = []) {
    this.hits.replaceChildren(el("p", "", text), ...(lines.length ? [el("ul", "", ...lines)] : []));
  }

  told() {
    this.chosen = el("p", "chosen");
    this.warnings = el("ul", "warnings");
    const told = el("div", "told", this.chosen, this.warnings);
    told.setAttribute("aria-live", "polite");
    return told;
  }

  get choice() {
    return this.choices.of(this.data);
  }

  /** Chooses what a button says; pressed again, it is not chosen any more. */
  pick(name) {
    const again = isPressed(this.data, this.choice, name, this.sheet.ids);
    this.choose(again ? { pick: "" } : this.picking(name), !again);
  }

  /** Returns the choice of a button: a subject that was named is chosen by its id, which holds after a reload, too. */
  picking(name) {
    const named = namedBy(this.data, name);
    return named ? { pick: "id", typed: String(named.id) } : { pick: name };
  }

  /** Chooses a candidate although something speaks against it; pressed again, it is not chosen any more. */
  accept(name) {
    const again = this.choice.accept && isPressed(this.data, this.choice, name, this.sheet.ids);
    this.choose(again ? { pick: "", accept: false } : { ...this.picking(name), accept: true }, !again);
  }

  ignore() {
    const { pick, days } = this.choice;
    const next = pick === "ignore" ? IGNORED_DAYS.indexOf(days) + 1 : 0;
    this.choose(next < IGNORED_DAYS.length ? { pick: "ignore", days: IGNORED_DAYS[next] } : { pick: "", days: 0 });
  }

  duplicate() {
    const changed = duplicateOf(this.data, this.choice);
    if (changed) this.choose(changed, true);
  }

  /** Sets or clears a flag; one that says that a choice is meant nevertheless completes it. */
  toggle(name) {
    const { pick, [name]: before } = this.choice;
    this.choose({ [name]: !before }, Boolean(pick) && !before && ["accept", "override"].includes(name));
  }

  /** Changes the choice; `whole` says that nothing more is to be pressed for it. */
  choose(changed, whole = false) {
    this.choices.set(this.data, changed);
    this.app.changed([this.data], whole);
  }

  /** Shows the choice, and what became of it. */
  show() {
    const { sheet, data, choice, app } = this;
    const state = app.stateOf(data);
    this.element.classList.toggle("done", app.isDone(data));
    this.element.classList.toggle("sent", Boolean(state));
    this.element.classList.toggle("refused", ["held", "outdated", "refused"].includes(state?.state));
    showRenewal(this.renewal, data);
    if (!this.filled) return;
    for (const made of this.element.querySelectorAll("[data-pick]")) {
      made.setAttribute("aria-pressed", String(isPressed(data, choice, made.dataset.pick, sheet.ids)));
    }
    for (const name of ["lock", "accept", "intro", "override"]) {
      this.element.querySelector(`button.${name}`)?.setAttribute("aria-pressed", String(choice[name]));
    }
    const ignore = this.element.querySelector("button.ignore");
    const ignored = choice.pick === "ignore";
    ignore.setAttribute("aria-pressed", String(ignored));
    ignore.lastChild.textContent = !ignored ? "忽略" : choice.days ? `忽略 ${choice.days} 天` : "永久忽略";
    this.element.querySelectorAll("th.candidate").forEach((head, place) => {
      head.classList.toggle("picked", isPressed(data, choice, `c${data.candidates[place].rank}`, sheet.ids));
    });
    this.input.classList.toggle("picked", choice.pick === "id");
    const told = wordsOf(data, choice, sheet.ids);
    this.chosen.replaceChildren(...(told ? [el("b", "", told)] : []), ...(state ? this.progressed(state) : []));
    const others = app.rivalsOf(data);
    const warnings = warningsOf(data, choice, sheet.ids, others, state?.state === "held");
    this.warnings.replaceChildren(...warnings.map((text) => el("li", "", text)));
  }

  /** Returns what became of a choice. */
  progressed({ state, reason }) {
    const [text, tone] = STATES[state] || [state, ""];
    return [el("span", `flag state ${tone}`, text), reason ? el("span", "sentence", reason) : null].filter(Boolean);
  }
}
