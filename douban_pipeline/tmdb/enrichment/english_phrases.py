"""The words around the names of an English question: which of them ask, and for what. Pure.

English questions have forms, since their words stand in an order; the first form that fits counts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from douban_pipeline.tmdb.enrichment.route import Asked, Phrased, tidied

_E_KIND = r"(?:movies?|films?|tv shows?|tv series|shows?|series|titles?|works?|flicks?|anime)"
_E_THE = r"(?:the (?:movie|film|show|series|tv show) )?"
_E_NAME = r"(?P<name>.{1,80}?)"
_E_TWO = r"(?P<one>.{1,50}?) (?:and|with|&) (?P<two>.{1,50}?)"
_E_YEARS = (
    r"(?: (?:(?:made |released )?(?:between|from) (?:19|20)\d\d (?:and|to|-) (?:19|20)\d\d|(?:after|since|"
    r"before|until|in|from) (?:the )?(?:19|20)?\d\d(?:s|'s)?|"
    r"(?:19|20)\d\d ?[-–] ?(?:19|20)\d\d))?"
)
_E_FORMS: Sequence[tuple[Asked, re.Pattern[str]]] = tuple(
    (asked, re.compile(rf"(?i)^(?:{form})$"))
    for asked, form in (
        (
            Asked.TOGETHER,
            rf"(?:which |what |any |list |all )*{_E_KIND} (?:do|did|have|has|are|were|star|feature|that|"
            rf"where|in which|featuring|starring|of|by|with|both|from)+(?: both)? {_E_TWO}(?: (?:both|"
            rf"together|in common|share|worked|work|appear(?:ed)?|act(?:ed)?|star(?:red)?|did|do|made|make|been|"
            rf"co-star(?:red)?|have|in|on|play(?:ed)?))*",
        ),
        (
            Asked.TOGETHER,
            rf"(?:have|has|did|do|were|are) {_E_TWO} (?:ever )?(?:work|worked|act|acted|appear|appeared|star|"
            rf"starred|been|make|made|co-star)\b.*",
        ),
        (
            Asked.TOGETHER,
            rf"what (?:have|did|do|has) {_E_TWO} (?:both |ever )?(?:work|worked|act|acted|appear|appeared|"
            rf"star|starred|been|make|made|do|done)\b.*",
        ),
        (Asked.DIRECTOR, rf"who (?:directed|made|helmed) {_E_THE}{_E_NAME}"),
        (Asked.WRITER, rf"who (?:wrote|penned) (?:the (?:script|screenplay) (?:of|for) )?{_E_THE}{_E_NAME}"),
        (
            Asked.CAST,
            rf"who(?:'?s| is| was| are| were)? (?:(?:all )?(?:starred|stars?|starring|acted|acts|acting|"
            rf"played|plays|appears?|appeared) )?(?:in the cast of|in|the (?:main |lead )?(?:actors?|"
            rf"actress(?:es)?|stars?|"
            rf"leads?|cast|cast members?) (?:in|of|from)) {_E_THE}{_E_NAME}",
        ),
        (Asked.CAST, rf"who (?:played|plays) .{{1,40}}? in {_E_THE}{_E_NAME}"),
        (Asked.DIRECTOR, rf"(?:who(?:'?s| is| was)? )?(?:the )?director (?:of|behind|for) {_E_THE}{_E_NAME}"),
        (
            Asked.WRITER,
            rf"(?:who(?:'?s| is| was| are)? )?(?:the )?(?:(?:screen)?writers? (?:of|behind|for)|behind the "
            rf"(?:script|screenplay) (?:of|for)) {_E_THE}{_E_NAME}",
        ),
        (
            Asked.CAST,
            rf"(?:what(?:'?s| is| are) )?(?:the )?(?:full )?(?:cast(?: list)?|actors|stars) (?:of|in|"
            rf"for) {_E_THE}{_E_NAME}",
        ),
        (
            Asked.RATING,
            rf"(?:what(?:'?s| is| was) )?(?:the )?(?:(?:imdb|tmdb|user|audience|average) )?(?:rating|score|"
            rf"ratings|reviews?) (?:of|for|on) {_E_THE}{_E_NAME}",
        ),
        (Asked.RATING, rf"what (?:score|rating) (?:does|did|has) {_E_NAME} (?:have|get|got)"),
        (
            Asked.COUNTRY,
            rf"(?:is|was) {_E_NAME} (?:an? )?(?:american|british|french|german|italian|spanish|korean|japanese|"
            rf"chinese|indian|thai|russian|canadian|australian|mexican|brazilian|swedish|danish|irish|iranian|"
            rf"turkish|polish)(?: (?:movie|film|show|series))?",
        ),
        (Asked.GENRES, rf"(?:is|was) {_E_NAME} (?:a|an) [\w-]+(?: [\w-]+)? or (?:an? )?[\w-]+(?: [\w-]+)?"),
        (
            Asked.GENRES,
            rf"(?:is|was) {_E_NAME} (?:a|an) (?:horror|comedy|drama|thriller|western|musical|documentary|romance|"
            rf"sci-?fi|action|war|crime|fantasy|animated|family|mystery)(?: (?:movie|film|show|series))?",
        ),
        (
            Asked.RATING,
            rf"(?:is|was) {_E_NAME} (?:any |really |actually |a )?(?:good|worth (?:watching|it|seeing|"
            rf"my time)|great|bad|scary|funny|sad|boring|worth|good movie|good film|good show)(?: .{{0,20}})?",
        ),
        (
            Asked.RATING,
            rf"how (?:good|bad) is {_E_NAME}|how (?:is|was) (?P<n1>.{{1,80}}?) rated|how (?:well |highly )?"
            rf"(?:is |was )?rated is (?P<n2>.{{1,80}}?)|how (?:well |highly )(?:is|was) "
            rf"(?P<n3>.{{1,80}}?) rated|should i watch (?P<n4>.{{1,80}}?)",
        ),
        (Asked.RUNTIME, rf"how long (?:is|was|does) {_E_THE}{_E_NAME}(?: (?:last|run))?"),
        (
            Asked.RUNTIME,
            rf"(?:what(?:'?s| is| was) )?(?:the )?(?:runtime|running time|length|duration) (?:of|"
            rf"for) {_E_THE}{_E_NAME}",
        ),
        (Asked.RUNTIME, rf"how many (?:minutes|hours) (?:is|long is|does) {_E_NAME}(?: (?:last|run))?"),
        (
            Asked.EPISODES,
            rf"how many (?:seasons?|episodes?|eps)(?: and (?:seasons?|episodes?))? (?:does|did|do|of|"
            rf"are there (?:in|of)|are in|were there in|in|has|is) {_E_THE}{_E_NAME}(?: (?:have|has|had|run(?: for)?|"
            rf"is there|are there|there))?",
        ),
        (Asked.EPISODES, rf"(?:the )?number of (?:seasons?|episodes?) (?:in|of|for) {_E_THE}{_E_NAME}"),
        (
            Asked.YEAR,
            rf"when (?:was|is|did|does|will) {_E_THE}{_E_NAME} (?:released|come out|came out|premiere[ds]?|"
            rf"air(?:ed)?|first air(?:ed)?|start|made|be released|out|hit theaters|begin|debut)"
            rf"(?: .{{0,15}})?",
        ),
        (
            Asked.YEAR,
            rf"(?:what|which|in what|in which) year (?:was|did|is|does) {_E_THE}{_E_NAME} (?:released|"
            rf"come out|came out|premiere[ds]?|air(?:ed)?|start|made|from|be released|debut)(?: .{{0,15}})?",
        ),
        (
            Asked.YEAR,
            rf"(?:what(?:'?s| is| was) )?(?:the )?(?:release (?:date|year)|premiere date|year) (?:of|"
            rf"for) {_E_THE}{_E_NAME}",
        ),
        (
            Asked.PLOT,
            rf"what(?:'?s| is| was| happens in)? {_E_THE}{_E_NAME} (?:all )?about|what happens (?:in|at the end of) "
            rf"(?P<n1>.{{1,80}}?)|(?:what(?:'?s| is)|explain) the (?:plot|story|synopsis|ending|premise) (?:of|in|for) "
            rf"(?P<n2>.{{1,80}}?)|(?:the )?(?:plot|story|synopsis|summary|premise|plot summary) (?:of|for) "
            rf"(?P<n3>.{{1,80}}?)|summar(?:ize|ise) (?:(?:the )?(?:plot|story) of )?(?P<n4>.{{1,80}}?)",
        ),
        (
            Asked.GENRES,
            rf"what (?:genres?|kind of (?:movie|film|show|series)|type of (?:movie|film|show)) (?:is|are|"
            rf"does) {_E_NAME}(?: belong to)?|(?:what(?:'?s| is) )?(?:the )?genres? of (?P<n1>.{{1,80}}?)",
        ),
        (
            Asked.COUNTRY,
            rf"(?:what|which) country (?:is|was|made|does) {_E_NAME}(?: (?:from|made in|produced in|"
            rf"come from|made))?|where (?:was|is) (?P<n1>.{{1,80}}?) (?:made|produced|from)",
        ),
        (
            Asked.LANGUAGE,
            rf"(?:what|which) language (?:is|was) {_E_NAME}(?: in)?|(?:what|which) languages? (?:do|does|did) "
            rf"(?:they|everyone|people) speak in (?P<n2>.{{1,80}}?)|(?:what(?:'?s| is) )?(?:the )?"
            rf"(?:original )?language of (?P<n1>.{{1,80}}?)",
        ),
        (
            Asked.LIKE,
            rf"(?:.{{0,60}}?\b)?(?:{_E_KIND}|something|anything|stuff|more) (?:that(?:'s| is| are) )?(?:like|"
            rf"similar to|in the (?:style|vein) of|same as) {_E_NAME}",
        ),
        (
            Asked.LIKE,
            rf"what'?s (?:similar to|like) (?P<n4>.{{1,80}}?)|(?:what|which) (?:{_E_KIND} )?(?:is|"
            rf"are) (?:similar to|like) {_E_NAME}|similar "
            rf"(?:{_E_KIND} )?to (?P<n1>.{{1,80}}?)|if i (?:like|liked|love|loved|enjoyed) "
            rf"(?P<n2>.{{1,80}}?)[, ]+what.*|(?:i (?:like|liked|love|loved|enjoyed)) "
            rf"(?P<n3>.{{1,80}}?)[,.]+ ?(?:what|anything|any).*",
        ),
        (
            Asked.WORKS,
            rf"(?:what|which) (?:{_E_KIND} )?(?:was|were) directed by {_E_NAME}|(?:the )?filmography of "
            rf"(?P<n1>.{{1,80}}?)|(?:list |all |show me |what (?:are|were) )*(?P<n2>.{{1,60}}?)(?:'s|"
            rf"s')? (?:best |latest |new |"
            rf"newest |early |top |popular |famous )*(?:movies|films|filmography|works|tv shows)"
            rf"(?: list)?{_E_YEARS}",
        ),
        (
            Asked.WORKS,
            rf"(?:.{{0,60}}?\b)?{_E_KIND} (?:directed by|written by|made by|starring|featuring|by|with|of|"
            rf"from)(?: (?:director|actor|actress))? {_E_NAME}(?: in (?:it|them))?{_E_YEARS}",
        ),
        (
            Asked.WORKS,
            rf"(?:what|which)(?: other| else)?(?: {_E_KIND})? (?:has|did|was|is|does|have) {_E_NAME} "
            rf"(?:been in|made|directed|starred in|acted in|star in|act in|appeared in|appear in|done|do|in|"
            rf"make|direct|written|write|played in|known for|famous for)(?: .{{0,40}})?",
        ),
        (Asked.RATING, rf"{_E_NAME}(?:'s)? (?:(?:imdb|tmdb) )?(?:rating|score|reviews?)"),
        (Asked.CAST, rf"{_E_NAME}(?:'s)? (?:full )?(?:cast|actors|cast list|cast and crew)"),
        (Asked.DIRECTOR, rf"{_E_NAME}(?:'s)? director"),
        (Asked.RUNTIME, rf"{_E_NAME}(?:'s)? (?:runtime|running time|length)"),
        (Asked.YEAR, rf"{_E_NAME}(?:'s)? (?:release date|release year|year of release)"),
        (Asked.PLOT, rf"{_E_NAME}(?:'s)? (?:plot|synopsis|plot summary|ending explained|storyline)"),
        (Asked.EPISODES, rf"{_E_NAME} (?:number of )?(?:episodes?|seasons?|episode count)"),
        (Asked.GENRES, rf"{_E_NAME}(?:'s)? genres?"),
        (Asked.LANGUAGE, rf"{_E_NAME}(?:'s)? (?:original )?language"),
        (Asked.COUNTRY, rf"{_E_NAME}(?:'s)? country(?: of origin)?"),
    )
)
_NO_NAME = re.compile(r"(?i)^(?:the|an?|best|top|this|that|it|he|she|they|some|any|new|good|(?:the )?(?:19|20)?\d\ds)$")
_E_FRONT = re.compile(
    r"(?i)^(?:hey|hi|hello|ok|so|please|pls|well|um|can you|could you|would you|will you|do you know|"
    r"i want to know|i'd like to know|i wonder|"
    r"i(?:'m| am) looking for|looking for|help me find|tell me|show me|give me|find me|find|let me know|"
    r"list|look up|search for|search|do you have|have you seen|have you heard of|"
    r"(?:what|how) about|i want to watch|i wanna watch|i'd like to watch|i want to see|more about|"
    r"something about|(?:some |more |any )?(?:information|info|details) (?:on|about|of|for)|all about|about|"
    r"know anything about|talk about|explain|describe|introduce|an? overview of|overview of|me)[\s,:]+"
)
_E_PLAIN = re.compile(
    r"(?i)^(?:who|what)(?:'s| is| was| are) (?:the (?:actor|actress|director|movie|film|show|series) )?"
    r"(?P<name>.{1,60})$"
)
_E_END = re.compile(
    r"(?i)(?:[\s?.!,]+|\bplease|\bpls|\bthanks?(?: you)?|\bfor me|\bon tmdb|\bright now|(?<=\w) (?:the )?"
    r"(?-i:movie|film|tv show|tv series))$"
)


def read_english(text: str) -> Phrased:
    """Return what an English question without marked names says."""
    rest = text.strip()
    while (shorter := _E_END.sub("", rest)) != rest and shorter:
        rest = shorter
    forms = [rest]
    while (shorter := _E_FRONT.sub("", forms[-1])) != forms[-1] and shorter:
        forms.append(shorter)
    for said in forms:
        for asked, form in _E_FORMS:
            if match := form.match(said):
                found = {name: value for name, value in match.groupdict().items() if value}
                names = tuple(filter(None, (tidied(_bare(value)) for value in found.values())))
                if asked is Asked.WORKS and len(both := re.split(r" (?:and|&) ", names[0] if names else "")) == 2:
                    names, asked = tuple(both), Asked.TOGETHER
                if names and not any(_NO_NAME.match(name) for name in names):
                    return Phrased(names, asked, _without(text, names))
    last = forms[-1]
    if match := _E_PLAIN.match(last):
        last = match["name"]
    name = tidied(last)
    return Phrased(
        (name,) if name else (), Asked.ABOUT if len(forms) > 1 or last != forms[-1] else None, _without(text, (name,))
    )


def _bare(name: str) -> str:
    """Return a name without an article's noun before it, and without a year behind it."""
    name = re.sub(r"(?i)^(?:the )?(?:19|20)\d\d (?=[a-z])", "", name)
    name = re.sub(
        r"(?i)^(?:(?:the|some|all|any) )?(?:best|top|latest|newest|early|famous|great|popular) (?=\S+ \S)", "", name
    )
    name = re.sub(r"(?i)^the (?=\w+ (?:brothers|sisters)$)", "", name)
    plain = re.sub(r"(?i)^(?:the )?(?:movie|film|show|tv show|series|actor|actress|director) (?=\S)", "", name)
    return re.sub(r"(?: (?:the )?(?:movie|film|show|series)|\s*\((?:19|20)\d\d\))$", "", plain)


def _without(text: str, names: Sequence[str]) -> str:
    for name in names:
        text = text.replace(name, " ", 1) if name else text
    return text
