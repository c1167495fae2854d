// The function before and after each pass, side by side: what a pass removed, made and connected
// anew, the rule that did it, and where every node comes from. The last view colours nodes by the
// time of their kernel.

// Reads one function of one stage.
class StageFunction {
  constructor(graphs, data, rules) {
    this.graphs = graphs;
    this.data = data;
    this.path = data.path;
    this.size = data.nodes.length;
    this.rules = rules;
    this.inputs = data.inputs.map((list) => list.map((i) => (Array.isArray(i) ? i[0] : i)));
    this.outputs = data.nodes.map(() => []);
    this.inputs.forEach((list, i) => new Set(list).forEach((j) => this.outputs[j].push(i)));
    this.change = new Array(this.size).fill('');   // 'new', 'moved', 'gone'
    this.partner = new Array(this.size).fill(-1);  // the same node in the other pane
  }
  text(i, field) { return this.graphs.texts[this.graphs.nodes[this.data.nodes[i]][field]]; }
  op(i) { return this.text(i, 0); }
  type(i) { return this.text(i, 1); }
  attributes(i) { return this.text(i, 2); }
  origins(i) { return originsOf(this.text(i, 3)); }
  // Whether no input of the function goes into each node.
  get isFixed() {
    this.fixed ||= this.inputs.reduce((all, list, i) => {
      all.push(this.op(i) !== 'param' && list.every((j) => all[j]));
      return all;
    }, []);
    return this.fixed;
  }
  isConstant(i) { return this.op(i) === 'constant' || this.op(i) === 'dims'; }
}

// Fills in what changed between two stages of one function.
function compare(before, after) {
  after.data.before.forEach((p, i) => {
    after.partner[i] = p;
    if (p < 0) {
      after.change[i] = 'new';
      return;
    }
    before.partner[p] = i;
    const a = after.inputs[i], b = before.inputs[p];
    const same = a.length === b.length && a.every((node, k) => after.data.before[node] === b[k]);
    if (!same) after.change[i] = before.change[p] = 'moved';
  });
  before.partner.forEach((p, i) => {
    if (p < 0) before.change[i] = 'gone';
  });
}

const clip = (text, most) => (text.length > most ? text.slice(0, most - 1) + '…' : text);
const changeNames = {
  new: 'made here',
  gone: 'removed here',
  moved: 'other operands',
  '': ''
};
const changeMarks = {
  new: '+',
  gone: '−',
  moved: '~',
  '': ''
};

// One drawing of one function.
class Pane {
  constructor(title, onSelect) {
    this.onSelect = onSelect;
    this.title = h('h3', {}, title);
    this.box = h('div', {class: 'pane', tabindex: 0, role: 'region'});
    this.element = h('div', {class: 'pane-frame'}, this.title, this.box);
    this.zoom = 1;
    this.box.addEventListener('keydown', (e) => this.key(e));
    this.box.addEventListener('wheel', (e) => {
      if (!e.ctrlKey) return;
      e.preventDefault();
      this.setZoom(this.zoom * (e.deltaY < 0 ? 1.15 : 1 / 1.15));
    }, {passive: false});
    this.drag();
  }

  drag() {
    let from = null;
    this.box.addEventListener('pointerdown', (e) => {
      if (e.pointerType !== 'mouse' || e.button || e.target.closest('.node')) return;
      from = [e.clientX + this.box.scrollLeft, e.clientY + this.box.scrollTop];
      this.box.setPointerCapture(e.pointerId);
    });
    this.box.addEventListener('pointermove', (e) => {
      if (from) this.box.scrollTo(from[0] - e.clientX, from[1] - e.clientY);
    });
    for (const end of ['pointerup', 'pointercancel'])
      this.box.addEventListener(end, () => {
        from = null;
      });
  }

