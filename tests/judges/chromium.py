"""Chromium (the distribution's, driven by playwright) shows report pages at three widths and in print; axe-core looks at their accessibility."""
import shutil
import subprocess

from judges.support import Row

JUDGE = "Chromium, axe-core"
NEEDS = ["playwright", "axe-playwright-python"]
FAULTS = ["wide-table"]

WIDTHS = (390, 820, 1440)


def pages(context):
    """A run with quantisation and test-time training, a comparison of two runs, and the experiments' tables."""
    run, other = context.run("small"), context.run("other", "[train]\nsteps = 10\n")
    context.mulligan("quantize", run, "--quiet")
    context.mulligan("ttt", run / "artifact.mulligan", "--quiet")
    context.mulligan("report", run)
    context.mulligan("report", run, other, "--output", "comparison.html")
    return {"a run": run / "report.html", "two runs": context.scratch / "comparison.html"}


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
        browser.close()
