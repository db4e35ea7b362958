"use strict";
// The moderators' page: who is logged in, which view is open, calls, and the last decisions that can be undone.
import { Queue } from "./admin-queue.js";
import { tools } from "./admin-tools.js";

export const $ = id => document.getElementById(id);
export const T = JSON.parse($("texts").textContent);
export const text = (name, values = {}) => Object.entries(values).reduce((found, [key, value]) => found.replace(`{${key}}`, value), T[name] || name);
export const when = at => new Date(at).toLocaleString(T.lang, { dateStyle: "short", timeStyle: "short" });

export function element(name, given = {}, ...inside) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(given)) {
    if (key in made && typeof value !== "string") made[key] = value;
    else if (key === "class") made.className = value;
    else if (key === "text") made.textContent = value;
    else made.setAttribute(key, value);
  }
  made.append(...inside.flat().filter(part => part !== null && part !== undefined && part !== ""));
  return made;
}

export const button = (words, work, given = {}) => element("button", { type: "button", ...given, onclick: () => guarded(work) }, words);

/** Calls the API below /comments/v1; the cookie of the session goes with it, and the header says that this page asks. */
export async function call(method, path, body, token) {
  const headers = { Accept: "application/json", "X-Operator": "page" };
  if (token) headers.Authorization = "Bearer " + token;
  if (body) headers["Content-Type"] = "application/json";
  const answer = await fetch("/comments/v1" + path, { method, headers, body: body && JSON.stringify(body) });
  const found = answer.status === 204 ? {} : await answer.json().catch(() => ({}));
  if (answer.ok) return found;
  if (answer.status === 401 && !token) show(null);
  throw new Error(found.detail || T.unavailable);
}

export function say(words, bad = false) {
  if (words) $("bar").hidden = false;
  $("said").textContent = words;
  $("said").className = bad ? "bad" : "";
}

export async function guarded(work) {
  try { return await work(); } catch (error) { say(error.message, true); }
}

/** The last decisions of this tab, each with the calls that undo it; they survive a reload. */
export const decisions = {
  kept: JSON.parse(sessionStorage.getItem("decisions") || "[]"),
  add(what, calls, rows = []) {
    this.kept = [...this.kept, { what, calls, rows }].slice(-50);
    this.store();
  },
  async undo() {
    const last = this.kept.at(-1);
    if (!last) return;
    for (const [method, path, body] of last.calls) await call(method, path, body);
    this.kept.pop();
    this.store();
    queue.back(last.rows);
    say(text("undone", { what: last.what }));
  },
  store() {
    sessionStorage.setItem("decisions", JSON.stringify(this.kept));
    $("undo").disabled = !this.kept.length;
  },
};

const OF_QUEUE = "#bar > .reasons, #bar > .many";
let opened = "queue", loggedIn = false;

export function open(name) {
  opened = name;
  for (const each of document.querySelectorAll("main > section")) each.hidden = each.id !== name;
  for (const each of document.querySelectorAll("#views button")) each.toggleAttribute("aria-current", each.dataset.view === name);
  for (const each of document.querySelectorAll(OF_QUEUE)) each.hidden = name !== "queue";
  say("");
  if (name !== "queue") guarded(() => views[name].open());
}

const queue = new Queue(), views = tools(queue);

/** Shows the page of a moderator, or the login where nobody is logged in. */
function show(who) {
  loggedIn = Boolean(who);
  for (const id of ["views", "bar", "help-open", "leave"]) $(id).hidden = !who;
  for (const each of document.querySelectorAll(OF_QUEUE)) each.hidden = !who;
  $("who").textContent = who ? who.name || who.key : "";
  $("login").hidden = Boolean(who);
  if (who) { open(opened); guarded(() => queue.search()); return; }
  for (const each of document.querySelectorAll("main > section")) each.hidden = true;
  $("token").focus();
}

$("login").onsubmit = event => {
  event.preventDefault();
  guarded(async () => {
    const who = await call("POST", "/admin/session", { name: $("name").value, remember: $("remember").checked }, $("token").value);
    $("token").value = "";
    say("");
    show(who);
  });
};
$("leave").onclick = () => guarded(async () => { await call("DELETE", "/admin/session"); sessionStorage.removeItem("decisions"); show(null); });
$("undo").onclick = () => guarded(() => decisions.undo());
$("help-open").onclick = () => $("help").showModal();
for (const each of document.querySelectorAll("#views button")) each.onclick = () => open(each.dataset.view);
document.addEventListener("keydown", event => {
  const typing = event.target.closest("input:not([type=checkbox]):not([type=radio]), textarea, select, dialog");
  if (event.key === "Escape" && typing && !typing.matches("dialog")) return typing.blur();
  if (!loggedIn || typing || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if (event.key === "?") { event.preventDefault(); return $("help").showModal(); }
  if (event.key === "u") return guarded(() => decisions.undo());
  if (opened === "queue" && queue.press(event.key)) event.preventDefault();
});

decisions.store();
call("GET", "/admin/session").then(show, () => show(null));
