"""Synopses of what never happens."""

from __future__ import annotations

from douban_pipeline_tests.harness.generated.draws import Draw
from douban_pipeline_tests.harness.generated.words import NOUNS, PEOPLE, SCENES, TRAITS

MOST = 12
"""Sentences of the longest synopsis."""

_OPENINGS = (
    "%(who)s回到阔别多年的%(where)s，却发现记忆里的%(what)s早已不在原处。",
    "一场突如其来的变故打破了%(where)s的平静，%(who)s不得不重新面对当年的%(what)s。",
    "故事发生在%(where)s，身为%(role)s的%(who)s过着与世无争的日子，直到%(what)s出现。",
    "二十年前，%(who)s在%(where)s失去了最重要的人；二十年后，同样的%(what)s再次摆在面前。",
    "初来乍到的%(who)s在%(where)s谋得一份%(role)s的差事，从此卷入与%(what)s有关的风波。",
    "没有人知道%(who)s为什么要守着%(where)s，除了那个同样惦记%(what)s的%(role)s。",
)
_MIDDLES = (
    "%(other)s的到来让事情变得更加复杂，两人从互相提防到并肩而行，一步步接近被掩埋的真相。",
    "随着调查深入，看似毫无关联的几起事件，竟都指向一位%(trait)s的%(role)s。",
    "为了保护家人，%(who)s与%(other)s达成了一个%(trait)s的约定，代价却远比想象中沉重。",
    "昔日好友%(other)s带来一封旧信，信里只有一张画着%(what)s的地图和半句没有写完的话。",
    "在资金断绝、人心涣散的关头，%(other)s挺身而出，用自己的方式替大家守住了%(what)s。",
    "而远在%(where)s的%(other)s，正策划着一场足以改变所有人命运的行动。",
    "误会与隔阂让两代人渐行渐远，直到%(what)s把他们重新带回同一张饭桌前。",
    "%(who)s渐渐明白，自己追逐了半生的%(what)s，其实一直藏在最%(trait)s的角落。",
    "训练、失败、争吵、和解，这支由%(role)s们临时拼凑起来的队伍，终于等来了属于他们的夜晚。",
    "与此同时，神秘的%(role)s频频现身，每一次都恰好赶在线索断掉之前。",
    "面对步步紧逼的对手，%(other)s选择独自承担一切，只留下一句让人费解的嘱托。",
    "战火蔓延至%(where)s，普通人被推上命运的岔路口，离别成了每天都要练习的功课。",
)
_ENDINGS = (
    "当最后一班车驶离%(where)s，%(who)s终于做出了那个迟到多年的决定。",
    "风波过后，%(who)s与%(other)s站在%(what)s前，谁也没有先开口。",
    "真相大白之日，所有人都要为自己的选择付出代价……",
    "这一次，%(who)s能否守住心中那份%(trait)s的信念？",
    "一段关于%(what)s的传奇，就此拉开序幕。",
)


def synopsis(draw: Draw, people: list[str], sentences: int) -> str:
    """Return a synopsis of so many sentences (some 35 characters each); takes ``sentences + 6`` numbers of ``draw``."""
    words = {
        "who": people[0] if people else "他",
        "other": people[-1] if len(people) > 1 else "老友",
        "where": SCENES[draw() * len(SCENES) >> 16],
        "what": NOUNS[draw() * len(NOUNS) >> 16],
        "role": PEOPLE[draw() * len(PEOPLE) >> 16],
        "trait": TRAITS[draw() * len(TRAITS) >> 16],
    }
    parts = [_OPENINGS[draw() * len(_OPENINGS) >> 16]]
    first = draw()
    # In the pool's order from anywhere on: no sentence comes twice.
    parts += [_MIDDLES[(first + n) % len(_MIDDLES)] for n in range(min(sentences - 2, len(_MIDDLES)))]
    if sentences > 1:
        parts.append(_ENDINGS[draw() * len(_ENDINGS) >> 16])
    return "".join(parts) % words
