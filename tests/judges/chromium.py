"""Chromium (the distribution's, driven by playwright) shows report pages at three widths and in print; axe-core looks at their accessibility.
Where MULLIGAN_RELEASE names the folder that launch/release made, it opens the site from there, served by Python, and searches."""
import functools
import http.server
import os
import pathlib
import shutil
import subprocess
import threading

from judges.support import Row

JUDGE = "Chromium, axe-core"
NEEDS = ["playwright", "axe-playwright-python"]
FAULTS = ["wide-table"]

WIDTHS = (390, 820, 1440)
# What is searched in the site, and the page that must be among the first three results.
SEARCHED = {"key": ("budget_seconds", "configuration"), "command": ("generate", "commands"), "kernel": ("qk_norm_rope", "kernels"),
            "plugin's key": ("momentum_warmup_start", "plugin_keys"), "glossary word": ("tap", "glossary")}


def pages(context):
    """A run with quantisation and test-time training, a comparison of two runs, and the experiments' tables."""
    run, other = context.run("small"), context.run("other", "[train]\nsteps = 10\n")
    context.mulligan("quantize", run, "--quiet")
    context.mulligan("ttt", run / "artifact.mulligan", "--quiet")
    context.mulligan("report", run)
    context.mulligan("report", run, other, "--output", "comparison.html")
    return {"a run": run / "report.html", "two runs": context.scratch / "comparison.html"}


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def searches(context, browser, archive):
    """Rows of the site: each search at the narrowest and the widest width."""
    shutil.unpack_archive(archive, context.scratch / "site")
    (folder,) = (context.scratch / "site").iterdir()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    for width in (WIDTHS[0], WIDTHS[-1]):
        missing, said, wide = [], [], 0
        for kind, (words, wanted) in SEARCHED.items():
            page = browser.new_page(viewport={"width": width, "height": 900})
            page.on("console", lambda message: said.append(message.text) if message.type == "error" else None)
            page.goto(f"http://127.0.0.1:{server.server_port}/index.html")
            wide = max(wide, page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))
            if width < 960:  # a button opens the field there
                page.click("label.md-header__button[for=__search]")
            page.fill("input.md-search__input", words)
            page.wait_for_selector("a.md-search-result__link", timeout=20000)
            page.wait_for_timeout(500)  # results are put in one after the other
            first = [link.get_attribute("href") for link in page.query_selector_all("a.md-search-result__link")[:3]]
            if not any(f"docs/{wanted}.html" in link for link in first):
                missing.append(f"{kind} '{words}': {', '.join(link.rsplit('/', 1)[-1] for link in first)}")
            page.close()
        yield Row(f"the site at a width of {width}: searches for {', '.join(SEARCHED)} show the page that explains it",
                  "; ".join(missing) or "0 others", "0 others", not missing)
        yield Row(f"the site at a width of {width}: errors of the console, content beyond the width", f"{len(said)}{': ' + said[0] if said else ''}, {wide}",
                  "0, 0", not said and wide <= 0)
    server.shutdown()


def judge(context):
    from axe_playwright_python.sync_playwright import Axe
    from playwright.sync_api import sync_playwright
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if not program:
        raise RuntimeError("there is no Chromium (apt-get install chromium)")
    version = subprocess.run([program, "--version"], capture_output=True, text=True).stdout.split("built")[0].strip()
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
        for name, path in pages(context).items():
            said, wide, small = [], [], 0
            for width in WIDTHS:
                page = browser.new_page(viewport={"width": width, "height": 900})
                page.on("console", lambda message: said.append(message.text) if message.type in ("error", "warning") else None)
                page.on("pageerror", lambda error: said.append(str(error)))
                page.on("requestfailed", lambda request: said.append(f"{request.url} is missing"))
                page.goto(path.as_uri())
                if context.planted:
                    page.evaluate("document.body.insertAdjacentHTML('beforeend', '<div style=\"width:2000px\">x</div>')")
                beyond = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
                wide += [f"{beyond} pixels at {width}"] if beyond > 0 else []
                small = max(small, len(page.inner_text("body")))
                last = page if width == WIDTHS[-1] else page.close()
            yield Row(f"{name}, {version}, widths {', '.join(map(str, WIDTHS))}: messages of the console, missing files", f"{len(said)}"
                      f"{': ' + said[0] if said else ''}", "0", not said and small > 500)
            yield Row(f"{name}: content beyond the page's width", "; ".join(wide) or "none", "none", not wide)
            if not context.planted:
                print_bytes = len(last.pdf())
                violations = Axe().run(last).response["violations"]
                yield Row(f"{name}, in print: a PDF file", f"{print_bytes} bytes", "at least 10,000", print_bytes >= 10000)
                yield Row(f"{name}, axe-core: rules that are broken", f"{len(violations)}"
                          f"{': ' + ', '.join(v['id'] + ' (' + v['impact'] + ')' for v in violations) if violations else ''}", "0", not violations)
        archive = list(pathlib.Path(os.environ.get("MULLIGAN_RELEASE", "none")).glob("mulligan-*-site.tar.xz"))
        if archive and not context.planted:
            yield from searches(context, browser, archive[0])
        browser.close()
