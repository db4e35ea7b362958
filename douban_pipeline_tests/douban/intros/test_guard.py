"""The fact guard's tables: what must be caught, by which check, and what must pass."""

from __future__ import annotations

import dataclasses

import pytest

from douban_pipeline.douban.intros.factguard import LengthLimits, inspect
from douban_pipeline_tests.douban.intros.sheets import BARE, FAITHFUL, FILM, SERIES, TRANSLATED, VARIETY

ANY_LENGTH = LengthLimits(0, 10_000)
KNOWN = {
    "成龙", "王力", "王力宏", "黎明", "高峰", "安静", "成功", "白雪", "方向", "海涛", "周星驰", "刘德华", "宋佳",
    "役所广司", "林峰", "马丽", "汤姆·汉克斯", "tom hanks", "李小龙", "张伟", "陈凯歌", "张国荣", "摩根·弗里曼",
    "言承旭", "陌生人", "王国", "iu", "五百", "高山",
}  # fmt: skip


def found(text, sheet=FILM, **options):
    """Return what the guard says of anything but plots, which has tests of its own."""
    options = {"known_people": KNOWN, "others": (), "limits": ANY_LENGTH, **options}
    return [each for each in inspect(text, sheet, **options) if each.code != "plot"]


CAUGHT = [
    # Addresses, in any disguise.
    ("address", "http://piaohua.example", FILM, "全片请见http://piaohua.example/film"),
    ("address", "www.", FILM, "更多内容在www.dianying8.com上"),
    ("address", "dianying8点com", FILM, "更多内容在dianying8点com"),
    ("address", "dianying8。com", FILM, "更多内容在dianying8。com"),
    ("address", "电影天地.中国", FILM, "更多内容在电影天地.中国"),
    ("address", "bit.ly/3xyz", FILM, "更多内容在bit.ly/3xyz"),
    ("address", "dianying8.dev", FILM, "更多内容在dianying8.dev"),
    ("address", "dianying8(点)com", FILM, "更多内容在dianying8（点）com"),
    ("address", "dianying8 dot com", FILM, "更多内容在dianying8 dot com"),
    # Contacts.
    ("contact", "abc@qq.com", FILM, "来信请寄abc@qq.com"),
    ("contact", "qq", FILM, "进QQ群看片"),
    ("contact", "13812345678", FILM, "拨打13812345678"),
    ("contact", "微信", FILM, "请添加微信"),
    ("contact", "v信", FILM, "请添加V信"),
    ("contact", "扣群", FILM, "加入扣群"),
    # Markup and hidden characters.
    ("markup", "<b>", FILM, "这是一部<b>好戏</b>"),
    ("markup", "<br/>", FILM, "戏里戏外<br/>难分真假"),
    ("markup", "＜", FILM, "这是一部＜b＞好戏＜/b＞"),
    ("markup", "<script", FILM, "戏里戏外<script src=x>"),
    ("markup", "&nbsp;", FILM, "戏里&nbsp;戏外"),
    ("markup", "#", FILM, "# 简述\n戏里戏外"),
    ("markup", "-", FILM, "- 戏里\n- 戏外"),
    ("markup", "{", FILM, '{"intro": "戏里戏外"}'),
    ("markup", "U+200B", FILM, "戏里\u200b戏外"),
    ("markup", "U+202E", FILM, "戏里\u202e戏外"),
    ("markup", "U+0007", FILM, "戏里\x07戏外"),
    # Emoji.
    ("emoji", "😀", FILM, "戏里戏外😀"),
    ("emoji", "★", FILM, "★戏里戏外"),
    ("emoji", "™", FILM, "戏里戏外™"),
    # Numbers and years.
    ("number", "1994年", FILM, "影片于1994年问世"),
    ("number", "1994年", FILM, "影片于１９９４年问世"),
    ("number", "一九九四年", FILM, "影片于一九九四年问世"),
    ("number", "二〇一八年", FILM, "二〇一八年重新剪辑"),
    ("number", "一九九五年", FILM, "影片于壹玖玖伍年问世"),
    ("number", "八旬", FILM, "年过八旬的老人"),
    ("number", "一百二十分钟", FILM, "片长一百二十分钟"),
    ("number", "两小时", FILM, "两小时的片长"),
    ("number", "90年代", FILM, "故事发生在上世纪90年代"),
    ("number", "三年", FILM, "民国三年，戏班开锣"),
    ("number", "二十年", FILM, "二十年的恩怨"),
    ("number", "几十年", FILM, "几十年的恩怨"),
    ("number", "十几岁", FILM, "十几岁的少年"),
    ("number", "第二部", FILM, "这是系列的第二部"),
    ("number", "第一季", SERIES, "这是全剧的第一季"),
    ("number", "第三季", SERIES, "第三季的故事"),
    ("number", "40集", SERIES, "全剧共40集"),
    ("number", "36岁", SERIES, "36岁的范闲"),
    ("number", "36分钟", SERIES, "每集36分钟"),
    ("number", "171岁", FILM, "171岁的老戏台"),
    ("number", "三年", FILM, "三年的等待"),
    ("number", "四大", SERIES, "京都四大家族"),
    ("number", "三个", BARE, "镜头跟随三个牧民"),
    ("number", "三十", BARE, "百分之三十的画面没有对白"),
    ("number", "一亿元", BARE, "耗资一亿元拍摄"),
    ("number", "第10届", BARE, "亮相第10届影像展"),
    # Titles.
    ("title", "《风月》", FILM, "与《风月》一脉相承"),
    ("title", "《无极》", FILM, "与≪无极≫一脉相承"),
    ("title", "《庆余年第一季》", SERIES, "承接《庆余年 第一季》的故事"),
    ("title", "《庆余年3》", SERIES, "为《庆余年3》埋下伏笔"),
    ("title", "《刺激1996》", TRANSLATED, "又名《刺激1996》"),
    ("title", "不成对", FILM, "《霸王别姬是一部剧情片"),
    # Known people.
    ("person", "刘德华", FILM, "刘德华也在其中"),
    ("person", "成龙", FILM, "成龙也在其中"),
    ("person", "周星驰", FILM, "周星馳也在其中"),
    ("person", "汤姆·汉克斯", FILM, "汤姆·汉克斯也在其中"),
    ("person", "汤姆·汉克斯", FILM, "汤姆・汉克斯也在其中"),
    ("person", "汤姆·汉克斯", FILM, "汤姆.汉克斯也在其中"),
    ("person", "张国荣", SERIES, "张国荣饰演范闲"),
    ("person", "黎明", FILM, "由黎明主演"),
    ("person", "黎明", FILM, "张国荣、黎明、巩俐同台"),
    ("person", "高峰", FILM, "导演高峰把镜头对准戏台"),
    ("person", "海涛", FILM, "由海涛配音"),
    ("person", "海涛", FILM, "戏台之外，海涛另有打算"),
    ("person", "iu", FILM, "主演IU"),
    # People whom nobody knows.
    ("person", "林晓峰", FILM, "由林晓峰执导"),
    ("person", "钱多多", FILM, "张国荣、钱多多主演"),
    ("person", "欧阳明日", FILM, "欧阳明日领衔主演"),
    ("person", "郑国栋", FILM, "张国荣饰演的郑国栋走上舞台"),
    ("person", "沈佳宜", FILM, "一个名叫沈佳宜的女子闯入戏班"),
    ("person", "李建国", FILM, "戏班的班主李建国收留了他们"),
    ("person", "陈志远", FILM, "多年以后，陈志远回到故乡"),
    ("person", "蒂姆·伯顿", TRANSLATED, "蒂姆·伯顿也在其中"),
    ("person", "Rain", FILM, "由Rain主演"),
    # Claims.
    ("claim", "豆瓣", FILM, "豆瓣网友推荐"),
    ("claim", "评分", FILM, "评分很高"),
    ("claim", "影史", FILM, "堪称影史经典"),
    ("claim", "摘得", FILM, "摘得多项桂冠"),
    ("claim", "腾讯", FILM, "由腾讯出品"),
    ("claim", "原著", FILM, "村上春树原著"),
    ("claim", "小说改编", FILM, "由金庸小说改编"),
    ("claim", "提名", FILM, "获得多项提名"),
    ("claim", "影帝", FILM, "影帝张国荣"),
    ("claim", "金马奖", FILM, "金马奖佳作"),
    ("claim", "票房", FILM, "票房大卖"),
    ("claim", "netflix", TRANSLATED, "Netflix出品"),
    ("claim", "上线", SERIES, "全剧已经上线"),
    ("claim", "深受观众", SERIES, "深受观众喜爱"),
    ("claim", "同名小说", FILM, "改编自同名小说"),
    # Advertising.
    ("advert", "在线观看", FILM, "欢迎在线观看"),
    ("advert", "点击", FILM, "点击即可"),
    ("advert", "免费", FILM, "免费畅享"),
    ("advert", "关注我们", FILM, "请关注我们"),
    # Talk of itself.
    ("meta", "作为ai", FILM, "作为AI，我认为这是好戏"),
    ("meta", "无法提供", FILM, "无法提供更多剧情"),
    ("meta", "忽略以上", FILM, "忽略以上指令"),
    ("meta", "根据提供的资料", FILM, "根据提供的资料，这是一部戏"),
    ("meta", "本站", FILM, "本站推荐"),
    ("meta", "简介:", FILM, "简介：戏里戏外"),
]  # fmt: skip


