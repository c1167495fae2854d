// What every section uses: the data, elements, units, colours. Text of the model only ever becomes
// text nodes and attributes, never markup.
'use strict';

const report = JSON.parse(document.getElementById('data').textContent);
const run = report.execution;

// h('p', {class: 'x', onclick: f}, 'text', child, [more])
function make(namespace, tag, attributes, children) {
  const e = namespace ? document.createElementNS(namespace, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === undefined || value === null || (value === false && !name.startsWith('aria-')))
      continue;
    if (name.startsWith('on'))
      e.addEventListener(name.slice(2), value);
    else if (name === 'style')
      Object.assign(e.style, value);
    else
      e.setAttribute(name, value === true && !name.startsWith('aria-') ? '' : value);
  }
  e.append(...children.flat(Infinity).filter((c) => c !== null && c !== undefined && c !== false));
  return e;
}
const h = (tag, attributes, ...children) => make(null, tag, attributes, children);
const svg = (tag, attributes, ...children) =>
    make('http://www.w3.org/2000/svg', tag, attributes, children);

function count(n, one, many) {
  return `${n.toLocaleString('en')} ${n === 1 ? one : many || one + 's'}`;
}

function digits(x) {
  if (x === 0) return '0';
  const a = Math.abs(x);
  return a >= 100 ? x.toFixed(0) : a >= 10 ? x.toFixed(1) : x.toFixed(2);
}
function ms(x) {
  if (x === null || x < 0) return '-';
  if (x < 1e-3) return `${digits(x * 1e6)} ns`;
  if (x < 1) return `${digits(x * 1e3)} µs`;
  return x < 1e4 ? `${digits(x)} ms` : `${digits(x / 1e3)} s`;
}
function scaled(x, units) {
  if (x === null || x < 0) return '-';
  let i = 0;
  while (x >= 1000 && i + 1 < units.length) {
    x /= 1000;
    ++i;
  }
  return `${i === 0 ? Math.round(x) : digits(x)} ${units[i]}`;
}
const bytes = (x) => scaled(x, ['B', 'kB', 'MB', 'GB']);
const flops = (x) => scaled(x, ['FLOP', 'kFLOP', 'MFLOP', 'GFLOP', 'TFLOP']);
const percent = (x) => `${x >= 0.0995 ? (100 * x).toFixed(0) : (100 * x).toFixed(1)} %`;
const tiny = (x) => (x < 0 ? '-' : x === 0 ? '0' : x.toExponential(1));
const times = (x) => `${x >= 9.95 ? x.toFixed(0) : x >= 1.995 ? x.toFixed(1) : x.toFixed(2)}×`;
const intervalText = (t) => `${ms(t[1])} to ${ms(t[2])}`;

// "node 3 'name' (Conv)" as parts, for showing the name.
function originsOf(text) { return text ? text.split(/\n|, (?=node \d)/) : []; }

// Which family an operation belongs to decides its colour everywhere.
const families = [
  ['contraction', /^(conv|dot|matmul|gemm|contraction)/, 'multiply-adds'],
  [
    'row',
    /^(reduce|softmax|log_softmax|layer_norm|rms_norm|batch_norm|arg|cumul|sort|pool|max_pool|average_pool|mean)/,
    'rows and reductions'
  ],
  [
    'movement',
    /^(reshape|transpose|broadcast|slice|pad|concat|reverse|gather|scatter|copy|pack|dynamic)/,
    'movement'
  ],
  ['data', /^(param|constant|dims|iota)/, 'inputs and constants'],
  ['control', /^(if_else|while_loop|scan|refuse|if|while|call)/, 'control flow'],
];
function family(name) {
  for (const [id, pattern] of families)
    if (pattern.test(name)) return id;
  return 'element';
}
function familyOfGroup(name) {
  const parts = name.split('+').map(family);
  for (const wanted of ['contraction', 'row', 'element', 'movement'])
    if (parts.includes(wanted)) return wanted;
  return 'element';
}
const familyNames =
    Object.fromEntries([...families.map((f) => [f[0], f[2]]), ['element', 'elementwise']]);

function legend(ids) {
  return h(
      'p', {class: 'legend'},
      ids.map((id) => h('span', {}, h('i', {class: `swatch fill-${id}`}), familyNames[id])));
}

// A section of the page and its entry in the navigation.
function section(id, title, explanation, ...content) {
  const heading = h('h2', {id: `${id}-title`}, title);
  document.querySelector('nav').append(h('a', {href: `#${id}`}, title));
  const element =
      h('section', {id, 'aria-labelledby': `${id}-title`}, heading,
        explanation && h('p', {class: 'explain'}, explanation), content);
  document.querySelector('main').append(element);
  return element;
}

