// Keys and marks without a reload. Without it every link and button works through the service.
(() => {
  "use strict";
  const root = document.currentScript.src.replace(/reader\.js.*$/, "");
  const entries = [...document.querySelectorAll("article.entry")];
  const whole = document.querySelector("article.whole");
  let at = -1;
  if (window.innerWidth <= 900) for (const list of document.querySelectorAll("aside details")) list.open = false;

  function show(entry, unread) {
    entry.classList.toggle("unread", unread);
    const button = entry.querySelector(".marks button");
    button.value = unread ? "read" : "unread";
    button.textContent = unread ? "标为已读" : "标为未读";
  }

  async function mark(entry, as) {
    show(entry, as === "unread");
    const sent = new URLSearchParams({ id: entry.dataset.id, as });
    try {
      const answer = await fetch(`${root}mark`, { method: "POST", body: sent, headers: { accept: "application/json" } });
      if (!answer.ok) throw new Error(answer.status);
    } catch {
      show(entry, as !== "unread"); // it was not stored: the page says what is
    }
  }

  for (const entry of entries) {
    entry.querySelector(".marks").addEventListener("submit", (event) => {
      if (!event.submitter) return;
      event.preventDefault();
      mark(entry, event.submitter.value);
    });
  }
  if (whole && whole.classList.contains("unread")) mark(whole, "read");

  function go(step) {
    if (whole) {
      const link = document.getElementById(step > 0 ? "older" : "newer");
      if (link) link.click();
      return;
    }
    if (!entries.length) return;
    if (step > 0 && at === entries.length - 1) {
      const next = document.querySelector("a.next");
      if (next) next.click();
      return;
    }
    if (at >= 0) entries[at].classList.remove("current");
    at = Math.min(Math.max(at + step, 0), entries.length - 1);
    entries[at].classList.add("current");
    entries[at].scrollIntoView({ block: "nearest" });
  }

  const keys = {
    j: () => go(1),
    k: () => go(-1),
    o: (entry) => {
      const link = entry.querySelector(whole ? "a.original" : "a.open");
      if (link) link.click();
    },
    m: (entry) => mark(entry, entry.classList.contains("unread") ? "read" : "unread"),
    u: () => {
      const list = document.getElementById("list");
      if (list) list.click();
    },
  };
  keys.Enter = (entry) => keys.o(entry);

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (event.target.closest("input, select, textarea, button, a")) return;
    const act = keys[event.key];
    const entry = whole || entries[at];
    if (!act || (act.length && !entry)) return;
    event.preventDefault();
    act(entry);
  });
})();
