// The comments of one object as a custom element: <douban-comments type="1" object="17">.
// What people wrote is set as text, never parsed as markup. Read docs/widget.md for attributes, events and variables.
"use strict";
(() => {
const tag = "douban-comments";
if (customElements.get(tag)) return;
const script = document.currentScript, own = new URL(script ? script.src : "/comments/comments.js", location.href);
const API = new URL("v1", own).href, CROSS = own.origin !== location.origin;
const NOTICES = { reply: "回复了你", mention: "提到了你", like: "赞了你的评论", status: "你的评论有了处理结果", refused: "你的评论没有发布" };
const SENT = { shown: "已发布", waiting: "已提交，审核通过后显示", deleted: "已删除", pending: "已收到，还在处理，稍后刷新可见" };
const OUTCOMES = { shown: "显示中", waiting: "待审核", deleted: "已删除" };
const LABELS = { owner_liked: "楼主赞过", owner_replied: "楼主回复", by_owner: "楼主", featured: "精选", pinned: "置顶", promoted: "推广", staff: "本站工作人员" };
const REASONS = { spam: "广告", abuse: "辱骂", spoiler: "剧透", illegal: "违法", other: "其他" };
const SORTS = { heat: "最热", new: "最新", likes: "最多赞", floor: "楼层" };
const EMOJI = "😀 😂 🤣 😊 😍 🥰 😘 😎 🤔 😭 😱 😡 🥱 🙄 😴 🤯 👍 👎 👏 🙏 💪 🎉 ❤️ 💔 🔥 ⭐ 🍿 🎬 👨‍👩‍👧 🐶".split(" ");
const STYLE = "comments.css";  // the service puts that file here

function element(name, given = {}, ...inside) {
  const made = Object.assign(document.createElement(name), given);
  made.append(...inside.filter(part => part !== null && part !== undefined));
  return made;
}
function kept(key, value) {
  // Browsers may forbid storage to what a page embeds; then nothing is remembered.
  try {
    if (value === undefined) return localStorage.getItem(key) || "";
    if (value) localStorage.setItem(key, value); else localStorage.removeItem(key);
  } catch { /* not remembered */ }
  return "";
}
function ago(at) {
  const seconds = (Date.now() - new Date(at)) / 1000;
  if (seconds < 60) return "刚刚";
  if (seconds < 3600) return Math.floor(seconds / 60) + " 分钟前";
  if (seconds < 86400) return Math.floor(seconds / 3600) + " 小时前";
  return new Date(at).toLocaleDateString("zh-CN");
}
function isDark(host) {
  const wanted = host.getAttribute("theme");
  if (wanted === "dark" || wanted === "light") return wanted === "dark";
  for (let at = host.parentElement; at; at = at.parentElement) {
    const [red, green, blue, alpha = 1] = (getComputedStyle(at).backgroundColor.match(/[\d.]+/g) || [0, 0, 0, 0]).map(Number);
    if (alpha > .5) return .299 * red + .587 * green + .114 * blue < 110;
  }
  return matchMedia("(prefers-color-scheme: dark)").matches;
}
let given = null;
async function tokenOf(host, again) {
  // A token of the site's stays in memory; only one that a person pasted is stored.
  const from = host.getAttribute("token-url");
  if (!from) return kept("comments-token");
  if (given === null || again) {
    const answer = await fetch(from, { credentials: "same-origin", headers: { Accept: "application/json" } }).catch(() => null);
    given = answer && answer.ok ? (await answer.json().catch(() => ({}))).token || "" : "";
  }
  return given;
}

function start(host, root) {
  const type = host.getAttribute("type") || "1", object = host.getAttribute("object") || "1", place = `/sections/${type}/${object}`;
  const $ = id => root.getElementById(id);
  let sort = SORTS[host.getAttribute("sort")] ? host.getAttribute("sort") : "heat";
  let next = null, loading = false, ended = false, me = null, votes = {}, badges = {}, friends = {}, turn = 0, owner = null, known = null, editable = 0;

  async function call(method, path, body, again) {
    const headers = { Accept: "application/json" }, token = await tokenOf(host, again);
    if (token) headers.Authorization = "Bearer " + token;
    if (body !== undefined) headers["Content-Type"] = "application/json";
    if (method === "POST") headers["Idempotency-Key"] = Math.random().toString(36).slice(2) + Date.now();
    const answer = await fetch(API + path, { method, headers, credentials: CROSS ? "include" : "same-origin", body: body === undefined ? undefined : JSON.stringify(body) })
      .catch(() => { throw new Error("连接不上，请检查网络后再试"); });
    if (answer.status === 401 && host.hasAttribute("token-url") && !again) return call(method, path, body, true);
    const found = await answer.json().catch(() => ({}));
    if (!answer.ok) throw Object.assign(new Error(found.detail || "暂时不可用"), { told: answer.status < 500, status: answer.status });
    return found;
  }
  async function lightly(work) {
    // What fails for no fault of the visitor's is tried once more and then left: nobody could do anything about it.
    try { await work(); } catch (error) {
      if (error.told) throw error;
      await new Promise(done => setTimeout(done, 1000));
      await work().catch(again => { if (again.told) throw again; });
    }
  }
  function say(text, bad, at = $("said")) { at.textContent = text; at.classList.toggle("bad", Boolean(bad)); }
  function seek(seconds) {
    const asked = new CustomEvent("douban-comments-seek", { bubbles: true, composed: true, cancelable: true, detail: { seconds } });
    if (!host.dispatchEvent(asked)) return;
    let video = document.querySelector("video");
    for (const frame of video ? [] : document.querySelectorAll("iframe")) {
      try { video = video || frame.contentDocument.querySelector("video"); } catch { /* a player of another site */ }
    }
    if (!video) return say("这个页面没有可以跳转的播放器", true);
    video.currentTime = seconds;
    video.scrollIntoView({ block: "nearest" });
  }
  function piece(each) {
    if (each.spoiler) {
      const hidden = element("span", { className: "spoiler", tabIndex: 0, title: "剧透，点击查看", textContent: each.text });
      hidden.setAttribute("role", "button"); hidden.setAttribute("aria-label", "剧透，点击查看");
      hidden.onclick = () => { hidden.classList.add("open"); hidden.removeAttribute("role"); hidden.removeAttribute("aria-label"); };
      hidden.onkeydown = event => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); hidden.click(); } };
      return hidden;
    }
    if (each.seconds !== undefined) return element("button", { type: "button", textContent: each.text, title: "跳到 " + each.text, onclick: () => seek(each.seconds) });
    if (each.link) return element("a", { href: each.link, rel: "nofollow noopener ugc", target: "_blank", textContent: each.host });
    if (each.at) return element("span", { className: "at", textContent: "@" + each.at });
    if (each.emoji !== undefined) return emoji(each.emoji);
    return each.text;
  }
  function text(pieces) { return element("div", { className: "text" }, ...pieces.map(piece)); }
  function emoji(number) {
    // The CMS's own pictures, where this page is served beside them.
    const picture = element("img", { src: `/static/images/face/${number}.gif`, alt: `[表情 ${number}]`, title: "表情 " + number, loading: "lazy" });
    picture.onerror = () => picture.replaceWith(picture.alt);
    return picture;
  }
  function act(words, work, more = {}) {
    const button = element("button", { type: "button", textContent: words, ...more });
    button.onclick = async () => {
      button.disabled = true;
      try { await work(button); } catch (error) { say(error.message, true); } finally { button.disabled = false; }
    };
    return button;
  }
  function named(author) {
    const badge = (author.id && badges[author.id]) || {};
    return [face(author, badge), element("b", { textContent: author.name }), badge.badge ? element("span", { className: "label", textContent: badge.badge, style: badge.color ? "color: " + badge.color : "" }) : null];
  }
  function face(author, badge) {
    const letter = [...author.name][0] || "";
    const picture = source => element("img", { src: source, alt: "", loading: "lazy", referrerPolicy: "no-referrer" });
    const avatar = badge.avatar ? picture(badge.avatar) : letter;
    if (badge.avatar) avatar.onerror = () => avatar.replaceWith(letter);
    const made = element("span", { className: "face" }, avatar, badge.frame ? picture(badge.frame) : null);
    made.setAttribute("aria-hidden", "true");
    return made;
  }
  function advert(ad) {
    return ad ? element("a", { className: "advert", href: ad.link, rel: "sponsored nofollow noopener", target: "_blank", textContent: ad.title }) : null;
  }
  function byFriends(id) {
    const found = friends[id];
    return found ? element("span", { className: "label", textContent: found.count === 1 ? "好友赞过" : found.count + " 位好友赞过" }) : null;
  }
  async function bell() {
    $("bell").hidden = !(me && me.id);
    if ($("bell").hidden) return;
    const { unread } = await call("GET", "/notices/count");
    $("bell").textContent = "通知" + (unread ? " " + (unread > 99 ? "99+" : unread) : "");
    $("bell").setAttribute("aria-pressed", String(unread > 0));
  }
  async function tell() {
    const box = $("notices"), found = await call("GET", "/notices");
    box.replaceChildren(...found.items.map(item => element("div", { className: item.seen ? "told" : "told new" },
      element("span", { textContent: (item.by ? item.by.name + " " : "") + NOTICES[item.kind] + (item.kind === "like" && item.comment.likes > 1 ? `（共 ${item.comment.likes} 赞）` : "") }),
      item.kind === "status" && item.comment ? "：" + OUTCOMES[item.comment.status] : null,
      element("small", { textContent: ` ${item.section ? item.section.title : ""} ${ago(item.at)}` }),
      item.comment ? text(item.comment.pieces) : null)));
    if (!found.items.length) box.textContent = "还没有通知";
    if (found.items.length) await call("POST", "/notices/read", { upto: found.items[0].id });
    await bell();
  }
  function report(item, line, button) {
    const undone = () => line.replaceWith(button);
    const reasons = Object.entries(REASONS).map(([reason, words]) => act(words, async () => {
      await call("POST", `/comments/${item.id}/report`, { reason });
      line.replaceChildren("已举报 ", act("撤销", async () => { await call("DELETE", `/comments/${item.id}/report`); undone(); }));
    }));
    line.append("举报原因：", ...reasons, act("取消", undone));
  }
  function card(item, level = 0) {
    const made = element("article", { id: "c" + item.id });
    const words = text(item.pieces);
    const who = element("div", { className: "who" }, ...named(item.author),
      item.reply_to ? element("span", { className: "to", textContent: "回复 " + item.reply_to }) : null,
      element("span", { textContent: item.floor ? "#" + item.floor : "" }), element("span", { textContent: ago(item.at), title: item.at }),
      item.edited ? element("span", { textContent: "已编辑", title: item.edited }) : null,
      ...(item.labels || []).map(name => element("span", { className: "label", textContent: LABELS[name] })), byFriends(item.id),
      item.waiting ? element("span", { className: "label", textContent: "审核中，仅自己可见" }) : null,
      item.sending ? element("span", { className: "label sending", textContent: "正在发布" }) : null);
    const count = { 1: item.likes || 0, "-1": item.dislikes || 0 }, buttons = {};
    function show() {
      for (const value of [1, -1]) {
        buttons[value].textContent = (value === 1 ? "赞 " : "踩 ") + (count[value] || "");
        buttons[value].setAttribute("aria-pressed", String(votes[item.id] === value));
      }
    }
    function opine(value) {
      return act("", async () => {
        const before = votes[item.id] || 0, now = before === value ? 0 : value;
        await lightly(() => call("PUT", `/comments/${item.id}/vote`, { value: now }));
        if (before) count[before] -= 1;
        if (now) count[now] += 1;
        votes[item.id] = now; show();
      });
    }
    buttons[1] = opine(1); buttons[-1] = opine(-1); show();
    const under = element("div"), author = me && me.id && me.id === item.author.id, mine = me && me.id && (author || me.id === owner);
    const acts = element("div", { className: "acts" }, buttons[1], buttons[-1],
      act("回复", () => reply(item, made, under)),
      item.reply_to ? act("对话", button => dialog(item, under, button)) : null,
      act("举报", button => { const line = element("span", { className: "report" }); button.replaceWith(line); report(item, line, button); }),
      author && Date.now() - new Date(item.at) < editable * 1000 ? act("编辑", button => edit(item, made, words, button)) : null,
      mine ? act("删除", async () => {
        await call("DELETE", `/comments/${item.id}`);
        made.replaceChildren(element("div", { className: "who" }, "已删除 ", act("撤销", async () => {
          await call("POST", `/comments/${item.id}/undo`); made.replaceWith(card(item, level));
        })));
      }) : null);
    made.append(who, words, advert(item.ad) || "", acts, under);
    for (const below of item.preview || []) under.append(card(below, 1));
    if (level === 0 && item.replies > (item.preview || []).length)
      under.append(act(`查看全部 ${item.replies} 条回复`, button => replies(item, under, button)));
    return made;
  }
  function learn(page) {
    Object.assign(votes, page.votes || {}); Object.assign(badges, page.decorations || {}); Object.assign(friends, page.liked_by_friends || {});
  }
  async function replies(item, under, button, cursor) {
    const page = await call("GET", `/comments/${item.id}/replies` + (cursor ? "?cursor=" + encodeURIComponent(cursor) : ""));
    learn(page);
    if (cursor) button.remove(); else under.replaceChildren();
    under.append(...page.items.map(below => card(below, 1)));
    if (page.next) { const more = act("更多回复", () => replies(item, under, more, page.next)); under.append(more); }
  }
  async function dialog(item, under, button) {
    const page = await call("GET", `/comments/${item.id}/dialog`);
    learn(page);
    const box = element("section", { className: "notice dialog" }, element("b", { textContent: "对话" }), act("收起", () => { box.remove(); button.hidden = false; }));
    box.setAttribute("aria-label", "对话");
    for (const each of page.items) box.append(element("div", { className: "told" }, element("div", { className: "who" }, ...named(each.author), each.reply_to ? "回复 " + each.reply_to : null), text(each.pieces)));
    button.hidden = true; under.before(box);
  }
  // A form that writes: with a draft that survives a reload, emoji, spoilers, a preview, and a guest's name.
  function writer(form, box, draft, send, words) {
    const preview = element("div", { className: "preview", hidden: true }), panel = element("div", { className: "row", hidden: true });
    const name = element("input", { maxLength: 30, placeholder: "你的名字", className: "name", value: kept("comments-name"), hidden: !(me && !me.id), autocomplete: "nickname" });
    name.setAttribute("aria-label", "你的名字");
    const put = (before, after = "") => {
      const from = box.selectionStart, to = box.selectionEnd;
      box.setRangeText(before + box.value.slice(from, to) + after, from, to, "end"); box.focus(); box.dispatchEvent(new Event("input"));
    };
    panel.append(...EMOJI.map(each => element("button", { type: "button", textContent: each, onclick: () => put(each) })));
    const key = draft && `comments-draft:${type}:${object}:${draft}`;
    if (key && !box.value) box.value = kept(key);
    box.addEventListener("input", () => { preview.hidden = true; if (key) kept(key, box.value); });
    const button = element("button", { className: "send", textContent: words }), told = element("span");
    told.setAttribute("role", "status");
    if (form.id === "write") told.id = "said";
    const row = element("div", { className: "row" },
      element("button", { type: "button", textContent: "😀", title: "表情", onclick: () => { panel.hidden = !panel.hidden; } }),
      element("button", { type: "button", textContent: "剧透", title: "把选中的文字折叠为剧透", onclick: () => put("||", "||") }),
      act("预览", async () => {
        if (!box.value.trim()) return;
        const found = await call("POST", "/preview", { content: box.value });
        preview.replaceChildren(text(found.pieces)); preview.hidden = false;
      }),
      told, element("span", { className: "wide" }), button);
    form.append(name, box, panel, preview, row);
    form.onsubmit = async event => {
      event.preventDefault(); button.disabled = box.readOnly = true; say("", false, told);
      try {
        kept("comments-name", name.hidden ? kept("comments-name") : name.value.trim());
        await send(box.value, name.hidden ? "" : name.value.trim());
        box.value = ""; preview.hidden = true; if (key) kept(key, "");
      } catch (error) { say(error.message, true, told); } finally { button.disabled = box.readOnly = false; }
    };
  }
  function reply(item, made, under) {
    if (made.querySelector(":scope > form")) return;
    const box = element("textarea", { placeholder: "回复 " + item.author.name, required: true, maxLength: 2000 }), form = element("form");
    writer(form, box, item.id, async (content, name) => {
      await publish(content, name, item.id, found => {
        if (item.root) found.reply_to = item.author.name;
        const shown = card(found, 1);
        (made.parentElement.closest("article") ? made.parentElement : under).append(shown);
        return shown;
      });
      form.remove();
    }, "回复");
    made.insertBefore(form, under); box.focus();
  }
  function edit(item, made, words, button) {
    const box = element("textarea", { required: true, maxLength: 2000, value: item.pieces.map(source).join("") }), form = element("form");
    button.hidden = true;
    writer(form, box, "", async content => {
      const found = await call("PATCH", `/comments/${item.id}`, { content });
      const state = await outcome(item.id, "没有保存：");
      item.pieces = found.pieces; item.edited = found.edited; item.waiting = state === "waiting";
      made.replaceWith(card(item, made.parentElement.closest("article") ? 1 : 0)); say(state === "shown" ? "已保存" : SENT[state]);
    }, "保存");
    words.after(form); box.focus();
  }
  function source(each) {
    if (each.spoiler) return `||${each.text}||`;
    if (each.link) return each.link;
    if (each.at) return "@" + each.at + (each.user ? ":" + each.user : "");
    return each.emoji !== undefined ? `[em:${each.emoji}]` : each.text;
  }
  async function outcome(id, refused) {
    // What was accepted is applied by a worker, which may refuse it. It takes less than a second, unless none runs.
    let found = {};
    for (const pause of [200, 400, 800, 1600, 3200, 6400]) {
      await new Promise(done => setTimeout(done, pause));
      found = await call("GET", `/comments/${id}/outcome`).catch(() => ({}));
      if (found.state === "refused") throw new Error(refused + found.detail);
      if (found.state && found.state !== "pending") return found.state;
    }
    return "pending";
  }
  async function publish(content, name, parent, show) {
    const body = { content };
    if (parent) body.parent = parent;
    if (name) body.name = name;
    const found = await call("POST", place + "/comments", body);
    // Before the first comment there is no section whose page says who is here.
    if (!(me && me.id) && found.author.id) me = found.author;
    if (known !== null) known += 1;
    const made = show({ ...found, sending: true }), label = made.querySelector(".sending");
    let state = "refused";
    try { state = await outcome(found.id, "没有发布："); } finally {
      if (state !== "shown" && known !== null) known -= 1;
      if (state === "refused") made.remove();
      else if (state === "waiting") label.textContent = "审核中";
      else if (state !== "pending") label.remove();
    }
    say(SENT[state]);
  }
  async function load() {
    if (loading || ended) return;
    loading = true;
    const current = turn;
    try {
      const page = await call("GET", place + `/page?sort=${sort}` + (next ? "&cursor=" + encodeURIComponent(next) : ""));
      if (current !== turn) return;
      me = page.me || null; owner = page.section.owner_id; editable = page.section.edit_seconds || 0; learn(page);
      if (!next) { bell().catch(() => {}); known = page.section.count; }
      $("title").textContent = page.section.title || "评论"; $("count").textContent = page.section.count + " 条评论";
      host.dispatchEvent(new CustomEvent("douban-comments-count", { bubbles: true, composed: true, detail: { count: page.section.count } }));
      whoIsHere();
      $("notice").hidden = !page.notice && !page.section.closed;
      $("notice").textContent = page.notice || "评论区已关闭";
      const shown = [...(next ? [] : [...(page.mine || []), ...page.pinned]), ...page.items].filter(item => !$("c" + item.id));
      $("list").append(...shown.map(item => card(item)));
      if (shown.length) call("POST", "/impressions", { ids: shown.map(item => item.id), view: page.view }).catch(() => {});
      next = page.next; ended = !next; $("end").textContent = ended ? "没有更多了" : "";
    } catch (error) {
      if (current === turn) {
        ended = true;
        if (error.status === 404) await call("GET", "/me").then(found => { me = found.me; whoIsHere(); }).catch(() => {});
        $("end").replaceChildren(error.status === 404 ? "还没有评论" : error.message + " ", act("重试", () => { ended = false; return load(); }));
      }
    } finally { if (current === turn) loading = false; }
    if (!ended && $("end").getBoundingClientRect().top < innerHeight + 400) load();
  }
  function whoIsHere() {
    $("login").textContent = me && me.id ? me.name || "用户" + me.id : "登录";
    for (const input of root.querySelectorAll("input.name")) input.hidden = !(me && !me.id);
  }
  async function recount() {
    if (known === null || document.hidden) return;
    const [found] = (await call("GET", `/counts?of=${type}:${object}`)).counts, more = found.count - known;
    $("fresh").hidden = more <= 0; $("fresh").textContent = `有 ${more} 条新评论`;
  }
  const look = () => recount().catch(() => {});
  function restart() {
    turn += 1; loading = false; ended = false; next = null; $("list").replaceChildren(); $("fresh").hidden = true;
    for (const button of root.querySelectorAll("[data-sort]")) button.setAttribute("aria-pressed", String(button.dataset.sort === sort));
    load();
  }

  const sorts = Object.entries(SORTS).map(([name, words]) => {
    const button = element("button", { type: "button", textContent: words, onclick: () => { sort = name; restart(); } });
    button.dataset.sort = name;
    return button;
  });
  const nav = element("nav", {}, ...sorts, element("span", { className: "wide" }), element("button", { id: "bell", type: "button", hidden: true, textContent: "通知" }), element("button", { id: "login", type: "button", textContent: "登录" }));
  nav.setAttribute("aria-label", "排序");
  const form = element("form", { id: "write" }), box = element("textarea", { id: "content", maxLength: 2000, placeholder: "写下评论，支持 @名字、链接、12:34 和 ||剧透||", required: true });
  box.setAttribute("aria-label", "写评论");
  writer(form, box, "new", (content, name) => publish(content, name, null, found => { const shown = card(found); $("list").prepend(shown); return shown; }), "发布");
  root.append(element("h2", {}, element("span", { id: "title", textContent: "评论" }), " ", element("small", { id: "count" })), nav,
    element("section", { id: "notices", className: "notice", ariaLabel: "通知", hidden: true }), form,
    element("div", { id: "notice", className: "notice", hidden: true }), element("button", { id: "fresh", type: "button", hidden: true, onclick: () => { sort = "new"; restart(); } }),
    element("div", { id: "list" }), element("div", { id: "end", className: "end" }));
  $("bell").onclick = () => {
    $("notices").hidden = !$("notices").hidden;
    if (!$("notices").hidden) tell().catch(error => { $("notices").textContent = error.message; });
  };
  $("login").onclick = () => {
    const login = host.getAttribute("login-url");
    if (login) { location.href = login; return; }
    const pasted = prompt("粘贴网站签发的令牌（留空则退出）", "");
    if (pasted === null) return;
    kept("comments-token", pasted.trim());
    votes = {}; friends = {}; $("notices").hidden = true; restart();
  };
  document.addEventListener("visibilitychange", look);
  const counting = setInterval(look, 60000);
  const observer = new IntersectionObserver(seen => { if (seen.some(each => each.isIntersecting)) { if (!turn) restart(); else load(); } }, { rootMargin: "400px" });
  observer.observe($("end"));
  return () => { observer.disconnect(); clearInterval(counting); document.removeEventListener("visibilitychange", look); };
}

