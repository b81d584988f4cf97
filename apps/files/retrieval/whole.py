"""Questions that no few passages answer: what a file is about, all of something, how many, how two files differ. Pure.

A transparent rule: verbs and nouns of eight languages, and what must not stand beside them. What it does not know is
ranked as any other question, which was so for all of them before.
"""

from __future__ import annotations

import re
from enum import StrEnum

from apps.files.retrieval.citations import FUNCTION_WORDS

MAX_CHARS = 2_000


class Asks(StrEnum):
    """What a question asks of its files."""

    PLACE = ""  # what stands somewhere in them
    OVERVIEW = "overview"
    LIST = "list"
    COUNT = "count"
    COMPARE = "compare"


_FILE = (
    r"(?:documents?|files?|pdfs?|papers?|reports?|texts?|books?|thes[ie]s|articles?|contracts?|manuals?|letters?|e?mails?"
    r"|presentations?|slides?|attachments?|versions?|drafts?)"
)
_THIS = r"(?:this|these|those|the|my|our|both|all|attached|two)"
_THE_FILE = rf"(?:{_THIS}\s+)+(?:\w+\s+){{0,2}}{_FILE}"
_EINE_DATEI = (
    r"(?:dokument\w*|dateien|datei|berichte?s?|bücher|buch\w*|verträge|vertrag[es]*|texte?s?|artikels?"
    r"|fassungen|versionen)"
)
_UN_FICHIER = r"(?:documents?|fichiers?|rapports?|textes?|livres?|contrats?|articles?|versions?|mémoires?)"
_UN_ARCHIVO = (
    r"(?:documentos?|archivos?|ficheros?|informes?|textos?|libros?|contratos?|artículos?|versiones|arquivos?"
    r"|relatórios?|livros?)"
)

