// One run along its time, and the memory that it works in.

function stepTitle(i) {
  const s = run.steps[i];
  const g = s.group === null ? null : run.groups.find((x) => x.group === s.group);
  return g ? `step ${i}: group ${g.group} ${g.name}` : `step ${i}: ${s.kind} ${s.name}`;
}
function stepFamily(i) {
  const s = run.steps[i];
  const g = s.group === null ? null : run.groups.find((x) => x.group === s.group);
  return g ? familyOfGroup(g.name) : family(s.kind);
}

function axis(draw, from, to, pixels) {
  const wanted = Math.max(2, pixels / 110), raw = (to - from) / wanted,
        unit = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((f) => f * unit).find((v) => v >= raw);
  for (let v = Math.ceil(from / step) * step; v <= to; v += step) draw(v);
}

function timelineSection() {
  if (!run.timeline.length) return;
  const end = run.timeline.reduce((m, [, start, us]) => Math.max(m, start + us), 0);
  const box = h('div', {
    class: 'scroll chart-box',
    tabindex: 0,
    role: 'region',
    'aria-label': 'Timeline of one run'
  });
  const info = h('p', {class: 'dim', 'aria-live': 'polite'}, 'Press a step to see what it is.');
  function draw(zoom) {
    const W = Math.max(300, box.clientWidth - 4) * zoom, H = 84;
    const x = (us) => (us / end) * (W - 2) + 1;
    const marks = [];
    axis(
        (v) => marks.push(
            svg('line', {class: 'grid', x1: x(v), x2: x(v), y1: 0, y2: H - 18}),
            svg('text', {class: 'axis', x: x(v) + 3, y: H - 5}, ms(v / 1000))),
        0, end, W);
    const bars = run.timeline.map(([step, start, us]) => {
      const w = Math.max(0.8, x(start + us) - x(start) - 0.4), g = run.steps[step].group;
      return svg(
          'g', {
            class: 'event',
            onclick: () => {
              info.replaceChildren(
                  `${stepTitle(step)}, ${ms(us / 1000)} from ${ms(start / 1000)}. `,
                  g === null ?
                      '' :
                      h('button', {type: 'button', class: 'link', onclick: () => revealGroup(g)},
                        'open its group'));
            }
          },
          svg('title', {}, `${stepTitle(step)}, ${ms(us / 1000)}`), svg('rect', {
            class: `fill-${stepFamily(step)}`,
            x: x(start),
            y: 8,
            width: w,
            height: 50,
            rx: 1.5
          }),
          w > 46 ? svg('text', {class: 'on-fill', x: x(start) + 4, y: 37},
                       clip(
                           g === null ? run.steps[step].kind :
                                        `${g} ${run.groups.find((q) => q.group === g).name}`,
                           Math.floor((w - 6) / 6.6))) :
                   null);
    });
    box.replaceChildren(
        svg('svg', {
          width: W,
          height: H,
          role: 'img',
          'aria-label': `${run.timeline.length} steps in ${ms(end / 1000)}`
        },
            marks, bars));
  }
  section(
      'timeline', 'Timeline',
      'The steps of the fastest profiled run, in order. Each step is waited for before the next begins, so the whole takes longer than a run that is not profiled.',
      box);
  const cut = run.timeline_is_cut ?
      h('p', {class: 'note'}, `Only the first ${run.timeline.length} steps of the run are shown.`) :
      null;
  const families = [...new Set(run.timeline.map(([s]) => stepFamily(s)))];
  box.before(
      h('div', {class: 'toolbar'}, zoomable(box, draw, {label: 'Timeline'}), legend(families)));
  box.after(info, ...(cut ? [cut] : []));
}

