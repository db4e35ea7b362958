"use strict";
/* The page: cards, and the bar with what was chosen. */

const sheet = JSON.parse(document.getElementById("sheet").textContent);
const app = {
  sheet,
  choices: new Choices(sheet),
  items: [],
  matching: [],
  listed: [],
  current: null,
  live: null,
  targets: new Map(),
  cards: new Map(),
  view: { advance: true, hide: true, rows: false, tools: false },
};
const { choices } = app;
const PREVIEWED = 500;
const READING = "正在读取…";

/** Returns the card of an item, made when it is first looked at. */
function cardOf(item) {
  if (!app.cards.has(item.vod)) app.cards.set(item.vod, new Card(app, item));
  return app.cards.get(item.vod);
}

app.stateOf = (item) => app.live.stateOf(item);
app.isDone = (item) => app.live.isDone(item);

/** Returns the other videos that were given the same subject. */
app.rivalsOf = (item) => {
  const rivals = app.targets.get(item.target) || new Set();
  return item.target ? [...rivals].filter((other) => other !== item) : [];
};

/** Keeps who was given which subject; returns the items whose warnings change by it. */
function retarget(item) {
  const target = item.candidates ? targetOf(item, choices.of(item), sheet.ids) : 0;
  if (target === item.target) return [];
  const others = [];
  app.targets.get(item.target)?.delete(item);
  others.push(...(app.targets.get(item.target) || []));
  item.target = target;
  if (target) {
    others.push(...(app.targets.get(target) || []));
    app.targets.set(target, (app.targets.get(target) || new Set()).add(item));
  }
  return others;
}

/** Shows anew what was chosen for items; `whole`: nothing more is to be pressed for the current one.

   A choice that would be refused is not left: its card says why, and which key means it nevertheless. */
app.changed = (items, whole = false) => {
  const around = new Set(items.flatMap((item) => [item, ...retarget(item)]));
  for (const item of items) app.live.chosen(item);
  for (const item of around) app.cards.get(item.vod)?.show();
  const [first] = items;
  const refused = () =>
    app.stateOf(first)?.state === "outdated" ||
    refusedByLock(first, choices.of(first), sheet.ids) || conflictsOf(first, choices.of(first), sheet.ids, app.rivalsOf(first)).length;
  // The card says it as well, but it goes out of sight.
  const { state, reason } = app.stateOf(first) || {};
  const held = { held: "。没有提交：CMS 锁定了这部影片，确认要写入请按 w", outdated: `。没有提交：${reason}` }[state] || "";
  if (whole && choices.row(first)) announce(first, `：${wordsOf(first, choices.of(first), sheet.ids)}${held}`);
  if (whole && app.view.advance && choices.row(first) && !refused()) next();
  else if (app.view.hide && items.length > 1) list();
  tell();
};

/** Shows anew what the service says of choices. */
app.progressed = (keys) => {
  const these = new Set(keys);
  app.window.steady(() => {
    for (const item of app.items.filter((each) => these.has(choices.key(each)))) {
      if (app.stateOf(item)?.state === "reverted") {
        choices.put(item, NOTHING);
        retarget(item);
      }
      const { state, reason } = app.stateOf(item) || {};
      if (state === "refused") announce(item, `${STATES.refused[0]}：${reason}`);
      app.cards.get(item.vod)?.show();
    }
    if (app.view.hide) list();
  });
  tell();
  if (byId("recent").open) showRecent();
};

/** Takes the queue as the service has it now; cards that are here stay as they are. */
app.replace = ({ items, waiting, decided, others }) => {
  Object.assign(sheet, { waiting, decided, others });
  const before = new Map(app.items.map((item) => [item.vod, item]));
  const fresh = items.map((item) => {
    const old = before.get(item.vod);
    const anew = old && old.verdict < item.verdict;
    if (!old || (anew && !old.candidates)) return item;
    if (anew && (!app.isDone(old) || app.live.outbox.has(choices.key(old)))) judgedAnew(old, item.verdict);
    return Object.assign(old, { group: item.group });
  });
  const there = new Set(fresh.map((item) => item.vod));
  // What was decided here stays until the page is left, so that it can be looked at again.
  const own = app.items.filter((item) => !there.has(item.vod) && (app.isDone(item) || item === app.current));
  app.window.steady(() => {
    for (const item of app.items) if (!fresh.includes(item) && !own.includes(item)) forget(item);
    app.items = [...own, ...fresh];
    app.finder.learn(app.items);
    introduce();
    find();
  });
};