  show(f, title, isVisible, look) {
    this.f = f;
    this.title.textContent = title;
    this.box.setAttribute('aria-label', title);
    this.elements = new Map();
    this.selected = -1;
    const shown = [], place = new Map();
    for (let i = 0; i < f.size; ++i)
      if (isVisible(f, i)) {
        place.set(i, shown.length);
        shown.push(i);
      }
    const boxes = shown.map((i) => {
      const second = clip(f.type(i), 30);
      return {
        w: Math.max(44, 16 + Math.max(clip(f.op(i), 26).length * 7.4, second.length * 6.1)),
        h: 38,
        late: f.isFixed[i] || !f.inputs[i].length
      };
    });
    const edges = [];
    for (const i of shown)
      for (const j of new Set(f.inputs[i]))
        if (place.has(j)) edges.push([place.get(j), place.get(i)]);
    const drawn = layered(boxes, edges);
    this.size = [drawn.width, drawn.height];
    this.at = new Map(shown.map((i, k) => [i, [drawn.x[k], drawn.y[k]]]));
    this.shown = shown;
    const lines = edges.map(
        ([a, b], k) => svg('path', {
          d: edgePath(drawn.paths[k], boxes[a].h, boxes[b].h),
          class: f.change[shown[b]] === 'new'                                ? 'edge new' :
              f.change[shown[a]] === 'gone' || f.change[shown[b]] === 'gone' ? 'edge gone' :
                                                                               'edge'
        }));
    const nodes = shown.map((i, k) => this.node(i, drawn.x[k], drawn.y[k], boxes[k], look));
    this.svg =
        svg('svg', {'aria-hidden': shown.length ? null : true}, svg('g', {}, lines),
            svg('g', {}, nodes));
    this.box.replaceChildren(
        shown.length ?
            this.svg :
            h('p', {class: 'empty'},
              'Nothing changed here. Switch off “only what changed” to see the whole graph.'));
    this.setZoom(this.zoom);
    this.box.scrollTo(Math.max(0, (drawn.width * this.zoom - this.box.clientWidth) / 2), 0);
  }

  node(i, x, y, size, look) {
    const f = this.f, change = f.change[i], given = look ? look(i) : null;
    const g = svg(
        'g', {
          class: `node ${change} family-${family(f.op(i))}`,
          transform: `translate(${(x - size.w / 2).toFixed(1)} ${(y - size.h / 2).toFixed(1)})`,
          role: 'button',
          tabindex: -1,
          'aria-label': `${f.op(i)} ${f.type(i)} ${changeNames[change]}`,
          onclick: () => this.onSelect(this, i)
        },
        svg('title', {},
            [`${f.op(i)} ${f.type(i)}`, ...f.origins(i).slice(0, 3), given && given.title]
                .filter(Boolean)
                .join('\n')),
        svg('rect', {width: size.w, height: size.h, rx: 5}),
        given && given.heat !== null ?
            svg('rect',
                {width: size.w, height: size.h, rx: 5, class: 'heat', 'fill-opacity': given.heat}) :
            null,
        svg('text', {x: size.w / 2, y: 16, class: 'op'}, clip(f.op(i), 26)),
        svg('text', {x: size.w / 2, y: 30, class: 'type'}, clip(f.type(i), 30)),
        change ? svg('text', {x: size.w - 3, y: 11, class: 'mark'}, changeMarks[change]) : null);
    this.elements.set(i, g);
    return g;
  }

  setZoom(zoom) {
    const box = this.box;
    const middle = [
      (box.scrollLeft + box.clientWidth / 2) / this.zoom,
      (box.scrollTop + box.clientHeight / 2) / this.zoom
    ];
    this.zoom = Math.max(0.05, Math.min(3, zoom));
    const [w, tall] = this.size;
    this.svg.setAttribute('viewBox', `0 0 ${w} ${tall}`);
    this.svg.setAttribute('width', Math.ceil(w * this.zoom));
    this.svg.setAttribute('height', Math.ceil(tall * this.zoom));
    this.svg.classList.toggle('far', this.zoom < 0.45);
    box.scrollTo(
        middle[0] * this.zoom - box.clientWidth / 2, middle[1] * this.zoom - box.clientHeight / 2);
  }
  fit() {
    this.setZoom(Math.min(
        1, (this.box.clientWidth - 16) / this.size[0],
        (this.box.clientHeight - 16) / this.size[1]));
  }

