"""Files that mislead readers, made by code: what is not shown, what is packed inside, what contradicts itself."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Mapping, Sequence

from reportlab.pdfgen.canvas import Canvas

from tests.factories import formats, hostile

_SHEETS = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_DOCUMENT = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


# PDF


def pdf(
    content: bytes, *, objects: Sequence[str | bytes] = (), resources: str = "", page: str = "", catalog: str = ""
) -> bytes:
    """One page with this content; further objects are numbered from 6."""
    return hostile.pdf(
        [
            f"<< /Type /Catalog /Pages 2 0 R {catalog} >>",
            "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R"
            f" /Resources << /Font << /F1 5 0 R >> {resources} >> {page} >>",
            hostile.stream(content),
            hostile.FONT,
            *objects,
        ]
    )


def _on_layers(lines: Mapping[str, str]) -> bytes:
    """A line of text on each layer, by the layer's name in the page's resources; none where that is empty."""
    out = b""
    for number, (layer, text) in enumerate(lines.items()):
        line = hostile.text_at(72, 700 - 40 * number, text)
        out += b"/OC /%b BDC\n%bEMC\n" % (layer.encode(), line) if layer else line
    return out


LAYERS = {"": "Always shown", "L1": "On a layer that is off", "L2": "On a layer that is on"}
_OFF, _ON = "<< /Type /OCG /Name <FEFF00530065> >>", "<< /Type /OCG /Name (Open \\(x\\)) >>"


def layered_pdf() -> bytes:
    return pdf(
        _on_layers(LAYERS),
        resources="/Properties << /L1 6 0 R /L2 7 0 R >>",
        catalog="/OCProperties << /OCGs [6 0 R 7 0 R] /D << /OFF [6 0 R] >> >>",
        objects=[_OFF, _ON],
    )


def packed_layered_pdf() -> bytes:
    """The same with catalog and layers in an object stream, and off unless named."""
    packed = {
        1: "<< /Type /Catalog /Pages 2 0 R /OCProperties 8 0 R >>",
        2: "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        6: _OFF,
        7: _ON,
        8: "<< /OCGs [6 0 R 7 0 R] /D << /BaseState /OFF /ON [7 0 R] >> >>",
    }
    page = (
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >>"
        " /Properties << /L1 6 0 R /L2 7 0 R >> >> >>"
    )
    return with_object_stream(packed, {3: page, 4: hostile.stream(_on_layers(LAYERS)), 5: hostile.FONT})


def with_object_stream(packed: Mapping[int, str], plain: Mapping[int, str | bytes]) -> bytes:
    head = body = ""
    for number, text in packed.items():
        head += f"{number} {len(body)} "
        body += text + "\n"
    out, offsets = bytearray(b"%PDF-1.7\n"), dict[int, int]()
    holder, table = max([*packed, *plain]) + 1, max([*packed, *plain]) + 2
    data = zlib.compress((head + body).encode())
    extra = f"/Type /ObjStm /N {len(packed)} /First {len(head)} /Filter /FlateDecode "
    for number, kept in {**plain, holder: hostile.stream(data, extra=extra)}.items():
        offsets[number] = len(out)
        out += b"%d 0 obj\n%b\nendobj\n" % (number, kept.encode() if isinstance(kept, str) else kept)
    offsets[table] = len(out)
    rows = [bytes(5)] * (table + 1)
    for number, offset in offsets.items():
        rows[number] = b"\1" + offset.to_bytes(3, "big") + b"\0"
    for index, number in enumerate(packed):
        rows[number] = b"\2" + holder.to_bytes(3, "big") + bytes([index])
    extra = f"/Type /XRef /Size {table + 1} /W [1 3 1] /Root 1 0 R /Filter /FlateDecode "
    out += b"%d 0 obj\n%b\nendobj\n" % (table, hostile.stream(zlib.compress(b"".join(rows)), extra=extra))
    return bytes(out + b"startxref\n%d\n%%%%EOF\n" % offsets[table])


def portfolio_pdf(files: Mapping[str, bytes]) -> bytes:
    """A PDF with these files in its tree of embedded files."""
    tree, objects = "", list[str | bytes]()
    for number, (name, data) in enumerate(files.items()):
        first = 6 + 2 * number
        tree += f"({name}) {first} 0 R "
        objects.append(f"<< /Type /Filespec /F ({name}) /UF ({name}) /EF << /F {first + 1} 0 R >> >>")
        objects.append(hostile.stream(data, extra="/Type /EmbeddedFile "))
    catalog = f"/Names << /EmbeddedFiles << /Names [{tree}] >> >>"
    return pdf(hostile.text_at(72, 700, "The cover page"), catalog=catalog, objects=objects)


def annotated_pdf() -> bytes:
    """A note, a hidden note, and a file pinned to the page."""
    return pdf(
        hostile.text_at(72, 700, "Page text"),
        page="/Annots [6 0 R 7 0 R 8 0 R]",
        objects=[
            "<< /Type /Annot /Subtype /Text /Rect [10 10 30 30] /Contents (A visible note) >>",
            "<< /Type /Annot /Subtype /Text /Rect [10 40 30 60] /F 2 /Contents (A hidden note) >>",
            "<< /Type /Annot /Subtype /FileAttachment /Rect [10 80 30 90] /FS << /Type /Filespec /F (n.txt)"
            " /UF (n.txt) /EF << /F 9 0 R >> >> >>",
            hostile.stream(b"pinned words", extra="/Type /EmbeddedFile "),
        ],
    )


def form_pdf() -> bytes:
    buffer = io.BytesIO()
    canvas = Canvas(buffer)
    canvas.drawString(72, 800, "Form")
    form = canvas.acroForm
    form.textfield(name="surname", value="Quill", x=72, y=700, tooltip="Your family name")
    form.checkbox(name="agree", checked=True, x=72, y=650)
    form.checkbox(name="spam", checked=False, x=72, y=630)
    form.radio(name="size", value="small", selected=False, x=72, y=600)
    form.radio(name="size", value="large", selected=True, x=100, y=600)
    form.choice(name="city", value="Bern", options=["Rome", "Bern"], x=72, y=560)
    form.listbox(name="langs", value=["en", "fr"], options=["en", "de", "fr"], fieldFlags="multiSelect", x=72, y=480)
    form.textfield(name="iban", value="CH93", maxlen=10, fieldFlags="comb", x=72, y=430)
    canvas.save()
    return buffer.getvalue()


_TEMPLATE = b"""<template xmlns="http://www.xfa.org/schema/xfa-template/2.8/"><subform name="f"><draw><value><text>
Application for a permit</text></value></draw><field name="surname"><caption><value><text>Family name</text></value>
</caption></field><field name="secret" presence="hidden"><caption><value><text>Unseen</text></value></caption></field>
</subform></template>"""
_DATA = b"""<xfa:datasets xmlns:xfa="http://www.xfa.org/schema/xfa-data/1.0/"><xfa:data><f><surname>Quill</surname>
<city>Bern</city></f></xfa:data></xfa:datasets>"""


def described_form_pdf(*, whole: bool = False) -> bytes:
    """A form that is only described (XFA), in packets or in one piece."""
    packets = "6 0 R" if whole else "[(template) 6 0 R (datasets) 7 0 R]"
    inside = b'<xdp:xdp xmlns:xdp="http://ns.adobe.com/xdp/">%b%b</xdp:xdp>' % (_TEMPLATE, _DATA)
    return pdf(
        hostile.text_at(72, 700, "Please wait..."),
        catalog=f"/NeedsRendering true /AcroForm << /Fields [] /XFA {packets} >>",
        objects=[hostile.stream(inside)] if whole else [hostile.stream(_TEMPLATE), hostile.stream(_DATA)],
    )


# Mail


def winmail(name: str, data: bytes, *, body: str = "The body inside") -> bytes:
    """What Outlook makes of a mail with an attachment (TNEF)."""
    wide = name.encode("utf-16-le") + b"\0\0"
    named = struct.pack("<IHHII", 1, 0x1F, 0x3707, 1, len(wide)) + wide + bytes(-len(wide) % 4)
    attributes = [
        (1, 0x00069007, struct.pack("<II", 1252, 0)),
        (1, 0x0002800C, body.encode() + b"\0"),
        (2, 0x00069002, bytes(14)),
        (2, 0x00018010, b"SHORT~1.TXT\0"),
        (2, 0x0006800F, data),
        (2, 0x00069005, named),
    ]
    out = b"\x78\x9f\x3e\x22\x01\x00"
    for level, identity, value in attributes:
        out += struct.pack("<BII", level, identity, len(value)) + value + struct.pack("<H", sum(value) & 0xFFFF)
    return out


# Workbooks

CHART = """<c:chartSpace xmlns:c="http://schemas.openxmlformats.org/drawingml/2006/chart"
 xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"><c:chart><c:title><c:tx><c:rich><a:p><a:r>
