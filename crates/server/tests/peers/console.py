"""Goes through the console in headless Chromium as a person would: tests/peers/console.rs starts it and says what there is."""

import json
import os
import sys
import traceback
import urllib.error
import urllib.request

from selenium.webdriver import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select, WebDriverWait

# Nothing is written beside the tests.
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../common"))
import looks

TOLD = json.load(sys.stdin)
KEYS = TOLD["keys"]
SHOTS = os.environ.get("RULEKEEP_CONSOLE_SHOTS")
# Such a character is never to be on the page as itself.
UNSEEN = "\u202e\u200b\u3164\ufeff"
WATCH = """
window.violations = [];
document.addEventListener("securitypolicyviolation", (event) => {
  window.violations.push(`${event.violatedDirective} ${event.blockedURI} ${event.sourceFile}`);
});
"""
# Answers in place of the server's, by how their path starts: `[status, body]`.
STAND_INS = """
window.standIns = {};
const ask = window.fetch;
window.fetch = async (path, options) => {
  const found = Object.entries(window.standIns).find(([start]) => path.startsWith(start));
  return found ? new Response(JSON.stringify(found[1][1]), {status: found[1][0]}) : ask(path, options);
};
"""
# A browser of before `context.source`.
NO_DIGITS = """
const parse = JSON.parse;
JSON.parse = (text, reviver) => parse(text, reviver && function (name, value) { return reviver.call(this, name, value); });
"""


def browser(dark=False):
    driver = looks.browser()
    driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": WATCH})
    scheme(driver, dark)
    return driver


