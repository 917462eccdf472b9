/* The choice of a model and of its sampling options, for all views that draw. */
import {files, get} from "./api.js";
import {choice, fileRows, numberField, options, slider} from "./controls.js";
import {h, number, whole} from "./dom.js";

const known = new Map();

/* The server's description of a model; runs change while they train and are requested again. */
export async function describe(path) {
    if (!known.has(path) || !path.startsWith("shipped:")) known.set(path, await get("/api/model", {path}));
    return known.get(path);
}

/* A select of all models and runs that have one, with a line about the chosen one. onchange(description). */
export class ModelChoice {
    constructor(onchange, accepts = () => true) {
        this.onchange = onchange;
        this.accepts = accepts;
        this.choice = choice("Model", [], "", (path) => this.choose(path));
        this.about = h("p", {class: "small", role: "status"}, "…");
        this.element = h("div", {class: "stack tight"}, this.choice.element, this.about);
    }

    async list() {
        const models = (await files("model", "run")).filter(this.accepts), now = this.path || this.choice.value;
        const preferred = models.find((file) => file.path === now) ||
            models.find((file) => file.path === "shipped:digits.safetensors") || models[0];
        options(this.choice.select, fileRows(models), preferred?.path);
        if (!preferred)
            return void (
                this.about.textContent =
                    "There is no model in this folder. Train one under Runs, or copy a .safetensors file here.");
        if (preferred.path !== this.path) await this.choose(preferred.path);
    }

    async set(path) {
        if (![...this.choice.select.options].some((option) => option.value === path)) return;
        this.choice.value = path;
        await this.choose(path);
    }

    async choose(path) {
        this.path = path;
        this.about.className = "small";
        this.about.textContent = "…";
        try {
            const model = await describe(path);
            if (this.path !== path) return;
            const size = model.shape.join(" × "),
                  parameters = model.parameters ? `${
                                                      model.parameters > 1e6 ?
                                                          number(model.parameters / 1e6) + " million" :
                                                          whole(model.parameters)} parameters` :
                                                  "exact mixture";
            this.about.textContent = [
                size, parameters, model.process || model.recipe?.name,
                model.classes?.length ? `${model.classes.length} classes` : null
            ].filter(Boolean).join(" · ");
            this.onchange(model);
        } catch (problem) {
            if (this.path !== path) return;
            this.about.className = "problem-text";
            this.about.textContent = problem.message;
            this.onchange(null);
        }
    }
}

/* Quality, sampler, evaluations, seed and the rest. values() are the options of a job; unset ones are left out. */
export class SamplerChoice {
    constructor(about, {noisy = true} = {}) {
        this.about = about;
        this.sampler = choice("Sampler", [], "", () => this.chosen());
        this.noisy = noisy;
        this.offer(null);
        this.nfe = numberField(
            "Evaluations", null, {min: 1, max: 100000, placeholder: "30", hint: "Calls of the network per sample"});
        this.seed = numberField(
            "Seed", 0, {min: 0, max: Number.MAX_SAFE_INTEGER, hint: "The same seed gives the same samples"});
        this.dice = h("button", {
            type: "button",
            class: "quiet icon",
            title: "Another seed",
            "aria-label": "Another seed",
            onclick: () => (this.seed.value = Math.floor(Math.random() * 100000))
        });
        this.dice.innerHTML =
            "<svg viewBox=\"0 0 24 24\" aria-hidden=\"true\"><rect x=\"4\" y=\"4\" width=\"16\" height=\"16\" rx=\"3\"/><path d=\"M8.5 8.5h.01M15.5 8.5h.01M12 12h.01M8.5 15.5h.01M15.5 15.5h.01\" stroke-width=\"2.4\"/></svg>";
        this.grid = choice("Time grid", [["", "default"], ...about.grids.map((row) => [row.name, row.name])], "");
        this.order = choice("Order", [["", "default"], ["1", "1"], ["2", "2"], ["3", "3"]], "");
        this.eta = numberField("Eta, share of noise", null, {min: 0, max: 1, step: "any", placeholder: "default"});
        this.element =
            h("div", {class: "stack"}, this.sampler.element,
              h("div", {class: "two"}, this.nfe.element,
                h("div", {class: "row nowrap"}, h("div", {class: "grow"}, this.seed.element), this.dice)));
        this.more = h(
            "div", {class: "stack"}, h("div", {class: "two"}, this.grid.element, this.order.element), this.eta.element);
        this.chosen();
    }

