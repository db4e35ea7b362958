"use strict";
/* Loads the page again every `data-seconds` of this script's element, but only while it is in sight and nothing in it is
   selected; a page that comes back into sight after that time is loaded at once. A page that was made (`data-made`, in
   seconds since 1970) more than three times as long ago says so: nobody renews it any more, whatever it says. */

const { seconds, made } = document.currentScript.dataset;
const due = Date.now() + 1000 * Number(seconds);
function old() {
  const age = Date.now() / 1000 - Number(made), minutes = Math.floor(age / 60);
  if (age <= 3 * Number(seconds)) return;
  const said = document.querySelector(".stale") || document.createElement("p");
  const ago = minutes < 120 ? `${minutes} 分钟前` : minutes < 2880 ? `${Math.floor(minutes / 60)} 小时前` : `${Math.floor(minutes / 1440)} 天前`;
  said.className = "lead bad stale";
  said.textContent = `本页是 ${ago}写的，此后没有更新，下面说的可能已不是现状：Dagster 的守护进程或传感器可能没有运行，请在服务器上运行 douban-pipeline check。`;
  if (!said.isConnected) document.querySelector("main").prepend(said);
}
function renew() {
  old();
  if (Date.now() >= due && document.visibilityState === "visible" && !String(getSelection())) location.reload();
}
old();
setInterval(renew, 1000);
addEventListener("visibilitychange", renew);
