/* Runs: training that is watched, started, stopped and continued. */
import {events, files, get, post} from "./api.js";
import {check, choice, empty, field, numberField, options, slider} from "./controls.js";
import {copy, duration, fill, h, note, number, perFrame, whole} from "./dom.js";
import {Plot} from "./plot.js";

const POINTS = 2000, REFRESH = 4000, BINS = 10;
const SERIES = ["step", "loss", "norm", "rate", "seconds"],
      PAIRS = ["held_out", "held_out_raw", "held_out_accuracy", "metric"];
const QUANTITIES = [
    ["loss", "Loss"], ["norm", "Norm of the gradient"], ["rate", "Learning rate"], ["seconds", "Seconds per step"],
    ["accuracy", "Accuracy, held-out data"], ["metric", "Distance of samples from data"]
];

export async function create(about) {
    const view = new Runs(about);
    await view.refresh();
    return view;
}

class Runs {
    constructor(about) {
        this.about = about;
        this.runs = [];
        this.chosen = new Map(); /* path -> {c, log, settings} of those whose curves are shown */
        this.focus = null;
        this.smoothing = 0.9;
        this.build();
        this.redraw = perFrame(() => this.draw());
    }

    show(values) {
        this.visible = true;
        this.refresh();
        clearInterval(this.timer);
        this.timer = setInterval(() => this.refresh(), REFRESH);
        if (values.get("run"))
            this.select(values.get("run"));
        else if (this.focus)
            this.listen();
    }

    hide() {
        this.visible = false;
        clearInterval(this.timer);
        this.stopListening?.();
        this.stopListening = null;
    }

    /* -- Parts -- */

    build() {
        this.list = h("ul", {class: "stack tight"});
        this.startButton = h("button", {type: "button", class: "main", onclick: () => this.openStart()}, "Start a run");
        this.head = h("section", {class: "card stack", "aria-label": "Run"});
        this.quantity = choice("Quantity", QUANTITIES, "loss", () => this.redraw());
        this.smooth = slider({
            label: "smoothing",
            value: this.smoothing,
            low: 0,
            high: 0.99,
            oninput: (value) => {
                this.smoothing = Math.max(0, Math.min(0.999, value));
                this.redraw();
            }
        });
        const toggle = (text, on) => check(text, on, () => this.redraw());
        this.toggles = {
            train: toggle("training", true),
            held: toggle("held-out", true),
            raw: toggle("raw weights", false),
            logX: toggle("log steps", false),
            logY: toggle("log values", false)
        };
        this.curves = new Plot({
            name: "curves of the runs",
            height: 320,
            x: {label: "step", name: "step"},
            y: {},
            read: true,
            zoom: true,
            onzoom: (range) => this.zoomed(range)
        });
        this.byTime = new Plot({
            title: "Loss by time",
            unit: "ten bins of t; solid training, dashed held-out",
            x: {label: "t", name: "t", low: 0, high: 1},
            y: {},
            read: true,
            height: 230
        });
        this.whole =
            h("button", {type: "button", class: "quiet idle", disabled: true, onclick: () => this.curves.zoom(null)},
              "Whole range");
        this.pictures = h("div", {class: "stack"});
        this.settings = h("div", {class: "stack"});
        this.output =
            h("details", {hidden: true}, h("summary", null, "What the process wrote"),
              this.outputText = h("pre", {class: "small", tabindex: "0"}));
        this.legend = h("div", {class: "legend"});
        this.details = h(
            "div", {class: "stage", hidden: true}, this.head,
            h("section", {class: "card stack", "aria-label": "Curves"},
              h("header", null, h("h2", null, "Curves"), this.legend, h("div", {class: "end"}, this.whole)),
              h("div", {class: "curve-controls"}, this.quantity.element, this.smooth.element,
                h("div", {class: "row"}, Object.values(this.toggles).map((box) => box.element))),
              this.curves.element,
              h("p", {class: "small"},
                "Drag over a part to zoom, double-click for all. With the keyboard: arrows read, + and − zoom, Escape shows all.")),
            h("div", {class: "pair"}, h("section", {class: "card", "aria-label": "Loss by time"}, this.byTime.element),
              h("section", {class: "card", "aria-label": "Pictures"}, this.pictures)),
            h("section", {class: "card", "aria-label": "Settings"}, this.settings), this.output);
        this.nothing = h("section", {class: "card"});
        this.dialog = this.buildDialog();
        this.element =
            h("div", {class: "split"},
              h("div", {class: "side"},
                h("section", {class: "card stack", "aria-label": "Runs of the folder"},
                  h("header", {class: "row"}, h("h2", {class: "grow"}, "Runs"), this.startButton), this.list)),
              h("div", {class: "stage"}, this.nothing, this.details), this.dialog);
    }

