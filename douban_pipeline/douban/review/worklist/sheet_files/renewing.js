"use strict";
/* Videos that are judged anew while their cards are here. A card that somebody looks at keeps what it says until a key
   asks for the new verdict or nobody looks at it any more; what is chosen on it meanwhile is not sent. Any other card is
   made again where it is. */

/** Whether somebody looks at a card, or is about to type there. */
function isLookedAt(item) {
  const element = app.cards.get(item.vod)?.element;
  if (!element?.isConnected) return false;
  return item === app.current || isSeen(element) || element.contains(document.activeElement);
}

/** Notes that a video was judged anew since its card was read; the card is read again. */
function judgedAnew(item, verdict) {
  if (item.newer?.verdict === verdict) return;
  item.newer = { verdict };
  app.live.outdated.add(item.vod);
  app.live.chosen(item);
  if (item === app.current) announce(item, "刚刚重新判定，按 v 查看新的判定");
  app.cards.get(item.vod)?.show();
}

/** Keeps a newer card from being shown while somebody looks at the one that is here; returns whether it does. */
function keepsOld(item, card) {
  if (!item.candidates || item.verdict === card.verdict || item.newer?.wanted || !isLookedAt(item)) return false;
  item.newer = card;
  app.cards.get(item.vod).show();
  return true;
}

/** Returns what to say on a card that is made again: what was chosen on the former verdict, and what became of that. */
function renewalOf(item, card) {
  const words = item.candidates && item.verdict !== card.verdict ? wordsOf(item, choices.of(item), sheet.ids) : "";
  if (!words) return "";
  const { state, reason } = app.stateOf(item) || {};
  const end = state === "refused" ? `被拒：${reason}` : "没有提交";
  return `已按新的判定显示。之前选的「${words}」${end}；请看新的候选再选`;
}

/** Shows the newer card, as soon as it is here. */
function showNewer(item) {
  if (!item.newer) return;
  item.newer.wanted = true;
  if (item.newer.candidates) app.receive({ cards: [item.newer], gone: [] }, true);
  else app.live.reread().catch(() => app.live.outdated.add(item.vod)); // asked for again with the next look
}

/** Shows newer cards that nobody looked at since they came. */
function renewUnseen() {
  const cards = app.items.filter((item) => item.newer?.candidates && !isLookedAt(item)).map((item) => item.newer);
  if (cards.length) app.receive({ cards, gone: [] }, true);
}

/** Fills the place for notices of a card. */
function showRenewal(place, item) {
  const told = [];
  if (item.newer) told.push("这部影片刚刚重新判定，这里还是之前的候选", button("", "v", "查看新的判定", () => showNewer(item)));
  else if (item.renewed && !choices.row(item)) told.push(item.renewed);
  place.replaceChildren(...(told.length ? [el("p", "", ...told)] : []));
}
