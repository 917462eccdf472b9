/* Plots with real axes. Axes and curves are SVG, so that the style sheet colours them in light and in dark; clouds of
 * points and fields lie on a canvas above them. A plot is read with the mouse, by touch, or with the arrow keys. */
import {fill, h, number, perFrame, power, s} from "./dom.js";

const MARGIN = {
    left: 52,
    right: 10,
    top: 8,
    bottom: 34
};

/* ---- Scales ------------------------------------------------------------------------------------------------------ */

function linearTicks(low, high, count) {
    const raw = (high - low) / Math.max(1, count), unit = 10 ** Math.floor(Math.log10(raw));
    const step = unit * [1, 2, 2.5, 5, 10].find((m) => m * unit >= raw * 0.999);
    const ticks = [];
    for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++) ticks.push(i * step);
    return ticks.map((value) => ({value: Math.abs(value) < step * 1e-9 ? 0 : value, text: tickText(value, step)}));
}

function tickText(value, step) {
    if (Math.abs(value) < step * 1e-9) return "0";
    const size = Math.abs(value);
    if (size >= 1e5 || size < 1e-3) return number(Number(value.toPrecision(6)), 3);
    const digits =
        Math.max(0, Math.min(6, -Math.floor(Math.log10(step) + 1e-9) + (String(step).includes("25") ? 1 : 0)));
    return value.toFixed(digits).replace("-", "−").replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, "");
}

function logTicks(low, high, count) {
    const first = Math.ceil(Math.log10(low) - 1e-9), last = Math.floor(Math.log10(high) + 1e-9);
    if (last - first < 1) {
        const ticks = linearTicks(low, high, count).filter((tick) => tick.value > 0);
        if (ticks.length) return ticks;
    }
    const every = Math.max(1, Math.ceil((last - first + 1) / (count + 1))), ticks = [];
    for (let e = last - first < 2 ? first - 1 : first; e <= last; e++) {
        ticks.push({value: 10 ** e, text: (e - first) % every === 0 ? decade(e) : ""});
        if (every === 1 && last - first < 5)
            for (let m = 2; m < 10; m++)
                ticks.push({
                    value: m * 10 ** e,
                    minor: true,
                    text: last - first < 2 && (m === 2 || m === 5) ? number(m * 10 ** e) : ""
                });
    }
    return ticks.filter((tick) => tick.value >= low * 0.999 && tick.value <= high * 1.001);
}

function decade(e) { return e >= -2 && e <= 3 ? String(Number((10 ** e).toPrecision(1))) : power(e); }

/* From a domain to pixels and back. */
class Scale {
    constructor(log) {
        this.log = log;
        this.low = log ? 0.1 : 0;
        this.high = 1;
    }
    set(low, high) {
        if (!(high > low)) {
            const around = Number.isFinite(low) ? low : 0;
            [low, high] = this.log ? [(around || 1) / 3, (around || 1) * 3] :
                                     [around - (Math.abs(around) * 0.1 || 1), around + (Math.abs(around) * 0.1 || 1)];
        }
        [this.low, this.high] = [low, high];
        this.from = this.log ? Math.log(low) : low;
        this.span = (this.log ? Math.log(high) : high) - this.from;
    }
    range(start, end) { [this.start, this.length] = [start, end - start]; }
    to(value) { return this.start + (((this.log ? Math.log(value) : value) - this.from) / this.span) * this.length; }
    back(pixel) {
        const u = this.from + ((pixel - this.start) / this.length) * this.span;
        return this.log ? Math.exp(u) : u;
    }
    takes(value) { return Number.isFinite(value) && (!this.log || value > 0); }
    ticks(count) { return this.log ? logTicks(this.low, this.high, count) : linearTicks(this.low, this.high, count); }
}

/* ---- Links ------------------------------------------------------------------------------------------------------- */

/* A position on the x axis that several plots share: all show their values there. */
export class Link {
    constructor() {
        this.value = null;
        this.listeners = new Set();
    }
    set(value, source) {
        if (value === this.value) return;
        this.value = value;
        for (const listener of this.listeners) listener(value, source);
    }
}

/* ---- Colours of canvases ----------------------------------------------------------------------------------------- */

const probe = document.createElement("span");
const resolved = new Map();

