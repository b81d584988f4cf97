"""PDFs: loops in every structure, counts that lie, pages without end, streams that unpack to anything."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

from tests.bench.poison.types import Poison, named
from tests.factories import documents, hostile
from tests.factories.hostile import FONT, one_page, pdf, spaces, stream, text_at

_CATALOG = "<< /Type /Catalog /Pages 2 0 R >>"
_PAGES = "<< /Type /Pages /Kids [3 0 R] /Count 1 >>"


def _page(*, extra: str = "", content: str = "4 0 R", resources: str = "/Font << /F1 5 0 R >>") -> str:
    return (
        f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {content} "
        f"/Resources << {resources} >> {extra} >>"
    )


def _whole(*more: str | bytes, catalog: str = "", page: str | None = None, content: bytes = b"") -> bytes:
    """A PDF of one page with `more` objects from number 6 on."""
    return pdf(
        [
            _CATALOG.replace(" >>", f" {catalog} >>"),
            _PAGES,
            _page() if page is None else page,
            stream(content or text_at(72, 700, "harm")),
            FONT,
            *more,
        ]
    )


def looping_outline() -> bytes:
    item = "<< /Title (again) /Parent 6 0 R /Next 7 0 R /Prev 7 0 R /First 7 0 R /Last 7 0 R /Count 9 >>"
    return _whole("<< /Type /Outlines /First 7 0 R /Last 7 0 R /Count 9 >>", item, catalog="/Outlines 6 0 R")


def looping_fields() -> bytes:
    return _whole(
        "<< /Fields [7 0 R] >>",
        "<< /T (a) /FT /Tx /Kids [7 0 R 7 0 R] /Parent 7 0 R >>",
        catalog="/AcroForm 6 0 R",
        page=_page(extra="/Annots [7 0 R 7 0 R]"),
    )


def looping_names() -> bytes:
    return _whole(
        "<< /EmbeddedFiles 7 0 R /Dests 7 0 R >>", "<< /Kids [7 0 R 7 0 R] /Limits [(a) (z)] >>", catalog="/Names 6 0 R"
    )


def looping_length() -> bytes:
    return _whole(page=_page(content="6 0 R")).replace(b"%%EOF", b"") + (
        b"6 0 obj << /Length 6 0 R >> stream\nBT ET\nendstream endobj\n%%EOF"
    )


def looping_xref() -> bytes:
    """A cross-reference table whose earlier one is itself."""
    whole = _whole()
    start = whole.rindex(b"xref\n0")
    return whole.replace(b"/Root 1 0 R", b"/Prev %d /XRefStm %d /Root 1 0 R" % (start, start))


def looping_object_stream() -> bytes:
    """An object stream that stands inside itself, and extends itself."""
    inner = b"6 0 7 20 << /Type /X >> << /Type /Y >>"
    extra = "/Type /ObjStm /N 2 /First 9 /Extends 6 0 R "
    return _whole(stream(inner, extra=extra))


def object_stream_bomb() -> bytes:
    extra = "/Type /ObjStm /N 99999999 /First 0 /Filter /FlateDecode "
    return _whole(stream(spaces(b"1 0 ", 200 << 20), extra=extra))


def looping_reference() -> bytes:
    return _whole("7 0 R", "6 0 R", page=_page(content="6 0 R", extra="/Rotate 6 0 R /Annots 7 0 R"))


def looping_inherited() -> bytes:
    """Pages whose parents go round in a circle."""
    return pdf(
        [
            _CATALOG,
            "<< /Type /Pages /Kids [3 0 R] /Count 1 /Parent 6 0 R >>",
            "<< /Type /Page /Parent 2 0 R /Contents 4 0 R >>",
            stream(text_at(72, 700, "round")),
            FONT,
            "<< /Type /Pages /Kids [2 0 R] /Count 1 /Parent 2 0 R >>",
        ]
    )


def deep_tree(depth: int) -> bytes:
    nodes = [f"<< /Type /Pages /Kids [{number + 1} 0 R] /Count 1 >>" for number in range(2, depth)]
    return pdf([_CATALOG, *nodes, f"<< /Type /Page /Parent {depth - 1} 0 R /MediaBox [0 0 9 9] >>"])


def doubling_tree(levels: int) -> bytes:
    """2 ** levels pages of a few objects: each node has the same child twice."""
    nodes = [
        f"<< /Type /Pages /Kids [{number + 1} 0 R {number + 1} 0 R] /Count {2 ** (levels - number + 2)} >>"
        for number in range(2, levels + 2)
    ]
    return pdf([_CATALOG, *nodes, "<< /Type /Page /MediaBox [0 0 612 792] >>"])


def form_bomb(levels: int) -> bytes:
    """Forms that draw the next one ten times: 10 ** levels texts."""
    box = "/Type /XObject /Subtype /Form /BBox [0 0 600 700] "
    forms = [
        stream(b"/X Do " * 10, extra=f"{box}/Resources << /XObject << /X {number + 1} 0 R >> >> ")
        for number in range(6, 6 + levels)
    ]
    last = stream(text_at(72, 700, "harm"), extra=f"{box}/Resources << /Font << /F1 5 0 R >> >> ")
    resources = "/Font << /F1 5 0 R >> /XObject << /X 6 0 R >>"
    return _whole(*forms, last, page=_page(resources=resources), content=b"/X Do")


def pattern_loop() -> bytes:
    pattern = "/Type /Pattern /PatternType 1 /PaintType 1 /TilingType 1 /BBox [0 0 1 1] /XStep .001 /YStep .001 "
    tile = stream(
        b"/Pattern cs /P scn 0 0 1 1 re f", extra=f"{pattern}/Resources << /Pattern << /P 6 0 R >> >> "
    )  # fmt: skip
    resources = "/Font << /F1 5 0 R >> /Pattern << /P 6 0 R >>"
    return _whole(tile, page=_page(resources=resources), content=b"/Pattern cs /P scn 0 0 600 700 re f")


def _font(dictionary: str, *more: str | bytes) -> bytes:
    return pdf([_CATALOG, _PAGES, _page(), stream(text_at(72, 700, "harm in a font " * 9)), dictionary, *more])


def looping_type3() -> bytes:
    """A font whose glyph is drawn with the font itself."""
    font = (
        "<< /Type /Font /Subtype /Type3 /FontBBox [0 0 9 9] /FontMatrix [1 0 0 1 0 0] /FirstChar 97 /LastChar 97 "
        "/Widths [9] /Encoding << /Differences [97 /a] >> /CharProcs << /a 6 0 R >> "
        "/Resources << /Font << /F1 5 0 R >> >> >>"
    )
    return _font(font, stream(b"9 0 d0 BT /F1 9 Tf (aaaaaaaaaa) Tj ET"))


def looping_cmap() -> bytes:
    """A map of characters that uses itself."""
    font = "<< /Type /Font /Subtype /Type0 /BaseFont /X /Encoding 6 0 R /ToUnicode 6 0 R /DescendantFonts [5 0 R] >>"
    return _font(font, stream(b"/X usecmap\nbegincmap endcmap", extra="/Type /CMap /CMapName /X /UseCMap 6 0 R "))


def huge_cmap() -> bytes:
    """Ranges that map every character there could be, again and again."""
    ranges = b"100 begincidrange\n" + b"<00000000> <ffffffff> 1\n" * 100 + b"endcidrange\n"
    unicode = b"100 beginbfrange\n" + b"<0000> <ffff> <0041>\n" * 100 + b"endbfrange\n"
    font = "<< /Type /Font /Subtype /Type0 /BaseFont /X /Encoding 6 0 R /ToUnicode 7 0 R /DescendantFonts [8 0 R] >>"
    return _font(
        font,
        stream(b"begincmap\n" + ranges * 200 + b"endcmap"),
        stream(b"begincmap\n" + unicode * 200 + b"endcmap"),
        "<< /Type /Font /Subtype /CIDFontType2 /BaseFont /X /CIDSystemInfo << /Supplement 0 >> >>",
    )


def font_file(data: bytes) -> bytes:
    """A TrueType font whose program is `data`."""
    return _font(
        "<< /Type /Font /Subtype /TrueType /BaseFont /X /FontDescriptor 6 0 R >>",
        "<< /Type /FontDescriptor /FontName /X /Flags 4 /FontFile2 7 0 R >>",
        stream(data),
    )


def function_loop() -> bytes:
    """A stitching function made of itself, as the tint of a colour."""
    function = "<< /FunctionType 3 /Domain [0 1] /Functions [6 0 R 6 0 R] /Bounds [.5] /Encode [0 1 0 1] >>"
    resources = "/Font << /F1 5 0 R >> /ColorSpace << /C [/Separation /X /DeviceRGB 6 0 R] >>"
    return _whole(function, page=_page(resources=resources), content=b"/C cs .3 scn 0 0 99 99 re f")


def filters(count: int) -> bytes:
    """A stream packed `count` times over."""
    data = b" " * (1 << 20)
    for _ in range(count):
        data = zlib.compress(data, 9)
    packed = stream(data, extra=f"/Filter [{'/FlateDecode ' * count}] ")
    return pdf([_CATALOG, _PAGES, _page(), packed, FONT])


def image_bomb(width: int, height: int) -> bytes:
    """A page that is one picture of that many pixels, of a few bytes."""
    picture = (
        f"/Type /XObject /Subtype /Image /Width {width} /Height {height} /BitsPerComponent 8 /ColorSpace /DeviceRGB "
        "/Filter /FlateDecode "
    )
    resources = "/XObject << /X 6 0 R >>"
    content = b"q 612 0 0 792 0 0 cm /X Do Q"
    return _whole(
        stream(zlib.compress(bytes(1 << 20)), extra=picture), page=_page(resources=resources), content=content
    )


def jbig2_garbage() -> bytes:
    picture = "/Type /XObject /Subtype /Image /Width 90000 /Height 90000 /BitsPerComponent 1 /Filter /JBIG2Decode "
    return _whole(
        stream(b"\0\0\0\0\x30\0\1\0\0\0\x13\0\1\x5f\x90\0\1\x5f\x90" + bytes(99), extra=picture),
        page=_page(resources="/XObject << /X 6 0 R >>"),
        content=b"q 612 0 0 792 0 0 cm /X Do Q",
    )


def many_annotations(count: int) -> bytes:
    notes = "".join("<< /Type /Annot /Subtype /Text /Rect [0 0 9 9] /Contents (x) >>" for _ in range(count))
    return _whole(page=_page(extra=f"/Annots [{notes}]"))


def poisons() -> Iterator[Poison]:
    words = text_at(72, 700, "harm")
    yield from named(
        "pdf",
        looping_pages=hostile.looping_pages,
        looping_outline=looping_outline,
        looping_fields=looping_fields,
        looping_names=looping_names,
        looping_length=looping_length,
        looping_xref=looping_xref,
        looping_object_stream=looping_object_stream,
        looping_reference=looping_reference,
        looping_inherited=looping_inherited,
        looping_form=hostile.recursive_form,
        looping_pattern=pattern_loop,
        looping_type3_font=looping_type3,
        looping_cmap=looping_cmap,
        looping_function=function_loop,
        object_stream_bomb=object_stream_bomb,
        flate_bomb=lambda: hostile.flate_bomb(1 << 30),
        filters_upon_filters=lambda: filters(60),
        form_bomb=lambda: form_bomb(8),
        huge_cmap=huge_cmap,
        font_of_garbage=lambda: font_file(b"\0\1\0\0\xff\xff" + bytes(range(256)) * 200),
        font_of_nothing=lambda: font_file(b""),
        twenty_thousand_pages=lambda: documents.too_many_pages_pdf(20_000),
        two_thousand_one_pages=lambda: documents.too_many_pages_pdf(2_001),
        lying_count=lambda: hostile.lying_page_count(2_000_000_000),
        lying_small_count=lambda: hostile.lying_page_count(1_999),
        doubling_tree=lambda: doubling_tree(30),
        deep_tree=lambda: deep_tree(20_000),
        deep_arrays=lambda: hostile.deep_nesting(500_000),
        deep_dictionaries=lambda: one_page(words + b"/X " + b"<< /a " * 300_000 + b"BDC EMC"),
        deep_states=lambda: one_page(b"q " * 2_000_000 + words),
        unbalanced_states=lambda: one_page(b"Q " * 2_000_000 + words),
        huge_box=lambda: one_page(words, box="0 0 1e38 1e38"),
        negative_box=lambda: one_page(words, box="9e9 9e9 -9e9 -9e9"),
        empty_box=lambda: one_page(words, box="0 0 0 0"),
        long_box=lambda: one_page(words, box="0 0 1 14400000"),
        odd_rotation=lambda: one_page(words, rotate=2_147_483_647),
        image_bomb=lambda: image_bomb(100_000, 100_000),
        image_strip=lambda: image_bomb(2_000_000_000, 1),
        jbig2_garbage=jbig2_garbage,
        many_texts=lambda: hostile.many_objects(400_000),
        one_long_text=lambda: one_page(text_at(9, 9, "x" * 5_000_000)),
        tiny_text=lambda: one_page(text_at(9, 9, "x " * 200_000, size=0.0001)),
        giant_text=lambda: one_page(text_at(9, 9, "x " * 20_000, size=1e30)),
        many_annotations=lambda: many_annotations(200_000),
        long_token=lambda: one_page(b"/" + b"x" * 20_000_000 + b" Do"),
        only_a_header=lambda: b"%PDF-1.7\n",
        header_and_nulls=lambda: b"%PDF-1.7\n" + bytes(5 << 20),
        no_end=documents.truncated_pdf,
        half=lambda: (whole := documents.digital_pdf(20))[: len(whole) // 2],
        protected=documents.encrypted_pdf,
        endless_header=lambda: b"%PDF-1.7\n" * 500_000,
        endless_objects=lambda: b"%PDF-1.7\n" + b"1 0 obj << >> endobj\n" * 1_000_000,
    )