  select(i, focus) {
    const old = this.elements.get(this.selected);
    if (old) {
      old.classList.remove('selected');
      old.setAttribute('tabindex', -1);
    }
    this.selected = i;
    const now = this.elements.get(i);
    if (!now) return;
    now.classList.add('selected');
    now.setAttribute('tabindex', 0);
    this.center(i);
    if (focus) now.focus({preventScroll: true});
  }
  center(i) {
    if (!this.at.has(i)) return;
    const [x, y] = this.at.get(i).map((v) => v * this.zoom), box = this.box;
    const away = x < box.scrollLeft + 40 || x > box.scrollLeft + box.clientWidth - 40 ||
        y < box.scrollTop + 40 || y > box.scrollTop + box.clientHeight - 40;
    if (away) box.scrollTo(x - box.clientWidth / 2, y - box.clientHeight / 2);
  }

  // Along edges with up and down, through what is drawn with left and right.
  key(e) {
    if (!this.shown.length || !['ArrowUp', 'ArrowDown', 'ArrowLeft', 'ArrowRight'].includes(e.key))
      return;
    if (this.selected < 0 && e.target === this.box) return;  // arrows scroll until a node is chosen
    e.preventDefault();
    const here = this.shown.indexOf(this.selected), f = this.f;
    const visible = (list) => list.find((i) => this.elements.has(i));
    let to = this.shown[0];
    if (here >= 0) {
      if (e.key === 'ArrowUp') to = visible(f.inputs[this.selected]);
      if (e.key === 'ArrowDown') to = visible(f.outputs[this.selected]);
      if (e.key === 'ArrowLeft') to = this.shown[here - 1];
      if (e.key === 'ArrowRight') to = this.shown[here + 1];
    }
    if (to !== undefined) this.onSelect(this, to, true);
  }
}

class GraphView {
  constructor(graphs, passes) {
    this.graphs = graphs;
    this.passes = passes;
    // Models that are one big `if` have everything in its bodies.
    this.sizes = new Map();  // of functions by path, at most
    for (const f of graphs.stages.flatMap((s) => s.functions))
      this.sizes.set(f.path, Math.max(this.sizes.get(f.path) || 0, f.nodes.length));
    const largest = [...this.sizes].reduce((a, b) => (b[1] > a[1] ? b : a));
    this.path = largest[1] > 4 * this.sizes.get('') ? largest[0] : '';
    this.constants = false;
    this.onlyChanged = false;
    this.before = new Pane('before', (pane, i, focus) => this.select(pane, i, focus));
    this.after = new Pane('after', (pane, i, focus) => this.select(pane, i, focus));
    this.info = h('div', {class: 'info', 'aria-live': 'polite'});
    this.rules = h('div', {class: 'chips'});
    this.where = h('span', {class: 'dim'});
    this.list = h(
        'div',
        {class: 'stages', role: 'tablist', 'aria-label': 'Passes', 'aria-orientation': 'vertical'});
    this.groupOf = new Map();
    for (const g of run.groups)
      for (const n of g.nodes || []) this.groupOf.set(n, g);
    this.makeTabs();
    const bodies = new Set(graphs.stages.flatMap((s) => s.functions.map((f) => f.path)));
    this.element =
        h('div', {class: 'graph'}, this.list,
          h('div', {class: 'graph-main'}, this.toolbar([...bodies]), this.rules,
            h('div', {class: 'panes'}, this.before.element, this.after.element), this.info));
  }

  makeTabs() {
    const stageOfPass = new Map(this.graphs.stages.map((s, i) => [s.pass, i]));
    const tab = (key, title, detail, enabled) =>
        h('button', {
          type: 'button',
          role: 'tab',
          id: `stage-${key}`,
          'aria-selected': false,
          tabindex: -1,
          disabled: !enabled,
          onclick: () => this.open(key)
        },
          h('b', {}, title), h('span', {}, detail));
    const nodes =
        this.graphs.stages.map((s) => s.functions.reduce((n, f) => n + f.nodes.length, 0));
    this.tabs = [tab('import', 'as imported', count(nodes[0], 'node'), true)];
    this.passes.forEach((p, i) => {
      const stage = stageOfPass.get(i);
      const detail =
          p.changed && stage ? `${nodes[stage - 1]} → ${nodes[stage]} nodes` : 'no change';
      this.tabs.push(tab(`pass-${i}`, p.name, detail, stage !== undefined));
    });
    this.tabs.push(tab('kernels', 'as kernels', count(run.groups.length, 'group'), true));
    this.keys = ['import', ...this.passes.map((_, i) => `pass-${i}`), 'kernels'];
    this.stageOf = (key) => key === 'import' ? 0 :
        key === 'kernels'                    ? this.graphs.stages.length - 1 :
                                               stageOfPass.get(Number(key.slice(5)));
    this.list.replaceChildren(...this.tabs);
    this.list.addEventListener('keydown', (e) => {
      const step = {ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1}[e.key];
      if (!step) return;
      e.preventDefault();
      let at = this.keys.indexOf(this.key) + step;
      while (this.tabs[at] && this.tabs[at].disabled) at += step;
      if (this.tabs[at]) {
        this.open(this.keys[at]);
        this.tabs[at].focus();
      }
    });
  }