/** Takes cards that were claimed; one that is here already stays, as somebody looks at it, unless it is read `anew`, and
   even then where it is of another verdict. */
app.receive = ({ cards, gone }, anew = false) => {
  const known = new Map(app.items.map((item) => [item.vod, item]));
  app.window.steady(() => {
    const { current } = app;
    const focused = document.activeElement?.closest("article")?.dataset.vod;
    for (const card of cards) {
      const item = known.get(card.vod);
      if (!item || (item.candidates && item.verdict === card.verdict && !anew) || keepsOld(item, card)) continue;
      const renewed = renewalOf(item, card) || (item.verdict === card.verdict && item.renewed);
      forget(item, true);
      Object.assign(item, card, { group: item.group, newer: null, renewed });
      retarget(item);
      // A lock that is known by now holds back what was not sent yet.
      if (app.live.outbox.has(choices.key(item))) app.live.chosen(item);
    }
    // The current card stays the current one, also where it is made again.
    if (current && app.items.includes(current)) mark(current);
    if (current?.renewed && cards.some((card) => card.vod === current.vod)) announce(current, current.renewed);
    app.lose(gone);
    if (cards.length) find();
    const { element } = (app.current && app.cards.get(app.current.vod)) || {};
    if (focused && element?.dataset.vod === focused && !element.contains(document.activeElement)) element.focus({ preventScroll: true });
  });
};

/** Drops videos that others decided or look at. */
app.lose = (gone) => {
  const away = new Set(gone);
  const lost = app.items.filter((item) => away.has(item.vod) && !app.isDone(item));
  if (!lost.length) return;
  app.window.steady(() => {
    lost.forEach((item) => forget(item));
    app.items = app.items.filter((item) => !lost.includes(item));
    find();
  });
};

function forget(item, stays = false) {
  app.cards.get(item.vod)?.element.remove();
  app.cards.delete(item.vod);
  if (app.current === item) app.current = null;
  if (stays) return;
  app.targets.get(item.target)?.delete(item);
}

/** Lists what the fields over the cards let through. */
function find() {
  app.matching = app.finder.matching(app.items);
  list();
  tell();
}

function list() {
  const there = app.matching.filter((item) => item.candidates);
  app.listed = app.view.hide ? there.filter((item) => item === app.current || !app.isDone(item)) : there;
  if (!app.listed.includes(app.current)) {
    unmark();
    app.current = null;
  }
  app.total = app.view.hide ? app.matching.filter((item) => !app.isDone(item)).length : app.matching.length;
  if (!app.whole) app.total = Math.max(app.total, sheet.waiting || 0);
  app.window.set(app.listed, app.current);
  if (!app.current && app.listed.length) {
    mark(app.listed.find((item) => !app.isDone(item)) || app.listed[0]);
    const { element } = cardOf(app.current);
    // Who has gone on to cards that were still to come sees them when they are here.
    if (scrollY && !isSeen(element)) element.scrollIntoView({ block: "start", behavior: "instant" });
  }
  const empty = !app.listed.length;
  byId("empty").hidden = !empty;
  const open = app.items.some((item) => !app.isDone(item));
  const held = !open && app.live.asked ? heldByOthers() : "";
  byId("empty").textContent = open ? (app.matching.length ? READING : "没有符合条件的影片。") : app.live.asked ? held || "没有待审核的影片。" : READING;
  if (held) byId("empty").append(" ", button("", "", "请求接手", () => app.live.sharing.ask()));
  app.live.fill();
}

/** Says who else looks at cards, "" where nobody does. */
function heldByOthers() {
  const others = sheet.others || [];
  const total = heldCards(others);
  if (!total) return "";
  const names = others.map(([name, count]) => `${name || "未署名的人"}${others.length > 1 ? `（${number(count)}）` : ""}`);
  return `${number(total)} 部正由 ${names.join("、")} 审核。`;
}

const heldCards = (others) => (others || []).reduce((sum, [, count]) => sum + count, 0);

/** Notes who else looks at cards now, and returns whether they gave some back. */
app.others = (others) => {
  const before = heldCards(sheet.others);
  const changed = JSON.stringify(others) !== JSON.stringify(sheet.others);
  sheet.others = others;
  if (changed && !app.listed.length) list();
  return heldCards(others) < before;
};