    /* The samplers that suit a model; those that need a tuned one are offered for such alone. */
    offer(model) {
        const {qualities, samplers} = this.about, before = this.sampler.value || "q:normal";
        const suit = samplers.filter((row) => (this.noisy || row.reversible) && (!row.consistency || model?.tuned)),
              named = suit.map((row) => [`s:${row.name}`, row.name]),
              good = qualities.map((row) => [`q:${row.name}`, `${row.name}: ${row.sampler}, ${row.nfe} evaluations`]),
              rows = [{group: "By quality", rows: good}, {group: "By name", rows: named}];
        options(
            this.sampler.select, rows,
            before.startsWith("q:") || suit.some((row) => `s:${row.name}` === before) ? before : "q:normal");
        if (this.nfe) this.chosen();
    }

    get row() {
        const [kind, name] = this.sampler.value.split(":");
        return kind === "q" ? this.about.samplers.find((row) => row.name === this.quality.sampler) :
                              this.about.samplers.find((row) => row.name === name);
    }
    get quality() {
        const [kind, name] = this.sampler.value.split(":");
        return kind === "q" ? this.about.qualities.find((row) => row.name === name) : null;
    }

    chosen() {
        const row = this.row;
        this.nfe.input.placeholder = String(this.quality ? this.quality.nfe : row.adaptive ? "its own" : row.nfe);
        this.nfe.input.disabled = row.adaptive;
        this.order.select.disabled = !row.max_order;
        this.eta.input.disabled = !row.uses_eta;
        this.grid.select.disabled = row.adaptive;
    }

    values() {
        const [kind, name] = this.sampler.value.split(":"), row = this.row, values = {seed: this.seed.value ?? 0};
        if (kind === "q")
            name !== "normal" && (values.quality = name);
        else
            values.sampler = name;
        if (this.nfe.value !== null && !row.adaptive) values.nfe = this.nfe.value;
        if (this.grid.value && !row.adaptive) values.grid = this.grid.value;
        if (this.order.value && row.max_order) values.order = Number(this.order.value);
        if (this.eta.value !== null && row.uses_eta) values.eta = this.eta.value;
        return values;
    }
}

/* Which class samples are to have: by the model's own labels, or by a classifier. */
export class ClassChoice {
    constructor() {
        this.label = choice("Class", [["", "any"]], "", () => this.changed());
        this.judge = choice("Classifier", [["", "none"]], "", () => this.chooseJudge());
        this.strength = slider({
            label: "guidance",
            value: 1,
            low: 0,
            high: 8,
            scale: "linear",
            hint: "Strength of guidance to the class; 1 is that of the model"
        });
        this.weak = slider({
            label: "weak model",
            value: 1,
            low: 0,
            high: 5,
            scale: "linear",
            hint: "Guidance by the weaker model in the file; 1 is none"
        });
        this.element = h(
            "div", {class: "stack"}, this.judge.element, this.label.element, this.strength.element, this.weak.element);
        this.classifiers = [];
    }

    async list() { this.classifiers = await files("classifier"); }

    async of(model) {
        this.model = model;
        this.own = Boolean(model?.classes?.length);
        this.judge.element.hidden = this.own || !this.classifiers.length || model?.shape.length !== 3;
        options(this.judge.select, [["", "none"], ...fileRows(this.classifiers)], "");
        this.weak.element.hidden = !model?.weak_scale;
        if (model?.weak_scale) this.weak.value = model.weak_scale;
        this.strength.value = this.own ? model.cfg || 1 : 3;
        this.setClasses(this.own ? model.classes : []);
    }

    async chooseJudge() {
        const path = this.judge.value;
        this.setClasses(path ? (await describe(path)).classes : []);
        if (path) this.label.value = "0";
        this.changed();
    }

    setClasses(classes) {
        const rows = classes.map((name, i) => [String(i), name]);
        options(
            this.label.select, [...(this.own ? [["", "any"]] : []), ["all", "all, in turn"], ...rows],
            this.own ? "" : "all");
        this.count = classes.length;
        this.changed();
    }

    changed() {
        this.label.element.hidden = !this.count;
        this.strength.element.hidden = !this.count || (this.own && this.label.value === "");
    }

    /* For samples first, first + 1, ...: with `first`, the class that this sample had in the whole draw. */
    values(index = null) {
        const values = {};
        if (this.count) {
            const label = index !== null && this.label.value === "all" ? String(index % this.count) : this.label.value;
            if (label !== "") values.label = label;
            if (this.own) {
                if (label !== "" && this.strength.value !== (this.model.cfg || 1)) values.cfg = this.strength.value;
            } else {
                values.classifier = this.judge.value;
                values.scale = this.strength.value;
            }
        }
        if (this.model?.weak_scale && this.weak.value !== this.model.weak_scale) values.weak_scale = this.weak.value;
        return values;
    }
}
