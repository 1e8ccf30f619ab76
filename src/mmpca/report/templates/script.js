"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const all = (selector) => [...document.querySelectorAll(selector)];
  const byId = (id) => document.getElementById(id);
  const { row: ROW, rows: ROWS, feature: FEATURE, features: FEATURES } = data.noun;
  const counted = (n) => `${n.toLocaleString("en")} ${n === 1 ? ROW : ROWS}`;
  const MAX_FOUND = 20;

  function make(tag, attributes = {}, ...children) {
    const element = Object.assign(document.createElement(tag), attributes);
    element.append(...children);
    return element;
  }

  // Numbers are packed as little-endian bytes in base64, after the code of their type.
  const KINDS = { u1: Uint8Array, u2: Uint16Array, u4: Uint32Array, i1: Int8Array, i2: Int16Array, i4: Int32Array, f4: Float32Array };

  function unpack(text) {
    const Kind = KINDS[text.slice(0, 2)], bytes = Uint8Array.from(atob(text.slice(2)), (sign) => sign.charCodeAt(0));
    const numbers = new Kind(bytes.length / Kind.BYTES_PER_ELEMENT), view = new DataView(bytes.buffer);
    const read = `get${Kind.name.replace("Array", "")}`;
    for (let i = 0; i < numbers.length; i++) numbers[i] = view[read](i * Kind.BYTES_PER_ELEMENT, true);
    return numbers;
  }

  // --- the view in the address, to be shared with it ---
  const VIEW = "#view", hasAddress = location.protocol !== "about:"; // the frame of a notebook has none
  const view = new URLSearchParams(location.hash.startsWith(VIEW) ? location.hash.slice(VIEW.length) : "");

  function remember(changes) {
    for (const [name, value] of Object.entries(changes)) {
      if (value === "") view.delete(name);
      else view.set(name, value);
    }
    const text = view.toString();
    if (!hasAddress) return;
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
      return `Showing only cluster ${chosen.cluster}, made up mainly of ${list("topic", topicsOf(chosen.cluster))}, and its ${ROWS}.`;
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
    const select = byId("by-cluster");
    if (select) select.value = cluster;
    draw();
    return search();
  }

  if (now) {
    document.addEventListener("click", (event) => {
      const { pick, pickTopic } = event.target.closest("button.pick")?.dataset ?? {};
      if (pickTopic !== undefined) choose("", pickTopic === chosen.topic ? "" : pickTopic);
      else if (pick !== undefined) choose(pick === chosen.cluster ? "" : pick, "");
      // A link to a hidden part would lead nowhere.
      const link = event.target.closest('a[href^="#"]');
      const goal = link && byId(link.hash.slice(1));
      if (goal?.closest("[hidden]")) choose("", "");
      if (goal && !hasAddress) { // the link would load the notebook into the frame
        event.preventDefault();
        goal.scrollIntoView();
        goal.focus({ preventScroll: true });
      }
    });
    document.getElementById("show-all").addEventListener("click", () => {
      clearFilters();
      choose("", "");
      document.querySelector(".strips button").focus({ preventScroll: true });
    });
    document.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && event.target.id !== "find") { clearFilters(); choose("", ""); }
    });
  }

  // --- tooltips, by mouse, keyboard or touch ---
  const tip = document.getElementById("tip");
  const about = new Map(Object.entries(data.about)); // descriptions of features, such as their taxonomy, by name
  const featureIn = (part) => part.textContent.replace(/[\u2066-\u2069]/g, ""); // marks of the text direction

  // Tab reaches the first feature of a table that has a description, and the arrow keys reach the others.
  function makeReachable(body) {
    [...body.querySelectorAll("th bdi")].filter((part) => about.has(featureIn(part))).forEach((part, n) => {
      part.tabIndex = n === 0 ? 0 : -1;
      part.setAttribute("aria-description", about.get(featureIn(part)));
    });
  }

  function meaning(target) {
    const feature = target.closest?.(".features tbody bdi, .evidence tbody bdi, .dots text");
    const name = feature && featureIn(feature);
    if (about.has(name)) return [feature, `${name}: ${about.get(name)}`];
    const dot = target.closest?.("#dots circle");
    if (dot) {
      const [q, name, present] = data.tables.dots[1 + [...byId("dots").querySelectorAll("circle")].indexOf(dot)];
      return [dot, `${name} in cluster ${q}: in ${share(present)} of the ${ROWS}`];
    }
    const part = target.closest?.("[data-tip], #heat tbody td, #confusion tbody td, #also tbody td");
    if (!part) return null;
    if (part.dataset.tip) return [part, part.dataset.tip];
    const head = part.closest("table").tHead.rows[0].cells[part.cellIndex];
    const words = (cell) => (cell.querySelector("button") ?? cell).textContent.trim();
    const names = [...head.querySelectorAll("small")].map((name) => name.textContent).join(", ");
    const isShare = part.dataset.v !== undefined && part.closest("#heat, #also") !== null && (part.closest("#also") || part.cellIndex > 1);
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
    for (const body of all(".features tbody")) makeReachable(body);
    document.addEventListener("keydown", (event) => {
      const step = { ArrowUp: -1, ArrowDown: 1 }[event.key];
      if (!step || !event.target.matches("bdi[tabindex]")) return;
      event.preventDefault();
      const names = [...event.target.closest("tbody").querySelectorAll("bdi[tabindex]")];
      names[names.indexOf(event.target) + step]?.focus();
    });
    document.addEventListener("focusout", () => { tip.hidden = true; });
    // Moving the focus may scroll the page: the tip of the focused part follows it.
    document.addEventListener("scroll", () => {
      if (map.current >= 0 && !tip.hidden) pointTo(map.current);
      else if (map.current < 0) showTip({ target: document.activeElement });
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

  // --- rows: those in the page, or those of the server ---
  const rows = data.rows;
  for (const [name, column] of Object.entries(rows)) if (typeof column === "string") rows[name] = unpack(column);
  let before = "";
  rows.name = rows.name?.map((name) => (before = [...before].slice(0, parseInt(name[0], 36)).join("") + name.slice(1)));
  const every = Array.from({ length: rows.n }, (_, i) => i);
  const numberOf = (i) => (rows.number ? rows.number[i] : i);
  const placeOf = new Map(every.map((i) => [numberOf(i), i]));
  const firstEntry = new Uint32Array(rows.n + 1);
  if (rows.listed) for (const i of every) firstEntry[i + 1] = firstEntry[i] + rows.listed[i];
  const VERDICTS = ["clear", "likely", "borderline"];
  const UNKNOWN = 255;
  const nameOf = (i) => (rows.name ? rows.name[i] : `${ROW} ${numberOf(i)}`);
  const share = (p) => (p >= 1 ? "100%" : p <= 0 ? "0%" : p >= 0.9995 ? "> 99.9%" : p > 0 && p < 0.0005 ? "< 0.1%" : p >= 0.0995 && p < 0.985 ? `${(100 * p).toFixed(0)}%` : `${(100 * p).toFixed(1)}%`);

  // The verdict and the number behind it: the probability, or the share of refits that agree if that is smaller.
  const rated = ({ verdict, probability, stability }) => (stability !== null && stability < probability ? `${verdict}, ${share(stability)} of refits agree` : `${verdict}, ${share(probability)}`);

  function facts(i) {
    return {
      number: numberOf(i), name: nameOf(i), cluster: rows.cluster[i],
      label: rows.label ? rows.labels[rows.label[i]] : null,
      verdict: rows.verdict ? VERDICTS[rows.verdict[i]] : null,
      probability: rows.probability ? rows.probability[i] / 10000 : null,
      runner: rows.runner?.[i] ? rows.runner[i] - 1 : null,
      stability: rows.stability && rows.stability[i] !== UNKNOWN ? rows.stability[i] / 100 : null,
    };
  }

  // Contents of an opened row. The page keeps the strongest evidence; a single term holds the rest, so the numbers add up.
  function details(i) {
    const evidence = [];
    for (let e = firstEntry[i]; e < firstEntry[i + 1]; e++) evidence.push([data.features[rows.features[e]], rows.counts[e], rows.nats[e] / 100]);
    const rest = rows.margin[i] / 10 - evidence.reduce((sum, [, , nats]) => sum + nats, 0);
    return {
      evidence, terms: [[`all other ${FEATURES}, and cluster sizes`, rest]], margin: rows.margin[i] / 10,
      toMove: rows.moves[i], text: rows.text ? rows.text[i] : null,
    };
  }

  let lowered = null;
  const inPage = {
    find({ find, cluster, label, verdict, order }) {
      const wanted = find.toLocaleLowerCase();
      if (wanted !== "" && lowered === null) {
        lowered = every.map((i) => `${nameOf(i)}\n${rows.text ? rows.text[i] : ""}`.toLocaleLowerCase());
      }
      const hits = every.filter((i) =>
        (cluster === "" || rows.cluster[i] === Number(cluster)) && (label === "" || rows.label[i] === Number(label)) &&
        (verdict === "" || rows.verdict[i] === Number(verdict)) && (wanted === "" || lowered[i].includes(wanted)));
      if (order !== "data") {
        const sign = order === "surest" ? -1 : 1;
        hits.sort((a, b) => sign * (rows.probability[a] - rows.probability[b] || rows.margin[a] - rows.margin[b]));
      }
      return {
        n: hits.length, hits,
        items: (n) => Promise.resolve(hits.slice(0, n).map((i) => ({ ...facts(i), excerpt: rows.text ? excerpt(rows.text[i], find) : null }))),
      };
    },
    open: (number) => Promise.resolve({ ...facts(placeOf.get(number)), ...details(placeOf.get(number)) }),
  };

  async function ask(path, options) {
    const answer = await fetch(path, options);
    if (!answer.ok) throw new Error((await answer.text()).replace(/<[^>]*>/g, "") || String(answer.status));
    return answer.json();
  }

  const onServer = {
    async find(query) {
      const address = (size) => `rows?${new URLSearchParams({ ...query, size })}`;
      const first = await ask(address(MAX_FOUND));
      return { n: first.n, items: async (n) => (n <= MAX_FOUND ? first : await ask(address(n))).rows };
    },
    open: (number) => ask(`row?number=${number}`),
  };
  const source = data.served ? onServer : inPage;

  // The text around the first places where a search finds something, or its beginning.
  function excerpt(text, find) {
    const AROUND = 60, MOST = 3;
    const flat = text.replaceAll("\n", " "), low = flat.toLocaleLowerCase(), wanted = find.toLocaleLowerCase();
    const parts = [];
    let end = 0;
    for (let at = wanted ? low.indexOf(wanted) : -1; at >= 0 && parts.length < MOST; at = low.indexOf(wanted, end)) {
      const start = Math.max(at - AROUND, end);
      end = at + wanted.length + AROUND;
      parts.push([start > 0 && parts.length === 0 ? "…" : "", flat.slice(start, at), flat.slice(at, at + wanted.length), flat.slice(at + wanted.length, end) + (end < flat.length ? "…" : "")]);
    }
    return parts.length ? parts : flat.length > 160 ? `${flat.slice(0, 160)}…` : flat;
  }

  function excerptText(found) {
    const holder = make("bdi");
    if (typeof found === "string") holder.append(found);
    else for (const [dots, before, hit, after] of found) holder.append(dots, before, make("mark", { textContent: hit }), after);
    return holder;
  }

  // Words of the text are shaded like their bars: for the cluster, or against it.
  function shaded(text, evidence) {
    const strength = new Map(evidence.map(([name, , nats]) => [name.toLocaleLowerCase(), nats]));
    const largest = Math.max(...evidence.map(([, , nats]) => Math.abs(nats)), 1e-9);
    const longest = Math.max(1, ...[...strength.keys()].map((name) => name.split(" ").length));
    const holder = make("div", { className: "whole", dir: "auto" });
    for (const paragraph of text.split("\n")) {
      const line = make("p");
      const tokens = [...paragraph.matchAll(/[\p{L}\p{N}_]+/gu)];
      let end = 0;
      for (let t = 0; t < tokens.length; t++) {
        let n = Math.min(longest, tokens.length - t);
        const phrase = () => tokens.slice(t, t + n).map(([word]) => word.toLocaleLowerCase()).join(" ");
        while (n > 0 && !strength.has(phrase())) n--;
        if (n === 0) continue;
        const nats = strength.get(phrase()), last = tokens[t + n - 1];
        const stop = last.index + last[0].length;
        const mark = make("mark", { className: nats > 0 ? "for" : "against", textContent: paragraph.slice(tokens[t].index, stop) });
        mark.style.setProperty("--a", `${Math.round(12 + (38 * Math.abs(nats)) / largest)}%`);
        line.append(paragraph.slice(end, tokens[t].index), mark);
        end = stop;
        t += n - 1;
      }
      line.append(paragraph.slice(end));
      holder.append(line);
    }
    return holder;
  }

  const signed = (nats) => `${nats < 0 ? "\u2212" : "+"}${Math.abs(nats) >= 100 ? Math.round(Math.abs(nats)).toLocaleString("en") : Math.abs(nats).toFixed(1)}`;

  function evidenceTable(row) {
    const body = make("tbody");
    const largest = Math.max(...row.evidence.map(([, , nats]) => Math.abs(nats)), 1e-9);
    for (const [name, n, nats] of row.evidence) {
      const bar = make("i", { className: nats > 0 ? "for" : "against" });
      bar.style.setProperty("--w", `${Math.round((100 * Math.abs(nats)) / largest)}%`);
      body.append(make("tr", {}, make("th", { scope: "row" }, make("bdi", { textContent: name })), make("td", { className: "num", textContent: n.toLocaleString("en") }),
        make("td", { className: "num", textContent: signed(nats) }), make("td", { className: "lean" }, bar)));
    }
    for (const [name, nats, kind = "rest"] of [...row.terms, ["total", row.margin, "total"]]) {
      body.append(make("tr", { className: kind }, make("th", { scope: "row", textContent: name }), make("td"), make("td", { className: "num", textContent: signed(nats) }), make("td")));
    }
    makeReachable(body);
    const head = ["col", "col", "col", "col"].map((scope) => make("th", { scope }));
    head[0].textContent = FEATURE[0].toUpperCase() + FEATURE.slice(1);
    Object.assign(head[1], { className: "num", textContent: "Count" });
    const nat = make("abbr", { textContent: "Nats", tabIndex: 0 });
    nat.dataset.tip = "Units of evidence on a logarithmic scale: one nat multiplies the odds by 2.7, three nats by 20";
    nat.setAttribute("aria-description", nat.dataset.tip);
    head[2].className = "num";
    head[2].append(nat);
    head[3].className = "sides";
    head[3].append(make("span", {}, make("span", { textContent: `for ${row.runner}` }), " ", make("span", { textContent: `for ${row.cluster}` })));
    return make("table", { className: "evidence" }, make("caption", { textContent: `Evidence for cluster ${row.cluster} over cluster ${row.runner}` }), make("thead", {}, make("tr", {}, ...head)), body);
  }

  function whatWouldMove(row) {
    if (row.toMove === 0) return `Without its own contribution to cluster ${row.cluster}, cluster ${row.runner} is more probable.`;
    const strongest = row.evidence.filter(([, , nats]) => nats > 0).sort((a, b) => b[2] - a[2]);
    if (row.toMove > 0 && row.toMove <= Math.min(strongest.length, 8)) {
      const names = new Intl.ListFormat("en", { type: "disjunction" }).format(strongest.slice(0, row.toMove).map(([name]) => name));
      return `What would move it: without ${names}, it would be in cluster ${row.runner}.`;
    }
    return row.toMove > 0 ? `What would move it: without its ${row.toMove} strongest ${FEATURES}, it would be in cluster ${row.runner}.`
      : `What would move it: no small set of ${FEATURES}; the evidence is spread over many.`;
  }

  // The strongest features on both sides, in a sentence.
  function because(row) {
    const MOST = 4, list = (parts) => new Intl.ListFormat("en").format(parts.slice(0, MOST).map(([name]) => name));
    const strongest = [...row.evidence].sort((a, b) => Math.abs(b[2]) - Math.abs(a[2]));
    const sides = [[row.cluster, strongest.filter(([, , nats]) => nats > 0)], [row.runner, strongest.filter(([, , nats]) => nats < 0)]];
    return sides.filter(([, parts]) => parts.length).map(([q, parts]) => `For cluster ${q}: ${list(parts)}.`).join(" ");
  }

  function fill(part, row) {
    const name = (q) => `cluster ${q} (${data.names[q]})`;
    const sentences = [`In ${name(row.cluster)}: ${row.verdict}, probability ${share(row.probability)}.`];
    if (row.stability !== null) sentences.push(`${share(row.stability)} of the refits agree.`);
    if (row.runner !== null) sentences.push(`Closest other: ${name(row.runner)}.`);
    part.replaceChildren(make("p", { className: "verdict-line" }, make("bdi", { textContent: sentences.join(" ") })));
    if (row.runner === null) part.append(make("p", { textContent: "There is no other cluster." }));
    else {
      part.append(make("p", { className: "because" }, make("bdi", { textContent: because(row) })));
      part.append(make("p", { className: "move" }, make("bdi", { textContent: whatWouldMove(row) })));
    }
    const reasons = make("div", { className: "reasons" });
    if (row.text) {
      const legend = row.runner === null ? "" : make("p", { className: "legend" }, "Shaded: ", make("mark", { className: "for", textContent: `for cluster ${row.cluster}` }), " ", make("mark", { className: "against", textContent: `for cluster ${row.runner}` }));
      reasons.append(make("div", {}, shaded(row.text, row.evidence), legend));
    }
    if (row.runner !== null) reasons.append(evidenceTable(row));
    part.append(reasons);
    if (data.served) edit(part, row);
  }

  // --- names of clusters, edited in place ---
  const NAMED = "name";
  const automatic = [...data.names];

  function showName(q) {
    const name = data.names[q];
    for (const part of all(`[data-name="${q}"]`)) part.textContent = name;
    for (const part of all(`[data-option="${q}"]`)) part.textContent = `${q}: ${name.length > 26 && part.tagName === "text" ? `${name.slice(0, 25)}…` : name}`;
    for (const part of all("details.row")) { // opened rows name the clusters in their sentences
      part.querySelector(".detail").replaceChildren();
      if (part.open) open(part);
    }
  }

  function rename(q, name) {
    const given = name.trim();
    if (given === data.names[q]) return;
    if (data.edits) {
      change({ action: "rename", cluster: q, name: given });
      return;
    }
    data.names[q] = given || automatic[q];
    remember({ [`${NAMED}${q}`]: given });
    showName(q);
    draw();
    const changed = data.names.flatMap((one, n) => (one === automatic[n] ? [] : [`"${n}=${one}"`]));
    byId("name-status").textContent = changed.length === 0 ? ""
      : `${hasAddress ? "The page's URL now contains the new names, so a link to the page includes them. " : ""}To save them in the model: mmpca rename MODEL ${changed.join(" ")}`;
  }

  for (const button of all("[data-rename]")) {
    button.addEventListener("click", () => {
      const q = Number(button.dataset.rename), name = button.parentElement.querySelector("bdi");
      const box = make("input", { value: data.names[q], maxLength: 80, autocomplete: "off", ariaLabel: `Name of cluster ${q}` });
      let isOpen = true;
      const close = (isKept) => {
        if (!isOpen) return;
        isOpen = false;
        const given = box.value;
        box.replaceWith(name);
        button.hidden = false;
        button.focus({ preventScroll: true });
        if (isKept) rename(q, given);
      };
      box.addEventListener("keydown", (event) => {
        if (event.key === "Enter" || event.key === "Escape") {
          event.stopPropagation();
          event.preventDefault(); // or Enter would press the button that gets the focus
          close(event.key === "Enter");
        }
      });
      box.addEventListener("blur", () => close(true));
      name.replaceWith(box);
      button.hidden = true;
      box.select();
    });
  }

  // Edits are kept in the model file by the server.
  function edit(part, row) {
    if (!data.edits) return;
    const select = make("select", { ariaLabel: `Move this ${ROW} to` }, ...data.names.map((name, q) => make("option", { value: q, textContent: `${q}: ${name}`, selected: q === row.cluster })));
    const button = make("button", { type: "button", textContent: `Move this ${ROW}` });
    button.addEventListener("click", () => change({ action: "move", row: row.number, cluster: Number(select.value) }));
    part.append(make("div", { className: "toolbar" }, select, button));
  }

  async function change(action) {
    const status = byId(action.action === "rename" ? "name-status" : "edit-status");
    status.textContent = "Working …";
    try {
      const done = await ask("edit", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(action) });
      status.textContent = done.message;
      location.reload();
    } catch (error) {
      status.textContent = error.message;
    }
  }

  for (const form of all("#edit form")) {
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const fields = Object.fromEntries(new FormData(form));
      for (const name of ["cluster", "other"]) if (name in fields) fields[name] = Number(fields[name]);
      change({ action: form.dataset.action, ...fields });
    });
  }

  async function open(part) {
    const place = part.querySelector(".detail");
    if (!part.open || place.childElementCount || !rows.margin && !data.served) return;
    remember({ row: part.dataset.row });
    const row = await source.open(Number(part.dataset.row));
    for (const [name, text] of Object.entries(row.about ?? {})) about.set(name, text);
    fill(place, row);
  }

  const listen = (part) => part.addEventListener("toggle", () => open(part));

  function entry(row) {
    const badge = row.verdict === null ? "" : make("span", { className: `badge ${row.verdict}`, textContent: rated(row) });
    const part = make("details", { className: "row" }, make("summary", {}, make("bdi", { className: "name", textContent: row.name }), badge), make("div", { className: "detail" }));
    part.dataset.row = row.number;
    listen(part);
    const pick = make("button", { type: "button", className: "pick", textContent: `Cluster ${row.cluster}` });
    pick.dataset.pick = row.cluster;
    pick.setAttribute("aria-pressed", String(String(row.cluster) === chosen.cluster));
    const label = row.label === null ? "" : make("span", { dir: "auto", textContent: row.label });
    const item = make("li", {}, row.verdict === null ? make("p", {}, make("bdi", { className: "name", textContent: row.name })) : part, make("p", { className: "label" }, pick, " ", label));
    if (row.excerpt) item.append(make("p", { className: "text" }, excerptText(row.excerpt)));
    return item;
  }

  // --- search and filters ---
  const box = byId("find"), filters = { label: byId("by-label"), verdict: byId("by-verdict"), order: byId("by-order") };
  let latest = null, nShown = MAX_FOUND;

  const query = () => ({
    find: box.value.trim(), cluster: chosen.cluster, label: filters.label?.value ?? "", verdict: filters.verdict?.value ?? "",
    order: filters.order?.value ?? "data",
  });

  function clearFilters() {
    box.value = "";
    if (filters.label) filters.label.value = "";
    if (filters.verdict) filters.verdict.value = "";
    if (filters.order) filters.order.value = "data";
  }

  async function search() {
    const asked = query();
    remember({ find: asked.find, label: asked.label, verdict: asked.verdict, order: asked.order === "data" ? "" : asked.order });
    const isAsked = asked.find !== "" || asked.cluster !== "" || asked.label !== "" || asked.verdict !== "" || asked.order !== "data";
    nShown = MAX_FOUND;
    latest = isAsked ? source.find(asked) : null;
    if (latest instanceof Promise) {
      const mine = latest;
      const found = await mine;
      if (latest !== mine) return; // a newer search has begun
      latest = found;
    }
    await showFound();
  }

  async function showFound() {
    const found = latest;
    const items = found === null ? [] : await found.items(nShown);
    if (found !== latest) return;
    byId("found").replaceChildren(...items.map(entry));
    byId("found-status").textContent = found === null ? "" : found.n === 0 ? `No ${ROWS} match.`
      : `${counted(found.n)}${found.n > items.length ? `; the first ${items.length} are shown` : ""}.`;
    byId("more").hidden = found === null || found.n <= items.length;
    byId("save-found").hidden = found === null || found.n === 0 || data.served;
  }

  box.addEventListener("input", search);
  byId("by-cluster").addEventListener("change", (event) => choose(event.target.value, ""));
  for (const select of Object.values(filters)) select?.addEventListener("change", search);
  byId("more").addEventListener("click", () => { nShown += 2 * MAX_FOUND; showFound(); });
  for (const part of all("details.row")) listen(part);

  for (const button of all("#confusion button.cell")) {
    button.addEventListener("click", () => {
      const cell = button.closest("td"), name = cell.parentElement.cells[0].textContent;
      clearFilters();
      filters.label.value = rows.labels.indexOf(name);
      choose(String(cell.cellIndex - 2), "");
      byId("rows").scrollIntoView();
      byId("rows").querySelector("summary, input").focus({ preventScroll: true });
    });
  }

  function rowTable(shown) {
    const columns = [["row", numberOf], ["name", nameOf], ["cluster", (i) => rows.cluster[i]]];
    columns.push(["cluster_name", (i) => data.names[rows.cluster[i]]]);
    if (rows.label) columns.push(["label", (i) => rows.labels[rows.label[i]]]);
    if (rows.verdict) columns.push(["probability", (i) => rows.probability[i] / 10000], ["verdict", (i) => VERDICTS[rows.verdict[i]]]);
    if (rows.stability) columns.push(["stability", (i) => facts(i).stability ?? ""]);
    if (rows.x) columns.push(["x", (i) => rows.x[i] / 10000], ["y", (i) => rows.y[i] / 10000]);
    return [columns.map(([head]) => head), ...shown.map((i) => columns.map(([, value]) => value(i)))];
  }

  // --- views as CSV and SVG ---
  const SVG = "http://www.w3.org/2000/svg";

  // Tables for views that are not tables themselves, or that show only some rows or rounded numbers.
  const tables = {
    ...data.tables,
    map: () => rowTable(every.filter((i) => !map.picked || map.picked.has(i))),
    found: () => rowTable(latest.hits),
    words: () => [["cluster", FEATURE, "share", "lift"], ...ranked.map(({ cluster, name, share, lift }) => [cluster, name, ...[share / 1e6, lift].map((value) => Number(value.toPrecision(5)))])],
    topics: () => [["topic", "topic_name", FEATURE, "share", "lift"], ...all(".card.topic").flatMap((card) => [...card.querySelectorAll("tbody tr")].map((line) => [
      card.dataset.topic, card.querySelector("h3 bdi").textContent, line.cells[0].textContent, line.cells[1].dataset.v, line.cells[2].dataset.v,
    ]))],
  };

  function tableOf(name) {
    const words = (cell) => (cell.querySelector("button:not(.sort)") ? [...cell.querySelectorAll("button, bdi")] : [cell])
      .map((part) => (part === cell && cell.dataset.v) || [...part.childNodes].map((node) => node.textContent.trim()).join(" ")).join(" ").trim();
    const given = tables[name];
    const [head, ...lines] = typeof given === "function" ? given() : given ?? [...byId(name).rows].map((line) => [...line.cells].map(words));
    if (head[0] !== "cluster" || head[1] === "cluster_name") return [head, ...lines];
    return [["cluster", "cluster_name", ...head.slice(1)], ...lines.map(([q, ...rest]) => [q, data.names[q], ...rest])];
  }

  function shape(tag, attributes, text = "") {
    const part = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) part.setAttribute(name, typeof value === "number" ? Math.round(100 * value) / 100 : value);
    part.append(text);
    return part;
  }

  // Return an object with the canvas methods that the map uses, which draws into an SVG element instead.
  function svgPen(group) {
    const ruler = document.createElement("canvas").getContext("2d");
    const write = (pen, text, x, y, colors) => group.append(shape("text", { x, y: y + 4.5, "text-anchor": "middle", style: `font: ${pen.font}`, ...colors }, text));
    return {
      beginPath() {},
      arc(cx, cy, r) { group.append(shape("circle", { cx, cy, r })); },
      fillRect(x, y, width, height) { group.append(shape("rect", { x, y, width, height })); this.fill(); },
      fill() { Object.entries({ fill: this.fillStyle, opacity: this.globalAlpha }).forEach((one) => group.lastChild.setAttribute(...one)); },
      identify(i) { group.lastChild.append(shape("title", {}, nameOf(i))); },
      measureText(text) { return Object.assign(ruler, { font: this.font }).measureText(text); },
      strokeText(text, x, y) { write(this, text, x, y, { fill: "none", stroke: this.strokeStyle, "stroke-width": this.lineWidth, "stroke-linejoin": this.lineJoin }); },
      fillText(text, x, y) { write(this, text, x, y, { fill: this.fillStyle }); },
    };
  }

  // Return a copy of a figure of the page, with its computed styles.
  function styled(figure) {
    const copy = figure.cloneNode(true), copies = [copy, ...copy.querySelectorAll("*")];
    [figure, ...figure.querySelectorAll("*")].forEach((part, n) => {
      const style = getComputedStyle(part);
      for (const name of [...part.getAttributeNames()].filter((name) => /^(class|id|style|role|tabindex|(data|aria)-.*)$/.test(name))) copies[n].removeAttribute(name);
      for (const name of ["fill", "stroke", "stroke-width", "vector-effect", "font-size", "font-family", "font-weight"]) {
        const value = style.getPropertyValue(name);
        if (value !== (part === figure ? "" : getComputedStyle(part.parentElement).getPropertyValue(name)) || name === "vector-effect") copies[n].style.setProperty(name, value);
      }
    });
    for (const part of copy.querySelectorAll("use")) {
      const target = document.querySelector(part.getAttribute("href")).cloneNode(true);
      target.removeAttribute("id");
      target.style.cssText = part.style.cssText;
      part.replaceWith(target);
    }
    return copy;
  }

  // Return an SVG that looks like a part of the page: its boxes, bars, figures and lines of text, in place.
  function picture(root) {
    const scroller = root.closest(".scroll"), scrolled = scroller?.scrollLeft;
    if (scroller) scroller.scrollLeft = 0;
    const origin = root.getBoundingClientRect(), ruler = document.createElement("canvas").getContext("2d"), PAD = 8;
    const svg = shape("svg", {}), drawn = { right: 0, bottom: 0 };
    const add = (part, { right, bottom }) => {
      svg.append(part);
      drawn.right = Math.max(drawn.right, right - origin.left);
      drawn.bottom = Math.max(drawn.bottom, bottom - origin.top);
    };
    const box = (x, y, width, height, more) => {
      if (width > 0 && height > 0) add(shape("rect", { x, y, width, height, ...more }), { right: x + width + origin.left, bottom: y + height + origin.top });
    };
    const isSeen = (color) => !/^rgba\(.* 0\)$|\/ 0\)$/.test(color);
    // A length such as "50%", "4px" or "calc(100% - 4px)".
    const length = (text, whole) => [...text.matchAll(/(-? ?[\d.]+)(%|px)/g)].reduce((sum, [, n, unit]) => sum + n.replace(" ", "") * (unit === "%" ? whole / 100 : 1), 0);
    const lengths = (text, wholes) => text.match(/calc\([^)]*\)|\S+/g).map((one, axis) => length(one, wholes[axis]));

    function drawBox(area, style) {
      const [left, right] = [area.left, area.right].map((x) => Math.round(x - origin.left)), width = right - left;
      const [top, bottom] = [area.top, area.bottom].map((y) => Math.round(y - origin.top)), height = bottom - top;
      const rx = length(style.borderTopLeftRadius, Math.min(width, height));
      if (isSeen(style.backgroundColor)) box(left, top, width, height, { rx, fill: style.backgroundColor });
      const sizes = style.backgroundSize.split(", "), places = style.backgroundPosition.split(", ");
      [...style.backgroundImage.matchAll(/gradient\(([a-z]+\([^)]*\))/g)].forEach(([, fill], n) => {
        const [w, h] = lengths(sizes[n], [width, height]), [x, y] = lengths(places[n], [width - w, height - h]);
        box(left + x, top + y, w, h, { fill });
      });
      const [above, beside, below, before] = ["Top", "Right", "Bottom", "Left"].map((side) => (isSeen(style[`border${side}Color`]) ? parseFloat(style[`border${side}Width`]) : 0));
      if (above && beside && below && before) box(left + above / 2, top + above / 2, width - above, height - above, { rx, fill: "none", stroke: style.borderTopColor, "stroke-width": above });
      else {
        box(left, top, width, above, { fill: style.borderTopColor });
        box(left, bottom - below, width, below, { fill: style.borderBottomColor });
        box(left, top, before, height, { fill: style.borderLeftColor });
        box(right - beside, top, beside, height, { fill: style.borderRightColor });
      }
    }

    function write(node, style, clip) {
      const isUpright = style.writingMode !== "horizontal-tb", range = document.createRange(), lines = [];
      let at = 0;
      for (const sign of node.data) {
        range.setStart(node, at);
        range.setEnd(node, at += sign.length);
        const { left, top, right, bottom } = range.getBoundingClientRect();
        if (/\s/.test(sign) && (right === left || bottom === top)) continue; // collapsed white space
        let line = lines.at(-1);
        if (!line || Math.abs(isUpright ? left - line.left : top - line.top) > 2) lines.push(line = { text: "", left, top, right, bottom });
        if (clip && (left < clip.left - 1 || right > clip.right + 1 || top < clip.top - 1 || bottom > clip.bottom + 1)) {
          line.isCut = true;
          continue;
        }
        line.text += sign;
        Object.assign(line, { left: Math.min(line.left, left), top: Math.min(line.top, top), right: Math.max(line.right, right), bottom: Math.max(line.bottom, bottom) });
      }
      ruler.font = `${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
      const { fontBoundingBoxAscent: up, fontBoundingBoxDescent: down } = ruler.measureText("x"), base = up / (up + down);
      for (const { text, left, top, right, bottom, isCut } of lines) {
        if (text.trim() === "") continue;
        const place = isUpright ? { transform: `translate(${(left + base * (right - left) - origin.left).toFixed(1)} ${(bottom - origin.top).toFixed(1)}) rotate(-90)` }
          : { x: left - origin.left, y: top + base * (bottom - top) - origin.top };
        // A viewer without this font would write wider or narrower text.
        const fit = isCut ? {} : { textLength: isUpright ? bottom - top : right - left, lengthAdjust: "spacingAndGlyphs" };
        const look = { fill: style.color, "font-family": style.fontFamily, "font-size": style.fontSize, "font-weight": style.fontWeight, "xml:space": "preserve" };
        add(shape("text", { ...place, ...fit, ...look }, isCut ? `${text.trim()}…` : text), { right, bottom });
      }
    }

    function draw(part, clip) {
      const style = getComputedStyle(part), area = part.getBoundingClientRect();
      if (!part.checkVisibility() || part.matches(".unseen, .rename, .toolbar, .picked")) return;
      const place = { x: area.left - origin.left, y: area.top - origin.top, width: area.width, height: area.height };
      for (const one of style.display === "inline" ? part.getClientRects() : [area]) drawBox(one, style);
      if (part.tagName === "svg") {
        add(styled(part), area);
        Object.entries(place).forEach((one) => svg.lastChild.setAttribute(...one));
        return;
      }
      if (part === canvas) {
        add(shape("svg", place), area);
        drawPoints(svgPen(svg.lastChild));
        return;
      }
      if (style.overflowX !== "visible") clip = area;
      for (const child of part.childNodes) {
        if (child.nodeType === Node.TEXT_NODE) write(child, style, clip);
        else if (child.nodeType === Node.ELEMENT_NODE) draw(child, clip);
      }
      if (style.outlineStyle !== "none" && part !== document.activeElement) {
        box(place.x + 1, place.y + 1, area.width - 2, area.height - 2, { fill: "none", stroke: style.outlineColor, "stroke-width": 2 });
      }
    }

    draw(root);
    if (scroller) scroller.scrollLeft = scrolled;
    const [width, height] = [drawn.right + 2 * PAD, drawn.bottom + 2 * PAD].map(Math.ceil);
    Object.entries({ width, height, viewBox: `${-PAD} ${-PAD} ${width} ${height}` }).forEach((one) => svg.setAttribute(...one));
    svg.prepend(shape("rect", { x: -PAD, y: -PAD, width, height, fill: css("--panel") }));
    return new XMLSerializer().serializeToString(svg);
  }

  for (const button of all("[data-save]")) {
    button.addEventListener("click", () => {
      const { shown, table, file } = button.parentElement.dataset;
      if (button.dataset.save === "csv") download(`${file}.csv`, "text/csv", csv(tableOf(table)));
      else download(`${file}.svg`, "image/svg+xml", picture(byId(shown)));
    });
  }

  // --- the map ---
  const canvas = document.getElementById("canvas");
  const MARGIN = 26, REACH = 14;
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const map = { color: "cluster", current: -1, lasso: null, picked: null };
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  // Reading the size of the canvas for every row would be slow: kept until the window changes.
  const frame = { width: 0, height: 0, scale: 0, tall: 0, bySize: [], centers: [] };

  function measure() {
    if (frame.width === canvas.clientWidth && frame.height === canvas.clientHeight) return;
    [frame.width, frame.height] = [canvas.clientWidth, canvas.clientHeight];
    frame.scale = Math.min(frame.width, frame.height * 1.6) - 2 * MARGIN;
    frame.tall = Math.min(frame.height - 2 * MARGIN, frame.scale);
    const members = data.names.map(() => []);
    for (const i of every) members[rows.cluster[i]].push(place(i));
    frame.bySize = members.map((_, q) => q).filter((q) => members[q].length).sort((a, b) => members[b].length - members[a].length);
    frame.centers = members.map((own) => (own.length ? center(own) : null));
  }

  // The median of some points, and the top and bottom of the three quarters of them that are nearest to it.
  function center(points) {
    const [x, y] = [0, 1].map((axis) => Float64Array.from(points, (at) => at[axis]).sort()[points.length >> 1]);
    const reach = Float64Array.from(points, (at) => Math.hypot(at[0] - x, at[1] - y)).sort()[Math.ceil(0.75 * points.length) - 1];
    const heights = points.filter((at) => Math.hypot(at[0] - x, at[1] - y) <= reach).map((at) => at[1]);
    return { x, y, top: heights.reduce((a, b) => Math.min(a, b)), bottom: heights.reduce((a, b) => Math.max(a, b)) };
  }

  function place(i) {
    return [frame.width / 2 + (rows.x[i] / 10000 - 0.5) * frame.scale, frame.height / 2 - (rows.y[i] / 10000 - 0.5) * frame.tall];
  }

  function showLegend() {
    const names = map.color === "label" ? rows.labels : map.color === "certainty" ? VERDICTS : [];
    const colors = palette(), MOST = 20;
    byId("map-legend").replaceChildren(...names.slice(0, MOST).map((name, n) => {
      const dot = make("span", { className: "dot" });
      dot.style.setProperty("--c", colors[n]);
      return make("li", {}, dot, make("bdi", { textContent: name }));
    }), ...(names.length > MOST ? [make("li", { textContent: `and ${names.length - MOST} more` })] : []));
  }

  const colorCode = (i) => (map.color === "label" ? rows.label : map.color === "certainty" ? rows.verdict : rows.cluster)[i];

  function palette() {
    if (map.color === "certainty") return VERDICTS.map((verdict) => css(`--${verdict}`));
    const light = css("--light"); // a canvas does not resolve CSS variables
    return data.colors[map.color].map((color) => color.replace("var(--light)", light));
  }

  // Points and names are drawn once on a canvas of their own; pointing at a row and drawing a line only add to a copy.
  const layer = document.createElement("canvas");
  const sureLast = rows.verdict ? [...every].sort((a, b) => rows.verdict[b] - rows.verdict[a]) : every;

  function drawLayer(ratio) {
    [layer.width, layer.height] = [canvas.width, canvas.height];
    const pen = layer.getContext("2d");
    pen.scale(ratio, ratio);
    drawPoints(pen);
  }

  function drawPoints(pen) {
    const size = rows.n > 4000 ? 3 : rows.n > 800 ? 4.5 : 7;
    const colors = palette();
    for (const i of sureLast) {
      const isOut = chosen.cluster !== "" && rows.cluster[i] !== Number(chosen.cluster);
      const isUnsure = map.color === "cluster" && rows.verdict[i] === 2;
      pen.globalAlpha = (map.picked?.size > 1 && !map.picked.has(i)) || isOut ? 0.08 : isUnsure ? 0.4 : 0.85;
      pen.fillStyle = colors[colorCode(i)];
      const [x, y] = place(i);
      if (rows.n > 4000) pen.fillRect(x - size / 2, y - size / 2, size, size); // faster, and looks the same at this size
      else {
        pen.beginPath();
        pen.arc(x, y, size / 2, 0, 2 * Math.PI);
        pen.fill();
      }
      pen.identify?.(i);
    }
    pen.globalAlpha = 1;
    drawNames(pen);
  }

  function draw(isMarkOnly = false) {
    if (!canvas || canvas.clientWidth === 0) return;
    measure();
    const ratio = window.devicePixelRatio || 1;
    const width = Math.round(canvas.clientWidth * ratio), height = Math.round(canvas.clientHeight * ratio);
    if (canvas.width !== width || canvas.height !== height) [canvas.width, canvas.height] = [width, height];
    if (isMarkOnly !== true || layer.width !== width || layer.height !== height) drawLayer(ratio);
    const pen = canvas.getContext("2d");
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.clearRect(0, 0, width, height);
    pen.drawImage(layer, 0, 0);
    pen.scale(ratio, ratio);
    for (const i of new Set([map.current, ...(map.picked?.size === 1 ? map.picked : [])])) {
      if (i < 0) continue;
      const [x, y] = place(i);
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

  // Draw the names of the clusters above the bulk of their points, larger clusters first, without overlaps. Where space is
  // tight, a name is shortened, in the end to the number of its cluster.
  function drawNames(pen) {
    const boxes = [], HEIGHT = 15;
    pen.font = "600 13px system-ui, sans-serif";
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    pen.lineWidth = 4;
    pen.lineJoin = "round";
    pen.strokeStyle = css("--panel");
    pen.fillStyle = css("--ink");
    const shown = frame.bySize.filter((q) => chosen.cluster === "" || String(q) === chosen.cluster);
    const centers = shown.map((q) => frame.centers[q]);
    shown.forEach((q, n) => {
      const { x, y, top, bottom } = centers[n];
      const names = data.names[q].split(", "), cut = (name) => (name.length > 24 ? `${name.slice(0, 23)}…` : name);
      const texts = [...(shown.length > 12 || frame.width < 500 ? [] : [`${q} ${cut(names.slice(0, 2).join(", "))}`]), `${q} ${cut(names[0])}`, String(q)];
      const isFree = (half, at, height) => boxes.every(([left, right, other]) => at + half < left || at - half > right || Math.abs(height - other) > HEIGHT)
        && centers.every((other, m) => m === n || Math.abs(other.y - height) > HEIGHT / 2 || Math.abs(other.x - at) > half);
      for (const text of texts) {
        const half = pen.measureText(text).width / 2 + 3;
        const at = Math.max(half, Math.min(x, frame.width - half));
        const height = [top - 12, bottom + 12, y].map((one) => Math.max(9, Math.min(one, frame.height - 9))).find((one) => isFree(half, at, one));
        if (height === undefined && text !== texts.at(-1)) continue;
        const own = height ?? y;
        boxes.push([at - half, at + half, own]);
        pen.strokeText(text, at, own);
        pen.fillText(text, at, own);
        return;
      }
    });
  }

  function nearest([x, y], reach, allowed = () => true) {
    let best = -1, least = reach;
    for (let i = 0; i < rows.n; i++) {
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
    draw(true);
    tip.hidden = i < 0;
    if (i < 0) return;
    const label = rows.label ? `, ${rows.labels[rows.label[i]]}` : "";
    tip.textContent = `${nameOf(i)}${label}: cluster ${rows.cluster[i]} (${data.names[rows.cluster[i]]}), ${rated(facts(i))}`;
    const corner = canvas.getBoundingClientRect();
    const [x, y] = place(i);
    tip.style.left = `${Math.max(8, Math.min(corner.left + x, document.documentElement.clientWidth - tip.offsetWidth - 8))}px`;
    tip.style.top = `${corner.top + y + 12}px`;
  }

  function pickRows(numbers) {
    map.picked = numbers.length ? new Set(numbers) : null;
    const items = numbers.slice(0, MAX_FOUND).map((i) => entry({ ...facts(i), excerpt: rows.text ? excerpt(rows.text[i], "") : null }));
    byId("picked").replaceChildren(...items);
    if (items.length === 1) items[0].querySelector("details").open = true;
    byId("map-help").hidden = numbers.length > 0;
    const tally = new Map();
    for (const i of numbers) tally.set(rows.cluster[i], (tally.get(rows.cluster[i]) ?? 0) + 1);
    const parts = [...tally].sort((a, b) => b[1] - a[1]).slice(0, 4).map(([q, n]) => `${n} in cluster ${q} (${data.names[q]})`);
    const rest = numbers.length > MAX_FOUND ? `; the first ${MAX_FOUND} are listed` : "";
    document.getElementById("map-status").textContent =
      numbers.length === 0 ? "" : `${counted(numbers.length)}: ${new Intl.ListFormat("en").format(parts)}${rest}.`;
    draw();
  }

  if (canvas) {
    const at = (event) => [event.offsetX, event.offsetY];
    canvas.addEventListener("pointermove", (event) => {
      if (map.lasso) {
        map.lasso.push(at(event));
        draw(true);
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
      pickRows(isLasso ? every.flatMap((i) => (within(place(i), line) ? [i] : [])) : hit < 0 ? [] : [hit]);
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
      } else if (event.key === "Enter" && map.current >= 0) {
        pickRows([map.current]);
        tip.hidden = true; // it might cover the opened row
      } else if (event.key === "Escape") pickRows([]);
    });
    for (const button of all("[data-color]")) {
      button.addEventListener("click", () => {
        map.color = button.dataset.color;
        for (const other of all("[data-color]")) other.setAttribute("aria-pressed", String(other === button));
        remember({ color: map.color === "cluster" ? "" : map.color });
        showLegend();
        draw();
      });
    }
    dark.addEventListener("change", () => { showLegend(); draw(); });
    new ResizeObserver(() => draw()).observe(canvas);
  }

  // --- features by relevance ---
  const slider = document.getElementById("relevance");
  const compared = document.getElementById("compared");
  const percent = (share) => (share >= 10 ? `${share.toFixed(0)}%` : share >= 0.05 ? `${share.toFixed(1)}%` : "< 0.1%");

  const words = data.words.own.map((own, q) => ({
    own, overall: unpack(data.words.overall[q]), share: data.words.share[q].map(unpack),
  }));
  let ranked = [];

  function rank() {
    const weight = Number(slider.value);
    const other = compared?.value ?? "";
    ranked = [];
    for (const card of all(".card[data-cluster]")) {
      const q = Number(card.dataset.cluster);
      const table = card.querySelector(".features");
      if (!table) continue;
      const { own, overall, share } = words[q];
      const items = own.map((v, place) => {
        const here = share[share.length > 1 ? q : 0][place];
        const there = other === "" ? overall[place] : share[Number(other)][place];
        const lift = here / Math.max(there, 0.01);
        return { cluster: q, name: data.features[v], share: here, there, lift, score: weight * Math.log(here + 1e-9) + (1 - weight) * Math.log(lift + 1e-9) };
      });
      items.sort((a, b) => b.score - a.score);
      items.splice(10);
      ranked.push(...items);
      const longest = Math.max(...items.map((item) => Math.max(item.share, item.there)));
      table.tBodies[0].replaceChildren(...items.map((item) => {
        const line = document.createElement("tr");
        const head = document.createElement("th");
        head.scope = "row";
        head.append(Object.assign(document.createElement("bdi"), { textContent: item.name }));
        const bar = Object.assign(document.createElement("td"), { className: "num bar two", textContent: percent(item.share / 1e4) });
        bar.dataset.v = item.share / 1e6;
        bar.style.setProperty("--w", `${Math.round((100 * item.share) / longest)}%`);
        bar.style.setProperty("--o", `${Math.round((100 * item.there) / longest)}%`);
        const lift = Object.assign(document.createElement("td"), { className: "num", textContent: item.lift > 9999 ? "> 9999×" : `${item.lift.toFixed(1)}×` });
        lift.dataset.v = item.lift;
        line.append(head, bar, lift);
        return line;
      }));
      makeReachable(table.tBodies[0]);
    }
  }

  if (slider) {
    rank();
    for (const part of [slider, compared]) {
      part?.addEventListener("input", () => {
        remember({ relevance: slider.value, compared: compared?.value ?? "" });
        rank();
      });
    }
  }

  // --- on paper: closed tables ---
  let closed = [];
  window.addEventListener("beforeprint", () => {
    closed = all("#recipes > details:not([open])");
    for (const part of closed) part.open = true;
  });
  window.addEventListener("afterprint", () => {
    for (const part of closed) part.open = false;
  });

  for (const part of all(".live")) part.hidden = false;
  if (view.size) {
    const { cluster = "", topic = "", color, relevance, compared: other, find = "", label, verdict, order, row } = Object.fromEntries(view);
    if (slider && relevance !== undefined) {
      slider.value = relevance;
      if (compared && other !== undefined) compared.value = other;
      rank();
    }
    data.names.forEach((_, q) => {
      const name = view.get(`${NAMED}${q}`);
      if (name === null || data.edits) return;
      data.names[q] = name.slice(0, 80);
      showName(q);
    });
    box.value = find;
    for (const [name, value] of Object.entries({ label, verdict, order })) {
      if (filters[name] && value !== undefined && [...filters[name].options].some((option) => option.value === value)) filters[name].value = value;
    }
    if (color !== undefined) document.querySelector(`[data-color="${CSS.escape(color)}"]`)?.click();
    const shown = cluster in data.topics ? choose(cluster, "")
      : document.querySelector(`[data-pick-topic="${CSS.escape(topic)}"]`) ? choose("", topic) : search();
    shown.then(() => {
      const wanted = row === undefined ? "" : `details[data-row="${CSS.escape(row)}"]`;
      const opened = wanted && (document.querySelector(`#found ${wanted}`) ?? document.querySelector(wanted));
      if (opened) opened.open = true;
      else if (wanted && rows.x && placeOf.has(Number(row))) pickRows([placeOf.get(Number(row))]);
    });
  }
  draw();
})();
