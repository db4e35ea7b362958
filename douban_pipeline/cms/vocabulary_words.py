"""Tables of words for regions, languages and genres: Douban's, the CMS's, common English and traditional ones."""

from __future__ import annotations

from collections.abc import Mapping

ANY = "其它"
"""The wildcard for words without meaning (其它, 未知, …) and for unknown words."""

# Code, then its words: Douban's own first. English words are compared without case, dots and spaces.
REGIONS = """
CN 中国大陆 大陆 内地 中国内地 中国 国产 中 China Mainland_China PRC;
HK 中国香港 香港 港 港产 英属香港 Hong_Kong HKSAR HKG; TW 中国台湾 台湾 台 Taiwan TWN; MO 中国澳门 澳门 Macau Macao;
US 美国 美 USA U.S. America United_States United_States_of_America;
GB 英国 英 大不列颠 联合王国 英格兰 苏格兰 威尔士 北爱尔兰 UK Great_Britain Britain United_Kingdom England Scotland;
JP 日本 日 Japan JPN; KR 韩国 南韩 韩 大韩民国 Korea South_Korea Republic_of_Korea KOR;
KP 朝鲜 北韩 北朝鲜 North_Korea; FR 法国 法 France FRA;
DE 德国 西德 东德 联邦德国 民主德国 前西德 前东德 德 Germany West_Germany East_Germany Deutschland GER DEU;
IT 意大利 义大利 意 Italy Italia ITA; ES 西班牙 Spain ESP; RU 俄罗斯 俄国 俄 俄罗斯联邦 Russia Russian_Federation RUS;
SU 苏联 前苏联 原苏联 USSR Soviet_Union; IN 印度 India IND; TH 泰国 泰 Thailand THA; SG 新加坡 Singapore;
MY 马来西亚 大马 Malaysia; CA 加拿大 加 Canada CAN; AU 澳大利亚 澳洲 Australia AUS; NZ 新西兰 纽西兰 New_Zealand;
BE 比利时 Belgium; NL 荷兰 Netherlands The_Netherlands Holland; LU 卢森堡 Luxembourg; CH 瑞士 Switzerland;
AT 奥地利 Austria; IE 爱尔兰 Ireland; SE 瑞典 Sweden; DK 丹麦 Denmark; NO 挪威 Norway; FI 芬兰 Finland;
IS 冰岛 Iceland; PT 葡萄牙 Portugal; GR 希腊 Greece; PL 波兰 Poland; CZ 捷克 捷克共和国 Czech Czech_Republic Czechia;
SK 斯洛伐克 Slovakia; CS 捷克斯洛伐克 前捷克斯洛伐克 Czechoslovakia; HU 匈牙利 Hungary; RO 罗马尼亚 Romania;
BG 保加利亚 Bulgaria;
YU 南斯拉夫 前南斯拉夫 南联盟 南斯拉夫联盟共和国 塞尔维亚和黑山 塞黑 Yugoslavia Serbia_and_Montenegro;
RS 塞尔维亚 Serbia; HR 克罗地亚 Croatia; SI 斯洛文尼亚 Slovenia;
BA 波黑 波斯尼亚和黑塞哥维那 波斯尼亚 Bosnia_and_Herzegovina Bosnia_&_Herzegovina Bosnia;
MK 北马其顿 马其顿 North_Macedonia Macedonia; ME 黑山 Montenegro; XK 科索沃 Kosovo; AL 阿尔巴尼亚 Albania;
UA 乌克兰 Ukraine; BY 白俄罗斯 Belarus; MD 摩尔多瓦 Moldova; EE 爱沙尼亚 Estonia; LV 拉脱维亚 Latvia;
LT 立陶宛 Lithuania; GE 格鲁吉亚 乔治亚 Georgia; AM 亚美尼亚 Armenia; AZ 阿塞拜疆 Azerbaijan;
KZ 哈萨克斯坦 哈萨克 Kazakhstan; UZ 乌兹别克斯坦 Uzbekistan; KG 吉尔吉斯斯坦 Kyrgyzstan; TJ 塔吉克斯坦 Tajikistan;
TM 土库曼斯坦 Turkmenistan; MT 马耳他 Malta; CY 塞浦路斯 Cyprus; MC 摩纳哥 Monaco; LI 列支敦士登 Liechtenstein;
AD 安道尔 Andorra; VA 梵蒂冈 Vatican; GL 格陵兰 Greenland; TR 土耳其 Turkey Türkiye; IL 以色列 Israel;
PS 巴勒斯坦 Palestine; IR 伊朗 Iran; IQ 伊拉克 Iraq; SY 叙利亚 Syria; LB 黎巴嫩 Lebanon; JO 约旦 Jordan;
SA 沙特阿拉伯 沙特 沙乌地阿拉伯 Saudi_Arabia; AE 阿联酋 阿拉伯联合酋长国 UAE United_Arab_Emirates; QA 卡塔尔 Qatar;
KW 科威特 Kuwait; BH 巴林 Bahrain; OM 阿曼 Oman; YE 也门 Yemen; AF 阿富汗 Afghanistan; PK 巴基斯坦 Pakistan;
BD 孟加拉国 孟加拉 Bangladesh; NP 尼泊尔 Nepal; BT 不丹 Bhutan; LK 斯里兰卡 Sri_Lanka; MN 蒙古 蒙古国 Mongolia;
VN 越南 Vietnam; PH 菲律宾 Philippines; ID 印度尼西亚 印尼 Indonesia; KH 柬埔寨 Cambodia; LA 老挝 寮国 Laos;
MM 缅甸 Myanmar Burma; BN 文莱 Brunei; MX 墨西哥 Mexico; BR 巴西 Brazil; AR 阿根廷 Argentina; CL 智利 Chile;
CO 哥伦比亚 Colombia; PE 秘鲁 Peru; VE 委内瑞拉 Venezuela; UY 乌拉圭 Uruguay; PY 巴拉圭 Paraguay; BO 玻利维亚 Bolivia;
EC 厄瓜多尔 Ecuador; CU 古巴 Cuba; PR 波多黎各 Puerto_Rico; DO 多米尼加 多米尼加共和国 Dominican_Republic;
HT 海地 Haiti; JM 牙买加 Jamaica; BS 巴哈马 Bahamas The_Bahamas; GT 危地马拉 Guatemala; CR 哥斯达黎加 Costa_Rica;
PA 巴拿马 Panama; GP 瓜德罗普 Guadeloupe; VG 英属维尔京群岛 British_Virgin_Islands; EG 埃及 Egypt; MA 摩洛哥 Morocco;
DZ 阿尔及利亚 Algeria; TN 突尼斯 突尼西亚 Tunisia; LY 利比亚 Libya; ZA 南非 South_Africa; NG 尼日利亚 奈及利亚 Nigeria;
KE 肯尼亚 肯亚 Kenya; ET 埃塞俄比亚 Ethiopia; GH 加纳 Ghana; SN 塞内加尔 Senegal; ML 马里 Mali; CM 喀麦隆 Cameroon;
BF 布基纳法索 Burkina_Faso; BW 博茨瓦纳 Botswana; CI 科特迪瓦 象牙海岸 Côte_d'Ivoire Ivory_Coast;
CD 刚果 刚果民主共和国 Congo; RW 卢旺达 Rwanda; TZ 坦桑尼亚 Tanzania; UG 乌干达 Uganda; ZW 津巴布韦 Zimbabwe;
NA 纳米比亚 Namibia;
"""


