"use strict";
/* The page: groups of cards, the bar with what was chosen, the config for the launchpad, and the keyboard. */

const sheet = JSON.parse(document.getElementById("sheet").textContent);
const choices = new Choices(sheet);
const byId = (id) => document.getElementById(id);
const total = sheet.groups.reduce((sum, group) => sum + group.cards.length, 0);
const cards = [];
let current = -1;

/** Shows every card's choice anew where another card may have a say in it. */
function refresh(changed) {
  const given = new Map();
  for (const card of cards) {
    const target = card.target;
    if (target) given.set(target, [...(given.get(target) || []), card]);
  }
  for (const card of cards) {
    const others = (given.get(card.target) || []).filter((other) => other !== card).map((other) => other.data);
    if (card === changed || changed === undefined || others.length || card.shared) card.show(others);
    card.shared = others.length > 0;
  }
  tell();
}

function tell() {
  const chosen = cards.filter((card) => card.row);
  const sent = chosen.filter((card) => choices.isSent(card.data, card.row)).length;
  byId("count").textContent = `已选 ${chosen.length} / ${total}` + (sent ? `，其中 ${sent} 条已打开过启动页` : "");
  byId("progress").max = Math.max(1, total);
  byId("progress").value = chosen.length;
  byId("undo").disabled = !choices.history.length;
  byId("make").disabled = !chosen.length;
}

function build() {
  byId("made").textContent = `${sheet.made} 生成，评分方案：${sheet.profile}`;
  const left = sheet.waiting - total;
  byId("told").textContent =
    `共 ${number(sheet.waiting)} 部影片待审核，本页列出最要紧的 ${number(total)} 部` +
    (left > 0 ? `，另有 ${number(left)} 部未列出` : "") +
    (sheet.decided ? `；${number(sheet.decided)} 部已有决定，等待执行` : "") +
    "。";
  const main = byId("groups");
  for (const group of sheet.groups) {
    const section = el("section", group.cards.length > 1 ? "group many" : "group");
    if (group.cards.length > 1) section.append(el("h2", "", `${group.name} `, el("small", "", `同系列 ${group.cards.length} 部`)));
    for (const data of group.cards) {
      const card = new Card(sheet, choices, data, cards.length + 1, total, refresh);
      const place = cards.push(card) - 1;
      card.element.addEventListener("pointerdown", () => mark(place));
      card.element.addEventListener("focusin", () => mark(place));
      section.append(card.element);
    }
    main.append(section);
  }
  cards.slice(0, 2).forEach((card) => card.fill());
  const near = new IntersectionObserver(fillNear, { rootMargin: "1500px 0px" });
  for (const card of cards) near.observe(card.element);
  if (!total) main.append(el("p", "empty", "没有待审核的影片。"));
  refresh();
}

/** Fills cards that come near: hundreds of them at once would keep a phone busy for seconds. */
function fillNear(entries, observer) {
  for (const entry of entries.filter((each) => each.isIntersecting)) {
    cards.find((card) => card.element === entry.target).fill();
    observer.unobserve(entry.target);
  }
}

function mark(place) {
  if (place === current) return;
  if (cards[current]) cards[current].element.classList.remove("current");
  current = place;
  cards[current].fill();
  cards[current].element.classList.add("current");
}

/** Goes to another card. */
function move(place) {
  if (!cards.length) return;
  mark(Math.max(0, Math.min(cards.length - 1, place)));
  const { element } = cards[current];
  element.focus({ preventScroll: true });
  element.scrollIntoView({ block: "start" });
}

function undo() {
  const data = choices.undo();
  const card = cards.find((each) => each.data === data);
  if (!card) return;
  refresh(card);
  move(cards.indexOf(card));
}

function open(dialog) {
  if (dialog.open) return;
  if (dialog.showModal) dialog.showModal();
  else dialog.setAttribute("open", "");
}

