"use strict";
/* Reviewers who share a queue: who has no card asks for some, and the pages of the others hand over what their reviewers
   have not come to. */

/* Somebody who has not touched the page for this long is away; milliseconds. */
const AWAY = 300000;
/* How long cards that were handed over are left to who asked for them; milliseconds. */
const LEFT_ALONE = 60000;
/* How long the answer of other pages is looked for every second, which takes them some seconds; milliseconds. */
const EXPECTED = 20000;

class Sharing {
  constructor(live) {
    this.live = live;
    this.handed = new Map();
    this.touched = Date.now();
    this.expected = 0;
    for (const kind of ["keydown", "pointerdown", "wheel"]) addEventListener(kind, () => (this.touched = Date.now()), { passive: true });
  }

  /** Whether a card was handed over a moment ago, and is not asked for again. */
  left(item) {
    return Date.now() - (this.handed.get(item.vod) || 0) < LEFT_ALONE;
  }

  /** Whether other pages are about to hand over cards. */
  expects() {
    return Date.now() < this.expected;
  }

  /** Asks the pages of other reviewers for cards. */
  async ask() {
    const { live } = this;
    try {
      const { held } = await live.ask("ask", live.asking);
      this.expected = held ? Date.now() + EXPECTED : 0;
      if (held) live.say("已请求：对方的页面约 10 秒内交出一半还没看到的影片");
      live.look();
    } catch (error) {
      live.report(`没有请求成功：${error.status ? error.message : "服务没有应答"}`);
    }
  }

  /** Hands over the later half of the cards that nobody has come to here, or all where the reviewer is away. */
  async handOver(name) {
    const { live } = this;
    const { app } = live;
    const away = Date.now() - this.touched > AWAY;
    const open = app.items.filter((item) => item.candidates && !app.isDone(item) && !app.choices.row(item) && (away || item !== app.current));
    const given = away ? open : open.slice(Math.floor(open.length / 2));
    if (!given.length) return;
    for (const item of given) this.handed.set(item.vod, Date.now());
    const vods = given.map((item) => item.vod);
    app.lose(vods);
    await live.ask("release", { page: live.holder, given_up: vods });
    live.say(`${name} 请求接手：已交出 ${given.length} 部${away ? "（这里 5 分钟没有操作）" : "还没看到的影片"}`);
  }
}
