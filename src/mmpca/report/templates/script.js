"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const all = (selector) => [...document.querySelectorAll(selector)];
  const MAX_FOUND = 20;

  // --- the view in the address, to be shared with it ---
  const VIEW = "#view";
  const view = new URLSearchParams(location.hash.startsWith(VIEW) ? location.hash.slice(VIEW.length) : "");

  function remember(changes) {
    for (const [name, value] of Object.entries(changes)) {
      if (value === "") view.delete(name);
      else view.set(name, value);
    }
    const text = view.toString();
    if (text !== "" || location.hash.startsWith(VIEW)) history.replaceState(null, "", text === "" ? " " : `${VIEW}&${text}`);
  }

  function download(name, type, text) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }

  // A spreadsheet would compute a cell that begins like a formula.
  const cellText = (value) => `"${String(value).replace(/^(?=[=+@\t\r-])(?!-?[\d.]+$)/, "'").replaceAll('"', '""')}"`;
  const csv = (lines) => lines.map((line) => line.map(cellText).join(",")).join("\r\n");

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
    for (const part of all("#heat tr[data-cluster], .strips li, .card[data-cluster]")) {
      part.classList.toggle("marked", part.dataset.cluster === cluster || clusters.has(part.dataset.cluster));
    }
    for (const part of all("[data-topic]")) {
      part.classList.toggle("marked", part.dataset.topic === topic || topics.has(part.dataset.topic));
    }
    now.textContent = status();
    now.parentElement.hidden = now.textContent === "";
    remember({ cluster, topic });
    draw();
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
      document.querySelector(".strips button").focus({ preventScroll: true });
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
    if (event.target === canvas) return; // the map has its own tips
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
    document.addEventListener("focusout", () => { tip.hidden = true; });
    // Moving the focus may scroll the page: the tip of the focused part follows it.
    document.addEventListener("scroll", () => {
      if (map.current >= 0) pointTo(map.current);
      else showTip({ target: document.activeElement });
    });
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

  // --- rows ---
  const rows = data.rows;
  const onPage = new Set(data.onPage);
  const VERDICTS = ["clear", "likely", "borderline"];
  const nameOf = (i) => (rows.name ? rows.name[i] : `row ${rows.number[i]}`);

  function certainty(i) {
    if (!rows.verdict) return "";
    const share = rows.probability[i] / 10;
    const text = share === 100 ? "100%" : share >= 99.9 ? "> 99.9%" : share < 0.1 ? "< 0.1%" : share >= 98.95 || share < 9.95 ? `${share.toFixed(1)}%` : `${share.toFixed(0)}%`;
    return `${VERDICTS[rows.verdict[i]]}, ${text}`;
  }

  function named(i) {
    const shown = document.createElement("bdi");
    shown.textContent = nameOf(i);
    if (!onPage.has(rows.number[i])) return shown;
    const link = document.createElement("a");
    link.href = `#row-${rows.number[i]}`;
    link.append(shown);
    link.addEventListener("click", () => { document.querySelector(`#row-${rows.number[i]} details`).open = true; });
    return link;
  }

  function entry(i) {
    const item = document.createElement("li");
    const button = document.createElement("button");
    const cluster = String(rows.cluster[i]);
    button.type = "button";
    button.className = "pick";
    button.dataset.pick = cluster;
    button.setAttribute("aria-pressed", String(cluster === chosen.cluster));
    button.textContent = `Cluster ${cluster}`;
    item.append(named(i), button);
    if (rows.verdict) item.append(certainty(i));
    if (rows.label) {
      const label = document.createElement("span");
      label.dir = "auto";
      label.textContent = rows.labels[rows.label[i]];
      item.append(label);
    }
    return item;
  }

  const box = document.getElementById("find");
  const found = document.getElementById("found");

  if (found) {
    const names = rows.number.map((_, i) => nameOf(i).toLocaleLowerCase());
    box.addEventListener("input", () => {
      const wanted = box.value.trim().toLocaleLowerCase();
      const hits = wanted === "" ? [] : names.flatMap((name, i) => (name.includes(wanted) ? [i] : []));
      found.replaceChildren(...hits.slice(0, MAX_FOUND).map(entry));
      const note = document.getElementById("found-status");
      if (wanted === "") note.textContent = "";
      else if (hits.length === 0) note.textContent = "No rows match.";
      else if (hits.length > MAX_FOUND) note.textContent = `${hits.length} rows; the first ${MAX_FOUND} are shown.`;
      else note.textContent = hits.length === 1 ? "1 row" : `${hits.length} rows`;
    });
  }

  // --- the map ---
  const canvas = document.getElementById("canvas");
  const OKABE_ITO = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C6BB1", "#A6761D"];
  const MARGIN = 26, REACH = 14;
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const map = { color: "cluster", current: -1, lasso: null, picked: null };
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const hue = (number, n) => (n <= OKABE_ITO.length ? OKABE_ITO[number] : `hsl(${(number * 137.5) % 360} 65% ${dark.matches ? 62 : 42}%)`);

  function place(i) {
    const scale = Math.min(canvas.clientWidth, canvas.clientHeight * 1.6) - 2 * MARGIN;
    const tall = Math.min(canvas.clientHeight - 2 * MARGIN, scale);
    return [
      canvas.clientWidth / 2 + (rows.x[i] / 1000 - 0.5) * scale,
      canvas.clientHeight / 2 - (rows.y[i] / 1000 - 0.5) * tall,
    ];
  }

  function colorOf(i) {
    if (map.color === "label") return hue(rows.label[i], rows.labels.length);
    if (map.color === "certainty") return [css("--for"), css("--bar"), css("--against")][rows.verdict[i]];
    return hue(rows.cluster[i], data.names.length);
  }

  function draw() {
    if (!canvas || canvas.clientWidth === 0) return;
    const ratio = window.devicePixelRatio || 1;
    canvas.width = canvas.clientWidth * ratio;
    canvas.height = canvas.clientHeight * ratio;
    const pen = canvas.getContext("2d");
    pen.scale(ratio, ratio);
    const size = rows.number.length > 4000 ? 3 : rows.number.length > 800 ? 4.5 : 7;
    const order = rows.number.map((_, i) => i).sort((a, b) => rows.verdict[b] - rows.verdict[a]);
    for (const i of order) {
      const isOut = chosen.cluster !== "" && String(rows.cluster[i]) !== chosen.cluster;
      const isUnsure = map.color === "cluster" && rows.verdict[i] === 2;
      pen.globalAlpha = (map.picked && !map.picked.has(i)) || isOut ? 0.08 : isUnsure ? 0.4 : 0.85;
      pen.fillStyle = colorOf(i);
      const [x, y] = place(i);
      pen.beginPath();
      pen.arc(x, y, size / 2, 0, 2 * Math.PI);
      pen.fill();
    }
    pen.globalAlpha = 1;
    drawNames(pen);
    if (map.current >= 0) {
      const [x, y] = place(map.current);
      pen.strokeStyle = css("--mark-line");
      pen.lineWidth = 2.5;
      pen.strokeRect(x - 6, y - 6, 12, 12);
    }
    if (map.lasso) {
      pen.strokeStyle = css("--mark-line");
      pen.lineWidth = 2;
      pen.beginPath();
      for (const [x, y] of map.lasso) pen.lineTo(x, y);
      pen.closePath();
      pen.stroke();
    }
  }

  // The names of the clusters at the medians of their points, larger clusters first; none covers another.
  function drawNames(pen) {
    const members = data.names.map(() => []);
    for (let i = 0; i < rows.number.length; i++) members[rows.cluster[i]].push(place(i));
    const median = (numbers) => numbers.sort((a, b) => a - b)[numbers.length >> 1];
    const boxes = [];
    pen.font = "600 13px system-ui, sans-serif";
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    pen.lineWidth = 4;
    pen.lineJoin = "round";
    pen.strokeStyle = css("--panel");
    pen.fillStyle = css("--ink");
    const bySize = members.map((_, q) => q).sort((a, b) => members[b].length - members[a].length);
    for (const q of bySize) {
      if (members[q].length === 0 || (chosen.cluster !== "" && String(q) !== chosen.cluster)) continue;
      const short = data.names[q].split(", ").slice(0, 2).join(", ");
      const text = `${q} ${short.length > 26 ? `${short.slice(0, 25)}…` : short}`;
      const half = pen.measureText(text).width / 2 + 3;
      const x = Math.max(half, Math.min(median(members[q].map((at) => at[0])), canvas.clientWidth - half));
      // Above its points, which a name in their middle would cover; a few stray points do not count.
      const heights = members[q].map((at) => at[1]).sort((a, b) => a - b);
      const y = Math.max(9, heights[Math.floor(0.03 * heights.length)] - 12);
      const free = [0, 16, -16, 32, -32].find((d) => boxes.every(([left, right, top]) => x + half < left || x - half > right || Math.abs(y + d - top) > 15));
      if (free === undefined) continue;
      boxes.push([x - half, x + half, y + free]);
      pen.strokeText(text, x, y + free);
      pen.fillText(text, x, y + free);
    }
  }

  function nearest([x, y], reach, allowed = () => true) {
    let best = -1, least = reach;
    for (let i = 0; i < rows.number.length; i++) {
      const [px, py] = place(i);
      const distance = Math.hypot(px - x, py - y);
      if (distance < least && allowed(px - x, py - y)) [best, least] = [i, distance];
    }
    return best;
  }

  function within([x, y], line) {
    let isInside = false;
    for (let i = 0, j = line.length - 1; i < line.length; j = i++) {
      const [[xi, yi], [xj, yj]] = [line[i], line[j]];
      if (yi > y !== yj > y && x < ((xj - xi) * (y - yi)) / (yj - yi) + xi) isInside = !isInside;
    }
    return isInside;
  }

  function pointTo(i) {
    map.current = i;
    draw();
    tip.hidden = i < 0;
    if (i < 0) return;
    const label = rows.label ? `, ${rows.labels[rows.label[i]]}` : "";
    tip.textContent = `${nameOf(i)}${label}: cluster ${rows.cluster[i]} (${data.names[rows.cluster[i]]}), ${certainty(i)}`;
    const corner = canvas.getBoundingClientRect();
    const [x, y] = place(i);
    tip.style.left = `${Math.max(8, Math.min(corner.left + x, document.documentElement.clientWidth - tip.offsetWidth - 8))}px`;
    tip.style.top = `${corner.top + y + 12}px`;
  }

  function pickRows(numbers) {
    map.picked = numbers.length ? new Set(numbers) : null;
    document.getElementById("picked").replaceChildren(...numbers.slice(0, MAX_FOUND).map(entry));
    const tally = new Map();
    for (const i of numbers) tally.set(rows.cluster[i], (tally.get(rows.cluster[i]) ?? 0) + 1);
    const parts = [...tally].sort((a, b) => b[1] - a[1]).slice(0, 4).map(([q, n]) => `${n} in cluster ${q} (${data.names[q]})`);
    const rest = numbers.length > MAX_FOUND ? `; the first ${MAX_FOUND} are listed` : "";
    document.getElementById("map-status").textContent =
      numbers.length === 0 ? "" : `${numbers.length === 1 ? "1 row" : `${numbers.length} rows`}: ${new Intl.ListFormat("en").format(parts)}${rest}.`;
    draw();
  }

  if (canvas) {
    const at = (event) => [event.offsetX, event.offsetY];
    canvas.addEventListener("pointermove", (event) => {
      if (map.lasso) {
        map.lasso.push(at(event));
        draw();
      } else pointTo(nearest(at(event), REACH));
    });
    canvas.addEventListener("pointerdown", (event) => {
      if (event.pointerType === "touch" || event.button !== 0) return;
      map.lasso = [at(event)];
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointerup", (event) => {
      const line = map.lasso ?? [at(event)];
      map.lasso = null;
      const [x, y] = line[0];
      const isLasso = line.some(([px, py]) => Math.hypot(px - x, py - y) > 8);
      const hit = nearest(at(event), REACH);
      pickRows(isLasso ? rows.number.flatMap((_, i) => (within(place(i), line) ? [i] : [])) : hit < 0 ? [] : [hit]);
    });
    canvas.addEventListener("pointerleave", () => { if (!map.lasso) pointTo(-1); });
    canvas.addEventListener("blur", () => pointTo(-1));
    canvas.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
      if (step) {
        event.preventDefault();
        const from = map.current < 0 ? [canvas.clientWidth / 2, canvas.clientHeight / 2] : place(map.current);
        // The nearest row within 45 degrees of the direction of the key.
        const ahead = (dx, dy) => dx * step[0] + dy * step[1] > 1 && Math.abs(dx * step[1]) + Math.abs(dy * step[0]) <= dx * step[0] + dy * step[1];
        const next = nearest(from, Infinity, map.current < 0 ? undefined : ahead);
        if (next >= 0) pointTo(next);
      } else if (event.key === "Enter" && map.current >= 0) pickRows([map.current]);
      else if (event.key === "Escape") pickRows([]);
    });
    for (const button of all("[data-color]")) {
      button.addEventListener("click", () => {
        map.color = button.dataset.color;
        for (const other of all("[data-color]")) other.setAttribute("aria-pressed", String(other === button));
        remember({ color: map.color === "cluster" ? "" : map.color });
        draw();
      });
    }
    document.getElementById("map-csv").addEventListener("click", () => {
      const columns = [["row", (i) => rows.number[i]], ["name", nameOf], ["cluster", (i) => rows.cluster[i]]];
      columns.push(["cluster_name", (i) => data.names[rows.cluster[i]]]);
      if (rows.label) columns.push(["label", (i) => rows.labels[rows.label[i]]]);
      columns.push(["probability", (i) => rows.probability[i] / 1000], ["verdict", (i) => VERDICTS[rows.verdict[i]]]);
      columns.push(["x", (i) => rows.x[i] / 1000], ["y", (i) => rows.y[i] / 1000]);
      const shown = rows.number.map((_, i) => i).filter((i) => !map.picked || map.picked.has(i));
      download("rows.csv", "text/csv", csv([columns.map(([head]) => head), ...shown.map((i) => columns.map(([, value]) => value(i)))]));
    });
    document.getElementById("map-svg").addEventListener("click", () => {
      const escape = (text) => text.replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`);
      const points = rows.number.map((_, i) => {
        const [x, y] = place(i);
        return `<circle cx="${x.toFixed(1)}" cy="${y.toFixed(1)}" r="2" fill="${colorOf(i)}"><title>${escape(nameOf(i))}</title></circle>`;
      });
      const size = `width="${canvas.clientWidth}" height="${canvas.clientHeight}"`;
      download("map.svg", "image/svg+xml", `<svg xmlns="http://www.w3.org/2000/svg" ${size}>${points.join("")}</svg>`);
    });
    dark.addEventListener("change", draw);
    new ResizeObserver(draw).observe(canvas);
  }

  // --- features by relevance ---
  const slider = document.getElementById("relevance");
  const compared = document.getElementById("compared");
  const percent = (share) => (share >= 10 ? `${share.toFixed(0)}%` : share >= 0.05 ? `${share.toFixed(1)}%` : "< 0.1%");

  function rank() {
    const { name, overall, own, share } = data.words;
    const weight = Number(slider.value);
    const other = compared?.value ?? "";
    for (const card of all(".card[data-cluster]")) {
      const q = Number(card.dataset.cluster);
      const table = card.querySelector(".features");
      if (!table) continue;
      const items = own[q].map((v, place) => {
        const here = share[q].length === name.length ? share[q][v] : share[q][place];
        const there = other === "" ? overall[v] : share[Number(other)][v];
        const lift = here / Math.max(there, 0.01);
        return { name: name[v], share: here, lift, score: weight * Math.log(here + 1e-9) + (1 - weight) * Math.log(lift + 1e-9) };
      });
      items.sort((a, b) => b.score - a.score);
      items.splice(table.tBodies[0].dataset.n ?? 10);
      const longest = Math.max(...items.map((item) => item.share));
      table.tBodies[0].replaceChildren(...items.map((item) => {
        const line = document.createElement("tr");
        const head = document.createElement("th");
        head.scope = "row";
        head.append(Object.assign(document.createElement("bdi"), { textContent: item.name }));
        const bar = Object.assign(document.createElement("td"), { className: "num bar", textContent: percent(item.share / 1e4) });
        bar.dataset.v = item.share / 1e6;
        bar.style.setProperty("--w", `${Math.round((100 * item.share) / longest)}%`);
        const lift = Object.assign(document.createElement("td"), { className: "num", textContent: item.lift > 9999 ? "> 9999×" : `${item.lift.toFixed(1)}×` });
        lift.dataset.v = item.lift;
        line.append(head, bar, lift);
        return line;
      }));
    }
  }

  if (slider) {
    for (const part of [slider, compared]) {
      part?.addEventListener("input", () => {
        remember({ relevance: slider.value, compared: compared?.value ?? "" });
        rank();
      });
    }
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
  if (now && view.size) {
    const { cluster = "", topic = "", color, relevance, compared: other } = Object.fromEntries(view);
    if (slider && relevance !== undefined) {
      slider.value = relevance;
      if (compared && other !== undefined) compared.value = other;
      rank();
    }
    if (color !== undefined) document.querySelector(`[data-color="${CSS.escape(color)}"]`)?.click();
    if (cluster in data.topics) choose(cluster, "");
    else if (document.querySelector(`[data-pick-topic="${CSS.escape(topic)}"]`)) choose("", topic);
  }
  draw();
})();