def _codes(text: str) -> frozenset[str]:
    return frozenset(text.split())


# A former state agrees with its successor states.
SUCCESSORS = {
    "SU": _codes("RU UA BY MD EE LV LT GE AM AZ KZ UZ KG TJ TM"),
    "CS": frozenset({"CZ", "SK"}),
    "YU": _codes("RS HR SI BA MK ME XK"),
}

EUROPE = _codes(
    "GB FR DE IT ES RU SU BE NL LU CH AT IE SE DK NO FI IS PT GR PL CZ SK CS HU RO BG YU RS HR SI BA MK ME XK "
    "AL UA BY MD EE LV LT MT CY MC LI AD VA GL"
)
SOUTH_EAST_ASIA = _codes("TH SG MY VN PH ID KH LA MM BN")
GREATER_CHINA = _codes("CN HK TW MO")
ASIA = GREATER_CHINA | SOUTH_EAST_ASIA | _codes("JP KR KP IN MN PK BD NP BT LK IR IQ SA AE QA IL TR")

REGION_GROUPS: Mapping[str, frozenset[str]] = {
    "港台": frozenset({"HK", "TW"}),
    "港澳台": frozenset({"HK", "TW", "MO"}),
    "日韩": frozenset({"JP", "KR"}),
    "华语": GREATER_CHINA,
    "北美": frozenset({"US", "CA"}),
    "英美": frozenset({"GB", "US"}),
    "东南亚": SOUTH_EAST_ASIA,
    "北欧": _codes("SE DK NO FI IS"),
    "欧洲": EUROPE,
    "亚洲": ASIA,
    "欧美": EUROPE | {"US", "CA", "AU", "NZ"},
}
"""Group words of site filters and the regions they cover; ``海外`` and :data:`ANY` name no members."""

