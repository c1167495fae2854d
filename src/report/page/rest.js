// Errors, compilation, machine.

function errorSection() {
  const candidates = run.groups.flatMap((g) => g.candidates.map((c) => ({...c, group: g})));
  const checked = candidates.filter((c) => c.error >= 0),
        refused = candidates.filter((c) => c.refused);
  const rows = report.errors;
  const whole = rows.length ?
      table(
          [
            {title: 'strategy', value: (e) => e.strategy, cell: (e) => e.strategy},
            {title: 'result', value: (e) => e.result, cell: (e) => e.result},
            {title: 'sample', number: true, value: (e) => e.sample, cell: (e) => String(e.sample)},
            {
              title: 'largest error',
              number: true,
              value: (e) => e.error,
              cell: (e) => tiny(e.error)
            },
            {title: 'allowed', number: true, value: (e) => e.limit, cell: (e) => tiny(e.limit)},
            {
              title: 'of what is allowed',
              number: true,
              value: (e) => e.error / e.limit,
              cell: (e) =>
                  (e.limit > 0 ? labelled(e.error / e.limit, e.ok ? 'good' : 'bad') :
                       e.ok    ? 'equal' :
                                 'differs')
            },
            {
              title: 'largest value',
              number: true,
              value: (e) => e.largest,
              cell: (e) => digits(e.largest)
            },
            {
              title: 'verdict',
              cell: (e) =>
                  (e.ok ? h('span', {class: 'story new'}, 'accepted') :
                          h('span', {class: 'failure wrap'}, e.problem))
            },
          ],
          rows, {caption: 'Errors of whole runs against the reference', id: 'errors-table'})
          .element :
      h('p', {}, 'Whole runs were not compared with the reference here.');
  const worst = [...checked].sort((a, b) => b.error - a.error).slice(0, 8);
  section(
      'errors', 'Errors',
      'Results are held against the reference interpreter in double precision. Allowed is four times the error that a plain implementation in the model’s own precision makes, plus sixteen roundings of the largest value.',
      whole, h('h3', {}, 'Kernels'),
      h('p', {},
        checked.length ?
            `${count(checked.length, 'candidate')} of ${
                count(
                    run.groups.length,
                    'group')} were checked by themselves, on random and on extreme inputs. The largest errors, as a share of the largest value:` :
            'No candidate was checked by itself in this run.'),
      worst.length ?
          table(
              [
                {
                  title: 'group',
                  cell: (c) =>
                      h('button',
                        {type: 'button', class: 'link', onclick: () => revealGroup(c.group.group)},
                        `${c.group.group} ${c.group.name}`)
                },
                {title: 'candidate', cell: (c) => c.name},
                {title: 'error', number: true, cell: (c) => tiny(c.error)}, {
                  title: '',
                  cell: (c) => bar(c.error / (worst[0].error || 1), 'good', tiny(c.error))
                }
              ],
              worst, {caption: 'Largest errors of kernels'})
              .element :
          null,
      refused.length ?
          [
            h('h3', {}, 'Refused candidates'),
            h('ul', {},
              refused.map(
                  (c) =>
                      h('li', {class: 'wrap'},
                        `${c.name} for group ${c.group.group} ${c.group.name}: `,
                        h('span', {class: 'failure'}, c.refused))))
          ] :
          null);
}

const phaseNames = [
  ['passes', 'passes'], ['schedule', 'grouping and memory'], ['verify', 'checking kernels'],
  ['measure', 'timing candidates'], ['code', 'machine code'], ['prepare', 'preparing weights']
];

