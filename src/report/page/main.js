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
const entries = new Map([...document.querySelectorAll('nav a')].map((a) => [a.getAttribute('href').slice(1), a]));
const inView = new IntersectionObserver((changes) => {
  for (const c of changes) if (c.isIntersecting) entries.forEach((a, id) => (id === c.target.id ? a.setAttribute('aria-current', 'true') : a.removeAttribute('aria-current')));
}, {rootMargin: '-20% 0px -70% 0px'});
document.querySelectorAll('section').forEach((s) => inView.observe(s));
document.documentElement.dataset.ready = 'yes';
