// Suggestions while somebody types, and the drawing of an entity with its neighbours. Both only add to the page.
"use strict";

const form = document.querySelector("form.find[data-root]");
const root = form.dataset.root;
const field = form.querySelector("#q");
const list = form.querySelector("#found");

let asked = 0;
let timer = 0;

function show(found) {
  list.replaceChildren(
    ...found.map((each) => {
      const item = document.createElement("li");
      const link = item.appendChild(document.createElement("a"));
      link.href = root + each.address;
      link.textContent = each.name;
      if (each.note) link.appendChild(document.createElement("small")).textContent = each.note;
      return item;
    }),
  );
  list.hidden = found.length === 0;
}

async function suggest() {
  const words = field.value.trim();
  const mine = ++asked;
  if (!words) return show([]);
  const answer = await fetch(`${root}search.json?q=${encodeURIComponent(words)}`).catch(() => null);
  // An answer that comes after a later one, or none at all, changes nothing: the button still searches.
  if (mine === asked && answer && answer.ok) show(await answer.json());
}

field.addEventListener("input", () => {
  clearTimeout(timer);
  timer = setTimeout(suggest, 150);
});

form.addEventListener("keydown", (event) => {
  const links = [...list.querySelectorAll("a")];
  const place = links.indexOf(document.activeElement);
  if (event.key === "Escape") {
    show([]);
    field.focus();
  } else if (event.key === "ArrowDown" && links.length) {
    links[Math.min(place + 1, links.length - 1)].focus();
    event.preventDefault();
  } else if (event.key === "ArrowUp" && place >= 0) {
    (place ? links[place - 1] : field).focus();
    event.preventDefault();
  }
});

document.addEventListener("click", (event) => {
  if (!form.contains(event.target)) show([]);
});

const place = document.getElementById("graph");

async function load(source) {
  const answer = await fetch(source).catch(() => null);
  return answer && answer.ok ? answer.json() : null;
}

function elements(found) {
  return [
    ...found.nodes.map((node) => ({ group: "nodes", data: node })),
    ...found.edges.map((edge) => ({
      group: "edges",
      data: { id: [edge.from, edge.to].sort().join(" "), source: edge.from, target: edge.to, role: edge.role },
    })),
  ];
}

async function draw() {
  const found = await load(place.dataset.source);
  if (!found) return;
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const ink = dark ? "#eee" : "#222";
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  const layout = { name: "cose", animate: false, padding: 20, nodeDimensionsIncludeLabels: true };
  const graph = window.cytoscape({
    container: place,
    elements: elements(found),
    minZoom: 0.2,
    maxZoom: 1.6,
    style: [
      {
        selector: "node",
        style: {
          label: "data(name)",
          color: ink,
          "font-size": 11,
          "text-wrap": "wrap",
          "text-max-width": 90,
          "text-valign": "bottom",
          "text-margin-y": 3,
          "background-color": "#01b4e4",
          width: 34,
          height: 34,
        },
      },
      { selector: "node[type = 'person']", style: { "background-color": "#90cea1" } },
      { selector: "node[type != 'person']", style: { shape: "round-rectangle" } },
      {
        selector: "node[picture != '']",
        style: { "background-image": "data(picture)", "background-fit": "cover", "background-image-crossorigin": "null" },
      },
      { selector: "edge", style: { width: 1, "line-color": "#8888", "curve-style": "straight" } },
      {
        selector: "edge:selected",
        style: { label: "data(role)", color: ink, "font-size": 10, "text-rotation": "autorotate" },
      },
    ],
    layout,
  });
  const opened = new Set([found.nodes[0].id]);
  graph.on("tap", "node", async (event) => {
    const node = event.target;
    if (opened.has(node.id())) return;
    opened.add(node.id());
    const more = await load(`${root}graph/${node.id().replace("-", "/")}.json`);
    if (!more) return;
    const known = new Set(graph.elements().map((each) => each.id()));
    graph.add(elements(more).filter((each) => !known.has(each.data.id)));
    graph.layout({ ...layout, randomize: false, animate: !still, animationDuration: 300 }).run();
  });
  graph.on("dbltap", "node", (event) => {
    location.href = root + event.target.data("address");
  });
}

if (place && window.cytoscape) draw();
