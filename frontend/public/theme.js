// Runs before the first paint, so that a chosen theme does not flash. The same key is written by src/app/theme.ts.
try {
  var chosen = localStorage.getItem('parley.theme')
  if (chosen === 'light' || chosen === 'dark') document.documentElement.dataset.theme = chosen
} catch {
  // Storage may be blocked; the system's theme is used.
}
