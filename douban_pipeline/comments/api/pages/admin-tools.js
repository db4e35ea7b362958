"use strict";
// The other views: rules of the order with a slider, trust and bans, words, the log.
import { $, T, button, call, decisions, element, guarded, say, text, when } from "./admin.js";

const TRY = 200;  // milliseconds that the slider rests before the section is ordered anew

/** Returns the views by name, each with what opens it. */
export function tools(queue) {
  return { rules: rules(), trust: trust(), words: words(queue), log: log(queue) };
}

const lines = (list, made, none) => list.replaceChildren(...(made.length ? made : [element("li", { class: "soft", text: none })]));
const row = (...parts) => element("li", {}, parts);

function rules() {
  let waiting = 0, asked = 0;
  const rule = () => ({
    section: $("rule-section").value, name: $("rule-name").value, expression: $("rule-expression").value, decision: $("rule-decision").value,
    amount: Number($("rule-amount").value), here: $("rule-here").checked, reason: $("rule-reason").value,
  });
  async function preview() {
    if (!$("rule-section").value || !$("rule-name").value || !$("rule-expression").value) return;
    const mine = ++asked;
    try {
      const found = await call("POST", "/admin/rules/preview", rule());
      if (mine !== asked) return;  // a later one is on its way
      $("effect").className = "";
      $("effect").textContent = text("effect", found);
      const move = each => each.before === each.after ? "=" : `${each.before ?? T.below} → ${each.after ?? T.below}`;
      const tone = each => each.before === each.after ? "move soft" : (each.after ?? 99) < (each.before ?? 99) ? "move good" : "move bad";
      $("preview").replaceChildren(...found.first.filter(each => each.after).map(each => element("li", {}, element("span", { class: tone(each), text: move(each) }), each.text)));
    } catch (error) {
      if (mine !== asked) return;
      $("preview").replaceChildren();
      $("effect").textContent = error.message;
      $("effect").className = "bad";
    }
  }
  function soon() {
    const pin = $("rule-decision").value === "pin";
    $("rule-amount").disabled = pin;
    $("rule-points").textContent = pin ? "" : $("rule-amount").value;
    clearTimeout(waiting);
    waiting = setTimeout(preview, TRY);
  }
  async function list() {
    const found = await call("GET", "/admin/rules");
    lines($("in-force"), found.rules.map(each => row(
      button(each.name, () => fill(each), { class: "plain" }), element("code", { text: each.expression }),
      element("span", { text: `${T["decision_" + each.decision]} ${each.amount || ""}` }),
      element("span", { class: "soft", text: each.sections.length ? each.sections.map(number => text("in_section", { number })).join(" ") : T.everywhere }),
      element("span", { class: "soft", text: each.reason }),
      button(T.retire, async () => { await call("DELETE", "/admin/rules/" + each.name); say(T.rule_retired); await list(); soon(); }, { class: "end" }))), T.none);
    $("factors").replaceChildren(...Object.entries(found.factors).flatMap(([name, meaning]) => [element("dt", {}, element("code", { text: name })), element("dd", { text: meaning })]));
  }
  function fill(each) {
    for (const name of ["name", "expression", "reason"]) $("rule-" + name).value = each[name];
    if (each.decision !== "exempt") $("rule-decision").value = each.decision;
    $("rule-amount").value = each.amount || 2;
    $("rule-here").checked = each.sections.length > 0;
    if (each.sections.length) $("rule-section").value = each.sections[0];
    soon();
  }
  $("rule").oninput = soon;
  $("rule").onsubmit = event => {
    event.preventDefault();
    guarded(async () => { await call("POST", "/admin/rules", rule()); say(T.rule_saved); await list(); });
  };
  return { open: async () => { soon(); await list(); } };
}