NARROW = frozenset({"港台", "港澳台", "日韩", "华语", "北美", "英美"})

GROUP_WORDS = """
港台 香港台湾; 港澳台; 日韩 韩日; 华语 华语地区 两岸三地; 北美 美加; 英美 美英; 东南亚; 北欧; 欧洲 Europe; 亚洲 Asia;
欧美 欧美地区 西方 Western; 海外 国外 外国 境外 Overseas;
其它 其他 未知 未知地区 不详 暂无 无 全部 不限 国家 other others unknown N/A null none all;
"""

LANGUAGES = """
cmn 汉语普通话 普通话 国语 华语 国 中国普通话 Mandarin Putonghua; yue 粤语 广东话 粤 白话 Cantonese;
nan 闽南语 台语 闽南话 河洛语 福建话 潮州话 潮汕话 Hokkien Min_Nan; hak 客家话 客语 客家语 Hakka;
wuu 上海话 吴语 沪语 苏州话 宁波话 Shanghainese; zh 汉语 中文 汉语方言 中国话 Chinese;
zh 四川话 重庆话 东北话 陕西话 河南话 山东话 天津话 武汉话 云南话 贵州话 湖南话 长沙话;
zh 山西话 北京话 青岛话 唐山话 保定话 南京话 重庆方言 四川方言; bo 藏语 Tibetan; mn 蒙古语 蒙语 Mongolian;
ug 维吾尔语 维语; en 英语 英文 英 English; ja 日语 日文 日本语 日 Japanese; ko 韩语 韩文 朝鲜语 韩国语 韩 Korean;
fr 法语 法文 法 French; de 德语 德文 德 German; es 西班牙语 西语 西 Spanish; it 意大利语 意大利文 义大利语 意 Italian;
pt 葡萄牙语 葡语 Portuguese; ru 俄语 俄文 俄 Russian; uk 乌克兰语 Ukrainian; pl 波兰语 Polish; cs 捷克语 Czech;
sk 斯洛伐克语 Slovak; hu 匈牙利语 Hungarian; ro 罗马尼亚语 Romanian; bg 保加利亚语 Bulgarian; el 希腊语 Greek;
sr 塞尔维亚语 塞尔维亚-克罗地亚语 Serbian; hr 克罗地亚语 Croatian; bs 波斯尼亚语 Bosnian; sq 阿尔巴尼亚语 Albanian;
nl 荷兰语 弗拉芒语 佛兰芒语 Dutch Flemish; sv 瑞典语 Swedish; da 丹麦语 Danish; no 挪威语 Norwegian; fi 芬兰语 Finnish;
is 冰岛语 Icelandic; et 爱沙尼亚语 Estonian; lv 拉脱维亚语 Latvian; lt 立陶宛语 Lithuanian; ka 格鲁吉亚语 Georgian;
hy 亚美尼亚语 Armenian; kk 哈萨克语 Kazakh; ga 爱尔兰语 盖尔语 Irish Gaelic; la 拉丁语 Latin; he 希伯来语 Hebrew;
yi 意第绪语 Yiddish; ar 阿拉伯语 Arabic; fa 波斯语 Persian Farsi; tr 土耳其语 Turkish; ku 库尔德语 Kurdish;
hi 印地语 北印度语 印度语 Hindi; ta 泰米尔语 Tamil; te 泰卢固语 Telugu; ml 马拉雅拉姆语 Malayalam; kn 卡纳达语 Kannada;
bn 孟加拉语 Bengali; pa 旁遮普语 Punjabi; mr 马拉地语 Marathi; ur 乌尔都语 Urdu; ne 尼泊尔语 Nepali;
si 僧伽罗语 Sinhala; th 泰语 泰文 泰 Thai; vi 越南语 Vietnamese; id 印尼语 印度尼西亚语 Indonesian;
ms 马来语 马来西亚语 Malay; tl 菲律宾语 他加禄语 塔加路语 Tagalog Filipino; km 高棉语 柬埔寨语 Khmer; lo 老挝语 Lao;
my 缅甸语 Burmese; sw 斯瓦希里语 Swahili; af 南非荷兰语 Afrikaans; zxx 无对白 默片 无语言 No_dialogue;
cmn+yue 国粤双语 国粤 国粤语; cmn+en 国英双语 中英双语 国英; en+yue 粤英双语 英粤双语;
"""

