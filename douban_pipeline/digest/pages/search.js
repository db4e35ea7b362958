// Shows the days whose text holds every word that is looked for.
"use strict";
const field = document.getElementById("search");
const days = [...document.querySelectorAll("#days article")];
const texts = days.map((day) => day.textContent.toLowerCase());
const found = document.getElementById("found");
field.hidden = false;
function show() {
  const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
  let count = 0;
  days.forEach((day, place) => {
    day.hidden = !words.every((word) => texts[place].includes(word));
    count += day.hidden ? 0 : 1;
  });
  found.textContent = words.length ? `找到 ${count} 天` : "";
}
field.addEventListener("input", show);
show();
