"use strict";
/* How a card looks: the comparison, the buttons, and what was chosen. All text from outside is set as text. */

const MARKS = { agree: ["✓", "相符"], disagree: ["✗", "不符"], unknown: ["?", "无法比较或不确定"] };
const number = (value) => Number(value).toLocaleString("zh-CN");
const points = (value) => String(Math.round(value * 10) / 10);

/** Returns an element of a class with children, which are elements or text. */
function el(tag, kind, ...children) {
  const made = document.createElement(tag);
  if (kind) made.className = kind;
  made.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
  return made;
}

function link(kind, address, ...children) {
  const made = el("a", kind, ...children);
  made.href = address;
  made.rel = "noreferrer noopener";
  made.target = "_blank";
  return made;
}

function subjectLink(id) {
  return link("id", `https://movie.douban.com/subject/${id}/`, `${id} ↗`);
}

function button(kind, key, text, act) {
  const made = el("button", kind, key ? el("kbd", "", key) : null, el("span", "", text));
  made.type = "button";
  made.addEventListener("click", act);
  return made;
}

/** Returns words, those that both sides have set off. */
function words(list, others) {
  const same = (word) => word.toLowerCase().replace(/[\s·・.]/g, "");
  const known = new Set((others || []).map(same));
  const made = el("span", "words");
  list.forEach((word, place) => {
    if (place) made.append("、");
    made.append(known.has(same(word)) ? el("b", "", word) : word);
  });
  return made;
}

/** Returns the head of a candidate's column. */
function candidateHead(sheet, card, candidate, pick) {
  const rank = candidate.rank;
  const choose = button("choose", rank <= 9 ? String(rank) : "", `选候选 ${rank}`, () => pick(`c${rank}`));
  choose.dataset.pick = `c${rank}`;
  const share = Math.max(0, Math.min(1, candidate.score / sheet.highest));
  const bar = el("span", "bar", el("i", candidate.score >= sheet.confirm ? "high" : ""));
  bar.firstChild.style.width = `${share * 100}%`;
  const flags = [];
  if (candidate.id === card.id) flags.push(el("span", "flag", "现有 ID"));
  for (const label of candidate.labels) flags.push(el("span", "flag bad", label));
  if (!candidate.fetched) flags.push(el("span", "flag", "仅见于搜索结果，资料未查看"));
  if (candidate.holders) {
    const named = candidate.held.map(([vod, title]) => `${vod}《${title}》`).join("、");
    const more = candidate.holders > candidate.held.length ? ` 等 ${number(candidate.holders)} 部` : "";
    flags.push(el("span", "flag bad", `已关联影片 ${named}${more}`));
  }
  return el(
    "th",
    "candidate",
    choose,
    el("strong", "", candidate.title || "（无片名）"),
    el("span", "sub", candidate.year ? `${candidate.year} · ` : "", subjectLink(candidate.id)),
    el("span", "total", el("b", "", candidate.score.toFixed(1)), ` / ${points(sheet.highest)} 分`, bar),
    ...flags,
  );
}

/** Returns the head of the column of the subject that the video is linked to. */
function currentHead(current) {
  return el(
    "th",
    "current",
    el("span", "flag bad", "现有条目"),
    el("strong", "", current.title),
    el("span", "sub", current.year ? `${current.year} · ` : "", subjectLink(current.id)),
  );
}

/** Returns one cell of a candidate: its words, how the matcher read them, and the points they earned. */
function candidateCell(card, candidate, row) {
  const list = candidate.facts[row] || [];
  const [outcome, earned, most] = candidate.marks[row] || ["", null, null];
  const cell = el("td", outcome);
  if (MARKS[outcome] && (list.length || outcome !== "unknown")) {
    const mark = el("span", "mark", MARKS[outcome][0]);
    mark.title = MARKS[outcome][1];
    mark.setAttribute("role", "img");
    mark.setAttribute("aria-label", MARKS[outcome][1]);
    cell.append(mark);
  }
  cell.append(list.length ? words(list, card.facts[row]) : el("span", "none", "—"));
  const equals = row === "rating" && earned;
  if (equals) cell.append(el("span", "points", `同分时 +${points(earned)}`));
  else if (most && (list.length || earned)) cell.append(el("span", "points", `${points(earned)}/${points(most)}`));
  return cell;
}

