// Brings the parts of a page that are marked data-live up to date while it is looked at, and shows the values of a plot under the
// pointer. Without this script the pages say the same, as of when they were loaded.
'use strict';
(() => {
  const every = 2000;
  const pause = document.getElementById('pause');
  const paused = () => !pause || pause.getAttribute('aria-pressed') === 'true';
  let asking = false;

  // On a phone the menu is wider than the window: the page's own entry is brought into it.
  const nav = document.querySelector('nav'), here = nav && nav.querySelector('[aria-current]');
  if (here) nav.scrollLeft = here.offsetLeft - (nav.clientWidth - here.offsetWidth) / 2;

  const lost = (why) => {
    pause.classList.toggle('lost', why !== '');
    pause.textContent = why !== '' ? why : paused() ? 'Paused' : 'Live';
  };

  // keyOf finds an element again in the new page: what somebody has the focus on keeps it.
  const keyOf = (e) => e.id ? '#' + CSS.escape(e.id) : e.getAttribute('href') ? e.tagName + '[href="' + CSS.escape(e.getAttribute('href')) + '"]' : '';

  const take = (fresh) => {
    for (const part of document.querySelectorAll('[data-live]')) {
      const now = fresh.getElementById(part.id);
      if (!now) continue;
      part.className = now.className;
      part.title = now.title;
      if (part.innerHTML === now.innerHTML || part.contains(hovered)) continue;
      const focus = part.contains(document.activeElement) ? keyOf(document.activeElement) : '';
      const left = part.scrollLeft;
      part.replaceChildren(...now.childNodes);
      part.scrollLeft = left;
      if (focus && part.querySelector(focus)) part.querySelector(focus).focus({preventScroll: true});
    }
  };

  const refresh = async () => {
    if (paused() || document.hidden || asking || !document.querySelector('[data-live]')) return;
    asking = true;
    try {
      const answer = await fetch(location.href, {headers: {Accept: 'text/html'}, cache: 'no-store'});
      if (answer.redirected) { location.reload(); return; } // to the login
      if (!answer.ok) { lost('Gone'); return; }
      take(new DOMParser().parseFromString(await answer.text(), 'text/html'));
      lost('');
    } catch {
      lost('No answer');
    } finally {
      asking = false;
    }
  };

  if (pause) {
    const turn = () => {
      pause.setAttribute('aria-pressed', String(!paused()));
      lost('');
      refresh();
    };
    pause.addEventListener('click', turn);
    document.addEventListener('keydown', (e) => {
      if (e.key === 'p' && !e.ctrlKey && !e.metaKey && !e.altKey && !/^(INPUT|TEXTAREA|SELECT)$/.test(e.target.tagName)) turn();
    });
    document.addEventListener('visibilitychange', refresh);
    setInterval(refresh, every);
  }

  for (const form of document.querySelectorAll('form[data-ask]')) {
    form.addEventListener('submit', (e) => { if (!confirm(form.dataset.ask)) e.preventDefault(); });
  }

  const scaled = (v, base, units) => {
    let i = 0;
    while (Math.abs(v) >= base * 0.9995 && i < units.length - 1) { v /= base; i++; }
    return digits(v) + (units[i] ? ' ' + units[i] : '');
  };
  const digits = (v) => v.toFixed(Number.isInteger(v) || Math.abs(v) >= 100 ? 0 : Math.abs(v) >= 10 ? 1 : 2);
  const text = (v, unit) => {
    if (v === null || v === undefined) return '–';
    if (unit.startsWith('B')) return scaled(v, 1024, ['B', 'KiB', 'MiB', 'GiB', 'TiB']) + unit.slice(1);
    if (unit === 's') return v < 1e-3 ? digits(v * 1e6) + ' µs' : v < 1 ? digits(v * 1e3) + ' ms' : digits(v) + ' s';
    return scaled(v, 1000, ['', 'k', 'M', 'G']) + unit;
  };

  let hovered = null;
  document.addEventListener('pointermove', (e) => {
    const drawing = e.target instanceof Element ? e.target.closest('.drawing') : null;
    if (hovered && hovered !== drawing) {
      hovered.querySelector('.cross').setAttribute('d', '');
      hovered.querySelector('output').textContent = '';
    }
    hovered = drawing;
    if (!drawing) return;
    const svg = drawing.querySelector('svg');
    const box = svg.getBoundingClientRect();
    const plot = JSON.parse(svg.dataset.plot);
    const n = plot.series[0].values.length;
    const i = Math.max(0, Math.min(n - 1, Math.round((e.clientX - box.left) / box.width * (n - 1))));
    const x = n > 1 ? 600 * i / (n - 1) : 600;
    svg.querySelector('.cross').setAttribute('d', 'M' + x + ' 0V100');
    const at = new Date(plot.end - plot.span * (n - 1 - i) / n).toISOString().slice(11, 19);
    drawing.querySelector('output').textContent = at + '  ' + plot.series.map((s) => s.name + ' ' + text(s.values[i], plot.unit)).join('  ');
  });
})();
