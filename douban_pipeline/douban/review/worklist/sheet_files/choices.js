"use strict";
/* What was chosen for each card: what it means as a decision, what speaks against it, undoing, and keeping it in the
   browser. A choice names what was pressed; only `decisionOf` knows what that comes to. Knows nothing of the page. */

const NOTHING = Object.freeze({ pick: "", typed: "", days: 0, lock: false, accept: false, intro: false, override: false });
const IGNORED_DAYS = [30, 180, 0];
const KEPT_DAYS = 90;
const DAY = 86400000;

/** Returns the subject's id that a person typed, as a number or as the address of its page; 0 if it is neither. */
function subjectId(text, [smallest, largest]) {
  const found = /^\s*(\d{1,10})\s*$/.exec(text) || /douban\.com\/(?:\S*\/)?(?:subject|movie|tv)\/(\d{1,10})(?!\d)/.exec(text);
  const number = found ? Number(found[1]) : 0;
  return number >= smallest && number <= largest ? number : 0;
}

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

/** Returns the subject that somebody named and that a button stands for, if it is one. */
function namedBy(card, name) {
  return card.candidates?.find((each) => each.named && name === `c${each.rank}`);
}

/** Whether a button of a card stands for a choice: a subject that was named is chosen by its id. */
function isPressed(card, choice, name, ids) {
  if (choice.pick !== "id") return choice.pick === name;
  return namedBy(card, name)?.id === subjectId(choice.typed, ids);
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
  const found = !card.stale && card.candidates.some((candidate) => candidate.id === target && !candidate.named);
  return named(found ? "choose" : "set_id", lock);
}

/** Returns the decision about the synopsis, which goes beside any other; null for none. */
function introDecisionOf(card, choice) {
  return choice.intro ? { vod_id: card.vod, action: card.introLocked ? "unlock_intro" : "lock_intro" } : null;
}

/** Returns the decisions that a choice means; none of a card whose candidates are not known here yet. */
function decisionsOf(card, choice, ids) {
  if (!card.candidates) return [];
  return [decisionOf(card, choice, ids), introDecisionOf(card, choice)].filter(Boolean);
}

/** Returns the choice that says: it is the same work as one that is linked already, and both are meant; null for none. */
function duplicateOf(card, choice) {
  const picked = candidateOf(card, choice) || card.candidates.find((each) => each.holders) || card.candidates[0];
  return picked ? { pick: `c${picked.rank}`, accept: true } : null;
}