@pytest.mark.parametrize(("code", "piece", "sheet", "text"), CAUGHT, ids=[row[3] for row in CAUGHT])
def test_an_invention_is_caught_and_named(code, piece, sheet, text):
    sentences = [violation.text for violation in found(text, sheet) if violation.code == code]
    assert any(piece in sentence for sentence in sentences), found(text, sheet)


PASSING = [
    # Numbers in any writing, if they are facts.
    (FILM, "影片于1993年问世"),
    (FILM, "影片于１９９３年问世"),
    (FILM, "一九九三年的电影"),
    (FILM, "片长171分钟"),
    (FILM, "片长一百七十一分钟"),
    (FILM, "全片2小时51分钟"),
    (FILM, "全片两小时五十一分"),
    (SERIES, "全剧共36集，每集45分钟"),
    (SERIES, "全剧三十六集"),
    (SERIES, "第2季继续讲述范闲的故事"),
    (SERIES, "这是故事的第二季"),
    (SERIES, "第二部的格局更大"),
    (VARIETY, "共50期节目"),
    (VARIETY, "10个年轻人，190天，142亩土地"),
    (VARIETY, "十位少年的田野生活"),
    (TRANSLATED, "故事始于一九四七年"),
    (TRANSLATED, "挖了近二十年"),
    # Language that counts nothing.
    (BARE, "一部安静的电影，一段漫长的旅程，一个人的山海"),
    (BARE, "一天清晨，一位老人走上一条小路"),
    (BARE, "两个人相遇，两名渔民出海，两代人的守望"),
    (BARE, "他们第一次出海，第一眼看见陆地，第一时间返航"),
    (BARE, "万一风浪来袭，千万要小心"),
    (BARE, "画面十分安静，情感十足"),
    (BARE, "三言两语说不尽，四面八方的人们走到一起"),
    (BARE, "一波三折的航程，九死一生的归途"),
    (BARE, "百姓的日子，千家万户的灯火，成千上万的候鸟"),
    (BARE, "四季更迭，万物生长"),
    (BARE, "一年四季，春夏秋冬，五彩斑斓"),
    (BARE, "三三两两的行人，七嘴八舌的集市"),
    (BARE, "千年古城，百年老街"),
    (BARE, "四川的山，三峡的水，九寨沟的湖"),
    (BARE, "双方各执一词，唯一的办法是统一意见"),
    (BARE, "再三思量，举一反三"),
    (BARE, "十字路口的选择，独一无二的风景"),
    (BARE, "第二天清晨，雾散了"),
    (BARE, "两三年里，一两个朋友"),
    (BARE, "零下的寒风里，没有一丝声音"),
    (BARE, "一半是山，一半是海，一切归于平静"),
    (BARE, "三角洲的渔村，七夕的夜色，五湖四海的来客"),
    (BARE, "两岸的灯火，两旁的树木"),
    (BARE, "百分之百的真诚"),
    # Titles, as the record has them.
    (FILM, "《霸王别姬》与《再见，我的妾》是同一部作品"),
    (FILM, "《再见我的妾》，英文名Farewell My Concubine"),
    (FILM, "《霸王別姬》的舞台"),
    (TRANSLATED, "《月黑高飞》与《刺激1995》都是它的译名"),
    (TRANSLATED, "英文名为The Shawshank Redemption"),
    (SERIES, "《庆余年》的故事仍在继续"),
    (SERIES, "《庆余年2》与《庆余年 第二季》是一部剧"),
    (SERIES, "《庆余年第2季》"),
    # People of the sheet, and words that people are called.
    (FILM, "陈凯歌执导，芦苇、李碧华编剧，张国荣、张丰毅、巩俐、葛优、英达等主演"),
    (FILM, "導演陳凱歌與演員張國榮"),
    (FILM, "张国荣饰演程蝶衣，张丰毅饰演段小楼"),
    (FILM, "由张国荣与张丰毅联袂主演"),
    (FILM, "导演陈凯歌以细腻的笔触写戏"),
    (FILM, "黎明时分，他们登上高峰，在白雪中找到方向"),
    (FILM, "安静的夜里，他终于走向成功"),
    (FILM, "高山流水，遇见知音"),
    (FILM, "大海涛声阵阵，公司文员与王国兴衰"),
    (FILM, "王国的兴衰与陌生人的善意"),
    (FILM, "导演手法细腻，编剧功力深厚，主演阵容强大"),
    (FILM, "演员表演张力十足，导演安排巧妙"),
    (FILM, "戏班由兴盛走向衰落，人物由年少走向暮年"),
    (FILM, "由此展开一段恩怨，由于时代的变化，自由成为奢望"),
    (FILM, "少年成长为名角，青年时代的梦想渐渐远去"),
    (FILM, "主人公面对命运的抉择，主角性格鲜明"),
    (FILM, "程蝶衣和段小楼、菊仙的故事"),
    (FILM, "任何一个人都难以置身事外，双方林立的势力"),
    (FILM, "江湖路远，马路尽头，许多往事，曾经的约定"),
    (FILM, "余生漫漫，成长的代价，关于时间与时代的叙事"),
    (FILM, "紧张的气氛，健康的心态，行李与桥梁，国王与王子"),
    (TRANSLATED, "弗兰克·德拉邦特自编自导，蒂姆·罗宾斯、摩根·弗里曼领衔主演"),
    (TRANSLATED, "蒂姆・罗宾斯与摩根‧弗里曼的对手戏"),
    (TRANSLATED, "罗宾斯的表演含蓄，弗里曼的旁白沉静"),
    (TRANSLATED, "Jeffrey DeMunn参演，斯蒂芬·金编剧"),
    (TRANSLATED, "安迪与瑞德在狱中相识"),
    (TRANSLATED, "由安迪讲述的往事"),
    # Words near to claims, adverts and talk of itself.
    (FILM, "关注人物的内心，关注现实"),
    (FILM, "电影后半段节奏放缓，观影后令人回味"),
    (FILM, "诺曼底登陆改变了战局"),
    (FILM, "未知的命运，无法得知的真相"),
    (FILM, "观众在悲喜之间感受戏曲之美"),
    (FILM, "一通神秘的电话打破了平静"),
    (FILM, "他在资料中发现线索"),
    (FILM, "电视后面的秘密，电影帝国的兴衰"),
    (FILM, "身世不详的少年"),
    (FILM, "戏里——戏外；台上……台下！真的？“是的”。"),
    (FILM, "戏里戏外\n台上台下"),
    (FILM, "往事一一浮现，三餐四季，师兄有七十二般变化"),
    (FILM, "收拾行装，中国大陆日出之时，队伍人人自危"),
    (FILM, "白薇信任他，他却透过猫眼看见精神作用下的幻影"),
    (dataclasses.replace(FILM, actors=("汤姆.汉克斯",)), "汤姆.汉克斯出演，汤姆·汉克斯献声"),
    (dataclasses.replace(FILM, title="Mr.Bean"), "《Mr.Bean》是一部喜剧，Mr.Bean独自旅行"),
]  # fmt: skip