/* A colour of the style sheet as rgb(...), as it is in the theme now. */
export function colour(name) {
    if (!resolved.has(name)) {
        if (!probe.isConnected) document.body.append(probe), (probe.hidden = true);
        probe.style.color = `var(--${name})`;
        resolved.set(name, getComputedStyle(probe).color);
    }
    return resolved.get(name);
}
const themed = new Set();
export function themeChanged() {
    resolved.clear();
    for (const plot of themed)
        if (plot.element.isConnected) plot.draw();
}
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", themeChanged);

/* ---- The plot ---------------------------------------------------------------------------------------------------- */

let clips = 0;

/* Options: title, unit (right of the title), x and y {label, log, low, high}, height or ratio, link, zoom (the x axis can
 * be zoomed), square (equal units), describe (a text for screen readers). Data, by set():
 *   curves: {x, y, c, style ("dashed", "dotted", "dotdash", "thin"), label, silent}    points: {x, y, c, size, alpha, label}
 *   marks: {x, y, c, hollow, label, error, pick}    limits: {y, label}    field: {width, height, values, low, high}
 */
export class Plot {
    constructor(options) {
        this.options = {x: {}, y: {}, height: 200, ...options};
        this.data = {};
        this.x = new Scale(this.options.x.log);
        this.y = new Scale(this.options.y.log);
        this.id = `clip${++clips}`;
        this.canvas = h("canvas", {"aria-hidden": "true"});
        this.svg = s("svg", {"aria-hidden": "true"});
        this.readout = h("div", {class: "readout", hidden: true});
        this.spoken = h("div", {class: "unseen", role: "status"});
        this.frame = h("div", {class: "frame", tabindex: "0", role: "img"}, this.svg, this.canvas, this.readout);
        this.title = h("span", null, this.options.title || "");
        this.reset =
            h("button", {type: "button", class: "quiet", hidden: true, onclick: () => this.zoom(null)}, "Whole range");
        this.element =
            h("figure", {class: "plot"},
              (this.options.title || this.options.unit) &&
                  h("h3", null, this.title, this.options.unit && h("small", null, this.options.unit)),
              this.frame, this.spoken);
        if (this.options.height) this.frame.style.height = this.options.height + "px";
        this.window = null;
        this.redraw = perFrame(() => this.draw());
        new ResizeObserver(() => this.redraw()).observe(this.frame);
        this.listen();
        themed.add(this);
        if (this.options.link) this.options.link.listeners.add((value) => this.showCursor(value, false));
    }

    set(data) {
        this.data = data;
        this.redraw();
    }

    setAxes(x, y) {
        if (x) Object.assign(this.options.x, x), (this.x.log = this.options.x.log);
        if (y) Object.assign(this.options.y, y), (this.y.log = this.options.y.log);
        this.redraw();
    }

    /* [low, high] of x, or null for all. */
    zoom(range) {
        this.window = range;
        if (this.options.onzoom) this.options.onzoom(range);
        this.redraw();
    }

    /* -- Domains -- */

    extent(axis, scale, within) {
        let low = Infinity, high = -Infinity;
        const take = (value) => {
            if (!scale.takes(value)) return;
            if (value < low) low = value;
            if (value > high) high = value;
        };
        for (const set of [...(this.data.curves || []), ...(this.data.points || []), ...(this.data.marks || [])])
            for (let i = 0; i < set[axis].length; i++)
                if (!within || (set.x[i] >= within[0] && set.x[i] <= within[1])) take(set[axis][i]);
        if (axis === "y")
            for (const limit of this.data.limits || []) take(limit.y);
        return [low, high];
    }

    domain(axis, scale, options, within) {
        let [low, high] = this.extent(axis, scale, within);
        if (!(low <= high)) [low, high] = scale.log ? [0.1, 1] : [0, 1];
        if (scale.log) {
            if (options.decades && low < high / 10 ** options.decades) low = high / 10 ** options.decades;
            const pad = axis === "y" || options.pad ? Math.max((high / low) ** 0.04, 1.05) : 1;
            low /= pad, high *= pad;
        } else if (axis === "y" || options.pad) {
            const pad = (high - low) * 0.05;
            low -= pad, high += pad;
        }
        if (options.low !== undefined) low = options.low;
        if (options.high !== undefined) high = options.high;
        scale.set(low, high);
    }

