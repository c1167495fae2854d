// Where the time goes: each group of operations that runs as one, against what this machine could
// do at best, with its candidates and the source of its kernels.

const totalMs = run.steps.reduce((s, x) => s + x.ms[0], 0) || 1;
const kernelOf = new Map(run.kernels.map((k) => [k.kernel, k]));
let groupTable = null;

function revealGroup(group) {
  if (groupTable) groupTable.reveal((g) => g.group === group);
}

const intensity = (g) => (g.flops > 0 && g.bytes > 0 ? g.flops / g.bytes : null);
const gflops = (g) => (g.flops > 0 && g.ms[0] > 0 ? g.flops / g.ms[0] / 1e6 : null);
const share = (g) => (g.bound_ms !== null && g.ms[0] > 0 ? g.bound_ms / g.ms[0] : null);

// Arithmetic per byte against arithmetic per second, both logarithmic, under what was measured.
function roofline() {
  const dots = run.groups.filter((g) => intensity(g) !== null && gflops(g) !== null);
  if (!dots.length || !run.rates.threads) return null;
  const W = 640, H = 330, left = 54, bottom = 40, top = 14, right = 12;
  const log = Math.log10, peak = run.rates.fma_gflops;
  const lowX = Math.floor(log(Math.min(0.1, ...dots.map(intensity)))),
        highX = Math.ceil(log(Math.max(100, ...dots.map(intensity))));
  const lowY = Math.floor(log(Math.min(peak / 100, ...dots.map(gflops)))),
        highY = Math.ceil(log(peak * 1.05));
  const x = (v) => left + ((log(v) - lowX) / (highX - lowX)) * (W - left - right);
  const y = (v) => H - bottom - ((log(v) - lowY) / (highY - lowY)) * (H - bottom - top);
  // Lines of equal bytes per second are all equally steep.
  const slope = Math.atan2(y(1) - y(10), x(10) - x(1)) * (180 / Math.PI);
  const ticks = [];
  for (let e = lowX; e <= highX; ++e)
    ticks.push(
        svg('line', {class: 'grid', x1: x(10 ** e), x2: x(10 ** e), y1: top, y2: H - bottom}),
        svg('text', {class: 'axis', x: x(10 ** e), y: H - bottom + 14, 'text-anchor': 'middle'},
            String(10 ** e)));
  for (let e = lowY; e <= highY; ++e)
    ticks.push(
        svg('line', {class: 'grid', x1: left, x2: W - right, y1: y(10 ** e), y2: y(10 ** e)}),
        svg('text', {class: 'axis', x: left - 6, y: y(10 ** e) + 4, 'text-anchor': 'end'},
            String(10 ** e)));
  const edge = 10 ** highX, start = 10 ** lowX;
  const roofs = run.rates.copies.flatMap(([size, rate], i) => {
    const bend = Math.min(edge, peak / rate), from = Math.max(start, (10 ** lowY) / rate);
    const name = `${bytes(size)}: ${digits(rate)} GB/s`;
    return [
      svg('line', {
        class: `roof roof-${i}`,
        x1: x(from),
        y1: y(from * rate),
        x2: x(bend),
        y2: y(bend * rate)
      }),
      svg('text', {
        class: 'axis',
        transform: `translate(${x(from) + 6} ${y(from * rate) - 10}) rotate(${- slope})`
      },
          name)
    ];
  });
  roofs.push(svg('line', {
    class: 'roof peak',
    x1: x(Math.min(edge, peak / run.rates.copies[0][1])),
    x2: x(edge),
    y1: y(peak),
    y2: y(peak)
  }));
  const circles =
      [...dots]
          .sort((a, b) => b.ms[0] - a.ms[0])
          .map(
              (g) =>
                  svg('circle', {
                    class:
                        `dot-group stroke-${familyOfGroup(g.name)} fill-${familyOfGroup(g.name)}`,
                    cx: x(intensity(g)),
                    cy: y(gflops(g)),
                    r: Math.max(3, Math.sqrt(g.ms[0] / totalMs) * 34),
                    onclick: () => revealGroup(g.group)
                  },
                      svg('title', {},
                          `group ${g.group} ${g.name}: ${digits(gflops(g))} GFLOP/s, ${
                              digits(intensity(g))} FLOP per byte, ${ms(g.ms[0])}`)));
  const picture =
      svg('svg', {
        viewBox: `0 0 ${W} ${H}`,
        role: 'img',
        class: 'chart',
        'aria-label': `Roofline: ${dots.length} groups under a peak of ${digits(peak)} GFLOP/s`
      },
          ticks, roofs, circles,
          svg('text', {class: 'axis', x: W - right, y: y(peak) - 6, 'text-anchor': 'end'},
              `multiply-adds: ${digits(peak)} GFLOP/s`),
          svg('text', {class: 'axis', x: (W + left) / 2, y: H - 6, 'text-anchor': 'middle'},
              'arithmetic per byte (FLOP/B)'),
          svg('text', {
            class: 'axis',
            transform: `translate(13 ${(H - bottom) / 2}) rotate(-90)`,
            'text-anchor': 'middle'
          },
              'GFLOP/s'));
  return h(
      'figure', {class: 'half'}, picture,
      h('figcaption', {},
        `Roofline: the rate of multiply-adds, and of copying buffers of four sizes, measured beside this run with ${
            count(
                run.rates.threads, 'thread')}. Larger dots take more time; press one to open it.`));
}

