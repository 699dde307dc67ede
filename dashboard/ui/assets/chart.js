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

  const draw = async (figure) => {
    const answer = await fetch(figure.dataset.chart).catch(() => null);
    if (!answer?.ok) return;
    const d = await answer.json();
    if (d.at.length < 2) {
      figure.textContent = 'A chart shows up after two runs.';
      figure.classList.add('aside');
      return;
    }
    let plot = null;
    const make = () => {
      plot?.destroy();
      plot = new uPlot({
        width: figure.clientWidth, height: 200, cursor: { points: { size: 6 } }, legend: { live: true },
        scales: { x: { time: true }, s: { range: (u, min, max) => [0, Math.max(max, 1)] }, y: { range: (u, min, max) => [0, Math.max(max * 1.1, 1)] } },
        axes: [axis(), { ...axis(), size: 60 }, { ...axis(), scale: 's', side: 1, grid: { show: false }, values: (u, v) => v.map((x) => `${x} s`) }],
        series: [{}, {
          label: 'Records stored', stroke: resolve('ink-accent'), fill: resolve('ink-accent-soft'), width: 1, points: { show: false },
          paths: uPlot.paths.bars({ size: [0.6, 28], radius: 0.15 }),
        }, { label: 'Seconds', scale: 's', stroke: resolve('ink-warn'), width: 1.5, points: { size: 5 } }],
      }, [d.at, d.records, d.seconds], figure);
    };
    make();
    new ResizeObserver(() => plot.setSize({ width: figure.clientWidth, height: 200 })).observe(figure);
    document.addEventListener('sluice:theme', make);
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', make);
  };
  document.querySelectorAll('[data-chart]').forEach(draw);
});
