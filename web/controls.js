/* Controls that several views use: sliders with a number field, choices, progress. */
import {duration, fill, h, whole} from "./dom.js";

let ids = 0;
const nextId = () => `control${++ids}`;

/* ---- Sliders ----------------------------------------------------------------------------------------------------- */

/* From the position of a slider, 0 to 1, to a value and back. `power` is fine near 0 and has both signs. */
const SCALES = {
    linear: {to: (u, a, b) => a + (b - a) * u, from: (v, a, b) => (v - a) / (b - a)},
    log: {to: (u, a, b) => a * (b / a) ** u, from: (v, a, b) => Math.log(v / a) / Math.log(b / a)},
    power: {
        to: (u, a, b) => {
            const w = a < 0 ? 2 * u - 1 : u;
            return Math.sign(w) * Math.abs(w) ** 2.5 * b;
        },
        from: (v, a, b) => {
            const w = Math.sign(v) * (Math.abs(v) / b) ** 0.4;
            return a < 0 ? (w + 1) / 2 : w;
        },
    },
};
const STEPS = 400;

/* As many digits as a slider can resolve. */
function rounded(value, span) {
    const size = Math.max(Math.abs(value), span / 1000);
    if (!(size > 0)) return 0;
    const unit = 10 ** (Math.floor(Math.log10(size)) - 2);
    return Number((Math.round(value / unit) * unit).toPrecision(6));
}

export function shortest(value) { return Number.isFinite(value) ? String(Number(value.toPrecision(12))) : ""; }

/* A slider and a number field with one value: {label, value, low, high, scale, whole, oninput, hint}. In `cell` form
 * without a visible label. Typed values may be beyond the ends of the slider. */
export function slider(options) {
    const {label, low, high, scale = "linear", oninput = () => {}} = options, map = SCALES[scale], id = nextId();
    let value = options.value;
    const range = h("input", {
        type: "range",
        min: "0",
        max: String(STEPS),
        step: "1",
        "aria-label": `${label}, slider`,
        title: options.hint
    });
    const field = h("input", {
        type: "number",
        id,
        step: "any",
        inputmode: "decimal",
        "aria-label": options.cell ? label : null,
        title: options.hint
    });
    const show = (typed) => {
        const place = Math.max(0, Math.min(1, map.from(value, low, high)));
        range.value = Math.round((Number.isFinite(place) ? place : 0) * STEPS);
        range.style.setProperty("--done", `${(100 * range.value) / STEPS}%`);
        range.setAttribute("aria-valuetext", shortest(value));
        if (!typed) field.value = shortest(value);
        field.setAttribute("aria-invalid", String(!Number.isFinite(value)));
    };
    range.addEventListener("input", () => {
        const raw = map.to(range.value / STEPS, low, high);
        value = options.whole ? Math.round(raw) : scale === "linear" ? Number(raw.toPrecision(3)) : rounded(raw, high);
        show();
        oninput(value);
    });
    field.addEventListener("input", () => {
        const typed = field.value === "" ? NaN : Number(field.value);
        if (options.whole && !Number.isInteger(typed)) return field.setAttribute("aria-invalid", "true");
        value = typed;
        show(true);
        if (Number.isFinite(value)) oninput(value);
    });
    field.addEventListener("change", () => Number.isFinite(value) || ((value = options.value), show(), oninput(value)));
    show();
    const element = options.cell ?
        h("div", {class: "cell"}, field, range) :
        h("div", {class: "slider"}, h("label", {"for": id, title: options.hint}, label), range, field);
    return {
        element,
        field,
        get value() { return value; },
        set value(other) {
            value = other;
            show();
        },
        set disabled(off) { range.disabled = field.disabled = off; },
    };
}

/* ---- Fields ------------------------------------------------------------------------------------------------------ */

export function field(label, control, hint) {
    return h("label", {class: "field", title: hint}, h("span", null, label), control);
}