_OVERVIEW = (
    r"(?:summari[sz]e|sum\s+up|recap|outline|tl;?dr)(?!\w)",
    r"(?:give|write|make|create|prepare|provide)\s+(?:me\s+|us\s+)?(?:an?|the)\s+(?:\w+\s+){0,2}"
    r"(?:summary|overview|recap|abstract|synopsis|outline)(?!\w)",
    rf"what(?:'s|\s+is|\s+are)\s+{_THE_FILE}\s+(?:all\s+)?about",
    rf"(?:main|key|most\s+important)\s+(?:points|ideas|takeaways|findings|topics|messages)(?:\s*\?|\s*$|\s+(?:of|in|from)\s+{_THE_FILE})",
    r"(?:the\s+)?(?:gist|essence|bottom\s+line)(?:\s+of\s|\s*[?.!]|\s*$)",
    rf"(?:boil|break|cut|shorten|condense)\s+(?:down\s+)?{_THE_FILE}",
    r"^\s*(?:(?:please|an?|the)\s+)*(?:\w+\s+){0,2}(?:summary|overview|synopsis|abstract|tldr)(?:\s+(?:of|for)\s|\s*please|\s*[?.!]*\s*$)",
    rf"what\s+(?:does|do|did)\s+{_THE_FILE}\s+(?:say|contain|cover|discuss)(?:\s*\?|\s*$)",
    rf"what(?:'s|\s+is)\s+in\s+{_THE_FILE}(?:\s*\?|\s*$)",
    rf"was\s+(?:steht|ist)\s+in\s+(?:\w+\s+){{1,2}}{_EINE_DATEI}(?:\s*\?|\s*$)",
    rf"(?:explain|describe)\s+(?:me\s+)?{_THE_FILE}(?!\s+\w+(?:ed|ing)\b)",
    r"zusammenfass\w*|fass\w*\s+[^.?!]{0,60}zusammen|(?:gib|gebt)\s+[^.?!]{0,30}überblick",
    rf"(?:worum|wovon)\s+(?:geht|handelt)\s+(?:es\s+)?[^.?!]{{0,20}}{_EINE_DATEI}|worum\s+geht\s+es(?:\s*\?|\s*$)",
    r"résum(?:e|é|er|ez)s?(?!\w)",
    rf"de\s+quoi\s+(?:parle|traite|s'agit)[^.?!]{{0,20}}{_UN_FICHIER}",
    rf"(?:resume|resumir|resuma|resumen|resumo|sintetiza)\s+(?:del?\s+|do\s+|da\s+)?(?:est[ea]s?|el|la|los|las|o|a|os|as|esse|essa|todo)?\s*{_UN_ARCHIVO}",
    r"(?:haz|hazme|dame|faça|faz|dê)\s+(?:-?me\s+)?(?:un|um|uma)\s+(?:\w+\s+)?resum(?:en|o)(?!\w)",
    rf"de\s+qué\s+(?:trata|habla|va)[^.?!]{{0,12}}{_UN_ARCHIVO}|(?:sobre|do)\s+(?:o\s+)?que\s+(?:é|trata|fala)[^.?!]{{0,12}}{_UN_ARCHIVO}",
    r"riassum\w+|(?:fai|fammi)\s+un\s+riassunto|di\s+(?:che\s+)?cosa\s+parla\s+(?:il|lo|la|questo|questa)",
    r"(?:vat\s+[^.?!]{0,40}samen|samenvatting|waar\s+gaat\s+(?:dit|het|de)\s+\w+\s+over)",
)
_ALL = r"(?:all|every|each|any\s+and\s+all)"
_MENTIONED = r"(?:mentioned|listed|named|described|cited|discussed|covered|referenced|contained)"
_LIST = (
    rf"(?:list|enumerate|extract|collect|find|name|show|give)\s+(?:me\s+|us\s+)?{_ALL}\s+(?:of\s+)?(?:the\s+)?\w+",
    r"(?:give|make|write|show)\s+(?:me\s+|us\s+)?(?:an?|the)\s+(?:complete|full|exhaustive)\s+list\s+of",
    rf"(?:need|want|have|make|create|compile)\s+(?:me\s+)?(?:an?|the)\s+(?:\w+\s+)?list\s+of\s+(?:{_ALL}\s+)",
    rf"(?:pull|pick|point|write)\s+out\s+{_ALL}(?!\w)",
    r"quel(?:le)?s?\s+[^.?!]{2,40}\s+sont\s+(?:mentionné|cité|nommé|énuméré)e?s|qué\s+[^.?!]{2,40}\s+se\s+(?:mencionan|citan|nombran)",
    rf"(?:which|what)\s+[^.?!]{{2,60}}\s+(?:is|are|were|was)\s+(?:all\s+)?{_MENTIONED}",
    r"what\s+are\s+all\s+(?:the|of)(?!\w)",
    rf"{_ALL}\s+(?:mention|occurrence|reference|instance)s?\s+(?:of|to)",
    r"(?:liste|zähle?|nenne?|finde?|zeige?)\s+(?:mir\s+)?(?:alle|sämtliche|jede[nrs]?)(?!\w)",
    r"welche\s+[^.?!]{2,40}\s+(?:werden|sind|wird)\s+[^.?!]{0,30}(?:erwähnt|genannt|aufgeführt|aufgelistet)",
    r"(?:liste[rz]?|énumère[rz]?|cite[rz]?|donne[rz]?|trouve[rz]?)(?:-moi)?\s+(?:tou(?:s|tes)|chaque)(?!\w)",
    r"(?:lista|enumera|nombra|extrae|muestra|encuentra|liste|enumere|elenca|trova)(?:me)?\s+(?:a\s+)?(?:tod[oa]s|tutt[ie])(?!\w)",
    r"(?:noem|geef|som|lijst)\s+(?:me\s+)?alle(?!\w)",
)
_PARTS = (
    r"(?:pages?|chapters?|sections?|paragraphs?|tables?|figures?|appendi(?:x|ces)|footnotes?|references?|words?|slides?"
    r"|sheets?|mentions?|occurrences?)"
)
_COUNT = (
    rf"how\s+(?:many|often)\s+[^.?!]{{1,60}}\s+(?:{_MENTIONED}|appears?|appeared|occurs?|used)(?!\w)",
    r"how\s+many\s+times\s+(?:does|do|is|are)\s+(?:it|they|the\s+\w+|this\s+\w+)\s+(?:say|use|mention|repeat|refer)s?(?!\w)",
    rf"(?:what(?:'s|\s+is)\s+the\s+)?(?:total\s+)?number\s+of\s+{_PARTS}(?!\w)",
    r"wie\s+viele\s+(?:seiten|kapitel|abschnitte|tabellen|abbildungen|absätze|folien)(?!\w)",
    rf"how\s+many\s+{_PARTS}(?!\s+\w*ly)(?:\s+(?:does|do|are|is|has|have)(?!\w))",
    rf"how\s+many\s+\w+\s+are\s+(?:there|{_MENTIONED})(?:\s+in\s+{_THE_FILE})?",
    rf"count\s+(?:all\s+)?(?:the\s+|every\s+)?(?:\w+\s+)?\w+\s+(?:in|of)\s+{_THE_FILE}",
    r"wie\s+(?:oft|viele\s+\w+)\s+[^.?!]{0,50}(?:erwähnt|genannt|vor(?:kommt|kommen)?|aufgeführt)(?!\w)",
    r"combien\s+de\s+(?:fois|pages|chapitres|sections|tableaux)(?!\w)",
    r"cuántas?\s+veces(?!\w)|cuántos?\s+(?:capítulos|cuadros)(?!\w)|quante\s+volte(?!\w)|quantas\s+vezes(?!\w)",
    r"hoe\s+vaak\s+[^.?!]{0,40}(?:genoemd|voor)(?!\w)",
)
_COMPARE = (
    rf"(?:compare|contrast)\s+(?:both|{_THE_FILE})(?!\w)",
    rf"(?:differences?|similarit(?:y|ies)|changes?)\s+between\s+{_THE_FILE}",
    rf"(?:what|anything)\s+(?:has\s+)?(?:changed|is\s+different|differs)\s+(?:between|in)\s+{_THE_FILE}",
    rf"which\s+(?:one\s+)?of\s+{_THE_FILE}",
    rf"wor?in\s+unterscheide\w*\s+(?:\w+\s+){{0,3}}{_EINE_DATEI}",
    rf"(?:what|how)\s+(?:do|does|have|did)\s+{_THE_FILE}\s+(?:have\s+in\s+common|differ|changed?)",
    rf"vergleich\w*\s+(?:\w+\s+){{0,3}}{_EINE_DATEI}|unterschied\w*\s+zwischen\s+(?:\w+\s+){{0,3}}{_EINE_DATEI}",
    rf"compare[rz]?\s+(?:les|ces|mes)\s+(?:\w+\s+)?{_UN_FICHIER}|différences?\s+entre\s+(?:les|ces)\s+(?:\w+\s+)?{_UN_FICHIER}",
    rf"(?:compara|compare|diferencias?\s+entre|diferenças\s+entre|se\s+diferencian)\s+(?:a\s+)?(?:los|estos|os|estes)\s+(?:\w+\s+)?{_UN_ARCHIVO}",
    r"confronta\s+(?:i|le|gli|questi)\s+(?:\w+\s+)?(?:documenti|file|versioni|contratti)|vergelijk\s+de\s+(?:\w+\s+)?documenten",
)
# Scripts without spaces: there a word begins anywhere.
_UNSPACED = {
    Asks.OVERVIEW: r"要約|概要を|まとめて|何について(?:の|書)|总结|概括|摘要|總結|关于什么|요약",
    Asks.LIST: r"(?:列出|找出)(?:所有|全部)|(?:すべて|全て|全部)[^。？]{0,20}(?:列挙|挙げ|リスト)|모든[^.?]{0,20}나열",
    Asks.COUNT: r"出现(?:了)?(?:多少|几)次|何回",
    Asks.COMPARE: r"比较[^。？]{0,10}文(?:件|档)|文書を比較",
}
_ANY: tuple[tuple[Asks, re.Pattern[str]], ...] = tuple(
    (asks, re.compile(rf"(?<!\w)(?:{'|'.join(patterns)})|{_UNSPACED[asks]}", re.IGNORECASE))
    for asks, patterns in (
        (Asks.COMPARE, _COMPARE),
        (Asks.COUNT, _COUNT),
        (Asks.LIST, _LIST),
        (Asks.OVERVIEW, _OVERVIEW),
    )
)
# "Summarise section 3", or "the conclusion", is about a part of it, and "what it says about costs" about costs.
_PART = re.compile(
    r"^\s*(?:(?:of|for)\s+)?(?:the|its|this)\s+(?:\w+\s+)?(?:conclusions?|introduction|abstract|discussion|appendix|method(?:s|ology)?|section|chapter|paragraph|clause|table|figure|page)(?!\w)|^[^.?!]{0,60}(?:page|section|chapter|paragraph|table|figure|kapitel|abschnitt|seite|chapitre)s?\s*\d",
    re.I,
)
_TOPIC = re.compile(
    r"(?<!\w)(?:about|regarding|concerning|on|über|sur|sobre)\s+(?!it\b|this\b|that\b|the\s+(?:document|file))\w", re.I
)
# Of programs, not of files that were attached.
_ELSEWHERE = re.compile(
    r"(?<!\w)(?:how\s+(?:do|can|would|to)\s+(?:i|you|we|one)?|director(?:y|ies)|folder)(?!\w)", re.I
)

