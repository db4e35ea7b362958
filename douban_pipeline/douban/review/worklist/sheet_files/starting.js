"use strict";
/* The keyboard, and how the page begins. */

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
  v: (card) => showNewer(card.data),
};

function press(event) {
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

function bindWho() {
  for (const field of document.querySelectorAll("input[data-who]")) {
    const name = field.dataset.who;
    if (name === "reviewer" && sheet.reviewer) {
      Object.assign(field, { readOnly: true, title: "登录的用户" });
      choices.saveWho({ reviewer: sheet.reviewer });
    }
    field.value = choices.who[name];
    field.addEventListener("input", () => choices.saveWho({ [name]: field.value }));
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
  await app.live.load(open().slice(0, 60), 60);
  return open().filter((item) => item.candidates).slice(0, PREVIEWED);
}

/** Returns the video whose card the address names, null without one. */
function askedFor() {
  return /^#[1-9]\d{0,14}$/.test(location.hash) ? Number(location.hash.slice(1)) : null;
}

function begin() {
  app.finder = new Finder(sheet, find);
  const members = (item) => app.listed.filter((each) => each.group === item.group).length;
  const heading = (item) => (item.group && app.finder.asQueued ? `${item.group}　同系列 ${members(item)} 部` : "");
  const current = () => app.current && app.cards.get(app.current.vod)?.element;
  app.window = new CardWindow(byId("groups"), { cardOf, heading, current, total: () => app.total });
  app.bulk = new Bulk(app, undecided);
  app.live = new Live(app);
  byId("made").textContent = `${sheet.made} 打开，评分方案：${sheet.profile}`;
  bindWho();
  bindView();
  introduce();
  find();
  history.scrollRestoration = "manual";
  app.live.start();
}

begin();
byId("undo").addEventListener("click", undo);
byId("ask").addEventListener("click", () => open(byId("help")));
document.addEventListener("keydown", press);
addEventListener("scroll", () => requestAnimationFrame(follow), { passive: true });
document.addEventListener("click", (event) => {
  // After a click the keyboard speaks to the card again: the space bar goes on, and does not click once more.
  const pressed = event.detail && event.target.closest("article button");
  if (pressed && !document.activeElement.closest("article:focus")) pressed.closest("article")?.focus({ preventScroll: true });
});
