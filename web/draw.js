/* Draw: samples of a model, live, and actions with one of them. */
import {Job} from "./api.js";
import {commandLine} from "./command.js";
import {empty, numberField, progressLine} from "./controls.js";
import {duration, fill, h, note, number, whole} from "./dom.js";
import {ClassChoice, ModelChoice, SamplerChoice} from "./models.js";
import {paintChannel, paintItem, strip, Tiles} from "./pictures.js";
import {Plot} from "./plot.js";

const FRAMES = 12, BETWEEN = 9;

export async function create(about) {
    const view = new Draw(about);
    await view.list();
    return view;
}

class Draw {
    constructor(about) {
        this.about = about;
        this.model = new ModelChoice((model) => this.modelChosen(model));
        this.sampler = new SamplerChoice(about);
        this.classes = new ClassChoice();
        this.count = numberField("Samples", 64, {min: 1, max: about.limits.samples});
        this.first = numberField("First sample number", 0, {min: 0});
        this.button = h("button", {type: "submit", class: "main"}, "Draw");
        this.cancel = h("button", {type: "button", disabled: true, onclick: () => this.job?.cancel()}, "Cancel");
        this.progress = progressLine();
        this.command = commandLine();
        this.tiles = new Tiles("Samples", (i) => this.pick(i));
        this.plot = new Plot(
            {name: "samples", height: null, ratio: 0.72, square: true, x: {label: "x₁", pad: true}, y: {label: "x₂"}});
        this.title = h("h2", null, "Samples");
        this.downloads = h("div", {class: "end"});
        this.screen = h("div", {class: "screen"});
        this.inspector = h("section", {class: "card stack", "aria-label": "One sample", hidden: true});
        this.kept = [];
        this.keptRow = h("section", {class: "card stack", "aria-label": "Kept samples", hidden: true});
        const side =
            h("form", {class: "side", onsubmit: (event) => (event.preventDefault(), this.draw())},
              h("section", {class: "card stack", "aria-label": "What to draw"}, this.model.element, h("hr"),
                this.count.element, this.sampler.element, this.classes.element,
                h("details", null, h("summary", null, "More of the sampler"),
                  h("div", {class: "stack"}, this.sampler.more, this.first.element)),
                h("div", {class: "row"}, h("div", {class: "grow"}, this.button), this.cancel)));
        this.element =
            h("div", {class: "split"}, side,
              h("div", {class: "stage"},
                h("section", {class: "card stack", "aria-label": "Samples"},
                  h("header", null, this.title, this.downloads), this.progress.element, this.screen,
                  this.command.element),
                this.inspector, this.keptRow));
        fill(this.screen, this.welcome());
    }

    welcome() {
        return empty(
            "Nothing is drawn yet",
            "Choose a model and press Draw. Samples appear while they are computed; click one to see where it came from.");
    }

    async list() {
        await this.classes.list();
        await this.model.list();
    }

    async show(values) {
        try {
            await this.model.list();
        } catch (problem) {
            note(problem.message, true);
        }
        if (values.get("model")) await this.model.set(values.get("model"));
    }

    async modelChosen(model) {
        this.sampler.offer(model);
        this.described = model;
        this.button.disabled = !model;
        if (!model) return;
        const pictures = model.shape.length === 3;
        this.count.input.max = pictures ? this.about.limits.samples : this.about.limits.points;
        this.count.value = pictures ? 64 : 2000;
        await this.classes.of(model);
    }

    /* -- Drawing -- */

    body(extra = {}, index = null) {
        return {
            kind: "draw",
            model: this.model.path,
            ...this.sampler.values(),
            ...this.classes.values(index),
            ...extra
        };
    }

    async draw() {
        this.job?.cancel();
        const model = this.described, n = this.count.value, first = this.first.value || 0;
        if (!n) return note("Samples: expected a whole number of at least 1", true);
        const asked = this.body({n, ...(first ? {first} : {})});
        this.isImage = model.shape.length === 3;
        this.inspector.hidden = true;
        this.marks = new Map();
        this.pair = [];
        fill(this.downloads);
        this.title.textContent = `Samples of ${this.model.path.replace(/^shipped:/, "")}`;
        this.tiles.first = this.drawnFirst = first;
        if (this.isImage) {
            this.tiles.make(n, model.shape, (i) => `Sample ${first + i}`);
            this.tiles.clear();
            fill(this.screen, this.tiles.element);
        } else {
            this.plot.set({...this.density(model), points: []});
            fill(this.screen, this.plot.element);
        }
        const began = performance.now(),
              job = (this.job = new Job(asked, {
                         state: (state) => (this.command.text = state.command),
                         progress: (progress) => job === this.job && this.progress.show(progress),
                         preview: (preview) => job === this.job && this.preview(preview),
                     }));
        this.asked = asked;
        this.cancel.disabled = false;
        this.progress.say("Opening the model …");
        try {
            const state = await job.finished;
            if (job === this.job) await this.finish(job, state, began);
        } catch (problem) {
            if (job === this.job) this.progress.say(problem.message, true);
        } finally {
            if (job === this.job) this.cancel.disabled = true;
        }
    }

