"use strict";
/* The dialog with the config, the keyboard, and how the page begins. */

/** Fills the dialog with the config of what was chosen and not launched, as far as a person said. */
function make() {
  const chosen = app.items.filter((item) => choices.row(item));
  const fresh = chosen.filter((item) => choices.progress(item, choices.row(item)) !== "launched");
  const { reviewer, note } = choices.who;
  const rows = fresh.map((item) => choices.row(item));
  byId("yaml").value = rows.length ? configOf(rows, reviewer, note) : "";
  // A card that decides about the synopsis too has two lines.
  byId("summary").textContent = `${rows.join("").split("\n").length - 1} 条决定` + (reviewer.trim() ? "" : "。请先填写审核员，否则无法记录");
  byId("summary").className = reviewer.trim() ? "" : "warn";
  const sent = chosen.length - fresh.length;
  byId("sent").hidden = !sent;
  byId("again").textContent = `再次包括已启动的 ${sent} 条`;
  const links = linksOf(sheet.launch, sheet.most, rows, reviewer, note);
  const list = links.map(({ address, rows: held }, place) => {
    const part = links.length > 1 ? `（第 ${place + 1} 份，共 ${links.length} 份）` : "";
    const made = link("launch", address, `打开启动页：${held.length} 条${part} ↗`);
    const these = fresh.filter((item) => held.includes(choices.row(item)));
    const launched = button("launched", "", "已启动，不再列出", () => noteAll(these, "launched"));
    launched.hidden = !these.some((item) => choices.progress(item, choices.row(item)));
    made.addEventListener("click", () => {
      for (const item of these) choices.note(item, choices.row(item), "opened");
      made.classList.add("opened");
      launched.hidden = false;
      app.changed(these);
    });
    return el("li", "row", made, launched);
  });
  byId("links").replaceChildren(...list);
  byId("split").hidden = links.length < 2;
}

function noteAll(items, how) {
  for (const item of items) choices.note(item, choices.row(item), how);
  app.changed(items);
  make();
}

async function copy() {
  const field = byId("yaml");
  try {
    await navigator.clipboard.writeText(field.value);
  } catch {
    field.select();
    document.execCommand("copy");
  }
  byId("copied").textContent = "已复制";
}

const place = () => app.listed.indexOf(app.current);
const KEYS = {
  j: () => move(place() + 1),
  k: () => move(place() - 1),
  " ": () => move(place() + 1),
  n: next,
  u: undo,
  b: () => app.bulk.open(),
  h: () => byId("hide").click(),
  m: app.unfold,
  "/": () => (byId("tools").setAttribute("open", ""), byId("by-find").focus()),
  g: () => byId("make").click(),
  "?": () => open(byId("help")),
};
const CARD_KEYS = {
  0: (card) => card.data.id && card.pick("keep"),
  e: (card) => card.input.focus(),
  c: (card) => (card.data.locked ? card.pick("unlock") : card.data.id && card.pick("clear")),
  d: (card) => card.duplicate(),
  i: (card) => card.ignore(),
  r: (card) => card.pick("rematch"),
  l: (card) => card.toggle("lock"),
  a: (card) => card.toggle("accept"),
  s: (card) => card.toggle("intro"),
  w: (card) => card.data.cmsLocked && card.toggle("override"),
  v: (card) => app.live && showNewer(card.data),
};

function press(event) {
  app.pressed = true;
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || document.querySelector("dialog[open]")) return;
  if (event.target.matches("input[type=text], input:not([type]), textarea, select")) {
    if (event.key === "Escape" || event.key === "Enter") event.target.blur();
    return;
  }
  if (event.key === " " && event.target.matches("button, a, summary, input")) return;
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  // With Shift a digit key writes a sign, another one on every keyboard; where it writes a digit, it is that.
  const shifted = event.shiftKey && !/^\d$/.test(key) ? /^Digit([1-9])$/.exec(event.code)?.[1] : "";
  const rank = shifted || (/^[1-9]$/.test(key) ? key : "");
  if (rank) {
    const card = inSight();
    if (card?.data.candidates.some((candidate) => candidate.rank === Number(rank))) card[shifted ? "accept" : "pick"](`c${rank}`);
  } else if (key in KEYS) KEYS[key]();
  else if (key in CARD_KEYS) {
    const card = inSight();
    if (card) CARD_KEYS[key](card);
  } else return;
  event.preventDefault();
}