/* A whole number; "" is none where that is allowed. */
export function numberField(label, value, options = {}) {
    const input = h("input", {
        type: "number",
        value: value === null ? "" : String(value),
        min: options.min,
        max: options.max,
        step: options.step || "1",
        placeholder: options.placeholder,
        inputmode: "numeric"
    });
    const read = () => (input.value.trim() === "" ? null : Number(input.value));
    input.addEventListener("input", () => {
        input.setAttribute("aria-invalid", String(!input.checkValidity()));
        options.oninput?.(read());
    });
    return {
        element: field(label, input, options.hint),
        input,
        get value() { return read(); },
        set value(v) { input.value = v === null ? "" : v; }
    };
}

/* rows: [value, text] or {group, rows}. */
export function options(select, rows, value) {
    const one = ([v, text]) => h("option", {value: v, selected: v === value}, text ?? v);
    fill(
        select,
        rows.map((row) => (Array.isArray(row) ? one(row) : h("optgroup", {label: row.group}, row.rows.map(one)))));
    if (value !== undefined && [...select.options].some((o) => o.value === value)) select.value = value;
}

export function choice(label, rows, value, onchange, hint) {
    const select = h("select", {onchange: () => onchange?.(select.value)});
    options(select, rows, value);
    return {
        element: field(label, select, hint),
        select,
        get value() { return select.value; },
        set value(v) { select.value = v; }
    };
}

/* Files in a select, those of the folder apart from those that come with psld. */
export function fileRows(files) {
    const rows = (shipped) =>
        files.filter((file) => file.shipped === shipped).map((file) => [file.path, file.path.replace(/^shipped:/, "")]);
    return [{group: "In this folder", rows: rows(false)}, {group: "With psld", rows: rows(true)}].filter(
        (group) => group.rows.length);
}

/* One of a few, as buttons side by side: rows [value, text]. */
export function segmented(label, rows, value, onchange, wide = true) {
    const buttons = rows.map(
        ([v, text]) =>
            h("button", {type: "button", "aria-pressed": String(v === value), onclick: () => pick(v)}, text));
    const pick = (v, quiet) => {
        buttons.forEach((button, i) => button.setAttribute("aria-pressed", String(rows[i][0] === v)));
        value = v;
        if (!quiet) onchange(v);
    };
    return {
        element: h("div", {class: wide ? "seg wide" : "seg", role: "group", "aria-label": label}, buttons),
        buttons,
        get value() { return value; },
        set value(v) { pick(v, true); }
    };
}

export function check(label, value, onchange, hint) {
    const input = h("input", {type: "checkbox", checked: value, onchange: () => onchange?.(input.checked)});
    return {
        element: h("label", {class: "check", title: hint}, input, label),
        input,
        get value() { return input.checked; },
        set value(v) { input.checked = v; }
    };
}

/* ---- Work -------------------------------------------------------------------------------------------------------- */

/* The progress of a job, in a line that is always shown. */
export function progressLine() {
    const bar = h("progress", {max: 1, value: 0, "aria-label": "Progress"}),
          text = h("span", {class: "status", role: "status"});
    bar.classList.add("idle");
    return {
        element: h("div", {class: "stack progress-line"}, bar, text),
        show(progress) {
            bar.classList.remove("idle");
            bar.value = progress.total ? progress.done / progress.total : 0;
            const left = progress.left > 0.5 ? `, about ${duration(progress.left)} left` : "";
            text.textContent =
                `${progress.total ? Math.round((100 * progress.done) / progress.total) : 0} % of the evaluations, ${
                    duration(progress.seconds || 0)}${left}`;
            text.className = "status";
        },
        say(words, problem) {
            bar.classList.add("idle");
            text.textContent = words;
            text.className = problem ? "status problem-text" : "status";
        },
    };
}

export function empty(title, words, ...more) {
    return h("div", {class: "empty"}, h("h2", null, title), h("p", null, words), more);
}

export function samplesPerSecond(count, seconds) { return seconds > 0 ? `${whole(count / seconds)} a second` : ""; }
