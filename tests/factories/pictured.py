"""Documents with pictures in them, in the place where each kind keeps its own."""

from __future__ import annotations

import io
import zipfile
from base64 import b64encode
from collections.abc import Mapping, Sequence
from email.message import EmailMessage

import docx
from PIL import Image, ImageDraw, ImageFilter, ImageFont
from reportlab.pdfgen.canvas import Canvas

from tests.factories import documents, formats

_OFFICE = "http://schemas.openxmlformats.org"
_DRAWING = f"{_OFFICE}/drawingml/2006/main"
_RELATION = f"{_OFFICE}/officeDocument/2006/relationships"
_SLIDES = f"{_OFFICE}/presentationml/2006/main"


def shot(text: str, *, size: tuple[int, int] = (900, 300), form: str = "PNG") -> bytes:
    """A picture of one line of print."""
    picture = Image.new("L", size, 255)
    ImageDraw.Draw(picture).text((30, size[1] // 3), text, fill=0, font=ImageFont.load_default(size=34))
    return saved(picture, form)


def photograph(size: tuple[int, int] = (600, 400)) -> bytes:
    """A picture without a letter in it."""
    return saved(Image.effect_noise(size, 90).filter(ImageFilter.GaussianBlur(9)), "JPEG")


def saved(picture: Image.Image, form: str) -> bytes:
    buffer = io.BytesIO()
    picture.save(buffer, form)
    return buffer.getvalue()


def presentation(slides: Sequence[tuple[str, Sequence[bytes]]], *, ground: bytes = b"") -> bytes:
    """PPTX: a text, if any, and pictures of each slide, equal ones in one member; `ground` is behind the last slide."""
    members: dict[str, str | bytes] = {
        "[Content_Types].xml": "<Types/>",
        "ppt/presentation.xml": f'<p:presentation xmlns:p="{_SLIDES}" xmlns:r="{_RELATION}">'
        + "".join(f'<p:sldId r:id="r{number}"/>' for number in range(1, len(slides) + 1))
        + "</p:presentation>",
        "ppt/_rels/presentation.xml.rels": formats.relations(
            [("slide", f"slides/slide{number}.xml") for number in range(1, len(slides) + 1)]
        ),
    }
    names: dict[bytes, str] = {}
    for number, (text, pictures) in enumerate(slides, start=1):
        behind = [ground] if ground and number == len(slides) else []
        for data in (*pictures, *behind):
            names.setdefault(data, f"media/image{len(names) + 1}")
        shapes = f"<p:sp><p:txBody><a:p><a:r><a:t>{text}</a:t></a:r></a:p></p:txBody></p:sp>" if text else ""
        shapes += "".join(f"<p:pic>{_fill(at)}</p:pic>" for at in range(1, len(pictures) + 1))
        paper = f"<p:bg><p:bgPr>{_fill(len(pictures) + 1)}</p:bgPr></p:bg>" if behind else ""
        members[f"ppt/slides/slide{number}.xml"] = (
            f'<p:sld xmlns:p="{_SLIDES}" xmlns:a="{_DRAWING}" xmlns:r="{_RELATION}"><p:cSld>{paper}'
            f"<p:spTree>{shapes}</p:spTree></p:cSld></p:sld>"
        )
        members[f"ppt/slides/_rels/slide{number}.xml.rels"] = formats.relations(
            [("image", f"../{names[data]}") for data in (*pictures, *behind)]
        )
    return formats.package(members | {f"ppt/{name}": data for data, name in names.items()})


def _fill(number: int) -> str:
    return f'<p:blipFill><a:blip r:embed="r{number}"/></p:blipFill>'


def word(parts: Sequence[str | bytes], *, in_table: bytes = b"") -> bytes:
    """DOCX of paragraphs and pictures in this order, and a table with a text and a picture behind them."""
    document = docx.Document()
    for part in parts:
        if isinstance(part, str):
            document.add_paragraph(part)
        else:
            document.add_picture(io.BytesIO(part))
    if in_table:
        cells = document.add_table(rows=1, cols=2).rows[0].cells
        cells[0].text = "left cell"
        cells[1].paragraphs[0].add_run().add_picture(io.BytesIO(in_table))
    buffer = io.BytesIO()
    document.save(buffer)
    return buffer.getvalue()


def old_word(picture: bytes, *, boxed: bool = False) -> bytes:
    """DOCX with a picture as Word drew them before 2007, twice, which may lie in a text box; and in a header."""
    drawn = '<w:p><w:r><w:pict><v:imagedata xmlns:v="urn:schemas-microsoft-com:vml" r:id="r1"/></w:pict></w:r></w:p>'
    held = f"<w:p><w:r><w:pict><w:txbxContent>{drawn}</w:txbxContent></w:pict></w:r></w:p>" if boxed else drawn
    parts = {"media/plan.png": ("image", ""), "header1.xml": ("header", f"<w:hdr SPACES>{drawn}</w:hdr>")}
    text = "<w:p><w:r><w:t>{}</w:t></w:r></w:p>"
    whole = formats.word(f"{text.format('before')}{held}{held}{text.format('behind')}", beside=parts)
    return formats.changed(whole, {"word/media/plan.png": picture})


def standing_word(part: bytes) -> bytes:
    """DOCX with a web page that stands for a part of it."""
    whole = formats.word('<w:altChunk r:id="r1"/>', beside={"part.html": ("aFChunk", "")})
    return formats.changed(whole, {"word/part.html": part})


def saved_page(picture: bytes) -> bytes:
    """MHT of a page and its picture."""
    message = EmailMessage()
    message["Subject"] = "Cellars"
    message.set_content("<p>before it</p>", subtype="html")
    message.add_related(picture, maintype="image", subtype="png", filename="plan.png")
    return message.as_bytes()


def workbook(picture: bytes) -> bytes:
    """XLSX of one sheet with a picture on it."""
    whole = formats.workbook({"Plan": [["Site", "Depth"], ["North", 4.2]]})
    return added(
        whole,
        {
            "xl/worksheets/_rels/s0.xml.rels": formats.relations([("drawing", "../drawings/d.xml")]),
            "xl/drawings/d.xml": f'<xdr:wsDr xmlns:xdr="{_OFFICE}/drawingml/2006/spreadsheetDrawing"/>',
            "xl/drawings/_rels/d.xml.rels": formats.relations([("image", "../media/image1.png")]),
            "xl/media/image1.png": picture,
        },
    )


def open_document(body: str, pictures: Mapping[str, bytes], *, kind: str = "text") -> bytes:
    """ODT or ODP; `body` places a picture with `{name}`."""
    places = {
        name: f'<drawing:image xmlns:x="http://www.w3.org/1999/xlink" x:href="Pictures/{name}"/>' for name in pictures
    }
    whole = formats.open_document(body.format(**places), kind=kind)
    return added(whole, {f"Pictures/{name}": data for name, data in pictures.items()})


def web_page(picture: bytes) -> bytes:
    address = f"data:image/png;base64,{b64encode(picture).decode()}"
    return f'<html><body><p>before it</p><img src="{address}" alt="a plan"><p>behind it</p></body></html>'.encode()


def book(picture: bytes) -> bytes:
    return added(formats.book(['<p>before it</p><img src="../art/plan%201.png"/>']), {"art/plan 1.png": picture})


def added(whole: bytes, members: Mapping[str, str | bytes]) -> bytes:
    """A package with further members."""
    buffer = io.BytesIO(whole)
    with zipfile.ZipFile(buffer, "a", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def scanned_word(pages: Sequence[Sequence[str]]) -> bytes:
    """A DOCX whose pages are scans."""
    return word([documents.png(lines) for lines in pages])


def outlined_pdf(pages: int) -> bytes:
    """A PDF of small pages with drawn lines instead of letters, no two alike."""
    buffer = io.BytesIO()
    canvas = Canvas(buffer, pagesize=(200, 200))
    for number in range(pages):
        for line in range(50):
            canvas.line(10, 10 + 3 * line, 20 + number, 12 + 3 * line)
        canvas.showPage()
    canvas.save()
    return buffer.getvalue()