# 汉语 and 中文 do not specify a Chinese language, so they conflict with none.
GENERIC_LANGUAGES = {"zh": frozenset({"cmn", "yue", "nan", "hak", "wuu"})}

# Codes are Douban's genre words. 国产剧, 综艺, 都市 … are not genres and yield none.
GENRES = """
剧情 文艺 Drama; 喜剧 搞笑 幽默 Comedy; 动作 枪战 武打 功夫 格斗 Action; 爱情 言情 浪漫 恋爱 Romance;
科幻 Sci-Fi Science_Fiction SciFi; 动画 动漫 卡通 番剧 新番 国漫 日漫 漫画改 Animation Anime; 悬疑 推理 侦探 Mystery;
惊悚 惊栗 Thriller; 恐怖 灵异 惊恐 Horror; 犯罪 警匪 黑帮 Crime; 同性 同志 LGBT; 音乐 Music; 歌舞 音乐剧 Musical;
传记 人物传记 Biography; 历史 史诗 History; 战争 军事 抗战 抗日 War; 西部 Western; 奇幻 魔幻 玄幻 仙侠 神话 Fantasy;
冒险 探险 Adventure; 灾难 Disaster; 武侠 Wuxia; 情色 伦理片 情色片 三级片 Erotic Adult; 古装 古装剧 Costume;
运动 体育 竞技 Sport Sports; 儿童 少儿 亲子 Kids Children; 家庭 Family; 短片 Short;
纪录片 纪录 记录 记录片 纪实 Documentary; 真人秀 Reality Reality-TV; 脱口秀 Talk-Show Talk; 黑色电影 黑色 Film-Noir;
戏曲 Opera; 鬼怪; 舞台艺术; 荒诞;
"""

# Pairs of traditional and simplified characters that occur in the words above.
PAIRS = (
    "東东兩两義义烏乌樂乐喬乔買买爭争雲云亞亚產产親亲傳传倫伦體体俠侠偵侦兒儿蘭兰茲兹內内岡冈軍军剛刚"
    "別别劇剧動动區区華华盧卢歷历雙双敘叙臺台吳吴國国奧奥寧宁實实賓宾對对爾尔屬属島岛幫帮幹干廣广慶庆"
    "庫库異异錄录戀恋懸悬驚惊戲戏戰战撾挝鬥斗無无時时暫暂術术來来槍枪歐欧漢汉滬沪灣湾靈灵災灾愛爱電电"
    "畫画蓋盖祿禄祕秘競竞粵粤約约級级紀纪納纳紐纽緒绪維维綜综緬缅羅罗羣群聯联脫脱臘腊藝艺蘇苏萊莱薩萨"
    "裝装記记詩诗話话誕诞詳详語语貴贵達达運运裏里長长門门閩闽陸陆陝陕險险難难韋韦韓韩頓顿顛颠馬马魯鲁"
    "鮮鲜麥麦裡里敍叙"
)
SIMPLIFIED = str.maketrans(PAIRS[::2], PAIRS[1::2])