// The groups that take most of a run, as one bar.
function shares() {
  const byTime = [...run.groups].sort((a, b) => b.ms[0] - a.ms[0]);
  const top = byTime.slice(0, 12), rest = byTime.slice(12).reduce((s, g) => s + g.ms[0], 0);
  const most = top.length ? top[0].ms[0] : 1;
  const row = (g) =>
      h('div', {class: 'share'},
        h('button', {type: 'button', class: 'link', onclick: () => revealGroup(g.group)},
          `${g.group} ${clip(g.name, 24)}`),
        bar(g.ms[0] / most, familyOfGroup(g.name), ms(g.ms[0])),
        h('span', {class: 'number'}, `${ms(g.ms[0])}, ${percent(g.ms[0] / totalMs)}`));
  return h(
      'figure', {class: 'half'},
      h('div', {class: 'shares'}, top.map(row),
        rest > 0 ?
            h('div', {class: 'share dim'}, h('span', {}, `${byTime.length - 12} others`), h('span'),
              h('span', {class: 'number'}, `${ms(rest)}, ${percent(rest / totalMs)}`)) :
            null),
      h('figcaption', {},
        `Groups that take most of a run, and their share of all steps, which take ${
            ms(totalMs)} together.`));
}

function candidateTable(g) {
  const most = Math.max(...g.candidates.map((c) => c.ms[0]), 1e-9);
  return table(
             [
               {
                 title: 'candidate',
                 cell: (c) =>
                     [c.name, c.name === g.chosen ? h('span', {class: 'badge'}, 'chosen') : null]
               },
               {
                 title: 'timed alone',
                 number: true,
                 cell: (c) => (c.ms[0] < 0 ? 'not timed' : ms(c.ms[0]))
               },
               {
                 title: '95 % interval',
                 number: true,
                 cell: (c) => (c.ms[0] < 0 ? '' : intervalText(c.ms))
               },
               {
                 title: '',
                 cell: (c) =>
                     (c.ms[0] < 0 ?
                          '' :
                          bar(c.ms[0] / most, c.name === g.chosen ? 'chosen' : 'data', ms(c.ms[0])))
               },
               {title: 'error', number: true, cell: (c) => tiny(c.error)},
               {title: 'why not', cell: (c) => h('span', {class: 'failure'}, c.refused)},
             ],
             g.candidates, {caption: `Candidates of group ${g.group}`})
      .element;
}

// Copies the text where the browser allows it: pages opened from a file may not.
function code(title, text, isOpen) {
  const lines = text.split('\n').length;
  return h(
      'details', {open: isOpen},
      h('summary', {}, title, h('span', {class: 'dim'}, ` ${lines} lines`)),
      h('pre', {tabindex: 0}, text));
}

function stepLine(i) {
  const s = run.steps[i];
  const operand = ([place, type, written]) =>
      h('li', {}, h('b', {}, written ? 'writes ' : 'reads '), `${place} `, h('code', {}, type));
  const settings = Object.entries(s.settings).map(([k, v]) => `${k}=${v}`).join(' ');
  const what = s.kind === 'launch' ? `kernel ${s.kernel} ${s.name}` : `${s.kind} ${s.name}`;
  return h(
      'details', {},
      h('summary', {}, `step ${i}: ${what}`,
        h('span', {class: 'dim'},
          ` ${ms(s.ms[0])}${s.calls !== 1 ? `, ${s.calls} times a run` : ''}${
              s.chunks > 1 ? `, ${s.chunks} chunks` : ''}`)),
      h('ul', {class: 'wrap'}, s.operands.map(operand)),
      settings && h('p', {class: 'dim wrap'}, settings));
}

