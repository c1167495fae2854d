// Layered drawing of a graph, top to bottom: ranks by longest path, order within a rank by medians
// of neighbours, positions by least squares that keep the order. Draws nothing.

// nodes: [{w, h, late}], operands first; edges: [[from, to]]. Late nodes stand close to their first
// user. Gives {x, y} of the middle of each node,
// points of each edge, and the size of all.
function layered(nodes, edges) {
  const gapX = 14, gapY = 30, mostDummies = 8000;
  const n = nodes.length;
  const rank = new Array(n).fill(0);
  const ins = nodes.map(() => []), outs = nodes.map(() => []);
  for (const [a, b] of edges) {
    ins[b].push(a);
    outs[a].push(b);
  }
  for (let i = 0; i < n; ++i)
    for (const a of ins[i]) rank[i] = Math.max(rank[i], rank[a] + 1);
  for (let i = n - 1; i >= 0; --i)
    if (nodes[i].late && outs[i].length) rank[i] = Math.min(...outs[i].map((o) => rank[o])) - 1;
  const least = rank.reduce((m, r) => Math.min(m, r), 0);
  for (let i = 0; i < n; ++i) rank[i] -= least;

  // Long edges get a place in each rank they cross.
  const items = nodes.map(
      (node, i) => ({w: node.w, h: node.h, rank: rank[i], late: node.late, up: [], down: []}));
  let dummies = 0;
  for (const [a, b] of edges) dummies += rank[b] - rank[a] - 1;
  const chains = edges.map(([a, b]) => {
    const chain = [a];
    if (dummies <= mostDummies)
      for (let r = rank[a] + 1; r < rank[b]; ++r) {
        chain.push(items.length);
        items.push({w: 6, h: 0, rank: r, late: nodes[a].late, up: [], down: [], dummy: true});
      }
    chain.push(b);
    for (let k = 1; k < chain.length; ++k) {
      items[chain[k]].up.push(chain[k - 1]);
      items[chain[k - 1]].down.push(chain[k]);
    }
    return chain;
  });

  const layers = [];
  items.forEach((item, i) => (layers[item.rank] ||= []).push(i));
  for (let r = 0; r < layers.length; ++r) layers[r] ||= [];
  const place = new Array(items.length).fill(0);
  const number = (layer) => layer.forEach((i, k) => {
    place[i] = k;
  });
  layers.forEach(number);
  const median = (list) => {
    const s = list.map((i) => place[i]).sort((a, b) => a - b), m = s.length >> 1;
    return s.length % 2 ? s[m] : (s[m - 1] + s[m]) / 2;
  };
  for (let sweep = 0; sweep < 8; ++sweep) {
    const down = sweep % 2 === 0;
    for (let k = 1; k < layers.length; ++k) {
      const layer = layers[down ? k : layers.length - 1 - k];
      const wanted = new Map(layer.map((i) => {
        const near = down ? items[i].up : items[i].down;
        return [i, near.length ? median(near) : place[i]];
      }));
      layer.sort((a, b) => wanted.get(a) - wanted.get(b) || place[a] - place[b]);
      number(layer);
    }
  }

  const x = new Array(items.length).fill(0);
  for (const layer of layers) {
    let at = 0;
    for (const i of layer) {
      x[i] = at + items[i].w / 2;
      at += items[i].w + gapX;
    }
  }
  for (let sweep = 0; sweep < 14; ++sweep) {
    const down = sweep % 2 === 0;
    for (let k = 0; k < layers.length; ++k) {
      const layer = layers[down ? k : layers.length - 1 - k];
      const wanted = layer.map((i) => {
        const all =
            sweep < 12 ? (down ? items[i].up : items[i].down) : [...items[i].up, ...items[i].down];
        // What comes from inputs stands in line with what comes from inputs.
        const main = items[i].late ? [] : all.filter((j) => !items[j].late);
        const near = main.length ? main : all;
        return near.length ? near.reduce((s, j) => s + x[j], 0) / near.length : x[i];
      });
      spread(layer, wanted, items, gapX, x);
    }
  }

  const tops = [];
  let y = 8;
  for (const layer of layers) {
    const height = layer.reduce((m, i) => Math.max(m, items[i].h), 0);
    tops.push(y + height / 2);
    y += height + gapY;
  }
  const left = items.reduce((m, item, i) => Math.min(m, x[i] - item.w / 2), Infinity) - 8;
  const right = items.reduce((m, item, i) => Math.max(m, x[i] + item.w / 2), -Infinity) + 8;
  const point = (i) => [x[i] - left, tops[items[i].rank]];
  return {
    x: nodes.map((_, i) => point(i)[0]),
    y: nodes.map((_, i) => point(i)[1]),
    paths: chains.map((chain) => chain.map(point)),
    width: n ? right - left : 0,
    height: n ? y - gapY + 8 : 0,
  };
}

// Positions nearest to those wanted in which neighbours do not overlap (pool adjacent violators).
function spread(layer, wanted, items, gap, x) {
  const offsets = [];
  let at = 0;
  layer.forEach((i, k) => {
    if (k) at += (items[layer[k - 1]].w + items[i].w) / 2 + gap;
    offsets.push(at);
  });
  const blocks = [];
  layer.forEach((i, k) => {
    let block = {sum: 0, weight: 0, count: 1};
    block.weight = items[i].dummy ? 3 : 1;
    block.sum = (wanted[k] - offsets[k]) * block.weight;
    while (blocks.length && blocks.at(-1).sum / blocks.at(-1).weight > block.sum / block.weight) {
      const last = blocks.pop();
      block = {
        sum: last.sum + block.sum,
        weight: last.weight + block.weight,
        count: last.count + block.count
      };
    }
    blocks.push(block);
  });
  let k = 0;
  for (const block of blocks)
    for (let c = 0; c < block.count; ++c, ++k) x[layer[k]] = block.sum / block.weight + offsets[k];
}

// A smooth line through the points, from below one box to above the next.
function edgePath(points, fromHeight, toHeight) {
  const p = points.map((q) => [...q]);
  p[0][1] += fromHeight / 2;
  p.at(-1)[1] -= toHeight / 2;
  let d = `M${p[0][0].toFixed(1)} ${p[0][1].toFixed(1)}`;
  for (let i = 1; i < p.length; ++i) {
    const [x0, y0] = p[i - 1], [x1, y1] = p[i], bend = (y1 - y0) / 2;
    d += `C${x0.toFixed(1)} ${(y0 + bend).toFixed(1)} ${x1.toFixed(1)} ${(y1 - bend).toFixed(1)} ${
        x1.toFixed(1)} ${y1.toFixed(1)}`;
  }
  return d;
}