function compileSection() {
  const compiled = report.strategies.filter((s) => s.compile);
  const most = Math.max(1e-9, ...compiled.map((s) => s.compile.total));
  const phases = compiled.map(
      (s) =>
          h('div', {class: 'share'}, h('b', {}, s.name),
            h('span', {class: 'meter stacked'},
              phaseNames.map(([id, name], i) => h('span', {
                               class: `fill-phase-${i}`,
                               title: `${name}: ${ms(s.compile[id])}`,
                               style: {width: `${(100 * s.compile[id]) / most}%`}
                             }))),
            h('span', {class: 'number'}, ms(s.compile.total))));
  const detail = compiled.length ?
      table(
          [
            {title: 'strategy', cell: (s) => s.name},
            ...phaseNames.map(
                ([id, name]) => ({title: name, number: true, cell: (s) => ms(s.compile[id])})),
            {title: 'in all', number: true, cell: (s) => ms(s.compile.total)},
            {title: 'groups', number: true, cell: (s) => s.compile.groups},
            {title: 'by library', number: true, cell: (s) => s.compile.library_groups},
            {title: 'kernels', number: true, cell: (s) => s.compile.kernels},
            {title: 'compiled', number: true, cell: (s) => s.compile.compiled},
            {title: 'from cache', number: true, cell: (s) => s.compile.from_cache},
          ],
          compiled, {caption: 'Phases of compilation'})
          .element :
      null;
  const longest = Math.max(1e-9, ...report.passes.map((p) => p.ms));
  const passes = report.passes.length ?
      table(
          [
            {title: 'pass', cell: (p) => h('b', {}, p.name)},
            {title: 'what it does', cell: (p) => p.does},
            {title: 'time', number: true, value: (p) => p.ms, cell: (p) => ms(p.ms)},
            {title: '', cell: (p) => bar(p.ms / longest, 'chosen', ms(p.ms))},
            {
              title: 'nodes',
              number: true,
              value: (p) => p.after,
              cell: (p) => (p.changed ? `${p.before} → ${p.after}` : String(p.after))
            },
            {
              title: 'rules that fired',
              cell: (p) =>
                  (p.rules.length ?
                       p.rules.map(([rule, n]) => `${rule} ${n}×`).join(', ') :
                       h('span', {class: 'dim'}, p.changed ? 'no rules of its own' : 'no change'))
            },
          ],
          report.passes, {caption: 'Passes with time, nodes and rules', id: 'passes-table'})
          .element :
      null;
  if (!compiled.length && !passes) return;
  section(
      'compilation', 'Compilation',
      'Where the time of the compiler goes. Kernels that were compiled or checked before come from the cache on disk.',
      phases.length ?
          [
            h('div', {class: 'shares'}, phases),
            h('p', {class: 'legend'},
              phaseNames.map(
                  ([, name], i) => h('span', {}, h('i', {class: `swatch fill-phase-${i}`}), name)))
          ] :
          null,
      detail, passes ? [h('h3', {}, 'Passes'), passes] : null);
}

function machineSection() {
  const e = report.environment, p = report.plan;
  const sizes = Object.entries(run.sizes).map(([k, v]) => `${k} = ${v}`).join(', ');
  const facts = [
    ['processor', e.processor],
    ['device', e.device], ['kernels made for', run.target], ['threads', e.threads],
    ['sizes timed', e.timed_sizes || 'fixed'], ['busy with others', `${digits(100 * e.busy)} %`], ['date', e.date],
    ['command', e.command], ['model', report.model.file], ['plan', p.file],
    ['verification', p.verification], ['choices', p.measured ? 'measured' : 'predicted'],
    ['sizes', sizes], ['hone', e.hone], ['code generator', e.code_generator],
    ['built with', e.compiler],
    [
      'multiply-adds',
      `${digits(run.rates.fma_gflops)} GFLOP/s (f32, ${count(run.rates.threads, 'thread')})`
    ],
    ...run.rates.copies.map(
        ([size, rate]) => [`copying ${bytes(size)}`, `${digits(rate)} GB/s, read and written`])
  ].filter(([, v]) => v !== '' && v !== undefined);
  const others = report.variants.length > 1 ? [h('h3', {}, 'Variants'), h('p', {class: 'explain'}, 'One plan serves several cases. This page shows the one that served the first sample.'),
    table([{title: 'variant', cell: (v) => String(report.variants.indexOf(v)) + (report.variants.indexOf(v) === run.variant ? ' (shown)' : '')}, {title: 'target', cell: (v) => v.target},
      {title: 'when', cell: (v) => h('code', {class: 'wrap'}, v.guards.map((g) => clip(g, 120)).join(' and ') || 'always')}, {title: 'groups', number: true, cell: (v) => v.groups},
      {title: 'arena', number: true, cell: (v) => (v.arena_bytes === null ? '-' : bytes(v.arena_bytes))}], report.variants, {caption: 'Variants of the plan'}).element] : null;
  section(
      'machine', 'Machine', null,
      h('dl', {class: 'machine'},
        facts.map(([k, v]) => [h('dt', {}, k), h('dd', {class: 'wrap'}, String(v))])),
      others);
}