def scheme(driver, dark):
    features = [
        {"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
        {"name": "prefers-reduced-motion", "value": "reduce"},
    ]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


def wide(driver):
    driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


class Page:
    def __init__(self, driver):
        self.driver = driver

    def one(self, css):
        return self.driver.find_element(By.CSS_SELECTOR, css)

    def all(self, css):
        return self.driver.find_elements(By.CSS_SELECTOR, css)

    def js(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def until(self, found, what, seconds=30):
        def look(_):
            try:
                return found()
            except Exception:  # an element that was replaced just now
                return False

        try:
            return WebDriverWait(self.driver, seconds, 0.05).until(look)
        except Exception:
            shot(self, "failed")
            body = self.js("return document.body.innerText")
            raise AssertionError(f"waited in vain for: {what}\nthe page said:\n{body[:3000]}") from None

    def text(self, css):
        return self.js("return document.querySelector(arguments[0])?.textContent ?? ''", css)

    def press(self, *keys):
        ActionChains(self.driver).send_keys(*keys).perform()

    def focused(self):
        return self.driver.switch_to.active_element

    def button(self, text, within="body"):
        for found in self.all(f"{within} button"):
            if found.text.strip() == text or found.get_attribute("aria-label") == text:
                return found
        raise AssertionError(f"no button {text!r}")

    def tab_to(self, wanted, most=80):
        """Goes on by the key Tab until the element that has the focus is the one that is wanted."""
        for _ in range(most):
            if wanted(self.focused()):
                return self.focused()
            self.press(Keys.TAB)
        raise AssertionError("the keyboard does not reach it")

    def go(self, view):
        self.one(f"#nav a[href='#{view}']").click()
        self.until(lambda: self.one("#view").get_attribute("data-view") == view, f"the view {view}")

    def open(self):
        self.driver.get(TOLD["url"] + "/")
        self.until(lambda: self.one("#login").is_displayed(), "the page to sign in")

    def sign_in(self, key):
        self.one("#key").clear()
        self.one("#key").send_keys(key, Keys.ENTER)

    def enter(self, key=None):
        self.open()
        self.sign_in(key or KEYS["admin"])
        self.until(lambda: self.one("#view").is_displayed(), "the first view")


def call(path, key=None, method="GET", body=None):
    headers = {"Authorization": f"Bearer {key or KEYS['admin']}", "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(TOLD["url"] + "/v1" + path, data, headers, method=method)
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def decide(agent="a", capability="document:read"):
    intent = {"agentId": agent, "parsedAction": "example_action", "riskLevel": "LOW", "requiredCapabilities": [capability], "context": {}}
    status, answer = call("/enforce", method="POST", body={"intent": intent})
    assert status == 200, answer
    return answer["proofId"]


def before_each_page(page, script):
    page.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": script})


def stand_in(page, start, status=None, body=None):
    """Answers so from now on, or as the server does."""
    if status is None:
        page.js("delete window.standIns[arguments[0]]", start)
    else:
        page.js("window.standIns[arguments[0]] = [arguments[1], arguments[2]]", start, status, body)


def shot(page, name):
    if SHOTS:
        page.driver.save_screenshot(os.path.join(SHOTS, f"{name}.png"))


def look_through(page, name):
    violations = page.js("return window.violations")
    assert violations == [], violations
    looks.look_through(page.driver, TOLD["axe"], name)
    # What a page says besides is nothing that axe-core does to it to look.
    page.js("window.violations = []")


def fits(page, name):
    """Nothing reaches out of the window to the side."""
    over = page.js("return document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert over <= 0, f"{name}: {over} px too wide"


# What is tried.


def signing_in_by_keyboard(page):
    page.open()
    look_through(page, "signing in")
    shot(page, "signin")
    assert page.focused().get_attribute("id") == "key"
    page.press("no key at all", Keys.ENTER)
    page.until(lambda: "not an API key" in page.text("#login-error"), "that it is no key")
    # What was typed is selected, so that it is typed over.
    page.press("rkp_admin_" + "0" * 72, Keys.ENTER)
    page.until(lambda: "refused" in page.text("#login-error"), "that the key is refused")
    assert page.focused().get_attribute("id") == "key"
    page.press(KEYS["agent"], Keys.ENTER)
    page.until(lambda: "not an administrator" in page.text("#login-error"), "that it is an agent's key")
    page.press(KEYS["admin"])
    page.tab_to(lambda at: at.text == "Sign in")
    page.press(Keys.SPACE)
    page.until(lambda: page.one("#view").is_displayed(), "the first view")
    assert page.focused().get_attribute("id") == "view-title"
    # The key is nowhere where it outlasts the page or is seen.
    kept = page.js(
        "return JSON.stringify([location.href, Object.entries(localStorage), Object.entries(sessionStorage), document.cookie,"
        " document.documentElement.outerHTML, document.getElementById('key').value])"
    )
    assert KEYS["admin"] not in kept
    # Tab goes through the views in their order; Enter opens one.
    page.tab_to(lambda at: at.text.startswith("Decisions") and at.tag_name == "a", 120)
    page.press(Keys.ENTER)
    page.until(lambda: page.text("#view-title") == "Decisions", "the decisions")
    page.driver.refresh()
    page.until(lambda: page.one("#login").is_displayed(), "the page to sign in, for the key is forgotten")


def the_overview(page):
    page.enter()
    page.go("overview")
    page.until(lambda: page.text(".whole").strip().startswith("healthy"), "the whole's health")
    rows = [row.text for row in page.all("#view tbody tr")]
    assert len(rows) == 5 and all("healthy" in row for row in rows), rows
    metrics = call("/admin/status")[1]["metrics"]
    for name in ["proofChainLength", "activeAgents", "escalationsToday"]:
        page.until(lambda: f"{metrics[name]:,}" in page.text("#view .tiles"), name)
    look_through(page, "overview")
    shot(page, "overview")


def text_is_first(page):
    """In a dialog the request text comes before the facts."""
    before = "const [text, facts] = ['pre', 'dl'].map((name) => document.querySelector(`dialog ${name}`)); return Boolean(text.compareDocumentPosition(facts) & 4)"
    assert page.text("dialog h3") == "Request text" and page.js(before), page.text("dialog")


def first_row(page):
    return page.text("#view tbody tr:first-child")


def the_decisions(page):
    page.enter()
    page.go("decisions")
    page.until(lambda: len(page.all("#view tbody tr")) == 25, "the newest decisions")
    total = TOLD["records"]
    said = page.text("#view .hint")
    assert "1 to 25 of" in said and int(said.split(" of ")[1].split(",  ")[0].split(", live")[0].replace(",", "")) > total, said
    look_through(page, "decisions")
    shot(page, "decisions")
    # A command shows with its action and tool; its details begin with the request text.
    row = next(row for row in page.all("#view tbody tr") if TOLD["longName"] in row.text)
    assert "read_file" in row.text and f"Bash {TOLD['command']}"[:40] in row.text, row.text
    row.find_element(By.CSS_SELECTOR, "button").click()
    page.until(lambda: page.all("dialog pre"), "the details of the command")
    assert TOLD["command"] in page.text("dialog pre")
    text_is_first(page)
    look_through(page, "details of a command")
    shot(page, "details-command")
    page.press(Keys.ESCAPE)
    # A new one comes by itself, and what has the focus keeps it.
    kept = page.one("#view tbody tr:nth-child(3) button")
    page.js("arguments[0].focus()", kept)
    # What is told stands for some seconds only; it is collected, to be seen for sure.
    page.js("window.told = []; new MutationObserver(() => window.told.push(document.getElementById('announcer').textContent)).observe(document.getElementById('announcer'), {childList: true})")
    newest = decide()
    page.until(lambda: page.one("#view tbody tr:first-child").get_attribute("data-id") == newest, "the new decision")
    assert page.focused() == kept
    page.until(lambda: page.js("return window.told.some((text) => text.includes('new decision'))"), "the announcement")
    # What becomes known of one comes too.
    call("/proof/outcome", method="POST", body={"proofId": newest, "outcome": "SUCCESS"})
    page.until(lambda: "SUCCESS" in first_row(page), "the outcome")
    # A pause holds it.
    page.button("Pause").click()
    page.until(lambda: "paused" in page.text("#view .hint"), "the pause")
    another = decide()
    page.button("Pause").click()
    page.until(lambda: page.one("#view tbody tr:first-child").get_attribute("data-id") == another, "what came in the pause")
    # Pages: behind the first, and back, with nothing doubled or left out.
    seen = page.js("return Array.from(document.querySelectorAll('#view tbody tr'), (row) => row.dataset.id)")
    page.button("Older").click()
    page.until(lambda: "26 to 50" in page.text("#view .hint"), "the second page")
    second = page.js("return Array.from(document.querySelectorAll('#view tbody tr'), (row) => row.dataset.id)")
    answer = call("/admin/records?pageSize=50")[1]["items"]
    assert seen[:25] + second == [record["id"] for record in answer]
    page.button("Older").click()
    page.until(lambda: "51 to 75" in page.text("#view .hint"), "the third page")
    page.button("Newer").click()
    page.until(lambda: "26 to 50" in page.text("#view .hint"), "the second page again")
    page.button("Newest").click()
    page.until(lambda: "live" in page.text("#view .hint"), "the first page again")
    # Filters.
    Select(page.one("#filter-decision")).select_by_value("DENY")
    page.until(lambda: len(page.all("#view tbody tr")) == 1 and "DENY" in first_row(page), "what was denied")
    Select(page.one("#filter-decision")).select_by_value("")
    page.one("#filter-agent").send_keys("bulk", Keys.ENTER)
    page.until(lambda: f"1 to 25 of {total:,}" in page.text("#view .hint"), "those of one agent")
    assert page.js("return performance.getEntriesByType('resource').every((one) => one.transferSize < 200000)")
    assert page.js("return document.querySelectorAll('#view tbody tr').length") == 25
    # Details, with the evidence; the focus stays in the dialog, and goes back.
    opener = page.one("#view tbody tr:nth-child(2) button")
    page.js("arguments[0].focus()", opener)
    page.press(Keys.ENTER)
    page.until(lambda: "document:read" in page.text("dialog pre"), "the evidence")
    look_through(page, "details")
    shot(page, "details")
    for _ in range(12):
        page.press(Keys.TAB)
        assert page.js("return document.activeElement.closest('dialog') !== null"), "the focus left the dialog"
    for _ in range(12):
        page.press(Keys.SHIFT + Keys.TAB)
        assert page.js("return document.activeElement.closest('dialog') !== null"), "the focus left the dialog"
    page.press(Keys.ESCAPE)
    page.until(lambda: page.all("dialog") == [], "the end of the dialog")
    assert page.focused() == opener
    page.one("#filter-agent").clear()
    page.one("#filter-agent").send_keys("nobody like that", Keys.ENTER)
    page.until(lambda: "No decisions match" in page.text("#view .hint"), "that there is none")


def the_escalations(page):
    page.enter()
    page.go("escalations")
    page.until(lambda: "of 32 pending" in page.text("#view .hint"), "what waits")
    page.until(lambda: page.text("#waiting").strip() == "32", "the number beside the view's name")
    look_through(page, "escalations")
    shot(page, "escalations")
    page.button("Older").click()
    page.until(lambda: "26 to 32" in page.text("#view .hint"), "the second page")
    page.button("Newer").click()
    page.until(lambda: "1 to 25" in page.text("#view .hint"), "the first page")
    of_a = page.until(lambda: next(row for row in page.all("#view tbody tr") if row.find_element(By.CSS_SELECTOR, "td").text.split("\n")[-1] == "a"), "that of the agent a")
    assert "send_email" in of_a.text, of_a.text
    pending = call("/admin/escalations?state=pending&agentId=a")[1]["items"][0]
    # All by keyboard.
    page.js("arguments[0].focus()", of_a.find_element(By.CSS_SELECTOR, "button"))
    page.press(Keys.ENTER)
    page.until(lambda: pending["digest"] in page.text("dialog"), "the escalation")
    assert "ann@example.org" in page.text("dialog pre") and "mail-lead" in page.text("dialog")
    look_through(page, "an escalation")
    shot(page, "escalation")
    page.tab_to(lambda at: at.text == "Approve")
    page.press(Keys.ENTER)
    page.until(lambda: "name is missing" in page.text("#review-error"), "that a name is missing")
    assert page.focused().get_attribute("id") == "reviewer"
    page.press("somebody else", Keys.TAB, "seen <b>the order</b>")
    page.tab_to(lambda at: at.text == "Approve")
    page.press(Keys.ENTER)
    page.until(lambda: len(page.text("#review-error")) > 5, "that somebody else is not asked")
    assert call(f"/escalations/{pending['id']}")[1]["state"] == "pending"
    page.one("#reviewer").clear()
    page.one("#reviewer").send_keys("mail-lead")
    page.button("Approve", "dialog").click()
    page.until(lambda: "state is now approved" in page.text("dialog"), "the approval")
    page.press(Keys.ESCAPE)
    page.until(lambda: "of 31 pending" in page.text("#view .hint"), "one less")
    resolved = call(f"/escalations/{pending['id']}")[1]
    vote = resolved["votes"][0]
    assert (resolved["state"], vote["reviewer"], vote["note"]) == ("approved", "mail-lead", "seen <b>the order</b>"), resolved
    # One is rejected; the name is still there.
    row = page.until(lambda: next(row for row in page.all("#view tbody tr") if row.find_element(By.CSS_SELECTOR, "td").text.split("\n")[-1] == "b"), "one of the agent b")
    rejected = row.get_attribute("data-id")
    row.find_element(By.CSS_SELECTOR, "button").click()
    page.until(lambda: page.one("#reviewer").get_attribute("value") == "mail-lead", "the name again")
    page.button("Reject", "dialog").click()
    page.until(lambda: "state is now rejected" in page.text("dialog"), "the rejection")
    page.button("Close", "dialog").click()
    assert call(f"/escalations/{rejected}")[1]["state"] == "rejected"
    # One that somebody else answers meanwhile.
    row = page.until(lambda: next(row for row in page.all("#view tbody tr") if row.get_attribute("data-id") != rejected and row.find_element(By.CSS_SELECTOR, "td").text.split("\n")[-1] == "b"), "another of b")
    taken = row.get_attribute("data-id")
    row.find_element(By.CSS_SELECTOR, "button").click()
    page.until(lambda: page.all("dialog #reviewer"), "the escalation")
    assert call(f"/admin/escalations/{taken}/reject", method="POST", body={"reviewer": "mail-lead"})[0] == 200
    page.button("Approve", "dialog").click()
    page.until(lambda: len(page.text("#review-error")) > 5, "that it was answered")
    assert call(f"/escalations/{taken}")[1]["state"] == "rejected"
    page.press(Keys.ESCAPE)


def an_agent(page):
    page.enter()
    page.go("agent")
    page.until(lambda: "1 to 25 of 66" in page.text("#view"), "all agents")
    page.button("Next agents").click()
    page.until(lambda: "26 to 50 of 66" in page.text("#view"), "more agents")
    page.one("#agent-id").send_keys("a", Keys.ENTER)
    page.until(lambda: page.all("svg.curve path.line"), "the curve")
    history = call("/agents/a/trust?pageSize=100")[1]
    assert len(page.all(".picture svg")) == 1
    table = page.text("#view table")
    assert history["total"] > 10 and f"{history['items'][0]['from']} → {history['items'][0]['to']}" in table
    label = page.one("svg.curve").get_attribute("aria-label")
    assert f"{history['total']} changes" in label and "table" in label, label
    # The curve ends where the score is.
    path = page.one("svg.curve path.line").get_attribute("d")
    assert path.count("V") == history["total"] and f"V{12 + (1 - history['items'][0]['to'] / 1000) * 220:.1f}" in path, path
    agent = call("/agents/a")[1]
    page.until(lambda: f"{agent['tier']} {agent['tierName']}" in page.text("#view .tiles"), "the tier")
    look_through(page, "agent")
    shot(page, "agent")
    page.one("#agent-id").clear()
    page.one("#agent-id").send_keys("with/slash?and#hash", Keys.ENTER)
    page.until(lambda: page.text("#agent-title") == "with/slash?and#hash" and "724" in page.text("#view .tiles"), "a name with signs of addresses")
    page.one("#agent-id").clear()
    page.one("#agent-id").send_keys("nobody", Keys.ENTER)
    page.until(lambda: "nobody" in page.text("#view .error"), "that there is none")
    page.one("#agent-id").clear()
    page.one("#agent-id").send_keys("..", Keys.ENTER)
    page.until(lambda: "cannot be used in an address" in page.text("#view .error"), "that the name cannot be asked for")


def the_chain(page):
    page.enter()
    page.go("chain")
    length = call("/admin/status")[1]["metrics"]["proofChainLength"]
    page.until(lambda: f"{length:,}" in page.text("#view .tiles"), "the length")
    page.button("Verify the whole chain").click()
    page.until(lambda: "The whole chain verifies" in page.text("#view"), "the verification", 300)
    checked = call("/admin/verification")[1]
    assert checked["headHash"] in page.text("#view") and f"{checked['records']:,}" in page.text("#view")
    look_through(page, "chain")
    shot(page, "chain")


def hostile_texts(page):
    page.enter()

    def is_harmless(where, marked="<img src=x onerror=\"window.hacked=1\">\\u{202e}live\\u{200b}\\u{3164}\\u{feff}&lt;b&gt;"):
        assert page.js("return window.hacked") is None, where
        assert page.all("main img, dialog img, main script, main b, dialog b") == [], where
        text = page.js("return document.body.textContent + Array.from(document.querySelectorAll('[aria-label]'), (one) => one.ariaLabel).join()")
        assert not any(character in text for character in UNSEEN), where
        # JSON has a backslash before each quotation mark.
        assert marked in text.replace('\\"', '"'), where
        fits(page, where)

    page.go("decisions")
    page.one("#filter-agent").send_keys("x")
    page.js("arguments[0].value = arguments[1]; arguments[0].form.requestSubmit()", page.one("#filter-agent"), TOLD["hostileName"])
    page.until(lambda: "<img" in first_row(page) and "1 to 2 of 2" in page.text("#view .hint"), "the hostile agent's decisions")
    is_harmless("decisions", TOLD["hostileName"])
    page.one("#view tbody tr:nth-child(2) button").click()
    page.until(lambda: "<img" in page.text("dialog pre"), "the hostile evidence")
    is_harmless("details")
    shot(page, "hostile-details")
    page.button("Show this agent").click()
    page.until(lambda: page.one("#view").get_attribute("data-view") == "agent" and "note <img" in page.text("#view table"), "the hostile agent")
    is_harmless("agent")
    look_through(page, "hostile agent")
    shot(page, "hostile-agent")
    page.go("escalations")
    page.until(lambda: "<img" in page.text("#view tbody"), "the hostile escalation")
    is_harmless("escalations", TOLD["hostileName"])
    next(row for row in page.all("#view tbody tr") if "<img" in row.text).find_element(By.CSS_SELECTOR, "button").click()
    page.until(lambda: "ann@example.org" in page.text("dialog pre") and "<img" in page.text("dialog pre"), "the hostile text that was asked")
    text_is_first(page)
    assert "<img" in page.all("dialog pre")[1].text and "send_email" in page.all("dialog pre")[1].text, "what was parsed of it"
    is_harmless("escalation")
    shot(page, "hostile-escalation")
    page.js("document.getElementById('reviewer').value = arguments[0]", TOLD["hostile"])
    page.button("Reject", "dialog").click()
    page.until(lambda: len(page.text("#review-error")) > 5, "that it may not answer")
    is_harmless("a refusal")
    page.press(Keys.ESCAPE)


def narrow_and_large(page):
    page.enter()
    for dark in [False, True]:
        scheme(page.driver, dark)
        for view in ["overview", "decisions", "escalations", "agent", "chain"]:
            page.go(view)
            if view == "agent":
                page.one("#agent-id").clear()
                page.one("#agent-id").send_keys("a", Keys.ENTER)
                page.until(lambda: page.all("svg.curve"), "the curve")
            if view in ["decisions", "escalations"]:
                page.until(lambda: len(page.all("#view tbody tr")) == 25, "rows")
            # 640 wide is 1280 at 200 %.
            for width in [320, 420, 640, 1280]:
                looks.narrow(page.driver, width)
                name = f"{view}-{width}{'-dark' if dark else ''}"
                page.until(lambda: page.js("return document.documentElement.scrollWidth <= document.documentElement.clientWidth"), f"{name} fits", 10)
                if width != 640:
                    look_through(page, name)
                shot(page, name)
                if view in ["decisions", "escalations"] and width < 640:
                    page.one("#view tbody button").click()
                    page.until(lambda: page.all("dialog pre"), "the dialog")
                    fits(page, name)
                    look_through(page, f"{name} dialog")
                    shot(page, f"{name}-dialog")
                    page.press(Keys.ESCAPE)
        wide(page.driver)
    scheme(page.driver, False)


def connection(page, is_there):
    network = {"offline": not is_there, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
    page.driver.execute_cdp_cmd("Network.enable", {})
    page.driver.execute_cdp_cmd("Network.emulateNetworkConditions", network)


def a_lost_connection(page):
    page.enter()
    page.go("decisions")
    page.until(lambda: len(page.all("#view tbody tr")) == 25, "rows")
    connection(page, False)
    page.until(lambda: "connection to the server is lost" in page.text("#banner-text"), "that the connection is lost")
    look_through(page, "lost")
    shot(page, "lost")
    assert len(page.all("#view tbody tr")) == 25
    newest = decide()
    connection(page, True)
    page.until(lambda: page.one("#view tbody tr:first-child").get_attribute("data-id") == newest, "that it goes on")
    page.until(lambda: not page.one("#banner").is_displayed(), "the end of the banner")
    # An answer to an escalation that is lost on the way is told, and sent again counts once.
    page.go("escalations")
    page.until(lambda: page.all("#view tbody tr"), "escalations")
    row = next(row for row in page.all("#view tbody tr") if row.find_element(By.CSS_SELECTOR, "td").text.split("\n")[-1] == "b")
    identity = row.get_attribute("data-id")
    row.find_element(By.CSS_SELECTOR, "button").click()
    page.until(lambda: page.all("dialog #reviewer"), "the dialog")
    page.one("#reviewer").send_keys("mail-lead")
    connection(page, False)
    page.button("Approve", "dialog").click()
    page.until(lambda: "Send it again" in page.text("#review-error"), "that no answer came")
    connection(page, True)
    page.button("Approve", "dialog").click()
    page.until(lambda: "state is now approved" in page.text("dialog"), "the approval")
    assert len(call(f"/escalations/{identity}")[1]["votes"]) == 1
    page.press(Keys.ESCAPE)
    # Signing in waits for the connection too.
    page.button("Sign out").click()
    page.until(lambda: page.one("#login").is_displayed(), "signed out")
    connection(page, False)
    page.sign_in(KEYS["admin"])
    page.until(lambda: "connection to the server is lost" in page.text("#banner-text"), "that the connection is lost")
    connection(page, True)
    page.until(lambda: page.one("#view").is_displayed(), "signed in")


def too_many(page):
    page.enter(KEYS["free"])
    page.go("decisions")
    page.until(lambda: len(page.all("#view tbody tr")) == 25, "rows")
    asked = [call("/admin/status", KEYS["free"])[0] for _ in range(14)]
    assert 429 in asked, asked

    def press_on():
        call("/admin/status", KEYS["free"])
        return "asks to wait" in page.text("#banner-text")

    page.until(press_on, "that the server asks to wait")
    look_through(page, "busy")
    shot(page, "busy")
    newest = decide()
    page.until(lambda: page.one("#view tbody tr:first-child").get_attribute("data-id") == newest, "that it goes on")
    page.until(lambda: not page.one("#banner").is_displayed(), "the end of the banner")


def a_key_that_ends(page):
    page.enter(KEYS["revoked"])
    page.go("decisions")
    page.until(lambda: len(page.all("#view tbody tr")) == 25, "rows")
    assert call(f"/admin/keys/{KEYS['revokedId']}", method="DELETE")[0] == 200
    page.until(lambda: "revoked or has expired" in page.text("#login-error"), "that the key has ended")
    assert page.text("#view") == "" and page.focused().get_attribute("id") == "key"


def numbers_beyond_doubles(page):
    account = 2**53 + 1
    intent = {
        "agentId": "b", "parsedAction": "send_email", "riskLevel": "MEDIUM", "requiredCapabilities": ["email:send"],
        "context": {"account": account, "deep": [{"owed": -account}], "rate": 80.0, "count": 7},
    }
    status, asked = call("/enforce", method="POST", body={"intent": intent})
    assert (status, asked["decision"]) == (200, "ESCALATE"), asked
    identity = asked["proofId"].replace("prf_", "esc_")

    def review():
        page.enter()
        page.go("escalations")
        page.until(lambda: page.one(f"#view tr[data-id='{identity}'] button").click() is None, "the escalation")
        page.until(lambda: '"account"' in page.text("dialog pre"), "what is asked for")
        return page.text("dialog pre")

    shown = review()
    for exactly in [f'"account": {account},', f'"owed": -{account}\n', '"rate": 80.0', '"count": 7']:
        assert exactly in shown, shown
    page.press(Keys.ESCAPE)
    page.go("decisions")
    page.until(lambda: page.one(f"#view tr[data-id='{asked['proofId']}'] button").click() is None, "the decision")
    page.until(lambda: f'"account": {account},' in page.text("dialog pre"), "its evidence with the number")
    page.press(Keys.ESCAPE)
    # A browser that does not hand the digits out says so beside the number, and beside no other.
    before_each_page(page, NO_DIGITS)
    shown = review()
    assert f'"account": {account - 1} (approximate: this browser does not provide the exact digits)' in shown, shown
    assert shown.count("(approximate") == 2 and '"count": 7' in shown, shown
    assert call(f"/admin/escalations/{identity}/reject", method="POST", body={"reviewer": "mail-lead"})[0] == 200


def refusals_of_the_server(page):
    refusal = {"success": False, "error": {"code": "CHAIN_BROKEN", "message": "entry 7 cannot be read"}}
    told = "entry 7 cannot be read (CHAIN_BROKEN)"
    shown = {
        "decisions": lambda: len(page.all("#view tbody tr")) == 25,
        "escalations": lambda: len(page.all("#view tbody tr")) > 0,
        "agent": lambda: page.all("svg.curve path.line") and "1 to 25 of 66" in page.text("#view"),
        "chain": lambda: page.text("#view .tiles").strip() and "–" not in page.text("#view .tiles"),
        "overview": lambda: page.text(".whole").strip().startswith("healthy"),
    }
    before_each_page(page, STAND_INS)
    page.enter()
    for view, is_there in shown.items():
        stand_in(page, "/v1/", 503, refusal)
        page.go(view)
        if view == "agent":
            page.one("#agent-id").send_keys("a", Keys.ENTER)
        lines = "return Array.from(document.querySelectorAll('#view .error'), (line) => line.textContent).filter((text) => text !== '')"
        page.until(lambda: page.js(lines) == [told] * (2 if view == "agent" else 1), f"what is wrong, in {view}")
        assert "Asking" not in page.text("#view"), view
        look_through(page, f"a refusal in {view}")
        shot(page, f"refusal-{view}")
        stand_in(page, "/v1/")
        page.until(is_there, f"that {view} goes on")
        page.until(lambda: page.js(lines) == [], f"that nothing is wrong any more, in {view}")
    # What was there stays, beside what is wrong now.
    page.go("escalations")
    page.until(shown["escalations"], "escalations")
    stand_in(page, "/v1/admin/escalations", 503, refusal)
    page.until(lambda: told in page.text("#view .error"), "what is wrong now")
    assert shown["escalations"]() and "pending" in page.text("#view .hint")
    page.go("decisions")
    stand_in(page, "/v1/proof/records/", 503, refusal)
    page.until(lambda: page.one("#view tbody button").click() is None, "details")
    page.until(lambda: told in page.text("dialog .error"), "what is wrong with the details")
    stand_in(page, "/v1/proof/records/")
    page.until(lambda: page.all("dialog pre"), "the details")
    page.press(Keys.ESCAPE)


def one_that_cannot_be_read(page):
    found = call("/admin/escalations?state=pending&agentId=b&pageSize=2")[1]
    bad, other = found["items"]
    bad.update(intent=None, unreadable="its evidence <b>was erased</b>")
    before_each_page(page, STAND_INS)
    page.enter()
    stand_in(page, "/v1/admin/escalations?", 200, found)
    stand_in(page, f"/v1/escalations/{bad['id']}", 200, bad)
    page.go("escalations")
    page.until(lambda: len(page.all("#view tbody tr")) == 2, "both")
    assert "cannot be read" in page.text(f"#view tr[data-id='{bad['id']}']") and "send_email" in page.text(f"#view tr[data-id='{other['id']}']")
    page.one(f"#view tr[data-id='{bad['id']}'] button").click()
    page.until(lambda: "rejected but not approved: its evidence <b>was erased</b>." in page.text("dialog"), "why it cannot be read")
    assert [found.text for found in page.all("dialog form button")] == ["Reject"]
    look_through(page, "one that cannot be read")
    shot(page, "unreadable")
    page.one("#reviewer").send_keys("mail-lead")
    page.button("Reject", "dialog").click()
    page.until(lambda: "state is now rejected" in page.text("dialog"), "the rejection")
    page.press(Keys.ESCAPE)


def numbers_and_nouns(page):
    page.open()
    script = """
    const done = arguments[0];
    Promise.all([import("/console/dom.js"), import("/console/overview.js")]).then(([{percent, plural, foreign}, {milliseconds}]) => done([
      [0, 0.0004, 0.5, 0.9996, 1].map(percent), [0, 1, 2000].map((count) => plural(count, "agent")),
      [0.0123, 0.9999, 1234.5].map(milliseconds), foreign("one two three", 9).textContent,
    ]), (error) => done(String(error)));
    """
    shown = page.driver.execute_async_script(script)
    assert shown == [
        ["0 %", "<0.1 %", "50 %", ">99.9 %", "100 %"], ["0 agents", "1 agent", "2,000 agents"], ["12.3 µs", "1 ms", "1,230 ms"], "one two…",
    ], shown


TRIED = [
    numbers_and_nouns, signing_in_by_keyboard, the_overview, the_decisions, the_escalations, an_agent, the_chain, hostile_texts,
    narrow_and_large, a_lost_connection, too_many, a_key_that_ends, numbers_beyond_doubles, refusals_of_the_server,
    one_that_cannot_be_read,
]


def main():
    wanted = os.environ.get("RULEKEEP_CONSOLE_ONLY", "").split()
    failed = 0
    for tried in TRIED:
        if wanted and tried.__name__ not in wanted:
            continue
        print(tried.__name__, flush=True)
        # A browser of its own for each: what one leaves behind does not help the next.
        driver = browser()
        try:
            page = Page(driver)
            tried(page)
            violations = page.js("return window.violations")
            assert violations == [], violations
            errors = [entry["message"] for entry in driver.get_log("browser") if entry["level"] == "SEVERE"]
            # Refusals that were asked for, and the connection that was cut.
            strange = [error for error in errors if "Failed to load resource" not in error]
            assert strange == [], strange
        except Exception:
            failed += 1
            print(traceback.format_exc(limit=-3), flush=True)
        finally:
            driver.quit()
    print(f"{failed} failed" if failed else "all as expected")
    sys.exit(failed)


main()