/** Fills the dialog with the config of what was chosen and not launched yet. */
function make() {
  const chosen = cards.filter((card) => card.row);
  const fresh = chosen.filter((card) => !choices.isSent(card.data, card.row));
  const { reviewer, note } = choices.who;
  const rows = fresh.map((card) => card.row);
  byId("yaml").value = rows.length ? configOf(rows, reviewer, note) : "";
  // A card that decides about the synopsis too has two lines.
  byId("summary").textContent = `${rows.join("").split("\n").length - 1} 条决定` + (reviewer.trim() ? "" : "。请先填写审核员，否则无法记录");
  byId("summary").className = reviewer.trim() ? "" : "warn";
  const sent = chosen.length - fresh.length;
  byId("sent").hidden = !sent;
  byId("again").textContent = `再次包括已打开过启动页的 ${sent} 条`;
  const links = linksOf(sheet.launch, sheet.most, rows, reviewer, note);
  const list = links.map(({ address, rows: held }, place) => {
    const part = links.length > 1 ? `（第 ${place + 1} 份，共 ${links.length} 份）` : "";
    const made = link("launch", address, `打开启动页：${held.length} 条${part} ↗`);
    made.addEventListener("click", () => {
      for (const card of fresh) if (held.includes(card.row)) choices.send(card.data, card.row);
      made.classList.add("opened");
      refresh();
    });
    return el("li", "", made);
  });
  byId("links").replaceChildren(...list);
  byId("split").hidden = links.length < 2;
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

const KEYS = {
  j: () => move(current + 1),
  k: () => move(current - 1),
  " ": () => move(current + 1),
  u: undo,
  g: () => byId("make").click(),
  "?": () => open(byId("help")),
};
const CARD_KEYS = {
  0: (card) => card.data.id && card.pick("keep"),
  e: (card) => card.input.focus(),
  c: (card) => (card.data.locked ? card.pick("unlock") : card.data.id && card.pick("clear")),
  i: (card) => card.ignore(),
  r: (card) => card.pick("rematch"),
  l: (card) => card.toggle("lock"),
  a: (card) => card.toggle("accept"),
  s: (card) => card.toggle("intro"),
  w: (card) => card.data.cmsLocked && card.toggle("override"),
};

function press(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || document.querySelector("dialog[open]")) return;
  if (event.target.matches("input, textarea")) {
    if (event.key === "Escape" || event.key === "Enter") event.target.blur();
    return;
  }
  if (event.key === " " && event.target.matches("button, a, summary")) return;
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  if (key in KEYS) KEYS[key]();
  else if (cards[current] && key in CARD_KEYS) CARD_KEYS[key](cards[current]);
  else if (cards[current] && /^[1-9]$/.test(key)) {
    const card = cards[current];
    if (card.data.candidates.some((candidate) => candidate.rank === Number(key))) card.pick(`c${key}`);
  } else return;
  event.preventDefault();
}

/** Keeps all fields of one name alike. */
function bindWho() {
  for (const name of ["reviewer", "note"]) {
    const fields = document.querySelectorAll(`input[data-who="${name}"]`);
    for (const field of fields) {
      field.value = choices.who[name];
      field.addEventListener("input", () => {
        choices.saveWho({ [name]: field.value });
        for (const other of fields) if (other !== field) other.value = field.value;
        refresh();
        if (byId("config").open) make();
      });
    }
  }
}

build();
bindWho();
byId("undo").addEventListener("click", undo);
byId("ask").addEventListener("click", () => open(byId("help")));
byId("make").addEventListener("click", () => {
  byId("copied").textContent = "";
  make();
  open(byId("config"));
});
byId("copy").addEventListener("click", copy);
byId("again").addEventListener("click", () => {
  choices.forgetSent();
  refresh();
  make();
});
document.addEventListener("keydown", press);
document.addEventListener("click", (event) => {
  // After a click the keyboard speaks to the card again: the space bar goes on, and does not click once more.
  const pressed = event.detail && event.target.closest("article button");
  if (pressed) pressed.closest("article").focus({ preventScroll: true });
});
if (cards.length) mark(0);