/** Returns a choice in words. */
function wordsOf(card, choice, ids) {
  const decision = decisionOf(card, choice, ids);
  const intro = choice.intro ? (card.introLocked ? "解锁简介" : "锁定简介") : "";
  if (!decision) return choice.pick === "id" && choice.typed ? "豆瓣 ID 不完整" : intro;
  const candidate = card.candidates.find((each) => each.id === decision.douban_id);
  const subject = candidate ? `${candidate.named ? "指定的" : "候选"} ${candidate.rank}《${candidate.title}》${candidate.id}` : `豆瓣 ID ${decision.douban_id}`;
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

/** Returns for what a choice would be refused unless conflicts are accepted; `others` are cards given the same subject. */
function conflictsOf(card, choice, ids, others) {
  const decision = decisionOf(card, choice, ids);
  if (!decision?.douban_id || choice.accept) return [];
  const candidate = card.candidates.find((each) => each.id === decision.douban_id);
  const against = [];
  if (candidate?.labels.length && decision.action !== "choose") against.push("与影片有硬性冲突");
  if (candidate?.holders) against.push(`已关联影片 ${candidate.held.map((held) => held[0]).join("、")}`);
  if (others.length) against.push(`在本页也选给了影片 ${others.map((other) => other.vod).join("、")}`);
  return against;
}

/** Whether the site's lock of the row refuses a choice: it writes there, and does not say that this is meant. */
function refusedByLock(card, choice, ids) {
  const decision = card.cmsLocked ? decisionOf(card, choice, ids) : null;
  if (!decision || decision.override_cms_lock) return false;
  return Boolean(decision.action === "clear_id" ? card.id : decision.douban_id && decision.douban_id !== card.id);
}

/** Returns what a reviewer should know of a choice; `held`: it is not sent, because of the lock. */
function warningsOf(card, choice, ids, others, held) {
  const decision = decisionOf(card, choice, ids);
  if (!decision) {
    if (choice.pick === "id") return [`请填写豆瓣 ID（${ids[0]} 至 ${ids[1]}）或条目网址`];
    return choice.lock ? ["锁定要与一个选择一起用"] : [];
  }
  const told = [];
  if (refusedByLock(card, choice, ids)) {
    const lock = held ? "CMS 锁定了这部影片（vod_lock），不许改写它的豆瓣 ID，所以没有提交" : "影片已在 CMS 中锁定：记录时会被拒绝";
    told.push(`${lock}；确认要写入请按 w 或打开「CMS 已锁定，仍要写入」`);
  }
  if (!decision.douban_id) return told;
  const candidate = card.candidates.find((each) => each.id === decision.douban_id);
  if (card.stale) told.push("判定之后影片资料已改变：记录时会重新核对此条目");
  if (decision.action === "replace_and_lock") told.push(`ID ${card.id || "为空，"}已锁定：将被替换并锁定新的 ID`);
  if (choice.accept) return told;
  if (candidate?.labels.length && decision.action === "choose") told.push("此条目与影片有硬性冲突，请再核对");
  const against = conflictsOf(card, choice, ids, others);
  if (against.length) told.push(`此条目${against.join("，")}：记录时会被拒绝；确认无误请按 d 或打开「接受冲突」`);
  return told;
}

function objectOf(kept) {
  return kept && typeof kept === "object" && !Array.isArray(kept) ? kept : {};
}

/** Keeps choices and who decides; never fails where the browser keeps nothing. */
class Choices {
  constructor(sheet) {
    this.place = `douban-review:${sheet.id}`;
    this.history = [];
    const kept = this.read(this.place);
    this.ids = sheet.ids;
    this.made = objectOf(kept.made);
    const { reviewer = "", note = "" } = this.read("douban-review:who");
    this.who = { reviewer: String(reviewer), note: String(note) };
    const oldest = Date.now() - KEPT_DAYS * DAY;
    for (const key of Object.keys(this.made)) if (!(this.made[key].at > oldest)) delete this.made[key];
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

  /** Keeps what became of one card: another page of this sheet may have chosen for others meanwhile. */
  save(key) {
    const made = { ...this.made, ...objectOf(this.read(this.place).made) };
    if (key in this.made) made[key] = this.made[key];
    else delete made[key];
    this.write(this.place, { made });
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

  decisions(card) {
    return decisionsOf(card, this.of(card), this.ids);
  }

  /** Returns the decisions of a card as one text, by which they are compared; null where nothing is chosen. */
  row(card) {
    const decisions = this.key(card) in this.made ? this.decisions(card) : [];
    return decisions.length ? JSON.stringify(decisions) : null;
  }

  /** Changes a choice. What is typed sign by sign is undone at once. */
  set(card, changed) {
    const last = this.history[this.history.length - 1];
    const typing = "typed" in changed && last && last.typed && last.steps[0][0] === card && last.steps[0][2] === this.key(card);
    if (!typing) this.history.push({ steps: [this.step(card)], typed: "typed" in changed });
    this.put(card, { ...this.of(card), ...changed });
  }

  /** Changes many choices as one step; `changes` holds cards and what is changed of each. */
  setAll(changes) {
    this.history.push({ steps: changes.map(([card]) => this.step(card)), typed: false });
    for (const [card, changed] of changes) this.put(card, { ...this.of(card), ...changed });
  }

  step(card) {
    return [card, this.of(card), this.key(card)];
  }

  put(card, choice) {
    const key = this.key(card);
    const none = !choice.pick && !choice.lock && !choice.accept && !choice.intro && !choice.override;
    if (none) delete this.made[key];
    else this.made[key] = { ...choice, at: Date.now() };
    this.save(key);
  }

  /** Takes the last change back; returns its cards. One of a former verdict is past: its candidates were others. */
  undo() {
    while (this.history.length) {
      const steps = this.history.pop().steps.filter(([card, , key]) => this.key(card) === key);
      for (const [card, before] of steps) this.put(card, before);
      if (steps.length) return steps.map(([card]) => card);
    }
    return [];
  }

  saveWho(changed) {
    Object.assign(this.who, changed);
    this.write("douban-review:who", this.who);
  }
}
