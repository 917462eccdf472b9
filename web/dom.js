/* Making and filling elements, without a framework. */

/* h("div", {class: "row", onclick: f, "aria-label": "..."}, children...). Children are nodes, texts or lists of them; null
 * and false are left out. */
export function h(tag, properties, ...children) {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(properties || {})) {
        if (value === null || value === undefined || value === false) continue;
        if (name.startsWith("on"))
            node.addEventListener(name.slice(2), value);
        else if (name in node && name !== "list" && name !== "form" && typeof value !== "string")
            node[name] = value;
        else if (name === "value")
            node.value = value;
        else
            node.setAttribute(name, value === true ? "" : value);
    }
    append(node, children);
    return node;
}

function append(node, children) {
    for (const child of children.flat(Infinity))
        if (child !== null && child !== undefined && child !== false) node.append(child);
}

const SVG = "http://www.w3.org/2000/svg";

export function s(tag, attributes, ...children) {
    const node = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes || {}))
        if (value !== null && value !== undefined) node.setAttribute(name, value);
    append(node, children);
    return node;
}

export function fill(node, ...children) {
    node.replaceChildren();
    append(node, children);
    return node;
}

/* Numbers as people read them: three significant digits, a real minus, powers of ten as such. */
export function number(value, digits = 3) {
    if (value === null || value === undefined || Number.isNaN(value)) return "–";
    if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
    if (value === 0) return "0";
    const size = Math.abs(value);
    if (size >= 1e-3 && size < 1e5) {
        const text = Number(value.toPrecision(digits));
        return minus(Math.abs(text) >= 1e4 ? text.toLocaleString("en").replaceAll(",", " ") : String(text));
    }
    const [mantissa, exponent] = value.toExponential(digits - 1).split("e");
    const shown = Number(mantissa);
    return minus(shown === 1 ? power(Number(exponent)) : `${shown} · ${power(Number(exponent))}`);
}

const RAISED = {
    "-": "⁻",
    0: "⁰",
    1: "¹",
    2: "²",
    3: "³",
    4: "⁴",
    5: "⁵",
    6: "⁶",
    7: "⁷",
    8: "⁸",
    9: "⁹"
};

export function power(exponent) { return "10" + [...String(exponent)].map((c) => RAISED[c]).join(""); }

function minus(text) { return text.replace("-", "−"); }

export function whole(value) {
    return Number.isFinite(value) ? Math.round(value).toLocaleString("en").replaceAll(",", "\u202f") : "–";
}

export function bytes(value) {
    const units = ["bytes", "kB", "MB", "GB"];
    let i = 0;
    while (value >= 1000 && i < 3) value /= 1000, i++;
    return `${i ? value.toPrecision(3) : value} ${units[i]}`;
}

export function duration(seconds) {
    if (!Number.isFinite(seconds) || seconds < 0) return "–";
    if (seconds < 10) return `${seconds.toFixed(1)} s`;
    if (seconds < 60) return `${Math.floor(seconds)} s`;
    if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${Math.floor(seconds % 60)} s`;
    if (seconds < 86400) return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
    return `${Math.floor(seconds / 86400)} d ${Math.floor((seconds % 86400) / 3600)} h`;
}

/* At most one call of `work` per frame, with the last arguments. */
export function perFrame(work) {
    let pending = null;
    return (...values) => {
        if (!pending)
            requestAnimationFrame(() => {
                const last = pending;
                pending = null;
                work(...last);
            });
        pending = values;
    };
}

/* A short line at the foot of the page; problems stay until they are closed. */
export function note(text, problem = false) {
    const host = document.getElementById("notes");
    const line =
        h("div", {class: problem ? "note problem" : "note"}, h("span", null, text),
          h("button",
            {type: "button", class: "quiet icon", "aria-label": "Close this message", onclick: () => line.remove()},
            "×"));
    for (const other of [...host.children])
        if (other.firstChild.textContent === text) other.remove();
    host.append(line);
    while (host.children.length > 3) host.firstChild.remove();
    if (!problem) setTimeout(() => line.remove(), 3500);
}

export async function copy(text, what) {
    try {
        await navigator.clipboard.writeText(text);
        note(`${what} copied`);
    } catch {
        note(`The browser did not allow copying. Select this instead: ${text}`, true);
    }
}

/* Hands a file to the browser's downloads. */
export function save(blob, name) {
    const url = URL.createObjectURL(blob);
    const link = h("a", {href: url, download: name});
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(url), 10000);
}

/* A word for a shell, quoted where it needs to be. */
export function quoted(word) {
    return /^[A-Za-z0-9_.,:/=+@%-]+$/.test(word) ? word : "'" + word.replaceAll("'", "'\\''") + "'";
}