function trust() {
  async function list() {
    const found = await call("GET", "/admin/trust");
    $("newcomers").value = found.rules.newcomers;
    $("trusted-after").value = found.rules.trusted_after;
    $("defaults").textContent = text("defaults", found.defaults);
    lines($("levels"), found.levels.map(each => row(
      element("span", { class: each.level === "banned" ? "bad" : "", text: T["level_" + each.level] }),
      element("span", { text: each.kind === "user" ? text("user", { number: each.subject }) : each.subject }), element("span", { class: "soft", text: each.reason }),
      element("span", { class: "soft", text: `${when(each.at)} ${each.author}` }), element("span", { class: "soft", text: each.until ? text("ends_at", { at: when(each.until) }) : T.days_0 }),
      button(T.end, async () => { await call("DELETE", "/admin/trust/" + each.id); await list(); }, { class: "end" }))), T.nobody);
  }
  $("numbers").onsubmit = event => {
    event.preventDefault();
    guarded(async () => {
      await call("PUT", "/admin/trust/rules", { newcomers: Number($("newcomers").value), trusted_after: Number($("trusted-after").value) });
      say(T.saved);
    });
  };
  $("level").onsubmit = event => {
    event.preventDefault();
    guarded(async () => {
      const days = Number($("level-days").value), until = days ? new Date(Date.now() + days * 86400_000).toISOString() : null;
      const body = { kind: $("level-kind").value, subject: $("level-subject").value, level: $("level-level").value, reason: $("level-reason").value, until };
      const made = await call("POST", "/admin/trust", body), what = `${T["level_" + body.level]} ${made.subject}`;
      decisions.add(what, [["DELETE", "/admin/trust/" + made.id]]);
      say(text("done", { what }));
      $("level-subject").value = "";
      await list();
    });
  };
  return { open: list };
}

function words(queue) {
  async function list() {
    const found = await call("GET", "/admin/words");
    for (const kind of ["review", "mask"]) lines($("words-" + kind), found[kind].map(word => element("li", {},
      button(word, () => queue.narrow({ text: word }), { class: "plain", title: T.find_word }),
      button("×", async () => { await call("PATCH", "/admin/words", { remove: [word] }); await list(); }, { "aria-label": text("remove", { word }) }))), T.none);
  }
  $("add-words").onsubmit = event => {
    event.preventDefault();
    guarded(async () => {
      const add = $("new-words").value.split("\n").map(word => word.trim()).filter(Boolean);
      await call("PATCH", "/admin/words", { consequence: $("consequence").value, add });
      $("new-words").value = "";
      say(T.saved);
      await list();
    });
  };
  return { open: list };
}

function log(queue) {
  let seen = new Set();
  async function list(before = "") {
    if (!before) { seen = new Set(); $("entries").replaceChildren(); }
    const found = await call("GET", "/admin/log?" + new URLSearchParams({ actor: $("log-actor").value, before }));
    for (const each of found.entries) {
      const name = each.batch && each.action !== "undo" ? each.batch : null;
      if (name && seen.has(name)) continue;
      if (name) seen.add(name);
      $("entries").append(entry(each));
    }
    $("log-end").replaceChildren(found.next ? button(T.load_more, () => list(found.next)) : $("entries").firstChild ? T.no_more : T.none);
  }
  function entry(each) {
    const undoing = each.batch && each.undone < each.comments && each.action !== "undo";
    const detail = Object.entries(each.detail).filter(([, value]) => value !== null && value !== "").map(([key, value]) => `${key}: ${key === "until" ? when(value) : typeof value === "object" ? JSON.stringify(value) : value}`).join(" · ");
    return row(element("span", { class: "soft", text: when(each.at) }), button(each.actor, () => { $("log-actor").value = each.actor; return list(); }, { class: "plain" }),
      element("b", { text: T["action_" + each.action] || each.action }), element("span", { text: each.comments > 1 ? text("count_of", { count: each.comments }) : each.text || each.about }),
      each.reason ? element("span", { text: each.reason }) : null, detail ? element("span", { class: "soft", text: detail }) : null,
      each.undone ? element("span", { class: "soft", text: text("undone_of", { count: each.undone }) }) : null,
      undoing ? button(T.undo, async () => { await call("POST", "/admin/undo", { batch: each.batch, reason: T.undo }); say(text("undone", { what: each.reason })); }, { class: "end" }) : null);
  }
  $("log-of").onsubmit = event => { event.preventDefault(); guarded(() => list()); };
  return { open: () => list() };
}
