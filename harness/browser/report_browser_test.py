# SPDX-License-Identifier: Apache-2.0
"""report.html in a real browser: light and dark, wide and narrow, by keyboard, without network.

    report_browser_test.py QKCTS CORPUS [SCREENSHOT_FOLDER]

Exit code 77 (ctest: skipped) where no Chromium is installed.
"""
import os
import subprocess
import sys
import tempfile
import unittest

import chromium

QKCTS, CORPUS = sys.argv[1:3]
SCREENSHOTS = sys.argv[3] if len(sys.argv) > 3 else None

# Smallest contrast of any text against what lies behind it, by the formula of WCAG 2.
CONTRAST = """(() => {
  const parse = text => { const m = text.match(/[\\d.]+/g).map(Number); return m.length < 4 ? [...m, 1] : m; };
  const light = c => { const f = x => (x /= 255) <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4;
    return 0.2126 * f(c[0]) + 0.7152 * f(c[1]) + 0.0722 * f(c[2]); };
  const behind = e => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor);
    if (c[3] > 0) return c; } return parse(getComputedStyle(document.body).backgroundColor); };
  let worst = [99, ""];
  for (const e of document.querySelectorAll("body *")) {
    if (![...e.childNodes].some(n => n.nodeType == 3 && n.data.trim()) || !e.getClientRects().length) continue;
    const svg = e instanceof SVGElement;
    if (svg && e.tagName != "text") continue;
    const a = light(parse(svg ? getComputedStyle(e).fill : getComputedStyle(e).color)), b = light(behind(e));
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < worst[0]) worst = [ratio, e.tagName + "." + e.className + ": " + e.textContent.slice(0, 40)];
  }
  return worst;
})()"""

OPEN_ALL = "document.querySelectorAll('details').forEach(d => d.open = true)"


def faults(browser, url, width, scheme):
    """What is wrong with the page, as a list of sentences."""
    browser.open(url, width, scheme)
    browser.evaluate(OPEN_ALL)
    found = []
    contrast, where = browser.evaluate(CONTRAST)
    if contrast < 4.5:
        found.append(f"contrast {contrast:.2f} of {where}")
    overflow = browser.evaluate("document.documentElement.scrollWidth - innerWidth")
    if overflow > 0:
        found.append(f"{overflow} pixels wider than a window of {width}")
    for event in browser.events:
        method, parameters = event.get("method"), event.get("params", {})
        if method == "Network.requestWillBeSent" and parameters["request"]["url"] != url:
            found.append("asks for " + parameters["request"]["url"])
        if method == "Log.entryAdded":
            found.append("console: " + parameters["entry"]["text"])
        if method == "Runtime.exceptionThrown":
            found.append("exception")
    return found


class ReportInABrowser(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.browser = chromium.Chromium(chromium.find())
        report = os.path.join(cls.folder.name, "report")
        adequacy = os.path.join(cls.folder.name, "adequacy.json")
        # Passing, failing and mistrusted cases on one page, with a kill matrix and a contract beside.
        subprocess.run([QKCTS, "run", "mutants?mutant=eps_outside_sqrt", CORPUS, "-o", report], stdout=subprocess.DEVNULL)
        subprocess.run([QKCTS, "adequacy", CORPUS, "--class", "QK-EPS", "--format", "json", "-o", adequacy],
                       stdout=subprocess.DEVNULL)
        cls.page = os.path.join(cls.folder.name, "page.html")
        subprocess.run([QKCTS, "report", os.path.join(report, "run.json"), "--html", cls.page, "--adequacy", adequacy,
                        "--against", "plain_sdpa"], check=True)
        cls.url = "file://" + cls.page

    @classmethod
    def tearDownClass(cls):
        cls.browser.__exit__()
        cls.folder.cleanup()

    def test_is_readable_in_both_schemes_and_widths(self):
        papers = set()
        for scheme in ("light", "dark"):
            for width in (1280, 360):
                with self.subTest(scheme=scheme, width=width):
                    self.assertEqual(faults(self.browser, self.url, width, scheme), [])
            papers.add(self.browser.evaluate("getComputedStyle(document.body).backgroundColor"))
            if SCREENSHOTS:
                self.browser.open(self.url, 1280, scheme)
                height = self.browser.evaluate("document.documentElement.scrollHeight")
                self.browser.screenshot(os.path.join(SCREENSHOTS, f"report_{scheme}.png"), min(height, 6000))
        self.assertEqual(len(papers), 2)

    def test_faults_would_be_seen(self):
        with open(self.page) as file:
            page = file.read()
        broken = {
            "contrast": page.replace("--ink: #1c2126", "--ink: #c0c0c0"),
            "pixels wider": page.replace("<main>", "<main><div style='width: 3000px'>wide</div>", 1),
            "console": page.replace("<main>", "<main><script>throw 1</script>", 1),
            "asks for": page.replace("default-src 'none'", "default-src 'self' file: http:").replace(
                "<main>", "<main><img src='file:///qkcts-absent.png'>", 1),
        }
        for fault, text in broken.items():
            path = os.path.join(self.folder.name, "broken.html")
            with open(path, "w") as file:
                file.write(text)
            found = faults(self.browser, "file://" + path, 1280, "light")
            self.assertTrue(any(fault in one for one in found), f"{fault} was not seen: {found}")

    def test_every_section_is_reached_and_opened_by_keyboard(self):
        self.browser.open(self.url, 1280, "light")
        wanted = self.browser.evaluate("document.querySelectorAll('summary').length")
        self.assertGreater(wanted, 3)
        self.browser.press("Tab", 9)
        first = self.browser.evaluate("document.activeElement.className + ' ' + getComputedStyle(document.activeElement).left")
        self.assertEqual(first.split()[0], "skip")
        self.assertFalse(first.split()[1].startswith("-"), "the skip link stays out of sight")
        opened = 0
        for _ in range(400):
            self.browser.press("Tab", 9)
            name, outline = self.browser.evaluate(
                "[document.activeElement.tagName, getComputedStyle(document.activeElement).outlineStyle]")
            if name == "BODY":
                break
            self.assertNotEqual(outline, "none", name)
            if name == "SUMMARY":
                self.browser.press("Enter", 13)
                self.assertTrue(self.browser.evaluate("document.activeElement.parentElement.open"))
                opened += 1
                self.browser.press("Enter", 13)
        self.assertEqual(opened, wanted)

    def test_figures_have_a_size_and_a_name(self):
        self.browser.open(self.url, 1280, "light")
        sizes = self.browser.evaluate(
            "[...document.querySelectorAll('svg[role=img]')].map(s => [s.getAttribute('aria-label').length,"
            " s.getBoundingClientRect().width, s.getBoundingClientRect().height])")
        self.assertGreater(len(sizes), 8)
        for label, width, height in sizes:
            self.assertGreater(label, 10)
            self.assertGreater(min(width, height), 50)


if __name__ == "__main__":
    if chromium.find() is None:
        print("not run: no Chromium is installed (Debian: apt-get install chromium-headless-shell)")
        sys.exit(77)
    unittest.main(argv=[sys.argv[0]])