function groupDetails(g) {
  const used = [...new Set(g.steps.map((i) => run.steps[i].kernel).filter((k) => k !== null))];
  const why = {
    measured: 'it was measured to be the fastest',
    predicted: 'predicted, not measured',
    'only candidate': 'there was no other candidate'
  }[g.reason] ||
      g.reason;
  const bound = share(g);
  const origins = originsOf(g.origins);
  return h(
      'div', {class: 'group-details'},
      h('p', {}, h('b', {}, g.chosen), ` computes this group; ${why}. `,
        bound === null ? null :
                         `It takes ${ms(g.ms[0])} (95 %: ${
                             intervalText(g.ms)}) in place; this machine needs at least ${
                             ms(g.bound_ms)} for ${bytes(g.bytes)} and ${
                             flops(g.flops)}, so it runs at ${percent(bound)} of the bound.`),
      h('details', {open: origins.length <= 6},
        h('summary', {}, `computes ${count(origins.length, 'node')} of the model`),
        h('ul', {class: 'wrap'}, origins.map((o) => h('li', {}, o)))),
      candidateTable(g), g.steps.map(stepLine), used.map((k) => {
        const kernel = kernelOf.get(k);
        return [
          kernel.source ?
              code(`kernel ${k} ${kernel.name}: loop nest`, kernel.source, used.length === 1) :
              h('p', {class: 'dim'}, `Kernel ${k}: the plan file does not hold its source.`),
          kernel.assembly ? code(
                                `kernel ${k} ${kernel.name}: assembly for ${run.target}`,
                                kernel.assembly, false) :
                            null
        ];
      }));
}

// The first node by name, and how many more.
function shortOrigins(text) {
  const all = originsOf(text), more = all.length > 1 ? ` and ${all.length - 1} more` : '';
  return all.length ? clip(all[0].replace(/^node \d+ /, ''), 36) + more : '';
}

function kernelSection() {
  groupTable = table(
      [
        {title: 'group', value: (g) => g.group, cell: (g) => String(g.group)},
        {
          title: 'what',
          value: (g) => g.name,
          cell: (g) => [h('i', {class: `swatch fill-${familyOfGroup(g.name)}`}), clip(g.name, 34)]
        },
        {
          title: 'from',
          cell: (g) => h('span', {class: 'dim', title: g.origins}, shortOrigins(g.origins))
        },
        {title: 'by', value: (g) => g.chosen, cell: (g) => g.chosen},
        {title: 'time', number: true, value: (g) => g.ms[0], cell: (g) => ms(g.ms[0])},
        {
          title: 'of the run',
          number: true,
          value: (g) => g.ms[0],
          cell: (g) => percent(g.ms[0] / totalMs)
        },
        {title: 'bytes', number: true, value: (g) => g.bytes, cell: (g) => bytes(g.bytes)},
        {title: 'arithmetic', number: true, value: (g) => g.flops, cell: (g) => flops(g.flops)},
        {
          title: 'GB/s',
          number: true,
          value: (g) => g.bytes / g.ms[0],
          cell: (g) => (g.bytes > 0 && g.ms[0] > 0 ? digits(g.bytes / g.ms[0] / 1e6) : '-')
        },
        {
          title: 'GFLOP/s',
          number: true,
          value: (g) => gflops(g) || 0,
          cell: (g) => (gflops(g) === null ? '-' : digits(gflops(g)))
        },
        {
          title: 'of the roofline',
          number: true,
          value: (g) => share(g) || 0,
          cell: (g) => (share(g) === null ? '-' : labelled(share(g), 'chosen'))
        },
      ],
      run.groups, {
        caption: 'Groups with time, bytes, arithmetic and share of the roofline',
        open: groupDetails,
        sorted: 4,
        id: 'groups'
      });
  const used = [...new Set(run.groups.map((g) => familyOfGroup(g.name)))];
  section(
      'kernels', 'Kernels',
      `Operations that are computed together form a group; each runs as one kernel or library call. Times are medians of ${
          count(run.runs, 'profiled run')}, taken in place with ${
          count(
              run.threads,
              'thread')}. The roofline is a bound: the longer of the group’s arithmetic at the rate of multiply-adds and its bytes (read once and written once) at the rate of copying a buffer of that size, both measured on this machine. More than 100 % means that a buffer was still in a faster cache than its size suggests.`,
      h('div', {class: 'figures'}, shares(), roofline()), legend(used), groupTable.element);
}
