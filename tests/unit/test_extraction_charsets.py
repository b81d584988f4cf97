"""Texts in every encoding that files come in, told apart without a mark."""

from __future__ import annotations

from pathlib import Path

import pytest

from apps.files.extraction import charsets
from apps.files.types import FileFault
from tests.reading import read

TEXTS = {
    "german": "Der Käse läuft über die Straße – „schön“ für 5 €, naïve café résumé.",
    "french": "L'élève où ça à Noël, très tôt près de l'hôtel.",
    "swedish": "Åsa är på ön med sin far.",
    "czech": "Příliš žluťoučký kůň úpěl ďábelské ódy.",
    "polish": "Zażółć gęślą jaźń.",
    "turkish": "Pijamalı hasta yağız şoföre çabucak güvendi.",
    "russian": "Это русский текст, предназначенный для проверки определения кодировки. Съешь ещё булок.",
    "greek": "Αυτό είναι ένα ελληνικό κείμενο για δοκιμή της κωδικοποίησης.",
    "hebrew": "זה טקסט בעברית לבדיקת קידוד הקובץ.",
    "arabic": "هذا نص باللغة العربية لاختبار ترميز الملف.",
    "thai": "ข้อความภาษาไทยสำหรับทดสอบ",
    "japanese": "これは日本語の文章です。文字コードの判定を試験しています。",
    "chinese": "这是一个中文文本文件，用来测试字符编码的检测。",
    "taiwan": "這是一個中文文本檔案，用來測試字元編碼的偵測。",
    "korean": "이것은 한국어 텍스트 파일입니다. 문자 인코딩 감지를 시험합니다.",
    "latin": "Plain Latin text",
}
CASES = [
    *(("german", name) for name in ("cp1252", "utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32-be")),
    *(("french", name) for name in ("cp1252", "cp850", "mac_roman")),
    ("swedish", "cp1252"),
    ("czech", "cp1250"),
    *(("polish", name) for name in ("cp1250", "iso8859_2")),
    ("turkish", "cp1254"),
    *(("russian", name) for name in ("cp1251", "koi8_r", "cp866", "iso8859_5", "utf-16-le", "utf-16-be")),
    ("greek", "cp1253"),
    ("hebrew", "cp1255"),
    ("arabic", "cp1256"),
    ("thai", "cp874"),
    *(("japanese", name) for name in ("cp932", "euc_jp", "iso2022_jp", "utf-16-le", "utf-16-be")),
    *(("chinese", name) for name in ("gb18030", "utf-16-le")),
    ("taiwan", "big5"),
    ("korean", "cp949"),
    *(("latin", name) for name in ("utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be", "utf-32")),
]


@pytest.mark.parametrize(("language", "encoding"), CASES)
def test_text_in_any_encoding(tmp_path: Path, language: str, encoding: str) -> None:
    assert read(tmp_path, "a.txt", TEXTS[language].encode(encoding)).texts == [TEXTS[language]]


def test_text_with_a_few_damaged_bytes_keeps_its_encoding() -> None:
    assert charsets.guess("Grüße aus München – schön".encode() + b"\xff") == "utf-8"


@pytest.mark.parametrize(
    "data", [bytes(range(256)) * 40, b"\x7fELF\x02\x01\x01" + bytes(4000), b"\x89abc\x00\x01\x02" * 200]
)
def test_what_is_no_text_is_not_taken_for_one(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(FileFault, match=r"is not a text file|is named as"):
        read(tmp_path, "a.txt", data)


def test_marks_that_are_not_seen_are_not_kept(tmp_path: Path) -> None:
    text = (
        "Mixed\r\nline\rends\x00 and\x07 bell\x0c\u200bzero\u200bwidth \u202eturned\u202c so\u00adft e\u0301 \ufb01ne"
    )
    assert read(tmp_path, "a.txt", text.encode()).texts == [
        "Mixed\nline\nends and bell",
        "zerowidth turned soft \u00e9 fine",
    ]


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ('<meta charset="iso-8859-1"><p>Straße – schön'.encode(), "Straße – schön"),
        ('<meta charset="utf-8"><p>Straße über schöne Länder'.encode("cp1252"), "Straße über schöne Länder"),
        ('<meta charset="shift_jis"><p>日本語①です'.encode("cp932"), "日本語①です"),
        ('<meta charset="gb2312"><p>朱镕基的中文'.encode("gb18030"), "朱镕基的中文"),
        ('<html><meta charset="utf-8"><p>Wide ü'.encode("utf-16"), "Wide ü"),
        ('<meta charset="no-such-thing"><p>Müller und Söhne'.encode("cp1252"), "Müller und Söhne"),
    ],
)
def test_web_pages_that_are_wrong_about_their_encoding(tmp_path: Path, page: bytes, text: str) -> None:
    assert read(tmp_path, "a.html", page).texts == [text]