/** Whether a card is in sight, or was before it went `by` so many pixels. */
function isSeen(element, by = 0) {
  const { top, bottom } = element.getBoundingClientRect();
  return bottom - by > 80 && top - by < innerHeight - 80;
}

/** Returns the card that keys may change: the current one, which is marked. Out of sight it is shown, not changed. */
function inSight() {
  const card = app.current && cardOf(app.current);
  if (!card || isSeen(card.element)) return card;
  move(place());
  return null;
}

/** Marks a card that is in sight, after somebody scrolled: the keyboard speaks to what is looked at. */
function follow() {
  if (!app.current || isSeen(cardOf(app.current).element)) return;
  const first = app.listed.slice(app.window.start, app.window.end).find((item) => isSeen(cardOf(item).element));
  if (first) mark(first);
}

/** Keeps all fields of one name alike. */
function bindWho() {
  for (const name of ["reviewer", "note"]) {
    const fields = document.querySelectorAll(`input[data-who="${name}"]`);
    for (const field of fields) {
      if (name === "reviewer" && sheet.reviewer) {
        Object.assign(field, { readOnly: true, title: "登录的用户" });
        choices.saveWho({ reviewer: sheet.reviewer });
      }
      field.value = choices.who[name];
      field.addEventListener("input", () => {
        choices.saveWho({ [name]: field.value });
        for (const other of fields) if (other !== field) other.value = field.value;
        for (const card of app.cards.values()) card.show();
        if (byId("config").open) make();
      });
    }
  }
}

function bindView() {
  Object.assign(app.view, Object.fromEntries(Object.entries(choices.read("douban-review:view")).filter(([name]) => name in app.view)));
  const unfolded = () => document.body.classList.toggle("unfolded", app.view.rows);
  for (const [name, shown] of [["advance", list], ["hide", list], ["rows", unfolded]]) {
    const box = byId(name);
    box.checked = Boolean(app.view[name]);
    box.addEventListener("change", () => {
      app.view[name] = box.checked;
      choices.write("douban-review:view", app.view);
      shown();
    });
  }
  unfolded();
  const tools = byId("tools");
  tools.open = Boolean(app.view.tools);
  tools.addEventListener("toggle", () => {
    app.view.tools = tools.open;
    choices.write("douban-review:view", app.view);
  });
  byId("clear").addEventListener("click", () => (app.finder.clear(), find()));
  byId("bulk-open").addEventListener("click", () => app.bulk.open());
  byId("recent-open").addEventListener("click", () => (showRecent(), open(byId("recent"))));
}

/** Returns what is listed and not decided, once all that is needed of it is known. */
async function undecided() {
  const open = () => app.matching.filter((item) => !app.isDone(item));
  await app.live?.load(open().slice(0, 60), 60);
  return open().filter((item) => item.candidates).slice(0, PREVIEWED);
}

/** Returns the video whose card the address names, null without one. */
function askedFor() {
  return /^#[1-9]\d{0,14}$/.test(location.hash) ? Number(location.hash.slice(1)) : null;
}

/** Returns the video that was looked at before a reload, as text. */
function lookedAt() {
  try {
    return sessionStorage.getItem(`douban-review:${sheet.id}:at`);
  } catch {
    return ""; // nothing is kept in this browser
  }
}

