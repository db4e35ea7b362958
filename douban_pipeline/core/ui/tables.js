"use strict";
const renewed = Number(document.body.dataset.renewed);
if (renewed) setTimeout(() => location.reload(), renewed * 1000);
// A poster that cannot be had leaves no hole, also one that failed before this script ran.
document.addEventListener("error", (event) => event.target.matches?.("img.poster") && event.target.remove(), true);
document.querySelectorAll("img.poster").forEach((poster) => poster.complete && !poster.naturalWidth && poster.remove());
const here = document.querySelector("nav [aria-current]");
if (here) here.parentElement.scrollLeft = here.offsetLeft - 48; // on a phone the links are swiped

// Batch links are about the rows that are selected, or about those of the page.
const batch = document.querySelector(".batch");
if (batch) {
  const boxes = [...document.querySelectorAll("tr[data-id]")].map((tr) => {
    const box = Object.assign(document.createElement("input"), { type: "checkbox", value: tr.dataset.id, ariaLabel: `选中 ${tr.dataset.id}` });
    box.addEventListener("change", aim);
    tr.cells[0].prepend(box);
    return box;
  });
  function aim() {
    const chosen = boxes.filter((box) => box.checked);
    const ids = [...new Set((chosen.length ? chosen : boxes).map((box) => box.value))].slice(0, batch.dataset.most);
    for (const link of batch.children) {
      link.href = link.dataset.address.replace("{ids}", ids.join("%2C%20"));
      link.textContent = `${link.dataset.text}（${chosen.length ? "已选" : "本页"} ${ids.length} 项）`;
    }
  }
  aim(); // a browser may have kept what was selected
}
