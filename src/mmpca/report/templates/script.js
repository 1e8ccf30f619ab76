"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const all = (selector) => [...document.querySelectorAll(selector)];
  const status = document.querySelector(".toolbar .status");
  const MOST_FOUND = 20;

  // --- one cluster at a time ---
  let chosen = "";

  function choose(cluster) {
    chosen = cluster;
    const topics = new Set((data.topics[cluster] || []).map(String));
    for (const button of all("button.pick")) {
      button.setAttribute("aria-pressed", String(button.dataset.pick === cluster));
    }
    for (const part of all(".card[data-cluster], .group[data-cluster]")) {
      part.hidden = cluster !== "" && part.dataset.cluster !== cluster;
    }
    for (const row of all("#heat tr[data-cluster]")) {
      row.classList.toggle("chosen", row.dataset.cluster === cluster);
    }
    for (const part of all("[data-topic]")) {
      part.classList.toggle("marked", topics.has(part.dataset.topic));
    }
    status.textContent = cluster === "" ? "" :
      `Only cluster ${cluster} and its rows are shown; its topics (${[...topics].join(", ")}) are marked.`;
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest("button.pick");
    if (button) choose(button.dataset.pick === chosen ? "" : button.dataset.pick);
    // A link to a cluster that is hidden would lead nowhere.
    const link = event.target.closest('a[href^="#cluster-"]');
    if (link && chosen !== "" && link.hash !== `#cluster-${chosen}`) choose("");
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && chosen !== "" && event.target.id !== "find") choose("");
  });

  // --- sorting ---
  function valueOf(row, column) {
    const cell = row.cells[column];
    const text = cell.dataset.v ?? cell.textContent.trim();
    return text !== "" && !Number.isNaN(Number(text)) ? Number(text) : text;
  }

  function compare(a, b) {
    return typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b));
  }

  function sortBy(table, head, column) {
    const isNumeric = head.classList.contains("num");
    const now = head.getAttribute("aria-sort");
    const next = now === null ? (isNumeric ? "descending" : "ascending") : now === "descending" ? "ascending" : "descending";
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", next);
    const sign = next === "ascending" ? 1 : -1;
    const body = table.tBodies[0];
    body.append(...[...body.rows].sort((a, b) => sign * compare(valueOf(a, column), valueOf(b, column))));
  }

  for (const table of all("table.sortable")) {
    [...table.tHead.rows[0].cells].forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "sort";
      button.append(...[...head.childNodes].filter((node) => node.nodeName !== "SMALL"));
      head.prepend(button);
      button.addEventListener("click", () => sortBy(table, head, column));
    });
  }

  // --- finding a row ---
  const box = document.getElementById("find");
  const found = document.getElementById("found");
  const names = data.rows.map((row) => row[0].toLocaleLowerCase());

  function entry([name, cluster, probability, verdict]) {
    const item = document.createElement("li");
    const shown = document.createElement("bdi");
    shown.textContent = name;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "pick";
    button.dataset.pick = String(cluster);
    button.setAttribute("aria-pressed", String(String(cluster) === chosen));
    button.textContent = `Cluster ${cluster}`;
    item.append(shown, button);
    if (verdict) item.append(`${verdict}, ${probability}`);
    return item;
  }

  function find() {
    const wanted = box.value.trim().toLocaleLowerCase();
    const hits = wanted === "" ? [] : data.rows.filter((_, i) => names[i].includes(wanted));
    found.replaceChildren(...hits.slice(0, MOST_FOUND).map(entry));
    const note = document.getElementById("found-status");
    if (wanted === "") note.textContent = "";
    else if (hits.length === 0) note.textContent = "No row has such a name.";
    else if (hits.length > MOST_FOUND) note.textContent = `${hits.length} rows, the first ${MOST_FOUND} are shown.`;
    else note.textContent = hits.length === 1 ? "1 row" : `${hits.length} rows`;
  }
  box.addEventListener("input", find);

  // --- printing: all is shown ---
  let closed = [];
  window.addEventListener("beforeprint", () => {
    closed = all("details:not([open])");
    for (const part of closed) part.open = true;
  });
  window.addEventListener("afterprint", () => {
    for (const part of closed) part.open = false;
  });

  for (const part of all(".toolbar, .finder")) part.hidden = false;
  choose("");
})();