    density(model) {
        const d = model?.density;
        if (!d) return {};
        const peak = Math.max(...d.values);
        return {
            field: {
                width: d.size,
                height: d.size,
                x0: d.x[0],
                x1: d.x[1],
                y0: d.y[0],
                y1: d.y[1],
                c: 0,
                values: d.values.map((v) => 0.35 * Math.sqrt(v / peak))
            }
        };
    }

    preview(preview) {
        if (this.isImage)
            this.tiles.preview(preview).catch(() => {});
        else if (preview.points)
            this.showPoints(preview.points.map((p) => p[0]), preview.points.map((p) => p[1]));
    }

    showPoints(x, y) {
        const d = this.described?.density;
        if (d)
            this.plot.setAxes({low: d.x[0], high: d.x[1]}, {low: d.y[0], high: d.y[1]});
        else
            this.plot.setAxes({low: undefined, high: undefined}, {low: undefined, high: undefined});
        this.plot.set({...this.density(this.described), points: [{x, y, c: 1, size: 2.4, alpha: 0.55}]});
    }

    async finish(job, state, began) {
        const cancelled = state.state === "cancelled";
        if (!state.arrays?.samples) {
            this.tiles.clear();
            return this.progress.say("Cancelled. No batch was finished.");
        }
        this.array = await job.array("samples");
        const n = this.array.shape[0], result = state.result || {},
              weak = result.weak_scale ? `, guided by a weak model at ${number(result.weak_scale)}` : "";
        this.progress.say(`${cancelled ? "Cancelled; kept " : ""}${whole(n)} ${n === 1 ? "sample" : "samples"}, ${
            result.nfe ?? "?"} evaluations each by ${result.sampler ?? "the sampler"}${weak}, ${
            duration(state.seconds || (performance.now() - began) / 1000)}`);
        if (this.isImage)
            this.tiles.show(this.array);
        else {
            const d = this.array.shape[1];
            const column = (c) => Float32Array.from({length: n}, (_, i) => this.array.data[i * d + Math.min(c, d - 1)]);
            this.showPoints(column(0), d > 1 ? column(1) : new Float32Array(n));
        }
        fill(
            this.downloads,
            this.isImage && h("a", {class: "button", href: job.path("samples", "png"), download: "samples.png"}, "PNG"),
            h("a", {class: "button", href: job.path("samples", "npy"), download: "samples.npy"}, "NPY"));
    }

    /* -- One sample -- */

    pick(i) {
        if (this.waiting) return this.choosePartner(i);
        this.picked = i;
        this.pair = [];
        this.tiles.mark(new Map([[i, ""]]));
        const canvas = h("canvas", {class: "portrait pixels"}), number = this.drawnFirst + i, seed = this.asked.seed;
        paintItem(canvas, this.array, i);
        this.result = h("div", {class: "drawer"});
        this.resultProgress = progressLine();
        this.resultCommand = commandLine();
        const action = (text, work, hint) => h("button", {type: "button", title: hint, onclick: work}, text);
        fill(
            this.inspector,
            h("header", null, h("h2", null, `Sample ${number} of seed ${seed}`),
              h("div", {class: "end"},
                h("button", {type: "button", class: "quiet icon", "aria-label": "Close", onclick: () => this.close()},
                  "×"))),
            h("div", {class: "inspect"}, canvas,
              h("div", {class: "stack"},
                h("div", {class: "row"},
                  action(
                      "Trajectory", () => this.trajectory(i),
                      "The clean picture that the model predicts along the trajectory"),
                  action(
                      "Encode", () => this.encode(i),
                      "The state of noise from which a deterministic sampler comes back to it"),
                  this.array.shape[0] > 1 &&
                      action("Interpolate with …", () => this.askPartner(i), "Then choose a second sample"),
                  action("Keep its seed", () => this.keep(i), "Remember how to draw it again"),
                  h("a", {
                      class: "button",
                      href: `#paint?thing=${encodeURIComponent(this.job.thing("samples", i))}&model=${
                          encodeURIComponent(this.asked.model)}`
                  },
                    "Paint on it"),
                  h("a", {
                      class: "button",
                      href: this.job.path("samples", "png", {first: i, count: 1, zoom: 4}),
                      download: `sample-${seed}-${number}.png`
                  },
                    "PNG")),
                this.resultProgress.element)),
            this.result, this.resultCommand.element);
        this.inspector.hidden = false;
        this.trajectory(i);
    }

    close() {
        this.inspector.hidden = true;
        this.tiles.mark(new Map());
        this.tiles.element.children[this.picked]?.focus();
    }

    /* A small job whose result is shown below the sample. */
    async small(body, shownAs) {
        this.smallJob?.cancel();
        const line = this.resultProgress,
              job = (this.smallJob = new Job(body, {
                         progress: (progress) => job === this.smallJob && line.show(progress),
                         state: (state) => job === this.smallJob && (this.resultCommand.text = state.command)
                     }));
        line.say("Computing …");
        try {
            const state = await job.finished;
            if (job !== this.smallJob || state.state !== "done") return;
            line.say(await shownAs(job, state));
        } catch (problem) {
            if (job === this.smallJob) line.say(problem.message, true);
        }
    }