  toolbar(bodies) {
    const button = (text, label, f) =>
        h('button', {type: 'button', onclick: f, 'aria-label': label}, text);
    const box = (label, id, f) =>
        h('label', {class: 'check'}, h('input', {
            type: 'checkbox',
            id,
            onchange: (e) => {
              f(e.target.checked);
              this.draw();
            }
          }),
          label);
    const zoom = (factor) =>
        () => [this.before, this.after].forEach((p) => p.svg && p.setZoom(p.zoom * factor));
    this.changeButtons =
        h('span', {class: 'buttons'}, button('‹', 'Previous change', () => this.step(-1)),
          button('›', 'Next change', () => this.step(1)));
    const find = h('input', {
      type: 'search',
      placeholder: 'find a node',
      'aria-label': 'Find a node by operation, name or type',
      onkeydown: (e) => {
        if (e.key === 'Enter') {
          e.preventDefault();
          this.find(e.target.value);
        }
      }
    });
    return h(
        'div', {class: 'toolbar'},
        h('span', {class: 'buttons'}, button('−', 'Zoom out', zoom(1 / 1.3)),
          button('+', 'Zoom in', zoom(1.3)),
          button(
              'fit', 'Fit the graph into its pane',
              () => [this.before, this.after].forEach((p) => p.svg && p.fit()))),
        this.changeButtons, this.where, find,
        box('constants', 'show-constants',
            (on) => {
              this.constants = on;
            }),
        box('only what changed', 'only-changed',
            (on) => {
              this.onlyChanged = on;
            }),
        bodies.length > 1 ?
            h('label', {class: 'check'}, 'function ',
              h('select', {
                id: 'body',
                onchange: (e) => {
                  this.path = e.target.value;
                  this.draw();
                }
              },
                bodies.map(
                    (b) =>
                        h('option', {value: b, selected: b === this.path},
                          `${b || 'the whole one'} (${count(this.sizes.get(b), 'node')})`)))) :
            null);
  }

  open(key) {
    this.key = key;
    this.tabs.forEach((t, i) => {
      const on = this.keys[i] === key;
      t.setAttribute('aria-selected', on);
      t.tabIndex = on ? 0 : -1;
    });
    this.draw();
  }

  functionOf(stage) {
    const data = stage && stage.functions.find((f) => f.path === this.path);
    return data ? new StageFunction(this.graphs, data, stage.fired) : null;
  }

  draw() {
    const at = this.stageOf(this.key), stages = this.graphs.stages;
    const isPass = this.key.startsWith('pass-');
    this.fired = new Map();
    for (const [node, rule] of isPass ? stages[at].fired : []) {
      if (!this.fired.has(node)) this.fired.set(node, new Map());
      const rules = this.fired.get(node), name = this.graphs.texts[rule];
      rules.set(name, (rules.get(name) || 0) + 1);
    }
    const empty = {path: this.path, nodes: [], inputs: [], before: [], rules: {}, results: []};
    const after = this.functionOf(stages[at]) || new StageFunction(this.graphs, empty, []);
    const before = isPass ?
        this.functionOf(stages[at - 1]) || new StageFunction(this.graphs, empty, []) :
        null;
    if (before) compare(before, after);
    this.changes = [];
    if (before) {
      for (let i = 0; i < before.size; ++i)
        if (before.change[i] === 'gone') this.changes.push([this.before, i]);
      for (let i = 0; i < after.size; ++i)
        if (after.change[i]) this.changes.push([this.after, i]);
    }
    const near = (f, i) => f.change[i] || f.inputs[i].some((j) => f.change[j]) ||
        f.outputs[i].some((j) => f.change[j]);
    const visible = (f, i) =>
        (this.constants || !f.isConstant(i)) && (!before || !this.onlyChanged || near(f, i));
    this.before.element.hidden = !before;
    this.before.f = null;
    this.before.box.replaceChildren();
    const name = isPass ? this.passes[Number(this.key.slice(5))].name : '';
    if (before) this.before.show(before, `before ${name}`, visible);
    const title = isPass ? `after ${name}` :
        this.key === 'import' ? 'as imported' :
                                'after all passes, by time of the kernel';
    this.after.show(after, title, visible, this.key === 'kernels' ? (i) => this.heat(i) : null);
    this.changeButtons.hidden = !before;
    this.at = -1;
    this.where.textContent = before ? `${this.changes.length} changes` : '';
    this.showRules(isPass ? this.passes[Number(this.key.slice(5))] : null);
    this.info.replaceChildren(
        h('p', {class: 'dim'},
          'Choose a node to see where it comes from. Arrow keys walk along edges.'));
    const first = this.changes.find(([pane, i]) => pane.elements.has(i));
    if (!first) return;
    const [pane, i] = first, other = pane === this.before ? this.after : this.before;
    pane.center(i);
    other.center(pane.f.partner[i] < 0 ? this.nearestKept(pane, other, i) : pane.f.partner[i]);
  }

