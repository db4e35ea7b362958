"use strict";
/* How a video is shown beside its candidates. All text from outside is set as text. */

const MARKS = { agree: ["✓", "相符"], disagree: ["✗", "不符"], unknown: ["?", "无法比较或不确定"] };
const byId = (id) => document.getElementById(id);
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

/** Returns a sign that says which key does the same; screen readers are told by the button's own attribute. */
function keySign(key) {
  const made = el("kbd", "", key);
  made.setAttribute("aria-hidden", "true");
  return made;
}

function button(kind, key, text, act) {
  const made = el("button", kind, key ? keySign(key) : null, el("span", "", text));
  made.type = "button";
  if (key) made.setAttribute("aria-keyshortcuts", key);
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

/** Returns a poster, which is asked for when it comes near; null where none is known. */
function poster(kind, id, address, title) {
  if (kind !== "subject" && !address) return null;
  const shown = el("img", kind === "frame" ? "poster frame" : "poster");
  shown.addEventListener("error", () => shown.remove());
  Object.assign(shown, { loading: "lazy", decoding: "async", referrerPolicy: "no-referrer", alt: `${kind === "frame" ? "画面" : "海报"}：${title}`, src: `picture/${kind}/${id}` });
  return shown;
}

/** Returns links to a video's page and player on the site, where it is known. */
function siteLinks(sheet, card) {
  const place = (pattern) => pattern.replace("{id}", card.vod);
  const made = [];
  if (sheet.site.page) made.push(link("", place(sheet.site.page), "站点页面 ↗"));
  if (sheet.site.player) made.push(link("", place(sheet.site.player), "播放 ↗"));
  return made;
}

function columnHead(kind, ...children) {
  const made = el("th", kind, ...children);
  made.scope = "col";
  return made;
}

/** Returns labels as one: 标题冲突 and 年份冲突 are 标题、年份冲突. */
function inOne(labels) {
  const conflicts = labels.filter((label) => label.endsWith("冲突")).map((label) => label.slice(0, -2));
  const others = labels.filter((label) => !label.endsWith("冲突"));
  return [...(conflicts.length ? [`${conflicts.join("、")}冲突`] : []), ...others].join("；");
}

/** Returns a subject's rating in words; "" where there is none. */
function ratingOf(facts) {
  const [rating] = facts.rating || [];
  const [votes] = facts.votes || [];
  return rating ? `豆瓣 ${rating}${votes ? `（${votes} 人）` : ""}` : "";
}

/** Returns the score that ranks a candidate, and beside a share of points the points that leads are measured in. */
function scoreOf(sheet, candidate) {
  const share = Math.max(0, Math.min(1, candidate.score / sheet.highest));
  const bar = el("span", "bar", el("i", candidate.score >= sheet.confirm ? "high" : ""));
  bar.firstChild.style.width = `${share * 100}%`;
  const earned = !sheet.share ? "" : `，实得 ${candidate.earned.toFixed(1)}`;
  return el("span", "total", el("b", "", candidate.score.toFixed(1)), ` / ${points(sheet.highest)} 分${earned}`, bar);
}

/** Returns the head of a candidate's column. */
function candidateHead(sheet, card, candidate, pick) {
  const rank = candidate.rank;
  const said = candidate.named ? `选指定的 ${rank}` : `选候选 ${rank}`;
  const choose = button("choose", rank <= 9 ? String(rank) : "", said, () => pick(`c${rank}`));
  choose.dataset.pick = `c${rank}`;
  const flags = [];
  if (candidate.named) flags.push(el("span", "flag", "您指定的，不在判定的候选中"));
  if (candidate.id === card.id) flags.push(el("span", "flag", "现有 ID"));
  if (candidate.samePoster) flags.push(el("span", "flag good", "海报相同"));
  if (candidate.labels.length) flags.push(el("span", "flag bad", inOne(candidate.labels)));
  if (!candidate.fetched) flags.push(el("span", "flag", "仅见于搜索结果，资料未查看"));
  if (candidate.holders) {
    const named = candidate.held.map(([vod, title]) => `${vod}《${title}》`).join("、");
    const more = candidate.holders > candidate.held.length ? ` 等 ${number(candidate.holders)} 部` : "";
    flags.push(el("span", "flag bad", `已关联影片 ${named}${more}`));
  }
  return columnHead(
    "candidate",
    choose,
    poster("subject", candidate.id, candidate.poster, candidate.title),
    el("strong", "", candidate.title || "（无片名）"),
    el("span", "sub", candidate.year ? `${candidate.year} · ` : "", subjectLink(candidate.id)),
    ratingOf(candidate.facts) ? el("span", "sub", ratingOf(candidate.facts)) : null,
    scoreOf(sheet, candidate),
    flags.length ? el("span", "flags", ...flags) : null,
  );
}

/** Returns the head of the column of the subject that the video is linked to. */
function currentHead(sheet, current) {
  return columnHead(
    "current",
    el("span", "flag bad", "现有条目"),
    poster("subject", current.id, current.poster, current.title),
    el("strong", "", current.title),
    el("span", "sub", current.year ? `${current.year} · ` : "", subjectLink(current.id)),
    ratingOf(current.facts) ? el("span", "sub", ratingOf(current.facts)) : null,
  );
}

/** Returns one cell of a candidate: its words, how the matcher read them, and the points they earned. */
function candidateCell(card, candidate, row) {
  const list = candidate.facts[row] || [];
  const [outcome, earned, most] = candidate.marks[row] || ["", null, null];
  const cell = el("td", outcome);
  cell.title = candidate.saidBy[row] || "";
  if (MARKS[outcome] && (list.length || outcome !== "unknown")) {
    const mark = el("span", "mark", MARKS[outcome][0]);
    mark.title = MARKS[outcome][1];
    mark.setAttribute("role", "img");
    mark.setAttribute("aria-label", MARKS[outcome][1]);
    cell.append(mark);
  }
  cell.append(list.length ? words(list, card.facts[row]) : el("span", "none", "—"));
  if (most && (list.length || earned)) cell.append(el("span", "points", `${points(earned)}/${points(most)}`));
  return cell;
}

function localHead(sheet, card) {
  const links = siteLinks(sheet, card);
  const shown = poster("video", card.vod, card.poster, card.title);
  const frame = poster("frame", card.vod, card.frame, card.title);
  return el("span", "", shown, el("strong", "", card.title), links.length ? el("span", "sub site", ...links) : null, frame);
}

/** Whether a row that is marked as differing shows what a conflict says. */
function isSaidByRow(candidate, text) {
  return Object.entries(candidate.saidBy).some(([row, said]) => said === text && candidate.marks[row]?.[0] === "disagree");
}

const IN_HEADS = ["rating", "votes"];
/* Rows that stand in the heads of the columns: there is nothing on the other side to compare them with. */
const ALWAYS = ["title", "year"];

/** Returns whether a row helps to decide: something in it differs, or candidates earn other points by it. */
function tells(card, name) {
  if (ALWAYS.includes(name)) return true;
  const marks = card.candidates.map((candidate) => candidate.marks[name] || ["", 0, 0]);
  if (marks.some(([outcome]) => outcome === "disagree")) return true;
  const [local, now] = [card.facts[name], card.current?.facts[name]];
  if (local && now && !now.some((word) => local.includes(word))) return true;
  return new Set(marks.map(([, earned]) => points(earned || 0))).size > 1;
}

/** Returns the comparison: a column for the video, one for each candidate. */
function comparison(sheet, card, pick) {
  const currentFacts = card.current ? [card.current.facts] : [];
  const all = (row) => [card.facts, ...currentFacts, ...card.candidates.map((candidate) => candidate.facts)].some((facts) => facts[row]);
  const head = el("tr", "", columnHead("local", el("span", "label", "本地"), localHead(sheet, card)));
  if (card.current) head.append(currentHead(sheet, card.current));
  card.candidates.forEach((candidate) => head.append(candidateHead(sheet, card, candidate, pick)));
  const body = el("tbody", "");
  const labels = new Map(sheet.labels.map(([name, label]) => [label, name]));
  const currentCell = (of, label) => {
    const list = of.current.facts[labels.get(label)] || [];
    return el("td", "current", list.length ? words(list, of.facts[labels.get(label)]) : el("span", "none", "—"));
  };
  const folded = [];
  const row = (kind, label, local, cells) => {
    const first = el("th", "local", el("span", "label", label), local);
    first.scope = "row";
    if (kind.startsWith("folded")) folded.push(label);
    body.append(el("tr", kind, first, ...(card.current ? [currentCell(card, label)] : []), ...cells));
  };
  const unsaid = (candidate) => candidate.conflicts.filter((text) => !isSaidByRow(candidate, text));
  if (card.candidates.some((candidate) => unsaid(candidate).length)) {
    const list = (candidate) => el("td", "", el("ul", "", ...unsaid(candidate).map((text) => el("li", "", text))));
    row("conflicts", "冲突", null, card.candidates.map(list));
  }
  if (card.candidates.some((candidate) => (card.writes[candidate.id] || []).length)) {
    const lines = (candidate) => (card.writes[candidate.id] || []).map((text) => el("li", "", text));
    row("folded writes", "替换后写入", null, card.candidates.map((each) => el("td", "", el("ul", "", ...lines(each)))));
  }
  const shown = sheet.labels.filter(([name]) => all(name) && !IN_HEADS.includes(name));
  for (const [name, label] of shown) {
    const local = card.facts[name] ? words(card.facts[name]) : el("span", "none", "—");
    row(tells(card, name) ? "" : "folded", label, local, card.candidates.map((each) => candidateCell(card, each, name)));
  }
  const table = el("table", `of-${card.candidates.length + (card.current ? 1 : 0)}`, el("thead", "", head), body);
  const scroll = el("div", "scroll", table);
  scroll.tabIndex = 0;
  scroll.setAttribute("role", "region");
  scroll.setAttribute("aria-label", `《${card.title}》与候选的比较`);
  // What stands for the folded rows; it shows those of all cards.
  const rest = folded.length ? button("rest", "m", `其余 ${folded.length} 行：${folded.join("、")}`, () => app.unfold()) : null;
  return el("div", "compared", scroll, rest);
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

/** Returns what TMDB added to a video's facts, with the logo and the sentence that its terms ask for beside them. */
function ofTmdb(sheet, { key, facts }) {
  const title = link("id", `https://www.themoviedb.org/${key}`, `TMDB ${key} ↗`);
  const added = facts.map(([name, text]) => `${name} ${text}`).join("；");
  const told = el("p", "", "参考 ", title, added ? `：${added}` : "；它的资料已到期删除");
  const logo = el("img", "");
  Object.assign(logo, { alt: "TMDB", src: sheet.tmdb.logo });
  return [told, el("p", "sub attribution", link("", sheet.tmdb.link, logo), " ", sheet.tmdb.sentence)];
}

/* A title of marks and spaces alone would leave a card without a name. */
const NAMING = /[^\p{M}\p{Z}\p{C}]/u;

/** Returns what is said of a video over its comparison. */
function cardHead(sheet, card) {
  const list = `../lists/review?q=${card.vod}`;
  const numbered = Object.assign(link("", list, `影片 ${card.vod}`), { title: "在待审核列表中" });
  const facts = [card.year, card.category, numbered, `热度 ${number(card.hits)}`];
  if (card.updated) facts.push(`更新于 ${card.updated}`);
  const flags = [el("span", "flag", card.status), ...card.labels.map((label) => el("span", "flag bad", label))];
  if (card.id) flags.push(el("span", "flag bad", "现有 ID ", subjectLink(card.id)));
  if (card.locked) flags.push(el("span", "flag", "ID 已锁定"));
  if (card.introLocked) flags.push(el("span", "flag", "简介已锁定"));
  if (card.cmsLocked) flags.push(el("span", "flag bad", "CMS 已锁定"));
  if (card.score !== null) flags.push(el("span", "flag", `首选 ${card.score.toFixed(1)} 分，确认线 ${points(sheet.confirm)}`));
  if (card.lead !== null) flags.push(el("span", "flag", `实得分领先次优作品 ${card.lead.toFixed(1)}，至少 ${points(sheet.lead)}`));
  const head = el(
    "header",
    "",
    el("span", "place"),
    el("h3", "", NAMING.test(card.title) ? card.title : `影片 ${card.vod}`),
    el("p", "sub", ...facts.filter(Boolean).flatMap((fact, at) => (at ? [" · ", fact] : [fact]))),
    el("p", "flags", ...flags),
  );
  if (card.reason) head.append(el("p", "reason", card.reason));
  if (card.tmdb) head.append(...ofTmdb(sheet, card.tmdb));
  if (card.stale) head.append(el("p", "warn", "判定之后影片资料已改变，候选可能过时：所选条目在记录时会重新核对；也可选择「重新匹配」。"));
  if (!card.verdict) head.append(el("p", "warn", "尚无判定，没有候选：请指定 ID、重新匹配或忽略。"));
  else if (!card.candidates.length) head.append(el("p", "warn", "没有候选：请指定 ID、重新匹配或忽略。"));
  return head;
}
