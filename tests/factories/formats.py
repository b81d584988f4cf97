"""Small documents of every kind that can be read, made by code; PDF, Word and pictures are in `documents`."""

from __future__ import annotations

import io
import tarfile
import zipfile
from collections.abc import Mapping, Sequence
from email.message import EmailMessage
from xml.sax.saxutils import escape

from PIL import Image

_OFFICE = "http://schemas.openxmlformats.org"
_RELATIONS = f"{_OFFICE}/package/2006/relationships"
_DOCUMENT = f"{_OFFICE}/officeDocument/2006/relationships"


def package(members: Mapping[str, str | bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def taped(members: Mapping[str, bytes]) -> bytes:
    """A TAR archive."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tape:
        for name, data in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tape.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


def zipped(data: bytes) -> dict[str, bytes]:
    """The members of a package."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def changed(data: bytes, members: Mapping[str, str | bytes | None]) -> bytes:
    """A package with other content in some members, which are added where they are not there; None takes one out."""
    return package({name: content for name, content in {**zipped(data), **members}.items() if content is not None})


def relations(targets: Sequence[tuple[str, str]]) -> str:
    items = "".join(
        f'<Relationship Id="r{number}" Type="{_DOCUMENT}/{kind}" Target="{target}"/>'
        for number, (kind, target) in enumerate(targets, start=1)
    )
    return f'<Relationships xmlns="{_RELATIONS}">{items}</Relationships>'


def workbook(sheets: Mapping[str, Sequence[Sequence[object]]], *, raw: str = "", merged: Sequence[str] = ()) -> bytes:
    """XLSX. Cells are texts, numbers or None; `raw` is XML that follows in each sheet, `merged` are ranges of it."""
    merges = "".join(f'<mergeCell ref="{area}"/>' for area in merged)

    def cell(value: object) -> str:
        if value is None:
            return "<c/>"
        if isinstance(value, str):
            return f'<c t="inlineStr"><is><t>{escape(value)}</t></is></c>'
        return f"<c><v>{value!r}</v></c>"

    count = len(sheets)
    members: dict[str, str | bytes] = {
        "[Content_Types].xml": '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>',
        "_rels/.rels": relations([("officeDocument", "xl/workbook.xml")]),
        "xl/_rels/workbook.xml.rels": relations([("worksheet", f"worksheets/s{n}.xml") for n in range(count)]),
        "xl/workbook.xml": f'<workbook xmlns="{_OFFICE}/spreadsheetml/2006/main" xmlns:r="{_DOCUMENT}"><sheets>'
        + "".join(f'<sheet name="{name}" sheetId="{n}" r:id="r{n}"/>' for n, name in enumerate(sheets, start=1))
        + "</sheets></workbook>",
    }
    for number, rows in enumerate(sheets.values()):
        data = "".join(f"<row>{''.join(map(cell, row))}</row>" for row in rows)
        members[f"xl/worksheets/s{number}.xml"] = (
            f'<worksheet xmlns="{_OFFICE}/spreadsheetml/2006/main"><sheetData>{data}{raw}</sheetData>'
            + (f"<mergeCells>{merges}</mergeCells>" if merged else "")
            + "</worksheet>"
        )
    return package(members)


_SHAPE = """<p:sp><p:nvSpPr><p:cNvPr id="1" name="x"/><p:cNvSpPr/><p:nvPr>{place}</p:nvPr></p:nvSpPr><p:txBody>{text}
</p:txBody></p:sp>"""


def word(
    body: str,
    *,
    main: str = "word/document.xml",
    media: str = f"{_OFFICE}.wordprocessingml.document.main+xml",
    beside: Mapping[str, tuple[str, str]] | None = None,
    others: str = "",
) -> bytes:
    """DOCX of the XML in `body`. `beside`: kind and content of further parts by their path below `word/`, with SPACES
    where the namespaces go; they are r1, r2 and so on. `others` are further relations."""
    beside = beside or {}
    names = {"w": "wordprocessingml/2006/main", "a": "drawingml/2006/main", "r": "officeDocument/2006/relationships"}
    spaces = "".join(f' xmlns:{prefix}="{_OFFICE}/{path}"' for prefix, path in names.items())
    targets = relations([(kind, path) for path, (kind, _) in beside.items()])
    return package(
        {
            "[Content_Types].xml": '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
            f'<Override PartName="/{main}" ContentType="{media}"/></Types>',
            "_rels/.rels": relations([("officeDocument", main)]),
            main: f"<w:document{spaces}><w:body>{body}</w:body></w:document>",
            f"word/_rels/{main.removeprefix('word/')}.rels": targets.replace("</R", f"{others}</R"),
            **{f"word/{path}": content.replace("SPACES", spaces) for path, (_, content) in beside.items()},
        }
    )


def _shape(role: str, texts: Sequence[str]) -> str:
    place = f'<p:ph type="{role}"/>' if role else ""
    return _SHAPE.format(place=place, text="".join(f"<a:p><a:r><a:t>{text}</a:t></a:r></a:p>" for text in texts))


def _slide(root: str, shapes: str) -> str:
    names = f'xmlns:p="{_OFFICE}/presentationml/2006/main" xmlns:a="{_OFFICE}/drawingml/2006/main"'
    return f"<p:{root} {names}><p:cSld><p:spTree>{shapes}</p:spTree></p:cSld></p:{root}>"


def _cell(text: str) -> str:
    return f"<a:tc><a:txBody><a:p><a:r><a:t>{text}</a:t></a:r></a:p></a:txBody></a:tc>"


def presentation(
    slides: Sequence[tuple[str, Sequence[str]]],
    *,
    notes: str = "",
    table: Sequence[Sequence[str]] = (),
    beside: Mapping[str, tuple[str, str]] | None = None,
) -> bytes:
    """PPTX: title and paragraphs of each slide, whose files are numbered backwards; notes, table and what is `beside`
    (kind of relation and XML, by path) on the first."""
    count = len(slides)
    members: dict[str, str | bytes] = {
        "[Content_Types].xml": "<Types/>",
        "ppt/presentation.xml": f'<p:presentation xmlns:p="{_OFFICE}/presentationml/2006/main" xmlns:r="{_DOCUMENT}">'
        + "".join(f'<p:sldId r:id="r{n}"/>' for n in range(1, count + 1))
        + "</p:presentation>",
        "ppt/_rels/presentation.xml.rels": relations([("slide", f"slides/slide{count - n}.xml") for n in range(count)]),
    }
    for number, (title, texts) in enumerate(slides):
        shapes = _shape("title", [title]) + _shape("", texts) + _shape("sldNum", [str(number + 1)])
        if number == 0 and table:
            rows = "".join(f"<a:tr>{''.join(map(_cell, row))}</a:tr>" for row in table)
            shapes += f"<p:graphicFrame><a:graphic><a:tbl>{rows}</a:tbl></a:graphic></p:graphicFrame>"
        members[f"ppt/slides/slide{count - number}.xml"] = _slide("sld", shapes)
    targets = [(kind, f"../{path}") for path, (kind, _) in (beside or {}).items()]
    members |= {f"ppt/{path}": text for path, (_, text) in (beside or {}).items()}
    if notes:
        targets.append(("notesSlide", "../notesSlides/n.xml"))
        members["ppt/notesSlides/n.xml"] = _slide("notes", _shape("body", [notes]))
    if targets:
        members[f"ppt/slides/_rels/slide{count}.xml.rels"] = relations(targets)
    return package(members)


_OPEN = " ".join(
    f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
    for name in ("office", "text", "table", "drawing")
)


def open_document(body: str, *, kind: str = "text") -> bytes:
    """ODT or ODP with this XML in its body."""
    root = f"office:{kind}"
    body = f"<office:body><{root}>{body}</{root}></office:body>"
    content = f"<office:document-content {_OPEN}>{body}</office:document-content>"
    return package({"mimetype": f"application/vnd.oasis.opendocument.{kind}", "content.xml": content})


def book(chapters: Sequence[str], *, title: str = "A book") -> bytes:
    """EPUB of these HTML bodies."""
    items = "".join(f'<item id="c{n}" href="c%20{n}.xhtml"/>' for n in range(len(chapters)))
    spine = "".join(f'<itemref idref="c{n}"/>' for n in range(len(chapters)))
    opf = (
        '<package xmlns="http://www.idpf.org/2007/opf" xmlns:dc="http://purl.org/dc/elements/1.1/"><metadata>'
        f"<dc:title>{title}</dc:title></metadata><manifest>{items}</manifest><spine>{spine}</spine></package>"
    )
    return package(
        {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": '<container><rootfile full-path="book/x.opf"/></container>',
            "book/x.opf": opf,
            **{f"book/c {n}.xhtml": f"<html><body>{chapter}</body></html>" for n, chapter in enumerate(chapters)},
        }
    )


def mail(subject: str, text: str, *, html: str = "", attachments: Mapping[str, bytes] | None = None) -> bytes:
    message = EmailMessage()
    message["Subject"], message["From"], message["To"] = subject, "Ada <ada@example.org>", "Bob <bob@example.org>"
    message.set_content(text)
    if html:
        message.add_alternative(html, subtype="html")
    for name, data in (attachments or {}).items():
        message.add_attachment(data, maintype="application", subtype="octet-stream", filename=name)
    return message.as_bytes()


def forwarded(depth: int) -> bytes:
    """A mail in a mail in a mail."""
    inner = EmailMessage()
    inner["Subject"] = "Mail 0"
    inner.set_content("the innermost text")
    for number in range(1, depth + 1):
        outer = EmailMessage()
        outer["Subject"] = f"Mail {number}"
        outer.set_content(f"text {number}")
        outer.add_attachment(inner)
        inner = outer
    return inner.as_bytes()


def tiff(pages: Sequence[Image.Image]) -> bytes:
    buffer = io.BytesIO()
    pages[0].save(buffer, "TIFF", save_all=True, append_images=list(pages[1:]), compression="tiff_lzw")
    return buffer.getvalue()


def archive_in_itself(depth: int) -> bytes:
    """An archive in an archive, `depth` deep, with a note in each."""
    inner = package({"note.txt": "note 0"})
    for number in range(1, depth + 1):
        inner = package({"note.txt": f"note {number}", "inner.zip": inner})
    return inner
