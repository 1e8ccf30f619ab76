// Opened from disk, a page may not read other pages, so Sphinx's search finds no excerpts. Answer from the page texts instead.
if (window.location.protocol === "file:" && window.pageTexts) {
  const fetchPage = window.fetch.bind(window);
  window.fetch = (address, ...options) => {
    const path = String(address).split(/[?#]/)[0];
    const name = Object.keys(window.pageTexts).find((page) => path.endsWith(page));
    if (name === undefined) return fetchPage(address, ...options);
    const page = document.createElement("div");
    page.setAttribute("role", "main");
    page.textContent = window.pageTexts[name];
    return Promise.resolve(new Response(page.outerHTML));
  };
}
