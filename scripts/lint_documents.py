"""Checks the documents: long sentences, links to nowhere, commands and paths that do not exist,
and figures in the README that a table of docs/performance.md holds. Part of scripts/lint."""

import re

MOST_WORDS = 30
FENCE = "```"
FOLDERS = ("src", "include", "kernels", "tools", "tests", "bench", "examples", "docs", "scripts",
           "cmake")
PATH = re.compile(r"(?<![\w/.-])(?:\./)?((?:" + "|".join(FOLDERS) + r")/[\w./*-]*\w)")
BUILT = re.compile(r"build/\w+/(bin|tests|examples|bench)/(\w+)")


def documents(root):
    for path in sorted([*root.glob("*.md"), *root.glob("docs/**/*.md"), *root.glob("*/README.md")]):
        yield path


def is_log(root, path):
    return root / "docs/log" in path.parents


def blocks(text):
    """(line, kind, text): paragraphs, cells of tables, list items, and lines of code."""
    paragraph, first, code = [], 0, None
    for number, line in enumerate([*text.splitlines(), ""], 1):
        stripped = line.strip()
        fence = stripped.startswith(FENCE)
        item = re.match(r"([-*]|\d+\.) ", stripped)
        if paragraph and (not stripped or fence or item or stripped.startswith(("|", "#", "<!--"))):
            yield first, "text", " ".join(paragraph)
            paragraph = []
        if fence:
            code = None if code is not None else stripped[len(FENCE):]
        elif code is not None:
            yield number, "code:" + code, line
        elif stripped.startswith("#"):
            yield number, "heading", stripped.lstrip("#").strip()
        elif stripped.startswith("|"):
            for cell in re.split(r"(?<!\\)\|", stripped)[1:-1]:
                yield number, "text", cell.strip()
        elif stripped and not stripped.startswith("<!--"):
            first = first if paragraph else number
            paragraph.append(stripped[item.end():] if item else stripped)


def sentences(text):
    """A piece of `code` counts as a word, a link as the words that it shows."""
    plain = re.sub(r"`[^`]*`", "code", re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", text))
    return re.split(r"(?<=[.!?])\)?\s+", plain)


def anchors(text):
    """The anchors of a document's headings, as GitHub makes them."""
    found = set()
    for _, kind, heading in blocks(text):
        if kind == "heading":
            plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower()
            found.add(re.sub(r"[^\w\- ]", "", plain).replace(" ", "-"))
    return found


def check_sentences(text):
    for line, kind, block in blocks(text):
        if kind != "text":
            continue
        for sentence in sentences(block):
            words = [word for word in sentence.split() if re.search(r"\w", word)]
            if len(words) > MOST_WORDS:
                yield line, f"a sentence of {len(words)} words: {' '.join(words[:8])} ..."


def check_links(path, text):
    for line, kind, block in blocks(text):
        if kind.startswith("code"):
            continue
        for target in re.findall(r"\]\(([^)\s]+)\)", block):
            if re.match(r"\w+:", target):
                continue
            name, _, anchor = target.partition("#")
            file = path.parent / name if name else path
            if not file.exists():
                yield line, f"a link to {target}, which does not exist"
            elif anchor and anchor not in anchors(file.read_text()):
                yield line, f"a link to {target}: {file.name} has no such heading"


def check_paths(root, text):
    """Files of the repository that are named, and programs that are built from one."""
    for line, kind, block in blocks(text):
        named = block if kind in ("code:", "code:sh") else " ".join(re.findall(r"`([^`]*)`", block))
        if kind.startswith("code:") and kind not in ("code:", "code:sh"):
            continue
        named = re.sub(r"(--(out|dump|html|layouts|trace) |TILEWRIGHT_DUMP=)\S+", "", named)
        for found in PATH.finditer(named):
            name = found.group(1)
            if not re.search(r"\b[A-Z]{3,}\b", name) and not any(root.glob(name)):
                yield line, f"{name}, which does not exist"
        for folder, program in BUILT.findall(named):
            source = {"bin": "tools", "examples": "examples", "bench": "bench"}.get(folder)
            stem = re.sub("^(example|bench)_", "", program)
            if source == "tools":
                missing = program != "tilewright"
            else:
                files = (f"{source}/{stem}.*", f"{source}/{stem}/main.cpp")
                missing = source and not any(any(root.glob(file)) for file in files)
            if missing:
                yield line, f"{program}, which no source builds"


def check_figures(root, text):
    """Figures of two decimals or more, which belong to a table of docs/performance.md alone."""
    held = set(re.findall(r"\b\d+\.\d{2,}\b", (root / "docs/performance.md").read_text()))
    for line, kind, block in blocks(text):
        if kind == "text":
            for figure in re.findall(r"(?<![\w.])\d+\.\d{2,}(?![\w.])", block):
                if figure in held:
                    yield line, f"{figure}, which docs/performance.md holds: link it"


def findings(root):
    for path in documents(root):
        text = path.read_text()
        found = [*check_links(path, text)]
        if not is_log(root, path):
            found += [*check_sentences(text), *check_paths(root, text)]
        if path == root / "README.md":
            found += check_figures(root, text)
        for line, what in sorted(found):
            yield f"{path.relative_to(root)}:{line}: {what}"


def report(root):
    """Prints what is found; whether there was nothing."""
    found = list(findings(root))
    for line in found:
        print(line)
    return not found
