// The page, top to bottom.

overview();
graphSection();
kernelSection();
timelineSection();
memorySection();
errorSection();
compileSection();
machineSection();

// The entry of the section in view is marked.
const entries = new Map(
    [...document.querySelectorAll('nav a')].map((a) => [a.getAttribute('href').slice(1), a]));
const inView = new IntersectionObserver((changes) => {
  const now = changes.find((c) => c.isIntersecting);
  if (!now) return;
  entries.forEach((a) => a.removeAttribute('aria-current'));
  const entry = entries.get(now.target.id), bar = entry.parentElement;
  entry.setAttribute('aria-current', 'true');
  bar.scrollLeft = entry.offsetLeft - bar.offsetLeft - bar.clientWidth / 2 + entry.offsetWidth / 2;
}, {rootMargin: '-20% 0px -70% 0px'});
document.querySelectorAll('section').forEach((s) => inView.observe(s));
document.documentElement.dataset.ready = 'yes';