    /* -- The list -- */

    async refresh() {
        try {
            this.runs = (await get("/api/runs")).runs.sort((a, b) => b.running - a.running || b.modified - a.modified);
        } catch (problem) {
            if (!this.lost) note(problem.message, true);
            this.lost = true;
            return;
        }
        this.lost = false;
        this.drawList();
        for (const path of this.chosen.keys())
            if (path !== this.focus && this.run(path)?.running) this.loadMore(path);
        if (!this.focus && this.runs.length)
            await this.select(this.runs[0].path);
        else
            this.drawHead();
    }

    run(path) { return this.runs.find((run) => run.path === path); }

    /* Lines stay where they are while their texts change, so that a click is not lost. */
    drawList() {
        const paths = this.runs.map((run) => run.path);
        if (paths.join("\n") !== this.listed) {
            this.listed = paths.join("\n");
            const focused = document.activeElement?.dataset?.key;
            fill(this.list, this.runs.map((run) => this.makeItem(run.path)));
            if (focused)
                [...this.list.querySelectorAll("[data-key]")].find((node) => node.dataset.key === focused)?.focus();
        }
        this.runs.forEach((run, i) => this.drawItem(this.list.children[i], run));
        this.details.hidden = !this.runs.length || !this.focus;
        this.nothing.hidden = Boolean(this.runs.length);
        if (!this.runs.length)
            fill(
                this.nothing,
                empty(
                    "No runs in this folder",
                    "A run is a folder that psld train writes: configuration, log, pictures, model. Start one " +
                        "here; the toy data need no files and take a minute.",
                    h("button", {type: "button", class: "main", onclick: () => this.openStart()}, "Start a run")));
    }

    makeItem(path) {
        return h(
            "li", {class: "item", "data-run": path}, h("input", {
                type: "checkbox",
                "data-key": `box:${path}`,
                "aria-label": `Show the curves of ${path}`,
                onchange: (event) => this.overlay(path, event.target.checked)
            }),
            h("button", {type: "button", class: "name", "data-key": `name:${path}`, onclick: () => this.select(path)},
              path),
            h("span", {class: "small"}), h("progress", {max: 1, value: 0, "aria-label": `Progress of ${path}`}));
    }

    drawItem(item, run) {
        const [box, name, state, bar] = item.children, shown = this.chosen.get(run.path), text = stateOf(run);
        item.className = run.path === this.focus ? "item on" : "item";
        box.checked = Boolean(shown);
        box.className = shown ? `c${shown.c}` : "";
        if (run.path === this.focus)
            name.setAttribute("aria-current", "true");
        else
            name.removeAttribute("aria-current");
        if (state.textContent !== text) state.textContent = text;
        bar.hidden = !run.running;
        bar.max = run.steps || 1;
        bar.value = run.step;
    }

    /* -- Choosing -- */

    async select(path) {
        this.focus = path;
        if (this.chosen.size <= 1) this.chosen.clear();
        await this.overlay(path, true);
        this.listen();
    }

    async overlay(path, on) {
        if (!on) {
            this.chosen.delete(path);
            this.drawList();
            return this.redrawAll();
        }
        if (!this.chosen.has(path)) {
            const used = new Set([...this.chosen.values()].map((run) => run.c));
            this.chosen.set(path, {c: [0, 1, 2, 3, 4, 5, 6, 7].find((c) => !used.has(c)) ?? 0});
        }
        this.drawList();
        await this.load(path);
    }