customElements.define(tag, class extends HTMLElement {
  connectedCallback() {
    const root = this.shadowRoot || this.attachShadow({ mode: "open" }), sheet = new CSSStyleSheet();
    root.replaceChildren(); sheet.replaceSync(STYLE); root.adoptedStyleSheets = [sheet];
    const paint = () => this.toggleAttribute("data-dark", isDark(this));
    this.scheme = matchMedia("(prefers-color-scheme: dark)"); this.scheme.addEventListener("change", paint);
    this.painter = new MutationObserver(paint);
    for (const each of [document.documentElement, document.body]) this.painter.observe(each, { attributes: true, attributeFilter: ["class", "style", "data-theme"] });
    this.painter.observe(this, { attributes: true, attributeFilter: ["theme"] });
    this.paint = paint; paint(); this.stop = start(this, root);
  }
  disconnectedCallback() { this.stop(); this.painter.disconnect(); this.scheme.removeEventListener("change", this.paint); }
});

// A stock page of the CMS: its box is taken over as soon as the service answers, and stays where it does not.
async function takeOver(box) {
  const type = box.dataset.mid, object = box.dataset.id;
  const answer = await fetch(`${API}/counts?of=${type}:${object}`, { credentials: CROSS ? "include" : "same-origin", signal: AbortSignal.timeout(8000) });
  if (!answer.ok) return;
  const totals = document.querySelectorAll(".mac_total");
  let number = String((await answer.json()).counts[0].count);
  const show = () => { for (const each of totals) if (each.textContent !== number) each.textContent = number; };
  // The CMS writes its own number and box whenever its own request is answered, which may be later.
  for (const each of totals) new MutationObserver(show).observe(each, { childList: true, characterData: true, subtree: true });
  const made = place(type, object);
  made.addEventListener("douban-comments-count", event => { number = String(event.detail.count); show(); });
  box.before(made); box.style.display = "none"; show();
}
function place(type, object) {
  const made = document.createElement(tag), options = script ? script.dataset : {};
  for (const [name, value] of Object.entries({ type, object, sort: options.sort, theme: options.theme, "token-url": options.tokenUrl, "login-url": options.loginUrl }))
    if (value) made.setAttribute(name, value);
  if (!options.loginUrl && window.maccms) made.setAttribute("login-url", (window.maccms.path || "") + "/index.php/user/login.html");
  return made;
}
function begin() {
  if (script && script.dataset.id) script.after(place(script.dataset.type || "1", script.dataset.id));
  else for (const box of document.querySelectorAll("div.mac_comment[data-id][data-mid]"))
    if (/^\d+$/.test(box.dataset.id) && /^\d+$/.test(box.dataset.mid)) takeOver(box).catch(() => {});
}
if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", begin); else begin();
})();
