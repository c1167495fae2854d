// The verdict in a sentence, the figures behind it, and the strategies side by side.

const chosen = report.strategies.find((s) => s.chosen);
const timed = report.strategies.filter((s) => s.ms[0] >= 0 && !s.failure);

// Compared with the chosen strategy in paired rounds: what the interval of the ratio says.
function standing(s) {
  const r = s.paired_ratio;
  if (!r) return s.ratio > 1 ? `${times(s.ratio)} as long` : '';
  if (r[1] > 1.02) return `${times(r[0])} as long`;
  if (r[2] < 0.98) return `${times(r[0])}, faster`;
  return 'no clear difference';
}

// What verification did for it.
function tried(v) {
  const known = v.kernels_known ? ` (${v.kernels_known} in earlier runs)` : '';
  let text = `Verified: ${v.kernels + v.kernels_known} kernels${known} in ${ms(v.kernels_ms)}, ` +
      `the model in ${ms(v.model_ms)} on ${v.inputs.join('; ')}`;
  if (v.threads.length)
    text += `, again on ${v.threads.join(', ')} threads, in other memory and another order`;
  else if (v.left_out)
    text += `, not again: ${v.left_out}`;
  return text + '.';
}

function verdict() {
  if (!chosen) {
    return [
      `The plan “${report.plan.strategy}” runs ${report.model.name} in `,
      h('b', {}, ms(run.run_ms)), ' with each step waited for (profiled just now).'
    ];
  }
  const slower =
      timed
          .filter(
              (s) => s !== chosen && s.name !== 'ref' && s.paired_ratio && s.paired_ratio[1] > 1.02)
          .sort((a, b) => b.paired_ratio[0] - a.paired_ratio[0]);
  const equal = timed.filter((s) => s !== chosen && s.name !== 'ref' && !slower.includes(s));
  const reference = timed.find((s) => s.name === 'ref');
  const parts = [
    'Strategy ', h('b', {}, chosen.name), ' was chosen: one run takes ',
    h('b', {}, ms(chosen.ms[0])), ` (95 % interval ${intervalText(chosen.ms)})`
  ];
  slower.forEach(
      (s, i) => parts.push(
          i ? ', ' : '; ', h('b', {}, times(s.paired_ratio[0])), ` faster than ${s.name}`));
  if (equal.length)
    parts.push(`; not clearly faster than ${equal.map((s) => s.name).join(' or ')}`);
  if (reference && chosen.name !== 'ref')
    parts.push(`; the interpreter needs ${times(reference.ratio)} as long`);
  parts.push('. ');
  if (chosen.max_error >= 0 && chosen.error_limit >= 0)
    parts.push(
        'Its results were verified: the largest error is ', h('b', {}, tiny(chosen.max_error)),
        ` of the largest value, and ${tiny(chosen.error_limit)} is allowed. `, tried(report.verified));
  else
    parts.push('Its results as a whole were not verified in this run.');
  return parts;
}

// Medians far above the fastest round say that others used the machine.
function noise() {
  const lists = timed.map((s) => s.times).filter((t) => t && t.length > 3);
  const worst = Math.max(
      0, ...lists.map((t) => [...t].sort((a, b) => a - b)[t.length >> 1] / Math.min(...t)));
  if (worst < 1.3) return null;
  return h(
      'p', {class: 'note'},
      `This machine was busy: a typical round took up to ${
          times(
              worst)} the time of the fastest one. Strategies are still compared within the same rounds; read single times with care.`);
}

function tile(title, value, detail) {
  return h(
      'div', {class: 'tile'}, h('span', {}, title), h('b', {}, value),
      h('span', {class: 'dim'}, detail));
}

function tiles() {
  const m = run.memory, out = [];
  if (chosen) out.push(tile('one run', ms(chosen.ms[0]), `95 %: ${intervalText(chosen.ms)}`));
  const launches = run.steps.filter((s) => s.kind === 'launch' || s.kind === 'library').length;
  out.push(tile(
      'steps', String(launches),
      `${count(run.kernels.length, 'kernel')}, ${count(run.threads, 'thread')}`));
  out.push(tile(
      'memory', bytes(m.peak),
      `${bytes(m.arena)} arena, ${bytes(m.weights + m.prepared)} weights`));
  if (chosen && chosen.max_error >= 0)
    out.push(tile(
        'error, of what is allowed', percent(chosen.max_error / chosen.error_limit),
        `${tiny(chosen.max_error)} of ${tiny(chosen.error_limit)} allowed`));
  if (chosen && chosen.compile_ms >= 0)
    out.push(tile(
        'compilation', ms(chosen.compile_ms), `reading the model ${ms(report.model.import_ms)}`));
  out.push(tile('plan file', bytes(report.plan.bytes), report.plan.file.split('/').at(-1)));
  return h('div', {class: 'tiles'}, out);
}

// A strategy that has nothing to do here has not failed.
const isIdle = (s) => (s.failure || '').startsWith('skipped: ');
const remarkClass = (s) => (isIdle(s) ? 'dim' : s.failure ? 'failure' : '');

