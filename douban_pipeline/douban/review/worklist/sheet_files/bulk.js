"use strict";
/* The same choice for all that is listed: what it would come to for each of them first. */

const BULK = {
  first: ["选首选候选", (card) => chosenFirst(card, false)],
  duplicate: ["选首选候选，接受重复", (card) => chosenFirst(card, true)],
  keep: ["现有 ID 正确", (card) => (card.id ? { pick: "keep" } : "没有现有 ID")],
  ignore: ["忽略 180 天", () => ({ pick: "ignore", days: 180 })],
  rematch: ["重新匹配", () => ({ pick: "rematch" })],
  clear: ["清除现有 ID", (card) => (card.locked ? "ID 已锁定" : card.id ? { pick: "clear" } : "没有现有 ID")],
};
/* What may be chosen for many: its name, and what it comes to for a card, or why it does not. */
const ANEW = "刚刚重新判定，请单独看";
const LOCKED = "CMS 锁定了这部影片（vod_lock）：请单独选择，确认要写入按 w";

function chosenFirst(card, accept) {
  const [first] = card.candidates;
  if (!first) return "没有候选";
  if (first.labels.length) return `首选有${first.labels.join("、")}，请单独看`;
  if (first.holders && !accept) return "首选已关联别的影片";
  if (!first.holders && accept) return "首选没有关联别的影片";
  return { pick: `c${first.rank}`, accept };
}

/** The dialog. `cards` returns what is listed and not decided yet, once all of it is known. */
class Bulk {
  constructor(app, cards) {
    Object.assign(this, { app, cards, found: [] });
    const field = byId("bulk-action");
    field.replaceChildren(...Object.entries(BULK).map(([name, [text]]) => new Option(text, name)));
    field.addEventListener("input", () => this.preview());
    byId("bulk-apply").addEventListener("click", () => this.apply());
  }

  async open() {
    byId("bulk-list").replaceChildren(el("li", "sub", "正在读取…"));
    byId("bulk-apply").disabled = true;
    open(byId("bulk"));
    this.found = await this.cards();
    this.preview();
  }

  preview() {
    const [, means] = BULK[byId("bulk-action").value];
    const locked = (card, change) => refusedByLock(card, { ...NOTHING, ...change }, this.app.sheet.ids);
    const may = (card, change) => (typeof change === "object" && locked(card, change) ? LOCKED : change);
    const all = this.found.map((card) => [card, card.newer ? ANEW : may(card, means(card)), card.verdict]);
    this.changes = all.filter(([, change]) => typeof change === "object");
    const held = all.filter(([, change]) => change === LOCKED).length;
    const skipped = all.filter(([, change]) => typeof change === "string");
    const told = ([card, change]) => {
      const choice = { ...NOTHING, ...change };
      return el("li", "", el("b", "", card.title), ` → ${wordsOf(card, choice, this.app.sheet.ids)}`);
    };
    const left = ([card, why]) => el("li", "sub", el("b", "", card.title), ` 跳过：${why}`);
    byId("bulk-list").replaceChildren(...this.changes.map(told), ...skipped.map(left));
    byId("bulk-told").textContent = `列出的 ${number(all.length)} 部中，${number(this.changes.length)} 部适用，${number(skipped.length)} 部跳过${held ? `，其中 ${number(held)} 部因 CMS 锁定留待单独选择` : ""}`;
    byId("bulk-apply").textContent = `应用到 ${number(this.changes.length)} 部`;
    byId("bulk-apply").disabled = !this.changes.length;
  }

  apply() {
    // What was previewed was said of candidates that are others by now.
    if (this.changes.some(([card, , verdict]) => card.newer || card.verdict !== verdict)) {
      this.preview();
      byId("bulk-told").textContent += "。有影片刚刚重新判定，预览已更新，请再看一次";
      return;
    }
    this.app.choices.setAll(this.changes);
    byId("bulk").close();
    this.app.changed(this.changes.map(([card]) => card));
  }
}