    async load(path) {
        try {
            const [about, log] =
                await Promise.all([get("/api/run", {path}), get("/api/run/log", {path, points: POINTS})]),
                          shown = this.chosen.get(path);
            if (!shown) return;
            Object.assign(shown, {about, log, appended: 0, loaded: performance.now()});
            this.redrawAll();
        } catch (problem) {
            note(`${path}: ${problem.message}`, true);
        }
    }

    async loadMore(path) {
        const shown = this.chosen.get(path);
        if (!shown?.log) return;
        try {
            this.append(path, await get("/api/run/log", {path, points: POINTS, after: shown.log.last}));
        } catch { /* it is asked for again */
        }
    }

    /* A reopened stream repeats some steps. */
    append(path, more) {
        const shown = this.chosen.get(path);
        if (!shown?.log || !more || !(more.last > shown.log.last || more.by_t?.length)) return;
        const last = shown.log.last, known = (shown.log.held_out.at(-1) || [0])[0],
              old = more.step.filter((step) => step <= last).length;
        for (const key of SERIES) shown.log[key] = shown.log[key].concat(more[key].slice(old));
        for (const key of PAIRS)
            shown.log[key] =
                (shown.log[key] ||
                 []).concat((more[key] || []).filter(([step]) => step > ((shown.log[key] || []).at(-1) || [0])[0]));
        shown.log.by_t = (shown.log.by_t || []).concat((more.by_t || []).filter((measured) => measured.step > known));
        shown.log.last = more.last;
        shown.appended += more.step.length - old;
        if (shown.appended > POINTS / 4 && performance.now() - (shown.loaded || 0) > 5000)
            this.load(path);
        else
            this.redraw();
    }

    /* The run in focus is streamed; others are polled. */
    listen() {
        this.stopListening?.();
        this.stopListening = null;
        const path = this.focus;
        if (!path || !this.visible) return;
        this.stopListening =
            events(`/api/run/events?path=${encodeURIComponent(path)}&after=${this.chosen.get(path)?.log?.last ?? 0}`, {
                run: (run) => {
                    const at = this.runs.findIndex((other) => other.path === path), before = this.runs[at];
                    if (at >= 0) this.runs[at] = run;
                    if (before?.running !== run.running) this.refresh(), this.load(path);
                    this.drawHead();
                    this.drawList();
                },
                log: (log) => this.append(path, log),
                sample: (sample) => {
                    const shown = this.chosen.get(path);
                    if (!shown?.about || shown.about.samples.some((other) => other.path === sample.path)) return;
                    shown.about.samples.push(sample);
                    this.drawPictures();
                },
            });
    }

    /* With more detail in the visible part. */
    async zoomed(range) {
        this.whole.disabled = !range;
        this.whole.classList.toggle("idle", !range);
        if (!range) return;
        const asked = (this.zoomAsked = Symbol("zoom"));
        for (const [path, shown] of this.chosen) {
            if (!shown.log || shown.log.step.length < POINTS * 0.8) continue;
            try {
                const part = await get(
                    "/api/run/log",
                    {path, points: POINTS, after: Math.max(0, Math.floor(range[0]) - 1), until: Math.ceil(range[1])});
                if (asked !== this.zoomAsked) return;
                shown.part = part;
                this.redraw();
            } catch { /* the coarse curve stays */
            }
        }
    }

    /* -- Drawing -- */

    redrawAll() {
        this.drawHead();
        this.drawPictures();
        this.drawSettings();
        this.redraw();
    }

