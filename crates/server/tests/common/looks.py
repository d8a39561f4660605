"""Looks at pages in headless Chromium: what axe-core finds, and words that are laid out over two lines.

As a program it takes `{"axe": FILE, "pages": [URL]}` on standard input and looks at each page at 1280 and 420 pixels.
"""

import json
import shutil
import sys

from selenium import webdriver
from selenium.webdriver.chrome.service import Service

WIDTHS = [1280, 420]
# A word of at most 20 characters is on one line. A longer one is not broken within 20 letters, but between them, after a sign.
BROKEN_WORDS = r"""
const found = [];
const top = document.querySelector("dialog[open]") ?? document.body;
const isShown = (element) => element.checkVisibility({visibilityProperty: true}) && !element.closest("svg, .unseen, .skip");
const walker = document.createTreeWalker(top, NodeFilter.SHOW_TEXT);
const range = document.createRange();
for (let node = walker.nextNode(); node; node = walker.nextNode()) {
  if (!isShown(node.parentElement)) continue;
  for (const word of node.data.matchAll(/\S+/g)) {
    const parts = word[0].length <= 20 ? [[0, word[0]]] : Array.from(word[0].matchAll(/[\p{L}\p{M}\p{N}]+/gu), (part) => [part.index, part[0]]);
    for (const [place, part] of parts.filter(([, part]) => part.length <= 20)) {
      range.setStart(node, word.index + place);
      range.setEnd(node, word.index + place + part.length);
      const lines = new Set(Array.from(range.getClientRects()).filter((box) => box.width > 0).map((box) => Math.round(box.bottom)));
      if (lines.size > 1) found.push(`${part} in ${node.parentElement.outerHTML.slice(0, 150)}`);
    }
  }
}
for (const element of top.querySelectorAll("*:not(input)")) {
  const clips = ["hidden", "clip"].includes(getComputedStyle(element).overflowX) && element.clientWidth > 1;
  if (clips && isShown(element) && element.scrollWidth > element.clientWidth + 1) found.push(`cut off: ${element.outerHTML.slice(0, 150)}`);
}
return found;
"""
AXE = """
const done = arguments[0];
axe.run(document, {resultTypes: ['violations', 'incomplete']}).then(done, (error) => done({violations: [{id: String(error), nodes: []}]}));
"""


def browser():
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for argument in ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--window-size=1280,900"]:
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(service=Service(shutil.which("chromedriver")), options=options)
    driver.set_script_timeout(120)
    return driver


def narrow(driver, width, height=800):
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


def look_through(driver, axe, name):
    """axe-core finds nothing that is wrong, and no word is broken."""
    driver.execute_script(open(axe).read())
    found = driver.execute_async_script(AXE)
    wrong = [(one["id"], one["impact"], [node["html"][:200] + " " + (node.get("failureSummary") or "")[:300] for node in one["nodes"][:3]]) for one in found["violations"]]
    assert wrong == [], f"{name}: {json.dumps(wrong, indent=1)}"
    broken = driver.execute_script(BROKEN_WORDS)
    assert broken == [] or driver.execute_script("return innerWidth") < min(WIDTHS), f"{name}: {len(broken)} broken words: {json.dumps(broken[:20], indent=1)}"


def main():
    told = json.load(sys.stdin)
    driver = browser()
    # The pages forbid scripts.
    driver.execute_cdp_cmd("Page.setBypassCSP", {"enabled": True})
    try:
        for page in told["pages"]:
            for width in WIDTHS:
                narrow(driver, width)
                driver.get(page)
                look_through(driver, told["axe"], f"{page} at {width}")
    finally:
        driver.quit()
    print("all as expected")


if __name__ == "__main__":
    main()