function tell() {
  const chosen = app.items.filter(app.isDone);
  const all = app.whole ? app.items.length : Math.max(app.items.length, sheet.waiting || 0);
  const parts = [`已选 ${number(chosen.length)} / ${number(all)}`];
  const states = app.items.map((item) => app.stateOf(item)?.state);
  for (const [text, state] of [["待发送", "waiting"], ["正在记录", "sent"], ["等待执行", "recorded"], ["CMS 锁定而未提交", "held"], ["重新判定而未提交", "outdated"]]) {
    const found = states.filter((each) => each === state).length;
    if (found) parts.push(`${text} ${found}`);
  }
  byId("count").textContent = parts.join("，");
  byId("progress").max = Math.max(1, all);
  byId("progress").value = chosen.length;
  byId("undo").disabled = !choices.history.length;
  byId("found").textContent = app.finder.active ? `符合条件 ${number(app.matching.length)} 部` : "";
}

function introduce() {
  const decided = sheet.decided ? `${number(sheet.decided)} 部已有决定，等待执行` : "";
  const told = [sheet.waiting ? `共 ${number(sheet.waiting)} 部影片待审核` : "", decided].filter(Boolean);
  byId("told").textContent = told.length ? `${told.join("；")}。` : "";
}

function unmark() {
  const element = app.current && app.cards.get(app.current.vod)?.element;
  element?.classList.remove("current");
  element?.removeAttribute("aria-current");
}

/** Says something to who cannot see the card that it is about. */
function announce(item, text) {
  byId("said").textContent = `《${item.title}》${text}`;
}

/** Makes an item the one that the keyboard speaks to. */
function mark(item) {
  if (!item || item === app.current) return;
  unmark();
  app.current = item;
  const card = cardOf(item);
  card.fill();
  card.element.classList.add("current");
  card.element.setAttribute("aria-current", "true");
}
app.mark = mark;

/** Shows the folded rows of all cards, or folds them. */
app.unfold = () => byId("rows").click();

/** Goes to another card. */
function move(place) {
  if (!app.listed.length) return;
  const to = Math.max(0, Math.min(app.listed.length - 1, place));
  const item = app.listed[to];
  app.window.reach(to);
  mark(item);
  const { element } = cardOf(item);
  element.focus({ preventScroll: true });
  element.scrollIntoView({ block: "start", behavior: "instant" });
}

/** Goes to the next card that nothing is decided about. */
function next() {
  const at = app.listed.indexOf(app.current);
  const open = (item) => !app.isDone(item) && !choices.row(item);
  let to = app.listed.findIndex((item, place) => place > at && open(item));
  if (to < 0) to = app.listed.findIndex(open);
  const item = to < 0 ? null : app.listed[to];
  if (item) mark(item);
  else if (app.view.hide && app.current) {
    unmark();
    app.current = null;
  }
  if (app.view.hide) list();
  if (item) move(app.listed.indexOf(item));
}

function undo() {
  const items = choices.undo();
  if (!items.length) return;
  for (const item of items) {
    const entry = app.live.stateOf(item);
    if (entry?.run && !SETTLED_AWAY.includes(entry.state)) app.live.undo(entry);
  }
  app.changed(items);
  find();
  if (app.listed.includes(items[0])) move(app.listed.indexOf(items[0]));
}
const SETTLED_AWAY = ["refused", "reverted", "already", "undoing"];

function open(dialog) {
  if (dialog.open) return;
  if (dialog.showModal) dialog.showModal();
  else dialog.setAttribute("open", "");
}

/** Shows the last choices that were sent, each with what became of it. */
function showRecent() {
  const lines = app.live.recent().map((entry) => {
    const [text, tone] = STATES[entry.state] || [entry.state, ""];
    const may = entry.run && !SETTLED_AWAY.includes(entry.state);
    const line = el("li", "", el("b", "", entry.title), ` ${entry.words} `, el("span", `flag ${tone}`, text));
    if (entry.reason) line.append(el("span", "sentence", entry.reason));
    if (may) line.append(button("", "", "撤销", () => (app.live.undo(entry), showRecent())));
    return line;
  });
  byId("recent-list").replaceChildren(...(lines.length ? lines : [el("li", "sub", "还没有发送过选择。")]));
}