    drawHead() {
        const run = this.run(this.focus);
        if (!run) return;
        const shown = this.chosen.get(run.path),
              speed =
                  shown?.log?.seconds.length ? mean(shown.log.seconds.slice(-20)) : run.seconds / Math.max(1, run.step),
              finished = run.step >= run.steps;
        const figure = (name, value, key) => h("div", null, h("dt", null, name), h("dd", {"data-figure": key}, value));
        if (!this.headMade || this.headMade !== run.path) this.makeHead(run);
        fill(this.headState, stateTag(run));
        this.headBar.max = run.steps || 1, this.headBar.value = run.step;
        fill(
            this.headFigures, figure("step", `${whole(run.step)} of ${whole(run.steps)}`, "step"),
            figure("loss", number(run.loss, 4), "loss"), figure("held-out loss", number(run.held_out, 4), "held_out"),
            run.accuracy !== null && run.accuracy !== undefined &&
                figure("accuracy", `${number(100 * run.accuracy)} %`, "accuracy"),
            figure("speed", speed > 0 ? `${number(1 / speed)} steps/s` : "–", "speed"),
            figure("time", duration(run.seconds), "time"),
            figure(
                "time left",
                run.running  ? duration(run.left ?? NaN) :
                    finished ? "none" :
                               "–",
                "left"),
            figure("checkpoint", run.checkpoints ? `step ${whole(run.saved)}` : "none", "saved"));
        this.stopButton.hidden = !run.running;
        this.stopButton.disabled = !run.ours || this.stopping === run.path;
        this.stopButton.title =
            run.ours ? "Writes a checkpoint first" : "Another process trains this run; it is watched, not touched";
        if (!run.running && this.stopping === run.path) this.stopping = null;
        this.resumeRow.hidden = run.running;
        this.resumeButton.textContent = finished ? "Train on" : "Resume";
        this.drawLink.hidden = !run.has_model || run.classifier;
        this.headError.textContent = run.error || "";
        this.headError.hidden = !run.error;
    }

    makeHead(run) {
        this.headMade = run.path;
        this.headState = h("span");
        this.headBar = h("progress", {"aria-label": "Progress"});
        this.headFigures = h("dl", {class: "figures run-figures"});
        this.headError = h("p", {class: "problem-text", role: "alert"});
        this.stopButton = h("button", {type: "button", class: "danger", onclick: () => this.stop(run.path)}, "Stop");
        this.until = h("input", {
            type: "number",
            min: "1",
            step: "1",
            value: String(run.steps),
            "aria-label": "Until step",
            title: "Number of steps in all"
        });
        this.resumeButton =
            h("button", {type: "button", class: "main", onclick: () => this.resume(run.path)}, "Resume");
        this.resumeRow =
            h("div", {class: "row nowrap until"}, h("span", {class: "small"}, "until step"), this.until,
              this.resumeButton);
        this.drawLink = h("a", {class: "button", href: `#draw?model=${encodeURIComponent(run.path)}`}, "Draw from it");
        fill(
            this.head,
            h("header", null, h("h2", null, run.path), this.headState,
              h("div", {class: "end"}, this.drawLink, this.resumeRow, this.stopButton)),
            this.headBar, this.headFigures, this.headError);
    }

    source(shown) { return this.curves.window && shown.part ? shown.part : shown.log; }

    draw() {
        const quantity = this.quantity.value, curves = [],
              log = {x: this.toggles.logX.value, y: this.toggles.logY.value};
        const measured = quantity === "accuracy" ? "held_out_accuracy" : quantity;
        for (const [path, shown] of this.chosen) {
            const data = shown.log && this.source(shown);
            if (!data) continue;
            const c = shown.c, pairs = (list) => ({x: list.map((p) => p[0]), y: list.map((p) => p[1])});
            if (quantity === "accuracy" || quantity === "metric") {
                curves.push({...pairs(data[measured] || []), c, label: path});
                continue;
            }
            if (this.toggles.train.value || quantity !== "loss") {
                const y = data[quantity].map((v) => v ?? NaN), smooth = quantity === "rate" ? 0 : this.smoothing;
                if (smooth > 0.01) curves.push({x: data.step, y, c, style: "thin", silent: true});
                curves.push({x: data.step, y: smoothed(y, smooth), c, label: `${path}, training`});
            }
            if (quantity !== "loss") continue;
            if (this.toggles.held.value)
                curves.push({...pairs(shown.log.held_out || []), c, style: "dashed", label: `${path}, held-out`});
            if (this.toggles.raw.value)
                curves.push(
                    {...pairs(shown.log.held_out_raw || []), c, style: "dotted", label: `${path}, raw weights`});
        }
        this.curves.setAxes({log: log.x}, {
            log: log.y,
            label: QUANTITIES.find((row) => row[0] === quantity)[1].toLowerCase(),
            ...this.range(curves, log.y)
        });
        this.curves.set({curves});
        fill(
            this.legend,
            [...this.chosen].map(([path, shown]) => h("span", {class: `c${shown.c}`}, h("i", {class: "swatch"}), path)),
            this.toggles.held.value && quantity === "loss" && [
                h("span", null, h("i", {class: "swatch"}), "training"),
                h("span", null, h("i", {class: "swatch dashed"}), "held-out")
            ]);
        this.drawByTime();
    }