    trajectory(i) {
        if (this.asked.classifier)
            return this.resultProgress.say("There is no trajectory of samples that a classifier guides.");
        const first = this.drawnFirst + i;
        return this.small(
            {...this.asked, ...this.classesOf(i), n: 1, first, frames: FRAMES, preview: false}, async (job, state) => {
                const array = await job.array("trajectory"), [, frames, ...shape] = array.shape;
                fill(
                    this.result,
                    strip(
                        {shape: [frames, ...shape], data: array.data}, ["t = 1", ...Array(frames - 2).fill(""), "end"],
                        `Trajectory of sample ${first}: predicted clean data from noise to the end`));
                return `What the model expects to come out, from t = 1 to the end; ${
                    state.result?.nfe ?? ""} evaluations.`;
            });
    }

    /* The class that sample i had. */
    classesOf(i) {
        return this.asked.label === "all" && this.classes.count ? {label: String(i % this.classes.count)} : {};
    }

    encode(i) {
        return this.small(
            {kind: "encode", model: this.asked.model, image: this.job.thing("samples", i), seed: this.asked.seed},
            async (job, state) => {
                const [data, states, back] =
                    await Promise.all(["data", "states", "back"].map((name) => job.array(name)));
                const figure = (words, paint) => {
                    const canvas = h("canvas", {class: "pixels"});
                    paint(canvas);
                    return h("figure", null, canvas, h("figcaption", null, words));
                };
                const channels = states.shape[1], each = data.shape[1],
                      names = channels / each === 1 ? ["x"] : ["x", "m", "m₂", "m₃"];
                fill(
                    this.result,
                    h("div", {
                        class: "strip",
                        tabindex: "0",
                        role: "img",
                        "aria-label": "The sample, its state at t = 1, and the decoded sample"
                    },
                      figure("sample", (c) => paintItem(c, data)),
                      Array.from(
                          {length: channels},
                          (_, c) => figure(
                              `${names[Math.floor(c / each)]} at t = 1`,
                              (canvas) => paintChannel(canvas, states, 0, c))),
                      figure("and back", (c) => paintItem(c, back))),
                    h("div", {class: "row"},
                      h("a", {class: "button", href: job.path("states", "npy"), download: "state.npy"},
                        "State as NPY")));
                return `It returns with a mean error of ${number(state.result.round_trip)} (pixels are −1 to 1).`;
            });
    }

    askPartner(i) {
        this.waiting = true;
        this.resultProgress.say("Choose a second sample above, by mouse or with the arrow keys.");
        this.tiles.mark(new Map([[i, "A"]]));
        this.tiles.element.children[i].focus();
    }

    choosePartner(j) {
        this.waiting = false;
        this.tiles.mark(new Map([[this.picked, "A"], [j, "B"]]));
        const thing = (i) => this.job.thing("samples", i),
              label = `Interpolation from sample ${this.drawnFirst + this.picked} to ${this.drawnFirst + j}`;
        return this.small(
            {
                kind: "interpolate",
                model: this.asked.model,
                a: thing(this.picked),
                b: thing(j),
                n: BETWEEN,
                seed: this.asked.seed
            },
            async (job) => {
                const array = await job.array("samples");
                fill(
                    this.result, strip(array, ["A", ...Array(array.shape[0] - 2).fill(""), "B"], label),
                    h("div", {class: "row"},
                      h("a", {
                          class: "button",
                          href: job.path("samples", "png", {columns: BETWEEN, zoom: 4}),
                          download: "interpolation.png"
                      },
                        "PNG")));
                return `${label}: along the arc between their encodings.`;
            });
    }

    /* -- Kept -- */

    keep(i) {
        const canvas = h("canvas", {class: "pixels"}),
              kept = {body: {...this.asked, ...this.classesOf(i), n: 1, first: this.drawnFirst + i}, canvas};
        paintItem(canvas, this.array, i);
        this.kept.push(kept);
        this.showKept();
        note(`Kept sample ${kept.body.first} of seed ${kept.body.seed}`);
    }

    showKept() {
        this.keptRow.hidden = !this.kept.length;
        fill(
            this.keptRow, h("header", null, h("h2", null, "Kept seeds")),
            h("div", {class: "kept"},
              this.kept.map(
                  (kept, i) =>
                      h("figure", null, kept.canvas,
                        h("figcaption", null, `seed ${kept.body.seed}, number ${kept.body.first}`),
                        h("div", {class: "row"},
                          h("button", {type: "button", class: "quiet", onclick: () => this.redraw(kept)}, "Draw it"),
                          h("button", {
                              type: "button",
                              class: "quiet icon",
                              "aria-label": `Forget sample ${kept.body.first} of seed ${kept.body.seed}`,
                              onclick: () => (this.kept.splice(i, 1), this.showKept())
                          },
                            "×"))))));
    }

    async redraw(kept) {
        await this.model.set(kept.body.model);
        this.sampler.seed.value = kept.body.seed;
        this.first.value = kept.body.first;
        this.count.value = 1;
        await this.draw();
    }
}