<a:t>Rain by month</a:t></a:r></a:p></c:rich></c:tx></c:title><c:plotArea><c:barChart>{series}</c:barChart></c:plotArea>
</c:chart></c:chartSpace>"""
_SERIES = """<c:ser><c:tx><c:strRef><c:strCache><c:pt idx="0"><c:v>{name}</c:v></c:pt></c:strCache></c:strRef></c:tx>
<c:cat><c:strRef><c:strCache>{categories}</c:strCache></c:strRef></c:cat><c:val><c:numRef><c:numCache>{values}
</c:numCache></c:numRef></c:val></c:ser>"""


def chart(categories: Sequence[str], series: Mapping[str, Sequence[float]]) -> str:
    def points(values: Sequence[object]) -> str:
        return "".join(f'<c:pt idx="{at}"><c:v>{value}</c:v></c:pt>' for at, value in enumerate(values))

    return CHART.format(
        series="".join(
            _SERIES.format(name=name, categories=points(categories), values=points(values))
            for name, values in series.items()
        )
    )


def workbook(cells: str, *, members: Mapping[str, str] | None = None, book: str = "", state: str = "") -> bytes:
    """A workbook of one sheet "Data" with these rows in XML. `members` are further parts, the sheet's relations
    among them."""
    names = f'xmlns="{_SHEETS}" xmlns:r="{_DOCUMENT}"'
    formatted = "".join(f'<xf numFmtId="{number}" applyNumberFormat="1"/>' for number in (0, 14, 46))
    return formats.package(
        {
            "[Content_Types].xml": '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>',
            "_rels/.rels": formats.relations([("officeDocument", "xl/workbook.xml")]),
            "xl/_rels/workbook.xml.rels": formats.relations(
                [("worksheet", "worksheets/s0.xml"), ("styles", "styles.xml")]
            ),
            "xl/workbook.xml": f'<workbook {names}>{book}<sheets><sheet name="Data" sheetId="1" r:id="r1" {state}/>'
            "</sheets></workbook>",
            "xl/styles.xml": f'<styleSheet {names}><cellXfs count="3">{formatted}</cellXfs></styleSheet>',
            "xl/worksheets/s0.xml": f"<worksheet {names}><sheetData>{cells}</sheetData></worksheet>",
            **(members or {}),
        }
    )