  heat(i) {
    const g = this.path === '' ? this.groupOf.get(i) : null;
    if (!g) return null;
    const total = run.groups.reduce((s, x) => s + x.ms[0], 0);
    return {
      heat: Math.min(1, Math.sqrt(g.ms[0] / total) * 1.6),
      title: `group ${g.group}: ${g.name}, ${ms(g.ms[0])}`
    };
  }

  showRules(pass) {
    const f = this.after.f;
    if (!pass) {
      this.rules.replaceChildren(
          this.key === 'kernels' ?
              h('p', {class: 'dim'},
                'The redder, the more of a run’s time goes into the kernel that computes the node.') :
              legend([...new Set(Array.from({length: f.size}, (_, i) => family(f.op(i))))]));
      return;
    }
    const chips = pass.rules.map(
        ([rule, n]) =>
            h('button', {type: 'button', class: 'chip', onclick: () => this.highlight(rule)}, rule,
              h('b', {}, `${n}×`)));
    this.rules.replaceChildren(
        h('p', {}, h('b', {}, pass.name), `: ${pass.does}. `,
          chips.length     ? 'Rules that fired:' :
              pass.changed ? 'It works without rules of its own.' :
                             ''),
        ...chips);
  }

  // Nodes that a rule replaced or made.
  touched(rule) {
    const out = [];
    for (const pane of [this.before, this.after]) {
      if (!pane.f) continue;
      for (const i of pane.shown)
        if (this.madeBy(pane, i) === rule ||
            (pane === this.before && this.replacedBy(pane, i).has(rule)))
          out.push([pane, i]);
    }
    return out;
  }
  highlight(rule) {
    for (const pane of [this.before, this.after])
      if (pane.f) pane.elements.forEach((e) => e.classList.remove('lit'));
    const all = this.touched(rule);
    for (const [pane, i] of all) pane.elements.get(i).classList.add('lit');
    for (const pane of [this.before, this.after]) {
      const first = all.find(([p]) => p === pane);
      if (first) this.select(pane, first[1]);
    }
    if (!all.length)
      this.info.replaceChildren(h(
          'p', {},
          `What ${rule} made or replaced is hidden here, or was replaced again in the same pass.`));
  }

  madeBy(pane, i) {
    const rule = pane === this.after ? pane.f.data.rules[i] : undefined;
    return rule === undefined ? '' : this.graphs.texts[rule];
  }
  replacedBy(pane, i) {
    return (pane === this.before && pane.f.change[i] === 'gone' &&
            this.fired.get(pane.f.data.nodes[i])) ||
        new Map();
  }

  step(by) {
    const shown = this.changes.filter(([pane, i]) => pane.elements.has(i));
    if (!shown.length) return;
    this.at = (this.at + by + shown.length) % shown.length;
    this.where.textContent = `change ${this.at + 1} of ${shown.length}`;
    this.select(...shown[this.at]);
  }

