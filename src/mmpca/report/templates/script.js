"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const all = (selector) => [...document.querySelectorAll(selector)];
  const MAX_FOUND = 20;

  // --- one cluster or one topic at a time ---
  const now = document.getElementById("now");
  const chosen = { cluster: "", topic: "" };
  const topicsOf = (cluster) => (data.topics[cluster] || []).map(String);
  const clustersOf = (topic) => Object.keys(data.topics).filter((cluster) => topicsOf(cluster).includes(topic));
  const list = (noun, numbers) => `${noun}${numbers.length === 1 ? "" : "s"} ${new Intl.ListFormat("en").format(numbers)}`;

  function status() {
    if (chosen.cluster !== "") {
      return `Showing only cluster ${chosen.cluster}, made up mainly of ${list("topic", topicsOf(chosen.cluster))}, and its rows.`;
    }
    if (chosen.topic === "") return "";
    const clusters = clustersOf(chosen.topic);
    return `Showing only topic ${chosen.topic}, ` + (clusters.length === 0 ? "which is not prominent in any cluster." : `prominent in ${list("cluster", clusters)}.`);
  }

  function choose(cluster, topic) {
    Object.assign(chosen, { cluster, topic });
    const topics = new Set(cluster === "" ? [] : topicsOf(cluster));
    const clusters = new Set(topic === "" ? [] : clustersOf(topic));
    for (const button of all("button.pick")) {
      const isOn = button.dataset.pickTopic === undefined ? button.dataset.pick === cluster : button.dataset.pickTopic === topic;
      button.setAttribute("aria-pressed", String(isOn));
    }
    for (const part of all(".card[data-cluster], .group[data-cluster]")) {
      part.hidden = cluster !== "" && part.dataset.cluster !== cluster;
    }
    for (const part of all(".card[data-topic]")) part.hidden = topic !== "" && part.dataset.topic !== topic;
    for (const part of all("#heat tr[data-cluster], .card[data-cluster]")) {
      part.classList.toggle("marked", part.dataset.cluster === cluster || clusters.has(part.dataset.cluster));
    }
    for (const part of all("[data-topic]")) {
      part.classList.toggle("marked", part.dataset.topic === topic || topics.has(part.dataset.topic));
    }
    now.textContent = status();
    now.parentElement.hidden = now.textContent === "";
  }

  if (now) {
    document.addEventListener("click", (event) => {
      const { pick, pickTopic } = event.target.closest("button.pick")?.dataset ?? {};
      if (pickTopic !== undefined) choose("", pickTopic === chosen.topic ? "" : pickTopic);
      else if (pick !== undefined) choose(pick === chosen.cluster ? "" : pick, "");
      // A link to a hidden part would lead nowhere.
      const link = event.target.closest('a[href^="#"]');
      if (link && document.getElementById(link.hash.slice(1))?.closest("[hidden]")) choose("", "");
    });
    document.getElementById("show-all").addEventListener("click", () => {
      choose("", "");
      document.querySelector(".toolbar button").focus({ preventScroll: true });
    });
    document.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && event.target.id !== "find") choose("", "");
    });
  }

  // --- tooltips, by mouse, keyboard or touch ---
  const tip = document.getElementById("tip");

  function meaning(target) {
    const part = target.closest?.("[data-tip], #heat tbody td, #confusion tbody td");
    if (!part) return null;
    if (part.dataset.tip) return [part, part.dataset.tip];
    const head = part.closest("table").tHead.rows[0].cells[part.cellIndex];
    const words = (cell) => (cell.querySelector("button") ?? cell).textContent.trim();
    const names = [...head.querySelectorAll("small")].map((name) => name.textContent).join(", ");
    const isShare = part.closest("#heat") !== null && part.cellIndex > 1;
    const value = isShare ? `${(100 * Number(part.dataset.v)).toFixed(1)}%` : part.textContent.trim() || "0";
    return [part, `${words(part.parentElement.cells[0])}, ${words(head)}${names && ` (${names})`}: ${value}`];
  }

  function showTip(event) {
    const [part, text] = meaning(event.target) ?? [];
    tip.hidden = !part;
    if (!part) return;
    tip.textContent = text;
    const place = part.getBoundingClientRect();
    const width = document.documentElement.clientWidth;
    const left = Math.max(8, Math.min(place.left, width - tip.offsetWidth - 8));
    const isRoomBelow = place.bottom + tip.offsetHeight + 12 < window.innerHeight;
    tip.style.left = `${left}px`;
    tip.style.top = `${isRoomBelow ? place.bottom + 6 : place.top - tip.offsetHeight - 6}px`;
  }

  for (const word of all("abbr[title]")) {
    word.dataset.tip = word.title;
    word.setAttribute("aria-description", word.title);
    word.removeAttribute("title");
  }
  if (tip) {
    for (const kind of ["mouseover", "focusin"]) document.addEventListener(kind, showTip);
    for (const kind of ["scroll", "focusout"]) document.addEventListener(kind, () => { tip.hidden = true; });
    document.addEventListener("keydown", (event) => { if (event.key === "Escape") tip.hidden = true; });
  }

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
    const before = head.getAttribute("aria-sort");
    const isUp = before === null ? !isNumeric : before === "descending";
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", isUp ? "ascending" : "descending");
    const sign = isUp ? 1 : -1;
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

  function named(name, number) {
    const shown = document.createElement("bdi");
    shown.textContent = name;
    if (number < 0) return shown;
    const link = document.createElement("a");
    link.href = `#row-${number}`;
    link.append(shown);
    link.addEventListener("click", () => { document.querySelector(`#row-${number} details`).open = true; });
    return link;
  }

  function entry([name, cluster, number, probability, verdict]) {
    const item = document.createElement("li");
    const button = document.createElement("button");
    button.type = "button";
    button.className = "pick";
    button.dataset.pick = String(cluster);
    button.setAttribute("aria-pressed", String(String(cluster) === chosen.cluster));
    button.textContent = `Cluster ${cluster}`;
    item.append(named(name, number), button);
    if (verdict) item.append(`${verdict}, ${probability}`);
    return item;
  }

  if (found) {
    const names = data.rows.map((row) => row[0].toLocaleLowerCase());
    box.addEventListener("input", () => {
      const wanted = box.value.trim().toLocaleLowerCase();
      const hits = wanted === "" ? [] : data.rows.filter((_, i) => names[i].includes(wanted));
      found.replaceChildren(...hits.slice(0, MAX_FOUND).map(entry));
      const note = document.getElementById("found-status");
      if (wanted === "") note.textContent = "";
      else if (hits.length === 0) note.textContent = "No rows match.";
      else if (hits.length > MAX_FOUND) note.textContent = `${hits.length} rows; the first ${MAX_FOUND} are shown.`;
      else note.textContent = hits.length === 1 ? "1 row" : `${hits.length} rows`;
    });
  }

  // --- on paper: the tables behind charts, and the evidence of the rows that the reader has opened ---
  let closed = [];
  window.addEventListener("beforeprint", () => {
    closed = all("#fit details:not([open])");
    for (const part of closed) part.open = true;
  });
  window.addEventListener("afterprint", () => {
    for (const part of closed) part.open = false;
  });

  for (const part of all(".live")) part.hidden = false;
})();
