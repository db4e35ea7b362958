"use strict";
/* What was chosen for each card: what it means as a decision, what speaks against it, undoing, and keeping it in the
   browser. A choice names what was pressed; only `decisionOf` knows what that comes to. */

const NOTHING = Object.freeze({ pick: "", typed: "", days: 0, lock: false, accept: false, intro: false, override: false });
const IGNORED_DAYS = [30, 180, 0];
const KEPT_DAYS = 90;
const DAY = 86400000;

/** Returns the candidate that a choice picks, if it picks one. */
function candidateOf(card, choice) {
  const rank = choice.pick.startsWith("c") ? Number(choice.pick.slice(1)) : 0;
  return card.candidates.find((candidate) => candidate.rank === rank);
}

/** Returns the subject that a choice would link, or 0. */
function targetOf(card, choice, ids) {
  if (choice.pick === "keep") return card.id;
  if (choice.pick === "id") return subjectId(choice.typed, ids);
  const candidate = candidateOf(card, choice);
  return candidate ? candidate.id : 0;
}

/** Returns the decision that a choice means, or null while it means none. */
function decisionOf(card, choice, ids) {
  const verdict = card.verdict ? { verdict_id: card.verdict } : {};
  const lock = choice.lock ? { lock: true } : {};
  const over = choice.override && card.cmsLocked ? { override_cms_lock: true } : {};
  const plain = (action, more) => ({ vod_id: card.vod, action, ...more, ...verdict });
  switch (choice.pick) {
    case "":
      return choice.lock && card.id && !card.locked ? plain("lock_id") : null;
    case "clear":
      return plain("clear_id", { ...lock, ...over });
    case "ignore":
      return plain("ignore", { ...(choice.days ? { days: choice.days } : {}), ...lock });
    case "rematch":
      return plain("rematch");
    case "unlock":
      return plain("unlock_id");
  }
  const target = targetOf(card, choice, ids);
  if (!target) return null;
  const accept = choice.accept ? { accept_conflicts: true } : {};
  const seen = card.stale ? {} : verdict; // one that is out of date would be refused
  const named = (action, more) => ({ vod_id: card.vod, action, douban_id: target, ...more, ...accept, ...over, ...seen });
  if (card.locked && card.id !== target) return named("replace_and_lock");
  const found = !card.stale && card.candidates.some((candidate) => candidate.id === target);
  return named(found ? "choose" : "set_id", lock);
}

/** Returns the decision about the synopsis, which goes beside any other; null for none. */
function introDecisionOf(card, choice) {
  return choice.intro ? { vod_id: card.vod, action: card.introLocked ? "unlock_intro" : "lock_intro" } : null;
}

/** Returns a choice in words. */
function wordsOf(card, choice, ids) {
  const decision = decisionOf(card, choice, ids);
  const intro = choice.intro ? (card.introLocked ? "解锁简介" : "锁定简介") : "";
  if (!decision) return choice.pick === "id" && choice.typed ? "豆瓣 ID 不完整" : intro;
  const candidate = card.candidates.find((each) => each.id === decision.douban_id);
  const subject = candidate ? `候选 ${candidate.rank}《${candidate.title}》${candidate.id}` : `豆瓣 ID ${decision.douban_id}`;
  const told = {
    choose: subject,
    set_id: subject,
    replace_and_lock: `替换锁定的 ID：${subject}`,
    clear_id: `清除现有 ID ${card.id}`,
    ignore: decision.days ? `忽略 ${decision.days} 天` : "永久忽略",
    rematch: "重新匹配",
    unlock_id: "解锁 ID",
    lock_id: `锁定现有 ID ${card.id}`,
  }[decision.action];
  const meant = (decision.accept_conflicts ? "，接受冲突" : "") + (decision.override_cms_lock ? "，写入 CMS 锁定的影片" : "");
  return told + (decision.lock ? "，并锁定 ID" : "") + meant + (intro ? `；${intro}` : "");
}

