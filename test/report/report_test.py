"""Opens report pages in headless Chromium, works through every section, and fails on anything that
is logged, thrown or requested. usage: report_test.py HONE SOURCE_DIR [--screenshots DIR]

Pages: the demo model, the four models when they are there (HONE_MODELS, else beside the sources), a
strategy that fails, a plan file, and a model whose names try to break out."""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import onnx_writer
from browser import Browser, find_chromium

MODELS = ("ultraface_rfb_320", "squeezenet_fp16", "silero_vad", "magika_v3_3")
MOST_BYTES = 2_000_000
SIZES = ((1280, 900, False), (390, 844, True))  # a window, and a phone in dark colours
SECTIONS = ["overview", "graph", "kernels", "timeline", "memory", "errors", "compilation", "machine"]

failures = []


def expect(condition, what):
    if not condition:
        failures.append(what)
        print("FAILED:", what, flush=True)


def hone(args, *words):
    command = [args.hone, *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    expect(done.returncode == 0, f"{' '.join(command)}: {done.returncode}\n{done.stderr}")
    return done


# ---- what a reader does, as scripts in the page

# Text that is too pale for its background (WCAG AA: 4.5, large text 3). Backgrounds are composed.
CONTRAST = """(() => {
  const parse = (c) => { const m = c.match(/[\\d.]+/g).map(Number); return m.length > 3 ? m : [...m, 1]; };
  const over = (top, below) => top.slice(0, 3).map((v, i) => v * top[3] + below[i] * (1 - top[3]));
  const light = (c) => { const [r, g, b] = c.map((v) => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const background = (e) => { const layers = [];
    for (; e; e = e.parentElement) layers.push(parse(getComputedStyle(e).backgroundColor));
    return layers.reverse().reduce((below, top) => over(top, below), [255, 255, 255]); };
  const bad = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let t; (t = walker.nextNode());) {
    const e = t.parentElement;
    if (!t.data.trim() || e.closest('svg, script, noscript, [hidden], .unseen, :disabled') || !e.getClientRects().length) continue;
    const style = getComputedStyle(e), back = background(e);
    const a = light(over(parse(style.color), back)), b = light(back);
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    const large = parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.6 && style.fontWeight >= 700);
    if (ratio < (large ? 3 : 4.5)) bad.push(`${ratio.toFixed(2)}: ${t.data.trim().slice(0, 40)}`);
  }
  return bad.slice(0, 5);
})()"""

# Every pass is looked at, every change of it stepped to, some nodes chosen, rules highlighted.
GRAPH = """(async () => {
  const view = document.querySelector('.graph'), wait = () => new Promise((f) => setTimeout(f, 0));
  if (!view) return {tabs: 0, nodes: 0, changed: 0, told: 0};
  let nodes = 0, changed = 0, told = 0;
  const tabs = [...view.querySelectorAll('[role=tab]:not(:disabled)')];
  const bodies = [...view.querySelectorAll('#body option')].map((o) => o.value);
  for (const tab of tabs) {
    tab.click();
    await wait();
    nodes += view.querySelectorAll('.node').length;
    changed += view.querySelectorAll('.node.new, .node.gone, .node.moved').length;
    const next = view.querySelector('[aria-label="Next change"]');
    if (!next.parentElement.hidden) for (let i = 0; i < 4; ++i) next.click();
    for (const chip of view.querySelectorAll('.chip')) chip.click();
    for (const node of [...view.querySelectorAll('.node')].filter((_, i) => i % 29 === 0)) {
      node.dispatchEvent(new MouseEvent('click', {bubbles: true}));
      if (view.querySelector('.info h4').textContent) ++told;
    }
    for (const label of ['Zoom in', 'Zoom out', 'Fit the graph into its pane']) view.querySelector(`[aria-label="${label}"]`).click();
  }
  for (const id of ['show-constants', 'only-changed', 'only-changed', 'show-constants']) { document.getElementById(id).click(); await wait(); }
  for (const body of bodies) {
    const select = document.getElementById('body');
    select.value = body;
    select.dispatchEvent(new Event('change'));
  }
  return {tabs: tabs.length, nodes, changed, told};
})()"""

# Every table is sorted by every column, every row and every folded part opened.
TABLES = """(() => {
  for (const button of document.querySelectorAll('th button')) { button.click(); button.click(); }
  for (const opener of document.querySelectorAll('#groups > tbody > tr > td > .opener')) if (opener.getAttribute('aria-expanded') === 'false') opener.click();
  for (const details of document.querySelectorAll('details')) details.open = true;
  return {rows: document.querySelectorAll('#groups > tbody > tr.opens').length,
    open: document.querySelectorAll('#groups > tbody > tr.details').length,
    sources: document.querySelectorAll('pre').length};
})()"""

CHARTS = """(() => {
  let told = 0;
  for (const section of ['timeline', 'memory']) {
    const element = document.getElementById(section);
    if (!element) continue;
    for (const b of element.querySelectorAll('.buttons button:last-child')) for (let i = 0; i < 8; ++i) b.click();
    for (const b of element.querySelectorAll('.buttons button:first-child')) for (let i = 0; i < 8; ++i) b.click();
    for (const e of [...element.querySelectorAll('.event')].slice(0, 40)) { e.dispatchEvent(new MouseEvent('click', {bubbles: true})); ++told; }
  }
  const byTime = document.getElementById('memory-by-time');
  if (byTime) { byTime.click(); byTime.click(); }
  for (const dot of document.querySelectorAll('.dot-group')) dot.dispatchEvent(new MouseEvent('click', {bubbles: true}));
  return told;
})()"""


def expect_fits(page, name, width):
    # A phone zooms out when a page is too wide, so its own width says nothing.
    wide = page.run("document.documentElement.scrollWidth")
    expect(wide <= width, f"{name}: the page is {wide} wide in a window of {width}")


def look_at(page, name, width, shot):
    """Works through one page. Returns its data."""
    data = json.loads(page.run("document.getElementById('data').textContent"))
    run = data["execution"]
    for section in SECTIONS:
        expect(page.run(f"!!document.querySelector('#{section} h2')") or
               section == "compilation" and not data["passes"], f"{name}: section {section} is missing")
    problems = page.run(CONTRAST)
    expect(not problems, f"{name}: text that is hard to read: {problems}")
    expect_fits(page, name, width)
    if shot:
        page.screenshot(shot)
    graph = page.run(GRAPH)
    if data["graphs"]:
        changed = sum(p["changed"] for p in data["passes"])
        expect(graph["tabs"] == changed + 2, f"{name}: {graph['tabs']} views of {changed} passes")
        expect(graph["nodes"] > 0 and graph["told"] > 0, f"{name}: the graph is empty")
        expect(graph["changed"] > 0 or not changed, f"{name}: no change is shown")
    tables = page.run(TABLES)
    expect(tables["rows"] == len(run["groups"]) > 0, f"{name}: {tables['rows']} rows for {len(run['groups'])} groups")
    expect(tables["open"] == tables["rows"], f"{name}: {tables['open']} of {tables['rows']} groups open")
    if data["graphs"]:
        sources = sum("source" in k for k in run["kernels"])
        expect(tables["sources"] >= sources, f"{name}: {tables['sources']} texts for {sources} kernels")
    told = page.run(CHARTS)
    expect(told > 0, f"{name}: nothing in timeline or memory answers")
    page.settle()
    expect_fits(page, f"{name}, opened", width)
    problems = page.run(CONTRAST)
    expect(not problems, f"{name}: opened text that is hard to read: {problems}")
    for problem in page.problems():
        expect(False, f"{name}: {problem}")
    return data


def check_page(browser, path, name, args):
    size = path.stat().st_size
    expect(size < MOST_BYTES, f"{name}: {size} bytes")
    data = None
    for width, height, dark in SIZES:
        shot = args.screenshots and args.screenshots / f"{name}-{width}.png"
        with_size = f"{name} at {width}"
        page = browser.open(path, width, height, dark)
        data = look_at(page, with_size, width, shot)
        page.close()
    print(f"{name}: {size} bytes, {len(data['execution']['groups'])} groups", flush=True)
    return data


def check_consistency(data, name):
    """Numbers on the page that must agree with each other."""
    run = data["execution"]
    memory = run["memory"]
    steps = len(run["steps"])
    expect(len(memory["live"]) == steps, f"{name}: live bytes of {len(memory['live'])} of {steps} steps")
    for _, offset, size, first, last in memory["buffers"]:
        expect(0 <= offset and offset + size <= memory["arena"], f"{name}: a buffer leaves the arena")
        expect(0 <= first <= last < steps, f"{name}: a buffer lives outside the run")
    if memory["buffers"]:
        most = max(memory["live"])
        expect(most <= memory["arena"], f"{name}: {most} live bytes in {memory['arena']}")
        loops = any(s["kind"] in ("while", "if") for s in run["steps"])
        # The bound counts sizes rounded up to 64.
        expect(loops or memory["arena_lower_bound"] - 64 * len(memory["buffers"]) <= most <= memory["arena_lower_bound"],
               f"{name}: {most} live bytes, lower bound {memory['arena_lower_bound']}")
    if data["graphs"]:
        last = data["graphs"]["stages"][-1]["functions"][0]
        seen = [n for g in run["groups"] for n in g["nodes"]]
        expect(len(seen) == len(set(seen)) and all(0 <= n < len(last["nodes"]) for n in seen),
               f"{name}: a node is in two groups or in none of the function")
        for before, now in zip(data["graphs"]["stages"], data["graphs"]["stages"][1:]):
            kept = [p for p in now["functions"][0]["before"] if p >= 0]
            expect(len(kept) == len(set(kept)) and max(kept) < len(before["functions"][0]["nodes"]),
                   f"{name}: two nodes claim to be the same one of the stage before")


def check_keyboard(browser, path):
    page = browser.open(path)
    page.run("document.querySelector('[role=tab][aria-selected=true]').focus()")
    first = page.run("document.activeElement.id")
    page.press("ArrowDown", virtual=40)
    second = page.run("document.activeElement.id")
    expect(second != first and page.run("document.activeElement.getAttribute('aria-selected')") == "true",
           f"keyboard: arrow down went from {first} to {second}")
    page.run("document.querySelector('.node').dispatchEvent(new MouseEvent('click', {bubbles: true}))")
    page.run("document.querySelector('.node.selected').focus()")
    before = page.run("document.querySelector('.info').textContent")
    page.press("ArrowDown", virtual=40)
    expect(page.run("document.activeElement.classList.contains('selected')"), "keyboard: no node has the focus")
    expect(page.run("document.querySelector('.info').textContent") != before, "keyboard: arrow down stays at its node")
    page.run("document.querySelector('#groups .opener').focus()")
    page.press("Enter", virtual=13)
    page.call("Input.dispatchKeyEvent", type="char", text="\r")
    expect(page.run("document.querySelectorAll('#groups tr.details').length") == 1, "keyboard: Enter opens no group")
    for problem in page.problems():
        expect(False, f"keyboard: {problem}")
    page.close()


def check_that_problems_are_seen(browser, folder):
    """The check itself: a page that errs, logs and asks must be found guilty of each."""
    path = folder / "guilty.html"
    path.write_text("<!doctype html><img src='picture.png'><script>document.documentElement.dataset.ready='yes';"
                    "console.error('logged');setTimeout(()=>{null.x},0);fetch('http://127.0.0.1:9/asked').catch(()=>0)</script>")
    page = browser.open(path)
    page.settle()
    page.settle()
    found = "\n".join(page.problems())
    for wanted in ("console: logged", "exception: TypeError", "picture.png", "/asked"):
        expect(wanted in found, f"the check does not see '{wanted}': {found}")
    page.close()


HOSTILE = "</script><img src=x onerror=\"window.hacked=1\"><!--<script>@DATA@'\"&\u2028"


def check_hostile_names(browser, folder, args):
    """Names of the model are text on the page, whatever they say."""
    x, y, z = f"x{HOSTILE}", f"y{HOSTILE}", f"z{HOSTILE}"
    file = folder / "hostile.onnx"
    file.write_bytes(onnx_writer.model(
        HOSTILE, [onnx_writer.node("Exp", [x], [y], f"one{HOSTILE}"), onnx_writer.node("Relu", [y], [z], f"two{HOSTILE}")],
        [(x, [4, 8])], [(z, [4, 8])]))
    hostile = folder / "a & <b> @DATA@.onnx"
    file.rename(hostile)
    out = folder / "hostile.html"
    hone(args, "optimize", hostile, "-o", folder / "hostile.hone", "--report", out, "-q", "--rounds", 3)
    data = check_page(browser, out, "hostile", args)
    page = browser.open(out)
    expect(page.run("window.hacked === undefined && !document.querySelector('img')"), "hostile: a name became markup")
    expect(data["model"]["params"][0]["name"] == x, "hostile: a name was changed on its way")
    expect(page.run("document.getElementById('overview').textContent").count(HOSTILE) >= 2, "hostile: names are not shown as they are")
    expect("a & <b> @DATA@" in page.run("document.title"), f"hostile: title {page.run('document.title')}")
    page.close()


def check_failing_strategy(browser, folder, args):
    """oneDNN has no part in a model without multiply-adds."""
    file, out = folder / "failing.onnx", folder / "failing.html"
    file.write_bytes(onnx_writer.model("failing", [onnx_writer.node("Exp", ["x"], ["y"], "exp")],
                                       [("x", [4, 8])], [("y", [4, 8])]))
    hone(args, "optimize", file, "-o", folder / "failing.hone", "--report", out, "-q", "--rounds", 3)
    data = check_page(browser, out, "failing", args)
    reason = next(s["failure"] for s in data["strategies"] if s["name"] == "onednn")
    page = browser.open(out)
    expect(reason and reason in page.run("document.querySelector('.race').textContent"),
           "failing: the reason of a failed strategy is not shown")
    page.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("hone")
    parser.add_argument("source", type=pathlib.Path)
    parser.add_argument("--screenshots", type=pathlib.Path)
    parser.add_argument("--only", default="", help="models to look at, with commas")
    args = parser.parse_args()
    if not find_chromium():
        sys.exit("report_test: no Chromium; install Debian's package chromium (tools/setup does) or set HONE_CHROMIUM")
    if args.screenshots:
        args.screenshots.mkdir(parents=True, exist_ok=True)
    digits = args.source / "examples/digits/digits.onnx"
    root = pathlib.Path(os.environ.get("HONE_MODELS") or args.source / "../shared/models")
    models = {"digits": digits, **{m: root / m for m in MODELS if (root / m).is_dir()}}
    if args.only:
        models = {m: models[m] for m in args.only.split(",")}
    with tempfile.TemporaryDirectory(prefix="hone_report_") as name, Browser() as browser:
        folder = pathlib.Path(name)
        os.environ.setdefault("HONE_CACHE_DIR", str(folder / "cache"))
        check_that_problems_are_seen(browser, folder)
        for model, path in models.items():
            out = folder / f"{model}.html"
            hone(args, "optimize", path, "-o", folder / f"{model}.hone", "--report", out, "-q", "--rounds", 5)
            check_consistency(check_page(browser, out, model, args), model)
        if "digits" in models:
            check_keyboard(browser, folder / "digits.html")
            hone(args, "explain", folder / "digits.hone", "--report", folder / "plan.html", "-q")
            check_page(browser, folder / "plan.html", "plan", args)
            check_failing_strategy(browser, folder, args)
            check_hostile_names(browser, folder, args)
    print(f"{len(failures)} failures" if failures else "report pages: ok")
    sys.exit(1 if failures else 0)


main()
