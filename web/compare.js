/* Compare: results of sweeps, quality against cost. */
import {get} from "./api.js";
import {check, choice, empty, options} from "./controls.js";
import {duration, fill, h, number, whole} from "./dom.js";
import {Plot} from "./plot.js";

const KEYS = ["model", "process", "sampler", "grid"], NAMES = {
    model: "Model",
    process: "Process",
    sampler: "Sampler",
    grid: "Time grid",
    nfe: "Evaluations",
    seconds: "Seconds"
};
const METRICS = {
    swd: "Sliced Wasserstein distance",
    fid: "FID",
    frechet: "Fréchet distance",
    kid: "KID",
    is: "Inception score",
    precision: "Precision",
    recall: "Recall"
};
const HIGHER = new Set(["is", "precision", "recall"]), STYLES = ["", "dashed", "dotted"];

export async function create() {
    const view = new Compare();
    await view.list();
    return view;
}

class Compare {
    constructor() {
        this.hidden = new Set();
        this.sort = {key: null, down: false};
        this.sweep = choice("Sweep", [], "", (path) => this.open(path));
        const redraw = () => this.draw();
        this.metric = choice("Metric", [], "", redraw);
        this.cost = choice("Against", [["nfe", "Evaluations per sample"], ["seconds", "Seconds"]], "nfe", redraw);
        this.by = choice(
            "Colour by", KEYS.map((key) => [key, NAMES[key]]), "sampler", () => (this.hidden.clear(), this.draw()));
        this.logX = check("log cost", true, redraw);
        this.logY = check("log metric", true, redraw);
        this.best = check("best of each budget", false, redraw);
        this.filters = h("div", {class: "stack"});
        this.plot = new Plot({name: "quality against cost", height: 400, x: {}, y: {}, nearest: true});
        this.legend = h("div", {class: "legend", role: "group", "aria-label": "Groups; press one to hide it"});
        this.table = h("div", {class: "scroll"});
        this.count = h("p", {class: "small", role: "status"});
        this.content =
            h("div", {class: "stage"},
              h("section", {class: "card stack", "aria-label": "Plot"}, this.legend, this.plot.element),
              h("section", {class: "card stack", "aria-label": "Results"},
                h("header", null, h("h2", null, "Results"), h("div", {class: "end"}, this.count)), this.table));
        this.nothing =
            h("section", {class: "card", hidden: true},
              empty(
                  "No sweeps in this folder", "A sweep compares samplers, grids, recipes and budgets. Make one here:",
                  h("code", null, "psld sweep configs/sweeps/mixture.yaml -o sweep"),
                  h("button", {type: "button", onclick: () => this.list()}, "Look again")));
        this.element =
            h("div", {class: "split"},
              h("div", {class: "side"},
                h("section", {class: "card stack", "aria-label": "What to compare"}, this.sweep.element,
                  this.metric.element, this.cost.element, this.by.element,
                  h("div", {class: "row"}, this.logX.element, this.logY.element, this.best.element), h("hr"),
                  this.filters)),
              h("div", {class: "stage"}, this.nothing, this.content));
    }

    show() { this.list(); }

    async list() {
        const {sweeps} = await get("/api/sweeps"), stamp = JSON.stringify(sweeps);
        this.nothing.hidden = sweeps.length > 0;
        this.content.hidden = !sweeps.length;
        options(
            this.sweep.select,
            sweeps.length ? sweeps.map((sweep) => [sweep.path, `${sweep.path} (${whole(sweep.rows)} results)`]) :
                            [["", "none"]],
            this.sweep.value);
        if (sweeps.length && stamp !== this.stamp) await this.open(this.sweep.value);
        this.stamp = stamp;
    }

    async open(path) {
        try {
            const sweep = await get("/api/sweep", {path});
            this.rows = means(sweep.rows, sweep.metrics);
            options(
                this.metric.select, sweep.metrics.map((metric) => [metric, METRICS[metric] || metric]),
                this.metric.value);
            this.logY.value = !HIGHER.has(this.metric.value);
            const varied = KEYS.filter((key) => new Set(this.rows.map((row) => row[key])).size > 1);
            if (!varied.includes(this.by.value) && varied.length)
                this.by.value = varied.includes("sampler") ? "sampler" : varied[0];
            this.hidden.clear();
            this.makeFilters(varied);
            this.draw();
        } catch (problem) {
            fill(this.table, h("p", {class: "problem-text"}, problem.message));
        }
    }