/** Returns the comparison: a column for the video, one for each candidate. */
function comparison(sheet, card, pick) {
  const currentFacts = card.current ? [card.current.facts] : [];
  const all = (row) => [card.facts, ...currentFacts, ...card.candidates.map((candidate) => candidate.facts)].some((facts) => facts[row]);
  const head = el("tr", "", el("th", "local", el("span", "label", "本地"), el("strong", "", card.title)));
  if (card.current) head.append(currentHead(card.current));
  card.candidates.forEach((candidate) => head.append(candidateHead(sheet, card, candidate, pick)));
  const body = el("tbody", "");
  const labels = new Map(sheet.labels.map(([name, label]) => [label, name]));
  const currentCell = (of, label) => {
    const list = of.current.facts[labels.get(label)] || [];
    return el("td", "current", list.length ? words(list, of.facts[labels.get(label)]) : el("span", "none", "—"));
  };
  const row = (kind, label, local, cells) => {
    const first = el("th", "local", el("span", "label", label), local);
    first.scope = "row";
    body.append(el("tr", kind, first, ...(card.current ? [currentCell(card, label)] : []), ...cells));
  };
  if (card.candidates.some((candidate) => candidate.conflicts.length)) {
    const list = (candidate) => el("td", "", el("ul", "", ...candidate.conflicts.map((text) => el("li", "", text))));
    row("conflicts", "冲突", null, card.candidates.map(list));
  }
  if (card.candidates.some((candidate) => (card.writes[candidate.id] || []).length)) {
    const lines = (candidate) => (card.writes[candidate.id] || []).map((text) => el("li", "", text));
    row("writes", "替换后写入", null, card.candidates.map((each) => el("td", "", el("ul", "", ...lines(each)))));
  }
  for (const [name, label] of sheet.labels.filter(([name]) => all(name))) {
    const local = card.facts[name] ? words(card.facts[name]) : el("span", "none", "—");
    row("", label, ["rating", "votes"].includes(name) ? null : local, card.candidates.map((each) => candidateCell(card, each, name)));
  }
  const table = el("table", `of-${card.candidates.length + (card.current ? 1 : 0)}`, el("thead", "", head), body);
  const scroll = el("div", "scroll", table);
  scroll.tabIndex = 0;
  scroll.setAttribute("role", "region");
  scroll.setAttribute("aria-label", `《${card.title}》与候选的比较`);
  return scroll;
}

/** Returns the verdict that confirmed a link beside the newest one, row by row. */
function bothVerdicts(card) {
  const head = el("tr", "", ...["", "当时的判定", "现在的判定"].map((text) => el("th", "", text)));
  const rows = card.both.rows.map(([label, then, now, differs]) => {
    const first = el("th", "", label);
    first.scope = "row";
    return el("tr", differs ? "differs" : "", first, el("td", "", then), el("td", "", now));
  });
  const caption = el("caption", "", "现有关联当时为何确认、现在为何存疑（关联未改动）");
  const table = el("table", "both", caption, el("thead", "", head), el("tbody", "", ...rows));
  const scroll = el("div", "scroll", table);
  scroll.tabIndex = 0;
  scroll.setAttribute("role", "region");
  scroll.setAttribute("aria-label", `《${card.title}》前后两次判定`);
  return scroll;
}

/** Returns what is said of a video over its comparison. */
function cardHead(sheet, card, place, total) {
  const facts = [card.year, card.category, `影片 ${card.vod}`, `热度 ${number(card.hits)}`];
  if (card.updated) facts.push(`更新于 ${card.updated}`);
  const flags = [el("span", "flag", card.status), ...card.labels.map((label) => el("span", "flag bad", label))];
  if (card.id) flags.push(el("span", "flag bad", "现有 ID ", subjectLink(card.id)));
  if (card.locked) flags.push(el("span", "flag", "ID 已锁定"));
  if (card.introLocked) flags.push(el("span", "flag", "简介已锁定"));
  if (card.cmsLocked) flags.push(el("span", "flag bad", "CMS 已锁定"));
  if (card.score !== null) flags.push(el("span", "flag", `首选 ${card.score.toFixed(1)} 分，确认线 ${points(sheet.confirm)}`));
  if (card.lead !== null) flags.push(el("span", "flag", `领先次优作品 ${card.lead.toFixed(1)}，至少 ${points(sheet.lead)}`));
  const head = el(
    "header",
    "",
    el("span", "place", `${place}/${total}`),
    el("h3", "", card.title || `影片 ${card.vod}`),
    el("p", "sub", facts.filter(Boolean).join(" · ")),
    el("p", "flags", ...flags),
  );
  if (card.reason) head.append(el("p", "reason", card.reason));
  if (card.stale) head.append(el("p", "warn", "判定之后影片资料已改变，候选可能过时：所选条目在记录时会重新核对；也可选择「重新匹配」。"));
  if (!card.verdict) head.append(el("p", "warn", "尚无判定，没有候选：请指定 ID、重新匹配或忽略。"));
  else if (!card.candidates.length) head.append(el("p", "warn", "没有候选：请指定 ID、重新匹配或忽略。"));
  return head;
}

/** Shows one card and keeps it true to its choice. Only its head stands at once; `fill` adds the rest near the eye. */
class Card {
  constructor(sheet, choices, data, place, total, changed) {
    Object.assign(this, { sheet, choices, data, changed, filled: false, others: [] });
    this.element = el("article", "card", cardHead(sheet, data, place, total));
    this.element.tabIndex = -1;
    this.element.dataset.vod = data.vod;
    this.element.setAttribute("aria-label", `影片 ${data.vod}《${data.title}》`);
  }