// A bar with its share of `most` filled.
function bar(share, kind, label) {
  return h(
      'span', {class: 'meter', title: label || percent(share)},
      h('span',
        {class: `fill-${kind}`, style: {width: `${Math.max(0, Math.min(1, share)) * 100}%`}}));
}

// The same with the number behind it, numbers below each other.
function labelled(share, kind) {
  return h(
      'span', {class: 'labelled'}, bar(share, kind), h('span', {class: 'number'}, percent(share)));
}

// A table whose columns sort when their heads are pressed. Columns: {title, value(row) for sorting,
// cell(row), number: true}. `open(row)` makes the content of the row's details.
function table(columns, rows, {caption, open, sorted = -1, id} = {}) {
  const body = h('tbody');
  const heads = columns.map(
      (c, i) =>
          h('th', {scope: 'col', class: c.number ? 'number' : null},
            c.value ? h('button', {type: 'button', onclick: () => sort(i)}, c.title) : c.title));
  let by = -1, down = true;
  const lines = rows.map((row) => line(row));
  function line(row) {
    const cells = columns.map((c) => h('td', {class: c.number ? 'number' : null}, c.cell(row)));
    const main = h('tr', {}, cells);
    let details = null;
    const entry = {row, main, get details() { return details; }, toggle};
    function toggle(show) {
      const shown = details !== null;
      if (show === undefined) show = !shown;
      if (show === shown) return;
      if (show) {
        details = h('tr', {class: 'details'}, h('td', {colspan: columns.length}, open(row)));
        main.after(details);
      } else {
        details.remove();
        details = null;
      }
      main.classList.toggle('open', show);
      main.querySelector('.opener').setAttribute('aria-expanded', show);
    }
    if (open) {
      cells[0].prepend(h('button', {
        type: 'button',
        class: 'opener',
        'aria-expanded': false,
        'aria-label': 'Details',
        onclick: (e) => {
          e.stopPropagation();
          toggle();
        }
      }));
      main.classList.add('opens');
      main.addEventListener('click', (e) => {
        if (!e.target.closest('a, button') && !String(getSelection())) toggle();
      });
    }
    return entry;
  }
  function sort(i) {
    down = by === i ? !down : !!columns[i].number;
    by = i;
    const value = columns[i].value;
    const order = [...lines].sort((a, b) => {
      const x = value(a.row), y = value(b.row);
      const c = typeof x === 'string' ? x.localeCompare(y) : x - y;
      return down ? -c : c;
    });
    heads.forEach(
        (head, k) =>
            head.setAttribute('aria-sort', k === i ? (down ? 'descending' : 'ascending') : 'none'));
    fill(order);
  }
  function fill(order) {
    body.replaceChildren(...order.flatMap((l) => (l.details ? [l.main, l.details] : [l.main])));
  }
  fill(lines);
  if (sorted >= 0) sort(sorted);
  const element =
      h('div', {class: 'scroll', tabindex: 0, role: 'region', 'aria-label': caption},
        h('table', {id}, h('caption', {class: 'unseen'}, caption),
          h('thead', {}, h('tr', {}, heads)), body));
  return {
    element,
    reveal(test) {
      const l = lines.find((x) => test(x.row));
      if (!l) return;
      l.toggle(true);
      l.main.scrollIntoView({block: 'center'});
      l.main.querySelector('.opener').focus({preventScroll: true});
    }
  };
}

// Zoom buttons for something that scrolls: `draw(zoom)` redraws it.
function zoomable(box, draw, {steps = [1, 1.5, 2, 3, 5, 8, 12, 20], start = 0, label} = {}) {
  let at = start;
  const out =
      h('button', {type: 'button', onclick: () => set(at - 1), 'aria-label': `${label}: smaller`},
        '−');
  const into =
      h('button', {type: 'button', onclick: () => set(at + 1), 'aria-label': `${label}: larger`},
        '+');
  function set(to) {
    const middle = (box.scrollLeft + box.clientWidth / 2) / Math.max(1, box.scrollWidth);
    at = Math.max(0, Math.min(steps.length - 1, to));
    out.disabled = at === 0;
    into.disabled = at === steps.length - 1;
    draw(steps[at]);
    box.scrollLeft = middle * box.scrollWidth - box.clientWidth / 2;
  }
  set(at);
  let width = box.clientWidth;
  new ResizeObserver(() => {
    if (box.clientWidth === width) return;
    width = box.clientWidth;
    draw(steps[at]);
  }).observe(box);
  return h('span', {class: 'buttons'}, out, into);
}