    /* For each key that varies: which of its values are shown. */
    makeFilters(varied) {
        this.off = Object.fromEntries(varied.map((key) => [key, new Set()]));
        fill(
            this.filters,
            varied.map(
                (key) => h("fieldset", null, h("legend", {class: "label"}, NAMES[key]), h("div", {class: "row"}, [
                               ...new Set(this.rows.map((row) => row[key]))
                           ].map((value) => check(value ?? "adaptive", true, (on) => {
                                                if (on)
                                                    this.off[key].delete(value);
                                                else
                                                    this.off[key].add(value);
                                                this.draw();
                                            }).element)))));
    }

    shown() { return this.rows.filter((row) => Object.entries(this.off).every(([key, off]) => !off.has(row[key]))); }

    draw() {
        if (!this.rows) return;
        const metric = this.metric.value, cost = this.cost.value, by = this.by.value,
              rows = this.shown().filter((row) => Number.isFinite(row[metric])),
              values = [...new Set(this.rows.map((row) => row[by]))];
        const others = KEYS.filter((key) => key !== by && this.off[key]), groups = new Map();
        for (const row of rows) {
            if (this.hidden.has(row[by])) continue;
            const key = KEYS.map((name) => row[name]).join("\n");
            if (!groups.has(key)) groups.set(key, []);
            groups.get(key).push(row);
        }
        const dashed = ["process", "model", "sampler", "grid"].find((key) => others.includes(key)),
              second = [...new Set(this.rows.map((row) => row[dashed]))], curves = [], marks = [];
        for (const group of groups.values()) {
            group.sort((a, b) => a[cost] - b[cost]);
            const c = values.indexOf(group[0][by]) % 8,
                  style = dashed ? STYLES[second.indexOf(group[0][dashed]) % 3] : "", x = group.map((row) => row[cost]),
                  y = group.map((row) => row[metric]);
            curves.push({x, y, c, style, silent: true, label: group[0][by]});
            marks.push({
                x,
                y,
                c,
                error: group.map((row) => row[`${metric}_spread`]),
                tell: (i) =>
                    [KEYS.map((key) => group[i][key]).filter(Boolean).join(" · "),
                     `${whole(group[i].nfe)} evaluations, ${duration(group[i].seconds)}`,
                     `${metric} ${number(group[i][metric], 4)}${
                         group[i][`${metric}_spread`] ? ` ± ${spread(group[i][metric], group[i][`${metric}_spread`])}` :
                                                        ""}`]
            });
        }
        if (this.best.value) curves.push(frontier(rows.filter((row) => !this.hidden.has(row[by])), cost, metric));
        this.plot.setAxes(
            {label: cost === "nfe" ? "evaluations per sample" : "seconds", log: this.logX.value, pad: true},
            {label: METRICS[metric] || metric, log: this.logY.value});
        this.plot.set({curves, marks});
        fill(
            this.legend,
            values.map(
                (value, i) =>
                    h("button", {
                        type: "button",
                        class: `quiet c${i % 8} legend-button`,
                        "aria-pressed": String(!this.hidden.has(value)),
                        onclick: () => {
                            if (!this.hidden.delete(value)) this.hidden.add(value);
                            this.draw();
                            this.legend.children[i].focus();
                        }
                    },
                      h("i", {class: "swatch"}), value ?? "adaptive")),
            dashed && second.length <= 3 &&
                second.map((name, i) => h("span", null, h("i", {class: `swatch ${STYLES[i]}`}), name ?? "adaptive")));
        this.drawTable(rows.filter((row) => !this.hidden.has(row[by])), metric);
    }

