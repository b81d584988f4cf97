"""Which encoding a text without a mark is in: the one under which its letters are those of a language.

Every candidate is tried on the lines that are not plain ASCII. What counts is how many of the letters belong to one
language, how often its frequent letters come, and whether capitals and scripts stand where words have them.
"""

from __future__ import annotations

import codecs
import re
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache

_SAMPLE = 1 << 16
_SHOWING = 4_096  # bytes of lines that are looked at
_GOOD = 0.45
_ZERO_SHARE = 0.2
_SHORT = 256
_ESCAPES = ((b"\x1b$B", "iso2022_jp"), (b"\x1b$@", "iso2022_jp"), (b"\x1b$)C", "iso2022_kr"))
_CANDIDATES = """
cp1252 cp1251 cp932 euc_jp gb18030 big5 cp949 koi8_r cp1250 cp1253 cp1254 cp1255 cp1256 cp1257 cp874
iso8859_2 iso8859_5 koi8_u cp866 mac_roman cp850 utf-16-le utf-16-be
""".split()  # noqa: SIM905
_WIDE = frozenset({"utf-16-le", "utf-16-be"})
_NEUTRAL = frozenset(
    "\u2018\u2019\u201c\u201d\u201e\u2013\u2014\u2026\u00ab\u00bb\u00a7\u00b0\u00a9\u20ac\u00a0\u2022\u00b7\u2122\u00ae\u00a3"
    "\u2116\u3001\u3002\uff0c\uff1a\uff08\uff09\u300c\u300d\u3000\uff01\uff1f\u00bf\u00a1"
)
_LATIN = (
    "äöüß", "éèàçêâîôûùëïœæ", "áéíóúñüº", "ãõáéíóúâêôàç", "àèéìòù", "åäöéü", "åæøéö", "áčďéěíňóřšťúůýž",
    "ąćęłńóśźż", "áéíóöőúüű", "ăâîșțşţ", "çğıöşüİâ", "čćđšž", "āčēģīķļņšūž", "ąčęėįšųūž", "áðéíóúýþæö", "ëç",
)  # fmt: skip
_FREQUENT = {
    "о е а и н т с р в л": "абвгдежзийклмнопрстуфхцчшщъыьэюяё",
    "о а н и т е р в і с": "абвгґдеєжзиіїйклмнопрстуфхцчшщьюя",
    "а о и е н р с т к ј": "абвгдђежзијклљмнњопрстћуфхцчџш",
    "α ο ι ε τ σ ν η ς ρ": "αβγδεζηθικλμνξοπρσςτυφχψωάέήίόύώϊϋΐΰ",
    "י ו ה ל א ר ת ב מ ש": "אבגדהוזחטיכךלמםנןסעפףצץקרשת",
    "ا ل ي م و ن ر ت ب ه": "ابتثجحخدذرزسشصضطظعغفقكلمنهويىءآأإؤئةپچژگ،؟",
    "า น ร อ ก เ ง ่ ้ ม": "".join(map(chr, [*range(0x0E01, 0x0E3B), *range(0x0E40, 0x0E4F)])),
}
_HANGUL = "이다는에을가고의하지로도한를은서기사자리인나시어대그아해정일보수들있으전것게부장상만구라제여국조"
_CHINESE = (
    "的一是不了人我在有他这中大来上个国和也子时道那要说们为生到就出会可着得过你对用能家下自年没然地多去"
    "行方法成进理本文字学分前后高同工部体社定其力如件编码测试現這個們來時說國會對學過為開關發問題經長種將還實體點"
    "日語漢化動當業員報電機関場新聞東京市民間事月年度第三二十五"
)
_ALIASES = {
    "iso-8859-1": "cp1252", "latin1": "cp1252", "us-ascii": "cp1252", "ascii": "cp1252", "iso-8859-9": "cp1254",
    "iso-8859-11": "cp874", "tis-620": "cp874", "windows-874": "cp874", "shift_jis": "cp932", "x-sjis": "cp932",
    "sjis": "cp932", "windows-31j": "cp932", "gb2312": "gb18030", "gbk": "gb18030", "x-gbk": "gb18030",
    "euc-kr": "cp949", "ks_c_5601-1987": "cp949", "windows-949": "cp949", "big5": "big5hkscs", "x-x-big5": "big5hkscs",
    "iso-8859-8-i": "iso8859_8", "macintosh": "mac_roman",
    "unicode-1-1-utf-7": "utf-7", "x-mac-cyrillic": "mac_cyrillic",
}  # fmt: skip
_CONTROLS = bytes([*range(9), *range(14, 27), *range(28, 32)])
_KANA = re.compile("[\u3041-\u3096\u30a1-\u30fa\u30fc]")
_IDEOGRAPH = re.compile("[\u4e00-\u9fff]")
_SYLLABLE = re.compile("[\uac00-\ud7a3]")
_MISPLACED = re.compile(
    r"[a-zà-öø-ÿа-яα-ω][À-ÖØ-ÞА-ЯΑ-Ω]|[A-Za-z][\u0370-\u06ff]|[\u0370-\u06ff][A-Za-z]|[\u0370-\u03ff][\u0400-\u06ff]"
)
_HEAPED = re.compile("[\u00a1-\u024f\u2010-\u203a]{3}")


