#!/usr/bin/env python3
"""The notebook, whose cells run without a GPU and without any package, and the site's pages."""

import ast
import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))

import tilewright  # noqa: E402


class Notebook(unittest.TestCase):
    def test_its_cells_run(self):
        """What a cell ends with is an object that a notebook shows."""
        notebook = json.loads((ROOT / "docs/notebook/first_steps.ipynb").read_text())
        names, shown = {}, 0
        for cell in notebook["cells"]:
            if cell["cell_type"] != "code":
                continue
            self.assertEqual(cell["outputs"], [])
            tree = ast.parse("".join(cell["source"]))
            last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
            exec(compile(tree, "cell", "exec"), names)
            if last is not None:
                value = eval(compile(ast.Expression(last.value), "cell", "eval"), names)
                self.assertTrue(str(value))
                if hasattr(value, "_repr_html_"):
                    self.assertIn("<", value._repr_html_())
                shown += 1
        self.assertGreater(shown, 4)


class Site(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.keeper = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.keeper.cleanup)
        cls.folder = pathlib.Path(cls.keeper.name)
        subprocess.run([sys.executable, str(ROOT / "scripts/site"), "--pages", cls.keeper.name],
                       check=True)
        cls.pages = cls.folder / "pages"

    def test_all_interfaces_have_pages(self):
        said = (self.pages / "api/python/tilewright.md").read_text()
        for name in tilewright.__all__:
            self.assertIn(f"\n## {name}\n", said)
        operators = (self.pages / "api/python/tilewright.torch.md").read_text()
        self.assertIn("## attention\n\n```python\nattention(q, k, v, *, causal=False", operators)
        self.assertIn("the last query sees the last key", operators)
        headers = {str(path.relative_to(ROOT / "include"))
                   for path in (ROOT / "include/tilewright").rglob("*.h")}
        self.assertEqual(headers, {str(path.relative_to(self.pages / "api"))[:-2] + "h"
                                   for path in (self.pages / "api/tilewright").rglob("*.md")})
        of_c = (self.pages / "api/tilewright/c_api.md").read_text()
        self.assertIn("tilewright_kernel_create", of_c)

    def test_links_lead_somewhere(self):
        fence = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
        found = 0
        for page in self.pages.rglob("*.md"):
            for link in re.findall(r"\]\(([^)#\s]+)", fence.sub("", page.read_text())):
                if re.match("[a-z]+:", link):
                    continue
                self.assertTrue((page.parent / link).exists(), f"{page}: {link}")
                found += 1
        self.assertGreater(found, 50)

    @unittest.skipUnless(importlib.util.find_spec("material"), "there is no mkdocs-material")
    def test_it_is_built(self):
        subprocess.run([sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet",
                        "--config-file", str(self.folder / "mkdocs.yml")], check=True,
                       env={**os.environ, "NO_MKDOCS_2_WARNING": "1"})
        html = (self.folder / "html/index.html").read_text()
        self.assertIn("Tilewright", html)
        # Nothing comes from elsewhere when a page is read.
        fetched = re.findall(r"<(?:script|link|img)[^>]*(?:src|href)=\"https?://[^\"]*", html)
        self.assertEqual(fetched, [])


if __name__ == "__main__":
    unittest.main()
