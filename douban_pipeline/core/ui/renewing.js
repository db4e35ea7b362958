"use strict";
/* Loads the page again every `data-seconds` of this script's element, but only while it is in sight and nothing in it is
   selected; a page that comes back into sight after that time is loaded at once. */

const due = Date.now() + 1000 * Number(document.currentScript.dataset.seconds);
function renew() {
  if (Date.now() >= due && document.visibilityState === "visible" && !String(getSelection())) location.reload();
}
setInterval(renew, 1000);
addEventListener("visibilitychange", renew);