    drawTable(rows, metric) {
        const columns =
                  [
                      ...KEYS.filter((key) => new Set(this.rows.map((row) => row[key])).size > 1), "nfe", "seconds",
                      metric
                  ],
              key = this.sort.key && columns.includes(this.sort.key) ? this.sort.key : metric;
        const down = this.sort.key ? this.sort.down : HIGHER.has(metric), best = new Map();
        for (const row of rows)
            if (!best.has(row.nfe) ||
                (HIGHER.has(metric) ? row[metric] > best.get(row.nfe) : row[metric] < best.get(row.nfe)))
                best.set(row.nfe, row[metric]);
        rows = [...rows].sort(
            (a, b) => (down ? -1 : 1) *
                (typeof a[key] === "number" ? a[key] - b[key] : String(a[key]).localeCompare(String(b[key]))));
        const text = (row, name) =>
            (name === "nfe"         ? whole(row.nfe) :
                 name === "seconds" ? number(row.seconds) :
                 name === metric    ? `${number(row[metric], 4)}${
                                       row[`${metric}_spread`] ? ` ± ${spread(row[metric], row[`${metric}_spread`])}` :
                                                                    ""   }` :
                                      row[name] ?? "–");
        const isNumber = (name) => ["nfe", "seconds", metric].includes(name);
        fill(
            this.table,
            h("table", null,
              h("thead", null,
                h("tr", null,
                  columns.map(
                      (name) =>
                          h("th", {
                              class: isNumber(name) ? "n" : "",
                              "aria-sort": name === key ? (down ? "descending" : "ascending") : null
                          },
                            h("button", {
                                type: "button",
                                onclick: () => {
                                    this.sort = {key: name, down: name === key ? !down : false};
                                    this.draw();
                                }
                            },
                              NAMES[name] || METRICS[name] || name, name === key ? (down ? " ↓" : " ↑") : ""))))),
              h("tbody", null,
                rows.slice(0, 300).map(
                    (row) =>
                        h("tr", {class: row[metric] === best.get(row.nfe) ? "best" : ""},
                          columns.map((name) => h("td", {class: isNumber(name) ? "n" : ""}, text(row, name))))))));
        this.count.textContent =
            `${whole(rows.length)} results${rows.length > 300 ? ", 300 shown" : ""}; the best of each budget in bold`;
    }
}

/* Rows that differ in their seed alone become one, with the spread of their metrics. */
function means(rows, metrics) {
    const cells = new Map();
    for (const row of rows) {
        const key = [...KEYS, "tolerance", "number"].map((name) => row[name]).join("\n") +
            (row.tolerance ? "" : `\n${row.nfe}`);
        if (!cells.has(key)) cells.set(key, []);
        cells.get(key).push(row);
    }
    return [...cells.values()].map((cell) => {
        const merged = {...cell[0]}, mean = (name) => cell.reduce((sum, row) => sum + row[name], 0) / cell.length;
        if (cell.length < 2) return merged;
        merged.nfe = Math.ceil(mean("nfe"));
        merged.seconds = mean("seconds");
        for (const metric of metrics) {
            merged[metric] = mean(metric);
            merged[`${metric}_spread`] =
                Math.sqrt(cell.reduce((sum, row) => sum + (row[metric] - merged[metric]) ** 2, 0) / (cell.length - 1));
        }
        return merged;
    });
}

/* A deviation with the decimals that its value is shown with. */
function spread(value, deviation) {
    const decimals = Math.max(0, Math.min(8, 3 - Math.floor(Math.log10(Math.abs(value) || 1))));
    return deviation.toFixed(decimals);
}

/* The best quality for at most this cost. */
function frontier(rows, cost, metric) {
    const x = [], y = [];
    let best = HIGHER.has(metric) ? -Infinity : Infinity;
    for (const row of [...rows].sort((a, b) => a[cost] - b[cost])) {
        const better = HIGHER.has(metric) ? row[metric] > best : row[metric] < best;
        if (!better) continue;
        if (x.length) x.push(row[cost]), y.push(best);
        x.push(row[cost]), y.push((best = row[metric]));
    }
    return {x, y, c: 6, ordered: false, silent: true, label: "best of each budget"};
}
