// The history of a connection, drawn with uPlot.
'use strict';

document.addEventListener('DOMContentLoaded', () => {
  const resolve = (name) => { // light-dark() is for CSS, not for a canvas
    const probe = document.createElement('span');
    probe.className = name;
    document.body.append(probe);
    const value = getComputedStyle(probe).color;
    probe.remove();
    return value;
  };
  const axis = () => ({ stroke: resolve('ink-soft'), grid: { stroke: resolve('ink-line'), width: 1 }, ticks: { show: false }, font: '12px system-ui, sans-serif' });

  // Half of the widest bar, so that the first one and the last one are whole.
  const widest = 28;
  const roomy = (u, min, max) => {
    const wide = Math.max(u.bbox.width / devicePixelRatio || u.width - 110, 4 * widest);
    const half = Math.max((max - min) * (widest / 2 + 4) / (wide - widest - 8), 1);
    return [min - half, max + half];
  };
  // A run that failed has a cross, which tells without a colour.
  const failures = 3;
  const crosses = (u) => {
    const { ctx } = u;
    const arm = 4.5 * devicePixelRatio;
    ctx.save();
    ctx.strokeStyle = resolve('ink-bad');
    ctx.lineWidth = 2.5 * devicePixelRatio;
    ctx.beginPath();
    u.data[failures].forEach((value, i) => {
      if (value === null) return;
      const x = u.valToPos(u.data[0][i], 'x', true);
      const y = u.valToPos(value, 'y', true) - 2 * arm;
      ctx.moveTo(x - arm, y - arm);
      ctx.lineTo(x + arm, y + arm);
      ctx.moveTo(x + arm, y - arm);
      ctx.lineTo(x - arm, y + arm);
    });
    ctx.stroke();
    ctx.restore();
  };

  // Times in UTC and numbers as in the tables.
  const utc = (seconds) => uPlot.tzDate(new Date(seconds * 1000), 'Etc/UTC');
  const count = (u, values) => values.map((n) => n.toLocaleString('en').replaceAll(',', '\u202f'));
  const day = '\n{D} {MMM} {YYYY}';
  const times = [ // each: the least step in seconds, its text, and what is added where a year, month, day, hour, minute, second begins
    [365 * 86400, '{YYYY}', null, null, null, null, null, null, 1],
    [28 * 86400, '{MMM}', '\n{YYYY}', null, null, null, null, null, 1],
    [86400, '{D} {MMM}', '\n{YYYY}', null, null, null, null, null, 1],
    [60, '{HH}:{mm}', day, null, day, null, null, null, 1],
    [1, '{HH}:{mm}:{ss}', day, null, day, null, null, null, 1],
    [0.001, '{ss}.{fff}', `${day} {HH}:{mm}`, null, `${day} {HH}:{mm}`, null, '\n{HH}:{mm}', null, 1],
  ];

  const show = (figure) => {
    let plot = null;
    let data = null;
    const size = () => ({ width: figure.clientWidth, height: 200 });
    const make = () => {
      plot?.destroy();
      plot = new uPlot({
        ...size(), hooks: { draw: [crosses] }, cursor: { points: { size: 6 } }, legend: { live: true }, tzDate: utc,
        scales: { x: { time: true, range: roomy }, s: { range: (u, min, max) => [0, Math.max(max * 1.2, 1)] }, y: { range: (u, min, max) => [0, Math.max(max * 1.2, 1)] } },
        axes: [{ ...axis(), values: times }, { ...axis(), size: 60, values: count }, { ...axis(), scale: 's', side: 1, grid: { show: false }, values: (u, v) => v.map((x) => `${x} s`) }],
        series: [{ value: '{D} {MMM} {YYYY}, {HH}:{mm} UTC' }, {
          label: 'Records stored', stroke: resolve('ink-accent'), fill: resolve('ink-accent-soft'), width: 1, points: { show: false },
          paths: uPlot.paths.bars({ size: [0.6, widest], radius: 0.15 }),
        }, { label: 'Seconds', scale: 's', stroke: resolve('ink-warn'), width: 1.5, points: { size: 5 } }, {
          label: 'Failed', stroke: resolve('ink-bad'), width: 2, paths: () => null, points: { show: false }, value: (u, v) => (v === null ? '–' : 'yes'),
        }],
      }, data, figure);
    };
    const draw = async () => {
      const answer = await fetch(figure.dataset.chart).catch(() => null);
      if (!answer?.ok) return;
      const d = await answer.json();
      figure.classList.toggle('aside', d.at.length < 2);
      if (d.at.length < 2) {
        plot?.destroy();
        plot = null;
        figure.textContent = d.at.length ? 'A chart shows up after two runs.' : '';
        return;
      }
      data = [d.at, d.records, d.seconds, d.failed.map((yes, i) => (yes ? d.records[i] : null))];
      figure.dataset.failures = String(d.failed.filter(Boolean).length);
      if (plot) plot.setData(data);
      else {
        figure.textContent = '';
        make();
      }
    };
    draw();
    new ResizeObserver(() => plot?.setSize(size())).observe(figure);
    const again = () => { if (plot) make(); };
    document.addEventListener('sluice:theme', again);
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', again);
    // The table below the chart is sent again when a run is over, or another began.
    document.addEventListener('htmx:sseMessage', (e) => { if (e.target.id === 'runs') draw(); });
  };
  document.querySelectorAll('[data-chart]').forEach(show);
});