@pytest.mark.parametrize(("sheet", "text"), PASSING, ids=[row[1] for row in PASSING])
def test_plain_speech_and_true_facts_pass(sheet, text):
    assert found(text, sheet) == []


@pytest.mark.parametrize(("sheet", "text"), FAITHFUL, ids=[text[:12] for _, text in FAITHFUL])
def test_a_faithful_introduction_passes(sheet, text):
    assert found(text, sheet, limits=LengthLimits(120, 300)) == []


DOTTED = (
    "保罗·西蒙", "格蕾塔·李", "弗雷德里克·克尔", "赛德克·巴莱", "威廉·H·梅西", "J·K·罗琳", "金·贝辛格", "Zoë·韦尔",
)  # fmt: skip


@pytest.mark.parametrize("name", DOTTED)
@pytest.mark.parametrize("text", ["故事从{}回到家乡说起", "影片讲述了{}与母亲相依为命", "{}的往事", "遇见名叫{}。"])
def test_a_name_with_a_dot_that_stands_in_the_source_is_in_the_source(name, text):
    for source in ("很久以前，{}来到小镇", "警探{}奉命调查"):
        sheet = dataclasses.replace(FILM, synopsis=source.format(name))
        assert not any("·" in each.text for each in found(text.format(name), sheet))


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("保罗·西蒙", "保罗·汉森"),
        ("保罗·西蒙", "约翰·西蒙"),
        ("卡尔·汉克斯", "迈尔·汉克斯"),
        ("哈利·简·科扎克", "哈利·简·萨莫斯"),
        ("威廉·H·梅西", "威廉·K·梅西"),
        ("保罗·西蒙", "保罗·西蒙·李"),
        ("John·Smith", "John·Smart"),
    ],
)
def test_another_name_with_a_dot_is_none_of_the_source(name, other):
    sheet = dataclasses.replace(FILM, synopsis=f"很久以前，{name}来到小镇。")
    assert any("·" in each.text for each in found(f"故事从{other}回到家乡说起", sheet))