    layout() {
        const {x, y} = this.options;
        this.width = this.frame.clientWidth;
        this.height = this.options.ratio ? Math.round(this.width * this.options.ratio) : this.frame.clientHeight;
        if (this.options.ratio) this.frame.style.height = this.height + "px";
        if (this.window)
            this.x.set(...this.window);
        else
            this.domain("x", this.x, x);
        this.domain("y", this.y, y, this.window);
        const bare = this.options.bare;
        this.left = bare ? 0 : MARGIN.left, this.right = this.width - (bare ? 0 : MARGIN.right);
        this.top = bare ? 0 : MARGIN.top, this.bottom = this.height - (bare ? 0 : MARGIN.bottom);
        if (this.options.square) this.squareUp();
        this.x.range(this.left, this.right);
        this.y.range(this.bottom, this.top);
    }

    /* The same number of pixels for a unit of both. */
    squareUp() {
        const perX = this.x.span / (this.right - this.left), perY = this.y.span / (this.bottom - this.top),
              per = Math.max(perX, perY);
        const widen = (scale, pixels) => {
            const middle = (scale.low + scale.high) / 2, half = (per * pixels) / 2;
            scale.set(middle - half, middle + half);
        };
        widen(this.x, this.right - this.left);
        widen(this.y, this.bottom - this.top);
    }

    /* -- Drawing -- */

    draw() {
        if (!this.frame.clientWidth) return;
        this.layout();
        const clip = s("clipPath", {id: this.id}, s("rect", {
                           x: this.left,
                           y: this.top,
                           width: Math.max(0, this.right - this.left),
                           height: Math.max(0, this.bottom - this.top)
                       }));
        this.cursorLayer = s("g");
        this.svg.setAttribute("viewBox", `0 0 ${this.width} ${this.height}`);
        fill(
            this.svg, s("defs", null, clip), this.options.bare ? null : this.drawAxes(),
            s("g", {"clip-path": `url(#${this.id})`}, this.drawLimits(),
              (this.data.curves || []).map((curve) => this.drawCurve(curve)), this.drawMarks()),
            this.cursorLayer);
        this.drawCanvas();
        this.frame.setAttribute("aria-label", this.describe());
        if (this.options.link && this.options.link.value !== null) this.showCursor(this.options.link.value, false);
    }

    drawAxes() {
        const {x, y} = this.options, parts = [];
        const columns = Math.max(2, Math.floor((this.right - this.left) / 55)),
              rows = Math.max(2, Math.floor((this.bottom - this.top) / 34));
        let grid = "", ticks = "", texts = [], lastRight = -Infinity;
        for (const tick of this.x.ticks(columns)) {
            const at = Math.round(this.x.to(tick.value)) + 0.5;
            if (!tick.minor) grid += `M${at} ${this.top}V${this.bottom}`;
            ticks += `M${at} ${this.bottom}v${tick.minor ? 3 : 5}`;
            const half = (tick.text || "").length * 3.2;
            if (tick.text && at - half > lastRight + 4) {
                const clamped = Math.min(at, this.width - half);
                texts.push(s("text", {x: clamped, y: this.bottom + 17, "text-anchor": "middle"}, tick.text));
                lastRight = clamped + half;
            }
        }
        for (const tick of this.y.ticks(rows)) {
            const at = Math.round(this.y.to(tick.value)) + 0.5;
            if (!tick.minor) grid += `M${this.left} ${at}H${this.right}`;
            ticks += `M${this.left} ${at}h-${tick.minor ? 3 : 5}`;
            if (tick.text) texts.push(s("text", {x: this.left - 8, y: at + 3.5, "text-anchor": "end"}, tick.text));
        }
        parts.push(
            s("path", {class: "grid", d: grid}),
            s("path", {class: "axis", d: `M${this.left + 0.5} ${this.top}V${this.bottom + 0.5}H${this.right}` + ticks}),
            texts);
        if (x.label)
            parts.push(
                s("text", {x: (this.left + this.right) / 2, y: this.height - 2, "text-anchor": "middle"}, x.label));
        if (y.label)
            parts.push(
                s("text",
                  {transform: `translate(10 ${(this.top + this.bottom) / 2}) rotate(-90)`, "text-anchor": "middle"},
                  y.label));
        return parts;
    }