/** Returns what a reviewer should know of a choice before launching it; `others` are cards given the same subject. */
function warningsOf(card, choice, ids, others) {
  const decision = decisionOf(card, choice, ids);
  if (!decision) {
    if (choice.pick === "id") return [`请填写豆瓣 ID（${ids[0]} 至 ${ids[1]}）或条目网址`];
    return choice.lock ? ["锁定要与一个选择一起用"] : [];
  }
  const told = [];
  const writes = decision.action === "clear_id" ? card.id : decision.douban_id && decision.douban_id !== card.id;
  if (card.cmsLocked && writes && !decision.override_cms_lock) {
    told.push("影片已在 CMS 中锁定：记录时会被拒绝；确认要写入请打开「写入 CMS 锁定」");
  }
  if (!decision.douban_id) return told;
  const candidate = card.candidates.find((each) => each.id === decision.douban_id);
  if (card.stale) told.push("判定之后影片资料已改变：记录时会重新核对此条目");
  if (decision.action === "replace_and_lock") told.push(`ID ${card.id || "为空，"}已锁定：将被替换并锁定新的 ID`);
  if (choice.accept) return told;
  const rejected = candidate && candidate.labels.length;
  if (rejected && decision.action === "choose") told.push("此条目与影片有硬性冲突，请再核对");
  const against = [];
  if (rejected && decision.action !== "choose") against.push("与影片有硬性冲突");
  if (candidate && candidate.holders) against.push(`已关联影片 ${candidate.held.map((held) => held[0]).join("、")}`);
  if (others.length) against.push(`在本页也选给了影片 ${others.map((other) => other.vod).join("、")}`);
  if (against.length) told.push(`此条目${against.join("，")}：记录时会被拒绝；确认无误请打开「接受冲突」`);
  return told;
}

/** Keeps choices, what was launched and who decides; never fails where the browser keeps nothing. */
class Choices {
  constructor(sheet) {
    this.place = `douban-review:${sheet.id}`;
    this.history = [];
    const kept = this.read(this.place);
    this.made = kept.made || {};
    this.sent = kept.sent || {};
    const { reviewer = "", note = "" } = this.read("douban-review:who");
    this.who = { reviewer: String(reviewer), note: String(note) };
    const oldest = Date.now() - KEPT_DAYS * DAY;
    for (const key of Object.keys(this.made)) if (!(this.made[key].at > oldest)) delete this.made[key];
    for (const key of Object.keys(this.sent)) if (!(key in this.made)) delete this.sent[key];
  }

  read(place) {
    try {
      const kept = JSON.parse(localStorage.getItem(place));
      return kept && typeof kept === "object" ? kept : {};
    } catch {
      return {};
    }
  }

  write(place, value) {
    try {
      localStorage.setItem(place, JSON.stringify(value));
    } catch {
      /* It holds until the page is closed. */
    }
  }

  save() {
    this.write(this.place, { made: this.made, sent: this.sent });
  }

  /** A choice rests on a verdict: of another one, the card has to be looked at again. */
  key(card) {
    return `${card.vod}:${card.verdict}`;
  }

  of(card) {
    const { pick, typed, days, lock, accept, intro, override } = { ...NOTHING, ...this.made[this.key(card)] };
    const yes = { lock: lock === true, accept: accept === true, intro: intro === true, override: override === true };
    return { pick: String(pick), typed: String(typed), days: Number(days) || 0, ...yes };
  }

  /** Changes a choice. What is typed sign by sign is undone at once. */
  set(card, changed) {
    const before = this.of(card);
    const last = this.history[this.history.length - 1];
    const typing = "typed" in changed && last && last[0] === card && last[2];
    if (!typing) this.history.push([card, before, "typed" in changed]);
    this.put(card, { ...before, ...changed });
  }

  put(card, choice) {
    const key = this.key(card);
    const none = !choice.pick && !choice.lock && !choice.accept && !choice.intro && !choice.override;
    if (none) delete this.made[key];
    else this.made[key] = { ...choice, at: Date.now() };
    this.save();
  }

  /** Takes the last change back; returns its card. */
  undo() {
    const last = this.history.pop();
    if (!last) return undefined;
    this.put(last[0], last[1]);
    return last[0];
  }

  isSent(card, row) {
    return this.sent[this.key(card)] === row;
  }

  send(card, row) {
    this.sent[this.key(card)] = row;
    this.save();
  }

  forgetSent() {
    this.sent = {};
    this.save();
  }

  saveWho(changed) {
    Object.assign(this.who, changed);
    this.write("douban-review:who", this.who);
  }
}
