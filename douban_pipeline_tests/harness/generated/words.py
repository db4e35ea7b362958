"""Words that titles and synopses are made of. Everything made of them is invented."""

from __future__ import annotations


def listed(text: str) -> tuple[str, ...]:
    """Return the words of a list between spaces."""
    return tuple(text.split())


HEADS = "孤长远冷暖青白黑红金银铁石寒雨风云星夜晨暮春夏秋冬南北东西荒古旧空静深浅轻浮沉醉醒暗归迷烈清浊素玄赤苍碧残幽飞"
TAILS = (
    "城桥灯河江海岭谷峰原野林花叶草雪光影火烟尘沙剑刀弓旗鼓钟琴笛歌舞书画镜船帆港岸岛街巷门窗楼塔院客将军徒心梦魂"
    "誓局案途"
)
"""Any of the first with any of the second is a word of two characters that could stand in a title: 寒江, 旧桥."""

NOUNS = listed("""
    灯塔 码头 列车 站台 钟楼 图书馆 渡口 屋顶 花园 旅馆 邮局 剧院 车站 雪山 沙漠 草原 荒岛 麦田 果园 茶馆 铁轨 电台
    信箱 雨伞 棋局 风筝 陀螺 木偶 候鸟 蝴蝶 鲸鱼 野马 白鹭 狐狸 猎犬 乌鸦 葡萄 玫瑰 银杏 苔藓 极光 潮汐 彗星 黄昏 黎明
    午夜 盛夏 初雪 梅雨 边境 密室 迷宫 地图 日记 遗嘱 契约 谎言 秘密 证词 来信 回声 余烬 裂痕 假面 倒影 约定 传说 年代
    往事 故乡 远方 归期 法则 游戏 航线 轨道 星球 机器 密码 信号 实验 病房 课堂 球场 厨房 食堂 工厂 矿井
""")

PEOPLE = listed("""
    守望者 摆渡人 侦探 裁缝 邮差 医生 律师 船长 猎人 木匠 厨师 画师 琴师 说书人 镖师 捕快 特工 飞行员 记者 修表匠
    养蜂人 牧羊人 法医 警长 教授 间谍 刺客 将军 公主 书生 掌柜 继承人 逃亡者 陌生人 邻居 房客 新娘 少年 歌手 教练
""")

VERBS = listed("""
    寻找 追踪 告别 拯救 重返 走进 逃离 穿越 守护 遇见 唤醒 点亮 破解 夺回 潜入 征服 遗忘 等待 跨过 绕过 迷失 梦回 决战
    突围 直击 远征 漫游 偷渡 飞越 沉入
""")

PLACES = listed("尽头 以南 以北 深处 对岸 之外 背后 边缘 上空 下方 中央 两端")

TRAITS = listed("""
    沉默 温柔 疯狂 隐秘 最后 遥远 透明 倔强 完美 危险 无声 燃烧 失落 逆行 漂流 平凡 滚烫 未知 流浪 永恒
""")

VARIETY = listed("挑战 歌会 厨房 旅行 派对 大会 课堂 出发 擂台 夜话 之王 训练营 研究所 练习生 生活 请回答")

SHORT_DRAMAS = listed("闪婚后 重生后 离婚后 穿书后 退婚后 失忆后 替嫁后 归来后")
SHORT_FATES = listed("""
    我成了首富 她惊艳全城 总裁追悔莫及 全家跪求原谅 我在古代开酒楼 马甲藏不住了 三个哥哥宠上天 我继承了龙王殿
""")

LATIN_TRAITS = listed("""
    Silent Hidden Golden Broken Distant Frozen Crimson Quiet Last Burning Hollow Secret Wild Bitter Gentle Lost
    Endless Paper Velvet Northern Southern Midnight Summer Winter Restless Shallow Iron Silver Fallen Borrowed
""")
LATIN_NOUNS = listed("""
    Harbor River Tower Garden Letter Bridge Station Orchard Mirror Island Valley Lantern Promise Witness Stranger
    Captain Tailor Postman Raven Whale Fox Rose Comet Tide Border Maze Map Diary Echo Ember Mask Shadow Oath Signal
    Engine Machine Ward Kitchen Factory Mine Desert Prairie Lighthouse Railway Theatre Hotel Rooftop Heir Guest Bride
""")
KANA = listed("の と は から まで")
HANGUL = listed(
    "바다 겨울 편지 기차 등대 정원 거울 약속 그림자 새벽 도시 비밀 시간 소년 나비 항구 마지막 여름 노래 골목"
)

SCENES = listed("""
    小城 海边渔村 江南古镇 北方矿区 边境哨所 老式公寓 山间寺院 大学校园 跨国公司 破旧剧院 荒岛营地 环形空间站 王朝都城
    地下码头 乡镇医院
""")

SYLLABLES = listed("""
    an bai bei chang chen cheng chun dao deng dong fei feng gu guang hai han he hong hua huang huo jiang jin jing ju
    ke lan lang leng li lin ling liu long lu mei men meng mi nan ning pu qi qiao qin qing qiu ren sha shan shen shi
    shu shuang song tang tian tu wan wei wu xi xia xian xiang xin xing xue yan yang ye yi yin ying you yu yuan yun
    zhan zhang zhao zhen zheng zhi zhong zhou zhu zi
""")
"""What slugs are made of; like pinyin in length, without being that of the title."""