    /* If the first losses are many times the later ones, the top is cut, so that the rest is visible. */
    range(curves, log) {
        if (log) return {low: undefined, high: undefined};
        const window = this.curves.window,
              values = curves.filter((curve) => curve.style !== "thin")
                           .flatMap(
                               (curve) => curve.y.filter(
                                   (v, i) => Number.isFinite(v) &&
                                       (!window || (curve.x[i] >= window[0] && curve.x[i] <= window[1]))))
                           .sort((a, b) => a - b);
        if (values.length < 20) return {low: undefined, high: undefined};
        const top = values[Math.floor(values.length * 0.985)], last = values[values.length - 1], low = values[0],
              pad = (top - low) * 0.12;
        return last > top + 3 * (top - low) ? {low: low - pad / 2, high: top + pad} : {low: undefined, high: undefined};
    }

    drawByTime() {
        const curves = [], centres = Array.from({length: BINS}, (_, i) => (i + 0.5) / BINS);
        for (const [path, shown] of this.chosen) {
            const last = shown.log?.by_t?.at(-1);
            if (!last) continue;
            if (last.held_out_by_t)
                curves.push({
                    x: centres,
                    y: last.held_out_by_t.map((v) => v ?? NaN),
                    c: shown.c,
                    style: "dashed",
                    label: `${path}, held-out`
                });
            if (last.loss_by_t)
                curves.push(
                    {x: centres, y: last.loss_by_t.map((v) => v ?? NaN), c: shown.c, label: `${path}, training`});
        }
        this.byTime.set({
            curves,
            marks:
                curves.filter((curve) => !curve.style).map((curve) => ({x: curve.x, y: curve.y, c: curve.c, size: 3}))
        });
    }

    drawPictures() {
        const shown = this.chosen.get(this.focus), samples = shown?.about?.samples || [];
        if (!samples.length)
            return fill(
                this.pictures, h("h2", null, "Pictures"),
                empty("No pictures yet", "A run draws samples every train.sample_every steps."));
        const last = samples.length - 1,
              follow = this.pictureOf !== this.focus || this.picture === undefined ||
            this.picture >= (this.pictureCount ?? 1) - 1;
        this.picture = follow ? last : Math.min(this.picture, last);
        this.pictureOf = this.focus;
        this.pictureCount = samples.length;
        const image = h("img", {class: "shot", alt: ""}), text = h("output", {class: "mono"});
        const range = h("input", {
            type: "range",
            min: "0",
            max: String(last),
            value: String(this.picture),
            disabled: last === 0,
            "aria-label": "Step of the picture",
            oninput: () => paint(Number(range.value))
        });
        const paint = (i) => {
            this.picture = i;
            image.src = `/api/file?path=${encodeURIComponent(samples[i].path)}`;
            image.alt = `Samples of ${this.focus} at step ${samples[i].step}`;
            text.textContent = `step ${whole(samples[i].step)}`;
            range.setAttribute("aria-valuetext", text.textContent);
            range.style.setProperty("--done", `${last ? (100 * i) / last : 100}%`);
        };
        paint(this.picture);
        fill(
            this.pictures, h("header", {class: "row"}, h("h2", {class: "grow"}, "Pictures"), text), range,
            h("div", {class: "shot-host"}, image));
    }