_GENERIC = frozenset(
    """document documents file files pdf paper report text book page pages attached attachment mention mentioned
    mentions list listed listing appear appears appeared occur occurs named described cited many much often times time
    count number all every each complete full word words term terms give show find extract name enumerate contain
    contained liste zähle nenne finde zeige énumère cite lista enumera nombra elenca trova noem geef som
    dokument dokumente datei dateien bericht text buch wort alle alles jede im in der die das den dem des ein eine und
    oder von mit auf aus zu ist sind wird werden oft wie viele welche erwähnt genannt aufgeführt vor kommt kommen
    fichier fichiers rapport texte livre mot tous toutes tout le la les l un une des de du dans et ou est sont fois
    combien apparaît il elle mentionné mentionnés
    documento documentos archivo archivos informe texto libro palabra todos todas todo el los las del en y o es son
    aparece aparecen veces cuántas cuántos menciona mencionan relatório arquivo livro quantas vezes os as do da no na um
    uma tutti tutte il lo gli i nel nella di e che volte quante alle de het een en van voor""".split()  # noqa: SIM905
)
_NOUN = re.compile(rf"{_FILE}|{_EINE_DATEI}|{_UN_FICHIER}|{_UN_ARCHIVO}", re.IGNORECASE)
_WORD = re.compile(r"[^\W_]+(?:[-'\u2019][^\W_]+)*")


def asks_for(question: str) -> Asks:
    """What the question asks of the files as a whole; PLACE when it does not."""
    question = question[:MAX_CHARS]
    for asks, pattern in _ANY:
        found = pattern.search(question)
        if found is None or _ELSEWHERE.search(question):
            continue
        rest = question[found.end() :]
        if asks is Asks.OVERVIEW and (_PART.search(rest) or _TOPIC.search(rest)):
            continue
        return asks
    return Asks.PLACE


def words_of(question: str) -> tuple[str, ...]:
    """What is to be looked for everywhere: the words of a question of LIST or COUNT that say what, at most eight. Those
    for the file itself count only where there are no others."""
    words = [found.group() for found in _WORD.finditer(question[:MAX_CHARS])]
    telling = [word for word in words if word.lower() not in _GENERIC and word.lower() not in FUNCTION_WORDS]
    kept = [word for word in telling if not _NOUN.fullmatch(word)] or telling
    return tuple(dict.fromkeys(kept))[:8]