function begin() {
  // What is listed first is marked, and kept in its place.
  const at = String(askedFor() || lookedAt());
  for (const group of sheet.groups) {
    for (const data of group.cards) app.items.push(Object.assign(data, { group: group.cards.length > 1 ? group.name : "" }));
  }
  app.items.forEach(retarget);
  app.finder = new Finder(sheet, find);
  app.finder.learn(app.items);
  const members = (item) => app.listed.filter((each) => each.group === item.group).length;
  const heading = (item) => (item.group && app.finder.asQueued ? `${item.group}　同系列 ${members(item)} 部` : "");
  const current = () => app.current && app.cards.get(app.current.vod)?.element;
  app.window = new CardWindow(byId("groups"), { cardOf, heading, current, total: () => app.total });
  app.bulk = new Bulk(app, undecided);
  byId("made").textContent = `${sheet.live ? `${sheet.made} 打开` : `数据截至 ${sheet.made}，之后的判定和决定不在此页`}，评分方案：${sheet.profile}`;
  byId("how").textContent = sheet.live ? "选择后自动提交，结果显示在卡片上。" : "选择只保存在此浏览器中；生成配置、在 Dagster 启动页核对并点 Launch Run 后才会记录。";
  for (const shown of document.querySelectorAll("[data-served]")) shown.hidden = !sheet.live;
  for (const shown of document.querySelectorAll("[data-file]")) shown.hidden = Boolean(sheet.live);
  bindWho();
  bindView();
  if (sheet.live) app.live = new Live(app);
  introduce();
  find();
  history.scrollRestoration = "manual";
  if (app.live) return app.live.start();
  age();
  addEventListener("visibilitychange", age);
  back(at);
}

/** Says of a file that has become old that others have decided since. */
function age() {
  const hours = (Date.now() / 1000 - sheet.at) / 3600;
  byId("age").hidden = hours < 1;
  if (hours < 1) return;
  const told = hours < 48 ? `${Math.floor(hours)} 小时` : `${Math.floor(hours / 24)} 天`;
  const live = sheet.served ? ["，或用", link("", sheet.served, "在线审核单 ↗")] : [];
  byId("age").replaceChildren(`这些数据是 ${told}前的，此后可能已有人决定：请重新打开此文件（决定执行后会重写），或重新生成 review_queue`, ...live, "。");
}

/** Goes back to the card that was looked at before a reload or, if that is decided, to the next that is not. */
function back(at) {
  const there = app.listed.findIndex((item) => String(item.vod) === at);
  const open = (item, place) => place >= there && !app.isDone(item);
  const to = there < 0 ? -1 : app.listed.findIndex(open);
  const item = app.listed[to] || app.current;
  if (item && app.listed.indexOf(item) > 0) settle(item, SETTLING);
}

const SETTLING = 10;
/* Frames within which cards around one that is gone to get their heights. */

/** Goes to a card, and stays with it while those above it grow, unless somebody does something. */
function settle(item, frames) {
  if (app.pressed || !app.listed.includes(item)) return;
  move(app.listed.indexOf(item));
  if (frames) requestAnimationFrame(() => settle(item, frames - 1));
}

begin();
byId("undo").addEventListener("click", undo);
byId("ask").addEventListener("click", () => open(byId("help")));
byId("make").addEventListener("click", () => {
  byId("copied").textContent = "";
  make();
  open(byId("config"));
});
byId("copy").addEventListener("click", copy);
byId("again").addEventListener("click", () => {
  noteAll(app.items.filter((item) => choices.progress(item, choices.row(item))), "");
});
document.addEventListener("keydown", press);
addEventListener("scroll", () => requestAnimationFrame(follow), { passive: true });
document.addEventListener("click", (event) => {
  // After a click the keyboard speaks to the card again: the space bar goes on, and does not click once more.
  const pressed = event.detail && event.target.closest("article button");
  if (pressed && !document.activeElement.closest("article:focus")) pressed.closest("article")?.focus({ preventScroll: true });
});