    drawLimits() {
        return (this.data.limits || []).map((limit) => {
            const at = this.y.to(limit.y);
            return [
                s("path", {class: "limit", d: `M${this.left} ${at}H${this.right}`}),
                limit.label && s("text", {x: this.right - 4, y: at - 4, "text-anchor": "end"}, limit.label)
            ];
        });
    }

    drawCurve(curve) {
        let d = "", open = false, lastColumn = null, low = 0, high = 0;
        const clamp = (v) => Math.max(-1e4, Math.min(1e4, v)).toFixed(1);
        const dense = curve.x.length > 3 * (this.right - this.left) && curve.ordered !== false;
        for (let i = 0; i < curve.x.length; i++) {
            if (!this.x.takes(curve.x[i]) || !this.y.takes(curve.y[i])) {
                open = false;
                continue;
            }
            const px = this.x.to(curve.x[i]), py = this.y.to(curve.y[i]);
            if (dense) {
                /* Where many points share a column of pixels: its lowest and highest. */
                if (px < this.left - 2 || px > this.right + 2) continue;
                const column = Math.round(px);
                if (column === lastColumn) {
                    low = Math.min(low, py), high = Math.max(high, py);
                    continue;
                }
                if (lastColumn !== null)
                    d += `${d ? "L" : "M"}${lastColumn} ${clamp(low)}L${lastColumn} ${clamp(high)}`;
                lastColumn = column, low = high = py;
            } else
                d += `${open ? "L" : "M"}${clamp(px)} ${clamp(py)}`;
            open = true;
        }
        if (dense && lastColumn !== null)
            d += `${d ? "L" : "M"}${lastColumn} ${clamp(low)}L${lastColumn} ${clamp(high)}`;
        return s("path", {class: `curve c${curve.c || 0} ${curve.style || ""}`, d});
    }

    drawMarks() {
        return (this.data.marks || []).map((set) => set.x.map((x, i) => {
            if (!this.x.takes(x) || !this.y.takes(set.y[i])) return null;
            const cx = this.x.to(x), cy = this.y.to(set.y[i]), e = set.error && set.error[i];
            const bar = e ? s("path", {
                class: `bar-line c${set.c || 0}`,
                d: `M${cx} ${this.y.to(set.y[i] + e)}V${this.y.to(Math.max(this.y.low, set.y[i] - e))}`
            }) :
                            null;
            return [
                bar, s("circle", {class: `mark c${set.c || 0} ${set.hollow ? "hollow" : ""}`, cx, cy, r: set.size || 4})
            ];
        }));
    }

    drawCanvas() {
        const ratio = window.devicePixelRatio || 1, {width, height} = this;
        this.canvas.width = Math.round(width * ratio), this.canvas.height = Math.round(height * ratio);
        const points = this.data.points || [];
        if (!points.length && !this.data.field) return;
        const context = this.canvas.getContext("2d");
        context.scale(ratio, ratio);
        context.beginPath();
        context.rect(this.left, this.top, this.right - this.left, this.bottom - this.top);
        context.clip();
        if (this.data.field) this.drawField(context, this.data.field);
        for (const set of points) {
            const size = set.size || 2;
            context.fillStyle = colour(set.colour || `s${set.c || 0}`);
            context.globalAlpha = set.alpha || 0.6;
            for (let i = 0; i < set.x.length; i++) {
                const px = this.x.to(set.x[i]), py = this.y.to(set.y[i]);
                if (size <= 1.6)
                    context.fillRect(px - size / 2, py - size / 2, size, size);
                else
                    context.beginPath(), context.arc(px, py, size / 2, 0, 7), context.fill();
            }
        }
    }