@dataclass(frozen=True, slots=True)
class _Alphabet:
    letters: frozenset[str]
    frequent: frozenset[str]


@lru_cache(maxsize=1)
def _alphabets() -> tuple[_Alphabet, ...]:
    latin = [_Alphabet(frozenset(letters + letters.upper()), frozenset(letters)) for letters in _LATIN]
    others = [
        _Alphabet(frozenset(letters + letters.upper()), frozenset(frequent.replace(" ", "")))
        for frequent, letters in _FREQUENT.items()
    ]
    return (*latin, *others)


def _alphabetic(counts: Counter[str], total: int) -> float:
    """How well the letters fit the one alphabet that they fit best."""
    best = 0.0
    for alphabet in _alphabets():
        value = 0.0
        for letter, count in counts.items():
            if letter in alphabet.letters:
                small = letter.lower() if letter.lower() in alphabet.letters else letter
                value += count * (0.6 + 0.35 * (small in alphabet.frequent) + 0.05 * (letter == small))
            elif letter in _NEUTRAL:
                value += 0.8 * count
        best = max(best, value / total)
    return best


def _eastern(text: str, counts: Counter[str], total: int) -> float:
    """The same for scripts of many characters: kana, frequent ideographs, frequent syllables."""
    kana = sum(count for letter, count in counts.items() if _KANA.match(letter))
    usual = sum(counts[letter] for letter in set(_CHINESE))
    ideographs = sum(count for letter, count in counts.items() if _IDEOGRAPH.match(letter))
    syllables = sum(count for letter, count in counts.items() if _SYLLABLE.match(letter))
    common = sum(counts[letter] for letter in set(_HANGUL))
    neutral = sum(counts[letter] for letter in _NEUTRAL)
    japanese = kana + 0.6 * ideographs if kana > 0.15 * total else 0.0
    # A quarter of the characters of any Chinese text are among the first hundred.
    chinese = ideographs * min(1.0, 0.25 + 3 * usual / ideographs) if ideographs else 0.0
    korean = syllables * min(1.0, 0.3 + 2.5 * common / syllables) if syllables else 0.0
    return (
        max(japanese, 0.95 * chinese, korean) / total + 0.8 * neutral / total if max(japanese, chinese, korean) else 0.0
    )


def fitness(text: str) -> float:
    """How much `text` looks like words: near 1 when it does, below 0 for noise. Plain ASCII is 0."""
    counts = Counter(letter for letter in text if letter > "\x7f")
    total = sum(counts.values())
    if not total:
        return 0.0
    wrong = sum(count for letter, count in counts.items() if letter <= "\x9f" or "\ue000" <= letter <= "\uf8ff")
    wrong += 2 * counts["\ufffd"]
    misplaced = len(_MISPLACED.findall(text)) + len(_HEAPED.findall(text))
    return max(_alphabetic(counts, total), _eastern(text, counts, total)) - (wrong + 0.7 * misplaced) / total