    drawSettings() {
        const shown = [...this.chosen].filter(([, run]) => run.about?.settings), several = shown.length > 1,
              keys = [...new Set(shown.flatMap(([, run]) => Object.keys(run.about.settings)))].sort();
        const text = (value) =>
            (value === undefined           ? "–" :
                 typeof value === "object" ? JSON.stringify(value) :
                                             String(value));
        const differs = (key) => new Set(shown.map(([, run]) => text(run.about.settings[key]))).size > 1,
              only = several && (this.onlyDifferent ?? true);
        const rows = keys.filter((key) => !only || differs(key));
        const filter = check("only what differs", only, (on) => ((this.onlyDifferent = on), this.drawSettings()));
        const focused = this.chosen.get(this.focus),
              table =
                  h("div", {class: "scroll settings", tabindex: "0"},
                    h("table", null,
                      h("thead", null,
                        h("tr", null, h("th", null, "key"),
                          shown.map(
                              ([path, run]) => h("th", {class: `c${run.c}`}, h("i", {class: "swatch"}), ` ${path}`)))),
                      h("tbody", null,
                        rows.map(
                            (key) =>
                                h("tr", null, h("th", {scope: "row", class: "mono"}, key),
                                  shown.map(
                                      ([, run]) =>
                                          h("td", {class: several && differs(key) ? "mono differs" : "mono"},
                                            text(run.about.settings[key]))))))));
        const open = this.settings.querySelector("details")?.open || several;
        fill(
            this.settings,
            h("details", {open},
              h("summary", null, h("b", null, several ? "Settings and their differences" : "Settings")),
              h("div", {class: "row"}, several && filter.element,
                focused?.about?.config &&
                    h("button",
                      {type: "button", class: "quiet", onclick: () => copy(focused.about.config, "Configuration")},
                      "Copy the configuration")),
              rows.length ? table : h("p", {class: "small"}, "These runs have the same settings.")));
        this.output.hidden = !focused?.about?.output;
        this.outputText.textContent =
            Array.isArray(focused?.about?.output) ? focused.about.output.join("\n") : focused?.about?.output || "";
    }

    /* -- Starting, stopping -- */

    async stop(path) {
        this.stopping = path;
        this.drawHead();
        try {
            await post("/api/run/stop", {path});
            note(`${path} stops after its step, with a checkpoint`);
        } catch (problem) {
            this.stopping = null;
            note(problem.message, true);
        }
        this.refresh();
    }

    async resume(path) {
        const run = this.run(path), steps = Number(this.until.value);
        this.resumeButton.disabled = true;
        try {
            await post(
                "/api/run/resume", {path, ...(steps && steps !== run.steps ? {set: {"train.steps": steps}} : {})});
            await this.refresh();
            this.listen();
        } catch (problem) {
            note(problem.message, true);
        } finally {
            this.resumeButton.disabled = false;
        }
    }

    buildDialog() {
        const data = choice("Data", [], "", () => this.suggest()),
              config = choice(
                  "Configuration", [], "", () => this.suggest(), "Without one, a network is chosen for the data");
        const name = h("input", {required: true, maxlength: "100", spellcheck: "false"}),
              time = h("input", {placeholder: "2h", spellcheck: "false"}),
              steps = numberField("Steps", null, {min: 1, placeholder: "as configured"});
        const set = h("textarea", {
            rows: "3",
            spellcheck: "false",
            class: "mono",
            placeholder: "train.lr=1e-4\nprocess=psld gamma=0.02"
        }),
              problem = h("p", {class: "problem-text", role: "alert"}),
              begin = h("button", {type: "submit", class: "main"}, "Start");
        this.form = {data, config, name, time, steps, set, problem};
        const form =
            h("form", {class: "stack", onsubmit: (event) => (event.preventDefault(), this.start(begin))},
              h("h2", null, "Start a run"), h("div", {class: "two"}, data.element, config.element),
              field("Name of the run, a new folder", name),
              h("div", {class: "two"}, field("Time", time, "How long it may take: 10m, 2h, 1d"), steps.element),
              field("More settings, key=value on each line", set), problem,
              h("div", {class: "row end"},
                h("button", {type: "button", class: "quiet", onclick: () => this.dialog.close()}, "Cancel"), begin));
        return h("dialog", {"aria-label": "Start a run"}, form);
    }