function memorySection() {
  const m = run.memory, n = run.steps.length;
  const parts = [
    ['weights', m.weights], ['prepared weights', m.prepared], ['rest of the plan file', m.file],
    ['plan', m.plan], ['code', m.code], ['arena', m.arena], ['scratch', m.scratch],
    ['copies of inputs and outputs', m.staging], ['bound steps', m.steps], ['library', m.library]
  ].filter((p) => p[1] > 0);
  const most = Math.max(1, ...parts.map((p) => p[1]));
  const summary =
      h('div', {class: 'shares'},
        parts.map(
            ([name, v]) =>
                h('div', {class: 'share'}, h('span', {}, name), bar(v / most, 'chosen', bytes(v)),
                  h('span', {class: 'number'}, bytes(v)))),
        h('div', {class: 'share'}, h('b', {}, 'in all'), h('span'),
          h('b', {class: 'number'}, bytes(m.peak))));
  const box = h(
      'div', {class: 'scroll chart-box', tabindex: 0, role: 'region', 'aria-label': 'Memory map'});
  const info =
      h('div', {class: 'info', 'aria-live': 'polite'},
        h('p', {class: 'dim'}, 'Press a block to see which step makes it and which read it.'));
  const users = new Map();
  run.steps.forEach((s, i) => s.operands.forEach(([place, type, written]) => {
    const match = /^arena (\d+)$/.exec(place);
    if (!match) return;
    const b = Number(match[1]);
    if (!users.has(b)) users.set(b, {makes: [], reads: [], type});
    users.get(b)[written ? 'makes' : 'reads'].push(i);
  }));
  const starts = [0];
  for (const s of run.steps) starts.push(starts.at(-1) + Math.max(s.ms[0], totalMs / n / 200));
  let byTime = false;
  const high = Math.max(m.arena, ...m.buffers.map(([, offset, size]) => offset + size), 1);

  function describe([b, offset, size, first, last]) {
    const u = users.get(b) || {makes: [], reads: [], type: ''};
    const list = (steps) =>
        (steps.length ? [...new Set(steps)].slice(0, 10).map((i) => h('li', {}, stepTitle(i))) :
                        h('li', {class: 'dim'}, 'none'));
    info.replaceChildren(
        h('div', {class: 'facts'},
          h('div', {}, h('h4', {}, `buffer ${b}`), h('code', {class: 'wrap'}, u.type),
            h('p', {},
              `${bytes(size)} at offset ${offset.toLocaleString('en')}, in use from step ${
                  first} to step ${last}`)),
          h('div', {}, h('h4', {}, 'is written by'), h('ul', {}, list(u.makes))),
          h('div', {}, h('h4', {}, 'is read by'), h('ul', {}, list(u.reads)))));
  }

  let zoomed = 1;
  function draw(zoom) {
    zoomed = zoom;
    const W = Math.max(300, box.clientWidth - 4) * zoom, H = 340, left = 64, bottom = 22, top = 16;
    const at = byTime ? starts : starts.map((_, i) => i), end = at.at(-1);
    const x = (i) => left + (at[i] / end) * (W - left - 4);
    const y = (b) => H - bottom - (b / high) * (H - bottom - top);
    const marks = [];
    axis(
        (v) => marks.push(
            svg('line', {class: 'grid', x1: left, x2: W, y1: y(v), y2: y(v)}),
            svg('text', {class: 'axis', x: left - 6, y: y(v) + 4, 'text-anchor': 'end'}, bytes(v))),
        0, high, H);
    axis((v) => {
      if (byTime || Number.isInteger(v))
        marks.push(
            svg('text', {class: 'axis', x: left + (v / end) * (W - left - 4), y: H - 6},
                byTime ? ms(v) : `step ${v}`));
    }, 0, end, W);
    const blocks = m.buffers.map((b) => {
      const [id, offset, size, first, last] = b, u = users.get(id);
      const w = Math.max(1, x(last + 1) - x(first) - 0.6),
            tall = Math.max(1, y(offset) - y(offset + size) - 0.6);
      const kind = u && u.makes.length ? stepFamily(u.makes[0]) : 'data';
      return svg(
          'g', {class: 'event', onclick: () => describe(b)},
          svg('title', {}, `buffer ${id}: ${bytes(size)}, steps ${first} to ${last}`), svg('rect', {
            class: `fill-${kind} block`,
            x: x(first),
            y: y(offset + size),
            width: w,
            height: tall
          }),
          w > 54 && tall > 13 ?
              svg('text', {class: 'on-fill', x: x(first) + 4, y: y(offset + size / 2) + 4},
                  bytes(size)) :
              null);
    });
    let d = '';
    m.live.forEach((v, i) => {
      d += `${i ? 'L' : 'M'}${x(i).toFixed(1)} ${y(v).toFixed(1)}H${x(i + 1).toFixed(1)}`;
    });
    const line = (v, kind, text) =>
        [svg('line', {class: kind, x1: left, x2: W, y1: y(v), y2: y(v)}),
         svg('text', {
           class: `axis ${kind}`,
           x: W - 6,
           y: y(v) + (kind === 'peak-line' ? -4 : 12),
           'text-anchor': 'end'
         },
             text)];
    box.replaceChildren(
        svg('svg', {
          width: W,
          height: H,
          role: 'img',
          'aria-label': `${m.buffers.length} buffers in an arena of ${bytes(m.arena)}`
        },
            marks, blocks, svg('path', {class: 'live-line', d}),
            line(m.arena, 'peak-line', `arena ${bytes(m.arena)}`),
            line(m.arena_lower_bound, 'bound-line', `lower bound ${bytes(m.arena_lower_bound)}`)));
  }

  const fragmentation = m.arena_lower_bound ? m.arena / m.arena_lower_bound - 1 : 0;
  section(
      'memory', 'Memory',
      'Values between steps live in one arena. Each block is such a value: its width is the time it is needed, its height its size, and blocks above each other are in use together. The line shows the bytes in use at each step; the lower bound is its highest point, and no arrangement could need less.',
      m.buffers.length ?
          [box, info] :
          h('p', {}, 'This plan needs no arena: every value lies in inputs, results or weights.'),
      summary);
  if (!m.buffers.length) return;
  const toggle =
      h('label', {class: 'check'}, h('input', {
          type: 'checkbox',
          id: 'memory-by-time',
          onchange: (e) => {
            byTime = e.target.checked;
            draw(zoomed);
          }
        }),
        'widths by measured time');
  box.before(h(
      'div', {class: 'toolbar'}, zoomable(box, draw, {label: 'Memory map'}), toggle,
      h('span', {class: 'dim'},
        `${count(m.buffers.length, 'buffer')}, ${percent(fragmentation)} above the lower bound`)));
}
