// Return layout errors: sideways scrolling, text that is cut off or spills over, overlapping elements.
const errors = [];
const SLACK = 1.5; // pixels by which glyphs may leave their line
const root = document.documentElement;
const say = (what, node) => {
  const element = node.nodeType === 1 ? node : node.parentElement;
  const place = element.closest("[id]");
  errors.push(`${what}: <${element.tagName.toLowerCase()}> in #${place ? place.id : "?"}: ${node.textContent.trim().slice(0, 60)}`);
};

if (root.scrollWidth > root.clientWidth) errors.push(`the page scrolls sideways: ${root.scrollWidth} > ${root.clientWidth}`);

const isSkipped = (element) => element.closest(".unseen, .skip, #tip, .now, script, style, title") !== null;
const isShortened = (style) => style.textOverflow === "ellipsis" || (style.webkitLineClamp && style.webkitLineClamp !== "none");
const scrolls = (style) => ["auto", "scroll"].includes(style.overflowX);

function checkText(node, rects) {
  const box = [Infinity, -Infinity, Infinity, -Infinity]; // left, right, top, bottom of the text
  for (const rect of rects) {
    box[0] = Math.min(box[0], rect.left); box[1] = Math.max(box[1], rect.right);
    box[2] = Math.min(box[2], rect.top); box[3] = Math.max(box[3], rect.bottom);
  }
  // A line of a few letters per line: something else took the room of the text.
  if (rects.length > 5 && node.textContent.trim().length / rects.length < 3) { say("text is squeezed", node); return; }
  let isFirstBlock = true;
  for (let around = node.parentElement; around && around !== root; around = around.parentElement) {
    const style = getComputedStyle(around);
    if (scrolls(style) || isShortened(style)) return; // reachable by scrolling, or shortened on purpose
    if (style.display === "inline" || around instanceof SVGElement) continue;
    const outer = around.getBoundingClientRect();
    const isOut = box[0] < outer.left - SLACK || box[1] > outer.right + SLACK;
    const isCut = style.overflowY !== "visible" && (box[2] < outer.top - SLACK || box[3] > outer.bottom + SLACK);
    if (isFirstBlock && isOut) { say("text spills out of its box", node); return; }
    if (style.overflowX !== "visible" && isOut || isCut) { say("text is cut off", node); return; }
    isFirstBlock = false;
  }
  if (box[0] < -SLACK || box[1] > root.clientWidth + SLACK) say("text is outside of the window", node);
}

function visibleTexts() {
  const texts = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode;
    if (node.textContent.trim() === "" || isSkipped(node.parentElement)) continue;
    if (!node.parentElement.checkVisibility({ contentVisibilityAuto: true })) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    const rects = [...range.getClientRects()].filter((rect) => rect.width > 0 && rect.height > 0);
    if (rects.length > 0) texts.push({ node, rects });
  }
  return texts;
}

// Within a part that scrolls or is shortened, only what shows through can lie on something else.
function shownPart(node, rect) {
  let { left, right, top, bottom } = rect;
  for (let around = node.parentElement; around && around !== root; around = around.parentElement) {
    const style = getComputedStyle(around);
    if (style.overflowX === "visible") continue;
    const outer = around.getBoundingClientRect();
    left = Math.max(left, outer.left); right = Math.min(right, outer.right);
    top = Math.max(top, outer.top); bottom = Math.min(bottom, outer.bottom);
  }
  return { node, left, right, top, bottom };
}

const texts = visibleTexts();
for (const { node, rects } of texts) checkText(node, rects);

const isOverlap = (a, b, slack) =>
  Math.min(a.right, b.right) - Math.max(a.left, b.left) > slack && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > slack;

// Lines of one paragraph may touch: the height of a glyph's box exceeds that of its line.
const pieces = texts.flatMap(({ node, rects }) => rects.map((rect) => shownPart(node, rect)))
  .filter((piece) => piece.right - piece.left > 1 && piece.bottom - piece.top > 1)
  .sort((a, b) => a.top - b.top);
for (let i = 0; i < pieces.length; i++) {
  for (let j = i + 1; j < pieces.length && pieces[j].top < pieces[i].bottom; j++) {
    if (pieces[i].node !== pieces[j].node && isOverlap(pieces[i], pieces[j], 4)) say("texts overlap", pieces[j].node);
  }
}

const inFlow = (element) => {
  const style = getComputedStyle(element);
  return ["static", "relative"].includes(style.position) && !style.display.startsWith("inline") && element.checkVisibility() && !isSkipped(element);
};
for (const parent of document.querySelectorAll("body, body *:not(svg, svg *)")) {
  const children = [...parent.children].filter(inFlow).map((child) => ({ child, rect: child.getBoundingClientRect() }))
    .filter(({ rect }) => rect.width > 0 && rect.height > 0);
  for (let i = 0; i < children.length; i++) {
    for (let j = i + 1; j < Math.min(i + 6, children.length); j++) {
      if (isOverlap(children[i].rect, children[j].rect, SLACK)) say("neighbors overlap", children[j].child);
    }
  }
}
return [...new Set(errors)];