    async openStart() {
        const {data, config, problem} = this.form;
        problem.textContent = "";
        try {
            const [sets, configs] = await Promise.all([files("data"), files("config")]),
                         rows = (list) => list.map((file) => [file.path, file.path.replace(/^shipped:/, "")]);
            options(
                data.select,
                [
                    ["", "as the configuration says"], ...(sets.length ? [{group: "Folder", rows: rows(sets)}] : []),
                    {group: "Points in a plane", rows: this.about.toys.map((toy) => [`toy:${toy.name}`, toy.name])}
                ],
                data.value || sets[0]?.path || "toy:moons");
            options(config.select, [["", "chosen for the data"], ...rows(configs)], config.value);
        } catch (refused) {
            problem.textContent = refused.message;
        }
        this.suggest();
        this.dialog.showModal();
    }

    /* A name that is free. */
    suggest() {
        const {data, config, name} = this.form,
                             base = (data.value || config.value || "run")
                                        .replace(/^(shipped|toy):/, "")
                                        .replace(/\.ya?ml$/, "")
                                        .split("/")
                                        .pop()
                                        .replace(/[^\w-]+/g, "-") ||
            "run";
        if (name.value && name.value !== this.suggested) return;
        let free = base, i = 2;
        while (this.run(free)) free = `${base}-${i++}`;
        name.value = this.suggested = free;
    }

    async start(button) {
        const {data, config, name, time, steps, set, problem} = this.form, body = {path: name.value};
        button.disabled = true;
        problem.textContent = "";
        try {
            if (data.value) body.data = data.value;
            if (config.value) body.config = config.value;
            if (time.value.trim()) body.time = time.value.trim();
            const settings = parseSettings(set.value);
            if (steps.value) settings["train.steps"] = steps.value;
            if (Object.keys(settings).length) body.set = settings;
            await post("/api/runs", body);
            this.dialog.close();
            name.value = "";
            await this.refresh();
            await this.select(body.path);
        } catch (refused) {
            problem.textContent = refused.message;
        } finally {
            button.disabled = false;
        }
    }
}

function parseSettings(text) {
    const settings = {};
    for (const line of text.split("\n").map((words) => words.trim()).filter(Boolean)) {
        const at = line.indexOf("=");
        if (at < 1) throw new Error(`"${line}": expected key=value`);
        const value = line.slice(at + 1).trim();
        try {
            settings[line.slice(0, at).trim()] = JSON.parse(value);
        } catch {
            settings[line.slice(0, at).trim()] = value;
        }
    }
    return settings;
}

function stateOf(run) {
    const at = `step ${whole(run.step)} of ${whole(run.steps)}`;
    if (run.running) return `${run.ours ? "training" : "trained elsewhere"}, ${at}`;
    return `${run.step >= run.steps ? "finished" : run.error ? "failed" : "stopped"}, ${at}`;
}

function stateTag(run) {
    if (run.running)
        return h("span", {class: "tag live"}, run.ours ? "training" : "trained by another process; watched only");
    if (run.error) return h("span", {class: "tag bad"}, "failed");
    return h(
        "span", {class: run.step >= run.steps ? "tag good" : "tag"}, run.step >= run.steps ? "finished" : "stopped");
}

function mean(values) { return values.reduce((sum, v) => sum + v, 0) / Math.max(1, values.length); }

/* Exponential smoothing without a bias at the beginning. */
function smoothed(values, weight) {
    let sum = 0, norm = 0;
    return values.map((v) => {
        if (Number.isFinite(v)) (sum = weight * sum + (1 - weight) * v), (norm = weight * norm + (1 - weight));
        return norm ? sum / norm : NaN;
    });
}