  find(text) {
    const wanted = text.trim().toLowerCase();
    if (!wanted) return;
    const pane = this.after, f = pane.f;
    const matches = pane.shown.filter(
        (i) => [f.op(i), f.type(i), f.attributes(i), ...f.origins(i)].some(
            (t) => t.toLowerCase().includes(wanted)));
    if (!matches.length) {
      this.info.replaceChildren(
          h('p', {}, `No node shown here has “${text}” in its operation, name or type.`));
      return;
    }
    const next = matches.find((i) => i > pane.selected);
    this.select(pane, next === undefined ? matches[0] : next);
  }

  select(pane, i, focus) {
    pane.select(i, focus);
    const other = pane === this.before ? this.after : this.before;
    if (other.f) {
      other.select(pane.f.partner[i]);
      if (pane.f.partner[i] < 0) other.center(this.nearestKept(pane, other, i));
    }
    this.info.replaceChildren(this.describe(pane, i));
  }

  // What the other pane shows of the surroundings of a node that it lacks.
  nearestKept(pane, other, i) {
    const seen = new Set([i]);
    for (const j of seen) {
      if (other.elements.has(pane.f.partner[j])) return pane.f.partner[j];
      if (seen.size > 200) break;
      for (const k of [...pane.f.outputs[j], ...pane.f.inputs[j]]) seen.add(k);
    }
    return -1;
  }

  describe(pane, i) {
    const f = pane.f, change = f.change[i];
    const link = (j) =>
        h('button', {
          type: 'button',
          class: 'link',
          onclick: () => {
            if (!pane.elements.has(j)) {
              this.constants = document.getElementById('show-constants').checked = true;
              this.draw();
            }
            this.select(pane, j);
          }
        },
          `${f.op(j)} ${clip(f.type(j), 40)}`);
    const links = (list) =>
        (list.length ? list.slice(0, 12).map((j) => h('li', {}, link(j))) :
                       h('li', {class: 'dim'}, 'none'));
    const passName =
        this.key.startsWith('pass-') ? this.passes[Number(this.key.slice(5))].name : '';
    const rule = this.madeBy(pane, i), replaced = [...this.replacedBy(pane, i).keys()];
    const story = change === 'new' ?
        `Made by pass ${passName}${rule ? `, rule ${rule}` : ''}.` :
        change === 'gone' ?
        `Removed by pass ${passName}${
            replaced.length ?
                `; ${replaced.length > 1 ? 'rules' : 'rule'} fired here: ${replaced.join(', ')}` :
                ', as part of what was replaced or because nobody reads it any more'}.` :
        change === 'moved' ? 'Kept; reads other operands than before.' :
                             '';
    const group = this.key === 'kernels' && this.path === '' ? this.groupOf.get(i) : null;
    return h(
        'div', {class: 'facts'},
        h('div', {}, h('h4', {}, f.op(i)), h('code', {class: 'wrap'}, f.type(i)),
          f.attributes(i) && h('p', {class: 'wrap'}, f.attributes(i)),
          story && h('p', {class: `story ${change}`}, story),
          group &&
              h('p', {}, 'Computed by ',
                h('a', {href: '#kernels', onclick: () => revealGroup(group.group)},
                  `group ${group.group}, ${group.name}`),
                ` in ${ms(group.ms[0])}.`)),
        h('div', {}, h('h4', {}, 'comes from'),
          h('ul', {},
            f.origins(i).length ? f.origins(i).map((o) => h('li', {class: 'wrap'}, o)) :
                                  h('li', {class: 'dim'}, 'no node of the model'))),
        h('div', {}, h('h4', {}, 'reads'), h('ul', {}, links(f.inputs[i]))),
        h('div', {}, h('h4', {}, 'is read by'), h('ul', {}, links(f.outputs[i]))));
  }
}

function graphSection() {
  const graphs = report.graphs;
  if (!graphs) {
    section(
        'graph', 'Graph', null,
        h('p', {},
          'This report was made from a plan file alone, which does not tell how its graph changed. Use hone optimize --report.'));
    return;
  }
  const view = new GraphView(graphs, report.passes);
  section(
      'graph', 'Graph',
      'The model as a graph of operations, before and after each pass of the compiler. Green + was made, red − was removed, yellow ~ was kept but reads something else.',
      view.element);
  const changed =
      report.passes.findIndex((p, i) => p.changed && view.stageOf(`pass-${i}`) !== undefined);
  view.open(changed < 0 ? 'import' : `pass-${changed}`);
}