  fill() {
    if (this.filled) return;
    this.filled = true;
    const pick = (name) => this.pick(name);
    const shown = this.data.candidates.length ? comparison(this.sheet, this.data, pick) : this.localOnly();
    if (this.data.both) this.element.append(bothVerdicts(this.data));
    this.element.append(shown, this.actions(pick), this.told());
    this.element.classList.add("filled");
    this.show(this.others);
  }

  localOnly() {
    const list = el("dl", "");
    for (const [name, label] of this.sheet.labels) {
      if (this.data.facts[name]) list.append(el("dt", "", label), el("dd", "", words(this.data.facts[name])));
    }
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
    this.input = el("input", "");
    Object.assign(this.input, { type: "text", inputMode: "url", autocomplete: "off", placeholder: "豆瓣 ID 或网址" });
    this.input.setAttribute("aria-label", `为影片 ${this.data.vod} 指定豆瓣 ID 或条目网址`);
    this.input.addEventListener("input", () => {
      const typed = this.input.value.slice(0, 300);
      this.choose({ typed, pick: typed.trim() ? "id" : "" });
    });
    row.append(el("label", "typed", el("kbd", "", "e"), "指定 ID", this.input));
    if (this.data.locked) add("unlock", "c", "解锁 ID");
    else if (this.data.id) add("clear", "c", "清除现有 ID");
    row.append(button("ignore", "i", "忽略", () => this.ignore()));
    add("rematch", "r", "重新匹配");
    row.append(button("lock toggle", "l", "锁定", () => this.toggle("lock")));
    row.append(button("accept toggle", "a", "接受冲突", () => this.toggle("accept")));
    row.append(button("intro toggle", "s", this.data.introLocked ? "解锁简介" : "锁定简介", () => this.toggle("intro")));
    if (this.data.cmsLocked) row.append(button("override toggle", "w", "写入 CMS 锁定", () => this.toggle("override")));
    const search = `https://search.douban.com/movie/subject_search?search_text=${encodeURIComponent(this.data.search)}&cat=1002`;
    row.append(link("", search, "在豆瓣搜索 ↗"));
    return row;
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

  get target() {
    return targetOf(this.data, this.choice, this.sheet.ids);
  }

  get row() {
    const made = [decisionOf(this.data, this.choice, this.sheet.ids), introDecisionOf(this.data, this.choice)];
    return made.filter(Boolean).map(rowOf).join("") || null;
  }

  /** Chooses what a button says; pressed again, it is not chosen any more. */
  pick(name) {
    this.choose({ pick: this.choice.pick === name ? "" : name });
  }

  ignore() {
    const { pick, days } = this.choice;
    const next = pick === "ignore" ? IGNORED_DAYS.indexOf(days) + 1 : 0;
    this.choose(next < IGNORED_DAYS.length ? { pick: "ignore", days: IGNORED_DAYS[next] } : { pick: "", days: 0 });
  }

  toggle(name) {
    this.choose({ [name]: !this.choice[name] });
  }

  choose(changed) {
    this.choices.set(this.data, changed);
    this.changed(this);
  }

  /** Shows the choice; `others` are cards that were given the same subject. */
  show(others) {
    const { sheet, data, choice, row } = this;
    this.others = others;
    const sent = Boolean(row) && this.choices.isSent(data, row);
    this.element.classList.toggle("done", Boolean(row));
    this.element.classList.toggle("sent", sent);
    if (!this.filled) return;
    for (const made of this.element.querySelectorAll("[data-pick]")) {
      made.setAttribute("aria-pressed", String(made.dataset.pick === choice.pick));
    }
    for (const name of ["lock", "accept", "intro", "override"]) {
      this.element.querySelector(`button.${name}`)?.setAttribute("aria-pressed", String(choice[name]));
    }
    const ignore = this.element.querySelector("button.ignore");
    const ignored = choice.pick === "ignore";
    ignore.setAttribute("aria-pressed", String(ignored));
    ignore.lastChild.textContent = !ignored ? "忽略" : choice.days ? `忽略 ${choice.days} 天` : "永久忽略";
    const picked = candidateOf(data, choice);
    this.element.querySelectorAll("th.candidate").forEach((head, place) => {
      head.classList.toggle("picked", data.candidates[place] === picked);
    });
    if (this.input.value !== choice.typed) this.input.value = choice.typed;
    this.input.classList.toggle("picked", choice.pick === "id");
    const told = wordsOf(data, choice, sheet.ids);
    this.chosen.replaceChildren(...(told ? [el("b", "", told)] : []));
    if (row) {
      const { reviewer, note } = this.choices.who;
      const [only] = linksOf(sheet.launch, sheet.most, [row], reviewer, note);
      const launch = link("launch", only.address, sent ? "再次打开启动页 ↗" : "单独打开启动页 ↗");
      launch.addEventListener("click", () => {
        this.choices.send(data, row);
        this.changed(this);
      });
      this.chosen.append(sent ? el("span", "flag", "已打开过启动页") : "", launch);
    }
    this.warnings.replaceChildren(...warningsOf(data, choice, sheet.ids, others).map((text) => el("li", "", text)));
  }
}