// Bars to the median, a whisker over the interval, a dot for each round.
function raceChart() {
  const compiled = timed.filter((s) => s.name !== 'ref');
  const shown = compiled.length ? compiled : timed;
  const slowest = Math.max(...shown.map((s) => s.ms[0]));
  const most = Math.max(...shown.map((s) => Math.min(s.ms[2], 1.6 * slowest))) * 1.06;
  const x = (t) => Math.min(100, (100 * t) / most);
  return h('div', {class: 'race', role: 'list'}, report.strategies.map((s) => {
    const failed = s.failure || s.ms[0] < 0;
    const cut = !failed && s.ms[0] > most;
    const body = failed ?
        h('p', {class: remarkClass(s)}, s.failure || 'not timed') :
        h('div', {class: 'track', 'aria-hidden': true}, h('span', {
            class: `race-bar ${s.chosen ? 'chosen' : ''} ${cut ? 'cut' : ''}`,
            style: {width: `${x(s.ms[0])}%`}
          }),
          cut ? null : h('span', {
            class: 'whisker',
            style: {left: `${x(s.ms[1])}%`, width: `${x(s.ms[2]) - x(s.ms[1])}%`}
          }),
          cut ? null : (s.times || []).filter((t) => t <= most).map((t) => h('i', {
                                                                      class: 'dot',
                                                                      style: {left: `${x(t)}%`}
                                                                    })));
    return h(
        'div', {class: 'racer', role: 'listitem'},
        h('div', {class: 'racer-name'}, h('b', {}, s.name),
          s.chosen ? h('span', {class: 'badge'}, 'chosen') : null),
        body,
        h('div', {class: 'racer-time'},
          isIdle(s)    ? '-' :
              failed ? 'failed' :
                       [h('b', {}, ms(s.ms[0])), cut ? ' (off the scale)' : null]));
  }));
}

function strategyTable() {
  return table(
             [
               {
                 title: 'strategy',
                 value: (s) => s.name,
                 cell: (s) => [s.name, s.chosen ? h('span', {class: 'badge'}, 'chosen') : null]
               },
               {title: 'one run', number: true, value: (s) => s.ms[0], cell: (s) => ms(s.ms[0])},
               {
                 title: '95 % interval',
                 number: true,
                 cell: (s) => (s.ms[0] < 0 ? '-' : intervalText(s.ms))
               },
               {title: 'rounds', number: true, cell: (s) => (s.times ? s.times.length : '-')},
               {
                 title: 'against the chosen',
                 value: (s) => s.ratio,
                 cell: (s) => (s.chosen || s.ms[0] < 0 ? '-' : standing(s))
               },
               {
                 title: 'error',
                 number: true,
                 value: (s) => s.max_error,
                 cell: (s) => tiny(s.max_error)
               },
               {title: 'allowed', number: true, cell: (s) => tiny(s.error_limit)},
               {
                 title: 'compile',
                 number: true,
                 value: (s) => s.compile_ms,
                 cell: (s) => ms(s.compile_ms)
               },
               {
                 title: 'memory',
                 number: true,
                 value: (s) => s.peak_bytes,
                 cell: (s) => bytes(s.peak_bytes)
               },
               {
                 title: 'remark',
                 cell: (s) => h('span', {class: remarkClass(s)}, s.failure)
               },
             ],
             report.strategies,
             {caption: 'Strategies with their times, errors and memory', id: 'strategies'})
      .element;
}

const strategyMeaning = {
  ref: 'the reference interpreter, judge of all others',
  cpu: 'generated kernels only',
  onednn: 'the library oneDNN wherever it fits',
  multi: 'parts spread over devices',
  auto: 'for each part what was measured to be fastest',
};

function overview() {
  const named = report.strategies.filter((s) => strategyMeaning[s.name])
                    .map((s) => `${s.name}: ${strategyMeaning[s.name]}`);
  const m = report.model;
  const types = (list) => list.map((p) => `${p.name} ${p.type}`).join(', ');
  document.querySelector('main').append(h('h1', {}, m.name || 'model'));
  section(
      'overview', 'Overview', null, h('p', {class: 'verdict'}, verdict()), tiles(),
      report.strategies.length ?
          [
            h('h3', {}, 'Strategies'),
            h('p', {class: 'explain'},
              `Time of one run; shorter is better. The bar ends at the median, the line spans its 95 % interval, each dot is one of the interleaved rounds. ${
                  named.join('; ')}.`),
            raceChart(), noise(), strategyTable()
          ] :
          null,
      h('p', {class: 'dim wrap'}, `Inputs: ${types(m.params)}. Results: ${types(m.results)}.`),
      m.samples_are_made_up ?
          h('p', {class: 'note'},
            'No sample inputs were given: times and errors are those of random data.') :
          null,
      m.warnings.map((w) => h('p', {class: 'note wrap'}, `Warning: ${w}`)));
}