def wide(data: bytes) -> str:
    """UTF-16 or UTF-32 by where the zero bytes of Latin text are; else nothing."""
    sample = data[: _SAMPLE - _SAMPLE % 4]
    quarter = max(1, len(sample) // 4)
    zeros = [sample[at::4].count(0) / quarter for at in range(4)]
    if zeros[0] > 0.9 and zeros[1] > 0.9 and zeros[3] < 0.1:
        return "utf-32-be"
    if zeros[3] > 0.9 and zeros[2] > 0.9 and zeros[0] < 0.1:
        return "utf-32-le"
    even, odd = (zeros[0] + zeros[2]) / 2, (zeros[1] + zeros[3]) / 2
    if max(even, odd) > (_ZERO_SHARE if len(sample) > _SHORT else 2 * _ZERO_SHARE) and min(even, odd) < 0.5 * max(
        even, odd
    ):
        return "utf-16-be" if even > odd else "utf-16-le"
    return ""


def is_coded(data: bytes) -> bool:
    """Whether bytes that may all be valid UTF-8 mean something else: UTF-16 and UTF-32, and the Japanese and Korean
    encodings that switch by escapes."""
    sample = data[:_SAMPLE]
    controls = len(sample) - len(sample.translate(None, _CONTROLS))
    return bool(wide(data)) or controls > 0.05 * len(sample) or any(escape in sample for escape, _ in _ESCAPES)


def _showing(data: bytes) -> bytes:
    """Lines in which there is something to tell encodings apart."""
    lines, size = [], 0
    for line in re.split(rb"[\r\n]+", data[:_SAMPLE]):
        if not line.isascii():
            lines.append(line[: _SHOWING // 2])
            size += len(lines[-1])
            if size >= _SHOWING:
                break
    return b"\n".join(lines)


def guess(data: bytes) -> str:
    """The encoding of a text that has no mark and is not UTF-8 throughout."""
    if encoding := wide(data):
        return encoding
    for escape, encoding in _ESCAPES:
        if escape in data[:_SAMPLE]:
            return encoding
    if _mostly_utf8(data):
        return "utf-8"
    best, score = best_of(data)
    if score >= _GOOD:
        return best
    from charset_normalizer import from_bytes

    found = from_bytes(data[:_SAMPLE]).best()
    return found.encoding if found and found.encoding != "ascii" else "cp1252"


def declared(name: str) -> str:
    """The codec for an encoding's name as web pages and mails give it, or nothing. Names of old standards stand for
    what Windows made of them, as they do in browsers."""
    name = _ALIASES.get(name.strip().lower(), name.strip())
    try:
        return codecs.lookup(name).name
    except (LookupError, ValueError):
        return ""


def by_declaration(data: bytes, name: str) -> str | None:
    """The text, if it is what `name` says; None when that cannot be, and has to be guessed."""
    codec = declared(name)
    if not codec or codec.startswith(("utf-16", "utf-32", "utf-8")):
        return None
    try:
        if len(text := data.decode("utf-8")) < len(data):
            return text  # whatever was said: nothing else is UTF-8 by chance
    except UnicodeDecodeError:
        pass
    text = data.decode(codec, "replace")
    return text if 10 * text.count("\ufffd") <= len(data) else None


def _mostly_utf8(data: bytes) -> bool:
    """Bytes that are UTF-8 are hardly anything else, even if a few of them are damaged."""
    found = Counter(letter for letter in _showing(data).decode("utf-8", "replace") if letter > "\x7f")
    return 0 < 5 * found["\ufffd"] <= found.total()


def best_of(data: bytes) -> tuple[str, float]:
    """The candidate that fits best, and how well; the first of those that do equally."""
    sample, best, score = _showing(data), "cp1252", -9.0
    for encoding in _CANDIDATES:
        looked_at = data[:_SHOWING] if encoding in _WIDE else sample
        if encoding in _WIDE and len(data) % 2:
            continue
        fits = fitness(looked_at.decode(encoding, "replace"))
        if fits > score + 1e-6:
            best, score = encoding, fits
    return best, score
