"use strict";
/* Decisions as the launchpad of `record_decisions` takes them: rows, YAML and links. Knows nothing of the page. */

/** Signs that YAML does not take as they are, or that nobody sees. */
const UNSEEN = /[\u007f-\u00a0\u00ad\u061c\u200b-\u200f\u2028-\u202f\u2060-\u206f\ufdd0-\ufdef\ufeff\ufff0-\uffff]/g;

/** Returns text in double quotes; what JSON escapes, YAML reads as well. Half a pair of signs is none. */
function quoted(text) {
  const whole = Array.from(text).filter((sign) => sign.length > 1 || sign < "\ud800" || sign > "\udfff");
  const escape = (sign) => "\\u" + sign.charCodeAt(0).toString(16).padStart(4, "0");
  return JSON.stringify(whole.join("").trim()).replace(UNSEEN, escape);
}

/** Returns a decision as one row; its values are numbers, names of actions, and true. The title is a comment. */
function rowOf(decision, title) {
  const fields = Object.entries(decision).map(([name, value]) => `${name}: ${value}`);
  const said = commentOf(title);
  return `        - {${fields.join(", ")}}${said && `  # ${said}`}\n`;
}

/** Returns text that may stand behind a number sign: one line, of signs that YAML takes as they are. */
function commentOf(text) {
  const whole = Array.from(text || "").filter((sign) => sign.length > 1 || sign < "\ud800" || sign > "\udfff");
  return whole.slice(0, 40).join("").replace(UNSEEN, "").replace(/[\u0000-\u001f]/g, " ").trim();
}

/** Returns what stands over the rows. */
function headOf(reviewer, note) {
  return (
    "ops:\n  store_decisions:\n    config:\n" +
    `      reviewer: ${quoted(reviewer)}  # 您的名字\n      note: ${quoted(note)}  # 原因，可不填\n` +
    "      dry_run: false  # true 只检查\n      decisions:  # 每条决定一行\n"
  );
}

/** Returns the whole config. */
function configOf(rows, reviewer, note) {
  return headOf(reviewer, note) + rows.join("");
}

/** Returns links that open the launchpad filled in, each of at most `most` signs, with the rows that it holds. */
function linksOf(launch, most, rows, reviewer, note) {
  const start = launch + encodeURIComponent(headOf(reviewer, note));
  const links = [];
  for (const row of rows) {
    const text = encodeURIComponent(row);
    const last = links[links.length - 1];
    if (last && last.address.length + text.length <= most) {
      last.address += text;
      last.rows.push(row);
    } else {
      links.push({ address: start + text, rows: [row] });
    }
  }
  return links;
}

/** Returns the subject's id that a person typed, as a number or as the address of its page; 0 if it is neither. */
function subjectId(text, [smallest, largest]) {
  const found = /^\s*(\d{1,10})\s*$/.exec(text) || /douban\.com\/(?:\S*\/)?(?:subject|movie|tv)\/(\d{1,10})(?!\d)/.exec(text);
  const number = found ? Number(found[1]) : 0;
  return number >= smallest && number <= largest ? number : 0;
}