    /* values[row][column] in [0, 1], rows from low y to high y, over [x0, x1] x [y0, y1]. */
    drawField(context, field) {
        const buffer = h("canvas", {width: field.width, height: field.height}), inner = buffer.getContext("2d");
        const image = inner.createImageData(field.width, field.height);
        const [r, g, b] = colour(`s${field.c || 0}`).match(/[\d.]+/g).map(Number);
        for (let row = 0; row < field.height; row++)
            for (let column = 0; column < field.width; column++) {
                const at = 4 * ((field.height - 1 - row) * field.width + column);
                image.data.set([r, g, b, 255 * field.values[row * field.width + column]], at);
            }
        inner.putImageData(image, 0, 0);
        context.imageSmoothingEnabled = true;
        const left = this.x.to(field.x0), top = this.y.to(field.y1);
        context.drawImage(buffer, left, top, this.x.to(field.x1) - left, this.y.to(field.y0) - top);
    }

    describe() {
        const curves = (this.data.curves || []).filter((curve) => curve.label).map((curve) => curve.label);
        const {x, y} = this.options;
        return [
            this.options.title || this.options.name || "plot", x.label && `over ${x.label}`,
            y.label && `showing ${y.label}`, curves.length && `curves: ${[...new Set(curves)].join(", ")}`,
            this.options.describe
        ].filter(Boolean)
            .join("; ");
    }

    /* -- Reading -- */

    listen() {
        const frame = this.frame;
        frame.addEventListener("pointermove", (event) => this.pointer(event));
        frame.addEventListener("pointerleave", () => !this.drag && this.leave());
        frame.addEventListener("blur", () => this.leave());
        frame.addEventListener("keydown", (event) => this.key(event));
        if (!this.options.zoom) return;
        frame.addEventListener("pointerdown", (event) => {
            if (event.button || event.pointerType === "touch") return;
            this.drag = this.place(event);
            frame.setPointerCapture(event.pointerId);
        });
        frame.addEventListener("pointerup", (event) => {
            const from = this.drag, to = this.place(event);
            this.drag = null;
            if (from !== null && from !== undefined && Math.abs(this.x.to(from) - this.x.to(to)) > 6)
                this.zoom([Math.min(from, to), Math.max(from, to)]);
        });
        frame.addEventListener("dblclick", () => this.zoom(null));
    }

    place(event) {
        const box = this.frame.getBoundingClientRect();
        return this.x.back(Math.max(this.left, Math.min(this.right, event.clientX - box.left)));
    }

    pointer(event) {
        if (this.left === undefined) return;
        if (this.options.nearest) return this.showNearest(event);
        if (!this.options.link && !this.options.read) return;
        const value = this.place(event);
        this.showCursor(value, true);
        if (this.drag)
            this.cursorLayer.append(s("rect", {
                class: "select",
                x: Math.min(this.x.to(this.drag), this.x.to(value)),
                y: this.top,
                width: Math.abs(this.x.to(value) - this.x.to(this.drag)),
                height: this.bottom - this.top
            }));
        if (this.options.link) this.options.link.set(value, this);
    }

    leave() {
        this.readout.hidden = true;
        if (this.options.link)
            this.options.link.set(null, this);
        else if (this.cursorLayer)
            fill(this.cursorLayer);
    }

    /* The value of a curve at x: linear between its points. */
    static at(curve, x) {
        const count = curve.x.length;
        if (!count || x < curve.x[0] || x > curve.x[count - 1]) return null;
        let low = 0, high = count - 1;
        while (high - low > 1) {
            const middle = (low + high) >> 1;
            if (curve.x[middle] <= x)
                low = middle;
            else
                high = middle;
        }
        const width = curve.x[high] - curve.x[low], u = width > 0 ? (x - curve.x[low]) / width : 0;
        return curve.y[low] * (1 - u) + curve.y[high] * u;
    }

    showCursor(value, read) {
        if (!this.cursorLayer) return;
        if (value === null) {
            this.readout.hidden = true;
            return fill(this.cursorLayer);
        }
        const px = this.x.to(value), rows = [], dots = [];
        if (!(px >= this.left - 1 && px <= this.right + 1)) return fill(this.cursorLayer);
        for (const curve of this.data.curves || []) {
            if (curve.silent) continue;
            const y = Plot.at(curve, value);
            if (y === null || !this.y.takes(y)) continue;
            dots.push(
                s("circle",
                  {class: `mark c${curve.c || 0}`, cx: px, cy: this.y.to(y), r: 3.2, "clip-path": `url(#${this.id})`}));
            rows.push([curve, y]);
        }
        fill(
            this.cursorLayer, s("path", {class: "cursor", d: `M${Math.round(px) + 0.5} ${this.top}V${this.bottom}`}),
            dots);
        if (!read) return void (this.readout.hidden = true);
        const name = this.options.x.name || this.options.x.label || "x";
        fill(
            this.readout, h("div", null, `${name} = ${number(value, 4)}`),
            rows.map(
                ([curve, y]) =>
                    h("div", null, h("i", {class: `swatch c${curve.c || 0} ${curve.style || ""}`}), curve.label || "",
                      h("b", null, number(y, 4)))));
        this.placeReadout(px, this.top);
    }

    placeReadout(px, py) {
        this.readout.hidden = false;
        const width = this.readout.offsetWidth, height = this.readout.offsetHeight;
        const left = px + 12 + width < this.width ? px + 12 : Math.max(0, px - 12 - width);
        this.readout.style.left = left + "px";
        this.readout.style.top = Math.max(0, Math.min(py, this.height - height)) + "px";
    }

    /* Marks are read one by one. */
    nearest(x, y) {
        let best = null, distance = 24 ** 2;
        for (const set of [...(this.data.marks || []), ...(this.data.points || []).filter((p) => p.onpick)])
            for (let i = 0; i < set.x.length; i++) {
                const dx = this.x.to(set.x[i]) - x, dy = this.y.to(set.y[i]) - y;
                if (dx * dx + dy * dy < distance) (distance = dx * dx + dy * dy), (best = {set, i});
            }
        return best;
    }

    showNearest(event) {
        const box = this.frame.getBoundingClientRect(),
              best = this.nearest(event.clientX - box.left, event.clientY - box.top);
        this.showMark(best);
    }

    showMark(best) {
        fill(this.cursorLayer);
        if (!best) return void (this.readout.hidden = true);
        const {set, i} = best, cx = this.x.to(set.x[i]), cy = this.y.to(set.y[i]);
        this.cursorLayer.append(s("circle", {class: `mark hollow c${set.c || 0}`, cx, cy, r: 7}));
        const lines = set.tell ? set.tell(i) : [set.label, `${number(set.x[i])}, ${number(set.y[i], 4)}`];
        fill(this.readout, lines.map((line) => h("div", null, line)));
        this.placeReadout(cx, cy - 20);
        return lines;
    }

    key(event) {
        const step = {ArrowLeft: -1, ArrowRight: 1}[event.key];
        if (this.options.zoom && event.key === "Escape") return this.zoom(null);
        if (this.options.zoom && (event.key === "+" || event.key === "-"))
            return this.zoomBy(event.key === "+" ? 0.5 : 2);
        if (!step || this.left === undefined) return;
        event.preventDefault();
        if (this.options.nearest) return this.stepMark(step);
        if (!this.options.link && !this.options.read) return;
        const pixels = (this.right - this.left) / (event.shiftKey ? 10 : 100),
              now = this.options.link ? this.options.link.value : this.last;
        const from =
            now === null || now === undefined ? (step > 0 ? this.left - pixels : this.right + pixels) : this.x.to(now);
        const value = this.x.back(Math.max(this.left, Math.min(this.right, from + step * pixels)));
        this.last = value;
        if (this.options.link) this.options.link.set(value, this);
        this.showCursor(value, true);
        this.spoken.textContent = [...this.readout.children].map((row) => row.textContent).join(", ");
    }

    stepMark(step) {
        const all = (this.data.marks || []).flatMap((set) => set.x.map((x, i) => ({set, i})));
        if (!all.length) return;
        this.mark = ((this.mark ?? (step > 0 ? -1 : 0)) + step + all.length) % all.length;
        this.spoken.textContent = (this.showMark(all[this.mark]) || []).join(", ");
    }

    zoomBy(factor) {
        const middle = this.options.link?.value ?? this.last ?? this.x.back((this.left + this.right) / 2),
              [low, high] = this.extent("x", this.x);
        const at = this.x.to(middle), half = ((this.right - this.left) / 2) * factor;
        const range = [Math.max(low, this.x.back(at - half)), Math.min(high, this.x.back(at + half))];
        this.zoom(range[0] <= low && range[1] >= high ? null : range);
    }
}
